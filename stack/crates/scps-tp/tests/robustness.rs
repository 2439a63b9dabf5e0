//! What strangers and broken peers may try (scps-tp §14 items 115 to 121; RFC 5961, RFC 5927).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, packet, plain, Script, PEER, PEER_ISS, US};
use scps_tp::{CloseReason, Config, Congestion, DropReason, Event, RecvError};
use scps_wire::checksum::Checksum;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Instant, Seed, SeqNum};

#[test]
fn resets_count_only_at_the_exact_next_octet() {
    // Item 115, RFC 5961 §3: outside the window ignored, inside challenged, exact accepted.
    let mut s = Script::connected(plain(), no_rate());
    s.run(
        "1.0 < R 70000:70000
         1.0 quiet
         1.0 < R 500:500
         1.0 > . 1:1 ack 1
         1.1 state is Established
         1.1 < R 1:1
         1.1 state is Closed",
    );
    assert!(matches!(s.events.last(), Some(Event::Closed(_, CloseReason::Reset))));
}

#[test]
fn only_the_peers_end_reads_as_the_end() {
    let mut buffer = [0; 100];
    // What came in order is read first in any case.
    for (last, end) in [("R 51:51", Err(RecvError::Closed(CloseReason::Reset))), ("F. 51:51 ack 1", Ok((0, false)))] {
        let mut s = Script::connected(plain(), no_rate());
        s.run(&format!("1.0 < . 1:51 ack 1\n1.1 < . 80:90 ack 1\n1.2 < {last}"));
        let (now, id) = (s.now, s.connection());
        assert_eq!(s.endpoint.recv(now, id, &mut buffer), Ok((50, false)));
        assert_eq!(s.endpoint.recv(now, id, &mut buffer), end);
        // What resets after the end takes nothing of it back.
        s.run("1.3 < R 52:52");
        assert_eq!(s.endpoint.recv(s.now, id, &mut buffer), end);
    }
    let mut s = Script::connected(plain(), no_rate());
    s.endpoint.abort(s.now, s.connection());
    let aborted = Err(RecvError::Closed(CloseReason::Aborted));
    assert_eq!(s.endpoint.recv(s.now, s.connection(), &mut buffer), aborted);
}

#[test]
fn a_peer_at_no_distance_gets_no_more_than_it_lost() {
    // Handshake and answers at one instant, and SACKs of every second segment in any order.
    let mut config = plain().sack(true).congestion(Congestion::None).send_buffer(4_000_000);
    config.receive_buffer = 65_000;
    let mut s = Script::new(config, no_rate());
    s.run("0.0 user connect\n0.0 < S. 0:0 ack 1 win 65535 mss 100 wscale 10 sackok y");
    s.run("0.0 user send 60000");
    let segments: Vec<u32> =
        s.sent.iter().filter(|seen| seen.len > 0).map(|seen| seen.tcp.seq.0.wrapping_sub(s.our_iss().0)).collect();
    s.sent.clear();
    let mut order: Vec<u32> = segments.iter().skip(1).step_by(2).copied().collect();
    let mut rng = Seed::from_u64(4).stream("order");
    (1..order.len()).rev().for_each(|i| order.swap(i, rng.below(i as u64 + 1) as usize));
    for start in order {
        s.run(&format!("0.0 < . 1:1 ack 1 win 65535 sack {start}:{}", start + 100));
    }
    assert!(s.sent.len() <= 2 * segments.len(), "{} segments sent again of {}", s.sent.len(), segments.len());
}

#[test]
fn a_syn_inside_a_connection_is_challenged() {
    // RFC 5961 §4, and §7: at most ten challenges in five seconds.
    let mut s = Script::connected(plain(), no_rate());
    s.run("1.0 < S 1:1\n1.0 > . 1:1 ack 1\n1.0 state is Established");
    for _ in 0..50 {
        s.run("1.0 < S 1:1");
    }
    assert_eq!(s.sent.len(), 9);
}

#[test]
fn acknowledgements_of_unsent_or_ancient_data_change_nothing() {
    // Item 116, RFC 5961 §5: ack beyond snd_max is challenged and its data is not taken.
    let mut s = Script::connected(plain().congestion(Congestion::None), no_rate());
    s.run(
        "1.0 user send 1000
         1.0 > P. 1:1001
         1.1 < . 1:501 ack 5000
         1.1 > . 1001:1001 ack 1
         1.1 state flight 1000
         1.1 < . 1:501 ack -100000
         1.1 > . 1001:1001 ack 1
         1.2 user read 1000",
    );
    assert!(s.received.is_empty());
    assert_eq!(s.endpoint.drops(DropReason::BadAck), 2);
}

