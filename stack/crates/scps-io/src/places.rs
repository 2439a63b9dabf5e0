//! Where somebody was heard last: a table with an end, which forgets whom it heard longest ago.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Most entries of a table.
pub(crate) const PLACES_MAX: usize = 4096;

/// An outer address, and when it was heard, counted in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) at: SocketAddr,
    pub(crate) heard: u64,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Places<K> {
    of: BTreeMap<K, Place>,
    /// The same by age; names of one message are told apart.
    by_age: BTreeSet<(u64, K)>,
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Places { of: BTreeMap::new(), by_age: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Places<K> {
    pub(crate) fn get(&self, key: &K) -> Option<&Place> {
        self.of.get(key)
    }

    /// Notes where somebody was heard now, instead of wherever it was before.
    pub(crate) fn put(&mut self, key: K, place: Place) {
        if let Some(before) = self.of.insert(key, place) {
            self.by_age.remove(&(before.heard, key));
        }
        self.by_age.insert((place.heard, key));
        if self.of.len() > PLACES_MAX {
            if let Some((_, oldest)) = self.by_age.pop_first() {
                self.of.remove(&oldest);
            }
        }
    }
}
