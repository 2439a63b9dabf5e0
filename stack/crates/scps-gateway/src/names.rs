//! The names of things, which every other file may use.

/// Names a connection through the gateway; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PairId(pub(crate) u64);

impl PairId {
    /// A number for records and logs, which counts connections from 0.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}
