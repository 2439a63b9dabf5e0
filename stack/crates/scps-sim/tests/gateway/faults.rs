//! Whatever fails: no hang, no octet lost without an error, no connection left over.

use crate::chain::{content, gateway_config, lan, plain, satellite, Chain, CLIENT, PORT, SERVER};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use scps_gateway::{End, Gateway, Limits, SetUp, Side};
use scps_sim::{Impairment, Node, Program};
use scps_tp::{CloseReason, Config, Endpoint, EndpointConfig, RouteConfig, Trust};
use scps_wire::icmp;
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Bitrate, Duration, Instant, Rng, Seed, SeqNum};
use std::net::{Ipv4Addr, SocketAddr};

const HOUR: Duration = Duration::from_secs(3600);
const POLICIES: [SetUp; 3] = [SetUp::ConnectFirst, SetUp::AcceptFirst, SetUp::Early];

fn is_clean(program: &Program) -> bool {
    matches!(program.closed, None | Some(CloseReason::Finished))
}

/// True if all came; who did not get all was told of it.
fn is_complete(receiver: &Program, data: &[u8]) -> bool {
    assert!(data.starts_with(&receiver.received), "what came is what was sent");
    let is_complete = receiver.received.len() == data.len();
    assert!(is_complete || !is_clean(receiver), "{} of {} octets and no error", receiver.received.len(), data.len());
    is_complete
}

#[test]
fn a_gateway_that_is_killed_loses_nothing_silently() {
    let mut rng: Rng = Seed::from_u64(40).stream("moments");
    let mut outcomes = [0; 2];
    for moment in 0..40 {
        let mut chain = Chain::pair(POLICIES[moment % 3], 0.01, moment as u64);
        let (up, down) = (content(300_000, 1), content(300_000, 2));
        let id = chain.open(4000, Program::sending(up.clone()), Program::sending(down.clone()));
        chain.run_for(Duration::from_millis(rng.below(4000)));
        let killed = moment / 3 % 2;
        chain.kill(killed);
        chain.run_for(Duration::from_secs(5));
        chain.restart(killed, &gateway_config(POLICIES[moment % 3]), 1000 + moment as u64);
        // Keep-alives, every quarter of an hour, find out what only waits.
        chain.run_for(HOUR);
        assert!(chain.are_gateways_idle(), "moment {moment}");
        let client = &chain.client().programs[&id];
        let is_down_complete = is_complete(client, &down);
        // A server that never heard of the connection has no program; then the client knows.
        let is_up_complete = chain.server_program(4000).map_or(!is_clean(client), |server| is_complete(server, &up));
        assert!(client.has_read_all(), "moment {moment}: the client hangs");
        let is_told = |server: &Program| server.is_at_end || server.closed.is_some();
        assert!(chain.server().programs.values().all(is_told), "moment {moment}: the server hangs");
        outcomes[usize::from(is_down_complete && is_up_complete)] += 1;
    }
    assert!(outcomes[0] > 10, "killed too late to matter: {outcomes:?}");
}

/// A program without keep-alives that only reads learns of a restart when the other one sends, whichever gateway it was.
#[test]
fn who_only_reads_is_told_of_a_restart() {
    for (killed, is_upload, compression) in [0, 1]
        .into_iter()
        .flat_map(|k| [false, true].map(|u| (k, u)))
        .flat_map(|(k, u)| [false, true].map(|c| (k, u, c)))
    {
        let case = format!("gateway {killed}, upload {is_upload}, compression {compression}");
        let mut config = gateway_config(SetUp::ConnectFirst);
        config.wan.connection.compression = compression;
        let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 11);
        chain.network.captures = true;
        let sends = Program::sending(content(9_000_000, 1));
        let reads = Program { fin_at: Instant::from_secs(100_000), ..Program::default() };
        let (client, server) = if is_upload { (sends, reads) } else { (reads, sends) };
        let id = chain.open(4000, client, server);
        chain.run_for(Duration::from_secs(5));
        let is_compressed = |packet: &[u8]| packet[9] == protocol::SCPS_COMPRESSED;
        let compressed = chain.network.capture.iter().filter(|(.., packet)| is_compressed(packet)).count();
        assert_eq!(compressed > 1000, compression, "{case}");
        chain.kill(killed);
        chain.run_for(Duration::from_secs(2));
        chain.restart(killed, &config, 12);
        chain.run_for(Duration::from_secs(60));
        let server = chain.server().programs.values().next().unwrap();
        let closed = [chain.client().programs[&id].closed, server.closed];
        assert_eq!(closed, [Some(CloseReason::Reset); 2], "{case}");
        assert!(chain.are_gateways_idle(), "{case}");
    }
}

