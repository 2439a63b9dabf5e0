//! What was sent and is not acknowledged: one entry per segment, with its fate as far as the sender knows.
//!
//! Loss is judged by transmission order: every transmission has a serial number, and a segment whose last transmission
//! precedes one that is known to have arrived by `reorder_depth` or more is lost (after RFC 8985 §6.2, counting
//! transmissions instead of time). Who may feed which evidence is `recovery.rs`'s concern.

use crate::trace::Cause;
use scps_wire::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the sender believes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// On its way.
    InFlight,
    /// Gone, waiting to be sent again.
    Lost,
    /// Reported received by SACK.
    Sacked,
    /// Probably received: the peer's SNACKs passed over it after its last transmission. Never relied upon for release.
    Presumed,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First position.
    pub start: u64,
    /// Position after the last; FIN counts one.
    pub end: u64,
    /// Last transmission.
    pub sent_at: Instant,
    /// Serial number of the last transmission.
    pub order: u64,
    /// How often it was sent.
    pub transmissions: u16,
    /// What became of it.
    pub fate: Fate,
    /// Why it was last taken for lost.
    pub cause: Cause,
    /// Resends since the peer last reported it missing.
    pub unprompted: u8,
    /// When it may be resent without a new report.
    pub embargo: Option<Instant>,
    /// It carries FIN.
    pub fin: bool,
    /// A second copy follows the next resend (the FY97 defect).
    pub twice: bool,
}

/// A transmission known to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// Its serial number.
    pub order: u64,
    /// When it left.
    pub sent_at: Instant,
}

/// What an acknowledgement released or marked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// Octets newly known to have arrived.
    pub octets: u64,
    /// The last transmission among them.
    pub newest: Option<Delivered>,
    /// Some of them had been sent more than once.
    pub resent: bool,
    /// Of some of these the resend is what arrived, as far as can be told.
    pub resend_arrived: bool,
    /// Resends that proved unnecessary: the first copy arrived.
    pub superfluous: u32,
    /// Octets of the longest segment among them.
    pub longest: u64,
}

/// Copies that are remembered beyond two for each segment before those that mean nothing are forgotten.
const COPIES_SLACK: usize = 64;

/// Octets of memory that a segment takes at most: itself, two copies, and an entry of a tree that is half empty.
pub(crate) const SEGMENT_COST: usize = size_of::<Sent>() + 2 * size_of::<(u64, u64)>() + TREE_ENTRY;
/// Octets that an entry of two words takes in a tree whose nodes are half full.
const TREE_ENTRY: usize = 40;

/// The segments between `snd_una` and `snd_nxt`.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Segments that there may be, but for pieces of one that was cut.
    segments_max: usize,
    lost: BTreeSet<u64>,
    embargoes: BTreeSet<(Instant, u64)>,
    next_order: u64,
    delivered_order: Option<u64>,
    flight: u64,
    /// Segments that are sacked, presumed, or resent: while zero, arrival order and position order agree.
    irregular: usize,
    /// Where every copy begins that may be on its way, in the order of transmission, with its serial number. Entries whose segment
    /// was sent again, or has another fate, mean nothing any more.
    copies: VecDeque<(u64, u64)>,
    /// What is sacked, as runs without a gap: first position, and the one after the last.
    sacked: BTreeMap<u64, u64>,
    /// A range that reports of holes covered: what is on its way there was resent at that time or later.
    reported: Option<(u64, u64, Instant)>,
    /// Segments that were looked at one by one because of an acknowledgement.
    #[cfg(test)]
    visits: usize,
}

impl Sent {
    fn is_irregular(&self) -> bool {
        self.transmissions > 1 || matches!(self.fate, Fate::Sacked | Fate::Presumed)
    }

    fn len(&self) -> u64 {
        self.end - self.start
    }
}

