//! NP with SCMP (scps-np), as an end system speaks them.

use super::{Carriage, Envelope, Layer, Quote, Quoted, Refusal, Report, ReportKind, Services, TooBig};
use scps_np::scmp::{BadMessage, Message, Restored, Unreachable};
use scps_np::{tpid, BasicQos, Datagram, Dialect, Header, Tables, DATAGRAM_MAX};
use scps_wire::protocol;
use scps_wire::Precedence;
use std::net::Ipv4Addr;

/// Settings of NP on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NpConfig {
    /// How headers are written.
    pub dialect: Dialect,
    /// Addresses and paths.
    pub tables: Tables,
    /// Routers that may forward a datagram; `None` leaves the count out (scps-np §8: 10).
    pub hop_count: Option<u8>,
    /// Whether headers have a checksum.
    pub checksum: bool,
    /// Precedence of what has none of its own. Other than 0 it is always told, for without the octet the receiver's default
    /// counts (scps-np §7).
    pub default_precedence: Precedence,
    /// Number of SCPS-TP in its own checksum: 6, or 106 for the stand-alone reference (scps-np §1.2).
    pub transport: u8,
    /// Routers whose reports of corruption are believed. Those quote nothing, and they make losses harmless for a while: a
    /// forged one would turn congestion control off (scps-np §10).
    pub believed: Vec<Ipv4Addr>,
}

impl NpConfig {
    /// The defaults of scps-np §8 with these tables.
    pub fn with_tables(tables: Tables) -> Self {
        NpConfig {
            dialect: Dialect::default(),
            tables,
            hop_count: Some(10),
            checksum: true,
            default_precedence: Precedence::LOWEST,
            transport: protocol::TCP,
            believed: Vec::new(),
        }
    }
}

/// Least MTU taken from SCMP: that of IPv4. NP has none of its own.
const MTU_MIN: u16 = 68;

#[derive(Clone, Debug)]
pub(crate) struct NpLayer {
    config: NpConfig,
}

impl NpLayer {
    pub(crate) fn new(config: NpConfig) -> Self {
        NpLayer { config }
    }

    fn header(&self, envelope: &Envelope) -> Header {
        let default = self.config.default_precedence;
        let told = envelope.precedence.or((default != Precedence::LOWEST).then_some(default));
        Header {
            tpid: match envelope.protocol {
                protocol::ICMP => tpid::SCMP,
                protocol::SCPS_COMPRESSED => tpid::SCPS_COMPRESSED,
                protocol::UDP => tpid::UDP,
                protocol::SCPS_SP => tpid::SCPS_SP,
                _ => tpid::SCPS_TP,
            },
            addresses: self.config.tables.addresses_to(envelope.src, envelope.dst),
            qos: told.map(BasicQos::of),
            hop_count: self.config.hop_count,
            checksum: self.config.checksum,
            ..Header::default()
        }
    }

    fn quote<'a>(&self, quote: &'a [u8]) -> Result<Quoted<'a>, Refusal> {
        let (header, data) = Datagram::parse_quote(quote, self.config.dialect).map_err(|_| Refusal::BadReport)?;
        let (src, dst) = self.config.tables.ends_of(header.addresses).ok_or(Refusal::Foreign)?;
        Ok(Quoted { src, dst, protocol: self.protocol(header.tpid)?, data })
    }

    /// The IP protocol that an upper protocol is.
    fn protocol(&self, upper: u8) -> Result<u8, Refusal> {
        Ok(match upper {
            tpid::SCMP => protocol::ICMP,
            tpid::SCPS_COMPRESSED => protocol::SCPS_COMPRESSED,
            tpid::UDP => protocol::UDP,
            tpid::SCPS_SP => protocol::SCPS_SP,
            tpid::SCPS_TP => self.config.transport,
            _ => return Err(Refusal::Foreign),
        })
    }
}

impl Layer for NpLayer {
    fn overhead(&self, envelope: &Envelope) -> usize {
        self.header(envelope).emit_len()
    }

    fn octets_max(&self) -> usize {
        DATAGRAM_MAX
    }

    fn wrap(&mut self, envelope: &Envelope, carriage: Carriage, packet: &mut [u8]) -> Result<(), TooBig> {
        let written = self.header(envelope).emit(self.config.dialect, usize::from(carriage.mtu), packet);
        written.map_err(|refused| TooBig { len: refused.len, max: refused.max })
    }

