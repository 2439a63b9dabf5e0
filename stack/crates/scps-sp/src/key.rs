//! Keys of SP-AEAD-1: how they are read, derived and forgotten (scps-sp §6).

use crate::association::Ends;
use crate::Services;
use core::fmt;
use hkdf::Hkdf;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Octets of a key of suites 1 and 2, and of a master key.
pub const KEY_LEN: usize = 32;
/// Octets of the salt in every nonce.
pub const SALT_LEN: usize = 4;

/// The cipher and integrity check of a key. The packet does not tell it: the key id does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Suite {
    /// Suite 1: AES-256-GCM.
    Aes256Gcm,
    /// Suite 2: ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305,
    /// Suite 3: AES-128-GCM.
    Aes128Gcm,
}

impl Suite {
    /// Each suite and its name in settings.
    pub const NAMES: [(Suite, &'static str); 3] = [
        (Suite::Aes256Gcm, "aes-256-gcm"),
        (Suite::ChaCha20Poly1305, "chacha20-poly1305"),
        (Suite::Aes128Gcm, "aes-128-gcm"),
    ];

    /// Its number (scps-sp §6).
    pub const fn number(self) -> u8 {
        match self {
            Suite::Aes256Gcm => 1,
            Suite::ChaCha20Poly1305 => 2,
            Suite::Aes128Gcm => 3,
        }
    }

    /// Octets of its keys.
    pub const fn key_len(self) -> usize {
        match self {
            Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => 32,
            Suite::Aes128Gcm => 16,
        }
    }

    /// The highest sequence number a key is used for (scps-sp §6).
    pub const fn sequence_max(self) -> u64 {
        match self {
            Suite::Aes256Gcm | Suite::Aes128Gcm => 1 << 32,
            Suite::ChaCha20Poly1305 => (1 << 48) - 1,
        }
    }
}

/// Why octets are no key. The texts never quote them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadKey {
    /// Too short or too long; nothing is cut off or filled up.
    #[error("found a key of {found} octets; expected {expected}")]
    Length {
        /// Octets found.
        found: usize,
        /// Octets of the suite's keys.
        expected: usize,
    },
    /// The salt has another length.
    #[error("found a salt of {found} octets; expected 4")]
    SaltLength {
        /// Octets found.
        found: usize,
    },
}

/// A key of one direction. It is wiped when it is dropped, and no text shows it.
#[derive(Clone)]
pub struct AeadKey {
    suite: Suite,
    key: Zeroizing<[u8; KEY_LEN]>,
    salt: [u8; SALT_LEN],
}

impl AeadKey {
    /// A key and its salt. Whoever makes one sees to it that no two associations have it, whatever becomes of their names: their
    /// numbers are counted apart. [`AeadKey::derive`] does that.
    pub fn new(suite: Suite, key: &[u8], salt: &[u8]) -> Result<Self, BadKey> {
        let expected = suite.key_len();
        if key.len() != expected {
            return Err(BadKey::Length { found: key.len(), expected });
        }
        let salt = salt.try_into().map_err(|_| BadKey::SaltLength { found: salt.len() })?;
        let mut own = Zeroizing::new([0; KEY_LEN]);
        own[..expected].copy_from_slice(key);
        Ok(AeadKey { suite, key: own, salt })
    }

    /// The key of one direction, one key id and one use, out of a master key that both ends have (HKDF-SHA-256, RFC 5869). What
    /// encrypts and what only authenticates never share a key.
    pub fn derive(suite: Suite, master: &[u8], ends: &Ends, key_id: u16, services: Services) -> Result<Self, BadKey> {
        if master.len() != KEY_LEN {
            return Err(BadKey::Length { found: master.len(), expected: KEY_LEN });
        }
        let (src, dst) = (ends.src_octets(), ends.dst_octets());
        let direction = u8::from(ends.src > ends.dst);
        let is_encrypting = u8::from(services.has(Services::CONFIDENTIALITY));
        let id = key_id.to_be_bytes();
        let fixed = [suite.number(), is_encrypting, direction, src.as_slice().len() as u8];
        let info = [&b"SP-AEAD-1"[..], src.as_slice(), dst.as_slice(), &id, &fixed];
        let mut out = Zeroizing::new([0; KEY_LEN + SALT_LEN]);
        let len = suite.key_len() + SALT_LEN;
        // The one error is an output longer than 255 hashes.
        let expanded = Hkdf::<Sha256>::new(None, master).expand_multi_info(&info, &mut out[..len]);
        debug_assert!(expanded.is_ok());
        AeadKey::new(suite, &out[..suite.key_len()], &out[suite.key_len()..len])
    }

    /// Its suite.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    pub(crate) fn octets(&self) -> &[u8] {
        &self.key[..self.suite.key_len()]
    }

    pub(crate) fn salt(&self) -> [u8; SALT_LEN] {
        self.salt
    }

    /// True if both have the same octets; how long that takes does not depend on them.
    pub fn is_same(&self, other: &AeadKey) -> bool {
        bool::from(self.octets().ct_eq(other.octets()))
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AeadKey({:?}, octets not shown)", self.suite)
    }
}

/// What a key file holds: a master key, out of which the keys of associations are derived. No association has the octets of a
/// file themselves: sequence numbers are counted by ends and key id, so the key has to differ wherever one of them does. It is
/// wiped when it is dropped.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<Vec<u8>>);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(octets not shown)")
    }
}

/// Why a text is no key file. It does not quote the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: found {found}; expected one line \"master HEX\". Make a key with scps sp-key")]
pub struct BadKeyFile {
    /// The line, from 1.
    pub line: usize,
    /// What is there instead.
    pub found: &'static str,
}

