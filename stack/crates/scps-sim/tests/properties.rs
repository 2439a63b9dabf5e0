//! Whatever a network does to packets, the delivered stream is the sent stream; and the same seed gives the same run.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_gateway::{End, GatewayConfig, SetUp, SideConfig};
use scps_sim::{Impairment, LinkConfig, Network, Outcome, Program, Transfer, ENDS};
use scps_tp::{AckBehaviour, Config, Congestion, LossMeaning, RouteConfig, VegasConfig};
use scps_wire::{Bitrate, Duration, Seed, SeqNum};

fn impairment() -> impl Strategy<Value = Impairment> {
    (0.0..0.2f64, 0.0..0.1f64, 0.0..0.2f64, 1u64..40).prop_map(|(loss, duplicate, reorder, ms)| Impairment {
        loss,
        duplicate,
        reorder,
        reorder_delay: Duration::from_millis(ms),
        ..Impairment::default()
    })
}

fn link() -> impl Strategy<Value = LinkConfig> {
    (impairment(), 0u64..200, prop_oneof![Just(None), (100_000u64..20_000_000).prop_map(Some)]).prop_map(
        |(impairment, ms, bps)| LinkConfig {
            rate: bps.map(Bitrate::from_bps),
            queue_bytes: 40_000,
            delay: Duration::from_millis(ms),
            impairment,
        },
    )
}

/// Octets of a buffer, in a quarter of the runs of a long fast link's.
fn buffer() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 4_000usize..300_000, 1 => 300_000usize..=64 << 20]
}

fn config() -> impl Strategy<Value = Config> {
    let congestion =
        prop_oneof![Just(Congestion::None), Just(Congestion::Vj), Just(Congestion::Vegas(VegasConfig::default()))];
    let flags = any::<[bool; 7]>();
    (congestion, flags, 100u16..1460, 0u16..4, buffer(), any::<u32>()).prop_map(
        |(congestion, f, mss, every, buffer, iss)| {
            let mut config = Config::default()
                .congestion(congestion)
                .scps(f[0] || f[1])
                .snack(f[1])
                .sack(f[2])
                .snack_long(f[3])
                .timestamps(f[4])
                .compression(f[5])
                .nodelay(f[6])
                .mss(Some(mss))
                .send_buffer(buffer)
                .receive_buffer(buffer)
                // An end that leaves while the other still repeats its FIN, once in 64 s, would make a complete
                // transfer look broken.
                .time_wait(Duration::from_secs(3600))
                // A quarter of the runs cross the wrap.
                .initial_sequence(Some(SeqNum(if iss % 4 == 0 { u32::MAX - iss % 5000 } else { iss })));
            config.ack.behaviour = if every == 0 { AckBehaviour::Delayed } else { AckBehaviour::EveryNth(every) };
            config.rto.retransmissions_max = 1000;
            config
        },
    )
}

fn transfer() -> impl Strategy<Value = Transfer> {
    (config(), config(), link(), link(), 1usize..60_000, any::<u64>(), any::<bool>()).prop_map(
        |(sender, receiver, there, back, bytes, seed, is_corruption)| {
            let route = RouteConfig::default()
                .rate(Some(Bitrate::from_bps(10_000_000)))
                .loss(if is_corruption { LossMeaning::Corruption } else { LossMeaning::Congestion })
                .initial_rto(Duration::from_secs(1));
            Transfer {
                bytes,
                sender,
                receiver,
                routes: [route, route],
                networks: Default::default(),
                links: [there, back],
                seed,
                limit: Duration::from_secs(20_000),
            }
        },
    )
}

/// Gateways at both ends of the link, in half of the runs.
fn gateways() -> impl Strategy<Value = Option<GatewayConfig>> {
    let set_up = prop_oneof![Just(SetUp::ConnectFirst), Just(SetUp::AcceptFirst), Just(SetUp::Early)];
    let config = (config(), config(), set_up).prop_map(|(lan, wan, set_up)| {
        let route =
            RouteConfig::default().rate(Some(Bitrate::from_bps(10_000_000))).initial_rto(Duration::from_secs(1));
        let side = |config| SideConfig::default().connection(config).route(route);
        GatewayConfig::transparent(side(lan), side(wan), set_up)
    });
    prop_oneof![Just(None), config.prop_map(Some)]
}

/// How much a slow reader reads at a time, and how long it waits then.
fn pace() -> impl Strategy<Value = Option<(usize, Duration)>> {
    let slow = (200usize..5000, 1u64..200).prop_map(|(octets, ms)| Some((octets, Duration::from_millis(ms))));
    prop_oneof![3 => Just(None), 1 => slow]
}

