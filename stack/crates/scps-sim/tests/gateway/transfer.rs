//! Contents, ends and accounts of connections through gateways.

use crate::chain::{content, gateway_config, lan, plain, satellite, space, Chain, CLIENT, PORT, SERVER};
use scps_gateway::{Bypass, ConfigError, End, Forward, Gateway, Limits, SetUp, Side};
use scps_sim::Program;
use scps_tp::{CloseReason, Config, Congestion, ResumeConfig, SegmentBatch, Trust};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Bitrate, Duration, Instant, Seed, SeqNum};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const HOUR: Duration = Duration::from_secs(3600);

fn through(set_up: SetUp, loss: f64, seed: u64) -> Chain {
    let mut chain = Chain::pair(set_up, loss, seed);
    chain.network.captures = true;
    let (up, down) = (content(400_000, 1), content(150_000, 2));
    let id = chain.open(4000, Program::sending(up.clone()), Program::sending(down.clone()));
    assert!(chain.run(HOUR));
    assert_eq!(chain.server_program(4000).unwrap().received, up);
    assert_eq!(chain.client().programs[&id].received, down);
    chain
}

#[test]
fn contents_are_equal_and_accounts_close_on_a_lossy_link() {
    for set_up in [SetUp::ConnectFirst, SetUp::AcceptFirst, SetUp::Early] {
        let chain = through(set_up, 0.03, 7);
        assert_eq!(chain.ends(), [End::Finished; 2]);
        for report in chain.reports() {
            let amounts = Side::BOTH.map(|side| {
                let a = report.from.of(side);
                (a.received, a.acknowledged, a.delivered, a.lost)
            });
            let (up, down) = ((400_000, 400_000, 400_000, 0), (150_000, 150_000, 150_000, 0));
            // The LAN of the second gateway is the server's.
            let expected = if report.near == Side::Lan { [up, down] } else { [down, up] };
            assert_eq!(amounts, expected);
        }
    }
}

#[test]
fn the_server_sees_the_client_and_the_space_link_speaks_scps() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 1);
    chain.open(4000, Program { fin_at: Instant::from_secs(10), ..Program::default() }, Program::default());
    chain.run_for(Duration::from_secs(5));
    assert_eq!(chain.server().peers, [SocketAddr::from((CLIENT, 4000))]);
    let gateway = chain.gateway(0);
    assert_eq!(gateway.connections().count(), 1);
    assert!(gateway.is_scps(gateway.connections().next().unwrap(), Side::Wan));
    assert!(!gateway.is_scps(gateway.connections().next().unwrap(), Side::Lan));
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let [a, b, other] = [7, 7, 8].map(|seed| through(SetUp::AcceptFirst, 0.05, seed));
    assert!(a.network.capture == b.network.capture && a.reports() == b.reports());
    assert!(a.network.capture != other.network.capture && !a.network.capture.is_empty());
}

#[test]
fn each_direction_ends_by_itself() {
    // The client closes at once; the server begins to send ten seconds later, and the reverse.
    let late = Instant::from_secs(10);
    for turned in [false, true] {
        let mut chain = Chain::pair(SetUp::ConnectFirst, 0.02, 3);
        let quick = Program::sending(content(1000, 1));
        let slow = Program { fin_at: late, reads_from: late, to_send: content(900_000, 2), ..Program::default() };
        let (client, server) = if turned { (slow, quick) } else { (quick, slow) };
        let (up, down) = (client.to_send.clone(), server.to_send.clone());
        let id = chain.open(4000, client, server);
        assert!(chain.run(HOUR));
        assert_eq!(chain.server_program(4000).unwrap().received, up);
        assert_eq!(chain.client().programs[&id].received, down);
        assert_eq!(chain.ends(), [End::Finished; 2]);
    }
}

#[test]
fn a_reader_that_stops_stops_the_sender() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.01, 5);
    let resumes = Instant::from_secs(300);
    let data = content(3_000_000, 1);
    let id = chain.open(4000, Program::sending(data.clone()), Program { reads_from: resumes, ..Program::default() });
    chain.run_for(Duration::from_secs(250));
    let per_gateway = gateway_config(SetUp::ConnectFirst).octets_per_connection();
    let given = chain.client().programs[&id].given;
    assert!(given < 2 * per_gateway + 2 * 32_768, "the client could give {given}");
    for gateway in chain.gateways() {
        let accounts = gateway.account(gateway.connections().next().unwrap()).unwrap();
        let buffered = accounts.lan.buffered + accounts.wan.buffered;
        assert!(buffered > 200_000 && buffered <= per_gateway as u64, "{buffered}");
    }
    assert!(chain.run(HOUR));
    assert_eq!(chain.server_program(4000).unwrap().received, data);
}

