//! Careful Resume around any controller (RFC 9959): a connection whose path is known from an earlier one begins as any, and once its
//! first window has arrived it sends half of what the path took then, paced over a round trip, and goes on from what arrives of that.
//!
//! The phases are those of RFC 9959 §3. Transmissions have numbers, as QUIC's packets have, so its conditions on packet numbers hold as they
//! are written. A loss counts whatever losses on the route mean: the jump may have caused it.

use super::{AckSample, Controller, LossSample, Metrics, SentSample, Start};
use scps_wire::{settings, Bitrate, Duration, Instant};
use std::net::IpAddr;

/// What is saved is worth it from so many first windows on (RFC 9959 §3.1).
const WORTH_WINDOWS: u64 = 4;
/// A round trip that is so many times the saved one is another path's (RFC 9959 §4.2.1).
const RTT_FACTOR_MAX: u32 = 10;

settings! {
    /// Settings of Careful Resume.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ResumeConfig {
        /// How long what was observed may be used (RFC 9959 §4.3.1).
        pub lifetime: Duration,
        /// The greatest window to jump to, in octets of data.
        pub jump_max: u64,
    }

    /// A path that was observed (RFC 9959 §3.1).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct KnownPath {
        /// Our address; unspecified for any.
        pub local: IpAddr,
        /// The peer's; unspecified for any.
        pub remote: IpAddr,
        /// Octets of data that arrived in a round trip (saved_cwnd).
        pub window: u64,
        /// The least round trip (saved_rtt).
        pub rtt: Duration,
        /// How long it may be used still.
        pub lifetime: Duration,
    }
}

impl Default for ResumeConfig {
    /// An hour: the path is our own link, and what is not validated is bounded.
    fn default() -> Self {
        ResumeConfig { lifetime: Duration::from_secs(3600), jump_max: 4 << 20 }
    }
}

impl KnownPath {
    /// A path between two addresses.
    pub fn new(local: impl Into<IpAddr>, remote: impl Into<IpAddr>, window: u64, rtt: Duration) -> Self {
        let lifetime = ResumeConfig::default().lifetime;
        KnownPath { local: local.into(), remote: remote.into(), window, rtt, lifetime }
    }
}

/// What was saved of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saved {
    pub(crate) window: u64,
    pub(crate) rtt: Duration,
    pub(crate) until: Instant,
}

scps_wire::named! {
    /// Where a connection stands with Careful Resume, or why it uses it no more.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[non_exhaustive]
    pub enum ResumePhase {
        /// Nothing was saved of the path, or another connection uses it.
        UnknownPath = "unknown-path",
        /// The first window is under way.
        Reconnaissance = "reconnaissance",
        /// More is sent than any new connection sends, paced.
        Unvalidated = "unvalidated",
        /// All of that was sent, and is to arrive.
        Validating = "validating",
        /// It did not: the path drains.
        SafeRetreat = "safe-retreat",
        /// All of it arrived.
        Validated = "validated",
        /// There was less to send.
        RateLimited = "rate-limited",
        /// Something was lost before.
        Congested = "congested",
        /// The round trip is another one, what was saved too old, or the path changed.
        OtherPath = "other-path",
        /// The window was as large already.
        NotNeeded = "not-needed",
        /// The retreat is over.
        Retreated = "retreated",
    }
}

/// Careful Resume of a connection.
#[derive(Debug)]
pub(crate) struct Resume {
    config: ResumeConfig,
    start: Start,
    phase: ResumePhase,
    saved: Option<Saved>,
    /// Window of the unvalidated phase and of the retreat.
    window: u64,
    pace: Option<Bitrate>,
    /// Octets that were acknowledged before the jump, then what the path is known to take (PipeSize).
    pipe: u64,
    /// The transmission that ends the phase: the first unvalidated one, then the last.
    mark: u64,
    /// When the unvalidated phase began, and the round trip then.
    began: (Instant, Duration),
    /// Octets of the round under way, and when it began.
    round: (u64, Option<Instant>),
    /// What this connection saw of the path.
    observed: Option<(u64, Duration)>,
}

impl Resume {
    pub(crate) fn new(config: ResumeConfig, saved: Option<Saved>, start: Start) -> Self {
        let phase = if saved.is_some() { ResumePhase::Reconnaissance } else { ResumePhase::UnknownPath };
        Resume {
            config,
            start,
            phase,
            saved,
            window: 0,
            pace: None,
            pipe: 0,
            mark: 0,
            began: (Instant::ZERO, Duration::ZERO),
            round: (0, None),
            observed: None,
        }
    }

    /// The segment size is agreed on: another start.
    pub(crate) fn begin(&mut self, start: Start) {
        self.start = start;
    }

    pub(crate) fn phase(&self) -> ResumePhase {
        self.phase
    }

