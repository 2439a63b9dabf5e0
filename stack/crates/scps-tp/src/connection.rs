//! One connection: its state and the calls of its user. Segments are handled in `input.rs`, acknowledgements and losses in
//! `recovery.rs`, timers in `timeouts.rs`, packets to send in `output.rs`.
//!
//! Positions are octets since an initial sequence number (SYN at 0, first data at 1), so nothing here wraps; `SeqNum`
//! appears only at the edge, in [`Sender::seq`] and [`Receiver::position`].

use crate::ack::AckPolicy;
use crate::compression::Context;
use crate::config::Config;
use crate::error::{OptionError, RecvError, SendError};
use crate::event::{CloseReason, Event};
use crate::limits::{ChallengeLimit, InvalidLimit};
use crate::names::{AddressPort, ConnectionId, ListenerId, RouteId};
use crate::negotiation::{self, Agreed};
use crate::opening::Opening;
use crate::path::Path;
use crate::path_mtu::PathMtu;
use crate::probing::Probing;
use crate::reassembly::{Hole, Read, Reassembly};
use crate::receiver::Receiver;
use crate::recovery::Recovery;
use crate::route::{Route, MSS_MIN};
use crate::scoreboard::Scoreboard;
use crate::send_buffer::SendBuffer;
use crate::sender::Sender;
use crate::snack::SnackGenerator;
use crate::state::State;
use crate::stats::Stats;
use crate::timer::{Timer, Timers};
use crate::timestamps::TimestampClock;
use crate::trace::{TraceEvent, TraceRecord};
use scps_types::{Duration, Instant, SeqNum};
use std::collections::VecDeque;

/// How long a connection that nobody owns may go without an octet acknowledged, even if its peer answers: half an hour, as
/// long as the default limit of retransmissions lets a silent peer be (Linux ends orphans after `tcp_orphan_retries`).
pub(crate) const ORPHAN_PATIENCE: Duration = Duration::from_secs(1800);

/// What a connection begins with.
pub(crate) struct Setup {
    pub id: ConnectionId,
    pub local: AddressPort,
    pub remote: AddressPort,
    pub config: Config,
    pub route: RouteId,
    /// What is known of the path, if it takes less than its route.
    pub path_mtu: Option<PathMtu>,
    /// Octets of the network layer's header.
    pub network_header: u16,
    pub iss: SeqNum,
    pub timestamp_offset: u32,
    pub connection_id: u8,
    pub listener: Option<ListenerId>,
    pub with_scps: bool,
}

/// How a connection tells its end to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PendingReset {
    None,
    Reset,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) local: AddressPort,
    pub(crate) remote: AddressPort,
    pub(crate) config: Config,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) state: State,
    pub(crate) agreed: Agreed,
    pub(crate) timers: Timers,
    pub(crate) stats: Stats,
    pub(crate) events: VecDeque<Event>,
    pub(crate) trace: Vec<TraceRecord>,

    // Its parts, each with a file of its own; what they do together is done in the files named above.
    pub(crate) opening: Opening,
    pub(crate) path: Path,
    pub(crate) sender: Sender,
    /// What is under way.
    pub(crate) board: Scoreboard,
    pub(crate) recovery: Recovery,
    pub(crate) probing: Probing,
    pub(crate) receiver: Receiver,
    /// Nothing is to be sent to us before the user says so.
    pub(crate) is_window_held: bool,
    pub(crate) ack: AckPolicy,
    pub(crate) snack: SnackGenerator,
    pub(crate) clock: TimestampClock,
    pub(crate) challenges: ChallengeLimit,
    pub(crate) invalid: InvalidLimit,

    /// The identifier of its compressed packets that the table keeps for it; 0 for none.
    pub(crate) own_identifier: u8,
    /// The peer's identifier leads to it, or did.
    pub(crate) is_identified: bool,
    pub(crate) pending_reset: PendingReset,
    /// Nobody owns it any more.
    pub(crate) is_orphan: bool,
}

