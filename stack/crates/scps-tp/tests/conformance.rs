//! docs/conformance/careful-resume.md names only files and tests that exist.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::path::PathBuf;

#[test]
fn the_table_of_careful_resume_names_what_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|_| panic!("no file {path}"));
    let table = read("docs/conformance/careful-resume.md");
    let rows: Vec<&str> = table.lines().filter(|line| line.contains(" | done | ")).collect();
    for row in &rows {
        let quoted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [file, test_file, test] = quoted[..] else { panic!("{row}: expected a file, a test file and a test") };
        assert!(root.join(file).is_file(), "{row}: no file {file}");
        assert!(read(test_file).contains(&format!("fn {test}(")), "{row}: no test {test} in {test_file}");
    }
    assert_eq!(rows.len(), 18);
}
