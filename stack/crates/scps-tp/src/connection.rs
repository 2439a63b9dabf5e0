//! One connection: its two halves, the control over both, and the calls of its user. Segments are handled in `input.rs`, acknowledgements
//! and losses in `recovery.rs`, timers in `timeouts.rs`, packets to send in `output.rs`.
//!
//! Positions are octets since an initial sequence number (SYN at 0, first data at 1), so nothing here wraps; `SeqNum`
//! appears only at the edge, in [`Sender::seq`] and [`crate::receiver::Receiver::position`].

use crate::cc::Saved;
use crate::compression::Context;
use crate::config::Config;
use crate::control::Control;
use crate::error::{OptionError, RecvError, SendError};
use crate::inbound::Inbound;
use crate::limits::{ChallengeLimit, InvalidLimit};
use crate::names::{AddressPort, ConnectionId, ListenerId, RouteId};
use crate::negotiation::{self, Agreed};
use crate::opening::Opening;
use crate::outbound::Outbound;
use crate::path::Path;
use crate::path_mtu::PathMtu;
use crate::probing::Probing;
use crate::route::Route;
use crate::send_buffer::SendBuffer;
use crate::sender::Sender;
use crate::state::State;
use crate::stats::{Progress, Stats};
use crate::timer::{Timer, Timers};
use crate::timestamps::TimestampClock;
use crate::trace::TraceRecord;
use scps_wire::{Duration, Instant, SeqNum};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Timeouts for which the peer's FIN is waited for after ours is acknowledged, by a program that has nothing else to do.
const FIN_PATIENCE_RTOS: u32 = 8;

/// What a connection begins with.
pub(crate) struct Setup {
    pub id: ConnectionId,
    pub local: AddressPort,
    pub remote: AddressPort,
    /// Where its peer is, beneath the network layer.
    pub via: Option<SocketAddr>,
    pub config: Config,
    pub route: RouteId,
    /// What is known of the path, if it takes less than its route.
    pub path_mtu: Option<PathMtu>,
    /// What is saved of it.
    pub saved: Option<Saved>,
    /// Octets of the network layer's header.
    pub network_header: u16,
    pub iss: SeqNum,
    pub timestamp_offset: u32,
    pub connection_id: u8,
    pub listener: Option<ListenerId>,
    pub with_scps: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) control: Control,
    pub(crate) outbound: Outbound,
    pub(crate) inbound: Inbound,
    pub(crate) challenges: ChallengeLimit,
    pub(crate) invalid: InvalidLimit,
    /// The identifier of its compressed packets that the table keeps for it; 0 for none.
    pub(crate) own_identifier: u8,
    /// The peer's identifier leads to it, or did.
    pub(crate) is_identified: bool,
}

impl Connection {
    pub(crate) fn new(setup: Setup, route: &Route, state: State, now: Instant) -> Self {
        let config = setup.config;
        let mss = route.mss(setup.network_header);
        let own_mss = config.mss.map_or(mss, |m| m.min(mss)).max(1);
        let shift = if config.window_scaling { negotiation::window_shift(config.receive_buffer) } else { 0 };
        let mut path = Path::new(setup.route, setup.network_header, setup.path_mtu, &config, route, u64::from(own_mss));
        path.resume_from(setup.saved, &config, u64::from(own_mss));
        let sender = Sender::new(setup.iss, SendBuffer::new(config.send_buffer.max(1)));
        Connection {
            outbound: Outbound::new(path, sender, config.segments_max),
            inbound: Inbound::new(&config, shift, config.holds_window && setup.listener.is_some()),
            challenges: ChallengeLimit::default(),
            invalid: InvalidLimit::default(),
            own_identifier: setup.connection_id,
            is_identified: false,
            control: Control {
                id: setup.id,
                local: setup.local,
                remote: setup.remote,
                via: setup.via,
                listener: setup.listener,
                state,
                close_reason: None,
                opening: Opening::new(setup.with_scps, own_mss, setup.connection_id, now),
                agreed: Agreed::default(),
                probing: Probing::new(config.persist),
                clock: TimestampClock::new(setup.timestamp_offset),
                timers: Timers::default(),
                stats: Stats { opened_at: Some(now), ..Stats::default() },
                events: VecDeque::new(),
                trace: Vec::new(),
                is_reset_due: false,
                is_orphan: false,
                config,
            },
        }
    }

    // User calls.

    pub(crate) fn send(&mut self, data: &[u8]) -> Result<usize, SendError> {
        self.may_send()?;
        Ok(self.outbound.sender.push(data))
    }

    pub(crate) fn send_record(&mut self, record: &[u8]) -> Result<bool, SendError> {
        self.may_send()?;
        if record.is_empty() || record.len() > self.control.config.send_buffer {
            return Err(SendError::RecordTooLong);
        }
        Ok(self.outbound.sender.push_record(record))
    }

