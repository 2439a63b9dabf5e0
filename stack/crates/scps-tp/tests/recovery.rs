//! The scripted losses: the packet sequence as a table. Segments of 1000 octets, RTT 500 ms, no rate limit.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, plain, Script};
use scps_tp::{Congestion, LossMeaning, RouteConfig};
use scps_wire::options::Options;
use scps_wire::scps::Snack;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::SeqNum;

fn corruption() -> RouteConfig {
    no_rate().loss(LossMeaning::Corruption)
}

fn sending(octets: usize) -> Script {
    let mut s = Script::connected(plain().congestion(Congestion::None), corruption());
    s.run(&format!("0.6 user send {octets}"));
    s.ranges_until(0.7);
    s
}

#[test]
fn one_lost_segment_costs_one_resend() {
    // Segment 2 (1001:2001) is lost.
    sending(5000).run(
        "1.1 < . 1:1 ack 1001
         1.1 < . 1:1 ack 1001 snack 0+1      # segment 3 arrived
         1.1 > . 1001:2001                   # the hole only (scps-tp §2.4.5)
         1.1 < . 1:1 ack 1001 snack 0+1      # segment 4: same hole, embargoed
         1.1 < . 1:1 ack 1001 snack 0+1      # segment 5
         1.6 < . 1:1 ack 5001
         1.6 state flight 0
         9.0 quiet",
    );
}

#[test]
fn two_lost_segments_are_resent_as_they_are_named() {
    // Segments 2 and 4.
    sending(6000).run(
        "1.1 < . 1:1 ack 1001
         1.1 < . 1:1 ack 1001 snack 0+1
         1.1 > . 1001:2001
         1.1 < . 1:1 ack 1001 snack 2+1
         1.1 > . 3001:4001
         1.6 < . 1:1 ack 3001 snack 0+1      # the first resend arrived; the second is on its way
         1.6 < . 1:1 ack 6001
         9.0 quiet",
    );
}

#[test]
fn a_lost_retransmission_is_sent_again_without_waiting_for_the_rto() {
    // RTT samples: SYN 500 ms, then 500 ms: RTTVAR 250, then 187.5 ms. Judged after 500 + 4*187.5 = 1250 ms, RTO is 1250.
    sending(3000).run(
        "1.1 < . 1:1 ack 1001
         1.1 < . 1:1 ack 1001 snack 0+1
         1.1 > . 1001:2001                   # lost again
         2.34 quiet
         2.352 > . 1001:2001                 # embargo passed (scps-tp §2.4.5)
         2.85 < . 1:1 ack 3001
         9.0 quiet",
    );
}

#[test]
fn a_burst_of_forty_is_one_hole_and_forty_resends() {
    let mut s = sending(60_000);
    s.run("1.1 < . 1:1 ack 1001\n1.1 < . 1:1 ack 1001 snack 0+40");
    let expected: Vec<String> = (1..=40).map(|i| format!("{}:{}", i * 1000 + 1, (i + 1) * 1000 + 1)).collect();
    assert_eq!(s.ranges_until(1.2), expected);
    s.run("1.65 < . 1:1 ack 60001\n9.0 quiet");
}

#[test]
fn a_lost_syn_is_sent_again_after_the_initial_rto() {
    Script::new(plain(), no_rate()).run(
        "0.0 user connect
         0.0 > S 0:0
         5.9 quiet
         6.0 > S 0:0                         # 6 s (scps-tp §6.3)
         6.5 < S. 0:0 ack 1 mss 1000 caps 0x40
         6.5 > . 1:1 ack 1",
    );
}

#[test]
fn every_ack_lost_for_three_round_trips_costs_one_probe_each_and_no_burst() {
    // RTT 500 ms measured on the SYN: RTO = 500 + max(500, 4*250) = 1500 ms.
    let mut s = sending(10_000);
    // 1500 ms and the 200 ms the peer may delay: the tail probe would be at 0.6 + 1.7 s, the RTO comes first.
    assert_eq!(s.ranges_until(2.2), ["1:1001"]);
    s.run("2.6 < . 1:1 ack 10001\n2.6 state flight 0\n9.0 quiet");
}

