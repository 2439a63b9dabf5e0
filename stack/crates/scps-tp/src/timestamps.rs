//! RFC 7323 timestamps: our clock, the echo, and PAWS (scps-tp §2.9).

use scps_wire::{Duration, Instant};

/// How long a stored timestamp stays comparable: 24 days (RFC 7323 §5.5).
const RECENT_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);
/// The same for a peer that counts microseconds: half of its range is 35 minutes.
const RECENT_LIFETIME_OF_MICROSECONDS: Duration = Duration::from_secs(30 * 60);
/// A peer whose clock gains this many ticks per millisecond counts microseconds, as the reference does; PAWS would take
/// its segments for old after 35 minutes (scps-tp §2.9).
const MICROSECOND_TICKS_PER_MS: u64 = 100;

/// Timestamp state of a connection.
#[derive(Clone, Copy, Debug)]
pub struct TimestampClock {
    offset: u32,
    recent: Option<u32>,
    recent_at: Instant,
    first: Option<(u32, Instant)>,
    is_peer_microsecond: bool,
}

impl TimestampClock {
    /// A clock that starts at an arbitrary `offset`.
    pub fn new(offset: u32) -> Self {
        TimestampClock { offset, recent: None, recent_at: Instant::ZERO, first: None, is_peer_microsecond: false }
    }

    /// Our TSval: 1 ms ticks (scps-tp §2.9 recommends 1 ms).
    pub fn value(&self, at: Instant) -> u32 {
        self.offset.wrapping_add(at.as_millis() as u32)
    }

    /// The TSecr to send; zero before the peer sent one.
    pub fn echo(&self) -> u32 {
        self.recent.unwrap_or(0)
    }

    /// Takes the peer's TSval from a segment that the echo rule selects: not older than the last, and not beyond the
    /// last acknowledgement sent (RFC 7323 §4.3).
    pub fn accept(&mut self, val: u32, now: Instant) {
        let (first, first_at) = *self.first.get_or_insert((val, now));
        let elapsed_ms = now.since(first_at).as_millis() as u64;
        if elapsed_ms >= 10 && u64::from(val.wrapping_sub(first)) > elapsed_ms * MICROSECOND_TICKS_PER_MS {
            self.is_peer_microsecond = true;
        }
        self.recent = Some(val);
        self.recent_at = now;
    }

    /// True if `val` is not older than the last one accepted, or if that one is too old to compare: it is replaced (RFC 7323 §5.5).
    pub fn is_current(&self, val: u32, now: Instant) -> bool {
        let lifetime = if self.is_peer_microsecond { RECENT_LIFETIME_OF_MICROSECONDS } else { RECENT_LIFETIME };
        self.recent.is_none_or(|r| val.wrapping_sub(r) as i32 >= 0) || now.since(self.recent_at) >= lifetime
    }

    /// True if PAWS refuses a segment with this TSval (RFC 7323 §5.3).
    pub fn is_old(&self, val: u32, now: Instant) -> bool {
        !self.is_current(val, now) && !self.is_peer_microsecond
    }

    /// True if an echo is older than the timestamp of a segment that left at `left_at`.
    pub fn is_echo_older(&self, ecr: u32, left_at: Instant) -> bool {
        self.value(left_at).wrapping_sub(ecr) as i32 > 0
    }

    /// The round trip an echo stands for; `None` for an echo from the future.
    pub fn round_trip(&self, ecr: u32, now: Instant) -> Option<Duration> {
        let ms = self.value(now).wrapping_sub(ecr);
        (ms < 1 << 31).then(|| Duration::from_millis(u64::from(ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const T: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn old_timestamps_are_refused_until_they_are_too_old_to_compare() {
        let mut c = TimestampClock::new(0);
        c.accept(1000, T(0));
        assert!(c.is_old(999, T(1)));
        assert!(!c.is_old(1000, T(1)));
        assert!(!c.is_old(999, T(0) + RECENT_LIFETIME));
    }

    #[test]
    fn a_microsecond_peer_is_not_policed() {
        let mut c = TimestampClock::new(0);
        c.accept(0, T(0));
        c.accept(100_000, T(100));
        assert!(!c.is_old(50_000, T(101)));
    }

    #[test]
    fn round_trips_survive_the_wrap() {
        let c = TimestampClock::new(u32::MAX);
        let sent = c.value(T(0));
        assert_eq!(c.round_trip(sent, T(530)), Some(Duration::from_millis(530)));
        assert_eq!(c.round_trip(c.value(T(600)), T(530)), None);
    }
}
