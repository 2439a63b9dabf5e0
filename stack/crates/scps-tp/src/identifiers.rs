//! The identifiers that our compressed packets carry instead of ports: one octet, chosen by who sends (scps-tp §3.2).
//!
//! The peer may know an identifier for longer than we have use for it, and packets may be late. So one that was agreed on is not
//! used again before the time that TIME-WAIT lasts; when none is left, connections go on without compression.

use scps_wire::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Our address and the peer's.
type Ends = (Ipv4Addr, Ipv4Addr);

/// Pairs of addresses that are remembered; connections between others are not compressed.
const ENDS_MAX: usize = 4096;

/// The identifiers of a host.
#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    /// Those in use and those at rest, a bit for each; that of 0, which means none, is never set.
    taken: BTreeMap<Ends, [u64; 4]>,
    /// Those that nobody uses any more, and until when they are not given out.
    resting: BTreeSet<(Instant, Ends, u8)>,
}

impl Identifiers {
    /// One that was not used lately; 0 if there is none. The search begins behind `first`.
    pub(crate) fn take(&mut self, now: Instant, ends: Ends, first: u8) -> u8 {
        while let Some((_, ends, identifier)) = self.resting.first().copied().filter(|r| r.0 <= now) {
            self.resting.pop_first();
            self.free(ends, identifier);
        }
        if !self.taken.contains_key(&ends) && self.taken.len() >= ENDS_MAX {
            return 0;
        }
        let bits = self.taken.entry(ends).or_default();
        let mut all = (0..255u16).map(|i| ((u16::from(first) + i) % 255) as u8 + 1);
        let Some(identifier) = all.find(|i| bits[usize::from(i / 64)] & (1 << (i % 64)) == 0) else { return 0 };
        bits[usize::from(identifier / 64)] |= 1 << (identifier % 64);
        identifier
    }

    /// A connection has no more use for its own; it rests until then, if at all.
    pub(crate) fn give_back(&mut self, ends: Ends, identifier: u8, until: Option<Instant>) {
        match until {
            Some(until) => {
                self.resting.insert((until, ends, identifier));
            }
            None => self.free(ends, identifier),
        }
    }

    fn free(&mut self, ends: Ends, identifier: u8) {
        let Some(bits) = self.taken.get_mut(&ends) else { return };
        bits[usize::from(identifier / 64)] &= !(1 << (identifier % 64));
        if *bits == [0; 4] {
            self.taken.remove(&ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: Ends = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    const T: fn(u64) -> Instant = Instant::from_secs;

    #[test]
    fn every_identifier_is_given_out_once() {
        let mut identifiers = Identifiers::default();
        let mut given: Vec<u8> = (0..255).map(|_| identifiers.take(T(0), ENDS, 200)).collect();
        assert_eq!((given[0], given[254], identifiers.take(T(0), ENDS, 0)), (201, 200, 0));
        given.sort_unstable();
        assert_eq!(given, (1..=255).collect::<Vec<u8>>());
        assert_eq!(identifiers.take(T(0), (ENDS.1, ENDS.0), 7), 8, "other ends have their own");
    }

    #[test]
    fn one_that_was_agreed_on_rests() {
        let mut identifiers = Identifiers::default();
        let mut take = |now, until| {
            let identifier = identifiers.take(now, ENDS, 4);
            identifiers.give_back(ENDS, identifier, until);
            identifier
        };
        assert_eq!([take(T(0), None), take(T(0), Some(T(60))), take(T(1), Some(T(61)))], [5, 5, 6]);
        assert_eq!([take(T(59), None), take(T(60), None), take(T(61), None)], [7, 5, 5]);
        assert!(identifiers.taken.is_empty());
    }

    #[test]
    fn the_number_of_ends_is_bounded() {
        let mut identifiers = Identifiers::default();
        let ends = |i: u32| (ENDS.0, Ipv4Addr::from(i));
        assert!((0..ENDS_MAX as u32).all(|i| identifiers.take(T(0), ends(i), 0) == 1));
        assert_eq!(identifiers.take(T(0), ends(1 << 20), 0), 0);
        (0..ENDS_MAX as u32).for_each(|i| identifiers.give_back(ends(i), 1, Some(T(60))));
        assert_eq!(identifiers.take(T(59), ends(1 << 20), 0), 0);
        assert_eq!(identifiers.take(T(60), ends(1 << 20), 0), 1);
    }
}
