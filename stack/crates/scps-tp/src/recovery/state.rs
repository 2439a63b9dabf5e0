//! What a sender remembers of losses: duplicates counted, holes waiting, the recovery under way, how patient it is.

use crate::limits::DuplicateLimit;
use scps_wire::{Duration, Instant};
use std::collections::VecDeque;

/// Duplicate acknowledgements that mean a loss (RFC 5681 §3.2, scps-tp §4.3).
const DUPACK_THRESHOLD: u32 = 3;
/// Doublings of the patience with resends, at most: 64 round trips are more than queues hold.
const PATIENCE_BACKOFF_MAX: u16 = 6;
/// Most SNACKs waiting out their delay; further ones repeat holes already waiting.
const DELAYED_HOLES_MAX: usize = 1024;
/// Reordering tolerance stops growing here, in transmissions (Linux caps its metric at 300).
const REORDER_DEPTH_MAX: u64 = 256;
/// Transmissions by which a later one must have overtaken a segment before it counts as lost, where loss may mean
/// reordering (the three duplicates of RFC 5681 §3.2).
const REORDER_DEPTH_CAUTIOUS: u64 = 3;

/// The losses of a connection's sender.
#[derive(Debug)]
pub(crate) struct Recovery {
    dupacks: u32,
    dupack_credit: u64,
    duplicates: DuplicateLimit,
    reorder_depth: u64,
    /// Where the recovery under way ends.
    until: Option<u64>,
    is_after_timeout: bool,
    timeouts: u32,
    scan_position: u64,
    delayed_holes: VecDeque<(Instant, u64, u64)>,
    is_tail_probed: bool,
    tail_probes: u32,
    probes_unjudged: u32,
    /// Doublings of the patience with resends since the last round trip measured, and when the last one was.
    patience_backoff: (u16, Instant),
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery {
            dupacks: 0,
            dupack_credit: 0,
            duplicates: DuplicateLimit::default(),
            reorder_depth: 1,
            until: None,
            is_after_timeout: false,
            timeouts: 0,
            scan_position: 0,
            delayed_holes: VecDeque::new(),
            is_tail_probed: false,
            tail_probes: 0,
            probes_unjudged: 0,
            patience_backoff: (0, Instant::ZERO),
        }
    }
}

impl Recovery {
    /// Nothing was lost yet. `is_bold` is true where losses do not mean congestion: the first sign of one is acted on.
    pub(crate) fn set_boldness(&mut self, is_bold: bool) {
        self.reorder_depth = if is_bold { 1 } else { REORDER_DEPTH_CAUTIOUS };
    }

    // Patience with resends.

    /// A patience, as often doubled as resends went unanswered.
    pub(crate) fn backed_off(&self, measured: Duration) -> Duration {
        measured.saturating_mul(1 << self.patience_backoff.0)
    }

    /// Patience doubles, once in its own length.
    pub(crate) fn back_off(&mut self, now: Instant, patience: Duration) {
        let (doublings, at) = self.patience_backoff;
        if doublings < PATIENCE_BACKOFF_MAX && now.since(at) >= patience {
            self.patience_backoff = (doublings + 1, now);
        }
    }

    /// A round trip was measured.
    pub(crate) fn on_round_trip(&mut self) {
        self.patience_backoff.0 = 0;
    }

    // Duplicate acknowledgements.

    /// A duplicate acknowledgement came while `in_flight` segments were under way. With limited transmit each lets a segment
    /// leave; without, the first two count when the third does (RFC 5681 §3.2 step 3).
    pub(crate) fn on_duplicate(
        &mut self,
        now: Instant,
        rtt_min: Option<Duration>,
        in_flight: usize,
        is_transmit_limited: bool,
        full_segment: u64,
    ) {
        self.dupacks += 1;
        if self.duplicates.allow(now, rtt_min, in_flight) {
            let segments = match self.dupacks {
                DUPACK_THRESHOLD if !is_transmit_limited => u64::from(DUPACK_THRESHOLD),
                n if n < DUPACK_THRESHOLD && !is_transmit_limited => 0,
                _ => 1,
            };
            self.dupack_credit += segments * full_segment;
        }
    }

