//! Strangers who guess, and peers who lie: what a packet may do that its sender could make up (RFC 5961, RFC 9293 §3.10.7.4).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{ip_packet, no_rate, plain, Script, PEER, PEER_ISS, US};
use scps_tp::{Config, Congestion, DropReason, Endpoint, EndpointConfig, State, Trust};
use scps_wire::compressed::Compressed;
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Duration, Instant, Seed, SeqNum};
use std::net::Ipv4Addr;

fn unlimited() -> Config {
    plain().congestion(Congestion::None)
}

#[test]
fn an_acknowledgement_counts_only_from_a_segment_at_the_window() {
    // scps-tp §14 item 116: the sequence number is as hard to guess as the acknowledgement's.
    for seq in [70_000i64, 1 << 30, (1 << 31) - 2, -1, -5000, -(1 << 30)] {
        let mut s = Script::connected(unlimited(), no_rate());
        s.run(&format!("1.0 user send 20000\n1.1 < . {seq}:{seq} ack 15001 win 0\n1.1 state flight 20000"));
        s.run(&format!("1.2 < . {}:{seq} ack 15001 win 0\n1.2 state flight 20000", seq - 100));
    }
    // At the right edge of a full window, and at the edge of a closed one, it does (a window probe's too).
    for line in ["60001:60001", "1:1", "1:2"] {
        let mut s = Script::connected(unlimited(), no_rate());
        s.run(&format!("1.0 user send 20000\n1.1 < . {line} ack 15001\n1.1 state flight 5000"));
    }
}

#[test]
fn acknowledgements_are_believed_within_the_largest_window_only() {
    // RFC 5961 §5: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT, here 20001 - 10000 and 25001.
    for (ack, is_taken) in [(25_001, true), (10_001, true), (10_000, false), (25_002, false)] {
        let mut s = Script::connected_with(unlimited(), no_rate(), "win 10000 mss 1000 caps 0x40");
        s.run(
            "1.0 user send 10000\n1.1 < . 1:1 ack 10001 win 10000\n1.1 user send 10000\n1.2 < . 1:1 ack 20001 win 5000",
        );
        s.run(&format!("1.2 user send 5000\n1.3 < . 1:101 ack {ack} win 5000\n1.3 user read 1000"));
        assert_eq!(!s.received.is_empty(), is_taken, "data beside an acknowledgement of {ack}");
        assert_eq!(s.endpoint.drops(DropReason::BadAck), u64::from(!is_taken));
    }
}

#[test]
fn answers_to_segments_that_fit_nowhere_are_rare() {
    // (segment, answers to a thousand of them within 0.9 s and a round trip of 500 ms)
    let cases = [
        ("< . 70000:70000 ack 1", 1),
        ("< . -5000:-5000 ack 1", 1),
        ("< S 99999:99999", 1),
        ("< S 5:5", 10),
        ("< R 5:5", 10),
        ("< . 1:1 ack 999999", 10),
        ("< R 99999:99999", 0),
        ("< . 1:1 ack 1 ts 1", 1),
    ];
    for (line, answers) in cases {
        let config = plain().timestamps(line.contains("ts"));
        let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x40 ts 5000");
        for i in 0..1000 {
            s.run(&format!("{} {line}", 1.0 + f64::from(i) * 0.0009));
        }
        assert_eq!(s.sent.len(), answers, "{line}");
    }
    // A copy of old data is answered each time: its sender has not had the acknowledgement.
    let mut s = Script::connected(plain(), no_rate());
    for _ in 0..10 {
        s.run("1.0 < . -100:0 ack 1");
    }
    assert_eq!(s.sent.len(), 10);
}

const ENDS: [(Ipv4Addr, u16); 2] = [(Ipv4Addr::new(10, 0, 0, 1), 9), (Ipv4Addr::new(10, 0, 0, 2), 7)];

/// A packet from one of `ENDS` to the other.
fn forged(from: usize, tcp: &Tcp, data: &[u8]) -> Vec<u8> {
    let (src, dst) = (ENDS[from], ENDS[1 - from]);
    let tcp = Tcp { src_port: src.1, dst_port: dst.1, ..*tcp };
    ip_packet(src.0, dst.0, 6, tcp.emit_len(), data, |segment| tcp.emit(segment, src.0, dst.0, 6))
}

