//! The layer beneath the transport: it puts a header before a segment, takes it off again, and reads what routers report.
//!
//! A transport says for whom a segment is ([`Envelope`]) and what its route may carry ([`Carriage`]); it knows neither the
//! header nor its length. [`Network`] is one of a closed set of layers, each a file with the same five verbs: `overhead`,
//! `octets_max`, `wrap`, `unwrap`, `report`. Addresses are those of the service interface, IPv4 addresses, whatever the layer
//! writes on the wire. Forwarding and queues are not here: a layer never sees a packet that is not its host's own.

mod ipv4;
mod np;

pub use np::NpConfig;

use scps_types::{Precedence, SeqNum};
use std::net::Ipv4Addr;

/// For whom a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Who sends it.
    pub src: Ipv4Addr,
    /// Who gets it.
    pub dst: Ipv4Addr,
    /// What it is, as an IP protocol number.
    pub protocol: u8,
    /// How urgent it is; `None` leaves that to the layer. IPv4 does not carry it.
    pub precedence: Option<Precedence>,
}

impl Envelope {
    /// The envelope of an answer.
    #[must_use]
    pub fn answer(&self) -> Envelope {
        Envelope { src: self.dst, dst: self.src, ..*self }
    }
}

/// What a route carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carriage {
    /// Octets of the longest packet.
    pub mtu: u16,
    /// Whether routers must not cut a packet that is too long for the next link.
    pub dont_fragment: bool,
}

/// A packet is longer than its layer or its route carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a packet of {len} octets; at most {max} are carried")]
pub struct TooBig {
    /// Its octets.
    pub len: usize,
    /// The most that are carried.
    pub max: usize,
}

/// Why a packet is not for the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No good header.
    BadHeader,
    /// A piece of a packet; the stack does not reassemble.
    Fragment,
    /// A control message that does not parse.
    BadReport,
    /// Something of another protocol, or a control message that concerns no transport.
    Foreign,
}

/// What a control message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// Something happened to a segment. It may be forged: whoever heeds it looks for the segment among those in flight.
    Segment {
        /// What happened.
        kind: ReportKind,
        /// To which one.
        quote: Quote,
    },
    /// Frames are damaged somewhere on the way. The layer believes who says so.
    Corruption,
    /// A destination can be reached again.
    Available {
        /// Which one.
        dst: Ipv4Addr,
    },
}

/// What happened to a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportKind {
    /// Too long for a link, whose MTU is told.
    TooBig {
        /// MTU of that link, no less than the layer's smallest.
        mtu: u16,
    },
    /// Not delivered, for another reason.
    Unreachable,
    /// Delivered or not, it met a queue that is too long.
    Congestion,
    /// Not delivered because a link is down for a while.
    Outage,
}

/// The segment a control message quotes, as its sender sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    /// Its source and source port.
    pub src: (Ipv4Addr, u16),
    /// Its destination and destination port.
    pub dst: (Ipv4Addr, u16),
    /// Its sequence number.
    pub seq: SeqNum,
}

/// What every layer does. The trait is private: the set of layers is closed, and a transport sees none of them.
trait Layer {
    /// Octets that the header before a segment of `envelope` has.
    fn overhead(&self, envelope: &Envelope) -> usize;

    /// Octets of the longest packet that the length field can tell.
    fn octets_max(&self) -> usize;

    /// Writes the header into the first `overhead` octets of `packet`, behind which the segment is.
    fn wrap(&mut self, envelope: &Envelope, carriage: Carriage, packet: &mut [u8]) -> Result<(), TooBig>;

    /// Takes the header off.
    fn unwrap<'a>(&self, packet: &'a [u8]) -> Result<(Envelope, &'a [u8]), Refusal>;

    /// Reads what came in an envelope of no transport protocol.
    fn report(&self, envelope: &Envelope, message: &[u8]) -> Result<Report, Refusal>;
}

/// Which layer a host has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum NetworkConfig {
    /// IPv4 with ICMP.
    #[default]
    Ipv4,
    /// NP with SCMP.
    Np(Box<NpConfig>),
}

/// A network layer in operation.
#[derive(Clone, Debug)]
pub struct Network(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Ipv4(ipv4::Ipv4Layer),
    Np(np::NpLayer),
}

impl Network {
    /// The layer of `config`. IPv4 packets are numbered from the one after `last_id`.
    pub fn new(config: &NetworkConfig, last_id: u16) -> Self {
        Network(match config {
            NetworkConfig::Ipv4 => Kind::Ipv4(ipv4::Ipv4Layer::new(last_id)),
            NetworkConfig::Np(config) => Kind::Np(np::NpLayer::new((**config).clone())),
        })
    }

    fn layer(&self) -> &dyn Layer {
        match &self.0 {
            Kind::Ipv4(layer) => layer,
            Kind::Np(layer) => layer,
        }
    }

    /// Octets that the header before a segment of `envelope` has.
    pub fn overhead(&self, envelope: &Envelope) -> usize {
        self.layer().overhead(envelope)
    }

    /// Octets of the longest packet that the layer's length field can tell.
    pub fn octets_max(&self) -> usize {
        self.layer().octets_max()
    }

    /// Writes the header into the first [`Network::overhead`] octets of `packet`, behind which the segment is.
    pub fn wrap(&mut self, envelope: &Envelope, carriage: Carriage, packet: &mut [u8]) -> Result<(), TooBig> {
        match &mut self.0 {
            Kind::Ipv4(layer) => layer.wrap(envelope, carriage, packet),
            Kind::Np(layer) => layer.wrap(envelope, carriage, packet),
        }
    }

    /// Takes the header off.
    pub fn unwrap<'a>(&self, packet: &'a [u8]) -> Result<(Envelope, &'a [u8]), Refusal> {
        self.layer().unwrap(packet)
    }

    /// Reads what came in an envelope of no transport protocol.
    pub fn report(&self, envelope: &Envelope, message: &[u8]) -> Result<Report, Refusal> {
        self.layer().report(envelope, message)
    }
}
