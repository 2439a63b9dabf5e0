//! What became of every octet, and how connections ended.

use crate::names::PairId;
use crate::side::{PerSide, Side};
use scps_tp::{CloseReason, Progress};
use scps_wire::Instant;
use std::net::SocketAddr;

/// Octets of one connection in one direction. `received = delivered + buffered + lost` at any time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Account {
    /// Received in order from the sender.
    pub received: u64,
    /// Of these, acknowledged to the sender; the rest is acknowledged within the delayed-acknowledgement time.
    pub acknowledged: u64,
    /// Acknowledged by the receiver.
    pub delivered: u64,
    /// In the gateway: not read from the sender's half, or not acknowledged by the receiver.
    pub buffered: u64,
    /// In the gateway when the connection ended. The receiver may have some of it: it did not say so.
    pub lost: u64,
}

impl Account {
    /// The account of what goes from a half at `from` to one at `to`. The two know nothing of each other, so that the account
    /// closes only if each octet read was handed on.
    pub(crate) fn between(from: Progress, to: Progress) -> Self {
        Account {
            received: from.received,
            acknowledged: from.acknowledged,
            delivered: to.delivered,
            buffered: from.readable + (to.taken - to.delivered),
            lost: 0,
        }
    }

    /// The connection is over: nothing is buffered any more.
    #[must_use]
    pub(crate) fn at_end(self) -> Self {
        Account { buffered: 0, lost: self.lost + self.buffered, ..self }
    }

    /// True if nothing is missing and nothing came from nowhere.
    pub fn closes(&self) -> bool {
        self.received == self.delivered + self.buffered + self.lost && self.acknowledged <= self.received
    }

    /// Adds the octets of another connection.
    pub fn add(&mut self, other: &Account) {
        self.received += other.received;
        self.acknowledged += other.acknowledged;
        self.delivered += other.delivered;
        self.buffered += other.buffered;
        self.lost += other.lost;
    }
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// Both directions ended with FIN and all was delivered.
    #[error("finished")]
    Finished,
    /// The half of a side ended otherwise; the other one was reset.
    #[error("{1} on the side {0:?}")]
    Broken(Side, CloseReason),
    /// The far side was not connected within [`crate::Limits::set_up`].
    #[error("the far side was not connected in time")]
    SetUpTimedOut,
    /// It was not set up yet, and there was no other place for a client that has fewer of these. Reported only if octets came.
    #[error("it made room for another client before it was set up")]
    Displaced,
    /// It was idle longest of the client with most connections, and one that has fewer had no other place.
    #[error("it was idle, and made room for a client with fewer connections")]
    Crowded,
    /// The gateway was told to stop.
    #[error("the gateway stopped")]
    Stopped,
}

/// A connection that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Its name.
    pub pair: PairId,
    /// The side that asked for it.
    pub near: Side,
    /// Who asked.
    pub client: SocketAddr,
    /// Whom it asked for.
    pub server: SocketAddr,
    /// When its SYN came, or with accept-first when it was accepted.
    pub began_at: Instant,
    /// When it ended.
    pub ended_at: Instant,
    /// How.
    pub end: End,
    /// What came from each side.
    pub from: PerSide<Account>,
}

/// What a gateway did, connections that are not over aside.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Counters {
    /// Connections begun.
    pub begun: u64,
    /// Connections that ended with both FINs.
    pub finished: u64,
    /// Connections that ended otherwise.
    pub broken: u64,
    /// Connections refused for [`crate::Limits`].
    pub full: u64,
    /// Connections that made room for a client with fewer ([`End::Crowded`]).
    pub crowded: u64,
    /// Connections refused because the far half could not be asked for, as a rule because its addresses are in use.
    pub unconnectable: u64,
    /// Packets given back to be forwarded.
    pub passed: u64,
    /// Sum of the accounts of what came from each side.
    pub from: PerSide<Account>,
}
