//! The layer beneath the transport: it puts a header before a segment, takes it off again, and reads what routers report.
//!
//! A transport says for whom a segment is ([`Envelope`]) and what its route may carry ([`Carriage`]); it knows neither the
//! header nor its length. [`Network`] is one of a closed set of layers, each a file with the same five verbs: `overhead`,
//! `octets_max`, `wrap`, `unwrap`, `report`. Addresses are those of the service interface, IPv4 addresses, whatever the layer
//! writes on the wire. Features add what is beside IPv4: `np` and `sp`. Forwarding and queues are not here: a layer never sees a packet that is not its host's own. Between
//! transport and layer there may be SP (`Protection`): a segment then has [`Room`] behind it as well.

mod ipv4;
#[cfg(feature = "np")]
mod np;
#[cfg(feature = "sp")]
mod sp;

#[cfg(feature = "np")]
pub use np::NpConfig;
pub use scps_wire::{Room, Services};
#[cfg(feature = "sp")]
pub use sp::Protection;

use scps_wire::protocol;
use scps_wire::{Instant, Precedence, SeqNum};
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
    /// Differentiated-services code point, 0 to 63 (RFC 2474 §3). Only IPv4 carries it.
    pub dscp: u8,
    /// Security services that its sender demands, beyond what an association gives in any case.
    pub services: Services,
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

/// Why a packet does not leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsent {
    /// It is too long.
    #[error(transparent)]
    TooBig(#[from] TooBig),
    /// It would leave without the protection that is demanded.
    #[cfg(feature = "sp")]
    #[error(transparent)]
    Unprotected(#[from] scps_sp::Refused),
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
    /// It lacks the protection that is demanded, or it is forged, replayed, or of no known key.
    #[cfg(feature = "sp")]
    Unprotected(scps_sp::Dropped),
}

/// What a control message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report<Q = Quote> {
    /// Something happened to a segment. It may be forged: whoever heeds it looks for the segment among those in flight.
    Segment {
        /// What happened.
        kind: ReportKind,
        /// To which one.
        quote: Q,
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
    Unreachable {
        /// Which one, as ICMP numbers it.
        code: u8,
        /// It may pass: whoever is connecting tries once more.
        is_soft: bool,
    },
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

/// The packet a control message quotes, as the layer reads it; SP may have protected what it carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Quoted<'a> {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    protocol: u8,
    data: &'a [u8],
}

impl Quoted<'_> {
    /// The segment, if it is one in clear.
    fn segment(&self) -> Result<Quote, Refusal> {
        if !matches!(self.protocol, protocol::TCP | protocol::SCPS_STANDALONE) {
            return Err(Refusal::Foreign);
        }
        self.data.first_chunk().map(|begin| self.segment_of(*begin)).ok_or(Refusal::BadReport)
    }

    /// The segment of the quoted packet, which begins so.
    fn segment_of(&self, [a, b, c, d, seq @ ..]: [u8; 8]) -> Quote {
        Quote {
            src: (self.src, u16::from_be_bytes([a, b])),
            dst: (self.dst, u16::from_be_bytes([c, d])),
            seq: SeqNum(u32::from_be_bytes(seq)),
        }
    }
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

    /// A packet that tells the source of `quote` that its destination cannot be reached; `None` if the layer has no such message.
    fn unreachable(&mut self, code: u8, quote: &Quote) -> Option<Vec<u8>>;

    /// Reads what came in an envelope of no transport protocol.
    fn report<'a>(&self, envelope: &Envelope, message: &'a [u8]) -> Result<Report<Quoted<'a>>, Refusal>;
}

/// Which layer a host has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum NetworkConfig {
    /// IPv4 with ICMP.
    #[default]
    Ipv4,
    /// NP with SCMP.
    #[cfg(feature = "np")]
    Np(Box<NpConfig>),
}

/// A network layer in operation, and what protects the segments on it.
#[derive(Debug)]
pub struct Network {
    kind: Kind,
    #[cfg(feature = "sp")]
    protection: Option<Box<Protection>>,
}

#[derive(Clone, Debug)]
enum Kind {
    Ipv4(ipv4::Ipv4Layer),
    #[cfg(feature = "np")]
    Np(np::NpLayer),
}

impl Kind {
    fn layer(&self) -> &dyn Layer {
        match self {
            Kind::Ipv4(layer) => layer,
            #[cfg(feature = "np")]
            Kind::Np(layer) => layer,
        }
    }

    fn layer_mut(&mut self) -> &mut dyn Layer {
        match self {
            Kind::Ipv4(layer) => layer,
            #[cfg(feature = "np")]
            Kind::Np(layer) => layer,
        }
    }
}

impl Network {
    /// The layer of `config`. IPv4 packets are numbered from the one after `last_id`.
    pub fn new(config: &NetworkConfig, last_id: u16) -> Self {
        let kind = match config {
            NetworkConfig::Ipv4 => Kind::Ipv4(ipv4::Ipv4Layer::new(last_id)),
            #[cfg(feature = "np")]
            NetworkConfig::Np(config) => Kind::Np(np::NpLayer::new((**config).clone())),
        };
        Network {
            kind,
            #[cfg(feature = "sp")]
            protection: None,
        }
    }

