//! `scps recv`: accept or connect, read to the end, close, report; once, several times, or forever.

use super::feed::hex;
use super::opening::{Opened, OpeningArgs};
use crate::error::CliError;
use crate::payload::Comparison;
use crate::progress::{Phase, Progress};
use crate::report::{is_standard_output, Facts, Report};
use crate::say;
use crate::settings::{Resolved, Tunables};
use crate::sp_settings::{tell_notices, tell_silence};
use crate::stop::{abort_all, Cause, Stop};
use crate::trace::{TraceArgs, TraceWriter};
use crate::world::DriverArgs;
use clap::Args;
use scps_io::Stack;
use scps_tp::{CloseReason, ConnectionId, Event, RecvError};
use scps_wire::{Duration, Instant};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `scps recv`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct RecvArgs {
    #[command(flatten)]
    opening: OpeningArgs,
    /// Write the data of the first transfer here
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Transfers to take before leaving; 0 for no end until SIGTERM
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Do not hash the data
    #[arg(long)]
    no_hash: bool,
    /// Compare the data with what `scps send --data-seed` generates
    #[arg(long, value_name = "SEED")]
    expect_seed: Option<u64>,
    /// Close our side as soon as the connection is open, and receive on
    #[arg(long)]
    half_close: bool,
    /// Write results here, one line per transfer ("-" or not given: to standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// At a terminal: show no progress, and no sentence at the end
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    traces: TraceArgs,
    #[command(flatten)]
    tunables: Tunables,
    #[command(flatten)]
    driver: DriverArgs,
}

/// One connection being read.
struct Intake {
    bytes: u64,
    hash: Option<Sha256>,
    comparison: Option<Comparison>,
    holes: Vec<(u64, u64)>,
    output: Option<BufWriter<File>>,
    is_at_end: bool,
    /// When the acknowledgement of our FIN is not waited for any more.
    given_up_at: Option<Instant>,
}

/// How the taking ended.
struct Ended {
    finished: u64,
    failed: u64,
    stopped: Option<Cause>,
}

/// How long a finished connection waits for the acknowledgement of its FIN, in RTOs.
const LINGER_RTOS: u32 = 8;

