//! Rate control: a token bucket per route, shared by all its connections (scps-tp §5).
//!
//! Every octet of an IP packet costs an octet of credit: headers, acknowledgements and retransmissions alike.

use crate::config::RouteConfig;
use scps_types::{Bitrate, Duration, Instant};

/// Credit is kept in bit-nanoseconds per second: rate times nanoseconds adds exactly, at any rate.
const UNITS_PER_OCTET: u64 = 8_000_000_000;

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate: Bitrate,
    depth: u64,
    credit: u64,
    /// What left without credit; credit is given again when it is paid.
    debt: u64,
    tick: Duration,
    refilled_at: Instant,
}

impl TokenBucket {
    /// The bucket of a route, `None` if the route has no rate. Depth and first credit: scps-tp §5.
    pub fn new(config: &RouteConfig, now: Instant) -> Option<Self> {
        let rate = config.rate?;
        let per_tick = rate.bytes_in(config.tick.max(Duration::from_millis(1)));
        let k = u64::from(config.bucket_factor.max(1));
        let packets = k * u64::from(config.mtu);
        let units = |octets: u64| octets.saturating_mul(UNITS_PER_OCTET).min(u64::MAX / 2);
        let depth = units((k * per_tick).max(packets));
        Some(TokenBucket {
            rate,
            depth,
            credit: units(packets.max(per_tick)).min(depth),
            debt: 0,
            tick: config.tick,
            refilled_at: quantise(now, config.tick),
        })
    }

    /// Changes rate and depth, keeping the credit up to the new depth.
    pub fn reconfigure(&mut self, config: &RouteConfig, now: Instant) {
        self.refill(now);
        if let Some(new) = TokenBucket::new(config, now) {
            *self = TokenBucket { credit: self.credit.min(new.depth), debt: self.debt.min(new.depth), ..new };
        }
    }

    fn refill(&mut self, now: Instant) {
        let now = quantise(now, self.tick);
        let elapsed = now.since(self.refilled_at).as_nanos();
        let gained = u128::from(self.rate.as_bps()) * elapsed;
        let paid = gained.min(u128::from(self.debt));
        self.debt -= paid as u64;
        let gained = gained - paid;
        self.credit = u64::try_from(u128::from(self.credit) + gained).unwrap_or(u64::MAX).min(self.depth);
        self.refilled_at = self.refilled_at.max(now);
    }

    /// Takes the credit for a packet of `octets`, or says when there will be enough.
    pub fn take(&mut self, octets: usize, now: Instant) -> Result<(), Instant> {
        self.refill(now);
        // A packet longer than the bucket is deep waits for a full bucket, not forever.
        let need = (octets as u64).saturating_mul(UNITS_PER_OCTET).min(self.depth);
        if self.credit >= need {
            self.credit -= need;
            return Ok(());
        }
        let wait = (need - self.credit + self.debt).div_ceil(self.rate.as_bps());
        let at = self.refilled_at + Duration::from_nanos(wait);
        Err(round_up(at, self.tick))
    }

    /// Takes the credit for a packet that does not wait; what is not there is owed. False, and nothing taken, if a bucket full is
    /// owed already.
    pub fn charge(&mut self, octets: usize, now: Instant) -> bool {
        self.refill(now);
        let need = (octets as u64).saturating_mul(UNITS_PER_OCTET).min(self.depth);
        if self.debt + need > self.depth {
            return false;
        }
        let there = need.min(self.credit);
        self.credit -= there;
        self.debt += need - there;
        true
    }

    /// Octets that may leave now.
    pub fn credit(&self) -> u64 {
        self.credit / UNITS_PER_OCTET
    }

    /// Octets the bucket can hold.
    #[cfg(test)]
    fn depth(&self) -> u64 {
        self.depth / UNITS_PER_OCTET
    }
}

fn quantise(at: Instant, tick: Duration) -> Instant {
    let tick = tick.as_nanos() as u64;
    // A tick of zero gives credit continuously.
    at.as_nanos().checked_div(tick).map_or(at, |ticks| Instant::from_nanos(ticks * tick))
}

fn round_up(at: Instant, tick: Duration) -> Instant {
    let down = quantise(at, tick);
    if down == at {
        at
    } else {
        down + tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(bps: u64, tick_ms: u64) -> TokenBucket {
        let config = RouteConfig {
            rate: Some(Bitrate::from_bps(bps)),
            tick: Duration::from_millis(tick_ms),
            ..RouteConfig::default()
        };
        TokenBucket::new(&config, Instant::ZERO).unwrap()
    }

    /// Sends packets of `len` for `secs` and returns the octets that left.
    fn drain(b: &mut TokenBucket, len: usize, secs: u64) -> u64 {
        let mut now = Instant::ZERO;
        let mut sent = 0;
        while now < Instant::from_secs(secs) {
            match b.take(len, now) {
                Ok(()) => sent += len as u64,
                Err(at) => {
                    assert!(at > now, "waiting must make progress");
                    now = at;
                }
            }
        }
        sent
    }

    #[test]
    fn fy97_rate_gives_2500_octets_per_tick() {
        // scps-tp §5: 2,000,000 bit/s is 2500 octets every 10 ms; 10 s is 1000 ticks, plus the bucket's depth at most.
        let mut b = bucket(2_000_000, 10);
        let sent = drain(&mut b, 1456, 10);
        assert!((2_500_000..=2_500_000 + b.depth()).contains(&sent), "{sent}");
    }

    #[test]
    fn slow_rates_accumulate_fractions() {
        // 9600 bit/s is 12 octets per tick; 60 s is 72,000 octets (scps-tp §14 item 52: within 2 %).
        let mut b = bucket(9600, 10);
        let sent = drain(&mut b, 576, 60) - 7500;
        assert!((70_560..=73_440).contains(&sent), "{sent}");
    }

    #[test]
    fn depth_is_five_packets_or_five_ticks() {
        // scps-tp §5: max(5*2500, 5*1500) = 12,500; at 9600 bit/s max(60, 7500) = 7500.
        assert_eq!(bucket(2_000_000, 10).depth(), 12_500);
        assert_eq!(bucket(9600, 10).depth(), 7500);
    }

    #[test]
    fn a_continuous_bucket_needs_no_tick() {
        let mut b = bucket(8000, 0);
        while b.take(100, Instant::ZERO).is_ok() {}
        // 100 octets at 8000 bit/s take 100 ms.
        assert_eq!(b.take(100, Instant::ZERO), Err(Instant::from_millis(100)));
    }

    #[test]
    fn a_packet_deeper_than_the_bucket_waits_for_a_full_one() {
        let mut b = bucket(9600, 10);
        assert!(b.take(60_000, Instant::ZERO).is_ok());
        assert!(b.take(60_000, Instant::ZERO).is_err());
    }
}
