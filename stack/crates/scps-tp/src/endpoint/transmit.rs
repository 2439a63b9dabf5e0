//! What leaves an endpoint.

use std::net::IpAddr;

/// A packet that was appended to the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Transmit {
    /// Where it goes.
    pub dst: IpAddr,
    /// Its octets, network header included.
    pub len: usize,
    /// What is left to its carrier, if that takes such packets ([`crate::Endpoint::set_joined_max`]).
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
        Transmit { dst: dst.into(), len, offload: None }
    }
}
