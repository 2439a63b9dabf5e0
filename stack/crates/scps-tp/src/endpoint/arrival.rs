//! Who gets a packet: a connection by its addresses, by its compression identifier or by what a report quotes; a listener; or
//! nobody, and then a reset answers.

use super::{Endpoint, Trust, REPLIES_MAX};
use crate::ack;
use crate::event::{CloseReason, DropReason};
use crate::input::Verdict;
use crate::reply;
use crate::state::State;
use scps_net::{Envelope, Refusal, Report, ReportKind};
use scps_types::Instant;
use scps_wire::compressed::Compressed;
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp, Verify};
use std::net::Ipv4Addr;

impl Endpoint {
    pub(super) fn dispatch(&mut self, now: Instant, packet: &[u8], trust: Trust) -> Result<(), DropReason> {
        // Kept for its memory: what SP decrypts is written there.
        let mut opened = std::mem::take(&mut self.opened);
        let result = self.dispatch_into(now, packet, trust, &mut opened);
        self.opened = opened;
        result
    }

    fn dispatch_into(
        &mut self,
        now: Instant,
        packet: &[u8],
        trust: Trust,
        opened: &mut Vec<u8>,
    ) -> Result<(), DropReason> {
        let before = self.network.opened();
        let (envelope, payload) = self.network.unwrap(now, packet, opened)?;
        if self.network.opened() > before {
            self.vouched = Some(envelope.src);
        }
        if !self.config.addresses.is_empty() && !self.config.addresses.contains(&envelope.dst.into()) {
            return Err(DropReason::NotOurs);
        }
        match envelope.protocol {
            protocol::TCP | protocol::SCPS_STANDALONE => self.dispatch_tcp(now, &envelope, payload, trust),
            protocol::SCPS_COMPRESSED => self.dispatch_compressed(now, &envelope, payload),
            _ => self.dispatch_report(now, &envelope, payload),
        }
    }

    fn dispatch_tcp(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        payload: &[u8],
        trust: Trust,
    ) -> Result<(), DropReason> {
        let verify = match trust {
            Trust::Check => Verify::Checksum(&[protocol::TCP, protocol::SCPS_STANDALONE]),
            Trust::Verified => Verify::Trusted,
        };
        let (tcp, data) =
            Tcp::parse(payload, envelope.src, envelope.dst, verify).map_err(|_| DropReason::BadSegment)?;
        let (local, remote) = ((envelope.dst, tcp.dst_port), (envelope.src, tcp.src_port));
        let known = self.table.between(local, remote);
        if let Some(index) = known {
            // RFC 1122 §4.2.2.13: a new SYN beyond the old connection's numbers ends TIME-WAIT.
            let is_reopening = tcp.flags.has(Flags::SYN)
                && !tcp.flags.has(Flags::ACK)
                && self
                    .table
                    .at(index)
                    .is_some_and(|c| c.state == State::TimeWait && c.rcv_position(tcp.seq) > c.rcv_nxt() as i64);
            if !is_reopening {
                return self.deliver(now, index, envelope, &tcp, data);
            }
            if let Some(c) = self.table.at_mut(index) {
                c.finish(CloseReason::Finished);
            }
            self.settle(index);
        }
        if tcp.flags.has(Flags::RST) {
            // Whoever was asked does not have the connection, or not any more.
            self.questions.end(local, remote);
        }
        let places = [local, (Ipv4Addr::UNSPECIFIED, local.1), (Ipv4Addr::UNSPECIFIED, 0)];
        let listener = places.iter().find_map(|place| self.listeners.get(place));
        let result = match listener.map(|l| (l.id, l.config.clone(), l.asks)) {
            Some(listener) => self.on_listener(now, (local, remote), listener, envelope, &tcp, data),
            None => Err(None),
        };
        result.map_err(|reason| {
            reason.unwrap_or_else(|| {
                if self.config.resets_unknown {
                    self.reply_reset(now, envelope, &tcp, data.len());
                    self.note_unknown(local, remote, &tcp);
                }
                DropReason::NoConnection
            })
        })
    }

