//! Addresses and the forms in which a header carries them (scps-np §1.6).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// One address: of an end system, of a group, or of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Address {
    /// Two octets.
    Basic(u16),
    /// Four octets; an IPv4 address that no table translates has this form.
    Extended(u32),
    /// Sixteen octets.
    V6(Ipv6Addr),
}

impl Address {
    /// Octets on the wire.
    pub const fn octets_len(self) -> usize {
        match self {
            Address::Basic(_) => 2,
            Address::Extended(_) => 4,
            Address::V6(_) => 16,
        }
    }

    /// The address of a value as the tables write it: extended if one of the upper 16 bits is set (scps-np §4.1).
    pub fn from_value(value: u32) -> Self {
        u16::try_from(value).map_or(Address::Extended(value), Address::Basic)
    }

    /// The same address in the shorter form, if it has one: the longer is that of both where one end has no other.
    pub(crate) fn shortest(self) -> Self {
        match self {
            Address::Extended(value) => Address::from_value(value),
            Address::Basic(_) | Address::V6(_) => self,
        }
    }

    /// The IPv4 address that the extended form of this address is, `None` for an IPv6 address.
    pub fn as_ipv4(self) -> Option<Ipv4Addr> {
        self.value().map(Ipv4Addr::from_bits)
    }

    fn value(self) -> Option<u32> {
        match self {
            Address::Basic(value) => Some(u32::from(value)),
            Address::Extended(value) => Some(value),
            Address::V6(_) => None,
        }
    }

    /// All ones over its whole length, that of its shorter form if it has one.
    pub fn is_broadcast(self) -> bool {
        match self.shortest() {
            Address::Basic(a) => a == u16::MAX,
            Address::Extended(a) => a == u32::MAX,
            Address::V6(a) => a.to_bits() == u128::MAX,
        }
    }

    /// A group: an odd basic address, in either form, a class D or an IPv6 multicast address.
    pub fn is_multicast(self) -> bool {
        !self.is_broadcast()
            && match self.shortest() {
                Address::Basic(a) => a & 1 == 1,
                Address::Extended(a) => Ipv4Addr::from_bits(a).is_multicast(),
                Address::V6(a) => a.is_multicast(),
            }
    }

    /// One end system.
    pub fn is_unicast(self) -> bool {
        !self.is_broadcast() && !self.is_multicast()
    }

    /// Reads an address of 2, 4 or 16 octets.
    pub fn from_octets(octets: &[u8]) -> Option<Self> {
        Some(match octets.len() {
            2 => Address::Basic(u16::from_be_bytes(octets.try_into().ok()?)),
            4 => Address::Extended(u32::from_be_bytes(octets.try_into().ok()?)),
            16 => Address::V6(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?)),
            _ => return None,
        })
    }

    /// Writes the address into the front of `out` and returns what is behind it.
    pub(crate) fn emit(self, out: &mut [u8]) -> &mut [u8] {
        let (here, rest) = out.split_at_mut(self.octets_len());
        match self {
            Address::Basic(a) => here.copy_from_slice(&a.to_be_bytes()),
            Address::Extended(a) => here.copy_from_slice(&a.to_be_bytes()),
            Address::V6(a) => here.copy_from_slice(&a.octets()),
        }
        rest
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Basic(a) => write!(f, "{a:04x}"),
            Address::Extended(a) => write!(f, "{a:08x}"),
            Address::V6(a) => a.fmt(f),
        }
    }
}

/// The addresses of a header. Both of a pair have the same form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Addresses {
    /// None: the link has one other end.
    #[default]
    None,
    /// One address for a source and its destinations.
    Path(Address),
    /// Two end systems by basic addresses.
    Basic {
        /// To.
        dst: u16,
        /// From.
        src: u16,
    },
    /// Two end systems by extended addresses.
    Extended {
        /// To.
        dst: u32,
        /// From.
        src: u32,
    },
    /// Two end systems by IPv6 addresses.
    V6 {
        /// To.
        dst: Ipv6Addr,
        /// From.
        src: Ipv6Addr,
    },
}

impl Addresses {
    /// Two end systems in one form: the longer one, if theirs differ (scps-np §4.1). An IPv6 address goes with its like only.
    pub fn of_ends(dst: Address, src: Address) -> Option<Self> {
        Some(match (dst, src) {
            (Address::Basic(dst), Address::Basic(src)) => Addresses::Basic { dst, src },
            (Address::V6(dst), Address::V6(src)) => Addresses::V6 { dst, src },
            _ => Addresses::Extended { dst: dst.value()?, src: src.value()? },
        })
    }

    /// The destination, or the path.
    pub fn dst(self) -> Option<Address> {
        match self {
            Addresses::None => None,
            Addresses::Path(path) => Some(path),
            Addresses::Basic { dst, .. } => Some(Address::Basic(dst)),
            Addresses::Extended { dst, .. } => Some(Address::Extended(dst)),
            Addresses::V6 { dst, .. } => Some(Address::V6(dst)),
        }
    }

    /// The source, which a path does not name.
    pub fn src(self) -> Option<Address> {
        match self {
            Addresses::None | Addresses::Path(_) => None,
            Addresses::Basic { src, .. } => Some(Address::Basic(src)),
            Addresses::Extended { src, .. } => Some(Address::Extended(src)),
            Addresses::V6 { src, .. } => Some(Address::V6(src)),
        }
    }

    /// Octets on the wire.
    pub fn octets_len(self) -> usize {
        self.dst().map_or(0, Address::octets_len) + self.src().map_or(0, Address::octets_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_ones_is_broadcast() {
        assert!(Address::Basic(0xffff).is_broadcast() && Address::Extended(u32::MAX).is_broadcast());
        assert!(Address::V6(Ipv6Addr::from_bits(u128::MAX)).is_broadcast());
        assert!(!Address::Basic(0xff02).is_broadcast() && Address::Basic(0xff02).is_unicast());
        assert!(!Address::Extended(0xffff_0000).is_broadcast());
        assert!(!Address::Basic(0xffff).is_multicast());
        assert!(Address::Extended(0xffff).is_broadcast() && !Address::Extended(0x1_ffff).is_broadcast());
    }

    #[test]
    fn odd_basic_class_d_and_ipv6_groups_are_multicast() {
        assert!(Address::Basic(0x8001).is_multicast() && !Address::Basic(0x7290).is_multicast());
        let extended = |a: [u8; 4]| Address::Extended(u32::from_be_bytes(a));
        assert!(Address::Extended(0x8001).is_multicast() && Address::Extended(0x7290).is_unicast());
        assert!(extended([224, 0, 0, 1]).is_multicast() && !extended([10, 0, 0, 1]).is_multicast());
        assert!(Address::V6("ff02::1".parse().unwrap()).is_multicast());
    }

    #[test]
    fn ends_of_different_length_take_the_longer_form() {
        let pair = Addresses::of_ends(Address::Basic(0x7292), Address::Extended(0x0a00_0001));
        assert_eq!(pair, Some(Addresses::Extended { dst: 0x7292, src: 0x0a00_0001 }));
        assert_eq!(Addresses::of_ends(Address::V6(Ipv6Addr::LOCALHOST), Address::Basic(2)), None);
    }
}
