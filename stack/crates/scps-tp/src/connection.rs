//! One connection: its state and the calls of its user. Segments are handled in `input.rs`, acknowledgements and losses in
//! `recovery.rs`, timers in `timeouts.rs`, packets to send in `output.rs`.
//!
//! Positions are octets since an initial sequence number (SYN at 0, first data at 1), so nothing here wraps; `SeqNum`
//! appears only at the edge, in [`Connection::snd_seq`] and [`Connection::rcv_position`].

use crate::ack::AckPolicy;
use crate::cc::Controller;
use crate::config::Config;
use crate::endpoint::ListenerId;
use crate::error::{OptionError, RecvError, SendError};
use crate::event::{CloseReason, Event};
use crate::limits::{ChallengeLimit, InvalidLimit};
use crate::negotiation::{self, Agreed};
use crate::opening::Opening;
use crate::probing::Probing;
use crate::reassembly::{Hole, Read, Reassembly};
use crate::receiver::Receiver;
use crate::recovery::Recovery;
use crate::route::{Route, RouteId, MSS_MIN};
use crate::rto::Rto;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::send_buffer::SendBuffer;
use crate::snack::SnackGenerator;
use crate::state::State;
use crate::stats::Stats;
use crate::table::ConnectionId;
use crate::timer::{Timer, Timers};
use crate::timestamps::TimestampClock;
use crate::trace::{TraceEvent, TraceRecord};
use scps_types::{Instant, SeqNum};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// An address and a port.
pub type SocketAddr = (Ipv4Addr, u16);

/// What a connection begins with.
pub(crate) struct Birth {
    pub id: ConnectionId,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub config: Config,
    pub route: RouteId,
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
pub(crate) enum Farewell {
    None,
    Reset,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) config: Config,
    pub(crate) route: RouteId,
    pub(crate) network_header: u16,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) state: State,
    pub(crate) agreed: Agreed,
    pub(crate) timers: Timers,
    pub(crate) stats: Stats,
    pub(crate) events: VecDeque<Event>,
    pub(crate) trace: Vec<TraceRecord>,

    pub(crate) opening: Opening,

    // Sending.
    pub(crate) iss: SeqNum,
    pub(crate) snd_una: u64,
    pub(crate) snd_nxt: u64,
    pub(crate) snd_edge: u64,
    pub(crate) snd_wl1: i64,
    pub(crate) rwnd_max: u64,
    pub(crate) send: SendBuffer,
    pub(crate) board: Scoreboard,
    pub(crate) fin_wanted: bool,
    pub(crate) fin_position: Option<u64>,
    pub(crate) cc: Controller,
    pub(crate) rtt: RttEstimator,
    pub(crate) rto: Rto,
    pub(crate) recovery: Recovery,
    pub(crate) round_rtt: Option<scps_types::Duration>,
    pub(crate) round_order: u64,
    pub(crate) is_cwnd_limited: bool,
    pub(crate) probing: Probing,
    pub(crate) ack_heard: bool,
    pub(crate) bets_send_holes: Vec<(u64, u64)>,
    pub(crate) writable_wanted: bool,

    // Receiving.
    pub(crate) receiver: Receiver,
    pub(crate) ack: AckPolicy,
    pub(crate) snack: SnackGenerator,
    pub(crate) clock: TimestampClock,
    pub(crate) challenges: ChallengeLimit,
    pub(crate) invalid: InvalidLimit,
    pub(crate) last_window_ack: (u16, SeqNum),

    pub(crate) farewell: Farewell,
    pub(crate) is_orphan: bool,
}

impl Connection {
    pub(crate) fn new(birth: Birth, route: &Route, state: State, now: Instant) -> Self {
        let config = birth.config;
        let mss = route.mss(birth.network_header);
        let own_mss = config.mss.map_or(mss, |m| m.min(mss)).max(1);
        let shift = if config.window_scaling { negotiation::window_shift(config.receive_buffer) } else { 0 };
        let mut rtt = RttEstimator::default();
        if let Some(known) = route.config().rtt {
            rtt.on_sample(known);
            rtt.forget_min();
        }
        Connection {
            id: birth.id,
            local: birth.local,
            remote: birth.remote,
            route: birth.route,
            network_header: birth.network_header,
            listener: birth.listener,
            state,
            agreed: Agreed::default(),
            timers: Timers::default(),
            stats: Stats { opened_at: Some(now), ..Stats::default() },
            events: VecDeque::new(),
            trace: Vec::new(),
            opening: Opening::new(birth.with_scps, own_mss, birth.connection_id, now),
            iss: birth.iss,
            snd_una: 0,
            snd_nxt: 1,
            snd_edge: 1,
            snd_wl1: i64::MIN,
            rwnd_max: 0,
            send: SendBuffer::new(config.send_buffer.max(1)),
            board: Scoreboard::default(),
            fin_wanted: false,
            fin_position: None,
            cc: Controller::new(&config, u64::from(own_mss)),
            rtt,
            rto: Rto::new(config.rto, route.config().initial_rto),
            recovery: Recovery::default(),
            round_rtt: None,
            round_order: 0,
            is_cwnd_limited: false,
            probing: Probing::new(config.persist),
            ack_heard: false,
            bets_send_holes: Vec::new(),
            writable_wanted: false,
            // Rounding the window up to its scale must never promise room that is not there (scps-tp §14 item 27).
            receiver: Receiver::new(Reassembly::new(
                config.receive_buffer.max(1) + (1 << shift),
                config.reassembly_pieces_max,
            )),
            ack: AckPolicy::new(config.ack),
            snack: SnackGenerator::new(1, config.snack_policy.repeat, false),
            clock: TimestampClock::new(birth.timestamp_offset),
            challenges: ChallengeLimit::default(),
            invalid: InvalidLimit::default(),
            last_window_ack: (0, birth.iss),
            farewell: Farewell::None,
            is_orphan: false,
            config,
        }
    }

