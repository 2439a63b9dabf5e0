//! The receiving half of a connection: what came, what of it the user has read, and what the peer is to be told of both.

use crate::ack::{AckNeed, AckPolicy};
use crate::config::Config;
use crate::control::Control;
use crate::error::RecvError;
use crate::event::{DropReason, Event};
use crate::input::Verdict;
use crate::reassembly::{Arrival, Hole, Read, Reassembly};
use crate::receiver::Receiver;
use crate::snack::SnackGenerator;
use crate::state::State;
use crate::timer::Timer;
use scps_wire::options::{Options, MAX_LEN};
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::Instant;

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) receiver: Receiver,
    /// Nothing is to be sent to us before the user says so.
    is_window_held: bool,
    pub(crate) ack: AckPolicy,
    pub(crate) snack: SnackGenerator,
}

/// The data of a segment.
pub(crate) struct Payload<'a> {
    pub(crate) data: &'a [u8],
    /// How many the data came in, if the device joined some.
    pub(crate) segments: u16,
    /// Takes what is next before it is buffered, as much as it likes.
    pub(crate) reader: &'a mut dyn FnMut(&[u8]) -> usize,
}

/// What became of the data of a segment.
pub(crate) struct Taken {
    pub(crate) verdict: Verdict,
    pub(crate) need: AckNeed,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Inbound {
    /// `shift` is the scale of the window that we offer.
    pub(crate) fn new(config: &Config, shift: u8, is_window_held: bool) -> Self {
        // Rounding the window up to its scale must never promise room that is not there (scps-tp §14 item 27).
        let octets = config.receive_buffer.max(1) + (1 << shift);
        Inbound {
            receiver: Receiver::new(Reassembly::new(octets, config.reassembly_pieces_max)),
            is_window_held,
            ack: AckPolicy::new(config.ack),
            snack: SnackGenerator::new(1, config.snack_policy.repeat, false),
        }
    }

    // The user.

    /// Gives `take` up to `len_max` octets in two pieces. `Ok((0, _))` is the end of the stream, as the peer set it.
    pub(crate) fn recv(
        &mut self,
        control: &mut Control,
        now: Instant,
        mss: u64,
        len_max: usize,
        take: impl FnOnce(&[u8], &[u8]),
    ) -> Result<(usize, bool), RecvError> {
        self.receiver.on_read();
        match self.receiver.data_mut().read(len_max, take) {
            Read::Data { len, ends_record } => {
                self.update_window_after_read(control, mss);
                self.start_bets_timer(control, now);
                Ok((len, ends_record))
            }
            Read::Hole(Hole { offset, len }) => Err(RecvError::Hole { offset, len }),
            Read::Empty if self.receiver.is_fin_received() => Ok((0, false)),
            Read::Empty => {
                if let Some(reason) = control.close_reason {
                    return Err(RecvError::Closed(reason));
                }
                self.start_bets_timer(control, now);
                Err(RecvError::WouldBlock)
            }
        }
    }

    /// A window that opens from below a segment to a segment or more is announced (scps-tp §6.1); half of the buffer is enough where that
    /// is less (RFC 1122 §4.2.3.3).
    fn update_window_after_read(&mut self, control: &Control, mss: u64) {
        let before = self.receiver.edge() - self.receiver.next();
        let after = self.window_room(&control.config);
        let useful = mss.min((control.config.receive_buffer as u64 / 2).max(1));
        let is_opening = before < useful && after >= useful;
        // A quarter of the buffer is worth an acknowledgement too: a fast reader keeps a fast sender going.
        let is_large = after.saturating_sub(before) >= (control.config.receive_buffer as u64 / 4).max(mss);
        if control.state.may_receive() && (is_opening || is_large) {
            self.ack.want_now();
        }
    }

    /// The user takes data from now on, and the peer is told.
    pub(crate) fn open_window(&mut self, control: &mut Control) {
        let was_held = std::mem::take(&mut self.is_window_held);
        match control.state {
            State::SynReceived if was_held => control.opening.owe_update(),
            state if was_held && state.may_receive() => self.ack.want_now(),
            _ => {}
        }
    }

    /// The reader drained what is in order and data waits beyond a hole (scps-tp §7.1).
    pub(crate) fn start_bets_timer(&self, control: &mut Control, now: Instant) {
        let data = self.receiver.data();
        if control.agreed.bets && data.readable() == 0 && !data.pieces().is_empty() {
            control.timers.set_if_idle(Timer::BetsReceive, now + control.config.bets_policy.receive_timeout);
        }
    }

    /// Tells the user, once until it reads, that there is something to read, if that is so.
    pub(crate) fn signal_readable(&mut self, control: &mut Control) {
        let has_news = self.receiver.data().readable() > 0 || self.receiver.is_fin_received();
        if has_news && self.receiver.take_signal() {
            control.events.push_back(Event::Readable(control.id));
        }
    }

    // The window.

    /// Octets the buffer has room for beyond what came in order. The ring is one scale unit larger than the buffer: that unit is
    /// slack for rounding the window up, not room.
    pub(crate) fn window_room(&self, config: &Config) -> u64 {
        if self.is_window_held {
            return 0;
        }
        (config.receive_buffer.max(1) as u64).saturating_sub(self.receiver.data().readable() as u64)
    }

    /// The window field for a segment acknowledging what came in order, and the right edge it stands for (scps-tp §6.2).
    pub(crate) fn window(&self, control: &Control, mss: u64, is_syn: bool) -> (u16, u64) {
        let room = self.window_room(&control.config);
        let is_silly = room < mss && room < control.config.receive_buffer as u64 / 4;
        let room = if is_silly { 0 } else { room };
        let next = self.receiver.next();
        if is_syn {
            let window = room.min(65_535);
            return (window as u16, next + window);
        }
        let shift = control.agreed.window_scale.map_or(0, |(_, own)| own);
        // What was promised is promised, rounded up to the scale; but rounded up on each acknowledgement it would grow beyond
        // the buffer. The told edge may then be less than a unit left of an earlier one, up to which data is taken
        // nevertheless (RFC 7323 §2.4).
        let promised = (self.receiver.edge() - next).div_ceil(1 << shift);
        let room_of_ring = self.receiver.data().limit_edge().saturating_sub(next) >> shift;
        let field = (room >> shift).max(promised.min(room_of_ring)).min(65_535);
        (field as u16, next + (field << shift))
    }

    /// RFC 793 §3.3: some octet of the segment lies in the window we advertised.
    pub(crate) fn is_acceptable(&self, position: i64, len: i64) -> bool {
        let next = self.receiver.next() as i64;
        let edge = self.receiver.edge() as i64;
        match (len, edge > next) {
            (0, false) => position == next,
            (0, true) => position >= next && position < edge,
            (_, false) => false,
            (_, true) => position < edge && position + len > next,
        }
    }

    /// True if the segment is the next one and nothing is missing.
    pub(crate) fn is_orderly(&self, tcp: &Tcp) -> bool {
        self.receiver.data().pieces().is_empty() && self.receiver.position(tcp.seq) == self.receiver.next() as i64
    }

    // What comes.

    /// Takes the data of a segment, and notes its FIN.
    pub(crate) fn take(
        &mut self,
        control: &mut Control,
        now: Instant,
        position: i64,
        tcp: &Tcp,
        Payload { data, reader, .. }: &mut Payload<'_>,
    ) -> Taken {
        let stats = &mut control.stats;
        stats.first_data_at.get_or_insert(now);
        // The part before the window starts at a negative or low position; positions below 1 hold no data.
        let skip = usize::try_from((1 - position).max(0)).unwrap_or(usize::MAX).min(data.len());
        let (start, body) = ((position + skip as i64) as u64, &data[skip..]);
        if tcp.flags.has(Flags::FIN) {
            self.receiver.note_fin((position + data.len() as i64) as u64);
        }
        let body = self.receiver.before_fin(start, body);
        let len = body.len() as u64;
        let mut taken = Taken { verdict: Verdict::Accepted, need: AckNeed::InOrder, start, len };
        if body.is_empty() {
            return taken;
        }
        let arrival = self.receiver.data_mut().insert_or_pass(start, body, tcp.options.record_boundary, reader);
        if matches!(arrival, Arrival::InOrder { .. } | Arrival::OutOfOrder) {
            stats.octets_received += len;
            stats.last_data_at = Some(now);
        }
        if arrival != (Arrival::InOrder { filled_hole: false }) {
            taken.need = AckNeed::Disorder;
        }
        match arrival {
            Arrival::InOrder { filled_hole: false } => {}
            Arrival::InOrder { filled_hole: true } => self.snack.request(),
            Arrival::OutOfOrder => {
                stats.out_of_order_segments += 1;
                self.snack.request();
            }
            Arrival::Duplicate => {
                stats.duplicate_segments += 1;
                self.snack.request();
                self.note_duplicate(control, start as i64, len as i64);
            }
            Arrival::Refused => taken.verdict = Verdict::Dropped(DropReason::TooManyPieces),
        }
        taken
    }

    /// For the D-SACK block (RFC 2883 §4).
    pub(crate) fn note_duplicate(&mut self, control: &Control, position: i64, len: i64) {
        if control.agreed.sack {
            self.receiver.note_duplicate(position, len);
        }
    }

    // What is told.

    /// D-SACK if a duplicate came, then the blocks that changed last (RFC 2883 §4, RFC 2018 §4).
    /// Returns the news it took, in case the acknowledgement cannot leave.
    pub(crate) fn add_sack_blocks(&mut self, options: &mut Options) -> Vec<u64> {
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

    /// An acknowledgement left that told a window up to `edge`.
    pub(crate) fn on_ack_left(&mut self, control: &mut Control, now: Instant, edge: u64) {
        if self.receiver.on_ack_left(edge) {
            control.stats.last_data_ack_at = Some(now);
        }
        self.ack.on_sent(now);
        control.timers.stop(Timer::DelayedAck);
    }
}
