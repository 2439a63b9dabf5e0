//! JSON settings files whose complaints name the line, also where the form is right and the content is not.

use crate::error::CliError;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};

/// A file as it was read. Parts of its text know their line by where they are in it.
pub struct SettingsFile {
    path: PathBuf,
    text: String,
}

impl SettingsFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
        Ok(SettingsFile { path: path.to_owned(), text })
    }

    /// A text that is no file, as the command line stands for one.
    pub fn of_text(name: &str, text: String) -> Self {
        SettingsFile { path: name.into(), text }
    }

    /// What complaints call it.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The folder in which other files that it names are.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The file as a value.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CliError> {
        self.parse_text(&self.text)
    }

    /// A part of it as a value.
    pub fn part<'a, T: Deserialize<'a>>(&'a self, part: &'a RawValue) -> Result<T, CliError> {
        self.parse_text(part.get())
    }

    fn parse_text<'a, T: Deserialize<'a>>(&'a self, text: &'a str) -> Result<T, CliError> {
        serde_json::from_str(text).map_err(|error| {
            let whole = error.to_string();
            let problem = whole.rfind(" at line ").map_or(whole.as_str(), |at| &whole[..at]);
            self.at_line(self.line_of(text) + error.line().saturating_sub(1), problem)
        })
    }

    /// A complaint about a part.
    pub fn complaint(&self, part: &RawValue, problem: &str) -> CliError {
        self.at_line(self.line_of(part.get()), problem)
    }

    fn at_line(&self, line: usize, problem: &str) -> CliError {
        CliError::Usage(format!("{}:{line}: {problem}.", self.path.display()))
    }

    /// The line on which a piece of the text begins, counted from 1.
    fn line_of(&self, piece: &str) -> usize {
        let at = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        1 + self.text.as_bytes().iter().take(at).filter(|octet| **octet == b'\n').count()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A file that never was on a disk.
    pub fn file(text: &str) -> SettingsFile {
        SettingsFile { path: "s.json".into(), text: text.to_owned() }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        n: u8,
    }

    #[test]
    fn complaints_name_the_line_of_form_and_content() {
        let text = "{\"items\": [\n  {\"n\": 1},\n  {\"n\":\n    300}\n]}\n";
        let file = file(text);
        let outer: Outer<'_> = file.parse().unwrap();
        assert_eq!(file.part::<Item>(outer.items[0]).unwrap().n, 1);
        let error = file.part::<Item>(outer.items[1]).unwrap_err().to_string();
        assert!(error.starts_with("s.json:4: invalid value: integer `300`") && error.ends_with('.'), "{error}");
        let error = file.complaint(outer.items[1], "found it; expected another").to_string();
        assert_eq!(error, "s.json:3: found it; expected another.");
    }

    #[test]
    fn unknown_keys_are_named_with_their_line() {
        let file = file("{\n  \"items\": [],\n  \"itens\": []\n}");
        let error = file.parse::<Outer<'_>>().unwrap_err().to_string();
        assert!(error.starts_with("s.json:3: unknown field `itens`, expected `items`"), "{error}");
    }
}