/// Of a fifth of all packets nobody hears; question, answer and reset are among them. Every program is told all the same, also of
/// connections where nobody says anything.
#[test]
fn a_restart_is_told_over_a_link_that_loses_a_fifth() {
    for (killed, compression, seed) in
        [0, 1].into_iter().flat_map(|k| [false, true].map(|c| (k, c))).flat_map(|(k, c)| (0..3).map(move |s| (k, c, s)))
    {
        let mut config = gateway_config(SetUp::ConnectFirst);
        config.wan.connection.compression = compression;
        for side in [&mut config.lan, &mut config.wan] {
            side.connection.keepalive = Some((Duration::from_secs(1), Duration::from_secs(60)));
            side.connection.keepalive_asks = true;
        }
        let mut chain = Chain::new(&config, &[lan(), satellite(0.2), lan()], seed);
        let stays = |to_send| Program { to_send, fin_at: Instant::from_secs(100_000), ..Program::default() };
        let ids: Vec<_> = (0..12)
            .map(|i| {
                let octets = |wanted: bool| if wanted { content(2_000_000, 1) } else { Vec::new() };
                chain.open(4000 + i, stays(octets(i % 3 == 1)), stays(octets(i % 3 == 2)))
            })
            .collect();
        chain.run_for(Duration::from_secs(20));
        assert!(chain.server().programs.len() > 10, "few had no luck");
        chain.kill(killed);
        chain.run_for(Duration::from_millis(500));
        chain.restart(killed, &config, seed + 12);
        chain.run_for(Duration::from_secs(150));
        let clients = ids.iter().map(|id| &chain.client().programs[id]);
        let open = clients.chain(chain.server().programs.values()).filter(|p| p.closed.is_none()).count();
        // A connection whose SYN was on its way when the gateway died is a new one, and both gateways have it.
        for gateway in chain.gateways() {
            let carried = 2 * gateway.connections().count();
            assert_eq!(open, carried, "gateway {killed}, compression {compression}, seed {seed}");
        }
    }
}

#[test]
fn a_way_back_around_the_gateways_is_an_error_and_no_hang() {
    for (set_up, way) in POLICIES.into_iter().flat_map(|p| [0, 1].map(|way| (p, way))) {
        let mut chain = Chain::pair(set_up, 0.0, 5);
        chain.bypass(way);
        let id = chain.open(4000, Program::sending(content(50_000, 1)), Program::sending(content(50_000, 2)));
        chain.run_for(Duration::from_secs(3));
        if way == 0 {
            // The gateways see the answer of a server that they did not ask: both ends are told at once.
            assert_eq!(chain.client().programs[&id].closed, Some(CloseReason::Refused), "{set_up:?}");
        }
        chain.run_for(Duration::from_secs(200));
        let client = &chain.client().programs[&id];
        assert!(
            client.closed.is_some_and(|reason| reason != CloseReason::Finished),
            "{set_up:?} {way}: {:?}",
            client.closed
        );
        assert!(chain.are_gateways_idle(), "{set_up:?} {way}");
        assert!(chain.server().programs.values().all(|p| p.closed.is_some()), "{set_up:?} {way}");
    }
}

