//! Listeners under attack: forged SYNs must neither lock others out nor be worth many answers (RFC 4987).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, packet, plain, Script, PEER, PEER_ISS, US};
use scps_tp::{DropReason, Endpoint, EndpointConfig, Event, ListenError, Trust};
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Duration, Instant, Seed, SeqNum};
use std::net::Ipv4Addr;

fn syn(port: u16) -> Vec<u8> {
    let (flags, options) = (Flags::SYN, Options { mss: Some(1000), ..Options::default() });
    let tcp =
        Tcp { src_port: port, dst_port: US.1, seq: PEER_ISS, ack: SeqNum(0), flags, window: 9000, urgent: 0, options };
    packet(&tcp, &[])
}

/// Forged SYNs, so many in a second, until `end`.
fn flood(s: &mut Script, rate: u64, end: Instant) {
    let mut at = s.now;
    while at < end {
        s.advance(at);
        s.deliver(&syn(10_000 + (at.as_nanos() / 7000 % 50_000) as u16));
        at += Duration::from_micros(1_000_000 / rate);
    }
    s.advance(end);
}

/// Our sequence number for the honest peer.
fn iss(s: &Script) -> SeqNum {
    s.sent.iter().rev().find(|p| p.tcp.dst_port == PEER.1).unwrap().tcp.seq
}

fn ack(seq: SeqNum, data: &[u8]) -> Vec<u8> {
    from(PEER.1, seq, data)
}

fn from(port: u16, seq: SeqNum, data: &[u8]) -> Vec<u8> {
    let (flags, options) = (Flags::ACK, Options::default());
    let (seq, ack) = (PEER_ISS + 1, seq + 1);
    packet(&Tcp { src_port: port, dst_port: US.1, seq, ack, flags, window: 9000, urgent: 0, options }, data)
}

#[test]
fn a_handshake_of_600_ms_survives_a_flood() {
    for rate in [100, 600, 5000] {
        for warm_up_ms in [0, 1000] {
            let mut s = Script::new(plain(), no_rate());
            s.run("0.0 user listen");
            flood(&mut s, rate, Instant::from_millis(warm_up_ms));
            s.run(&format!("{} < S 0:0 mss 1000 caps 0x40", warm_up_ms as f64 / 1000.0));
            let iss = iss(&s);
            flood(&mut s, rate, Instant::from_millis(warm_up_ms + 600));
            s.deliver(&ack(iss, b"honest"));
            let what = format!("{rate} SYN/s, {warm_up_ms} ms before");
            assert!(s.id.is_some(), "{what}: not accepted");
            s.run("2.0 user read 100\n2.0 user send 3000\n2.0 state is Established");
            assert_eq!(s.received, b"honest", "{what}");
        }
    }
}

#[test]
fn a_place_has_one_listener() {
    let mut s = Script::new(plain(), no_rate());
    let first = s.endpoint.listen(US, plain()).unwrap();
    assert_eq!(s.endpoint.listen(US, plain()), Err(ListenError::InUse(US.into())));
    assert_eq!(s.endpoint.listen_asking(US, plain()), Err(ListenError::InUse(US.into())));
    // Another port, and any address, are other places.
    s.endpoint.listen((US.0, 1), plain()).unwrap();
    s.endpoint.listen((Ipv4Addr::UNSPECIFIED, US.1), plain()).unwrap();
    s.endpoint.unlisten(first);
    s.endpoint.listen(US, plain()).unwrap();
}

#[test]
fn connections_that_nobody_accepts_are_bounded() {
    let config = EndpointConfig::default().backlog(20);
    let mut endpoint = Endpoint::new(config, no_rate(), Seed::from_u64(1), Instant::ZERO);
    endpoint.listen(US, plain()).unwrap();
    let now = Instant::from_millis(1);
    let open = |endpoint: &mut Endpoint, port: u16| {
        endpoint.handle_input(now, &syn(port), Trust::Check);
        let mut out = Vec::new();
        if endpoint.poll_transmit(now, &mut out).is_some() {
            let seq = Tcp::parse(&out[20..], US.0, PEER.0, Verify::Trusted).unwrap().0.seq;
            endpoint.handle_input(now, &from(port, seq, b""), Trust::Check);
        }
    };
    for port in 1000..3000 {
        open(&mut endpoint, port);
    }
    assert_eq!((endpoint.connection_count(), endpoint.drops(DropReason::BacklogFull)), (20, 1980));
    // Whoever accepts one makes room for one.
    assert!(matches!(endpoint.poll_event(), Some(Event::Accepted(..))));
    (3000..3100).for_each(|port| open(&mut endpoint, port));
    assert_eq!(endpoint.connection_count(), 21);
    endpoint.retain_events(|_| false);
    (4000..4100).for_each(|port| open(&mut endpoint, port));
    assert_eq!(endpoint.connection_count(), 41);
}

