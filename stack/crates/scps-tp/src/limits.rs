//! How often a connection answers what it cannot use. Two ends that disagree, for one forged segment, would otherwise
//! answer each other's answers for ever.

use scps_types::{Duration, Instant};

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
    fn ten_challenges_in_five_seconds() {
        let mut l = ChallengeLimit::default();
        assert_eq!((0..50).filter(|_| l.allow(T(0))).count(), 10);
        assert!(!l.allow(T(4999)) && l.allow(T(5000)));
    }
}
