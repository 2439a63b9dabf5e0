//! Round-trip time estimation (RFC 6298 §2; scps-tp §6.3).

use scps_wire::Duration;

/// Smoothed round-trip time, its variation and its minimum.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    min: Option<Duration>,
}

impl RttEstimator {
    /// Takes a sample. None is zero: a round trip of nothing is shorter than the clock can tell, and whoever asks whether something
    /// left less than the least round trip ago must be able to hear yes.
    pub fn on_sample(&mut self, rtt: Duration) {
        let rtt = rtt.max(Duration::from_nanos(1));
        self.min = Some(self.min.map_or(rtt, |m| m.min(rtt)));
        match self.srtt {
            None => {
                // RFC 6298 (2.2): SRTT = R, RTTVAR = R/2.
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                // RFC 6298 (2.3): beta = 1/4 first, then alpha = 1/8.
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
    }

    /// Starts over from the next sample, keeping the minimum (scps-tp §6.3: after four backoffs).
    pub fn restart(&mut self) {
        self.srtt = None;
    }

    /// Forgets the minimum: the path may have changed (scps-tp §6.8).
    pub fn forget_min(&mut self) {
        self.min = None;
    }

    /// Smoothed value, once there is a sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Mean deviation.
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// The least sample.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn first_sample_sets_half_as_variation() {
        let mut e = RttEstimator::default();
        e.on_sample(MS(400));
        assert_eq!((e.srtt(), e.rttvar()), (Some(MS(400)), MS(200)));
    }

    #[test]
    fn later_samples_use_the_gains_of_rfc_6298() {
        let mut e = RttEstimator::default();
        e.on_sample(MS(400));
        e.on_sample(MS(480));
        // rttvar = (3*200 + |400-480|)/4 = 170; srtt = (7*400 + 480)/8 = 410.
        assert_eq!((e.srtt(), e.rttvar(), e.min()), (Some(MS(410)), MS(170), Some(MS(400))));
    }
}
