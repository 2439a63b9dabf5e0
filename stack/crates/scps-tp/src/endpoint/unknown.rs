//! Segments of connections that nobody here knows, for whoever stands between their ends: a gateway that was restarted resets the end that
//! sends. The other one may wait for ever, for no number of its half is known any more; so it is asked, and its answer tells them. Question,
//! answer and reset may be lost, so it is asked again until it says that it does not have the connection.

use super::replies::REPLIES_MAX;
use super::{envelope_of, Endpoint};
use crate::config::RouteConfig;
use crate::event::CloseReason;
use crate::names::{carried, AddressPort, ConnectionId};
use crate::net::{Envelope, Quote, Services};
use crate::reply;
use crate::state::State;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Duration, Instant, SeqNum};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Questions that are asked again, as many as a gateway has connections by default; what is beyond is asked once.
const QUESTIONS_MAX: usize = 1024;
/// How often a question is asked, and how often the time to the next is doubled.
const TRIES_MAX: u8 = 12;
const BACK_OFFS_MAX: u32 = 3;

/// A segment that belongs to no connection and was answered by a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UnknownSegment {
    /// Who sent it.
    pub from: SocketAddr,
    /// For whom it was.
    pub to: SocketAddr,
    /// What it acknowledges, if it answers a SYN.
    pub answers_syn: Option<SeqNum>,
}

/// In whose name an end is asked, and that end.
type Ends = (AddressPort, AddressPort);

/// Questions that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// How often it was asked, and when it is again.
    asked: BTreeMap<Ends, (u8, Instant)>,
    due: BTreeSet<(Instant, Ends)>,
}

impl Questions {
    /// When one is to be asked again.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// That between these ends is answered.
    pub(super) fn end(&mut self, from: AddressPort, to: AddressPort) {
        if let Some((_, at)) = self.asked.remove(&(from, to)) {
            self.due.remove(&(at, (from, to)));
        }
    }

    /// One is to be asked at a time, after so many tries.
    pub(super) fn note(&mut self, ends: Ends, tries: u8, at: Instant) {
        // One that waits already is not left among those that are due.
        self.end(ends.0, ends.1);
        if tries < TRIES_MAX && self.asked.len() < QUESTIONS_MAX {
            self.asked.insert(ends, (tries, at));
            self.due.insert((at, ends));
        }
    }

    /// One that is due, with how often it was asked; it is forgotten.
    fn take_due(&mut self, now: Instant) -> Option<(Ends, u8)> {
        let (_, ends) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        let tries = self.asked.get(&ends).map_or(0, |(tries, _)| *tries);
        self.end(ends.0, ends.1);
        Some((ends, tries))
    }
}

impl Endpoint {
    /// The next one ([`super::EndpointConfig::tells_unknown`]).
    pub fn poll_unknown(&mut self) -> Option<UnknownSegment> {
        self.unknown.pop_front()
    }

    /// Asks the end for which a stranger's segment was whether it has that connection, in the stranger's name; an answer to a SYN resets
    /// who sent that SYN first, for an end that waits for one has no number to answer with. Nothing leaves if the connection is known
    /// here, or that end is being asked already.
    pub fn ask_after(&mut self, now: Instant, stranger: &UnknownSegment) {
        self.connections.advance_clock(now);
        let UnknownSegment { from, to, answers_syn } = *stranger;
        let (Ok(from), Ok(to)) = (carried(from), carried(to)) else { return };
        if self.connections.table.between(from, to).is_none() && !self.questions.asked.contains_key(&(from, to)) {
            self.put_question(now, (from, to), answers_syn, 0);
        }
    }

    /// Asks again what was not answered.
    pub(super) fn ask_again(&mut self, now: Instant) {
        while let Some((ends, tries)) = self.questions.take_due(now) {
            if self.connections.table.between(ends.0, ends.1).is_none() {
                self.put_question(now, ends, None, tries);
            }
        }
    }

