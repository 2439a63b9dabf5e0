//! JSON settings files whose complaints name the line, also where the form is right and the content is not.

use crate::error::CliError;
use crate::place;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file as it was read. Parts of its text know their line by where they are in it.
#[derive(Debug)]
pub struct SettingsFile {
    path: PathBuf,
    text: String,
}

impl SettingsFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let said = "found no such file; expected JSON settings: give the path of a file that is there";
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            CliError::file(path)(if is_missing { std::io::Error::new(error.kind(), said) } else { error })
        })?;
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
        if self.text.trim_start().starts_with('[') {
            return Err(self.at_line(1, "found a list; expected an object in braces"));
        }
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
            let begin = self.offset_of(text);
            // What a word decides (`kind`) is read without its places: the complaint names the part.
            let before = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
            let place = place::of(&self.text, begin + if error.line() == 0 { 0 } else { before + error.column() });
            let value = if error.line() == 0 { place::ipv6_in(text) } else { place.value };
            let problem = if error.is_syntax() || error.is_eof() {
                format!("found text that is no JSON ({problem}); expected an object in braces; correct the line")
            } else {
                plain_words(problem, value)
            };
            let names_key = problem.contains(" field `") || place.path.is_empty();
            let problem = if names_key { problem } else { format!("{}: {problem}", place.path) };
            self.at_line(self.line_of(text) + error.line().saturating_sub(1), &problem)
        })
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A complaint about a key of an object, which is a piece of the text.
    pub fn complaint_about(&self, object: &str, Wrong(key, problem): Wrong) -> CliError {
        let keys: BTreeMap<String, &RawValue> = self.parse_text(object).unwrap_or_default();
        let value = keys.get(key).map_or(object, |raw| raw.get());
        let place = place::of(&self.text, self.offset_of(value) + value.len());
        self.at_line(self.line_of(value), &format!("{}: {problem}", place.path))
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
        1 + self.text.as_bytes().iter().take(self.offset_of(piece)).filter(|octet| **octet == b'\n').count()
    }

    fn offset_of(&self, piece: &str) -> usize {
        (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }
}

/// A key whose value cannot be, and what is wrong with it.
pub struct Wrong(pub &'static str, pub String);

impl Wrong {
    /// A complaint about a value that is no file's.
    pub fn of_option(self) -> CliError {
        CliError::Usage(format!("--{}: {}.", self.0.replace('_', "-"), self.1))
    }
}

/// Numbers as a reader knows them.
const NUMBERS: [(&str, &str); 6] = [
    ("u8", "a whole number of 0 to 255"),
    ("u16", "a whole number of 0 to 65535"),
    ("u32", "a whole number of 0 to 4294967295"),
    ("u64", "a whole number"),
    ("usize", "a whole number"),
    ("f64", "a number"),
];

/// A complaint of the parser's about `value`, if that is a text, in our words.
fn plain_words(problem: &str, value: Option<&str>) -> String {
    let is_of_address = problem.ends_with("address syntax");
    if let Some(value) = value.filter(|value| place::is_ipv6(value) && (is_of_address || problem.starts_with("found ")))
    {
        return place::no_ipv6(value);
    }
    if let Some(value) = value.filter(|_| is_of_address) {
        let port = if problem.contains("socket") { " with a port, such as \"203.0.113.2:7168\"" } else { "" };
        return format!("found {value:?}; expected an IPv4 address{port}");
    }
    let found = ["invalid type: ", "invalid value: "].iter().find_map(|start| problem.strip_prefix(start));
    let Some((found, expected)) = found.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return problem.to_owned();
    };
    let expected = NUMBERS.iter().find(|(name, _)| *name == expected).map_or(expected, |(_, words)| words);
    format!("found {found}; expected {expected}")
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
        assert!(
            error.starts_with("s.json:4: items[1].n: found integer `300`; expected a whole number of 0 to 255")
                && error.ends_with('.'),
            "{error}"
        );
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
