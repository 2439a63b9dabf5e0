//! SCPS-TP over NP through a router: precedence under load, source quench end to end (scps-np §7, T12).
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_np::{
    Address, Counter, Dialect, NpProfile, QueueConfig, Router, RouterConfig, RouterLink, ScmpCounter, SpRule, Tables,
};
use scps_sim::{At, Host, Impairment, Link, LinkConfig, Network, Program, RouterNode, PORT};
use scps_tp::net::{NetworkConfig, NpConfig};
use scps_tp::{Config, Congestion, ConnectionId, RouteConfig};
use scps_wire::{Bitrate, Duration, Instant, Precedence, Seed};
use std::net::Ipv4Addr;

const ROUTER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 99), 0x7200);

/// Address of host `i`, and its NP address.
fn host(i: usize) -> (Ipv4Addr, u16) {
    (Network::address(i as u8), 0x7290 + 2 * i as u16)
}

fn tables(own: Ipv4Addr, hosts: usize) -> Tables {
    let mut tables = Tables::of(own);
    for (ip, np) in (0..hosts).map(host).chain([ROUTER]) {
        tables.add_host(ip, Address::Basic(np)).unwrap();
    }
    tables
}

fn router(hosts: usize) -> Router {
    let mut tables = tables(ROUTER.0, hosts);
    let mut links = Vec::new();
    for (ip, np) in (0..hosts).map(host) {
        tables.add_next_hop(Address::Basic(np), ip).unwrap();
        let (dialect, queue) = (Dialect::default(), QueueConfig::default());
        links.push(RouterLink { dialect, mtu: 1500, neighbours: vec![ip], queue, sp: SpRule::default() });
    }
    Router::new(RouterConfig::default(), tables, links, Seed::from_u64(5), Instant::ZERO)
}

/// Hosts around a router.
struct Star {
    network: Network,
    hosts: Vec<At<Host>>,
    router: At<RouterNode>,
}

/// Senders, a router, and the last host behind 1 Mbit/s; the other links are fast.
fn network(routes: &[RouteConfig], impairment: Impairment) -> Star {
    let senders = routes.len();
    let hosts = (0..=senders).map(|i| {
        let route = *routes.get(i).unwrap_or(&routes[0]);
        let (ip, _) = host(i);
        let np = NpConfig { believed: vec![ROUTER.0], ..NpConfig::with_tables(tables(ip, senders + 1)) };
        Host::new(ip, route, NetworkConfig::Np(Box::new(np)), Seed::from_u64(i as u64))
    });
    let mut network = Network::default();
    let hosts: Vec<_> = hosts.map(|host| network.add(host)).collect();
    let router = network.add(RouterNode::new(router(senders + 1)));
    let delay = Duration::from_millis(20);
    let fast = LinkConfig { rate: Some(Bitrate::from_bps(10_000_000)), delay, ..LinkConfig::default() };
    let slow = LinkConfig { rate: Some(Bitrate::from_bps(1_000_000)), delay, impairment, ..LinkConfig::default() };
    let seed = Seed::from_u64(11);
    for (i, host) in hosts.iter().enumerate() {
        let to_host = if i == senders { slow.clone() } else { fast.clone() };
        let names = [format!("from router to {i}"), format!("from {i} to router")];
        let link = network.add(Link::new([to_host, fast.clone()], seed, [&names[0], &names[1]]));
        network.chain(&[router.into(), link.into(), (*host).into()]);
    }
    Star { network, hosts, router }
}

/// Opens a connection from every sender to the last host, with more to send than will fit.
fn open(star: &mut Star, config: &Config, levels: &[Option<u8>]) -> Vec<ConnectionId> {
    let (receiver, _) = host(levels.len());
    star.network[star.hosts[levels.len()]].listen(PORT, config.clone());
    let opened = levels.iter().enumerate().map(|(i, level)| {
        let config = config.clone().precedence(level.and_then(Precedence::new));
        let endpoint = &mut star.network[star.hosts[i]].endpoint;
        let id = endpoint.connect(Instant::ZERO, (host(i).0, 1000), (receiver, PORT), config).unwrap();
        endpoint.send(Instant::ZERO, id, &vec![7; 8_000_000]).unwrap();
        id
    });
    opened.collect()
}

