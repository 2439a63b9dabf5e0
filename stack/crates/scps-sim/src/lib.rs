//! A deterministic network for tests and benches: hosts that run the engine, routers, links between them, and a clock that jumps.
//!
//! Same seed and same calls give the same packets, so a run can be compared with itself. A link is three stages, as in
//! the lab: serialise and queue, propagate, err (link-model §1).
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod host;
mod link;
mod network;
mod transfer;

pub use host::Host;
pub use link::{Impairment, Link, LinkConfig, LinkStats};
pub use network::{Network, Node, PORT};
pub use transfer::{Outcome, Transfer};