impl Scoreboard {
    /// Nothing is under way; at most `segments_max` segments will be.
    pub fn new(segments_max: usize) -> Self {
        Scoreboard {
            segments: VecDeque::new(),
            segments_max,
            lost: BTreeSet::new(),
            embargoes: BTreeSet::new(),
            next_order: 0,
            delivered_order: None,
            flight: 0,
            irregular: 0,
            copies: VecDeque::new(),
            sacked: BTreeMap::new(),
            reported: None,
            #[cfg(test)]
            visits: 0,
        }
    }

    /// Segments that there is room for.
    pub fn room(&self) -> usize {
        self.segments_max.saturating_sub(self.segments.len())
    }

    /// Records the first transmission of `[start, end)`.
    pub fn push(&mut self, start: u64, end: u64, now: Instant, fin: bool) {
        debug_assert!(self.segments.back().is_none_or(|s| s.end == start));
        grow(&mut self.segments, self.segments_max);
        grow(&mut self.copies, self.segments_max.saturating_mul(2));
        self.segments.push_back(Sent {
            start,
            end,
            sent_at: now,
            order: self.next_order,
            transmissions: 1,
            fate: Fate::InFlight,
            cause: Cause::Rto,
            unprompted: 0,
            embargo: None,
            fin,
            twice: false,
        });
        self.copies.push_back((self.next_order, start));
        self.next_order += 1;
        self.flight += end - start;
    }

    /// True if everything is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Segments recorded.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Octets on their way.
    pub fn flight_size(&self) -> u64 {
        self.flight
    }

