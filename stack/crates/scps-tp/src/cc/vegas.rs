//! Mode 2: Vegas with the two slow-start variants (scps-tp §4.4; Brakmo and Peterson 1995 §3).
//!
//! Deviation: the reference's decrease for large windows falls through into one more segment; this one does not. Base RTT comes from the
//! connection's valid samples only.

use super::{AckSample, Controller, LossSample, Start};
use crate::config::{VegasConfig, VegasDecrease, VegasSlowStart};
use scps_wire::Duration;

/// Largest window (scps-tp §4.4).
const CWND_MAX: u64 = (1 << 31) - 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Doubling; `measure` is true in the round trip of variant 1 that only measures.
    SlowStart {
        measure: bool,
    },
    Linear,
}

/// Variant 1 measures a window before it doubles it: the first flights are 1, 1, 2, 2 (FY97 Fig A-5).
fn slow_start(config: &VegasConfig) -> Phase {
    Phase::SlowStart { measure: config.slow_start == VegasSlowStart::EveryOtherRtt }
}

/// Window, base RTT and phase.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    config: VegasConfig,
    cwnd: u64,
    ssthresh: u64,
    phase: Phase,
    base_rtt: Option<Duration>,
    round_rtt: Option<Duration>,
    was_limited: bool,
}

impl Vegas {
    pub(super) fn new(config: VegasConfig, start: &Start) -> Self {
        debug_assert!(start.mss > 0);
        Vegas {
            config,
            cwnd: start.window,
            ssthresh: start.ssthresh,
            phase: slow_start(&config),
            base_rtt: None,
            round_rtt: None,
            was_limited: false,
        }
    }

    /// One adjustment per round trip (scps-tp §4.4).
    fn on_round(&mut self, base: Duration, current: Duration, m: u64) {
        // diff = n - n*base/current segments queued, in 1/256 of a segment to keep integers.
        let n = u128::from(self.cwnd) * 256 / u128::from(m);
        let current_ns = current.as_nanos().max(1);
        let diff = n * (current_ns - base.as_nanos().min(current_ns)) / current_ns;
        let segs = |s: u32| u128::from(s) * 256;
        match self.phase {
            Phase::SlowStart { measure } => {
                if diff > segs(self.config.gamma_segs) || self.cwnd >= self.ssthresh {
                    self.phase = Phase::Linear;
                } else if measure {
                    self.phase = Phase::SlowStart { measure: false };
                } else if self.was_limited {
                    self.cwnd *= 2;
                    self.phase = slow_start(&self.config);
                }
            }
            Phase::Linear => {
                if diff < segs(self.config.alpha_segs) {
                    if self.was_limited {
                        self.cwnd += m;
                    }
                } else if diff > segs(self.config.beta_segs) {
                    let less = match self.config.decrease {
                        VegasDecrease::Segment => m,
                        // A segment at least; of what is counted in 1/256 of a segment, half (scps-tp §4.4).
                        VegasDecrease::HalfExcess => {
                            let excess = u64::try_from(diff - segs(self.config.beta_segs)).unwrap_or(u64::MAX);
                            (excess.saturating_mul(m) / 512).min(self.cwnd / 2).max(m)
                        }
                    };
                    self.cwnd = self.cwnd.saturating_sub(less);
                    if self.cwnd <= m {
                        // W <= M: back to slow start with W = M (scps-tp §4.4).
                        self.cwnd = m;
                        self.phase = slow_start(&self.config);
                    }
                }
            }
        }
        self.cwnd = self.cwnd.min(CWND_MAX);
    }
}

