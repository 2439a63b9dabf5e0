//! Nothing hangs: whatever the peer's windows and the losses, a connection with work to do waits for a timer, and one that
//! nobody owns any more ends.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, packet, plain, Script, PEER, US};
use proptest::prelude::*;
use scps_tp::{Config, Congestion, RouteId, State, VegasConfig};
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Duration, Instant, SeqNum};

fn unlimited() -> Config {
    plain().congestion(Congestion::None)
}

/// The peer's windows of interest: closed, silly, around a segment of 1000 with and without compression (12 more), open.
const WINDOWS: [u32; 10] = [0, 1, 10, 499, 900, 999, 1005, 1012, 2500, 65_535];

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u16),
    Record(u16),
    Close,
    Wait(u32),
    /// An acknowledgement of so many 256ths of what was given, FIN included.
    Ack {
        part: u16,
        window: usize,
    },
    Snack {
        part: u16,
        window: usize,
        offset: u8,
        size: u8,
    },
    Sack {
        part: u16,
        window: usize,
        from: u16,
        len: u16,
    },
    Data(u16),
    Fin,
    Outage(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let window = || 0..WINDOWS.len();
    let part = || prop_oneof![Just(0u16), Just(256), 0u16..256];
    prop_oneof![
        4 => prop_oneof![Just(1000u16), Just(5000), 1u16..6000].prop_map(Step::Send),
        1 => (1u16..3000).prop_map(Step::Record),
        1 => Just(Step::Close),
        4 => prop_oneof![0u32..2000, 2000u32..200_000].prop_map(Step::Wait),
        6 => (part(), window()).prop_map(|(part, window)| Step::Ack { part, window }),
        2 => (part(), window(), 0u8..6, 1u8..4)
            .prop_map(|(part, window, offset, size)| Step::Snack { part, window, offset, size }),
        2 => (part(), window(), 0u16..8000, 1u16..3000)
            .prop_map(|(part, window, from, len)| Step::Sack { part, window, from, len }),
        1 => (1u16..1000).prop_map(Step::Data),
        1 => Just(Step::Fin),
        1 => any::<bool>().prop_map(Step::Outage),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let congestion =
        prop_oneof![Just(Congestion::None), Just(Congestion::Vj), Just(Congestion::Vegas(VegasConfig::default()))];
    (congestion, any::<[bool; 6]>(), prop_oneof![Just(None), (1u32..4).prop_map(Some)], 1u32..12).prop_map(
        |(congestion, f, to_persist, retransmissions_max)| {
            let mut config = plain()
                .congestion(congestion)
                .scps(f[0])
                .sack(f[1])
                .compression(f[2])
                .bets(f[3])
                .nodelay(f[4])
                .snack_long(f[5]);
            config.rto = config.rto.to_persist(to_persist).retransmissions_max(retransmissions_max);
            config
        },
    )
}

/// A connection under test, with what its peer has to remember.
struct Trial {
    s: Script,
    given: u64,
    is_closed: bool,
    peer_next: u64,
    acked: u64,
}

impl Trial {
    fn new(config: Config, window: usize) -> Self {
        let syn_ack = format!("win {} mss 1000 sackok yes caps 0xf0", WINDOWS[window]);
        Trial {
            s: Script::connected_with(config, no_rate(), &syn_ack),
            given: 0,
            is_closed: false,
            peer_next: 1,
            acked: 1,
        }
    }

    fn line(&mut self, text: &str) {
        let at = self.s.now.as_nanos() as f64 / 1e9;
        self.s.run(&format!("{at:.9} {text}"));
    }

    fn position(&self, part: u16) -> u64 {
        1 + (self.given + u64::from(self.is_closed)) * u64::from(part) / 256
    }

    fn segment(&mut self, part: u16, window: usize, more: &str) {
        let (next, ack) = (self.peer_next, self.position(part));
        self.acked = self.acked.max(ack);
        self.line(&format!("< . {next}:{next} ack {ack} win {} {more}", WINDOWS[window]));
    }

    fn take(&mut self, step: Step) {
        let may_send =
            matches!(self.s.endpoint.state(self.s.connection()), Some(State::Established | State::CloseWait));
        match step {
            Step::Send(n) if may_send && !self.is_closed && self.given + u64::from(n) < 40_000 => {
                self.given += u64::from(n);
                self.line(&format!("user send {n}"));
            }
            Step::Record(n) if may_send && !self.is_closed && self.given + u64::from(n) < 40_000 => {
                self.given += u64::from(n);
                self.line(&format!("user record {n}"));
            }
            Step::Close => {
                self.is_closed = true;
                self.line("user close");
            }
            Step::Wait(ms) => {
                let until = self.s.now + Duration::from_millis(u64::from(ms));
                self.s.advance(until);
            }
            Step::Ack { part, window } => self.segment(part, window, ""),
            Step::Snack { part, window, offset, size } => self.segment(part, window, &format!("snack {offset}+{size}")),
            Step::Sack { part, window, from, len } => {
                let left = self.position(part) + u64::from(from);
                self.segment(part, window, &format!("sack {left}:{}", left + u64::from(len)));
            }
            Step::Data(n) => {
                let (from, ack) = (self.peer_next, self.acked);
                self.peer_next += u64::from(n);
                self.line(&format!("< . {from}:{} ack {ack}\n", self.peer_next));
                self.line("user read 100000");
            }
            Step::Fin => {
                let (next, ack) = (self.peer_next, self.acked);
                self.line(&format!("< F. {next}:{next} ack {ack}"));
            }
            Step::Outage(on) => self.line(if on { "user outage" } else { "user restore" }),
            Step::Send(_) | Step::Record(_) => {}
        }
        self.s.sent.clear();
    }

    fn has_work(&self) -> bool {
        let id = self.s.connection();
        match self.s.endpoint.state(id) {
            None | Some(State::Closed | State::FinWait2 | State::TimeWait) => false,
            Some(_) => {
                let waiting = self.s.endpoint.snapshot(id).unwrap().unacknowledged > 0;
                waiting || (self.is_closed && self.s.endpoint.stats(id).unwrap().flushed_at.is_none())
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_has_a_timer_and_an_orphan_ends(
        config in config(),
        window in 0..WINDOWS.len(),
        steps in proptest::collection::vec(step(), 1..40),
        answers in prop_oneof![Just(None), (0..WINDOWS.len()).prop_map(Some)],
    ) {
        let retransmissions_max = config.rto.retransmissions_max;
        let mut t = Trial::new(config, window);
        for step in &steps {
            t.take(*step);
            prop_assert!(!t.has_work() || t.s.endpoint.poll_timeout().is_some(), "no timer after {step:?}");
        }
        // Nobody owns it any more; the peer is gone, or answers whatever comes with the same acknowledgement and window.
        let (now, id) = (t.s.now, t.s.connection());
        // Over minutes of light an hour is a few retransmissions.
        let rto = t.s.endpoint.snapshot(id).map_or(Duration::ZERO, |snapshot| snapshot.rto);
        let longest = Duration::from_secs(3600).max(rto * (retransmissions_max + 2));
        t.s.endpoint.release(now, id);
        t.is_closed = true;
        for _ in 0..20_000 {
            t.s.advance(t.s.now);
            if t.s.endpoint.connection_count() == 0 {
                break;
            }
            let next = t.s.endpoint.poll_timeout();
            prop_assert!(next.is_some(), "an orphan without a timer");
            let before = t.s.endpoint.stats(id).map(|s| s.segments_sent);
            t.s.advance(next.unwrap());
            if let (Some(window), true) = (answers, t.s.endpoint.stats(id).map(|s| s.segments_sent) > before) {
                let (next, ack) = (t.peer_next, t.acked);
                t.line(&format!("< . {next}:{next} ack {ack} win {}", WINDOWS[window]));
            }
            t.s.sent.clear();
        }
        prop_assert_eq!(t.s.endpoint.connection_count(), 0, "an orphan lives on");
        prop_assert!(t.s.now.since(now) <= longest, "an orphan lived for {:?} of {longest:?}", t.s.now.since(now));
    }
}

/// A segment that a stranger or a lying peer may send: flags, sequence, length, and what it acknowledges and asks for.
fn any_segment() -> impl Strategy<Value = String> {
    let flags =
        prop_oneof![6 => Just("."), 1 => Just("S"), 1 => Just("S."), 1 => Just("F."), 1 => Just("R"), 1 => Just("P.")];
    let near = |range: std::ops::Range<i64>| prop_oneof![4 => range, 1 => Just(1i64), 1 => -100_000i64..100_000];
    let more = prop_oneof![
        2 => Just(String::new()),
        2 => (0u16..25, 1u16..30).prop_map(|(offset, size)| format!("snack {offset}+{size}")),
        2 => (0u32..20_000, 1u32..5000).prop_map(|(from, len)| format!("sack {from}:{}", from + len)),
    ];
    // A stranger's packet may be as long as IP lets it be.
    let len = prop_oneof![4 => Just(0i64), 4 => 1i64..900, 1 => 900i64..60_000];
    (flags, near(0..3000), len, near(0..21_000), 0..WINDOWS.len(), more).prop_map(
        |(flags, seq, len, ack, window, more)| {
            format!("< {flags} {seq}:{} ack {ack} win {} {more}", seq + len, WINDOWS[window])
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// An attacker gains nothing by having us answer: at one moment, whatever comes, each packet is worth one answer at
    /// most, however many of our own segments its data would fill, and beside answers no segment of the 21 that wait leaves
    /// more than three times.
    #[test]
    fn packets_sent_are_bounded_by_packets_received(
        config in config(),
        segments in proptest::collection::vec(any_segment(), 1..300),
        is_tiny in any::<bool>(),
    ) {
        let config = if is_tiny { config.mss(Some(1)) } else { config };
        let mut t = Trial::new(config, WINDOWS.len() - 1);
        let opening = t.s.endpoint.stats(t.s.connection()).unwrap().segments_sent;
        let waiting = if is_tiny { 0 } else { 21 };
        if !is_tiny {
            t.line("user send 20000");
        }
        for segment in &segments {
            t.line(segment);
        }
        let resets = t.s.sent.iter().filter(|p| p.tcp.flags.has(Flags::RST)).count() as u64;
        let sent = t.s.endpoint.stats(t.s.connection()).unwrap().segments_sent - opening + resets;
        let bound = segments.len() as u64 + 3 * waiting;
        prop_assert!(sent <= bound, "{sent} packets for {}", segments.len());
    }
}

#[test]
fn a_window_that_shrinks_over_segments_in_flight_is_probed() {
    for segments in [2u32, 3, 5] {
        for (acked, window) in [(1, 0), (1001, 0), (1, 1), (1001, 1), (1, 500), (1001, 500), (1001, 999), (1, 1000)] {
            let mut s = Script::connected(unlimited(), no_rate());
            s.run(&format!("1.0 user send {}\n1.1 < . 1:1 ack {acked} win {window}", segments * 1000));
            s.sent.clear();
            s.advance(Instant::from_secs(600));
            assert!(s.sent.len() > 8, "{segments} segments, {acked} acknowledged, window {window}: {}", s.sent.len());
            assert!(s.endpoint.poll_timeout().is_some());
            s.run(&format!("600.0 < . 1:1 ack {acked} win 60000"));
            s.advance(Instant::from_secs(605));
            let end = 1 + segments * 1000;
            s.run(&format!("605.0 < . 1:1 ack {end}\n605.0 state flight 0"));
        }
    }
}

#[test]
fn a_window_short_of_a_segment_is_filled_after_half_a_second_and_then_probed_once_at_a_time() {
    let mut s = Script::connected(unlimited(), no_rate());
    s.run("1.0 user send 1000\n1.0 > P. 1:1001\n1.1 < . 1:1 ack 1001 win 632\n1.1 user send 5000\n1.59 quiet");
    s.run("1.6 > . 1001:1633\n1.61 quiet\n1.7 < . 1:1 ack 1633 win 0\n6.5 quiet\n6.6 > . 1633:1634\n6.8 quiet");
    // The window opens by less than a segment again, then for all.
    s.run("7.0 < . 1:1 ack 1634 win 300\n7.4 quiet\n7.5 > . 1634:1934\n7.6 < . 1:1 ack 1934 win 9000");
    s.run("7.6 > . 1934:2934\n7.6 > . 2934:3934\n7.6 > . 3934:4934\n7.6 > . 4934:5934\n7.7 quiet");
}

#[test]
fn a_window_short_of_a_compressed_segment_is_probed() {
    // A compressed segment holds up to 1012 octets where an uncompressed one holds 1000.
    for window in [900u32, 999, 1000, 1005, 1011, 1012] {
        let config = unlimited().compression(true);
        let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x50");
        s.run(&format!("1.0 user send 1000\n1.1 < . 1:1 ack 1001 win {window}\n1.2 user send 5000"));
        assert!(s.endpoint.poll_timeout().is_some(), "window {window}");
    }
}

#[test]
fn segments_of_an_octet_leave_behind_compressed_headers() {
    // MSS 1 and 20 octets are less than the first compressed header with timestamps, which has 22.
    let config = unlimited().mss(Some(1)).compression(true).timestamps(true);
    let mut s = Script::connected_with(config, no_rate(), "win 65535 mss 1000 caps 0x50 ts 1000");
    s.run("1.0 user send 5\n1.0 state flight 5");
    assert_eq!(s.endpoint.stats(s.connection()).unwrap().data_segments_sent, 5);
}

#[test]
fn a_fin_lost_until_the_route_is_given_up_is_the_probe() {
    let rto = Config::default().rto.to_persist(Some(3));
    let mut s = Script::connected_with(plain().rto(rto), no_rate(), "win 65535 mss 1000 caps 0x00");
    s.run("1.0 user close\n1.0 > F. 1:1\n2.5 > F. 1:1\n5.5 > F. 1:1\n11.52 > F. 1:1");
    s.run("12.0 < . 1:1 ack 2\n12.0 state is FinWait2");
}

#[test]
fn intervals_of_nothing_end_while_the_route_is_down() {
    let mut probing = unlimited();
    probing.persist.max = Duration::ZERO;
    let asking = unlimited().keepalive(Some((Duration::from_secs(1), Duration::ZERO)));
    for config in [probing, asking.clone(), asking.keepalive_asks(true)] {
        let mut s = Script::connected(config, no_rate());
        s.run("1.0 user outage\n1.0 user send 1000");
        s.advance(Instant::from_secs(2));
        s.run("2.0 user restore\n2.0 state is Established");
    }
}

#[test]
fn a_route_given_up_or_back_concerns_all_its_connections() {
    let rto = Config::default().rto.to_persist(Some(2));
    let mut s = Script::connected_with(unlimited().rto(rto), no_rate(), "win 65535 mss 1000 caps 0x00");
    let patient = unlimited().rto(rto.to_persist(None));
    let other = s.endpoint.connect(s.now, (US.0, 5001), (PEER.0, 6001), patient).unwrap();
    s.advance(s.now);
    let iss = s.sent.back().unwrap().tcp.seq;
    let (flags, options) = (Flags::SYN.with(Flags::ACK), Options::default());
    let syn_ack =
        Tcp { src_port: 6001, dst_port: 5001, seq: SeqNum(1), ack: iss + 1, flags, window: 9000, urgent: 0, options };
    s.deliver(&packet(&syn_ack, &[]));
    assert_eq!(s.endpoint.state(other), Some(State::Established));
    s.run("1.0 user send 1000");
    s.endpoint.send(s.now, other, &[1; 500]).unwrap();
    s.advance(Instant::from_secs(30));
    assert!(!s.endpoint.route(RouteId::default()).unwrap().is_available());
    s.sent.clear();
    s.advance(Instant::from_secs(100));
    assert!(s.sent.iter().any(|p| p.tcp.dst_port == 6001), "the other one probes as well");
    s.sent.clear();
    let ack = Tcp { seq: SeqNum(2), ack: iss + 1, flags: Flags::ACK, ..syn_ack };
    s.deliver(&packet(&ack, &[]));
    let mut sent: Vec<_> = s.sent.iter().filter(|p| p.len > 0).map(|p| (p.tcp.dst_port, p.len)).collect();
    sent.sort_unstable();
    assert_eq!(sent, [(6000, 1000), (6001, 500)], "both send at once when it is back");
}

#[test]
fn a_peer_that_answers_probes_keeps_its_closed_window_as_long_as_it_likes() {
    // With and without segments in flight when it closes; RFC 9293 §3.8.6.1: the connection stays open.
    for first in [0, 5000] {
        let mut s = Script::connected(unlimited().nodelay(true), no_rate());
        s.run(&format!(
            "1.0 user send 1000\n1.0 < . 1:1 ack 1001 win {first}\n1.0 user send 5000\n1.1 < . 1:2 ack 1001 win {first}\n1.1 < . 2:2 ack 1001 win 0"
        ));
        // A window that shrinks is believed from a segment newer than the last only (as on Linux): an octet came before it.
        s.advance(Instant::from_secs(60));
        for i in 1..100 {
            s.sent.clear();
            s.advance(Instant::from_secs(60 * i + 60));
            assert!(!s.sent.is_empty() && s.sent.iter().all(|p| p.len == 1), "{first}, minute {i}");
            s.run(&format!("{}.0 < . 2:2 ack 1001 win 0\n{}.0 state is Established", 60 * i + 60, 60 * i + 60));
        }
        s.run("6100.0 < . 2:2 ack 1001 win 60000\n6200.0 < . 2:2 ack 6001\n6200.0 state flight 0");
    }
}

#[test]
fn a_fin_waits_at_a_closed_window_as_long_as_the_peer_answers() {
    // The data ends where the window ends; RFC 9293 §3.8.6.1 as above.
    let mut s = Script::connected(unlimited(), no_rate());
    s.run("1.0 user send 1000\n1.1 < . 1:1 ack 1001 win 0\n1.2 user close");
    for minute in 1..=100 {
        s.run(&format!("{}.0 < . 1:1 ack 1001 win 0", 60 * minute));
    }
    s.run("6001.0 state is FinWait1");
    assert!(s.sent.iter().filter(|p| p.tcp.flags.has(Flags::FIN)).count() > 90, "it is probed");
    s.sent.clear();
    s.run("6001.0 < . 1:1 ack 1001 win 60000\n6001.0 > F. 1001:1001");
    s.run("6001.1 < . 1:1 ack 1002\n6001.1 state is FinWait2");
}

#[test]
fn a_fin_is_taken_at_a_closed_window() {
    let mut s = Script::accepted(plain().receive_buffer(2000), "mss 1000 caps 0x40 win 65535");
    s.run("1.0 < . 1:1001 ack 1\n1.0 < . 1001:2001 ack 1\n1.0 > . 1:1 ack 2001 win 0");
    s.run("1.1 < F. 2001:2001 ack 1\n1.1 > . 1:1 ack 2002 win 0\n1.1 state is CloseWait");
    s.run("1.2 < F. 2001:2001 ack 1\n1.2 > . 1:1 ack 2002 win 0\n1.3 user read 5000");
    assert_eq!(s.received.len(), 2000);
}

#[test]
fn a_probe_of_a_closed_window_is_not_reported_as_received() {
    // RFC 2018 §3: a block names what came.
    let config = plain().sack(true).receive_buffer(2000);
    let mut s = Script::accepted(config, "mss 1000 sackok yes caps 0x40 win 65535");
    s.run("1.0 < . 1:1001 ack 1\n1.0 < . 1001:2001 ack 1\n1.0 > . 1:1 ack 2001 win 0");
    s.run("6.0 < . 2001:2002 ack 1\n6.0 > . 1:1 ack 2001 win 0");
    s.run("6.5 < . 1001:2002 ack 1\n6.5 > . 1:1 ack 2001 win 0 sack 1001:2001");
}
