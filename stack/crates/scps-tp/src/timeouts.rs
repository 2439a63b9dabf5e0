//! What each timer does when it is due.

use crate::black_hole::{Doubt, LENGTHS};
use crate::connection::Connection;
use crate::control::Control;
use crate::event::CloseReason;
use crate::outbound::Outbound;
use crate::path::MtuFound;
use crate::persist::INTERVAL_MIN;
use crate::route::Route;
use crate::scoreboard::Fate;
use crate::state::State;
use crate::timer::Timer;
use crate::trace::{Cause, TraceEvent};
use scps_wire::Instant;

/// Retransmissions of a SYN-ACK (Linux `tcp_synack_retries`): whoever sent the SYN may be forged, and should not get many
/// packets for one. A peer that is there repeats its SYN, and each one that comes is waited for as long again.
const SYN_ACK_RETRANSMISSIONS_MAX: u32 = 5;

impl Connection {
    pub(crate) fn on_timeout(&mut self, now: Instant, route: &mut Route) {
        let Connection { control, outbound, inbound, .. } = self;
        if control.timers.take_due(Timer::DelayedAck, now) {
            inbound.ack.on_timer();
        }
        if control.timers.take_due(Timer::Embargo, now) {
            outbound.board.expire_embargoes(now);
            outbound.rearm_embargo(control);
        }
        // What it held back is asked for when the connection has its turn.
        control.timers.take_due(Timer::Pace, now);
        if control.timers.take_due(Timer::SnackDelay, now) {
            outbound.on_snack_delay(control, now, route);
        }
        if control.timers.take_due(Timer::TailProbe, now) {
            outbound.on_tail_probe(control, now, route);
        }
        if self.control.timers.take_due(Timer::BetsReceive, now) {
            self.on_bets_receive(now, route);
        }
        let Connection { control, outbound, .. } = self;
        if control.timers.take_due(Timer::Persist, now) {
            outbound.on_persist(control, now, route);
        }
        if control.timers.take_due(Timer::KeepAlive, now) {
            outbound.on_keepalive(control, now, route);
        }
        if control.timers.take_due(Timer::Linger, now) {
            control.finish(CloseReason::Finished);
        }
        if control.timers.take_due(Timer::Orphan, now) {
            control.give_up();
        }
        if control.timers.take_due(Timer::Retransmit, now) {
            outbound.on_rto(control, now, route);
        }
    }

    fn on_bets_receive(&mut self, now: Instant, route: &Route) {
        let inbound = &mut self.inbound;
        if inbound.receiver.data_mut().skip_hole().is_none() {
            return;
        }
        if !inbound.receiver.data().pieces().is_empty() {
            inbound.snack.request();
        }
        self.consume_fin(now, route);
        self.inbound.ack.want_now();
        self.inbound.signal_readable(&mut self.control);
    }
}

impl Outbound {
    fn on_keepalive(&self, control: &mut Control, now: Instant, route: &Route) {
        let Some((_, interval)) = control.config.keepalive else { return };
        // An answer takes a round trip: what is asked meanwhile is asked in vain.
        let interval = interval.max(INTERVAL_MIN).max(self.path.srtt().unwrap_or_default());
        let next = if control.config.keepalive_asks {
            control.probing.ask_if_silent(now, route.is_available(), self.path.rto(), interval)
        } else {
            control.probing.want_keepalive(route.is_available()).then_some(interval)
        };
        match next {
            Some(wait) => control.timers.set(Timer::KeepAlive, now + wait),
            None => control.give_up(),
        }
    }

