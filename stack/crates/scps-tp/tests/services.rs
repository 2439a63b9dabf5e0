//! Records, best-effort service and compression between two engines and against scripts (scps-tp §14 items 81 to 100).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, plain, Script, PEER, US};
use scps_tp::{CloseReason, Config, Congestion, Endpoint, EndpointConfig, Event, OptionError, Trust};
use scps_wire::compressed::Compressed;
use scps_wire::ipv4::Ipv4;
use scps_wire::{Bitrate, Duration, Instant, Precedence, Seed, SeqNum};

#[test]
fn a_record_ends_with_its_segment_and_keeps_its_mark_when_resent() {
    // Items 94 and 96: a record of 2500 octets in segments of 1000, then one of 300; no segment spans an end.
    let mut s = Script::connected(plain().congestion(Congestion::None), no_rate());
    s.run(
        "0.6 user record 2500
         0.6 > . 1:1001 rb no
         0.6 > . 1001:2001 rb no
         0.6 > P. 2001:2501 rb yes
         0.6 user record 300
         0.6 > P. 2501:2801 rb yes
         1.1 < . 1:1 ack 2001
         1.1 < . 1:1 ack 2001 snack 0+1
         1.1 > P. 2001:2501 rb yes",
    );
}

#[test]
fn acknowledgements_tell_a_peer_that_speaks_scps_for_a_while_that_packets_come_damaged() {
    for (syn_ack, speaks_scps) in [("win 65535 mss 1000 caps 0x40", true), ("win 65535 mss 1000", false)] {
        let mut s = Script::connected_with(plain(), no_rate(), syn_ack);
        s.endpoint.handle_damage(s.now);
        let mut told = Vec::new();
        for (at, from) in [(0.6, 1), (9.0, 2001), (12.0, 4001)] {
            s.sent.clear();
            s.run(&format!("{at} < . {from}:{} ack 1\n{at} < . {}:{} ack 1", from + 1000, from + 1000, from + 2000));
            s.advance(Instant::from_secs(at as u64 + 1));
            let acks = s.sent.drain(..).filter(|seen| seen.len == 0);
            told.push(acks.map(|seen| seen.tcp.options.corruption_experienced).collect::<Vec<_>>());
        }
        assert!(told.iter().all(|acks| !acks.is_empty()));
        let flat: Vec<bool> = told.iter().map(|acks| acks.iter().all(|told| *told)).collect();
        assert_eq!(flat, [speaks_scps, speaks_scps, false], "{told:?}");
    }
}

#[test]
fn the_mark_leaves_room_for_itself() {
    // A record of exactly one MSS: 4 octets of option push its last octets into the next segment.
    let mut s = Script::connected(plain().congestion(Congestion::None), no_rate());
    s.run("0.6 user record 1000\n0.6 > . 1:997 rb no\n0.6 > P. 997:1001 rb yes");
}

#[test]
fn a_read_never_crosses_a_record_end() {
    // Item 95.
    let mut s = Script::accepted(plain(), "mss 1000 caps 0x40 win 65535");
    s.run("1.0 < P. 1:101 ack 1 rb yes\n1.0 < P. 101:301 ack 1 rb yes\n1.1 user read 1000");
    assert_eq!(s.received.len(), 100);
    s.run("1.1 user read 50\n1.1 user read 1000");
    assert_eq!(s.received.len(), 300);
}

fn bets() -> Config {
    let mut config = plain().bets(true).congestion(Congestion::None);
    config.bets_policy.retransmissions_max = 2;
    config
}

#[test]
fn bets_abandons_data_after_the_limit_and_stays_open() {
    // Items 97: two resends, then given up; the hole is the first 1000 octets of the stream.
    let mut s = Script::connected_with(bets(), no_rate(), "win 65535 mss 1000 caps 0xc0");
    s.run("0.6 user send 2000");
    s.advance(Instant::from_secs(60));
    s.sent.clear();
    let holes = s.endpoint.bets_send_holes(s.connection()).unwrap();
    assert_eq!(holes.first(), Some(&(0, 999)));
    s.run("60.0 state is Established");
}

