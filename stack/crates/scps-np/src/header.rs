//! The header (scps-np §1): reading it from any octets, writing it in the shortest form, and what a router changes in it.

use crate::address::{Address, Addresses};
use crate::profile::{Dialect, FirstOctet};
use scps_wire::checksum::Checksum;
use scps_wire::Precedence;

/// Octets of the longest datagram, header included: the length field has 13 bits.
pub const DATAGRAM_MAX: usize = 8191;
/// Octets of the longest header: control field, two IPv6 addresses, both QoS octets, hop count, timestamp, checksum.
pub const HEADER_MAX: usize = 46;
/// Octets before any optional field.
const FIXED_LEN: usize = 3;

// Control octet 2, beside the TPID.
const C1: u8 = 0x08;
const DA: u8 = 0x02;
const CK: u8 = 0x01;
// Control octet 3.
const C2: u8 = 0x80;
const SA: u8 = 0x40;
const HC: u8 = 0x20;
const TSF_SHIFT: u8 = 3;
const BQ: u8 = 0x04;
const XA: u8 = 0x02;
const RESERVED_3: u8 = 0x01;
// Control octet 4.
const V6: u8 = 0x40;
const EQ: u8 = 0x20;
const ID: u8 = 0x10;
/// The reserved bits, and the one that would announce a fifth control octet.
const RESERVED_4: u8 = 0x8f;

/// The upper protocols (scps-np §1.2).
pub mod tpid {
    /// SCMP.
    pub const SCMP: u8 = 1;
    /// SCPS-TP with a compressed header.
    pub const SCPS_COMPRESSED: u8 = 4;
    /// UDP.
    pub const UDP: u8 = 5;
    /// SCPS-TP and TCP.
    pub const SCPS_TP: u8 = 6;
    /// SCPS-SP.
    pub const SCPS_SP: u8 = 8;
}

/// A time in a header; its epoch is the network's (scps-np §1.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timestamp {
    /// Format 01: seconds modulo 2^24. Only the low 24 bits are written.
    Seconds(u32),
    /// Format 10: 24 bits whose meaning nobody defined.
    Undefined(u32),
    /// Format 11: milliseconds modulo 2^32.
    Milliseconds(u32),
}

impl Timestamp {
    const fn format(self) -> u8 {
        match self {
            Timestamp::Seconds(_) => 1,
            Timestamp::Undefined(_) => 2,
            Timestamp::Milliseconds(_) => 3,
        }
    }

    const fn octets_len(format: u8) -> usize {
        match format {
            0 => 0,
            3 => 4,
            _ => 3,
        }
    }
}

/// How a packet is to be routed (scps-np §1.7). Codes that nobody defined are normal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Routing {
    /// Code 00.
    #[default]
    Normal,
    /// Code 01: a copy to every link.
    Flood,
    /// Codes 10 and 11, carried and treated as normal.
    Reserved(bool),
}

/// The basic QoS octet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BasicQos {
    /// Bits 7 to 4.
    pub precedence: Precedence,
    /// Bits 3 and 2.
    pub routing: Routing,
    /// Bits 1 and 0, the upper protocol's own: 0 to 3.
    pub specific: u8,
}

impl BasicQos {
    /// The octet of a precedence alone.
    pub fn of(precedence: Precedence) -> Self {
        BasicQos { precedence, ..BasicQos::default() }
    }

    const fn from_octet(octet: u8) -> Self {
        let routing = match octet >> 2 & 3 {
            0 => Routing::Normal,
            1 => Routing::Flood,
            code => Routing::Reserved(code == 3),
        };
        BasicQos { precedence: Precedence::from_low_bits(octet >> 4), routing, specific: octet & 3 }
    }

    const fn to_octet(self) -> u8 {
        let routing = match self.routing {
            Routing::Normal => 0,
            Routing::Flood => 1,
            Routing::Reserved(upper) => 2 + upper as u8,
        };
        self.precedence.level() << 4 | routing << 2 | self.specific & 3
    }
}

/// The expanded QoS octet: what IPv4 would have in its type of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExpandedQos {
    /// Bits 7 to 5: 0 to 7.
    pub ip_precedence: u8,
    /// Bits 4 to 1: 0 to 15.
    pub ip_tos: u8,
}

