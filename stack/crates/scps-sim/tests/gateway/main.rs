//! Connections through gateways: contents, faults and shares of a link.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod black_hole;
mod chain;
mod faults;
mod random;
mod shares;
mod transfer;
