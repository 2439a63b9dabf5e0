//! The reference implementation's file of associations (scps-sp §4.3).

use super::{Algorithms, Cipher, ICV_LEN, KEY_LEN};
use crate::association::{Association, Ends, Protection, LABEL_MAX};
use crate::window::WINDOW_DEFAULT;
use crate::{ClearHeader, Services};
use std::net::Ipv4Addr;

/// A line that is no association. The text does not quote it, for it holds keys.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Fields of a line.
const FIELDS: usize = 11;

/// Reads a table: eleven fields a line, or the line is named and nothing is taken. Key ids, which the reference does not have,
/// are the numbers of the lines.
pub fn read_table(text: &str) -> Result<Vec<Association>, BadLine> {
    let mut associations = Vec::new();
    for (line, fields) in text.lines().enumerate().map(|(i, line)| (i + 1, line)) {
        let association = read_line(fields, line).map_err(|problem| BadLine { line, problem })?;
        associations.push(association);
    }
    Ok(associations)
}

fn read_line(line: &str, number: usize) -> Result<Association, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [src, dst, cipher_key, block_size, cipher, icv_key, icv_size, icv, label_len, label, qos] = fields[..] else {
        return Err(format!("found {} fields; expected {FIELDS}", fields.len()));
    };
    let hex = |what: &str, text: &str| {
        u32::from_str_radix(text, 16).map_err(|_| format!("{what}: found no hexadecimal number of 32 bits"))
    };
    let count = |what: &str, text: &str, expected: usize| match text.parse() {
        Ok(n) if n == expected => Ok(n),
        _ => Err(format!("{what}: found another number than {expected}")),
    };
    let key = |what: &str, text: &str| {
        <[u8; KEY_LEN]>::try_from(text.as_bytes())
            .map_err(|_| format!("{what}: found {} characters; expected 8", text.len()))
    };
    let block_size = count("block size", block_size, KEY_LEN)?;
    count("check value's size", icv_size, ICV_LEN)?;
    count("check value's algorithm", icv, 0)?;
    let cipher = match cipher.parse::<u32>() {
        Ok(0) => Cipher::Des,
        Ok(1) => Cipher::Xor,
        _ => return Err("cipher: found neither 0 (DES) nor 1 (XOR)".to_owned()),
    };
    let label_len: usize = label_len.parse().map_err(|_| "label's length: found no number".to_owned())?;
    if label_len > LABEL_MAX || label_len > label.len() {
        return Err(format!("label's length: found {label_len}; expected at most {LABEL_MAX}, and a label as long"));
    }
    let services = u8::from_str_radix(qos, 16).ok().filter(|bits| *bits <= Services::ALL.bits());
    let services = services.map(Services::from_bits).ok_or("services: found no hexadecimal number up to F")?;
    let algorithms = Algorithms {
        block_size,
        ..Algorithms::new(cipher, key("cipher's key", cipher_key)?, key("check value's key", icv_key)?)
    };
    Ok(Association {
        ends: Ends::v4(Ipv4Addr::from(hex("source", src)?), Ipv4Addr::from(hex("destination", dst)?)),
        key_id: u16::try_from(number).map_err(|_| "found more than 65535 lines".to_owned())?,
        protection: Protection::Legacy(algorithms),
        services,
        label: label.as_bytes()[..label_len].to_vec(),
        clear_header: ClearHeader::Full8,
        window: WINDOW_DEFAULT,
        pad_to: None,
        not_after: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "c0307280 c0307283 KEYKEYKE 8 1 MD5PKEY! 16 0 0 0 F";

    #[test]
    fn eleven_fields_are_an_association() {
        let table = read_table(&format!("{LINE}\nc0307283 c0307280 KEYKEYKE 8 0 MD5PKEY! 16 0 6 UNCLAS 9\n")).unwrap();
        assert_eq!(table[0].ends, Ends::v4([0xc0, 0x30, 0x72, 0x80], [0xc0, 0x30, 0x72, 0x83]));
        assert_eq!((table[0].services, &table[0].label[..]), (Services::ALL, &b""[..]));
        assert_eq!((table[1].services, &table[1].label[..]), (Services::from_bits(9), &b"UNCLAS"[..]));
    }

    #[test]
    fn malformed_lines_are_named_by_number_and_show_no_key() {
        for (from, to) in [
            ("c0307280", "c030728g"),
            ("KEYKEYKE", "KEYKEYKEYKEYKEYKEYKEYKEY"),
            (" 8 ", " 16 "),
            (" 1 ", " 2 "),
            ("MD5PKEY!", "MD5PKEY!MD5PKEY!"),
            (" 16 ", " 20 "),
            (" 0 0 F", " 33 0 F"),
            (" F", " 1F"),
            (" F", ""),
            (" F", " F F"),
        ] {
            let bad = read_table(&format!("{LINE}\n{}\n", LINE.replacen(from, to, 1))).unwrap_err();
            assert_eq!(bad.line, 2);
            assert!(!bad.to_string().contains("KEY"), "{bad}");
        }
    }
}
