//! The monotonic clock, as instants of the engine.

use crate::sys;
use scps_wire::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Counts from its creation, plus an arbitrary start so that time zero is not special.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Reading,
    origin_unix_ns: i64,
}

/// An instant of the clock that there is.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// The system's.
    System(std::time::Instant),
    /// That of a kernel with virtual time, nanoseconds. It is read without a system call, which there is a switch of processes.
    Page(u64),
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Self {
        let origin_unix_ns = i64::try_from(Self::unix_ns()).unwrap_or(i64::MAX);
        let origin =
            page().map_or_else(|| Reading::System(std::time::Instant::now()), |page| Reading::Page(look(page)));
        Clock { origin, origin_unix_ns }
    }

    /// The start on the system's clock, nanoseconds since 1970.
    pub fn origin_unix_ns(&self) -> i64 {
        self.origin_unix_ns
    }

    /// What the system's clock shows now, nanoseconds since 1970.
    pub fn unix_ns() -> u64 {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(match self.origin {
            Reading::System(origin) => u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Reading::Page(origin) => page().map_or(0, |page| look(page).saturating_sub(origin)),
        })
    }
}

/// True where a system call is a switch of processes.
pub(crate) fn is_virtual() -> bool {
    page().is_some()
}

fn page() -> Option<&'static AtomicU64> {
    static PAGE: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    *PAGE.get_or_init(sys::clock_page)
}

fn look(page: &AtomicU64) -> u64 {
    page.load(Ordering::Relaxed)
}
