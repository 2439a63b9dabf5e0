//! Mode 0: no window; flow control and rate control alone limit sending (scps-tp §4.2).

use super::{AckSample, Controller, LossSample, Start};

/// Nothing to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoControl;

impl Controller for NoControl {
    fn window(&self) -> u64 {
        u64::MAX
    }

    fn on_ack(&mut self, _: &AckSample) {}

    fn on_loss(&mut self, _: &LossSample) {}

    fn on_timeout(&mut self, _: &LossSample) {}

    fn restart(&mut self, _: &Start) {}
}
