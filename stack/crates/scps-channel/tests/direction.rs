//! What a direction promises: exact rate, exact delay, exactly the vector's errors, nothing lost outside outages.
#![allow(missing_docs)]

use proptest::prelude::*;
use scps_channel::{Direction, ErrorModel, ErrorSource, LineConfig, SGLS_PERIOD_BITS};
use scps_wire::{Duration, Instant, Seed};
use std::num::NonZeroU32;

const T0: Instant = Instant::from_secs(5);

fn line(baud: u32) -> LineConfig {
    LineConfig { baud: NonZeroU32::new(baud), ..LineConfig::default() }
}

/// Runs a direction until it is empty; the bytes with the instants at which they were handed on.
fn run(direction: &mut Direction) -> Vec<(Instant, Vec<u8>)> {
    let mut handed = Vec::new();
    while let Some(at) = direction.deliver_at() {
        let mut out = Vec::new();
        direction.deliver(at, &mut out);
        handed.push((at, out));
    }
    handed
}

fn stream(handed: &[(Instant, Vec<u8>)]) -> Vec<u8> {
    handed.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
}

#[test]
fn a_full_second_of_bytes_takes_a_second_at_every_rate() {
    for baud in [2400u32, 9600, 19200, 57600, 115_200, 7] {
        for bits in [8u32, 10, 11] {
            let mut direction = Direction::new(LineConfig { bits_per_byte: bits, ..line(baud) });
            let count = (baud as usize * 100).div_ceil(bits as usize);
            direction.take(T0, &vec![0x55; count]);
            let last = run(&mut direction).last().unwrap().0.since(T0).as_secs_f64();
            let expected = count as f64 * f64::from(bits) / f64::from(baud);
            assert!((last - expected).abs() < 2e-9, "{baud} baud, {bits} bits: {last} s, expected {expected} s");
        }
    }
}

#[test]
fn a_byte_arrives_after_its_time_on_the_line_and_the_delay() {
    let mut direction = Direction::new(LineConfig { delay: Duration::from_millis(1280), ..line(9600) });
    direction.take(T0, b"x");
    assert_eq!(direction.deliver_at(), Some(T0 + Duration::from_nanos(1_041_667) + Duration::from_millis(1280)));
}

#[test]
fn an_idle_line_does_not_save_up_time() {
    let mut direction = Direction::new(line(1000));
    direction.take(T0, b"a");
    run(&mut direction);
    let later = T0 + Duration::from_secs(9);
    direction.take(later, b"bc");
    assert_eq!(run(&mut direction).last().unwrap().0.since(later), Duration::from_millis(20));
}

#[test]
fn no_rate_and_no_delay_pass_bytes_at_once() {
    let mut direction = Direction::new(LineConfig::default());
    direction.take(T0, b"abc");
    assert_eq!(run(&mut direction), vec![(T0, b"abc".to_vec())]);
}

#[test]
fn a_stored_vector_is_xored_byte_by_byte_and_repeated() {
    let vector = [0x00, 0x81, 0x00, 0xff, 0x10];
    let mut direction =
        Direction::new(LineConfig { errors: ErrorSource::from_vector(&vector), ..LineConfig::default() });
    direction.start(T0);
    let sent: Vec<u8> = (0..=255).collect();
    direction.take(T0, &sent);
    let expected: Vec<u8> = sent.iter().zip(vector.iter().cycle()).map(|(a, b)| a ^ b).collect();
    assert_eq!(stream(&run(&mut direction)), expected);
    let errors: u32 = sent.iter().zip(expected).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(direction.counters().bit_errors, u64::from(errors));
}

#[test]
fn before_the_start_nothing_is_wrong_or_out() {
    let outages = vec![(Duration::ZERO, Duration::from_secs(1))];
    let mut direction = Direction::new(LineConfig { errors: ErrorSource::from_vector(&[0xff]), outages, ..line(9600) });
    direction.take(T0, b"before");
    assert_eq!(stream(&run(&mut direction)), b"before");
    let start = T0 + Duration::from_secs(1);
    direction.start(start);
    direction.take(start, b"during");
    direction.take(start + Duration::from_secs(2), b"\x00");
    assert_eq!(stream(&run(&mut direction)), [0xff]);
    let counters = direction.counters();
    assert_eq!((counters.taken_bytes, counters.taken_before_start_bytes, counters.outage_bytes), (13, 6, 6));
}

