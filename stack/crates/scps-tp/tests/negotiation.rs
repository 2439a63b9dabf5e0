//! What SYNs carry and what follows from them (scps-tp §14 items 1 to 27).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, plain, Script, PEER, US};
use scps_tp::{Config, RouteConfig};
use scps_wire::options::Options;
use scps_wire::{Bitrate, Duration, Instant};

fn syn(config: Config, route: RouteConfig) -> Options {
    let mut s = Script::new(config, route);
    s.run("0.0 user connect");
    s.sent.front().expect("a SYN").tcp.options
}

#[test]
fn syn_carries_one_capability_option_with_defaults_0x40() {
    let mut s = Script::new(Config::default(), no_rate());
    s.run("0.0 user connect");
    let seen = s.sent.front().unwrap();
    // Items 1, 4, 5, 6: one kind 20 of length 4, reserved bits 0, no compression and so no identifier.
    let header = &seen.packet[40..20 + seen.tcp.emit_len()];
    assert_eq!(header[..4], [20, 4, 0x40, 0]);
    assert!(!header[4..].windows(2).any(|w| w == [20, 4]));
}

#[test]
fn tcp_only_syn_has_no_capability_option() {
    assert!(syn(Config::default().scps(false), no_rate()).capabilities.is_none());
}

#[test]
fn settings_move_capability_bits() {
    let caps = |c: Config| syn(c, no_rate()).capabilities.unwrap();
    assert_eq!(caps(Config::default().snack(false)).bits, 0);
    assert_eq!(caps(Config::default().bets(true)).bits, 0xc0);
    let compressing = caps(Config::default().compression(true));
    assert_eq!(compressing.bits, 0x50);
    assert_ne!(compressing.connection_id, 0);
}

#[test]
fn syn_ack_answers_only_what_the_syn_offered() {
    let mut s = Script::new(Config::default(), no_rate());
    s.run("0.0 user listen\n0.0 < S 0:0 mss 1000\n0.0 > S. 0:0 ack 1 caps none wscale none ts no");
    let mut s = Script::new(Config::default(), no_rate());
    s.run(
        "0.0 user listen\n0.0 < S 0:0 mss 1000 caps 0x47 wscale 2 ts 5\n0.0 > S. 0:0 ack 1 caps 0x40 wscale 0 ts yes",
    );
}

#[test]
fn reserved_bits_and_late_capabilities_change_nothing() {
    // Items 9 and 10: the data that follows is the same with reserved bits, and with kind 20 on a data segment.
    let run = |syn_caps: &str, late: &str| {
        let mut s = Script::accepted(plain(), &format!("mss 1000 caps {syn_caps}"));
        s.run(&format!("0.2 < . 1:1001 ack 1 {late}\n0.2 user send 500"));
        s.ranges_until(0.4)
    };
    assert_eq!(run("0x40", ""), run("0x47", ""));
    assert_eq!(run("0x40", ""), run("0x40", "caps 0xff"));
}

#[test]
fn plain_peer_gets_no_scps_options() {
    // Item 14: records and holes, but no kinds 21 and 22.
    let mut s = Script::connected_with(plain(), no_rate(), "win 65535 mss 1000");
    s.run(
        "0.6 user record 100
         0.6 > P. 1:101 ack 1 rb no
         0.7 < . 1001:2001 ack 101
         0.7 > . 101:101 ack 1 snack none",
    );
}

#[test]
fn unanswered_scps_syns_are_followed_by_a_plain_one_and_remembered() {
    // Items 15, 16, 71, 72: initial RTO 6 s, doubling; after three SYNs one without kind 20.
    let mut s = Script::new(plain(), no_rate());
    s.run(
        "0.0  user connect
         0.0  > S 0:0 caps 0x40
         6.0  > S 0:0 caps 0x40
         18.0 > S 0:0 caps 0x40
         42.0 > S 0:0 caps none
         42.1 < S. 0:0 ack 1 mss 1000
         42.1 > . 1:1 ack 1
         43.0 user abort",
    );
    s.sent.clear();
    s.run("44.0 user connect\n44.0 > S 0:0 caps none");
    let mut other = Script::new(plain().fallback_after_syns(None), no_rate());
    other.run("0.0 user connect");
    for seen in other.ranges_until(100.0) {
        assert_eq!(seen, "0:0");
    }
}

#[test]
fn an_answer_to_an_earlier_syn_holds_for_what_that_one_offered() {
    // The first three SYN-ACKs were lost, so a plain SYN followed; the peer still goes by the SYN it took, and compresses.
    let mut s = Script::new(plain().compression(true), no_rate());
    s.run(
        "0.0  user connect
         0.0  > S 0:0 caps 0x50
         6.0  > S 0:0 caps 0x50
         18.0 > S 0:0 caps 0x50
         42.0 > S 0:0 caps none
         42.1 < S. 0:0 ack 1 mss 1000 caps 0x50",
    );
    let agreed = s.endpoint.agreed(s.connection()).expect("agreed");
    assert!(agreed.scps && agreed.snack);
    // A peer that answers the plain SYN itself is a plain one.
    let mut s = Script::new(plain().compression(true), no_rate());
    s.run(
        "0.0  user connect
         0.0  > S 0:0 caps 0x50
         6.0  > S 0:0 caps 0x50
         18.0 > S 0:0 caps 0x50
         42.0 > S 0:0 caps none
         42.1 < S. 0:0 ack 1 mss 1000
         42.1 > . 1:1 ack 1",
    );
    assert!(!s.endpoint.agreed(s.connection()).expect("agreed").scps);
}

