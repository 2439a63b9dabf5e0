//! Which data leaves next: what was lost before what is new (scps-tp §2.4.5), as far as the windows allow.

use super::{Draft, Sending};
use crate::cc::SentSample;
use crate::control::Control;
use crate::outbound::Outbound;
use crate::route::Route;
use crate::scoreboard::{Fate, Sent};
use crate::timer::Timer;
use crate::trace::TraceEvent;
use scps_wire::tcp::Flags;
use scps_wire::{Duration, Instant};

/// New data for a segment.
pub(super) struct Portion {
    pub(super) len: u64,
    is_full: bool,
    /// It is all that waits.
    is_last: bool,
    is_record_end: bool,
    /// The peer's window takes none of it, or too little to be worth a segment.
    is_silly: bool,
}

/// How long a window short of a segment may grow before it is filled as it is (RFC 1122 §4.2.3.4: 0.1 to 1 s).
const SMALL_WINDOW_PATIENCE: Duration = Duration::from_millis(500);
/// Data octets of segments that leave as one: a packet of IPv4 has 65,535 with its headers.
const JOINED_OCTETS_MAX: u64 = 65_000;
/// Octets the record boundary adds to an uncompressed header.
const RECORD_BOUNDARY_LEN: u64 = 4;

impl Outbound {
    /// The data that may leave now, and what of it was lost before.
    pub(super) fn next_data(&mut self, control: &mut Control, sending: &Sending<'_>) -> Option<(Draft, Option<Sent>)> {
        while self.board.next_lost().is_some_and(|lost| self.is_hopeless(control, &lost)) {
            self.abandon_front(control, sending.now, sending.route);
        }
        if let Some(lost) = self.board.next_lost() {
            // Blocked by the window, new data is blocked as well.
            let (draft, lost) = self.next_resend(control, sending.now, sending.route, lost)?;
            return Some((draft, Some(lost)));
        }
        self.next_new(control, sending).map(|draft| (draft, None))
    }

    /// True if a segment is the lowest, and to be given up under BETS.
    fn is_hopeless(&self, control: &Control, lost: &Sent) -> bool {
        lost.start == self.sender.una()
            && u32::from(lost.transmissions) > control.config.bets_policy.retransmissions_max
            && self.may_abandon(control, lost)
    }

    /// True if BETS allows to give a segment up (scps-tp §7.1): a receiver passes over a hole when later data came. A FIN is no data, nor
    /// is what its window does not take.
    pub(crate) fn may_abandon(&self, control: &Control, sent: &Sent) -> bool {
        control.agreed.bets && self.sender.data().end().min(self.sender.edge()) > sent.end
    }

    /// Octets in flight as congestion control sees them: duplicates acknowledged have left (scps-tp §4.3).
    fn flight(&self, control: &Control) -> u64 {
        let credit = if control.agreed.sack { 0 } else { self.recovery.credit() };
        self.board.flight_size().saturating_sub(credit)
    }

    fn next_resend(&mut self, control: &mut Control, now: Instant, route: &Route, lost: Sent) -> Option<(Draft, Sent)> {
        if self.is_beyond_window(&lost) {
            // The window closed over what was sent, or over a probe's octet: probing continues.
            self.arm_persist(control, now, route);
            return None;
        }
        let data_end = lost.end - u64::from(lost.fin);
        let ends_record = self.sender.data().record_end_after(lost.start) == Some(data_end);
        let max = self.max_data(control, route, ends_record);
        let data_len = data_end - lost.start;
        if data_len > max {
            // Pieces of the lowest only, once there are as many as may be: they are acknowledged first.
            if self.board.room() == 0 && lost.start != self.sender.una() {
                return None;
            }
            self.board.split(lost.start, max);
            let piece = self.board.next_lost()?;
            return self.next_resend(control, now, route, piece);
        }
        // The lowest segment goes whatever the window (scps-tp §4.3); without congestion every hole does (scps-tp §2.4.5).
        let is_free = lost.start == self.sender.una() || !self.path.loss_is_congestion(route, now);
        if !is_free && self.flight(control) + (lost.end - lost.start) > self.path.cwnd() {
            self.path.note_cwnd_limited();
            return None;
        }
        Some((self.draft_data(control, now, lost.start, data_len, lost.fin), lost))
    }

