//! SCMP, the control messages (scps-np §6): every type and code, what they carry, and of which datagrams they may speak.

use crate::address::{Address, Addresses};
use crate::header::{tpid, Datagram, Header};
use crate::profile::{Dialect, NpProfile};
use scps_wire::checksum::Checksum;

/// Most octets of a datagram that a message quotes (scps-np §6.1).
pub const QUOTE_MAX: usize = 50;
/// Octets of type, code and checksum.
const HEADER_LEN: usize = 4;

/// Why a datagram could not be delivered: the codes of type 3 but "too big", which carries more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unreachable {
    /// Code 0.
    Net = 0,
    /// Code 1.
    Host = 1,
    /// Code 2.
    Protocol = 2,
    /// Code 3.
    Port = 3,
    /// Code 7.
    UnknownHost = 7,
    /// Code 11.
    NetForQos = 11,
    /// Code 12.
    HostForQos = 12,
    /// Code 13: filtered by its administration.
    Filtered = 13,
    /// Code 14.
    PrecedenceViolation = 14,
    /// Code 15.
    PrecedenceTooLow = 15,
    /// Code 16.
    LinkOutage = 16,
}

impl Unreachable {
    /// Every code, in order.
    pub const ALL: [Unreachable; 11] = [
        Unreachable::Net,
        Unreachable::Host,
        Unreachable::Protocol,
        Unreachable::Port,
        Unreachable::UnknownHost,
        Unreachable::NetForQos,
        Unreachable::HostForQos,
        Unreachable::Filtered,
        Unreachable::PrecedenceViolation,
        Unreachable::PrecedenceTooLow,
        Unreachable::LinkOutage,
    ];

    /// The code on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    fn from_code(code: u8) -> Option<Self> {
        Unreachable::ALL.into_iter().find(|u| u.code() == code)
    }
}

/// What is available again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restored<'a> {
    /// The way to a destination.
    Destination(Address),
    /// The way a quoted datagram would have gone.
    Quote(&'a [u8]),
}

/// An identifier and a number, by which an echo finds its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo<'a> {
    /// Who asks.
    pub id: u16,
    /// Which request.
    pub seq: u16,
    /// What comes back.
    pub data: &'a [u8],
}