impl Connection {
    pub(crate) fn new(setup: Setup, route: &Route, state: State, now: Instant) -> Self {
        let config = setup.config;
        let mss = route.mss(setup.network_header);
        let own_mss = config.mss.map_or(mss, |m| m.min(mss)).max(1);
        let shift = if config.window_scaling { negotiation::window_shift(config.receive_buffer) } else { 0 };
        Connection {
            id: setup.id,
            local: setup.local,
            remote: setup.remote,
            listener: setup.listener,
            state,
            agreed: Agreed::default(),
            timers: Timers::default(),
            stats: Stats { opened_at: Some(now), ..Stats::default() },
            events: VecDeque::new(),
            trace: Vec::new(),
            opening: Opening::new(setup.with_scps, own_mss, setup.connection_id, now),
            path: Path::new(setup.route, setup.network_header, setup.path_mtu, &config, route, u64::from(own_mss)),
            sender: Sender::new(setup.iss, SendBuffer::new(config.send_buffer.max(1))),
            board: Scoreboard::default(),
            recovery: Recovery::default(),
            probing: Probing::new(config.persist),
            // Rounding the window up to its scale must never promise room that is not there (scps-tp §14 item 27).
            receiver: Receiver::new(Reassembly::new(
                config.receive_buffer.max(1) + (1 << shift),
                config.reassembly_pieces_max,
            )),
            is_window_held: config.holds_window && setup.listener.is_some(),
            ack: AckPolicy::new(config.ack),
            snack: SnackGenerator::new(1, config.snack_policy.repeat, false),
            clock: TimestampClock::new(setup.timestamp_offset),
            challenges: ChallengeLimit::default(),
            invalid: InvalidLimit::default(),
            own_identifier: setup.connection_id,
            is_identified: false,
            pending_reset: PendingReset::None,
            is_orphan: false,
            config,
        }
    }

    // Positions.

    /// Next receive position expected, FIN included.
    pub(crate) fn rcv_nxt(&self) -> u64 {
        self.receiver.next()
    }

    /// The wire form of a receive position.
    pub(crate) fn rcv_seq(&self, position: u64) -> SeqNum {
        self.receiver.seq(position)
    }

    /// The receive position of a sequence number near `rcv_nxt`; negative before the first.
    pub(crate) fn rcv_position(&self, seq: SeqNum) -> i64 {
        self.receiver.position(seq)
    }

    /// The MSS we would offer for segments over `route`.
    pub(crate) fn mss_over(&self, route: &Route) -> u16 {
        let mss = route.mss(self.path.network_header());
        self.config.mss.map_or(mss, |m| m.min(mss))
    }

    /// Largest data and options per segment towards the peer.
    pub(crate) fn effective_mss(&self, route: &Route) -> u64 {
        let mss = route.mss_within(self.path.mtu(route), self.path.network_header());
        let own = self.config.mss.map_or(mss, |m| m.min(mss));
        // Absent peer option: own value, as the reference does (scps-tp §2.7).
        u64::from(self.opening.peer_mss().map_or(own, |p| p.max(MSS_MIN).min(own)).max(1))
    }

    /// Data of a full segment, as congestion control counts it.
    pub(crate) fn full_segment(&self, route: &Route) -> u64 {
        let options = if self.agreed.timestamps { 12 } else { 0 };
        self.effective_mss(route).saturating_sub(options).max(1)
    }

    // User calls.

    pub(crate) fn send(&mut self, data: &[u8]) -> Result<usize, SendError> {
        if !self.state.may_send() || self.sender.is_ended() {
            return Err(SendError::Closed);
        }
        Ok(self.sender.push(data))
    }

    pub(crate) fn send_record(&mut self, record: &[u8]) -> Result<bool, SendError> {
        if !self.state.may_send() || self.sender.is_ended() {
            return Err(SendError::Closed);
        }
        if record.is_empty() || record.len() > self.config.send_buffer {
            return Err(SendError::RecordTooLong);
        }
        Ok(self.sender.push_record(record))
    }

    /// Gives `take` up to `len_max` octets in two pieces. `Ok((0, _))` is the end of the stream.
    pub(crate) fn recv(
        &mut self,
        now: Instant,
        route: &Route,
        len_max: usize,
        take: impl FnOnce(&[u8], &[u8]),
    ) -> Result<(usize, bool), RecvError> {
        self.receiver.on_read();
        match self.receiver.data_mut().read(len_max, take) {
            Read::Data { len, ends_record } => {
                self.update_window_after_read(now, route);
                self.start_bets_timer(now);
                Ok((len, ends_record))
            }
            Read::Hole(Hole { offset, len }) => Err(RecvError::Hole { offset, len }),
            Read::Empty if self.receiver.is_fin_received() || self.state == State::Closed => Ok((0, false)),
            Read::Empty => {
                self.start_bets_timer(now);
                Err(RecvError::WouldBlock)
            }
        }
    }

    /// A window that opens from below a segment to a segment or more is announced (scps-tp §6.1).
    fn update_window_after_read(&mut self, now: Instant, route: &Route) {
        let mss = self.effective_mss(route);
        let before = self.receiver.edge() - self.rcv_nxt();
        let after = self.window_room();
        let is_opening = before < mss && after >= mss;
        // A quarter of the buffer is worth an acknowledgement too: a fast reader keeps a fast sender going.
        let is_large = after.saturating_sub(before) >= (self.config.receive_buffer as u64 / 4).max(mss);
        if self.state.may_receive() && (is_opening || is_large) {
            self.ack.on_segment(crate::ack::AckNeed::Now, 0, now);
        }
    }

