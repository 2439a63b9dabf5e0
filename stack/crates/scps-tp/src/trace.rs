//! What the engine tells about its inside: one record per event, data for analysis, not text for people.

use crate::names::ConnectionId;
use scps_wire::{Duration, Instant};

scps_wire::named! {
    /// Why a segment was sent again.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    #[non_exhaustive]
    pub enum Cause {
        /// The retransmission timer.
        Rto = "rto",
        /// The peer's SNACK.
        Snack = "snack",
        /// SACK or duplicate acknowledgements.
        Dupack = "dupack",
        /// The embargo of an earlier resend passed (persistent retransmission).
        Embargo = "embargo",
        /// A probe for a lost tail.
        TailProbe = "tail_probe",
        /// The second copy of the FY97 defect.
        Double = "double",
        /// A smaller path MTU.
        PathMtu = "path_mtu",
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TraceEvent {
    /// New data or FIN left.
    Sent,
    /// Data left again.
    Resent(Cause),
    /// An acknowledgement came.
    AckReceived,
    /// An acknowledgement left.
    AckSent,
    /// A data segment came.
    DataReceived,
    /// A loss opened a recovery epoch.
    Recovery,
    /// The retransmission timer expired.
    RtoExpired,
    /// A window or outage probe left.
    Probe,
    /// The state changed.
    State(crate::state::State),
}

impl TraceEvent {
    /// The stable name in records.
    pub fn name(self) -> &'static str {
        match self {
            TraceEvent::Sent => "sent",
            TraceEvent::Resent(_) => "resent",
            TraceEvent::AckReceived => "ack_received",
            TraceEvent::AckSent => "ack_sent",
            TraceEvent::DataReceived => "data_received",
            TraceEvent::Recovery => "recovery",
            TraceEvent::RtoExpired => "rto_expired",
            TraceEvent::Probe => "probe",
            TraceEvent::State(_) => "state",
        }
    }
}

/// One event with the state around it. Windows and sizes in octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TraceRecord {
    /// When.
    pub at: Instant,
    /// Which connection.
    pub connection: ConnectionId,
    /// What.
    pub event: TraceEvent,
    /// Stream position concerned, counted from the initial sequence number.
    pub position: u64,
    /// Octets concerned.
    pub len: u32,
    /// Congestion window; `u64::MAX` without congestion control.
    pub cwnd: u64,
    /// Slow-start threshold; `u64::MAX` without congestion control.
    pub ssthresh: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Octets in flight.
    pub flight_size: u64,
    /// Octets of rate credit on the route, if it has a rate.
    pub rate_credit: Option<u64>,
}