#[test]
fn what_icmp_says_of_the_far_half_the_near_one_is_told() {
    let mut gateway = Gateway::new(gateway_config(SetUp::ConnectFirst), Seed::from_u64(3), Instant::ZERO).unwrap();
    let route = RouteConfig::default().rate(None);
    let mut client = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(4), Instant::ZERO);
    let id = client.connect(Instant::ZERO, (CLIENT, 4000), (SERVER, PORT), plain()).unwrap();
    let mut syn = Vec::new();
    client.poll_transmit(Instant::ZERO, &mut syn).unwrap();
    gateway.handle_input(Instant::ZERO, Side::Lan, &syn, Trust::Check);
    let mut asked = Vec::new();
    gateway.poll_transmit(Instant::ZERO, Side::Wan, &mut asked).unwrap();
    let seq = u32::from_be_bytes(asked[24..28].try_into().unwrap());
    let report = |seq: u32| {
        let mut message = [0; icmp::UNREACHABLE_LEN];
        icmp::emit_unreachable(10, (CLIENT, 4000), (SERVER, PORT), seq, &mut message);
        let mut packet = vec![0; 20];
        let (src, dst) = (Ipv4Addr::new(203, 0, 113, 9), CLIENT);
        let ipv4 = Ipv4 {
            src,
            dst,
            protocol: 1,
            tos: 0,
            ttl: 9,
            id: 1,
            dont_fragment: false,
            is_fragment: false,
            payload_len: 36,
        };
        ipv4.emit(&mut packet);
        packet.extend_from_slice(&message);
        packet
    };
    let mut told = Vec::new();
    // A guess is not believed (RFC 5927 §4.1): it passes, for it may be about something else.
    gateway.handle_input(Instant::ZERO, Side::Wan, &report(seq.wrapping_add(9)), Trust::Check);
    assert_eq!(gateway.poll_transmit(Instant::ZERO, Side::Lan, &mut told), None);
    gateway.handle_input(Instant::ZERO, Side::Wan, &report(seq), Trust::Check);
    gateway.poll_transmit(Instant::ZERO, Side::Lan, &mut told).unwrap();
    assert_eq!((told[9], told[20], told[21]), (1, 3, 10), "ICMP, unreachable, the code that came");
    client.handle_input(Instant::ZERO, &told, Trust::Check);
    let closed = std::iter::from_fn(|| client.poll_event()).last();
    assert_eq!(closed, Some(scps_tp::Event::Closed(id, CloseReason::Unreachable { code: 10 })));
    told.clear();
    assert_eq!(gateway.poll_transmit(Instant::ZERO, Side::Lan, &mut told), None, "no reset besides");
    let end = gateway.poll_report().unwrap().end;
    assert_eq!(end, End::Broken(Side::Wan, CloseReason::Unreachable { code: 10 }));
    gateway.handle_timeout(Instant::from_secs(700));
    assert!(Side::BOTH.iter().all(|side| gateway.endpoint(*side).connection_count() == 0));
}

#[test]
fn a_host_that_dies_while_nobody_talks_is_found_out() {
    let mut config = gateway_config(SetUp::ConnectFirst);
    for side in [&mut config.lan, &mut config.wan] {
        side.connection.keepalive = Some((Duration::from_secs(1), Duration::from_secs(120)));
    }
    let mut last = lan();
    last.impairment.outages = vec![(Instant::from_secs(60), Instant::from_secs(1_000_000))];
    let mut chain = Chain::new(&config, &[lan(), satellite(0.0), last], 5);
    let idle = || Program { fin_at: Instant::from_secs(100_000), ..Program::default() };
    let id = chain.open(4000, idle(), idle());
    chain.run_for(Duration::from_secs(1000));
    assert_eq!(chain.client().programs[&id].closed, None, "nine keep-alives, two minutes apart, are awaited");
    chain.run_for(Duration::from_secs(500));
    assert_eq!(chain.client().programs[&id].closed, Some(CloseReason::Reset));
    assert!(chain.are_gateways_idle());
}

#[test]
fn a_gateway_that_stops_resets_and_says_what_is_lost() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 5);
    let id = chain.open(4000, Program::sending(content(9_000_000, 1)), Program::default());
    chain.run_for(Duration::from_secs(5));
    let now = chain.now();
    chain.gateway_node(0).gateway.as_mut().unwrap().stop(now);
    assert!(chain.run(Duration::from_secs(10)));
    assert_eq!(chain.client().programs[&id].closed, Some(CloseReason::Reset));
    assert_eq!(chain.server().programs.values().next().unwrap().closed, Some(CloseReason::Reset));
    let report = chain.reports().into_iter().find(|r| r.end == End::Stopped).unwrap();
    assert!(report.from.lan.lost > 0 && report.from.wan.lost == 0, "{report:?}");
    let counters = chain.gateway(0).counters();
    assert_eq!((counters.begun, counters.broken, counters.from), (1, 1, report.from));
}

