//! The protected part before the transport PDU: flags, label, addresses, padding, in this order (scps-sp §2.2, §2.3).

use crate::association::Ends;
use crate::Dropped;
use core::ops::Range;

/// Bits of the flags octet.
pub(crate) mod flag {
    pub(crate) const ICV: u8 = 0x01;
    pub(crate) const PAD: u8 = 0x02;
    pub(crate) const ADDRESSES: u8 = 0x04;
    pub(crate) const LABEL: u8 = 0x08;
    pub(crate) const RESERVED: u8 = 0xf0;
}

/// What a protected part begins with, to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<'a> {
    pub(crate) has_icv: bool,
    pub(crate) label: Option<&'a [u8]>,
    pub(crate) addresses: Option<Ends>,
    /// Octets of padding, each of which holds this count.
    pub(crate) pad: usize,
}

impl Elements<'_> {
    /// Its octets.
    pub(crate) fn len(&self) -> usize {
        let addresses = self.addresses.map_or(0, |ends| 2 * ends.address_len());
        1 + self.label.map_or(0, |label| 1 + label.len()) + addresses + self.pad
    }

    /// Writes them; `out` has [`Elements::len`] octets.
    pub(crate) fn emit(&self, out: &mut [u8]) {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        out[0] = bit(self.has_icv, flag::ICV)
            | bit(self.pad > 0, flag::PAD)
            | bit(self.addresses.is_some(), flag::ADDRESSES)
            | bit(self.label.is_some(), flag::LABEL);
        let mut rest = &mut out[1..];
        let mut put = |octets: &[u8]| {
            let (head, tail) = core::mem::take(&mut rest).split_at_mut(octets.len());
            head.copy_from_slice(octets);
            rest = tail;
        };
        if let Some(label) = self.label {
            put(&[label.len() as u8]);
            put(label);
        }
        if let Some(ends) = &self.addresses {
            put(ends.src_octets().as_slice());
            put(ends.dst_octets().as_slice());
        }
        rest.fill(self.pad as u8);
    }
}

/// What a protected part without its ICV holds, as ranges of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Parsed {
    pub(crate) flags: u8,
    pub(crate) label: Option<Range<usize>>,
    pub(crate) addresses: Option<Range<usize>>,
    pub(crate) pdu: Range<usize>,
}

impl Parsed {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Reads a protected part without its ICV. Addresses have `address_len` octets, padding at most `pad_max`.
pub(crate) fn parse(part: &[u8], address_len: usize, pad_max: usize) -> Result<Parsed, Dropped> {
    let flags = *part.first().ok_or(Dropped::Short)?;
    if flags & flag::RESERVED != 0 {
        return Err(Dropped::ReservedFlags);
    }
    let mut at = 1;
    let mut take = |len: usize| {
        let range = at..at + len;
        at += len;
        if at <= part.len() {
            Ok(range)
        } else {
            Err(Dropped::Short)
        }
    };
    let mut label = None;
    if flags & flag::LABEL != 0 {
        let length = take(1)?.start;
        label = Some(take(usize::from(part[length]))?);
    }
    let addresses = if flags & flag::ADDRESSES == 0 { None } else { Some(take(2 * address_len)?) };
    if flags & flag::PAD != 0 {
        let first = take(1)?.start;
        let count = usize::from(part[first]);
        if count == 0 || count > pad_max {
            return Err(Dropped::Padding);
        }
        let rest = take(count - 1).map_err(|_| Dropped::Padding)?;
        if part[rest].iter().any(|octet| usize::from(*octet) != count) {
            return Err(Dropped::Padding);
        }
    }
    Ok(Parsed { flags, label, addresses, pdu: at..part.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn elements_are_read_as_written(
            has_icv in any::<bool>(),
            label in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..33)),
            has_addresses in any::<bool>(),
            is_v6 in any::<bool>(),
            pad in 0usize..256,
            pdu in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let ends = if is_v6 {
                Ends { src: "2001:db8::1".parse().unwrap(), dst: "2001:db8::2".parse().unwrap() }
            } else {
                Ends::v4([192, 3, 114, 128], [192, 3, 114, 131])
            };
            let elements =
                Elements { has_icv, label: label.as_deref(), addresses: has_addresses.then_some(ends), pad };
            let mut part = vec![0; elements.len()];
            elements.emit(&mut part);
            part.extend(&pdu);
            let parsed = parse(&part, ends.address_len(), 255).unwrap();
            prop_assert_eq!(parsed.has(flag::ICV), has_icv);
            prop_assert_eq!(parsed.label.map(|range| part[range].to_vec()), label);
            let written = [ends.src_octets().as_slice(), ends.dst_octets().as_slice()].concat();
            prop_assert_eq!(parsed.addresses.map(|range| part[range].to_vec()), has_addresses.then_some(written));
            prop_assert_eq!(&part[parsed.pdu], &pdu[..]);
        }

        #[test]
        fn any_octets_are_read_without_a_panic(part in proptest::collection::vec(any::<u8>(), 0..128), v6 in any::<bool>()) {
            if let Ok(parsed) = parse(&part, if v6 { 16 } else { 4 }, 255) {
                prop_assert!(parsed.pdu.end == part.len());
            }
        }
    }

    #[test]
    fn padding_of_zero_beyond_the_part_or_of_mixed_values_is_refused() {
        assert_eq!(parse(&[flag::PAD, 2, 2, 9], 4, 255).map(|p| p.pdu), Ok(3..4));
        for bad in [&[flag::PAD, 0, 9][..], &[flag::PAD, 4, 4, 4], &[flag::PAD, 3, 3, 2, 9], &[flag::PAD, 200]] {
            assert_eq!(parse(bad, 4, 255), Err(Dropped::Padding), "{bad:?}");
        }
        assert_eq!(parse(&[flag::PAD, 8, 8, 8, 8, 8, 8, 8, 8], 4, 7), Err(Dropped::Padding));
        assert_eq!(parse(&[flag::PAD], 4, 255), Err(Dropped::Short));
    }
}