impl MasterKey {
    /// Reads the text of a key file: a line of a word and hexadecimal digits. Lines that begin with "#" say nothing.
    pub fn read(text: &str) -> Result<Self, BadKeyFile> {
        let mut master = None;
        let mut last = 1;
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            last = i + 1;
            let bad = |found| BadKeyFile { line: last, found };
            let (word, digits) = line.split_once(' ').ok_or(bad("no word and digits"))?;
            match word {
                "master" => {}
                "key" | "salt" => {
                    return Err(bad("a key that is not bound to its ends, as versions up to 0.3 took it"))
                }
                _ => return Err(bad("an unknown word")),
            }
            let octets = octets_of(digits.trim()).ok_or(bad("something other than pairs of hexadecimal digits"))?;
            if master.replace(octets).is_some() {
                return Err(bad("a word for the second time"));
            }
        }
        master.map(MasterKey).ok_or(BadKeyFile { line: last, found: "no key" })
    }

    /// The key of an association.
    pub fn key(&self, suite: Suite, ends: &Ends, key_id: u16, services: Services) -> Result<AeadKey, BadKey> {
        AeadKey::derive(suite, &self.0, ends, key_id, services)
    }

    /// True if both have the same octets; how long that takes does not depend on them.
    pub fn is_same(&self, other: &MasterKey) -> bool {
        bool::from(self.0.ct_eq(&other.0))
    }
}

fn octets_of(digits: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digits = digits.as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let mut octets = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
    for pair in digits.chunks(2) {
        let [high, low] = *pair else { return None };
        octets.push(value(high)? << 4 | value(low)?);
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_another_length_are_refused_not_cut() {
        for (suite, len) in [(Suite::Aes256Gcm, 32), (Suite::ChaCha20Poly1305, 32), (Suite::Aes128Gcm, 16)] {
            for found in (0..40).filter(|n| *n != len) {
                let refused = AeadKey::new(suite, &vec![7; found], &[0; 4]).unwrap_err();
                assert_eq!(refused, BadKey::Length { found, expected: len });
            }
            assert!(AeadKey::new(suite, &vec![7; len], &[0; 4]).is_ok());
            assert_eq!(AeadKey::new(suite, &vec![7; len], &[0; 5]).unwrap_err(), BadKey::SaltLength { found: 5 });
        }
    }

    #[test]
    fn derived_keys_differ_by_everything_they_are_for() {
        let ends = Ends::v4([10, 0, 0, 1], [10, 0, 0, 2]);
        let back = Ends::v4([10, 0, 0, 2], [10, 0, 0, 1]);
        let all = Services::ALL;
        let derive =
            |suite, master: &[u8], ends, id, services| AeadKey::derive(suite, master, ends, id, services).unwrap();
        let one = derive(Suite::Aes256Gcm, &[1; 32], &ends, 1, all);
        assert!(one.is_same(&derive(Suite::Aes256Gcm, &[1; 32], &ends, 1, all)));
        for other in [
            derive(Suite::Aes256Gcm, &[2; 32], &ends, 1, all),
            derive(Suite::Aes256Gcm, &[1; 32], &back, 1, all),
            derive(Suite::Aes256Gcm, &[1; 32], &ends, 2, all),
            derive(Suite::Aes256Gcm, &[1; 32], &ends, 1, Services::INTEGRITY),
            derive(Suite::ChaCha20Poly1305, &[1; 32], &ends, 1, all),
        ] {
            assert!(!one.is_same(&other) && one.salt() != other.salt());
        }
    }

    #[test]
    fn no_text_shows_a_key() {
        let key = AeadKey::new(Suite::Aes256Gcm, &[0xab; 32], &[0xcd; 4]).unwrap();
        let text = format!("{key:?} {key:#?}");
        assert!(!text.contains("ab") && !text.contains("171") && !text.contains("cd"), "{text}");
    }

    #[test]
    fn key_files_hold_a_master_key_and_nothing_else() {
        let ends = Ends::v4([10, 0, 0, 1], [10, 0, 0, 2]);
        let master = MasterKey::read(&format!("# of Monday\nmaster {}\n", "0B".repeat(32))).unwrap();
        let read = master.key(Suite::Aes256Gcm, &ends, 1, Services::ALL).unwrap();
        assert!(read.is_same(&AeadKey::derive(Suite::Aes256Gcm, &[11; 32], &ends, 1, Services::ALL).unwrap()));
        let short = MasterKey::read("master 0b").unwrap();
        let refused = short.key(Suite::Aes256Gcm, &ends, 1, Services::ALL).unwrap_err();
        assert_eq!(refused, BadKey::Length { found: 1, expected: 32 });
        assert!(!master.is_same(&short) && short.is_same(&MasterKey::read("master 0b\n").unwrap()));
        for (text, line, found) in [
            ("", 1, "no key"),
            ("# old\nkey 0a\nsalt 00\n", 2, "not bound to its ends"),
            ("salt 0a", 1, "not bound to its ends"),
            ("master 0a\nmaster 0b", 2, "second time"),
            ("\nmaster 0a0\n", 2, "pairs"),
            ("master 0g", 1, "pairs"),
            ("secret 0a", 1, "unknown word"),
            ("0a0b", 1, "no word"),
        ] {
            let bad = MasterKey::read(text).unwrap_err();
            assert!(bad.line == line && bad.found.contains(found), "{text:?}: {bad}");
            assert!(!bad.to_string().contains("0a") && bad.to_string().contains("scps sp-key"), "{bad}");
        }
    }
}