#[test]
fn a_far_side_that_does_not_answer_is_given_up() {
    for set_up in POLICIES {
        let mut link = satellite(0.0);
        link.impairment.outages = vec![(Instant::ZERO, Instant::from_secs(1_000_000))];
        let mut chain = Chain::new(&gateway_config(set_up), &[lan(), link, lan()], 5);
        let id =
            chain.open(4000, Program { fin_at: Instant::from_secs(3000), ..Program::default() }, Program::default());
        chain.run_for(Duration::from_secs(126));
        assert_eq!(chain.gateway(0).connections().count(), 1);
        chain.run_for(Duration::from_secs(300));
        // Without an answer nobody says "refused" in the server's name; a client that was accepted must be told.
        let expected = if set_up == SetUp::ConnectFirst { CloseReason::TimedOut } else { CloseReason::Reset };
        assert_eq!(chain.client().programs[&id].closed, Some(expected));
        assert_eq!(chain.gateway(0).connections().count(), 0);
        assert!(chain.ends().iter().all(|e| matches!(e, End::SetUpTimedOut | End::Broken(..))), "{:?}", chain.ends());
    }
}

#[test]
fn an_outage_of_the_link_is_outlived() {
    for seconds in [1, 60, 600] {
        let mut link = satellite(0.0);
        link.impairment.outages = vec![(Instant::from_secs(3), Instant::from_secs(3 + seconds))];
        let mut chain = Chain::new(&gateway_config(SetUp::ConnectFirst), &[lan(), link, lan()], 5);
        let data = content(3_000_000, 1);
        chain.open(4000, Program::sending(data.clone()), Program::default());
        assert!(chain.run(HOUR), "{seconds} s");
        assert!(chain.server_program(4000).unwrap().received == data);
        assert_eq!(chain.ends(), [End::Finished; 2]);
    }
}

#[test]
fn more_connections_than_the_limit_are_reset() {
    for (connections, per_octets) in [(3, 100), (100, 3)] {
        let mut config = gateway_config(SetUp::ConnectFirst);
        config.limits.connections = connections;
        config.limits.buffered = per_octets * config.octets_per_connection();
        let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 5);
        let data = content(50_000, 1);
        let open = |chain: &mut Chain, port| chain.open(port, Program::sending(data.clone()), Program::default());
        let ids: Vec<_> = (4000..4005).map(|port| open(&mut chain, port)).collect();
        assert!(chain.run(HOUR));
        let refused = ids.iter().filter(|id| chain.client().programs[id].closed == Some(CloseReason::Refused));
        assert_eq!(refused.count(), 2);
        assert_eq!(chain.server().programs.values().filter(|p| p.received == data).count(), 3);
        let counters = chain.gateway(0).counters();
        assert_eq!((counters.begun, counters.finished, counters.full), (3, 3, 2));
        // There is room again.
        open(&mut chain, 4100);
        assert!(chain.run(HOUR));
        assert_eq!(chain.server_program(4100).unwrap().received, data);
    }
}

/// SYNs of clients that do not exist.
fn flood(chain: &mut Chain, count: u32) {
    forge(chain, (SERVER, PORT), count, Chain::inject);
}

fn forge(chain: &mut Chain, to: (Ipv4Addr, u16), count: u32, mut inject: impl FnMut(&mut Chain, &[u8])) {
    let route = RouteConfig::default().rate(None);
    let mut forger = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(666), chain.now());
    for i in 0..count {
        let address = Ipv4Addr::from(0xac10_0000 + i);
        forger.connect(chain.now(), (address, 1024), to, Config::default().scps(false)).unwrap();
    }
    let mut packet = Vec::new();
    while forger.poll_transmit(chain.now(), &mut packet).is_some() {
        inject(chain, &packet);
        packet.clear();
    }
}