#[test]
fn vj_third_duplicate_resends_once_and_halves_once() {
    // scps-tp §14 items 55 and 56: cwnd 4 segments; a plain peer. Halving: max(2M, 4M/2) = 2M.
    let config = plain().congestion(Congestion::Vj).scps(false);
    let mut s = Script::connected(config, no_rate());
    s.run("0.6 user send 20000\n0.6 state cwnd 4000");
    s.ranges_until(0.7);
    s.run(
        "1.1 < . 1:1 ack 1
         1.1 < . 1:1 ack 1
         1.1 > . 4001:5001                   # two duplicates have left the network (limited transmit)
         1.1 > . 5001:6001
         1.1 < . 1:1 ack 1
         1.1 > . 1:1001                      # the third
         1.1 state cwnd 2000 ssthresh 2000
         1.1 < . 1:1 ack 1
         1.1 state cwnd 2000
         1.2 < . 1:1 ack 1
         1.2 state cwnd 2000",
    );
}

#[test]
fn without_limited_transmit_two_duplicates_release_nothing() {
    // FY97's programs are older than RFC 3042: the third duplicate resends, and all three then count.
    let config = plain().congestion(Congestion::Vj).limited_transmit(false).scps(false);
    let mut s = Script::connected(config, no_rate());
    s.run("0.6 user send 20000");
    assert_eq!(s.ranges_until(0.7).len(), 4);
    s.run(
        "1.1 < . 1:1 ack 1
         1.1 < . 1:1 ack 1
         1.1 quiet
         1.1 < . 1:1 ack 1
         1.1 > . 1:1001
         1.1 > . 4001:5001",
    );
}

#[test]
fn vj_slow_start_doubles_and_rto_leaves_one_segment() {
    // scps-tp §14 items 53, 54, 57: 4 segments first (4*1000 < 4380), then one more per acknowledgement.
    let config = plain().congestion(Congestion::Vj);
    let mut s = Script::connected(config, no_rate());
    s.run("0.6 user send 90000");
    assert_eq!(s.ranges_until(0.7).len(), 4);
    s.run("1.1 < . 1:1 ack 1001\n1.1 < . 1:1 ack 2001\n1.1 < . 1:1 ack 3001\n1.1 < . 1:1 ack 4001");
    assert_eq!(s.ranges_until(1.2).len(), 8);
    s.run("1.2 state cwnd 8000");
    // Silence: the first flight after the RTO is one segment.
    s.sent.clear();
    let resent = s.ranges_until(2.7);
    assert_eq!(resent, ["4001:5001"], "one segment after the RTO");
    s.run("2.7 state cwnd 1000 ssthresh 4000");
}

#[test]
fn vegas_takes_corruption_for_corruption_and_congestion_for_congestion() {
    // scps-tp §14 items 61 and 62.
    for (loss, cwnd) in [(LossMeaning::Corruption, 4000), (LossMeaning::Congestion, 2000)] {
        let mut s = Script::connected(plain(), no_rate().loss(loss));
        s.run("0.6 user send 4000");
        s.ranges_until(0.7);
        s.run(&format!(
            "1.1 < . 1:1 ack 1 snack 0+1
             1.1 > . 1:1001
             1.1 state cwnd {cwnd}
             1.1 < . 1:1 ack 1 snack 0+1
             1.1 state cwnd {cwnd}"
        ));
    }
}

#[test]
fn loss_meaning_changes_at_run_time_and_congestion_mode_does_not() {
    // scps-tp §14 items 63 and 65, and option 23 marking the route corrupted for a while (scps-tp §2.6).
    let mut s = Script::connected(plain(), no_rate());
    let id = s.connection();
    assert_eq!(s.endpoint.set_congestion(id, Congestion::Vj), Err(scps_tp::OptionError::TooLate));
    let id = scps_tp::RouteId::default();
    let route = s.endpoint.route(id).unwrap().config().loss(LossMeaning::Corruption);
    s.endpoint.set_route(s.now, id, route);
    s.run("0.6 user send 4000");
    s.ranges_until(0.7);
    s.run("1.1 < . 1:1 ack 1 snack 0+1\n1.1 state cwnd 4000");
    let mut s = Script::connected(plain(), no_rate());
    s.run("0.6 user send 4000");
    s.ranges_until(0.7);
    s.run("1.1 < . 1:1 ack 1 snack 0+1 ce yes\n1.1 state cwnd 4000");
}

