//! TCP segments, which uncompressed SCPS-TP segments are (RFC 793 §3.1; scps-tp §1.1).

use crate::checksum::Checksum;
use crate::options::Options;
use crate::SeqNum;
use crate::{be16, be32, Malformed};
use std::fmt;
use std::net::Ipv4Addr;

/// Octets of the header without options.
pub const HEADER_LEN: usize = 20;
/// Where in it the checksum stands.
pub const CHECKSUM_AT: usize = 16;

/// The control bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer counts.
    pub const URG: Flags = Flags(0x20);

    /// True if every flag of `other` is set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The letters and order of tcpdump and packetdrill.
        for (bit, letter) in [(0x02, 'S'), (0x01, 'F'), (0x04, 'R'), (0x08, 'P'), (0x20, 'U'), (0x10, '.')] {
            if self.0 & bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

/// A segment's header.
///
/// ```text
/// | source port                   | destination port              |
/// | sequence number                                               |
/// | acknowledgement number                                        |
/// | offset| 0     |..U A P R S F  | window                        |
/// | checksum                      | urgent pointer                |
/// | options ...                                                   |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tcp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first octet, or of SYN.
    pub seq: SeqNum,
    /// Next octet expected, if ACK is set.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// Window as on the wire, unscaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: Options,
}

/// Whether the checksum is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify<'a> {
    /// Test it with these pseudo-header protocol numbers, any of which may fit.
    Checksum(&'a [u8]),
    /// The device has vouched for the content.
    Trusted,
}

impl Tcp {
    /// Reads a segment and returns its header and data.
    pub fn parse<'a>(
        segment: &'a [u8],
        src: Ipv4Addr,
        dst: Ipv4Addr,
        verify: Verify<'_>,
    ) -> Result<(Tcp, &'a [u8]), Malformed> {
        if segment.len() < HEADER_LEN {
            return Err(Malformed::Truncated);
        }
        let header_len = usize::from(segment[12] >> 4) * 4;
        if header_len < HEADER_LEN || header_len > segment.len() {
            return Err(Malformed::BadLength);
        }
        if let Verify::Checksum(protocols) = verify {
            let len = u16::try_from(segment.len()).map_err(|_| Malformed::BadLength)?;
            let mut body = Checksum::pseudo_header(src, dst, 0, len);
            body.add(segment);
            let fits = |p: &u8| {
                let mut sum = body;
                sum.add_u16(u16::from(*p));
                sum.verifies()
            };
            if !protocols.iter().any(fits) {
                return Err(Malformed::BadChecksum);
            }
        }
        let header = Tcp {
            src_port: be16(segment, 0),
            dst_port: be16(segment, 2),
            seq: SeqNum(be32(segment, 4)),
            ack: SeqNum(be32(segment, 8)),
            flags: Flags(segment[13] & 0x3f),
            window: be16(segment, 14),
            urgent: be16(segment, 18),
            options: Options::parse(&segment[HEADER_LEN..header_len]),
        };
        Ok((header, &segment[header_len..]))
    }

    /// Octets of the header with its options.
    pub fn emit_len(&self) -> usize {
        HEADER_LEN + self.options.emit_len()
    }

    /// Writes the header into the front of `segment`, whose remaining octets are the data, and sets the checksum.
    ///
    /// # Panics
    /// If `segment` is shorter than [`Tcp::emit_len`]: the caller sized it.
    pub fn emit(&self, segment: &mut [u8], src: Ipv4Addr, dst: Ipv4Addr, protocol: u8) {
        let mut sum = self.write(segment, src, dst, protocol);
        segment[16..18].fill(0);
        sum.add(segment);
        segment[16..18].copy_from_slice(&sum.finish().to_be_bytes());
    }

    /// As [`Tcp::emit`], but that the checksum field has the pseudo-header's part only: whoever carries the segment adds the rest, of
    /// each piece if it cuts the segment.
    pub fn emit_unsummed(&self, segment: &mut [u8], src: Ipv4Addr, dst: Ipv4Addr, protocol: u8) {
        let sum = self.write(segment, src, dst, protocol);
        segment[16..18].copy_from_slice(&sum.partial().to_be_bytes());
    }

    /// Writes all but the checksum, and returns the pseudo-header's part of it.
    fn write(&self, segment: &mut [u8], src: Ipv4Addr, dst: Ipv4Addr, protocol: u8) -> Checksum {
        let header_len = self.emit_len();
        segment[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        segment[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        segment[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        segment[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        segment[12] = ((header_len / 4) as u8) << 4;
        segment[13] = self.flags.0;
        segment[14..16].copy_from_slice(&self.window.to_be_bytes());
        segment[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        self.options.emit(&mut segment[HEADER_LEN..header_len]);
        Checksum::pseudo_header(src, dst, protocol, segment.len() as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{SCPS_STANDALONE, TCP};
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn sample() -> Tcp {
        Tcp {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(3),
            ack: SeqNum(4),
            flags: Flags::ACK.with(Flags::PSH),
            window: 5,
            urgent: 0,
            options: Options { record_boundary: true, ..Options::default() },
        }
    }

    #[test]
    fn emit_then_parse_is_identity() {
        let mut segment = vec![0xab; sample().emit_len() + 3];
        sample().emit(&mut segment, A, B, TCP);
        let parsed = Tcp::parse(&segment, A, B, Verify::Checksum(&[TCP])).unwrap();
        assert_eq!(parsed, (sample(), &[0xab; 3][..]));
    }

    #[test]
    fn the_pseudo_header_protocol_is_part_of_the_checksum() {
        let mut segment = vec![0; sample().emit_len()];
        sample().emit(&mut segment, A, B, SCPS_STANDALONE);
        assert_eq!(Tcp::parse(&segment, A, B, Verify::Checksum(&[TCP])), Err(Malformed::BadChecksum));
        assert!(Tcp::parse(&segment, A, B, Verify::Checksum(&[TCP, SCPS_STANDALONE])).is_ok());
        assert!(Tcp::parse(&segment, A, B, Verify::Trusted).is_ok());
    }

    #[test]
    fn the_data_offset_is_checked() {
        let mut segment = vec![0; 20];
        segment[12] = 0x40;
        assert_eq!(Tcp::parse(&segment, A, B, Verify::Trusted), Err(Malformed::BadLength));
        segment[12] = 0x60;
        assert_eq!(Tcp::parse(&segment, A, B, Verify::Trusted), Err(Malformed::BadLength));
        assert_eq!(Tcp::parse(&segment[..19], A, B, Verify::Trusted), Err(Malformed::Truncated));
    }

    #[test]
    fn flags_print_as_tcpdump_prints_them() {
        assert_eq!(Flags::SYN.with(Flags::ACK).to_string(), "S.");
        assert_eq!(Flags::FIN.with(Flags::PSH).with(Flags::ACK).to_string(), "FP.");
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Tcp::parse(&bytes, A, B, Verify::Trusted);
        }
    }
}