#[test]
fn mss_follows_the_route() {
    // Item 19: MTU - 40 - overhead, even.
    let mss = |mtu, overhead| syn(Config::default(), no_rate().mtu(mtu).overhead(overhead)).mss;
    assert_eq!((mss(1500, 0), mss(1501, 0), mss(1500, 28)), (Some(1460), Some(1460), Some(1432)));
}

#[test]
fn segments_hold_at_most_the_smaller_mss_less_options() {
    // Item 20: min(1000, 600) - 12.
    let mut s = Script::connected_with(plain().timestamps(true), no_rate(), "win 65535 mss 600 caps 0x40 ts 9");
    s.run("0.6 user send 1000\n0.6 > . 1:589 ack 1 ts yes");
}

#[test]
fn window_scale_is_the_smallest_that_covers_the_buffer() {
    // Item 21, scps-tp §8.
    let shift = |receive_buffer| syn(Config::default().receive_buffer(receive_buffer), no_rate()).window_scale;
    assert_eq!((shift(65_535), shift(65_536), shift(300_000)), (Some(0), Some(1), Some(3)));
}

#[test]
fn syn_windows_are_unscaled_and_later_ones_scaled() {
    // Item 23: 300,000 octets: 65,535 on SYN; 300000 >> 3 = 37,500 after it.
    let mut s = Script::new(plain().receive_buffer(300_000), no_rate());
    s.run(
        "0.0 user connect
         0.0 > S 0:0 win 65535 wscale 3
         0.5 < S. 0:0 ack 1 mss 1000 wscale 5 win 1000 caps 0x40
         0.5 > . 1:1 ack 1 win 37500
         0.6 user send 5000
         0.6 > . 1:1001
         0.8 quiet",
    );
}

#[test]
fn timestamps_are_on_every_segment_once_agreed() {
    // Items 24 to 26.
    let config = plain().timestamps(true);
    let mut s = Script::connected_with(config.clone(), no_rate(), "win 65535 mss 1000 caps 0x40 ts 1000");
    s.run("0.6 user send 100\n0.6 > P. 1:101 ts yes\n0.7 < . 1:989 ack 101 ts 1200\n0.9 > . 101:101 ack 989 ts yes");
    let last = s.endpoint.stats(s.connection()).unwrap();
    assert_eq!(last.segments_sent, 4);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x40");
    s.run("0.6 user send 100\n0.6 > P. 1:101 ts no");
}

#[test]
fn echo_is_of_the_last_segment_in_order() {
    // Item 26: a segment beyond the acknowledged edge is not echoed.
    let config = plain().timestamps(true);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x40 ts 1000");
    s.run("0.6 < . 1001:2001 ack 1 ts 1100");
    assert_eq!(s.sent.pop_front().unwrap().tcp.options.timestamps.unwrap().ecr, 1000);
    s.run("0.7 < . 1:1001 ack 1 ts 1200");
    assert_eq!(s.sent.pop_front().unwrap().tcp.options.timestamps.unwrap().ecr, 1200);
}

#[test]
fn the_right_window_edge_stays_where_it_was_told_to_within_its_scale() {
    // Item 27: the application does not read; the edge stays while the window shrinks, at any alignment (tests/window.rs: and
    // what was told is taken).
    let config = plain().receive_buffer(300_001);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 wscale 0 caps 0x40");
    let mut edge = 0u64;
    for i in 0..280u64 {
        let (from, to) = (1 + i * 997, 1 + (i + 1) * 997);
        s.run(&format!("{} < . {from}:{to} ack 1", 0.6 + i as f64 / 100.0));
        while let Some(seen) = s.sent.pop_front() {
            let ack = u64::from(seen.tcp.ack.0.wrapping_sub(common::PEER_ISS.0));
            let now = ack + (u64::from(seen.tcp.window) << 3);
            assert!(now + 8 > edge, "edge moved from {edge} to {now}");
            edge = edge.max(now);
        }
    }
    assert!((300_001..=300_010).contains(&edge), "{edge}");
}