#[test]
fn under_load_the_highest_precedence_has_the_least_delay_and_the_most_throughput() {
    // Three connections offer 2 Mbit/s to a link of 1 Mbit/s, the least urgent the most; windows do not limit them and
    // losses do not slow them.
    let config = Config::default().congestion(Congestion::None).send_buffer(8_000_000).receive_buffer(8_000_000);
    let rate = |bps| RouteConfig::default().rate(Some(Bitrate::from_bps(bps)));
    let mut star = network(&[1_200_000, 350_000, 450_000].map(rate), Impairment::default());
    let ids = open(&mut star, &config, &[Some(0), Some(7), Some(15)]);
    star.network.run(Instant::from_secs(20), |_| false);
    let shot = |(i, id): (usize, &ConnectionId)| star.network[star.hosts[i]].endpoint.snapshot(*id).unwrap();
    let shots: Vec<_> = ids.iter().enumerate().map(shot).collect();
    let acknowledged: Vec<u64> = shots.iter().map(|s| 8_000_000 - s.unacknowledged).collect();
    assert!(acknowledged[2] > acknowledged[1] && acknowledged[1] > acknowledged[0], "{acknowledged:?}");
    // What the upper two offer gets through, but for headers; the rest of the link is for the lowest.
    let bps = |octets: u64| octets as f64 * 8.0 / 20.0;
    assert!(bps(acknowledged[2]) > 0.9 * 450e3 && bps(acknowledged[1]) > 0.9 * 350e3, "{acknowledged:?}");
    let delays: Vec<_> = shots.iter().map(|s| s.srtt.unwrap()).collect();
    assert!(delays[2] < delays[1] && delays[1] < delays[0], "{delays:?}");
    let queue = star.network[star.router].router.queue(3);
    let discarded = |level| queue.counters(Precedence::new(level).unwrap()).discarded;
    assert!(discarded(0) > 0 && discarded(15) == 0, "{} {}", discarded(0), discarded(15));
}

#[test]
fn a_routers_source_quench_reaches_the_sender_and_slows_it() {
    let quenches = |congestion| {
        let config = Config::default().congestion(congestion).send_buffer(8_000_000).receive_buffer(8_000_000);
        let mut star = network(&[RouteConfig::default().rate(None)], Impairment::default());
        open(&mut star, &config, &[None]);
        star.network.run(Instant::from_secs(10), |_| false);
        let counters = star.network[star.router].router.counters();
        (counters.scmp_out(ScmpCounter::SrcQuenchs), counters.get(Counter::OutDiscards))
    };
    let (told, discarded) = quenches(Congestion::Vj);
    assert!(told > 0);
    // A sender that heeds nothing loses many times as much.
    let (_, unheeded) = quenches(Congestion::None);
    assert!(unheeded > 4 * discarded.max(1), "{unheeded} against {discarded}");
}

#[test]
fn a_transfer_through_a_router_survives_loss_and_reordering() {
    for seed in 0..8 {
        let impairment = Impairment {
            loss: 0.03,
            reorder: 0.1,
            reorder_delay: Duration::from_millis(30),
            duplicate: 0.02,
            ..Impairment::default()
        };
        let Star { mut network, hosts, router } = network(&[RouteConfig::default()], impairment);
        let mut data = vec![0; 100_000];
        Seed::from_u64(seed).stream("data").fill(&mut data);
        network[hosts[1]].listen(PORT, Config::default());
        network[hosts[0]].connect(Instant::ZERO, (host(1).0, PORT), Config::default(), Program::sending(data));
        assert!(network.run(Instant::from_secs(300), |n| n[hosts[0]].has_sent_all_to(&n[hosts[1]])));
        let counters = network[router].router.counters();
        assert_eq!(counters.get(Counter::InReceives), counters.get(Counter::ForwDatagrams));
    }
}

/// A host, and two routers that each send what is for the other host back to the other router.
fn loop_of_two(hop_count: Option<u8>, forwards_uncounted: bool) -> (Network, [At<RouterNode>; 2]) {
    let routers = [ROUTER, (Ipv4Addr::new(10, 0, 0, 98), 0x7202)];
    let known = |own: Ipv4Addr| {
        let mut tables = Tables::of(own);
        for (ip, np) in [host(0), host(1)].into_iter().chain(routers) {
            tables.add_host(ip, Address::Basic(np)).unwrap();
        }
        tables
    };
    let node = |i: usize| {
        let (own, other) = (routers[i], routers[1 - i]);
        let mut tables = known(own.0);
        tables.add_next_hop(Address::Basic(host(1).1), other.0).unwrap();
        tables.add_next_hop(Address::Basic(host(0).1), if i == 0 { host(0).0 } else { other.0 }).unwrap();
        let neighbours: &[Ipv4Addr] = if i == 0 { &[host(0).0, other.0] } else { &[other.0] };
        let link = |hop: &Ipv4Addr| RouterLink {
            dialect: Dialect::default(),
            mtu: 1500,
            neighbours: vec![*hop],
            queue: QueueConfig::default(),
            sp: SpRule::default(),
        };
        let config = RouterConfig { forwards_uncounted, ..RouterConfig::default() };
        Router::new(config, tables, neighbours.iter().map(link).collect(), Seed::from_u64(5), Instant::ZERO)
    };
    let np = NpConfig { hop_count, ..NpConfig::with_tables(known(host(0).0)) };
    let sender = Host::new(host(0).0, RouteConfig::default(), NetworkConfig::Np(Box::new(np)), Seed::from_u64(1));
    let mut network = Network::default();
    let routers = [0, 1].map(|i| network.add(RouterNode::new(node(i))));
    let sender = network.add(sender);
    let [to_sender, between] = ["sender", "between"].map(|name| {
        let (rate, delay) = (Some(Bitrate::from_bps(10_000_000)), Duration::from_millis(20));
        let link = LinkConfig { rate, delay, ..LinkConfig::default() };
        network.add(Link::new([link.clone(), link], Seed::from_u64(11), [name, name]))
    });
    network.chain(&[sender.into(), to_sender.into(), routers[0].into(), between.into(), routers[1].into()]);
    network[sender].connect(Instant::ZERO, (host(1).0, PORT), Config::default(), Program::default());
    (network, routers)
}

