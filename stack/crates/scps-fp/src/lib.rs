//! The SCPS file protocol (CCSDS 717.0-B, as docs/protocol/scps-fp.md describes it): FTP with record read and update, integrity
//! check, suppressed replies, interrupt, and restart, by hand or by itself.
//!
//! Nothing here opens a socket or reads a clock: [`net::Net`] is what the sessions see of the world, so that the same
//! code runs over kernel TCP, over SCPS-TP, and in a test whose time is a number. Files are real: a server's through
//! [`store::Store`], which cannot leave its root.
//!
//! Octets from the network: [`line`], [`command`], [`reply`], [`address`], [`update`], [`diff`],
//! [`ranges`]. Files: [`store`],
//! [`partial`], [`private`],
//! [`quota`], [`outgoing`], [`ascii`], [`crc`]. Sessions: [`server`], [`client`], with [`restart`] deciding whether
//! and when a broken transfer is tried again.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod address;
pub mod ascii;
pub mod client;
pub mod command;
pub mod config;
pub mod crc;
pub mod diff;
pub mod error;
pub mod line;
pub mod listing;
pub mod net;
pub mod outgoing;
pub mod partial;
pub mod private;
pub mod quota;
pub mod ranges;
pub mod reply;
pub mod restart;
pub mod search;
pub mod server;
pub mod store;
pub mod update;
pub mod users;
