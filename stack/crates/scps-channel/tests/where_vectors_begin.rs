//! Packets over drawn errors: the first, every later one, and those behind a period's end are hit as often as the models'
//! closed forms say, over many seeds.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test stops where it fails")]

use scps_channel::{ErrorModel, ErrorSource};
use scps_wire::Seed;

const SEEDS: u64 = 10_000;
const PACKETS: usize = 40;
const OCTETS: usize = 1500;
const PACKET_BITS: u64 = 12_000;

const MODELS: [ErrorModel; 5] = [
    ErrorModel::Independent { ber: 1e-5 },
    ErrorModel::Clustered { ber: 1e-6, errors_per_burst: 4.0, gap_in_burst: 3.0 },
    ErrorModel::Clustered { ber: 1e-4, errors_per_burst: 10.0, gap_in_burst: 500.0 },
    ErrorModel::GilbertElliott { p_good_bad: 2e-6, p_bad_good: 2e-5, ber_good: 1e-6, ber_bad: 2e-4 },
    // Nearly no visit of a state brings an error.
    ErrorModel::GilbertElliott { p_good_bad: 0.1, p_bad_good: 0.3, ber_good: 8e-6, ber_bad: 2e-5 },
];

/// The chance that a run of bits at any place has an error.
fn hit(model: ErrorModel, bits: u64) -> f64 {
    match model {
        ErrorModel::Independent { ber } => 1.0 - (1.0 - ber).powf(bits as f64),
        ErrorModel::Clustered { ber, errors_per_burst, gap_in_burst } => {
            let inner = (errors_per_burst - 1.0) * gap_in_burst;
            let outer = errors_per_burst / ber - inner;
            let clean = |mean: f64| (1.0 - 1.0 / mean).powf(bits as f64);
            1.0 - (outer * clean(outer) + inner * clean(gap_in_burst)) / (outer + inner)
        }
        ErrorModel::GilbertElliott { p_good_bad, p_bad_good, ber_good, ber_bad } => {
            // The chances of a clean run that ends in either state, bit by bit.
            let all = p_good_bad + p_bad_good;
            let (mut good, mut bad) = (p_bad_good / all, p_good_bad / all);
            for _ in 0..bits {
                (good, bad) = (good * (1.0 - ber_good), bad * (1.0 - ber_bad));
                (good, bad) =
                    (good * (1.0 - p_good_bad) + bad * p_bad_good, good * p_good_bad + bad * (1.0 - p_bad_good));
            }
            1.0 - good - bad
        }
    }
}

/// How many of the seeds hit each packet.
fn hits(model: ErrorModel, period_bits: u64) -> [u32; PACKETS] {
    let mut hits = [0; PACKETS];
    for seed in 0..SEEDS {
        let mut errors = ErrorSource::from_model(model, period_bits, Seed::from_u64(seed), "line").unwrap();
        for count in &mut hits {
            *count += u32::from(errors.hits(OCTETS));
        }
    }
    hits
}

fn check(model: ErrorModel, period_bits: u64) {
    for (packet, count) in (0..).zip(hits(model, period_bits)) {
        let (first, end) = (packet * PACKET_BITS, (packet + 1) * PACKET_BITS);
        // A packet over the seam has two beginnings that know nothing of each other.
        let seam = end.checked_div(period_bits).map_or(0, |turns| turns * period_bits);
        let before_seam = seam.saturating_sub(first);
        let clean = (1.0 - hit(model, before_seam)) * (1.0 - hit(model, PACKET_BITS - before_seam));
        let (mean, sigma) = (SEEDS as f64 * (1.0 - clean), (SEEDS as f64 * clean * (1.0 - clean)).sqrt());
        let off = (f64::from(count) - mean).abs();
        // Five standard deviations, and one more packet for the smallest counts: the seeds are fixed.
        assert!(off < 5.0 * sigma + 1.0, "{model:?}, packet {packet}: {count} hits of {SEEDS}, expected {mean:.1}");
    }
}

#[test]
fn every_packet_from_the_first_on_is_hit_as_often_as_any() {
    for model in MODELS {
        check(model, 0);
    }
}

#[test]
fn packets_about_a_periods_seam_are_hit_as_often_as_two_beginnings_say() {
    for model in MODELS {
        // Seven packets and a half: the seam lies at the borders of packets and within them.
        check(model, 7 * 12_000 + 6000);
    }
}

#[test]
fn a_channel_that_is_always_bad_begins_so() {
    let model = ErrorModel::GilbertElliott { p_good_bad: 1e-6, p_bad_good: 0.0, ber_good: 0.0, ber_bad: 0.5 };
    let mut errors = ErrorSource::from_model(model, 0, Seed::from_u64(1), "line").unwrap();
    assert!(errors.hits(100));
}

#[test]
fn the_smallest_rates_hit_nothing() {
    for ber in [5e-324, 1e-300] {
        let model = ErrorModel::Clustered { ber, errors_per_burst: 4.0, gap_in_burst: 3.0 };
        let mut errors = ErrorSource::from_model(model, 0, Seed::from_u64(1), "line").unwrap();
        assert!(!errors.hits(1 << 40));
    }
}