/// How a transfer went; and whether each gateway told of one connection, which lost nothing.
fn run(transfer: &Transfer, gateways: Option<&GatewayConfig>, pace: Option<(usize, Duration)>) -> (Outcome, bool) {
    let mut network = transfer.begin();
    network[ENDS[1]].service = Some(Program { pace, ..Program::default() });
    let Some(config) = gateways else { return (transfer.finish(&mut network), true) };
    let places = network.put_gateways(config, Seed::from_u64(transfer.seed)).unwrap();
    let outcome = transfer.finish(&mut network);
    let are_over =
        |n: &Network| places.iter().all(|at| n[*at].gateway.as_ref().is_some_and(|g| g.connections().next().is_none()));
    let is_over = network.run(network.now + transfer.limit, are_over);
    let is_whole = places.iter().all(|at| matches!(&network[*at].reports[..], [report] if report.end == End::Finished));
    (outcome, is_over && is_whole)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_delivered_stream_is_the_sent_stream(transfer in transfer(), gateways in gateways(), pace in pace()) {
        let (outcome, is_whole) = run(&transfer, gateways.as_ref(), pace);
        prop_assert!(outcome.is_complete && is_whole, "{:?} {:?}", outcome.sent, outcome.received);
        // Packets still on their way when the transfer ends are neither delivered nor lost.
        for link in outcome.links {
            prop_assert!(link.queue + link.corrupt <= link.sent);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(transfer in transfer(), gateways in gateways()) {
        let short = Transfer { bytes: transfer.bytes.min(10_000), ..transfer };
        let [(first, _), (second, _)] = [(); 2].map(|()| run(&short, gateways.as_ref(), None));
        prop_assert_eq!(first.sent, second.sent);
        prop_assert_eq!(first.links, second.links);
    }
}

#[test]
fn a_transfer_across_the_sequence_wrap_does_not_stall() {
    // scps-tp §14 item 117: both ends begin 100,000 octets before the wrap.
    let config = Config::modern().initial_sequence(Some(SeqNum(u32::MAX - 100_000)));
    let route = RouteConfig::default().rate(None);
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(10_000_000)),
        delay: Duration::from_millis(20),
        impairment: Impairment { loss: 0.02, ..Impairment::default() },
        ..LinkConfig::default()
    };
    let transfer = Transfer {
        bytes: 400_000,
        sender: config.clone(),
        receiver: config,
        routes: [route, route],
        networks: Default::default(),
        links: [link.clone(), link],
        seed: 5,
        limit: Duration::from_secs(60),
    };
    let side = SideConfig::default().connection(transfer.sender.clone()).route(route);
    let gateways = GatewayConfig::transparent(side.clone(), side, SetUp::ConnectFirst);
    for gateways in [None, Some(&gateways)] {
        let (outcome, is_whole) = run(&transfer, gateways, None);
        assert!(outcome.is_complete && is_whole && outcome.transfer < Duration::from_secs(5), "{outcome:?}");
    }
}

#[test]
fn a_thousand_connections_share_one_endpoint() {
    let config = Config::default().send_buffer(20_000).receive_buffer(20_000);
    let route = RouteConfig::default().rate(Some(Bitrate::from_bps(100_000_000)));
    let link = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
    let seed = Seed::from_u64(1);
    let mut network = Network::new([route, route], [link.clone(), link], seed);
    let remote = network[ENDS[1]].address;
    network[ENDS[1]].listen(5001, config.clone());
    network[ENDS[1]].service = None;
    let mut ids = Vec::new();
    for port in 0..1000u16 {
        let local = (network[ENDS[0]].address, 10_000 + port);
        let (now, endpoint) = (network.now, &mut network[ENDS[0]].endpoint);
        let id = endpoint.connect(now, local, (remote, 5001), config.clone()).unwrap();
        endpoint.send(now, id, &[1; 10_000]).unwrap();
        endpoint.close(now, id);
        ids.push(id);
        // A few at a time: the backlog of half-open connections is bounded.
        if port % 100 == 99 {
            let until = network.now + Duration::from_millis(100);
            network.run(until, |_| false);
        }
    }
    let until = network.now + Duration::from_secs(60);
    network.run(until, |n| ids.iter().all(|id| n[ENDS[0]].endpoint.stats(*id).unwrap().flushed_at.is_some()));
    let flushed = ids.iter().filter(|id| network[ENDS[0]].endpoint.stats(**id).unwrap().flushed_at.is_some()).count();
    assert_eq!(flushed, 1000);
    let idle: usize = ids.iter().map(|id| network[ENDS[0]].endpoint.allocated(*id).unwrap()).sum();
    assert!(idle / 1000 < 32_768, "{} octets per connection", idle / 1000);
}
