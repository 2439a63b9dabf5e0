//! UDP headers (RFC 768), for reading encapsulated captures.

use crate::{be16, Malformed};

/// Port of SCPS UDP encapsulation (scps-tp §11).
pub const SCPS_PORT: u16 = 7168;
/// Second encapsulation port, used when the first is busy.
pub const SCPS_PORT_ALTERNATE: u16 = 7167;
/// Octets of a UDP header.
pub const HEADER_LEN: usize = 8;

/// A UDP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Udp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl Udp {
    /// Reads a header and returns it with the payload its length field delimits. The checksum is the carrier's concern.
    pub fn parse(datagram: &[u8]) -> Result<(Udp, &[u8]), Malformed> {
        if datagram.len() < HEADER_LEN {
            return Err(Malformed::Truncated);
        }
        let len = usize::from(be16(datagram, 4));
        if len < HEADER_LEN {
            return Err(Malformed::BadLength);
        }
        if len > datagram.len() {
            return Err(Malformed::Truncated);
        }
        let header = Udp { src_port: be16(datagram, 0), dst_port: be16(datagram, 2) };
        Ok((header, &datagram[HEADER_LEN..len]))
    }

    /// True if either port says the payload is an encapsulated SCPS packet.
    pub fn is_scps(&self) -> bool {
        [self.src_port, self.dst_port].iter().any(|p| [SCPS_PORT, SCPS_PORT_ALTERNATE].contains(p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_field_delimits_the_payload() {
        let d = [0x1c, 0x00, 0x00, 0x01, 0, 10, 0, 0, 0xaa, 0xbb, 0xcc];
        let (udp, payload) = Udp::parse(&d).unwrap();
        assert!(udp.is_scps());
        assert_eq!(payload, &[0xaa, 0xbb]);
        assert_eq!(Udp::parse(&d[..9]), Err(Malformed::Truncated));
        assert_eq!(Udp::parse(&[0, 1, 0, 2, 0, 7, 0, 0]), Err(Malformed::BadLength));
    }
}