    /// Puts SP between the transport and the layer.
    #[cfg(feature = "sp")]
    pub fn protect(&mut self, protection: Protection) {
        let ip_protocol = match self.kind {
            Kind::Ipv4(_) => protection.ip_protocol,
            // NP has a TPID for it, whatever IP calls it.
            #[cfg(feature = "np")]
            Kind::Np(_) => scps_wire::protocol::SCPS_SP,
        };
        self.protection = Some(Box::new(Protection { ip_protocol, ..protection }));
    }

    /// SP, if it protects the segments.
    #[cfg(feature = "sp")]
    pub fn protection(&self) -> Option<&Protection> {
        self.protection.as_deref()
    }

    /// SP, for its keys and sequence numbers.
    #[cfg(feature = "sp")]
    pub fn protection_mut(&mut self) -> Option<&mut Protection> {
        self.protection.as_deref_mut()
    }

    /// True if a segment is in clear behind a header of IPv4, where a carrier can complete its checksum and cut it.
    pub fn is_plain(&self) -> bool {
        #[cfg(feature = "sp")]
        if self.protection.is_some() {
            return false;
        }
        matches!(self.kind, Kind::Ipv4(_))
    }

    /// True if routers cut a packet that is too long for the next link, where it may be.
    pub fn routers_cut(&self) -> bool {
        matches!(self.kind, Kind::Ipv4(_))
    }

    /// The most octets that a packet has around a segment of `envelope`.
    pub fn overhead(&self, envelope: &Envelope) -> usize {
        #[cfg(feature = "sp")]
        if let Some(protection) = &self.protection {
            return protection.overhead(self.kind.layer(), envelope);
        }
        self.kind.layer().overhead(envelope)
    }

    /// Octets of the longest packet that the layer's length field can tell.
    pub fn octets_max(&self) -> usize {
        self.kind.layer().octets_max()
    }

    /// Octets that the packet has around a segment of `len` octets now.
    pub fn room(&mut self, now: Instant, envelope: &Envelope, len: usize) -> Result<Room, Unsent> {
        #[cfg(feature = "sp")]
        if let Some(protection) = &mut self.protection {
            return protection.room(now, self.kind.layer(), envelope, len);
        }
        let _ = (now, len);
        Ok(Room { head: self.kind.layer().overhead(envelope), tail: 0 })
    }

    /// Completes `packet`, in which the segment has the `room` around it that [`Network::room`] asked for at the same `now`.
    pub fn wrap(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        carriage: Carriage,
        room: Room,
        packet: &mut [u8],
    ) -> Result<(), Unsent> {
        let layer = self.kind.layer_mut();
        #[cfg(feature = "sp")]
        if let Some(protection) = &mut self.protection {
            return protection.wrap(now, layer, envelope, carriage, room, packet);
        }
        let _ = (now, room);
        Ok(layer.wrap(envelope, carriage, packet)?)
    }

    /// Packets that SP opened, and that are thus what their sender sent; 0 without SP.
    pub fn opened(&self) -> u64 {
        #[cfg(feature = "sp")]
        if let Some(protection) = &self.protection {
            return protection.sp.counters().opened;
        }
        0
    }

    /// Takes off what is around the segment, which is in `packet`, or in `opened` if it was encrypted.
    pub fn unwrap<'a>(
        &mut self,
        now: Instant,
        packet: &'a [u8],
        opened: &'a mut Vec<u8>,
    ) -> Result<(Envelope, &'a [u8]), Refusal> {
        let outer = self.kind.layer().unwrap(packet)?;
        #[cfg(feature = "sp")]
        if let Some(protection) = &mut self.protection {
            return protection.unwrap(now, outer, opened);
        }
        let _ = (now, opened);
        Ok(outer)
    }

    /// A packet that tells the source of `quote`, in the name of its destination, that this cannot be reached; `None` if that cannot be said
    /// in clear.
    pub fn unreachable(&mut self, code: u8, quote: &Quote) -> Option<Vec<u8>> {
        #[cfg(feature = "sp")]
        if self.protection.is_some() {
            return None;
        }
        self.kind.layer_mut().unreachable(code, quote)
    }

    /// Reads what came in an envelope of no transport protocol.
    pub fn report(&self, envelope: &Envelope, message: &[u8]) -> Result<Report, Refusal> {
        Ok(match self.kind.layer().report(envelope, message)? {
            Report::Segment { kind, quote } => {
                #[cfg(feature = "sp")]
                if let Some(protection) = &self.protection {
                    return Ok(Report::Segment { kind, quote: protection.segment(&quote)? });
                }
                Report::Segment { kind, quote: quote.segment()? }
            }
            Report::Corruption => Report::Corruption,
            Report::Available { dst } => Report::Available { dst },
        })
    }
}
