//! How far a transfer is, as one line at a terminal that is written over: bytes, percentage, rate, time left. Where standard error is
//! no terminal there is nothing, and nobody wakes for it.

use crate::report::Mbps;
use scps_wire::{Duration, Instant};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddrV4;

/// How often the line is drawn.
const STEP: Duration = Duration::from_millis(200);
/// The rate is that of the last so many steps: several round trips of a satellite.
const MARKS_MAX: usize = 25;
/// After this long without a byte the line says so: more than a satellite's round trip and its timeout.
const STALL: Duration = Duration::from_secs(3);

/// What there is to show.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// Nobody has connected to this address yet.
    Listening(SocketAddrV4),
    /// This address has not answered yet.
    Connecting(SocketAddrV4),
    /// So many bytes are acknowledged (sender) or here (receiver).
    Moving(u64),
}

/// The line.
#[derive(Debug)]
pub struct Progress {
    role: &'static str,
    total: Option<u64>,
    /// When to draw next; `None` where nobody looks.
    due: Option<Instant>,
    started: Instant,
    marks: VecDeque<(Instant, u64)>,
    moved_at: Instant,
    is_drawn: bool,
}

impl Progress {
    /// For a transfer of `total` bytes, if that is known; shows nothing if `quiet`.
    pub fn new(role: &'static str, total: Option<u64>, quiet: bool, now: Instant) -> Progress {
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let is_on = !quiet && !is_dumb && std::io::stderr().is_terminal();
        let mut progress = Progress::hidden(role, total, now);
        progress.due = is_on.then_some(now);
        progress
    }

    fn hidden(role: &'static str, total: Option<u64>, now: Instant) -> Progress {
        Progress { role, total, due: None, started: now, marks: VecDeque::new(), moved_at: now, is_drawn: false }
    }

    /// When to look again.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Draws, if it is time.
    pub fn update(&mut self, now: Instant, phase: impl FnOnce() -> Phase) {
        if self.due.is_some_and(|due| now >= due) {
            self.due = Some(now + STEP);
            let line = self.line(now, phase());
            self.is_drawn = true;
            // A line longer than the terminal is wide is cut, not wrapped: the next one could not write over it.
            let _ = write!(std::io::stderr(), "\r\x1b[?7l{line}\x1b[K\x1b[?7h");
        }
    }

