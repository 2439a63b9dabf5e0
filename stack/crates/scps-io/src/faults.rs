//! Faults around any device, in both directions: packets lost, damaged, sent twice and out of order. The same seed and the same
//! packets meet the same faults.

use crate::device::{delegate, packets_of, Device, Take};
use scps_tp::{SegmentBatch, Transmit, Trust};
use scps_wire::{Rng, Seed};
use std::io;
use std::net::SocketAddr;

/// How often packets meet each fault: probabilities per packet, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FaultConfig {
    /// It is lost.
    pub loss: f64,
    /// One of its bits is changed.
    pub corrupt: f64,
    /// It comes twice.
    pub duplicate: f64,
    /// It comes behind the packet after it. What comes last on a silent link is kept until another follows.
    pub reorder: f64,
}

/// Packets by what happened to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultStats {
    /// Lost.
    pub lost: u64,
    /// Changed in one bit.
    pub corrupted: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Overtaken by the next one.
    pub reordered: u64,
}

/// One direction. A packet has a note of type `T` with it: to whom it goes, or how it came.
#[derive(Debug)]
struct Way<T> {
    config: FaultConfig,
    rng: Rng,
    /// A packet that the next one overtakes.
    late: Option<(T, Vec<u8>)>,
    stats: FaultStats,
}

impl<T> Way<T> {
    fn new(config: FaultConfig, rng: Rng) -> Self {
        Way { config, rng, late: None, stats: FaultStats::default() }
    }

    fn happens(&mut self, probability: f64) -> bool {
        // A draw for every question: one fault more or less does not move the others.
        self.rng.unit_f64() < probability
    }

    /// Hands on what becomes of a packet. Whoever vouches for its checksum would have found damage: then it is lost.
    fn pass(&mut self, note: T, packet: &[u8], is_vouched_for: bool, mut hand_on: impl FnMut(&T, &[u8])) {
        let FaultConfig { loss, corrupt, duplicate, reorder } = self.config;
        let [is_lost, is_corrupted, is_twice, is_late] = [loss, corrupt, duplicate, reorder].map(|p| self.happens(p));
        let bit = self.rng.below(8 * packet.len().max(1) as u64) as usize;
        if is_lost || (is_corrupted && is_vouched_for) {
            self.stats.lost += 1;
            return;
        }
        let mut packet = packet.to_vec();
        if let Some(octet) = packet.get_mut(bit / 8).filter(|_| is_corrupted) {
            *octet ^= 1 << (bit % 8);
            self.stats.corrupted += 1;
        }
        if is_late && self.late.is_none() {
            self.stats.reordered += 1;
            self.late = Some((note, packet));
            return;
        }
        hand_on(&note, &packet);
        if is_twice {
            self.stats.duplicated += 1;
            hand_on(&note, &packet);
        }
        if let Some((note, packet)) = self.late.take() {
            hand_on(&note, &packet);
        }
    }
}

/// A device whose packets meet faults.
#[derive(Debug)]
pub struct Faults<D> {
    inner: D,
    sending: Way<Transmit>,
    receiving: Way<(SegmentBatch, Trust, Option<SocketAddr>)>,
    outbox: Vec<u8>,
    waiting: Vec<Transmit>,
}