    /// Duplicates since the last one that told of something new, or since the retransmission timer expired.
    pub(crate) fn duplicates(&self) -> usize {
        self.dupacks as usize
    }

    /// True if there were enough duplicates to mean a loss.
    pub(crate) fn has_duplicates_of_a_loss(&self) -> bool {
        self.dupacks >= DUPACK_THRESHOLD
    }

    /// Octets that duplicates said have left the network.
    pub(crate) fn credit(&self) -> u64 {
        self.dupack_credit
    }

    /// Everything up to `acked` is acknowledged, `octets` of it news; `is_all` if nothing else is under way.
    pub(crate) fn on_advance(&mut self, acked: u64, octets: u64, full_segment: u64, is_all: bool) {
        self.tail_probes = 0;
        self.dupacks = 0;
        self.duplicates.restart();
        // Arrivals beyond the hole were credited one by one; filling it settles them but for one (RFC 6582 §3.2).
        self.dupack_credit = self.dupack_credit.saturating_sub(octets.saturating_sub(full_segment));
        if is_all {
            self.dupack_credit = 0;
        }
        self.timeouts = 0;
        self.is_tail_probed = false;
        if self.until.is_some_and(|until| acked >= until) {
            self.until = None;
            self.is_after_timeout = false;
        }
    }

    // Reordering.

    /// Transmissions that may overtake a segment before it is lost. However much reordering is believed in, a window of
    /// `in_flight` segments must be able to show a loss.
    pub(crate) fn reorder_depth(&self, in_flight: usize) -> u64 {
        self.reorder_depth.min((in_flight as u64 / 2).max(1))
    }

    /// The receiver had a resent segment already. Probes may well find theirs arrived; only resends on evidence speak of
    /// reordering.
    pub(crate) fn on_resend_unneeded(&mut self) {
        if self.probes_unjudged > 0 {
            self.probes_unjudged -= 1;
        } else {
            self.reorder_depth = (self.reorder_depth + 1).min(REORDER_DEPTH_MAX);
        }
    }

    /// Acknowledgements showed resends that were not needed.
    pub(crate) fn on_resends_superfluous(&mut self) {
        self.reorder_depth = (self.reorder_depth * 2).min(REORDER_DEPTH_MAX);
    }

    // The recovery under way.

    /// True while one is.
    pub(crate) fn is_under_way(&self) -> bool {
        self.until.is_some()
    }

    /// True while one is that a timeout did not begin.
    pub(crate) fn is_fast(&self) -> bool {
        self.until.is_some() && !self.is_after_timeout
    }

    /// True if the recovery under way covers losses up to `end`.
    pub(crate) fn covers(&self, end: u64) -> bool {
        self.until.is_some_and(|until| end <= until)
    }

    /// One begins; it ends when all that was sent is acknowledged.
    pub(crate) fn begin(&mut self, until: u64) {
        self.until = Some(until);
        self.is_after_timeout = false;
    }

    /// The retransmission timer expired; how often in a row.
    pub(crate) fn on_timeout(&mut self) -> u32 {
        self.timeouts += 1;
        self.timeouts
    }

    /// One begins with a timeout.
    pub(crate) fn begin_after_timeout(&mut self, until: u64) {
        self.until = Some(until);
        self.is_after_timeout = true;
        self.dupacks = 0;
        self.dupack_credit = 0;
    }

    /// The path changed: timeouts are counted anew.
    pub(crate) fn forget_timeouts(&mut self) {
        self.timeouts = 0;
    }

    // Holes.

    /// Holes are reported in ascending order: what the reports pass over, before one from `start` to `end`, has arrived.
    pub(crate) fn pass_over(&mut self, start: u64, end: u64) -> Option<(u64, u64)> {
        let passed = (start >= self.scan_position).then_some((self.scan_position, start));
        self.scan_position = end;
        passed
    }

