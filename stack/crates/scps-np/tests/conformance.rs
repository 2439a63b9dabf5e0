//! docs/conformance/scps-np.md names only files and tests that exist, and every item of the checklist.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

#[path = "../../scps-tp/testing/conformance_table.rs"]
mod conformance_table;

#[test]
fn conformance_table_names_what_exists() {
    conformance_table::names_what_exists("scps-np.md", 56);
}
