//! SCPS-TP over NP: transfers, precedence, and what control messages do to a connection (scps-np §6.5, §7).
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_np::scmp::{Message, Restored, Unreachable};
use scps_np::{tpid, Address, Addresses, BasicQos, Datagram, Dialect, Header, NpProfile, Tables, DATAGRAM_MAX};
use scps_sim::{Impairment, LinkConfig, Network, Node, Transfer, ENDS, LINK, PORT};
use scps_tp::net::{NetworkConfig, NpConfig};
use scps_tp::{Config, Congestion, DropReason, RouteConfig, Snapshot, State, VegasConfig, VegasDecrease};
use scps_wire::{Bitrate, Duration, Instant, Precedence, Seed};
use std::net::Ipv4Addr;

const NP: [u16; 2] = [0x7290, 0x7292];
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const ROUTER_NP: u16 = 0x7294;

/// Host `i` of the network, with basic addresses for both and the router.
fn np(i: u8) -> NpConfig {
    let mut tables = Tables::of(Network::address(i));
    for (ip, np) in [(Network::address(0), NP[0]), (Network::address(1), NP[1]), (ROUTER, ROUTER_NP)] {
        tables.add_host(ip, Address::Basic(np)).unwrap();
    }
    NpConfig { believed: vec![ROUTER], ..NpConfig::with_tables(tables) }
}

fn layers(change: impl Fn(&mut NpConfig)) -> [NetworkConfig; 2] {
    [0, 1].map(|i| {
        let mut config = np(i);
        change(&mut config);
        NetworkConfig::Np(Box::new(config))
    })
}

fn transfer(config: Config, networks: [NetworkConfig; 2], route: RouteConfig) -> Transfer {
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(2_000_000)),
        delay: Duration::from_millis(50),
        ..LinkConfig::default()
    };
    Transfer {
        bytes: 40_000,
        sender: config.clone(),
        receiver: config,
        routes: [route, route],
        networks,
        links: [link.clone(), link],
        seed: 7,
        limit: Duration::from_secs(600),
    }
}

fn headers(network: &Network) -> Vec<(usize, Header, usize)> {
    let parse = |(_, host, packet): &(Instant, usize, Vec<u8>)| {
        (*host, Datagram::parse(packet, Dialect::default()).unwrap().header, packet.len())
    };
    network.capture.iter().map(parse).collect()
}

#[test]
fn segments_fill_what_the_header_leaves_of_the_mtu() {
    let route = RouteConfig::default().rate(None).mtu(1500);
    let network = transfer(Config::default(), layers(|_| ()), route).run_captured();
    // Three octets, control octet 3, two addresses, hop count, checksum: 11, where IPv4 has 20. 1469 is made even.
    assert_eq!(network[ENDS[0]].endpoint.segment_size(network[ENDS[0]].connection().unwrap()), Some(1468 - 12));
    assert_eq!(headers(&network).iter().map(|(_, _, len)| *len).max(), Some(1499));
}

#[test]
fn nothing_longer_than_np_carries_is_sent() {
    let route = RouteConfig::default().rate(None).mtu(u16::MAX);
    let big = Transfer { bytes: 200_000, ..transfer(Config::modern(), layers(|_| ()), route) };
    let network = big.run_captured();
    assert!(network[ENDS[0]].has_sent_all_to(&network[ENDS[1]]));
    let longest = headers(&network).iter().map(|(_, _, len)| *len).max().unwrap();
    assert!((DATAGRAM_MAX - 2..=DATAGRAM_MAX).contains(&longest), "{longest}");
}

#[test]
fn what_does_not_fit_the_route_is_not_sent() {
    // Not even a SYN with its options fits.
    let route = RouteConfig::default().rate(None).mtu(40);
    let network = Transfer { limit: Duration::from_secs(60), ..transfer(Config::default(), layers(|_| ()), route) };
    let network = network.run_captured();
    assert!(network.capture.is_empty());
    let stats = network[ENDS[0]].endpoint.stats(network[ENDS[0]].connection().unwrap()).unwrap();
    assert!(stats.too_big > 1 && stats.too_big == stats.segments_sent, "{stats:?}");
}

