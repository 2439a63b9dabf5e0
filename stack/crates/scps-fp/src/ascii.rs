//! Type A (scps-fp §4): lines end in LF in files and in CR LF on the wire; markers count wire octets (scps-fp §10).

use std::io::{self, Read};

/// File octets to wire octets. A CR LF that exists is not doubled.
#[derive(Clone, Copy, Default, Debug)]
pub struct Encoder {
    last_was_cr: bool,
}

impl Encoder {
    /// Appends the wire form of `octets`.
    pub fn encode(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        for &octet in octets {
            if octet == b'\n' && !self.last_was_cr {
                out.push(b'\r');
            }
            out.push(octet);
            self.last_was_cr = octet == b'\r';
        }
    }
}

/// Wire octets to file octets. Only a CR right before LF is dropped.
#[derive(Clone, Copy, Default, Debug)]
pub struct Decoder {
    holds_cr: bool,
}

impl Decoder {
    /// Appends the file form of `octets`; a CR at the end waits for what follows.
    pub fn decode(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        for &octet in octets {
            if self.holds_cr && octet != b'\n' {
                out.push(b'\r');
            }
            self.holds_cr = octet == b'\r';
            if !self.holds_cr {
                out.push(octet);
            }
        }
    }

    /// The end of the file: a waiting CR belongs to it.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.holds_cr) {
            out.push(b'\r');
        }
    }

    /// Wire octets taken but not in the file yet.
    pub fn held(&self) -> u64 {
        u64::from(self.holds_cr)
    }
}

/// Where a marker of wire octets lies in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At this file octet; the encoder continues there.
    At(u64, AfterCr),
    /// Between CR and LF.
    Split,
    /// Beyond the end; the file has this many wire octets.
    Beyond(u64),
}

/// True if the octet before is CR.
pub type AfterCr = bool;

/// Looks for a marker piece by piece, so that whoever has others to serve can do so in between.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    marker: u64,
    wire: u64,
    file: u64,
    last_was_cr: bool,
}

impl Scan {
    /// From the start of a file.
    pub fn new(marker: u64) -> Self {
        Scan { marker, wire: 0, file: 0, last_was_cr: false }
    }

    /// Takes the next octets of the file: the place, once it is found.
    pub fn take(&mut self, octets: &[u8]) -> Option<Place> {
        for &octet in octets {
            if self.wire == self.marker {
                return Some(Place::At(self.file, self.last_was_cr));
            }
            self.wire += if octet == b'\n' && !self.last_was_cr { 2 } else { 1 };
            if self.wire > self.marker {
                return Some(Place::Split);
            }
            self.file += 1;
            self.last_was_cr = octet == b'\r';
        }
        None
    }

    /// The file has ended.
    pub fn end(&self) -> Place {
        if self.wire == self.marker {
            Place::At(self.file, self.last_was_cr)
        } else {
            Place::Beyond(self.wire)
        }
    }

    /// The same of everything a reader gives.
    fn all(mut self, mut reader: impl Read) -> io::Result<Place> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(self.end()),
                Ok(n) => {
                    if let Some(place) = self.take(&buffer[..n]) {
                        return Ok(place);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// Finds a marker by scanning.
pub fn place_of(marker: u64, reader: impl Read) -> io::Result<Place> {
    Scan::new(marker).all(reader)
}

/// Octets a file has on the wire.
pub fn wire_length(reader: impl Read) -> io::Result<u64> {
    match place_of(u64::MAX, reader)? {
        Place::Beyond(length) | Place::At(length, _) => Ok(length),
        Place::Split => Err(io::Error::other("a file of more than 2^64 octets")),
    }
}

impl Encoder {
    /// An encoder that continues in mid-file.
    pub fn after(last_was_cr: AfterCr) -> Self {
        Encoder { last_was_cr }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(octets: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Encoder::default().encode(octets, &mut out);
        out
    }

    #[test]
    fn lf_becomes_cr_lf_and_existing_pairs_stay() {
        assert_eq!(encode(b"one\ntwo\r\nthree\r"), b"one\r\ntwo\r\nthree\r");
        assert_eq!(wire_length(&b"one\ntwo\n"[..]).unwrap(), 10);
    }

    #[test]
    fn only_cr_before_lf_is_dropped_however_the_octets_are_cut() {
        for cut in 0..=9 {
            let wire = b"a\r\nb\rc\r\r\nd\r";
            let mut decoder = Decoder::default();
            let mut out = Vec::new();
            decoder.decode(&wire[..cut], &mut out);
            decoder.decode(&wire[cut..], &mut out);
            decoder.finish(&mut out);
            assert_eq!(out, b"a\nb\rc\r\nd\r");
        }
    }

    #[test]
    fn markers_are_found_by_wire_octets() {
        let file = &b"ab\ncd\r\nx"[..];
        assert_eq!(place_of(0, file).unwrap(), Place::At(0, false));
        assert_eq!(place_of(2, file).unwrap(), Place::At(2, false));
        assert_eq!(place_of(3, file).unwrap(), Place::Split);
        assert_eq!(place_of(4, file).unwrap(), Place::At(3, false));
        assert_eq!(place_of(7, file).unwrap(), Place::At(6, true));
        assert_eq!(place_of(9, file).unwrap(), Place::At(8, false));
        assert_eq!(place_of(10, file).unwrap(), Place::Beyond(9));
    }
}
