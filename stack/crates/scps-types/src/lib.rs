//! Values every SCPS crate speaks in: time, sequence numbers, bit rates, seeds, and what protects a packet.
//!
//! Nothing here reads a clock or a source of entropy; constructing any of these in a test is a literal.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod bitrate;
mod instant;
mod precedence;
mod seed;
mod seq;
mod services;
mod settings;

pub use bitrate::{Bitrate, ParseBitrateError};
pub use core::time::Duration;
pub use instant::Instant;
pub use precedence::Precedence;
pub use seed::{Rng, Seed};
pub use seq::SeqNum;
pub use services::{Room, Services};
