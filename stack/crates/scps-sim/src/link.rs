//! A link: in each direction rate and queue, then delay, then errors.

use crate::node::Node;
use scps_channel::{ErrorModel, ErrorSource};
use scps_wire::{Bitrate, Duration, Instant, Rng, Seed};
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
    /// Bit errors: a packet with one is lost. Read once, when the link is made; drawn for ever, without a period.
    pub errors: Option<ErrorModel>,
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
    /// Octets of the longest packet that passes, where longer ones vanish.
    pub longest: Option<usize>,
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

/// One direction of a link in operation.
#[derive(Clone, Debug)]
pub struct Way {
    config: LinkConfig,
    rng: Rng,
    errors: ErrorSource,
    free_at: Instant,
    waiting: VecDeque<(Instant, usize)>,
    waiting_octets: usize,
    arrivals: BTreeMap<(Instant, u64), Vec<u8>>,
    serial: u64,
    stats: LinkStats,
}

impl Way {
    /// An empty direction; `name` picks its random streams.
    ///
    /// # Panics
    /// The error model asks for what cannot be.
    #[allow(clippy::expect_used, reason = "whoever simulates wrote the model: there is no user to tell")]
    pub fn new(config: LinkConfig, seed: Seed, name: &str) -> Self {
        let errors = match config.impairment.errors {
            None => ErrorSource::none(),
            Some(model) => ErrorSource::from_model(model, 0, seed, &format!("{name} errors")).expect("an error model"),
        };
        Way {
            config,
            rng: seed.stream(name),
            errors,
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

    /// Changes what it does from now on.
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
        let is_hit = self.errors.hits(packet.len());
        let is_long = i.longest.is_some_and(|longest| packet.len() > longest);
        let is_out = i.outages.iter().any(|(from, to)| (*from..*to).contains(&left_at));
        if is_hit || draws[0] >= 1.0 - i.loss || is_out || is_long || i.drop_list.contains(&number) {
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

/// A link with two ports: what comes in at one leaves by the other.
#[derive(Clone, Debug)]
pub struct Link {
    /// From port 0 to port 1, and back.
    pub ways: [Way; 2],
}

impl Link {
    /// An empty link; the names pick the random streams of its directions.
    pub fn new([there, back]: [LinkConfig; 2], seed: Seed, names: [&str; 2]) -> Self {
        Link { ways: [Way::new(there, seed, names[0]), Way::new(back, seed, names[1])] }
    }
}

impl Node for Link {
    fn handle(&mut self, now: Instant, port: usize, packet: &[u8]) {
        self.ways[port].send(now, packet);
    }

    fn poll_transmit(&mut self, now: Instant, port: usize, _free_at: Instant, out: &mut Vec<u8>) -> bool {
        self.ways[1 - port].receive(now).is_some_and(|packet| {
            out.extend(packet);
            true
        })
    }

    fn poll_timeout(&self, _now: Instant) -> Option<Instant> {
        self.ways.iter().filter_map(Way::next_arrival).min()
    }

    fn free_at(&self, port: usize) -> Option<Instant> {
        Some(self.ways[port].free_at())
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
        let mut way = Way::new(config, Seed::from_u64(1), "l");
        way.send(Instant::ZERO, &[0; 100]);
        way.send(Instant::ZERO, &[0; 100]);
        // 100 octets at 8000 bit/s: 100 ms each.
        assert_eq!(way.next_arrival(), Some(Instant::from_millis(350)));
        assert!(way.receive(Instant::from_millis(349)).is_none());
        assert!(way.receive(Instant::from_millis(350)).is_some());
        assert_eq!(way.next_arrival(), Some(Instant::from_millis(450)));
    }

    #[test]
    fn a_full_queue_drops_at_the_tail() {
        let config = LinkConfig { rate: Some(Bitrate::from_bps(8000)), queue_bytes: 250, ..LinkConfig::default() };
        let mut way = Way::new(config, Seed::from_u64(1), "l");
        for _ in 0..3 {
            way.send(Instant::ZERO, &[0; 100]);
        }
        assert_eq!((way.stats().sent, way.stats().queue), (3, 1));
    }

    /// The share of 10,000 packets of 1456 octets that arrives.
    fn arriving(model: ErrorModel) -> f64 {
        let impairment = Impairment { errors: Some(model), ..Impairment::default() };
        let mut way = Way::new(LinkConfig { impairment, ..LinkConfig::default() }, Seed::from_u64(3), "l");
        for _ in 0..10_000 {
            way.send(Instant::ZERO, &[0; 1456]);
        }
        1.0 - way.stats().corrupt as f64 / 1e4
    }

    #[test]
    fn loss_follows_length_and_error_rate() {
        // (1-1e-5)^11648 = 0.8900; 10,000 trials: sigma 0.0031, so within 4 sigma.
        let share = arriving(ErrorModel::Independent { ber: 1e-5 });
        assert!((0.877..0.903).contains(&share), "{share}");
    }

    #[test]
    fn clusters_cost_fewer_packets_than_the_same_errors_apart() {
        // An event of 10 errors every 1e6 bits: a packet of 11648 bits and one event of about 9 * 10 bits, met with
        // 1-exp(-(11648+90)/1e6) = 0.01167; sigma 0.0011.
        let share = arriving(ErrorModel::Clustered { ber: 1e-5, errors_per_burst: 10.0, gap_in_burst: 10.0 });
        assert!((0.9840..0.9926).contains(&share), "{share}");
    }

    #[test]
    fn fades_cost_the_packets_that_they_touch() {
        // Bad for 1e5 bits of every 1e6 on average, and every packet that touches a fade is lost: the good state holds
        // 0.9 of the bits, and a packet begun in it ends in it with exp(-11648/9e5) = 0.9871: 0.8884. Some 105 fades pass,
        // so sigma is about 0.1 * sqrt(2/105) = 0.014.
        let share = arriving(ErrorModel::GilbertElliott {
            p_good_bad: 1.0 / 9e5,
            p_bad_good: 1e-5,
            ber_good: 0.0,
            ber_bad: 0.5,
        });
        assert!((0.832..0.944).contains(&share), "{share}");
    }
}
