//! A serial space link as the Space-to-Ground Link Simulator made one (Horan & Wang 2000): each direction takes bytes at
//! its baud rate, XORs them with an error vector, keeps them for a fixed delay and hands them on.
//!
//! Everything is a function of (state, input, now): no clocks, no descriptors. `scps channel` is the driver.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod direction;
mod errors;
mod model;
mod pacer;

pub use direction::{Counters, Direction, LineConfig};
pub use errors::{ErrorSource, SGLS_PERIOD_BITS};
pub use model::{ErrorModel, ModelError};
