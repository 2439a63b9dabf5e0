//! A gateway between two sides that say whatever comes to their minds: random flags, numbers, options and lengths on both sides, damage, and
//! time (`scps_sim::hostile`).
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Steps at most.
const STEPS: usize = 400;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    // Two octets for a number, as most are small; zero when they are used up.
    let mut draw = |below: u64| {
        let (octets, tail) = rest.split_at(rest.len().min(2));
        rest = tail;
        let number = octets.iter().fold(0u64, |number, octet| number << 8 | u64::from(*octet));
        number % below.max(1)
    };
    // A step takes a dozen numbers or so.
    scps_sim::hostile::drive(&mut draw, (data.len() / 24).min(STEPS));
});