#[test]
fn bets_abandons_all_that_was_lost_too_often_at_once() {
    // Everything is lost at 2.1, 5.1 and 11.1 s (RTO 1.5 s, doubled); what has nothing behind it is sent again.
    let mut s = Script::connected_with(bets().snack(false), no_rate(), "win 65535 mss 1000 caps 0x80");
    s.run("0.6 user send 4000");
    s.advance(Instant::from_secs(11));
    s.sent.clear();
    s.run("11.1 > P. 3001:4001\n11.2 quiet");
    assert_eq!(s.endpoint.bets_send_holes(s.connection()), Ok(vec![(0, 2999)]));
}

#[test]
fn a_skipped_hole_is_reported_before_what_follows() {
    // Items 98 and 99: octets 1000 to 1999 of the stream never come; the reader waits 1.05 s.
    let mut s = Script::accepted(bets(), "mss 1000 caps 0xc0 win 65535");
    s.run("1.0 < . 1:1001 ack 1\n1.0 < . 2001:3001 ack 1\n1.0 user read 5000\n1.0 user read 5000");
    s.sent.clear();
    s.run("2.0 quiet\n2.049 > . 1:1 ack 3001\n2.1 user read 5000\n2.1 user read 5000");
    assert_eq!(s.holes, [(1000, 1000)]);
    assert_eq!(s.received.len(), 2000);
}

#[test]
fn the_next_hole_is_waited_for_as_long_as_the_first() {
    // The reader waits at 1001:2001 from 1.0 s on, and that hole is filled at 2.0 s; then it waits at 3001:4001.
    let mut s = Script::accepted(bets(), "mss 1000 caps 0xc0 win 65535");
    s.run("1.0 < . 1:1001 ack 1\n1.0 user read 5000\n1.0 < . 2001:3001 ack 1\n1.9 < . 4001:5001 ack 1");
    s.run("2.0 < . 1001:2001 ack 1\n2.0 user read 5000\n3.0 user read 5000");
    assert_eq!((s.received.len(), s.holes.len()), (3000, 0));
    s.run("3.0 < . 3001:4001 ack 1\n3.0 user read 5000");
    assert_eq!((s.received.len(), s.holes.len()), (5000, 0));
    // A reader that is late has the whole time as well, and a hole that was passed over takes nothing of it.
    s.run(
        "4.0 < . 6001:7001 ack 1\n4.0 < . 8001:9001 ack 1\n4.0 user read 5000\n6.0 user read 5000\n6.0 user read 5000",
    );
    s.run("7.0 < . 7001:8001 ack 1\n7.0 user read 5000");
    assert_eq!((s.received.len(), s.holes.clone()), (8000, vec![(5000, 1000)]));
}

#[test]
fn bets_gives_up_nothing_that_the_receiver_cannot_pass_over() {
    for (window, then) in [(65_535, "user close"), (1000, "user send 2000")] {
        let syn_ack = format!("win {window} mss 1000 caps 0xc0");
        let mut s = Script::connected_with(bets(), no_rate(), &syn_ack);
        s.run(&format!("0.6 user send 1000\n0.6 {then}"));
        s.advance(Instant::from_secs(120));
        assert_eq!(s.endpoint.bets_send_holes(s.connection()), Ok(vec![]), "{then}");
    }
}

#[test]
fn bets_with_a_peer_that_is_gone_ends_when_nothing_more_can_be_given_up() {
    let mut config = bets();
    config.rto.retransmissions_max = 4;
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0xc0");
    s.run("0.6 user send 5000");
    s.advance(Instant::from_secs(24 * 3600));
    assert_eq!(s.endpoint.bets_send_holes(s.connection()), Ok(vec![(0, 3999)]));
    assert!(matches!(s.events.last(), Some(Event::Closed(_, CloseReason::TimedOut))), "{:?}", s.events);
    assert_eq!(s.endpoint.poll_timeout(), None);
}

#[test]
fn bets_needs_both_sides() {
    // Item 100.
    let s = Script::connected_with(bets(), no_rate(), "win 65535 mss 1000 caps 0x40");
    assert_eq!(s.endpoint.bets_send_holes(s.connection()), Err(OptionError::NotSupported));
}

/// Two engines joined directly; `drop_every` loses every n-th packet.
struct Pair {
    ends: [Endpoint; 2],
    now: Instant,
    compressed: Vec<Vec<u8>>,
    uncompressed_syns: usize,
    drop_every: usize,
    sent: usize,
}

