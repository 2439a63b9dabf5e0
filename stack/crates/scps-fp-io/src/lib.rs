//! The transports of the file protocol ([`scps_fp::net::Net`]): the kernel's TCP and SCPS-TP.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod kernel;
mod tp;

pub use kernel::KernelNet;
pub use tp::TpNet;

/// What a wait says when the program is to end.
fn ended() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "ended by a signal")
}

/// Seconds since 1970.
fn unix_time() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
