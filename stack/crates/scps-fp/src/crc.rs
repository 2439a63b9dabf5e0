//! The SCPS checksum (scps-fp §5): CRC-32 with a zero start value.
//!
//! Leading zero octets do not change it, so it is never the only proof: length is compared beside it.

use std::io::{self, Read};

/// A checksum being computed.
#[derive(Clone, Debug)]
pub struct Crc(crc32fast::Hasher);

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc {
    /// The checksum of nothing.
    pub fn new() -> Self {
        // The usual routine inverts its start value, so all ones means a register of zero.
        Crc(crc32fast::Hasher::new_with_initial(0xFFFF_FFFF))
    }

    /// Takes more octets.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// The value so far.
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}

/// Checksum of a slice.
pub fn crc(octets: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(octets);
    crc.value()
}

/// Checksum and length of everything a reader gives.
pub fn crc_of(mut reader: impl Read) -> io::Result<(u32, u64)> {
    let mut crc = Crc::new();
    let mut length = 0;
    let mut buffer = vec![0u8; 256 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok((crc.value(), length)),
            Ok(n) => {
                crc.update(&buffer[..n]);
                length += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The text that replies carry: `CRC:` and eight upper-case hexadecimal digits.
pub fn crc_text(value: u32) -> String {
    format!("CRC:{value:08X}")
}

/// The checksum named in a reply, if one is.
pub fn find_crc(text: &str) -> Option<u32> {
    let digits = text.split("CRC:").nth(1)?.get(..8)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_notes() {
        let all: Vec<u8> = (0..=255).collect();
        let alphabet: Vec<u8> = (b'A'..=b'Z').collect();
        let first_forty: Vec<u8> = (0..40).collect();
        for (octets, value) in [
            (&b""[..], 0xFFFF_FFFF),
            (&[0; 32], 0xFFFF_FFFF),
            (&[0xFF; 32], 0x1999_0159),
            (b"a", 0xC54A_AE31),
            (b"123456789", 0xD202_D277),
            (b"SCPS", 0x1C42_3130),
            (&alphabet, 0xFBE4_39EF),
            (&first_forty, 0x1BB5_EC72),
            (&all, 0xDB6C_F6D4),
            (&all.repeat(20), 0xF3C1_135E),
        ] {
            assert_eq!(crc(octets), value);
            assert_eq!(crc_of(octets).unwrap(), (value, octets.len() as u64));
        }
    }

    #[test]
    fn reply_text_is_written_and_found() {
        assert_eq!(crc_text(0xD202_D277), "CRC:D202D277");
        assert_eq!(find_crc("Transfer complete. CRC:D202D277"), Some(0xD202_D277));
        assert_eq!(find_crc("CRC:D202"), None);
        assert_eq!(find_crc("complete"), None);
    }
}