/// A header. The length field is not part of it: it follows from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Upper protocol, 0 to 15, one of [`tpid`].
    pub tpid: u8,
    /// Addresses.
    pub addresses: Addresses,
    /// Precedence and routing; absent for the receiver's default.
    pub qos: Option<BasicQos>,
    /// Routers that may still forward it.
    pub hop_count: Option<u8>,
    /// When it was sent.
    pub timestamp: Option<Timestamp>,
    /// IP's type of service.
    pub expanded_qos: Option<ExpandedQos>,
    /// Every router on the way delivers a copy as well.
    pub intermediate_delivery: bool,
    /// Whether a checksum covers the header.
    pub checksum: bool,
}

/// Why octets are no datagram (scps-np §9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadDatagram {
    /// Shorter than its length field or its header, or a length field shorter than the header.
    #[error("bad length")]
    Length,
    /// Another profile's version, or no NP at all.
    #[error("unknown version")]
    Version,
    /// A bit is set that must not be.
    #[error("reserved bit set in control octet {0}")]
    Reserved(u8),
    /// Address bits that contradict each other.
    #[error("contradictory address form")]
    Address,
    /// The header's checksum does not verify, or is absent and required.
    #[error("bad header checksum")]
    Checksum,
}

/// A datagram is longer than NP or the route carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a datagram of {len} octets; at most {max} are carried")]
pub struct TooBig {
    /// Its octets.
    pub len: usize,
    /// The most that are carried.
    pub max: usize,
}

/// A datagram that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// What its header says.
    pub header: Header,
    /// Its octets, without what the link appended.
    pub octets: &'a [u8],
    layout: Layout,
}

/// Where the fields are that a router changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    header_len: usize,
    hop_count_at: usize,
}

impl<'a> Datagram<'a> {
    /// Reads a datagram from a frame, which may be longer than it. The checks have the order of scps-np §9.
    pub fn parse(frame: &'a [u8], dialect: Dialect) -> Result<Self, BadDatagram> {
        if frame.len() < FIXED_LEN {
            return Err(BadDatagram::Length);
        }
        let len = usize::from(u16::from_be_bytes([frame[0] & 0x1f, frame[1]]));
        if len < FIXED_LEN || len > frame.len() {
            return Err(BadDatagram::Length);
        }
        let octets = &frame[..len];
        let (header, layout) = Header::parse(octets, dialect)?;
        let verifies = if header.checksum { verifies(octets, layout, dialect) } else { !dialect.require_checksum };
        if !verifies {
            return Err(BadDatagram::Checksum);
        }
        Ok(Datagram { header, octets, layout })
    }

    /// Reads the beginning of a datagram that a control message quotes: its length field tells of more than is there, and its
    /// checksum may be of another hop, as may its profile: routers do not write a message anew that crosses a border. Returns what
    /// is there of the user data.
    pub fn parse_quote(quote: &'a [u8], dialect: Dialect) -> Result<(Header, &'a [u8]), BadDatagram> {
        let profile = match quote.first().map(|octet| FirstOctet::of(*octet)) {
            Some(Some(FirstOctet::Np(profile))) => profile,
            Some(_) => return Err(BadDatagram::Version),
            None => return Err(BadDatagram::Length),
        };
        let (header, layout) = Header::parse(quote, Dialect { profile, ..dialect })?;
        Ok((header, &quote[layout.header_len..]))
    }

    /// The octets of the header.
    pub fn header_len(&self) -> usize {
        self.layout.header_len
    }

    /// The user data.
    pub fn payload(&self) -> &'a [u8] {
        &self.octets[self.layout.header_len..]
    }
}

/// Writes a new hop count, and the checksum that goes with it, into a datagram that [`Datagram::parse`] accepted. Everything
/// else stays as it came, reserved bits too. False if it is no datagram or has no hop count.
pub fn set_hop_count(octets: &mut [u8], hop_count: u8, dialect: Dialect) -> bool {
    let Ok((header, layout)) = Header::parse(octets, dialect) else { return false };
    if header.hop_count.is_none() {
        return false;
    }
    octets[layout.hop_count_at] = hop_count;
    if header.checksum {
        let at = layout.header_len - 2;
        let field = dialect.profile.checksum_of(sum_of(&octets[..at]));
        octets[at..layout.header_len].copy_from_slice(&field.to_be_bytes());
    }
    true
}