    fn next_new(&mut self, control: &mut Control, sending: &Sending<'_>) -> Option<Draft> {
        let (now, route): (Instant, &Route) = (sending.now, sending.route);
        let fin_waits = self.sender.is_fin_due();
        if self.sender.waiting() == 0 && !fin_waits {
            return None;
        }
        if self.black_hole.is_trial_due() {
            if let Some(draft) = self.next_trial(control, now, route) {
                return Some(draft);
            }
        }
        let Portion { mut len, is_full, is_last, is_record_end, is_silly } = self.portion(control, route);
        if is_silly {
            self.arm_persist(control, now, route);
            return None;
        }
        let is_runt = !is_full && is_last && !is_record_end && !fin_waits;
        if is_runt && len > 0 && !control.config.nodelay && !self.board.is_empty() {
            return None;
        }
        // FIN travels alone when headers are compressed (scps-tp §3.7).
        let mut fin = fin_waits && is_last;
        if fin && len > 0 && control.is_compressing() {
            fin = false;
        }
        // Where there is no room for another segment, an acknowledgement makes it.
        if len == 0 && !fin || self.board.room() == 0 {
            return None;
        }
        let cwnd = self.path.cwnd();
        let flight = self.flight(control);
        if len > 0 && flight + len > cwnd && flight > 0 {
            self.path.note_cwnd_limited();
            return None;
        }
        if let Some(at) = self.path.paced_until(now) {
            control.timers.set(Timer::Pace, at);
            return None;
        }
        let segment = len.min(cwnd.max(1));
        // A congestion window short of a segment leaves data behind, and the FIN goes with the last octet.
        let fin = fin && segment == len;
        let segments = if is_full && segment == len && !fin { self.joinable(control, sending, segment) } else { 1 };
        len = segment * u64::from(segments);
        if flight + len + segment > cwnd {
            self.path.note_cwnd_limited();
        }
        Some(Draft { segments, ..self.draft_data(control, now, self.sender.next(), len, fin) })
    }

    /// A segment as long as the route takes, over a path that seemed to take less.
    fn next_trial(&mut self, control: &Control, now: Instant, route: &Route) -> Option<Draft> {
        let (start, full) = (self.sender.next(), self.full_segment_within(control, route, route.config().mtu));
        let window = self.sender.edge().saturating_sub(start);
        let has_records = self.sender.data().record_end_after(start).is_some();
        let fits = self.sender.waiting().min(window) >= full && self.flight(control) + full <= self.path.cwnd();
        if has_records || control.is_compressing() || !fits || self.board.room() == 0 {
            return None;
        }
        self.black_hole.try_long(start, start + full);
        Some(self.draft_data(control, now, start, full, false))
    }

    /// Full segments that may leave as one. Where each packet counts (a rate, a trace, records) they leave one by one; the last octets
    /// before a FIN wait for it.
    fn joinable(&self, control: &Control, sending: &Sending<'_>, segment: u64) -> u16 {
        let segments_max = sending.segments_max();
        let is_spaced = sending.route.config().rate.is_some() || self.path.metrics().pace.is_some();
        let is_counted = is_spaced || control.config.trace || control.is_compressing();
        let has_records = self.sender.data().record_end_after(self.sender.next()).is_some();
        if segments_max <= 1 || is_counted || has_records {
            return 1;
        }
        let waiting = self.sender.waiting().saturating_sub(u64::from(self.sender.is_fin_due()));
        let window = self.sender.edge().saturating_sub(self.sender.next());
        let room = waiting.min(window).min(self.path.cwnd().saturating_sub(self.flight(control)));
        let segments_max = self.board.room().min(segments_max.into()) as u64;
        (room.min(JOINED_OCTETS_MAX) / segment).clamp(1, segments_max.max(1)) as u16
    }

    pub(super) fn draft_data(&self, control: &Control, now: Instant, position: u64, len: u64, fin: bool) -> Draft {
        let end = position + len;
        let record_boundary = len > 0 && self.sender.data().record_end_after(position) == Some(end);
        let mut flags = Flags::ACK;
        if record_boundary || (len > 0 && end == self.sender.data().end()) {
            flags = flags.with(Flags::PSH);
        }
        if fin {
            flags = flags.with(Flags::FIN);
        }
        let mut options = control.usual_options(now);
        // Option 22 means nothing to a peer that did not say it speaks SCPS (scps-tp §14 item 14).
        options.record_boundary = record_boundary && control.agreed.scps;
        Draft { position, len: len as usize, segments: 1, flags, options, with_ack: !self.sender.is_ack_heard() }
    }

    // What left.

    /// The data of a draft left; `lost` is what it was before, if that was lost.
    pub(super) fn on_data_left(
        &mut self,
        control: &mut Control,
        now: Instant,
        route: &Route,
        draft: &Draft,
        lost: Option<Sent>,
    ) {
        match lost {
            Some(lost) => self.on_resent(control, now, route, &lost),
            None => self.on_new_sent(control, now, route, draft),
        }
    }

    fn on_resent(&mut self, control: &mut Control, now: Instant, route: &Route, lost: &Sent) {
        let is_judged = control.agreed.snack || control.agreed.sack;
        // With SACK what arrived is known, so every resend can be judged after one round trip.
        let factor = if lost.start == self.sender.una() || control.agreed.sack { 1 } else { 2 };
        let embargo = is_judged.then(|| self.patience() * factor);
        self.black_hole.on_resent(lost.start, lost.end);
        let sent = self.board.on_resent(lost.start, now, embargo, control.config.snack_policy.fast_resends);
        control.stats.count_resend(lost.cause);
        if sent.transmissions > 2 {
            self.on_repeated_resend(control, now);
        }
        self.note(control, now, route, TraceEvent::Resent(lost.cause), lost.start, sent.end - sent.start);
        self.arm_after_data(control, now);
        self.rearm_embargo(control);
    }

