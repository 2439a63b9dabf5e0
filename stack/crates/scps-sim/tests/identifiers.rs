//! Identifiers of compressed headers: many short connections between two hosts, over links that lose and reorder, with hosts that
//! are killed and forget everything. Each connection is answered, or its user is told that it is not.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_gateway::{Gateway, GatewayConfig, SetUp, SideConfig};
use scps_sim::{Host, Impairment, LinkConfig, Network, ENDS, PORT};
use scps_tp::net::NetworkConfig;
use scps_tp::{Config, ConnectionId, Event, RouteConfig};
use scps_wire::{Duration, Instant, Rng, Seed};
use std::collections::BTreeMap;

/// How long a user waits before a connection counts as hanging: many times what repeating lost segments takes.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Clone, Debug)]
struct Load {
    connections: u32,
    /// Between the beginnings of two connections.
    spacing: Duration,
    impairment: Impairment,
    /// Whether gateways are between the hosts.
    has_gateways: bool,
    /// Who is killed (0 and 1: a host; 2 and 3: a gateway, if there are), and after how many connections began.
    kills: Vec<(usize, u32)>,
    seed: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    answered: u32,
    told: u32,
    hanging: u32,
    compressed: u32,
}

fn config() -> Config {
    let keepalive = Some((Duration::from_secs(1), Duration::from_secs(10)));
    Config::default().compression(true).nodelay(true).keepalive(keepalive)
}

fn route() -> RouteConfig {
    RouteConfig::default().rate(None).initial_rto(Duration::from_secs(1))
}

/// A host without a user of its own: the test is the user.
fn host(i: u8, seed: u64) -> Host {
    let mut host = Host::new(Network::address(i), route(), NetworkConfig::Ipv4, Seed::from_u64(seed));
    host.service = None;
    if i == 1 {
        host.listen(PORT, config());
    }
    host
}

fn gateway_config() -> GatewayConfig {
    let side = SideConfig::default().connection(config().keepalive_asks(true)).route(route());
    GatewayConfig::transparent(side.clone(), side, SetUp::ConnectFirst)
}

/// The server's user: answers what it read, and closes when the client does, or at once.
fn serve(host: &mut Host, now: Instant, rng: &mut Rng) {
    for event in std::mem::take(&mut host.events) {
        let (Event::Readable(id) | Event::Accepted(_, id) | Event::Closed(id, _)) = event else { continue };
        let mut buffer = [0; 2000];
        match host.endpoint.recv(now, id, &mut buffer) {
            Ok((0, _)) => host.endpoint.release(now, id),
            Ok((n, _)) => {
                let _ = host.endpoint.send(now, id, &buffer[..n]);
                if rng.below(2) == 0 {
                    host.endpoint.close(now, id);
                }
            }
            Err(_) if matches!(event, Event::Closed(..)) => host.endpoint.release(now, id),
            Err(_) => {}
        }
    }
}

struct Client {
    waiting: BTreeMap<ConnectionId, Instant>,
    tally: Tally,
}

impl Client {
    fn act(&mut self, host: &mut Host, now: Instant, rng: &mut Rng) {
        for event in std::mem::take(&mut host.events) {
            let mut buffer = [0; 2000];
            match event {
                Event::Connected(id) => drop(host.endpoint.send(now, id, &[7; 900])),
                Event::Readable(id) if self.waiting.contains_key(&id) => {
                    let Ok((1.., _)) = host.endpoint.recv(now, id, &mut buffer) else { continue };
                    self.waiting.remove(&id);
                    self.tally.answered += 1;
                    self.tally.compressed += u32::from(host.endpoint.agreed(id).unwrap().compression.is_some());
                    if rng.below(4) == 0 {
                        host.endpoint.abort(now, id);
                    }
                    host.endpoint.release(now, id);
                }
                Event::Closed(id, _) if self.waiting.remove(&id).is_some() => {
                    self.tally.told += 1;
                    host.endpoint.release(now, id);
                }
                _ => {}
            }
        }
    }
}