impl Pair {
    fn new(config: &Config, drop_every: usize) -> Self {
        let end = |i: u64| {
            let route = no_rate().initial_rto(Duration::from_secs(1));
            Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(i), Instant::ZERO)
        };
        let mut ends = [end(1), end(2)];
        ends[1].listen(PEER, config.clone()).unwrap();
        Pair { ends, now: Instant::ZERO, compressed: Vec::new(), uncompressed_syns: 0, drop_every, sent: 0 }
    }

    fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for i in 0..2 {
                let mut packet = Vec::new();
                while self.ends[i].poll_transmit(self.now, &mut packet).is_some() {
                    is_quiet = false;
                    self.sent += 1;
                    match packet[9] {
                        105 => self.compressed.push(packet.clone()),
                        _ => self.uncompressed_syns += usize::from(packet[33] & 2 != 0),
                    }
                    if self.drop_every == 0 || self.sent % self.drop_every != 0 {
                        self.ends[1 - i].handle_input(self.now, &packet, Trust::Check);
                    }
                    packet.clear();
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        self.settle();
        let end = Instant::from_secs(seconds);
        while let Some(at) = self.ends.iter().filter_map(Endpoint::poll_timeout).min().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            for e in &mut self.ends {
                e.handle_timeout(self.now);
            }
            self.settle();
        }
    }
}

/// Octets that each of three connections with unlimited windows gets through a route of 1 Mbit/s in ten seconds.
fn shares(levels: [Option<Precedence>; 3], mss: [u16; 3]) -> [u64; 3] {
    const OCTETS: usize = 4_000_000;
    let buffers = plain().send_buffer(OCTETS).receive_buffer(OCTETS).window_scaling(true);
    let config = buffers.congestion(Congestion::None);
    let mut pair = Pair::new(&config, 0);
    let rate = Some(Bitrate::from_bps(1_000_000));
    let route = no_rate().initial_rto(Duration::from_secs(1)).rate(rate);
    pair.ends[0] = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(1), Instant::ZERO);
    let ids = [0, 1, 2].map(|i| {
        let config = config.clone().precedence(levels[i]).mss(Some(mss[i]));
        let id = pair.ends[0].connect(Instant::ZERO, (US.0, 0), PEER, config).unwrap();
        assert_eq!(pair.ends[0].send(Instant::ZERO, id, &vec![7; OCTETS]), Ok(OCTETS));
        id
    });
    pair.run(10);
    ids.map(|id| OCTETS as u64 - pair.ends[0].snapshot(id).unwrap().unacknowledged)
}

#[test]
fn connections_share_a_routes_rate_whatever_their_segments_and_the_most_urgent_comes_first() {
    let all = 10 * 1_000_000 / 8;
    for mss in [[1000, 1000, 1000], [1000, 500, 200]] {
        let got = shares([None; 3], mss);
        // Headers of 40 octets and those of handshakes take their part; a segment of 200 octets is a sixth header.
        assert!(got.iter().sum::<u64>() > all * 4 / 5, "{got:?}");
        assert!(got.iter().min().unwrap() * 10 > got.iter().max().unwrap() * 8, "{got:?}");
    }
    let got = shares([None, Some(Precedence::HIGHEST), None], [1000; 3]);
    assert!(got[1] > all * 9 / 10 && got[0] + got[2] < all / 20, "{got:?}");
}

fn compressing() -> Config {
    plain().compression(true).nodelay(true)
}

#[test]
fn compressed_connections_carry_everything_but_syns() {
    // Items 81 to 87.
    let mut pair = Pair::new(&compressing(), 0);
    let id = pair.ends[0].connect(pair.now, US, PEER, compressing()).unwrap();
    pair.run(1);
    pair.ends[0].send(pair.now, id, &[7; 10_000]).unwrap();
    pair.run(2);
    pair.ends[0].send(pair.now, id, &[7; 500]).unwrap();
    pair.run(3);
    assert_eq!(pair.uncompressed_syns, 2);
    assert!(!pair.compressed.is_empty());
    let own_id = pair.compressed.iter().find(|p| p[12..16] == US.0.octets()).unwrap()[20];
    let mut data_headers = Vec::new();
    for packet in &pair.compressed {
        let (ip, payload) = Ipv4::parse(packet).unwrap();
        let (header, data) = Compressed::parse(payload, ip.src, ip.dst).unwrap();
        assert_eq!((payload.len() - data.len()) % 2, 0, "item 84: even header");
        // Item 87: the pseudo-header names protocol 6.
        let mut sum = scps_wire::checksum::Checksum::pseudo_header(ip.src, ip.dst, 6, payload.len() as u16);
        sum.add(payload);
        assert!(sum.verifies());
        if ip.src == US.0 {
            assert_eq!(header.connection_id, own_id, "item 83");
            if !data.is_empty() {
                data_headers.push(payload.len() - data.len());
            }
        }
    }
    // Item 85: 8 octets, once the peer has been heard (scps-tp §3.7).
    assert_eq!(data_headers.last(), Some(&8));
}