#[test]
fn every_packet_carries_the_precedence_of_its_connection() {
    let nine = Precedence::new(9);
    let config = Config::default().precedence(nine);
    let mut lossy = transfer(config, layers(|_| ()), RouteConfig::default());
    lossy.receiver.precedence = None;
    lossy.links[0].impairment = Impairment { drop_list: vec![5, 6, 9], ..Impairment::default() };
    let network = lossy.run_captured();
    assert!(network[ENDS[0]].has_sent_all_to(&network[ENDS[1]]));
    let all = headers(&network);
    // Both directions, from SYN to FIN, resends among them: who accepts answers as urgently as he was asked.
    assert!(all.iter().all(|(_, header, _)| header.qos == nine.map(BasicQos::of)));
    assert!(all.iter().any(|(host, ..)| *host == 1));
    // T6: precedence 9 is octet 90, behind the addresses.
    assert!(network.capture.iter().all(|(_, _, packet)| packet[8] == 0x90));
}

#[test]
fn without_a_precedence_the_operators_default_counts() {
    let sent = |default: u8| {
        let set = |config: &mut NpConfig| config.default_precedence = Precedence::new(default).unwrap();
        headers(&transfer(Config::default(), layers(set), RouteConfig::default()).run_captured())
    };
    assert!(sent(0).iter().all(|(_, header, _)| header.qos.is_none()));
    let five = Some(BasicQos::of(Precedence::new(5).unwrap()));
    assert!(sent(5).iter().all(|(_, header, _)| header.qos == five));
}

#[test]
fn the_hop_count_starts_at_ten_unless_configured() {
    let sent = |hop_count: Option<Option<u8>>| {
        let set = |config: &mut NpConfig| config.hop_count = hop_count.unwrap_or(config.hop_count);
        headers(&transfer(Config::default(), layers(set), RouteConfig::default()).run_captured())
    };
    assert!(sent(None).iter().all(|(_, header, _)| header.hop_count == Some(10)));
    assert!(sent(Some(Some(3))).iter().all(|(_, header, _)| header.hop_count == Some(3)));
    assert!(sent(Some(None)).iter().all(|(_, header, _)| header.hop_count.is_none()));
}

/// Two connections in the midst of a transfer.
struct Midway {
    network: Network,
    ids: [scps_tp::ConnectionId; 2],
    /// Until when it has run.
    at: Instant,
}

impl Midway {
    fn new() -> Self {
        Midway::with(Congestion::Vj, Vec::new())
    }

    fn with(congestion: Congestion, drop_list: Vec<u64>) -> Self {
        let mut midway = Midway::begin(congestion, Impairment { drop_list, ..Impairment::default() });
        midway.run(Duration::from_millis(700));
        midway
    }

    fn begin(congestion: Congestion, impairment: Impairment) -> Self {
        let config = Config::default().congestion(congestion).send_buffer(400_000).receive_buffer(400_000);
        let route = RouteConfig::default().rate(None);
        let mut there = transfer(config.clone(), layers(|_| ()), route).links;
        there[0].impairment = impairment;
        let mut network = Network::over(&layers(|_| ()), [route, route], there, Seed::from_u64(3));
        network.captures = true;
        network[ENDS[1]].listen(PORT, config.clone());
        let remote = (Network::address(1), PORT);
        let ids = [1000, 1001].map(|port| {
            let (now, host) = (network.now, &mut network[ENDS[0]].endpoint);
            let id = host.connect(now, (Network::address(0), port), remote, config.clone()).unwrap();
            host.send(now, id, &vec![7; 300_000]).unwrap();
            id
        });
        Midway { network, ids, at: Instant::ZERO }
    }

    fn run(&mut self, time: Duration) {
        self.at += time;
        self.network.run(self.at, |_| false);
    }

