//! Classic pcap files: link types Ethernet, raw IP and USER0, microsecond and nanosecond stamps, either byte order.

use crate::Instant;
use crate::Malformed;

/// What the captured octets begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    RawIp,
    /// The Linux "any" device's header.
    LinuxSll,
    /// What a private agreement says: an NP header, in the captures of this stack.
    User0,
}

/// A capture being read.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    is_big_endian: bool,
    is_nanosecond: bool,
    link_type: LinkType,
}

/// One captured packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Capture time, since the file's epoch.
    pub at: Instant,
    /// Octets captured.
    pub data: &'a [u8],
    /// Octets the packet had; a snap length keeps the first only.
    pub length: usize,
}

const GLOBAL_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;

impl<'a> Reader<'a> {
    /// Opens a capture.
    pub fn new(file: &'a [u8]) -> Result<Self, Malformed> {
        if file.len() < GLOBAL_HEADER_LEN {
            return Err(Malformed::Truncated);
        }
        let (is_big_endian, is_nanosecond) = match [file[0], file[1], file[2], file[3]] {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, false),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, true),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, false),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, true),
            _ => return Err(Malformed::BadVersion),
        };
        let mut reader = Reader { rest: file, is_big_endian, is_nanosecond, link_type: LinkType::RawIp };
        reader.link_type = match reader.word(20) & 0xffff {
            1 => LinkType::Ethernet,
            12 | 101 | 228 => LinkType::RawIp,
            113 => LinkType::LinuxSll,
            147 => LinkType::User0,
            _ => return Err(Malformed::BadVersion),
        };
        reader.rest = &file[GLOBAL_HEADER_LEN..];
        Ok(reader)
    }

    /// What the packets begin with.
    pub fn link_type(&self) -> LinkType {
        self.link_type
    }

    fn word(&self, at: usize) -> u32 {
        let b = [self.rest[at], self.rest[at + 1], self.rest[at + 2], self.rest[at + 3]];
        if self.is_big_endian {
            u32::from_be_bytes(b)
        } else {
            u32::from_le_bytes(b)
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        if self.rest.len() < RECORD_HEADER_LEN {
            self.rest = &[];
            return Some(Err(Malformed::Truncated));
        }
        let (secs, frac, len) = (self.word(0), self.word(4), self.word(8) as usize);
        let length = (self.word(12) as usize).max(len);
        let body = &self.rest[RECORD_HEADER_LEN..];
        if len > body.len() {
            self.rest = &[];
            return Some(Err(Malformed::Truncated));
        }
        let nanos = u64::from(frac) * if self.is_nanosecond { 1 } else { 1000 };
        let at = Instant::from_nanos(u64::from(secs) * 1_000_000_000 + nanos);
        self.rest = &body[len..];
        Some(Ok(Record { at, data: &body[..len], length }))
    }
}

/// Strips the link header; `None` if what follows is not IPv4.
pub fn ipv4_of(link_type: LinkType, frame: &[u8]) -> Option<&[u8]> {
    let (ethertype, start) = match link_type {
        LinkType::RawIp => return (frame.first()? >> 4 == 4).then_some(frame),
        LinkType::User0 => return None,
        LinkType::Ethernet => (frame.get(12..14)?, 14),
        LinkType::LinuxSll => (frame.get(14..16)?, 16),
    };
    (ethertype == [8, 0]).then(|| &frame[start..])
}

/// Writes a nanosecond raw-IP capture into memory.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// An empty capture.
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        // Magic for nanoseconds, version 2.4, zone 0, accuracy 0, snapshot length, link type 101 (raw IP).
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 101] {
            bytes.extend(word.to_le_bytes());
        }
        Writer { bytes }
    }

    /// Appends a packet.
    pub fn push(&mut self, at: Instant, packet: &[u8]) {
        let nanos = at.as_nanos();
        for word in
            [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32, packet.len() as u32, packet.len() as u32]
        {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(packet);
    }

    /// The file so far; the header is written once, so callers may drain and append.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_captures_are_read_back() {
        let mut w = Writer::new();
        w.push(Instant::from_millis(1500), &[0x45, 1, 2]);
        let mut r = Reader::new(w.as_bytes()).unwrap();
        assert_eq!(r.link_type(), LinkType::RawIp);
        assert_eq!(r.next(), Some(Ok(Record { at: Instant::from_millis(1500), data: &[0x45, 1, 2], length: 3 })));
        assert_eq!(r.next(), None);
    }

    #[test]
    fn a_cut_file_is_reported_once() {
        let mut w = Writer::new();
        w.push(Instant::ZERO, &[1, 2, 3]);
        let cut = &w.as_bytes()[..w.as_bytes().len() - 1];
        let mut r = Reader::new(cut).unwrap();
        assert_eq!(r.next(), Some(Err(Malformed::Truncated)));
        assert_eq!(r.next(), None);
        assert!(Reader::new(&[0; 24]).is_err());
    }
}
