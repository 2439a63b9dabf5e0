//! What the engine's calls refuse, one enum per kind of call.

use crate::event::CloseReason;
use std::net::SocketAddr;

/// Why nobody can connect to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// An address that no packet of today carries.
    #[error("cannot listen on {0}: expected an IPv4 address, for IPv6 is not carried yet")]
    Ipv6(SocketAddr),
    /// A listener has this address and port.
    #[error("{0} has a listener")]
    InUse(SocketAddr),
}

/// Why a connection cannot be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An address that no packet of today carries.
    #[error("cannot connect with {0}: expected an IPv4 address, for IPv6 is not carried yet")]
    Ipv6(SocketAddr),
    /// The same pair of addresses and ports is in use.
    #[error("a connection between these addresses and ports exists")]
    InUse,
    /// No free local port is left.
    #[error("no free local port")]
    NoPort,
    /// Packets to there cannot be protected as demanded.
    #[cfg(feature = "sp")]
    #[error(transparent)]
    Unprotected(scps_sp::Refused),
}

/// Why data is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection does not exist or is closed for sending.
    #[error("the connection is closed for sending")]
    Closed,
    /// A record is longer than the send buffer, or empty.
    #[error("the record does not fit in the send buffer")]
    RecordTooLong,
}

/// Why nothing is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecvError {
    /// Nothing yet.
    #[error("nothing to read yet")]
    WouldBlock,
    /// The connection ended, and the peer's end was not among what came: there may have been more.
    #[error(transparent)]
    Closed(CloseReason),
    /// The connection does not exist.
    #[error("no such connection")]
    Unknown,
    /// EBETS: octets were skipped here (scps-tp §7.1). Reported once, before later data.
    #[error("{len} octets at offset {offset} were lost")]
    Hole {
        /// First missing octet, from the start of the stream.
        offset: u64,
        /// Missing octets.
        len: u64,
    },
}

/// Why a setting cannot be changed or asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The connection does not exist.
    #[error("no such connection")]
    Unknown,
    /// It must be set before connecting (scps-tp §4.1).
    #[error("cannot be changed once the connection has left its first state")]
    TooLate,
    /// The peer did not agree to it.
    #[error("not supported on this connection")]
    NotSupported,
}
