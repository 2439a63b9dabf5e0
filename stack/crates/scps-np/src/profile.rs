//! The two wire profiles, and what an interface may have to put up with (scps-np §0, §11).

/// Which of two dialects of the header an interface speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NpProfile {
    /// The reference implementation's, the only one seen on a wire.
    #[default]
    Ri,
    /// That of a CCSDS space link.
    Ccsds,
}

impl NpProfile {
    /// The three bits that begin a datagram.
    pub const fn vpi(self) -> u8 {
        match self {
            NpProfile::Ri => 0b100,
            NpProfile::Ccsds => 0b001,
        }
    }

    /// The checksum field for a folded ones'-complement sum.
    pub(crate) const fn checksum_of(self, sum: u16) -> u16 {
        match self {
            NpProfile::Ri => sum,
            NpProfile::Ccsds => !sum,
        }
    }
}

/// How an interface reads and writes headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dialect {
    /// Version and polarity of the checksum.
    pub profile: NpProfile,
    /// Captures of 1997 have the basic QoS octet behind the timestamp (scps-np §1.5).
    pub legacy_bqos_after_ts: bool,
    /// Routers of the reference implementation on little-endian machines swap the octets of a checksum they renew (scps-np §11
    /// quirk 8).
    pub accept_swapped_checksum: bool,
    /// A header without a checksum is discarded.
    pub require_checksum: bool,
}

/// What a first octet announces, where several protocols share a link (scps-np §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstOctet {
    /// An IPv4 packet.
    Ipv4,
    /// An IPv6 packet.
    Ipv6,
    /// An NP datagram of a profile.
    Np(NpProfile),
}

impl FirstOctet {
    /// Tells the protocols apart; `None` for an octet that begins none of them.
    pub const fn of(octet: u8) -> Option<Self> {
        match octet {
            0x40..=0x4f => Some(FirstOctet::Ipv4),
            0x60..=0x6f => Some(FirstOctet::Ipv6),
            0x80..=0x9f => Some(FirstOctet::Np(NpProfile::Ri)),
            0x20..=0x3f => Some(FirstOctet::Np(NpProfile::Ccsds)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_octet_tells_the_protocols_apart() {
        let of = FirstOctet::of;
        assert_eq!((of(0x45), of(0x60)), (Some(FirstOctet::Ipv4), Some(FirstOctet::Ipv6)));
        assert_eq!((of(0x80), of(0x9f)), (Some(FirstOctet::Np(NpProfile::Ri)), Some(FirstOctet::Np(NpProfile::Ri))));
        assert_eq!(of(0x3f), Some(FirstOctet::Np(NpProfile::Ccsds)));
        assert!([0x00, 0x1f, 0x50, 0x7f, 0xa0, 0xff].into_iter().all(|octet| of(octet).is_none()));
    }
}