#[test]
fn binding_spaces_do_not_hinder_opening() {
    // Items 11 and 12: a longer kind 20 with unknown spaces, and ours padded outside its length.
    let space = scps_wire::scps::BindingSpace { id: 9, first_nibble: 0, data: vec![1, 2] };
    let config = plain().binding_spaces(vec![space]);
    let mut s = Script::new(config.clone(), no_rate());
    s.run("0.0 user connect");
    assert_eq!(s.sent.front().unwrap().packet[44..52], [20, 6, 9, 0x10, 1, 2, 1, 1]);
    let mut listening = Script::new(plain(), no_rate());
    listening.run("0.0 user listen");
    let mut syn = s.sent.pop_front().unwrap();
    (syn.tcp.src_port, syn.tcp.dst_port) = (PEER.1, US.1);
    listening.deliver(&common::packet(&syn.tcp, &[]));
    // Item 13: the answer names no space, since none is shared.
    let answer = listening.sent.pop_front().expect("a SYN-ACK");
    assert!(answer.tcp.options.capabilities.is_some() && answer.tcp.options.binding_spaces.is_none());
    let mut sharing = Script::new(config, no_rate());
    sharing.run("0.0 user listen");
    sharing.deliver(&common::packet(&syn.tcp, &[]));
    assert!(sharing.sent.pop_front().unwrap().tcp.options.binding_spaces.is_some());
}

#[test]
fn binding_spaces_that_do_not_fit_are_left_out() {
    let space = |len: usize| scps_wire::scps::BindingSpace { id: 9, first_nibble: 0, data: vec![1; len] };
    let offered = |config: Config, len| syn(config.binding_spaces(vec![space(len)]), no_rate());
    // A SYN has 24 octets of other options by default, which leaves 16: kind, length, identifier, length and 12 of data.
    assert!(offered(Config::default(), 12).binding_spaces.is_some());
    let without = offered(Config::default(), 14);
    assert!(without.binding_spaces.is_none() && without.capabilities.is_some() && without.timestamps.is_some());
    assert!(offered(Config::default().timestamps(false), 14).binding_spaces.is_some());
}

#[test]
fn initial_sequence_numbers_do_not_follow_the_clock() {
    // Item 120: consecutive connections a millisecond apart; with the clock alone they would differ by 250.
    let mut s = Script::new(plain(), no_rate());
    let mut isns = Vec::new();
    for port in 1..=20u16 {
        let now = scps_wire::Instant::from_millis(u64::from(port));
        s.now = now;
        s.endpoint.connect(now, (US.0, port), PEER, plain()).unwrap();
        s.advance(now);
        isns.push(s.sent.back().unwrap().tcp.seq.0);
    }
    let mut gaps: Vec<u32> = isns.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
    gaps.sort_unstable();
    gaps.dedup();
    assert!(gaps.len() == 19 && !gaps.contains(&250), "{gaps:?}");
}

#[test]
fn the_cached_fallback_ends() {
    let mut s = Script::new(plain(), no_rate());
    s.run("0.0 user connect\n42.1 < S. 0:0 ack 1 mss 1000\n43.0 user abort");
    s.advance(s.now + Duration::from_secs(601));
    s.sent.clear();
    s.run("700.0 user connect\n700.0 > S 0:0 caps 0x40");
}

#[test]
fn a_timestamp_too_old_to_compare_is_replaced() {
    let config = plain().timestamps(true);
    // 25 days in milliseconds; 40 minutes in microseconds, of a peer known to count them.
    for (before, at, val) in [("", 2_160_000, 2_160_001_000u32), ("1.0 < . 1:101 ack 1 ts 501000", 2401, 2_400_501_000)]
    {
        let mut s = Script::connected_with(config.clone(), no_rate(), "win 65535 mss 1000 caps 0x40 ts 1000");
        s.run(before);
        s.advance(Instant::from_secs(at));
        s.sent.clear();
        let from = if before.is_empty() { 1 } else { 101 };
        s.run(&format!("{at}.0 < . {from}:{} ack 1 ts {val}", from + 100));
        s.advance(Instant::from_secs(at + 1));
        assert_eq!(s.sent.pop_front().unwrap().tcp.options.timestamps.unwrap().ecr, val);
    }
}

#[test]
fn a_syn_that_waits_for_credit_agrees_on_what_its_answer_says() {
    // Another connection waits before it, so its SYN is not even written when the peer's comes.
    let mut s = Script::new(plain(), RouteConfig::default().rate(Some(Bitrate::from_bps(8000))));
    assert!(s.endpoint.charge(Instant::ZERO, 7500), "all credit");
    s.endpoint.connect(s.now, (US.0, US.1 + 1), PEER, plain()).unwrap();
    s.run("0.0 quiet\n0.0 user connect\n0.01 quiet\n0.02 < S 0:0 mss 1000 wscale 0 caps 0x40");
    s.advance(Instant::from_millis(500));
    let said = s.sent.iter().rfind(|seen| seen.tcp.src_port == US.1).unwrap().tcp.options;
    s.run("0.6 < . 1:1 ack 1\n0.6 state is Established");
    let agreed = s.endpoint.agreed(s.connection()).unwrap();
    let offered = (said.capabilities.is_some(), said.window_scale.is_some());
    assert_eq!((agreed.scps, agreed.window_scale.is_some()), offered);
}
