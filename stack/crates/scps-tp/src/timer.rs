//! The timers of a connection: one enum, one table of deadlines, no callbacks.

use scps_wire::Instant;

/// What can be waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Unacknowledged data, SYN or FIN (scps-tp §6.3).
    Retransmit,
    /// The last flight may have lost its end, where nothing reveals a hole (RFC 8985 §7).
    TailProbe,
    /// A resent segment may be sent again (scps-tp §2.4.5).
    Embargo,
    /// A SNACK waits out its delay (scps-tp §2.4.5).
    SnackDelay,
    /// The peer's window is closed or the route is unavailable (scps-tp §6.6, §6.8).
    Persist,
    /// In-order data waits to be acknowledged (scps-tp §6.1).
    DelayedAck,
    /// Keep-alive (scps-tp §6.7).
    KeepAlive,
    /// TIME-WAIT, FIN-WAIT-2 and LAST-ACK end (scps-tp §6.7).
    Linger,
    /// A reader waits at a hole under BETS (scps-tp §7.1).
    BetsReceive,
    /// A connection that nobody owns makes no progress.
    Orphan,
    /// Congestion control paces new data.
    Pace,
}

const COUNT: usize = 11;

/// Deadlines by timer.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    deadlines: [Option<Instant>; COUNT],
}

impl Timers {
    /// Arms a timer, or brings its deadline forward.
    pub fn set_no_later(&mut self, timer: Timer, at: Instant) {
        let earliest = self.deadlines[timer as usize].map_or(at, |due| due.min(at));
        self.set(timer, earliest);
    }

    /// Arms a timer, replacing its deadline.
    pub fn set(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize] = Some(at);
    }

    /// Arms a timer unless it runs already.
    pub fn set_if_idle(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize].get_or_insert(at);
    }

    /// Disarms a timer.
    pub fn stop(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = None;
    }

    /// Disarms all.
    pub fn stop_all(&mut self) {
        self.deadlines = [None; COUNT];
    }

    /// True if the timer runs.
    pub fn is_set(&self, timer: Timer) -> bool {
        self.deadlines[timer as usize].is_some()
    }

    /// True once, if the timer is due: it is disarmed by the question.
    pub fn take_due(&mut self, timer: Timer, now: Instant) -> bool {
        let due = self.deadlines[timer as usize].is_some_and(|at| at <= now);
        if due {
            self.stop(timer);
        }
        due
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.deadlines.iter().flatten().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_wins_and_is_taken_once() {
        let mut t = Timers::default();
        t.set(Timer::Persist, Instant::from_secs(5));
        t.set(Timer::DelayedAck, Instant::from_secs(2));
        assert_eq!(t.next(), Some(Instant::from_secs(2)));
        assert!(!t.take_due(Timer::DelayedAck, Instant::from_secs(1)));
        assert!(t.take_due(Timer::DelayedAck, Instant::from_secs(2)));
        assert!(!t.take_due(Timer::DelayedAck, Instant::from_secs(3)));
        assert_eq!(t.next(), Some(Instant::from_secs(5)));
    }
}