    /// The lowest segment.
    pub fn front(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// The serial number the next transmission gets.
    pub fn next_order(&self) -> u64 {
        self.next_order
    }

    /// The last transmission known to have arrived.
    pub fn delivered_order(&self) -> Option<u64> {
        self.delivered_order
    }

    /// True if arrival order and position order may differ.
    pub fn is_irregular(&self) -> bool {
        self.irregular > 0
    }

    fn index_of(&self, position: u64) -> usize {
        self.segments.partition_point(|s| s.end <= position)
    }

    /// Changes a segment through `f`, keeping the sums right.
    fn update(&mut self, index: usize, f: impl FnOnce(&mut Sent)) {
        let s = &mut self.segments[index];
        let before = *s;
        f(s);
        let after = *s;
        self.account(&before, false);
        self.account(&after, true);
    }

    fn account(&mut self, s: &Sent, add: bool) {
        let sign = |on: bool, n: u64| if on { n } else { 0 };
        let flight = sign(s.fate == Fate::InFlight, s.len());
        let irregular = usize::from(s.is_irregular());
        if add {
            self.flight += flight;
            self.irregular += irregular;
            if s.fate == Fate::Lost {
                self.lost.insert(s.start);
            }
            if s.fate == Fate::Sacked {
                self.join_sacked(s.start, s.end);
            }
            if let Some(at) = s.embargo {
                self.embargoes.insert((at, s.start));
            }
        } else {
            self.flight -= flight;
            self.irregular -= irregular;
            if s.fate == Fate::Lost {
                self.lost.remove(&s.start);
            }
            if s.fate == Fate::Sacked {
                self.cut_sacked(s.start, s.end);
            }
            if let Some(at) = s.embargo {
                self.embargoes.remove(&(at, s.start));
            }
        }
    }

    /// A segment is sacked; its neighbours may be, it is not yet.
    fn join_sacked(&mut self, start: u64, end: u64) {
        let end = self.sacked.remove(&end).unwrap_or(end);
        match self.sacked.range_mut(..start).next_back() {
            Some((_, before)) if *before == start => *before = end,
            _ => {
                self.sacked.insert(start, end);
            }
        }
    }

    /// A segment is not sacked any more, or gone.
    fn cut_sacked(&mut self, start: u64, end: u64) {
        let Some((run_start, run_end)) = self.sacked.range_mut(..=start).next_back() else { return };
        let (is_first, rest) = (*run_start == start, *run_end);
        *run_end = start;
        if is_first {
            self.sacked.remove(&start);
        }
        if rest > end {
            self.sacked.insert(end, rest);
        }
    }

    /// Where the run of what is sacked ends that a position lies in.
    fn sacked_until(&self, position: u64) -> Option<u64> {
        self.sacked.range(..=position).next_back().map(|run| *run.1).filter(|end| position < *end)
    }

    /// True if a copy may be on its way.
    fn is_copy_out(&self, (order, start): (u64, u64)) -> bool {
        self.segments.get(self.index_of(start)).is_some_and(|s| s.order == order && s.fate == Fate::InFlight)
    }

    /// `is_early`: whatever made the peer answer left before this segment's last copy did.
    fn deliver(&mut self, s: &Sent, now: Instant, rtt_min: Option<Duration>, is_early: bool, outcome: &mut Outcome) {
        outcome.octets += s.len();
        outcome.longest = outcome.longest.max(s.len());
        if s.transmissions > 1 {
            outcome.resent = true;
            // Less than the least round trip ago: an earlier copy is what arrived.
            if is_early || rtt_min.is_some_and(|m| now.since(s.sent_at) < m) {
                if s.fate == Fate::InFlight {
                    outcome.superfluous += 1;
                }
                return;
            }
            outcome.resend_arrived = true;
        }
        if outcome.newest.is_none_or(|d| d.order < s.order) {
            outcome.newest = Some(Delivered { order: s.order, sent_at: s.sent_at });
        }
        if self.delivered_order.is_none_or(|d| d < s.order) {
            self.delivered_order = Some(s.order);
        }
    }

    /// Releases everything before `position`; a segment cut by it keeps its rest.
    ///
    /// `echo_precedes` tells whether the timestamp that the acknowledgement echoes is older than what a segment carried
    /// that left at the given time. It is that of the first segment which the acknowledgement is about (RFC 7323 §4.2),
    /// so if that one's resend is younger, the first copy arrived (RFC 3522 §3.2).
    pub fn ack_to(
        &mut self,
        position: u64,
        now: Instant,
        rtt_min: Option<Duration>,
        echo_precedes: impl Fn(Instant) -> bool,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let mut is_first = true;
        while let Some(s) = self.segments.front().copied() {
            if s.start >= position {
                break;
            }
            if s.end > position {
                // A peer acknowledged part of a segment: a probe octet, or data cut at its window.
                let removed = position - s.start;
                self.update(0, |s| s.start = position);
                outcome.octets += removed;
                break;
            }
            self.account(&s, false);
            self.segments.pop_front();
            if matches!(s.fate, Fate::Sacked) {
                continue;
            }
            let is_early = is_first && echo_precedes(s.sent_at);
            self.deliver(&s, now, rtt_min, is_early, &mut outcome);
            is_first = false;
        }
        while self.copies.front().is_some_and(|copy| copy.1 < position) {
            self.copies.pop_front();
        }
        outcome
    }

    /// Marks `[left, right)` as received.
    pub fn sack(&mut self, left: u64, right: u64, now: Instant, rtt_min: Option<Duration>, outcome: &mut Outcome) {
        let mut i = self.index_of(left);
        while i < self.segments.len() && self.segments[i].start < right {
            #[cfg(test)]
            {
                self.visits += 1;
            }
            let s = self.segments[i];
            // Peers repeat what they said: it is passed over in one step.
            if let Some(end) = self.sacked_until(s.start) {
                i = self.index_of(end);
                continue;
            }
            if s.start >= left && s.end <= right {
                self.deliver(&s, now, rtt_min, false, outcome);
                self.update(i, |s| {
                    s.fate = Fate::Sacked;
                    s.embargo = None;
                });
            }
            i += 1;
        }
    }

    /// Forgets what SACK said: a timeout may mean the receiver dropped it (RFC 2018 §8).
    pub fn forget_sacks(&mut self) {
        for i in 0..self.segments.len() {
            if matches!(self.segments[i].fate, Fate::Sacked | Fate::Presumed) {
                self.update(i, |s| s.fate = Fate::InFlight);
            }
        }
        self.reported = None;
        self.sort_copies();
    }

    /// Draws the copies up anew.
    fn sort_copies(&mut self) {
        let out = self.segments.iter().filter(|s| s.fate == Fate::InFlight);
        self.copies.clear();
        self.copies.extend(out.map(|s| (s.order, s.start)));
        self.copies.make_contiguous().sort_unstable();
    }

    fn mark(&mut self, index: usize, cause: Cause, prompted: bool) {
        self.update(index, |s| {
            s.fate = Fate::Lost;
            s.cause = cause;
            s.embargo = None;
            if prompted {
                s.unprompted = 0;
            }
        });
    }

    /// Marks the lowest segment lost; false if it is already.
    pub fn mark_front(&mut self, cause: Cause, prompted: bool) -> bool {
        let fresh = self.segments.front().is_some_and(|s| s.fate != Fate::Lost);
        if fresh {
            self.mark(0, cause, prompted);
        }
        fresh
    }

    /// Marks every segment on its way lost, for go-back-N. Returns how many.
    pub fn mark_all(&mut self, cause: Cause) -> u32 {
        let mut marked = 0;
        for i in 0..self.segments.len() {
            if matches!(self.segments[i].fate, Fate::InFlight | Fate::Presumed) {
                self.mark(i, cause, false);
                marked += 1;
            }
        }
        marked
    }

    /// Marks lost every segment on its way that is longer than `max`. Returns how many.
    pub fn mark_longer_than(&mut self, max: u64, cause: Cause) -> u32 {
        let mut marked = 0;
        for i in 0..self.segments.len() {
            if self.segments[i].fate == Fate::InFlight && self.segments[i].len() > max {
                self.mark(i, cause, true);
                marked += 1;
            }
        }
        marked
    }

    /// Marks the last segment for a probe.
    pub fn mark_tail(&mut self, cause: Cause) -> bool {
        let Some(i) = self.segments.iter().rposition(|s| s.fate == Fate::InFlight) else {
            return false;
        };
        self.mark(i, cause, false);
        true
    }

    /// Marks lost what overlaps the reported hole `[left, right)`, except what was resent less than `patience` ago.
    /// Returns the highest end newly marked.
    pub fn snack(&mut self, left: u64, right: u64, now: Instant, patience: Duration, twice: bool) -> Option<u64> {
        let mut highest = None;
        // Peers repeat what they said: where all that is on its way was resent too recently, nothing is looked at again.
        let is_recent = |since| now.since(since) < patience;
        let known = self.reported.filter(|r| r.0 <= left && left <= r.1 && is_recent(r.2));
        let (start, from, mut since) = known.unwrap_or((left, left, now));
        let mut i = self.index_of(from);
        let mut end = from;
        while i < self.segments.len() && self.segments[i].start < right {
            #[cfg(test)]
            {
                self.visits += 1;
            }
            let s = self.segments[i];
            end = s.end.min(right);
            if matches!(s.fate, Fate::InFlight | Fate::Presumed) {
                if s.transmissions > 1 && is_recent(s.sent_at) {
                    since = since.min(s.sent_at);
                } else {
                    self.mark(i, Cause::Snack, true);
                    self.update(i, |s| s.twice = twice);
                    highest = Some(s.end);
                }
            }
            i += 1;
        }
        self.reported = Some((start, end.max(from), since));
        highest
    }

    /// Presumes received what lies in `[left, right)` and was resent at least `patience` ago: the peer's ascending
    /// reports passed over it.
    pub fn presume(&mut self, left: u64, right: u64, now: Instant, patience: Duration) {
        if self.irregular == 0 {
            return;
        }
        let mut i = self.index_of(left);
        while i < self.segments.len() && self.segments[i].end <= right {
            let s = self.segments[i];
            if s.fate == Fate::InFlight && s.start >= left && s.transmissions > 1 && now.since(s.sent_at) >= patience {
                self.update(i, |s| {
                    s.fate = Fate::Presumed;
                    s.embargo = None;
                });
            }
            i += 1;
        }
    }

    /// Marks lost every segment whose last transmission precedes a delivered one by `depth` or more. Returns the
    /// highest end newly marked.
    pub fn detect(&mut self, depth: u64, cause: Cause) -> Option<u64> {
        let delivered = self.delivered_order?;
        let mut highest = None;
        while let Some(copy) = self.copies.front().copied().filter(|copy| copy.0 + depth <= delivered) {
            self.copies.pop_front();
            #[cfg(test)]
            {
                self.visits += 1;
            }
            if self.is_copy_out(copy) {
                let i = self.index_of(copy.1);
                self.mark(i, cause, true);
                highest = highest.max(Some(self.segments[i].end));
            }
        }
        highest
    }

    /// Marks lost the segments whose embargo has passed. Returns how many.
    pub fn expire_embargoes(&mut self, now: Instant) -> u32 {
        let mut count = 0;
        while let Some((at, start)) = self.embargoes.first().copied() {
            if at > now {
                break;
            }
            let i = self.index_of(start);
            self.mark(i, Cause::Embargo, false);
            count += 1;
        }
        count
    }

    /// Makes every embargoed segment eligible (scps-tp §6.8, restoration).
    pub fn lift_embargoes(&mut self) {
        self.expire_embargoes(Instant::FAR_FUTURE);
    }

    /// When the next embargo passes.
    pub fn next_embargo(&self) -> Option<Instant> {
        self.embargoes.first().map(|e| e.0)
    }

    /// The lowest segment to resend.
    pub fn next_lost(&self) -> Option<Sent> {
        let start = *self.lost.first()?;
        Some(self.segments[self.index_of(start)])
    }

    /// Cuts the segment that starts at `start` so that it holds at most `len` octets; the rest stays as it was.
    pub fn split(&mut self, start: u64, len: u64) {
        let i = self.index_of(start);
        let s = self.segments[i];
        if s.len() <= len {
            return;
        }
        let mut rest = s;
        rest.start = s.start + len;
        rest.embargo = None;
        self.update(i, |s| {
            s.end = s.start + len;
            s.fin = false;
        });
        grow(&mut self.segments, self.segments_max);
        self.segments.insert(i + 1, rest);
        self.account(&rest, true);
    }

    /// Records a resend of the segment that starts at `start`. The embargo doubles for every unprompted resend beyond
    /// `fast_resends` (scps-tp §2.4.5).
    pub fn on_resent(&mut self, start: u64, now: Instant, embargo: Option<Duration>, fast_resends: u8) -> Sent {
        let i = self.index_of(start);
        let order = self.next_order;
        self.next_order += 1;
        self.update(i, |s| {
            s.sent_at = now;
            s.order = order;
            s.transmissions = s.transmissions.saturating_add(1);
            s.unprompted = s.unprompted.saturating_add(1);
            if s.twice {
                s.twice = false;
                s.cause = Cause::Double;
                return;
            }
            s.fate = Fate::InFlight;
            s.embargo = embargo.map(|e| {
                let doublings = u32::from(s.unprompted.saturating_sub(fast_resends)).min(16);
                now + e.saturating_mul(1 << doublings)
            });
        });
        grow(&mut self.copies, self.segments_max.saturating_mul(2));
        self.copies.push_back((order, start));
        if self.copies.len() > 2 * self.segments.len() + COPIES_SLACK {
            self.sort_copies();
        }
        self.segments[i]
    }

    /// Octets of memory in use.
    pub fn allocated(&self) -> usize {
        let entries = self.lost.len() + self.embargoes.len() + self.sacked.len();
        self.segments.capacity() * size_of::<Sent>()
            + self.copies.capacity() * size_of::<(u64, u64)>()
            + entries * TREE_ENTRY
    }
}

/// Makes room for another element: as vectors do by doubling, but not beyond `most` while that is enough.
fn grow<T>(queue: &mut VecDeque<T>, most: usize) {
    let len = queue.len();
    if len == queue.capacity() {
        let wanted = (2 * len).max(8).min(most.max(len + 1));
        queue.reserve_exact(wanted - len);
    }
}

#[cfg(test)]
mod tests;