    /// What the controller tells, with window and pace of a phase in place of its own.
    pub(crate) fn over(&self, metrics: Metrics) -> Metrics {
        match self.phase {
            ResumePhase::Unvalidated => Metrics { window: self.window, pace: self.pace, ..metrics },
            ResumePhase::SafeRetreat => Metrics { window: self.window, ..metrics },
            _ => metrics,
        }
    }

    /// What may be saved of the path, once: what was observed, else what was saved and not tried.
    pub(crate) fn take_saved(&mut self, now: Instant) -> Option<Saved> {
        let observed = self.observed.take().filter(|(window, _)| *window >= WORTH_WINDOWS * self.start.window);
        let fresh = observed.map(|(window, rtt)| Saved { window, rtt, until: now + self.config.lifetime });
        fresh.or(self.saved.take())
    }

    pub(crate) fn on_sent(&mut self, cc: &mut dyn Controller, sent: &SentSample) {
        cc.on_sent(sent);
        if self.phase == ResumePhase::Unvalidated {
            let is_all_sent = sent.in_flight + sent.mss > self.window;
            self.end_unvalidated(cc, is_all_sent || self.is_late(sent.at), sent.in_flight, sent.number);
        }
    }

    pub(crate) fn on_ack(&mut self, cc: &mut dyn Controller, ack: &AckSample) {
        match self.phase {
            ResumePhase::Reconnaissance => {
                cc.on_ack(ack);
                self.pipe += ack.octets;
                // All of the first window arrived, and there is more to send than the window takes (RFC 9959 §3.2).
                if self.pipe >= self.start.window && ack.is_cwnd_limited {
                    self.jump(cc, ack);
                }
            }
            ResumePhase::Unvalidated => {
                self.pipe += ack.octets;
                cc.on_ack(&AckSample { is_cwnd_limited: false, ..*ack });
                let has_arrived = ack.delivered.is_some_and(|delivered| delivered >= self.mark);
                let last = ack.next.saturating_sub(1);
                self.end_unvalidated(cc, has_arrived || self.is_late(ack.at), ack.in_flight, last);
            }
            ResumePhase::Validating => {
                self.pipe += ack.octets;
                cc.on_ack(ack);
                if ack.delivered.is_some_and(|delivered| delivered >= self.mark) {
                    self.phase = ResumePhase::Validated;
                }
            }
            ResumePhase::SafeRetreat => {
                self.pipe += ack.octets;
                cc.on_ack(&AckSample { is_cwnd_limited: false, ..*ack });
                if ack.delivered.is_some_and(|delivered| delivered >= self.mark) {
                    // Beta is 0.5 (RFC 9959 §3.5).
                    let ssthresh = (self.pipe / 2).max(2 * ack.mss);
                    cc.restart(&Start { window: self.window, ssthresh, mss: ack.mss });
                    self.phase = ResumePhase::Retreated;
                }
            }
            _ => {
                cc.on_ack(ack);
                self.observe(ack);
            }
        }
    }

    pub(crate) fn on_loss(&mut self, cc: &mut dyn Controller, loss: &LossSample) {
        match self.phase {
            ResumePhase::Unvalidated | ResumePhase::Validating => self.retreat(cc, loss.mss, loss.next),
            // What is sent meanwhile is lost as well: less still.
            ResumePhase::SafeRetreat => self.window = (self.window / 2).max(loss.mss),
            _ => {
                self.give_up(ResumePhase::Congested);
                cc.on_loss(loss);
            }
        }
    }

    /// Persistent congestion ends it (RFC 9959 §3.6). What was not validated is not what the window is halved from.
    pub(crate) fn on_timeout(&mut self, cc: &mut dyn Controller, loss: &LossSample) {
        if self.is_trying() {
            let window = (self.pipe / 2).max(loss.mss);
            cc.restart(&Start { window, ssthresh: window.max(2 * loss.mss), mss: loss.mss });
            (self.saved, self.phase) = (None, ResumePhase::Retreated);
        }
        self.give_up(ResumePhase::Congested);
        cc.on_timeout(loss);
    }

    pub(crate) fn on_source_quench(&mut self, cc: &mut dyn Controller, mss: u64) {
        if self.is_trying() {
            (self.saved, self.phase) = (None, ResumePhase::Retreated);
        }
        self.give_up(ResumePhase::Congested);
        cc.on_source_quench(mss);
    }

    /// The path may be another one. `next` is the number that the next transmission gets.
    pub(crate) fn on_path_change(&mut self, cc: &mut dyn Controller, next: u64) {
        if matches!(self.phase, ResumePhase::Unvalidated | ResumePhase::Validating) {
            self.retreat(cc, self.start.mss, next);
        }
        self.give_up(ResumePhase::OtherPath);
        self.observed = None;
        cc.on_path_change();
    }

