//! The transport's counts in a file, up to date while the program runs: a server may be killed at any time.

use crate::error::CliError;
use crate::fp::{write_whole, World};
use crate::say::{self, Told};
use scps_tp::Totals;
use serde::Serialize;
use std::path::PathBuf;

/// The counts as records have them.
#[derive(Serialize)]
pub struct Line {
    rtos: u64,
    retransmissions: u64,
    superfluous_resends: u64,
}

impl Line {
    /// Those of all connections.
    pub fn of(totals: Totals) -> Line {
        let Totals { rtos, resends, superfluous_resends, .. } = totals;
        Line { rtos, retransmissions: resends, superfluous_resends }
    }
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
        let written = write_whole(path, &say::json(&Line::of(totals))?);
        if is_first {
            return written;
        }
        if let Some(error) = self.told.news(written) {
            say::remark(format_args!("scps: counters are not written for now: {error}"));
        }
        Ok(())
    }
}
