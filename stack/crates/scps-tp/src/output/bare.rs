//! Packets without new data: acknowledgements, and probes of a closed window or a silent peer.

use super::{Draft, Polled, Sending};
use crate::connection::Connection;
use crate::trace::TraceEvent;
use scps_wire::options::MAX_LEN;
use scps_wire::tcp::Flags;

impl Connection {
    /// One octet at the edge of the peer's window, or what fits into a window short of a segment (RFC 1122 §4.2.3.4); without data a FIN that is not acknowledged, or an acknowledgement that
    /// the peer must answer (scps-tp §6.6).
    pub(super) fn send_probe(&mut self, sending: &mut Sending<'_>) -> Polled {
        let front = self.outbound.board.front().map(|f| (f.start, f.end - u64::from(f.fin)));
        let (position, has_data) = match front {
            Some((start, data_end)) => (start, data_end > start),
            None => (self.outbound.sender.next(), self.outbound.sender.waiting() > 0),
        };
        let is_fin = !has_data && front.is_some();
        if !(has_data || is_fin) || !self.control.state.may_transmit_data() {
            let polled = self.send_ack_to_answer(sending);
            if polled == Polled::Packet {
                self.control.probing.end_window();
                self.control.stats.probes_sent += 1;
            }
            return polled;
        }
        // Where the window has room, the data is sent like any: resent by its timer, not by the next probe.
        let fitting = if front.is_none() && sending.route.is_available() {
            self.outbound.portion(&self.control, sending.route).len
        } else {
            0
        };
        let len = fitting.max(1);
        let mut draft =
            self.outbound.draft_data(&self.control, sending.now, position, if has_data { len } else { 0 }, is_fin);
        draft.with_ack = true;
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        if front.is_none() {
            // The octet is now sent; if the peer takes it, its acknowledgement is of something sent.
            self.outbound.board.push(position, position + len, sending.now, false);
            self.outbound.sender.on_sent(position + len, None);
            if fitting == 0 {
                self.outbound.board.mark_front(crate::trace::Cause::Embargo, true);
            } else {
                self.control.stats.data_segments_sent += 1;
                self.outbound.arm_after_data(&mut self.control, sending.now);
            }
        }
        self.control.probing.end_window();
        self.control.stats.probes_sent += 1;
        self.outbound.note(&mut self.control, sending.now, sending.route, TraceEvent::Probe, position, len);
        Polled::Packet
    }

    /// A bare acknowledgement just below the peer's window: it must answer (RFC 9293 §3.8.4; one at the window's edge, as the
    /// reference sends, draws nothing).
    pub(super) fn send_ack_to_answer(&mut self, sending: &mut Sending<'_>) -> Polled {
        self.control.probing.want_whole();
        let position = self.outbound.sender.next() - 1;
        let (flags, options) = (Flags::ACK, self.control.usual_options(sending.now));
        let draft = Draft { position, len: 0, segments: 1, flags, options, with_ack: true };
        if let Err(at) = self.emit(sending, &draft) {
            return Polled::Blocked(at);
        }
        self.control.probing.on_asked();
        self.on_pure_ack(sending);
        Polled::Packet
    }

    pub(super) fn send_ack(&mut self, sending: &mut Sending<'_>) -> Polled {
        let mut options = self.control.usual_options(sending.now);
        options.corruption_experienced = self.control.agreed.scps && sending.route.is_damaged(sending.now);
        let room = MAX_LEN - options.emit_len();
        let mut snack = self.inbound.snack;
        if self.control.agreed.snack {
            // With SACK the blocks tell what arrived; the short SNACK beside them keeps room for two (scps-tp §2.10).
            let snack_room = if self.control.agreed.sack { 8 } else { room };
            options.snack = snack.next(self.inbound.receiver.data(), self.inbound.receiver.fin(), snack_room);
        }
        let mut named = Vec::new();
        if self.control.agreed.sack {
            named = self.inbound.add_sack_blocks(&mut options);
        }
        let (position, flags) = (self.outbound.sender.next(), Flags::ACK);
        let draft = Draft { position, len: 0, segments: 1, flags, options, with_ack: true };
        if let Err(at) = self.emit(sending, &draft) {
            self.inbound.receiver.data_mut().restore_blocks(&named);
            return Polled::Blocked(at);
        }
        self.inbound.snack = snack;
        self.inbound.receiver.forget_duplicate();
        self.control.probing.on_ack_sent();
        if self.control.agreed.sack && self.inbound.receiver.data().has_blocks() {
            self.inbound.ack.want_now();
        }
        self.control.stats.snacks_sent += u64::from(draft.options.snack.is_some());
        self.on_pure_ack(sending);
        Polled::Packet
    }
    fn on_pure_ack(&mut self, sending: &Sending<'_>) {
        self.control.stats.pure_acks_sent += 1;
        let position = self.inbound.receiver.next();
        self.outbound.note(&mut self.control, sending.now, sending.route, TraceEvent::AckSent, position, 0);
    }
}
