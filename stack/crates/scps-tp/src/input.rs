//! Segments from the peer, in the order of RFC 793 §3.9 with the answers of RFC 5961.

use crate::ack::AckNeed;
use crate::config::Congestion;
use crate::connection::Connection;
use crate::event::{CloseReason, DropReason, Event};
use crate::negotiation;
use crate::reassembly::Arrival;
use crate::route::Route;
use crate::snack::{self, SnackGenerator};
use crate::state::State;
use crate::timer::Timer;
use crate::trace::TraceEvent;
use scps_types::Instant;
use scps_wire::tcp::{Flags, Tcp};

/// What became of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It was used.
    Accepted,
    /// It had no effect beyond, perhaps, an acknowledgement.
    Dropped(DropReason),
    /// It asks for a reset in reply.
    ResetReply(DropReason),
}

/// MSS assumed for the SNACK unit when the peer sent none (scps-tp §2.4.2).
const SNACK_MSS_DEFAULT: u16 = 512;

impl Connection {
    /// Takes the peer's SYN (active: with its SYN-ACK; passive: its SYN) and settles what both agree on.
    pub(crate) fn on_peer_syn(&mut self, now: Instant, route: &Route, tcp: &Tcp) {
        self.receiver.begin(tcp.seq);
        self.opening.on_peer_syn(tcp);
        if self.state == State::SynReceived {
            self.prepare_syn_options(now, route);
        }
        self.opening.settle_offer(tcp);
        self.agreed = negotiation::agree(&self.config, self.opening.own_options(), &tcp.options);
        self.settle_agreement(now, route);
        if let (true, Some(t)) = (self.agreed.timestamps, tcp.options.timestamps) {
            self.clock.accept(t.val, now);
        }
        self.sender.on_peer_syn(tcp.window, tcp.ack);
    }

    fn settle_agreement(&mut self, now: Instant, route: &Route) {
        let compression = self.agreed.compression.is_some();
        let peer_mss = self.opening.peer_mss().unwrap_or(SNACK_MSS_DEFAULT);
        let unit = snack::unit(peer_mss, self.agreed.timestamps, compression);
        self.snack = SnackGenerator::new(unit, self.config.snack_policy.repeat, self.agreed.snack_long);
        self.path.begin(&self.config, self.full_segment(route));
        let is_bold = self.config.congestion == Congestion::None || !self.path.loss_is_congestion(route, now);
        self.recovery.set_boldness(is_bold);
    }

