//! The transport's counts in a file, up to date while the program runs: a server may be killed at any time.

use crate::error::CliError;
use crate::fp::{write_whole, World};
use crate::say::{self, Told};
use scps_tp::Totals;
use serde_json::{json, Value};
use std::path::PathBuf;

/// The counts of all connections, as records have them.
pub fn line(totals: Totals) -> Value {
    let Totals { rtos, resends, superfluous_resends, .. } = totals;
    json!({"rtos": rtos, "retransmissions": resends, "superfluous_resends": superfluous_resends})
}

/// A file that holds the counts as one JSON object, if anybody wants it.
#[derive(Debug, Default)]
pub struct Counters {
    path: Option<PathBuf>,
    written: Option<Totals>,
    told: Told,
}

impl Counters {
    /// Writes to `path`; nowhere without one.
    pub fn new(path: Option<PathBuf>) -> Self {
        Counters { path, ..Counters::default() }
    }

    /// Writes the counts if they have changed. Only the first writing can fail: a disk that is full later must not end a service, so that is
    /// said, once.
    pub fn update(&mut self, world: &World) -> Result<(), CliError> {
        // Nobody pays for counts that nobody wants: a server calls this each turn.
        let Some(path) = &self.path else { return Ok(()) };
        let Some(totals) = world.totals() else { return Ok(()) };
        if self.written == Some(totals) {
            return Ok(());
        }
        let is_first = self.written.replace(totals).is_none();
        let written = write_whole(path, &line(totals).to_string());
        if is_first {
            return written;
        }
        if let Some(error) = self.told.news(written) {
            say::remark(format_args!("scps: counters are not written for now: {error}"));
        }
        Ok(())
    }
}
