//! A reader that pauses: the window closes, is probed, and opens again.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_sim::{LinkConfig, Network, PORT};
use scps_tp::{Config, Congestion, RouteConfig, Stats};
use scps_types::{Duration, Instant, Seed};

/// Sends half as much again as the receiver's buffer holds to a reader that begins after two hours; the sender's counters then,
/// and whether all came.
fn pause(config: Config) -> (Stats, bool) {
    let route = RouteConfig::default().rate(None);
    let link = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
    let mut network = Network::new([route, route], [link.clone(), link], Seed::from_u64(3));
    let remote = network.hosts[1].address;
    network.hosts[1].listen(PORT, config.clone());
    network.hosts[1].reads = false;
    network.hosts[0].to_send = vec![0xa5; config.receive_buffer * 3 / 2];
    network.hosts[0].connect(Instant::ZERO, remote, PORT, config);
    network.run(Instant::from_secs(7200), |_| false);
    let id = network.hosts[0].connection.unwrap();
    let stats = network.hosts[0].endpoint.stats(id).unwrap();
    network.hosts[1].reads = true;
    let expected = network.hosts[0].to_send.len();
    let is_whole = network.run(Instant::from_secs(7300), |n| n.hosts[1].received.len() == expected);
    (stats, is_whole)
}

#[test]
fn a_reader_that_pauses_for_two_hours_gets_everything() {
    for congestion in [Congestion::None, Congestion::Vj] {
        for receive_buffer in [65_536, 4 << 20] {
            let config = Config::modern().receive_buffer(receive_buffer).congestion(congestion);
            let (stats, is_whole) = pause(config);
            assert!(is_whole, "{congestion:?}, {receive_buffer}: {stats:?}");
            // A closed window is no loss: it is probed, a minute apart in the end, and nothing is sent again.
            assert_eq!((stats.rtos, stats.resends_total()), (0, 0), "{congestion:?}, {receive_buffer}");
            assert!((100..200).contains(&stats.probes_sent), "{congestion:?}, {receive_buffer}: {}", stats.probes_sent);
        }
    }
}
