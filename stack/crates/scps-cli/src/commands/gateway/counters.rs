//! Where a gateway's counters go, and when.

use super::lines::{ended, still_open, totals};
use crate::error::CliError;
use crate::fp::append_to;
use crate::operator::{Level, Operator};
use crate::say::Told;
use crate::stop::Request;
use scps_gateway::{End, Report};
use scps_io::GatewayLoop;
use scps_wire::{Duration, Instant};
use serde_json::Value;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A client with too many connections is told of no more often.
const CROWDED_EVERY: Duration = Duration::from_secs(60);

/// Where counters go.
pub(super) struct Counters {
    file: Option<(File, PathBuf)>,
    every: Option<Duration>,
    /// When lines are due.
    pub(super) next_at: Option<Instant>,
    /// What the file does not have yet.
    lines: Vec<u8>,
    told: Told,
    /// The file ends within a line.
    is_torn: bool,
    /// When a client with too many connections is told of again.
    crowded_at: Instant,
}

impl Counters {
    pub(super) fn open(path: Option<&Path>, every_s: f64, now: Instant) -> Result<Self, CliError> {
        let open = |path: &Path| Ok::<_, CliError>((append_to(path)?, path.to_owned()));
        let file = path.map(open).transpose()?;
        let every = (every_s > 0.0 && file.is_some()).then(|| Duration::from_secs_f64(every_s.clamp(0.01, 1e9)));
        let next_at = every.map(|every| now + every);
        Ok(Counters { file, every, next_at, lines: Vec::new(), told: Told::default(), is_torn: false, crowded_at: now })
    }

    /// Goes on in the file that has the name now: the one of before may have been put aside.
    pub(super) fn reopen(&mut self) -> Result<(), CliError> {
        if let Some((file, path)) = &mut self.file {
            *file = append_to(path)?;
            self.is_torn &= file.metadata().is_ok_and(|about| about.len() > 0);
        }
        Ok(())
    }

    /// Writes what is due.
    pub(super) fn follow(&mut self, gateway: &mut GatewayLoop, wish: &mut Request, operator: &Operator) {
        self.note_ends(gateway, operator);
        let now = gateway.now();
        let is_due = self.next_at.is_some_and(|at| at <= now);
        if is_due {
            self.next_at = self.every.map(|every| now + every);
        }
        if wish.came() || is_due {
            self.note_all(gateway, operator);
        }
    }

    pub(super) fn note_ends(&mut self, gateway: &mut GatewayLoop, operator: &Operator) {
        let now = gateway.now();
        while let Some(report) = gateway.gateway_mut().poll_report() {
            if report.end == End::Crowded && now >= self.crowded_at {
                let client = report.client.ip();
                let text = format!(
                    "full: {client} has most connections, and loses those that are idle to clients with fewer."
                );
                operator.tell(Level::Warn, text);
                self.crowded_at = now + CROWDED_EVERY;
            }
            if operator.hears(Level::Debug) {
                operator.tell(Level::Debug, in_words(&report));
            }
            self.add(&ended(now, &report));
        }
        self.write(operator);
    }

    /// A line for each open connection, and one for all.
    pub(super) fn note_all(&mut self, gateway: &mut GatewayLoop, operator: &Operator) {
        if self.file.is_none() {
            return;
        }
        for id in gateway.gateway().connections() {
            if let Some(accounts) = gateway.gateway().account(id) {
                self.add(&still_open(gateway.now(), id, accounts));
            }
        }
        self.add(&totals(gateway));
        self.write(operator);
    }

    fn add(&mut self, line: &Value) {
        if self.file.is_some() {
            self.lines.extend(format!("{line}\n").bytes());
        }
    }

    /// Hands the lines on. Where they cannot be written, as on a full disk, they are lost: the connections do not wait for them.
    fn write(&mut self, operator: &Operator) {
        let Some((file, path)) = self.file.as_mut().filter(|_| !self.lines.is_empty()) else { return };
        if self.is_torn {
            self.lines.insert(0, b'\n');
        }
        let mut rest = &self.lines[..];
        let written = loop {
            match file.write(rest) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.is_torn = rest[n - 1] != b'\n';
                    rest = &rest[n..];
                    if rest.is_empty() {
                        break Ok(());
                    }
                }
            }
        };
        self.lines.clear();
        if let Some(error) = self.told.news(written) {
            operator.tell(
                Level::Warn,
                format_args!("{}: {error}; lines are lost until it can be written.", path.display()),
            );
        }
    }
}

/// A connection that ended, for the log.
fn in_words(report: &Report) -> String {
    let Report { pair, client, server, end, from, .. } = report;
    let (lan, wan) = (from.lan.delivered, from.wan.delivered);
    let lasted_s = report.ended_at.since(report.began_at).as_secs_f64();
    let id = pair.as_u64();
    format!("connection {id} ({client} to {server}): {end} after {lasted_s:.1} s; {lan} octets of the LAN and {wan} of the WAN delivered.")
}
