//! Rate control, acknowledgement policy, timers and outages (scps-tp §14 items 46 to 52 and 66 to 80).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, plain, Script, PEER, US};
use scps_tp::{AckBehaviour, AckConfig, Config, Congestion, Event, RouteConfig, VegasConfig, VegasSlowStart};
use scps_wire::{Bitrate, Duration, Instant};

fn rated(bps: u64) -> RouteConfig {
    RouteConfig::default().rate(Some(Bitrate::from_bps(bps)))
}

fn rate_only() -> Config {
    plain().congestion(Congestion::None).send_buffer(2_000_000).nodelay(true)
}

/// Octets of IP packets with their times.
fn sent(s: &mut Script, until: f64) -> Vec<(Instant, u64)> {
    s.advance(Instant::from_nanos((until * 1e9) as u64));
    s.sent.drain(..).map(|p| (p.at, p.packet.len() as u64)).collect()
}

/// The most octets that left in any window of `window`.
fn most_in(packets: &[(Instant, u64)], window: Duration) -> u64 {
    let in_window =
        |i: usize| packets[i..].iter().take_while(|p| p.0 <= packets[i].0 + window).map(|p| p.1).sum::<u64>();
    (0..packets.len()).map(in_window).max().unwrap_or(0)
}

#[test]
fn pure_rate_control_sends_at_its_rate_from_the_start() {
    // Items 46, 47, 49 to 51: 2500 octets of IP packets per 10 ms; over T at most rate*T/8 plus depth 12,500. The window of
    // the peer is 65,535 << 4, so it does not limit.
    let mut s = Script::connected_with(rate_only(), rated(2_000_000), "win 65535 mss 1000 wscale 4 caps 0x40");
    s.run("0.5 < . 1:1 ack 1 win 65535\n0.6 user send 1900000");
    let packets = sent(&mut s, 3.6);
    let total: u64 = packets.iter().map(|p| p.1).sum();
    assert!((737_500..=765_000).contains(&total), "{total} octets in 3 s at 250,000 per second");
    for ms in [10, 100, 1000] {
        let most = most_in(&packets, Duration::from_millis(ms));
        assert!(most <= 250 * ms + 12_500 + 2_500, "{most} octets in {ms} ms");
    }
}

#[test]
fn slow_rates_are_honoured_within_two_percent() {
    // Item 52: 9600 bit/s for 60 s is 72,000 octets; the first credit is 7500.
    let mut s = Script::connected_with(rate_only(), rated(9600), "win 65535 mss 500 wscale 4 caps 0x40");
    s.run("0.5 < . 1:1 ack 1 win 65535\n0.6 user send 100000");
    let total: u64 = sent(&mut s, 60.6).iter().map(|p| p.1).sum();
    assert!((70_560..=73_440 + 7_500).contains(&total), "{total}");
}

#[test]
fn connections_of_a_route_share_its_rate() {
    // Item 48: two connections, 3 s at 1,000,000 bit/s: 375,000 octets and the depth; each gets a fair part.
    let mut s = Script::connected_with(rate_only(), rated(1_000_000), "win 65535 mss 1000 wscale 4 caps 0x40");
    let first = s.connection();
    let second = s.endpoint.connect(s.now, (US.0, 5001), PEER, rate_only()).unwrap();
    s.advance(s.now);
    let mut syn_ack = s.sent.back().expect("the second SYN").tcp;
    (syn_ack.src_port, syn_ack.dst_port) = (PEER.1, 5001);
    (syn_ack.ack, syn_ack.seq) = (syn_ack.seq + 1, common::PEER_ISS);
    syn_ack.flags = scps_wire::tcp::Flags(0x12);
    s.deliver(&common::packet(&syn_ack, &[]));
    s.sent.clear();
    s.advance(Instant::from_millis(600));
    for id in [first, second] {
        assert_eq!(s.endpoint.send(s.now, id, &vec![0; 500_000]), Ok(500_000));
    }
    let total: u64 = sent(&mut s, 1.6).iter().map(|p| p.1).sum();
    assert!(total <= 125_000 + 7_500 + 1_250, "{total}");
    let shares = [first, second].map(|id| s.endpoint.stats(id).unwrap().data_segments_sent);
    assert!(shares.iter().all(|n| *n >= 55), "{shares:?}");
}

