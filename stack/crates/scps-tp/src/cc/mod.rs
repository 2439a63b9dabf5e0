//! Congestion control: the window, by one of a closed set of policies.
//!
//! Bookkeeping common to all (what is in flight, recovery epochs, rounds) is the connection's; a policy only moves its
//! window. A policy file holds state and rules and nothing else; a new one is a file and an arm in [`Controller`].

mod none;
mod vegas;
mod vj;

use crate::config::{Config, Congestion, InitialWindow};
use none::NoControl;
use scps_types::Duration;
use vegas::Vegas;
use vj::Vj;

/// What an acknowledgement of new data tells a policy. Octets throughout.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Newly known to have arrived.
    pub octets: u64,
    /// Largest data per segment.
    pub mss: u64,
    /// Valid round-trip sample, if this acknowledgement gave one.
    pub rtt: Option<Duration>,
    /// A transmission made after the last round ended has now arrived.
    pub round_ended: bool,
    /// The window, not the data or the peer, limited sending since the last acknowledgement.
    pub is_cwnd_limited: bool,
    /// A recovery epoch is open.
    pub is_recovering: bool,
}

/// The policy in force.
#[derive(Clone, Debug)]
pub enum Controller {
    /// Flow control and rate control only.
    None(NoControl),
    /// Van Jacobson.
    Vj(Vj),
    /// Vegas.
    Vegas(Vegas),
}

/// ssthresh before any loss with a send buffer above 65,536 octets (scps-tp §4.2).
const SSTHRESH_INITIAL: u64 = 1 << 30;

impl Controller {
    /// The configured policy with its first window.
    pub fn new(config: &Config, mss: u64) -> Self {
        let window = match config.initial_window {
            // min(4M, max(2M, 4380)): scps-tp §4.2, RFC 3390 (1).
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            InitialWindow::Segments(n) => u64::from(n.max(1)) * mss,
        };
        let ssthresh = if config.send_buffer > 65_536 { SSTHRESH_INITIAL } else { 65_536 };
        match config.congestion {
            Congestion::None => Controller::None(NoControl),
            Congestion::Vj => Controller::Vj(Vj::new(window, ssthresh, config.byte_counting)),
            Congestion::Vegas(v) => Controller::Vegas(Vegas::new(v, window, ssthresh, mss)),
        }
    }

    /// Octets that may be in flight.
    pub fn cwnd(&self) -> u64 {
        match self {
            Controller::None(_) => u64::MAX,
            Controller::Vj(c) => c.cwnd(),
            Controller::Vegas(c) => c.cwnd(),
        }
    }

    /// Where slow start ends.
    pub fn ssthresh(&self) -> u64 {
        match self {
            Controller::None(_) => u64::MAX,
            Controller::Vj(c) => c.ssthresh(),
            Controller::Vegas(c) => c.ssthresh(),
        }
    }

    /// New data was acknowledged.
    pub fn on_ack(&mut self, sample: &AckSample) {
        match self {
            Controller::None(_) => {}
            Controller::Vj(c) => c.on_ack(sample),
            Controller::Vegas(c) => c.on_ack(sample),
        }
    }

    /// A loss opened a recovery epoch. `is_congestion` is the route's interpretation; VJ does not ask (scps-tp §4.6).
    pub fn on_loss(&mut self, is_congestion: bool, rwnd: u64, mss: u64) {
        match self {
            Controller::Vj(c) => c.on_loss(rwnd, mss),
            Controller::Vegas(c) if is_congestion => c.on_loss(mss),
            Controller::None(_) | Controller::Vegas(_) => {}
        }
    }

    /// The retransmission timer expired.
    pub fn on_rto(&mut self, is_congestion: bool, mss: u64) {
        match self {
            Controller::Vj(c) => c.on_rto(mss),
            Controller::Vegas(c) if is_congestion => c.on_rto(mss),
            Controller::None(_) | Controller::Vegas(_) => {}
        }
    }

    /// The network asked this connection to slow down (scps-tp §4.6: W = 1 MSS, ssthresh = 2 MSS).
    pub fn on_source_quench(&mut self, mss: u64) {
        match self {
            Controller::None(_) => {}
            Controller::Vj(c) => c.on_source_quench(mss),
            Controller::Vegas(c) => c.on_source_quench(mss),
        }
    }

    /// The path may have changed (scps-tp §6.8).
    pub fn forget_base_rtt(&mut self) {
        if let Controller::Vegas(c) = self {
            c.forget_base_rtt();
        }
    }
}
