//! The table of a host's connections: their names, and the ways to find one: by its addresses, by its compression identifier,
//! among those that are half-open.

use crate::connection::Connection;
use crate::identifiers::Identifiers;
use crate::names::{AddressPort, ConnectionId};
use crate::state::State;
use scps_wire::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::ops::Range;

#[derive(Debug)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// Sender, receiver, and the identifier that the sender writes.
type IdentifierKey = (Ipv4Addr, Ipv4Addr, u8);

/// All connections of a host.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_tuple: BTreeMap<(AddressPort, AddressPort), u32>,
    by_compression: BTreeMap<IdentifierKey, u32>,
    /// Identifiers of which there may be more than one connection.
    contested: BTreeSet<IdentifierKey>,
    identifiers: Identifiers,
    half_open: VecDeque<ConnectionId>,
}

impl ConnectionTable {
    /// The name of a connection that is about to be made, and whether its place is one more than there were.
    pub(crate) fn reserve(&mut self) -> (ConnectionId, bool) {
        let reused = self.free.pop();
        let index = reused.unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            self.slots.len() as u32 - 1
        });
        (self.id_at(index), reused.is_none())
    }

    /// Puts a connection where its name says; its addresses lead to it.
    pub(crate) fn insert(&mut self, connection: Connection) {
        let place = connection.control.id.index;
        self.by_tuple.insert((connection.control.local, connection.control.remote), place);
        self.slots[place as usize].connection = Some(Box::new(connection));
    }

    /// Every place, empty ones included.
    pub(crate) fn places(&self) -> Range<u32> {
        0..self.slots.len() as u32
    }

    /// The name of what is, or will be, at a place.
    pub(crate) fn id_at(&self, place: u32) -> ConnectionId {
        ConnectionId { index: place, generation: self.slots[place as usize].generation }
    }

    /// The connection at a place.
    pub(crate) fn at(&self, place: u32) -> Option<&Connection> {
        self.slots[place as usize].connection.as_deref()
    }

    /// The connection at a place.
    pub(crate) fn at_mut(&mut self, place: u32) -> Option<&mut Connection> {
        self.slots[place as usize].connection.as_deref_mut()
    }

    /// The connection of a name.
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id.index as usize).filter(|s| s.generation == id.generation)?.connection.as_deref()
    }

    /// The connection of a name.
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.index as usize).filter(|s| s.generation == id.generation)?;
        slot.connection.as_deref_mut()
    }

    /// Every connection, by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|s| s.connection.as_deref())
    }

    /// Where the connection between two addresses is.
    pub(crate) fn between(&self, local: AddressPort, remote: AddressPort) -> Option<u32> {
        self.by_tuple.get(&(local, remote)).copied()
    }

    /// Where the connection is whose compressed packets from `src` to `dst` have this identifier.
    pub(crate) fn compressed(&self, src: Ipv4Addr, dst: Ipv4Addr, identifier: u8) -> Option<u32> {
        self.by_compression.get(&(src, dst, identifier)).copied()
    }

    /// An identifier for compressed packets from `local` to `remote`; 0 if there is none.
    pub(crate) fn take_identifier(&mut self, now: Instant, local: Ipv4Addr, remote: Ipv4Addr, first: u8) -> u8 {
        self.identifiers.take(now, (local, remote), first)
    }

    /// Keeps both identifiers of the connection at a place, the peer's and its own, or gives them back when they are of no more
    /// use. Answers with the place of a connection that the peer's identifier led to before: its peer gave it to another one,
    /// so it has forgotten that connection, or ends it.
    pub(crate) fn settle_identifiers(&mut self, now: Instant, place: u32) -> Option<u32> {
        let c = self.slots[place as usize].connection.as_mut()?;
        let is_over = matches!(c.control.state, State::Closed | State::TimeWait);
        let is_plain = c.control.state.is_synchronised() && c.control.agreed.compression.is_none();
        if c.own_identifier != 0 && (is_over || is_plain) {
            let until = c.control.agreed.compression.map(|_| now + c.control.config.time_wait);
            self.identifiers.give_back(
                (c.control.local.0, c.control.remote.0),
                std::mem::take(&mut c.own_identifier),
                until,
            );
        }
        let key = (c.control.remote.0, c.control.local.0, c.control.agreed.compression?);
        if c.control.state == State::Closed {
            if self.by_compression.get(&key) == Some(&place) {
                self.by_compression.remove(&key);
                self.pass_identifier_on(key);
            }
            return None;
        }
        if std::mem::replace(&mut c.is_identified, true) {
            return None;
        }
        let robbed = self.by_compression.insert(key, place).filter(|before| *before != place);
        if robbed.is_some() {
            self.contested.insert(key);
        }
        robbed
    }

    /// A peer that was restarted gives an identifier away again, and an answer of its life before may come later than one of this life. So
    /// whoever had a contested identifier before has it again, the youngest first, until the last of them is gone.
    fn pass_identifier_on(&mut self, key: IdentifierKey) {
        if !self.contested.contains(&key) {
            return;
        }
        let has_it = |c: &&Connection| {
            let own = (c.control.remote.0, c.control.local.0, c.control.agreed.compression.unwrap_or(0));
            c.is_identified && own == key && c.control.state != State::Closed
        };
        match self.iter().filter(has_it).max_by_key(|c| c.control.stats.opened_at) {
            Some(heir) => drop(self.by_compression.insert(key, heir.control.id.index)),
            None => drop(self.contested.remove(&key)),
        }
    }

    /// Connections whose SYN is answered and not acknowledged.
    pub(crate) fn half_open_count(&self) -> usize {
        self.half_open.len()
    }

    /// A listener answers the SYN of the connection at a place.
    pub(crate) fn begin_half_open(&mut self, place: u32) {
        self.half_open.extend(self.at(place).map(|c| c.control.id));
    }

    /// The connection is open, or gone.
    pub(crate) fn end_half_open(&mut self, id: ConnectionId) {
        self.half_open.retain(|h| *h != id);
    }

    /// Addresses no longer lead to the connection at a place: another one may have them.
    pub(crate) fn forget_addresses(&mut self, place: u32) {
        let Some(key) = self.at(place).map(|c| (c.control.local, c.control.remote)) else { return };
        if self.by_tuple.get(&key) == Some(&place) {
            self.by_tuple.remove(&key);
        }
    }

    /// Frees a place. Its connection's name is never used again.
    pub(crate) fn remove(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        slot.connection = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(place);
    }
}
