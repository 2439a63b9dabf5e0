//! Segments of a batch that follow the one before them: what their headers tell is known already, but for the number (header
//! prediction, Jacobson 1990).

use super::arrival::Reader;
use super::{Endpoint, Trust};
use crate::inbound::Payload;
use scps_wire::checksum::Checksum;
use scps_wire::protocol;
use scps_wire::tcp::Flags;
use scps_wire::{Instant, SeqNum};
use std::net::Ipv4Addr;

const IP_LEN: usize = 20;
/// Both headers, with timestamps or without options.
const HEADERS: [usize; 2] = [IP_LEN + 20, IP_LEN + 32];
/// The only options that a follower may have (RFC 7323, appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// What the next segment begins with, if it follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Following {
    place: u32,
    headers: [u8; HEADERS[1]],
    len: usize,
    seq: SeqNum,
}

fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

/// Octets of both headers of a packet that may be followed or follow: a segment with data, an acknowledgement and no news but that.
fn plain_headers(packet: &[u8]) -> Option<usize> {
    let len = IP_LEN + usize::from(*packet.get(IP_LEN + 12)? >> 4) * 4;
    let is_plain = packet[0] == 0x45
        && usize::from(u16::from_be_bytes([packet[2], packet[3]])) == packet.len()
        && packet[9] == protocol::TCP
        && Flags(packet[IP_LEN + 13]).without(Flags::PSH) == Flags::ACK
        && (len == HEADERS[0] || len == HEADERS[1] && packet.get(40..44) == Some(&TIMESTAMPS));
    (is_plain && packet.len() > len).then_some(len)
}

impl Endpoint {
    /// What would follow a packet that was used.
    pub(super) fn after(&self, packet: &[u8]) -> Option<Following> {
        let len = plain_headers(packet).filter(|_| self.connections.network.is_plain())?;
        let end = |address: usize, port: usize| {
            (Ipv4Addr::from(word(packet, address)), u16::from_be_bytes([packet[port], packet[port + 1]]))
        };
        let place = self.connections.table.between(end(16, IP_LEN + 2), end(12, IP_LEN))?;
        let mut headers = [0; HEADERS[1]];
        headers[..len].copy_from_slice(&packet[..len]);
        let seq = SeqNum(word(packet, IP_LEN + 4)) + (packet.len() - len) as u32;
        Some(Following { place, headers, len, seq })
    }

    /// Takes a packet that follows; false if it does not, and it is handled as any.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        packet: &[u8],
        trust: Trust,
        following: &mut Following,
        reader: Reader<'_>,
    ) -> bool {
        let Following { place, headers, len, seq } = following;
        let is_same = |from: usize, to: usize| packet[from..to] == headers[from..to];
        // Between these are lengths, numbers and sums, of octet 33 only PSH.
        let follows = plain_headers(packet) == Some(*len)
            && SeqNum(word(packet, IP_LEN + 4)) == *seq
            && is_same(1, 2)
            && is_same(6, 10)
            && is_same(12, IP_LEN + 4)
            && is_same(IP_LEN + 8, IP_LEN + 13)
            && is_same(IP_LEN + 14, IP_LEN + 16)
            && is_same(IP_LEN + 18, *len);
        if !follows || !is_intact(packet, trust) {
            return false;
        }
        let (ack, window) = (SeqNum(word(packet, IP_LEN + 8)), u16::from_be_bytes([packet[34], packet[35]]));
        let Some(c) = self.connections.table.at_mut(*place) else { return false };
        let id = c.control.id;
        let payload = Payload { data: &packet[*len..], segments: 1, reader: &mut |octets| reader(id, octets) };
        let is_taken = c.on_following(now, *seq, ack, window, payload);
        if is_taken {
            *seq += (packet.len() - *len) as u32;
        }
        is_taken
    }

    /// No more packets follow.
    pub(super) fn end_following(&mut self, following: Option<Following>) {
        if let Some(Following { place, .. }) = following {
            self.connections.settle(place);
        }
    }
}

/// True if both checksums hold, as far as they are to be tested.
fn is_intact(packet: &[u8], trust: Trust) -> bool {
    let (ip, segment) = packet.split_at(IP_LEN);
    let mut header = Checksum::new();
    header.add(ip);
    let (src, dst) = (Ipv4Addr::from(word(ip, 12)), Ipv4Addr::from(word(ip, 16)));
    let mut sum = Checksum::pseudo_header(src, dst, protocol::TCP, segment.len() as u16);
    header.verifies()
        && (trust != Trust::Check || {
            sum.add(segment);
            sum.verifies()
        })
}
