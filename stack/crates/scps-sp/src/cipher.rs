//! A cipher of a suite with its key: RustCrypto's, or ring's with the feature `ring` (decision 111).

use crate::aead::{NONCE_LEN, TAG_LEN};
use crate::Suite;

#[cfg(not(feature = "ring"))]
mod implementation {
    use super::{Suite, NONCE_LEN, TAG_LEN};
    use aes_gcm::aead::generic_array::GenericArray;
    use aes_gcm::aead::{AeadInPlace, KeyInit};
    use aes_gcm::{Aes128Gcm, Aes256Gcm};
    use chacha20poly1305::ChaCha20Poly1305;

    /// The crates wipe keys when they are dropped.
    pub(crate) enum Cipher {
        Aes256(Box<Aes256Gcm>),
        ChaCha(Box<ChaCha20Poly1305>),
        Aes128(Box<Aes128Gcm>),
    }

    impl Cipher {
        /// `key` has the suite's length.
        pub(crate) fn new(suite: Suite, key: &[u8]) -> Self {
            match suite {
                Suite::Aes256Gcm => Cipher::Aes256(Box::new(Aes256Gcm::new(GenericArray::from_slice(key)))),
                Suite::ChaCha20Poly1305 => {
                    Cipher::ChaCha(Box::new(ChaCha20Poly1305::new(GenericArray::from_slice(key))))
                }
                Suite::Aes128Gcm => Cipher::Aes128(Box::new(Aes128Gcm::new(GenericArray::from_slice(key)))),
            }
        }

        pub(crate) fn seal(&self, nonce: [u8; NONCE_LEN], bound: &[u8], text: &mut [u8]) -> Option<[u8; TAG_LEN]> {
            let nonce = GenericArray::from_slice(&nonce);
            let tag = match self {
                Cipher::Aes256(c) => c.encrypt_in_place_detached(nonce, bound, text),
                Cipher::ChaCha(c) => c.encrypt_in_place_detached(nonce, bound, text),
                Cipher::Aes128(c) => c.encrypt_in_place_detached(nonce, bound, text),
            };
            tag.ok().map(Into::into)
        }

        pub(crate) fn open(&self, nonce: [u8; NONCE_LEN], bound: &[u8], text: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
            let (nonce, tag) = (GenericArray::from_slice(&nonce), GenericArray::from_slice(tag));
            let opened = match self {
                Cipher::Aes256(c) => c.decrypt_in_place_detached(nonce, bound, text, tag),
                Cipher::ChaCha(c) => c.decrypt_in_place_detached(nonce, bound, text, tag),
                Cipher::Aes128(c) => c.decrypt_in_place_detached(nonce, bound, text, tag),
            };
            opened.is_ok()
        }
    }
}

#[cfg(feature = "ring")]
mod implementation {
    use super::{Suite, NONCE_LEN, TAG_LEN};
    use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305};

    /// `None` for a key of another length than the suite's, which seals and opens nothing.
    pub(crate) struct Cipher(Option<LessSafeKey>);

    impl Cipher {
        pub(crate) fn new(suite: Suite, key: &[u8]) -> Self {
            let algorithm = match suite {
                Suite::Aes256Gcm => &AES_256_GCM,
                Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
                Suite::Aes128Gcm => &AES_128_GCM,
            };
            Cipher(UnboundKey::new(algorithm, key).ok().map(LessSafeKey::new))
        }

        pub(crate) fn seal(&self, nonce: [u8; NONCE_LEN], bound: &[u8], text: &mut [u8]) -> Option<[u8; TAG_LEN]> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = self.0.as_ref()?.seal_in_place_separate_tag(nonce, Aad::from(bound), text).ok()?;
            tag.as_ref().try_into().ok()
        }

        pub(crate) fn open(&self, nonce: [u8; NONCE_LEN], bound: &[u8], text: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
            let nonce = Nonce::assume_unique_for_key(nonce);
            let opened = |key: &LessSafeKey| {
                key.open_in_place_separate_tag(nonce, Aad::from(bound), (*tag).into(), text, 0..).is_ok()
            };
            self.0.as_ref().is_some_and(opened)
        }
    }
}

pub(crate) use implementation::Cipher;
