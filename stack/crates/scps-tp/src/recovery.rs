//! Acknowledgements: what they release, what they reveal as lost, and how the window answers.
//!
//! Evidence comes in three strengths. SACK (and a long SNACK's vector) says what arrived, so order of transmission
//! decides (scoreboard `detect`). A short SNACK says what is missing; resends are judged by time. A plain
//! peer's duplicate acknowledgements count arrivals only (scps-tp §2.4.5, §4.3; RFC 6582; RFC 8985).

mod state;

pub(crate) use state::Recovery;

use crate::cc::LossSample;
use crate::control::Control;
use crate::event::{CloseReason, Event};
use crate::outbound::Outbound;
use crate::path::{MtuFound, Progress};
use crate::route::Route;
use crate::scoreboard::{Fate, Outcome};
use crate::snack;
use crate::state::State;
use crate::timer::Timer;
use crate::trace::{Cause, TraceEvent};
use scps_wire::tcp::Tcp;
use scps_wire::{Duration, Instant};

/// An acknowledgement of something sent, and what followed from it.
struct Ack<'a> {
    tcp: &'a Tcp,
    /// Octets of data beside it.
    data_len: usize,
    /// Everything up to a later position is acknowledged.
    has_advanced: bool,
    /// It tells nothing new (RFC 5681 §2).
    is_duplicate: bool,
    outcome: Outcome,
}

impl Outbound {
    /// A segment was sent for the third time or more. Without timestamps no round trip is measured while everything is
    /// sent twice, and resends that wait in a queue would breed more: patience doubles, once in its own length, until a
    /// round trip is measured (as the timer does: Karn and Partridge 1987; RFC 6298 §5).
    pub(crate) fn on_repeated_resend(&mut self, control: &Control, now: Instant) {
        if !control.agreed.timestamps {
            let patience = self.patience();
            self.recovery.back_off(now, patience);
        }
    }

    pub(crate) fn on_rtt_sample(&mut self, rtt: Duration) {
        self.recovery.on_round_trip();
        self.path.on_round_trip(rtt);
    }

    /// Where an acknowledgement stands, if it is of something that was sent.
    pub(crate) fn acknowledged(&self, tcp: &Tcp) -> Option<u64> {
        let acked = self.sender.position(tcp.ack);
        (acked >= 1 && acked <= self.sender.next() as i64).then_some(acked as u64)
    }

    /// Takes the acknowledgement of everything up to `acked`, window, SACK and SNACK of a segment that was found acceptable and begins at
    /// `told_at`.
    pub(crate) fn on_acknowledgement(
        &mut self,
        control: &mut Control,
        now: Instant,
        route: &Route,
        (acked, told_at): (u64, i64),
        tcp: &Tcp,
        data_len: usize,
    ) {
        self.sender.on_ack_heard(acked, tcp.window, tcp.ack);
        let window = u64::from(tcp.window) << control.agreed.window_scale.map_or(0, |(peer, _)| peer);
        let old_edge = self.sender.edge();
        self.sender.on_window(acked, window, told_at);
        if acked < self.sender.una() {
            return;
        }
        let is_duplicate =
            acked == self.sender.una() && data_len == 0 && self.sender.edge() == old_edge && !self.board.is_empty();
        let has_advanced = acked > self.sender.una();
        let (clock, echo) = (control.clock, tcp.options.timestamps.map(|t| t.ecr).filter(|e| *e != 0));
        let echo = echo.filter(|_| control.agreed.timestamps);
        let echo_precedes = |left_at| echo.is_some_and(|ecr| clock.is_echo_older(ecr, left_at));
        let mut outcome = self.board.ack_to(acked, now, self.path.rtt_min(), echo_precedes);
        self.take_sack(control, now, acked, tcp, &mut outcome);
        self.black_hole.on_arrival(outcome.longest);
        if self.black_hole.is_trial_over(acked) {
            self.path.find_mtu(MtuFound::AsRoute);
        }
        if has_advanced {
            control.prolong_orphan(now, self.path.rto());
            self.advance(control, now, route, acked, outcome.octets);
        } else if is_duplicate {
            let (segment, limited) = (self.full_segment(control, route), control.config.limited_transmit);
            self.recovery.on_duplicate(now, self.path.rtt_min(), self.board.len(), limited, segment);
        }
        let ack = Ack { tcp, data_len, has_advanced, is_duplicate, outcome };
        self.take_rtt(control, now, &ack);
        self.learn_reordering(control, &outcome);
        self.find_losses(control, now, route, &ack);
        if outcome.octets > 0 {
            self.recovery.on_news();
        }
        self.drive_controller(control, now, route, &outcome);
        self.note(control, now, route, TraceEvent::AckReceived, acked, outcome.octets);
        // RFC 6298 (5.3): the timer starts again with what acknowledges new data. Without SACK a duplicate is the news that something
        // arrived (scps-tp §6.3), but for no more of them than segments are out beside the lowest. If it were not, the timer would
        // expire before the third duplicate on a slow line, or before the resend is acknowledged, and all would be sent again.
        let is_arrival = is_duplicate && !control.agreed.sack;
        let has_blocks =
            outcome.octets > 0 || has_advanced || (is_arrival && self.recovery.duplicates() < self.board.len());
        self.rearm_after_ack(control, now, route, has_blocks);
    }

