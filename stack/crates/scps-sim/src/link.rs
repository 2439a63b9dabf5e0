//! One direction of a link: rate and queue, then delay, then errors.

use scps_types::{Bitrate, Duration, Instant, Rng, Seed};
use std::collections::{BTreeMap, VecDeque};

/// What a link does to packets.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Serialisation rate; `None` for instantly.
    pub rate: Option<Bitrate>,
    /// Octets that may wait; packets beyond are dropped at the tail.
    pub queue_bytes: usize,
    /// Propagation delay.
    pub delay: Duration,
    /// What happens on the way.
    pub impairment: Impairment,
}

/// Ways to lose, repeat and reorder packets, all decided by the link's seed.
#[derive(Clone, Debug, Default)]
pub struct Impairment {
    /// Independent bit errors, probability per bit: a packet with one is lost.
    pub ber: f64,
    /// Packets lost by their number, counted from 0.
    pub drop_list: Vec<u64>,
    /// Packets lost while the clock is in one of these intervals.
    pub outages: Vec<(Instant, Instant)>,
    /// Probability per packet of arriving twice, 0..=1.
    pub duplicate: f64,
    /// Probability per packet of being held back, 0..=1.
    pub reorder: f64,
    /// How much longer a held-back packet takes.
    pub reorder_delay: Duration,
    /// Probability per packet of being lost whatever its length, 0..=1.
    pub loss: f64,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig { rate: None, queue_bytes: 1 << 30, delay: Duration::ZERO, impairment: Impairment::default() }
    }
}

/// What became of packets: sent = delivered + queue + errors, duplicates apart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkStats {
    /// Offered.
    pub sent: u64,
    /// Arrived, duplicates included.
    pub delivered: u64,
    /// Lost to a full queue.
    pub queue: u64,
    /// Lost to errors, drop list and outages.
    pub corrupt: u64,
    /// Octets offered.
    pub octets: u64,
    /// Most octets that waited.
    pub queue_bytes_max: u64,
}

/// A link in operation.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    rng: Rng,
    free_at: Instant,
    waiting: VecDeque<(Instant, usize)>,
    waiting_octets: usize,
    arrivals: BTreeMap<(Instant, u64), Vec<u8>>,
    serial: u64,
    stats: LinkStats,
}

impl Link {
    /// An empty link; `name` picks its random stream.
    pub fn new(config: LinkConfig, seed: Seed, name: &str) -> Self {
        Link {
            config,
            rng: seed.stream(name),
            free_at: Instant::ZERO,
            waiting: VecDeque::new(),
            waiting_octets: 0,
            arrivals: BTreeMap::new(),
            serial: 0,
            stats: LinkStats::default(),
        }
    }

    /// Counters.
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// Changes what the link does from now on.
    pub fn config_mut(&mut self) -> &mut LinkConfig {
        &mut self.config
    }

    /// When what was offered will have left.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Offers a packet.
    pub fn send(&mut self, now: Instant, packet: &[u8]) {
        let number = self.stats.sent;
        self.stats.sent += 1;
        self.stats.octets += packet.len() as u64;
        while self.waiting.front().is_some_and(|w| w.0 <= now) {
            self.waiting_octets -= self.waiting.pop_front().map_or(0, |w| w.1);
        }
        if self.waiting_octets + packet.len() > self.config.queue_bytes {
            self.stats.queue += 1;
            return;
        }
        let serialisation = self.config.rate.map_or(Duration::ZERO, |r| r.time_for(packet.len() as u64));
        let left_at = self.free_at.max(now) + serialisation;
        self.free_at = left_at;
        self.waiting.push_back((left_at, packet.len()));
        self.waiting_octets += packet.len();
        self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(self.waiting_octets as u64);
        // The random numbers are drawn whatever happens, so one packet's fate does not shift the next one's.
        let draws = [(); 4].map(|()| self.rng.unit_f64());
        let i = &self.config.impairment;
        let survives = (1.0 - i.ber).powi(packet.len() as i32 * 8) * (1.0 - i.loss);
        let is_out = i.outages.iter().any(|(from, to)| (*from..*to).contains(&left_at));
        if draws[0] >= survives || is_out || i.drop_list.contains(&number) {
            self.stats.corrupt += 1;
            return;
        }
        let extra = if draws[1] < i.reorder { i.reorder_delay } else { Duration::ZERO };
        let copies = if draws[2] < i.duplicate { 2 } else { 1 };
        for _ in 0..copies {
            self.serial += 1;
            self.arrivals.insert((left_at + self.config.delay + extra, self.serial), packet.to_vec());
        }
    }

    /// When the next packet arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.arrivals.first_key_value().map(|(k, _)| k.0)
    }

    /// The next packet, if it has arrived.
    pub fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.next_arrival()? > now {
            return None;
        }
        self.stats.delivered += 1;
        self.arrivals.pop_first().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_delay_and_propagation_add_up() {
        let config = LinkConfig {
            rate: Some(Bitrate::from_bps(8000)),
            delay: Duration::from_millis(250),
            ..LinkConfig::default()
        };
        let mut link = Link::new(config, Seed::from_u64(1), "l");
        link.send(Instant::ZERO, &[0; 100]);
        link.send(Instant::ZERO, &[0; 100]);
        // 100 octets at 8000 bit/s: 100 ms each.
        assert_eq!(link.next_arrival(), Some(Instant::from_millis(350)));
        assert!(link.receive(Instant::from_millis(349)).is_none());
        assert!(link.receive(Instant::from_millis(350)).is_some());
        assert_eq!(link.next_arrival(), Some(Instant::from_millis(450)));
    }

    #[test]
    fn a_full_queue_drops_at_the_tail() {
        let config = LinkConfig { rate: Some(Bitrate::from_bps(8000)), queue_bytes: 250, ..LinkConfig::default() };
        let mut link = Link::new(config, Seed::from_u64(1), "l");
        for _ in 0..3 {
            link.send(Instant::ZERO, &[0; 100]);
        }
        assert_eq!((link.stats().sent, link.stats().queue), (3, 1));
    }

    #[test]
    fn loss_follows_length_and_error_rate() {
        let config =
            LinkConfig { impairment: Impairment { ber: 1e-5, ..Impairment::default() }, ..LinkConfig::default() };
        let mut link = Link::new(config, Seed::from_u64(3), "l");
        for _ in 0..10_000 {
            link.send(Instant::ZERO, &[0; 1456]);
        }
        // 1-(1-1e-5)^11648 = 0.1100; 10,000 trials: sigma 0.0031, so within 4 sigma.
        let lost = link.stats().corrupt as f64 / 1e4;
        assert!((0.097..0.123).contains(&lost), "{lost}");
    }
}