    fn snapshots(&self) -> [Snapshot; 2] {
        self.ids.map(|id| self.network[ENDS[0]].endpoint.snapshot(id).unwrap())
    }

    fn sent(&self, i: usize) -> u64 {
        self.network[ENDS[0]].endpoint.stats(self.ids[i]).unwrap().data_segments_sent
    }

    /// The last packet with data of connection `i`: it is in flight.
    fn in_flight(&self, i: usize) -> Vec<u8> {
        let is_it = |(_, host, packet): &&(Instant, usize, Vec<u8>)| {
            *host == 0 && packet.len() > 500 && packet[11..13] == (1000 + i as u16).to_be_bytes()
        };
        self.network.capture.iter().rev().find(is_it).unwrap().2.clone()
    }

    /// Hands host 0 a control message from `src`.
    fn tell(&mut self, src: u16, message: &Message<'_>) {
        let mut body = Vec::new();
        message.emit(true, &mut body);
        self.tell_octets(src, &body);
    }

    fn tell_octets(&mut self, src: u16, body: &[u8]) {
        let header = Header {
            tpid: tpid::SCMP,
            addresses: Addresses::Basic { dst: NP[0], src },
            checksum: true,
            ..Header::default()
        };
        let mut packet = vec![0; header.emit_len()];
        packet.extend_from_slice(body);
        header.emit(Dialect::default(), 1500, &mut packet).unwrap();
        let now = self.network.now;
        self.network[ENDS[0]].handle(now, 0, &packet);
    }

    fn drops(&self) -> u64 {
        let endpoint = &self.network[ENDS[0]].endpoint;
        [DropReason::ForeignReport, DropReason::UnknownProtocol, DropReason::BadSegment, DropReason::BadHeader]
            .map(|reason| endpoint.drops(reason))
            .iter()
            .sum()
    }
}

#[test]
fn source_quench_slows_the_quoted_connection_only() {
    let mut m = Midway::new();
    let before = m.snapshots();
    let quote = m.in_flight(0);
    m.tell(ROUTER_NP, &Message::SourceQuench(&quote[..50]));
    let after = m.snapshots();
    let mss = m.network[ENDS[0]].endpoint.segment_size(m.ids[0]).unwrap();
    assert!(before[0].cwnd > 4 * mss);
    assert_eq!((after[0].cwnd, after[0].ssthresh), (mss, 2 * mss));
    assert_eq!(after[1], before[1]);
    let signals = m.network[ENDS[0]].endpoint.signals();
    assert_eq!((signals.congestion, signals.corruption, signals.outage), (1, 0, 0));
}

#[test]
fn corruption_changes_no_window_and_no_timeout_and_makes_losses_harmless() {
    let lowest = |is_told: bool| {
        // VJ takes every loss for congestion (scps-tp §4.3); Vegas asks what the route's losses mean. A growing queue takes a segment at
        // a time here, so that what halves the window is a loss.
        let vegas = VegasConfig::default().decrease(VegasDecrease::Segment);
        let mut m = Midway::with(Congestion::Vegas(vegas), (90..100).collect());
        let before = m.snapshots();
        if is_told {
            m.tell(ROUTER_NP, &Message::Corruption);
            assert_eq!(m.snapshots(), before);
            assert_eq!(m.network[ENDS[0]].endpoint.signals().corruption, 1);
        }
        let mut lowest = before[0].cwnd.min(before[1].cwnd);
        for _ in 0..100 {
            m.run(Duration::from_millis(10));
            lowest = m.snapshots().iter().map(|s| s.cwnd).chain([lowest]).min().unwrap();
        }
        let resends =
            m.ids.iter().map(|id| m.network[ENDS[0]].endpoint.stats(*id).unwrap().resends_total()).sum::<u64>();
        assert!(resends >= 10, "{resends} of the ten lost segments were resent");
        (before[0].cwnd.min(before[1].cwnd), lowest)
    };
    let (before, after) = lowest(true);
    // Vegas takes a few segments back when the queue grows; a loss halves, as it does where nobody explains it.
    assert!(after * 4 > before * 3, "{after} of {before}");
    let (before, after) = lowest(false);
    assert!(after * 4 < before * 3, "{after} of {before}");
}

