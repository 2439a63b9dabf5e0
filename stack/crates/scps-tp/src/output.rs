//! What leaves next: SYNs, resends, new data, probes, acknowledgements, in that order of precedence (scps-tp §2.4.5: resends
//! before new data). Every packet is charged to the route before it is built.

mod bare;
mod data;

use crate::compression::{compress, OptionBytes};
use crate::connection::Connection;
use crate::control::Control;
use crate::endpoint::{Carrier, Offload};
use crate::net::{Envelope, Network, Room, Unsent};
use crate::outbound::Outbound;
use crate::route::Route;
use crate::state::State;
use crate::timer::Timer;
use scps_wire::compressed::Compressed;
use scps_wire::options::Options;
use scps_wire::protocol::{SCPS_COMPRESSED, TCP};
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Instant, SeqNum};

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
    pub(crate) carrier: Carrier,
    /// Packets of one length that were appended last.
    pub(crate) packets: usize,
    /// What was left to their carrier.
    pub(crate) offload: Option<Offload>,
    /// Where packets are appended.
    pub(crate) out: &'a mut Vec<u8>,
}

impl<'a> Sending<'a> {
    /// Whole packets, each of one segment.
    pub(crate) fn new(now: Instant, route: &'a mut Route, network: &'a mut Network, out: &'a mut Vec<u8>) -> Self {
        Sending { now, route, network, carrier: Carrier::Single, packets: 0, offload: None, out }
    }

    /// True if the carrier completes the sum of a segment of this protocol.
    fn is_offloaded(&self, protocol: u8) -> bool {
        matches!(self.carrier, Carrier::Cutting(_)) && protocol == TCP && self.network.is_plain()
    }

    /// Segments with data of one length that may leave at a time.
    fn segments_max(&self) -> u16 {
        let config = self.route.config();
        match self.carrier {
            // Whoever cuts a packet numbers the pieces as he likes.
            Carrier::Cutting(max) if config.dont_fragment && self.is_offloaded(config.protocol) => max,
            Carrier::Several(max) if self.network.is_plain() => max,
            _ => 1,
        }
    }
}

/// A segment about to be built, or several with data of one length.
struct Draft {
    position: u64,
    /// Octets of data, of all of them.
    len: usize,
    segments: u16,
    flags: Flags,
    options: Options,
    with_ack: bool,
}

impl Connection {
    pub(crate) fn poll_transmit(&mut self, sending: &mut Sending<'_>) -> Polled {
        if self.control.is_reset_due {
            return self.send_reset(sending);
        }
        if self.control.state == State::Closed {
            return Polled::Idle;
        }
        if self.outbound.path.forget_old_mtu(sending.now) {
            self.outbound.black_hole.want_trial();
        }
        if self.control.opening.is_syn_due() {
            return self.send_syn(sending);
        }
        if self.control.state == State::SynReceived && self.control.opening.take_update_due() {
            return self.send_ack(sending);
        }
        if self.control.state == State::SynSent || self.control.state == State::SynReceived {
            return Polled::Idle;
        }
        // A hole is reported at once, and only pure acknowledgements report (scps-tp §2.4.4).
        if self.inbound.ack.is_due()
            && (self.inbound.snack.is_pending() || !self.inbound.receiver.data().pieces().is_empty())
        {
            return self.send_ack(sending);
        }
        if self.control.probing.is_window_due() {
            return self.send_probe(sending);
        }
        if self.control.state.may_transmit_data() && sending.route.is_available() {
            match self.send_data(sending) {
                Polled::Idle => {}
                other => return other,
            }
        }
        if self.control.probing.is_answer_wanted() {
            return self.send_ack_to_answer(sending);
        }
        if self.inbound.ack.is_due() || self.control.probing.is_keepalive_due() {
            return self.send_ack(sending);
        }
        debug_assert!(self.outbound.is_watched(&self.control), "work in {:?} and no timer", self.control.state);
        Polled::Idle
    }

