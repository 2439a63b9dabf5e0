//! A connection through the gateway: two halves, and the octets that go from one to the other.

use crate::account::Account;
use crate::side::{PerSide, Side};
use scps_tp::{ConnectionId, Endpoint, State};
use scps_wire::Instant;
use std::net::SocketAddr;

/// Octets handed on at a time.
const CHUNK: usize = 65_536;

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
    /// When it is given up unless the far half is connected.
    pub deadline: Instant,
    /// Whether the end of what a side sends was read, and handed on.
    pub is_ended: PerSide<bool>,
}

impl Pair {
    /// Hands on what came from a side, as far as the other has room, and then its end.
    pub fn pump(&mut self, now: Instant, sides: &mut PerSide<Endpoint>, from: Side) {
        let (source, sink) = (*self.halves.of(from), *self.halves.of(from.other()));
        let (from_end, to_end) = sides.both_mut(from);
        while !self.is_ended.of(from) {
            let room = to_end.room(sink).min(CHUNK);
            if room == 0 {
                return;
            }
            let hand_on = |a: &[u8], b: &[u8]| {
                for piece in [a, b].into_iter().filter(|piece| !piece.is_empty()) {
                    let taken = to_end.send(now, sink, piece);
                    debug_assert_eq!(taken, Ok(piece.len()), "there was room");
                }
            };
            match from_end.recv_with(now, source, room, hand_on) {
                Ok((0, _)) => {
                    to_end.close(now, sink);
                    *self.is_ended.of_mut(from) = true;
                }
                Ok(_) => {}
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
