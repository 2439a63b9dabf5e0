//! Counters of a connection, for results and tests.

use crate::cc::ResumePhase;
use crate::trace::Cause;
use scps_wire::{Bitrate, Duration, Instant};

/// What a connection did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Segments sent, of every kind.
    pub segments_sent: u64,
    /// Segments received that belonged to the connection.
    pub segments_received: u64,
    /// Data segments sent, first transmissions only.
    pub data_segments_sent: u64,
    /// Resends by cause, indexed as [`Cause::ALL`].
    pub resends: [u64; Cause::ALL.len()],
    /// Resends whose first copy had arrived after all, as far as the sender can tell.
    pub superfluous_resends: u64,
    /// Expiries of the retransmission timer.
    pub rtos: u64,
    /// Octets of data received and kept.
    pub octets_received: u64,
    /// Data segments that brought nothing new.
    pub duplicate_segments: u64,
    /// Data segments that arrived out of order.
    pub out_of_order_segments: u64,
    /// SNACKs sent.
    pub snacks_sent: u64,
    /// SNACKs received.
    pub snacks_received: u64,
    /// Acknowledgements without data sent.
    pub pure_acks_sent: u64,
    /// Window, outage and keep-alive probes sent.
    pub probes_sent: u64,
    /// Segments that the network layer refused, because neither it nor the route carries so much.
    pub too_big: u64,
    /// Segments that did not leave because they could not be protected as demanded.
    pub unprotected: u64,
    /// Packets that left with a compressed header.
    pub compressed_sent: u64,
    /// When the first data segment came.
    pub first_data_at: Option<Instant>,
    /// When the last acknowledgement of new data or FIN left.
    pub last_data_ack_at: Option<Instant>,
    /// When the last new data came.
    pub last_data_at: Option<Instant>,
    /// When the connection was asked for or its SYN came.
    pub opened_at: Option<Instant>,
    /// When it became established.
    pub established_at: Option<Instant>,
    /// When our FIN was acknowledged.
    pub flushed_at: Option<Instant>,
}

/// What all connections of an endpoint did together, those that are gone included.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Totals {
    /// Expiries of the retransmission timer.
    pub rtos: u64,
    /// Resends of every cause.
    pub resends: u64,
    /// Resends whose first copy had arrived after all, as far as the senders can tell.
    pub superfluous_resends: u64,
}

/// What routers told the connections of an endpoint, as far as it was heeded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Signals {
    /// Queues that are too long (source quench).
    pub congestion: u64,
    /// Damage on a link of the way.
    pub corruption: u64,
    /// A link of the way that is down.
    pub outage: u64,
    /// Paths that nobody said anything of, and that drop long packets, and the MTU of the last one.
    pub black_holes: (u64, u16),
}

impl Totals {
    pub(crate) fn add(&mut self, stats: &Stats) {
        self.rtos += stats.rtos;
        self.resends += stats.resends_total();
        self.superfluous_resends += stats.superfluous_resends;
    }
}

impl Stats {
    /// Resends of every cause.
    pub fn resends_total(&self) -> u64 {
        self.resends.iter().sum()
    }

    pub(crate) fn count_resend(&mut self, cause: Cause) {
        self.resends[cause as usize] += 1;
    }

    /// Resends of one cause.
    pub fn resends_by(&self, cause: Cause) -> u64 {
        self.resends[cause as usize]
    }
}

/// How far the data of a connection came. Octets since its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Taken from the user.
    pub taken: u64,
    /// Of these, acknowledged by the peer.
    pub delivered: u64,
    /// Received in order.
    pub received: u64,
    /// Of these, acknowledged to the peer.
    pub acknowledged: u64,
    /// Received in order and not read yet.
    pub readable: u64,
}

/// Windows and times of a connection. Octets; `u64::MAX` for windows without congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// At which rate congestion control lets new data leave, if not at once.
    pub pace: Option<Bitrate>,
    /// Where it stands with Careful Resume, if it has that.
    pub resume: Option<ResumePhase>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Least round-trip time.
    pub rtt_min: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Octets in flight.
    pub flight_size: u64,
    /// Octets taken from the user and not acknowledged yet, sent or not.
    pub unacknowledged: u64,
    /// Octets taken from the user and never sent.
    pub unsent: u64,
}