/// A message. Quotes are the first octets of the datagram it speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Type 0.
    EchoReply(Echo<'a>),
    /// Type 3, any code but 4.
    Unreachable(Unreachable, &'a [u8]),
    /// Type 3 code 4.
    TooBig {
        /// Of the next hop.
        mtu: u16,
        /// The datagram.
        quote: &'a [u8],
    },
    /// Type 4.
    SourceQuench(&'a [u8]),
    /// Type 5 code 1, or 3 for one quality of service.
    Redirect {
        /// Whether it is for this quality of service only.
        qos: bool,
        /// The better next hop, in the form of the quoted destination.
        next_hop: Address,
        /// The datagram.
        quote: &'a [u8],
    },
    /// Type 5 code 4.
    LinkAvailable(Restored<'a>),
    /// Type 8.
    EchoRequest(Echo<'a>),
    /// Type 11.
    TimeExceeded(&'a [u8]),
    /// Type 12.
    ParameterProblem {
        /// Control octet or field, counted from 0.
        pointer: u8,
        /// The datagram.
        quote: &'a [u8],
    },
    /// Type 19. It quotes nothing: what was damaged cannot be believed.
    Corruption,
}

/// Why octets are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadMessage {
    /// Shorter than its type needs.
    #[error("truncated")]
    Truncated,
    /// The checksum does not verify.
    #[error("bad checksum")]
    Checksum,
    /// A type or code nobody defined; it is ignored.
    #[error("unknown type or code")]
    Unknown,
}

impl<'a> Message<'a> {
    /// Type and code.
    pub const fn kind(&self) -> (u8, u8) {
        match self {
            Message::EchoReply(_) => (0, 0),
            Message::Unreachable(code, _) => (3, code.code()),
            Message::TooBig { .. } => (3, 4),
            Message::SourceQuench(_) => (4, 0),
            Message::Redirect { qos: false, .. } => (5, 1),
            Message::Redirect { qos: true, .. } => (5, 3),
            Message::LinkAvailable(_) => (5, 4),
            Message::EchoRequest(_) => (8, 0),
            Message::TimeExceeded(_) => (11, 0),
            Message::ParameterProblem { .. } => (12, 0),
            Message::Corruption => (19, 0),
        }
    }

    /// Reads a message.
    pub fn parse(octets: &'a [u8], dialect: Dialect) -> Result<Self, BadMessage> {
        let (head, body) = octets.split_first_chunk::<HEADER_LEN>().ok_or(BadMessage::Truncated)?;
        let is_absent = dialect.profile == NpProfile::Ri && head[2..] == [0, 0];
        let mut sum = Checksum::new();
        sum.add(octets);
        if !is_absent && !sum.verifies() {
            return Err(BadMessage::Checksum);
        }
        Ok(match (head[0], head[1]) {
            (0, 0) => Message::EchoReply(Echo::parse(body)?),
            (3, 4) => {
                let (mtu, quote) = body.split_first_chunk().ok_or(BadMessage::Truncated)?;
                Message::TooBig { mtu: u16::from_be_bytes(*mtu), quote }
            }
            (3, code) => Message::Unreachable(Unreachable::from_code(code).ok_or(BadMessage::Unknown)?, body),
            (4, 0) => Message::SourceQuench(body),
            (5, 1) => parse_redirect(false, body, dialect)?,
            (5, 3) => parse_redirect(true, body, dialect)?,
            // A quote holds a header and eight octets of a transport's, so it is none of these lengths but by an odd chance.
            (5, 4) => {
                Message::LinkAvailable(Address::from_octets(body).map_or(Restored::Quote(body), Restored::Destination))
            }
            (8, 0) => Message::EchoRequest(Echo::parse(body)?),
            (11, 0) => Message::TimeExceeded(body),
            (12, 0) => {
                let (pointer, quote) = body.split_first().ok_or(BadMessage::Truncated)?;
                Message::ParameterProblem { pointer: *pointer, quote }
            }
            // The reference sends no body; one that is there means nothing.
            (19, 0) => Message::Corruption,
            _ => return Err(BadMessage::Unknown),
        })
    }

    /// Appends the message to `out`, with a checksum unless it goes to one of the reference's, which send none.
    pub fn emit(&self, with_checksum: bool, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, code) = self.kind();
        out.extend([kind, code, 0, 0]);
        match self {
            Message::EchoReply(echo) | Message::EchoRequest(echo) => {
                out.extend(echo.id.to_be_bytes());
                out.extend(echo.seq.to_be_bytes());
                out.extend(echo.data);
            }
            Message::TooBig { mtu, quote } => {
                out.extend(mtu.to_be_bytes());
                out.extend(*quote);
            }
            Message::Redirect { next_hop, quote, .. } => {
                put_address(*next_hop, out);
                out.extend(*quote);
            }
            Message::LinkAvailable(Restored::Destination(address)) => put_address(*address, out),
            Message::ParameterProblem { pointer, quote } => {
                out.push(*pointer);
                out.extend(*quote);
            }
            Message::Unreachable(_, quote)
            | Message::SourceQuench(quote)
            | Message::TimeExceeded(quote)
            | Message::LinkAvailable(Restored::Quote(quote)) => out.extend(*quote),
            Message::Corruption => {}
        }
        if with_checksum {
            let mut sum = Checksum::new();
            sum.add(&out[start..]);
            out[start + 2..start + HEADER_LEN].copy_from_slice(&sum.finish().to_be_bytes());
        }
    }

    /// The datagram it speaks of.
    pub const fn quote(&self) -> Option<&'a [u8]> {
        match self {
            Message::Unreachable(_, quote)
            | Message::TooBig { quote, .. }
            | Message::SourceQuench(quote)
            | Message::Redirect { quote, .. }
            | Message::LinkAvailable(Restored::Quote(quote))
            | Message::TimeExceeded(quote)
            | Message::ParameterProblem { quote, .. } => Some(quote),
            Message::EchoReply(_)
            | Message::EchoRequest(_)
            | Message::LinkAvailable(Restored::Destination(_))
            | Message::Corruption => None,
        }
    }

    /// The answer to an echo request.
    pub const fn reply(&self) -> Option<Message<'a>> {
        match self {
            Message::EchoRequest(echo) => Some(Message::EchoReply(*echo)),
            _ => None,
        }
    }
}

impl<'a> Echo<'a> {
    fn parse(body: &'a [u8]) -> Result<Self, BadMessage> {
        let ([i, d, s, q], data) = body.split_first_chunk().ok_or(BadMessage::Truncated)?;
        Ok(Echo { id: u16::from_be_bytes([*i, *d]), seq: u16::from_be_bytes([*s, *q]), data })
    }
}

fn put_address(address: Address, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + address.octets_len(), 0);
    address.emit(&mut out[start..]);
}

/// The next hop is as long as the quoted destination, which follows it: the first length that fits both is meant.
fn parse_redirect(qos: bool, body: &[u8], dialect: Dialect) -> Result<Message<'_>, BadMessage> {
    [2, 4, 16]
        .into_iter()
        .find_map(|len| {
            let (next_hop, quote) = body.split_at_checked(len)?;
            let (header, _) = Datagram::parse_quote(quote, dialect).ok()?;
            let next_hop = Address::from_octets(next_hop)?;
            (header.addresses.dst()?.octets_len() == len).then_some(Message::Redirect { qos, next_hop, quote })
        })
        .ok_or(BadMessage::Truncated)
}

/// What a message quotes of a datagram: its beginning, and never an octet beyond its end.
pub fn quote_of<'a>(datagram: &Datagram<'a>) -> &'a [u8] {
    &datagram.octets[..datagram.octets.len().min(QUOTE_MAX)]
}

/// The source to which an error about a datagram may be sent. None is sent about an SCMP error or what looks like one, a
/// group, a broadcast, a path, or a datagram whose source is no end system (scps-np §6.3).
pub fn reportable_source(header: &Header, payload: &[u8]) -> Option<Address> {
    let is_error = header.tpid == tpid::SCMP && !matches!(payload.first(), Some(0 | 8));
    let is_path = matches!(header.addresses, Addresses::Path(_));
    let goes_to_one = header.addresses.dst().is_some_and(Address::is_unicast);
    header.addresses.src().filter(|src| !is_error && !is_path && goes_to_one && src.is_unicast())
}
