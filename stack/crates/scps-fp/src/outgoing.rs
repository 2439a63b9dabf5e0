//! A file, parts of one, or text, on its way to the wire.

use crate::ascii::Encoder;
use crate::ascii::Place;
use crate::command::FileType;
use crate::crc::Crc;
use crate::error::{StoreError, StoreResult};
use crate::listing::Listing;
use crate::ranges::Range;
use crate::search::Search;
use cap_std::fs::File;
use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

/// Octets read from a file at a time.
const CHUNK: usize = 64 * 1024;

#[derive(Debug)]
enum Source {
    Whole(File),
    Ranges { file: File, left: VecDeque<Range>, in_range: u64, forced: bool },
    Text,
    List(Listing),
}

/// What a sender sends.
#[derive(Debug)]
pub struct Outgoing {
    source: Source,
    /// Where in the file the marker is has to be found first.
    search: Option<Search>,
    encoder: Option<Encoder>,
    raw: Vec<u8>,
    wire: Vec<u8>,
    taken: usize,
    at_end: bool,
    missing: bool,
    sent: u64,
    start: u64,
    crc: Crc,
}

impl Outgoing {
    fn new(source: Source, encoder: Option<Encoder>, start: u64) -> Self {
        Outgoing {
            source,
            search: None,
            encoder,
            raw: Vec::new(),
            wire: Vec::new(),
            taken: 0,
            at_end: false,
            missing: false,
            sent: 0,
            start,
            crc: Crc::new(),
        }
    }

    /// A file from a marker on, which is found at once; see [`Outgoing::begin`].
    pub fn file(file: File, marker: u64, file_type: FileType) -> StoreResult<Outgoing> {
        let mut outgoing = Outgoing::begin(file, marker, file_type)?;
        while !outgoing.prepare()? {}
        Ok(outgoing)
    }

    /// A file from a marker on. Nothing is there to send before [`Outgoing::prepare`] has said so.
    pub fn begin(mut file: File, marker: u64, file_type: FileType) -> StoreResult<Outgoing> {
        let encoder = (file_type == FileType::Ascii).then(Encoder::default);
        if file_type == FileType::Image || marker == 0 {
            if marker > file.metadata()?.len() {
                return Err(beyond());
            }
            file.seek(SeekFrom::Start(marker))?;
            return Ok(Outgoing::new(Source::Whole(file), encoder, marker));
        }
        let search = Search::new(file.try_clone()?, marker)?;
        let mut outgoing = Outgoing::new(Source::Whole(file), encoder, marker);
        outgoing.search = Some(search);
        Ok(outgoing)
    }

    /// Names, as they are found.
    pub fn list(listing: Listing) -> Outgoing {
        Outgoing::new(Source::List(listing), None, 0)
    }

    /// Takes a step towards the next octets; true once [`Outgoing::peek`] has some, or has none left.
    pub fn prepare(&mut self) -> StoreResult<bool> {
        if let Some(search) = &mut self.search {
            let Some(place) = search.step()? else { return Ok(false) };
            let (position, after_cr) = match place {
                Place::At(position, after_cr) => (position, after_cr),
                Place::Split => return Err(StoreError::new(554, "the marker lies between CR and LF")),
                Place::Beyond(_) => return Err(beyond()),
            };
            if let Source::Whole(file) = &mut self.source {
                file.seek(SeekFrom::Start(position))?;
            }
            self.encoder = Some(Encoder::after(after_cr));
            self.search = None;
        }
        if matches!(self.source, Source::List(_)) && self.taken == self.wire.len() && !self.at_end {
            self.wire.clear();
            self.taken = 0;
            self.refill()?;
        }
        Ok(self.taken < self.wire.len() || self.at_end || !matches!(self.source, Source::List(_)))
    }

    /// Ranges of a file, one after the other.
    pub fn ranges(file: File, ranges: Vec<Range>, forced: bool) -> Outgoing {
        Outgoing::new(Source::Ranges { file, left: ranges.into(), in_range: 0, forced }, None, 0)
    }

    /// A text.
    pub fn text(text: Vec<u8>) -> Outgoing {
        let mut outgoing = Outgoing::new(Source::Text, None, 0);
        outgoing.wire = text;
        outgoing.at_end = true;
        outgoing
    }

