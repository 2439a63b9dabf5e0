//! The two ICMP messages a transport listens to (RFC 792, RFC 1191): destination unreachable, which a gateway also writes, and source quench.

use crate::checksum::Checksum;
use crate::ipv4::{self, Ipv4};
use crate::{be16, protocol, Malformed};
use std::net::Ipv4Addr;

/// Octets of a TCP header without options.
const TCP_HEADER_LEN: u16 = 20;

/// What an ICMP error says about a transport segment of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpError<'a> {
    /// What happened.
    pub kind: IcmpKind,
    /// Source of the quoted packet: us.
    pub src: Ipv4Addr,
    /// Its destination: the peer.
    pub dst: Ipv4Addr,
    /// Its protocol.
    pub protocol: u8,
    /// What is quoted of its data: eight octets or more.
    pub data: &'a [u8],
}

/// The messages told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpKind {
    /// Type 3, any code but 4.
    Unreachable {
        /// The code.
        code: u8,
    },
    /// Type 3 code 4 with the next hop's MTU (RFC 1191 §4).
    FragmentationNeeded {
        /// Next-hop MTU, 0 from routers older than RFC 1191.
        mtu: u16,
    },
    /// Type 4: read so that it can be ignored by name (RFC 6633).
    SourceQuench,
}

impl<'a> IcmpError<'a> {
    /// Reads an ICMP message. `Ok(None)` for messages that concern no transport.
    pub fn parse(message: &'a [u8]) -> Result<Option<Self>, Malformed> {
        if message.len() < 8 {
            return Err(Malformed::Truncated);
        }
        let mut sum = Checksum::new();
        sum.add(message);
        if !sum.verifies() {
            return Err(Malformed::BadChecksum);
        }
        let kind = match (message[0], message[1]) {
            (3, 4) => IcmpKind::FragmentationNeeded { mtu: be16(message, 6) },
            (3, code) => IcmpKind::Unreachable { code },
            (4, _) => IcmpKind::SourceQuench,
            _ => return Ok(None),
        };
        // The quote is the offending header and at least 8 octets (RFC 792), so its total length overruns the message:
        // Ipv4::parse, which insists on whole packets, does not apply.
        let quote = &message[8..];
        if quote.len() < 20 || quote[0] >> 4 != 4 {
            return Err(Malformed::Truncated);
        }
        let header_len = usize::from(quote[0] & 0x0f) * 4;
        if header_len < 20 || quote.len() < header_len + 8 {
            return Err(Malformed::Truncated);
        }
        let addr = |at: usize| Ipv4Addr::new(quote[at], quote[at + 1], quote[at + 2], quote[at + 3]);
        Ok(Some(IcmpError { kind, src: addr(12), dst: addr(16), protocol: quote[9], data: &quote[header_len..] }))
    }
}

/// Octets of [`emit_unreachable`]'s message: its header, and the quoted packet's header with eight octets behind it.
pub const UNREACHABLE_LEN: usize = 8 + ipv4::HEADER_LEN + 8;

/// Writes a "destination unreachable" with `code` about the TCP segment between `src` and `dst` that begins with `seq`. It quotes what RFC 792
/// asks for, of a header that nobody kept: the addresses, the ports and the sequence number are right.
///
/// # Panics
/// If `out` is shorter than [`UNREACHABLE_LEN`]: the caller sized it.
pub fn emit_unreachable(code: u8, src: (Ipv4Addr, u16), dst: (Ipv4Addr, u16), seq: u32, out: &mut [u8]) {
    let out = &mut out[..UNREACHABLE_LEN];
    out.fill(0);
    out[..2].copy_from_slice(&[3, code]);
    Ipv4 {
        src: src.0,
        dst: dst.0,
        protocol: protocol::TCP,
        tos: 0,
        ttl: ipv4::DEFAULT_TTL,
        id: 0,
        dont_fragment: true,
        is_fragment: false,
        payload_len: TCP_HEADER_LEN,
    }
    .emit(&mut out[8..]);
    let segment = &mut out[8 + ipv4::HEADER_LEN..];
    segment[..2].copy_from_slice(&src.1.to_be_bytes());
    segment[2..4].copy_from_slice(&dst.1.to_be_bytes());
    segment[4..].copy_from_slice(&seq.to_be_bytes());
    let mut sum = Checksum::new();
    sum.add(out);
    let sum = sum.finish().to_be_bytes();
    out[2..4].copy_from_slice(&sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn message(kind: u8, code: u8, rest: u16) -> Vec<u8> {
        let mut m = vec![kind, code, 0, 0, 0, 0];
        m.extend(rest.to_be_bytes());
        let mut quote = [0u8; 28];
        Ipv4 {
            src: [10, 0, 0, 1].into(),
            dst: [10, 0, 0, 2].into(),
            protocol: 6,
            tos: 0,
            ttl: 3,
            id: 0,
            dont_fragment: true,
            is_fragment: false,
            payload_len: 1400,
        }
        .emit(&mut quote);
        quote[20..28].copy_from_slice(&[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 9]);
        m.extend(quote);
        let mut sum = Checksum::new();
        sum.add(&m);
        let c = sum.finish().to_be_bytes();
        m[2..4].copy_from_slice(&c);
        m
    }

    #[test]
    fn reads_the_quoted_packet() {
        let m = message(3, 4, 576);
        let e = IcmpError::parse(&m).unwrap().unwrap();
        assert_eq!(e.kind, IcmpKind::FragmentationNeeded { mtu: 576 });
        assert_eq!((e.protocol, e.data), (6, &[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 9][..]));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut m = [0xff; UNREACHABLE_LEN];
        let (src, dst) = (([10, 1, 0, 1].into(), 4000), ([10, 2, 0, 1].into(), 80));
        emit_unreachable(13, src, dst, 0x0102_0304, &mut m);
        let e = IcmpError::parse(&m).unwrap().unwrap();
        assert_eq!((e.kind, e.src, e.dst), (IcmpKind::Unreachable { code: 13 }, src.0, dst.0));
        assert_eq!((e.protocol, e.data), (6, &[0x0f, 0xa0, 0, 80, 1, 2, 3, 4][..]));
    }

    #[test]
    fn other_messages_concern_nobody() {
        assert_eq!(IcmpError::parse(&message(0, 0, 0)), Ok(None));
        let mut damaged = message(3, 1, 0);
        damaged[20] ^= 4;
        assert_eq!(IcmpError::parse(&damaged), Err(Malformed::BadChecksum));
        assert_eq!(IcmpError::parse(&[3, 1]), Err(Malformed::Truncated));
    }
}