    fn on_rto(&mut self, control: &mut Control, now: Instant, route: &mut Route) {
        self.path.back_off();
        if matches!(control.state, State::SynSent | State::SynReceived) {
            let most = control.config.rto.syn_retransmissions_max;
            let is_given_up = match control.listener {
                Some(_) => control.opening.syns_unheard() > most.min(SYN_ACK_RETRANSMISSIONS_MAX),
                None => control.opening.syns_sent() > most,
            };
            if is_given_up {
                control.finish(CloseReason::TimedOut);
            } else {
                control.opening.repeat_syn();
            }
            return;
        }
        control.stats.rtos += 1;
        let timeouts = self.recovery.on_timeout();
        self.note(control, now, route, TraceEvent::RtoExpired, self.sender.una(), 0);
        // BETS goes on while there is something left to give up.
        let may_abandon = self.board.front().is_some_and(|front| self.may_abandon(control, front));
        if timeouts > control.config.rto.retransmissions_max && !may_abandon {
            control.give_up();
            return;
        }
        if timeouts > 1 && control.is_compressing() {
            // A peer that was restarted drops what is compressed; it resets what is not.
            control.probing.want_answer();
        }
        if control.config.rto.to_persist.is_some_and(|n| timeouts >= n) {
            route.set_available(false);
            control.suspend(now);
            return;
        }
        if control.config.finds_black_holes {
            self.doubt_length(control, now, route, timeouts);
        }
        let mss = self.full_segment(control, route);
        let rwnd = self.sender.edge().saturating_sub(self.sender.una());
        let loss = self.loss_sample(now, route, (rwnd, mss));
        self.path.on_timeout(&loss);
        self.recovery.begin_after_timeout(self.sender.next());
        if self.board.front().is_some_and(|f| f.fate == Fate::Sacked) {
            // The receiver reneged (RFC 2018 §8).
            self.board.forget_sacks();
        }
        if control.agreed.sack || control.agreed.snack {
            // The lowest segment alone; its acknowledgement tells what else is missing.
            self.board.mark_front(Cause::Rto, false);
            self.recovery.on_probe();
        } else {
            // Go-back-N (scps-tp §4.3): a plain peer will not tell.
            self.board.mark_all(Cause::Rto);
        }
    }

    /// The lowest segment timed out so often in a row: it may be too long for its path.
    fn doubt_length(&mut self, control: &mut Control, now: Instant, route: &Route, timeouts: u32) {
        let Some(front) = self.board.front().copied() else { return };
        let (len, mtu) = (front.end - front.start - u64::from(front.fin), self.path.mtu(route));
        let full = |mtu| self.full_segment_within(control, route, mtu);
        let fulls = LENGTHS.map(|mtu| (mtu, full(mtu)));
        let within = |mtu| fulls.iter().find(|full| full.0 == mtu).map_or(0, |full| full.1);
        let heard_at = control.probing.heard_at();
        match self.black_hole.on_timeout(now, (timeouts, heard_at), (len, mtu), within) {
            Doubt::None => {}
            Doubt::Ask => control.probing.want_answer(),
            Doubt::Shorter(mtu) => self.path.find_mtu(MtuFound::Less(mtu)),
        }
    }

    fn on_tail_probe(&mut self, control: &Control, now: Instant, route: &Route) {
        if self.board.next_lost().is_some() || !route.is_available() {
            return;
        }
        if self.board.mark_tail(Cause::TailProbe) {
            // Where losses do not mean congestion the probe is repeated, else the retransmission timer takes over.
            self.recovery.on_tail_probe(self.is_bold(control, route, now));
        }
    }

    fn on_snack_delay(&mut self, control: &mut Control, now: Instant, route: &Route) {
        let patience = self.patience();
        let twice = control.config.snack_policy.double_retransmission;
        while let Some(hole) = self.recovery.take_hole(now) {
            let (start, end) = match hole {
                Ok(hole) => hole,
                Err(at) => {
                    control.timers.set(Timer::SnackDelay, at);
                    break;
                }
            };
            if let Some(highest) = self.board.snack(start, end, now, patience, twice) {
                self.on_losses(control, now, route, highest);
            }
        }
    }

    fn on_persist(&self, control: &mut Control, now: Instant, route: &Route) {
        let is_needed = !route.is_available() || self.is_window_closed(control, route);
        if !is_needed {
            return;
        }
        if !control.probing.want_window(route.is_available()) {
            control.give_up();
            return;
        }
        // That a route is back is worth asking after also while an answer may be on its way.
        let is_up = route.is_available();
        let interval = if is_up { self.probe_interval(control) } else { control.probing.next_interval() };
        control.timers.set(Timer::Persist, now + interval);
    }
}