    /// `segments` is how many the data came in, if the device joined some.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        route: &mut Route,
        tcp: &Tcp,
        data: &[u8],
        segments: u16,
    ) -> Verdict {
        self.stats.segments_received += 1;
        let verdict = match self.state {
            State::Closed => Verdict::ResetReply(DropReason::NoConnection),
            State::SynSent => self.on_segment_syn_sent(now, route, tcp),
            _ => self.on_segment_open(now, route, tcp, data, segments),
        };
        if verdict == Verdict::Accepted {
            self.probing.on_heard(now);
            // Also what opened a connection: others may have given the route up before (scps-tp §6.8).
            if !route.is_available() && self.state.is_synchronised() {
                self.restore_after_outage(now, route);
            }
        }
        verdict
    }

    fn on_segment_syn_sent(&mut self, now: Instant, route: &Route, tcp: &Tcp) -> Verdict {
        let acks_syn = tcp.flags.has(Flags::ACK) && tcp.ack == self.sender.seq(1);
        if tcp.flags.has(Flags::ACK) && !acks_syn {
            return if tcp.flags.has(Flags::RST) {
                Verdict::Dropped(DropReason::BadAck)
            } else {
                Verdict::ResetReply(DropReason::BadAck)
            };
        }
        if tcp.flags.has(Flags::RST) {
            if acks_syn {
                self.finish(CloseReason::Refused);
                return Verdict::Accepted;
            }
            return Verdict::Dropped(DropReason::ChallengedReset);
        }
        if !tcp.flags.has(Flags::SYN) {
            return Verdict::Dropped(DropReason::OutOfWindow);
        }
        self.on_peer_syn(now, route, tcp);
        if acks_syn {
            self.establish(now, route);
            self.ack.on_segment(AckNeed::Now, 0, now);
        } else {
            // Simultaneous open (RFC 793 §3.4): answer with a SYN-ACK of our own.
            self.set_state(now, route, State::SynReceived);
            self.opening.repeat_syn();
        }
        Verdict::Accepted
    }

    /// Our SYN is acknowledged: the connection is open.
    fn establish(&mut self, now: Instant, route: &Route) {
        self.sender.on_syn_acked();
        if let Some(rtt) = self.opening.round_trip(now) {
            self.on_rtt_sample(rtt);
        }
        self.set_state(now, route, State::Established);
        self.stats.established_at = Some(now);
        self.opening.end();
        self.timers.stop(Timer::Retransmit);
        if let Some((first, _)) = self.config.keepalive {
            self.timers.set(Timer::KeepAlive, now + first);
        }
        let event = match self.listener {
            Some(listener) => Event::Accepted(listener, self.id),
            None => Event::Connected(self.id),
        };
        self.events.push_back(event);
    }

    fn on_segment_open(&mut self, now: Instant, route: &mut Route, tcp: &Tcp, data: &[u8], segments: u16) -> Verdict {
        if self.state == State::SynReceived && tcp.flags.has(Flags::SYN) && tcp.seq == self.receiver.start() {
            if !tcp.flags.has(Flags::ACK) {
                // The peer's SYN again: our SYN-ACK was lost.
                self.opening.repeat_syn();
                return Verdict::Accepted;
            }
            if tcp.ack == self.sender.seq(1) {
                self.establish(now, route);
                self.ack.on_segment(AckNeed::Now, 0, now);
                return Verdict::Accepted;
            }
        }
        if let (true, Some(t)) = (self.agreed.timestamps, tcp.options.timestamps) {
            if self.clock.is_old(t.val, now) && !tcp.flags.has(Flags::RST) {
                self.answer_unacceptable(now, tcp, data.len());
                return Verdict::Dropped(DropReason::OldTimestamp);
            }
        }
        if self.agreed.timestamps && tcp.options.timestamps.is_none() && !data.is_empty() && !tcp.flags.has(Flags::RST)
        {
            // RFC 7323 §3.2: without it a forged segment passes by PAWS. Empty ones are let in, for the reference leaves the
            // option out of some acknowledgements (testdata, raw_loss_record).
            return Verdict::Dropped(DropReason::NoTimestamp);
        }
        let position = self.rcv_position(tcp.seq);
        let len = data.len() as i64 + i64::from(tcp.flags.has(Flags::FIN));
        if tcp.flags.has(Flags::RST) {
            return self.on_reset(now, position);
        }
        if !self.is_acceptable(position, len) {
            self.answer_unacceptable(now, tcp, len as usize);
            if len > 0 {
                self.stats.duplicate_segments += 1;
                self.note_duplicate(position, len);
            }
            if tcp.flags.has(Flags::ACK) && self.is_at_the_window(tcp, position, len) && self.is_ack_acceptable(tcp) {
                self.probing.on_heard(now);
                self.probing.on_answer();
                self.on_acknowledgement(now, route, tcp, data.len());
            }
            return Verdict::Dropped(DropReason::OutOfWindow);
        }
        if tcp.flags.has(Flags::SYN) {
            // RFC 5961 §4: a SYN inside a connection is answered with a challenge, whatever its sequence.
            self.challenge(now);
            return Verdict::Dropped(DropReason::ChallengedSyn);
        }
        if !tcp.flags.has(Flags::ACK) {
            return Verdict::Dropped(DropReason::BadAck);
        }
        if self.state == State::SynReceived {
            let acked = self.sender.position(tcp.ack);
            if acked < 1 || acked > self.sender.next() as i64 {
                return Verdict::ResetReply(DropReason::BadAck);
            }
            self.establish(now, route);
        }
        if !self.is_ack_acceptable(tcp) {
            self.challenge(now);
            return Verdict::Dropped(DropReason::BadAck);
        }
        if let (true, Some(t)) = (self.agreed.timestamps, tcp.options.timestamps) {
            // RFC 7323 §4.3: only segments not beyond the last acknowledgement sent are echoed.
            if self.clock.is_current(t.val) && position <= self.receiver.acknowledged() as i64 {
                self.clock.accept(t.val, now);
            }
        }
        if tcp.options.corruption_experienced && self.agreed.scps {
            self.path.on_corruption_experienced(now);
        }
        self.probing.on_answer();
        self.on_acknowledgement(now, route, tcp, data.len());
        if self.state == State::Closed {
            return Verdict::Accepted;
        }
        if !data.is_empty() || tcp.flags.has(Flags::FIN) {
            return self.on_data(now, route, position, tcp, data, segments);
        }
        Verdict::Accepted
    }

    /// RFC 793 §3.3: some octet of the segment lies in the window we advertised.
    fn is_acceptable(&self, position: i64, len: i64) -> bool {
        let next = self.rcv_nxt() as i64;
        let edge = self.receiver.edge() as i64;
        match (len, edge > next) {
            (0, false) => position == next,
            (0, true) => position >= next && position < edge,
            (_, false) => false,
            (_, true) => position < edge && position + len > next,
        }
    }

    /// True if a segment shows that its sender has seen ours: it acknowledges what is under way, and is of this window or of the
    /// one before, from which a peer that hears no answers sends again.
    pub(crate) fn vouches_for(&self, tcp: &Tcp, len: usize) -> bool {
        let has = |flag| tcp.flags.has(flag);
        let acked = self.sender.position(tcp.ack);
        let is_of_ours = (1..=self.sender.next() as i64).contains(&acked);
        if !has(Flags::ACK) || has(Flags::RST) || self.state == State::Closed {
            return false;
        }
        if self.state == State::SynSent || has(Flags::SYN) {
            return has(Flags::SYN) && is_of_ours && !self.state.is_synchronised();
        }
        let (next, edge) = (self.rcv_nxt() as i64, self.receiver.edge() as i64);
        let position = self.rcv_position(tcp.seq);
        let is_near = position <= edge && position + len as i64 >= next - self.config.receive_buffer as i64;
        is_near && is_of_ours && (self.state == State::SynReceived || self.is_ack_acceptable(tcp))
    }

    /// A segment that is not acceptable still acknowledges if it touches our window: probes of a closed one do, and
    /// empty segments behind a full one (RFC 9293 §3.10.7.4; Linux `tcp_sequence` draws the same border). Others are a
    /// stranger's guess.
    fn is_at_the_window(&self, tcp: &Tcp, position: i64, len: i64) -> bool {
        self.state.is_synchronised()
            && !tcp.flags.has(Flags::SYN)
            && position <= self.receiver.edge() as i64
            && position + len >= self.receiver.acknowledged() as i64
    }

    fn is_ack_acceptable(&self, tcp: &Tcp) -> bool {
        self.sender.is_ack_acceptable(self.sender.position(tcp.ack))
    }

    /// An acknowledgement tells the peer where we are. Data always gets one, for it cannot be part of a loop of answers
    /// (Linux `tcp_oow_rate_limited`); empty segments get one now and then.
    fn answer_unacceptable(&mut self, now: Instant, tcp: &Tcp, len: usize) {
        let is_data = len > 0 && !tcp.flags.has(Flags::SYN);
        if is_data || self.invalid.allow(now, self.path.srtt()) {
            self.ack.on_segment(AckNeed::Now, 0, now);
        }
    }

    fn on_reset(&mut self, now: Instant, position: i64) -> Verdict {
        let next = self.rcv_nxt() as i64;
        if position == next {
            // RFC 5961 §3: only the exact next octet resets.
            let reason = if self.state == State::SynReceived { CloseReason::Refused } else { CloseReason::Reset };
            let is_late = matches!(self.state, State::TimeWait | State::LastAck | State::Closing);
            self.finish(if is_late { CloseReason::Finished } else { reason });
            return Verdict::Accepted;
        }
        if position > next && position < self.receiver.edge() as i64 {
            self.challenge(now);
            return Verdict::Dropped(DropReason::ChallengedReset);
        }
        Verdict::Dropped(DropReason::OutOfWindow)
    }

    fn challenge(&mut self, now: Instant) {
        if self.challenges.allow(now) {
            self.ack.on_segment(AckNeed::Now, 0, now);
        }
    }

    fn note_duplicate(&mut self, position: i64, len: i64) {
        // For the D-SACK block (RFC 2883 §4).
        if self.agreed.sack {
            self.receiver.note_duplicate(position, len);
        }
    }

    fn on_data(
        &mut self,
        now: Instant,
        route: &Route,
        position: i64,
        tcp: &Tcp,
        data: &[u8],
        segments: u16,
    ) -> Verdict {
        if !self.state.may_receive() {
            // Data after the peer's FIN: acknowledge what is known.
            self.ack.on_segment(AckNeed::Now, 0, now);
            return Verdict::Dropped(DropReason::OutOfWindow);
        }
        self.stats.first_data_at.get_or_insert(now);
        // The part before the window starts at a negative or low position; positions below 1 hold no data.
        let skip = usize::try_from((1 - position).max(0)).unwrap_or(usize::MAX).min(data.len());
        let (start, body) = ((position + skip as i64) as u64, &data[skip..]);
        let fin_at = (position + data.len() as i64) as u64;
        if tcp.flags.has(Flags::FIN) {
            self.receiver.note_fin(fin_at);
        }
        let body = self.receiver.before_fin(start, body);
        let before = self.receiver.data().next();
        let mut verdict = Verdict::Accepted;
        let mut need = AckNeed::InOrder;
        if !body.is_empty() {
            let arrival = self.receiver.data_mut().insert(start, body, tcp.options.record_boundary);
            match arrival {
                Arrival::InOrder { filled_hole } => {
                    self.stats.octets_received += body.len() as u64;
                    self.stats.last_data_at = Some(now);
                    if filled_hole {
                        need = AckNeed::Disorder;
                        self.snack.request();
                    }
                }
                Arrival::OutOfOrder => {
                    self.stats.octets_received += body.len() as u64;
                    self.stats.last_data_at = Some(now);
                    self.stats.out_of_order_segments += 1;
                    need = AckNeed::Disorder;
                    self.snack.request();
                }
                Arrival::Duplicate => {
                    self.stats.duplicate_segments += 1;
                    need = AckNeed::Disorder;
                    self.snack.request();
                    self.note_duplicate(start as i64, body.len() as i64);
                }
                Arrival::Refused => {
                    need = AckNeed::Disorder;
                    verdict = Verdict::Dropped(DropReason::TooManyPieces);
                }
            }
        }
        self.note(now, route, TraceEvent::DataReceived, start, body.len() as u64);
        if self.receiver.data().pieces().is_empty() {
            self.timers.stop(Timer::BetsReceive);
        } else if self.agreed.bets && self.receiver.data().readable() == 0 {
            self.timers.set_if_idle(Timer::BetsReceive, now + self.config.bets_policy.receive_timeout);
        }
        if let Some(fin) = self.receiver.fin() {
            if self.agreed.snack && fin > self.receiver.data().next() {
                self.snack.request();
            }
            // A FIN out of order, and the window's end, restart signalling at once (scps-tp §2.4.4).
            need = AckNeed::Now;
        }
        self.consume_fin(now, route);
        if self.receiver.data().next() > before || self.receiver.is_fin_received() {
            self.signal_readable();
        }
        if let Some(deadline) = self.ack.on_segment(need, segments, now) {
            self.timers.set_no_later(Timer::DelayedAck, deadline);
        }
        verdict
    }

    pub(crate) fn consume_fin(&mut self, now: Instant, route: &Route) {
        if !self.receiver.take_fin() {
            return;
        }
        let state = self.state.on_fin();
        self.set_state(now, route, state);
        self.ack.on_segment(AckNeed::Now, 0, now);
        self.signal_readable();
        if state == State::TimeWait {
            self.enter_time_wait(now);
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
}