#[test]
fn a_full_buffer_takes_no_more_until_the_line_has_room() {
    let mut direction = Direction::new(LineConfig { buffer_bytes: 4, delay: Duration::from_secs(3), ..line(10) });
    assert_eq!(direction.room_at(T0), None);
    direction.take(T0, b"abcd");
    assert_eq!(direction.room(T0), 0);
    let room_at = direction.room_at(T0).unwrap();
    assert_eq!(room_at, T0 + Duration::from_secs(1));
    assert_eq!(direction.room(room_at), 1);
}

/// When there is room in a full buffer depends on no grain beyond 256 octets.
#[test]
fn a_sender_is_asked_as_early_with_a_large_grain() {
    let room_at = |grain_bytes, buffer_bytes| {
        let mut direction = Direction::new(LineConfig { buffer_bytes, grain_bytes, ..line(10) });
        direction.take(T0, &vec![0; buffer_bytes]);
        direction.room_at(T0).map(|at| at.since(T0).as_secs())
    };
    assert_eq!([1, 255, 256, 257, 2048].map(|grain| room_at(grain, 4096)), [1, 255, 256, 256, 256].map(Some));
    assert_eq!(room_at(2048, 100), Some(100));
}

#[test]
fn a_group_is_handed_on_when_its_last_byte_is_due() {
    let mut direction = Direction::new(LineConfig { grain_bytes: 4, flush_byte: Some(0x7e), ..line(10) });
    direction.take(T0, b"\x01\x7e\x02\x03\x04\x05\x06");
    let handed = run(&mut direction);
    let times: Vec<u64> = handed.iter().map(|(at, _)| at.since(T0).as_secs()).collect();
    assert_eq!(times, [2, 6, 7]);
    assert_eq!(handed[1].1, [2, 3, 4, 5]);
}

#[test]
fn the_models_keep_their_bit_error_rate() {
    let models = [
        ErrorModel::Independent { ber: 1e-3 },
        ErrorModel::Clustered { ber: 1e-3, errors_per_burst: 4.0, gap_in_burst: 3.0 },
        ErrorModel::GilbertElliott { p_good_bad: 1e-4, p_bad_good: 1e-2, ber_good: 1e-5, ber_bad: 0.1 },
    ];
    for model in models {
        let errors = ErrorSource::from_model(model, 0, Seed::from_u64(3), "test").unwrap();
        let mut direction = Direction::new(LineConfig { errors, ..LineConfig::default() });
        direction.start(T0);
        for _ in 0..1000 {
            direction.take(T0, &[0; 10_000]);
            direction.deliver(T0, &mut Vec::new());
        }
        let found = direction.counters().bit_errors as f64 / 8e7;
        // 80,000 errors: four standard deviations of independent errors are 1.4 %; clusters of 4 and bursts of 10 widen
        // that by the root of twice their size.
        let tolerance = if matches!(model, ErrorModel::Independent { .. }) { 0.015 } else { 0.07 };
        assert!((found / model.mean_ber() - 1.0).abs() < tolerance, "{model:?}: {found}");
    }
}

#[test]
fn a_period_repeats_exactly() {
    let model = ErrorModel::Independent { ber: 1e-4 };
    let mut errors = ErrorSource::from_model(model, SGLS_PERIOD_BITS, Seed::from_u64(1), "a").unwrap();
    let period: Vec<u8> = (0..SGLS_PERIOD_BITS / 8).map(|_| errors.mask()).collect();
    let again: Vec<u8> = (0..SGLS_PERIOD_BITS / 8).map(|_| errors.mask()).collect();
    assert_eq!(period, again);
    assert!(period.iter().any(|&mask| mask != 0));
}

#[test]
fn a_period_of_any_length_takes_no_memory() {
    let model = ErrorModel::Independent { ber: 0.5 };
    for period in [u64::MAX, u64::MAX - 1, 1 << 60] {
        let mut errors = ErrorSource::from_model(model, period, Seed::from_u64(1), "a").unwrap();
        let wrong: u32 = (0..1000).map(|_| errors.mask().count_ones()).sum();
        assert!((3500..4500).contains(&wrong), "{wrong} of 8000 bits");
    }
}