#[test]
fn a_reset_is_mirrored_both_ways() {
    for is_client in [true, false] {
        let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 5);
        let gives_up = Program { abort_at: Some(Instant::from_secs(4)), ..Program::sending(content(9_000_000, 1)) };
        let stays = Program::sending(content(9_000_000, 2));
        let (client, server) = if is_client { (gives_up, stays) } else { (stays, gives_up) };
        let id = chain.open(4000, client, server);
        assert!(chain.run(Duration::from_secs(20)));
        let closed = [chain.client().programs[&id].closed, chain.server().programs.values().next().unwrap().closed];
        let (own, told) = (Some(CloseReason::Aborted), Some(CloseReason::Reset));
        assert_eq!(closed, if is_client { [own, told] } else { [told, own] });
        assert_eq!(chain.reports().len(), 2);
        assert!(chain.reports().iter().all(|r| matches!(r.end, End::Broken(_, CloseReason::Reset))));
        assert!(chain.reports().iter().any(|r| r.from.lan.lost + r.from.wan.lost > 0));
    }
}

#[test]
fn a_refusal_is_a_refusal() {
    for (set_up, expected) in [
        (SetUp::ConnectFirst, CloseReason::Refused),
        (SetUp::AcceptFirst, CloseReason::Reset),
        (SetUp::Early, CloseReason::Reset),
    ] {
        let mut chain = Chain::pair(set_up, 0.0, 5);
        let id = chain.open_to(
            4000,
            (SERVER, PORT + 1),
            plain(),
            Program { fin_at: Instant::from_secs(90), ..Program::default() },
        );
        chain.run_for(Duration::from_secs(10));
        assert_eq!(chain.client().programs[&id].closed, Some(expected));
        assert_eq!(chain.reports().len(), 2);
        assert!(chain.are_gateways_idle());
    }
}

#[test]
fn an_early_answer_has_no_window_until_the_server_answers() {
    let mut chain = Chain::pair(SetUp::Early, 0.0, 5);
    let data = content(50_000, 1);
    let id = chain.open(4000, Program::sending(data.clone()), Program::default());
    // The satellite's round trip is half a second.
    chain.run_for(Duration::from_millis(400));
    assert!(chain.client().endpoint.stats(id).unwrap().established_at.is_some(), "the client is connected");
    let waiting = |chain: &Chain| {
        let gateway = chain.gateway(0);
        gateway.account(gateway.connections().next().unwrap()).unwrap().lan.received
    };
    assert_eq!((waiting(&chain), chain.server().peers.len()), (0, 1));
    chain.run_for(Duration::from_millis(200));
    assert!(waiting(&chain) > 0);
    assert!(chain.run(HOUR));
    assert_eq!(chain.server_program(4000).unwrap().received, data);
}

#[test]
fn segments_of_older_connections_pass_if_so_set() {
    for passes in [false, true] {
        let mut config = gateway_config(SetUp::ConnectFirst);
        config.passes_unknown = passes;
        let mut chain = Chain::new(&config, &[lan(), lan()], 5);
        let mut stranger = [0x50, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0];
        let mut sum = scps_wire::checksum::Checksum::pseudo_header(CLIENT, SERVER, 6, 20);
        sum.add(&stranger);
        stranger[16..18].copy_from_slice(&sum.finish().to_be_bytes());
        let mut packet = ipv4(6, [0; 8]);
        packet.truncate(20);
        packet[2..4].copy_from_slice(&40u16.to_be_bytes());
        packet[10..12].fill(0);
        let mut sum = scps_wire::checksum::Checksum::new();
        sum.add(&packet);
        packet[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        packet.extend(stranger);
        chain.inject(&packet);
        chain.run_for(Duration::from_secs(1));
        // Otherwise the server is asked whether it has the connection; it has not, and says so by a reset.
        assert_eq!(chain.passed().len(), if passes { 2 } else { 1 }, "the segment, and the server's reset");
    }
}

#[test]
fn the_code_point_of_a_syn_is_that_of_both_halves() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 5);
    let stays = Program { fin_at: Instant::from_secs(60), ..Program::default() };
    chain.open_to(4000, (SERVER, PORT), plain().dscp(46), stays);
    chain.run_for(Duration::from_secs(3));
    let (server, _) = chain.server().programs.iter().next().unwrap();
    assert_eq!(chain.server().endpoint.dscp(*server), Some(46));
}