    fn unwrap<'a>(&self, packet: &'a [u8]) -> Result<(Envelope, &'a [u8]), Refusal> {
        let datagram = Datagram::parse(packet, self.config.dialect).map_err(|_| Refusal::BadHeader)?;
        let header = &datagram.header;
        let (src, dst) = self.config.tables.ends_of(header.addresses).ok_or(Refusal::BadHeader)?;
        let protocol = self.protocol(header.tpid)?;
        let precedence = header.qos.map(|qos| qos.precedence);
        Ok((Envelope { src, dst, protocol, precedence, dscp: 0, services: Services::NONE }, datagram.payload()))
    }

    /// Only routers of NP report.
    fn unreachable(&mut self, _: u8, _: &Quote) -> Option<Vec<u8>> {
        None
    }

    fn report<'a>(&self, envelope: &Envelope, message: &'a [u8]) -> Result<Report<Quoted<'a>>, Refusal> {
        if envelope.protocol != protocol::ICMP {
            return Err(Refusal::Foreign);
        }
        let message = Message::parse(message, self.config.dialect).map_err(|bad| match bad {
            BadMessage::Unknown => Refusal::Foreign,
            BadMessage::Truncated | BadMessage::Checksum => Refusal::BadReport,
        })?;
        let about = |kind, quote| Ok(Report::Segment { kind, quote: self.quote(quote)? });
        match message {
            Message::TooBig { mtu, quote } => about(ReportKind::TooBig { mtu: mtu.max(MTU_MIN) }, quote),
            Message::Unreachable(Unreachable::LinkOutage, quote) => about(ReportKind::Outage, quote),
            Message::Unreachable(why, quote) => {
                // scps-np §6.2: what an end system says, and what nobody lets through, is final.
                let is_soft = !matches!(why, Unreachable::Protocol | Unreachable::Port | Unreachable::Filtered);
                about(ReportKind::Unreachable { code: why.code(), is_soft }, quote)
            }
            Message::SourceQuench(quote) => about(ReportKind::Congestion, quote),
            Message::LinkAvailable(Restored::Destination(address)) => {
                let dst = self.config.tables.ip_of(address).ok_or(Refusal::Foreign)?;
                Ok(Report::Available { dst })
            }
            Message::LinkAvailable(Restored::Quote(quote)) => Ok(Report::Available { dst: self.quote(quote)?.dst }),
            Message::Corruption if self.config.believed.contains(&envelope.src) => Ok(Report::Corruption),
            // Echoes and redirects are the node's; an exhausted hop count or a bad parameter is nothing a transport repairs.
            Message::Corruption
            | Message::EchoReply(_)
            | Message::EchoRequest(_)
            | Message::Redirect { .. }
            | Message::TimeExceeded(_)
            | Message::ParameterProblem { .. } => Err(Refusal::Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use scps_np::{Address, Addresses};

    const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const TO_PEER: Envelope =
        Envelope { src: US, dst: PEER, protocol: protocol::TCP, precedence: None, dscp: 0, services: Services::NONE };
    const ROUTE: Carriage = Carriage { mtu: 1500, dont_fragment: true };

    fn layer() -> NpLayer {
        let mut tables = Tables::of(US);
        tables.add_host(US, Address::Basic(0x7290)).unwrap();
        tables.add_host(PEER, Address::Basic(0x7292)).unwrap();
        NpLayer::new(NpConfig::with_tables(tables))
    }

    fn wrapped(layer: &mut NpLayer, envelope: &Envelope, segment: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; layer.overhead(envelope)];
        packet.extend_from_slice(segment);
        layer.wrap(envelope, ROUTE, &mut packet).unwrap();
        packet
    }

    #[test]
    fn unwrap_undoes_wrap_for_every_protocol_and_precedence() {
        for protocol in [protocol::TCP, protocol::SCPS_COMPRESSED, protocol::UDP, protocol::ICMP, protocol::SCPS_SP] {
            for precedence in [None].into_iter().chain(Precedence::all().map(Some)) {
                let envelope = Envelope { protocol, precedence, ..TO_PEER };
                let packet = wrapped(&mut layer(), &envelope, b"segment");
                assert_eq!(layer().unwrap(&packet), Ok((envelope, &b"segment"[..])));
            }
        }
    }

    #[test]
    fn the_stand_alone_reference_has_a_number_of_its_own() {
        let mut layer = layer();
        layer.config.transport = protocol::SCPS_STANDALONE;
        let packet = wrapped(&mut layer, &Envelope { protocol: protocol::SCPS_STANDALONE, ..TO_PEER }, b"segment");
        assert_eq!(layer.unwrap(&packet).map(|(envelope, _)| envelope.protocol), Ok(protocol::SCPS_STANDALONE));
    }

    #[test]
    fn a_datagram_for_us_is_taken_whatever_its_hop_count() {
        let mut sender = layer();
        for hop_count in [None, Some(0), Some(1), Some(255)] {
            sender.config.hop_count = hop_count;
            assert!(layer().unwrap(&wrapped(&mut sender, &TO_PEER, b"segment")).is_ok(), "{hop_count:?}");
        }
    }

    #[test]
    fn upper_protocols_nobody_assigned_are_refused() {
        let addresses = Addresses::Basic { dst: 0x7290, src: 0x7292 };
        for tpid in (0..16).filter(|tpid| ![1, 4, 5, 6, 8].contains(tpid)) {
            let header = Header { tpid, addresses, ..Header::default() };
            let mut packet = vec![0; header.emit_len() + 20];
            header.emit(Dialect::default(), 1500, &mut packet).unwrap();
            assert_eq!(layer().unwrap(&packet), Err(Refusal::Foreign), "{tpid}");
        }
    }

    #[test]
    fn basic_addresses_that_no_table_knows_are_refused() {
        let header = Header { tpid: 6, addresses: Addresses::Basic { dst: 0x7290, src: 0x7a7a }, ..Header::default() };
        let mut packet = vec![0; header.emit_len() + 20];
        header.emit(Dialect::default(), 1500, &mut packet).unwrap();
        assert_eq!(layer().unwrap(&packet), Err(Refusal::BadHeader));
    }

    #[test]
    fn more_than_the_route_or_the_length_field_carries_is_refused() {
        let mut packet = vec![0; 1501];
        assert_eq!(layer().wrap(&TO_PEER, ROUTE, &mut packet), Err(TooBig { len: 1501, max: 1500 }));
        let wide = Carriage { mtu: u16::MAX, ..ROUTE };
        let mut packet = vec![0; 8192];
        assert_eq!(layer().wrap(&TO_PEER, wide, &mut packet), Err(TooBig { len: 8192, max: 8191 }));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = layer().unwrap(&octets);
            let control = Envelope { protocol: protocol::ICMP, ..TO_PEER };
            let _ = layer().report(&control, &octets);
            let mut unsummed = octets;
            if let Some(field) = unsummed.get_mut(2..4) {
                field.fill(0);
                let _ = layer().report(&control, &unsummed);
            }
        }
    }
}
