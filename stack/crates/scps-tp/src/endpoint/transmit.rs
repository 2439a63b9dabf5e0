//! What leaves an endpoint.

use std::net::{IpAddr, SocketAddr};

/// What a carrier takes of a connection at a time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Carrier {
    /// A packet.
    #[default]
    Single,
    /// Up to so many segments as one packet, and all segments without their checksum: it does what [`Transmit::offload`] says.
    Cutting(u16),
    /// Up to so many packets of one length.
    Several(u16),
}

/// A packet, or several of one length, appended to the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Transmit {
    /// Where it goes.
    pub dst: IpAddr,
    /// Where its peer was heard, beneath the network layer ([`super::Endpoint::hear_from`]).
    pub via: Option<SocketAddr>,
    /// Its octets, network header included; those of all packets.
    pub len: usize,
    /// How many packets.
    pub packets: usize,
    /// What is left to its carrier, if that is one that cuts.
    pub offload: Option<Offload>,
}

/// What is left to the carrier of a TCP segment in IPv4, as Linux's virtio header has it: the checksum, whose field has the
/// pseudo-header's part, and to cut it if it has more data than one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Offload {
    /// Octets of both headers.
    pub header: u16,
    /// Octets of data of each segment, the last perhaps less.
    pub segment: u16,
}

impl Offload {
    pub(crate) fn new(header: usize, segment: usize) -> Self {
        Offload { header: header as u16, segment: segment as u16 }
    }

    /// Segments that a packet of `len` octets is cut into.
    pub fn segments(&self, len: usize) -> usize {
        len.saturating_sub(self.header.into()).div_ceil(usize::from(self.segment).max(1)).max(1)
    }
}

impl Transmit {
    /// A packet of `len` octets to `dst`.
    pub fn new(dst: impl Into<IpAddr>, len: usize) -> Self {
        Transmit::several(dst, len, 1)
    }

    /// The same by way of an address beneath the network layer.
    #[must_use]
    pub fn by_way_of(self, via: Option<SocketAddr>) -> Self {
        Transmit { via, ..self }
    }

    /// So many packets of one length to `dst`, of `len` octets together.
    pub fn several(dst: impl Into<IpAddr>, len: usize, packets: usize) -> Self {
        Transmit { dst: dst.into(), via: None, len, packets, offload: None }
    }
}
