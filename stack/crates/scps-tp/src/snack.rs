//! SNACK: which hole the receiver names next, and what the sender reads from one (scps-tp §2.4).

use crate::reassembly::Reassembly;
use scps_wire::scps::{Snack, SNACK_VECTOR_MAX};

/// Chooses the holes to report, one per acknowledgement, ascending (scps-tp §2.4.4).
#[derive(Clone, Copy, Debug)]
pub struct SnackGenerator {
    unit: u64,
    repeat: u8,
    long: bool,
    pending: bool,
    marker: u64,
    lowest: u64,
    lowest_repeats: u8,
}

impl SnackGenerator {
    /// A generator for holes counted in `unit` octets; the lowest is named on `repeat` acknowledgements in a row.
    pub fn new(unit: u64, repeat: u8, long: bool) -> Self {
        SnackGenerator { unit: unit.max(1), repeat, long, pending: false, marker: 0, lowest: 0, lowest_repeats: 0 }
    }

    /// A segment or a FIN arrived out of order, or a hole was filled or skipped and another remains.
    pub fn request(&mut self) {
        self.pending = true;
    }

    /// True if the next pure acknowledgement would carry a SNACK.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// The SNACK for an acknowledgement of everything before `received.next()`, at most `room` octets of option long. `fin` is where the
    /// peer's FIN stands, if it came: with nothing else out of order the hole before it is named (scps-tp §2.4.4).
    pub fn next(&mut self, received: &Reassembly, fin: Option<u64>, room: usize) -> Option<Snack> {
        let ack = received.next();
        let before_fin = fin.filter(|fin| *fin > ack && received.pieces().is_empty());
        if !self.pending || room < 6 || (received.pieces().is_empty() && before_fin.is_none()) {
            self.pending &= !received.pieces().is_empty() || before_fin.is_some();
            return None;
        }
        if let Some(fin) = before_fin {
            self.pending = false;
            return Some(Snack::short(0, (fin - ack).div_ceil(self.unit).min(u64::from(u16::MAX)) as u16));
        }
        if ack != self.lowest {
            // A segment at the edge arrived: the lowest hole is another one (scps-tp §2.4.4, counter cleared).
            self.lowest = ack;
            self.lowest_repeats = 0;
            self.marker = self.marker.max(ack);
        }
        let (start, end) = if self.lowest_repeats < self.repeat {
            received.hole_from(0)?
        } else {
            // After the last hole the next event starts over from the second: the lowest has had its repeats, and
            // comes round again only when nothing else is open.
            received
                .hole_from(self.marker.max(ack + 1))
                .or_else(|| received.hole_from(ack + 1))
                .or_else(|| received.hole_from(0))?
        };
        if start == ack {
            self.lowest_repeats = self.lowest_repeats.saturating_add(1);
            if received.pieces().len() > 1 && self.lowest_repeats == self.repeat && self.marker <= ack {
                self.marker = end;
            }
        } else {
            self.marker = end + 1;
            if received.hole_from(self.marker).is_none() {
                // End of the scan: the lowest hole opens the next one, once.
                self.marker = ack;
                self.lowest_repeats = self.repeat.saturating_sub(1);
            }
        }
        self.pending = false;
        // Offset rounded down, size rounded up (scps-tp §2.4.3); the end is then the true end or above it.
        let offset = (start - ack) / self.unit;
        let size = (end - start).div_ceil(self.unit);
        let offset = u16::try_from(offset).ok()?;
        let size = size.min(u64::from(u16::MAX)) as u16;
        if !self.long {
            return Some(Snack::short(offset, size));
        }
        let vector_start = ack + (u64::from(offset) + u64::from(size)) * self.unit;
        let mut vector = [0u8; SNACK_VECTOR_MAX];
        let len = fill_vector(received, vector_start, self.unit, &mut vector[..(room - 6).min(SNACK_VECTOR_MAX)]);
        Some(if len == 0 { Snack::short(offset, size) } else { Snack::long(offset, size, &vector[..len]) })
    }
}

