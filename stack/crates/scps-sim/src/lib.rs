//! A deterministic network for tests and benches: hosts that run the engine, routers, gateways and links, each of them a [`Node`], and a
//! clock that jumps. A test is a list of nodes ([`Network::chain`]).
//!
//! Same seed and same calls give the same packets, so a run can be compared with itself. A link is three stages, as in
//! the lab: serialise and queue, propagate, err (link-model §1).
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod cases;
mod gateway;
mod host;
pub mod hostile;
mod link;
mod network;
mod node;
mod program;
mod router;
mod transfer;

pub use gateway::GatewayNode;
pub use host::Host;
pub use link::{Impairment, Link, LinkConfig, LinkStats, Way};
pub use network::{Captured, Network, ENDS, LINK, PORT};
pub use node::{At, Node, Place};
pub use program::Program;
pub use router::RouterNode;
pub use transfer::{Outcome, Transfer};
