//! What both halves of a connection need: who it is, what was agreed on, its state and timers, and what it tells.

use crate::config::Config;
use crate::event::{CloseReason, Event};
use crate::names::{AddressPort, ConnectionId, ListenerId};
use crate::negotiation::Agreed;
use crate::opening::Opening;
use crate::probing::Probing;
use crate::state::State;
use crate::stats::Stats;
use crate::timer::{Timer, Timers};
use crate::timestamps::TimestampClock;
use crate::trace::TraceRecord;
use scps_wire::options::{Options, Timestamps};
use scps_wire::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How long a connection that nobody owns may go without an octet acknowledged, even if its peer answers: half an hour, as
/// long as the default limit of retransmissions lets a silent peer be (Linux ends orphans after `tcp_orphan_retries`), and a few
/// timeouts in any case.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(1800);
const ORPHAN_PATIENCE_RTOS: u32 = 4;

/// The control of a connection: neither half owns it, both act on it.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) id: ConnectionId,
    pub(crate) local: AddressPort,
    pub(crate) remote: AddressPort,
    /// Where its peer was heard, beneath the network layer.
    pub(crate) via: Option<SocketAddr>,
    pub(crate) config: Config,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) state: State,
    /// Why it ended, if it has.
    pub(crate) close_reason: Option<CloseReason>,
    pub(crate) opening: Opening,
    pub(crate) agreed: Agreed,
    pub(crate) probing: Probing,
    pub(crate) clock: TimestampClock,
    pub(crate) timers: Timers,
    pub(crate) stats: Stats,
    pub(crate) events: VecDeque<Event>,
    pub(crate) trace: Vec<TraceRecord>,
    /// The peer is to be told by a reset that the connection is over.
    pub(crate) is_reset_due: bool,
    /// Nobody owns it any more.
    pub(crate) is_orphan: bool,
}

fn orphan_patience(rto: Duration) -> Duration {
    ORPHAN_PATIENCE.max(rto * ORPHAN_PATIENCE_RTOS)
}

impl Control {
    // The end.

    /// The connection is over: no timer, no more packets but a reset if one is due.
    pub(crate) fn finish(&mut self, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.close_reason = Some(reason);
        self.timers.stop_all();
        self.opening.end();
        self.probing.end_window();
        self.events.push_back(Event::Closed(self.id, reason));
    }

    /// The user ends it at once.
    pub(crate) fn abort(&mut self) {
        if self.state == State::Closed {
            return;
        }
        // A peer that never answered knows nothing of us; one we are in TIME-WAIT for needs nothing more (RFC 9293 §3.10.5).
        self.is_reset_due |= !matches!(self.state, State::SynSent | State::TimeWait);
        self.finish(CloseReason::Aborted);
    }

    /// The peer is given up: it is told, should it be there after all.
    pub(crate) fn give_up(&mut self) {
        self.is_reset_due |= self.state.is_synchronised();
        self.finish(CloseReason::TimedOut);
    }

    /// The user gave the connection up.
    pub(crate) fn orphan(&mut self, now: Instant, rto: Duration) {
        self.is_orphan = true;
        match self.state {
            State::FinWait2 => self.timers.set_if_idle(Timer::Linger, now + self.config.time_wait),
            State::TimeWait | State::Closed => {}
            _ => self.timers.set_if_idle(Timer::Orphan, now + orphan_patience(rto)),
        }
    }

    /// The peer acknowledged something: an orphan may stay as long again.
    pub(crate) fn prolong_orphan(&mut self, now: Instant, rto: Duration) {
        if self.is_orphan {
            self.timers.set(Timer::Orphan, now + orphan_patience(rto));
        }
    }

    pub(crate) fn enter_time_wait(&mut self, now: Instant) {
        let over =
            [Timer::Retransmit, Timer::TailProbe, Timer::Embargo, Timer::Persist, Timer::KeepAlive, Timer::Orphan];
        for timer in over {
            self.timers.stop(timer);
        }
        self.timers.set(Timer::Linger, now + self.config.time_wait);
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

    // What its packets have in common.

    pub(crate) fn is_compressing(&self) -> bool {
        self.agreed.compression.is_some()
    }

    /// Our timestamp, and the peer's.
    pub(crate) fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { val: self.clock.value(now), ecr: self.clock.echo() }
    }

    /// The options of any packet.
    pub(crate) fn usual_options(&self, now: Instant) -> Options {
        Options { timestamps: self.agreed.timestamps.then(|| self.stamp(now)), ..Options::default() }
    }
}