#[test]
fn an_outage_suspends_until_the_link_is_available() {
    let mut m = Midway::new();
    // The link takes everything down with it; what was acknowledged before still comes.
    m.network[LINK].ways[0].config_mut().impairment.loss = 1.0;
    m.run(Duration::from_millis(600));
    let quote = m.in_flight(0);
    m.tell(ROUTER_NP, &Message::Unreachable(Unreachable::LinkOutage, &quote[..50]));
    m.run(Duration::from_millis(200));
    assert_eq!(m.network[ENDS[0]].endpoint.signals().outage, 1);
    let (rtos, sent) = (m.network[ENDS[0]].endpoint.totals().rtos, m.sent(0));
    // Ten minutes of probes: none counts as a retry, nothing new leaves, no timer doubles.
    m.run(Duration::from_secs(600));
    assert_eq!((m.network[ENDS[0]].endpoint.totals().rtos, m.sent(0)), (rtos, sent));
    let stats = m.network[ENDS[0]].endpoint.stats(m.ids[0]).unwrap();
    assert!(stats.probes_sent > 5, "{}", stats.probes_sent);
    m.network[LINK].ways[0].config_mut().impairment.loss = 0.0;
    let restored = Restored::Destination(Address::Basic(NP[1]));
    m.tell(ROUTER_NP, &Message::LinkAvailable(restored));
    m.run(Duration::from_secs(3));
    assert!(m.sent(0) > sent, "it goes on");
}

#[test]
fn a_packet_of_the_peer_ends_an_outage_as_well() {
    let mut m = Midway::new();
    let quote = m.in_flight(0);
    m.tell(ROUTER_NP, &Message::Unreachable(Unreachable::LinkOutage, &quote[..50]));
    let sent = m.sent(0);
    // Acknowledgements still come: whoever said the link is down was wrong.
    m.run(Duration::from_millis(400));
    assert!(m.sent(0) > sent);
}

#[test]
fn a_report_that_may_pass_ends_a_connect_only_after_another_syn() {
    for why in Unreachable::ALL.into_iter().filter(|why| *why != Unreachable::LinkOutage) {
        let mut m = Midway::begin(Congestion::Vj, Impairment { loss: 1.0, ..Impairment::default() });
        let is_final = matches!(why, Unreachable::Protocol | Unreachable::Port | Unreachable::Filtered);
        let syns =
            |m: &Midway| m.network.capture.iter().filter(|(_, _, syn)| syn[11..13] == 1000_u16.to_be_bytes()).count();
        let is_connecting = |m: &Midway| m.network[ENDS[0]].endpoint.state(m.ids[0]) == Some(State::SynSent);
        while syns(&m) == 0 {
            m.run(Duration::from_millis(100));
        }
        let syn = m.network.capture[0].2.clone();
        let quote = &syn[..syn.len().min(50)];
        m.tell(ROUTER_NP, &Message::Unreachable(why, quote));
        assert_eq!(is_connecting(&m), !is_final, "{why:?}");
        while is_connecting(&m) && syns(&m) == 1 {
            m.run(Duration::from_millis(100));
        }
        m.tell(ROUTER_NP, &Message::Unreachable(why, quote));
        assert!(!is_connecting(&m), "{why:?}");
        assert_eq!(syns(&m), if is_final { 1 } else { 2 }, "{why:?}");
    }
}

#[test]
fn too_big_lowers_the_segment_size() {
    // 296 is less than IPv4 is believed to have, where routers cut what they cannot forward; those of NP cannot.
    for mtu in [576_usize, 296] {
        let mut m = Midway::new();
        let quote = m.in_flight(0);
        m.tell(ROUTER_NP, &Message::TooBig { mtu: mtu as u16, quote: &quote[..50] });
        let from = m.network.capture.len();
        m.run(Duration::from_millis(500));
        let longest = headers(&m.network)[from..].iter().map(|(_, _, len)| *len).max().unwrap();
        assert!((mtu - 2..=mtu).contains(&longest), "{longest} of {mtu}");
    }
}