    fn may_send(&self) -> Result<(), SendError> {
        let may = self.control.state.may_send() && !self.outbound.sender.is_ended();
        may.then_some(()).ok_or(SendError::Closed)
    }

    /// Gives `take` up to `len_max` octets in two pieces. `Ok((0, _))` is the end of the stream, as the peer set it.
    pub(crate) fn recv(
        &mut self,
        now: Instant,
        route: &Route,
        len_max: usize,
        take: impl FnOnce(&[u8], &[u8]),
    ) -> Result<(usize, bool), RecvError> {
        let mss = self.outbound.effective_mss(&self.control, route);
        self.inbound.recv(&mut self.control, now, mss, len_max, take)
    }

    /// FIN follows what was given to send, even if the handshake is still to come; `abort` is for giving up.
    pub(crate) fn close(&mut self) {
        self.outbound.sender.end();
    }

    /// The user gave the connection up.
    pub(crate) fn orphan(&mut self, now: Instant) {
        self.control.orphan(now, self.outbound.path.rto());
        self.close();
    }

    /// When whoever is done with it may leave it to itself: until then it waits for the peer's FIN, or answers that again if our
    /// acknowledgement of it was lost. `None` while there is something to deliver, and when it is gone.
    pub(crate) fn may_leave_at(&self, route: &Route) -> Option<Instant> {
        let Control { state, stats, probing, .. } = &self.control;
        let (rto, srtt) = (self.outbound.path.rto(), self.outbound.path.srtt().unwrap_or_default());
        match state {
            State::FinWait2 => Some(stats.flushed_at? + rto * FIN_PATIENCE_RTOS),
            State::TimeWait => {
                // A peer that only received measured one round trip, so it repeats its FIN after three (RFC 6298 §2.2), and that
                // arrives a round trip after our acknowledgement was due. One whose round trip was lost repeats it after its first
                // timeout, which is as ours as far as can be told.
                let has_lost =
                    stats.rtos + stats.resends_total() + stats.duplicate_segments + stats.out_of_order_segments > 0;
                let unmeasured = if has_lost { route.config().initial_rto + srtt } else { Duration::ZERO };
                Some(probing.heard_at() + (rto * 2).max(srtt * 4).max(unmeasured))
            }
            _ => None,
        }
    }

    // The route.

    /// The route works again (scps-tp §6.8).
    pub(crate) fn restore_after_outage(&mut self, now: Instant, route: &mut Route) {
        route.set_available(true);
        self.resume(now);
    }

    /// Resumes after an outage: probing ends, what was in flight is tried again at once.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.control.probing.stop();
        self.control.timers.stop(Timer::Persist);
        self.control.probing.end_window();
        self.outbound.resume(&mut self.control, now);
        if self.control.state.is_synchronised() {
            self.inbound.ack.want_now();
        }
    }

    // Queries.

    /// How far its data came in either direction, FINs aside.
    pub(crate) fn progress(&self) -> Progress {
        let (sender, receiver) = (&self.outbound.sender, &self.inbound.receiver);
        let (sent, received) = (sender.data(), receiver.data());
        Progress {
            taken: sent.end().saturating_sub(1),
            delivered: sender.una().min(sent.end()).saturating_sub(1),
            received: received.next().saturating_sub(1),
            acknowledged: receiver.acknowledged().min(received.next()).saturating_sub(1),
            readable: received.readable() as u64,
        }
    }

    /// How often its peer was asked again for an answer that was due.
    pub(crate) fn asked_again(&self) -> u64 {
        let Control { state, stats, .. } = &self.control;
        let is_opening = matches!(state, State::SynSent | State::SynReceived);
        let syns = if is_opening { stats.segments_sent.saturating_sub(1) } else { 0 };
        syns + stats.rtos + stats.probes_sent
    }

    /// What absent fields of a compressed segment mean here (scps-tp §3.3).
    pub(crate) fn decompression_context(&self) -> Context {
        let (window, ack) = self.outbound.sender.last_heard();
        let receiver = &self.inbound.receiver;
        let (src_port, dst_port) = (self.control.remote.1, self.control.local.1);
        Context { src_port, dst_port, window, ack, seq: receiver.seq(receiver.next()) }
    }

    /// Holes the sender left under BETS, as (first, last) octets of the stream (scps-tp §9.2).
    pub(crate) fn bets_send_holes(&self) -> Result<&[(u64, u64)], OptionError> {
        if self.control.agreed.bets {
            Ok(self.outbound.sender.abandoned())
        } else {
            Err(OptionError::NotSupported)
        }
    }

    /// Octets of memory the connection holds.
    pub(crate) fn allocated(&self) -> usize {
        size_of::<Self>()
            + self.outbound.sender.data().allocated()
            + self.inbound.receiver.data().allocated()
            + self.outbound.board.allocated()
            + self.control.trace.capacity() * size_of::<TraceRecord>()
    }
}
