//! How often control messages are sent (scps-np §6.3). Every table here is bounded: what does not fit is not remembered, and
//! what is not remembered is not sent to.

use crate::address::Address;
use scps_wire::{Duration, Instant};
use std::collections::BTreeMap;

/// Sources remembered per table, as the reference does.
const SOURCES_MAX: usize = 100;
/// How long a source counts as recent.
const RECENT: Duration = Duration::from_secs(60);

/// At most one message per source in an interval.
#[derive(Clone, Debug)]
pub(crate) struct PerSource {
    interval: Duration,
    last: BTreeMap<Address, Instant>,
}

impl PerSource {
    pub(crate) fn new(interval: Duration) -> Self {
        PerSource { interval, last: BTreeMap::new() }
    }

    /// True if a message may go to `source` now.
    pub(crate) fn allow(&mut self, now: Instant, source: Address) -> bool {
        let interval = self.interval;
        if self.last.get(&source).is_some_and(|at| now.since(*at) < interval) {
            return false;
        }
        if self.last.len() >= SOURCES_MAX && !self.last.contains_key(&source) {
            self.last.retain(|_, at| now.since(*at) < interval);
        }
        let has_room = self.last.len() < SOURCES_MAX || self.last.contains_key(&source);
        if has_room {
            self.last.insert(source, now);
        }
        has_room
    }
}

/// Errors of all kinds together: ten a second, ten at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorBucket {
    credit: Duration,
    at: Instant,
}

impl ErrorBucket {
    const PRICE: Duration = Duration::from_millis(100);
    const DEPTH: Duration = Duration::from_secs(1);

    pub(crate) fn new(now: Instant) -> Self {
        ErrorBucket { credit: Self::DEPTH, at: now }
    }

    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        self.credit = (self.credit + now.since(self.at)).min(Self::DEPTH);
        self.at = now;
        let left = self.credit.checked_sub(Self::PRICE);
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }
}

/// Sources of good datagrams that were heard on a link lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentSources(BTreeMap<Address, Instant>);

impl RecentSources {
    pub(crate) fn note(&mut self, now: Instant, source: Address) {
        if self.0.len() >= SOURCES_MAX && !self.0.contains_key(&source) {
            self.0.retain(|_, at| now.since(*at) <= RECENT);
        }
        if self.0.len() < SOURCES_MAX || self.0.contains_key(&source) {
            self.0.insert(source, now);
        }
    }

    pub(crate) fn of(&self, now: Instant) -> Vec<Address> {
        self.0.iter().filter(|(_, at)| now.since(**at) <= RECENT).map(|(source, _)| *source).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn a_source_is_told_once_in_an_interval_and_others_are_not_kept_waiting() {
        let mut limit = PerSource::new(Duration::from_secs(1));
        let (a, b) = (Address::Basic(2), Address::Basic(4));
        assert!(limit.allow(T(0), a) && limit.allow(T(1), b));
        assert!(!limit.allow(T(999), a) && limit.allow(T(1000), a));
    }

    #[test]
    fn a_hundred_sources_are_remembered_and_no_more_are_told() {
        let mut limit = PerSource::new(Duration::from_secs(1));
        let told = (0..300u16).filter(|n| limit.allow(T(0), Address::Basic(n * 2))).count();
        assert_eq!(told, 100);
        assert!(limit.allow(T(1000), Address::Basic(700)));
    }

    #[test]
    fn ten_errors_at_once_and_ten_a_second() {
        let mut bucket = ErrorBucket::new(T(0));
        assert_eq!((0..50).filter(|_| bucket.allow(T(0))).count(), 10);
        assert_eq!((1..=1000).filter(|t| bucket.allow(T(*t))).count(), 10);
    }

    #[test]
    fn recent_sources_are_forgotten_after_a_minute() {
        let mut recent = RecentSources::default();
        recent.note(T(0), Address::Basic(2));
        recent.note(T(30_000), Address::Basic(4));
        assert_eq!(recent.of(T(60_000)).len(), 2);
        assert_eq!(recent.of(T(60_001)), [Address::Basic(4)]);
        (0..300u16).for_each(|n| recent.note(T(70_000), Address::Basic(n * 2)));
        assert_eq!(recent.of(T(70_000)).len(), 100);
    }
}
