//! Paths that connections observed, for those that come after them (RFC 9959 §3.1).

use crate::cc::{KnownPath, Saved};
use scps_wire::Instant;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Paths that are remembered.
const KNOWN_MAX: usize = 1024;

/// Our address and the peer's.
type Ends = (Ipv4Addr, Ipv4Addr);

const ANY: Ends = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);

/// What is saved of each path.
#[derive(Debug, Default)]
pub(crate) struct PathMemory {
    known: BTreeMap<Ends, Saved>,
}

impl PathMemory {
    /// What is saved of a path, for one connection alone: who takes it puts back what it leaves of it.
    pub(crate) fn take(&mut self, now: Instant, ends: Ends) -> Option<Saved> {
        self.known.retain(|_, saved| now < saved.until);
        self.known.remove(&ends).or_else(|| self.known.remove(&ANY))
    }

    /// Saves what is known of a path, in place of what was.
    pub(crate) fn put(&mut self, ends: Ends, saved: Saved) {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&ends) {
            let oldest = self.known.iter().min_by_key(|(_, saved)| saved.until).map(|(ends, _)| *ends);
            oldest.and_then(|ends| self.known.remove(&ends));
        }
        self.known.insert(ends, saved);
    }

    /// What is told of a path from elsewhere.
    pub(crate) fn learn(&mut self, now: Instant, path: &KnownPath) {
        if let (IpAddr::V4(local), IpAddr::V4(remote)) = (path.local, path.remote) {
            self.put((local, remote), Saved { window: path.window, rtt: path.rtt, until: now + path.lifetime });
        }
    }

    /// All that may be used.
    pub(crate) fn all(&self, now: Instant) -> impl Iterator<Item = KnownPath> + '_ {
        self.known.iter().filter(move |(_, saved)| now < saved.until).map(move |((local, remote), saved)| KnownPath {
            lifetime: saved.until.since(now),
            ..KnownPath::new(*local, *remote, saved.window, saved.rtt)
        })
    }
}