    pub(super) fn deliver(
        &mut self,
        now: Instant,
        index: u32,
        envelope: &Envelope,
        tcp: &Tcp,
        data: &[u8],
    ) -> Result<(), DropReason> {
        let Some(c) = self.table.at(index) else {
            return Err(DropReason::NoConnection);
        };
        if c.vouches_for(tcp, data.len()) {
            self.vouched = Some(envelope.src);
        }
        let size = self.joined.unwrap_or(data.len()).max(1);
        let count = data.len().div_ceil(size);
        let mut verdict = Verdict::Accepted;
        if count > 1 && c.answers_apart(tcp) {
            for (i, part) in data.chunks(size).enumerate() {
                verdict = self.hand_over(now, index, &ack::cut(tcp, i * size, i + 1 == count), part, 1);
            }
        } else {
            verdict = self.hand_over(now, index, tcp, data, u16::try_from(count).unwrap_or(u16::MAX));
        }
        let is_whole = envelope.protocol != protocol::SCPS_COMPRESSED;
        if let (Verdict::Dropped(_), true, Some(c)) = (verdict, is_whole, self.table.at_mut(index)) {
            // Who sends this may have forgotten the connection, and with it the identifier.
            c.probing.want_whole();
        }
        self.settle(index);
        match verdict {
            Verdict::Accepted => Ok(()),
            Verdict::Dropped(reason) => Err(reason),
            Verdict::ResetReply(reason) => {
                self.reply_reset(now, envelope, tcp, data.len());
                Err(reason)
            }
        }
    }

    /// Gives a connection a segment, after drawing up what it owes for those before: that answer says what was known then.
    /// `segments` is how many were joined to it.
    fn hand_over(&mut self, now: Instant, index: u32, tcp: &Tcp, data: &[u8], segments: u16) -> Verdict {
        let Some(c) = self.table.at_mut(index) else {
            return Verdict::Dropped(DropReason::NoConnection);
        };
        let is_shared = self.is_in_batch && c.ack.is_shareable() && c.is_orderly(tcp);
        if c.ack.is_due() && !is_shared && (!data.is_empty() || tcp.flags.has(Flags::FIN)) {
            self.schedule.unblock(now);
            if !self.schedule.is_blocked(c.path.route()) {
                self.owed.settle(now, c, &mut self.routes[c.path.route().0], &mut self.network);
            }
        }
        let route = c.path.route();
        let was_available = self.routes[route.0].is_available();
        let verdict = c.on_segment(now, &mut self.routes[route.0], tcp, data, segments);
        if self.routes[route.0].is_available() != was_available {
            self.tell_connections(now, route, Some(index));
        }
        verdict
    }

    fn dispatch_compressed(&mut self, now: Instant, envelope: &Envelope, payload: &[u8]) -> Result<(), DropReason> {
        let (header, data) =
            Compressed::parse(payload, envelope.src, envelope.dst).map_err(|_| DropReason::BadSegment)?;
        let found = self.table.compressed(envelope.src, envelope.dst, header.connection_id);
        let index = found.ok_or(DropReason::UnknownConnectionId)?;
        let Some(c) = self.table.at_mut(index) else {
            return Err(DropReason::UnknownConnectionId);
        };
        if !crate::compression::is_proven(&header, !data.is_empty()) {
            return Err(DropReason::Unproven);
        }
        let tcp = crate::compression::decompress(&header, &c.decompression_context());
        self.deliver(now, index, envelope, &tcp, data)
    }

