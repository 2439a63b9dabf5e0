//! `scps channel`: joins two byte streams by a serial space link, as the Space-to-Ground Link Simulator joined two
//! serial ports.

use super::line_spec::LineSpec;
use crate::error::CliError;
use crate::say;
use crate::world::seed_of;
use clap::Args;
use scps_channel::Direction;
use scps_io::{ByteEnd, Clock, EndAddress, Interest, IoError, Reactor, ReadOutcome, Signal, Signals};
use scps_wire::{Instant, Seed};
use serde_json::{json, Value};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `scps channel`.
#[derive(Debug, Args)]
#[command(after_help = SPEC_HELP)]
pub struct ChannelArgs {
    /// One end: pty:PATH (made, and found under PATH), a device, unix:PATH, unix-listen:PATH, tcp:HOST:PORT or
    /// tcp-listen:HOST:PORT
    a: EndAddress,
    /// The other end
    b: EndAddress,
    /// Both directions: KEY=VALUE,...
    #[arg(long, value_name = "SPEC")]
    both: Vec<String>,
    /// From A to B: KEY=VALUE,... on top of --both
    #[arg(long, value_name = "SPEC")]
    a_to_b: Vec<String>,
    /// From B to A: KEY=VALUE,... on top of --both
    #[arg(long, value_name = "SPEC")]
    b_to_a: Vec<String>,
    /// Seed of the error models; real entropy without it
    #[arg(long)]
    seed: Option<u64>,
    /// Carry bytes without errors and outages until SIGUSR1; their times count from then
    #[arg(long)]
    hold: bool,
    /// With --hold: a file that is read at SIGUSR1 and says what was not known before: lines `seed=N`, `a-to-b SPEC`
    /// and `b-to-a SPEC`, of whose keys only those of errors and outages count
    #[arg(long, value_name = "FILE", requires = "hold")]
    errors_from: Option<PathBuf>,
}

const SPEC_HELP: &str = "Keys of a SPEC:
  baud=N        line rate in bit/s; 0 for none [default: 0]
  bits=N        bits on the line per byte, start and stop bits included [default: 10]
  delay-ms=X    one-way delay after the line [default: 0]
  buffer=N      bytes that may wait for the line before the channel stops reading [default: 1048576]
  errors=MODEL  none, independent, clustered, gilbert-elliott or file [default: independent if ber is given]
  ber=P         bit error rate (independent, clustered)
  burst-errors=X, burst-gap=X   clustered: mean errors of an event [4] and mean bits between two of them [3]
  p-good-bad=P, p-bad-good=P, ber-good=P, ber-bad=P   gilbert-elliott, probabilities per bit
  file=FILE     error vector: raw bytes, XORed with the stream and repeated
  period=N      bits of a model's vector before it repeats; 0 for never [default: 1048576]
  outage=X..Y   nothing arrives from X to Y seconds after the start; may be given several times
  record=FILE   write the stream as it was handed on
  grain=N       hand on up to N bytes together, when the last one is due [default: 1]
  flush=BYTE    a byte (0x7e for PPP) that is handed on at its own instant even so

One line of JSON says when both ends are open; another, on SIGTERM, SIGINT or when both ends have ended, what became
of the bytes.";

/// The directions, as complaints and files call them.
const NAMES: [&str; 2] = ["a-to-b", "b-to-a"];
/// Most that is read at once.
const READ_BYTES: usize = 16 * 1024;
/// What a receiver that does not read can make us keep; more is lost as at a serial port.
const UNREAD_LIMIT_BYTES: usize = 1 << 20;

/// A direction with its way out.
struct Path {
    direction: Direction,
    baud: u32,
    /// Handed on by the line, not yet taken by the receiver.
    unread: Vec<u8>,
    lost_unread: u64,
    record: Option<BufWriter<File>>,
    is_ended: bool,
}