impl Controller for Vegas {
    fn window(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn on_path_change(&mut self) {
        self.base_rtt = None;
    }

    fn on_ack(&mut self, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |b| b.min(rtt)));
            // The least sample of the round: a delayed acknowledgement is not a queue.
            self.round_rtt = Some(self.round_rtt.map_or(rtt, |r| r.min(rtt)));
        }
        self.was_limited |= sample.is_cwnd_limited;
        if sample.round_ended {
            if let (Some(base), Some(current)) = (self.base_rtt, self.round_rtt) {
                self.on_round(base, current, sample.mss);
                self.round_rtt = None;
                self.was_limited = false;
            }
        }
    }

    fn on_loss(&mut self, &LossSample { is_congestion, mss, .. }: &LossSample) {
        if !is_congestion {
            return;
        }
        // Halved once, into the linear phase (scps-tp §4.4; the reference's second halving is an error).
        self.cwnd = (self.cwnd / 2).max(mss);
        self.ssthresh = self.cwnd;
        self.phase = Phase::Linear;
    }

    fn on_timeout(&mut self, &LossSample { is_congestion, mss, .. }: &LossSample) {
        if !is_congestion {
            return;
        }
        self.ssthresh = (self.cwnd / 2).max(2 * mss);
        self.cwnd = mss;
        self.phase = slow_start(&self.config);
    }

    fn restart(&mut self, start: &Start) {
        (self.cwnd, self.ssthresh) = (start.window, start.ssthresh);
        self.phase = slow_start(&self.config);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1000;

    fn begin(config: VegasConfig, window: u64, ssthresh: u64) -> Vegas {
        Vegas::new(config, &Start { window, ssthresh, mss: M })
    }

    fn vegas(slow_start: VegasSlowStart) -> Vegas {
        begin(VegasConfig { slow_start, ..VegasConfig::default() }, 2 * M, 1 << 30)
    }

    fn round(c: &mut Vegas, ms: u64) -> u64 {
        c.on_ack(&AckSample {
            octets: M,
            mss: M,
            rtt: Some(Duration::from_millis(ms)),
            round_ended: true,
            is_cwnd_limited: true,
            ..AckSample::default()
        });
        c.window() / M
    }

    #[test]
    fn setting_0_doubles_every_round_trip() {
        let mut c = vegas(VegasSlowStart::EveryRtt);
        assert_eq!([(); 4].map(|()| round(&mut c, 500)), [4, 8, 16, 32]);
    }

    #[test]
    fn setting_1_doubles_every_other_round_trip() {
        let mut c = vegas(VegasSlowStart::EveryOtherRtt);
        assert_eq!([(); 5].map(|()| round(&mut c, 500)), [2, 4, 4, 8, 8]);
    }

    #[test]
    fn slow_start_ends_above_gamma_and_settles_between_alpha_and_beta() {
        let mut c = vegas(VegasSlowStart::EveryRtt);
        assert_eq!([(); 3].map(|()| round(&mut c, 500)), [4, 8, 16]);
        // n = 16, diff = 16*(700-500)/700 = 4.57 > gamma 4: slow start ends, window unchanged.
        assert_eq!(round(&mut c, 700), 16);
        // diff = 16*(520-500)/520 = 0.6 < alpha 3: one more segment.
        assert_eq!(round(&mut c, 520), 17);
        // diff = 17*(660-500)/660 = 4.1, between 3 and 5: unchanged.
        assert_eq!(round(&mut c, 660), 17);
        // diff = 17*(800-500)/800 = 6.4 > beta 5: one less.
        assert_eq!(round(&mut c, 800), 16);
    }

    #[test]
    fn far_above_beta_half_of_the_excess_goes_or_one_segment() {
        let settled = |decrease| {
            let config = VegasConfig { decrease, ..VegasConfig::default() };
            let mut c = begin(config, 64 * M, 64 * M);
            // At the threshold slow start ends, window unchanged. Then diff = 64*(1000-500)/1000 = 32 > beta 5.
            assert_eq!(round(&mut c, 500), 64);
            round(&mut c, 1000)
        };
        assert_eq!(settled(VegasDecrease::Segment), 63);
        assert_eq!(settled(VegasDecrease::HalfExcess), 50, "(32 - 5) / 2 = 13.5 segments less");
    }

    #[test]
    fn congestion_halves_once_and_timeout_restarts() {
        let mut c = vegas(VegasSlowStart::EveryRtt);
        for _ in 0..3 {
            round(&mut c, 500);
        }
        let loss = LossSample { is_congestion: true, mss: M, ..LossSample::default() };
        c.on_loss(&loss);
        assert_eq!(c.window(), 8 * M);
        c.on_timeout(&loss);
        assert_eq!((c.window(), c.ssthresh()), (M, 4 * M));
    }
}
