//! Cases that are drawn at random, each of which can be run again alone.

use scps_wire::{Rng, Seed};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// A number from the environment.
///
/// # Panics
/// It is no number.
#[allow(clippy::disallowed_methods, reason = "the variables say what whoever runs a test wants")]
#[allow(clippy::expect_used, reason = "a test stops where it is told nonsense")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("SCPS_SEED and SCPS_CASES are numbers"))
}

/// Runs `case` with the seeds from 0 on: with as many as `SCPS_CASES` says, or with the one that `SCPS_SEED` names. Of a case that fails
/// it says how `command` runs that one again.
///
/// # Panics
/// A case did, or one of the variables is no number.
pub fn for_each(command: &str, usual: u64, case: impl Fn(u64, &mut Rng)) {
    let seeds = match number("SCPS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SCPS_CASES").unwrap_or(usual),
    };
    for seed in seeds {
        let mut rng = Seed::from_u64(seed).stream("case");
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(seed, &mut rng))) {
            eprintln!("this case again: SCPS_SEED={seed} {command}");
            resume_unwind(panic);
        }
    }
}
