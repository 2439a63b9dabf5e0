//! What programs that run for long have for their operator: a log on standard error, counters for a monitoring system, and SIGHUP, which
//! reads settings again.

use crate::error::CliError;
use crate::metrics::{Metrics, Place};
use crate::say;
use crate::stop::{Cause, Request, StopSignals};
use clap::{Args, ValueEnum};
use serde::Serialize;
use signal_hook::consts::SIGHUP;
use std::fmt::Display;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Octets of the longest file that is read again.
const FILE_MAX: u64 = 1 << 20;

/// How much a line of the log matters; those up to the level asked for are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Level {
    /// What was asked for is not done
    Error,
    /// Somebody should look
    Warn,
    /// What changes
    Info,
    /// Every connection
    Debug,
}

/// Options of such programs.
#[derive(Debug, Args)]
pub struct OperatorArgs {
    /// Write lines of the log on standard error up to this level; SCPS_LOG in the environment says it too
    #[arg(long, value_enum, value_name = "LEVEL", env = "SCPS_LOG", default_value = "info")]
    log_level: Level,
    /// Show the counters to a monitoring system (Prometheus) at this address, such as 127.0.0.1:9717, or unix:PATH
    #[arg(long, value_name = "PLACE")]
    metrics: Option<Place>,
}

/// The operator of a program that runs.
pub struct Operator {
    program: &'static str,
    level: Level,
    metrics: Option<Metrics>,
    stop: StopSignals,
    hang_up: Request,
}

impl Operator {
    /// Takes the signals over and opens what is asked for.
    pub fn begin(program: &'static str, args: &OperatorArgs) -> Result<Operator, CliError> {
        Ok(Operator {
            program,
            level: args.log_level,
            stop: StopSignals::install()?,
            hang_up: StopSignals::other(SIGHUP)?,
            metrics: Metrics::open(program, args.metrics.as_ref())?,
        })
    }

    /// What becomes readable when there is something to do for the operator.
    pub fn wakeups(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.stop.wakeup(), self.hang_up.wakeup()].into_iter().chain(self.metrics.as_ref().map(Metrics::wakeup))
    }

    /// True if lines of a level are written.
    pub fn hears(&self, level: Level) -> bool {
        level <= self.level
    }

    /// A line of the log.
    pub fn tell(&self, level: Level, text: impl Display) {
        if self.hears(level) {
            say::remark(format_args!("scps: {}: {text}", self.program));
        }
    }

    /// Answers monitoring systems that wait, with the counters of now.
    pub fn answer<C: Serialize>(&self, counters: impl FnOnce() -> C) {
        if let Some(metrics) = &self.metrics {
            metrics.answer(counters);
        }
    }

    /// If SIGHUP came, `again` reads these files again, puts them into force and says what they are; where it complains, the settings of
    /// before are in force still.
    pub fn reload(&mut self, files: &[Option<&Path>], again: impl FnOnce() -> Result<String, CliError>) {
        if !self.hang_up.came() {
            return;
        }
        match files.iter().flatten().try_for_each(|path| check_file(path)).and_then(|()| again()) {
            Ok(what) => self.tell(Level::Info, format_args!("SIGHUP: settings are read again: {what}.")),
            Err(error) => {
                let error = error.to_string();
                let error = error.trim_end_matches('.');
                self.tell(Level::Error, format_args!("SIGHUP: {error}. The settings stay as they were."));
            }
        }
    }

    /// Why to end, if so.
    pub fn cause(&self) -> Option<Cause> {
        self.stop.came()
    }
}

/// A program at work must not wait for a pipe, nor fill its memory with what is no settings file.
fn check_file(path: &Path) -> Result<(), CliError> {
    let about = std::fs::metadata(path).map_err(CliError::file(path))?;
    if about.is_file() && about.len() <= FILE_MAX {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "{}: found no file, or more than {FILE_MAX} octets; expected settings",
        path.display()
    )))
}

/// Settings that hold until the end of the program, by name, as texts that can be compared.
pub type Fixed = Vec<(String, String)>;

/// Complains if settings that hold until the end are others than before.
pub fn check_fixed(before: &Fixed, after: &Fixed) -> Result<(), CliError> {
    let names = |settings: &Fixed, others: &Fixed| {
        settings.iter().filter(|one| !others.contains(one)).map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let mut changed = names(after, before);
    changed.extend(names(before, after));
    changed.sort();
    changed.dedup();
    if changed.is_empty() {
        return Ok(());
    }
    let found = changed.join(", ");
    Err(CliError::Usage(format!("found changes that only a restart makes ({found}); expected others only")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_change_is_named_once() {
        let fixed = |pairs: &[(&str, &str)]| -> Fixed {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let before = fixed(&[("wan: mtu", "1500"), ("forwards", "[]")]);
        assert!(check_fixed(&before, &before).is_ok());
        let after = fixed(&[("wan: mtu", "1400"), ("forwards", "[]"), ("host", "eth0")]);
        let text = check_fixed(&before, &after).unwrap_err().to_string();
        assert!(text.contains("(host, wan: mtu)"), "{text}");
    }
}
