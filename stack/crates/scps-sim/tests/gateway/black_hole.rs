//! Links on which long packets vanish, and nobody says so.

use crate::chain::{content, gateway_config, lan, satellite, Chain};
use scps_gateway::{GatewayConfig, SetUp, Side};
use scps_sim::Program;
use scps_wire::{Duration, Instant};

fn config() -> GatewayConfig {
    let mut config = gateway_config(SetUp::Early);
    config.wan.endpoint.one_path = true;
    config.wan.connection.finds_black_holes = true;
    config
}

/// A pair of gateways around a link that passes packets of up to so many octets.
fn chain(longest: usize, loss: f64) -> Chain {
    let mut link = satellite(loss);
    link.impairment.longest = Some(longest);
    Chain::new(&config(), &[lan(), link, lan()], 3)
}

/// What the gateways found out: how often, and the last length.
fn found(chain: &Chain) -> [(u64, u16); 2] {
    [0, 1].map(|i| chain.gateway(i).endpoint(Side::Wan).signals().black_holes)
}

/// Sends so much both ways from a port of the client's; whether all came.
fn transfers(chain: &mut Chain, port: u16, octets: usize, time: Duration) -> bool {
    let (up, down) = (content(octets, 1), content(octets, 2));
    let id = chain.open(port, Program::sending(up.clone()), Program::sending(down.clone()));
    chain.run_for(time);
    chain.client().programs[&id].received == down && chain.server_program(port).is_some_and(|s| s.received == up)
}

#[test]
fn a_link_that_swallows_long_packets_carries_shorter_ones() {
    for (longest, expected) in [(1400, 1280), (1280, 1280), (1279, 548), (576, 548)] {
        let mut chain = chain(longest, 0.0);
        assert!(transfers(&mut chain, 4000, 40_000, Duration::from_secs(200)), "{longest}: {:?}", found(&chain));
        assert!(found(&chain).iter().all(|found| found.1 == expected), "{longest}: {:?}", found(&chain));
        // Whoever comes later knows.
        let before = found(&chain);
        assert!(transfers(&mut chain, 4001, 40_000, Duration::from_secs(20)), "{longest}: the second one");
        assert_eq!(found(&chain), before);
    }
}

#[test]
fn a_link_that_passes_long_packets_again_gets_them() {
    let mut chain = chain(1400, 0.0);
    assert!(transfers(&mut chain, 4000, 100_000, Duration::from_secs(60)));
    // It is tried every ten minutes, by the first to send much, and costs one repair.
    chain.run_for(Duration::from_secs(700));
    assert!(transfers(&mut chain, 4001, 100_000, Duration::from_secs(20)), "a trial that fails stops nobody");
    assert_eq!(found(&chain), [(1, 1280); 2]);
    for way in &mut chain.link_mut(1).ways {
        way.config_mut().impairment.longest = None;
    }
    chain.run_for(Duration::from_secs(700));
    chain.network.captures = true;
    assert!(transfers(&mut chain, 4002, 300_000, Duration::from_secs(30)));
    let long = chain.network.capture.iter().filter(|(.., packet)| packet.len() == 1500).count();
    assert!(long > 300, "{long} packets are as long as the route takes");
}

#[test]
fn neither_losses_nor_outages_are_taken_for_one() {
    for seed in 0..20 {
        let mut link = satellite(0.2);
        let from = Instant::from_secs(2);
        link.impairment.outages = vec![(from, from + Duration::from_secs(60))];
        let mut chain = Chain::new(&config(), &[lan(), link, lan()], seed);
        assert!(transfers(&mut chain, 4000, 200_000, Duration::from_secs(2000)), "seed {seed}");
        assert_eq!(found(&chain), [(0, 0); 2], "seed {seed}");
    }
}
