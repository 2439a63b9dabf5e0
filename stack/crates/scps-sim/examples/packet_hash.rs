//! Prints one number for all packets of many seeded transfers: when each left, which host sent it, its octets. A change that must
//! not alter what is on the wire prints the same number before and after.
//! Run with `cargo run --release -p scps-sim --example packet_hash [TRANSFERS]`.
#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "a measurement stops where it cannot be taken")]

use scps_np::Tables;
use scps_sim::{Impairment, LinkConfig, Network, Transfer, ENDS};
use scps_tp::net::{NetworkConfig, NpConfig};
use scps_tp::{AckBehaviour, Config, Congestion, LossMeaning, RouteConfig, VegasConfig};
use scps_wire::{Bitrate, Duration, Instant, Precedence, Rng, Seed, SeqNum};

/// One of two, at even odds.
fn flip(rng: &mut Rng) -> bool {
    rng.below(2) == 1
}

fn config(rng: &mut Rng) -> Config {
    let vegas = Congestion::Vegas(VegasConfig::default());
    let buffer = 4_000 + rng.below(200_000) as usize;
    let mut config = Config::default()
        .congestion([Congestion::None, Congestion::Vj, vegas][rng.below(3) as usize])
        .scps(rng.below(8) != 0)
        .snack(flip(rng))
        .snack_long(flip(rng))
        .sack(flip(rng))
        .bets(rng.below(8) == 0)
        .timestamps(flip(rng))
        .compression(flip(rng))
        .nodelay(flip(rng))
        .byte_counting(flip(rng))
        .window_scaling(flip(rng))
        .mss(flip(rng).then(|| 100 + rng.below(1300) as u16))
        .send_buffer(buffer)
        .receive_buffer(buffer)
        .precedence(Precedence::new(rng.below(32) as u8))
        .initial_sequence((rng.below(4) == 0).then(|| SeqNum(u32::MAX - rng.below(5000) as u32)));
    config.rto.to_persist = (rng.below(4) == 0).then_some(2);
    config.snack_policy.double_retransmission = rng.below(8) == 0;
    config.ack.behaviour = match rng.below(4) as u16 {
        0 => AckBehaviour::Delayed,
        n => AckBehaviour::EveryNth(n),
    };
    config
}

fn link(rng: &mut Rng) -> LinkConfig {
    let outage = Instant::from_millis(rng.below(3000));
    LinkConfig {
        rate: flip(rng).then(|| Bitrate::from_bps(100_000 + rng.below(20_000_000))),
        queue_bytes: 5_000 + rng.below(40_000) as usize,
        delay: Duration::from_millis(rng.below(200)),
        impairment: Impairment {
            loss: rng.unit_f64() * 0.2,
            duplicate: rng.unit_f64() * 0.1,
            reorder: rng.unit_f64() * 0.2,
            reorder_delay: Duration::from_millis(1 + rng.below(40)),
            outages: if rng.below(4) == 0 { vec![(outage, outage + Duration::from_secs(4))] } else { Vec::new() },
            ..Impairment::default()
        },
    }
}

fn layer(rng: &mut Rng) -> [NetworkConfig; 2] {
    if flip(rng) {
        return Default::default();
    }
    [0, 1].map(|i| NetworkConfig::Np(Box::new(NpConfig::with_tables(Tables::of(Network::address(i))))))
}

fn main() {
    let count = std::env::args().nth(1).map_or(2000, |n| n.parse().expect("a number of transfers"));
    let (mut hash, mut packets, mut complete) = (0, 0u64, 0u32);
    for number in 0..count {
        let mut rng = Seed::from_u64(number).stream("packet hash");
        let route = RouteConfig::default()
            .rate(flip(&mut rng).then(|| Bitrate::from_bps(10_000 + rng.below(10_000_000))))
            .loss(if flip(&mut rng) { LossMeaning::Corruption } else { LossMeaning::Congestion })
            .initial_rto(Duration::from_secs(1))
            .mtu(200 + rng.below(1400) as u16);
        let transfer = Transfer {
            bytes: rng.below(60_000) as usize,
            sender: config(&mut rng),
            receiver: config(&mut rng),
            routes: [route, route],
            networks: layer(&mut rng),
            links: [link(&mut rng), link(&mut rng)],
            seed: number,
            limit: Duration::from_secs(2_000),
        };
        let network = transfer.run_captured();
        for (at, host, packet) in &network.capture {
            let place = [&at.as_nanos().to_be_bytes()[..], &[*host as u8]].concat();
            hash = Seed::from_u64(hash).keyed_hash("packet", &[&place[..], packet].concat());
        }
        packets += network.capture.len() as u64;
        complete += u32::from(network[ENDS[0]].has_sent_all_to(&network[ENDS[1]]));
    }
    println!("{hash:016x} of {packets} packets in {count} transfers, {complete} of them complete");
}
