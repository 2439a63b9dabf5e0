//! TCP options: one value for all that a segment carries, parsed in any order, emitted in a fixed one.
//!
//! Sources: scps-tp §1.5 (order on SYN), scps-tp §2.1 (registry); RFC 7323, RFC 2018.

use crate::scps::{
    BindingSpaces, Capabilities, Snack, KIND_CAPABILITIES, KIND_CORRUPTION_EXPERIENCED, KIND_LEGACY_BETS,
    KIND_RECORD_BOUNDARY, KIND_SNACK,
};
use crate::SeqNum;
use crate::{be16, be32};

/// Octets a TCP header can hold after its fixed part (RFC 793 §3.1).
pub const MAX_LEN: usize = 40;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// RFC 7323 §3 timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamps {
    /// The sender's clock.
    pub val: u32,
    /// Echo of the peer's clock.
    pub ecr: u32,
}

/// Up to four SACK blocks (RFC 2018 §3), each `[left, right)`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlocks {
    len: u8,
    blocks: [(SeqNum, SeqNum); 4],
}

impl SackBlocks {
    /// Adds a block unless four are there already.
    pub fn push(&mut self, left: SeqNum, right: SeqNum) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (left, right);
            self.len += 1;
        }
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(SeqNum, SeqNum)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps at most `n` blocks.
    pub fn truncate(&mut self, n: usize) {
        self.len = self.len.min(n as u8);
    }
}

/// All options of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Kind 2.
    pub mss: Option<u16>,
    /// Kind 3, as received (a shift above 14 is the reader's to clamp).
    pub window_scale: Option<u8>,
    /// Kind 4.
    pub sack_permitted: bool,
    /// Kind 5.
    pub sack: SackBlocks,
    /// Kind 8.
    pub timestamps: Option<Timestamps>,
    /// Kind 20, length 4.
    pub capabilities: Option<Capabilities>,
    /// Kind 20, any other length.
    pub binding_spaces: Option<BindingSpaces>,
    /// Kind 21.
    pub snack: Option<Snack>,
    /// Kind 22.
    pub record_boundary: bool,
    /// Kind 23.
    pub corruption_experienced: bool,
    /// Kind 16, length 2: read, never sent.
    pub legacy_bets: bool,
}

impl Options {
    /// Reads options in any order. Unknown kinds are skipped by length; a zero or overlong length ends the reading
    /// without effect on what was read before (scps-tp §2.1).
    pub fn parse(mut rest: &[u8]) -> Options {
        let mut options = Options::default();
        // Every data segment of a connection with timestamps looks like this; the general reader costs more.
        if rest.len() == 12 && rest[..4] == [NOP, NOP, TIMESTAMPS, 10] {
            options.timestamps = Some(Timestamps { val: be32(rest, 4), ecr: be32(rest, 8) });
            return options;
        }
        while let Some(&kind) = rest.first() {
            match kind {
                END => break,
                NOP => {
                    rest = &rest[1..];
                    continue;
                }
                _ => {}
            }
            let len = usize::from(rest.get(1).copied().unwrap_or(0));
            if len < 2 || len > rest.len() {
                break;
            }
            options.read(kind, &rest[2..len]);
            rest = &rest[len..];
        }
        options
    }

    fn read(&mut self, kind: u8, content: &[u8]) {
        match (kind, content.len()) {
            (MSS, 2) => self.mss = Some(be16(content, 0)),
            (WINDOW_SCALE, 1) => self.window_scale = Some(content[0]),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (SACK, 8 | 16 | 24 | 32) => {
                for block in content.chunks_exact(8) {
                    self.sack.push(SeqNum(be32(block, 0)), SeqNum(be32(block, 4)));
                }
            }
            (TIMESTAMPS, 8) => self.timestamps = Some(Timestamps { val: be32(content, 0), ecr: be32(content, 4) }),
            (KIND_CAPABILITIES, 2) => {
                self.capabilities = Some(Capabilities { bits: content[0], connection_id: content[1] });
            }
            (KIND_CAPABILITIES, _) => self.binding_spaces = BindingSpaces::parse(content),
            (KIND_SNACK, _) => self.snack = Snack::parse(content),
            (KIND_RECORD_BOUNDARY, 0) => self.record_boundary = true,
            (KIND_CORRUPTION_EXPERIENCED, 0) => self.corruption_experienced = true,
            (KIND_LEGACY_BETS, 0) => self.legacy_bets = true,
            _ => {}
        }
    }

    /// Octets [`Options::emit`] writes, a multiple of 4.
    pub fn emit_len(&self) -> usize {
        // The common data segment: timestamps only.
        let mut len = if self.timestamps.is_some() { 12 } else { 0 };
        if self.sack_permitted && self.timestamps.is_none() {
            len += 4;
        }
        if self.capabilities.is_some() {
            len += 4;
        }
        if let Some(b) = &self.binding_spaces {
            len += (2 + b.content().len()).next_multiple_of(4);
        }
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        if let Some(s) = &self.snack {
            len += s.option_len().next_multiple_of(4);
        }
        if self.record_boundary {
            len += 4;
        }
        if self.corruption_experienced {
            len += 4;
        }
        if !self.sack.is_empty() {
            len += 4 + 8 * usize::from(self.sack.len);
        }
        len
    }

