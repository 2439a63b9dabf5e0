//! What each timer does when it is due.

use crate::config::Congestion;
use crate::connection::{Connection, PendingReset};
use crate::event::CloseReason;
use crate::route::Route;
use crate::scoreboard::Fate;
use crate::state::State;
use crate::timer::Timer;
use crate::trace::{Cause, TraceEvent};
use scps_types::Instant;

/// Retransmissions of a SYN-ACK (Linux `tcp_synack_retries`): whoever sent the SYN may be forged, and should not get many
/// packets for one. A peer that is there repeats its SYN.
const SYN_ACK_RETRANSMISSIONS_MAX: u32 = 5;

impl Connection {
    pub(crate) fn on_timeout(&mut self, now: Instant, route: &mut Route) {
        if self.timers.take_due(Timer::DelayedAck, now) {
            self.ack.on_timer();
        }
        if self.timers.take_due(Timer::Embargo, now) {
            self.board.expire_embargoes(now);
            self.rearm_embargo();
        }
        if self.timers.take_due(Timer::SnackDelay, now) {
            self.on_snack_delay(now, route);
        }
        if self.timers.take_due(Timer::TailProbe, now) {
            self.on_tail_probe(now, route);
        }
        if self.timers.take_due(Timer::BetsReceive, now) {
            self.on_bets_receive(now, route);
        }
        if self.timers.take_due(Timer::Persist, now) {
            self.on_persist(now, route);
        }
        if self.timers.take_due(Timer::KeepAlive, now) {
            self.on_keepalive(now, route);
        }
        if self.timers.take_due(Timer::Linger, now) {
            self.finish(CloseReason::Finished);
        }
        if self.timers.take_due(Timer::Orphan, now) {
            self.give_up();
        }
        if self.timers.take_due(Timer::Retransmit, now) {
            self.on_rto(now, route);
        }
    }

    /// The peer is given up: it is told, should it be there after all.
    fn give_up(&mut self) {
        if self.state.is_synchronised() {
            self.pending_reset = PendingReset::Reset;
        }
        self.finish(CloseReason::TimedOut);
    }

    fn on_keepalive(&mut self, now: Instant, route: &Route) {
        let Some((_, interval)) = self.config.keepalive else { return };
        let next = if self.config.keepalive_asks {
            self.probing.ask_if_silent(now, route.is_available(), self.path.rto(), interval)
        } else {
            self.probing.want_keepalive(route.is_available()).then_some(interval)
        };
        match next {
            Some(wait) => self.timers.set(Timer::KeepAlive, now + wait),
            None => self.give_up(),
        }
    }

    fn on_rto(&mut self, now: Instant, route: &mut Route) {
        self.path.back_off();
        if matches!(self.state, State::SynSent | State::SynReceived) {
            let passive = if self.listener.is_some() { SYN_ACK_RETRANSMISSIONS_MAX } else { u32::MAX };
            if self.opening.syns_sent() > self.config.rto.syn_retransmissions_max.min(passive) {
                self.finish(CloseReason::TimedOut);
            } else {
                self.opening.repeat_syn();
            }
            return;
        }
        self.stats.rtos += 1;
        let timeouts = self.recovery.on_timeout();
        self.note(now, route, TraceEvent::RtoExpired, self.sender.una(), 0);
        if timeouts > self.config.rto.retransmissions_max && !self.agreed.bets {
            self.give_up();
            return;
        }
        if timeouts > 1 && self.is_compressing() {
            // A peer that was restarted drops what is compressed; it resets what is not.
            self.probing.want_answer();
        }
        if self.config.rto.to_persist.is_some_and(|n| timeouts >= n) {
            route.set_available(false);
            self.suspend(now);
            return;
        }
        let mss = self.full_segment(route);
        self.path.on_timeout(self.path.loss_is_congestion(route, now), mss);
        self.recovery.begin_after_timeout(self.sender.next());
        if self.board.front().is_some_and(|f| f.fate == Fate::Sacked) {
            // The receiver reneged (RFC 2018 §8).
            self.board.forget_sacks();
        }
        if self.agreed.sack || self.agreed.snack {
            // The lowest segment alone; its acknowledgement tells what else is missing.
            self.board.mark_front(Cause::Rto, false);
            self.recovery.on_probe();
        } else {
            // Go-back-N (scps-tp §4.3): a plain peer will not tell.
            self.board.mark_all(Cause::Rto);
        }
    }

    fn on_tail_probe(&mut self, now: Instant, route: &Route) {
        if self.board.next_lost().is_some() || !route.is_available() {
            return;
        }
        if self.board.mark_tail(Cause::TailProbe) {
            // Where losses do not mean congestion the probe is repeated, else the retransmission timer takes over.
            let is_bold = self.config.congestion == Congestion::None || !self.path.loss_is_congestion(route, now);
            self.recovery.on_tail_probe(is_bold);
        }
    }

    fn on_snack_delay(&mut self, now: Instant, route: &Route) {
        let patience = self.patience();
        let twice = self.config.snack_policy.double_retransmission;
        while let Some(hole) = self.recovery.take_hole(now) {
            let (start, end) = match hole {
                Ok(hole) => hole,
                Err(at) => {
                    self.timers.set(Timer::SnackDelay, at);
                    break;
                }
            };
            if let Some(highest) = self.board.snack(start, end, now, patience, twice) {
                self.on_losses(now, route, highest);
            }
        }
    }

    fn on_bets_receive(&mut self, now: Instant, route: &Route) {
        if self.receiver.data_mut().skip_hole().is_none() {
            return;
        }
        if !self.receiver.data().pieces().is_empty() {
            self.snack.request();
            self.timers.set(Timer::BetsReceive, now + self.config.bets_policy.receive_timeout);
        }
        self.consume_fin(now, route);
        self.ack.on_segment(crate::ack::AckNeed::Now, 0, now);
        self.signal_readable();
    }

    fn on_persist(&mut self, now: Instant, route: &Route) {
        let is_needed = !route.is_available() || self.is_window_closed(route);
        if !is_needed {
            return;
        }
        if !self.probing.want_window(route.is_available()) {
            self.give_up();
            return;
        }
        let interval = self.probing.next_interval();
        self.timers.set(Timer::Persist, now + interval);
    }

    /// True if data waits, the window does not take it, and nothing is on its way whose fate the retransmission timer
    /// would settle. A window that shrank may leave its lowest segment outside.
    pub(crate) fn is_window_closed(&self, route: &Route) -> bool {
        let is_outside = match self.board.next_lost() {
            Some(lost) => self.is_beyond_window(&lost),
            None => self.portion(route).is_silly,
        };
        let is_idle = self.board.flight_size() == 0 || self.board.front().is_some_and(|f| f.fate == Fate::Lost);
        self.state.may_transmit_data() && is_outside && is_idle
    }

    /// The route became unavailable: nothing is timed, probes look for its return (scps-tp §6.8).
    pub(crate) fn suspend(&mut self, now: Instant) {
        if !self.state.is_synchronised() || self.state == State::TimeWait {
            return;
        }
        for timer in [Timer::Retransmit, Timer::TailProbe, Timer::Embargo] {
            self.timers.stop(timer);
        }
        let first = self.probing.outage_interval();
        self.timers.set(Timer::Persist, now + first);
    }
}
