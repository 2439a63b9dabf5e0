//! Segments of connections that nobody here knows, for whoever stands between their ends: a gateway that was restarted resets the end that
//! sends. The other one may wait for ever, for no number of its half is known any more; so it is asked, and its answer tells them.

use super::{Endpoint, REPLIES_MAX};
use crate::config::RouteConfig;
use crate::connection::SocketAddr;
use crate::reply;
use crate::table::ConnectionId;
use scps_net::{Envelope, Quote, Services};
use scps_types::{Instant, SeqNum};
use scps_wire::tcp::{Flags, Tcp};

/// A segment that belongs to no connection and was answered by a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stranger {
    /// Who sent it.
    pub from: SocketAddr,
    /// For whom it was.
    pub to: SocketAddr,
    /// What it acknowledges, if it answers a SYN.
    pub answers_syn: Option<SeqNum>,
}

impl Endpoint {
    /// The next one ([`super::EndpointConfig::tells_strangers`]).
    pub fn poll_stranger(&mut self) -> Option<Stranger> {
        self.strangers.pop_front()
    }

    /// Asks the end for which a stranger's segment was whether it has that connection, in the stranger's name; who answered by a reset its
    /// answer to a SYN resets who sent that SYN. Nothing leaves if the connection is known here.
    pub fn ask_after(&mut self, now: Instant, stranger: &Stranger) {
        self.advance_clock(now);
        let Stranger { from, to, answers_syn } = *stranger;
        if self.table.between(from, to).is_some() || self.replies.len() >= REPLIES_MAX {
            return;
        }
        let (src, dst, services) = (from.0, to.0, Services::NONE);
        let route = self.route_to(dst).0;
        let RouteConfig { mtu, protocol, .. } = *self.routes[route].config();
        let envelope = Envelope { src, dst, protocol, precedence: None, dscp: 0, services };
        let ports = (from.1, to.1);
        let mut name = Vec::with_capacity(12);
        for (address, port) in [from, to] {
            name.extend(address.octets());
            name.extend(port.to_be_bytes());
        }
        let guess = self.seed.keyed_hash("stranger", &name);
        let written = match answers_syn {
            Some(ack) => reply::refusal(now, &mut self.network, &envelope, mtu, ports, ack),
            None => reply::question(now, &mut self.network, &envelope, mtu, ports, guess),
        };
        if let Ok(packet) = written {
            self.queue_reply(now, dst, packet);
        }
    }

    /// Forgets a SYN that a listener asked about, and tells its sender by ICMP that the destination cannot be reached. False if the network
    /// cannot say that; then nothing happened.
    pub fn turn_away(&mut self, now: Instant, id: ConnectionId, code: u8) -> bool {
        let quote = self.table.get(id).map(|c| Quote { src: c.remote, dst: c.local, seq: c.receiver.start() });
        let Some(quote) = quote else { return false };
        let Some(packet) = self.network.unreachable(code, &quote) else { return false };
        self.queue_reply(now, quote.src.0, packet);
        self.ignore(now, id);
        true
    }

    pub(super) fn note_stranger(&mut self, local: SocketAddr, remote: SocketAddr, tcp: &Tcp) {
        let is_answer = tcp.flags.has(Flags::SYN);
        // A reset tells its receiver everything; what asks for a connection is nobody's yet.
        let is_told = self.config.tells_strangers && tcp.flags.has(Flags::ACK) && !tcp.flags.has(Flags::RST);
        if is_told && self.strangers.len() < REPLIES_MAX {
            let answers_syn = is_answer.then_some(tcp.ack);
            self.strangers.push_back(Stranger { from: remote, to: local, answers_syn });
        }
    }
}