    fn take_sack(&mut self, control: &mut Control, now: Instant, acked: u64, tcp: &Tcp, outcome: &mut Outcome) {
        if control.agreed.sack {
            let blocks = tcp.options.sack;
            for (i, (left, right)) in blocks.as_slice().iter().enumerate() {
                let (left, right) = (self.sender.position(*left), self.sender.position(*right));
                if left < 1 || right <= left || right > self.sender.next() as i64 {
                    continue;
                }
                if i == 0 && right as u64 <= acked {
                    // D-SACK (RFC 2883 §4): the receiver had these already.
                    control.stats.superfluous_resends += 1;
                    self.recovery.on_resend_unneeded();
                    continue;
                }
                self.board.sack(left as u64, right as u64, now, self.path.rtt_min(), outcome);
            }
        }
        if let (true, Some(s)) = (control.agreed.snack_long, tcp.options.snack) {
            let unit = snack_unit(control);
            for (left, right) in snack::reported_received(&s, acked, unit, self.sender.next()) {
                self.board.sack(left, right, now, self.path.rtt_min(), outcome);
            }
        }
    }

    fn advance(&mut self, control: &mut Control, now: Instant, route: &Route, acked: u64, octets: u64) {
        self.sender.advance(acked);
        let segment = self.full_segment(control, route);
        self.recovery.on_advance(acked, octets, segment, self.board.is_empty());
        if self.sender.take_room() {
            control.events.push_back(Event::Writable(control.id));
        }
        if self.sender.is_fin_acked() && control.stats.flushed_at.is_none() {
            control.stats.flushed_at = Some(now);
            control.events.push_back(Event::Flushed(control.id));
            let state = control.state.on_fin_acked();
            self.set_state(control, now, route, state);
            match state {
                State::TimeWait => control.enter_time_wait(now),
                State::Closed => {
                    control.state = State::LastAck;
                    control.finish(CloseReason::Finished);
                }
                // Nobody is left to read: the wait for the peer's FIN is bounded (scps-tp §6.7).
                State::FinWait2 if control.is_orphan => {
                    control.timers.stop(Timer::Orphan);
                    control.timers.set(Timer::Linger, now + control.config.time_wait);
                }
                _ => {}
            }
        }
    }

    fn take_rtt(&mut self, control: &Control, now: Instant, ack: &Ack<'_>) {
        let Ack { tcp, has_advanced, outcome, .. } = ack;
        let sample = match outcome.newest {
            // Karn: nothing among it was sent twice.
            Some(newest) if !outcome.resent => Some(now.since(newest.sent_at)),
            _ if *has_advanced && control.agreed.timestamps => {
                tcp.options.timestamps.filter(|t| t.ecr != 0).and_then(|t| control.clock.round_trip(t.ecr, now))
            }
            _ => None,
        };
        // An echo of a stale timestamp would exceed any path; none is longer than the connection has existed.
        let sample = sample.filter(|r| control.stats.opened_at.is_none_or(|opened_at| *r <= now.since(opened_at)));
        if let Some(rtt) = sample {
            self.on_rtt_sample(rtt);
        }
        self.path.set_round(sample);
    }

