//! Mode 0: no window; flow control and rate control alone limit sending (scps-tp §4.2).

/// Nothing to keep.
#[derive(Clone, Copy, Debug)]
pub struct NoControl;
