//! Prints the figures of the loss experiments: 4,000,000 octets in 1400-octet segments over 2 Mbit/s, 250 ms each way,
//! independent bit errors. Run with `cargo run --release --example figures`.

use scps_channel::ErrorModel;
use scps_sim::{Impairment, LinkConfig, Transfer};
use scps_tp::{Config, Congestion, LossMeaning, RouteConfig, VegasConfig};
use scps_wire::{Bitrate, Duration};

fn transfer(config: Config, ber: f64, seed: u64, loss: LossMeaning) -> Transfer {
    let route = RouteConfig::default().loss(loss);
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(2_000_000)),
        queue_bytes: 132_500,
        delay: Duration::from_millis(250),
        impairment: Impairment { errors: Some(ErrorModel::Independent { ber }), ..Impairment::default() },
    };
    let mut sender = config;
    // 1400 octets of data and 12 of timestamps.
    sender.mss = Some(1412);
    Transfer {
        bytes: 4_000_000,
        receiver: sender.clone(),
        sender,
        routes: [route, route],
        networks: Default::default(),
        links: [link.clone(), link],
        seed,
        limit: Duration::from_secs(3600),
    }
}

fn main() {
    let repeats: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(5);
    let large = |c: Config| c.send_buffer(4 << 20).receive_buffer(4 << 20);
    let snack_only = large(Config::default()).sack(false);
    let vegas = |c: Config| c.congestion(Congestion::Vegas(VegasConfig::default()));
    let none = |c: Config| c.congestion(Congestion::None);
    let cases = [
        ("rate, modern", none(Config::modern())),
        ("rate, SNACK only, 4 MiB", none(snack_only.clone())),
        ("rate, FY97 preset", Config::fy97_rate()),
        ("vegas, modern", vegas(Config::modern())),
        ("vegas, SNACK only, 4 MiB", vegas(snack_only)),
        ("vegas, FY97 preset", Config::fy97_vegas()),
        ("vj, modern", Config::modern().congestion(Congestion::Vj)),
    ];
    println!(
        "{:26} {:>7} {:>9} {:>9} {:>8} {:>7} {:>7} {:>6}",
        "case", "ber", "transfer", "stddev", "resends", "superfl", "rtos", "ok"
    );
    for (name, config) in cases {
        for ber in [0.0, 1e-6, 1e-5, 5e-5] {
            let runs: Vec<_> =
                (0..repeats).map(|s| transfer(config.clone(), ber, s, LossMeaning::Corruption).run()).collect();
            let times: Vec<f64> = runs.iter().map(|r| r.transfer.as_secs_f64()).collect();
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let var = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / (times.len().max(2) - 1) as f64;
            let resends: u64 = runs.iter().map(|r| r.sent.resends_total()).sum();
            let duplicates: u64 = runs.iter().map(|r| r.received.duplicate_segments).sum();
            println!(
                "{name:26} {ber:7.0e} {mean:9.2} {:9.2} {:8} {:6.2}% {:7} {:3}/{}",
                var.sqrt(),
                resends / repeats,
                100.0 * duplicates as f64 / resends.max(1) as f64,
                runs.iter().map(|r| r.sent.rtos).sum::<u64>(),
                runs.iter().filter(|r| r.is_complete).count(),
                runs.len()
            );
        }
    }
}