#[test]
fn compressed_transfers_survive_loss_and_keep_apart() {
    // Items 89 and 92: every seventh packet is lost; two connections between the same hosts.
    let config = compressing().timestamps(true).snack(true);
    let mut pair = Pair::new(&config, 7);
    let ids: Vec<_> =
        (0..2u16).map(|i| pair.ends[0].connect(pair.now, (US.0, 5000 + i), PEER, config.clone()).unwrap()).collect();
    pair.run(30);
    let mut accepted = Vec::new();
    while let Some(event) = pair.ends[1].poll_event() {
        if let Event::Accepted(_, id) = event {
            accepted.push(id);
        }
    }
    assert_eq!(accepted.len(), 2);
    for (i, id) in ids.iter().enumerate() {
        pair.ends[0].send(pair.now, *id, &vec![i as u8 + 1; 40_000]).unwrap();
    }
    pair.run(200);
    for id in accepted {
        let mut buffer = vec![0; 60_000];
        let (n, _) = pair.ends[1].recv(pair.now, id, &mut buffer).unwrap();
        let port = pair.ends[1].addresses(id).unwrap().1.port();
        assert_eq!(n, 40_000);
        assert!(buffer[..n].iter().all(|b| u16::from(*b) == port - 4999), "data of the other connection");
    }
    assert!(pair.compressed.len() > 80);
}

#[test]
fn compression_needs_both_sides() {
    // Item 82.
    let mut pair = Pair::new(&plain(), 0);
    let id = pair.ends[0].connect(pair.now, US, PEER, compressing()).unwrap();
    pair.run(1);
    pair.ends[0].send(pair.now, id, &[7; 10_000]).unwrap();
    pair.run(2);
    assert!(pair.compressed.is_empty());
}

#[test]
fn compressed_packets_of_strangers_are_dropped_silently() {
    // Items 88, 90, 91: protocol 105 in the checksum is accepted; unknown identifiers and overlong options are not.
    let mut pair = Pair::new(&compressing(), 0);
    pair.ends[0].connect(pair.now, US, PEER, compressing()).unwrap();
    pair.run(1);
    let known = pair.compressed.iter().find(|p| p[12..16] == US.0.octets()).unwrap()[20];
    let send = |pair: &mut Pair, id: u8, checksum_protocol: u8| {
        let mut header = Compressed::new(id);
        header.seq = Some(SeqNum(0));
        header.window_ack = Some((100, SeqNum(0)));
        let mut packet = vec![0; 20 + header.emit_len()];
        let (head, body) = packet.split_at_mut(20);
        header.emit(body, US.0, PEER.0, checksum_protocol);
        Ipv4 {
            src: US.0,
            dst: PEER.0,
            protocol: 105,
            tos: 0,
            ttl: 9,
            id: 0,
            dont_fragment: false,
            is_fragment: false,
            payload_len: body.len() as u16,
        }
        .emit(head);
        pair.ends[1].handle_input(pair.now, &packet, Trust::Check);
    };
    send(&mut pair, known.wrapping_add(1).max(1), 6);
    assert_eq!(pair.ends[1].drops(scps_tp::DropReason::UnknownConnectionId), 1);
    assert!(pair.ends[1].poll_transmit(pair.now, &mut Vec::new()).is_none(), "no reply to a stranger");
    send(&mut pair, known, 105);
    assert_eq!(pair.ends[1].drops(scps_tp::DropReason::BadSegment), 0, "checksum with 105 is accepted");
    send(&mut pair, known, 17);
    assert_eq!(pair.ends[1].drops(scps_tp::DropReason::BadSegment), 1);
}
