//! The SCPS options: capabilities and binding spaces (kind 20), SNACK (kind 21). Kinds 22 and 23 have no content.
//!
//! Layouts: scps-tp §2.2 to §2.6.

use crate::be16;

/// Kind of the capabilities and binding-space option.
pub const KIND_CAPABILITIES: u8 = 20;
/// Kind of the SNACK option.
pub const KIND_SNACK: u8 = 21;
/// Kind of the record boundary option.
pub const KIND_RECORD_BOUNDARY: u8 = 22;
/// Kind of the corruption-experienced option.
pub const KIND_CORRUPTION_EXPERIENCED: u8 = 23;
/// Historical BETS-permitted kind, honoured on receipt from the reference implementation, never sent.
pub const KIND_LEGACY_BETS: u8 = 16;

/// Option 20, length 4 (scps-tp §2.2).
///
/// ```text
/// | 20 | 4 | B S1 S2 C N 0 0 0 | connection id |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capabilities {
    /// The capability vector as it is on the wire.
    pub bits: u8,
    /// Connection identifier for compressed headers; 0 for none.
    pub connection_id: u8,
}

impl Capabilities {
    /// Best-effort transport service.
    pub const BETS: u8 = 0x80;
    /// Short-form SNACK.
    pub const SNACK1: u8 = 0x40;
    /// Long-form SNACK.
    pub const SNACK2: u8 = 0x20;
    /// Header compression.
    pub const COMPRESSION: u8 = 0x10;
    /// Network-layer timestamps.
    pub const NLTS: u8 = 0x08;
    /// Reserved: sent as zero, ignored on receipt.
    pub const RESERVED: u8 = 0x07;

    /// True if every bit of `mask` is set.
    pub fn has(self, mask: u8) -> bool {
        self.bits & mask == mask
    }
}

/// Most octets of bit vector a long SNACK can carry in 40 octets of options.
pub const SNACK_VECTOR_MAX: usize = 32;

/// Option 21 (scps-tp §2.4.1): one hole, and in the long form a bit per block after it.
///
/// ```text
/// | 21 | 6+v | offset (units) | size (units) | v octets of bit vector |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snack {
    /// Start of the hole above the acknowledgement number, in units.
    pub offset: u16,
    /// Length of the hole, in units.
    pub size: u16,
    vector_len: u8,
    vector: [u8; SNACK_VECTOR_MAX],
}

impl Snack {
    /// A short-form SNACK.
    pub fn short(offset: u16, size: u16) -> Self {
        Snack { offset, size, vector_len: 0, vector: [0; SNACK_VECTOR_MAX] }
    }

    /// A long-form SNACK; octets beyond [`SNACK_VECTOR_MAX`] are left out, which says nothing about their blocks.
    pub fn long(offset: u16, size: u16, vector: &[u8]) -> Self {
        let mut snack = Snack::short(offset, size);
        let n = vector.len().min(SNACK_VECTOR_MAX);
        snack.vector[..n].copy_from_slice(&vector[..n]);
        snack.vector_len = n as u8;
        snack
    }

    /// The bit vector, empty in the short form. First bit: the unit right after the hole; 0 = missing.
    pub fn vector(&self) -> &[u8] {
        &self.vector[..usize::from(self.vector_len)]
    }

    /// Octets of the option.
    pub fn option_len(&self) -> usize {
        6 + usize::from(self.vector_len)
    }

    /// Reads the content after kind and length.
    pub(crate) fn parse(content: &[u8]) -> Option<Snack> {
        (content.len() >= 4 && content.len() <= 4 + SNACK_VECTOR_MAX)
            .then(|| Snack::long(be16(content, 0), be16(content, 2), &content[4..]))
    }
}

/// Option 20 longer than 4 octets: binding spaces, kept as the octets between length and end (scps-tp §2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindingSpaces {
    len: u8,
    content: [u8; 38],
}

