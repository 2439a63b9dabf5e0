//! `scps recv`: accept, read to the end, close, report; once, several times, or forever.

use super::send::hex;
use crate::error::CliError;
use crate::payload::Comparison;
use crate::report::{Facts, Report};
use crate::settings::{Resolved, Tunables};
use crate::trace::TraceWriter;
use crate::world::DriverArgs;
use clap::Args;
use scps_io::Stack;
use scps_tp::{CloseReason, ConnectionId, Event, RecvError};
use scps_types::{Duration, Instant};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `scps recv`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct RecvArgs {
    /// Where to accept: with --driver tun an address the kernel does not own, routed to the TUN device
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddrV4,
    /// Write the data of the first transfer here
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Transfers to take before leaving; 0 for no end
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Do not hash the data
    #[arg(long)]
    no_hash: bool,
    /// Compare the data with what `scps send --data-seed` generates
    #[arg(long, value_name = "SEED")]
    expect_seed: Option<u64>,
    /// Say `{"event": "listening"}` on standard output when connections are accepted
    #[arg(long)]
    announce: bool,
    /// Write results here, one line per transfer, instead of to standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a trace of every event here
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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
    leave_at: Option<Instant>,
}

/// How long a finished connection waits for the acknowledgement of its FIN, in RTOs.
const LINGER_RTOS: u32 = 8;

impl RecvArgs {
    /// Receives.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let mut resolved = self.tunables.resolve()?;
        let mut trace = TraceWriter::create(self.trace.as_deref())?;
        resolved.config.trace = trace.is_on();
        if let Some(path) = &self.json {
            File::create(path).map_err(CliError::file(path))?;
        }
        let mut stack = self.driver.open(*self.listen.ip(), &mut resolved)?;
        stack.listen((*self.listen.ip(), self.listen.port()), resolved.config.clone());
        if self.announce {
            println!("{{\"event\": \"listening\"}}");
        }
        let deadline = self.driver.limit().map(|l| stack.now() + l);
        let mut intakes: BTreeMap<ConnectionId, Intake> = BTreeMap::new();
        let mut accepted = 0;
        let (mut finished, mut failed) = (0, 0);
        let mut buffer = vec![0u8; 256 * 1024];
        while self.count == 0 || finished < self.count {
            let leave_at = intakes.values().filter_map(|i| i.leave_at).min();
            stack.turn([deadline, leave_at].into_iter().flatten().min())?;
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
            }
            for (id, intake) in &mut intakes {
                intake.read(&mut stack, *id, &mut buffer)?;
            }
            trace.drain(&mut stack)?;
            let now = stack.now();
            ended.extend(
                intakes.iter().filter(|(_, i)| i.leave_at.is_some_and(|l| l <= now)).map(|(id, _)| (*id, None)),
            );
            let is_late = deadline.is_some_and(|d| now >= d);
            if is_late {
                ended.extend(intakes.keys().map(|id| (*id, None)));
            }
            for (id, reason) in ended {
                if let Some(intake) = intakes.remove(&id) {
                    finished += 1;
                    failed += u64::from(!intake.is_at_end);
                    self.report(intake, reason, is_late, &stack, id, &resolved)?;
                    stack.release(id);
                }
            }
            if is_late {
                if finished == 0 || finished < self.count {
                    eprintln!("scps: recv: {finished} of {} transfers ended before --timeout-s.", self.count);
                    failed += 1;
                }
                break;
            }
        }
        trace.finish()?;
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
            leave_at: None,
        })
    }

    fn report(
        &self,
        mut intake: Intake,
        reason: Option<CloseReason>,
        is_late: bool,
        stack: &Stack,
        id: ConnectionId,
        resolved: &Resolved,
    ) -> Result<(), CliError> {
        if let (Some(output), Some(path)) = (&mut intake.output, &self.output) {
            output.flush().map_err(CliError::file(path))?;
        }
        let is_complete = intake.is_at_end;
        let note = (is_late && !is_complete).then(|| "gave up: --timeout-s reached".to_owned());
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
        Report::new(facts, stack, id, resolved).write(self.json.as_deref(), true)
    }
}

impl Intake {
    fn read(&mut self, stack: &mut Stack, id: ConnectionId, buffer: &mut [u8]) -> Result<(), CliError> {
        while !self.is_at_end {
            match stack.recv(id, buffer) {
                Ok((0, _)) => {
                    // A closed connection reads as ended too; only the peer's FIN makes it complete.
                    if stack.endpoint().state(id).is_none_or(|s| s == scps_tp::State::Closed) {
                        return Ok(());
                    }
                    self.is_at_end = true;
                    stack.close(id);
                    let rto = stack.endpoint().snapshot(id).map_or(Duration::from_secs(1), |s| s.rto);
                    self.leave_at = Some(stack.now() + rto * LINGER_RTOS);
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
                Err(RecvError::WouldBlock | RecvError::Unknown) => return Ok(()),
            }
        }
        Ok(())
    }
}