    /// The user takes data from now on, and the peer is told.
    pub(crate) fn open_window(&mut self, now: Instant) {
        let was_held = std::mem::take(&mut self.is_window_held);
        match self.state {
            State::SynReceived if was_held => self.opening.owe_update(),
            state if was_held && state.may_receive() => {
                self.ack.on_segment(crate::ack::AckNeed::Now, 0, now);
            }
            _ => {}
        }
    }

    fn start_bets_timer(&mut self, now: Instant) {
        // The reader drained what is in order and data waits beyond a hole (scps-tp §7.1).
        if self.agreed.bets && self.receiver.data().readable() == 0 && !self.receiver.data().pieces().is_empty() {
            self.timers.set_if_idle(Timer::BetsReceive, now + self.config.bets_policy.receive_timeout);
        }
    }

    /// Octets the buffer has room for beyond `rcv_nxt`. The ring is one scale unit larger than the buffer: that unit is
    /// slack for rounding the window up, not room.
    pub(crate) fn window_room(&self) -> u64 {
        if self.is_window_held {
            return 0;
        }
        (self.config.receive_buffer.max(1) as u64).saturating_sub(self.receiver.data().readable() as u64)
    }

    /// FIN follows what was given to send, even if the handshake is still to come; `abort` is for giving up.
    pub(crate) fn close(&mut self) {
        self.sender.end();
    }

    /// The user gave the connection up.
    pub(crate) fn orphan(&mut self, now: Instant) {
        self.is_orphan = true;
        self.close();
        match self.state {
            State::FinWait2 => self.timers.set_if_idle(Timer::Linger, now + self.config.time_wait),
            State::TimeWait | State::Closed => {}
            _ => self.timers.set_if_idle(Timer::Orphan, now + ORPHAN_PATIENCE),
        }
    }

    pub(crate) fn abort(&mut self) {
        if self.state == State::Closed {
            return;
        }
        // A peer that never answered knows nothing of us; one we are in TIME-WAIT for needs nothing more (RFC 9293 §3.10.5).
        if !matches!(self.state, State::SynSent | State::TimeWait) {
            self.pending_reset = PendingReset::Reset;
        }
        self.finish(CloseReason::Aborted);
    }

    /// The connection is over: no timer, no more packets but a reset if one is due.
    pub(crate) fn finish(&mut self, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.timers.stop_all();
        self.opening.end();
        self.probing.end_window();
        self.events.push_back(Event::Closed(self.id, reason));
    }

    pub(crate) fn set_state(&mut self, now: Instant, route: &Route, state: State) {
        if self.state != state {
            self.state = state;
            self.note(now, route, TraceEvent::State(state), self.sender.next(), 0);
        }
    }

    // Queries.

    /// What absent fields of a compressed segment mean here (scps-tp §3.3).
    pub(crate) fn decompression_context(&self) -> Context {
        let (window, ack) = self.sender.last_heard();
        Context { src_port: self.remote.1, dst_port: self.local.1, window, ack, seq: self.rcv_seq(self.rcv_nxt()) }
    }

    /// Holes the sender left under BETS, as (first, last) octets of the stream (scps-tp §9.2).
    pub(crate) fn bets_send_holes(&self) -> Result<&[(u64, u64)], OptionError> {
        if self.agreed.bets {
            Ok(self.sender.abandoned())
        } else {
            Err(OptionError::NotSupported)
        }
    }

    /// Octets of memory the connection holds beyond its own size.
    pub(crate) fn allocated(&self) -> usize {
        size_of::<Self>()
            + self.sender.data().allocated()
            + self.receiver.data().allocated()
            + self.board.allocated()
            + self.trace.capacity() * size_of::<TraceRecord>()
    }

    pub(crate) fn signal_readable(&mut self) {
        if self.receiver.take_signal() {
            self.events.push_back(Event::Readable(self.id));
        }
    }

    pub(crate) fn note(&mut self, now: Instant, route: &Route, event: TraceEvent, position: u64, len: u64) {
        if !self.config.trace {
            return;
        }
        self.trace.push(TraceRecord {
            at: now,
            connection: self.id,
            event,
            position,
            len: len as u32,
            cwnd: self.path.cwnd(),
            ssthresh: self.path.ssthresh(),
            srtt: self.path.srtt(),
            rto: self.path.rto(),
            flight_size: self.board.flight_size(),
            rate_credit: route.credit(),
        });
    }
}
