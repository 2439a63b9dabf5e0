//! IPv4 with ICMP (RFC 791, RFC 792, RFC 1191).

use super::{Carriage, Envelope, Layer, Quote, Quoted, Refusal, Report, ReportKind, Services, TooBig};
use scps_wire::icmp::{self, IcmpError, IcmpKind};
use scps_wire::ipv4::{self, Ipv4};
use scps_wire::protocol;

/// Least MTU taken from ICMP (RFC 791: every hop forwards 68 octets; RFC 5927 §7.2 advises a floor of 576, which would lock
/// out links the lab uses with an MTU of 102).
const MTU_MIN: u16 = 68;

#[derive(Clone, Debug)]
pub(crate) struct Ipv4Layer {
    last_id: u16,
}

impl Ipv4Layer {
    pub(crate) fn new(last_id: u16) -> Self {
        Ipv4Layer { last_id }
    }
}

impl Layer for Ipv4Layer {
    fn overhead(&self, _: &Envelope) -> usize {
        ipv4::HEADER_LEN
    }

    fn octets_max(&self) -> usize {
        usize::from(u16::MAX)
    }

    /// A packet longer than the route's MTU leaves all the same: whoever cannot forward it whole cuts it or tells so.
    fn wrap(&mut self, envelope: &Envelope, carriage: Carriage, packet: &mut [u8]) -> Result<(), TooBig> {
        let (len, max) = (packet.len(), self.octets_max());
        if len > max {
            return Err(TooBig { len, max });
        }
        self.last_id = self.last_id.wrapping_add(1);
        Ipv4 {
            src: envelope.src,
            dst: envelope.dst,
            protocol: envelope.protocol,
            // The ECN field beneath stays zero: the transport does not speak it.
            tos: envelope.dscp << 2,
            ttl: ipv4::DEFAULT_TTL,
            id: self.last_id,
            dont_fragment: carriage.dont_fragment,
            is_fragment: false,
            payload_len: (len - ipv4::HEADER_LEN) as u16,
        }
        .emit(packet);
        Ok(())
    }

    fn unwrap<'a>(&self, packet: &'a [u8]) -> Result<(Envelope, &'a [u8]), Refusal> {
        let (header, payload) = Ipv4::parse(packet).map_err(|_| Refusal::BadHeader)?;
        if header.is_fragment {
            return Err(Refusal::Fragment);
        }
        Ok((
            Envelope {
                src: header.src,
                dst: header.dst,
                protocol: header.protocol,
                precedence: None,
                dscp: header.tos >> 2,
                services: Services::NONE,
            },
            payload,
        ))
    }

    fn unreachable(&mut self, code: u8, quote: &Quote) -> Option<Vec<u8>> {
        let mut packet = vec![0; ipv4::HEADER_LEN + icmp::UNREACHABLE_LEN];
        icmp::emit_unreachable(code, quote.src, quote.dst, quote.seq.0, &mut packet[ipv4::HEADER_LEN..]);
        let (src, dst) = (quote.dst.0, quote.src.0);
        let envelope =
            Envelope { src, dst, protocol: protocol::ICMP, precedence: None, dscp: 0, services: Services::NONE };
        let carriage = Carriage { mtu: u16::MAX, dont_fragment: false };
        self.wrap(&envelope, carriage, &mut packet).ok().map(|()| packet)
    }

    fn report<'a>(&self, envelope: &Envelope, message: &'a [u8]) -> Result<Report<Quoted<'a>>, Refusal> {
        if envelope.protocol != protocol::ICMP {
            return Err(Refusal::Foreign);
        }
        let error = IcmpError::parse(message).map_err(|_| Refusal::BadReport)?.ok_or(Refusal::Foreign)?;
        let kind = match error.kind {
            IcmpKind::FragmentationNeeded { mtu } => ReportKind::TooBig { mtu: mtu.max(MTU_MIN) },
            IcmpKind::Unreachable { code } => ReportKind::Unreachable { code, is_soft: false },
            // Forged too easily (RFC 6633).
            IcmpKind::SourceQuench => return Err(Refusal::Foreign),
        };
        let IcmpError { src, dst, protocol, data, .. } = error;
        Ok(Report::Segment { kind, quote: Quoted { src, dst, protocol, data } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use scps_wire::checksum::Checksum;

    const TO: Envelope = Envelope {
        src: std::net::Ipv4Addr::new(10, 0, 0, 1),
        dst: std::net::Ipv4Addr::new(10, 0, 0, 2),
        protocol: 6,
        precedence: None,
        dscp: 46,
        services: Services::NONE,
    };
    const ROUTE: Carriage = Carriage { mtu: 1500, dont_fragment: true };

    fn wrapped(layer: &mut Ipv4Layer, segment: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; layer.overhead(&TO)];
        packet.extend_from_slice(segment);
        layer.wrap(&TO, ROUTE, &mut packet).unwrap();
        packet
    }

    #[test]
    fn unwrap_undoes_wrap_and_packets_are_numbered() {
        let mut layer = Ipv4Layer::new(u16::MAX);
        let packet = wrapped(&mut layer, b"segment");
        assert_eq!(layer.unwrap(&packet), Ok((TO, &b"segment"[..])));
        assert_eq!(packet[4..6], [0, 0]);
        assert_eq!(wrapped(&mut layer, b"")[4..6], [0, 1]);
    }

    #[test]
    fn more_than_the_length_field_tells_is_refused() {
        let mut packet = vec![0; 65_536];
        assert_eq!(Ipv4Layer::new(0).wrap(&TO, ROUTE, &mut packet), Err(TooBig { len: 65_536, max: 65_535 }));
    }

    #[test]
    fn pieces_are_refused_by_name() {
        let mut packet = wrapped(&mut Ipv4Layer::new(0), b"segment");
        packet[6] = 0x20;
        packet[10..12].fill(0);
        assert_eq!(Ipv4Layer::new(0).unwrap(&packet), Err(Refusal::Fragment));
    }

    #[test]
    fn an_mtu_too_small_to_believe_is_taken_for_the_least_one() {
        let mut message = vec![3, 4, 0, 0, 0, 0, 0, 0];
        message.extend(wrapped(&mut Ipv4Layer::new(0), &[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 9]));
        let mut sum = Checksum::new();
        sum.add(&message);
        let sum = sum.finish().to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        let icmp = Envelope { protocol: protocol::ICMP, ..TO };
        let (Envelope { src, dst, protocol, .. }, data) = (TO, &message[28..]);
        let quote = Quoted { src, dst, protocol, data };
        let report = Report::Segment { kind: ReportKind::TooBig { mtu: 68 }, quote };
        assert_eq!(Ipv4Layer::new(0).report(&icmp, &message), Ok(report));
        assert_eq!(Ipv4Layer::new(0).report(&TO, &message), Err(Refusal::Foreign));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Ipv4Layer::new(0).unwrap(&octets);
            let _ = Ipv4Layer::new(0).report(&Envelope { protocol: protocol::ICMP, ..TO }, &octets);
        }
    }
}
