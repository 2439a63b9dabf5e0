//! SCPS-NP, the network protocol, and SCMP, its control messages, as values and state machines without clocks, sockets or
//! threads.
//!
//! | file | one concern |
//! |---|---|
//! | `profile.rs` | the two wire profiles, the dialect of an interface |
//! | `address.rs` | addresses and their forms |
//! | `header.rs` | the header: parse, emit, hop count |
//! | `scmp.rs` | control messages: parse, emit, quotes |
//! | `tables.rs` | the static tables, translation of IPv4 addresses, next hops |
//! | `queue.rs` | the precedence queues of a link |
//! | `router.rs` | a node that forwards; start reading here |
//! | `limits.rs`, `counters.rs` | how often it speaks, what it counts |
//!
//! Sources: docs/protocol/scps-np.md, cited like `scps-np §1.6`. `parse` never panics and never reads outside what it was
//! given.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod address;
mod counters;
mod header;
mod limits;
mod profile;
mod queue;
mod router;
pub mod scmp;
mod tables;

pub use address::{Address, Addresses};
pub use counters::{Counter, Counters, ScmpCounter};
pub use header::{
    set_hop_count, tpid, BadDatagram, BasicQos, Datagram, ExpandedQos, Header, Routing, Timestamp, TooBig,
    DATAGRAM_MAX, HEADER_MAX,
};
pub use profile::{Dialect, FirstOctet, NpProfile};
pub use queue::{DiscardRule, LevelCounters, PrecedenceQueues, QueueConfig};
pub use router::{LinkEvent, Outgoing, Router, RouterConfig, RouterLink, SpRule};
pub use tables::{TableError, TableKind, Tables};
