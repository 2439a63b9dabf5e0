//! The edits that turn one file into another in the fewest octets of a control file (scps-fp §6.9).
//!
//! Copying is free, each edit has a head of seven octets, and what is inserted or overwritten is carried. Between small
//! stretches the cheapest edits are computed; large files are first cut at long stretches that both have, in the order in
//! which most octets match.

use crate::update::{delete, insert, overwrite, Signal};
use std::ops::Range;

/// Octets of an edit before its data.
const HEAD: u32 = 7;
/// Products of lengths up to which the cheapest edits are computed.
const TABLE_MAX: usize = 1 << 22;
/// Of all products together, so that large files that differ everywhere take seconds, not hours.
const TABLES_MAX: usize = 1 << 28;
/// Lengths of the stretches that are looked for, the second where the first finds none.
const STRETCHES: [usize; 2] = [32, 10];
/// Positions of the old file that are looked up.
const SAMPLES_MAX: usize = 1 << 20;

/// How the octets before a place came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Copy,
    Insert,
    Delete,
    Overwrite,
}

const WAYS: [Way; 4] = [Way::Copy, Way::Insert, Way::Delete, Way::Overwrite];

/// A stretch that both files have.
#[derive(Clone, Copy, Debug)]
struct Match {
    old: usize,
    new: usize,
    length: usize,
}

/// The edits that turn `old` into `new`; `None` if offsets of 32 bits do not reach.
pub fn difference(old: &[u8], new: &[u8]) -> Option<Vec<Signal>> {
    u32::try_from(old.len()).ok()?;
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut edits = Edits { old, new, runs: Vec::new(), table_left: TABLES_MAX };
    edits.compare(start..old.len() - tail, start..new.len() - tail, 0);
    Some(edits.signals())
}

struct Edits<'f> {
    old: &'f [u8],
    new: &'f [u8],
    /// How, from where in the old file, from where in the new one, how many octets; ascending, copies left out.
    runs: Vec<(Way, usize, usize, usize)>,
    table_left: usize,
}

