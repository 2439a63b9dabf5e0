//! A table of throughput: buffers, losses and readers, in one text that a reviewer reads. A change of behaviour is a
//! difference of `throughput.txt`. `SCPS_SNAPSHOTS=renew cargo test -p scps-sim --test throughput` writes it anew.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]
#![allow(clippy::disallowed_methods, reason = "the variable of the environment says what whoever runs the test wants")]

use scps_gateway::{GatewayConfig, SetUp, SideConfig};
use scps_sim::{Impairment, LinkConfig, Network, Program, ENDS, PORT};
use scps_tp::{Config, Congestion, LossMeaning, RouteConfig};
use scps_wire::{Bitrate, Duration, Instant, Seed};
use std::fmt::Write;

const LOSSES: [f64; 3] = [0.0, 1e-3, 1e-2];
const RATE: u64 = 100_000_000;
/// Half a round trip.
const DELAY: Duration = Duration::from_millis(250);
/// Octets read each tenth of a second by a slow reader: 20 Mbit/s.
const SLOW: (usize, Duration) = (250_000, Duration::from_millis(100));
const SECONDS: u64 = 6;

/// Who ends the connection across the link, and how.
#[derive(Clone, Copy)]
enum Ends {
    Rate,
    Vj,
    Gateways,
}

/// Mbit/s that a reader has after some seconds, the handshake's included.
fn measure(ends: Ends, buffer: usize, loss: f64, pace: Option<(usize, Duration)>) -> f64 {
    let plain = Config::default().scps(false).congestion(Congestion::Vj);
    let space = Config::modern().congestion(Congestion::None);
    let sized = |config: Config| config.send_buffer(buffer).receive_buffer(buffer);
    let host = sized(if matches!(ends, Ends::Rate) { space.clone() } else { plain.clone() });
    let paced = RouteConfig::default().rate(Some(Bitrate::from_bps(RATE))).loss(LossMeaning::Corruption);
    let free = RouteConfig::default().rate(None);
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(RATE)),
        queue_bytes: 1 << 20,
        delay: DELAY,
        impairment: Impairment { loss, ..Impairment::default() },
    };
    let route = if matches!(ends, Ends::Rate) { paced } else { free };
    let mut network = Network::new([route; 2], [link.clone(), link], Seed::from_u64(1));
    network[ENDS[1]].listen(PORT, host.clone());
    network[ENDS[1]].service = Some(Program { pace, ..Program::default() });
    let data = vec![0; (RATE / 8 * SECONDS) as usize];
    network[ENDS[0]].connect(Instant::ZERO, (Network::address(1), PORT), host, Program::sending(data));
    if matches!(ends, Ends::Gateways) {
        let lan = SideConfig::default().connection(sized(plain)).route(free);
        let wan = SideConfig::default().connection(sized(space)).route(paced);
        let config = GatewayConfig::transparent(lan, wan, SetUp::ConnectFirst);
        network.put_gateways(&config, Seed::from_u64(1)).unwrap();
    }
    network.run(Instant::from_secs(SECONDS), |_| false);
    network[ENDS[1]].received().len() as f64 * 8.0 / SECONDS as f64 / 1e6
}

fn table() -> String {
    let mut text = format!(
        "Mbit/s that a program has received {SECONDS} s after SYN: {} Mbit/s, {} ms each way, a queue of 1 MiB.\n",
        RATE / 1_000_000,
        DELAY.as_millis()
    );
    for (ends, name) in [
        (Ends::Rate, "hosts without congestion control at the link's rate"),
        (Ends::Vj, "hosts with VJ"),
        (Ends::Gateways, "hosts with VJ, gateways without congestion control at the link's rate"),
    ] {
        for (pace, reader) in [(None, "fast"), (Some(SLOW), "slow")] {
            write!(text, "\n{name}, {reader} reader\n{:>12}", "buffer").unwrap();
            for loss in LOSSES {
                write!(text, "{:>10}", format!("{} %", loss * 100.0)).unwrap();
            }
            text.push('\n');
            for shift in (14..=26).step_by(3) {
                write!(text, "{:>8} KiB", 1 << (shift - 10)).unwrap();
                for loss in LOSSES {
                    write!(text, "{:>10.2}", measure(ends, 1 << shift, loss, pace)).unwrap();
                }
                text.push('\n');
            }
        }
    }
    text
}

#[test]
fn throughput_is_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/throughput.txt");
    let table = table();
    if std::env::var_os("SCPS_SNAPSHOTS").is_some_and(|value| value == "renew") {
        std::fs::write(path, &table).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    assert!(table == expected, "expected\n{expected}\nfound\n{table}\nSCPS_SNAPSHOTS=renew writes it anew");
}
