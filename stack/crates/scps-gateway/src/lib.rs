//! A gateway between two networks (RFC 3135): programs on either side speak their own transport, and every connection is two,
//! joined here. A function of (state, input, now), as `scps-tp` is.
//!
//! # What it promises
//! - **Nothing is lost silently.** Per connection and direction, `received = delivered + buffered + lost` ([`Account`]). Octets are
//!   lost only when a half ends other than by both FINs, and then the other half is reset.
//! - **Memory is bounded.** A connection buffers what its two halves' buffers hold and nothing else: octets are read from one half
//!   only when the other has room, so a slow far side closes the window of the near one. What is remembered of segments is counted with
//!   them, and short segments get no more ([`GatewayConfig::octets_per_connection`]). [`Limits`] bounds how many there are.
//! - **Ends are told.** FIN passes in its direction after all data; RST and time-outs become RST; a far side that refuses is a
//!   refusal near ([`SetUp`]).
//!
//! # The rule for drivers
//! After each `handle_*` call, drain [`Gateway::poll_transmit`] of both sides until neither gives a packet, and
//! [`Gateway::poll_report`]; then wait until [`Gateway::poll_timeout`] or the next packet. Packets that [`Gateway::handle_input`]
//! gives back ([`Fate::Pass`]) are to be forwarded to the other side as they are.
//!
//! Read next: `config.rs`, `gateway.rs` (who gets an event), `pair.rs` (what a connection is), `account.rs`.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod account;
mod bypass;
mod clients;
mod config;
mod gateway;
mod names;
mod pair;
mod side;

pub use account::{Account, Counters, End, Report};
pub use bypass::Bypass;
pub use config::{ConfigError, Forward, GatewayConfig, Limits, SetUp, SideConfig};
pub use gateway::{Fate, Gateway};
pub use names::PairId;
pub use side::{PerSide, Side};