/// Packets that two ends exchange in a minute after one forged segment of six octets reached each.
fn packets_of_a_war(delay: Duration) -> usize {
    let mut now = Instant::from_secs(1);
    let end = |seed| Endpoint::new(EndpointConfig::default(), no_rate(), Seed::from_u64(seed), Instant::ZERO);
    let mut ends = [end(1), end(2)];
    ends[1].listen(ENDS[1], plain()).unwrap();
    ends[0].connect(now, ENDS[0], ENDS[1], plain()).unwrap();
    let mut wire: Vec<(Instant, usize, Vec<u8>)> = Vec::new();
    let mut last = [(SeqNum(0), SeqNum(0)); 2];
    let (mut is_forged, mut packets) = (false, 0);
    while now < Instant::from_secs(70) {
        for (i, e) in ends.iter_mut().enumerate() {
            let mut out = Vec::new();
            while e.poll_transmit(now, &mut out).is_some() {
                let (ip, payload) = Ipv4::parse(&out).unwrap();
                let (tcp, _) = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap();
                last[i] = (tcp.seq + u32::from(tcp.flags.has(Flags::SYN)), tcp.ack);
                packets += usize::from(is_forged);
                wire.push((now + delay, 1 - i, std::mem::take(&mut out)));
            }
        }
        if !is_forged && now > Instant::from_secs(10) {
            is_forged = true;
            for i in 0..2 {
                let (seq, ack) = (last[i].0, last[1 - i].0);
                let tcp = Tcp {
                    src_port: 0,
                    dst_port: 0,
                    seq,
                    ack,
                    flags: Flags::ACK,
                    window: 30_000,
                    urgent: 0,
                    options: Options::default(),
                };
                ends[1 - i].handle_input(now, &forged(i, &tcp, b"forged"), Trust::Check);
            }
            continue;
        }
        let timers = ends.iter().filter_map(Endpoint::poll_timeout);
        now = timers
            .chain(wire.iter().map(|w| w.0))
            .min()
            .unwrap_or(Instant::from_secs(70))
            .max(now)
            .min(now + Duration::from_secs(1));
        let (due, rest): (Vec<_>, Vec<_>) = wire.into_iter().partition(|w| w.0 <= now);
        wire = rest;
        for (_, to, packet) in due {
            ends[to].handle_input(now, &packet, Trust::Check);
        }
        for e in &mut ends {
            e.handle_timeout(now);
        }
    }
    packets
}

#[test]
fn one_forged_segment_to_either_side_starts_no_war() {
    for ms in [5, 300, 1300] {
        let packets = packets_of_a_war(Duration::from_millis(ms));
        assert!((2..=10).contains(&packets), "{packets} packets at {ms} ms one way");
    }
}

#[test]
fn data_without_the_agreed_timestamp_is_not_taken() {
    // RFC 7323 §3.2; a bare acknowledgement without is, for the reference sends such.
    let config = unlimited().timestamps(true);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x40 ts 5000");
    s.run("1.0 user send 500\n1.1 < . 1:101 ack 1\n1.1 user read 1000\n1.2 < . 1:1 ack 501\n1.2 state flight 0");
    assert!(s.received.is_empty());
    assert_eq!(s.endpoint.drops(DropReason::NoTimestamp), 1);
    s.run("1.3 < . 1:101 ack 501 ts 5100\n1.3 user read 1000");
    assert_eq!(s.received.len(), 100);
}

/// A compressed packet as the peer, or someone who knows its identifier, would send it.
fn compressed(header: &Compressed, data: &[u8]) -> Vec<u8> {
    ip_packet(PEER.0, US.0, 105, header.emit_len(), data, |segment| header.emit(segment, PEER.0, US.0, 6))
}

/// The identifier that scripts give the peer.
const PEER_ID: u8 = 77;

fn compressing(timestamps: bool) -> Script {
    let config = unlimited().compression(true).timestamps(timestamps).nodelay(true);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x50 ts 1000");
    assert!(s.endpoint.agreed(s.connection()).unwrap().compression.is_some());
    s.run("1.0 user send 20000");
    s
}

#[test]
fn a_compressed_packet_needs_more_than_its_identifier() {
    let far = Some(PEER_ISS + 1_000_000);
    let bare = Compressed::new(PEER_ID);
    let forgeries: [(&str, Compressed, &[u8]); 12] = [
        ("nothing", bare, b""),
        ("RST", Compressed { rst: true, ..bare }, b""),
        ("RST with an acknowledgement", Compressed { rst: true, window_ack: Some((100, SeqNum(7))), ..bare }, b""),
        ("RST far off", Compressed { rst: true, seq: far, ..bare }, b""),
        ("data", Compressed { push: true, ..bare }, b"forged"),
        ("data with an acknowledgement", Compressed { window_ack: Some((100, SeqNum(7))), ..bare }, b"forged"),
        ("data far off", Compressed { seq: far, ..bare }, b"forged"),
        ("record", Compressed { record_boundary: true, ..bare }, b"forged"),
        ("FIN", Compressed { fin: true, ..bare }, b""),
        ("FIN with data", Compressed { fin: true, ..bare }, b"forged"),
        ("SNACK", Compressed { options: &[21, 6, 0, 0, 0, 9], ..bare }, b""),
        (
            "SNACK with an acknowledgement",
            Compressed { options: &[21, 6, 0, 0, 0, 9], window_ack: Some((0, SeqNum(7))), ..bare },
            b"",
        ),
    ];
    for timestamps in [false, true] {
        for (name, header, data) in &forgeries {
            let mut s = compressing(timestamps);
            s.sent.clear();
            let stamp = timestamps.then_some(u32::MAX / 2);
            for header in [*header, Compressed { ts_val: stamp, ts_ecr: stamp, ..*header }] {
                s.deliver(&compressed(&header, data));
            }
            s.run("1.0 user read 100\n1.0 state flight 20000 is Established");
            assert!(s.received.is_empty(), "{name}");
            assert_eq!(s.endpoint.stats(s.connection()).unwrap().resends_total(), 0, "{name}");
        }
    }
}