fn run(load: &Load) -> Tally {
    let link =
        LinkConfig { delay: Duration::from_millis(20), impairment: load.impairment.clone(), ..LinkConfig::default() };
    let seed = Seed::from_u64(load.seed);
    let mut network = Network::new([route(), route()], [link.clone(), link], seed);
    for (i, end) in (0..).zip(ENDS) {
        network[end] = host(i, load.seed + u64::from(i));
    }
    let gateways = load.has_gateways.then(|| network.put_gateways(&gateway_config(), seed).unwrap());
    let mut rng = seed.stream("users");
    let mut client = Client { waiting: BTreeMap::new(), tally: Tally::default() };
    let mut begun = 0;
    let mut next_at = Instant::ZERO;
    let end = Instant::ZERO + load.spacing * load.connections + PATIENCE;
    while network.now < end && (begun < load.connections || !client.waiting.is_empty()) {
        if network.now >= next_at && begun < load.connections {
            for (place, _) in load.kills.iter().filter(|kill| kill.1 == begun) {
                // Whoever starts again draws other numbers than before.
                let again = load.seed + 100 + u64::from(begun);
                match (place, gateways) {
                    (0 | 1, _) => network[ENDS[*place]] = host(*place as u8, again),
                    (_, Some(gateways)) => {
                        let gateway = Gateway::new(gateway_config(), Seed::from_u64(again), network.now).unwrap();
                        network[gateways[place - 2]].gateway = Some(gateway);
                    }
                    (_, None) => continue,
                }
                if *place == 0 {
                    client.waiting.clear();
                }
            }
            let remote = (network[ENDS[1]].address, PORT);
            let (now, host) = (network.now, &mut network[ENDS[0]]);
            let id = host.endpoint.connect(now, (host.address, 0), remote, config()).unwrap();
            client.waiting.insert(id, now);
            begun += 1;
            next_at = now + load.spacing;
        }
        let until = if begun < load.connections { next_at } else { end };
        if !network.step(until) {
            network.now = until;
        }
        let now = network.now;
        serve(&mut network[ENDS[1]], now, &mut rng);
        client.act(&mut network[ENDS[0]], now, &mut rng);
    }
    client.tally.hanging = client.waiting.len() as u32;
    client.tally
}

fn load() -> impl Strategy<Value = Load> {
    let impairment = (0.0..0.1f64, 0.0..0.2f64, 1u64..200).prop_map(|(loss, reorder, ms)| Impairment {
        loss,
        reorder,
        reorder_delay: Duration::from_millis(ms),
        ..Impairment::default()
    });
    let kills = proptest::collection::vec((0usize..4, 1u32..400), 0..4);
    (1u64..400, impairment, any::<bool>(), kills, any::<u32>()).prop_map(
        |(ms, impairment, has_gateways, kills, seed)| Load {
            connections: 400,
            spacing: Duration::from_millis(ms),
            impairment,
            has_gateways,
            kills,
            seed: seed.into(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_connection_hangs_whatever_is_lost_or_killed(load in load()) {
        let tally = run(&load);
        prop_assert_eq!(tally.hanging, 0, "{:?}", tally);
        prop_assert!(tally.compressed > 0);
        if load.kills.is_empty() {
            prop_assert_eq!(tally.answered, load.connections, "{:?}", tally);
        }
    }
}

#[test]
fn short_connections_are_answered_one_after_the_other_and_compressed_while_there_are_identifiers() {
    let spacing = Duration::from_millis(300);
    let load = Load {
        connections: 600,
        spacing,
        impairment: Impairment::default(),
        has_gateways: false,
        kills: Vec::new(),
        seed: 1,
    };
    let tally = run(&load);
    // 200 connections begin within the time that TIME-WAIT lasts: there is an identifier for each.
    assert_eq!(tally, Tally { answered: 600, told: 0, hanging: 0, compressed: 600 });
    // 255 begin at once, and the identifiers rest for longer than the others take.
    let tally = run(&Load { spacing: Duration::from_millis(1), ..load });
    assert_eq!(tally, Tally { answered: 600, told: 0, hanging: 0, compressed: 255 });
}

/// A draw that once hung: the server is killed while connections are under way.
#[test]
fn no_connection_hangs_if_the_server_forgets_it_while_segments_are_reordered() {
    let impairment = Impairment {
        loss: 0.033_840_687_724_308_115,
        reorder: 0.175_857_748_556_664_17,
        reorder_delay: Duration::from_millis(35),
        ..Impairment::default()
    };
    let load = Load {
        connections: 400,
        spacing: Duration::from_millis(1),
        impairment,
        has_gateways: false,
        kills: vec![(1, 201)],
        seed: 305_031_629,
    };
    assert_eq!(run(&load).hanging, 0);
}
