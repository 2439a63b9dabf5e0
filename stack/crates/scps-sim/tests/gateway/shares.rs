//! What is left for connections while others fill the link: packets that only pass, and segments of nobody that want an answer.

use crate::chain::{content, gateway_config, lan, satellite, Chain, CLIENT, SERVER};
use scps_gateway::SetUp;
use scps_sim::{Node, Program};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Bitrate, Duration, Instant, Rng, Seed, SeqNum};

/// Octets of the link that packets which are nobody's took, and seconds that the transfer took.
#[derive(Debug)]
struct Outcome {
    others: usize,
    seconds: f64,
}

fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = Ipv4 {
        src: CLIENT,
        dst: SERVER,
        protocol,
        tos: 0,
        ttl: 9,
        id: 1,
        dont_fragment: true,
        is_fragment: false,
        payload_len: payload.len() as u16,
    };
    let mut octets = vec![0; 20];
    header.emit(&mut octets);
    octets.extend_from_slice(payload);
    octets
}

fn stranger(rng: &mut Rng) -> Vec<u8> {
    let tcp = Tcp {
        src_port: 1024 + rng.below(60_000) as u16,
        dst_port: 1 + rng.below(65_000) as u16,
        seq: SeqNum(rng.next_u32()),
        ack: SeqNum(rng.next_u32()),
        flags: Flags::ACK,
        window: 1000,
        urgent: 0,
        options: Options::default(),
    };
    let mut segment = vec![0; tcp.emit_len()];
    tcp.emit(&mut segment, CLIENT, SERVER, protocol::TCP);
    packet(protocol::TCP, &segment)
}

/// A transfer through a pair of gateways with a rate, while so many packets of somebody else come to the first each second.
fn run(bps: u64, per_s: u32, mut other: impl FnMut(&mut Rng) -> Vec<u8>) -> Outcome {
    let mut config = gateway_config(SetUp::ConnectFirst);
    config.wan.route.rate = Some(Bitrate::from_bps(bps));
    let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 5);
    // Four seconds' worth of the link.
    let data = content((bps / 2) as usize, 1);
    chain.open(4000, Program::sending(data.clone()), Program::default());
    let mut rng: Rng = Seed::from_u64(9).stream("others");
    while chain.server_program(4000).is_none_or(|server| server.received.len() < data.len()) {
        assert!(chain.now() < Instant::from_secs(60), "{:?}", chain.server_program(4000).map(|s| s.received.len()));
        if per_s == 0 {
            chain.run_for(Duration::from_millis(10));
            continue;
        }
        chain.run_for(Duration::from_secs(1) / per_s);
        let now = chain.now();
        chain.gateway_node(0).handle(now, 0, &other(&mut rng));
    }
    let others = chain.gateway_node(0).passed.iter().map(Vec::len).sum();
    Outcome { others, seconds: chain.now().as_nanos() as f64 / 1e9 }
}

#[test]
fn datagrams_at_any_rate_leave_connections_half_of_the_link() {
    let alone = run(4_000_000, 0, |_| Vec::new());
    assert!((4.0..6.5).contains(&alone.seconds), "{alone:?}");
    // 1, 2 and 10 times the rate in packets of 1428 octets.
    for per_s in [350, 700, 3500] {
        let shared = run(4_000_000, per_s, |_| packet(protocol::UDP, &[0; 1408]));
        assert!(shared.seconds < alone.seconds * 2.1, "{per_s}: {shared:?}, alone {alone:?}");
        let share = shared.others as f64 * 8.0 / shared.seconds / 4e6;
        assert!((0.45..0.62).contains(&share), "{per_s}: others have {share}, {shared:?}");
    }
    // Who wants less than half has it, and the connection has the rest.
    let less = run(4_000_000, 70, |_| packet(protocol::UDP, &[0; 1408]));
    assert!(less.seconds < alone.seconds * 1.35 && less.others as f64 * 8.0 / less.seconds > 0.19 * 4e6, "{less:?}");
}

#[test]
fn segments_of_nobody_leave_connections_most_of_the_link() {
    for bps in [1_000_000, 4_000_000] {
        let alone = run(bps, 0, |_| Vec::new());
        for per_s in [500, 2000, 10_000] {
            let shared = run(bps, per_s, stranger);
            assert!(shared.seconds < alone.seconds * 1.3, "{bps}, {per_s}: {shared:?}, alone {alone:?}");
        }
    }
}