impl Edits<'_> {
    fn push(&mut self, way: Way, old: usize, new: usize, length: usize) {
        if length == 0 || way == Way::Copy {
            return;
        }
        if let Some((last, last_old, last_new, last_length)) = self.runs.last_mut() {
            let old_end = *last_old + if *last == Way::Insert { 0 } else { *last_length };
            let new_end = *last_new + if *last == Way::Delete { 0 } else { *last_length };
            if *last == way && (old_end, new_end) == (old, new) {
                *last_length += length;
                return;
            }
        }
        self.runs.push((way, old, new, length));
    }

    fn compare(&mut self, old: Range<usize>, new: Range<usize>, depth: usize) {
        let (n, m) = (old.len(), new.len());
        let table = n.saturating_mul(m);
        if table <= TABLE_MAX.min(self.table_left) && table > 0 {
            self.table_left -= table;
            return self.cheapest(old, new);
        }
        if n > 0 && m > 0 {
            if let Some(length) = STRETCHES.get(depth) {
                let matches = common(&self.old[old.clone()], &self.new[new.clone()], *length);
                let (mut at_old, mut at_new) = (old.start, new.start);
                for found in matches {
                    let (next_old, next_new) = (old.start + found.old, new.start + found.new);
                    self.compare(at_old..next_old, at_new..next_new, depth + 1);
                    (at_old, at_new) = (next_old + found.length, next_new + found.length);
                }
                return self.compare(at_old..old.end, at_new..new.end, depth + 1);
            }
        }
        self.one_by_one(old, new);
    }

    /// Nothing in common was found: octets at the same place, then what one of the two has more.
    fn one_by_one(&mut self, old: Range<usize>, new: Range<usize>) {
        let shared = old.len().min(new.len());
        let mut at = 0;
        while at < shared {
            let mut end = at;
            let mut equal = 0;
            // Shorter stretches of equal octets cost less than the head of another edit.
            while end < shared && equal <= HEAD as usize {
                equal = if self.old[old.start + end] == self.new[new.start + end] { equal + 1 } else { 0 };
                end += 1;
            }
            self.push(Way::Overwrite, old.start + at, new.start + at, end - at - equal);
            at = end;
            while at < shared && self.old[old.start + at] == self.new[new.start + at] {
                at += 1;
            }
        }
        let (at_old, at_new) = (old.start + shared, new.start + shared);
        self.push(Way::Delete, at_old, at_new, old.end - at_old);
        self.push(Way::Insert, at_old, at_new, new.end - at_new);
    }

    /// The cheapest edits, from a table of the costs up to every place.
    fn cheapest(&mut self, old: Range<usize>, new: Range<usize>) {
        const FAR: u32 = u32::MAX / 2;
        let (n, m) = (old.len(), new.len());
        // By way: the cost up to a place, in the row above and in this one; and for each place the ways before.
        let mut above = vec![[FAR; 4]; m + 1];
        let mut row = above.clone();
        let mut before = vec![0u8; (n + 1) * (m + 1)];
        for i in 0..=n {
            for j in 0..=m {
                let mut costs = [FAR; 4];
                let mut ways = 0u8;
                let mut reach = |way: Way, from: &[u32; 4], step: u32, head: u32| {
                    for &last in &WAYS {
                        let is_same = last == way && way != Way::Copy;
                        let cost = from[last as usize] + step + if is_same { 0 } else { head };
                        if cost < costs[way as usize] {
                            costs[way as usize] = cost;
                            ways = (ways & !(3 << (2 * way as u8))) | ((last as u8) << (2 * way as u8));
                        }
                    }
                };
                if i > 0 && j > 0 {
                    if self.old[old.start + i - 1] == self.new[new.start + j - 1] {
                        reach(Way::Copy, &above[j - 1], 0, 0);
                    }
                    reach(Way::Overwrite, &above[j - 1], 1, HEAD);
                }
                if j > 0 {
                    reach(Way::Insert, &row[j - 1], 1, HEAD);
                }
                if i > 0 {
                    reach(Way::Delete, &above[j], 0, HEAD);
                }
                if (i, j) == (0, 0) {
                    costs[Way::Copy as usize] = 0;
                }
                row[j] = costs;
                before[i * (m + 1) + j] = ways;
            }
            std::mem::swap(&mut above, &mut row);
        }
        let ends = above[m];
        let mut way = WAYS.into_iter().min_by_key(|w| ends[*w as usize]).unwrap_or(Way::Copy);
        let (mut i, mut j) = (n, m);
        let mut steps = Vec::with_capacity(n + m);
        while (i, j) != (0, 0) {
            let last = WAYS[usize::from(before[i * (m + 1) + j] >> (2 * way as u8) & 3)];
            (i, j) = match way {
                Way::Copy | Way::Overwrite => (i - 1, j - 1),
                Way::Insert => (i, j - 1),
                Way::Delete => (i - 1, j),
            };
            steps.push((way, i, j));
            way = last;
        }
        for (way, i, j) in steps.into_iter().rev() {
            self.push(way, old.start + i, new.start + j, 1);
        }
    }

    fn signals(&self) -> Vec<Signal> {
        let mut signals = Vec::new();
        for &(way, old, new, length) in &self.runs {
            match way {
                Way::Copy => {}
                Way::Insert => signals.extend(insert(old as u32, &self.new[new..new + length])),
                Way::Delete => signals.extend(delete(old as u32, length as u32)),
                Way::Overwrite => signals.extend(overwrite(old as u32, &self.new[new..new + length])),
            }
        }
        signals
    }
}

/// A hash that rolls: of the next `length` octets, from that of the ones before.
struct Rolling {
    value: u64,
    leaving: u64,
}

const FACTOR: u64 = 0x0100_0000_01B3;

impl Rolling {
    fn of(octets: &[u8]) -> Rolling {
        let mut rolling = Rolling { value: 0, leaving: 1 };
        for &octet in octets {
            rolling.value = rolling.value.wrapping_mul(FACTOR).wrapping_add(u64::from(octet) + 1);
            rolling.leaving = rolling.leaving.wrapping_mul(FACTOR);
        }
        rolling
    }

