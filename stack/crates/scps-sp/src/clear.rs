//! The first octet, which is never encrypted: what the protected part holds (scps-sp §2.1).

use crate::Services;

/// What a transport PDU is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upper {
    /// No transport PDU: a whole IP packet, between gateways (scps-sp §6.1).
    Ip,
    /// SCPS-TP, or TCP.
    Tp,
    /// SCPS-TP with a compressed header.
    CompressedTp,
    /// UDP.
    Udp,
}

/// How the octet is written. Which one CCSDS 713.5-B prescribes is not established: it is a setting of the association, never
/// guessed from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClearHeader {
    /// The whole octet is the number that the reference implementation gives the upper protocol.
    #[default]
    Full8,
    /// The upper protocol's TPID in the high four bits, the services in the low ones.
    Nibble,
    /// The TPID in the low four bits, zero in the high ones.
    LowNibble,
}

impl Upper {
    /// TPID of NP (scps-np §1.1).
    const fn tpid(self) -> u8 {
        match self {
            Upper::Ip => 12,
            Upper::CompressedTp => 4,
            Upper::Udp => 5,
            Upper::Tp => 6,
        }
    }

    const fn of_tpid(tpid: u8) -> Option<Upper> {
        match tpid {
            4 => Some(Upper::CompressedTp),
            5 => Some(Upper::Udp),
            6 => Some(Upper::Tp),
            12 => Some(Upper::Ip),
            _ => None,
        }
    }
}

impl ClearHeader {
    /// The octet before a PDU of `upper`.
    pub const fn emit(self, upper: Upper, services: Services) -> u8 {
        match self {
            ClearHeader::Full8 => match upper {
                Upper::Ip => 4,
                Upper::CompressedTp => 105,
                Upper::Tp => 106,
                Upper::Udp => 117,
            },
            ClearHeader::Nibble => upper.tpid() << 4 | services.bits(),
            ClearHeader::LowNibble => upper.tpid(),
        }
    }

    /// What the octet says. `Full8` also knows TCP's and UDP's own numbers, which another part of the reference writes.
    pub const fn parse(self, octet: u8) -> Option<Upper> {
        match self {
            ClearHeader::Full8 => match octet {
                4 => Some(Upper::Ip),
                105 => Some(Upper::CompressedTp),
                6 | 106 => Some(Upper::Tp),
                17 | 117 => Some(Upper::Udp),
                _ => None,
            },
            ClearHeader::Nibble => Upper::of_tpid(octet >> 4),
            ClearHeader::LowNibble => Upper::of_tpid(octet),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_reads_what_it_writes_and_no_other_ones() {
        let variants = [ClearHeader::Full8, ClearHeader::Nibble, ClearHeader::LowNibble];
        for variant in variants {
            for upper in [Upper::Ip, Upper::Tp, Upper::CompressedTp, Upper::Udp] {
                let octet = variant.emit(upper, Services::ALL);
                assert_eq!(variant.parse(octet), Some(upper));
            }
        }
        let tp = variants.map(|v| v.emit(Upper::Tp, Services::ALL));
        assert_eq!(tp, [0x6a, 0x6f, 0x06]);
        // The variant is a setting: 0x6a is TP in two of them and nothing in the third, 0x16 nothing in any.
        assert_eq!(variants.map(|v| v.parse(0x6a)), [Some(Upper::Tp), Some(Upper::Tp), None]);
        assert_eq!(variants.map(|v| v.parse(0x16)), [None; 3]);
        assert_eq!([6, 17].map(|octet| ClearHeader::Full8.parse(octet)), [Some(Upper::Tp), Some(Upper::Udp)]);
    }
}
