//! JSON settings files, read as one tree of types. Complaints name line, key, what was found and what is expected, also where the form is
//! right and the content is not.

use crate::error::CliError;
use crate::place;
use serde::de::{self, DeserializeOwned, Deserializer};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A file as it was read.
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

    /// The folder in which other files that it names are.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The file as a value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, CliError> {
        if self.text.trim_start().starts_with('[') {
            return Err(self.at_line(1, "found a list; expected an object in braces"));
        }
        serde_json::from_str(&self.text).map_err(|error| {
            let whole = error.to_string();
            let problem = whole.rfind(" at line ").map_or(whole.as_str(), |at| &whole[..at]);
            let above =
                self.text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
            let place = place::of(&self.text, above + error.column());
            let problem = if error.is_syntax() || error.is_eof() {
                format!("found text that is no JSON ({problem}); expected an object in braces; correct the line")
            } else {
                plain_words(problem, place.value)
            };
            let names_key = problem.contains(" field `") || place.path.is_empty();
            let problem = if names_key { problem } else { format!("{}: {problem}", place.path) };
            self.at_line(error.line(), &problem)
        })
    }

    /// A complaint about what is at a path such as `wan.transport.mtu`, with the line of that, or of what it is missing in.
    pub fn complaint(&self, path: &str, problem: impl Display) -> CliError {
        let problem = if path.is_empty() { problem.to_string() } else { format!("{path}: {problem}") };
        match place::begin(&self.text, path) {
            Some(at) => self.at_line(1 + self.text[..at].matches('\n').count(), &problem),
            None => CliError::Usage(format!("{}: {problem}.", self.path.display())),
        }
    }

    fn at_line(&self, line: usize, problem: &str) -> CliError {
        CliError::Usage(format!("{}:{line}: {problem}.", self.path.display()))
    }
}

/// Reads what has a form in words, so that a complaint is about the word.
pub fn word<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    struct Word<T>(PhantomData<T>);

    impl<T: FromStr<Err: Display>> de::Visitor<'_> for Word<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    from.deserialize_str(Word(PhantomData))
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
    use serde::Deserialize;

    /// A file that never was on a disk.
    pub fn file(text: &str) -> SettingsFile {
        SettingsFile { path: "s.json".into(), text: text.to_owned() }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        n: u8,
    }

    #[test]
    fn complaints_name_the_line_of_form_and_content() {
        let text = "{\"items\": [\n  {\"n\": 1},\n  {\"n\":\n    3}\n]}\n";
        let good = file(text);
        assert_eq!(good.parse::<Outer>().unwrap().items[1].n, 3);
        let error = file(&text.replace('3', "300")).parse::<Outer>().unwrap_err().to_string();
        let words = "s.json:4: items[1].n: found integer `300`; expected a whole number of 0 to 255";
        assert!(error.starts_with(words) && error.ends_with('.'), "{error}");
        let said = |path: &str| good.complaint(path, "found it; expected another").to_string();
        assert_eq!(said("items[1]"), "s.json:3: items[1]: found it; expected another.");
        assert_eq!(said("items[1].n"), "s.json:4: items[1].n: found it; expected another.");
        assert_eq!(said("items[1].m"), "s.json:3: items[1].m: found it; expected another.");
        assert_eq!(said("limits"), "s.json: limits: found it; expected another.");
    }

    #[test]
    fn unknown_keys_are_named_with_their_line() {
        let file = file("{\n  \"items\": [],\n  \"itens\": []\n}");
        let error = file.parse::<Outer>().unwrap_err().to_string();
        assert!(error.starts_with("s.json:3: unknown field `itens`, expected `items`"), "{error}");
    }
}