    /// A hole that is acted upon at `at`; false if it waits already, or too many do.
    pub(crate) fn delay_hole(&mut self, at: Instant, start: u64, end: u64) -> bool {
        let is_new = self.delayed_holes.len() < DELAYED_HOLES_MAX
            && !self.delayed_holes.iter().any(|hole| hole.1 <= start && end <= hole.2);
        if is_new {
            self.delayed_holes.push_back((at, start, end));
        }
        is_new
    }

    /// The next hole whose delay is over; or when that will be.
    pub(crate) fn take_hole(&mut self, now: Instant) -> Option<Result<(u64, u64), Instant>> {
        let (at, start, end) = *self.delayed_holes.front()?;
        if at > now {
            return Some(Err(at));
        }
        self.delayed_holes.pop_front();
        Some(Ok((start, end)))
    }

    // Probes.

    /// Something arrived, so the tail is not silent.
    pub(crate) fn on_news(&mut self) {
        self.tail_probes = 0;
    }

    /// True if the tail was probed and the retransmission timer is to take over.
    pub(crate) fn is_tail_probed(&self) -> bool {
        self.is_tail_probed
    }

    /// Unanswered probes of the tail space out like any retransmission.
    pub(crate) fn spaced_out(&self, wait: Duration) -> Duration {
        wait.saturating_mul(1 << self.tail_probes.saturating_sub(2).min(8))
    }

    /// The tail is probed; `is_bold` if that may be repeated.
    pub(crate) fn on_tail_probe(&mut self, is_bold: bool) {
        self.tail_probes = self.tail_probes.saturating_add(1);
        self.on_probe();
        self.is_tail_probed = !is_bold;
    }

    /// A segment is sent again without evidence that it was lost.
    pub(crate) fn on_probe(&mut self) {
        self.probes_unjudged = self.probes_unjudged.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_limited_transmit_the_first_two_duplicates_count_with_the_third() {
        let credit = |is_limited| {
            let mut recovery = Recovery::default();
            let count = |_| {
                recovery.on_duplicate(Instant::ZERO, None, 100, is_limited, 1000);
                recovery.credit()
            };
            [0; 4].map(count)
        };
        assert_eq!(credit(true), [1000, 2000, 3000, 4000]);
        assert_eq!(credit(false), [0, 0, 3000, 4000]);
    }

    #[test]
    fn a_recovery_ends_where_it_began() {
        let mut recovery = Recovery::default();
        recovery.begin(5000);
        assert!(recovery.covers(5000) && !recovery.covers(5001) && recovery.is_fast());
        recovery.on_advance(4999, 0, 1000, false);
        assert!(recovery.is_under_way());
        recovery.on_advance(5000, 0, 1000, true);
        assert!(!recovery.is_under_way());
        recovery.begin_after_timeout(7000);
        assert!(recovery.is_under_way() && !recovery.is_fast());
    }

    #[test]
    fn reordering_is_believed_in_up_to_half_of_what_is_under_way() {
        let mut recovery = Recovery::default();
        recovery.set_boldness(false);
        assert_eq!((recovery.reorder_depth(100), recovery.reorder_depth(4), recovery.reorder_depth(0)), (3, 2, 1));
        recovery.on_probe();
        recovery.on_resend_unneeded();
        assert_eq!(recovery.reorder_depth(100), 3, "a probe says nothing of reordering");
        recovery.on_resend_unneeded();
        recovery.on_resends_superfluous();
        assert_eq!(recovery.reorder_depth(100), 8);
        (0..20).for_each(|_| recovery.on_resends_superfluous());
        assert_eq!(recovery.reorder_depth(10_000), 256);
    }

    #[test]
    fn holes_wait_their_delay_and_only_once() {
        let mut recovery = Recovery::default();
        let at = Instant::from_secs(1);
        assert!(recovery.delay_hole(at, 100, 300) && !recovery.delay_hole(at, 150, 200));
        assert_eq!(recovery.take_hole(Instant::ZERO), Some(Err(at)));
        assert_eq!(recovery.take_hole(at), Some(Ok((100, 300))));
        assert_eq!(recovery.take_hole(at), None);
    }
}