/// Octets that came of each connection in 20 s, the first of which was opened 10 s before the others.
fn received_by_connections(shares: [u16; 8], dscps: &[u8]) -> Vec<f64> {
    let mut config = gateway_config(SetUp::ConnectFirst);
    config.limits.connections = 100;
    config.wan.connection.shares = shares;
    let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 5);
    for (i, dscp) in (0u16..).zip(dscps) {
        let port = 4000 + i;
        let program = Program::sending(content(9_000_000, u64::from(i)));
        chain.open_to(port, (SERVER, PORT), plain().dscp(*dscp), program);
        if i == 0 {
            chain.run_for(Duration::from_secs(10));
        }
    }
    chain.run_for(Duration::from_secs(5));
    let received = |chain: &Chain, i: u16| chain.server_program(4000 + i).unwrap().received.len() as f64;
    let ports = 0..dscps.len() as u16;
    let before: Vec<f64> = ports.clone().map(|i| received(&chain, i)).collect();
    chain.run_for(Duration::from_secs(20));
    ports.map(|i| received(&chain, i) - before[usize::from(i)]).collect()
}

#[test]
fn connections_share_the_rate_fairly() {
    let got = received_by_connections([1; 8], &[0, 0, 0, 46, 0]);
    let fair = got.iter().sum::<f64>() / 5.0;
    // 4 Mbit/s less headers.
    assert!((3.3e6..4e6).contains(&(got.iter().sum::<f64>() * 8.0 / 20.0)), "{got:?}");
    assert!(got.iter().all(|octets| (octets / fair - 1.0).abs() < 0.1), "{got:?}");
}

#[test]
fn shares_of_the_rate_follow_the_code_points() {
    // EF, 46, is of IP precedence 5; AF11, 10, of 1.
    let got = received_by_connections([1, 2, 1, 1, 1, 4, 1, 1], &[0, 46, 10, 0]);
    let part = got.iter().sum::<f64>() / 8.0;
    let shares: Vec<f64> = got.iter().map(|octets| octets / part).collect();
    assert!(shares.iter().zip([1.0, 4.0, 2.0, 1.0]).all(|(is, wanted)| (is / wanted - 1.0).abs() < 0.1), "{shares:?}");
}

#[test]
fn a_port_of_the_gateway_leads_to_a_server() {
    let own = [Ipv4Addr::new(10, 1, 0, 254), Ipv4Addr::new(10, 2, 0, 254)];
    let mut config = gateway_config(SetUp::ConnectFirst);
    for (side, address) in [(&mut config.lan, own[0]), (&mut config.wan, own[1])] {
        (side.takes_any, side.endpoint.addresses) = (false, vec![address.into()]);
    }
    config.forwards = vec![Forward {
        side: Side::Lan,
        listen: (own[0], 8080).into(),
        from: own[1].into(),
        to: (SERVER, PORT).into(),
    }];
    let mut chain = Chain::new(&config, &[lan(), satellite(0.01)], 5);
    let data = content(100_000, 1);
    chain.open_to(4000, (own[0], 8080), plain(), Program::sending(data.clone()));
    let unknown = chain.open_to(4001, (own[0], 8081), plain(), Program::default());
    assert!(chain.run(HOUR));
    assert_eq!(chain.server().peers.iter().map(SocketAddr::ip).collect::<Vec<_>>(), [IpAddr::V4(own[1])]);
    assert_eq!(chain.server().programs.values().next().unwrap().received, data);
    assert_eq!(chain.client().programs[&unknown].closed, Some(CloseReason::Refused));
    // What is not for the gateway's own address passes: this server takes it as its own.
    let past = chain.open(4002, Program::sending(data.clone()), Program::default());
    assert!(chain.run(HOUR));
    assert!(!chain.passed().is_empty() && chain.client().programs[&past].is_at_end);
    assert_eq!(chain.server_program(4002).unwrap().received, data);
}

