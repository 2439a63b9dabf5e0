//! Rate control: a token bucket per route, shared by all its connections (scps-tp §5).
//!
//! Every octet of an IP packet costs an octet of credit: headers, acknowledgements and retransmissions alike.
//!
//! What does not wait for credit (packets of others that pass, answers to strangers) leaves on debt. While there is a debt, half of what
//! the bucket gains pays it, and half is credit for connections, so that neither starves the other; what connections do not take
//! pays the debt as well.

use crate::config::RouteConfig;
use scps_wire::{Bitrate, Duration, Instant};

/// Credit is kept in bit-nanoseconds per second: rate times nanoseconds adds exactly, at any rate.
const UNITS_PER_OCTET: u64 = 8_000_000_000;

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate: Bitrate,
    depth: u64,
    credit: u64,
    /// What left without credit, and is not paid yet.
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
        let gained = u64::try_from(u128::from(self.rate.as_bps()) * elapsed).unwrap_or(u64::MAX);
        let paid = (gained / 2).min(self.debt);
        let credit = self.credit.saturating_add(gained - paid);
        // What the bucket has no room for pays what is left of the debt.
        let rest = credit.saturating_sub(self.depth);
        self.credit = credit.min(self.depth);
        self.debt = (self.debt - paid).saturating_sub(rest);
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
        let short = need - self.credit;
        let wait = (short + short.min(self.debt)).div_ceil(self.rate.as_bps());
        let at = self.refilled_at + Duration::from_nanos(wait);
        Err(round_up(at, self.tick))
    }

    /// Takes the credit for a packet that does not wait; what is not there is owed, and if connections wait for credit, all of it. False,
    /// and nothing taken, if a bucket full would be owed.
    pub fn charge(&mut self, octets: usize, now: Instant, others_wait: bool) -> bool {
        self.refill(now);
        let need = (octets as u64).saturating_mul(UNITS_PER_OCTET).min(self.depth);
        let there = if others_wait { 0 } else { need.min(self.credit) };
        if self.debt + need - there > self.depth {
            return false;
        }
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

    /// Packets of others as fast as they come, and connections that always have something to send.
    #[test]
    fn who_waits_and_who_does_not_share_alike() {
        for (offered_bps, expected) in [(0, 100), (300_000, 70), (1_000_000, 50), (20_000_000, 50)] {
            let mut b = bucket(1_000_000, 10);
            let (mut sent, mut offered, mut passed, mut next) = (0, 0, 0, Instant::ZERO);
            for ms in 0..100_000u64 {
                let now = Instant::from_millis(ms);
                while offered * 8000 < ms * offered_bps {
                    offered += 500;
                    passed += u64::from(b.charge(500, now, true)) * 500;
                }
                while next <= now {
                    match b.take(1500, now) {
                        Ok(()) => sent += 1500,
                        Err(at) => next = at,
                    }
                }
            }
            // 100 s of 1 Mbit/s are 12.5 MB.
            let share = sent * 100 / 12_500_000;
            assert!((expected - 1..=expected + 1).contains(&share), "{offered_bps}: {share} %");
            assert!(
                offered_bps == 0 || ((99 - expected) * 125_000..(102 - expected) * 125_000).contains(&passed),
                "{passed}"
            );
        }
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
