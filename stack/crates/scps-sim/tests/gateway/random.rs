//! A gateway between two sides that say whatever comes to their minds ([`scps_sim::hostile`]). `SCPS_SEED=N` runs the one case that a
//! failing run has named, `SCPS_CASES=N` more of them.

use scps_sim::hostile;
use scps_types::{Rng, Seed};

/// A number from the environment.
#[allow(clippy::disallowed_methods, reason = "the variables say what whoever runs the test wants")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn whatever_both_sides_say_accounts_close_and_nothing_is_left() {
    let cases = number("SCPS_CASES").unwrap_or(300);
    let seeds = number("SCPS_SEED").map_or(0..cases, |seed| seed..seed + 1);
    for seed in seeds {
        let mut rng: Rng = Seed::from_u64(seed).stream("hostile");
        let run = std::panic::AssertUnwindSafe(|| hostile::drive(&mut |below| rng.below(below), 400));
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("this case again: SCPS_SEED={seed} cargo test -p scps-sim --test gateway random");
            std::panic::resume_unwind(panic);
        }
    }
}
