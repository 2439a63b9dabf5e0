//! docs/conformance/scps-tp.md names only files and tests that exist, and every item of the checklist.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::path::PathBuf;

#[test]
fn conformance_table_names_what_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let table = std::fs::read_to_string(root.join("docs/conformance/scps-tp.md")).unwrap();
    let mut items = Vec::new();
    for line in table.lines().filter(|l| l.starts_with("| ") && l.as_bytes()[2].is_ascii_digit()) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        items.push(cells[0].parse::<u32>().unwrap());
        assert_eq!(cells[2], "done", "{line}");
        let quoted: Vec<&str> = cells[3..].iter().flat_map(|c| c.split('`')).filter(|w| !w.trim().is_empty()).collect();
        let [file, test_file, test] = quoted[..] else { panic!("{line}: expected a file, a test file and a test") };
        assert!(root.join(file).is_file(), "{line}: no file {file}");
        let text =
            std::fs::read_to_string(root.join(test_file)).unwrap_or_else(|_| panic!("{line}: no file {test_file}"));
        assert!(text.contains(&format!("fn {test}(")), "{line}: no test {test} in {test_file}");
    }
    assert_eq!(items, (1..=121).collect::<Vec<_>>());
}
