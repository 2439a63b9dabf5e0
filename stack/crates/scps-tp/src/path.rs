//! What a connection does when its path changes under it: a smaller MTU, a released owner, a compressed peer.

use crate::compression::Context;
use crate::connection::Connection;
use crate::route::Route;
use crate::state::State;
use crate::timer::Timer;
use crate::trace::Cause;
use scps_types::{Duration, Instant};

/// How long a connection that nobody owns may go without an octet acknowledged, even if its peer answers: half an hour, as
/// long as the default limit of retransmissions lets a silent peer be (Linux ends orphans after `tcp_orphan_retries`).
pub(crate) const ORPHAN_PATIENCE: Duration = Duration::from_secs(1800);

impl Connection {
    /// Segments in flight no longer fit: they are cut and sent again (RFC 1191 §6.4).
    pub(crate) fn on_mtu_lowered(&mut self, now: Instant, route: &Route) {
        let max = self.full_segment(route);
        if self.board.mark_longer_than(max, Cause::PathMtu) > 0 {
            self.timers.set(Timer::Retransmit, now + self.rto.value(&self.rtt));
        }
    }

    /// The user gave the connection up.
    pub(crate) fn orphan(&mut self, now: Instant) {
        self.is_orphan = true;
        self.close();
        match self.state {
            State::FinWait2 => self.timers.set_if_idle(Timer::Linger, now + self.config.time_wait),
            State::TimeWait | State::Closed => {}
            _ => self.timers.set_if_idle(Timer::Orphan, now + ORPHAN_PATIENCE),
        }
    }

    /// What absent fields of a compressed segment mean here (scps-tp §3.3).
    pub(crate) fn decompression_context(&self) -> Context {
        let (window, ack) = self.last_window_ack;
        Context { src_port: self.remote.1, dst_port: self.local.1, window, ack, seq: self.rcv_seq(self.rcv_nxt()) }
    }
}