    /// What answers the peer now: an acknowledgement, or data that carries it. Compressed data carries none (scps-tp §3.7).
    pub(crate) fn poll_answer(&mut self, sending: &mut Sending<'_>) -> Polled {
        if self.control.state.is_synchronised() && self.control.is_compressing() {
            return self.send_ack(sending);
        }
        self.poll_transmit(sending)
    }

    // Opening and ending.

    /// Fixes the options of our SYN when it first leaves.
    pub(crate) fn prepare_syn_options(&mut self, now: Instant, route: &Route) {
        let stamp = self.control.stamp(now);
        let is_answer = self.control.state == State::SynReceived;
        self.control.opening.prepare(
            &self.control.config,
            self.outbound.mss_over(&self.control, route),
            is_answer,
            stamp,
        );
    }

    fn send_syn(&mut self, sending: &mut Sending<'_>) -> Polled {
        let is_active = self.control.state == State::SynSent;
        let opening = &mut self.control.opening;
        let has_tried = self.control.config.fallback_after_syns.is_some_and(|n| opening.syns_sent() >= n);
        if is_active && opening.offers_scps() && has_tried {
            opening.fall_back();
        }
        self.prepare_syn_options(sending.now, sending.route);
        let flags = if is_active { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
        let options = *self.control.opening.own_options();
        let draft = Draft { position: 0, len: 0, segments: 1, flags, options, with_ack: false };
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        // The window of a SYN-ACK ends at 65,535 octets; where the buffer is larger, an acknowledgement right behind it
        // tells so a round trip earlier than the first data would.
        let update_due = !is_active
            && self.control.agreed.scps
            && self.control.agreed.window_scale.is_some()
            && self.inbound.window_room(&self.control.config) > u64::from(u16::MAX);
        self.control.opening.on_syn_sent(sending.now, update_due);
        self.control.timers.set(Timer::Retransmit, sending.now + self.outbound.path.rto());
        Polled::Packet
    }

    /// The SYN-ACK left before this connection was made.
    pub(crate) fn assume_syn_ack_sent(&mut self, route: &Route) {
        self.control.opening.assume_sent();
        let mss = self.outbound.effective_mss(&self.control, route);
        let (_, edge) = self.inbound.window(&self.control, mss, true);
        self.inbound.receiver.assume_acknowledged(edge);
    }

    fn send_reset(&mut self, sending: &mut Sending<'_>) -> Polled {
        let flags = Flags::RST.with(Flags::ACK);
        let (position, options) = (self.outbound.sender.next(), Options::default());
        let draft = Draft { position, len: 0, segments: 1, flags, options, with_ack: true };
        match self.emit(sending, &draft) {
            Ok(()) => {
                self.control.is_reset_due = false;
                Polled::Packet
            }
            Err(at) => Polled::Blocked(at),
        }
    }

    // Data.

    fn send_data(&mut self, sending: &mut Sending<'_>) -> Polled {
        let Some((draft, lost)) = self.outbound.next_data(&mut self.control, sending) else { return Polled::Idle };
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        self.outbound.on_data_left(&mut self.control, sending.now, sending.route, &draft, lost);
        Polled::Packet
    }

    // Building.

    /// Charges the route and appends the packet, or several; `Err` is when there will be credit.
    fn emit(&mut self, sending: &mut Sending<'_>, draft: &Draft) -> Result<(), Instant> {
        let is_syn = draft.flags.has(Flags::SYN);
        let acks = draft.flags.has(Flags::ACK);
        let Connection { control, outbound, inbound, .. } = self;
        let (window, edge) = inbound.window(control, outbound.effective_mss(control, sending.route), is_syn);
        let mut tcp = Tcp {
            src_port: control.local.1,
            dst_port: control.remote.1,
            seq: outbound.sender.seq(draft.position),
            ack: if acks { inbound.receiver.seq(inbound.receiver.next()) } else { SeqNum(0) },
            flags: draft.flags,
            window,
            urgent: 0,
            options: draft.options,
        };
        let has_data = draft.len > 0;
        let is_whole = !has_data && control.probing.is_whole_wanted();
        let compressible = control.is_compressing() && !is_syn && !is_whole;
        let option_bytes = OptionBytes::of(&draft.options);
        let compressed = compressible
            .then(|| compress(&tcp, has_data, draft.with_ack, control.opening.connection_id(), &option_bytes));
        let is_cut = sending.is_offloaded(sending.route.config().protocol);
        let packets = if is_cut { 1 } else { usize::from(draft.segments) };
        let (part, cut_into) = (draft.len / packets, usize::from(draft.segments) / packets);
        for i in 0..packets {
            let position = draft.position + (i * part) as u64;
            tcp.seq = outbound.sender.seq(position);
            tcp.flags = if i + 1 < packets { draft.flags.without(Flags::PSH) } else { draft.flags };
            outbound.append(control, sending, (&tcp, compressed.as_ref()), (position, part), cut_into)?;
        }
        if is_whole {
            control.probing.on_whole();
        }
        control.stats.segments_sent += u64::from(draft.segments);
        control.stats.compressed_sent += u64::from(compressed.is_some());
        if acks && compressed.is_none_or(|c| c.window_ack.is_some()) {
            inbound.on_ack_left(control, sending.now, edge);
        }
        Ok(())
    }
}

impl Outbound {
    /// Charges the route and appends a packet with `len` octets of data from `position` on, which its carrier cuts into so many segments.
    fn append(
        &self,
        control: &mut Control,
        sending: &mut Sending<'_>,
        (tcp, compressed): (&Tcp, Option<&Compressed<'_>>),
        (position, len): (u64, usize),
        segments: usize,
    ) -> Result<(), Instant> {
        let header_len = compressed.map_or_else(|| tcp.emit_len(), Compressed::emit_len);
        let protocol = sending.route.config().protocol;
        let (src, dst) = (control.local.0, control.remote.0);
        let envelope = Envelope {
            src,
            dst,
            protocol: if compressed.is_some() { SCPS_COMPRESSED } else { protocol },
            precedence: control.config.precedence,
            dscp: control.config.dscp,
            services: control.config.services,
        };
        let segment_len = header_len + len;
        let is_offloaded = compressed.is_none() && sending.is_offloaded(protocol);
        let room = sending.network.room(sending.now, &envelope, segment_len);
        let around = room.unwrap_or(Room { head: self.path.network_header().into(), tail: 0 });
        sending.route.take(around.len() + segment_len, sending.now)?;
        let start = sending.out.len();
        // Room for both headers; the data is appended behind, so no octet of it is written twice.
        sending.out.resize(start + around.head + header_len, 0);
        if len > 0 {
            let (a, b) = self.sender.data().slices(position, len);
            sending.out.extend_from_slice(a);
            sending.out.extend_from_slice(b);
        }
        sending.out.resize(start + around.len() + segment_len, 0);
        let packet = &mut sending.out[start..];
        let segment = &mut packet[around.head..around.head + segment_len];
        match compressed {
            Some(c) => c.emit(segment, src, dst, protocol),
            None if is_offloaded => tcp.emit_unsummed(segment, src, dst, protocol),
            None => tcp.emit(segment, src, dst, protocol),
        }
        let carriage = self.path.carriage(sending.route);
        let wrapped = room.and_then(|room| sending.network.wrap(sending.now, &envelope, carriage, room, packet));
        sending.offload =
            (is_offloaded && wrapped.is_ok()).then(|| Offload::new(around.head + header_len, len / segments));
        match wrapped {
            Ok(()) => sending.packets += 1,
            Err(reason) => {
                // It is lost before it left, and like any loss it is repaired in time, should that by then be possible.
                sending.out.truncate(start);
                match reason {
                    Unsent::TooBig(_) => control.stats.too_big += 1,
                    #[cfg(feature = "sp")]
                    Unsent::Unprotected(_) => control.stats.unprotected += 1,
                }
            }
        }
        Ok(())
    }
}
