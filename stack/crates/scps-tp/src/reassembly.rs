//! Received data: in order for the reader, pieces out of order beside it, record ends, and skipped holes.
//!
//! Memory is bounded by the receive buffer (data beyond it is cut) and by a limit on separate pieces.

use crate::record_ends::RecordEnds;
use crate::ring::ByteRing;
use std::collections::VecDeque;

/// A hole the reader was made to skip under BETS (scps-tp §7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hole {
    /// First missing octet, counted from the start of the stream.
    pub offset: u64,
    /// Missing octets.
    pub len: u64,
}

/// What reading found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// Octets copied; `ends_record` if the last one ends a record.
    Data {
        /// Octets copied.
        len: usize,
        /// Whether a record ends there.
        ends_record: bool,
    },
    /// A hole was skipped here; reported once.
    Hole(Hole),
    /// Nothing yet.
    Empty,
}

/// What an arriving segment did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It advanced the in-order edge. `filled_hole` if pieces out of order joined it or remain beyond it.
    InOrder {
        /// Whether out-of-order pieces were or are present.
        filled_hole: bool,
    },
    /// It was kept out of order.
    OutOfOrder,
    /// It brought nothing new.
    Duplicate,
    /// There was no room for another piece.
    Refused,
}

/// Arrivals remembered for SACK blocks.
const RECENT_MAX: usize = 6;
/// Changed pieces waiting to be named; a device hands over no more segments at once.
const NEWS_MAX: usize = 1024;

/// The receive side of a stream. Positions are octets since the peer's initial sequence number; data begins at 1.
#[derive(Clone, Debug)]
pub struct Reassembly {
    ring: ByteRing,
    next: u64,
    pieces: Vec<(u64, u64)>,
    pieces_max: usize,
    recent: [Option<u64>; RECENT_MAX],
    news: VecDeque<u64>,
    record_ends: RecordEnds,
    skipped: VecDeque<(u64, u64)>,
}

impl Reassembly {
    /// An empty stream; `limit` octets of buffer, `pieces_max` separate pieces.
    pub fn new(limit: usize, pieces_max: usize) -> Self {
        Reassembly {
            ring: ByteRing::new(1, limit),
            next: 1,
            pieces: Vec::new(),
            pieces_max,
            recent: [None; RECENT_MAX],
            news: VecDeque::new(),
            record_ends: RecordEnds::new(limit),
            skipped: VecDeque::new(),
        }
    }

    /// Next position expected: everything before it is here.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// First position that does not fit.
    pub fn limit_edge(&self) -> u64 {
        self.ring.start() + self.ring.limit() as u64
    }

    /// Octets the reader can have.
    pub fn readable(&self) -> usize {
        (self.next - self.ring.start()) as usize
    }

    /// Pieces held out of order, ascending, `[start, end)`.
    pub fn pieces(&self) -> &[(u64, u64)] {
        &self.pieces
    }

    /// The pieces that changed last, latest first: every SACK block is so repeated on a few successive
    /// acknowledgements (RFC 2018 §4).
    pub fn recent_pieces(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.recent.iter().flatten().filter_map(|at| self.piece_at(*at))
    }

    /// A piece that changed and was not taken from here since. When several segments are acknowledged at once, more
    /// pieces may have changed than one acknowledgement can name.
    pub fn take_block(&mut self) -> Option<(u64, u64)> {
        while let Some(at) = self.news.pop_front() {
            if let Some(piece) = self.piece_at(at) {
                return Some(piece);
            }
        }
        None
    }

    /// Puts back what was taken, in the order it was taken.
    pub fn restore_blocks(&mut self, taken: &[u64]) {
        for at in taken.iter().rev() {
            self.news.push_front(*at);
        }
    }

    /// True if [`Reassembly::take_block`] may have more.
    pub fn has_blocks(&self) -> bool {
        !self.news.is_empty()
    }

    fn piece_at(&self, position: u64) -> Option<(u64, u64)> {
        let i = self.pieces.partition_point(|p| p.1 <= position);
        self.pieces.get(i).copied().filter(|p| p.0 <= position)
    }

    fn note_change(&mut self, position: u64) {
        let piece = self.piece_at(position);
        if self.recent[0].and_then(|at| self.piece_at(at)) != piece {
            self.recent.rotate_right(1);
        }
        self.recent[0] = Some(position);
        if self.news.back().and_then(|at| self.piece_at(*at)) != piece {
            if self.news.len() >= NEWS_MAX {
                self.news.pop_front();
            }
            self.news.push_back(position);
        }
    }

