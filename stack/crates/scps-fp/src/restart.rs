//! Whether and when a broken transfer is tried again (scps-fp §11.3, §15.3).

use crate::config::Mib;
use scps_wire::{Duration, Instant};

/// Why a transfer did not end well.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The connection, the peer's patience or ours: a restart may help.
    Broken(String),
    /// Somebody still holds the file (450): wait for it.
    Busy(String),
    /// It would fail again: 5xx, a full disk, a file that cannot be read.
    Final(String),
    /// The user ended it with INTR; the marker is what is stored at the receiver.
    Interrupted(u64),
    /// The user ended it with ABOR.
    Aborted,
}

/// What to do about a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Try again at this time.
    RetryAt(Instant),
    /// Report this; partial files stay.
    GiveUp(String),
}

/// The attempts of one transfer.
#[derive(Clone, Debug)]
pub struct Attempts {
    enabled: bool,
    limit: u32,
    busy_limit: u32,
    deadline: Instant,
    first_delay: Duration,
    longest_delay: Duration,
    /// Restarts so far.
    pub restarts: u32,
    busy: u32,
    /// Restarts since something last moved: the pause grows with these.
    fruitless: u32,
    /// The furthest marker, and attempts that moved octets and did not bring it further.
    furthest: u64,
    stalled: u32,
}

/// Attempts that may move octets without getting any further.
const STALLED_MAX: u32 = 10;

impl Attempts {
    /// Starts counting at `now`.
    pub fn new(mib: &Mib, enabled: bool, now: Instant) -> Self {
        Attempts {
            enabled,
            limit: mib.restart_num,
            busy_limit: mib.busy_num,
            deadline: now + mib.restart_max,
            first_delay: mib.restart_delay,
            longest_delay: mib.restart_delay_max,
            restarts: 0,
            busy: 0,
            fruitless: 0,
            furthest: 0,
            stalled: 0,
        }
    }

    /// Octets moved in an attempt that started at `marker`: the next pause is short again, unless it always starts there.
    pub fn progressed(&mut self, marker: u64) {
        if marker > self.furthest {
            self.furthest = marker;
            self.stalled = 0;
        } else {
            self.stalled += 1;
        }
        if self.stalled <= 1 {
            self.fruitless = 0;
            self.busy = 0;
        }
    }

    /// Judges a failure at `now`.
    pub fn judge(&mut self, failure: &Failure, now: Instant) -> Decision {
        let text = match failure {
            Failure::Broken(text) | Failure::Busy(text) => text.clone(),
            Failure::Final(text) => return Decision::GiveUp(text.clone()),
            Failure::Interrupted(marker) => return Decision::GiveUp(format!("interrupted at {marker}")),
            Failure::Aborted => return Decision::GiveUp("aborted".to_owned()),
        };
        if !self.enabled {
            return Decision::GiveUp(text);
        }
        if self.stalled > STALLED_MAX {
            return Decision::GiveUp(format!("{text}; gave up: {STALLED_MAX} restarts came no further"));
        }
        if matches!(failure, Failure::Busy(_)) && self.busy < self.busy_limit {
            self.busy += 1;
        } else {
            if self.restarts >= self.limit {
                return Decision::GiveUp(format!("{text}; gave up after {} restarts", self.restarts));
            }
            self.restarts += 1;
        }
        let doubled = self.first_delay.saturating_mul(1 << self.fruitless.min(16)).min(self.longest_delay);
        self.fruitless += 1;
        let at = now + doubled;
        if at > self.deadline {
            return Decision::GiveUp(format!("{text}; gave up: the time for restarts is over"));
        }
        Decision::RetryAt(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> Failure {
        Failure::Broken("reset".into())
    }

    fn attempts(limit: u32) -> Attempts {
        let mib = Mib { restart_num: limit, restart_max: Duration::from_secs(1000), ..Mib::default() };
        Attempts::new(&mib, true, Instant::ZERO)
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_start_again_after_progress() {
        let mut attempts = attempts(99);
        let mut pauses = Vec::new();
        for i in 0..8 {
            if i == 7 {
                attempts.progressed(1);
            }
            match attempts.judge(&broken(), Instant::ZERO) {
                Decision::RetryAt(at) => pauses.push(at.as_secs_f64() as u32),
                Decision::GiveUp(e) => panic!("{e}"),
            }
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 120, 120, 5]);
    }

    #[test]
    fn the_number_of_restarts_is_bounded_but_waiting_for_a_busy_file_is_not_one() {
        let mut attempts = attempts(2);
        assert!(matches!(attempts.judge(&Failure::Busy("450".into()), Instant::ZERO), Decision::RetryAt(_)));
        for _ in 0..2 {
            assert!(matches!(attempts.judge(&broken(), Instant::ZERO), Decision::RetryAt(_)));
        }
        assert!(matches!(attempts.judge(&broken(), Instant::ZERO), Decision::GiveUp(t) if t.contains("2 restarts")));
    }

    #[test]
    fn restarts_that_move_octets_and_come_no_further_end() {
        let mut attempts = attempts(99);
        let mut restarts = 0;
        loop {
            attempts.progressed(4000);
            match attempts.judge(&broken(), Instant::ZERO) {
                Decision::RetryAt(_) => restarts += 1,
                Decision::GiveUp(text) => break assert!(text.contains("no further"), "{text}"),
            }
        }
        assert_eq!(restarts, 11);
        attempts.progressed(4001);
        assert!(matches!(attempts.judge(&broken(), Instant::ZERO), Decision::RetryAt(_)));
    }

    #[test]
    fn what_would_fail_again_and_what_the_user_ended_is_not_tried_again() {
        for failure in [Failure::Final("550".into()), Failure::Interrupted(5), Failure::Aborted] {
            assert!(matches!(attempts(9).judge(&failure, Instant::ZERO), Decision::GiveUp(_)));
        }
        let mut off = Attempts::new(&Mib::default(), false, Instant::ZERO);
        assert!(matches!(off.judge(&broken(), Instant::ZERO), Decision::GiveUp(_)));
        assert!(
            matches!(attempts(9).judge(&broken(), Instant::from_secs(999)), Decision::GiveUp(t) if t.contains("time"))
        );
    }
}
