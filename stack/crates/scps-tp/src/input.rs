//! Segments from the peer, in the order of RFC 793 §3.9 with the answers of RFC 5961.

use crate::ack::AckNeed;
use crate::connection::Connection;
use crate::event::{CloseReason, DropReason, Event};
use crate::inbound::{Payload, Taken};
use crate::negotiation;
use crate::route::Route;
use crate::snack::{self, SnackGenerator};
use crate::state::State;
use crate::timer::Timer;
use crate::trace::TraceEvent;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Instant, SeqNum};

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
        self.inbound.receiver.begin(tcp.seq);
        self.control.opening.on_peer_syn(tcp);
        if self.control.state == State::SynReceived {
            self.prepare_syn_options(now, route);
        }
        self.control.opening.settle_offer(tcp);
        self.control.agreed =
            negotiation::agree(&self.control.config, self.control.opening.own_options(), &tcp.options);
        self.settle_agreement(now, route);
        if let (true, Some(t)) = (self.control.agreed.timestamps, tcp.options.timestamps) {
            self.control.clock.accept(t.val, now);
        }
        self.outbound.sender.on_peer_syn(tcp.window, tcp.ack);
    }

    fn settle_agreement(&mut self, now: Instant, route: &Route) {
        let agreed = &self.control.agreed;
        let peer_mss = self.control.opening.peer_mss().unwrap_or(SNACK_MSS_DEFAULT);
        let unit = snack::unit(peer_mss, agreed.timestamps, agreed.compression.is_some());
        self.inbound.snack = SnackGenerator::new(unit, self.control.config.snack_policy.repeat, agreed.snack_long);
        self.outbound.begin(&self.control, route, now);
    }

    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        route: &mut Route,
        tcp: &Tcp,
        payload: &mut Payload<'_>,
    ) -> Verdict {
        self.control.stats.segments_received += 1;
        let verdict = match self.control.state {
            State::Closed => Verdict::ResetReply(DropReason::NoConnection),
            State::SynSent => self.on_segment_syn_sent(now, route, tcp),
            _ => self.on_segment_open(now, route, tcp, payload),
        };
        if verdict == Verdict::Accepted {
            self.control.probing.on_heard(now);
            // Also what opened a connection: others may have given the route up before (scps-tp §6.8).
            if !route.is_available() && self.control.state.is_synchronised() {
                self.restore_after_outage(now, route);
            }
        }
        verdict
    }

    fn on_segment_syn_sent(&mut self, now: Instant, route: &Route, tcp: &Tcp) -> Verdict {
        let acks_syn = tcp.flags.has(Flags::ACK) && tcp.ack == self.outbound.sender.seq(1);
        if tcp.flags.has(Flags::ACK) && !acks_syn {
            return if tcp.flags.has(Flags::RST) {
                Verdict::Dropped(DropReason::BadAck)
            } else {
                Verdict::ResetReply(DropReason::BadAck)
            };
        }
        if tcp.flags.has(Flags::RST) {
            if acks_syn {
                self.control.finish(CloseReason::Refused);
                return Verdict::Accepted;
            }
            return Verdict::Dropped(DropReason::ChallengedReset);
        }
        if !tcp.flags.has(Flags::SYN) {
            return Verdict::Dropped(DropReason::OutOfWindow);
        }
        if acks_syn {
            self.on_peer_syn(now, route, tcp);
            self.establish(now, route);
            self.inbound.ack.want_now();
        } else {
            // Simultaneous open (RFC 793 §3.4): answer with a SYN-ACK of our own. It has the options that count: our SYN may not have left.
            self.set_state(now, route, State::SynReceived);
            self.on_peer_syn(now, route, tcp);
            self.control.opening.repeat_syn();
        }
        Verdict::Accepted
    }

    /// Our SYN is acknowledged: the connection is open.
    fn establish(&mut self, now: Instant, route: &Route) {
        self.outbound.sender.on_syn_acked();
        if let Some(rtt) = self.control.opening.round_trip(now) {
            self.outbound.on_rtt_sample(rtt);
        }
        self.set_state(now, route, State::Established);
        self.control.stats.established_at = Some(now);
        self.control.opening.end();
        self.control.timers.stop(Timer::Retransmit);
        if let Some((first, _)) = self.control.config.keepalive {
            self.control.timers.set(Timer::KeepAlive, now + first);
        }
        let event = match self.control.listener {
            Some(listener) => Event::Accepted(listener, self.control.id),
            None => Event::Connected(self.control.id),
        };
        self.control.events.push_back(event);
    }

    fn on_segment_open(&mut self, now: Instant, route: &mut Route, tcp: &Tcp, payload: &mut Payload<'_>) -> Verdict {
        let data = payload.data;
        if self.control.state == State::SynReceived
            && tcp.flags.has(Flags::SYN)
            && tcp.seq == self.inbound.receiver.start()
        {
            if !tcp.flags.has(Flags::ACK) {
                // The peer's SYN again: our SYN-ACK was lost, or is on a long way.
                self.control.opening.on_peer_syn_again();
                return Verdict::Accepted;
            }
            if tcp.ack == self.outbound.sender.seq(1) {
                self.establish(now, route);
                self.inbound.ack.want_now();
                return Verdict::Accepted;
            }
        }
        if let (true, Some(t)) = (self.control.agreed.timestamps, tcp.options.timestamps) {
            if self.control.clock.is_old(t.val, now) && !tcp.flags.has(Flags::RST) {
                self.answer_unacceptable(now, tcp, data.len());
                return Verdict::Dropped(DropReason::OldTimestamp);
            }
        }
        if self.control.agreed.timestamps
            && tcp.options.timestamps.is_none()
            && !data.is_empty()
            && !tcp.flags.has(Flags::RST)
        {
            // RFC 7323 §3.2: without it a forged segment passes by PAWS. Empty ones are let in, for the reference leaves the
            // option out of some acknowledgements (testdata, raw_loss_record).
            return Verdict::Dropped(DropReason::NoTimestamp);
        }
        let position = self.inbound.receiver.position(tcp.seq);
        let len = data.len() as i64 + i64::from(tcp.flags.has(Flags::FIN));
        if tcp.flags.has(Flags::RST) {
            return self.on_reset(now, position);
        }
        // A FIN without data needs no room: it is taken at a closed window too.
        if !self.inbound.is_acceptable(position, if data.is_empty() { 0 } else { len }) {
            self.answer_unacceptable(now, tcp, len as usize);
            if len > 0 {
                self.control.stats.duplicate_segments += 1;
                // What begins below the next octet had come; the rest is refused, like the octet that probes a closed window.
                let known = len.min(self.inbound.receiver.next() as i64 - position);
                if known > 0 {
                    self.inbound.note_duplicate(&self.control, position, known);
                }
            }
            if tcp.flags.has(Flags::ACK) && self.is_at_the_window(tcp, position, len) && self.is_ack_acceptable(tcp) {
                self.control.probing.on_heard(now);
                self.control.probing.on_answer();
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
        if self.control.state == State::SynReceived {
            let acked = self.outbound.sender.position(tcp.ack);
            if acked < 1 || acked > self.outbound.sender.next() as i64 {
                return Verdict::ResetReply(DropReason::BadAck);
            }
            self.establish(now, route);
        }
        if !self.is_ack_acceptable(tcp) {
            self.challenge(now);
            return Verdict::Dropped(DropReason::BadAck);
        }
        if let (true, Some(t)) = (self.control.agreed.timestamps, tcp.options.timestamps) {
            // RFC 7323 §4.3: only segments not beyond the last acknowledgement sent are echoed.
            if self.control.clock.is_current(t.val, now) && position <= self.inbound.receiver.acknowledged() as i64 {
                self.control.clock.accept(t.val, now);
            }
        }
        if tcp.options.corruption_experienced && self.control.agreed.scps {
            self.outbound.path.on_corruption_experienced(now);
        }
        self.control.probing.on_answer();
        self.on_acknowledgement(now, route, tcp, data.len());
        if self.control.state == State::Closed {
            return Verdict::Accepted;
        }
        if !data.is_empty() || tcp.flags.has(Flags::FIN) {
            return self.on_data(now, route, position, tcp, payload);
        }
        Verdict::Accepted
    }

    /// Takes the data of a segment that tells nothing else that the one before it, which was accepted now, did not tell; false if it is
    /// to be looked at like any.
    pub(crate) fn on_following(
        &mut self,
        now: Instant,
        seq: SeqNum,
        ack: SeqNum,
        window: u16,
        Payload { data, segments, reader }: Payload<'_>,
    ) -> bool {
        let Connection { control, outbound, inbound, .. } = self;
        let receiver = &mut inbound.receiver;
        let (next, end) = (receiver.next(), receiver.next() + data.len() as u64);
        let is_next = receiver.seq(next) == seq && receiver.data().pieces().is_empty();
        let is_plain = control.state.is_synchronised() && control.state.may_receive() && receiver.fin().is_none();
        let has_room = end <= receiver.edge().min(receiver.data().limit_edge());
        if !is_next || !is_plain || !has_room || !inbound.ack.is_shareable() || control.config.trace {
            return false;
        }
        let window = u64::from(window) << control.agreed.window_scale.map_or(0, |(peer, _)| peer);
        outbound.sender.on_window(outbound.sender.position(ack).max(0) as u64, window, next as i64);
        receiver.data_mut().insert_or_pass(next, data, false, reader);
        control.stats.segments_received += 1;
        control.stats.octets_received += data.len() as u64;
        control.stats.last_data_at = Some(now);
        inbound.signal_readable(control);
        if let Some(deadline) = inbound.ack.on_segment(AckNeed::InOrder, segments, now) {
            control.timers.set_no_later(Timer::DelayedAck, deadline);
        }
        true
    }

    /// True if a segment shows that its sender has seen ours: it acknowledges what is under way, and is of this window or of the
    /// one before, from which a peer that hears no answers sends again.
    pub(crate) fn vouches_for(&self, tcp: &Tcp, len: usize) -> bool {
        let has = |flag| tcp.flags.has(flag);
        let acked = self.outbound.sender.position(tcp.ack);
        let is_of_ours = (1..=self.outbound.sender.next() as i64).contains(&acked);
        if !has(Flags::ACK) || has(Flags::RST) || self.control.state == State::Closed {
            return false;
        }
        if self.control.state == State::SynSent || has(Flags::SYN) {
            return has(Flags::SYN) && is_of_ours && !self.control.state.is_synchronised();
        }
        let (next, edge) = (self.inbound.receiver.next() as i64, self.inbound.receiver.edge() as i64);
        let position = self.inbound.receiver.position(tcp.seq);
        let is_near = position <= edge && position + len as i64 >= next - self.control.config.receive_buffer as i64;
        is_near && is_of_ours && (self.control.state == State::SynReceived || self.is_ack_acceptable(tcp))
    }

    /// A segment that is not acceptable still acknowledges if it touches our window: probes of a closed one do, and
    /// empty segments behind a full one (RFC 9293 §3.10.7.4; Linux `tcp_sequence` draws the same border). Others are a
    /// stranger's guess.
    fn is_at_the_window(&self, tcp: &Tcp, position: i64, len: i64) -> bool {
        self.control.state.is_synchronised()
            && !tcp.flags.has(Flags::SYN)
            && position <= self.inbound.receiver.edge() as i64
            && position + len >= self.inbound.receiver.acknowledged() as i64
    }

    fn is_ack_acceptable(&self, tcp: &Tcp) -> bool {
        self.outbound.sender.is_ack_acceptable(self.outbound.sender.position(tcp.ack))
    }

    /// An acknowledgement tells the peer where we are. Data always gets one, for it cannot be part of a loop of answers
    /// (Linux `tcp_oow_rate_limited`); empty segments get one now and then.
    fn answer_unacceptable(&mut self, now: Instant, tcp: &Tcp, len: usize) {
        let is_data = len > 0 && !tcp.flags.has(Flags::SYN);
        if is_data || self.invalid.allow(now, self.outbound.path.srtt()) {
            self.inbound.ack.want_now();
        }
    }

    fn on_reset(&mut self, now: Instant, position: i64) -> Verdict {
        let next = self.inbound.receiver.next() as i64;
        if position == next {
            // RFC 5961 §3: only the exact next octet resets.
            let reason =
                if self.control.state == State::SynReceived { CloseReason::Refused } else { CloseReason::Reset };
            let is_late = matches!(self.control.state, State::TimeWait | State::LastAck | State::Closing);
            self.control.finish(if is_late { CloseReason::Finished } else { reason });
            return Verdict::Accepted;
        }
        if position > next && position < self.inbound.receiver.edge() as i64 {
            self.challenge(now);
            return Verdict::Dropped(DropReason::ChallengedReset);
        }
        Verdict::Dropped(DropReason::OutOfWindow)
    }

    fn challenge(&mut self, now: Instant) {
        if self.challenges.allow(now) {
            self.inbound.ack.want_now();
        }
    }

    fn on_data(&mut self, now: Instant, route: &Route, position: i64, tcp: &Tcp, payload: &mut Payload<'_>) -> Verdict {
        if !self.control.state.may_receive() {
            // Data after the peer's FIN: acknowledge what is known.
            self.inbound.ack.want_now();
            return Verdict::Dropped(DropReason::OutOfWindow);
        }
        let before = self.inbound.receiver.data().next();
        let Taken { verdict, mut need, start, len } = self.inbound.take(&mut self.control, now, position, tcp, payload);
        self.outbound.note(&mut self.control, now, route, TraceEvent::DataReceived, start, len);
        let data = self.inbound.receiver.data();
        if data.next() > before {
            // The hole that was waited at is filled; another one has a time of its own.
            self.control.timers.stop(Timer::BetsReceive);
        }
        self.inbound.start_bets_timer(&mut self.control, now);
        if let Some(fin) = self.inbound.receiver.fin() {
            if self.control.agreed.snack && fin > data.next() {
                self.inbound.snack.request();
            }
            // A FIN out of order, and the window's end, restart signalling at once (scps-tp §2.4.4).
            need = AckNeed::Now;
        }
        self.consume_fin(now, route);
        if self.inbound.receiver.data().next() > before || self.inbound.receiver.is_fin_received() {
            self.inbound.signal_readable(&mut self.control);
        }
        if let Some(deadline) = self.inbound.ack.on_segment(need, payload.segments, now) {
            self.control.timers.set_no_later(Timer::DelayedAck, deadline);
        }
        verdict
    }

    fn on_acknowledgement(&mut self, now: Instant, route: &mut Route, tcp: &Tcp, data_len: usize) {
        let Some(acked) = self.outbound.acknowledged(tcp) else { return };
        if !route.is_available() {
            self.restore_after_outage(now, route);
        }
        let told_at = self.inbound.receiver.position(tcp.seq);
        self.outbound.on_acknowledgement(&mut self.control, now, route, (acked, told_at), tcp, data_len);
    }

    fn set_state(&mut self, now: Instant, route: &Route, state: State) {
        self.outbound.set_state(&mut self.control, now, route, state);
    }

    pub(crate) fn consume_fin(&mut self, now: Instant, route: &Route) {
        if !self.inbound.receiver.take_fin() {
            return;
        }
        let state = self.control.state.on_fin();
        self.set_state(now, route, state);
        self.inbound.ack.want_now();
        self.inbound.signal_readable(&mut self.control);
        if state == State::TimeWait {
            self.control.enter_time_wait(now);
        }
    }
}
