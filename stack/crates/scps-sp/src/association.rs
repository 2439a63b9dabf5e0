//! A security association: for which packets, under which key, with which services (scps-sp §4.1, §6).

use crate::element::Elements;
use crate::window::{WINDOW_DEFAULT, WINDOW_MAX, WINDOW_MIN};
use crate::{AeadKey, ClearHeader, Services, ADDRESS_MAX};
use core::fmt;
use scps_wire::Instant;
use std::net::{IpAddr, Ipv4Addr};

/// Octets of the longest label (scps-sp §2.3).
pub const LABEL_MAX: usize = 32;

/// The two end systems of a packet, in its direction: the addresses of the service interface, IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ends {
    /// Who sends it.
    pub src: IpAddr,
    /// Who gets it.
    pub dst: IpAddr,
}

/// Octets of an address.
pub(crate) struct AddressOctets([u8; ADDRESS_MAX], usize);

impl AddressOctets {
    fn of(address: IpAddr) -> Self {
        let mut octets = [0; ADDRESS_MAX];
        match address {
            IpAddr::V4(a) => octets[..4].copy_from_slice(&a.octets()),
            IpAddr::V6(a) => octets.copy_from_slice(&a.octets()),
        }
        AddressOctets(octets, if address.is_ipv4() { 4 } else { 16 })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl Ends {
    /// Ends with IPv4 addresses.
    pub fn v4(src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>) -> Self {
        Ends { src: IpAddr::V4(src.into()), dst: IpAddr::V4(dst.into()) }
    }

    /// The ends of an answer.
    #[must_use]
    pub fn back(self) -> Self {
        Ends { src: self.dst, dst: self.src }
    }

    pub(crate) fn src_octets(&self) -> AddressOctets {
        AddressOctets::of(self.src)
    }

    pub(crate) fn dst_octets(&self) -> AddressOctets {
        AddressOctets::of(self.dst)
    }

    /// Octets of each address.
    pub(crate) fn address_len(&self) -> usize {
        if self.src.is_ipv4() {
            4
        } else {
            16
        }
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.src, self.dst)
    }
}

/// Names a key: the direction it is for, and its id there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyName {
    /// The direction.
    pub ends: Ends,
    /// The id, which packets carry.
    pub key_id: u16,
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} from {}", self.key_id, self.ends)
    }
}

/// What protects the packets.
#[derive(Clone, Debug)]
pub enum Protection {
    /// SP-AEAD-1.
    Aead(AeadKey),
    /// What the reference implementation does; it keeps nobody out.
    #[cfg(feature = "legacy-insecure")]
    Legacy(crate::legacy::Algorithms),
}

/// A security association of one direction.
#[derive(Clone, Debug)]
pub struct Association {
    /// For whose packets.
    pub ends: Ends,
    /// Which key of that direction; 0 is none. The legacy PDU does not carry it.
    pub key_id: u16,
    /// The key.
    pub protection: Protection,
    /// What every packet gets, and what every packet received must have.
    pub services: Services,
    /// The security label, if there is that service; it may be empty.
    pub label: Vec<u8>,
    /// How the first octet is written.
    pub clear_header: ClearHeader,
    /// Numbers that the replay window spans.
    pub window: u32,
    /// Protected parts are filled up to a multiple of this many octets, to hide lengths; `None` for not at all.
    pub pad_to: Option<u8>,
    /// When the key ceases to be used, in both directions of its use.
    pub not_after: Option<Instant>,
}

/// Why an association is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AssociationError {
    /// Key id 0.
    #[error("found key id 0; expected 1 to 65535")]
    KeyId,
    /// One address is of IPv4 and one of IPv6.
    #[error("found an IPv4 and an IPv6 address; expected two of one kind")]
    Addresses,
    /// Whatever is not checked can be changed, encrypted or not.
    #[error(
        "found services without integrity; expected integrity among them, without it the others are worth nothing"
    )]
    NoIntegrity,
    /// A label that no packet would carry.
    #[error("found a label and no service \"label\"; expected both or neither")]
    LabelWithoutService,
    /// More octets than a label has.
    #[error("found a label of {0} octets; expected at most 32")]
    LabelTooLong(usize),
    /// The replay window.
    #[error("found a window of {0}; expected {WINDOW_MIN} to {WINDOW_MAX}")]
    Window(u32),
    /// Padding.
    #[error("found padding to multiples of {0}; expected at least 2")]
    PadTo(u8),
}

impl Association {
    /// An association with all services but the label, and the defaults of scps-sp §6.
    pub fn new(ends: Ends, key_id: u16, key: AeadKey) -> Self {
        Association {
            ends,
            key_id,
            protection: Protection::Aead(key),
            services: Services::CONFIDENTIALITY.with(Services::AUTHENTICATION).with(Services::INTEGRITY),
            label: Vec::new(),
            clear_header: ClearHeader::Full8,
            window: WINDOW_DEFAULT,
            pad_to: None,
            not_after: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> KeyName {
        KeyName { ends: self.ends, key_id: self.key_id }
    }

    pub(crate) fn check(&self) -> Result<(), AssociationError> {
        use AssociationError as E;
        let has = |service| self.services.has(service);
        // The reference implementation may encrypt without a check; whoever talks to it may have to.
        let is_legacy = !matches!(self.protection, Protection::Aead(_));
        match self {
            a if a.key_id == 0 => Err(E::KeyId),
            a if a.ends.src.is_ipv4() != a.ends.dst.is_ipv4() => Err(E::Addresses),
            _ if !is_legacy && !has(Services::INTEGRITY) => Err(E::NoIntegrity),
            a if !a.label.is_empty() && !has(Services::LABEL) => Err(E::LabelWithoutService),
            a if a.label.len() > LABEL_MAX => Err(E::LabelTooLong(a.label.len())),
            a if !(WINDOW_MIN..=WINDOW_MAX).contains(&a.window) => Err(E::Window(a.window)),
            Association { pad_to: Some(n @ 0..=1), .. } => Err(E::PadTo(*n)),
            _ => Ok(()),
        }
    }

    /// The elements of a packet that has `services` and a transport PDU of `pdu_len` octets.
    pub(crate) fn elements(&self, services: Services, pdu_len: usize) -> Elements<'_> {
        let mut elements = Elements {
            has_icv: true,
            label: services.has(Services::LABEL).then_some(&self.label),
            addresses: services.has(Services::AUTHENTICATION).then_some(self.ends),
            pad: 0,
        };
        match &self.protection {
            Protection::Aead(_) => {
                let multiple = usize::from(self.pad_to.unwrap_or(1));
                elements.pad = fill(elements.len() + pdu_len, multiple);
            }
            #[cfg(feature = "legacy-insecure")]
            Protection::Legacy(algorithms) => {
                elements.has_icv = services.has(Services::INTEGRITY);
                if services.has(Services::CONFIDENTIALITY) {
                    let icv = if elements.has_icv { crate::legacy::ICV_LEN } else { 0 };
                    elements.pad = fill(elements.len() + pdu_len + icv, algorithms.block_size());
                }
            }
        }
        elements
    }
}

/// Octets that are missing to a multiple.
fn fill(len: usize, multiple: usize) -> usize {
    len.next_multiple_of(multiple.max(1)) - len
}
