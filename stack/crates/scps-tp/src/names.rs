//! The names of things, which every other file may use: this one uses none.

use std::net::{Ipv4Addr, SocketAddr};

/// An address and a port, as packets of today carry them.
pub(crate) type AddressPort = (Ipv4Addr, u16);

/// What an address of a caller is here; the caller's own if no packet carries it.
pub(crate) fn carried(address: SocketAddr) -> Result<AddressPort, SocketAddr> {
    match address {
        SocketAddr::V4(address) => Ok((*address.ip(), address.port())),
        SocketAddr::V6(_) => Err(address),
    }
}

/// Names a route of an endpoint; the default is the one that every endpoint has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct RouteId(pub(crate) usize);

/// Names a listener.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListenerId(pub(crate) u32);

/// Names a connection; never reused while the endpoint lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnectionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// A number for records and logs.
    pub fn as_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Its place in the table, which later connections may have as well.
    pub(crate) fn place(self) -> u32 {
        self.index
    }
}
