//! docs/conformance/scps-fp.md names only files and tests that exist, and every item of the checklist.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::path::{Path, PathBuf};

#[test]
fn conformance_table_names_what_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let table = std::fs::read_to_string(root.join("docs/conformance/scps-fp.md")).unwrap();
    let mut items = Vec::new();
    for line in table.lines().filter(|l| l.starts_with("| ") && l.as_bytes()[2].is_ascii_digit()) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        items.push(cells[0].parse::<u32>().unwrap());
        assert!(cells[2] == "done" || cells[2].starts_with("partly: "), "{line}");
        let quoted: Vec<&str> = cells[3..].iter().flat_map(|c| c.split('`')).filter(|w| !w.trim().is_empty()).collect();
        assert!(root.join(quoted[0]).is_file(), "{line}: no file {}", quoted[0]);
        if quoted.len() == 1 {
            assert!(cells[2] != "done", "{line}: done without a test");
            continue;
        }
        let [_, test_file, test] = quoted[..] else { panic!("{line}: expected a file, a test file and a test") };
        let text =
            std::fs::read_to_string(root.join(test_file)).unwrap_or_else(|_| panic!("{line}: no file {test_file}"));
        // Those of the lab are Python's.
        let word = if Path::new(test_file).extension().is_some_and(|suffix| suffix == "py") { "def" } else { "fn" };
        assert!(text.contains(&format!("{word} {test}(")), "{line}: no test {test} in {test_file}");
    }
    assert_eq!(items, (1..=84).collect::<Vec<_>>());
}
