//! Packets of no connection that wait to leave: resets for strangers, cookies, questions.

use super::connections::Connections;
use super::Transmit;
use crate::net::Envelope;
use crate::reply;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::Instant;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

/// Packets that wait, at most.
pub(super) const REPLIES_MAX: usize = 64;

/// Where a packet goes, and the address beneath the network layer.
type Way = (Ipv4Addr, Option<SocketAddr>);

/// Packets of no connection that wait to leave.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: VecDeque<(Transmit, Vec<u8>)>,
}

impl Replies {
    /// True if another one may wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < REPLIES_MAX
    }

    /// One waits whose route is charged already.
    pub(super) fn push(&mut self, (dst, via): Way, packet: Vec<u8>) {
        self.waiting.push_back((Transmit::new(dst, packet.len()).by_way_of(via), packet));
    }

    /// Appends the next one to `out`.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let (transmit, packet) = self.waiting.pop_front()?;
        out.extend_from_slice(&packet);
        Some(transmit)
    }

    /// Lets a packet leave, if there are not too many and the rate has room for it.
    pub(super) fn queue(&mut self, now: Instant, connections: &mut Connections, to: Way, packet: Vec<u8>) {
        let route = connections.routes.to(to.0);
        let has_room = self.has_room() && connections.routes[route].has_room_for_reply(packet.len(), now);
        if has_room && connections.charge(now, route, packet.len()) {
            self.push(to, packet);
        }
    }

    /// A reset answers a segment that came from `via`, unless it is one.
    pub(super) fn reset(
        &mut self,
        now: Instant,
        connections: &mut Connections,
        (envelope, via): (&Envelope, Option<SocketAddr>),
        tcp: &Tcp,
        data_len: usize,
    ) {
        if tcp.flags.has(Flags::RST) || !self.has_room() {
            return;
        }
        let mtu = connections.routes[connections.routes.to(envelope.src)].config().mtu;
        let Ok(packet) = reply::reset(now, &mut connections.network, envelope, mtu, tcp, data_len) else { return };
        self.queue(now, connections, (envelope.src, via), packet);
    }
}