#[test]
fn vegas_doubles_as_its_variant_says() {
    // Item 58: setting 1 doubles every second round trip and measures first (FY97 Fig A-5: 1, 1, 2, 2).
    let flights = |slow_start| {
        let config = plain()
            .congestion(Congestion::Vegas(VegasConfig::default().slow_start(slow_start)))
            .initial_window(scps_tp::InitialWindow::Segments(2));
        let mut s = Script::connected(config, no_rate());
        s.run("0.6 user send 90000");
        let mut acked = 1;
        let mut flights = Vec::new();
        for round in 0..4 {
            let t = 0.6 + 0.5 * f64::from(round);
            let n = s.ranges_until(t + 0.1).len();
            flights.push(n);
            for _ in 0..n {
                acked += 1000;
                s.run(&format!("{:.1} < . 1:1 ack {acked}", t + 0.5));
            }
        }
        flights
    };
    assert_eq!(flights(VegasSlowStart::EveryRtt), [2, 4, 8, 16]);
    assert_eq!(flights(VegasSlowStart::EveryOtherRtt), [2, 2, 4, 4]);
}

fn receiver(behaviour: AckBehaviour, floor: Option<u64>) -> Script {
    let ack = AckConfig::default()
        .behaviour(behaviour)
        .delay(Duration::from_millis(200))
        .floor(floor.map(Duration::from_millis));
    Script::accepted(plain().ack(ack), "mss 1000 caps 0x40 win 65535")
}

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_in_time() {
    // Items 66 and 69.
    receiver(AckBehaviour::EveryNth(2), None).run(
        "1.0 < . 1:1001 ack 1
         1.01 < . 1001:2001 ack 1
         1.01 > . 1:1 ack 2001
         1.02 < . 2001:3001 ack 1
         1.219 quiet
         1.22 > . 1:1 ack 3001",
    );
}

#[test]
fn every_segment_is_acknowledged_with_behaviour_1() {
    receiver(AckBehaviour::EveryNth(1), None)
        .run("1.0 < . 1:1001 ack 1\n1.0 > . 1:1 ack 1001\n1.0 < . 1001:2001 ack 1\n1.0 > . 1:1 ack 2001");
}

#[test]
fn behaviour_0_acknowledges_by_the_timer_alone() {
    // Item 68.
    receiver(AckBehaviour::Delayed, None).run(
        "1.0  < . 1:1001 ack 1
         1.05 < . 1001:2001 ack 1
         1.1  < . 2001:3001 ack 1
         1.199 quiet
         1.2  > . 1:1 ack 3001",
    );
}

#[test]
fn acknowledgement_floor_is_kept() {
    // Item 70: at most every 100 ms.
    receiver(AckBehaviour::EveryNth(1), Some(100)).run(
        "1.0  < . 1:1001 ack 1
         1.0  > . 1:1 ack 1001
         1.01 < . 1001:2001 ack 1
         1.02 < . 2001:3001 ack 1
         1.099 quiet
         1.1  > . 1:1 ack 3001",
    );
}

#[test]
fn the_floor_does_not_put_an_acknowledgement_off_until_the_delay_is_over() {
    // The third segment alone could wait 200 ms; with the fourth it is due as soon as the floor of 50 ms allows.
    receiver(AckBehaviour::EveryNth(2), Some(50)).run(
        "1.0   < . 1:1001 ack 1
         1.0   < . 1001:2001 ack 1
         1.0   > . 1:1 ack 2001
         1.002 < . 2001:3001 ack 1
         1.002 < . 3001:4001 ack 1
         1.047 quiet
         1.05  > . 1:1 ack 4001",
    );
}

#[test]
fn rtos_double_up_to_the_limit_and_then_reset() {
    // Items 72 to 74: RTO 1500 ms after one sample of 500 ms; three retransmissions, then RST.
    let mut config = plain().congestion(Congestion::None);
    config.rto.retransmissions_max = 3;
    config.rto.max = Duration::from_secs(4);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x00");
    s.run(
        "1.0  user send 100
         1.0  > P. 1:101
         2.5  > P. 1:101
         5.5  > P. 1:101
         9.5  > P. 1:101
         13.5 > R. 101:101
         99.0 quiet",
    );
    assert!(matches!(s.events.last(), Some(Event::Closed(_, scps_tp::CloseReason::TimedOut))));
}

