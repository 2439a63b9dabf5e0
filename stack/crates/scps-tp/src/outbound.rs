//! The sending half of a connection: its path, what is to be sent, what is under way, and what is known to be lost. Which data leaves
//! next is said in `output/data.rs`, what acknowledgements do in `recovery.rs`, and what timers do in `timeouts.rs`.

use crate::black_hole::BlackHole;
use crate::cc::Metrics;
use crate::config::Congestion;
use crate::control::Control;
use crate::path::Path;
use crate::recovery::Recovery;
use crate::route::{Route, MSS_MIN};
use crate::scoreboard::Scoreboard;
use crate::sender::Sender;
use crate::state::State;
use crate::stats::Snapshot;
use crate::trace::{TraceEvent, TraceRecord};
use scps_wire::{Duration, Instant};

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) path: Path,
    pub(crate) sender: Sender,
    /// What is under way.
    pub(crate) board: Scoreboard,
    pub(crate) recovery: Recovery,
    pub(crate) black_hole: BlackHole,
}

impl Outbound {
    pub(crate) fn new(path: Path, sender: Sender, segments_max: Option<usize>) -> Self {
        let board = Scoreboard::new(segments_max.map_or(usize::MAX, |most| most.max(1)));
        Outbound { path, sender, board, recovery: Recovery::default(), black_hole: BlackHole::default() }
    }

    /// Both sides agreed on how they speak: the size of segments is known.
    pub(crate) fn begin(&mut self, control: &Control, route: &Route, now: Instant) {
        self.path.begin(&control.config, self.full_segment(control, route));
        self.recovery.set_boldness(self.is_bold(control, route, now));
    }

    /// True where a loss does not lower the rate of sending: its first sign is acted on.
    pub(crate) fn is_bold(&self, control: &Control, route: &Route, now: Instant) -> bool {
        let is_uncontrolled = control.config.controller.is_none() && control.config.congestion == Congestion::None;
        is_uncontrolled || !self.path.loss_is_congestion(route, now)
    }

    // Sizes.

    /// The MSS we would offer for segments over `route`.
    pub(crate) fn mss_over(&self, control: &Control, route: &Route) -> u16 {
        let mss = route.mss(self.path.network_header());
        control.config.mss.map_or(mss, |m| m.min(mss))
    }

    /// Largest data and options per segment towards the peer.
    pub(crate) fn effective_mss(&self, control: &Control, route: &Route) -> u64 {
        self.mss_within(control, route, self.path.mtu(route))
    }

    /// The same, if the path takes packets of `mtu`.
    fn mss_within(&self, control: &Control, route: &Route, mtu: u16) -> u64 {
        let mss = route.mss_within(mtu, self.path.network_header());
        let own = control.config.mss.map_or(mss, |m| m.min(mss));
        // Absent peer option: own value, as the reference does (scps-tp §2.7).
        u64::from(control.opening.peer_mss().map_or(own, |p| p.max(MSS_MIN).min(own)).max(1))
    }

    /// Data of a full segment, as congestion control counts it.
    pub(crate) fn full_segment(&self, control: &Control, route: &Route) -> u64 {
        self.full_segment_within(control, route, self.path.mtu(route))
    }

    /// The same, if the path takes packets of `mtu`.
    pub(crate) fn full_segment_within(&self, control: &Control, route: &Route, mtu: u16) -> u64 {
        let options = if control.agreed.timestamps { 12 } else { 0 };
        self.mss_within(control, route, mtu).saturating_sub(options).max(1)
    }

    // What is told.

    /// How long after a resend its fate can be judged.
    pub(crate) fn patience(&self) -> Duration {
        self.recovery.backed_off(self.path.patience())
    }

    /// Windows and times now, as a trace record shows them.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let Metrics { window: cwnd, ssthresh, pace } = self.path.metrics();
        Snapshot {
            cwnd,
            ssthresh,
            pace,
            resume: self.path.resume_phase(),
            srtt: self.path.srtt(),
            rtt_min: self.path.rtt_min(),
            rto: self.path.rto(),
            flight_size: self.board.flight_size(),
            unacknowledged: self.sender.data().end().saturating_sub(self.sender.una()),
            unsent: self.sender.waiting(),
        }
    }

    pub(crate) fn set_state(&self, control: &mut Control, now: Instant, route: &Route, state: State) {
        if control.state != state {
            control.state = state;
            self.note(control, now, route, TraceEvent::State(state), self.sender.next(), 0);
        }
    }

    pub(crate) fn note(
        &self,
        control: &mut Control,
        now: Instant,
        route: &Route,
        event: TraceEvent,
        position: u64,
        len: u64,
    ) {
        if !control.config.trace {
            return;
        }
        let Metrics { window: cwnd, ssthresh, .. } = self.path.metrics();
        control.trace.push(TraceRecord {
            at: now,
            connection: control.id,
            event,
            position,
            len: len as u32,
            cwnd,
            ssthresh,
            srtt: self.path.srtt(),
            rto: self.path.rto(),
            flight_size: self.board.flight_size(),
            rate_credit: route.credit(),
        });
    }
}