/// An endpoint whose half-open connections are as many as it keeps.
fn full() -> Script {
    let mut s = Script::new(plain().timestamps(true).sack(true), no_rate());
    s.run("0.0 user listen");
    for port in 10_000..10_256 {
        s.deliver(&syn(port));
    }
    s.sent.clear();
    s
}

#[test]
fn a_cookie_keeps_what_fits_into_it() {
    for (offered, answered) in [
        ("mss 1460 wscale 3 caps 0xf0 sackok y ts 7", "caps 0x40 wscale 0 ts yes"),
        ("mss 1000 wscale 3 caps 0x40 sackok y", "caps none wscale 0 ts no"), // not in the table: no SNACK
        ("mss 1460", "caps none wscale none ts no"),
    ] {
        let mut s = full();
        s.run(&format!("0.1 < S 0:0 {offered}\n0.1 > S. 0:0 ack 1 mss 1000 {answered}"));
        assert_eq!(s.endpoint.connection_count(), 256, "nothing is kept");
        assert_eq!(s.endpoint.drops(DropReason::BacklogFull), 1);
        let ts = if offered.contains("ts") { " ts 8" } else { "" };
        s.run(&format!("0.7 < . 1:1 ack 1 win 9000{ts}\n0.7 state is Established"));
        let agreed = s.endpoint.agreed(s.connection()).unwrap();
        assert_eq!(agreed.snack, answered.contains("0x40"), "{offered}");
        assert_eq!(agreed.sack, offered.contains("sackok"), "{offered}");
        assert_eq!(agreed.timestamps, !ts.is_empty(), "{offered}");
        s.run(&format!("1.0 < . 1:101 ack 1{ts}\n1.1 user read 1000\n1.1 user send 5000"));
        assert_eq!(s.received.len(), 100);
    }
}

#[test]
fn what_fits_no_cookie_opens_nothing_and_is_not_reset() {
    let mut s = full();
    s.run("0.1 < S 0:0 mss 1460\n0.1 > S. 0:0 ack 1");
    for i in 0..5000 {
        s.run(&format!("0.2 < . 1:1 ack {}", 2 + i * 65_537));
    }
    // Data that overtook the acknowledgement: the connection opens with the next segment that fits.
    s.run("0.3 < . 1001:2001 ack 1\n0.3 quiet");
    assert_eq!(s.endpoint.connection_count(), 256);
    s.run("0.4 < . 1:1001 ack 1\n0.4 state is Established");
    // Long after the last cookie strangers are told again.
    s.advance(Instant::from_secs(400));
    s.sent.clear();
    let tcp = Tcp {
        src_port: 9,
        dst_port: US.1,
        seq: SeqNum(1),
        ack: SeqNum(1),
        flags: Flags::ACK,
        window: 0,
        urgent: 0,
        options: Options::default(),
    };
    s.deliver(&packet(&tcp, &[]));
    assert_eq!(s.sent.front().map(|p| p.tcp.flags), Some(Flags::RST));
}

#[test]
fn one_forged_syn_is_worth_six_answers() {
    let mut s = Script::new(plain(), no_rate());
    s.run("0.0 user listen\n0.0 < S 0:0 mss 1000 caps 0x40");
    s.advance(Instant::from_secs(7200));
    let times: Vec<_> = s.sent.iter().map(|p| p.at.as_millis() / 1000).collect();
    assert_eq!(times, [0, 6, 18, 42, 90, 154]);
    assert_eq!(s.endpoint.connection_count(), 0);
}
