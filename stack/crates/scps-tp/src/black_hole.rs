//! Paths that drop long packets and tell nobody (RFC 2923 §2.1): how a sender finds out, and what it then tries (in the manner of
//! RFC 4821 §7.7 and RFC 8899 §5.2).
//!
//! A segment that times out again and again may be too long, or its peer may be gone. So the peer is asked something short. If it
//! answers, and the segment is still not acknowledged, segments become shorter. Later one long segment is tried, with data that would
//! leave anyway: if it is lost, it is repaired as any loss is.

use scps_wire::Instant;

/// Timeouts in a row of a segment after which it may be too long, where no longer one ever arrived (Linux's `tcp_retries1`).
const TIMEOUTS_AT_FIRST: u32 = 3;
/// The same where one did: then the path changed, or luck is bad.
const TIMEOUTS_LATER: u32 = 6;
/// Packets that are tried one after the other: IPv6's least, and what is left of IPv4's 576 in a tunnel of UDP.
pub(crate) const LENGTHS: [u16; 2] = [1280, 548];

/// What a sender knows of a path's silence about long packets.
#[derive(Debug, Default)]
pub(crate) struct BlackHole {
    /// Octets of data in the longest segment that arrived.
    longest: u64,
    /// When the peer was asked something short, since the lowest segment timed out first.
    asked_at: Option<Instant>,
    /// A long segment is to be tried.
    is_trial_due: bool,
    /// Where the one begins and ends that was.
    trial: Option<(u64, u64)>,
}

/// What a timeout asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// Nothing new.
    None,
    /// To hear something of the peer.
    Ask,
    /// Packets of at most this length.
    Shorter(u16),
}

impl BlackHole {
    /// The lowest segment, with `len` octets of data in a packet of up to `mtu`, timed out, `timeouts` times in a row. The peer was heard
    /// last at `heard_at`. `within` is how much data packets of a length take.
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        (timeouts, heard_at): (u32, Instant),
        (len, mtu): (u64, u16),
        within: impl Fn(u16) -> u64,
    ) -> Doubt {
        if timeouts <= 1 {
            self.asked_at = None;
        }
        let Some(shorter) = LENGTHS.into_iter().find(|shorter| *shorter < mtu && within(*shorter) < len) else {
            return Doubt::None;
        };
        let enough = if self.longest <= within(shorter) { TIMEOUTS_AT_FIRST } else { TIMEOUTS_LATER };
        if timeouts >= enough && self.asked_at.is_some_and(|asked_at| heard_at > asked_at) {
            *self = BlackHole::default();
            return Doubt::Shorter(shorter);
        }
        if timeouts + 1 < enough {
            return Doubt::None;
        }
        self.asked_at.get_or_insert(now);
        Doubt::Ask
    }

    /// Segments arrived, the longest with so much data.
    pub(crate) fn on_arrival(&mut self, longest: u64) {
        self.longest = self.longest.max(longest);
    }

    /// It is time to try a long segment.
    pub(crate) fn want_trial(&mut self) {
        self.is_trial_due = self.trial.is_none();
    }

    /// True if that is so.
    pub(crate) fn is_trial_due(&self) -> bool {
        self.is_trial_due
    }

    /// A long segment left, or waits to.
    pub(crate) fn try_long(&mut self, start: u64, end: u64) {
        (self.is_trial_due, self.trial) = (false, Some((start, end)));
    }

    /// Something is sent again: if it is of the long segment, that is over.
    pub(crate) fn on_resent(&mut self, start: u64, end: u64) {
        self.trial = self.trial.filter(|trial| end <= trial.0 || trial.1 <= start);
    }

    /// Everything up to `acked` arrived; true if the long segment is among it.
    pub(crate) fn is_trial_over(&mut self, acked: u64) -> bool {
        let is_over = self.trial.is_some_and(|trial| trial.1 <= acked);
        if is_over {
            self.trial = None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: fn(u64) -> Instant = Instant::from_secs;
    const WITHIN: fn(u16) -> u64 = |mtu| u64::from(mtu) - 40;

    #[test]
    fn a_peer_that_answers_what_is_short_makes_segments_shorter_and_shorter() {
        let mut hole = BlackHole::default();
        let mut at = |timeouts, now, heard, len, mtu| hole.on_timeout(T(now), (timeouts, T(heard)), (len, mtu), WITHIN);
        assert_eq!([at(1, 1, 0, 1460, 1500), at(2, 3, 0, 1460, 1500)], [Doubt::None, Doubt::Ask]);
        assert_eq!(at(3, 7, 4, 1460, 1500), Doubt::Shorter(1280));
        assert_eq!(at(4, 15, 4, 1240, 1280), Doubt::Ask);
        assert_eq!(at(5, 31, 16, 1240, 1280), Doubt::Shorter(548));
        assert_eq!(at(6, 60, 40, 508, 548), Doubt::None, "there is nothing shorter");
    }

    #[test]
    fn a_peer_that_is_gone_is_asked_and_nothing_else() {
        let mut hole = BlackHole::default();
        let doubts: Vec<_> = (1..9).map(|n| hole.on_timeout(T(n), (n as u32, T(0)), (1460, 1500), WITHIN)).collect();
        assert!(doubts[0] == Doubt::None && doubts[1..].iter().all(|doubt| *doubt == Doubt::Ask), "{doubts:?}");
    }

    #[test]
    fn where_long_segments_arrived_it_takes_longer() {
        let mut hole = BlackHole::default();
        hole.on_arrival(1460);
        let mut at = |timeouts, heard| hole.on_timeout(T(timeouts), (timeouts as u32, T(heard)), (1460, 1500), WITHIN);
        assert!((1..5).all(|n| at(n, n) == Doubt::None) && at(5, 5) == Doubt::Ask);
        assert_eq!(at(6, 6), Doubt::Shorter(1280));
    }

    #[test]
    fn short_segments_are_not_suspected() {
        let mut hole = BlackHole::default();
        assert!((1..9).all(|n| hole.on_timeout(T(n), (n as u32, T(n)), (90, 1500), WITHIN) == Doubt::None));
    }

    #[test]
    fn a_trial_ends_with_its_acknowledgement_or_its_repair() {
        let mut hole = BlackHole::default();
        hole.want_trial();
        assert!(hole.is_trial_due());
        hole.try_long(100, 200);
        assert!(!hole.is_trial_due() && !hole.is_trial_over(199));
        hole.on_resent(200, 300);
        assert!(hole.is_trial_over(200) && !hole.is_trial_over(200));
        hole.try_long(300, 400);
        hole.on_resent(300, 320);
        assert!(!hole.is_trial_over(400));
    }
}
