//! SNACK: generation, response and embargo (scps-tp §14 items 28 to 45).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, plain, Script};
use scps_tp::{Config, Congestion, LossMeaning};
use scps_wire::Duration;

fn receiver() -> Script {
    Script::accepted(plain(), "mss 1000 caps 0x40 win 65535")
}

fn sender(config: Config) -> Script {
    let route = no_rate().loss(LossMeaning::Corruption);
    let mut s = Script::connected(config.congestion(Congestion::None), route);
    s.run("0.6 user send 8000");
    assert_eq!(s.ranges_until(0.7).len(), 8);
    s
}

#[test]
fn one_lost_segment_is_offset_0_size_1() {
    receiver().run("1.0 < . 1001:2001 ack 1\n1.0 > . 1:1 ack 1 snack 0+1");
}

#[test]
fn consecutive_losses_are_one_hole_of_that_size() {
    receiver().run("1.0 < . 4001:5001 ack 1\n1.0 > . 1:1 ack 1 snack 0+4");
}

#[test]
fn lowest_hole_is_named_three_times_then_the_next_in_ascending_order() {
    // Items 33, 36, 37: holes at 0 (2 segments), 3 (1) and 5 (2).
    receiver().run(
        "1.0 < . 2001:3001 ack 1
         1.0 > . 1:1 ack 1 snack 0+2
         1.1 < . 4001:5001 ack 1
         1.1 > . 1:1 ack 1 snack 0+2
         1.2 < . 7001:8001 ack 1
         1.2 > . 1:1 ack 1 snack 0+2
         1.3 < . 8001:9001 ack 1
         1.3 > . 1:1 ack 1 snack 3+1
         1.4 < . 9001:10001 ack 1
         1.4 > . 1:1 ack 1 snack 5+2",
    );
}

#[test]
fn a_filled_hole_is_followed_by_the_next() {
    receiver().run(
        "1.0 < . 1001:2001 ack 1
         1.0 > . 1:1 ack 1 snack 0+1
         1.1 < . 3001:4001 ack 1
         1.1 > . 1:1 ack 1 snack 0+1
         1.2 < . 1:1001 ack 1
         1.2 > . 1:1 ack 2001 snack 0+1
         1.3 < . 2001:3001 ack 1
         1.3 > . 1:1 ack 4001 snack none",
    );
}

#[test]
fn a_hole_before_a_fin_is_named() {
    receiver().run(
        "1.0 < . 1:1001 ack 1
         1.2 > . 1:1 ack 1001 snack none
         1.3 < F. 2501:2501 ack 1
         1.3 > . 1:1 ack 1001 snack 0+2
         1.4 < F. 2501:2501 ack 1
         1.4 > . 1:1 ack 1001 snack 0+2
         1.5 < . 2001:2501 ack 1
         1.5 > . 1:1 ack 1001 snack 0+1
         1.6 < . 1001:2001 ack 1
         1.6 > . 1:1 ack 2502 snack none",
    );
    let mut s = Script::accepted(plain(), "mss 1000 caps 0x00 win 65535");
    s.run("1.0 < F. 1001:1001 ack 1\n1.0 > . 1:1 ack 1 snack none");
}

#[test]
fn partial_units_round_outwards() {
    // Item 34: a hole of 1500 octets is two units; one that begins 1500 above the edge has offset 1.
    let mut s = receiver();
    s.run("1.0 < . 1501:1601 ack 1\n1.0 > . 1:1 ack 1 snack 0+2");
    let policy = Config::default().snack_policy.repeat(0);
    let mut s = Script::accepted(plain().snack_policy(policy), "mss 1000 caps 0x40 win 65535");
    s.run(
        "1.0 < . 1001:1501 ack 1
         1.0 > . 1:1 ack 1 snack 0+1
         1.1 < . 2601:2701 ack 1
         1.1 > . 1:1 ack 1 snack 1+2",
    );
}

#[test]
fn unit_is_the_senders_mss_less_timestamps() {
    // Item 35: MSS 1012 with timestamps: unit 1000, so 3000 lost octets are 3.
    let config = plain().timestamps(true);
    let mut s = Script::new(config, no_rate());
    s.run(
        "0.0 user listen
         0.0 < S 0:0 mss 1012 caps 0x40 ts 1
         0.0 > S. 0:0 ack 1
         0.1 < . 1:1 ack 1 ts 2
         1.0 < . 3001:4001 ack 1 ts 3
         1.0 > . 1:1 ack 1 snack 0+3",
    );
}

