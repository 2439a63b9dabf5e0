//! A gateway between two sides that say whatever comes to their minds ([`scps_sim::hostile`]).

use scps_sim::{cases, hostile};

#[test]
fn whatever_both_sides_say_accounts_close_and_nothing_is_left() {
    cases::for_each("cargo test -p scps-sim --test gateway random", 300, |_, rng| {
        hostile::drive(&mut |below| rng.below(below), 400);
    });
}