/// The folded ones'-complement sum; an odd octet at the end counts as if a zero followed.
fn sum_of(octets: &[u8]) -> u16 {
    let mut sum = Checksum::new();
    sum.add(octets);
    sum.partial()
}

fn verifies(octets: &[u8], layout: Layout, dialect: Dialect) -> bool {
    let at = layout.header_len - 2;
    let field = u16::from_be_bytes([octets[at], octets[at + 1]]);
    let expected = dialect.profile.checksum_of(sum_of(&octets[..at]));
    field == expected || (dialect.accept_swapped_checksum && field == expected.swap_bytes())
}

/// Takes fields off the front, and fails where there is nothing left.
struct Cursor<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], BadDatagram> {
        let field = self.octets.get(self.at..self.at + n).ok_or(BadDatagram::Length)?;
        self.at += n;
        Ok(field)
    }

    fn octet(&mut self) -> Result<u8, BadDatagram> {
        Ok(self.take(1)?[0])
    }

    fn address(&mut self, len: usize) -> Result<Address, BadDatagram> {
        Address::from_octets(self.take(len)?).ok_or(BadDatagram::Address)
    }

    fn timestamp(&mut self, format: u8) -> Result<Option<Timestamp>, BadDatagram> {
        let field = self.take(Timestamp::octets_len(format))?;
        let value = field.iter().fold(0, |value, octet| value << 8 | u32::from(*octet));
        Ok(match format {
            0 => None,
            1 => Some(Timestamp::Seconds(value)),
            2 => Some(Timestamp::Undefined(value)),
            _ => Some(Timestamp::Milliseconds(value)),
        })
    }
}

impl Header {
    fn parse(octets: &[u8], dialect: Dialect) -> Result<(Header, Layout), BadDatagram> {
        let mut cursor = Cursor { octets, at: 0 };
        let fixed = cursor.take(FIXED_LEN)?;
        if fixed[0] >> 5 != dialect.profile.vpi() {
            return Err(BadDatagram::Version);
        }
        let control_2 = fixed[2];
        let control_3 = if control_2 & C1 != 0 { cursor.octet()? } else { 0 };
        if control_3 & RESERVED_3 != 0 {
            return Err(BadDatagram::Reserved(3));
        }
        let control_4 = if control_3 & C2 != 0 { cursor.octet()? } else { 0 };
        if control_4 & RESERVED_4 != 0 {
            return Err(BadDatagram::Reserved(4));
        }
        let addresses = Header::parse_addresses(&mut cursor, control_2, control_3, control_4)?;
        let has = |bit: u8| control_3 & bit != 0;
        let format = control_3 >> TSF_SHIFT & 3;
        let mut qos = None;
        if has(BQ) && !dialect.legacy_bqos_after_ts {
            qos = Some(BasicQos::from_octet(cursor.octet()?));
        }
        let hop_count_at = cursor.at;
        let hop_count = if has(HC) { Some(cursor.octet()?) } else { None };
        let timestamp = cursor.timestamp(format)?;
        if has(BQ) && dialect.legacy_bqos_after_ts {
            qos = Some(BasicQos::from_octet(cursor.octet()?));
        }
        let expanded = if control_4 & EQ != 0 { Some(cursor.octet()?) } else { None };
        let checksum = control_2 & CK != 0;
        if checksum {
            cursor.take(2)?;
        }
        let header = Header {
            tpid: control_2 >> 4,
            addresses,
            qos,
            hop_count,
            timestamp,
            expanded_qos: expanded.map(|o| ExpandedQos { ip_precedence: o >> 5, ip_tos: o >> 1 & 0x0f }),
            intermediate_delivery: control_4 & ID != 0,
            checksum,
        };
        Ok((header, Layout { header_len: cursor.at, hop_count_at }))
    }