#[test]
fn rto_is_never_below_its_minimum() {
    // Item 73: RTT 0, variance floor 0, minimum 250 ms.
    let mut config = plain().scps(false);
    config.rto.variance_floor = Duration::ZERO;
    let mut s = Script::new(config, no_rate());
    s.run("0.0 user connect\n0.0 < S. 0:0 ack 1 mss 1000\n0.0 state rto_ms 250");
}

#[test]
fn zero_window_probes_carry_one_octet_on_the_schedule() {
    // Items 75 and 76: 5, 6, 12, 24 s after the last; capped.
    let mut s = Script::connected_with(plain(), no_rate(), "win 0 mss 1000 caps 0x40");
    s.run(
        "1.0  user send 3000
         5.9  quiet
         6.0  > . 1:2
         12.0 > . 1:2
         24.0 > . 1:2
         24.1 < . 1:1 ack 1 win 0
         48.0 > . 1:2
         48.5 < . 1:1 ack 2 win 60000
         48.5 > . 2:1002",
    );
}

#[test]
fn an_outage_stops_data_and_its_end_resumes_it_at_once() {
    // Items 77 to 79: nothing but probes; probes do not count; no waiting for the backed-off RTO.
    let mut config = plain().congestion(Congestion::None);
    config.rto.retransmissions_max = 1;
    config.persist.probes_max = 1;
    let mut s = Script::connected(config, no_rate());
    s.run("1.0 user send 3000\n1.0 > . 1:1001\n1.0 > . 1001:2001\n1.0 > P. 2001:3001\n1.1 user outage");
    let probes = s.ranges_until(100.0);
    assert!(probes.len() >= 5 && probes.iter().all(|p| p == "1:2"), "{probes:?}");
    s.run("100.0 state is Established\n100.0 user restore\n100.0 > . 1:1001");
    s.sent.clear();
    s.run("100.5 < . 1:1 ack 3001\n100.5 state flight 0");
}

#[test]
fn any_packet_from_the_peer_ends_an_outage() {
    let mut s = Script::connected(plain().congestion(Congestion::None), no_rate());
    s.run("1.0 user send 1000\n1.0 > P. 1:1001\n1.1 user outage");
    s.ranges_until(10.0);
    s.run("10.0 < . 1:1 ack 1\n10.0 > P. 1:1001");
}

#[test]
fn repeated_timeouts_suspend_the_route_when_asked_to() {
    let mut config = plain().congestion(Congestion::None);
    config.rto.to_persist = Some(2);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x00");
    s.run("1.0 user send 2000\n1.0 > . 1:1001\n1.0 > P. 1001:2001\n2.5 > . 1:1001\n2.5 > P. 1001:2001");
    let probes = s.ranges_until(60.0);
    assert!(!probes.is_empty() && probes.iter().all(|p| p == "1:2"), "{probes:?}");
}

#[test]
fn time_wait_lasts_its_time_and_answers_a_repeated_fin() {
    // Item 80.
    let mut s = Script::connected(plain().time_wait(Duration::from_secs(10)), no_rate());
    s.run(
        "1.0 user close
         1.0 > F. 1:1
         1.5 < F. 1:1 ack 2
         1.5 > . 2:2 ack 2
         2.0 < F. 1:1 ack 2
         2.0 > . 2:2 ack 2
         11.4 state is TimeWait
         11.6 state is Closed",
    );
}

#[test]
fn whoever_is_done_stays_while_the_peers_end_may_come_again() {
    let mut s = Script::connected(plain(), no_rate());
    let may_leave = |s: &Script| s.endpoint.may_leave_at(s.connection()).map(|at| at.since(s.now));
    s.run("1.0 user close");
    assert_eq!(may_leave(&s), None, "its own end is not acknowledged");
    s.run("1.5 < . 1:1 ack 2");
    let rto = |s: &Script| s.endpoint.snapshot(s.connection()).unwrap().rto;
    assert_eq!(may_leave(&s), Some(rto(&s) * 8));
    s.run("2.0 < F. 1:1 ack 2");
    assert_eq!(may_leave(&s), Some(rto(&s) * 2));
    // It comes again: our acknowledgement was lost, and who knows when the peer tries the next time. Before any sample that is
    // after six seconds.
    s.run("3.0 < F. 1:1 ack 2");
    assert!(may_leave(&s) > Some(Duration::from_secs(6)));
    s.advance(Instant::from_secs(130));
    assert_eq!(may_leave(&s), None, "it is gone");
}