    fn roll(&mut self, out: u8, into: u8) {
        self.value = self.value.wrapping_mul(FACTOR).wrapping_add(u64::from(into) + 1);
        self.value = self.value.wrapping_sub(self.leaving.wrapping_mul(u64::from(out) + 1));
    }
}

/// Stretches of at least `length` octets that both have, ascending in both, so that most octets match.
fn common(old: &[u8], new: &[u8], length: usize) -> Vec<Match> {
    if old.len() < length || new.len() < length {
        return Vec::new();
    }
    let places = samples(old, length);
    let mut matches: Vec<Match> = Vec::new();
    let mut rolling = Rolling::of(&new[..length]);
    let mut at = 0;
    let mut skip_to = 0;
    loop {
        if at >= skip_to {
            let found =
                places.binary_search_by_key(&rolling.value, |(hash, _)| *hash).ok().map(|k| places[k].1 as usize);
            if let Some(from) = found.filter(|from| old[*from..*from + length] == new[at..at + length]) {
                let forward = old[from..].iter().zip(&new[at..]).take_while(|(a, b)| a == b).count();
                let free = at - matches.last().map_or(0, |m| m.new + m.length);
                let backward =
                    old[..from].iter().rev().zip(new[..at].iter().rev()).take(free).take_while(|(a, b)| a == b).count();
                matches.push(Match { old: from - backward, new: at - backward, length: backward + forward });
                skip_to = at + forward;
            }
        }
        if at + length == new.len() {
            return longest_chain(&matches);
        }
        rolling.roll(new[at], new[at + length]);
        at += 1;
    }
}

/// Hashes of stretches that the old file has once, in order, with their places.
fn samples(old: &[u8], length: usize) -> Vec<(u64, u32)> {
    let step = old.len().div_ceil(SAMPLES_MAX).max(1);
    let mut places: Vec<(u64, u32)> = Vec::with_capacity(old.len() / step + 1);
    let mut rolling = Rolling::of(&old[..length]);
    for at in 0..=old.len() - length {
        if at % step == 0 {
            places.push((rolling.value, at as u32));
        }
        if at + length < old.len() {
            rolling.roll(old[at], old[at + length]);
        }
    }
    places.sort_unstable();
    let is_double =
        |i: usize| (i > 0 && places[i - 1].0 == places[i].0) || places.get(i + 1).is_some_and(|p| p.0 == places[i].0);
    (0..places.len()).filter(|i| !is_double(*i)).map(|i| places[i]).collect()
}

