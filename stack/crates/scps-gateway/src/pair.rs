//! A connection through the gateway: two halves, and the octets that go from one to the other.

use crate::account::Account;
use crate::side::{PerSide, Side};
use scps_tp::{ConnectionId, Endpoint, State};
use scps_types::Instant;
use std::net::SocketAddr;

/// How far a connection is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The client waits for an answer to its SYN, the far half is asked for.
    Held,
    /// The client is connected, the far half is asked for.
    Accepted,
    /// The far half is connected.
    Open,
}

/// Two halves.
#[derive(Debug)]
pub(crate) struct Pair {
    pub near: Side,
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub halves: PerSide<ConnectionId>,
    pub stage: Stage,
    pub began_at: Instant,
    /// Whether the end of what a side sends was read, and handed on.
    pub is_ended: PerSide<bool>,
}

impl Pair {
    /// Hands on what came from a side, as far as the other has room, and then its end.
    pub fn pump(&mut self, now: Instant, sides: &mut PerSide<Endpoint>, from: Side, buffer: &mut [u8]) {
        let to = from.other();
        let (source, sink) = (*self.halves.of(from), *self.halves.of(to));
        while !self.is_ended.of(from) {
            let room = sides.of_mut(to).room(sink).min(buffer.len());
            if room == 0 {
                return;
            }
            match sides.of_mut(from).recv(now, source, &mut buffer[..room]) {
                Ok((0, _)) => {
                    sides.of_mut(to).close(now, sink);
                    *self.is_ended.of_mut(from) = true;
                }
                Ok((len, _)) => {
                    let taken = sides.of_mut(to).send(now, sink, &buffer[..len]);
                    debug_assert_eq!(taken, Ok(len), "there was room");
                }
                Err(_) => return,
            }
        }
    }

    /// True when both directions have ended and every octet and FIN is acknowledged.
    pub fn is_finished(&self, sides: &PerSide<Endpoint>) -> bool {
        let is_over = |side: Side| {
            let state = sides.of(side).state(*self.halves.of(side));
            *self.is_ended.of(side) && matches!(state, Some(State::TimeWait | State::Closed) | None)
        };
        Side::BOTH.into_iter().all(is_over)
    }

    /// What became of the octets from a side.
    pub fn account(&self, sides: &PerSide<Endpoint>, from: Side) -> Account {
        let progress = |side: Side| sides.of(side).progress(*self.halves.of(side)).unwrap_or_default();
        Account::between(progress(from), progress(from.other()))
    }
}
