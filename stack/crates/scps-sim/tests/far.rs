//! Minutes of light: what is promised for a link holds where an answer takes two thirds of an hour.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use scps_gateway::{GatewayConfig, SetUp, SideConfig};
use scps_sim::{Impairment, LinkConfig, Outcome, Transfer};
use scps_tp::{Config, Congestion, RouteConfig};
use scps_wire::{Bitrate, Duration, Seed};

const OCTETS: usize = 300_000;

/// A transfer over a line of so many seconds each way.
fn transfer(one_way_s: u64, loss: f64, is_known: bool, seed: u64) -> Transfer {
    let one_way = Duration::from_secs(one_way_s);
    let route = RouteConfig::default().rate(Some(Bitrate::from_bps(1_000_000))).rtt(is_known.then_some(one_way * 2));
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(2_000_000)),
        delay: one_way,
        impairment: Impairment { loss, ..Impairment::default() },
        ..LinkConfig::default()
    };
    let config = Config::modern().congestion(Congestion::None);
    Transfer {
        bytes: OCTETS,
        sender: config.clone(),
        receiver: config,
        routes: [route, route],
        networks: Default::default(),
        links: [link.clone(), link],
        seed,
        limit: one_way * 200,
    }
}

/// The same with gateways around the line, whose hosts know nothing of it.
fn through_gateways(transfer: &Transfer, set_up: SetUp) -> Outcome {
    let lan = RouteConfig::default().rate(None).initial_rto(Duration::from_secs(1));
    let near = Config::default().scps(false).congestion(Congestion::Vj);
    let hosts = Transfer { sender: near.clone(), receiver: near.clone(), routes: [lan, lan], ..transfer.clone() };
    let mut network = hosts.begin();
    let wan = SideConfig::default().connection(transfer.sender.clone()).route(transfer.routes[0]);
    let config = GatewayConfig::transparent(SideConfig::default().connection(near).route(lan), wan, set_up);
    network.put_gateways(&config, Seed::from_u64(transfer.seed)).unwrap();
    hosts.finish(&mut network)
}

/// Round trips from the request to the acknowledgement of the end.
fn rounds(outcome: &Outcome, transfer: &Transfer) -> f64 {
    outcome.connect.as_secs_f64() / (transfer.links[0].delay * 2).as_secs_f64()
}

#[test]
fn a_transfer_takes_a_round_trip_to_open_and_one_for_its_data() {
    for one_way_s in [10, 75, 600, 1200] {
        // Half an hour of SYNs is enough for an answer after twenty minutes, and not for one after forty.
        for is_known in [true, false].into_iter().filter(|is_known| *is_known || one_way_s <= 600) {
            let transfer = transfer(one_way_s, 0.0, is_known, 1);
            let outcome = transfer.run();
            let rounds = rounds(&outcome, &transfer);
            println!("{one_way_s} s each way, known: {is_known}: {rounds:.3} round trips, {:?}", outcome.sent.resends);
            assert!(outcome.is_complete, "{one_way_s} s each way, known: {is_known}: {:?}", outcome.sent);
            assert!(rounds < 2.3, "{one_way_s} s each way, known: {is_known}: {rounds} round trips");
            // Nothing is sent again that is under way: who knows how long that takes waits for it.
            assert!(!is_known || outcome.sent.resends_total() == 0, "{one_way_s} s each way: {:?}", outcome.sent);
        }
    }
}

#[test]
fn gateways_set_connections_up_over_any_distance() {
    for set_up in [SetUp::ConnectFirst, SetUp::AcceptFirst, SetUp::Early] {
        for one_way_s in [10, 65, 150, 600, 1200] {
            if set_up == SetUp::ConnectFirst && one_way_s > 600 {
                // A client's SYNs are no longer repeated then.
                continue;
            }
            let transfer = transfer(one_way_s, 0.0, true, 1);
            let outcome = through_gateways(&transfer, set_up);
            let rounds = rounds(&outcome, &transfer);
            println!("{set_up:?}, {one_way_s} s each way: {rounds:.3} round trips");
            assert!(outcome.is_complete, "{set_up:?}, {one_way_s} s each way: {:?}", outcome.sent);
            assert!(rounds < 3.5, "{set_up:?}, {one_way_s} s each way: {rounds} round trips");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, rng_seed: RngSeed::Fixed(20), ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_over_minutes_of_light(
        one_way_s in 30u64..=1200,
        loss in 0.0..0.05f64,
        is_known in any::<bool>(),
        set_up in prop_oneof![
            2 => Just(None),
            1 => Just(Some(SetUp::ConnectFirst)),
            1 => Just(Some(SetUp::AcceptFirst)),
            1 => Just(Some(SetUp::Early)),
        ],
        seed in any::<u64>(),
    ) {
        // Who does not know how far it is, or asks for a far answer first, gives up after half an hour of SYNs.
        let is_patient = set_up.map_or(is_known, |set_up| set_up != SetUp::ConnectFirst);
        let one_way_s = if is_patient { one_way_s } else { 1 + one_way_s / 20 };
        let transfer = transfer(one_way_s, loss, is_known || set_up.is_some(), seed);
        let outcome = match set_up {
            None => transfer.run(),
            Some(set_up) => through_gateways(&transfer, set_up),
        };
        prop_assert!(outcome.is_complete, "{:?} {:?}", outcome.sent, outcome.received);
    }
}