    // Positions.

    /// The wire form of a send position.
    pub(crate) fn snd_seq(&self, position: u64) -> SeqNum {
        self.iss + position as u32
    }

    /// The send position of an acknowledgement number near `snd_una`; negative before the first.
    pub(crate) fn snd_position(&self, ack: SeqNum) -> i64 {
        let base = self.snd_una;
        base as i64 + i64::from(ack.0.wrapping_sub(self.snd_seq(base).0) as i32)
    }

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
        let mss = route.mss(self.network_header);
        self.config.mss.map_or(mss, |m| m.min(mss))
    }

    /// Largest data and options per segment towards the peer.
    pub(crate) fn effective_mss(&self, route: &Route) -> u64 {
        let own = self.mss_over(route);
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
        if !self.state.may_send() || self.fin_wanted {
            return Err(SendError::Closed);
        }
        let taken = self.send.push(data);
        self.writable_wanted |= taken < data.len();
        Ok(taken)
    }

    pub(crate) fn send_record(&mut self, record: &[u8]) -> Result<bool, SendError> {
        if !self.state.may_send() || self.fin_wanted {
            return Err(SendError::Closed);
        }
        if record.is_empty() || record.len() > self.config.send_buffer {
            return Err(SendError::RecordTooLong);
        }
        let taken = self.send.push_record(record);
        self.writable_wanted |= !taken;
        Ok(taken)
    }

    /// Reads up to `out.len()` octets. `Ok((0, _))` is the end of the stream.
    pub(crate) fn recv(&mut self, now: Instant, route: &Route, out: &mut [u8]) -> Result<(usize, bool), RecvError> {
        self.receiver.on_read();
        match self.receiver.data_mut().read(out) {
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

    fn start_bets_timer(&mut self, now: Instant) {
        // The reader drained what is in order and data waits beyond a hole (scps-tp §7.1).
        if self.agreed.bets && self.receiver.data().readable() == 0 && !self.receiver.data().pieces().is_empty() {
            self.timers.set_if_idle(Timer::BetsReceive, now + self.config.bets_policy.receive_timeout);
        }
    }

    /// Octets the buffer has room for beyond `rcv_nxt`. The ring is one scale unit larger than the buffer: that unit is
    /// slack for rounding the window up, not room.
    pub(crate) fn window_room(&self) -> u64 {
        (self.config.receive_buffer.max(1) as u64).saturating_sub(self.receiver.data().readable() as u64)
    }

    /// FIN follows what was given to send, even if the handshake is still to come; `abort` is for giving up.
    pub(crate) fn close(&mut self) {
        self.fin_wanted = true;
    }

    pub(crate) fn abort(&mut self) {
        if self.state == State::Closed {
            return;
        }
        // A peer that never answered knows nothing of us; one we are in TIME-WAIT for needs nothing more (RFC 9293 §3.10.5).
        if !matches!(self.state, State::SynSent | State::TimeWait) {
            self.farewell = Farewell::Reset;
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
            self.note(now, route, TraceEvent::State(state), self.snd_nxt, 0);
        }
    }

    // Queries.

    /// Holes the sender left under BETS, as (first, last) octets of the stream (scps-tp §9.2).
    pub(crate) fn bets_send_holes(&self) -> Result<&[(u64, u64)], OptionError> {
        if self.agreed.bets {
            Ok(&self.bets_send_holes)
        } else {
            Err(OptionError::NotSupported)
        }
    }

    /// Octets of memory the connection holds beyond its own size.
    pub(crate) fn allocated(&self) -> usize {
        size_of::<Self>()
            + self.send.allocated()
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
            cwnd: self.cc.cwnd(),
            ssthresh: self.cc.ssthresh(),
            srtt: self.rtt.srtt(),
            rto: self.rto.value(&self.rtt),
            flight_size: self.board.flight_size(),
            rate_credit: route.credit(),
        });
    }
}
