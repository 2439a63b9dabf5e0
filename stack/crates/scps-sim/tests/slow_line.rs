//! Serial lines of 115,200 baud behind a megabyte of buffer, where resends can queue for longer than any round trip measured.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_channel::ErrorModel;
use scps_sim::{Impairment, LinkConfig, Outcome, Transfer};
use scps_tp::{Config, LossMeaning, RouteConfig};
use scps_wire::{Bitrate, Duration};

/// 1,000,000 octets at 92,160 bit/s (ten bits per octet at 115,200 baud), independent bit errors.
fn transfer(config: Config, loss: LossMeaning, ber: f64, ack_bps: u64, seed: u64) -> Outcome {
    let link = |bps| LinkConfig {
        rate: Some(Bitrate::from_bps(bps)),
        queue_bytes: 1 << 20,
        delay: Duration::from_micros(23_300),
        impairment: Impairment { errors: Some(ErrorModel::Independent { ber }), ..Impairment::default() },
    };
    let route = RouteConfig::default().loss(loss);
    Transfer {
        bytes: 1_000_000,
        sender: config.clone(),
        receiver: config,
        routes: [route, route],
        networks: Default::default(),
        links: [link(92_160), link(ack_bps)],
        seed,
        limit: Duration::from_secs(3600),
    }
    .run()
}

#[test]
fn without_timestamps_resends_that_queue_do_not_breed_more() {
    let without_timestamps = |config: Config| config.timestamps(false);
    for (name, config) in [("vegas", Config::nmsu_vegas()), ("vj", Config::nmsu_vj())] {
        for (ber, ack_bps) in [(1e-6, 1_920), (1e-5, 92_160)] {
            for seed in 0..20 {
                let outcome = transfer(without_timestamps(config.clone()), LossMeaning::Congestion, ber, ack_bps, seed);
                let (seconds, resends) = (outcome.transfer.as_secs_f64(), outcome.sent.resends_total());
                assert!(outcome.is_complete, "{name} at {ber}, seed {seed}");
                // Before patience backed off: up to 1086 s and 7961 resends.
                assert!(
                    seconds < 200.0 && resends < 700,
                    "{name} at {ber}, seed {seed}: {seconds} s, {resends} resends"
                );
            }
        }
    }
}