impl ChannelArgs {
    /// Carries bytes until told to end.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let seed = seed_of(self.seed)?;
        let mut paths = [
            Path::new(NAMES[0], &[&self.both, &self.a_to_b], seed)?,
            Path::new(NAMES[1], &[&self.both, &self.b_to_a], seed)?,
        ];
        let mut signals = Signals::new()?;
        scps_io::exact_timers()?;
        let Some(a) = ByteEnd::open(&self.a, &signals)? else { return Ok(ended_early()) };
        let Some(b) = ByteEnd::open(&self.b, &signals)? else { return Ok(ended_early()) };
        let mut ends = [a, b];
        let system = |source| IoError::System { what: "epoll", source };
        let mut reactor = Reactor::new().map_err(system)?;
        let places = [reactor.place(), reactor.place()];
        signals.join(&mut reactor)?;
        say::result(json!({"event": "ready", "a": self.a.to_string(), "b": self.b.to_string()}))?;
        let clock = Clock::new();
        // The time as of the last look at the clock, one a turn.
        let mut now = clock.now();
        if !self.hold {
            for path in &mut paths {
                path.direction.start(now);
            }
        }
        let mut input = Vec::new();
        loop {
            for (index, path) in paths.iter_mut().enumerate() {
                path.hand_on(now, &mut ends[1 - index])?;
            }
            if paths.iter().all(Path::is_done) {
                break;
            }
            for (end, place) in places.into_iter().enumerate() {
                let read = !paths[end].is_ended && paths[end].direction.room_at(now).is_none();
                let interest = Interest { read, write: !paths[1 - end].unread.is_empty() };
                reactor.ask(place, ends[end].fd(), interest).map_err(system)?;
            }
            let wake_at = paths.iter().flat_map(|p| [p.direction.deliver_at(), p.wants_room_at(now)]).flatten().min();
            let wait = wake_at.map(|at| at.since(now));
            let found = reactor.wait(wait).map_err(system)?;
            let has_signal = found.iter().any(|(place, _)| !places.contains(place));
            now = clock.now();
            match if has_signal { signals.take()? } else { None } {
                Some(Signal::End) => break,
                Some(Signal::Begin) => self.begin(&mut paths, seed, now)?,
                None => {}
            }
            let is_readable = |index: usize| found.iter().any(|(place, ready)| *place == places[index] && ready.read);
            for (index, end) in ends.iter_mut().enumerate().filter(|(index, _)| is_readable(*index)) {
                let path = &mut paths[index];
                input.clear();
                match end.read(&mut input, READ_BYTES.min(path.direction.room(now)))? {
                    ReadOutcome::Bytes(_) => path.direction.take(now, &input),
                    ReadOutcome::Nothing => {}
                    ReadOutcome::Ended => path.is_ended = true,
                }
            }
        }
        let [a_to_b, b_to_a] = paths;
        say::result(json!({"event": "counters", "a_to_b": a_to_b.account()?, "b_to_a": b_to_a.account()?}))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl ChannelArgs {
    /// Lets errors and outages begin.
    fn begin(&self, paths: &mut [Path; 2], seed: Seed, now: Instant) -> Result<(), CliError> {
        let Some(file) = &self.errors_from else {
            for path in paths {
                path.direction.start(now);
            }
            return Ok(());
        };
        let text = std::fs::read_to_string(file).map_err(CliError::file(file))?;
        let (seed, specs) = late_specs(&text, seed)?;
        let own = [&self.a_to_b, &self.b_to_a];
        for (index, path) in paths.iter_mut().enumerate() {
            let all = self.both.iter().chain(own[index]).chain(&specs[index]);
            let config = LineSpec::read(NAMES[index], all)?.line(NAMES[index], seed)?;
            path.direction.start_with(now, config.errors, config.outages);
        }
        Ok(())
    }
}

/// What a file of `--errors-from` says: a seed, and the specs of each direction.
fn late_specs(text: &str, seed: Seed) -> Result<(Seed, [Vec<String>; 2]), CliError> {
    let mut found = (seed, [Vec::new(), Vec::new()]);
    for line in text.lines() {
        let wrong = || CliError::Usage(format!("--errors-from: found \"{line}\"; expected seed=N or DIRECTION SPEC."));
        if let Some(number) = line.strip_prefix("seed=") {
            found.0 = Seed::from_u64(number.parse().map_err(|_| wrong())?);
            continue;
        }
        let (name, spec) = line.split_once(' ').ok_or_else(wrong)?;
        let index = NAMES.iter().position(|known| *known == name).ok_or_else(wrong)?;
        found.1[index].push(spec.into());
    }
    Ok(found)
}

impl Path {
    fn new(name: &'static str, specs: &[&[String]], seed: Seed) -> Result<Self, CliError> {
        let spec = LineSpec::read(name, specs.iter().copied().flatten())?;
        let record = match &spec.record {
            Some(path) => Some(BufWriter::new(File::create(path).map_err(CliError::file(path))?)),
            None => None,
        };
        let config = spec.line(name, seed)?;
        Ok(Path {
            baud: config.baud.map_or(0, std::num::NonZero::get),
            direction: Direction::new(config),
            unread: Vec::new(),
            lost_unread: 0,
            record,
            is_ended: false,
        })
    }

    /// Gives the receiver what has arrived.
    fn hand_on(&mut self, now: Instant, to: &mut ByteEnd) -> Result<(), CliError> {
        if self.direction.deliver_at().is_some_and(|at| at <= now) {
            let before = self.unread.len();
            self.direction.deliver(now, &mut self.unread);
            if let Some(record) = &mut self.record {
                let written = record.write_all(&self.unread[before..]);
                written.map_err(|source| CliError::File { path: "--record".into(), source })?;
            }
            if self.unread.len() > UNREAD_LIMIT_BYTES {
                self.lost_unread += (self.unread.len() - UNREAD_LIMIT_BYTES) as u64;
                self.unread.truncate(UNREAD_LIMIT_BYTES);
            }
        }
        if !self.unread.is_empty() {
            to.write(&mut self.unread)?;
        }
        Ok(())
    }

    fn wants_room_at(&self, now: Instant) -> Option<Instant> {
        if self.is_ended {
            None
        } else {
            self.direction.room_at(now)
        }
    }

    fn is_done(&self) -> bool {
        self.is_ended && self.unread.is_empty() && self.direction.under_way() == 0
    }

    fn account(mut self) -> Result<Value, CliError> {
        if let Some(record) = &mut self.record {
            record.flush().map_err(|source| CliError::File { path: "--record".into(), source })?;
        }
        let counters = self.direction.counters();
        Ok(json!({
            "baud": self.baud,
            "taken_bytes": counters.taken_bytes,
            "taken_before_start_bytes": counters.taken_before_start_bytes,
            "delivered_bytes": counters.delivered_bytes,
            "outage_bytes": counters.outage_bytes,
            "unread_bytes": self.lost_unread + self.unread.len() as u64,
            "under_way_bytes": self.direction.under_way() as u64,
            "wrong_bytes": counters.wrong_bytes,
            "bit_errors": counters.bit_errors,
            "most_waiting_bytes": counters.most_waiting_bytes,
        }))
    }
}

fn ended_early() -> ExitCode {
    say::remark("scps: channel: ended by a signal before both ends were open.");
    ExitCode::FAILURE
}
