//! When a byte has left a line that sends one after the other.

use scps_wire::Instant;
use std::num::NonZeroU32;

/// A serial line's sender. Instants are computed from the start of a busy run, so that rounding never adds up.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    bits_per_byte: u32,
    baud: Option<NonZeroU32>,
    run_start: Instant,
    run_bytes: u64,
}

impl Pacer {
    /// A line of `baud` bit/s and `bits_per_byte` bits for each byte; without a rate a byte takes no time.
    pub(crate) fn new(baud: Option<NonZeroU32>, bits_per_byte: u32) -> Self {
        Pacer { bits_per_byte, baud, run_start: Instant::ZERO, run_bytes: 0 }
    }

    /// Sends a byte that is there at `at`; returns when its last bit has left. Bytes come in order of time.
    pub(crate) fn send(&mut self, at: Instant) -> Instant {
        if at >= self.free_at() {
            self.run_start = at;
            self.run_bytes = 0;
        }
        self.run_bytes += 1;
        self.free_at()
    }

    fn free_at(&self) -> Instant {
        let Some(baud) = self.baud else { return self.run_start };
        let bit_nanos = u128::from(self.run_bytes) * u128::from(self.bits_per_byte) * 1_000_000_000;
        let nanos = bit_nanos.div_ceil(u128::from(baud.get()));
        Instant::from_nanos(self.run_start.as_nanos().saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}
