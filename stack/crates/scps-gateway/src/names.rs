//! The names of things, which every other file may use.

/// Names a connection through the gateway; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PairId(pub u64);