/// Sets a bit for every unit from `start` that is wholly received; returns the octets up to the last one set.
fn fill_vector(received: &Reassembly, start: u64, unit: u64, vector: &mut [u8]) -> usize {
    let bits = vector.len() as u64 * 8;
    let mut used = 0;
    let first = received.pieces().partition_point(|p| p.1 <= start);
    for &(piece_start, piece_end) in &received.pieces()[first..] {
        let from = piece_start.saturating_sub(start).div_ceil(unit);
        if from >= bits {
            break;
        }
        let to = ((piece_end - start) / unit).min(bits);
        for bit in from..to {
            vector[(bit / 8) as usize] |= 0x80 >> (bit % 8);
            used = (bit / 8) as usize + 1;
        }
    }
    used
}

/// A hole as the sender reads it: `[start, end)` positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportedHole {
    /// First missing position.
    pub start: u64,
    /// Position after the last missing one.
    pub end: u64,
}

/// The holes a SNACK on an acknowledgement of `ack` names, trimmed to `snd_max`. The first is the hole proper; the
/// rest come from the bit vector, zeros after its last one saying nothing (scps-tp §2.4.3).
pub fn reported_holes(snack: &Snack, ack: u64, unit: u64, snd_max: u64) -> Vec<ReportedHole> {
    let start = ack + u64::from(snack.offset) * unit;
    let end = start + u64::from(snack.size) * unit;
    let mut holes = Vec::new();
    let mut push = |start: u64, end: u64| {
        let end = end.min(snd_max);
        if start < end {
            holes.push(ReportedHole { start, end });
        }
    };
    push(start, end);
    let vector = snack.vector();
    let is_received = |bit: usize| vector[bit / 8] & (0x80 >> (bit % 8)) != 0;
    let known = (0..vector.len() * 8).rev().find(|b| is_received(*b)).unwrap_or(0);
    for bit in (0..known).filter(|b| !is_received(*b)) {
        let at = end + bit as u64 * unit;
        push(at, at + unit);
    }
    holes
}

/// The ranges a SNACK's bit vector says are wholly received.
pub fn reported_received(snack: &Snack, ack: u64, unit: u64, snd_max: u64) -> Vec<(u64, u64)> {
    let end = ack + (u64::from(snack.offset) + u64::from(snack.size)) * unit;
    let vector = snack.vector();
    (0..vector.len() * 8)
        .filter(|bit| vector[bit / 8] & (0x80 >> (bit % 8)) != 0)
        .map(|bit| (end + bit as u64 * unit, end + (bit as u64 + 1) * unit))
        .filter(|r| r.1 <= snd_max)
        .collect()
}