/// SYNs that a gateway refuses, because it is full or because nobody listens where they go, wait for no rate credit.
#[test]
fn refused_syns_from_the_link_are_not_kept() {
    for (set_up, is_full) in [(SetUp::ConnectFirst, true), (SetUp::ConnectFirst, false), (SetUp::Early, false)] {
        let case = format!("{set_up:?}, full: {is_full}");
        let mut config = gateway_config(set_up);
        config.wan.route.rate = Some(Bitrate::from_bps(64_000));
        config.limits.connections = if is_full { 3 } else { 100_000 };
        config.limits.buffered = usize::MAX;
        for side in [&mut config.lan, &mut config.wan] {
            side.endpoint.half_open_max = 100_000;
        }
        let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 5);
        let data = content(50_000, 1);
        let ports = [4000, 4001, 4002];
        for port in ports {
            chain.open(port, Program::sending(data.clone()), Program::default());
        }
        chain.run_for(Duration::from_secs(3));
        let mut most = 0;
        for _ in 0..20 {
            forge(&mut chain, (CLIENT, 9), 1000, |chain, syn| {
                let now = chain.now();
                chain.gateway_node(0).handle(now, 1, syn);
            });
            chain.run_for(Duration::from_millis(100));
            most = most.max(chain.gateway(0).endpoint(Side::Wan).connection_count());
        }
        assert!(most < 100, "{case}: {most}");
        // What is left of the transfers takes 20 s of the link, and the resets had their share of it.
        chain.run_for(Duration::from_secs(40));
        assert!(ports.iter().all(|port| chain.server_program(*port).unwrap().received == data), "{case}");
    }
}

#[test]
fn a_flood_of_syns_stays_within_the_limits() {
    for set_up in POLICIES {
        let mut config = gateway_config(set_up);
        config.limits.connections = 20;
        config.lan.endpoint.half_open_max = 10;
        let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 5);
        let data = content(2_000_000, 1);
        let before = chain.open(4000, Program::sending(data.clone()), Program::default());
        chain.run_for(Duration::from_secs(2));
        let mut most = 0;
        for second in 0..20 {
            flood(&mut chain, 50);
            chain.run_for(Duration::from_secs(1));
            chain.assert_accounts();
            let gateway = chain.gateway(0);
            most = most.max(gateway.connections().count());
            assert!(gateway.endpoint(Side::Lan).connection_count() <= 20 + 10);
            if second == 10 && set_up == SetUp::AcceptFirst {
                // Cookies let honest clients in.
                chain.open(4001, Program::sending(data.clone()), Program::default());
            }
        }
        // What was accepted before is served, and the flood takes no more than half-open places.
        assert!(most <= if set_up == SetUp::AcceptFirst { 2 } else { 11 }, "{most}");
        chain.run_for(Duration::from_secs(600));
        assert!(chain.server_program(4000).unwrap().received == data && is_clean(&chain.client().programs[&before]));
        if set_up == SetUp::AcceptFirst {
            assert!(chain.server_program(4001).unwrap().received == data);
        }
        assert!(chain.are_gateways_idle());
        chain.open(4002, Program::sending(data.clone()), Program::default());
        chain.run_for(Duration::from_secs(600));
        assert!(chain.server_program(4002).unwrap().received == data);
    }
}

/// SYNs of one host to addresses where nobody is.
fn scan(chain: &mut Chain, from: Ipv4Addr, count: u32) {
    let route = RouteConfig::default().rate(None);
    let mut scanner = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(667), chain.now());
    let mut packet = Vec::new();
    for i in 0..count {
        let config = Config::default().scps(false);
        let nobody = (Ipv4Addr::from(0x0a02_8000 + i % 250), 1000 + (i / 250) as u16);
        scanner.connect(chain.now(), (from, 1024 + i as u16), nobody, config).unwrap();
        while scanner.poll_transmit(chain.now(), &mut packet).is_some() {
            chain.inject(&packet);
            packet.clear();
        }
    }
}

