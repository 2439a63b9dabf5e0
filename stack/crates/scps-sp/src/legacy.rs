//! The algorithms of the reference implementation (scps-sp §3): a prefix-keyed MD5, XOR, and DES with a constant initial vector.
//! They are INSECURE and exist for tests of interoperation with the reference only.
//!
//! There are no sequence numbers, so whatever was sent once is accepted again.

mod table;

pub use table::{read_table, BadLine};

use crate::association::{Association, Ends};
use crate::element;
use crate::sp::judge;
use crate::{Dropped, Services, Upper};
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockDecryptMut, BlockEncryptMut, KeyIvInit};
use core::fmt;
use core::ops::Range;
use des::Des;
use md5::{Digest, Md5};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Octets of the check value.
pub const ICV_LEN: usize = 16;
/// Octets of each key, and of DES's block.
pub const KEY_LEN: usize = 8;
/// The initial vector of every packet.
const IV: [u8; 8] = *b"IVIVIVIV";

/// How the protected part is hidden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cipher {
    /// Algorithm 0: DES, cipher block chaining.
    Des,
    /// Algorithm 1, and what the reference does for every number it does not know: XOR with the key.
    Xor,
}

/// Algorithms and keys of an association.
#[derive(Clone)]
pub struct Algorithms {
    cipher: Cipher,
    block_size: usize,
    cipher_key: Zeroizing<[u8; KEY_LEN]>,
    icv_key: Zeroizing<[u8; KEY_LEN]>,
}

impl fmt::Debug for Algorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Algorithms({:?}, octets not shown)", self.cipher)
    }
}

impl Algorithms {
    /// Algorithms with keys of eight octets and the usual block of eight.
    pub fn new(cipher: Cipher, cipher_key: [u8; KEY_LEN], icv_key: [u8; KEY_LEN]) -> Self {
        Algorithms {
            cipher,
            block_size: KEY_LEN,
            cipher_key: Zeroizing::new(cipher_key),
            icv_key: Zeroizing::new(icv_key),
        }
    }

    /// Octets that a hidden part is filled up to a multiple of.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    fn icv(&self, part: &[u8]) -> [u8; ICV_LEN] {
        Md5::new().chain_update(&self.icv_key[..]).chain_update(part).finalize().into()
    }

    fn xor(&self, part: &mut [u8]) {
        part.iter_mut().zip(self.cipher_key.iter().cycle()).for_each(|(octet, key)| *octet ^= key);
    }

    /// Completes a PDU whose elements and transport PDU stand behind the clear header.
    pub(crate) fn seal(&self, services: Services, packet: &mut [u8]) {
        let part = &mut packet[1..];
        if services.has(Services::INTEGRITY) {
            let (covered, icv) = part.split_at_mut(part.len() - ICV_LEN);
            icv.copy_from_slice(&self.icv(covered));
        }
        if services.has(Services::CONFIDENTIALITY) {
            match self.cipher {
                Cipher::Xor => self.xor(part),
                Cipher::Des => {
                    let cbc = cbc::Encryptor::<Des>::new((&*self.cipher_key).into(), &IV.into());
                    let len = part.len();
                    // The part is a multiple of the block: its padding is of the PDU, not of the cipher.
                    let done = cbc.encrypt_padded_mut::<NoPadding>(part, len);
                    debug_assert!(done.is_ok());
                }
            }
        }
    }

    /// Undoes the cipher; false if the part cannot have been its output.
    fn reveal(&self, part: &mut [u8]) -> bool {
        match self.cipher {
            Cipher::Xor => {
                self.xor(part);
                true
            }
            Cipher::Des => {
                let cbc = cbc::Decryptor::<Des>::new((&*self.cipher_key).into(), &IV.into());
                cbc.decrypt_padded_mut::<NoPadding>(part).is_ok()
            }
        }
    }
}

/// Reads a PDU of the reference. What the association demands is enforced, unlike there (scps-sp §8).
pub(crate) fn open(
    association: &Association,
    ends: Ends,
    octets: &[u8],
    out: &mut Vec<u8>,
) -> Result<(Upper, Range<usize>), Dropped> {
    let crate::Protection::Legacy(algorithms) = &association.protection else { return Err(Dropped::UnknownKey) };
    let (clear, part) = octets.split_first().ok_or(Dropped::Short)?;
    let upper = association.clear_header.parse(*clear).ok_or(Dropped::ClearHeader)?;
    out.extend_from_slice(part);
    if association.services.has(Services::CONFIDENTIALITY) && !algorithms.reveal(out) {
        return Err(Dropped::Short);
    }
    let flags = *out.first().ok_or(Dropped::Short)?;
    if flags & element::flag::ICV != 0 {
        let (covered, icv) = out.split_last_chunk::<ICV_LEN>().ok_or(Dropped::Short)?;
        if covered.is_empty() {
            return Err(Dropped::Short);
        }
        if !bool::from(algorithms.icv(covered).ct_eq(icv)) {
            return Err(Dropped::Authentication);
        }
        out.truncate(out.len() - ICV_LEN);
    }
    let parsed = element::parse(out, ends.address_len(), algorithms.block_size.saturating_sub(1))?;
    judge(association, ends, &parsed, out)?;
    Ok((upper, parsed.pdu))
}