    fn learn_reordering(&mut self, control: &mut Control, outcome: &Outcome) {
        if outcome.superfluous > 0 {
            // Without D-SACK this is how unneeded resends show.
            if !control.agreed.sack {
                control.stats.superfluous_resends += u64::from(outcome.superfluous);
            }
            self.recovery.on_resends_superfluous();
        }
    }

    fn find_losses(&mut self, control: &mut Control, now: Instant, route: &Route, ack: &Ack<'_>) {
        let Ack { tcp, data_len, has_advanced, is_duplicate, outcome } = *ack;
        let patience = self.patience();
        let has_maps = control.agreed.sack || control.agreed.snack_long;
        let mut highest = None;
        if let (true, Some(s)) = (control.agreed.snack, tcp.options.snack) {
            control.stats.snacks_received += 1;
            highest = self.take_snack(control, now, &s, patience);
        }
        if has_maps {
            if self.board.is_irregular() {
                let depth = self.recovery.reorder_depth(self.board.len());
                highest = highest.max(self.board.detect(depth, Cause::Dupack));
            }
        } else if control.agreed.snack
            && has_advanced
            && outcome.resend_arrived
            && data_len == 0
            && tcp.options.snack.is_none()
        {
            // The resend at the edge arrived and the peer names no hole beyond: it has nothing beyond, so whatever left
            // before that resend is lost.
            highest = highest.max(self.board.detect(1, Cause::Snack));
        }
        if let Some(front) = self.board.front().copied() {
            let is_open = matches!(front.fate, Fate::InFlight | Fate::Presumed);
            let is_resend_overdue =
                front.transmissions > 1 && !has_advanced && now.since(front.sent_at) >= patience && is_duplicate;
            let is_dupack_loss = !has_maps
                && front.transmissions == 1
                && self.recovery.has_duplicates_of_a_loss()
                && (!control.agreed.snack || control.config.snack_policy.delay.is_zero());
            // NewReno: a partial acknowledgement reveals the next hole (RFC 6582 §3.2 step 5).
            let is_partial = !has_maps
                && !control.agreed.snack
                && has_advanced
                && outcome.resend_arrived
                && front.transmissions == 1
                && self.recovery.is_under_way();
            if is_open && (is_resend_overdue || is_dupack_loss || is_partial) {
                self.board.mark_front(Cause::Dupack, true);
                highest = highest.max(Some(front.end));
            }
        }
        if let Some(end) = highest {
            self.on_losses(control, now, route, end);
        }
    }

    fn take_snack(
        &mut self,
        control: &mut Control,
        now: Instant,
        s: &scps_wire::scps::Snack,
        patience: Duration,
    ) -> Option<u64> {
        let unit = snack_unit(control);
        // A bit vector nobody agreed on is left alone (scps-tp §14 item 45).
        let s = if control.agreed.snack_long { *s } else { scps_wire::scps::Snack::short(s.offset, s.size) };
        let holes = snack::reported_holes(&s, self.sender.una(), unit, self.sender.next());
        let first = *holes.first()?;
        if !control.agreed.sack && !control.agreed.snack_long {
            if let Some((from, to)) = self.recovery.pass_over(first.start, first.end) {
                self.board.presume(from, to, now, patience);
            }
        }
        let delay = control.config.snack_policy.delay;
        let twice = control.config.snack_policy.double_retransmission;
        let mut highest = None;
        for hole in holes {
            if delay.is_zero() {
                highest = highest.max(self.board.snack(hole.start, hole.end, now, patience, twice));
            } else if self.recovery.delay_hole(now + delay, hole.start, hole.end) {
                control.timers.set_if_idle(Timer::SnackDelay, now + delay);
            }
        }
        highest
    }

    /// Losses up to `end` were found: open a recovery epoch unless one covers them (scps-tp §2.4.5).
    pub(crate) fn on_losses(&mut self, control: &mut Control, now: Instant, route: &Route, end: u64) {
        if self.recovery.covers(end) {
            return;
        }
        self.recovery.begin(self.sender.next());
        let rwnd = self.sender.edge().saturating_sub(self.sender.una());
        let mss = self.full_segment(control, route);
        let loss = self.loss_sample(now, route, (rwnd, mss));
        self.path.on_loss(&loss);
        self.note(control, now, route, TraceEvent::Recovery, self.sender.una(), 0);
    }

