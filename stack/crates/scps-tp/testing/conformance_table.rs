//! What the tests of the conformance tables share: a page names only files and tests that exist, and every item of its
//! checklist. Included with `#[path]`, for it is of no use to any program.

use std::path::PathBuf;

/// Checks docs/conformance/`page`, whose items are 1 to `number`.
pub fn names_what_exists(page: &str, number: u32) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let table = std::fs::read_to_string(root.join("docs/conformance").join(page)).unwrap();
    let mut items = Vec::new();
    for line in table.lines().filter(|l| l.starts_with("| ") && l.as_bytes()[2].is_ascii_digit()) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        items.push(cells[0].parse::<u32>().unwrap());
        let quoted: Vec<&str> = cells[3..].iter().flat_map(|c| c.split('`')).filter(|w| !w.trim().is_empty()).collect();
        if cells[2] == "not yet" {
            assert!(quoted.is_empty(), "{line}");
            continue;
        }
        assert!(cells[2] == "done" || cells[2].starts_with("partly: "), "{line}");
        let [file, test_file, test] = quoted[..] else { panic!("{line}: expected a file, a test file and a test") };
        assert!(root.join(file).is_file(), "{line}: no file {file}");
        let text =
            std::fs::read_to_string(root.join(test_file)).unwrap_or_else(|_| panic!("{line}: no file {test_file}"));
        assert!(text.contains(&format!("fn {test}(")), "{line}: no test {test} in {test_file}");
    }
    assert_eq!(items, (1..=number).collect::<Vec<_>>());
}
