//! What the program says: results on standard output, remarks to a person on standard error. Neither panics where the reader has
//! gone, as `println!` does: `scps decode FILE | head` is no fault.

use crate::error::CliError;
use serde::Serialize;
use std::fmt::Display;
use std::io::Write;

/// A line of a result, handed on at once.
pub fn result(line: impl Display) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|source| CliError::File { path: "standard output".to_owned(), source })
}

/// What records are written as.
pub fn json(record: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(record).map_err(|error| CliError::Usage(error.to_string()))
}

/// Whether something that fails again and again has been told: the first failure is, and the next one after a success.
#[derive(Debug, Default)]
pub struct Told(bool);

impl Told {
    /// The error to tell.
    pub fn news<E>(&mut self, result: Result<(), E>) -> Option<E> {
        let was_told = std::mem::replace(&mut self.0, result.is_err());
        result.err().filter(|_| !was_told)
    }
}

/// A line for a person. One who no longer reads misses nothing.
pub fn remark(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
