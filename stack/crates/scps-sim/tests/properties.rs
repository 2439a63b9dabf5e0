//! Whatever a network does to packets, the delivered stream is the sent stream; and the same seed gives the same run.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_sim::{Impairment, LinkConfig, Network, Transfer};
use scps_tp::{AckBehaviour, Config, Congestion, LossMeaning, RouteConfig, VegasConfig};
use scps_types::{Bitrate, Duration, SeqNum};

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

fn config() -> impl Strategy<Value = Config> {
    let congestion =
        prop_oneof![Just(Congestion::None), Just(Congestion::Vj), Just(Congestion::Vegas(VegasConfig::default()))];
    let flags = any::<[bool; 7]>();
    (congestion, flags, 100u16..1460, 0u16..4, 4_000usize..300_000, any::<u32>()).prop_map(
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_delivered_stream_is_the_sent_stream(transfer in transfer()) {
        let outcome = transfer.run();
        prop_assert!(outcome.is_complete, "{:?} {:?}", outcome.sent, outcome.received);
        // Packets still on their way when the transfer ends are neither delivered nor lost.
        for link in outcome.links {
            prop_assert!(link.queue + link.corrupt <= link.sent);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(transfer in transfer()) {
        let short = Transfer { bytes: transfer.bytes.min(10_000), ..transfer };
        let (first, second) = (short.run(), short.run());
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
    let outcome = transfer.run();
    assert!(outcome.is_complete && outcome.transfer < Duration::from_secs(5), "{outcome:?}");
}

#[test]
fn a_thousand_connections_share_one_endpoint() {
    let config = Config::default().send_buffer(20_000).receive_buffer(20_000);
    let route = RouteConfig::default().rate(Some(Bitrate::from_bps(100_000_000)));
    let link = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
    let seed = scps_types::Seed::from_u64(1);
    let mut network = Network::new([route, route], [link.clone(), link], seed);
    let remote = network.hosts[1].address;
    network.hosts[1].listen(5001, config.clone());
    let mut ids = Vec::new();
    for port in 0..1000u16 {
        let local = (network.hosts[0].address, 10_000 + port);
        let id = network.hosts[0].endpoint.connect(network.now, local, (remote, 5001), config.clone()).unwrap();
        network.hosts[0].endpoint.send(network.now, id, &[1; 10_000]).unwrap();
        network.hosts[0].endpoint.close(network.now, id);
        ids.push(id);
        // A few at a time: the backlog of half-open connections is bounded.
        if port % 100 == 99 {
            let until = network.now + Duration::from_millis(100);
            network.run(until, |_| false);
        }
    }
    let until = network.now + Duration::from_secs(60);
    network.run(until, |n| ids.iter().all(|id| n.hosts[0].endpoint.stats(*id).unwrap().flushed_at.is_some()));
    let flushed = ids.iter().filter(|id| network.hosts[0].endpoint.stats(**id).unwrap().flushed_at.is_some()).count();
    assert_eq!(flushed, 1000);
    let idle: usize = ids.iter().map(|id| network.hosts[0].endpoint.allocated(*id).unwrap()).sum();
    assert!(idle / 1000 < 32_768, "{} octets per connection", idle / 1000);
}
