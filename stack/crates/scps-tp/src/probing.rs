//! Probes of a closed window, of a route that is down, of a peer that says nothing (scps-tp §6.6 to §6.8).

use crate::config::PersistConfig;
use crate::persist::Persist;
use scps_wire::{Duration, Instant};

/// Keep-alives without an answer before the peer is taken for dead (Linux `tcp_keepalive_probes`); at the default interval
/// two hours and a quarter, which is Linux's time as well.
const KEEPALIVES_MAX: u32 = 9;

/// Questions without an answer before the peer is taken for dead: at a gateway's interval of a minute the time of nine
/// keep-alives. An outage of the link is waited for; who was restarted answers the first question that arrives.
const QUESTIONS_MAX: u32 = 15 * KEEPALIVES_MAX;

/// The probes of a connection.
#[derive(Debug)]
pub(crate) struct Probing {
    persist: Persist,
    window_due: bool,
    keepalive_due: bool,
    /// Nothing acceptable came since the last keep-alive.
    is_silent: bool,
    heard_at: Instant,
    keepalives_unanswered: u32,
    /// Questions since something was heard that were asked again sooner than after a whole interval.
    repeats: u32,
    /// An acknowledgement is due that the peer must answer.
    answer_wanted: bool,
    /// The next packet without data is to have a header that is not compressed.
    whole_wanted: bool,
}

impl Probing {
    pub(crate) fn new(config: PersistConfig) -> Self {
        Probing {
            persist: Persist::new(config),
            window_due: false,
            keepalive_due: false,
            is_silent: false,
            heard_at: Instant::ZERO,
            keepalives_unanswered: 0,
            repeats: 0,
            answer_wanted: false,
            whole_wanted: false,
        }
    }

    // What is due.

    /// True if a probe of the window or the route is to leave.
    pub(crate) fn is_window_due(&self) -> bool {
        self.window_due
    }

    /// It left, or is not needed any more.
    pub(crate) fn end_window(&mut self) {
        self.window_due = false;
    }

    /// True if a keep-alive is to leave.
    pub(crate) fn is_keepalive_due(&self) -> bool {
        self.keepalive_due
    }

    /// An acknowledgement left, which is one.
    pub(crate) fn on_ack_sent(&mut self) {
        self.keepalive_due = false;
    }

    /// True if an acknowledgement is to leave that the peer must answer.
    pub(crate) fn is_answer_wanted(&self) -> bool {
        self.answer_wanted
    }

    /// It left.
    pub(crate) fn on_asked(&mut self) {
        self.answer_wanted = false;
    }

    /// An acknowledgement is to leave that the peer must answer.
    pub(crate) fn want_answer(&mut self) {
        self.answer_wanted = true;
    }

    /// The next packet without data has a header that is not compressed: a peer that has forgotten the connection can then answer it by a
    /// reset. An identifier alone tells it neither ports nor whose it was.
    pub(crate) fn want_whole(&mut self) {
        self.whole_wanted = true;
    }

    /// True if that is so.
    pub(crate) fn is_whole_wanted(&self) -> bool {
        self.whole_wanted
    }

    /// It left.
    pub(crate) fn on_whole(&mut self) {
        self.whole_wanted = false;
    }

    // The window and the route.

    /// Until the next probe of the window.
    pub(crate) fn next_interval(&mut self) -> Duration {
        self.persist.next_interval()
    }

    /// Until the first probe of a route that is down.
    pub(crate) fn outage_interval(&mut self) -> Duration {
        self.persist.outage_interval()
    }

    /// A probe is to leave. False if too many were not answered; those of an outage do not count (scps-tp §6.8).
    pub(crate) fn want_window(&mut self, is_route_available: bool) -> bool {
        if is_route_available && self.persist.on_probe() {
            return false;
        }
        self.window_due = true;
        true
    }

    /// The peer answered.
    pub(crate) fn on_answer(&mut self) {
        self.persist.on_answer();
    }

