//! Connections by who asked for them: when there are too many, whoever has most of them makes room.

use crate::names::PairId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Pairs by client.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// Never an empty set. Names grow with time, so the first is the oldest.
    by_client: BTreeMap<IpAddr, BTreeSet<PairId>>,
    len: usize,
}

impl Clients {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn add(&mut self, client: IpAddr, id: PairId) {
        self.len += usize::from(self.by_client.entry(client).or_default().insert(id));
    }

    /// It is none of these any more.
    pub(crate) fn remove(&mut self, client: IpAddr, id: PairId) {
        let Some(of_client) = self.by_client.get_mut(&client) else { return };
        self.len -= usize::from(of_client.remove(&id));
        if of_client.is_empty() {
            self.by_client.remove(&client);
        }
    }

    /// Those of the client that has most, the oldest first, if one more of `client` would still not have as many.
    pub(crate) fn of_greedier(&self, client: IpAddr) -> Option<&BTreeSet<PairId>> {
        let own = self.by_client.get(&client).map_or(0, BTreeSet::len);
        self.by_client.values().max_by_key(|of_client| of_client.len()).filter(|most| most.len() > own + 1)
    }

    /// The oldest of these.
    pub(crate) fn oldest_of_greedier(&self, client: IpAddr) -> Option<PairId> {
        self.of_greedier(client)?.first().copied()
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
        let mut clients = Clients::default();
        for (id, client) in [(0, a), (1, b), (2, b), (3, b)] {
            clients.add(client, PairId(id));
        }
        assert_eq!((clients.oldest_of_greedier(c), clients.oldest_of_greedier(a)), (Some(PairId(1)), Some(PairId(1))));
        assert_eq!((clients.oldest_of_greedier(b), clients.oldest_for(b)), (None, Some(PairId(1))));
        clients.remove(b, PairId(1));
        assert_eq!((clients.oldest_of_greedier(c), clients.oldest_of_greedier(a)), (Some(PairId(2)), None));
        clients.remove(b, PairId(2));
        clients.remove(b, PairId(2));
        assert_eq!((clients.oldest_of_greedier(c), clients.oldest_for(c), clients.len()), (None, Some(PairId(0)), 2));
    }
}