/// One binding space: identifier, and data as 16-bit words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingSpace {
    /// Identifier; 255 and above use the escape of the reference implementation.
    pub id: u16,
    /// The low nibble of the length octet: the first data nibble.
    pub first_nibble: u8,
    /// The words that follow.
    pub data: Vec<u8>,
}

impl BindingSpaces {
    /// Packs spaces into an option. `None` if they do not fit in 40 octets, or would make the option four octets
    /// long, which reads as capabilities.
    pub fn pack(spaces: &[BindingSpace]) -> Option<BindingSpaces> {
        let mut out = BindingSpaces { len: 0, content: [0; 38] };
        let mut push = |byte: u8| {
            let at = usize::from(out.len);
            if at < 38 {
                out.content[at] = byte;
                out.len += 1;
                true
            } else {
                false
            }
        };
        for space in spaces {
            let words = space.data.len() / 2;
            if space.data.len() % 2 != 0 || words > 15 || space.id > 256 + 254 || space.id == 255 {
                return None;
            }
            let length = (words as u8) << 4 | (space.first_nibble & 0x0f);
            let head: &[u8] =
                if space.id < 255 { &[space.id as u8, length] } else { &[0xff, length & 0xf0, (space.id - 256) as u8] };
            if !head.iter().chain(&space.data).all(|b| push(*b)) {
                return None;
            }
        }
        (out.len > 2).then_some(out)
    }

    /// The octets after kind and length.
    pub fn content(&self) -> &[u8] {
        &self.content[..usize::from(self.len)]
    }

    /// The spaces; reading stops at the first block that overruns the option.
    pub fn unpack(&self) -> Vec<BindingSpace> {
        let mut rest = self.content();
        let mut spaces = Vec::new();
        while rest.len() >= 2 {
            let words = usize::from(rest[1] >> 4);
            let block = 2 + words * 2;
            if rest.len() < block {
                break;
            }
            let escaped = rest[0] == 0xff;
            if escaped && block < 4 {
                break;
            }
            spaces.push(if escaped {
                BindingSpace { id: 256 + u16::from(rest[2]), first_nibble: 0, data: rest[3..block].to_vec() }
            } else {
                BindingSpace { id: u16::from(rest[0]), first_nibble: rest[1] & 0x0f, data: rest[2..block].to_vec() }
            });
            rest = &rest[block..];
        }
        spaces
    }

    pub(crate) fn parse(content: &[u8]) -> Option<BindingSpaces> {
        if content.is_empty() || content.len() > 38 {
            return None;
        }
        let mut out = BindingSpaces { len: content.len() as u8, content: [0; 38] };
        out.content[..content.len()].copy_from_slice(content);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_snack_keeps_its_vector() {
        let s = Snack::parse(&[0, 3, 0, 2, 0xa0]).unwrap();
        assert_eq!((s.offset, s.size, s.vector(), s.option_len()), (3, 2, &[0xa0][..], 7));
        assert!(Snack::parse(&[0, 3, 0]).is_none());
    }

    #[test]
    fn binding_spaces_survive_packing() {
        let spaces = vec![
            BindingSpace { id: 1, first_nibble: 5, data: vec![1, 2] },
            BindingSpace { id: 9, first_nibble: 0, data: vec![3, 4, 5, 6] },
        ];
        assert_eq!(BindingSpaces::pack(&spaces).unwrap().unpack(), spaces);
    }

    #[test]
    fn a_binding_space_option_is_never_four_octets() {
        assert!(BindingSpaces::pack(&[BindingSpace { id: 1, first_nibble: 5, data: vec![] }]).is_none());
    }

    #[test]
    fn an_overrunning_block_ends_the_list() {
        let s = BindingSpaces::parse(&[1, 0x10, 0xaa, 0xbb, 2, 0xf0, 1]).unwrap();
        assert_eq!(s.unpack().len(), 1);
        assert!(BindingSpaces::parse(&[0xff, 0x00, 0x00]).unwrap().unpack().is_empty());
    }
}
