//! Connections that are being set up, by who asked for them: when there are too many, whoever has most of them makes room.

use crate::names::PairId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Pairs whose ends are not both connected.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// Never an empty set. Names grow with time, so the first is the oldest.
    by_client: BTreeMap<IpAddr, BTreeSet<PairId>>,
    len: usize,
}

impl Opening {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn add(&mut self, client: IpAddr, id: PairId) {
        self.len += usize::from(self.by_client.entry(client).or_default().insert(id));
    }

    /// It is set up, or over.
    pub(crate) fn remove(&mut self, client: IpAddr, id: PairId) {
        let Some(of_client) = self.by_client.get_mut(&client) else { return };
        self.len -= usize::from(of_client.remove(&id));
        if of_client.is_empty() {
            self.by_client.remove(&client);
        }
    }

    /// The oldest of the client that has most, if one more of `client` would still not have as many.
    pub(crate) fn oldest_of_greedier(&self, client: IpAddr) -> Option<PairId> {
        let own = self.by_client.get(&client).map_or(0, BTreeSet::len);
        let most = self.by_client.values().max_by_key(|of_client| of_client.len())?;
        most.first().copied().filter(|_| most.len() > own + 1)
    }

    /// The oldest of `client`, or else of all.
    pub(crate) fn oldest_for(&self, client: IpAddr) -> Option<PairId> {
        let oldest = || self.by_client.values().filter_map(BTreeSet::first).min();
        self.by_client.get(&client).and_then(BTreeSet::first).or_else(oldest).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greediest_makes_room_then_the_newcomer_itself_then_the_oldest() {
        let [a, b, c] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let mut opening = Opening::default();
        for (id, client) in [(0, a), (1, b), (2, b), (3, b)] {
            opening.add(client, PairId(id));
        }
        assert_eq!((opening.oldest_of_greedier(c), opening.oldest_of_greedier(a)), (Some(PairId(1)), Some(PairId(1))));
        assert_eq!((opening.oldest_of_greedier(b), opening.oldest_for(b)), (None, Some(PairId(1))));
        opening.remove(b, PairId(1));
        assert_eq!((opening.oldest_of_greedier(c), opening.oldest_of_greedier(a)), (Some(PairId(2)), None));
        opening.remove(b, PairId(2));
        opening.remove(b, PairId(2));
        assert_eq!((opening.oldest_of_greedier(c), opening.oldest_for(c), opening.len()), (None, Some(PairId(0)), 2));
    }
}
