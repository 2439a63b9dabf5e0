//! SCPS-TP over SP, over IPv4 and over NP: transfers with loss, reordering and an adversary on the path; wrong keys; a new key in
//! the midst of a transfer.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_np::scmp::Message;
use scps_np::{tpid, Address, Addresses, Datagram, Dialect, Header, Tables};
use scps_sim::{Impairment, LinkConfig, Network, Node, Program, ENDS, PORT};
use scps_sp::{AeadKey, Association, Dropped, Ends, Policy, Refused, Sp, SpConfig, Suite};
use scps_tp::net::{NetworkConfig, NpConfig, Protection, Services};
use scps_tp::{CloseReason, Config, ConnectError, DropReason, Event, RouteConfig};
use scps_wire::{Bitrate, Duration, Instant, Rng, Seed};
use std::net::Ipv4Addr;

const HOSTS: [Ipv4Addr; 2] = [Network::address(0), Network::address(1)];
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const NP: [u16; 3] = [0x7290, 0x7292, 0x7294];

fn np(i: usize) -> NetworkConfig {
    let mut tables = Tables::of(HOSTS[i]);
    for (ip, np) in HOSTS.into_iter().chain([ROUTER]).zip(NP) {
        tables.add_host(ip, Address::Basic(np)).unwrap();
    }
    NetworkConfig::Np(Box::new(NpConfig { believed: vec![ROUTER], ..NpConfig::with_tables(tables) }))
}

fn ends() -> Ends {
    Ends::v4(HOSTS[0], HOSTS[1])
}

/// Associations of both directions under a master key.
fn pair(suite: Suite, key_id: u16, master: u8, services: Services) -> Vec<Association> {
    [ends(), ends().back()]
        .map(|ends| {
            let key = AeadKey::derive(suite, &[master; 32], &ends, key_id, services).unwrap();
            let label = if services.has(Services::LABEL) { b"UNCLAS".to_vec() } else { Vec::new() };
            Association { services, label, ..Association::new(ends, key_id, key) }
        })
        .into()
}

fn usual() -> Vec<Association> {
    pair(Suite::Aes256Gcm, 1, 7, Services::CONFIDENTIALITY.with(Services::INTEGRITY))
}

fn protection(i: usize, policy: Policy, associations: Vec<Association>) -> Protection {
    let local = vec![HOSTS[i].into()];
    let config = SpConfig { policy, local, allow_downgrade: true, associations, ..SpConfig::default() };
    Protection::new(Sp::new(config, Instant::ZERO).unwrap())
}

/// Two hosts, not connected yet.
fn network(is_np: bool, mtu: u16, impairment: &Impairment, seed: u64) -> Network {
    let networks = if is_np { [0, 1].map(np) } else { Default::default() };
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(2_000_000)),
        delay: Duration::from_millis(20),
        impairment: impairment.clone(),
        ..LinkConfig::default()
    };
    let route = RouteConfig::default().mtu(mtu).initial_rto(Duration::from_secs(1));
    let mut network = Network::over(&networks, [route, route], [link.clone(), link], Seed::from_u64(seed));
    network.captures = true;
    network
}

fn protected(is_np: bool, associations: [Vec<Association>; 2]) -> Network {
    let mut network = network(is_np, 1500, &Impairment::default(), 1);
    for (i, associations) in associations.into_iter().enumerate() {
        network[ENDS[i]].protect(protection(i, Policy::Strict, associations));
    }
    network
}

fn begin(network: &mut Network, bytes: usize, config: &Config) {
    let mut data = vec![0; bytes];
    Seed::from_u64(3).stream("data").fill(&mut data);
    network[ENDS[1]].listen(PORT, config.clone());
    network[ENDS[0]].connect(Instant::ZERO, (HOSTS[1], PORT), config.clone(), Program::sending(data));
}

fn is_complete(network: &Network) -> bool {
    network[ENDS[0]].has_sent_all_to(&network[ENDS[1]])
}

fn sp(network: &Network, i: usize) -> &Sp {
    &network[ENDS[i]].endpoint.protection().unwrap().sp
}