impl<D: Device> Faults<D> {
    /// Faults of `sending` on what leaves `inner`, of `receiving` on what comes.
    pub fn new(inner: D, sending: FaultConfig, receiving: FaultConfig, seed: &Seed) -> Self {
        Faults {
            inner,
            sending: Way::new(sending, seed.stream("faults sending")),
            receiving: Way::new(receiving, seed.stream("faults receiving")),
            outbox: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// What happened to packets that left, and to packets that came.
    pub fn faults(&self) -> (FaultStats, FaultStats) {
        (self.sending.stats, self.receiving.stats)
    }
}

impl<D: Device> Device for Faults<D> {
    delegate!(self, self.inner; overhead fd wait woke path_mtu stats);

    fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        self.waiting.push(packet);
        packet.len + usize::from(self.inner.overhead())
    }

    fn flush(&mut self) -> io::Result<bool> {
        let Faults { inner, sending, outbox, waiting, .. } = self;
        let mut start = 0;
        for packet in waiting.drain(..) {
            sending.pass(packet, &outbox[start..start + packet.len], false, |packet, octets| {
                inner.outbox().extend_from_slice(octets);
                inner.queue(*packet);
            });
            start += packet.len;
        }
        outbox.clear();
        inner.flush()
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        let receiving = &mut self.receiving;
        self.inner.receive(&mut |octets, batch, trust, from| {
            for packet in packets_of(octets, batch) {
                let batch =
                    if let SegmentBatch::Joined(_) = batch { batch } else { SegmentBatch::Packets(packet.len()) };
                receiving.pass((batch, trust, from), packet, trust != Trust::Check, |(batch, trust, from), packet| {
                    take(packet, *batch, *trust, *from);
                });
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDevice;

    const TO: [u8; 4] = [10, 0, 0, 2];
    const PACKETS: u64 = 4000;

    type Packets = Vec<Vec<u8>>;

    fn passed(config: FaultConfig, seed: u64) -> (Packets, Packets, (FaultStats, FaultStats)) {
        let packets = (0..PACKETS).map(|i| i.to_be_bytes().to_vec());
        let inner = MemoryDevice::giving(packets.clone().collect());
        let mut device = Faults::new(inner, config, config, &Seed::from_u64(seed));
        for packet in packets {
            device.outbox().extend_from_slice(&packet);
            device.queue(Transmit::new(TO, packet.len()));
        }
        assert!(device.flush().unwrap());
        let mut came = Vec::new();
        device
            .receive(&mut |octets, _, _, _| {
                came.push(octets.to_vec());
            })
            .unwrap();
        let sent = device
            .inner
            .sent
            .iter()
            .map(|(dst, octets)| (*dst == std::net::IpAddr::from(TO)).then(|| octets.clone()).unwrap())
            .collect();
        (sent, came, device.faults())
    }

    #[test]
    fn without_faults_nothing_changes() {
        let (sent, came, stats) = passed(FaultConfig::default(), 1);
        let expected: Vec<Vec<u8>> = (0..PACKETS).map(|i| i.to_be_bytes().to_vec()).collect();
        assert_eq!((&sent, &came, stats), (&expected, &expected, Default::default()));
    }

    #[test]
    fn each_fault_is_as_frequent_as_asked_and_counted() {
        // Five standard deviations of a binomial with n = 4000, p = 0.1.
        let is_near = |n: u64| n.abs_diff(PACKETS / 10) <= 95;
        let tenth = FaultConfig::default();
        let (sent, _, (stats, _)) = passed(FaultConfig { loss: 0.1, ..tenth }, 2);
        assert!(is_near(stats.lost) && sent.len() as u64 == PACKETS - stats.lost);
        let (sent, _, (stats, _)) = passed(FaultConfig { duplicate: 0.1, ..tenth }, 3);
        assert!(is_near(stats.duplicated) && sent.len() as u64 == PACKETS + stats.duplicated);
        let (sent, _, (stats, _)) = passed(FaultConfig { corrupt: 0.1, ..tenth }, 4);
        let bits = |(i, packet): (u64, &Vec<u8>)| -> u32 {
            packet.iter().zip(i.to_be_bytes()).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        assert!(is_near(stats.corrupted) && (0..).zip(&sent).map(bits).sum::<u32>() as u64 == stats.corrupted);
        let (sent, _, (stats, _)) = passed(FaultConfig { reorder: 0.1, ..tenth }, 5);
        let overtaken = sent.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
        // The packet behind one that is late passes whatever is drawn for it, and the last may still wait.
        assert!(stats.reordered.abs_diff(PACKETS / 11) <= 95 && stats.reordered - overtaken <= 1, "{stats:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_the_directions_differ() {
        let config = FaultConfig { loss: 0.2, corrupt: 0.1, duplicate: 0.1, reorder: 0.2 };
        let (sent, came, _) = passed(config, 7);
        assert_eq!((&sent, &came), (&passed(config, 7).0, &passed(config, 7).1));
        assert_ne!(sent, came);
        assert_ne!(sent, passed(config, 8).0);
    }
}
