//! A reader that pauses: the window closes, is probed, and opens again.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_gateway::{GatewayConfig, SetUp, SideConfig};
use scps_sim::{LinkConfig, Outcome, Program, Transfer, ENDS};
use scps_tp::{Config, Congestion, RouteConfig, Stats};
use scps_wire::{Duration, Instant, Seed};

/// Sends half as much again as the buffers hold to a reader that begins after two hours; the sender's counters then, and the end.
fn pause(config: &Config, gateways: Option<&GatewayConfig>) -> (Stats, Outcome) {
    let link = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
    let buffers = config.receive_buffer + gateways.map_or(0, |gateway| 2 * gateway.octets_per_connection());
    let transfer = Transfer {
        bytes: buffers * 3 / 2,
        sender: config.clone(),
        receiver: config.clone(),
        routes: [RouteConfig::default().rate(None); 2],
        networks: Default::default(),
        links: [link.clone(), link],
        seed: 3,
        limit: Duration::from_secs(100),
    };
    let mut network = transfer.begin();
    if let Some(config) = gateways {
        network.put_gateways(config, Seed::from_u64(4)).unwrap();
    }
    network[ENDS[1]].service = Some(Program { reads_from: Instant::from_secs(7201), ..Program::default() });
    network.run(Instant::from_secs(7200), |_| false);
    let id = network[ENDS[0]].connection().unwrap();
    let stats = network[ENDS[0]].endpoint.stats(id).unwrap();
    (stats, transfer.finish(&mut network))
}

#[test]
fn a_reader_that_pauses_for_two_hours_gets_everything() {
    for (congestion, receive_buffer) in
        [Congestion::None, Congestion::Vj].into_iter().flat_map(|c| [65_536, 4 << 20].map(|buffer| (c, buffer)))
    {
        let config = Config::modern().receive_buffer(receive_buffer).congestion(congestion);
        let side = SideConfig::default().connection(config.clone()).route(RouteConfig::default().rate(None));
        let gateways = GatewayConfig::transparent(side.clone(), side, SetUp::ConnectFirst);
        for gateways in [None, Some(&gateways)] {
            let (stats, outcome) = pause(&config, gateways);
            let case = format!("{congestion:?}, {receive_buffer}, through gateways: {}", gateways.is_some());
            assert!(outcome.is_complete, "{case}: {stats:?}");
            // A closed window is no loss: it is probed, a minute apart in the end, and nothing is sent again.
            assert_eq!((stats.rtos, stats.resends_total()), (0, 0), "{case}");
            assert!((100..200).contains(&stats.probes_sent), "{case}: {}", stats.probes_sent);
            // The octet that probed was refused, and is sent when the window opens.
            assert_eq!(outcome.sent.rtos, 0, "{case}");
        }
    }
}