    /// Octets to send next; empty at the end.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        while self.taken == self.wire.len() && !self.at_end {
            self.wire.clear();
            self.taken = 0;
            self.refill()?;
        }
        Ok(&self.wire[self.taken..])
    }

    /// Marks octets of [`Outgoing::peek`] as sent.
    pub fn advance(&mut self, n: usize) {
        self.crc.update(&self.wire[self.taken..self.taken + n]);
        self.taken += n;
        self.sent = self.sent.saturating_add(n as u64);
    }

    fn refill(&mut self) -> io::Result<()> {
        self.raw.resize(CHUNK, 0);
        let n = match &mut self.source {
            Source::Text => 0,
            Source::List(listing) => {
                let mut lines = Vec::new();
                self.at_end = listing.step(&mut lines).map_err(|e| io::Error::other(e.text))?;
                for line in lines {
                    self.wire.extend_from_slice(line.as_bytes());
                    self.wire.extend_from_slice(b"\r\n");
                }
                return Ok(());
            }
            Source::Whole(file) => file.read(&mut self.raw)?,
            Source::Ranges { file, left, in_range, forced } => {
                let Some(range) = left.front().copied() else {
                    self.at_end = true;
                    return Ok(());
                };
                let at = range.low.saturating_add(*in_range);
                let wanted = range.high.saturating_sub(at).saturating_add(1);
                file.seek(SeekFrom::Start(at))?;
                let limit = usize::try_from(wanted).unwrap_or(CHUNK).min(CHUNK);
                let n = file.read(&mut self.raw[..limit])?;
                let is_whole = n as u64 == wanted || (n == 0 && ends_with_the_file(range, *in_range));
                *in_range = in_range.saturating_add(n as u64);
                if is_whole || n == 0 {
                    left.pop_front();
                    *in_range = 0;
                }
                if n == 0 && !is_whole {
                    self.missing = true;
                    // Not forced: what exists was sent, then the operation ends.
                    if !*forced {
                        left.clear();
                    }
                }
                self.wire.extend_from_slice(&self.raw[..n]);
                return Ok(());
            }
        };
        match &mut self.encoder {
            Some(encoder) => encoder.encode(&self.raw[..n], &mut self.wire),
            None => self.wire.extend_from_slice(&self.raw[..n]),
        }
        self.at_end = n == 0;
        Ok(())
    }

    /// Octets handed to the transport on this connection.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Marker plus octets of this connection.
    pub fn marker(&self) -> u64 {
        self.start.saturating_add(self.sent)
    }

    /// Checksum of this connection's octets.
    pub fn crc(&self) -> u32 {
        self.crc.value()
    }

    /// True if ranges that do not exist are passed over.
    pub fn is_forced(&self) -> bool {
        matches!(self.source, Source::Ranges { forced: true, .. })
    }

    /// True if a range did not exist.
    pub fn has_missing(&self) -> bool {
        self.missing
    }
}

fn beyond() -> StoreError {
    StoreError::new(554, "the marker lies beyond the stored file")
}

/// True if the end of the file is the end of a range of which `sent` octets exist; an empty file is such a range too.
fn ends_with_the_file(range: Range, sent: u64) -> bool {
    range.high == Range::TO_THE_END && (sent > 0 || range.low == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(octets: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, octets).unwrap();
        File::from_std(file)
    }

    fn drain(mut outgoing: Outgoing) -> (Vec<u8>, Outgoing) {
        let mut all = Vec::new();
        loop {
            let piece = outgoing.peek().unwrap().to_vec();
            if piece.is_empty() {
                return (all, outgoing);
            }
            // In small steps, as a full transport takes them.
            let n = piece.len().min(1000);
            outgoing.advance(n);
            all.extend_from_slice(&piece[..n]);
        }
    }

    #[test]
    fn a_file_is_sent_from_its_marker() {
        let octets: Vec<u8> = (0..200_000u32).map(|i| (i % 249) as u8).collect();
        let (sent, outgoing) = drain(Outgoing::file(file(&octets), 70_001, FileType::Image).unwrap());
        assert_eq!(sent, octets[70_001..]);
        assert_eq!((outgoing.sent(), outgoing.marker()), (129_999, 200_000));
        assert_eq!(outgoing.crc(), crate::crc::crc(&octets[70_001..]));
        assert!(Outgoing::file(file(&octets), 200_001, FileType::Image).is_err());
        let (empty, outgoing) = drain(Outgoing::file(file(b""), 0, FileType::Image).unwrap());
        assert_eq!((empty.len(), outgoing.crc()), (0, 0xFFFF_FFFF));
    }

    #[test]
    fn ascii_goes_on_in_mid_file_as_if_never_stopped() {
        let text = b"one\ntwo\r\nthree\n";
        let (whole, _) = drain(Outgoing::file(file(text), 0, FileType::Ascii).unwrap());
        assert_eq!(whole, b"one\r\ntwo\r\nthree\r\n");
        for marker in [1, 3, 5, 8, 9, 10, 17] {
            match Outgoing::file(file(text), marker, FileType::Ascii) {
                Ok(outgoing) => assert_eq!(drain(outgoing).0, whole[marker as usize..]),
                Err(e) => panic!("{marker}: {e:?}"),
            }
        }
        assert_eq!(Outgoing::file(file(text), 4, FileType::Ascii).unwrap_err().code, 554);
    }

    #[test]
    fn ranges_come_in_order_and_never_hold_other_octets() {
        let alphabet: Vec<u8> = (b'A'..=b'Z').collect();
        let range = |low, high| Range { low, high };
        let (sent, outgoing) =
            drain(Outgoing::ranges(file(&alphabet), vec![range(0, 2), range(5, 5), range(20, 25)], false));
        assert_eq!(sent, b"ABCFUVWXYZ");
        assert_eq!(outgoing.crc(), 0xC188_8866);
        let beyond = vec![range(24, 30), range(0, 0)];
        let (sent, outgoing) = drain(Outgoing::ranges(file(&alphabet), beyond.clone(), false));
        assert_eq!((sent, outgoing.has_missing()), (b"YZ".to_vec(), true));
        let (sent, outgoing) = drain(Outgoing::ranges(file(&alphabet), beyond, true));
        assert_eq!((sent, outgoing.has_missing()), (b"YZA".to_vec(), true));
        let to_the_end = |low| vec![range(low, Range::TO_THE_END), range(0, 0)];
        for (low, expected, missing) in
            [(0, &b"ABCDEFGHIJKLMNOPQRSTUVWXYZA"[..], false), (24, b"YZA", false), (26, b"", true)]
        {
            let (sent, outgoing) = drain(Outgoing::ranges(file(&alphabet), to_the_end(low), false));
            assert_eq!((&sent[..], outgoing.has_missing()), (expected, missing), "from {low}");
        }
        let (sent, outgoing) = drain(Outgoing::ranges(file(b""), vec![range(0, Range::TO_THE_END)], false));
        assert_eq!((sent.len(), outgoing.has_missing()), (0, false));
    }
}