    /// Takes the line away, for what is said next.
    pub fn clear(&mut self) {
        if self.is_drawn {
            self.is_drawn = false;
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn line(&mut self, now: Instant, phase: Phase) -> String {
        let role = self.role;
        let waited = Clock(now.since(self.started));
        match phase {
            Phase::Listening(at) => format!("scps: {role}: waiting for a connection at {at}, {waited}"),
            Phase::Connecting(to) => format!("scps: {role}: no answer from {to} yet, {waited}"),
            Phase::Moving(bytes) => {
                let bps = self.rate(now, bytes);
                let mut text = format!("scps: {role}: {}", Size(bytes));
                if let Some(total) = self.total {
                    let percent = (bytes * 100).checked_div(total).unwrap_or(100);
                    let _ = write!(text, " of {}, {percent} %", Size(total));
                }
                let _ = write!(text, ", {}", Mbps(bps));
                let left = self.total.map_or(0, |total| total.saturating_sub(bytes));
                let still = now.since(self.moved_at);
                if still >= STALL {
                    let _ = write!(text, ", nothing for {}", Clock(still));
                } else if left > 0 && bps > 0.0 {
                    let left = Duration::from_secs_f64((left as f64 * 8.0 / bps).min(1e8));
                    let _ = write!(text, ", {} left", Clock(left));
                }
                text
            }
        }
    }

    /// Over the last marks, one of which this is.
    fn rate(&mut self, now: Instant, bytes: u64) -> f64 {
        if self.marks.back().is_none_or(|(_, before)| *before != bytes) {
            self.moved_at = now;
        }
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back((now, bytes));
        let (since, before) = self.marks[0];
        let seconds = now.since(since).as_secs_f64();
        if seconds > 0.0 {
            bytes.saturating_sub(before) as f64 * 8.0 / seconds
        } else {
            0.0
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Bytes as people say them.
struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} bytes"),
            n if n < 10_000_000 => write!(f, "{:.1} kB", n as f64 / 1e3),
            n if n < 10_000_000_000 => write!(f, "{:.1} MB", n as f64 / 1e6),
            n => write!(f, "{:.1} GB", n as f64 / 1e9),
        }
    }
}

/// Minutes and seconds, and hours where there are any.
struct Clock(Duration);

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.0.as_secs_f64() as u64;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        match hours {
            0 => write!(f, "{minutes}:{:02}", seconds % 60),
            _ => write!(f, "{hours}:{minutes:02}:{:02}", seconds % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_line_has_bytes_percentage_rate_and_the_time_left() {
        let mut progress = Progress::hidden("send", Some(4_000_000), at(0.0));
        assert_eq!(progress.line(at(0.0), Phase::Moving(0)), "scps: send: 0 bytes of 4000.0 kB, 0 %, 0 bit/s");
        let text = progress.line(at(4.0), Phase::Moving(1_000_000));
        assert_eq!(text, "scps: send: 1000.0 kB of 4000.0 kB, 25 %, 2 Mbit/s, 0:12 left");
        let text = progress.line(at(8.0), Phase::Moving(4_000_000));
        assert_eq!(text, "scps: send: 4000.0 kB of 4000.0 kB, 100 %, 4 Mbit/s");
    }

    #[test]
    fn a_receiver_knows_no_end_and_an_empty_file_is_all_there() {
        let mut progress = Progress::hidden("recv", None, at(0.0));
        progress.line(at(0.0), Phase::Moving(0));
        assert_eq!(progress.line(at(2.0), Phase::Moving(25_000)), "scps: recv: 25.0 kB, 0.1 Mbit/s");
        let mut progress = Progress::hidden("send", Some(0), at(0.0));
        assert_eq!(progress.line(at(0.0), Phase::Moving(0)), "scps: send: 0 bytes of 0 bytes, 100 %, 0 bit/s");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds_and_a_silence_is_named() {
        let mut progress = Progress::hidden("recv", None, at(0.0));
        for step in 0..100 {
            progress.line(at(0.2 * f64::from(step)), Phase::Moving(50_000 * u64::from(step.min(50) as u8)));
        }
        // 50 steps with 2 Mbit/s, then 10 s of nothing: none of the marks remembers better times.
        let text = progress.line(at(20.0), Phase::Moving(2_500_000));
        assert_eq!(text, "scps: recv: 2500.0 kB, 0 bit/s, nothing for 0:10");
        let text = progress.line(at(20.2), Phase::Moving(2_550_000));
        assert!(!text.contains("nothing"), "{text}");
    }

    #[test]
    fn whoever_waits_is_told_for_what() {
        let mut progress = Progress::hidden("send", Some(1), at(0.0));
        let peer = "10.8.0.2:5001".parse().unwrap();
        let text = progress.line(at(3725.0), Phase::Connecting(peer));
        assert_eq!(text, "scps: send: no answer from 10.8.0.2:5001 yet, 1:02:05");
        let text = progress.line(at(61.0), Phase::Listening(peer));
        assert_eq!(text, "scps: send: waiting for a connection at 10.8.0.2:5001, 1:01");
    }

    #[test]
    fn where_nobody_looks_nobody_wakes() {
        // Tests have no terminal where they run unattended, and whoever is quiet has none either.
        let mut progress = Progress::new("send", None, true, at(0.0));
        progress.update(at(1.0), || unreachable!("nothing is asked"));
        assert_eq!(progress.due(), None);
    }
}