    /// What congestion control is told of losses, beside the peer's window and the data of a full segment.
    pub(crate) fn loss_sample(&self, at: Instant, route: &Route, (rwnd, mss): (u64, u64)) -> LossSample {
        let is_congestion = self.path.loss_is_congestion(route, at);
        LossSample { at, is_congestion, rwnd, mss, in_flight: self.board.flight_size(), next: self.board.next_order() }
    }

    fn drive_controller(&mut self, control: &Control, now: Instant, route: &Route, outcome: &Outcome) {
        if outcome.octets == 0 {
            return;
        }
        self.path.on_progress(&Progress {
            at: now,
            octets: outcome.octets,
            segment: self.full_segment(control, route),
            in_flight: self.board.flight_size(),
            delivered_order: self.board.delivered_order(),
            next_order: self.board.next_order(),
            is_recovering: self.recovery.is_fast(),
        });
    }

    /// `has_blocks` is true if the acknowledgement told of anything that arrived: one that does not leaves the timers alone,
    /// or duplicates could hold the retransmission timer off forever (RFC 6298 (5.3)).
    fn rearm_after_ack(&mut self, control: &mut Control, now: Instant, route: &Route, has_blocks: bool) {
        if control.state == State::Closed || control.state == State::TimeWait {
            return;
        }
        let is_closed = self.is_window_closed(control, route);
        if self.board.is_empty() || is_closed {
            control.timers.stop(Timer::Retransmit);
            control.timers.stop(Timer::TailProbe);
        } else if route.is_available() && (has_blocks || !control.timers.is_set(Timer::Retransmit)) {
            control.timers.set(Timer::Retransmit, now + self.path.rto());
            self.arm_tail_probe(control, now);
        }
        self.rearm_embargo(control);
        if is_closed {
            self.arm_persist(control, now, route);
        } else if route.is_available() {
            control.probing.stop();
            control.timers.stop(Timer::Persist);
        }
    }

    /// A probe is due if nothing is heard for a round trip and, where the last segment may be acknowledged late, the
    /// peer's delay.
    pub(crate) fn arm_tail_probe(&self, control: &mut Control, now: Instant) {
        let is_useful = control.agreed.sack || control.agreed.snack;
        if !is_useful || self.path.srtt().is_none() || self.recovery.is_tail_probed() {
            return;
        }
        let delay = if self.sender.is_fin_sent() { Duration::ZERO } else { control.config.ack.delay };
        let wait = self.recovery.spaced_out(self.patience() + delay);
        control.timers.set(Timer::TailProbe, now + wait);
    }

    pub(crate) fn rearm_embargo(&self, control: &mut Control) {
        match self.board.next_embargo() {
            Some(at) => control.timers.set(Timer::Embargo, at),
            None => control.timers.stop(Timer::Embargo),
        }
    }

    /// Gives up the lowest segment under BETS (scps-tp §7.1): as if it were acknowledged.
    pub(crate) fn abandon_front(&mut self, control: &mut Control, now: Instant, route: &Route) {
        let Some(front) = self.board.front().copied() else {
            return;
        };
        self.board.ack_to(front.end, now, None, |_| false);
        self.sender.abandon(front.start, front.end);
        self.advance(control, now, route, front.end, 0);
        self.rearm_after_ack(control, now, route, true);
    }

    /// Segments in flight no longer fit: they are cut and sent again (RFC 1191 §6.4).
    pub(crate) fn on_mtu_lowered(&mut self, control: &mut Control, now: Instant, route: &Route) {
        let max = self.full_segment(control, route);
        if self.board.mark_longer_than(max, Cause::PathMtu) > 0 {
            control.timers.set(Timer::Retransmit, now + self.path.rto());
        }
    }

    /// An outage is over: what was in flight is tried again at once.
    pub(crate) fn resume(&mut self, control: &mut Control, now: Instant) {
        self.path.on_change(self.board.next_order());
        self.recovery.forget_timeouts();
        self.board.lift_embargoes();
        if !self.board.is_empty() {
            self.board.mark_front(Cause::Embargo, true);
            control.timers.set(Timer::Retransmit, now + self.path.rto());
        }
    }
}

/// The unit in which the peer counts holes in our data (scps-tp §2.4.2).
fn snack_unit(control: &Control) -> u64 {
    snack::unit(control.opening.own_mss(), control.agreed.timestamps, control.is_compressing())
}