    /// True from the jump until what was sent because of it has arrived or is given up.
    fn is_trying(&self) -> bool {
        matches!(self.phase, ResumePhase::Unvalidated | ResumePhase::Validating | ResumePhase::SafeRetreat)
    }

    /// No jump any more; what is saved and was not tried is left for others, but for what does not fit.
    fn give_up(&mut self, why: ResumePhase) {
        if self.phase == ResumePhase::Reconnaissance {
            self.phase = why;
            if why == ResumePhase::OtherPath {
                self.saved = None;
            }
        }
    }

    fn jump(&mut self, cc: &dyn Controller, ack: &AckSample) {
        let (Some(saved), Some(rtt_min)) = (self.saved, ack.rtt_min) else { return };
        // RFC 9959 §3.2: at most half of the saved round trip, or more than ten of them, is another path's.
        if ack.at > saved.until || rtt_min <= saved.rtt / 2 || rtt_min > saved.rtt * RTT_FACTOR_MAX {
            return self.give_up(ResumePhase::OtherPath);
        }
        // RFC 9959 §3.3: no more than half of what was saved.
        self.window = (saved.window / 2).min(self.config.jump_max);
        if self.window <= cc.window() {
            return self.give_up(ResumePhase::NotNeeded);
        }
        let rtt = ack.rtt.unwrap_or(rtt_min).max(rtt_min);
        let bps = u128::from(self.window) * 8_000_000_000 / rtt.as_nanos().max(1);
        self.phase = ResumePhase::Unvalidated;
        self.pace = Some(Bitrate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)));
        (self.pipe, self.mark, self.began) = (ack.in_flight, ack.next, (ack.at, rtt));
    }

    /// More than a round trip has passed since the jump.
    fn is_late(&self, now: Instant) -> bool {
        now.since(self.began.0) > self.began.1
    }

    /// No more of the jump is sent, `is_over` said so: what is under way is to arrive.
    fn end_unvalidated(&mut self, cc: &mut dyn Controller, is_over: bool, in_flight: u64, last: u64) {
        if !is_over {
            return;
        }
        let is_unused = in_flight < self.start.window || in_flight <= self.pipe;
        self.phase = if is_unused { ResumePhase::RateLimited } else { ResumePhase::Validating };
        let window = if is_unused { self.pipe.max(self.start.window) } else { in_flight };
        cc.restart(&Start { window, ..self.start });
        self.mark = last;
    }

    /// RFC 9959 §3.5. The path drains at half of what it is known to take.
    fn retreat(&mut self, cc: &mut dyn Controller, mss: u64, next: u64) {
        if self.phase == ResumePhase::Unvalidated {
            self.mark = next.saturating_sub(1);
        }
        (self.saved, self.phase) = (None, ResumePhase::SafeRetreat);
        self.window = (self.pipe / 2).max(mss);
        cc.restart(&Start { window: self.window, ssthresh: self.window.max(2 * mss), mss });
    }

    /// RFC 9959 §4.1. What arrives in the time of the least round trip: a queue that fills makes a path no longer.
    fn observe(&mut self, ack: &AckSample) {
        self.round.0 += ack.octets;
        if !ack.round_ended {
            return;
        }
        let (octets, began) = std::mem::replace(&mut self.round, (0, Some(ack.at)));
        if let (Some(began), Some(least), false) = (began, ack.rtt_min, ack.is_recovering) {
            let share = u128::from(octets) * least.as_nanos() / ack.at.since(began).max(least).as_nanos().max(1);
            let window = u64::try_from(share).unwrap_or(u64::MAX);
            // A round in which there was less to send says nothing against an earlier one.
            if ack.is_cwnd_limited || self.observed.is_none_or(|(before, _)| window > before) {
                self.observed = Some((window, least));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{controller, start_of};
    use crate::config::{Config, Congestion, InitialWindow};

    const M: u64 = 1000;
    const RTT: Duration = Duration::from_millis(600);

    /// A connection with a first window of ten segments on a path that took 300 (the RFC's examples, in segments of 1000 octets).
    fn begin() -> (Resume, Box<dyn Controller>) {
        let mut config = Config::modern().congestion(Congestion::Vj);
        config.initial_window = InitialWindow::Segments(10);
        let start = start_of(&config, M);
        let saved = Saved { window: 300 * M, rtt: RTT, until: Instant::from_secs(100) };
        (Resume::new(ResumeConfig::default(), Some(saved), start), controller(&config, &start))
    }

    fn ack(at_ms: u64, segments: u64, in_flight: u64, delivered: u64, next: u64) -> AckSample {
        AckSample {
            at: Instant::from_millis(at_ms),
            octets: segments * M,
            mss: M,
            in_flight: in_flight * M,
            delivered: Some(delivered),
            next,
            rtt: Some(RTT),
            rtt_min: Some(RTT),
            is_cwnd_limited: true,
            ..AckSample::default()
        }
    }

    fn sent(at_ms: u64, in_flight: u64, number: u64) -> SentSample {
        SentSample { at: Instant::from_millis(at_ms), octets: M, mss: M, in_flight: in_flight * M, number }
    }

    /// Ten segments arrived, 29 are under way, packets 10 to 38: the jump is to 150.
    fn jumped() -> (Resume, Box<dyn Controller>) {
        let (mut resume, mut cc) = begin();
        resume.on_ack(&mut *cc, &ack(600, 10, 29, 9, 39));
        assert_eq!((resume.phase(), resume.over(cc.metrics()).window), (ResumePhase::Unvalidated, 150 * M));
        (resume, cc)
    }

    fn loss(next: u64) -> LossSample {
        LossSample { mss: M, next, ..LossSample::default() }
    }

    #[test]
    fn the_phases_of_the_example_with_a_loss() {
        let (mut resume, mut cc) = jumped();
        assert_eq!(resume.over(cc.metrics()).pace.map(Bitrate::as_bps), Some(150 * M * 8 * 10 / 6));
        for n in 0..121 {
            resume.on_sent(&mut *cc, &sent(601 + n, 30 + n, 39 + n));
        }
        assert_eq!((resume.phase(), resume.over(cc.metrics()).window), (ResumePhase::Validating, 150 * M));
        // The 29 of before and 34 of the jump arrive; the window grows as in slow start.
        resume.on_ack(&mut *cc, &ack(1200, 63, 87, 72, 160));
        assert_eq!((resume.phase(), resume.pipe, cc.window()), (ResumePhase::Validating, 92 * M, 213 * M));
        resume.on_loss(&mut *cc, &loss(190));
        assert_eq!((resume.phase(), resume.over(cc.metrics()).window), (ResumePhase::SafeRetreat, 46 * M));
        resume.on_ack(&mut *cc, &ack(1250, 50, 37, 122, 200));
        assert_eq!(resume.over(cc.metrics()).window, 46 * M, "it does not grow");
        resume.on_ack(&mut *cc, &ack(1300, 36, 1, 159, 201));
        assert_eq!((resume.phase(), cc.window(), cc.ssthresh()), (ResumePhase::Retreated, 46 * M, 89 * M));
        assert_eq!(resume.take_saved(Instant::from_secs(2)), None, "what was saved is gone");
    }

    #[test]
    fn it_ends_when_all_is_sent_acknowledged_or_late() {
        let phase = |event: &dyn Fn(&mut Resume, &mut dyn Controller)| {
            let (mut resume, mut cc) = jumped();
            resume.on_sent(&mut *cc, &sent(610, 60, 69));
            assert_eq!(resume.phase(), ResumePhase::Unvalidated);
            event(&mut resume, &mut *cc);
            (resume.phase(), resume.over(cc.metrics()).window / M)
        };
        assert_eq!(phase(&|r, cc| r.on_sent(cc, &sent(620, 150, 159))), (ResumePhase::Validating, 150));
        assert_eq!(phase(&|r, cc| r.on_ack(cc, &ack(900, 1, 59, 39, 70))), (ResumePhase::Validating, 59));
        assert_eq!(phase(&|r, cc| r.on_sent(cc, &sent(1201, 61, 70))), (ResumePhase::Validating, 61));
        // Less is under way than arrived.
        assert_eq!(phase(&|r, cc| r.on_ack(cc, &ack(1201, 29, 31, 38, 70))), (ResumePhase::RateLimited, 58));
    }

    #[test]
    fn a_loss_of_the_first_window_ends_it() {
        let (mut resume, mut cc) = begin();
        resume.on_loss(&mut *cc, &LossSample { rwnd: 1 << 20, ..loss(10) });
        resume.on_ack(&mut *cc, &ack(600, 10, 5, 9, 20));
        assert_eq!((resume.phase(), cc.window()), (ResumePhase::Congested, 6 * M));
        assert_eq!(resume.take_saved(Instant::ZERO).map(|saved| saved.window), Some(300 * M), "it was not tried");
    }

    #[test]
    fn a_timeout_ends_it_at_what_is_known() {
        let (mut resume, mut cc) = jumped();
        resume.on_timeout(&mut *cc, &loss(60));
        // PipeSize was 29 segments; half of half of them is where slow start ends.
        assert_eq!((resume.phase(), cc.window(), cc.ssthresh()), (ResumePhase::Retreated, M, 7250));
        assert_eq!((resume.over(cc.metrics()).pace, resume.take_saved(Instant::ZERO)), (None, None));
    }
}