#[test]
fn without_agreement_there_is_no_snack_and_no_answer() {
    // Items 28 and 43.
    let mut s = Script::accepted(plain(), "mss 1000 caps 0x00 win 65535");
    s.run("1.0 < . 1001:2001 ack 1\n1.0 > . 1:1 ack 1 snack none");
    let route = no_rate().loss(LossMeaning::Corruption);
    let mut s = Script::connected_with(plain(), route, "win 65535 mss 1000 caps 0x00");
    s.run("0.6 user send 3000");
    s.ranges_until(0.7);
    s.run("0.8 < . 1:1 ack 1 snack 0+1\n0.9 quiet");
}

#[test]
fn syn_and_reset_carry_no_snack_and_an_empty_queue_none() {
    // Items 30 and 38.
    let mut s = receiver();
    s.run("1.0 < . 1:1001 ack 1\n1.2 > . 1:1 ack 1001 snack none\n1.3 < . 2001:3001 ack 1");
    s.run("1.3 > . 1:1 ack 1001 snack 0+1\n1.4 user abort\n1.4 > R. 1:1 snack none");
}

#[test]
fn exactly_the_reported_hole_is_resent_lowest_first() {
    // Item 39: the hole of 2 at +3.
    let mut s = sender(plain());
    s.run(
        "1.1 < . 1:1 ack 1001 snack 3+2
         1.1 > . 4001:5001
         1.1 > . 5001:6001
         1.2 quiet",
    );
}

#[test]
fn the_same_snack_within_a_round_trip_causes_no_second_resend() {
    // Items 40 and 41: SRTT 500 ms. The resend is judged after SRTT + max(4*RTTVAR, SRTT/16).
    let mut s = sender(plain());
    s.run(
        "1.1 < . 1:1 ack 1 snack 0+1
         1.1 > . 1:1001
         1.2 < . 1:1 ack 1 snack 0+1
         1.5 < . 1:1 ack 1 snack 0+1
         1.55 quiet",
    );
    // No further SNACK: the embargo passes. RTTVAR is 250 ms after the one sample, so 500 + 4*250 = 1500 ms.
    s.run("2.6 > . 1:1001\n2.7 quiet");
}

#[test]
fn a_hole_beyond_what_was_sent_sends_nothing_new() {
    // Items 42: offset and size far beyond snd_max.
    let mut s = sender(plain());
    s.run("1.1 < . 1:1 ack 1 snack 60000+60000\n1.2 quiet");
    let mut s = sender(plain());
    s.run("1.1 < . 1:1 ack 7001 snack 0+60000\n1.1 > P. 7001:8001\n1.2 quiet");
}

#[test]
fn snack_delay_holds_the_answer_back() {
    // Item 44: 300 ms.
    let policy = Config::default().snack_policy.delay(Duration::from_millis(300));
    let mut s = sender(plain().snack_policy(policy));
    s.run("1.1 < . 1:1 ack 1 snack 0+1\n1.399 quiet\n1.4 > . 1:1001");
    let mut s = sender(plain().snack_policy(policy));
    // The hole fills meanwhile: reordering, no resend.
    s.run("1.1 < . 1:1 ack 1 snack 0+1\n1.2 < . 1:1 ack 8001\n1.9 quiet");
}

#[test]
fn a_longer_snack_is_read_as_its_short_form() {
    // Item 45: not agreed on the long form, so the vector is left alone and the hole proper is answered.
    let mut s = sender(plain());
    s.run("1.1 < . 1:1 ack 1 snackvector 1+1\n1.1 > . 1001:2001\n1.2 quiet");
}

#[test]
fn the_fy97_defect_sends_every_resend_twice() {
    let policy = Config::default().snack_policy.double_retransmission(true);
    let mut s = sender(plain().snack_policy(policy));
    s.run("1.1 < . 1:1 ack 1 snack 0+1\n1.1 > . 1:1001\n1.1 > . 1:1001\n1.2 quiet");
}
