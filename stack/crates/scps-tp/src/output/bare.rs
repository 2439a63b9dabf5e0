//! Packets without new data: acknowledgements, and probes of a closed window or a silent peer.

use super::{Draft, Polled, Sending};
use crate::connection::Connection;
use crate::trace::TraceEvent;
use scps_types::Instant;
use scps_wire::options::{Options, Timestamps, MAX_LEN};
use scps_wire::tcp::Flags;

impl Connection {
    /// One octet at the edge of the peer's window, or what fits into a window short of a segment (RFC 1122 §4.2.3.4); without data a FIN that is not acknowledged, or an acknowledgement that
    /// the peer must answer (scps-tp §6.6).
    pub(super) fn send_probe(&mut self, sending: &mut Sending<'_>) -> Polled {
        let front = self.board.front().map(|f| (f.start, f.end - u64::from(f.fin)));
        let (position, has_data) = match front {
            Some((start, data_end)) => (start, data_end > start),
            None => (self.sender.next(), self.sender.waiting() > 0),
        };
        let is_fin = !has_data && front.is_some();
        if !(has_data || is_fin) || !self.state.may_transmit_data() {
            let polled = self.send_ack_to_answer(sending);
            if polled == Polled::Packet {
                self.probing.end_window();
                self.stats.probes_sent += 1;
            }
            return polled;
        }
        // Where the window has room, the data is sent like any: resent by its timer, not by the next probe.
        let fitting = if front.is_none() && sending.route.is_available() { self.portion(sending.route).len } else { 0 };
        let len = fitting.max(1);
        let mut draft = self.draft_data(sending.now, position, if has_data { len } else { 0 }, is_fin);
        draft.with_ack = true;
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        if front.is_none() {
            // The octet is now sent; if the peer takes it, its acknowledgement is of something sent.
            self.board.push(position, position + len, sending.now, false);
            self.sender.on_sent(position + len, None);
            if fitting == 0 {
                self.board.mark_front(crate::trace::Cause::Embargo, true);
            } else {
                self.stats.data_segments_sent += 1;
                self.arm_after_data(sending.now);
            }
        }
        self.probing.end_window();
        self.stats.probes_sent += 1;
        self.note(sending.now, sending.route, TraceEvent::Probe, position, len);
        Polled::Packet
    }

    /// A bare acknowledgement just below the peer's window: it must answer (RFC 9293 §3.8.4; one at the window's edge, as the
    /// reference sends, draws nothing).
    pub(super) fn send_ack_to_answer(&mut self, sending: &mut Sending<'_>) -> Polled {
        self.probing.want_whole();
        let position = self.sender.next() - 1;
        let (flags, options) = (Flags::ACK, self.usual_options(sending.now));
        let draft = Draft { position, len: 0, segments: 1, flags, options, with_ack: true };
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        self.probing.on_asked();
        self.stats.pure_acks_sent += 1;
        self.note(sending.now, sending.route, TraceEvent::AckSent, self.rcv_nxt(), 0);
        Polled::Packet
    }

    pub(super) fn send_ack(&mut self, sending: &mut Sending<'_>) -> Polled {
        let mut options = self.usual_options(sending.now);
        options.corruption_experienced = self.agreed.scps && sending.route.is_damaged(sending.now);
        let room = MAX_LEN - options.emit_len();
        let mut snack = self.snack;
        if self.agreed.snack {
            // With SACK the blocks tell what arrived; the short SNACK beside them keeps room for two (scps-tp §2.10).
            let snack_room = if self.agreed.sack { 8 } else { room };
            options.snack = snack.next(self.receiver.data(), self.receiver.fin(), snack_room);
        }
        let mut named = Vec::new();
        if self.agreed.sack {
            named = self.add_sack_blocks(&mut options);
        }
        let (position, flags) = (self.sender.next(), Flags::ACK);
        let draft = Draft { position, len: 0, segments: 1, flags, options, with_ack: true };
        if let Err(at) = self.emit(sending, &draft) {
            self.receiver.data_mut().restore_blocks(&named);
            return Polled::Blocked(at);
        }
        self.snack = snack;
        self.receiver.forget_duplicate();
        self.probing.on_ack_sent();
        if self.agreed.sack && self.receiver.data().has_blocks() {
            self.ack.on_segment(crate::ack::AckNeed::Now, 0, sending.now);
        }
        self.stats.pure_acks_sent += 1;
        self.stats.snacks_sent += u64::from(draft.options.snack.is_some());
        self.note(sending.now, sending.route, TraceEvent::AckSent, self.rcv_nxt(), 0);
        Polled::Packet
    }

    /// D-SACK if a duplicate came, then the blocks that changed last (RFC 2883 §4, RFC 2018 §4).
    /// Returns the news it took, in case the acknowledgement cannot leave.
    fn add_sack_blocks(&mut self, options: &mut Options) -> Vec<u64> {
        let mut named = Vec::new();
        let space = (MAX_LEN - options.emit_len()).saturating_sub(4) / 8;
        let irs = self.receiver.start();
        let mut add = |block: (u64, u64)| {
            let wire = (irs + block.0 as u32, irs + block.1 as u32);
            if options.sack.as_slice().len() < space && !options.sack.as_slice().contains(&wire) {
                options.sack.push(wire.0, wire.1);
            }
            options.sack.as_slice().len() < space
        };
        let mut has_room = self.receiver.duplicate().is_none_or(&mut add) && space > 0;
        while has_room {
            let Some(block) = self.receiver.data_mut().take_block() else { break };
            named.push(block.0);
            has_room = add(block);
        }
        for block in self.receiver.data().recent_pieces() {
            add(block);
        }
        named
    }

    pub(super) fn usual_options(&self, now: Instant) -> Options {
        Options {
            timestamps: self
                .agreed
                .timestamps
                .then(|| Timestamps { val: self.clock.value(now), ecr: self.clock.echo() }),
            ..Options::default()
        }
    }
}
