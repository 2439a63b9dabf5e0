//! A full-sized segment counts as one, whatever the options make of its length; and one that fills a hole is answered once.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_sim::{Impairment, LinkConfig, Outcome, Transfer};
use scps_tp::{Cause, Config, RouteConfig};
use scps_wire::{Bitrate, Duration};

/// Packets of the sender, counted from 0: SYN, then the handshake's last acknowledgement, then data.
const FIRST_DATA: u64 = 2;

fn run(config: &Config, drop_list: Vec<u64>, ms: u64) -> (Outcome, scps_sim::Network) {
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(20_000_000)),
        delay: Duration::from_millis(ms),
        ..LinkConfig::default()
    };
    let there = LinkConfig { impairment: Impairment { drop_list, ..Impairment::default() }, ..link.clone() };
    let transfer = Transfer {
        bytes: 400_000,
        sender: config.clone(),
        receiver: config.clone(),
        routes: [RouteConfig::default().rate(None).mtu(1500); 2],
        networks: Default::default(),
        links: [there, link],
        seed: 1,
        limit: Duration::from_secs(600),
    };
    (transfer.run(), transfer.run_captured())
}

/// Every combination of what changes the length of a segment, with its longest data.
fn combinations() -> impl Iterator<Item = (Config, usize)> {
    (0..64u32).map(|bits| {
        let is = |bit: u32| bits & 1 << bit != 0;
        let config = Config::default()
            .compression(is(0))
            .timestamps(is(1))
            .snack(is(2))
            .snack_long(is(2) && is(3))
            .sack(is(4))
            .mss(is(5).then_some(536))
            .send_buffer(300_000)
            .receive_buffer(300_000);
        let mss = if is(5) { 536 } else { 1460 };
        let longest = match (config.compression, config.timestamps) {
            (false, false) => mss,
            (false, true) => mss - 12,
            (true, false) => mss + 12,
            (true, true) => mss + 4,
        };
        (config, longest)
    })
}

#[test]
fn every_second_full_segment_is_answered_whatever_the_options() {
    for (config, longest) in combinations() {
        let (outcome, _) = run(&config, Vec::new(), 10);
        assert!(outcome.is_complete);
        let (data, answers) = (outcome.sent.data_segments_sent, outcome.received.pure_acks_sent);
        assert!(data as usize <= 400_000 / longest + 3, "{data} segments of {longest}: {config:?}");
        // SYN, FIN, and the ends of rounds that wait for the timer apart.
        assert!((data / 2..data / 2 + 20).contains(&answers), "{answers} answers to {data} segments: {config:?}");
    }
}

#[test]
fn a_full_segment_that_fills_a_hole_is_answered_once_and_no_part_of_it_is_asked_for() {
    for (config, longest) in combinations().filter(|c| c.0.snack) {
        let lost = FIRST_DATA + 40;
        let (outcome, network) = run(&config, vec![lost], 10);
        assert!(outcome.is_complete);
        // Beyond what was asked for the sender may repeat it on its own, whole.
        let (asked_for, all) = (outcome.sent.resends_by(Cause::Snack), outcome.sent.resends_total());
        assert_eq!((asked_for, outcome.received.duplicate_segments), (1, all - 1), "{config:?}");
        let answers = network.capture.iter().filter(|(_, host, _)| *host == 1).count() as u64;
        let data = outcome.sent.data_segments_sent;
        assert!(answers <= data, "{answers} answers to {data} segments of {longest}: {config:?}");
    }
}