    /// The lowest hole that starts at or after `position`.
    pub fn hole_from(&self, position: u64) -> Option<(u64, u64)> {
        let i = if position <= self.next {
            0
        } else {
            // Piece i ends where hole i+1 starts.
            self.pieces.partition_point(|p| p.1 < position) + 1
        };
        let end = self.pieces.get(i)?.0;
        let start = if i == 0 { self.next } else { self.pieces[i - 1].1 };
        Some((start, end))
    }

    /// Takes a segment's data; parts before the edge or beyond the buffer are cut. `reader` may have what would be read next at once: it
    /// tells how many octets it took.
    pub fn insert_or_pass(
        &mut self,
        position: u64,
        data: &[u8],
        ends_record: bool,
        reader: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Arrival {
        let edge = self.limit_edge();
        let start = position.max(self.next);
        let full_end = position + data.len() as u64;
        let end = full_end.min(edge);
        if start >= end {
            return Arrival::Duplicate;
        }
        let body = &data[(start - position) as usize..(end - position) as usize];
        // In order with nothing out of order: the path of every segment of a clean transfer.
        if start == self.next && self.pieces.is_empty() {
            let is_read_next = self.readable() == 0 && self.skipped.is_empty() && !ends_record;
            let passed = if is_read_next { reader(body) } else { 0 };
            if passed > 0 {
                self.ring.release_to(start + passed as u64);
                self.ring.rewind();
            }
            self.ring.write(start + passed as u64, &body[passed..]);
            self.next = end;
            self.note_record_end(ends_record && end == full_end, end);
            return Arrival::InOrder { filled_hole: false };
        }
        let first = self.pieces.partition_point(|p| p.1 < start);
        let last = self.pieces.partition_point(|p| p.0 <= end);
        if first < last {
            let covered = self.pieces[first].0 <= start && end <= self.pieces[first].1;
            if covered {
                self.note_change(start);
                return Arrival::Duplicate;
            }
        } else if start != self.next && self.pieces.len() >= self.pieces_max {
            return Arrival::Refused;
        }
        self.ring.write(start, body);
        self.note_record_end(ends_record && end == full_end, end);
        let mut merged = (start, end);
        if first < last {
            merged = (start.min(self.pieces[first].0), end.max(self.pieces[last - 1].1));
        }
        if merged.0 <= self.next {
            self.pieces.drain(..last);
            self.next = merged.1;
            Arrival::InOrder { filled_hole: true }
        } else {
            self.pieces.splice(first..last, [merged]);
            self.note_change(start);
            Arrival::OutOfOrder
        }
    }

    #[cfg(test)]
    pub(crate) fn insert(&mut self, position: u64, data: &[u8], ends_record: bool) -> Arrival {
        self.insert_or_pass(position, data, ends_record, &mut |_| 0)
    }

    fn note_record_end(&mut self, ends: bool, position: u64) {
        if ends {
            self.record_ends.insert(position);
        }
    }

    /// Jumps over the lowest hole (scps-tp §7.1). Returns it, or `None` if there is no later data.
    pub fn skip_hole(&mut self) -> Option<(u64, u64)> {
        let (start, end) = *self.pieces.first()?;
        let hole = (self.next, start);
        self.pieces.remove(0);
        self.skipped.push_back(hole);
        self.next = end;
        Some(hole)
    }

    /// Gives `take` up to `len_max` octets in two pieces, stopping at a record end or a skipped hole.
    pub fn read(&mut self, len_max: usize, take: impl FnOnce(&[u8], &[u8])) -> Read {
        let start = self.ring.start();
        if let Some(&(hole_start, hole_end)) = self.skipped.front() {
            if hole_start == start {
                self.skipped.pop_front();
                self.ring.release_to(hole_end);
                // Offset counts from the first octet of the stream, which is at position 1.
                return Read::Hole(Hole { offset: hole_start - 1, len: hole_end - hole_start });
            }
        }
        let mut stop = self.next;
        if let Some(&(hole_start, _)) = self.skipped.front() {
            stop = stop.min(hole_start);
        }
        stop = stop.min(start + len_max as u64);
        let record_end = self.record_ends.first_in(start, stop);
        let len = (record_end.unwrap_or(stop) - start) as usize;
        if len == 0 {
            return Read::Empty;
        }
        let (a, b) = self.ring.slices(start, len);
        take(a, b);
        let end = start + len as u64;
        self.ring.release_to(end);
        if end == self.next && self.pieces.is_empty() {
            self.ring.rewind();
        }
        let ends_record = record_end == Some(end);
        if ends_record {
            self.record_ends.remove(end);
        }
        Read::Data { len, ends_record }
    }

    /// Octets of memory in use.
    pub fn allocated(&self) -> usize {
        self.ring.allocated()
            + self.pieces.capacity() * 16
            + self.news.capacity() * 8
            + self.skipped.capacity() * 16
            + self.record_ends.allocated()
    }

    /// Octets of memory that one of `limit` octets and `pieces_max` pieces takes at most, without holes that were skipped.
    pub fn memory_max(limit: usize, pieces_max: usize) -> usize {
        let pieces = pieces_max.min(limit / 2 + 1).next_power_of_two().max(4);
        limit.saturating_add(limit / 8).saturating_add(pieces * 16 + NEWS_MAX * 8 + 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(r: &mut Reassembly) -> Vec<u8> {
        let mut all = Vec::new();
        r.read(100, |a, b| all = [a, b].concat());
        all
    }

    #[test]
    fn pieces_join_whatever_their_order() {
        let mut r = Reassembly::new(100, 10);
        assert_eq!(r.insert(5, b"efgh", false), Arrival::OutOfOrder);
        assert_eq!(r.insert(11, b"kl", false), Arrival::OutOfOrder);
        assert_eq!(r.pieces(), [(5, 9), (11, 13)]);
        assert_eq!(r.insert(1, b"abcd", false), Arrival::InOrder { filled_hole: true });
        assert_eq!(r.insert(8, b"hij", false), Arrival::InOrder { filled_hole: true });
        assert_eq!(read_all(&mut r), b"abcdefghijkl");
    }

    #[test]
    fn holes_are_found_from_a_position() {
        let mut r = Reassembly::new(100, 10);
        r.insert(5, b"efgh", false);
        r.insert(11, b"kl", false);
        assert_eq!(r.hole_from(0), Some((1, 5)));
        assert_eq!(r.hole_from(5), Some((9, 11)));
        assert_eq!(r.hole_from(9), Some((9, 11)));
        assert_eq!(r.hole_from(11), None);
    }

    #[test]
    fn data_beyond_the_buffer_is_cut_and_pieces_are_bounded() {
        let mut r = Reassembly::new(20, 2);
        assert_eq!(r.insert(15, &[1; 20], false), Arrival::OutOfOrder);
        assert_eq!(r.pieces(), [(15, 21)]);
        assert_eq!(r.insert(3, &[1], false), Arrival::OutOfOrder);
        assert_eq!(r.insert(5, &[1], false), Arrival::Refused);
        assert_eq!(r.insert(1, &[1], false), Arrival::InOrder { filled_hole: true });
        assert_eq!(r.insert(40, &[1], false), Arrival::Duplicate);
    }

    #[test]
    fn reads_stop_at_record_ends() {
        let mut r = Reassembly::new(100, 10);
        r.insert(1, b"abc", true);
        r.insert(4, b"def", false);
        assert_eq!(r.read(2, |_, _| ()), Read::Data { len: 2, ends_record: false });
        assert_eq!(r.read(100, |_, _| ()), Read::Data { len: 1, ends_record: true });
        assert_eq!(r.read(100, |_, _| ()), Read::Data { len: 3, ends_record: false });
    }

    #[test]
    fn records_of_one_octet_take_an_eighth_of_the_buffer() {
        let mut r = Reassembly::new(65_536, 10);
        for i in 1..=65_536 {
            r.insert(i, &[7], true);
        }
        assert!(r.allocated() < 65_536 + 65_536 / 8 + 1000, "{}", r.allocated());
        (0..65_536).for_each(|_| assert_eq!(r.read(100, |_, _| ()), Read::Data { len: 1, ends_record: true }));
        assert_eq!(r.read(100, |_, _| ()), Read::Empty);
    }

    #[test]
    fn a_skipped_hole_is_reported_before_later_data() {
        let mut r = Reassembly::new(100, 10);
        r.insert(1, b"ab", false);
        r.insert(6, b"f", false);
        assert_eq!(r.skip_hole(), Some((3, 6)));
        assert_eq!(r.skip_hole(), None);
        assert_eq!(r.read(100, |_, _| ()), Read::Data { len: 2, ends_record: false });
        assert_eq!(r.read(100, |_, _| ()), Read::Hole(Hole { offset: 2, len: 3 }));
        assert_eq!(r.read(100, |_, _| ()), Read::Data { len: 1, ends_record: false });
    }

    #[test]
    fn every_changed_piece_is_news_once() {
        let mut r = Reassembly::new(100, 10);
        r.insert(11, b"kl", false);
        r.insert(13, b"mn", false);
        r.insert(5, b"efgh", false);
        assert_eq!([r.take_block(), r.take_block(), r.take_block()], [Some((11, 15)), Some((5, 9)), None]);
    }

    #[test]
    fn the_latest_pieces_come_first() {
        let mut r = Reassembly::new(100, 10);
        r.insert(11, b"kl", false);
        r.insert(5, b"efgh", false);
        assert_eq!(r.recent_pieces().collect::<Vec<_>>(), [(5, 9), (11, 13)]);
    }
}
