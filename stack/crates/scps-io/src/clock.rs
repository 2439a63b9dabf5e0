//! The monotonic clock, as instants of the engine.

use scps_types::Instant;

/// Counts from its creation, plus an arbitrary start so that time zero is not special.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
    origin_unix_ns: i64,
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
        Clock { origin: std::time::Instant::now(), origin_unix_ns }
    }

    /// The start on the system's clock, nanoseconds since 1970.
    pub fn origin_unix_ns(&self) -> i64 {
        self.origin_unix_ns
    }

    /// What the system's clock shows now, nanoseconds since 1970.
    pub(crate) fn unix_ns() -> u64 {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Time since the start.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