#[test]
fn directions_of_one_seed_are_independent() {
    let source =
        |name| ErrorSource::from_model(ErrorModel::Independent { ber: 1e-2 }, 0, Seed::from_u64(9), name).unwrap();
    let (mut there, mut back) = (source("a-to-b"), source("b-to-a"));
    let n = 1_000_000;
    let both = (0..n).filter(|_| (there.mask() & back.mask()) != 0).count() as f64;
    // Both wrong at the same bit: 8 n BER² = 800, standard deviation 28.
    assert!((both - 800.0).abs() < 4.0 * 28.3, "{both} bits are wrong in both directions");
}

#[test]
fn models_without_errors_for_now_end() {
    let models = [
        ErrorModel::Independent { ber: 0.0 },
        ErrorModel::Clustered { ber: 0.0, errors_per_burst: 4.0, gap_in_burst: 3.0 },
        ErrorModel::GilbertElliott { p_good_bad: 0.1, p_bad_good: 0.1, ber_good: 0.0, ber_bad: 0.0 },
        ErrorModel::GilbertElliott { p_good_bad: 0.0, p_bad_good: 0.1, ber_good: 0.0, ber_bad: 0.5 },
        // Of 10^16 visits of a state, one brings an error.
        ErrorModel::GilbertElliott { p_good_bad: 0.1, p_bad_good: 0.1, ber_good: 1e-17, ber_bad: 1e-17 },
    ];
    for model in models {
        for period in [0, SGLS_PERIOD_BITS] {
            let mut errors = ErrorSource::from_model(model, period, Seed::from_u64(1), "x").unwrap();
            assert!((0..1000).all(|_| errors.mask() == 0), "{model:?}");
        }
    }
    assert!(ErrorSource::from_model(ErrorModel::Independent { ber: 2.0 }, 0, Seed::from_u64(1), "x").is_err());
}

proptest! {
    /// Whatever is sent whenever: order kept, nothing lost, the line's rate never exceeded, the account closes.
    #[test]
    fn bytes_arrive_in_order_at_no_more_than_the_rate(
        writes in prop::collection::vec((0u64..500_000_000, prop::collection::vec(any::<u8>(), 0..200)), 1..20),
        baud in 300u32..200_000, delay_ms in 0u64..5000, grain in 1usize..300, flush in prop::option::of(any::<u8>()),
    ) {
        let config = LineConfig { delay: Duration::from_millis(delay_ms), grain_bytes: grain, flush_byte: flush, ..line(baud) };
        let mut direction = Direction::new(config);
        let (mut now, mut sent, mut handed) = (T0, Vec::new(), Vec::new());
        let byte_time = 10.0 / f64::from(baud);
        for (pause, bytes) in writes {
            let next = now + Duration::from_nanos(pause);
            while let Some(at) = direction.deliver_at().filter(|&at| at <= next) {
                let mut out = Vec::new();
                direction.deliver(at, &mut out);
                handed.push((at, out));
            }
            now = next;
            direction.take(now, &bytes);
            sent.extend(bytes);
        }
        handed.extend(run(&mut direction));
        prop_assert_eq!(stream(&handed), sent.clone());
        let c = direction.counters();
        prop_assert_eq!((c.taken_bytes, c.delivered_bytes, c.outage_bytes), (sent.len() as u64, sent.len() as u64, 0));
        for pair in handed.windows(2) {
            prop_assert!(pair[0].0 <= pair[1].0);
        }
        let mut so_far = 0.0;
        for (at, bytes) in &handed {
            so_far += bytes.len() as f64;
            prop_assert!(at.since(T0).as_secs_f64() + 1e-6 >= so_far * byte_time + delay_ms as f64 / 1e3);
        }
    }

    /// The error count equals the ones of the vector under the bytes, for any vector and any cut into writes.
    #[test]
    fn the_error_count_is_exact(vector in prop::collection::vec(any::<u8>(), 1..64), cuts in prop::collection::vec(0usize..100, 1..20)) {
        let mut direction = Direction::new(LineConfig { errors: ErrorSource::from_vector(&vector), ..LineConfig::default() });
        direction.start(T0);
        let (mut out, mut total) = (Vec::new(), 0);
        for cut in cuts {
            direction.take(T0, &vec![0; cut]);
            direction.deliver(T0, &mut out);
            total += cut;
        }
        let expected: Vec<u8> = vector.iter().copied().cycle().take(total).collect();
        let ones: u64 = expected.iter().map(|b| u64::from(b.count_ones())).sum();
        prop_assert_eq!(out, expected);
        prop_assert_eq!(direction.counters().bit_errors, ones);
    }
}
