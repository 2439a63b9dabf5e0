//! Path MTUs by destination: what routers reported, for ten minutes (RFC 1191, RFC 8201).

use scps_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// How long a report holds: a path may change, and whoever forged it shall not have slowed everybody down for ever (RFC 1191 §6.3).
const LIFETIME: Duration = Duration::from_secs(600);
/// What every host takes (RFC 791 §3.1). Links of less are rare, and forged reports of less would make headers the most of the
/// traffic; so less is believed only where our own link has less, else packets of this size may be fragmented (as Linux's
/// `min_pmtu` does). Where routers cannot cut, less has to be believed: nothing else would arrive.
const FLOOR: u16 = 576;
/// Destinations that are remembered.
const KNOWN_MAX: usize = 1024;

/// The MTU of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathMtu {
    pub(crate) mtu: u16,
    /// Until when it is believed.
    pub(crate) until: Instant,
    /// Less was reported than is believed: routers may cut packets in pieces.
    pub(crate) may_fragment: bool,
    /// Nobody reported it: longer packets were not acknowledged.
    pub(crate) is_guessed: bool,
}

impl PathMtu {
    /// Believed for as long again.
    pub(crate) fn prolonged(self, now: Instant) -> Self {
        PathMtu { until: now + LIFETIME, ..self }
    }
}

/// The path MTUs that are less than their route's.
#[derive(Debug, Default)]
pub(crate) struct PathMtus {
    known: BTreeMap<Ipv4Addr, PathMtu>,
}

impl PathMtus {
    /// That of the path to a destination, if it is less than its route's.
    pub(crate) fn to(&self, dst: Ipv4Addr, now: Instant) -> Option<PathMtu> {
        self.known.get(&dst).copied().filter(|path| now < path.until || path.is_guessed)
    }

    /// A packet to `dst` was too big for a link of `mtu`; what its path takes, and whether that is news. `is_cut` is whether routers
    /// cut what may be fragmented.
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        dst: Ipv4Addr,
        mtu: u16,
        of_route: u16,
        is_cut: bool,
    ) -> Option<(PathMtu, bool)> {
        let may_fragment = is_cut && mtu < FLOOR && of_route >= FLOOR;
        let path = PathMtu {
            mtu: if may_fragment { FLOOR } else { mtu },
            until: now + LIFETIME,
            may_fragment,
            is_guessed: false,
        };
        if let Some(known) =
            self.to(dst, now).filter(|known| (known.mtu, !known.may_fragment) <= (path.mtu, !may_fragment))
        {
            return Some((known, false));
        }
        if path.mtu >= of_route && !may_fragment {
            return None;
        }
        self.put(dst, path);
        Some((path, true))
    }

    /// Packets to `dst` of more than `mtu` vanish, and nobody says so.
    pub(crate) fn on_black_hole(&mut self, now: Instant, dst: Ipv4Addr, mtu: u16) -> PathMtu {
        let path = PathMtu { mtu, until: now + LIFETIME, may_fragment: false, is_guessed: true };
        self.put(dst, path);
        path
    }

    /// The path to `dst` takes what its route does.
    pub(crate) fn forget(&mut self, dst: Ipv4Addr) {
        self.known.remove(&dst);
    }

    fn put(&mut self, dst: Ipv4Addr, path: PathMtu) {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&dst) {
            let oldest = self.known.iter().min_by_key(|(_, path)| path.until).map(|(dst, _)| *dst);
            oldest.and_then(|dst| self.known.remove(&dst));
        }
        self.known.insert(dst, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const T: fn(u64) -> Instant = Instant::from_secs;

    #[test]
    fn a_report_lowers_one_destination_for_ten_minutes() {
        let mut paths = PathMtus::default();
        let lower = |paths: &mut PathMtus, t, mtu| {
            paths.on_report(T(t), DST, mtu, 1500, true).map(|(p, is_news)| (p.mtu, is_news))
        };
        assert_eq!(lower(&mut paths, 0, 1500), None);
        assert_eq!([lower(&mut paths, 0, 1280), lower(&mut paths, 9, 1400)], [Some((1280, true)), Some((1280, false))]);
        assert_eq!(paths.to(DST, T(599)).map(|p| p.mtu), Some(1280));
        assert_eq!((paths.to(DST, T(600)), paths.to(Ipv4Addr::LOCALHOST, T(0))), (None, None));
        assert_eq!(lower(&mut paths, 600, 1400), Some((1400, true)));
    }

    #[test]
    fn less_than_576_is_believed_of_routes_that_have_less() {
        let mut paths = PathMtus::default();
        let path = paths.on_report(T(0), DST, 68, 1500, true).map(|(p, _)| (p.mtu, p.may_fragment));
        assert_eq!(path, Some((576, true)));
        let path = PathMtus::default().on_report(T(0), DST, 128, 296, true).map(|(p, _)| (p.mtu, p.may_fragment));
        assert_eq!(path, Some((128, false)));
        assert_eq!(PathMtus::default().on_report(T(0), DST, 68, 576, true).map(|(p, _)| p.mtu), Some(576));
        let uncut = PathMtus::default().on_report(T(0), DST, 128, 1500, false).map(|(p, _)| (p.mtu, p.may_fragment));
        assert_eq!(uncut, Some((128, false)));
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut paths = PathMtus::default();
        for i in 0..=KNOWN_MAX as u32 {
            paths.on_report(T(i.into()), Ipv4Addr::from(i), 1000, 1500, true);
        }
        assert_eq!(paths.known.len(), KNOWN_MAX);
        assert!(!paths.known.contains_key(&Ipv4Addr::from(0)) && paths.known.contains_key(&Ipv4Addr::from(1)));
    }
}
