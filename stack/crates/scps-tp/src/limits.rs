//! How often a connection answers what it cannot use, and how much it believes of what a peer repeats. Two ends that
//! disagree, for one forged segment, would otherwise answer each other's answers for ever.

use scps_wire::{Duration, Instant};

/// Least time between answers to empty segments that are not acceptable (Linux, `tcp_invalid_ratelimit`).
const INVALID_INTERVAL: Duration = Duration::from_millis(500);
/// Challenge acknowledgements per interval (RFC 5961 §7). There is no limit for the host as a whole: its count could be
/// read from outside and tells strangers which guesses were right (CVE-2016-5696).
const CHALLENGES_MAX: u32 = 10;
const CHALLENGES_INTERVAL: Duration = Duration::from_secs(5);

/// Answers to empty segments that are not acceptable.
#[derive(Clone, Copy, Debug, Default)]
pub struct InvalidLimit {
    last: Option<Instant>,
}

impl InvalidLimit {
    /// True if an answer may leave now. A loop comes round once in a round trip, so answers two round trips apart end it
    /// on any path; half a second, as on Linux, would not over a satellite.
    pub fn allow(&mut self, now: Instant, srtt: Option<Duration>) -> bool {
        let interval = srtt.map_or(INVALID_INTERVAL, |s| (s * 2).max(INVALID_INTERVAL));
        let is_due = self.last.is_none_or(|at| now.since(at) >= interval);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// Challenge acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChallengeLimit {
    window_start: Option<Instant>,
    sent: u32,
}

impl ChallengeLimit {
    /// True if a challenge may leave now.
    pub fn allow(&mut self, now: Instant) -> bool {
        if self.window_start.is_none_or(|s| now.since(s) >= CHALLENGES_INTERVAL) {
            *self = ChallengeLimit { window_start: Some(now), sent: 0 };
        }
        self.sent += 1;
        self.sent <= CHALLENGES_MAX
    }
}

/// Duplicate acknowledgements that may stand for a segment that arrived. What leaves within the least round trip cannot be
/// answered within it, so no more of them are honest than segments were out when it began (RFC 5681 §3.2 allows such a
/// limit). Otherwise each one made up would release a segment, and that segment entitle to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct DuplicateLimit {
    round_start: Option<Instant>,
    left: usize,
}

impl DuplicateLimit {
    /// True if a duplicate counts; `outstanding` is how many segments are out now.
    pub fn allow(&mut self, now: Instant, rtt_min: Option<Duration>, outstanding: usize) -> bool {
        let is_over = |start| rtt_min.is_some_and(|rtt| now.since(start) >= rtt);
        if self.round_start.is_none_or(is_over) {
            *self = DuplicateLimit { round_start: Some(now), left: outstanding };
        }
        let is_honest = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_honest
    }

    /// What was missing arrived: the next duplicate begins a round.
    pub fn restart(&mut self) {
        *self = DuplicateLimit::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const T: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn answers_are_half_a_second_or_two_round_trips_apart() {
        let mut l = InvalidLimit::default();
        let short = Some(Duration::from_millis(20));
        assert_eq!([T(0), T(499), T(500), T(501)].map(|t| l.allow(t, short)), [true, false, true, false]);
        let mut l = InvalidLimit::default();
        let geo = Some(Duration::from_millis(600));
        assert_eq!([T(0), T(600), T(1199), T(1200)].map(|t| l.allow(t, geo)), [true, false, false, true]);
    }

    #[test]
    fn duplicates_count_for_what_was_out_when_their_round_trip_began() {
        let mut l = DuplicateLimit::default();
        let rtt = Some(Duration::from_millis(500));
        // Three segments out; each duplicate that counts releases another.
        let counted =
            |l: &mut DuplicateLimit, t, first: usize| (0..1000).filter(|i| l.allow(t, rtt, first + i)).count();
        assert_eq!(counted(&mut l, T(0), 3), 3);
        assert_eq!(counted(&mut l, T(499), 6), 0);
        assert_eq!(counted(&mut l, T(500), 6), 6);
        l.restart();
        assert_eq!(counted(&mut l, T(501), 2), 2);
    }

    #[test]
    fn ten_challenges_in_five_seconds() {
        let mut l = ChallengeLimit::default();
        assert_eq!((0..50).filter(|_| l.allow(T(0))).count(), 10);
        assert!(!l.allow(T(4999)) && l.allow(T(5000)));
    }
}
