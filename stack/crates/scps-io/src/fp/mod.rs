//! The file protocol's two transports: the kernel's TCP and SCPS-TP.

mod kernel;
mod tp;

pub use kernel::KernelNet;
pub use tp::TpNet;

/// Seconds since 1970.
fn unix_time() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
