//! Congestion control: the window, by one of the policies here or by a user's own ([`Config::controller`](crate::Config::controller)).
//!
//! Bookkeeping common to all (what is in flight, recovery epochs, rounds, transmissions and their numbers) is the connection's; a
//! controller only moves its window. Its file holds state and rules and nothing else. `resume.rs` is Careful Resume around any of them.

mod none;
mod resume;
mod vegas;
mod vj;

pub use resume::{KnownPath, ResumeConfig, ResumePhase};
pub(crate) use resume::{Resume, Saved};

use crate::config::{Config, Congestion, InitialWindow};
use none::NoControl;
use scps_wire::{settings, Bitrate, Duration, Instant};
use std::fmt::Debug;
use std::sync::Arc;
use vegas::Vegas;
use vj::Vj;

settings! {
    /// What a controller begins with. Octets of data.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct Start {
        /// Window.
        pub window: u64,
        /// Where slow start ends.
        pub ssthresh: u64,
        /// Largest data per segment.
        pub mss: u64,
    }

    /// A segment with new data, or several that leave as one, left. Octets of data.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct SentSample {
        /// When.
        pub at: Instant,
        /// Sent.
        pub octets: u64,
        /// Largest data per segment.
        pub mss: u64,
        /// Under way, these included.
        pub in_flight: u64,
        /// The number of the transmission. Every transmission of a segment has one, resends too; they count from 0, as packets of QUIC do.
        pub number: u64,
    }

    /// An acknowledgement told of something that arrived. Octets of data.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct AckSample {
        /// When.
        pub at: Instant,
        /// Newly known to have arrived.
        pub octets: u64,
        /// Largest data per segment.
        pub mss: u64,
        /// Under way still.
        pub in_flight: u64,
        /// The latest transmission that is known to have arrived.
        pub delivered: Option<u64>,
        /// The number that the next transmission gets.
        pub next: u64,
        /// Valid round-trip sample, if this acknowledgement gave one.
        pub rtt: Option<Duration>,
        /// The least round trip since the path last changed.
        pub rtt_min: Option<Duration>,
        /// A transmission made after the last round ended has now arrived.
        pub round_ended: bool,
        /// The window, not the data or the peer, limited sending since the last acknowledgement.
        pub is_cwnd_limited: bool,
        /// A recovery epoch is open.
        pub is_recovering: bool,
    }

    /// Losses opened a recovery epoch, or the retransmission timer expired. Octets of data.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct LossSample {
        /// When.
        pub at: Instant,
        /// What losses on the route mean (scps-tp §4.6): false for damage.
        pub is_congestion: bool,
        /// The peer's window.
        pub rwnd: u64,
        /// Largest data per segment.
        pub mss: u64,
        /// Under way still, without what was lost.
        pub in_flight: u64,
        /// The number that the next transmission gets.
        pub next: u64,
    }

    /// What a controller tells of itself.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct Metrics {
        /// Octets that may be under way; `u64::MAX` for any number.
        pub window: u64,
        /// Where slow start ends; `u64::MAX` for nowhere.
        pub ssthresh: u64,
        /// At which rate new data leaves, if not at once.
        pub pace: Option<Bitrate>,
    }
}

/// A congestion controller.
///
/// Of the events of one acknowledgement, losses come before [`Controller::on_ack`], so a window that a loss lowered is what grows.
pub trait Controller: Debug + Send {
    /// Octets that may be under way; `u64::MAX` for any number.
    fn window(&self) -> u64;

    /// Where slow start ends; `u64::MAX` for nowhere.
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }

    /// At which rate data leaves, headers not counted; `None` for as soon as the window takes it.
    fn pace(&self) -> Option<Bitrate> {
        None
    }

    /// New data left.
    fn on_sent(&mut self, _sent: &SentSample) {}

    /// Data was acknowledged.
    fn on_ack(&mut self, ack: &AckSample);

    /// A loss opened a recovery epoch. No other of the same window is told.
    fn on_loss(&mut self, loss: &LossSample);

    /// The retransmission timer expired.
    fn on_timeout(&mut self, loss: &LossSample);

    /// The network asked this connection to slow down (scps-tp §4.6: W = 1 MSS, ssthresh = 2 MSS).
    fn on_source_quench(&mut self, mss: u64) {
        self.restart(&Start { window: mss, ssthresh: 2 * mss, mss });
    }

    /// The path may have changed, and with it its least round trip (scps-tp §6.8).
    fn on_path_change(&mut self) {}

    /// Begins again with these values, in slow start if the window is below the threshold.
    fn restart(&mut self, start: &Start);

    /// What it tells of itself.
    fn metrics(&self) -> Metrics {
        Metrics { window: self.window(), ssthresh: self.ssthresh(), pace: self.pace() }
    }
}

/// Makes the controller of each connection.
pub trait ControllerFactory: Debug + Send + Sync {
    /// Its stable name, for records.
    fn name(&self) -> &'static str;

    /// A controller that begins with these values.
    fn build(&self, start: &Start) -> Box<dyn Controller>;
}

/// ssthresh before any loss with a send buffer above 65,536 octets (scps-tp §4.2).
const SSTHRESH_INITIAL: u64 = 1 << 30;

/// What the settings say to begin with.
pub(crate) fn start_of(config: &Config, mss: u64) -> Start {
    let window = match config.initial_window {
        // min(4M, max(2M, 4380)): scps-tp §4.2, RFC 3390 (1).
        InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
        InitialWindow::Segments(n) => u64::from(n.max(1)) * mss,
    };
    let ssthresh = if config.send_buffer > 65_536 { SSTHRESH_INITIAL } else { 65_536 };
    Start { window, ssthresh, mss }
}

/// The controller of the settings.
pub(crate) fn controller(config: &Config, start: &Start) -> Box<dyn Controller> {
    let own: Option<&Arc<dyn ControllerFactory>> = config.controller.as_ref();
    match (own, config.congestion) {
        (Some(factory), _) => factory.build(start),
        (None, Congestion::None) => Box::new(NoControl),
        (None, Congestion::Vj) => Box::new(Vj::new(start, config.byte_counting)),
        (None, Congestion::Vegas(vegas)) => Box::new(Vegas::new(vegas, start)),
    }
}