#[test]
fn a_refusal_must_acknowledge_our_syn() {
    let mut s = Script::new(plain(), no_rate());
    s.run("0.0 user connect\n0.0 > S 0:0\n0.1 < R. 0:0 ack 7\n0.1 state is SynSent\n0.2 < R. 0:0 ack 1");
    assert!(matches!(s.events.last(), Some(Event::Closed(_, CloseReason::Refused))));
}

#[test]
fn segments_for_nobody_are_reset_once_and_resets_never() {
    let mut s = Script::new(plain(), no_rate());
    s.run("0.0 < . 1:1 ack 9\n0.0 > R 0:0\n0.1 < R 1:1\n0.2 quiet");
}

fn icmp(kind: u8, code: u8, mtu: u16, seq: SeqNum) -> Vec<u8> {
    let quoted = Tcp {
        src_port: US.1,
        dst_port: PEER.1,
        seq,
        ack: SeqNum(0),
        flags: Flags::ACK,
        window: 0,
        urgent: 0,
        options: Options::default(),
    };
    let mut quote = packet(&quoted, &[]);
    quote[12..16].copy_from_slice(&US.0.octets());
    quote[16..20].copy_from_slice(&PEER.0.octets());
    let mut message = vec![kind, code, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(&quote[..28]);
    let mut sum = Checksum::new();
    sum.add(&message);
    message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    let header = Tcp { src_port: 0, dst_port: 0, ..quoted };
    let mut outer = packet(&header, &[])[..20].to_vec();
    outer[9] = 1;
    outer[2..4].copy_from_slice(&((20 + message.len()) as u16).to_be_bytes());
    outer[10..12].fill(0);
    outer.extend(message);
    outer
}

#[test]
fn fragmentation_needed_lowers_the_segment_size() {
    // Items 118 and 119: a quote outside the flight is ignored; inside, MTU 576 makes segments of 536 octets.
    let mut s = Script::connected(plain().congestion(Congestion::None), no_rate());
    s.run("1.0 user send 2000");
    let seq = s.sent.front().unwrap().tcp.seq;
    s.sent.clear();
    s.deliver(&icmp(3, 4, 576, seq + 50_000));
    assert_eq!(s.endpoint.drops(DropReason::ForeignReport), 1);
    s.run("1.1 quiet");
    s.deliver(&icmp(3, 1, 0, seq + 50_000));
    s.deliver(&icmp(3, 1, 0, seq));
    s.run("1.1 state is Established");
    s.deliver(&icmp(3, 4, 576, seq));
    assert_eq!(s.ranges_until(1.2), ["1:537", "537:1001", "1001:1537", "1537:2001"]);
    s.run("1.6 < . 1:1 ack 2001\n1.6 state flight 0");
}

#[test]
fn a_syn_flood_is_bounded_and_does_not_lock_others_out() {
    let mut s = Script::new(plain(), no_rate());
    s.run("0.0 user listen");
    let syn = |port: u16| {
        let options = Options { mss: Some(1000), ..Options::default() };
        Tcp {
            src_port: port,
            dst_port: US.1,
            seq: PEER_ISS,
            ack: SeqNum(0),
            flags: Flags::SYN,
            window: 9000,
            urgent: 0,
            options,
        }
    };
    for port in 10_000..15_000 {
        s.deliver(&packet(&syn(port), &[]));
    }
    assert!(s.endpoint.connection_count() <= 256);
    assert_eq!(s.endpoint.drops(DropReason::BacklogFull), 5000 - 256);
    s.sent.clear();
    s.run("0.1 < S 0:0 mss 1000\n0.1 > S. 0:0 ack 1\n0.2 < . 1:1 ack 1\n0.2 state is Established");
}

#[test]
fn an_out_of_order_flood_is_bounded() {
    // One octet in every second position: pieces stop at their limit, and memory at the buffer.
    let mut s = Script::accepted(plain().reassembly_pieces_max(100), "mss 1000 win 9000");
    for i in 0..2000 {
        let at = 3 + i * 2;
        s.run(&format!("1.0 < . {at}:{} ack 1", at + 1));
    }
    assert_eq!(s.endpoint.drops(DropReason::TooManyPieces), 1900);
    assert!(s.endpoint.allocated(s.connection()).unwrap() < 200_000);
    s.run("1.1 < . 1:60001 ack 1\n1.1 user read 100000");
    assert_eq!(s.received.len(), 60_000);
}

#[test]
fn an_idle_connection_is_small() {
    let s = Script::connected(plain().send_buffer(4 << 20).receive_buffer(4 << 20), no_rate());
    let bytes = s.endpoint.allocated(s.connection()).unwrap();
    assert!(bytes < 8192, "{bytes} octets");
}

#[test]
fn old_timestamps_are_refused() {
    let config = plain().timestamps(true);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x40 ts 5000");
    s.run("1.0 < . 1:101 ack 1 ts 4000\n1.0 > . 1:1 ack 1 ts yes\n1.0 < . 1:101 ack 1 ts 5500\n1.2 > . 1:1 ack 101");
    assert_eq!(s.endpoint.drops(DropReason::OldTimestamp), 1);
}

#[test]
fn simultaneous_open_and_close_succeed() {
    let mut s = Script::new(plain(), no_rate());
    s.run(
        "0.0 user connect
         0.0 > S 0:0
         0.1 < S 0:0 mss 1000 caps 0x40
         0.1 > S. 0:0 ack 1
         0.2 < . 1:1 ack 1
         0.2 state is Established
         0.3 user close
         0.3 > F. 1:1
         0.4 < F. 1:1 ack 1
         0.4 > . 2:2 ack 2
         0.4 state is Closing
         0.5 < . 2:2 ack 2
         0.5 state is TimeWait",
    );
}

#[test]
fn a_syn_ends_time_wait_only_where_somebody_listens() {
    let ended = "1.0 user close\n1.0 > F. 1:1\n1.5 < F. 1:1 ack 2\n1.5 > . 2:2 ack 2\n1.6 < S 20000:20000 mss 1000";
    let mut s = Script::accepted(plain(), "mss 1000 win 9000");
    s.run(ended).run("1.6 > S. 0:0 ack 20001");
    let mut s = Script::connected(plain(), no_rate());
    s.run(ended).run("1.6 > . 2:2 ack 2\n1.6 state is TimeWait\n1.7 < F. 1:1 ack 2\n1.7 > . 2:2 ack 2");
}

#[test]
fn the_same_inputs_give_the_same_packets() {
    let run = || {
        let mut s = Script::connected(Config::default(), scps_tp::RouteConfig::default());
        s.run("0.6 user send 20000\n1.1 < . 1:1 ack 1 snack 0+1\n1.2 < . 1:1 ack 5000");
        s.advance(Instant::from_secs(100));
        s.sent.drain(..).map(|p| (p.at, p.packet)).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_fin_waits_for_all_data_where_the_window_is_short_of_a_segment() {
    let config = plain().mss(None).congestion(Congestion::Vj);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1460 caps 0x40");
    s.run("1.0 user send 1460\n1.0 > P. 1:1461");
    s.deliver(&icmp(3, 4, 576, s.our_iss() + 1));
    s.run("1.5 < . 1:1 ack 1461");
    // A window of one segment of 536 octets is left when the report is forgotten and segments have 1460 again.
    s.endpoint.source_quench(s.now, s.connection());
    s.advance(Instant::from_secs(700));
    s.sent.clear();
    let id = s.connection();
    s.endpoint.send(s.now, id, &[1; 1000]).unwrap();
    s.endpoint.close(s.now, id);
    s.run("700.0 > . 1461:1997\n700.4 < . 1:1 ack 1997\n700.4 > FP. 1997:2461");
}

#[test]
fn a_last_record_that_is_cut_leaves_room_for_its_mark() {
    let mut s = Script::connected(plain().congestion(Congestion::None), no_rate());
    s.advance(Instant::from_secs(1));
    let id = s.connection();
    assert_eq!(s.endpoint.send_record(s.now, id, &[1; 536]), Ok(true));
    s.endpoint.close(s.now, id);
    s.run("1.0 > FP. 1:537 rb yes");
    s.deliver(&icmp(3, 4, 576, s.our_iss() + 1));
    assert_eq!(s.ranges_until(1.2), ["1:533", "533:537"]);
}