#[test]
fn what_is_not_tcp_passes() {
    let config = gateway_config(SetUp::ConnectFirst);
    let mut chain = Chain::new(&config, &[lan(), lan()], 5);
    // UDP, ESP, and an echo request of ICMP, whose checksum is right.
    let echo = [8, 0, 0xf7, 0xfd, 0, 1, 0, 1];
    for (protocol, body) in [(17, [1; 8]), (50, [2; 8]), (1, echo)] {
        chain.inject(&ipv4(protocol, body));
    }
    chain.run_for(Duration::from_secs(1));
    assert_eq!(chain.passed().iter().map(|p| p[9]).collect::<Vec<_>>(), [17, 50, 1]);
    assert_eq!(chain.gateway(0).counters().passed, 3);
}

/// A long ping comes in pieces, of which only the first has a header of ICMP; so do segments of connections that are not split.
#[test]
fn pieces_of_what_is_not_the_gateways_pass() {
    let pieces = |protocol| [fragment(protocol, 0x2000), fragment(protocol, 0x2001), fragment(protocol, 2)];
    for (protocol, passes_unknown, has_pair, expected) in
        [(1, false, false, 3), (1, false, true, 3), (6, true, false, 3), (6, false, false, 0), (6, true, true, 0)]
    {
        let mut config = gateway_config(SetUp::ConnectFirst);
        config.passes_unknown = passes_unknown;
        let mut chain = Chain::new(&config, &[lan(), lan()], 5);
        if has_pair {
            chain.open(4000, Program { fin_at: Instant::from_secs(60), ..Program::default() }, Program::default());
            chain.run_for(Duration::from_secs(1));
        }
        for piece in pieces(protocol) {
            chain.inject(&piece);
        }
        chain.run_for(Duration::from_secs(1));
        let case = format!("protocol {protocol}, unknown passes {passes_unknown}, has a connection {has_pair}");
        assert_eq!(chain.passed().len(), expected, "{case}");
        assert!(expected == 0 || chain.passed() == pieces(protocol), "{case}: as they came");
    }
}

fn ipv4(protocol: u8, body: [u8; 8]) -> Vec<u8> {
    packet(protocol, 0, body)
}

fn fragment(protocol: u8, flags_and_offset: u16) -> Vec<u8> {
    packet(protocol, flags_and_offset, [8, 0, 1, 2, 3, 4, 5, 6])
}

fn packet(protocol: u8, flags_and_offset: u16, body: [u8; 8]) -> Vec<u8> {
    let [flags, offset] = flags_and_offset.to_be_bytes();
    let mut packet = vec![0x45, 0, 0, 28, 0, 1, flags, offset, 64, protocol, 0, 0];
    packet.extend(CLIENT.octets());
    packet.extend(SERVER.octets());
    let words = packet.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum = words.sum::<u32>();
    let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(body);
    packet
}

