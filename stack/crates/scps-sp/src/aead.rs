//! SP-AEAD-1: clear header, key id, sequence number, protected part, tag (scps-sp §6).

use crate::association::Ends;
use crate::cipher::Cipher;
use crate::key::SALT_LEN;
use crate::{AeadKey, ADDRESS_MAX};
use core::fmt;

/// Octets before the protected part: clear header, key id, sequence number.
pub(crate) const HEAD_LEN: usize = 1 + 2 + SEQUENCE_LEN;
/// Octets of the tag, which is the ICV.
pub(crate) const TAG_LEN: usize = 16;
/// Octets of a sequence number.
const SEQUENCE_LEN: usize = 6;
/// Octets of a nonce.
pub(crate) const NONCE_LEN: usize = SALT_LEN + 8;
/// TPID of SP, which ends the associated data.
const TPID: u8 = 8;

/// A key in operation.
pub(crate) struct Aead {
    cipher: Cipher,
    salt: [u8; SALT_LEN],
}

impl fmt::Debug for Aead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aead(octets not shown)")
    }
}

/// The head of a PDU: what is never encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The clear header, as [`ClearHeader`](crate::ClearHeader) writes it.
    pub clear: u8,
    /// Which of the direction's keys protects the rest.
    pub key_id: u16,
    /// Sequence number, of 48 bits.
    pub sequence: u64,
}

impl Head {
    /// Octets of a head.
    pub const LEN: usize = HEAD_LEN;
    /// Octets of the tag that ends a PDU.
    pub const TAG_LEN: usize = TAG_LEN;

    pub(crate) fn emit(&self) -> [u8; HEAD_LEN] {
        let mut head = [self.clear; HEAD_LEN];
        head[1..3].copy_from_slice(&self.key_id.to_be_bytes());
        head[3..].copy_from_slice(&self.sequence.to_be_bytes()[8 - SEQUENCE_LEN..]);
        head
    }

    /// Reads a head; what follows it is the protected part and the tag.
    pub fn parse(octets: &[u8]) -> Option<(Head, &[u8])> {
        let (head, rest) = octets.split_first_chunk::<HEAD_LEN>()?;
        let [clear, key_high, key_low, number @ ..] = *head;
        let key_id = u16::from_be_bytes([key_high, key_low]);
        let sequence = number.iter().fold(0, |sequence, octet| sequence << 8 | u64::from(*octet));
        Some((Head { clear, key_id, sequence }, rest))
    }
}

/// Associated data of a packet that is encrypted.
const BOUND_MAX: usize = HEAD_LEN + 1 + 2 * ADDRESS_MAX + 1;

/// What binds a packet to its direction and number. A packet that is not encrypted has its protected part behind this.
pub(crate) struct Bound {
    octets: [u8; BOUND_MAX],
    len: usize,
}

impl Bound {
    pub(crate) fn new(head: &Head, ends: &Ends) -> Self {
        let mut bound = Bound { octets: [0; BOUND_MAX], len: 0 };
        bound.put(&head.emit());
        bound.put(&[ends.address_len() as u8]);
        bound.put(ends.src_octets().as_slice());
        bound.put(ends.dst_octets().as_slice());
        bound.put(&[TPID]);
        bound
    }

    fn put(&mut self, octets: &[u8]) {
        self.octets[self.len..self.len + octets.len()].copy_from_slice(octets);
        self.len += octets.len();
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

impl Aead {
    pub(crate) fn new(key: &AeadKey) -> Self {
        let cipher = Cipher::new(key.suite(), key.octets());
        Aead { cipher, salt: key.salt() }
    }

    /// Salt, two zero octets, sequence number.
    fn nonce(&self, sequence: u64) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        nonce[..SALT_LEN].copy_from_slice(&self.salt);
        nonce[SALT_LEN..].copy_from_slice(&sequence.to_be_bytes());
        nonce
    }

    /// Encrypts `text` in place. `None` if it is too long for the cipher, which no packet is.
    pub(crate) fn seal(&self, sequence: u64, bound: &[u8], text: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        self.cipher.seal(self.nonce(sequence), bound, text)
    }

    /// Decrypts `text` in place if the tag verifies, in time that does not depend on where it differs. Otherwise `text` is
    /// of no use.
    pub(crate) fn open(&self, sequence: u64, bound: &[u8], text: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.cipher.open(self.nonce(sequence), bound, text, tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Suite;

    #[test]
    fn nonce_and_bound_data_are_those_of_the_examples() {
        // scps-sp §7, M1 and M2.
        let ends = Ends::v4([0xc0, 3, 0x72, 0x80], [0xc0, 3, 0x72, 0x83]);
        let key = AeadKey::new(Suite::Aes256Gcm, &[0; 32], &[0xa0, 0xa1, 0xa2, 0xa3]).unwrap();
        assert_eq!(Aead::new(&key).nonce(1), [0xa0, 0xa1, 0xa2, 0xa3, 0, 0, 0, 0, 0, 0, 0, 1]);
        let bound = Bound::new(&Head { clear: 0x6a, key_id: 2, sequence: 7 }, &ends);
        let expected = [0x6a, 0, 2, 0, 0, 0, 0, 0, 7, 4, 0xc0, 3, 0x72, 0x80, 0xc0, 3, 0x72, 0x83, 8];
        assert_eq!(bound.as_slice(), expected);
    }

    #[test]
    fn what_does_not_verify_is_not_decrypted() {
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Aes128Gcm] {
            let aead = Aead::new(&AeadKey::new(suite, &vec![3; suite.key_len()], &[0; 4]).unwrap());
            let mut text = *b"the data of a packet";
            let tag = aead.seal(9, b"bound", &mut text).unwrap();
            let sealed = text;
            // Wherever the tag differs, the answer is the same.
            for at in 0..TAG_LEN {
                let mut wrong = tag;
                wrong[at] ^= 0x10;
                assert!(!aead.open(9, b"bound", &mut text, &wrong));
                assert_ne!(&text, b"the data of a packet");
                text = sealed;
            }
            for (sequence, bound) in [(8, b"bound"), (9, b"other")] {
                assert!(!aead.open(sequence, bound, &mut text, &tag));
                text = sealed;
            }
            assert!(aead.open(9, b"bound", &mut text, &tag));
            assert_eq!(&text, b"the data of a packet");
        }
    }
}