#[test]
fn a_loop_of_routes_ends_what_has_no_hop_count() {
    // Datagrams that both routers forwarded for the one SYN that left until then.
    let forwarded = |hop_count, forwards_uncounted| {
        let (mut network, routers) = loop_of_two(hop_count, forwards_uncounted);
        network.run(Instant::from_millis(900), |_| false);
        let sum = |counter| routers.map(|r| network[r].router.counters().get(counter)).iter().sum::<u32>();
        (sum(Counter::ForwDatagrams), sum(Counter::HopDiscard))
    };
    assert_eq!(forwarded(None, false), (0, 1));
    // Nine times the SYN, and once the message that it ended.
    assert_eq!(forwarded(Some(10), false), (10, 1));
    // As the protocol has it: once for each crossing of 20 ms, for ever.
    let (circling, ended) = forwarded(None, true);
    assert!(circling > 40 && ended == 0, "{circling} {ended}");
}

/// Two hosts of the reference's profile, and two routers with a CCSDS link between them; the second host's link carries 600 octets.
fn across_a_border() -> (Network, [At<Host>; 2]) {
    let routers = [ROUTER, (Ipv4Addr::new(10, 0, 0, 98), 0x7202)];
    let known = |own: Ipv4Addr| {
        let mut tables = Tables::of(own);
        for (ip, np) in [host(0), host(1)].into_iter().chain(routers) {
            tables.add_host(ip, Address::Basic(np)).unwrap();
        }
        tables
    };
    let node = |i: usize| {
        let mut tables = known(routers[i].0);
        let (near, far) = (host(i).0, routers[1 - i].0);
        for (np, via) in [(host(i).1, near), (host(1 - i).1, far), (routers[1 - i].1, far)] {
            tables.add_next_hop(Address::Basic(np), via).unwrap();
        }
        let link = |profile, mtu, hop| RouterLink {
            dialect: Dialect { profile, ..Dialect::default() },
            mtu,
            neighbours: vec![hop],
            queue: QueueConfig::default(),
            sp: SpRule::default(),
        };
        let to_host = link(NpProfile::Ri, [1500, 600][i], near);
        // Links are in the order of the chain.
        let mut links = vec![to_host, link(NpProfile::Ccsds, 1500, far)];
        links.rotate_left(i);
        Router::new(RouterConfig::default(), tables, links, Seed::from_u64(5), Instant::ZERO)
    };
    let mut network = Network::default();
    let hosts = [0, 1].map(|i| {
        let np = NpConfig::with_tables(known(host(i).0));
        let route = RouteConfig::default().rate(None);
        network.add(Host::new(host(i).0, route, NetworkConfig::Np(Box::new(np)), Seed::from_u64(i as u64)))
    });
    let routers = [0, 1].map(|i| network.add(RouterNode::new(node(i))));
    let links = ["first", "border", "last"].map(|name| {
        let (rate, delay) = (Some(Bitrate::from_bps(2_000_000)), Duration::from_millis(20));
        let link = LinkConfig { rate, delay, ..LinkConfig::default() };
        network.add(Link::new([link.clone(), link], Seed::from_u64(11), [name, name]))
    });
    let [first, border, last] = links.map(Into::into);
    network.chain(&[hosts[0].into(), first, routers[0].into(), border, routers[1].into(), last, hosts[1].into()]);
    (network, hosts)
}

#[test]
fn a_report_from_beyond_a_profile_border_is_understood() {
    let (mut network, hosts) = across_a_border();
    network[hosts[1]].listen(PORT, Config::default());
    network[hosts[0]].connect(Instant::ZERO, (host(1).0, PORT), Config::default(), Program::sending(vec![7; 40_000]));
    // Nothing longer than 600 octets arrives, which only the router behind the border can tell: its report quotes a datagram as it was there.
    assert!(network.run(Instant::from_secs(60), |n| n[hosts[0]].has_sent_all_to(&n[hosts[1]])));
}