#[test]
fn forged_messages_from_off_the_path_do_nothing() {
    let mut m = Midway::new();
    let genuine = m.in_flight(0);
    let stranger = 0x7a7a;
    let damage = |at: usize, with: &[u8]| {
        let mut quote = genuine[..50].to_vec();
        quote[at..at + with.len()].copy_from_slice(with);
        quote
    };
    // Ports are octets 11 to 14 of these datagrams, the sequence number 15 to 18.
    let wrong_port = damage(11, &[0x77, 0x77]);
    let wrong_peer_port = damage(13, &[0x77, 0x77]);
    let wrong_address = damage(4, &ROUTER_NP.to_be_bytes());
    let swapped = damage(4, &[0x72, 0x90, 0x72, 0x92]);
    let mut wrong_number = genuine[..50].to_vec();
    wrong_number[15] ^= 0x40;
    let short = &genuine[..18];
    let quotes =
        [&wrong_port[..], &wrong_peer_port, &wrong_address, &swapped, &wrong_number, short, &genuine[..2], &[]];
    let before = m.snapshots();
    let mut attempts = 0;
    for quote in quotes {
        for message in [
            Message::SourceQuench(quote),
            Message::Unreachable(Unreachable::LinkOutage, quote),
            Message::Unreachable(Unreachable::Protocol, quote),
            Message::TooBig { mtu: 68, quote },
        ] {
            m.tell(ROUTER_NP, &message);
            attempts += 1;
        }
    }
    // Corruption from a router that nobody named; a redirect; a message whose checksum is wrong.
    for (src, message) in [
        (NP[1], Message::Corruption),
        (stranger, Message::Corruption),
        (ROUTER_NP, Message::Redirect { qos: false, next_hop: Address::Basic(stranger), quote: &genuine[..50] }),
        (stranger, Message::SourceQuench(&genuine[..50])),
    ] {
        m.tell(src, &message);
        attempts += 1;
    }
    m.tell_octets(ROUTER_NP, &[&[4, 0, 1, 1][..], &genuine[..50]].concat());
    attempts += 1;
    assert_eq!(m.snapshots(), before);
    assert_eq!(m.drops(), attempts);
    // The connections go on as if nothing had been said.
    let sent = m.sent(0);
    m.run(Duration::from_millis(300));
    assert!(m.sent(0) > sent);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn the_delivered_stream_is_the_sent_stream(
        bytes in 0usize..60_000,
        seed in any::<u64>(),
        is_ccsds in any::<bool>(),
        is_extended in any::<bool>(),
        checksum in any::<bool>(),
        compression in any::<bool>(),
        level in proptest::option::of(0u8..16),
        loss in 0.0..0.15,
        reorder in 0.0..0.2,
        duplicate in 0.0..0.1,
        mtu in 200u16..3000,
    ) {
        let networks = layers(|config| {
            if is_ccsds {
                config.dialect = Dialect { profile: NpProfile::Ccsds, ..Dialect::default() };
            }
            if is_extended {
                config.tables = Tables::default();
            }
            config.checksum = checksum;
        });
        let config = Config::modern().precedence(level.and_then(Precedence::new)).compression(compression);
        let route = RouteConfig::default().mtu(mtu);
        let mut t = Transfer { bytes, seed, ..transfer(config, networks, route) };
        for link in &mut t.links {
            link.impairment = Impairment {
                loss,
                reorder,
                duplicate,
                reorder_delay: Duration::from_millis(30),
                ..Impairment::default()
            };
        }
        let network = t.run_captured();
        prop_assert!(network[ENDS[0]].has_sent_all_to(&network[ENDS[1]]));
        let longest = network.capture.iter().map(|(_, _, packet)| packet.len()).max();
        prop_assert!(longest.unwrap_or(0) <= usize::from(mtu));
    }
}
