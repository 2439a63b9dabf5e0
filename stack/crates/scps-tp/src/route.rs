//! A route: what its connections share. Rate, MTU, availability and the meaning of losses (scps-tp §4.6, §5, §6.8).

use crate::config::{LossMeaning, RouteConfig};
use crate::rate::TokenBucket;
use scps_wire::tcp;
use scps_wire::{Bitrate, Duration, Instant};

/// How long a corruption report makes losses mean corruption (scps-tp §2.6 asks for a bounded time).
pub(crate) const CORRUPTION_REPORT_LIFETIME: Duration = Duration::from_secs(10);
/// Least MSS a route offers, and the least one a peer is believed. The reference offers no less (scps-tp §2.7), and it is what
/// IPv4's least MTU leaves. A full segment then holds 20 octets of data beside its timestamps, more than the 8 that Linux's floor of
/// 48 leaves beside full options (`TCP_MIN_SND_MSS`, CVE-2019-11479); FY97's segments of 50 octets need an MSS of 62.
pub const MSS_MIN: u16 = 32;

/// A route.
#[derive(Clone, Debug)]
pub struct Route {
    config: RouteConfig,
    bucket: Option<TokenBucket>,
    /// What answers to strangers may take of it.
    replies: Option<TokenBucket>,
    available: bool,
    corrupted_until: Instant,
    damaged_until: Instant,
}

impl Route {
    /// A route that is available, with a full first credit.
    pub fn new(config: RouteConfig, now: Instant) -> Self {
        let (bucket, replies, never) = (TokenBucket::new(&config, now), replies_of(&config, now), Instant::ZERO);
        Route { config, bucket, replies, available: true, corrupted_until: never, damaged_until: never }
    }

    /// Settings in force.
    pub fn config(&self) -> &RouteConfig {
        &self.config
    }

    /// Replaces the settings.
    pub fn set_config(&mut self, config: RouteConfig, now: Instant) {
        self.config = config;
        match (&mut self.bucket, config.rate) {
            (Some(bucket), Some(_)) => bucket.reconfigure(&config, now),
            (bucket, _) => *bucket = TokenBucket::new(&config, now),
        }
        self.replies = replies_of(&config, now);
    }

    /// Takes rate credit for a packet, or says when there will be enough.
    pub fn take(&mut self, octets: usize, now: Instant) -> Result<(), Instant> {
        let octets = octets + usize::from(self.config.framing);
        self.bucket.as_mut().map_or(Ok(()), |b| b.take(octets, now))
    }

    /// Takes rate credit for a packet that does not wait for it; false if it must not leave. `others_wait` is whether connections do.
    pub(crate) fn charge(&mut self, octets: usize, now: Instant, others_wait: bool) -> bool {
        let octets = octets + usize::from(self.config.framing);
        self.bucket.as_mut().is_none_or(|b| b.charge(octets, now, others_wait))
    }

    /// True if an answer of so many octets to a stranger has room in the share of such answers, of which it takes its part.
    pub(crate) fn has_room_for_reply(&mut self, octets: usize, now: Instant) -> bool {
        let octets = octets + usize::from(self.config.framing);
        self.replies.as_mut().is_none_or(|b| b.take(octets, now).is_ok())
    }

    /// Octets of rate credit, if there is a rate.
    pub fn credit(&self) -> Option<u64> {
        self.bucket.as_ref().map(TokenBucket::credit)
    }

    /// MSS to offer: MTU less both headers and overhead, even (scps-tp §2.7).
    pub fn mss(&self, network_header: u16) -> u16 {
        self.mss_within(self.config.mtu, network_header)
    }

    /// The same for a path that takes packets of `mtu`.
    pub(crate) fn mss_within(&self, mtu: u16, network_header: u16) -> u16 {
        let headers = network_header + tcp::HEADER_LEN as u16;
        (mtu.saturating_sub(headers).saturating_sub(self.config.overhead) & !1).max(MSS_MIN)
    }

    /// True unless the route was declared unavailable.
    pub fn is_available(&self) -> bool {
        self.available
    }

    pub(crate) fn set_available(&mut self, available: bool) {
        self.available = available;
    }

    /// The network reported corruption on this route (scps-np §6.4).
    pub fn on_corruption_experienced(&mut self, now: Instant) {
        self.corrupted_until = now + CORRUPTION_REPORT_LIFETIME;
    }

    /// A packet came damaged (scps-np §6.5): losses mean corruption, here and for the peers, who are told.
    pub fn on_damage(&mut self, now: Instant) {
        self.on_corruption_experienced(now);
        self.damaged_until = self.corrupted_until;
    }

    /// True if peers are to be told that packets come damaged.
    pub fn is_damaged(&self, now: Instant) -> bool {
        now < self.damaged_until
    }

    /// True if a loss here is taken for congestion now.
    pub fn loss_is_congestion(&self, now: Instant) -> bool {
        self.config.loss == LossMeaning::Congestion && now >= self.corrupted_until
    }
}

/// An eighth of the rate: whoever sends segments of no connection, or SYNs by the thousand, decides how many answers there are.
fn replies_of(config: &RouteConfig, now: Instant) -> Option<TokenBucket> {
    let rate = config.rate.map(|rate| Bitrate::from_bps((rate.as_bps() / 8).max(1)));
    TokenBucket::new(&RouteConfig { rate, ..*config }, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mss_is_mtu_less_headers_and_overhead_made_even() {
        let mss =
            |mtu, overhead| Route::new(RouteConfig { mtu, overhead, ..RouteConfig::default() }, Instant::ZERO).mss(20);
        assert_eq!((mss(1500, 0), mss(1500, 28), mss(1501, 0), mss(60, 0)), (1460, 1432, 1460, 32));
    }

    #[test]
    fn a_corruption_report_holds_for_a_bounded_time() {
        let mut r = Route::new(RouteConfig::default(), Instant::ZERO);
        assert!(r.loss_is_congestion(Instant::ZERO));
        r.on_corruption_experienced(Instant::ZERO);
        assert!(!r.loss_is_congestion(Instant::from_secs(9)));
        assert!(r.loss_is_congestion(Instant::from_secs(10)));
    }

    #[test]
    fn a_report_is_not_told_on_and_damage_is() {
        let mut r = Route::new(RouteConfig::default(), Instant::ZERO);
        r.on_corruption_experienced(Instant::ZERO);
        assert!(!r.is_damaged(Instant::ZERO));
        r.on_damage(Instant::from_secs(1));
        assert!(r.is_damaged(Instant::from_secs(10)) && !r.loss_is_congestion(Instant::from_secs(10)));
        assert!(!r.is_damaged(Instant::from_secs(11)) && r.loss_is_congestion(Instant::from_secs(11)));
    }
}