    fn parse_addresses(cursor: &mut Cursor<'_>, two: u8, three: u8, four: u8) -> Result<Addresses, BadDatagram> {
        let (has_dst, has_src) = (two & DA != 0, three & SA != 0);
        let len = match (three & XA != 0, four & V6 != 0) {
            (false, false) => 2,
            (true, false) => 4,
            (false, true) => 16,
            (true, true) => return Err(BadDatagram::Address),
        };
        match (has_dst, has_src) {
            (false, false) => Ok(Addresses::None),
            // A source alone has no form: what is it the source of?
            (false, true) => Err(BadDatagram::Address),
            (true, false) => Ok(Addresses::Path(cursor.address(len)?)),
            (true, true) => {
                let (dst, src) = (cursor.address(len)?, cursor.address(len)?);
                Addresses::of_ends(dst, src).ok_or(BadDatagram::Address)
            }
        }
    }

    /// Control octets 2, 3 and 4; the last two are zero where none is needed.
    fn control(&self) -> (u8, u8, u8) {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let form = self.addresses.dst();
        let four = flag(matches!(form, Some(Address::V6(_))), V6)
            | flag(self.expanded_qos.is_some(), EQ)
            | flag(self.intermediate_delivery, ID);
        let three = flag(four != 0, C2)
            | flag(self.addresses.src().is_some(), SA)
            | flag(self.hop_count.is_some(), HC)
            | self.timestamp.map_or(0, Timestamp::format) << TSF_SHIFT
            | flag(self.qos.is_some(), BQ)
            | flag(matches!(form, Some(Address::Extended(_))), XA);
        let two = self.tpid << 4 | flag(three != 0, C1) | flag(form.is_some(), DA) | flag(self.checksum, CK);
        (two, three, four)
    }

    /// Octets of the header on the wire.
    pub fn emit_len(&self) -> usize {
        let (_, three, four) = self.control();
        FIXED_LEN
            + usize::from(three != 0)
            + usize::from(four != 0)
            + self.addresses.octets_len()
            + usize::from(self.qos.is_some())
            + usize::from(self.hop_count.is_some())
            + Timestamp::octets_len(self.timestamp.map_or(0, Timestamp::format))
            + usize::from(self.expanded_qos.is_some())
            + if self.checksum { 2 } else { 0 }
    }

    /// Writes the header into the front of `packet`, whose remaining octets are the user data. Nothing is written if the whole
    /// is longer than [`DATAGRAM_MAX`] or `mtu`.
    ///
    /// # Panics
    /// If `packet` is shorter than [`Header::emit_len`]: the caller sized it.
    pub fn emit(&self, dialect: Dialect, mtu: usize, packet: &mut [u8]) -> Result<(), TooBig> {
        let (len, max) = (packet.len(), mtu.min(DATAGRAM_MAX));
        if len > max {
            return Err(TooBig { len, max });
        }
        let (header, _) = packet.split_at_mut(self.emit_len());
        let (two, three, four) = self.control();
        let [high, low] = (len as u16).to_be_bytes();
        let mut rest = put(header, &[dialect.profile.vpi() << 5 | high, low, two]);
        for control in [three, four].into_iter().filter(|control| *control != 0) {
            rest = put(rest, &[control]);
        }
        for address in [self.addresses.dst(), self.addresses.src()].into_iter().flatten() {
            rest = address.emit(rest);
        }
        let qos = self.qos.map(BasicQos::to_octet);
        if !dialect.legacy_bqos_after_ts {
            rest = put(rest, qos.as_slice());
        }
        rest = put(rest, self.hop_count.as_slice());
        rest = match self.timestamp {
            None => rest,
            Some(Timestamp::Seconds(t) | Timestamp::Undefined(t)) => put(rest, &t.to_be_bytes()[1..]),
            Some(Timestamp::Milliseconds(t)) => put(rest, &t.to_be_bytes()),
        };
        if dialect.legacy_bqos_after_ts {
            rest = put(rest, qos.as_slice());
        }
        if let Some(qos) = self.expanded_qos {
            put(rest, &[qos.ip_precedence << 5 | (qos.ip_tos & 0x0f) << 1]);
        }
        if self.checksum {
            let (covered, field) = header.split_at_mut(header.len() - 2);
            field.copy_from_slice(&dialect.profile.checksum_of(sum_of(covered)).to_be_bytes());
        }
        Ok(())
    }
}

/// Writes a field into the front of `out` and returns what is behind it.
fn put<'a>(out: &'a mut [u8], field: &[u8]) -> &'a mut [u8] {
    let (here, rest) = out.split_at_mut(field.len());
    here.copy_from_slice(field);
    rest
}
