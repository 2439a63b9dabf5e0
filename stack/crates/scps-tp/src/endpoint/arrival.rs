//! Who gets a packet: a connection by its addresses, by its compression identifier or by what a report quotes; a listener; or
//! nobody, and then a reset answers.

use super::{Endpoint, Trust};
use crate::ack;
use crate::event::{CloseReason, DropReason};
use crate::inbound::Payload;
use crate::input::Verdict;
use crate::names::ConnectionId;
use crate::net::{Envelope, Refusal};
use crate::state::State;
use scps_wire::compressed::Compressed;
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::Instant;

/// Who may have data of a connection before it is buffered; it tells how many octets it took.
pub(super) type Reader<'a> = &'a mut dyn FnMut(ConnectionId, &[u8]) -> usize;

impl Endpoint {
    pub(super) fn dispatch(
        &mut self,
        now: Instant,
        packet: &[u8],
        trust: Trust,
        reader: Reader<'_>,
    ) -> Result<(), DropReason> {
        // Kept for its memory: what SP decrypts is written there.
        let mut opened = std::mem::take(&mut self.opened);
        let result = self.dispatch_into(now, packet, trust, &mut opened, reader);
        self.opened = opened;
        result
    }

    fn dispatch_into(
        &mut self,
        now: Instant,
        packet: &[u8],
        trust: Trust,
        opened: &mut Vec<u8>,
        reader: Reader<'_>,
    ) -> Result<(), DropReason> {
        let before = self.connections.network.opened();
        let (envelope, payload) = self.connections.network.unwrap(now, packet, opened)?;
        if self.connections.network.opened() > before {
            self.note_authentic(envelope.src);
        }
        if !self.config.addresses.is_empty() && !self.config.addresses.contains(&envelope.dst.into()) {
            return Err(DropReason::NotOurs);
        }
        match envelope.protocol {
            protocol::TCP | protocol::SCPS_STANDALONE => self.dispatch_tcp(now, &envelope, payload, trust, reader),
            protocol::SCPS_COMPRESSED => self.dispatch_compressed(now, &envelope, payload, reader),
            _ => self.connections.on_report(now, &envelope, payload),
        }
    }

    fn dispatch_tcp(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        payload: &[u8],
        trust: Trust,
        reader: Reader<'_>,
    ) -> Result<(), DropReason> {
        let verify = match trust {
            Trust::Check => Verify::Checksum(&[protocol::TCP, protocol::SCPS_STANDALONE]),
            Trust::Verified | Trust::Unsummed => Verify::Trusted,
        };
        let (tcp, data) =
            Tcp::parse(payload, envelope.src, envelope.dst, verify).map_err(|_| DropReason::BadSegment)?;
        let (local, remote) = ((envelope.dst, tcp.dst_port), (envelope.src, tcp.src_port));
        let known = self.connections.table.between(local, remote);
        if let Some(index) = known {
            // RFC 1122 §4.2.2.13: a new SYN beyond the old connection's numbers ends TIME-WAIT if somebody accepts it.
            let is_reopening = tcp.flags.has(Flags::SYN)
                && !tcp.flags.has(Flags::ACK)
                && self.listeners.at(local).is_some()
                && self.connections.table.at(index).is_some_and(|c| {
                    c.control.state == State::TimeWait
                        && c.inbound.receiver.position(tcp.seq) > c.inbound.receiver.next() as i64
                });
            if !is_reopening {
                return self.deliver(now, index, envelope, &tcp, data, reader);
            }
            self.connections.finish(index, CloseReason::Finished);
        }
        if tcp.flags.has(Flags::RST) {
            // Whoever was asked does not have the connection, or not any more.
            self.questions.end(local, remote);
        }
        let result = match self.listeners.at(local).cloned() {
            Some(listener) => self.on_listener(now, (local, remote), listener, envelope, &tcp, data),
            None => Err(None),
        };
        result.map_err(|reason| {
            reason.unwrap_or_else(|| {
                if self.config.resets_unknown {
                    self.replies.reset(now, &mut self.connections, (envelope, self.via), &tcp, data.len());
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
        reader: Reader<'_>,
    ) -> Result<(), DropReason> {
        let c = self.connections.table.at_mut(index).ok_or(DropReason::NoConnection)?;
        if self.via.is_some() && c.vouches_for(tcp, data.len()) {
            c.control.via = self.via;
        }
        let size = self.joined.unwrap_or(data.len()).max(1);
        let count = data.len().div_ceil(size);
        let mut verdict = Verdict::Accepted;
        let (id, is_in_batch) = (c.control.id, self.is_in_batch);
        let reader = &mut |octets: &[u8]| reader(id, octets);
        if count > 1 && c.answers_apart(tcp) {
            for (i, part) in data.chunks(size).enumerate() {
                let tcp = ack::cut(tcp, i * size, i + 1 == count);
                let payload = &mut Payload { data: part, segments: 1, reader };
                verdict = self.connections.on_segment(now, index, &tcp, payload, is_in_batch);
            }
        } else {
            let segments = u16::try_from(count).unwrap_or(u16::MAX);
            let payload = &mut Payload { data, segments, reader };
            verdict = self.connections.on_segment(now, index, tcp, payload, is_in_batch);
        }
        let is_whole = envelope.protocol != protocol::SCPS_COMPRESSED;
        if let (Verdict::Dropped(_), true, Some(c)) = (verdict, is_whole, self.connections.table.at_mut(index)) {
            // Who sends this may have forgotten the connection, and with it the identifier.
            c.control.probing.want_whole();
        }
        self.connections.settle(index);
        match verdict {
            Verdict::Accepted => Ok(()),
            Verdict::Dropped(reason) => Err(reason),
            Verdict::ResetReply(reason) => {
                // What is compressed may be of an older connection with this identifier, and names no ports (scps-tp §3.8). Whoever
                // hears nothing repeats itself with a full header.
                if is_whole {
                    self.replies.reset(now, &mut self.connections, (envelope, self.via), tcp, data.len());
                }
                Err(reason)
            }
        }
    }

    fn dispatch_compressed(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        payload: &[u8],
        reader: Reader<'_>,
    ) -> Result<(), DropReason> {
        let (header, data) =
            Compressed::parse(payload, envelope.src, envelope.dst).map_err(|_| DropReason::BadSegment)?;
        let found = self.connections.table.compressed(envelope.src, envelope.dst, header.connection_id);
        let index = found.ok_or(DropReason::UnknownConnectionId)?;
        let Some(c) = self.connections.table.at_mut(index) else {
            return Err(DropReason::UnknownConnectionId);
        };
        if !crate::compression::is_proven(&header, !data.is_empty()) {
            return Err(DropReason::Unproven);
        }
        let tcp = crate::compression::decompress(&header, &c.decompression_context());
        self.deliver(now, index, envelope, &tcp, data, reader)
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