/// Of matches ascending in the new file, those ascending in the old one too that have most octets.
fn longest_chain(matches: &[Match]) -> Vec<Match> {
    let mut ends: Vec<usize> = matches.iter().map(|m| m.old + m.length).collect();
    ends.sort_unstable();
    ends.dedup();
    // By rank of the end in the old file: the best chain that ends there or before (a Fenwick tree of maxima).
    let mut best: Vec<(usize, Option<usize>)> = vec![(0, None); ends.len() + 1];
    let mut previous = vec![None; matches.len()];
    for (index, found) in matches.iter().enumerate() {
        let mut rank = ends.partition_point(|e| *e <= found.old);
        let mut chain = (0, None);
        while rank > 0 {
            chain = chain.max(best[rank]);
            rank &= rank - 1;
        }
        previous[index] = chain.1;
        let value = (chain.0 + found.length, Some(index));
        let mut rank = ends.partition_point(|e| *e < found.old + found.length) + 1;
        while rank < best.len() {
            best[rank] = best[rank].max(value);
            rank += rank & rank.wrapping_neg();
        }
    }
    let mut last = best.iter().max().and_then(|b| b.1);
    let mut chain = Vec::new();
    while let Some(index) = last {
        chain.push(matches[index]);
        last = previous[index];
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::{apply, Edit, SIGNAL_LENGTH_MAX};
    use proptest::prelude::*;

    fn noise(length: usize, seed: u64) -> Vec<u8> {
        let mut octets = vec![0; length];
        scps_wire::Seed::from_u64(seed).stream("noise").fill(&mut octets);
        octets
    }

    /// Octets of the signals, which turn `old` into `new`.
    fn cost(old: &[u8], new: &[u8]) -> u64 {
        let signals = difference(old, new).unwrap();
        let mut out = Vec::new();
        apply(old, &signals, &mut out).unwrap();
        assert!(out == new, "the edits do not give the new file");
        signals.iter().map(|s| 7 + s.data_length()).sum()
    }

    #[test]
    fn three_edits_are_three_edits() {
        let old = noise(30_000, 1);
        let mut new = old.clone();
        new.splice(20_000..20_000, *b"inserted");
        new.splice(10_000..10_100, *b"");
        new.splice(500..514, *b"RECORD five AB");
        assert_eq!(cost(&old, &new), 3 * 7 + 8 + 14);
        assert_eq!(cost(&new, &old), 3 * 7 + 100 + 14);
        // In small files, too, and neighbours share a head where that is cheaper.
        let (old, new) = (b"abcdefghijklmnopqrstuvwxyz", b"abcDefgHijklmnopqrstuvwxyz");
        assert_eq!(cost(old, new), 7 + 5);
        assert_eq!(cost(b"abcdefghijklmnopqrstuvwxyz", b"Abcdefghijklmnopqrstuvwxyyz"), 2 * 7 + 2);
    }

    #[test]
    fn records_of_a_large_file_cost_themselves() {
        let old = noise(2 << 20, 2);
        let record = noise(32_768, 3);
        let mut new = old.clone();
        new.splice(1_000_000..1_000_000, record.iter().copied());
        assert_eq!(cost(&old, &new), 2 * 7 + 32_768);
        assert_eq!(cost(&new, &old), 2 * 7);
        // A stretch that has moved does not hide what stayed.
        let mut moved = old.clone();
        let block: Vec<u8> = moved.drain(1_500_000..1_600_000).collect();
        moved.splice(10..10, block);
        assert_eq!(cost(&old, &moved), 4 * 7 + 100_000 + 4 * 7);
    }

    #[test]
    fn files_with_nothing_in_common_and_empty_ones_work() {
        let (old, new) = (noise(100_000, 4), noise(70_000, 5));
        assert!(cost(&old, &new) <= 70_000 + 7 * 8);
        assert_eq!(cost(b"", &new), 70_000 + 3 * 7);
        assert_eq!(cost(&new, b""), 3 * 7);
        assert_eq!(cost(&vec![0; 100_000], &vec![0; 50_000]), 2 * 7);
        let mut sparse = vec![7; 100_000];
        for at in (0..100_000).step_by(50) {
            sparse[at] = 8;
        }
        assert!(cost(&vec![7; 100_000], &sparse) <= 2000 * 8);
    }

    #[test]
    fn long_edits_are_cut_in_pieces_older_servers_take() {
        let old: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let new: Vec<u8> = old.iter().map(|b| b ^ 0x55).chain(vec![1; 70_000]).collect();
        for (a, b) in [(&old, &new), (&new, &old)] {
            cost(a, b);
            let longest = |s: &Signal| match &s.edit {
                Edit::Insert(d) | Edit::Append(d) | Edit::Overwrite(d) => d.len(),
                Edit::Delete(n) => usize::from(*n),
            };
            assert!(difference(a, b).unwrap().iter().all(|s| longest(s) <= SIGNAL_LENGTH_MAX));
        }
    }

    proptest! {
        #[test]
        fn a_difference_turns_old_into_new_and_costs_no_more_than_one_stretch(old in prop::collection::vec(0u8..4, 0..200), new in prop::collection::vec(0u8..4, 0..200)) {
            prop_assert!(cost(&old, &new) <= 14 + new.len() as u64);
        }

        #[test]
        fn edits_of_large_files_are_found(seed in 0u64..50, places in prop::collection::vec(0usize..60_000, 1..6)) {
            let old = noise(60_000, seed);
            let mut new = old.clone();
            for at in &places {
                new.insert((*at).min(new.len()), b'!');
            }
            prop_assert!(cost(&old, &new) <= 8 * places.len() as u64);
        }
    }
}