    fn dispatch_report(&mut self, now: Instant, envelope: &Envelope, message: &[u8]) -> Result<(), DropReason> {
        let (kind, quote) = match self.network.report(envelope, message)? {
            Report::Segment { kind, quote } => (kind, quote),
            Report::Corruption => {
                self.routes.iter_mut().for_each(|route| route.on_corruption_experienced(now));
                self.signals.corruption += 1;
                return Ok(());
            }
            Report::Available { dst } => {
                self.set_route_available(now, self.route_to(dst), true);
                return Ok(());
            }
        };
        let index = self.table.between(quote.src, quote.dst).ok_or(DropReason::ForeignReport)?;
        let Some(c) = self.table.at_mut(index) else {
            return Err(DropReason::ForeignReport);
        };
        // RFC 5927 §4.1: the quoted sequence number must be of something in flight.
        let quoted = c.sender.position(quote.seq);
        if !c.sender.is_under_way(quoted) {
            return Err(DropReason::ForeignReport);
        }
        match kind {
            ReportKind::TooBig { mtu } => self.on_too_big(now, index, mtu),
            // A synchronised connection outlives unreachability (RFC 5927 §5.2, RFC 1122 §4.2.3.9).
            ReportKind::Unreachable { code } if c.state == State::SynSent => {
                c.finish(CloseReason::Unreachable { code });
            }
            ReportKind::Unreachable { .. } => {}
            ReportKind::Congestion => {
                let mss = c.full_segment(&self.routes[c.path.route().0]);
                c.path.on_source_quench(mss);
                self.signals.congestion += 1;
            }
            ReportKind::Outage => {
                let route = c.path.route();
                self.set_route_available(now, route, false);
                self.signals.outage += 1;
            }
        }
        self.settle(index);
        Ok(())
    }

    /// A packet of a connection was too big: it sends in smaller pieces, and so do the others to the same destination.
    fn on_too_big(&mut self, now: Instant, index: u32, mtu: u16) {
        let Some((dst, route)) = self.table.at(index).map(|c| (c.remote.0, c.path.route().0)) else { return };
        let Some((path, is_news)) = self.path_mtus.on_report(now, dst, mtu, self.routes[route].config().mtu) else {
            return;
        };
        let concerned = if is_news { self.table.places() } else { index..index + 1 };
        for place in concerned {
            let Some(c) = self.table.at_mut(place).filter(|c| c.remote.0 == dst) else { continue };
            c.path.set_mtu(path);
            c.on_mtu_lowered(now, &self.routes[c.path.route().0]);
            self.settle(place);
        }
    }

    fn reply_reset(&mut self, now: Instant, envelope: &Envelope, tcp: &Tcp, data_len: usize) {
        if tcp.flags.has(Flags::RST) || self.replies.len() >= REPLIES_MAX {
            return;
        }
        let route = self.route_to(envelope.src).0;
        let mtu = self.routes[route].config().mtu;
        let Ok(packet) = reply::reset(now, &mut self.network, envelope, mtu, tcp, data_len) else { return };
        self.queue_reply(now, envelope.src, packet);
    }

    /// Lets a packet leave that belongs to no connection, if there are not too many and the rate has room for it.
    pub(super) fn queue_reply(&mut self, now: Instant, dst: Ipv4Addr, packet: Vec<u8>) {
        let id = self.route_to(dst);
        let others_wait = self.schedule.is_blocked(id);
        let route = &mut self.routes[id.0];
        let has_room = self.replies.len() < REPLIES_MAX && route.has_room_for_reply(packet.len(), now);
        if has_room && route.charge(packet.len(), now, others_wait) {
            self.replies.push_back((dst, packet));
        }
    }
}

impl From<Refusal> for DropReason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::BadHeader => DropReason::BadHeader,
            Refusal::Fragment => DropReason::Fragment,
            Refusal::BadReport => DropReason::BadSegment,
            Refusal::Foreign => DropReason::UnknownProtocol,
            #[cfg(feature = "sp")]
            Refusal::Unprotected(_) => DropReason::Unprotected,
        }
    }
}