    fn put_question(&mut self, now: Instant, (from, to): Ends, answers_syn: Option<SeqNum>, tries: u8) {
        let route = *self.connections.routes[self.connections.routes.to(to.0)].config();
        let patience = route.initial_rto.max(Duration::from_millis(1));
        let wait = patience * (1 << u32::from(tries).min(BACK_OFFS_MAX));
        self.questions.note((from, to), tries + 1, now + wait);
        if !self.replies.has_room() {
            return;
        }
        let (src, dst, services) = (from.0, to.0, Services::NONE);
        let RouteConfig { mtu, protocol, .. } = route;
        let envelope = Envelope { src, dst, protocol, precedence: None, dscp: 0, services };
        let ports = (from.1, to.1);
        let mut name = Vec::with_capacity(12);
        for (address, port) in [from, to] {
            name.extend(address.octets());
            name.extend(port.to_be_bytes());
        }
        let guess = self.seed.keyed_hash("stranger", &name);
        let written = match answers_syn {
            Some(ack) => reply::refusal(now, &mut self.connections.network, &envelope, mtu, ports, (SeqNum(0), ack)),
            None => reply::question(now, &mut self.connections.network, &envelope, mtu, ports, guess),
        };
        if let Ok(packet) = written {
            let via = self.way_to(dst);
            self.replies.queue(now, &mut self.connections, (dst, via), packet);
        }
    }

    /// Forgets a SYN that a listener asked about, and tells its sender by ICMP that the destination cannot be reached. False if the network
    /// cannot say that; then nothing happened.
    pub fn refuse(&mut self, now: Instant, id: ConnectionId, code: u8) -> bool {
        let Some(c) = self.connections.get(id) else { return false };
        let via = c.control.via;
        let quote = Quote { src: c.control.remote, dst: c.control.local, seq: c.inbound.receiver.start() };
        let Some(packet) = self.connections.network.unreachable(code, &quote) else { return false };
        self.replies.queue(now, &mut self.connections, (quote.src.0, via), packet);
        self.ignore(now, id);
        true
    }

    /// As [`Endpoint::abort`], but a peer that is not connected yet is reset only if that has room among the answers to strangers: there may be
    /// any number of them, as whoever sends SYNs decides. One that is not told asks again.
    pub fn dismiss(&mut self, now: Instant, id: ConnectionId) {
        let Some(c) = self.connections.get(id).filter(|c| c.control.state == State::SynReceived) else {
            return self.abort(now, id);
        };
        let (local, remote) = (c.control.local, c.control.remote);
        let via = c.control.via;
        let numbers = (c.outbound.sender.seq(c.outbound.sender.next()), c.inbound.receiver.start() + 1);
        let RouteConfig { mtu, protocol, .. } = *self.connections.routes[c.outbound.path.route()].config();
        let envelope = Envelope { protocol, ..envelope_of(local, remote, &c.control.config) };
        let (network, ports) = (&mut self.connections.network, (local.1, remote.1));
        if let Ok(packet) = reply::refusal(now, network, &envelope, mtu, ports, numbers) {
            self.replies.queue(now, &mut self.connections, (remote.0, via), packet);
        }
        self.connections.with(now, id, |c, _| c.control.finish(CloseReason::Aborted));
    }

    pub(super) fn note_unknown(&mut self, local: AddressPort, remote: AddressPort, tcp: &Tcp) {
        let is_answer = tcp.flags.has(Flags::SYN);
        // A reset tells its receiver everything; what asks for a connection is nobody's yet.
        let is_told = self.config.tells_unknown && tcp.flags.has(Flags::ACK) && !tcp.flags.has(Flags::RST);
        if is_told && self.unknown.len() < REPLIES_MAX {
            let answers_syn = is_answer.then_some(tcp.ack);
            self.unknown.push_back(UnknownSegment { from: remote.into(), to: local.into(), answers_syn });
        }
    }
}
