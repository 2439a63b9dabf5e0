//! What leaves next: SYNs, resends, new data, probes, acknowledgements, in that order of precedence (scps-tp §2.4.5: resends
//! before new data). Every packet is charged to the route before it is built.

mod bare;

use crate::compression::{compress, OptionBytes};
use crate::connection::{Connection, PendingReset};
use crate::endpoint::Offload;
use crate::route::Route;
use crate::scoreboard::Sent;
use crate::state::State;
use crate::timer::Timer;
use crate::trace::TraceEvent;
use scps_net::{Envelope, Network, Room, Unsent};
use scps_types::{Duration, Instant};
use scps_wire::options::{Options, Timestamps};
use scps_wire::protocol::{SCPS_COMPRESSED, TCP};
use scps_wire::tcp::{Flags, Tcp};

/// The answer to a poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polled {
    /// A packet was appended, unless its layer refused it.
    Packet,
    /// There is one, but no rate credit before this time.
    Blocked(Instant),
    /// Nothing to send.
    Idle,
}

/// What a packet of any connection meets on its way out.
pub(crate) struct Sending<'a> {
    pub(crate) now: Instant,
    pub(crate) route: &'a mut Route,
    pub(crate) network: &'a mut Network,
    /// Most segments that may leave as one, cut and summed by whoever carries them; 0 if nobody does.
    pub(crate) joined_max: u16,
    /// What was left to the carrier of the packet appended last.
    pub(crate) offload: Option<Offload>,
    /// Where packets are appended.
    pub(crate) out: &'a mut Vec<u8>,
}

impl<'a> Sending<'a> {
    /// Whole packets, each of one segment.
    pub(crate) fn new(now: Instant, route: &'a mut Route, network: &'a mut Network, out: &'a mut Vec<u8>) -> Self {
        Sending { now, route, network, joined_max: 0, offload: None, out }
    }

    /// True if the carrier completes the sum of a segment of this protocol.
    fn is_offloaded(&self, protocol: u8) -> bool {
        self.joined_max > 0 && protocol == TCP && self.network.is_plain()
    }
}

/// A segment about to be built, or several with data of one length.
struct Draft {
    position: u64,
    len: usize,
    /// How many it is cut into.
    segments: u16,
    flags: Flags,
    options: Options,
    with_ack: bool,
}

/// New data for a segment.
pub(crate) struct Portion {
    len: u64,
    is_full: bool,
    /// It is all that waits.
    is_last: bool,
    is_record_end: bool,
    /// The peer's window takes none of it, or too little to be worth a segment.
    pub(crate) is_silly: bool,
}

/// How long a window short of a segment may grow before it is filled as it is (RFC 1122 §4.2.3.4: 0.1 to 1 s).
const SMALL_WINDOW_PATIENCE: Duration = Duration::from_millis(500);
/// Data octets of segments that leave as one: a packet of IPv4 has 65,535 with its headers.
const JOINED_OCTETS_MAX: u64 = 65_000;
/// Octets the record boundary adds to an uncompressed header.
const RECORD_BOUNDARY_LEN: u64 = 4;

impl Connection {
    pub(crate) fn poll_transmit(&mut self, sending: &mut Sending<'_>) -> Polled {
        if self.pending_reset == PendingReset::Reset {
            return self.send_reset(sending);
        }
        if self.state == State::Closed {
            return Polled::Idle;
        }
        self.path.forget_old_mtu(sending.now);
        if self.opening.is_syn_due() {
            return self.send_syn(sending);
        }
        if self.state == State::SynReceived && self.opening.take_update_due() {
            return self.send_ack(sending);
        }
        if self.state == State::SynSent || self.state == State::SynReceived {
            return Polled::Idle;
        }
        // A hole is reported at once, and only pure acknowledgements report (scps-tp §2.4.4).
        if self.ack.is_due() && (self.snack.is_pending() || !self.receiver.data().pieces().is_empty()) {
            return self.send_ack(sending);
        }
        if self.probing.is_window_due() {
            return self.send_probe(sending);
        }
        if self.state.may_transmit_data() && sending.route.is_available() {
            match self.send_data(sending) {
                Polled::Idle => {}
                other => return other,
            }
        }
        if self.probing.is_answer_wanted() {
            return self.send_ack_to_answer(sending);
        }
        if self.ack.is_due() || self.probing.is_keepalive_due() {
            return self.send_ack(sending);
        }
        debug_assert!(self.is_watched(), "work in {:?} and no timer", self.state);
        Polled::Idle
    }