#[test]
fn a_peers_word_of_corruption_concerns_its_own_connection() {
    // Option 23 of the other connection leaves this one's losses what they are.
    let mut s = Script::connected(plain(), no_rate());
    let first = s.id;
    s.run("0.6 < . 1:1 ack 1 ce yes");
    let second = (common::US.0, 1);
    s.id = s.endpoint.connect(s.now, second, common::PEER, plain()).ok();
    s.advance(s.now);
    let syn = s.sent.pop_back().unwrap().tcp;
    let answer = |flags, seq: u32, options| {
        let tcp = Tcp {
            src_port: common::PEER.1,
            dst_port: 1,
            seq: SeqNum(seq),
            ack: syn.seq + 1,
            flags,
            window: 65_535,
            urgent: 0,
            options,
        };
        common::packet(&tcp, &[])
    };
    let capabilities = syn.options.capabilities;
    s.deliver(&answer(Flags::SYN.with(Flags::ACK), 0, Options { capabilities, mss: Some(1000), ..Options::default() }));
    s.run("0.7 user send 4000\n0.7 state cwnd 4000");
    s.deliver(&answer(Flags::ACK, 1, Options { snack: Some(Snack::short(0, 1)), ..Options::default() }));
    s.run("0.7 state cwnd 2000");
    assert_ne!(s.id, first);
}

#[test]
fn source_quench_reduces_the_affected_connection_only() {
    // scps-tp §14 item 64.
    let mut s = Script::connected(plain().congestion(Congestion::Vj), no_rate());
    let other = s.endpoint.connect(s.now, (common::US.0, 1), common::PEER, plain()).unwrap();
    s.endpoint.source_quench(s.now, s.connection());
    s.run("0.6 state cwnd 1000 ssthresh 2000");
    assert_eq!(s.endpoint.snapshot(other).unwrap().cwnd, 4000);
}

#[test]
fn sack_reveals_losses_by_order_of_transmission() {
    let config = plain().congestion(Congestion::None).sack(true);
    let mut s = Script::connected_with(config, corruption(), "win 65535 mss 1000 sackok yes caps 0x40");
    s.run("0.6 user send 6000");
    s.ranges_until(0.7);
    s.run(
        "1.1 < . 1:1 ack 1 sack 3001:4001
         1.1 > . 1:1001
         1.1 > . 1001:2001
         1.1 > . 2001:3001
         1.6 < . 1:1 ack 2001 sack 3001:6001 # the third resend is late, not lost
         1.65 quiet
         1.7 < . 1:1 ack 6001
         9.0 quiet",
    );
}

#[test]
fn a_window_shows_its_losses_however_much_reordering_is_believed_in() {
    let config = plain().congestion(Congestion::None).sack(true);
    let mut s = Script::connected_with(config, corruption(), "win 65535 mss 1000 sackok yes caps 0x40");
    s.run("0.6 user send 6000");
    s.ranges_until(0.7);
    for _ in 0..10 {
        s.run("1.1 < . 1:1 ack 2001 sack 1:1001"); // ten needless resends: eleven segments of patience
    }
    s.run(
        "1.1 < . 1:1 ack 2001 sack 5001:6001
         1.1 > . 2001:3001                   # half of the window of four passed them by
         1.1 > . 3001:4001
         1.15 quiet
         1.6 < . 1:1 ack 6001
         9.0 quiet",
    );
}

#[test]
fn a_timeout_before_its_time_costs_one_resend() {
    // The queue is longer than the timer: the first copies arrive, as the echo of their timestamp says (RFC 3522).
    let config = plain().congestion(Congestion::None).sack(false).timestamps(true);
    let mut s = Script::connected_with(config, corruption(), "win 65535 mss 1000 caps 0x40 ts 1");
    s.run("0.6 user send 3952");
    assert_eq!(s.ranges_until(0.7).len(), 4);
    assert_eq!(s.ranges_until(2.5), ["1:989"]);
    s.run(
        "2.6 < . 1:1 ack 989 ts 2 ecr -1500
         2.6 quiet
         3.0 < . 1:1 ack 1977 ts 3 ecr -1500
         3.4 < . 1:1 ack 2965 ts 4 ecr -1500
         3.4 quiet
         3.6 < . 1:1 ack 3953 ts 5 ecr -1500
         3.6 state flight 0
         9.0 quiet",
    );
}

#[test]
fn lies_about_windows_mss_and_holes_do_no_harm() {
    // MSS 0 is taken as 32; SACK of data never sent and inverted blocks are ignored.
    let mut s = Script::connected_with(
        plain().congestion(Congestion::None).sack(true),
        corruption(),
        "win 3 mss 0 sackok yes caps 0x40",
    );
    s.run("0.6 user send 3");
    s.ranges_until(0.7);
    s.run("0.8 < . 1:1 ack 1 sack 500:400,9000:10000,0:0 snack 65535+65535\n0.9 state flight 3");
}