#[test]
fn a_host_that_asks_for_nobody_keeps_no_other_out() {
    for set_up in POLICIES {
        let mut config = gateway_config(set_up);
        (config.lan.endpoint.half_open_max, config.wan.endpoint.half_open_max) = (1024, 1024);
        let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 5);
        let data = content(10_000, 1);
        let mut most = 0;
        for (port, scans) in [(4000, 1), (4001, 1), (4002, 0), (4003, 5)] {
            for _ in 0..scans {
                scan(&mut chain, Ipv4Addr::new(10, 1, 0, 66), 1024);
                // 1,024 SYNs take 4 ms on the LAN.
                chain.run_for(Duration::from_millis(100));
            }
            most = most.max(chain.gateway(0).connections().count());
            chain.open(port, Program::sending(data.clone()), Program::default());
            chain.run_for(Duration::from_secs(5));
            let served = chain.server_program(port).map(|program| program.received.len());
            assert_eq!(served, Some(data.len()), "{set_up:?}, {port}");
        }
        // Three quarters of 1,024, unless cookies answered.
        assert!(most <= 768 && (set_up == SetUp::AcceptFirst || most == 768), "{set_up:?}: {most}");
        // A line for each SYN would fill a disk.
        assert!(set_up != SetUp::ConnectFirst || chain.reports().len() < 10, "{}", chain.reports().len());
        chain.run_for(Duration::from_secs(600));
        assert!(chain.are_gateways_idle());
    }
}

#[test]
fn a_client_that_gives_up_before_the_answer_leaves_nothing() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.0, 5);
    // Its SYN is held for half a second; who gives up meanwhile says nothing, and answers the SYN-ACK with RST.
    let id = chain.open(4000, Program { fin_at: Instant::from_secs(300), ..Program::default() }, Program::default());
    chain.run_for(Duration::from_millis(100));
    let now = chain.now();
    chain.client_mut().endpoint.abort(now, id);
    chain.run_for(Duration::from_secs(300));
    assert!(chain.are_gateways_idle());
    assert!(chain.server().programs.values().all(|p| p.closed.is_some() || p.is_at_end));
}

#[test]
fn many_connections_end_at_random_times() {
    let mut chain = Chain::pair(SetUp::ConnectFirst, 0.01, 9);
    let mut rng: Rng = Seed::from_u64(9).stream("fins");
    let mut program = |seed: u64| Program {
        fin_at: Instant::from_millis(rng.below(20_000)),
        to_send: content(rng.below(4000) as usize, seed),
        ..Program::default()
    };
    let mut expected = Vec::new();
    for port in 10_000..10_200 {
        let (client, server) = (program(u64::from(port)), program(u64::from(port) + 1_000_000));
        let (up, down) = (client.to_send.clone(), server.to_send.clone());
        expected.push((port, chain.open(port, client, server), up, down));
    }
    assert!(chain.run(HOUR));
    for (port, id, up, down) in expected {
        assert!(chain.server_program(port).unwrap().received == up && chain.client().programs[&id].received == down);
    }
    assert_eq!((chain.reports().len(), chain.distinct_reports()), (400, 400));
    assert!(chain.ends().iter().all(|end| *end == End::Finished));
    for gateway in chain.gateways() {
        let counters = gateway.counters();
        assert_eq!((counters.begun, counters.finished, gateway.allocated()), (200, 200, 0));
        assert_eq!(counters.from.lan.lost + counters.from.wan.lost, 0);
    }
}

fn impairment() -> impl Strategy<Value = Impairment> {
    (0.0..0.1f64, 0.0..0.1f64, 0.0..0.2f64, 1u64..40).prop_map(|(loss, duplicate, reorder, ms)| Impairment {
        loss,
        duplicate,
        reorder,
        reorder_delay: Duration::from_millis(ms),
        ..Impairment::default()
    })
}