/// An adversary who sees every packet: he sends some again, now or much later, and some changed; some he invents.
fn attack(network: &mut Network, rng: &mut Rng, seen: &mut usize) {
    while *seen < network.capture.len() {
        let (_, from, packet) = network.capture[*seen].clone();
        *seen += 1;
        let now = network.now;
        match rng.below(8) {
            0 => network[ENDS[1 - from]].handle(now, 0, &packet),
            1 => {
                let older = rng.below(network.capture.len() as u64) as usize;
                let (_, from, packet) = network.capture[older].clone();
                network[ENDS[1 - from]].handle(now, 0, &packet);
            }
            2 => {
                let mut forged = packet;
                let bit = rng.below(forged.len() as u64 * 8) as usize;
                forged[bit / 8] ^= 1 << (bit % 8);
                network[ENDS[1 - from]].handle(now, 0, &forged);
            }
            // Back to whoever sent it.
            3 => network[ENDS[from]].handle(now, 0, &packet),
            4 => {
                let mut cut = packet;
                cut.truncate(rng.below(80) as usize);
                network[ENDS[1 - from]].handle(now, 0, &cut);
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_delivered_stream_is_the_sent_stream(
        bytes in 1usize..60_000,
        seed in any::<u64>(),
        is_np in any::<bool>(),
        suite in prop_oneof![Just(Suite::Aes256Gcm), Just(Suite::ChaCha20Poly1305), Just(Suite::Aes128Gcm)],
        is_secret in any::<bool>(),
        has_addresses in any::<bool>(),
        has_label in any::<bool>(),
        pad_to in prop_oneof![Just(None), (2u8..=255).prop_map(Some)],
        compression in any::<bool>(),
        loss in 0.0..0.15,
        reorder in 0.0..0.2,
        duplicate in 0.0..0.1,
        mtu in 300u16..3000,
    ) {
        let mut services = Services::INTEGRITY;
        for (is_set, service) in [
            (is_secret, Services::CONFIDENTIALITY),
            (has_addresses, Services::AUTHENTICATION),
            (has_label, Services::LABEL),
        ] {
            services = if is_set { services.with(service) } else { services };
        }
        let impairment =
            Impairment { loss, reorder, duplicate, reorder_delay: Duration::from_millis(30), ..Impairment::default() };
        let mut n = network(is_np, mtu, &impairment, seed);
        for i in 0..2 {
            let associations =
                pair(suite, 1, 7, services).into_iter().map(|a| Association { pad_to, ..a }).collect();
            n[ENDS[i]].protect(protection(i, Policy::Strict, associations));
        }
        begin(&mut n, bytes, &Config::modern().compression(compression));
        let mut rng = Seed::from_u64(seed).stream("adversary");
        let mut seen = 0;
        while !is_complete(&n) {
            prop_assert!(n.step(Instant::from_secs(1200)), "{:?}", sp(&n, 1).counters());
            attack(&mut n, &mut rng, &mut seen);
        }
        // Nothing was longer than the path carries, and nothing of the data could be read.
        let longest = n.capture.iter().map(|(_, _, packet)| packet.len()).max();
        prop_assert!(longest.unwrap_or(0) <= usize::from(mtu));
        if is_secret {
            for (_, _, packet) in &n.capture {
                for piece in n[ENDS[0]].first().unwrap().1.to_send.chunks_exact(64).take(20) {
                    prop_assert!(!packet.windows(16).any(|window| window == &piece[..16]));
                }
            }
        }
    }
}

#[test]
fn segments_fill_what_the_layers_leave_of_the_mtu() {
    // 20 octets of IP or 8 of NP and checksum and hop count, 26 of SP; the segment's size is made even (scps-tp §2.7).
    for is_np in [false, true] {
        let mut n = protected(is_np, [usual(), usual()]);
        begin(&mut n, 30_000, &Config::default());
        assert!(n.run(Instant::from_secs(60), is_complete));
        let longest = n.capture.iter().map(|(_, _, packet)| packet.len()).max().unwrap();
        assert!((1499..=1500).contains(&longest), "{longest}");
    }
}

#[test]
fn over_np_sp_is_tpid_8_and_over_ip_a_protocol_of_its_own() {
    let mut n = protected(true, [usual(), usual()]);
    begin(&mut n, 1000, &Config::default());
    assert!(n.run(Instant::from_secs(60), is_complete));
    for (_, _, packet) in &n.capture {
        let datagram = Datagram::parse(packet, Dialect::default()).unwrap();
        assert_eq!((datagram.header.tpid, datagram.payload()[0]), (tpid::SCPS_SP, 0x6a));
    }
    for ip_protocol in [99, 7] {
        let mut n = network(false, 1500, &Impairment::default(), 1);
        for i in 0..2 {
            let protection = Protection { ip_protocol, ..protection(i, Policy::Strict, usual()) };
            n[ENDS[i]].protect(protection);
        }
        begin(&mut n, 1000, &Config::default());
        assert!(n.run(Instant::from_secs(60), is_complete));
        assert!(n.capture.iter().all(|(_, _, packet)| (packet[9], packet[20]) == (ip_protocol, 0x6a)));
    }
}

#[test]
fn with_another_key_nothing_is_answered_and_the_sender_gives_up() {
    let other = pair(Suite::Aes256Gcm, 1, 8, Services::CONFIDENTIALITY.with(Services::INTEGRITY));
    for is_np in [false, true] {
        let mut n = protected(is_np, [usual(), other.clone()]);
        let mut config = Config::default();
        config.rto.syn_retransmissions_max = 4;
        begin(&mut n, 1000, &config);
        n.run(Instant::from_secs(3600), |_| false);
        assert!(matches!(n[ENDS[0]].events[..], [Event::Closed(_, CloseReason::TimedOut)]), "{:?}", n[ENDS[0]].events);
        assert!(n.capture.iter().all(|(_, from, _)| *from == 0), "the receiver says nothing");
        assert_eq!(sp(&n, 1).counters().dropped(Dropped::Authentication), n.capture.len() as u64);
        assert_eq!(n[ENDS[1]].endpoint.drops(DropReason::Unprotected), n.capture.len() as u64);
    }
}

#[test]
fn with_sp_at_one_end_nothing_is_answered() {
    // Protected to a host that knows nothing of it.
    let mut n = network(false, 1500, &Impairment::default(), 1);
    n[ENDS[0]].protect(protection(0, Policy::Strict, usual()));
    begin(&mut n, 1000, &Config::default());
    n.run(Instant::from_secs(600), |_| false);
    assert!(n.capture.iter().all(|(_, from, _)| *from == 0));
    assert_eq!(n[ENDS[1]].endpoint.drops(DropReason::UnknownProtocol), n.capture.len() as u64);
    // In clear to a host that demands protection.
    let mut n = network(false, 1500, &Impairment::default(), 1);
    n[ENDS[1]].protect(protection(1, Policy::Strict, usual()));
    begin(&mut n, 1000, &Config::default());
    n.run(Instant::from_secs(600), |_| false);
    assert!(n.capture.iter().all(|(_, from, _)| *from == 0));
    assert_eq!(sp(&n, 1).counters().dropped(Dropped::Policy), n.capture.len() as u64);
}

#[test]
fn on_demand_what_has_no_association_goes_in_clear_and_is_counted() {
    let mut n = network(false, 1500, &Impairment::default(), 1);
    for i in 0..2 {
        n[ENDS[i]].protect(protection(i, Policy::OnDemand, Vec::new()));
    }
    begin(&mut n, 5000, &Config::default());
    assert!(n.run(Instant::from_secs(60), is_complete));
    let counters = [0, 1].map(|i| *sp(&n, i).counters());
    assert!(counters[0].downgraded_out > 3 && counters[0].downgraded_out == counters[1].downgraded_in);
    assert!(n.capture.iter().all(|(_, _, packet)| packet[9] == 6));
    // What has one is protected, and a segment in clear in its stead is not taken.
    let mut n = network(false, 1500, &Impairment::default(), 1);
    n[ENDS[1]].protect(protection(1, Policy::OnDemand, usual()));
    begin(&mut n, 1000, &Config::default());
    n.run(Instant::from_secs(600), |_| false);
    assert!(n.capture.iter().all(|(_, from, _)| *from == 0));
}

#[test]
fn without_an_association_a_connection_is_refused_and_nothing_leaves() {
    let mut n = network(false, 1500, &Impairment::default(), 1);
    n[ENDS[0]].protect(protection(0, Policy::Strict, usual()));
    let to = |ip: [u8; 4], services| {
        let config = Config::default().services(services);
        ((HOSTS[0], 0), (Ipv4Addr::from(ip), PORT), config)
    };
    for ((local, remote, config), reason) in [
        (to([10, 0, 0, 77], Services::NONE), Refused::NoAssociation),
        // The association has no label; what it has may be asked for.
        (to([10, 0, 0, 2], Services::LABEL), Refused::Service),
    ] {
        let refused = n[ENDS[0]].endpoint.connect(Instant::ZERO, local, remote, config);
        assert_eq!(refused, Err(ConnectError::Unprotected(reason)));
    }
    n.run(Instant::from_secs(60), |_| false);
    assert!(n.capture.is_empty());
    let (local, remote, config) = to([10, 0, 0, 2], Services::AUTHENTICATION.with(Services::CONFIDENTIALITY));
    let now = n.now;
    assert!(n[ENDS[0]].endpoint.connect(now, local, remote, config).is_ok());
}

#[test]
fn a_new_key_takes_over_in_the_midst_of_a_transfer() {
    let services = Services::CONFIDENTIALITY.with(Services::INTEGRITY);
    let both = [usual(), pair(Suite::ChaCha20Poly1305, 2, 9, services)].concat();
    for is_np in [false, true] {
        let mut n = protected(is_np, [both.clone(), both.clone()]);
        begin(&mut n, 200_000, &Config::modern());
        assert!(n.run(Instant::from_secs(60), |n| n[ENDS[1]].received().len() > 100_000));
        let under_old = n.capture.len();
        let now = n.now;
        assert!(n[ENDS[0]].endpoint.protection_mut().unwrap().sp.rekey(now, ends()));
        assert!(n.run(Instant::from_secs(60), is_complete));
        let key_id = |packet: &[u8]| {
            let front = if is_np { 11 } else { 20 };
            u16::from_be_bytes([packet[front + 1], packet[front + 2]])
        };
        let ids = |range: &[(Instant, usize, Vec<u8>)]| -> Vec<u16> {
            range.iter().filter(|(_, from, _)| *from == 0).map(|(_, _, packet)| key_id(packet)).collect()
        };
        assert!(ids(&n.capture[..under_old]).iter().all(|id| *id == 1));
        assert!(ids(&n.capture[under_old..]).iter().all(|id| *id == 2));
        // Nothing was lost for it: what was under way under the old key was taken.
        assert_eq!(sp(&n, 1).counters().dropped_total(), 0);
        // The old key is taken for a minute after the first packet under the new one, and then no more.
        let (_, _, old) = n.capture[..under_old].iter().rfind(|(_, from, _)| *from == 0).unwrap().clone();
        let now = n.now;
        n[ENDS[1]].handle(now + Duration::from_secs(61), 0, &old);
        assert_eq!(sp(&n, 1).counters().dropped(Dropped::ExpiredKey), 1);
        assert!(!n[ENDS[0]].endpoint.protection_mut().unwrap().sp.rekey(now, ends()), "there is no third key");
    }
}

#[test]
fn control_messages_pass_sp_on_np_and_on_ip() {
    let mut n = protected(true, [usual(), usual()]);
    begin(&mut n, 100_000, &Config::default());
    n.run(Instant::from_millis(300), |_| false);
    let corruption = |src: u16| {
        let mut data = Vec::new();
        Message::Corruption.emit(true, &mut data);
        let addresses = Addresses::Basic { dst: NP[0], src };
        let header = Header { tpid: tpid::SCMP, addresses, checksum: true, ..Header::default() };
        let mut packet = vec![0; header.emit_len()];
        packet.extend(data);
        header.emit(Dialect::default(), 1500, &mut packet).unwrap();
        packet
    };
    let now = n.now;
    n[ENDS[0]].handle(now, 0, &corruption(NP[2]));
    assert!(!n[ENDS[0]].endpoint.route(scps_tp::RouteId::default()).unwrap().loss_is_congestion(now), "it was heeded");
    // SP refused none of it; as ever only a router that is believed may say so.
    assert_eq!(n[ENDS[0]].endpoint.drops(DropReason::Unprotected), 0);
    n[ENDS[0]].handle(now, 0, &corruption(NP[1]));
    assert_eq!(n[ENDS[0]].endpoint.drops(DropReason::UnknownProtocol), 1);
}