#[test]
fn settings_of_no_use_are_refused() {
    let good = || gateway_config(SetUp::ConnectFirst);
    let refused = |config| Gateway::new(config, Seed::from_u64(1), Instant::ZERO).map(|_| ()).unwrap_err();
    let mut bets = good();
    bets.wan.connection = space().bets(true);
    assert_eq!(refused(bets), ConfigError::Bets(Side::Wan));
    let mut some = good();
    some.lan.endpoint.addresses = vec![CLIENT.into()];
    assert_eq!(refused(some), ConfigError::AnyOfSome(Side::Lan));
    let mut closed = good();
    (closed.lan.takes_any, closed.wan.takes_any) = (false, false);
    assert_eq!(refused(closed), ConfigError::Closed);
    let mut tight = good();
    tight.limits.buffered = 400_000;
    let needed = tight.octets_per_connection();
    assert!((465_536..1_000_000).contains(&needed), "four buffers, and what is remembered: {needed}");
    let message = refused(tight).to_string();
    assert!(message.contains(&format!("400000 octets; a connection takes up to {needed}")), "{message}");
    let forward =
        Forward { side: Side::Lan, listen: (CLIENT, 80).into(), from: CLIENT.into(), to: (SERVER, 80).into() };
    let mut twice = good();
    twice.forwards = vec![forward, forward];
    assert_eq!(refused(twice), ConfigError::Twice((CLIENT, 80).into()));
    let mut zero = good();
    zero.forwards = vec![Forward { to: (SERVER, 0).into(), ..forward }];
    assert_eq!(refused(zero), ConfigError::PortZero((CLIENT, 80).into()));
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    for forward in [
        Forward { listen: (any, 80).into(), ..forward },
        Forward { from: any, ..forward },
        Forward { to: (any, 80).into(), ..forward },
    ] {
        let mut nowhere = good();
        nowhere.forwards = vec![forward];
        assert_eq!(refused(nowhere), ConfigError::NoAddress(forward.listen));
    }
    let six = Ipv6Addr::LOCALHOST;
    for forward in [Forward { to: (six, 80).into(), ..forward }, Forward { from: six.into(), ..forward }] {
        let mut wide = good();
        wide.forwards = vec![forward];
        assert_eq!(refused(wide), ConfigError::Ipv6((CLIENT, 80).into()));
    }
    let mut wide = good();
    wide.forwards = vec![Forward { listen: (six, 80).into(), ..forward }];
    assert!(refused(wide).to_string().starts_with("cannot listen on [::1]:80: expected an IPv4 address"));
}

/// A batch of segments has a verdict for each: the reset of a connection that goes another way passes, also between two of others, and so
/// does what is of a connection that is not split.
#[test]
fn a_reset_of_no_connection_passes_out_of_a_row() {
    let config = gateway_config(SetUp::ConnectFirst).bypasses(vec![Bypass { net: (CLIENT, 32), ports: (4, 4) }]);
    let mut gateway = Gateway::new(config, Seed::from_u64(1), Instant::ZERO).unwrap();
    let segment = |port: u16, flags: Flags| {
        let options = Options::default();
        let (seq, ack) = (SeqNum(7), SeqNum(9));
        let tcp = Tcp { src_port: port, dst_port: 80, seq, ack, flags, window: 1000, urgent: 0, options };
        let mut packet = vec![0; 20 + tcp.emit_len()];
        let (head, body) = packet.split_at_mut(20);
        tcp.emit(body, CLIENT, SERVER, 6);
        let (src, dst, payload_len) = (CLIENT, SERVER, body.len() as u16);
        Ipv4 { src, dst, protocol: 6, tos: 0, ttl: 9, id: 1, dont_fragment: true, is_fragment: false, payload_len }
            .emit(head);
        packet
    };
    let batch = [
        segment(1, Flags::ACK),
        segment(2, Flags::RST),
        segment(3, Flags::ACK),
        segment(4, Flags::ACK),
        segment(5, Flags::ACK),
    ];
    let mut passed = Vec::new();
    let octets = batch.concat();
    gateway.handle_batch(
        Instant::ZERO,
        Side::Lan,
        &octets,
        SegmentBatch::Packets(40),
        Trust::Check,
        |packet, batch| {
            passed.push((packet.to_vec(), batch));
        },
    );
    assert_eq!(passed, [1, 3].map(|i: usize| (batch[i].clone(), SegmentBatch::Packets(40))));
    assert_eq!(gateway.counters().passed, 2);
}

#[test]
fn connections_of_the_bypass_list_are_not_split_and_others_are() {
    let ssh = Bypass { net: (SERVER, 32), ports: (PORT, PORT) };
    for (bypass, split) in [(ssh, 0), (Bypass { ports: (22, 22), ..ssh }, 1)] {
        let config = gateway_config(SetUp::ConnectFirst).bypasses(vec![bypass]);
        let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 7);
        let (up, down) = (content(20_000, 1), content(30_000, 2));
        let id = chain.open(4000, Program::sending(up.clone()), Program::sending(down.clone()));
        chain.run_for(Duration::from_secs(60));
        assert_eq!(chain.server_program(4000).unwrap().received, up);
        assert_eq!(chain.client().programs[&id].received, down);
        for i in [0, 1] {
            let counters = chain.gateway(i).counters();
            assert_eq!((counters.begun, counters.passed > 50), (split, split == 0), "gateway {i}: {counters:?}");
        }
    }
}

