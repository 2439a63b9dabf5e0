//! What the engine tells its user.

use crate::names::{ConnectionId, ListenerId};
use std::io;

/// Something the user may want to act upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A connection we asked for is open.
    Connected(ConnectionId),
    /// A listener that asks ([`crate::Endpoint::listen_asking`]) has a SYN: [`crate::Endpoint::answer`] it,
    /// [`crate::Endpoint::abort`] it with a reset, or [`crate::Endpoint::ignore`] it.
    Asked(ListenerId, ConnectionId),
    /// A listener has a new open connection.
    Accepted(ListenerId, ConnectionId),
    /// There is something to read: data, a skipped hole, or the end.
    Readable(ConnectionId),
    /// There is room to send after there was none.
    Writable(ConnectionId),
    /// The peer acknowledged everything, FIN included.
    Flushed(ConnectionId),
    /// The connection ended; reading may still return what came before.
    Closed(ConnectionId, CloseReason),
}

impl Event {
    /// The connection it is of.
    pub fn connection(self) -> ConnectionId {
        match self {
            Event::Asked(_, id)
            | Event::Accepted(_, id)
            | Event::Connected(id)
            | Event::Readable(id)
            | Event::Writable(id)
            | Event::Flushed(id)
            | Event::Closed(id, _) => id,
        }
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both sides closed.
    #[error("closed by both sides")]
    Finished,
    /// The peer reset it.
    #[error("reset by the peer")]
    Reset,
    /// The peer refused it.
    #[error("refused by the peer")]
    Refused,
    /// The user aborted it.
    #[error("aborted")]
    Aborted,
    /// The retransmission, SYN or probe limit was reached.
    #[error("timed out: the peer no longer answers")]
    TimedOut,
    /// The network said that the peer cannot be reached, while the connection was not yet open.
    #[error("unreachable")]
    Unreachable {
        /// What the network said, as ICMP numbers it.
        code: u8,
    },
}

impl From<CloseReason> for io::Error {
    fn from(reason: CloseReason) -> Self {
        let kind = match reason {
            CloseReason::Refused => io::ErrorKind::ConnectionRefused,
            CloseReason::Reset => io::ErrorKind::ConnectionReset,
            CloseReason::TimedOut => io::ErrorKind::TimedOut,
            CloseReason::Unreachable { .. } => io::ErrorKind::HostUnreachable,
            CloseReason::Finished | CloseReason::Aborted => io::ErrorKind::ConnectionAborted,
        };
        io::Error::new(kind, reason)
    }
}

/// What became of a received packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// It was for this endpoint, and was used.
    Used,
    /// It had no effect, but for an answer to its sender perhaps.
    Dropped(DropReason),
}

/// Why a received packet had no effect. Counted, never an error to the user.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// Not a packet of the network layer with a good header.
    BadHeader,
    /// A piece of a packet; the stack does not reassemble.
    Fragment,
    /// Not addressed to this endpoint.
    NotOurs,
    /// A protocol nobody here speaks.
    UnknownProtocol,
    /// A segment that does not parse or whose checksum fails.
    BadSegment,
    /// No connection, no listener.
    NoConnection,
    /// A compressed packet with an identifier nobody announced.
    UnknownConnectionId,
    /// A compressed packet that nothing but its identifier ties to its connection.
    Unproven,
    /// Too many half-open connections: the SYN was answered with a cookie, if at all. Or too many open ones that nobody has accepted.
    BacklogFull,
    /// Sequence outside the window.
    OutOfWindow,
    /// RST that does not hit the exact next octet (RFC 5961 §3).
    ChallengedReset,
    /// SYN inside a connection (RFC 5961 §4).
    ChallengedSyn,
    /// Acknowledgement of data never sent, or too old (RFC 5961 §5).
    BadAck,
    /// Timestamp older than the last (RFC 7323 §5).
    OldTimestamp,
    /// Data without the timestamp both sides agreed on (RFC 7323 §3.2).
    NoTimestamp,
    /// A report, such as ICMP's, that quotes nothing in flight (RFC 5927 §4).
    ForeignReport,
    /// Too many pieces out of order.
    TooManyPieces,
    /// SP refused it; its own counters tell why.
    Unprotected,
}

impl DropReason {
    /// Every reason, in order.
    pub const COUNT: usize = 18;
}