    /// Writes the options into the first [`Options::emit_len`] octets of `out`, each group padded with NOPs to four
    /// octets. Order on SYN: scps-tp §1.5.
    ///
    /// # Panics
    /// If `out` is shorter than that: the caller sized it.
    pub fn emit(&self, out: &mut [u8]) {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(c) = self.capabilities {
            put(&[KIND_CAPABILITIES, 4, c.bits, c.connection_id]);
        }
        if let Some(b) = &self.binding_spaces {
            let len = 2 + b.content().len();
            put(&[KIND_CAPABILITIES, len as u8]);
            put(b.content());
            put(&[NOP; 3][..len.next_multiple_of(4) - len]);
        }
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            put(&[MSS, 4, a, b]);
        }
        if let Some(shift) = self.window_scale {
            put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        match (self.timestamps, self.sack_permitted) {
            (Some(t), permitted) => {
                put(&if permitted { [SACK_PERMITTED, 2] } else { [NOP, NOP] });
                put(&[TIMESTAMPS, 10]);
                put(&t.val.to_be_bytes());
                put(&t.ecr.to_be_bytes());
            }
            (None, true) => put(&[NOP, NOP, SACK_PERMITTED, 2]),
            (None, false) => {}
        }
        if let Some(s) = &self.snack {
            let len = s.option_len();
            put(&[KIND_SNACK, len as u8]);
            put(&s.offset.to_be_bytes());
            put(&s.size.to_be_bytes());
            put(s.vector());
            put(&[NOP; 3][..len.next_multiple_of(4) - len]);
        }
        if self.record_boundary {
            put(&[NOP, NOP, KIND_RECORD_BOUNDARY, 2]);
        }
        if self.corruption_experienced {
            put(&[NOP, NOP, KIND_CORRUPTION_EXPERIENCED, 2]);
        }
        if !self.sack.is_empty() {
            put(&[NOP, NOP, SACK, 2 + 8 * self.sack.len]);
            for (left, right) in self.sack.as_slice() {
                put(&left.0.to_be_bytes());
                put(&right.0.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(o: &Options) -> Vec<u8> {
        let mut out = vec![0; o.emit_len()];
        o.emit(&mut out);
        out
    }

    #[test]
    fn the_typical_syn_block_is_the_reference_one() {
        // scps-tp §1.5: 14 04 40 00 | 02 04 05 B4 | 01 03 03 00 | 01 01 08 0A ....
        let o = Options {
            capabilities: Some(Capabilities { bits: 0x40, connection_id: 0 }),
            mss: Some(1460),
            window_scale: Some(0),
            timestamps: Some(Timestamps { val: 1, ecr: 0 }),
            ..Options::default()
        };
        assert_eq!(emitted(&o), [0x14, 4, 0x40, 0, 2, 4, 5, 0xb4, 1, 3, 3, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn unknown_options_are_skipped_anywhere() {
        let o = Options::parse(&[99, 3, 7, 2, 4, 2, 0, 1, 200, 2, 22, 2]);
        assert_eq!((o.mss, o.record_boundary), (Some(512), true));
    }

    #[test]
    fn a_bad_length_ends_parsing() {
        assert_eq!(Options::parse(&[22, 2, 99, 0, 2, 4, 5, 0xb4]).mss, None);
        assert!(Options::parse(&[22, 2, 99, 0]).record_boundary);
        assert_eq!(Options::parse(&[2, 40, 5, 0xb4]).mss, None);
        assert_eq!(Options::parse(&[2]), Options::default());
    }

    #[test]
    fn binding_spaces_are_padded_outside_their_length() {
        let space = crate::scps::BindingSpace { id: 1, first_nibble: 0, data: vec![0xaa, 0xbb] };
        let o = Options { binding_spaces: BindingSpaces::pack(&[space]), ..Options::default() };
        assert_eq!(emitted(&o), [20, 6, 1, 0x10, 0xaa, 0xbb, 1, 1]);
    }

    #[test]
    fn a_wrong_length_of_a_known_option_is_no_option() {
        let o = Options::parse(&[2, 3, 5, 8, 4, 1, 2, 3, 2, 5, 4, 1, 2]);
        assert_eq!(o, Options::default());
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Options::parse(&bytes);
        }

        #[test]
        fn emit_then_parse_is_identity(
            mss in any::<Option<u16>>(), shift in any::<Option<u8>>(), sackok in any::<bool>(), ts in any::<Option<(u32, u32)>>(),
            caps in any::<Option<(u8, u8)>>(), snack in any::<Option<(u16, u16)>>(), rb in any::<bool>(), ce in any::<bool>(),
        ) {
            let o = Options {
                mss, window_scale: shift, sack_permitted: sackok,
                timestamps: ts.map(|(val, ecr)| Timestamps { val, ecr }),
                capabilities: caps.map(|(bits, connection_id)| Capabilities { bits, connection_id }),
                snack: snack.map(|(o, s)| Snack::short(o, s)),
                record_boundary: rb, corruption_experienced: ce, ..Options::default()
            };
            prop_assert_eq!(Options::parse(&emitted(&o)), o);
        }
    }
}