#[test]
fn a_gateway_at_work_takes_another_rate_and_loses_nothing() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 5);
    let sent = content(3_000_000, 1);
    chain.open(4000, Program::sending(sent.clone()), Program::default());
    let received = |chain: &Chain| chain.server_program(4000).unwrap().received.len();
    chain.run_for(Duration::from_secs(3));
    let before = received(&chain);
    assert!((400_000..1_500_000).contains(&before), "{before} octets in three seconds at 4 Mbit/s");
    let now = chain.now();
    for index in 0..2 {
        let mut config = gateway_config(SetUp::ConnectFirst).limits(Limits::default().set_up(Duration::from_secs(9)));
        config.wan.route.rate = Some(Bitrate::from_bps(400_000));
        chain.gateway_node(index).gateway.as_mut().unwrap().reconfigure(now, config).unwrap();
    }
    chain.run_for(Duration::from_secs(10));
    // 400 kbit/s for ten seconds are 500,000 octets, and a buffer full was under way.
    let after = received(&chain) - before;
    assert!((400_000..750_000).contains(&after), "{after} octets in ten seconds at 400 kbit/s");
    assert!(chain.run(HOUR));
    assert_eq!(chain.server_program(4000).unwrap().received, sent);
    assert_eq!(chain.ends(), [End::Finished; 2]);
}

#[test]
fn settings_of_no_use_change_no_gateway() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 6);
    let now = chain.now();
    let config = gateway_config(SetUp::ConnectFirst).limits(Limits::default().connections(0));
    let gateway = chain.gateway_node(0).gateway.as_mut().unwrap();
    assert!(matches!(gateway.reconfigure(now, config), Err(ConfigError::TooTight { .. })));
    chain.open(4000, Program::sending(content(1000, 1)), Program::default());
    assert!(chain.run(HOUR));
    assert_eq!(chain.ends(), [End::Finished; 2]);
}

#[test]
fn the_trace_tells_of_the_connections_that_are_asked_for_and_no_others() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 1);
    let of_4001 = Bypass { net: (CLIENT, 32), ports: (4001, 4001) };
    let gateway =
        |chain: &mut Chain, f: &mut dyn FnMut(&mut Gateway)| f(chain.gateway_node(0).gateway.as_mut().unwrap());
    gateway(&mut chain, &mut |gateway| gateway.trace(vec![of_4001]));
    for port in [4000, 4001] {
        chain.open(port, Program::sending(content(20_000, 1)), Program::default());
    }
    chain.run_for(Duration::from_secs(3));
    let mut told = std::collections::BTreeSet::new();
    gateway(&mut chain, &mut |gateway| {
        told.extend(std::iter::from_fn(|| gateway.poll_trace()).map(|record| record.connection));
        // With nothing asked for it is silent.
        gateway.trace(Vec::new());
    });
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(chain.run(HOUR));
    gateway(&mut chain, &mut |gateway| assert!(gateway.poll_trace().is_none()));
}

#[test]
fn what_one_client_saw_of_the_link_is_known_to_the_next() {
    let mut config = gateway_config(SetUp::ConnectFirst);
    config.wan.connection = Config::modern().congestion(Congestion::Vj).careful_resume(Some(ResumeConfig::default()));
    config.wan.route = config.wan.route.rate(None);
    config.wan.endpoint.one_path = true;
    let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 1);
    let mut took = Vec::new();
    for port in [4000, 4001] {
        let began = chain.now();
        let id = chain.open(port, Program::sending(content(2_000_000, 1)), Program::default());
        while !chain.server_program(port).is_some_and(Program::has_read_all) {
            chain.run_for(Duration::from_millis(10));
        }
        took.push(chain.now().since(began));
        let now = chain.now();
        chain.client_mut().endpoint.close(now, id);
        // The halves end when what is left in the network has died.
        chain.run_for(Duration::from_secs(120));
        let known: Vec<_> = chain.gateway(0).endpoint(Side::Wan).known_paths(chain.now()).collect();
        assert_eq!(known.len(), 1, "{known:?}");
        // 5 Mbit/s for 500 ms are 312,500 octets on the wire.
        assert!((200_000..320_000).contains(&known[0].window), "{known:?}");
    }
    println!("{took:?}");
    assert!(took[0] > took[1] + Duration::from_secs(1), "{took:?}");
}