#[test]
fn keepalives_follow_their_schedule() {
    // The first says that we are here; later ones ask, if nothing was heard in between.
    let config = plain().keepalive(Config::default().keepalive);
    let mut s = Script::connected(config, no_rate());
    s.run(
        "1.5 > . 1:1 ack 1
         901.4 quiet
         901.5 > . 0:0 ack 1
         902.0 < . 1:1 ack 1
         1801.5 > . 1:1 ack 1
         2701.5 > . 0:0 ack 1
         2702.0 state is Established",
    );
}

#[test]
fn keepalives_without_answer_end_the_connection() {
    let config = plain().keepalive(Some((Duration::from_secs(1), Duration::from_secs(10))));
    let mut s = Script::connected(config, no_rate());
    s.run("1.5 > . 1:1");
    // Strangers' guesses are no sign of life.
    s.run("2.0 < R 99999:99999");
    for i in 0..9 {
        s.run(&format!("{}.5 > . 0:0", 11 + 10 * i));
    }
    s.run("95.0 < R 99999:99999\n101.5 > R. 1:1\n999.0 quiet");
    assert!(matches!(s.events.last(), Some(Event::Closed(_, scps_tp::CloseReason::TimedOut))));
}

#[test]
fn acknowledgements_that_tell_nothing_new_do_not_put_the_timeout_off() {
    // RFC 6298 (5.3): a segment is lost, and the peer, which knows no SACK, sends keep-alives of its own more often than the RTO.
    for syn_ack in ["win 65535 mss 1000 wscale 0", "win 65535 mss 1000 wscale 0 caps 0x40"] {
        let config = plain().congestion(Congestion::Vj);
        let mut s = Script::connected_with(config, no_rate(), syn_ack);
        s.run("1.0 user send 900\n1.0 > P. 1:901");
        for tenths in 11..95 {
            s.run(&format!("{:.1} < . 1:1 ack 1", f64::from(tenths) / 10.0));
        }
        let rtos = s.endpoint.stats(s.connection()).unwrap().rtos;
        assert!(rtos >= 2, "{syn_ack}: {rtos} timeouts in 8.5 s");
    }
}

#[test]
fn without_reports_duplicates_put_the_timeout_off_while_the_resend_is_on_its_way() {
    // A line takes 0.4 s for a segment; the first of five is lost. The timer, set at 1.0 s for 1.5 s, would expire between the resend
    // at 2.7 s and its acknowledgement, and everything would leave again less than a timeout after it left (RFC 6298 §5).
    for scps in [false, true] {
        let config = plain().congestion(Congestion::None).scps(scps).snack(false);
        let syn_ack = if scps { "win 65535 mss 1000 wscale 0 caps 0x00" } else { "win 65535 mss 1000 wscale 0" };
        let mut s = Script::connected_with(config, no_rate(), syn_ack);
        s.run("1.0 user send 5000");
        s.sent.clear();
        s.run(
            "1.9 < . 1:1 ack 1
             2.3 < . 1:1 ack 1
             2.7 < . 1:1 ack 1
             2.7 > . 1:1001
             3.1 < . 1:1 ack 1
             3.4 < . 1:1 ack 5001
             9.0 quiet",
        );
        assert_eq!(s.endpoint.stats(s.connection()).unwrap().rtos, 0);
    }
}

#[test]
fn duplicates_put_the_timeout_off_only_as_often_as_segments_arrived() {
    // Of five segments four can arrive beyond the hole. Whoever repeats itself more often does not hold the timer off.
    let config = plain().congestion(Congestion::None).snack(false);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 wscale 0");
    s.run("1.0 user send 5000");
    for tenths in 11..95 {
        s.run(&format!("{:.1} < . 1:1 ack 1", f64::from(tenths) / 10.0));
    }
    let rtos = s.endpoint.stats(s.connection()).unwrap().rtos;
    assert!(rtos >= 2, "{rtos} timeouts in 8.5 s");
}

#[test]
fn a_window_smaller_than_a_segment_is_announced_when_it_opens() {
    let mut s = Script::accepted(plain().receive_buffer(500), "mss 1000 caps 0x40 win 65535");
    s.run("1.0 < P. 1:501 ack 1\n1.2 > . 1:1 ack 501 win 0\n1.3 user read 1000\n1.3 > . 1:1 ack 501 win 500");
}
