//! The retransmission timeout: value, bounds, backoff (scps-tp §6.3).

use crate::config::RtoConfig;
use crate::rtt::RttEstimator;
use scps_wire::Duration;

/// Greatest backoff exponent (scps-tp §6.3).
const BACKOFF_MAX: u32 = 12;
/// The least limit of the value that RFC 6298 (2.5) allows.
const MAX_LEAST: Duration = Duration::from_secs(60);
/// Backoffs after which the next sample restarts the estimator (scps-tp §6.3).
pub const BACKOFF_RESTARTS_RTT: u32 = 4;

/// Computes RTO values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rto {
    config: RtoConfig,
    initial: Duration,
    backoff: u32,
}

impl Rto {
    /// An RTO that starts at the route's initial value.
    pub fn new(config: RtoConfig, initial: Duration) -> Self {
        Rto { config, initial, backoff: 0 }
    }

    /// The value in force.
    pub fn value(&self, rtt: &RttEstimator) -> Duration {
        let base = match rtt.srtt() {
            None => self.initial,
            Some(srtt) => srtt + (rtt.rttvar() * 4).max(self.config.variance_floor),
        };
        // Over minutes of light a limit is in the way of the round trip itself: whatever left would be sent again before it could be
        // acknowledged. A limit that the RFC does not allow was set by somebody who wants to see that.
        let max = if self.config.max < MAX_LEAST { self.config.max } else { self.config.max.max(base) };
        base.max(self.config.min).saturating_mul(1 << self.backoff).min(max)
    }

    /// Doubles the value.
    pub fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }

    /// A valid sample ends the backoff; returns true if there were so many that the estimator should start over.
    pub fn on_sample(&mut self) -> bool {
        let restart = self.backoff >= BACKOFF_RESTARTS_RTT;
        self.backoff = 0;
        restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn initial_value_doubles_up_to_the_maximum() {
        let mut rto = Rto::new(Config::default().rto, Duration::from_secs(6));
        let rtt = RttEstimator::default();
        let mut values = Vec::new();
        for _ in 0..6 {
            values.push(rto.value(&rtt).as_secs());
            rto.on_timeout();
        }
        assert_eq!(values, [6, 12, 24, 48, 64, 64]);
    }

    #[test]
    fn a_limit_is_no_lower_than_the_round_trip_unless_it_is_meant_to_be() {
        let far = Duration::from_secs(1200);
        let mut rtt = RttEstimator::default();
        let mut rto = Rto::new(Config::default().rto, far * 3);
        assert_eq!(rto.value(&rtt), far * 3, "before a sample too");
        (0..100).for_each(|_| rtt.on_sample(far));
        assert_eq!(rto.value(&rtt).as_millis(), 1_200_500);
        (0..5).for_each(|_| rto.on_timeout());
        assert_eq!(rto.value(&rtt).as_millis(), 1_200_500, "which is rare enough");
        let limited = RtoConfig { max: Duration::from_secs(9), ..Config::default().rto };
        assert_eq!(Rto::new(limited, far).value(&rtt), limited.max);
    }

    #[test]
    fn variance_term_is_at_least_half_a_second() {
        let rto = Rto::new(Config::default().rto, Duration::from_secs(6));
        let mut rtt = RttEstimator::default();
        for _ in 0..100 {
            rtt.on_sample(Duration::from_millis(500));
        }
        assert_eq!(rto.value(&rtt).as_millis(), 1000);
    }

    #[test]
    fn never_below_the_minimum() {
        let mut config = Config::default().rto;
        config.variance_floor = Duration::ZERO;
        let rto = Rto::new(config, Duration::from_secs(6));
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Duration::from_micros(10));
        assert_eq!(rto.value(&rtt), config.min);
    }
}