impl RecvArgs {
    /// Receives.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        if self.opening.connects() && self.count != 1 {
            return Err(CliError::Usage(format!("--count: found {} with --connect; expected 1.", self.count)));
        }
        let mut resolved = self.tunables.resolve()?;
        let mut trace = TraceWriter::create(&self.traces)?;
        resolved.config.trace = trace.is_on();
        if let Some(path) = self.json.as_deref().filter(|path| !is_standard_output(path)) {
            File::create(path).map_err(CliError::file(path))?;
        }
        let mut stack = self.driver.open(self.opening.address(), &mut resolved)?;
        trace.begin("server", &stack)?;
        let opened = self.opening.begin(&mut stack, resolved.config.clone())?;
        let stop = Stop::new(&mut stack, self.opening.limit())?;
        let mut intakes = BTreeMap::new();
        let ended = self.serve(&mut stack, &mut trace, &stop, opened, &mut intakes, &resolved);
        tell_silence(&stack);
        let (mut failed, stopped) = match ended {
            Ok(Ended { failed, stopped: None, .. }) => {
                // Whoever came beside those that were waited for would wait for ever.
                if !intakes.is_empty() {
                    abort_all(&mut stack)?;
                }
                (failed, None)
            }
            Ok(Ended { failed, stopped: stopped @ Some(cause), finished }) => {
                abort_all(&mut stack)?;
                let all = finished + intakes.len() as u64;
                let is_short = all == 0 || all < self.count;
                if is_short {
                    let (count, why) = (self.count, cause.text());
                    say::remark(format_args!("scps: recv: {finished} of {count} transfers ended; {why}."));
                }
                if all == 0 {
                    self.report(self.intake(false)?, None, stopped, &stack, None, &resolved)?;
                }
                (failed + u64::from(is_short), stopped)
            }
            Err(error) => {
                abort_all(&mut stack)?;
                return Err(error);
            }
        };
        for (id, intake) in intakes {
            failed += u64::from(!intake.is_at_end);
            self.report(intake, None, stopped, &stack, Some(id), &resolved)?;
        }
        trace.drain(&mut stack)?;
        trace.finish()?;
        resolved.resume.save(stack.endpoint(), stack.now());
        Ok(match stopped {
            Some(cause @ Cause::Signal(_)) => cause.exit_code(),
            _ if failed == 0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }

    /// Takes transfers until there were enough or something stops it; `intakes` then holds those that are open.
    fn serve(
        &self,
        stack: &mut Stack,
        trace: &mut TraceWriter,
        stop: &Stop,
        opened: Opened,
        intakes: &mut BTreeMap<ConnectionId, Intake>,
        resolved: &Resolved,
    ) -> Result<Ended, CliError> {
        let mut accepted = 0;
        let (mut finished, mut failed) = (0, 0);
        let mut buffer = vec![0u8; 256 * 1024];
        let mut progress = Progress::new("recv", None, self.quiet, stack.now());
        if let Opened::Connecting(id) = opened {
            intakes.insert(id, self.intake(true)?);
        }
        while self.count == 0 || finished < self.count {
            let leave_at = intakes.iter().filter_map(|(id, i)| i.leave_at(stack, *id)).min();
            stack.run_once([stop.deadline(), leave_at, progress.due()].into_iter().flatten().min())?;
            tell_notices(stack);
            let mut ended: Vec<(ConnectionId, Option<CloseReason>)> = Vec::new();
            while let Some(event) = stack.poll_event() {
                match event {
                    Event::Accepted(_, id) => {
                        accepted += 1;
                        intakes.insert(id, self.intake(accepted == 1)?);
                    }
                    Event::Closed(id, reason) => ended.push((id, Some(reason))),
                    _ => {}
                }
                if let (Event::Accepted(_, id) | Event::Connected(id), true) = (event, self.half_close) {
                    stack.close(id);
                }
            }
            for (id, intake) in &mut *intakes {
                intake.read(stack, *id, &mut buffer)?;
            }
            trace.drain(stack)?;
            let now = stack.now();
            let leaves = |(id, i): &(&ConnectionId, &Intake)| i.leave_at(stack, **id).is_some_and(|at| at <= now);
            ended.extend(intakes.iter().filter(leaves).map(|(id, _)| (*id, None)));
            for (id, reason) in ended {
                if let Some(intake) = intakes.remove(&id) {
                    progress.clear();
                    finished += 1;
                    failed += u64::from(!intake.is_at_end);
                    self.report(intake, reason, None, stack, Some(id), resolved)?;
                    stack.release(id);
                }
            }
            progress.update(now, || self.phase(stack, intakes));
            if let Some(cause) = stop.cause(now) {
                return Ok(Ended { finished, failed, stopped: Some(cause) });
            }
        }
        Ok(Ended { finished, failed, stopped: None })
    }

    fn phase(&self, stack: &Stack, intakes: &BTreeMap<ConnectionId, Intake>) -> Phase {
        let is_open = |id| stack.endpoint().stats(id).is_some_and(|stats| stats.established_at.is_some());
        if intakes.keys().any(|id| is_open(*id)) {
            Phase::Moving(intakes.values().map(|intake| intake.bytes).sum())
        } else {
            self.opening.phase()
        }
    }

    fn intake(&self, is_first: bool) -> Result<Intake, CliError> {
        let output = match &self.output {
            Some(path) if is_first => Some(BufWriter::new(File::create(path).map_err(CliError::file(path))?)),
            _ => None,
        };
        Ok(Intake {
            bytes: 0,
            hash: (!self.no_hash).then(Sha256::new),
            comparison: self.expect_seed.map(Comparison::new),
            holes: Vec::new(),
            output,
            is_at_end: false,
            given_up_at: None,
        })
    }

    fn report(
        &self,
        mut intake: Intake,
        reason: Option<CloseReason>,
        stopped: Option<Cause>,
        stack: &Stack,
        id: Option<ConnectionId>,
        resolved: &Resolved,
    ) -> Result<(), CliError> {
        if let (Some(output), Some(path)) = (&mut intake.output, &self.output) {
            output.flush().map_err(CliError::file(path))?;
        }
        let is_complete = intake.is_at_end;
        let note = stopped.filter(|_| !is_complete).map(|s| s.text().to_owned());
        let facts = Facts {
            role: "recv",
            is_complete,
            reason,
            note,
            bytes: intake.bytes,
            sha256: intake.hash.map(|h| hex(&h.finalize())),
            wrong_bytes: intake.comparison.map(|c| c.wrong()),
            holes: intake.holes,
        };
        let report = Report::new(facts, stack, id, self.opening.listening(), resolved);
        report.tell(resolved, self.quiet);
        report.write(self.json.as_deref(), true)
    }
}

impl Intake {
    fn leave_at(&self, stack: &Stack, id: ConnectionId) -> Option<Instant> {
        self.given_up_at.map(|at| stack.endpoint().may_leave_at(id).unwrap_or(at))
    }

    fn read(&mut self, stack: &mut Stack, id: ConnectionId, buffer: &mut [u8]) -> Result<(), CliError> {
        while !self.is_at_end {
            match stack.recv(id, buffer) {
                Ok((0, _)) => {
                    self.is_at_end = true;
                    stack.close(id);
                    let rto = stack.endpoint().snapshot(id).map_or(Duration::from_secs(1), |s| s.rto);
                    self.given_up_at = Some(stack.now() + rto * LINGER_RTOS);
                }
                Ok((n, _)) => {
                    self.bytes += n as u64;
                    if let Some(hash) = &mut self.hash {
                        hash.update(&buffer[..n]);
                    }
                    if let Some(comparison) = &mut self.comparison {
                        comparison.update(&buffer[..n]);
                    }
                    if let Some(output) = &mut self.output {
                        let write_error = |source| CliError::File { path: "output".to_owned(), source };
                        output.write_all(&buffer[..n]).map_err(write_error)?;
                    }
                }
                Err(RecvError::Hole { offset, len }) => self.holes.push((offset, len)),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}