    /// The window is open, the route there.
    pub(crate) fn stop(&mut self) {
        self.persist.stop();
    }

    // The peer.

    /// When something acceptable came last.
    pub(crate) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Something acceptable came.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        (self.is_silent, self.heard_at) = (false, now);
    }

    /// It is time for a keep-alive: a bare acknowledgement, as the reference sends (scps-tp §6.7), unless nothing was heard since
    /// the last; then one that the peer must answer. False if so many were not answered that the connection ends.
    pub(crate) fn want_keepalive(&mut self, is_route_available: bool) -> bool {
        let is_silent = std::mem::replace(&mut self.is_silent, true);
        if !is_silent {
            self.keepalives_unanswered = 0;
            self.keepalive_due = true;
        } else if self.keepalives_unanswered >= KEEPALIVES_MAX {
            return false;
        } else {
            // As with probes of a window, those of an outage do not count (scps-tp §6.8).
            self.keepalives_unanswered += u32::from(is_route_available);
            self.answer_wanted = true;
        }
        true
    }

    /// It is time to look whether the peer was heard. If it was not for `interval`, it is asked, and then again after `patience`, twice
    /// that and so on until `interval`; from there on as with keep-alives. Returns when to look again, or `None` if so many were not
    /// answered that the connection ends.
    pub(crate) fn ask_if_silent(
        &mut self,
        now: Instant,
        is_route_available: bool,
        patience: Duration,
        interval: Duration,
    ) -> Option<Duration> {
        let left = interval.saturating_sub(now.since(self.heard_at));
        if left > Duration::ZERO {
            (self.keepalives_unanswered, self.repeats) = (0, 0);
            return Some(left);
        }
        let wait = patience * (1 << self.repeats.min(16));
        if wait < interval {
            self.repeats += 1;
            self.answer_wanted = true;
            return Some(wait);
        }
        if self.keepalives_unanswered >= QUESTIONS_MAX {
            return None;
        }
        self.keepalives_unanswered += u32::from(is_route_available);
        self.answer_wanted = true;
        Some(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_silent_peer_is_asked_nine_times() {
        let mut probing = Probing::new(Config::default().persist);
        assert!(probing.want_keepalive(true) && probing.is_keepalive_due() && !probing.is_answer_wanted());
        // While the route is down nobody can answer.
        assert!((0..20).all(|_| probing.want_keepalive(false)));
        assert!((0..9).all(|_| probing.want_keepalive(true)) && probing.is_answer_wanted());
        assert!(!probing.want_keepalive(true));
        probing.on_heard(Instant::ZERO);
        assert!(probing.want_keepalive(true));
    }

    #[test]
    fn a_silent_peer_is_asked_again_with_back_off() {
        let mut probing = Probing::new(Config::default().persist);
        let second = Duration::from_secs;
        // When it is looked, whether that is when something came as well, when it is looked again, whether it was asked.
        let looks = [
            (5, true, Some(20), false),
            (20, false, Some(5), false),
            (25, false, Some(3), true),
            (28, false, Some(6), true),
            (33, true, Some(20), false),
            (53, false, Some(3), true),
            (56, false, Some(6), true),
            (62, false, Some(12), true),
        ];
        for (at, is_heard, wait, is_asked) in looks {
            if is_heard {
                probing.on_heard(Instant::from_secs(at));
            }
            assert_eq!(probing.ask_if_silent(Instant::from_secs(at), true, second(3), second(20)), wait.map(second));
            assert_eq!(std::mem::take(&mut probing.answer_wanted), is_asked, "at {at} s");
        }
        let mut look = |at| probing.ask_if_silent(Instant::from_secs(at), true, second(3), second(20));
        assert!((0..135).all(|i| look(74 + 20 * i) == Some(second(20))));
        assert_eq!(look(74 + 135 * 20), None);
    }
}
