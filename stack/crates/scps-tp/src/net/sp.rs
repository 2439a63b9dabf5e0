//! SP between the transport and whichever layer carries it (scps-sp §1): over NP as TPID 8, over IPv4 as an IP protocol.

use super::{Carriage, Envelope, Layer, Quote, Quoted, Refusal, Unsent};
use scps_sp::{Ends, Outgoing, Recalled, Room, Services, Sp, Upper};
use scps_wire::protocol;
use scps_wire::Instant;

/// SP, and how it is carried.
#[derive(Debug)]
pub struct Protection {
    /// Associations and policy.
    pub sp: Sp,
    /// IP protocol of its PDUs where IPv4 carries them: 99, or 7 as the reference's code has it (scps-sp §1).
    pub ip_protocol: u8,
    /// Number of SCPS-TP in its own checksum: 6, or 106 for the stand-alone reference (scps-tp §1.2).
    pub transport: u8,
    /// Whether reports that quote a protected packet reach the transport. Whoever sees the packets can forge such reports.
    pub heeds_reports: bool,
}

impl Protection {
    /// SP with the numbers of today.
    pub fn new(sp: Sp) -> Self {
        Protection { sp, ip_protocol: protocol::SCPS_SP, transport: protocol::TCP, heeds_reports: true }
    }

    /// What SP makes of an envelope; `None` for what it leaves alone, such as control messages.
    fn outgoing(envelope: &Envelope, pdu_len: usize) -> Option<Outgoing> {
        let upper = match envelope.protocol {
            protocol::TCP | protocol::SCPS_STANDALONE => Upper::Tp,
            protocol::SCPS_COMPRESSED => Upper::CompressedTp,
            protocol::UDP => Upper::Udp,
            _ => return None,
        };
        Some(Outgoing { ends: ends(envelope), upper, demanded: envelope.services, pdu_len })
    }

    /// The envelope around SP's PDU.
    fn outer(&self, envelope: &Envelope) -> Envelope {
        Envelope { protocol: self.ip_protocol, services: Services::NONE, ..*envelope }
    }

    /// The most octets around a segment, SP's and the carrier's.
    pub(super) fn overhead(&self, carrier: &dyn Layer, envelope: &Envelope) -> usize {
        match Protection::outgoing(envelope, 0) {
            Some(what) => carrier.overhead(&self.outer(envelope)) + self.sp.room_max(what.ends, what.demanded),
            None => carrier.overhead(envelope),
        }
    }

    pub(super) fn room(
        &mut self,
        now: Instant,
        carrier: &dyn Layer,
        envelope: &Envelope,
        pdu_len: usize,
    ) -> Result<Room, Unsent> {
        let clear = Room { head: carrier.overhead(envelope), tail: 0 };
        let Some(what) = Protection::outgoing(envelope, pdu_len) else { return Ok(clear) };
        let room = self.sp.room(now, what).inspect_err(|reason| self.sp.count_refused(*reason))?;
        if room.is_empty() {
            return Ok(clear);
        }
        Ok(Room { head: carrier.overhead(&self.outer(envelope)) + room.head, ..room })
    }

    pub(super) fn wrap(
        &mut self,
        now: Instant,
        carrier: &mut dyn Layer,
        envelope: &Envelope,
        carriage: Carriage,
        room: Room,
        packet: &mut [u8],
    ) -> Result<(), Unsent> {
        let outer = self.outer(envelope);
        let is_sealed = match Protection::outgoing(envelope, packet.len() - room.len()) {
            Some(what) => {
                let front = if room.tail > 0 || room.head > carrier.overhead(envelope) {
                    carrier.overhead(&outer)
                } else {
                    carrier.overhead(envelope)
                };
                self.sp.seal(now, what, &mut packet[front..])?
            }
            None => false,
        };
        carrier.wrap(if is_sealed { &outer } else { envelope }, carriage, packet).map_err(Unsent::TooBig)
    }

    /// The segment that a report quotes, if it left here as the quote says: a quote in clear of what leaves protected is forged.
    pub(super) fn segment(&self, quoted: &Quoted<'_>) -> Result<Quote, Refusal> {
        let ends = Ends::v4(quoted.src, quoted.dst);
        if quoted.protocol != self.ip_protocol {
            return if self.sp.protects(ends) { Err(Refusal::Foreign) } else { quoted.segment() };
        }
        match self.sp.recall(ends, quoted.data).filter(|_| self.heeds_reports) {
            Some(Recalled { upper: Upper::Tp, begin }) => Ok(quoted.segment_of(begin)),
            // A compressed header has neither ports nor the sequence number.
            _ => Err(Refusal::Foreign),
        }
    }

    pub(crate) fn unwrap<'a>(
        &mut self,
        now: Instant,
        (outer, payload): (Envelope, &'a [u8]),
        opened: &'a mut Vec<u8>,
    ) -> Result<(Envelope, &'a [u8]), Refusal> {
        let ends = ends(&outer);
        if outer.protocol == self.ip_protocol {
            let (upper, range) = self.sp.open(now, ends, payload, opened).map_err(Refusal::Unprotected)?;
            let protocol = match upper {
                Upper::Tp => self.transport,
                Upper::CompressedTp => protocol::SCPS_COMPRESSED,
                Upper::Udp => protocol::UDP,
                // For a gateway, which this is not.
                Upper::Ip => return Err(Refusal::Foreign),
            };
            return Ok((Envelope { protocol, ..outer }, &opened[range]));
        }
        if Protection::outgoing(&outer, payload.len()).is_some() {
            self.sp.admit_clear(ends).map_err(Refusal::Unprotected)?;
        }
        Ok((outer, payload))
    }
}

fn ends(envelope: &Envelope) -> Ends {
    Ends::v4(envelope.src, envelope.dst)
}
