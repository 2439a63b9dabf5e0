//! IPv4 headers without options of our own (RFC 791 §3.1).

use crate::checksum::Checksum;
use crate::{be16, Malformed};
use std::net::Ipv4Addr;

/// Octets of the header this stack emits.
pub const HEADER_LEN: usize = 20;
/// Time to live of emitted packets (scps-tp §8).
pub const DEFAULT_TTL: u8 = 250;

/// An IPv4 header.
///
/// ```text
///  0               1               2               3
/// | ver   | ihl   | dscp      |ecn| total length                  |
/// | identification                | 0 D M | fragment offset       |
/// | ttl           | protocol      | header checksum               |
/// | source address                                                |
/// | destination address                                           |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4 {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Payload protocol.
    pub protocol: u8,
    /// Type of service octet, DSCP and ECN together.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Identification.
    pub id: u16,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// True if this is a piece of a larger packet.
    pub is_fragment: bool,
    /// Octets after the header.
    pub payload_len: u16,
}

/// Whether a header checksum of zero is taken as "not computed" (scps-tp §13.1 item 22).
const ZERO_CHECKSUM_IS_ABSENT: bool = true;

impl Ipv4 {
    /// Reads a header and returns it with the payload its length field delimits.
    pub fn parse(packet: &[u8]) -> Result<(Ipv4, &[u8]), Malformed> {
        if packet.len() < HEADER_LEN {
            return Err(Malformed::Truncated);
        }
        if packet[0] >> 4 != 4 {
            return Err(Malformed::BadVersion);
        }
        let header_len = usize::from(packet[0] & 0x0f) * 4;
        let total_len = usize::from(be16(packet, 2));
        if header_len < HEADER_LEN || total_len < header_len {
            return Err(Malformed::BadLength);
        }
        if packet.len() < total_len {
            return Err(Malformed::Truncated);
        }
        let mut sum = Checksum::new();
        sum.add(&packet[..header_len]);
        if !(sum.verifies() || (ZERO_CHECKSUM_IS_ABSENT && be16(packet, 10) == 0)) {
            return Err(Malformed::BadChecksum);
        }
        let fragment = be16(packet, 6);
        let header = Ipv4 {
            src: Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]),
            dst: Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]),
            protocol: packet[9],
            tos: packet[1],
            ttl: packet[8],
            id: be16(packet, 4),
            dont_fragment: fragment & 0x4000 != 0,
            is_fragment: fragment & 0x3fff != 0,
            payload_len: (total_len - header_len) as u16,
        };
        Ok((header, &packet[header_len..total_len]))
    }

    /// Writes the header into the first [`HEADER_LEN`] octets of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than the header: the caller sized it.
    pub fn emit(&self, out: &mut [u8]) {
        let out = &mut out[..HEADER_LEN];
        out[0] = 0x45;
        out[1] = self.tos;
        out[2..4].copy_from_slice(&(HEADER_LEN as u16).saturating_add(self.payload_len).to_be_bytes());
        out[4..6].copy_from_slice(&self.id.to_be_bytes());
        out[6..8].copy_from_slice(&if self.dont_fragment { [0x40, 0] } else { [0, 0] });
        out[8] = self.ttl;
        out[9] = self.protocol;
        out[10..12].fill(0);
        out[12..16].copy_from_slice(&self.src.octets());
        out[16..20].copy_from_slice(&self.dst.octets());
        let mut sum = Checksum::new();
        sum.add(out);
        out[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Ipv4 {
        Ipv4 {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            protocol: 6,
            tos: 0,
            ttl: DEFAULT_TTL,
            id: 7,
            dont_fragment: true,
            is_fragment: false,
            payload_len: 4,
        }
    }

    #[test]
    fn emit_then_parse_is_identity() {
        let mut packet = [0u8; 24];
        sample().emit(&mut packet);
        assert_eq!(Ipv4::parse(&packet).unwrap(), (sample(), &[0u8; 4][..]));
    }

    #[test]
    fn refuses_short_long_and_damaged_packets() {
        let mut packet = [0u8; 24];
        sample().emit(&mut packet);
        assert_eq!(Ipv4::parse(&packet[..19]), Err(Malformed::Truncated));
        assert_eq!(Ipv4::parse(&packet[..23]), Err(Malformed::Truncated));
        packet[8] ^= 1;
        assert_eq!(Ipv4::parse(&packet), Err(Malformed::BadChecksum));
        packet[0] = 0x65;
        assert_eq!(Ipv4::parse(&packet), Err(Malformed::BadVersion));
    }

    #[test]
    fn a_zero_checksum_is_taken_as_not_computed() {
        let mut packet = [0u8; 24];
        sample().emit(&mut packet);
        packet[10..12].fill(0);
        assert!(Ipv4::parse(&packet).is_ok());
    }
}