    fn on_new_sent(&mut self, control: &mut Control, now: Instant, route: &Route, draft: &Draft) {
        let (position, len, fin) = (draft.position, draft.len as u64, draft.flags.has(Flags::FIN));
        let (segments, end) = (u64::from(draft.segments), position + len + u64::from(fin));
        let segment = len / segments;
        // Each has its own fate.
        for i in 1..segments {
            self.board.push(position + (i - 1) * segment, position + i * segment, now, false);
        }
        self.board.push(end - segment - u64::from(fin), end, now, fin);
        self.sender.on_sent(end, fin.then_some(position + len));
        self.path.on_sent(&SentSample {
            at: now,
            octets: len,
            mss: self.full_segment(control, route),
            in_flight: self.board.flight_size(),
            number: self.board.next_order() - 1,
        });
        if fin {
            let state = control.state.on_close();
            self.set_state(control, now, route, state);
        }
        control.stats.data_segments_sent += if len > 0 { segments } else { 0 };
        self.note(control, now, route, TraceEvent::Sent, position, end - position);
        self.arm_after_data(control, now);
    }

    pub(super) fn arm_after_data(&self, control: &mut Control, now: Instant) {
        control.timers.set_if_idle(Timer::Retransmit, now + self.path.rto());
        self.arm_tail_probe(control, now);
    }

    // The peer's window.

    /// Data that fits in a segment now.
    fn max_data(&self, control: &Control, route: &Route, ends_record: bool) -> u64 {
        if control.is_compressing() {
            // The packet may be as long as an uncompressed one: MSS and 20 octets of header (scps-tp §2.7).
            let ack = if self.sender.is_ack_heard() { 0 } else { 6 };
            let header = 8 + ack + if control.agreed.timestamps { 8 } else { 0 };
            return (self.effective_mss(control, route) + 20).saturating_sub(header).max(1);
        }
        let record = if ends_record { RECORD_BOUNDARY_LEN } else { 0 };
        self.full_segment(control, route).saturating_sub(record).max(1)
    }

    /// The new data that a segment would take now.
    pub(super) fn portion(&self, control: &Control, route: &Route) -> Portion {
        let waiting = self.sender.waiting();
        let full = self.max_data(control, route, false);
        let boundary = self.sender.data().record_end_after(self.sender.next()).map(|e| e - self.sender.next());
        let mut wanted = waiting.min(full).min(boundary.unwrap_or(u64::MAX));
        if boundary == Some(wanted) && !control.is_compressing() {
            // Where the boundary option does not fit beside so much data, the last octets follow with it.
            wanted = wanted.min(self.max_data(control, route, true));
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

    /// True if the peer's window ends before a segment that was sent. A FIN alone may leave so, but is not resent by its timer: whoever
    /// answers that the window is closed is there, and may keep it closed (RFC 9293 §3.8.6.1).
    fn is_beyond_window(&self, sent: &Sent) -> bool {
        sent.start >= self.sender.edge()
    }

    /// True if data waits, the window does not take it, and nothing is on its way whose fate the retransmission timer
    /// would settle. A window that shrank may leave its lowest segment outside.
    pub(crate) fn is_window_closed(&self, control: &Control, route: &Route) -> bool {
        let is_outside = match self.board.next_lost() {
            Some(lost) => self.is_beyond_window(&lost),
            None => self.portion(control, route).is_silly,
        };
        let is_idle = self.board.flight_size() == 0 || self.board.front().is_some_and(|f| f.fate == Fate::Lost);
        control.state.may_transmit_data() && is_outside && is_idle
    }

    pub(crate) fn arm_persist(&self, control: &mut Control, now: Instant, route: &Route) {
        if !self.is_window_closed(control, route) {
            return;
        }
        if self.board.is_empty() && self.portion(control, route).len > 0 && route.is_available() {
            control.timers.set_no_later(Timer::Persist, now + SMALL_WINDOW_PATIENCE);
        } else if !control.timers.is_set(Timer::Persist) {
            let interval = self.probe_interval(control);
            control.timers.set(Timer::Persist, now + interval);
        }
    }

    /// Until the next probe of the window: as the schedule says, but for a path whose round trip is longer than its greatest interval.
    pub(crate) fn probe_interval(&self, control: &mut Control) -> Duration {
        let interval = control.probing.next_interval();
        let far = self.path.srtt().filter(|srtt| *srtt > control.config.persist.max);
        interval.max(far.unwrap_or_default())
    }

    /// True unless there is something to send or to be acknowledged and no timer that would take it up again.
    pub(super) fn is_watched(&self, control: &Control) -> bool {
        let has_work = !self.board.is_empty() || self.sender.waiting() > 0 || self.sender.is_fin_due();
        let is_timed = [Timer::Retransmit, Timer::Persist, Timer::Pace].into_iter().any(|t| control.timers.is_set(t));
        !control.state.may_transmit_data() || !has_work || is_timed
    }
}