/// The unit of SNACK fields: the data sender's advertised MSS less the fixed options of its data segments, as the
/// reference computes it (scps-tp §2.4.2).
pub fn unit(advertised_mss: u16, timestamps: bool, compression: bool) -> u64 {
    let overhead: i64 = match (timestamps, compression) {
        (true, false) => 12,
        (false, false) => 0,
        (false, true) => -12,
        (true, true) => -4,
    };
    (i64::from(advertised_mss) - overhead).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const U: u64 = 100;

    /// A receiver that has the given segments of `U` octets, counted from 0.
    fn received(segments: &[u64]) -> Reassembly {
        let mut r = Reassembly::new(100_000, 100);
        for s in segments {
            r.insert(1 + s * U, &[0; U as usize], false);
        }
        r
    }

    fn report(g: &mut SnackGenerator, r: &Reassembly) -> Option<(u16, u16)> {
        g.request();
        g.next(r, None, 8).map(|s| (s.offset, s.size))
    }

    #[test]
    fn one_hole_is_offset_0_size_1() {
        let mut g = SnackGenerator::new(U, 3, false);
        assert_eq!(report(&mut g, &received(&[1])), Some((0, 1)));
    }

    #[test]
    fn the_lowest_hole_is_repeated_three_times_then_the_next_ascend() {
        let mut g = SnackGenerator::new(U, 3, false);
        let r = received(&[2, 4, 7]);
        let reports: Vec<_> = (0..9).filter_map(|_| report(&mut g, &r)).collect();
        assert_eq!(reports, [(0, 2), (0, 2), (0, 2), (3, 1), (5, 2), (0, 2), (3, 1), (5, 2), (0, 2)]);
    }

    #[test]
    fn a_hole_with_nothing_behind_it_but_a_fin_is_named_on_every_event() {
        let mut g = SnackGenerator::new(U, 0, true);
        let mut r = received(&[0]);
        g.request();
        assert_eq!(g.next(&r, Some(1 + 250), 20), Some(Snack::short(0, 2)));
        assert_eq!(g.next(&r, Some(1 + 250), 20), None);
        g.request();
        assert_eq!(g.next(&r, Some(1 + 250), 20), Some(Snack::short(0, 2)));
        r.insert(1 + U, &[0; 150], false);
        g.request();
        assert_eq!((g.next(&r, Some(1 + 250), 20), g.is_pending()), (None, false));
    }

    #[test]
    fn nothing_is_sent_without_an_event_or_without_a_hole() {
        let mut g = SnackGenerator::new(U, 3, false);
        assert!(g.next(&received(&[1]), None, 8).is_none());
        g.request();
        assert!(g.next(&received(&[0]), None, 8).is_none());
    }

    #[test]
    fn partial_units_round_offset_down_and_size_up() {
        let mut r = Reassembly::new(100_000, 100);
        r.insert(1 + 150, &[0; 10], false);
        let mut g = SnackGenerator::new(U, 0, false);
        g.request();
        // Lowest hole [1,151): offset 0, size ceil(150/100) = 2.
        assert_eq!(g.next(&r, None, 8).map(|s| (s.offset, s.size)), Some((0, 2)));
        r.insert(1 + 300, &[0; 10], false);
        g.request();
        // Hole [161,301): offset floor(160/100) = 1, size ceil(140/100) = 2.
        assert_eq!(g.next(&r, None, 8).map(|s| (s.offset, s.size)), Some((1, 2)));
    }

    #[test]
    fn the_vector_marks_whole_units_received() {
        let mut g = SnackGenerator::new(U, 3, true);
        let r = received(&[1, 3, 4]);
        g.request();
        let s = g.next(&r, None, 12).unwrap();
        // Hole 0; then units 1 received, 2 missing, 3 and 4 received: 1011 0000.
        assert_eq!((s.offset, s.size, s.vector()), (0, 1, &[0b1011_0000][..]));
        let holes = reported_holes(&s, 1, U, 1 + 6 * U);
        assert_eq!(holes, [ReportedHole { start: 1, end: 101 }, ReportedHole { start: 201, end: 301 }]);
        assert_eq!(reported_received(&s, 1, U, 1 + 6 * U), [(101, 201), (301, 401), (401, 501)]);
    }

    #[test]
    fn a_hole_beyond_what_was_sent_is_trimmed() {
        assert_eq!(reported_holes(&Snack::short(0, 500), 1, U, 201), [ReportedHole { start: 1, end: 201 }]);
        assert!(reported_holes(&Snack::short(60_000, 1), 1, U, 201).is_empty());
    }

    #[test]
    fn units_are_those_of_the_notes() {
        // scps-tp §2.4.2, MSS 1460: 1448, 1460, 1472, 1464.
        assert_eq!(unit(1460, true, false), 1448);
        assert_eq!(unit(1460, false, false), 1460);
        assert_eq!(unit(1460, false, true), 1472);
        assert_eq!(unit(1460, true, true), 1464);
    }
}