fn program() -> impl Strategy<Value = Program> {
    (0usize..120_000, 0u64..30_000, 0u64..5000, any::<u64>()).prop_map(|(len, fin, read, seed)| Program {
        fin_at: Instant::from_millis(fin),
        reads_from: Instant::from_millis(read),
        to_send: content(len, seed),
        ..Program::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, rng_seed: RngSeed::Fixed(20), ..ProptestConfig::default() })]

    /// FINs at any time, and links that lose, repeat and reorder: contents are equal, accounts close, and nothing is left.
    #[test]
    fn whatever_the_links_do_nothing_is_lost(
        client in program(),
        server in program(),
        links in prop::array::uniform3(impairment()),
        accepts_first: bool,
        seed: u64,
    ) {
        let mut configs = [lan(), satellite(0.0), lan()];
        for (config, impairment) in configs.iter_mut().zip(links) {
            config.impairment = impairment;
        }
        let mut chain = Chain::new(&gateway_config(POLICIES[usize::from(accepts_first)]), &configs, seed);
        let (up, down) = (client.to_send.clone(), server.to_send.clone());
        let id = chain.open(4000, client, server);
        prop_assert!(chain.run(HOUR), "{:?}", chain.ends());
        prop_assert!(chain.server_program(4000).unwrap().received == up);
        prop_assert!(chain.client().programs[&id].received == down);
        prop_assert_eq!(chain.ends(), [End::Finished; 2]);
        // When TIME-WAIT is over nothing is left.
        chain.run_for(Duration::from_secs(700));
        for gateway in chain.gateways() {
            for side in Side::BOTH {
                prop_assert_eq!(gateway.endpoint(side).connection_count(), 0);
            }
        }
        prop_assert_eq!(&chain.server().peers, &[SocketAddr::from((CLIENT, 4000))]);
    }
}

/// A SYN from another host of the client's LAN.
fn syn_of(client: Ipv4Addr, port: u16) -> Vec<u8> {
    let tcp = Tcp {
        src_port: port,
        dst_port: PORT,
        seq: SeqNum(1),
        ack: SeqNum(0),
        flags: Flags::SYN,
        window: 60_000,
        urgent: 0,
        options: Options { mss: Some(1460), ..Options::default() },
    };
    let mut packet = vec![0; 20 + tcp.emit_len()];
    let payload_len = tcp.emit_len() as u16;
    let (head, segment) = packet.split_at_mut(20);
    tcp.emit(segment, client, SERVER, protocol::TCP);
    let (protocol, dont_fragment, is_fragment) = (protocol::TCP, true, false);
    Ipv4 { src: client, dst: SERVER, protocol, tos: 0, ttl: 64, id: 1, dont_fragment, is_fragment, payload_len }
        .emit(head);
    packet
}

#[test]
fn one_client_cannot_keep_all_places() {
    let silent = || Program { fin_at: Instant::from_secs(1 << 30), ..Program::default() };
    let other = Ipv4Addr::new(10, 1, 0, 77);
    // Eight places; of whom they are, how long they were idle, and what becomes of a SYN of another client.
    for (own, idle_s, is_room_made) in [(8, 0, true), (8, 100, true), (6, 5, false), (6, 100, true)] {
        let mut config = gateway_config(SetUp::ConnectFirst);
        config.limits = Limits::default().connections(8);
        let mut chain = Chain::new(&config, &[lan(), satellite(0.0), lan()], 5);
        for port in 4000..4000 + own {
            chain.open(port, silent(), silent());
            chain.run_for(Duration::from_secs(1));
        }
        chain.run_for(Duration::from_secs(2 + idle_s));
        // Others have the rest, a connection each that is not set up.
        for port in 0..8 - own {
            chain.inject(&syn_of(Ipv4Addr::new(10, 1, 0, 50 + port as u8), 5000));
        }
        chain.run_for(Duration::from_millis(100));
        let before = chain.gateway(0).counters();
        chain.inject(&syn_of(other, 5555));
        chain.run_for(Duration::from_secs(1));
        let counters = chain.gateway(0).counters();
        let case = format!("{own} of one client, idle for {idle_s} s: {before:?} {counters:?}");
        assert_eq!(
            (counters.crowded, counters.full - before.full),
            if is_room_made { (1, 0) } else { (0, 1) },
            "{case}"
        );
        let of_hog: Vec<_> =
            chain.gateway_node(0).reports.iter().filter(|r| r.end == End::Crowded).map(|r| r.client).collect();
        // The one that was idle longest.
        let oldest = (is_room_made).then(|| SocketAddr::from((CLIENT, 4000)));
        assert_eq!(of_hog, oldest.into_iter().collect::<Vec<_>>(), "{case}");
        assert!(chain.gateway(0).connections().count() <= 8, "{case}");
    }
}