    /// What answers the peer now: an acknowledgement, or data that carries it. Compressed data carries none (scps-tp §3.7).
    pub(crate) fn poll_answer(&mut self, sending: &mut Sending<'_>) -> Polled {
        if self.state.is_synchronised() && self.is_compressing() {
            return self.send_ack(sending);
        }
        self.poll_transmit(sending)
    }

    /// True unless there is something to send or to be acknowledged and no timer that would take it up again.
    fn is_watched(&self) -> bool {
        let has_fin = self.sender.is_fin_due();
        let has_work = !self.board.is_empty() || self.sender.waiting() > 0 || has_fin;
        let is_timed = self.timers.is_set(Timer::Retransmit) || self.timers.is_set(Timer::Persist);
        !self.state.may_transmit_data() || !has_work || is_timed
    }

    // Opening and ending.

    /// Fixes the options of our SYN when it first leaves.
    pub(crate) fn prepare_syn_options(&mut self, now: Instant, route: &Route) {
        let stamp = Timestamps { val: self.clock.value(now), ecr: self.clock.echo() };
        let is_answer = self.state == State::SynReceived;
        self.opening.prepare(&self.config, self.mss_over(route), is_answer, stamp);
    }

    fn send_syn(&mut self, sending: &mut Sending<'_>) -> Polled {
        let is_active = self.state == State::SynSent;
        let opening = &mut self.opening;
        let has_tried = self.config.fallback_after_syns.is_some_and(|n| opening.syns_sent() >= n);
        if is_active && opening.offers_scps() && has_tried {
            opening.fall_back();
        }
        self.prepare_syn_options(sending.now, sending.route);
        let flags = if is_active { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
        let options = *self.opening.own_options();
        let draft = Draft { position: 0, len: 0, segments: 1, flags, options, with_ack: false };
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        // The window of a SYN-ACK ends at 65,535 octets; where the buffer is larger, an acknowledgement right behind it
        // tells so a round trip earlier than the first data would.
        let update_due = !is_active
            && self.agreed.scps
            && self.agreed.window_scale.is_some()
            && self.window_room() > u64::from(u16::MAX);
        self.opening.on_syn_sent(sending.now, update_due);
        self.timers.set(Timer::Retransmit, sending.now + self.path.rto());
        Polled::Packet
    }

    /// The SYN-ACK left before this connection was made.
    pub(crate) fn assume_syn_ack_sent(&mut self, route: &Route) {
        self.opening.assume_sent();
        let (_, edge) = self.window(route, true);
        self.receiver.assume_acknowledged(edge);
    }

    fn send_reset(&mut self, sending: &mut Sending<'_>) -> Polled {
        let flags = Flags::RST.with(Flags::ACK);
        let (position, options) = (self.sender.next(), Options::default());
        let draft = Draft { position, len: 0, segments: 1, flags, options, with_ack: true };
        match self.emit(sending, &draft) {
            Ok(()) => {
                self.pending_reset = PendingReset::None;
                Polled::Packet
            }
            Err(at) => Polled::Blocked(at),
        }
    }

    // Data.

    fn send_data(&mut self, sending: &mut Sending<'_>) -> Polled {
        if let Some(lost) = self.board.next_lost() {
            match self.resend(sending, lost) {
                Polled::Idle => {}
                other => return other,
            }
            // Blocked by the window: new data is blocked as well.
            if self.board.next_lost().is_some() {
                return Polled::Idle;
            }
        }
        self.send_new(sending)
    }

    /// Octets in flight as congestion control sees them: duplicates acknowledged have left (scps-tp §4.3).
    fn flight(&self) -> u64 {
        let credit = if self.agreed.sack { 0 } else { self.recovery.credit() };
        self.board.flight_size().saturating_sub(credit)
    }

    fn resend(&mut self, sending: &mut Sending<'_>, lost: Sent) -> Polled {
        if self.agreed.bets
            && lost.start == self.sender.una()
            && u32::from(lost.transmissions) > self.config.bets_policy.retransmissions_max
            && (self.board.len() > 1 || self.sender.data().end() > lost.end)
            && !lost.fin
        {
            self.abandon_front(sending.now, sending.route);
            return Polled::Idle;
        }
        if self.is_beyond_window(&lost) {
            // The window closed over what was sent, or over a probe's octet: probing continues.
            self.arm_persist(sending.now, sending.route);
            return Polled::Idle;
        }
        let max = self.max_data(sending.route, self.sender.data().record_end_after(lost.start) == Some(lost.end));
        let data_len = lost.end - lost.start - u64::from(lost.fin);
        if data_len > max {
            self.board.split(lost.start, max);
            return match self.board.next_lost() {
                Some(piece) => self.resend(sending, piece),
                None => Polled::Idle,
            };
        }
        // The lowest segment goes whatever the window (scps-tp §4.3); without congestion every hole does (scps-tp §2.4.5).
        let is_free = lost.start == self.sender.una() || !self.path.loss_is_congestion(sending.route, sending.now);
        if !is_free && self.flight() + (lost.end - lost.start) > self.path.cwnd() {
            self.path.note_cwnd_limited();
            return Polled::Idle;
        }
        let draft = self.draft_data(sending.now, lost.start, data_len, lost.fin);
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        let embargo = if self.agreed.snack || self.agreed.sack { Some(self.patience()) } else { None };
        // With SACK what arrived is known, so every resend can be judged after one round trip.
        let factor = if lost.start == self.sender.una() || self.agreed.sack { 1 } else { 2 };
        let embargo = embargo.map(|e| e * factor);
        let sent = self.board.on_resent(lost.start, sending.now, embargo, self.config.snack_policy.fast_resends);
        self.stats.count_resend(lost.cause);
        if sent.transmissions > 2 {
            self.on_repeated_resend(sending.now);
        }
        self.note(sending.now, sending.route, TraceEvent::Resent(lost.cause), lost.start, sent.end - sent.start);
        self.arm_after_data(sending.now);
        self.rearm_embargo();
        Polled::Packet
    }

    /// True if the peer's window ends before a segment that was sent. A FIN alone goes whatever the window.
    pub(crate) fn is_beyond_window(&self, sent: &Sent) -> bool {
        let is_fin_alone = sent.fin && sent.end - sent.start == 1;
        sent.start >= self.sender.edge() && !is_fin_alone
    }

    /// Data that fits in a segment now.
    fn max_data(&self, route: &Route, ends_record: bool) -> u64 {
        let mss = self.effective_mss(route);
        if self.is_compressing() {
            // The packet may be as long as an uncompressed one: MSS and 20 octets of header (scps-tp §2.7).
            let ack = if self.sender.is_ack_heard() { 0 } else { 6 };
            let header = 8 + ack + if self.agreed.timestamps { 8 } else { 0 };
            return (mss + 20 - header).max(1);
        }
        let record = if ends_record { RECORD_BOUNDARY_LEN } else { 0 };
        self.full_segment(route).saturating_sub(record).max(1)
    }

    pub(crate) fn is_compressing(&self) -> bool {
        self.agreed.compression.is_some()
    }

    /// The new data that a segment would take now.
    pub(crate) fn portion(&self, route: &Route) -> Portion {
        let waiting = self.sender.waiting();
        let full = self.max_data(route, false);
        let boundary = self.sender.data().record_end_after(self.sender.next()).map(|e| e - self.sender.next());
        let mut wanted = waiting.min(full).min(boundary.unwrap_or(u64::MAX));
        if boundary == Some(wanted) && !self.is_compressing() && wanted > self.max_data(route, true) {
            // The boundary option does not fit beside so much data: the last octets follow with it.
            wanted = self.max_data(route, true);
        }
        let len = wanted.min(self.sender.edge().saturating_sub(self.sender.next()));
        // Sender side of the silly window (RFC 1122 §4.2.3.4): a useful part or nothing.
        let is_silly = len < wanted && (len == 0 || len < full.min(self.sender.window_max() / 2));
        Portion {
            len,
            is_full: len >= full,
            is_last: len == waiting,
            is_record_end: boundary == Some(len) && len > 0,
            is_silly,
        }
    }

    fn send_new(&mut self, sending: &mut Sending<'_>) -> Polled {
        let fin_waits = self.sender.is_fin_due();
        if self.sender.waiting() == 0 && !fin_waits {
            return Polled::Idle;
        }
        let Portion { mut len, is_full, is_last, is_record_end, is_silly } = self.portion(sending.route);
        if is_silly {
            self.arm_persist(sending.now, sending.route);
            return Polled::Idle;
        }
        let is_runt = !is_full && is_last && !is_record_end && !fin_waits;
        if is_runt && len > 0 && !self.config.nodelay && !self.board.is_empty() {
            return Polled::Idle;
        }
        // FIN travels alone when headers are compressed (scps-tp §3.7).
        let mut fin = fin_waits && is_last;
        if fin && len > 0 && self.is_compressing() {
            fin = false;
        }
        if len == 0 && !fin {
            return Polled::Idle;
        }
        let cwnd = self.path.cwnd();
        let flight = self.flight();
        if len > 0 && flight + len > cwnd && flight > 0 {
            self.path.note_cwnd_limited();
            return Polled::Idle;
        }
        let segment = len.min(cwnd.max(1));
        let segments = if is_full && segment == len && !fin { self.joinable(sending, segment) } else { 1 };
        len = segment * u64::from(segments);
        if flight + len + segment > cwnd {
            self.path.note_cwnd_limited();
        }
        let position = self.sender.next();
        let draft = Draft { segments, ..self.draft_data(sending.now, position, len, fin) };
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        let end = position + len + u64::from(fin);
        // Each has its own fate.
        for i in 1..u64::from(segments) {
            self.board.push(position + (i - 1) * segment, position + i * segment, sending.now, false);
        }
        self.board.push(end - segment - u64::from(fin), end, sending.now, fin);
        self.sender.on_sent(end, fin.then_some(position + len));
        if fin {
            let state = self.state.on_close();
            self.set_state(sending.now, sending.route, state);
        }
        self.stats.data_segments_sent += if len > 0 { u64::from(segments) } else { 0 };
        self.note(sending.now, sending.route, TraceEvent::Sent, position, end - position);
        self.arm_after_data(sending.now);
        Polled::Packet
    }

    /// Full segments that may leave as one. Where each packet counts (a rate, a trace, records) they leave one by one; the last octets
    /// before a FIN wait for it.
    fn joinable(&self, sending: &Sending<'_>, segment: u64) -> u16 {
        let route = sending.route.config();
        let is_counted = route.rate.is_some() || self.config.trace || self.is_compressing();
        let has_records = self.sender.data().record_end_after(self.sender.next()).is_some();
        if is_counted || has_records || !route.dont_fragment || !sending.is_offloaded(route.protocol) {
            return 1;
        }
        let waiting = self.sender.waiting().saturating_sub(u64::from(self.sender.is_fin_due()));
        let window = self.sender.edge().saturating_sub(self.sender.next());
        let room = waiting.min(window).min(self.path.cwnd().saturating_sub(self.flight())).min(JOINED_OCTETS_MAX);
        (room / segment).clamp(1, sending.joined_max.into()) as u16
    }

    fn draft_data(&self, now: Instant, position: u64, len: u64, fin: bool) -> Draft {
        let end = position + len;
        let record_boundary = len > 0 && self.sender.data().record_end_after(position) == Some(end);
        let mut flags = Flags::ACK;
        if record_boundary || (len > 0 && end == self.sender.data().end()) {
            flags = flags.with(Flags::PSH);
        }
        if fin {
            flags = flags.with(Flags::FIN);
        }
        let mut options = self.usual_options(now);
        // Option 22 means nothing to a peer that did not say it speaks SCPS (scps-tp §14 item 14).
        options.record_boundary = record_boundary && self.agreed.scps;
        Draft { position, len: len as usize, segments: 1, flags, options, with_ack: !self.sender.is_ack_heard() }
    }

    fn arm_after_data(&mut self, now: Instant) {
        self.timers.set_if_idle(Timer::Retransmit, now + self.path.rto());
        self.arm_tail_probe(now);
    }

    pub(crate) fn arm_persist(&mut self, now: Instant, route: &Route) {
        if !self.is_window_closed(route) {
            return;
        }
        if self.board.is_empty() && self.portion(route).len > 0 && route.is_available() {
            self.timers.set_no_later(Timer::Persist, now + SMALL_WINDOW_PATIENCE);
        } else if !self.timers.is_set(Timer::Persist) {
            let interval = self.probing.next_interval();
            self.timers.set(Timer::Persist, now + interval);
        }
    }

    // Building.

    /// The window field for a segment acknowledging `rcv_nxt`, and the right edge it stands for (scps-tp §6.2).
    fn window(&self, route: &Route, is_syn: bool) -> (u16, u64) {
        let room = self.window_room();
        let mss = self.effective_mss(route);
        let is_silly = room < mss && room < self.config.receive_buffer as u64 / 4;
        let room = if is_silly { 0 } else { room };
        let next = self.rcv_nxt();
        if is_syn {
            let window = room.min(65_535);
            return (window as u16, next + window);
        }
        let shift = self.agreed.window_scale.map_or(0, |(_, own)| own);
        // What was promised is promised, rounded up to the scale; but rounded up on each acknowledgement it would grow beyond
        // the buffer. The told edge may then be less than a unit left of an earlier one, up to which data is taken
        // nevertheless (RFC 7323 §2.4).
        let promised = (self.receiver.edge() - next).div_ceil(1 << shift);
        let room_of_ring = self.receiver.data().limit_edge().saturating_sub(next) >> shift;
        let field = (room >> shift).max(promised.min(room_of_ring)).min(65_535);
        (field as u16, next + (field << shift))
    }

    /// Charges the route and appends the packet; `Err` is when there will be credit.
    fn emit(&mut self, sending: &mut Sending<'_>, draft: &Draft) -> Result<(), Instant> {
        let is_syn = draft.flags.has(Flags::SYN);
        let acks = draft.flags.has(Flags::ACK);
        let (window, edge) = self.window(sending.route, is_syn);
        let tcp = Tcp {
            src_port: self.local.1,
            dst_port: self.remote.1,
            seq: self.sender.seq(draft.position),
            ack: if acks { self.rcv_seq(self.rcv_nxt()) } else { scps_types::SeqNum(0) },
            flags: draft.flags,
            window,
            urgent: 0,
            options: draft.options,
        };
        let has_data = draft.len > 0;
        let is_whole = !has_data && self.probing.is_whole_wanted();
        let compressible = self.is_compressing() && !is_syn && !is_whole;
        let option_bytes = OptionBytes::of(&draft.options);
        let compressed =
            compressible.then(|| compress(&tcp, has_data, draft.with_ack, self.opening.connection_id(), &option_bytes));
        let header_len = compressed.map_or_else(|| tcp.emit_len(), |c| c.emit_len());
        let protocol = sending.route.config().protocol;
        let (src, dst) = (self.local.0, self.remote.0);
        let envelope = Envelope {
            src,
            dst,
            protocol: if compressed.is_some() { SCPS_COMPRESSED } else { protocol },
            precedence: self.config.precedence,
            dscp: self.config.dscp,
            services: self.config.services,
        };
        let len = header_len + draft.len;
        let is_offloaded = compressed.is_none() && sending.is_offloaded(protocol);
        let room = sending.network.room(sending.now, &envelope, len);
        let around = room.unwrap_or(Room { head: self.path.network_header().into(), tail: 0 });
        sending.route.take(around.len() + len, sending.now)?;
        let start = sending.out.len();
        // Room for both headers; the data is appended behind, so no octet of it is written twice.
        sending.out.resize(start + around.head + header_len, 0);
        if has_data {
            let (a, b) = self.sender.data().slices(draft.position, draft.len);
            sending.out.extend_from_slice(a);
            sending.out.extend_from_slice(b);
        }
        sending.out.resize(start + around.len() + len, 0);
        let packet = &mut sending.out[start..];
        let segment = &mut packet[around.head..around.head + len];
        match &compressed {
            Some(c) => c.emit(segment, src, dst, protocol),
            None if is_offloaded => tcp.emit_unsummed(segment, src, dst, protocol),
            None => tcp.emit(segment, src, dst, protocol),
        }
        let carriage = self.path.carriage(sending.route);
        let wrapped = room.and_then(|room| sending.network.wrap(sending.now, &envelope, carriage, room, packet));
        sending.offload = (is_offloaded && wrapped.is_ok())
            .then(|| Offload::new(around.head + header_len, draft.len / usize::from(draft.segments)));
        if let Err(reason) = wrapped {
            // It is lost before it left, and like any loss it is repaired in time, should that by then be possible.
            sending.out.truncate(start);
            match reason {
                Unsent::TooBig(_) => self.stats.too_big += 1,
                #[cfg(feature = "sp")]
                Unsent::Unprotected(_) => self.stats.unprotected += 1,
            }
        }
        if is_whole {
            self.probing.on_whole();
        }
        self.stats.segments_sent += u64::from(draft.segments);
        self.stats.compressed_sent += u64::from(compressed.is_some());
        if acks && compressed.is_none_or(|c| c.window_ack.is_some()) {
            self.on_ack_left(sending.now, edge);
        }
        Ok(())
    }

    fn on_ack_left(&mut self, now: Instant, edge: u64) {
        if self.receiver.on_ack_left(edge) {
            self.stats.last_data_ack_at = Some(now);
        }
        self.ack.on_sent(now);
        self.timers.stop(Timer::DelayedAck);
    }
}
