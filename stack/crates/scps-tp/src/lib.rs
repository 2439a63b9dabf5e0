//! SCPS-TP as a deterministic engine: a function of (state, input, now) without clocks, sockets or threads.
//!
//! # The rule for drivers
//! After each `handle_*` or user call, drain [`Endpoint::poll_transmit`] and [`Endpoint::poll_event`] to `None`, then
//! wait until [`Endpoint::poll_timeout`] or the next input. `now` never goes backwards. Packets that come together may be
//! handed over together before the draining: the number and content of the acknowledgements does not depend on that.
//!
//! ```
//! # use scps_tp::{Config, Endpoint, EndpointConfig, Instant, RouteConfig, Seed, Trust};
//! # let (mut now, local, remote) = (Instant::ZERO, ([10, 0, 0, 1], 0), ([10, 0, 0, 2], 7));
//! let mut endpoint = Endpoint::new(EndpointConfig::default(), RouteConfig::default(), Seed::from_u64(1), now);
//! let id = endpoint.connect(now, local, remote, Config::default())?;
//! let mut packets = Vec::new();
//! for _ in 0..2 {
//!     while endpoint.poll_transmit(now, &mut packets).is_some() { /* give it to the network */ }
//!     while let Some(event) = endpoint.poll_event() { let _ = event; /* react */ }
//!     // Here the driver waits for a packet (`handle_input`) or the timeout, whichever comes first.
//!     now = endpoint.poll_timeout().expect("a SYN is unanswered");
//!     endpoint.handle_timeout(now);
//! }
//! # let _ = (id, Trust::Check);
//! # Ok::<(), scps_tp::ConnectError>(())
//! ```
//!
//! Read next: `endpoint.rs` (what users call), `endpoint/connections.rs` (all connections of a host, and whose turn it is), `table.rs`
//! (finding one), `connection.rs` (what a connection is: `control.rs` and two halves, `outbound.rs` with `path.rs`, `sender.rs`,
//! `scoreboard.rs` and `recovery/state.rs`, and `inbound.rs` with `receiver.rs`), then `input.rs`, `recovery.rs`, `timeouts.rs` and
//! `output.rs`, which act on it; every other file is one concern with its tests. Sources: the docs/protocol/scps-tp.md, cited like
//! `scps-tp §4.4`; RFC 793, 5681, 5961, 6298, 6582, 7323, 8985.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod ack;
mod black_hole;
mod cc;
mod compression;
mod config;
mod connection;
mod control;
mod cookie;
mod drive;
mod endpoint;
mod error;
mod event;
mod fallbacks;
mod identifiers;
mod inbound;
mod input;
mod limits;
mod names;
mod negotiation;
pub mod net;
mod opening;
mod outbound;
mod output;
mod path;
mod path_memory;
mod path_mtu;
mod persist;
mod probing;
#[cfg(feature = "qlog")]
mod qlog;
mod rate;
mod reassembly;
mod receiver;
mod record_ends;
mod recovery;
mod reply;
mod ring;
mod route;
mod routes;
mod rto;
mod rtt;
mod schedule;
mod scoreboard;
mod send_buffer;
mod sender;
mod snack;
mod state;
mod stats;
mod table;
mod timeouts;
mod timer;
mod timestamps;
mod trace;

pub use ack::SegmentBatch;
pub use cc::{
    AckSample, Controller, ControllerFactory, KnownPath, LossSample, Metrics, ResumeConfig, ResumePhase, SentSample,
    Start,
};
pub use config::{
    AckBehaviour, AckConfig, BetsPolicy, Config, Congestion, InitialWindow, LossMeaning, PersistConfig, RouteConfig,
    RtoConfig, SnackPolicy, VegasConfig, VegasDecrease, VegasSlowStart,
};
pub use drive::{drive, MemoryWire, Wire};
pub use endpoint::{Carrier, Endpoint, EndpointConfig, Offload, Transmit, Trust, UnknownSegment};
pub use error::{ConnectError, ListenError, OptionError, RecvError, SendError};
pub use event::{CloseReason, Disposition, DropReason, Event};
pub use names::{ConnectionId, ListenerId, RouteId};
pub use negotiation::Agreed;
#[cfg(feature = "qlog")]
pub use qlog::Qlog;
pub use route::Route;
pub use state::State;
pub use stats::{Progress, Signals, Snapshot, Stats, Totals};
pub use trace::{Cause, TraceEvent, TraceRecord};

pub use scps_wire::{Bitrate, Duration, Instant, Seed, SeqNum};
