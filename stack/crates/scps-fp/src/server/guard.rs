//! Slowing down those who guess passwords (scps-fp §1.3): the delay grows with the failures of an address.

use scps_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Failures one session may have.
pub const FAILURES_PER_SESSION: u32 = 3;
/// An address is forgiven one failure per this time.
const FORGIVEN_AFTER: Duration = Duration::from_secs(60);
/// Shorter than clients wait for a reply and servers for a login: guesses from an address slow down an honest user there,
/// and keep nobody out.
const DELAY_MAX: Duration = Duration::from_secs(20);
/// Failures remembered of one address.
const FAILURES_MAX: u32 = 10;
/// Addresses remembered; the one that failed longest ago is forgotten first.
const ADDRESSES_MAX: usize = 1024;

/// Failures by address.
#[derive(Debug, Default)]
pub struct Guard(BTreeMap<IpAddr, (u32, Instant)>);

impl Guard {
    /// Notes a failure; returns how long the next attempt from there has to wait.
    pub fn failed(&mut self, from: IpAddr, now: Instant) -> Duration {
        // More would only take longer to be forgiven.
        let failures = (self.failures(from, now) + 1).min(FAILURES_MAX);
        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&from) {
            if let Some(oldest) = self.0.iter().min_by_key(|(_, (_, at))| *at).map(|(a, _)| *a) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(from, (failures, now));
        self.delay(from, now)
    }

    /// How long an attempt from there has to wait.
    pub fn delay(&self, from: IpAddr, now: Instant) -> Duration {
        match self.failures(from, now) {
            0 => Duration::ZERO,
            n => Duration::from_secs(1 << (n - 1).min(6)).min(DELAY_MAX),
        }
    }

    fn failures(&self, from: IpAddr, now: Instant) -> u32 {
        self.0.get(&from).map_or(0, |(n, at)| {
            let forgiven = now.since(*at).as_secs() / FORGIVEN_AFTER.as_secs();
            n.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_are_forgotten() {
        let mut guard = Guard::default();
        let from = "10.0.0.1".parse().unwrap();
        let delays: Vec<u64> = (0..9).map(|_| guard.failed(from, Instant::ZERO).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 20, 20, 20, 20]);
        assert_eq!(guard.delay("10.0.0.2".parse().unwrap(), Instant::ZERO), Duration::ZERO);
        assert_eq!(guard.delay(from, Instant::from_secs(60 * 7)).as_secs(), 2);
        assert_eq!(guard.delay(from, Instant::from_secs(60 * 9)), Duration::ZERO);
    }
}