#[test]
fn a_reset_answers_full_headers_alone() {
    // scps-tp §3.8. Neither acknowledges our SYN.
    let mut s = Script::new(unlimited().compression(true), no_rate());
    s.run("0.0 user listen\n0.0 < S 0:0 mss 1000 caps 0x50\n0.0 > S. 0:0");
    let window_ack = Some((100, s.our_iss() + 5000));
    let header = Compressed { seq: Some(PEER_ISS + 1), window_ack, ..Compressed::new(PEER_ID) };
    s.endpoint.handle_input(s.now, &compressed(&header, b""), Trust::Check);
    assert_eq!(s.endpoint.drops(DropReason::BadAck), 1);
    assert!(s.endpoint.poll_transmit(s.now, &mut Vec::new()).is_none());
    s.run("0.1 < . 1:1 ack 5000\n0.1 > R 5000:5000");
}

#[test]
fn compressed_packets_of_the_peer_are_taken() {
    let bare = Compressed::new(PEER_ID);
    let mut s = compressing(false);
    let iss = s.sent.front().map(|p| p.tcp.seq);
    assert_eq!(iss, None, "everything but the SYN is compressed");
    let iss = s.iss().unwrap();
    // The reference leaves the sequence number out of acknowledgements, and window and acknowledgement out of data.
    s.deliver(&compressed(&Compressed { window_ack: Some((65_535, iss + 10_001)), ..bare }, b""));
    s.run("1.1 state flight 10000");
    s.deliver(&compressed(&Compressed { seq: Some(PEER_ISS + 1), ..bare }, b"honest"));
    s.run("1.2 user read 100");
    assert_eq!(s.received, b"honest");
    let fin = Compressed { fin: true, seq: Some(PEER_ISS + 7), window_ack: Some((65_535, iss + 20_001)), ..bare };
    s.deliver(&compressed(&fin, b""));
    s.run("1.3 state is CloseWait flight 0");
    s.deliver(&compressed(&Compressed { rst: true, seq: Some(PEER_ISS + 8), ..bare }, b""));
    assert_eq!(s.endpoint.state(s.connection()), Some(State::Closed));
}

#[test]
fn the_peers_mss_has_a_floor() {
    // CVE-2019-11479: an MSS of one octet made 20,000 packets of these 20,000 octets.
    for (mss, timestamps, len) in [(0, false, 32), (1, true, 20), (31, true, 20), (32, false, 32), (62, true, 50)] {
        let config = unlimited().timestamps(timestamps).mss(None);
        let mut s = Script::connected_with(config, no_rate(), &format!("win 65535 mss {mss} caps 0x40 ts 1"));
        s.run("1.0 user send 20000");
        assert_eq!(s.sent.front().map(|p| p.len), Some(len), "MSS {mss}");
        assert!(s.sent.len() <= 1000, "MSS {mss}: {} packets", s.sent.len());
    }
}

#[test]
fn a_thousand_duplicate_acknowledgements_release_what_was_out() {
    // RFC 5681 §3.2: there cannot be more honest ones than segments on their way; four of 1000 octets are.
    for congestion in [Congestion::Vj, Config::default().congestion] {
        let config = plain().congestion(congestion).send_buffer(2_000_000);
        let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 wscale 5 caps 0x40");
        s.run("1.0 user send 1000000");
        let first = s.sent.len();
        assert_eq!(first, 4);
        s.sent.clear();
        for _ in 0..1000 {
            s.run("1.5 < . 1:1 ack 1 win 60000");
        }
        assert!(s.sent.len() <= first + 1, "{congestion:?}: {} packets", s.sent.len());
    }
}

#[test]
fn acknowledgements_of_an_octet_each_open_no_window() {
    for byte_counting in [false, true] {
        let config = plain().congestion(Congestion::Vj).byte_counting(byte_counting).send_buffer(2_000_000);
        let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 wscale 5 caps 0x40");
        s.run("1.0 user send 1000000");
        for i in 1..=1000 {
            s.run(&format!("1.5 < . 1:1 ack {} win 60000", 1 + i));
        }
        let cwnd = s.endpoint.snapshot(s.connection()).unwrap().cwnd;
        assert!(cwnd <= 5000, "from 4000 to {cwnd}");
    }
}
