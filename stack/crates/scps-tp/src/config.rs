//! Settings of connections and routes. Defaults are those of scps-tp §9 unless a line says otherwise.
//!
//! Profiles name their source. Nothing here validates: the types cannot hold nonsense, and limits are clamped where
//! used.

use crate::cc::{ControllerFactory, ResumeConfig};
use crate::connection::Connection;
use crate::negotiation::window_shift;
use crate::net::Services;
use crate::reassembly::Reassembly;
use crate::route::MSS_MIN;
use crate::scoreboard::SEGMENT_COST;
use scps_wire::scps::BindingSpace;
use scps_wire::{settings, Bitrate, Duration, Precedence, SeqNum};
use std::sync::Arc;

settings! {
    /// Settings of one connection.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// Send option 20 and use what both sides agree on; false is a plain TCP (scps-tp §1.3, TCPONLY).
        pub scps: bool,
        /// Offer short-form SNACK (scps-tp §2.4).
        pub snack: bool,
        /// Offer long-form SNACK beside it (scps-tp §2.4.3; layout is an open point, scps-tp §15 item 1).
        pub snack_long: bool,
        /// Offer RFC 2018 SACK (scps-tp §2.10 recommends offering it with SNACK).
        pub sack: bool,
        /// Offer the best-effort service (scps-tp §7.1).
        pub bets: bool,
        /// Offer header compression (scps-tp §3).
        pub compression: bool,
        /// Offer RFC 7323 timestamps (scps-tp §2.9).
        pub timestamps: bool,
        /// Offer window scaling (scps-tp §2.8).
        pub window_scaling: bool,
        /// Precedence of its packets, where the network layer carries one; `None` for the layer's default, or on a
        /// listener for that of the SYN (scps-np §7).
        pub precedence: Option<Precedence>,
        /// Differentiated-services code point of its packets, 0 to 63; a listener's connections have that of the SYN
        /// unless one is set.
        pub dscp: u8,
        /// A connection that a listener accepts begins with a closed window, until [`crate::Endpoint::open_window`].
        pub holds_window: bool,
        /// Security services demanded of SP, beyond what the association gives in any case (scps-sp §4.2).
        pub services: Services,
        /// Binding spaces sent in an extended capability option (scps-tp §2.3).
        pub binding_spaces: Vec<BindingSpace>,
        /// Octets of data waiting or unacknowledged (scps-tp §8).
        pub send_buffer: usize,
        /// Segments under way at most, each of which takes some 130 octets beside its data; `None` for as many as the send buffer has
        /// data for. It bounds what a peer with a small MSS makes a connection remember.
        pub segments_max: Option<usize>,
        /// Octets of received data, in order or not (scps-tp §8).
        pub receive_buffer: usize,
        /// Upper bound for data plus options per segment, below what the route's MTU allows.
        pub mss: Option<u16>,
        /// A segment that times out again and again, while the peer answers what is short, is taken for too long for its path (RFC 2923
        /// §2.1).
        pub finds_black_holes: bool,
        /// Congestion control (scps-tp §4).
        pub congestion: Congestion,
        /// The user's own congestion control, in place of that.
        pub controller: Option<Arc<dyn ControllerFactory>>,
        /// Begin with half of what the path took before (RFC 9959, Careful Resume), if there is congestion control; `None` for never.
        pub careful_resume: Option<ResumeConfig>,
        /// First congestion window (scps-tp §4.2).
        pub initial_window: InitialWindow,
        /// VJ grows by octets acknowledged (RFC 3465) rather than by at most one segment per acknowledgement (RFC 5681
        /// (2)).
        pub byte_counting: bool,
        /// The first two duplicate acknowledgements let a new segment leave each (RFC 3042). With SACK that is so in
        /// any case.
        pub limited_transmit: bool,
        /// Send runts at once (scps-tp §6.9).
        pub nodelay: bool,
        /// When to acknowledge (scps-tp §6.1).
        pub ack: AckConfig,
        /// How SNACKs are sent and answered.
        pub snack_policy: SnackPolicy,
        /// Retransmission timer (scps-tp §6.3, §6.4).
        pub rto: RtoConfig,
        /// Zero-window and outage probes (scps-tp §6.6).
        pub persist: PersistConfig,
        /// Keep-alives: first after this, then every second value (scps-tp §6.7); `None` for none.
        pub keepalive: Option<(Duration, Duration)>,
        /// Keep-alives are questions, which the peer must answer, and leave only if nothing was heard meanwhile; one
        /// without an answer is asked again with back-off. For whoever has to find out that a peer was restarted, over
        /// a link that loses.
        pub keepalive_asks: bool,
        /// How long TIME-WAIT lasts (scps-tp §6.7).
        pub time_wait: Duration,
        /// Best-effort service (scps-tp §7.1).
        pub bets_policy: BetsPolicy,
        /// SYNs with option 20 before one without; `None` never falls back (scps-tp §1.4).
        pub fallback_after_syns: Option<u32>,
        /// Shares of a route's rate among connections of one precedence, by the upper three bits of their code point
        /// (IP precedence, RFC 2474 §4.2.2): one with a share of 2 sends twice what one with 1 does, if both always
        /// have something to send.
        pub shares: [u16; 8],
        /// Most separate pieces kept out of order; more are dropped.
        pub reassembly_pieces_max: usize,
        /// A fixed initial sequence number instead of an unpredictable one, for tests and for peers that mishandle the
        /// wrap (scps-tp §13.1 item 15).
        pub initial_sequence: Option<SeqNum>,
        /// Record events for the trace.
        pub trace: bool,
    }
}

/// Congestion control modes (scps-tp §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Congestion {
    /// Mode 0: flow control and rate control only.
    None,
    /// Mode 1: Van Jacobson's slow start, congestion avoidance and fast recovery.
    Vj,
    /// Mode 2: Vegas.
    Vegas(VegasConfig),
}

impl Congestion {
    /// The stable name, as settings and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Congestion::None => "none",
            Congestion::Vj => "vj",
            Congestion::Vegas(_) => "vegas",
        }
    }
}

settings! {
    /// Vegas thresholds, in segments of queueing (scps-tp §4.4).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct VegasConfig {
        /// Below this many queued segments the window grows.
        pub alpha_segs: u32,
        /// Above this many it shrinks.
        pub beta_segs: u32,
        /// Above this many slow start ends.
        pub gamma_segs: u32,
        /// How often slow start doubles.
        pub slow_start: VegasSlowStart,
        /// How much it shrinks.
        pub decrease: VegasDecrease,
    }
}

/// By how much a Vegas window shrinks in a round trip that has too much in the queue (scps-tp §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum VegasDecrease {
    /// One segment (Brakmo and Peterson 1995; FY97 report, A.2.2, which finds it too slow for large windows).
    Segment,
    /// Half of the segments above beta, and one at least, as the reference does for large windows.
    HalfExcess,
}

impl Default for VegasConfig {
    fn default() -> Self {
        VegasConfig {
            alpha_segs: 3,
            beta_segs: 5,
            gamma_segs: 4,
            slow_start: VegasSlowStart::EveryRtt,
            decrease: VegasDecrease::HalfExcess,
        }
    }
}

/// The two slow-start variants (scps-tp §4.4, setting SS).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VegasSlowStart {
    /// SS 0: double every round trip.
    EveryRtt,
    /// SS 1: one round trip to grow, one to measure; the behaviour of FY97.
    EveryOtherRtt,
}

/// The first congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InitialWindow {
    /// min(4M, max(2M, 4380)) (scps-tp §4.2, RFC 3390).
    Rfc3390,
    /// A number of segments.
    Segments(u32),
}

settings! {
    /// When data is acknowledged (scps-tp §6.1).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AckConfig {
        /// Behaviour 0, 1, 2 or more.
        pub behaviour: AckBehaviour,
        /// Delayed-acknowledgement timer.
        pub delay: Duration,
        /// Least spacing between acknowledgements of in-order data; the reference stores 50 ms but never enforces it,
        /// so the default is not to.
        pub floor: Option<Duration>,
    }
}

/// How often in-order data is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AckBehaviour {
    /// Behaviour 0: by the timer only.
    Delayed,
    /// Behaviours 1 and 2, and any other frequency: every n-th segment, by the timer otherwise.
    EveryNth(u16),
}

settings! {
    /// How SNACKs are sent and answered (scps-tp §2.4.4, §2.4.5).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct SnackPolicy {
        /// How long the sender waits before it answers one; tolerates reordering.
        pub delay: Duration,
        /// Successive acknowledgements that repeat the lowest hole before the next is named.
        pub repeat: u8,
        /// Unanswered resends of a segment before its embargo starts to double.
        pub fast_resends: u8,
        /// The FY97 defect: every segment resent for a SNACK is sent twice (scps-tp §13.1 item 20).
        pub double_retransmission: bool,
    }
}

settings! {
    /// Retransmission timer (scps-tp §6.3, §6.4).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct RtoConfig {
        /// Least value.
        pub min: Duration,
        /// Greatest value, backoff included; 60 s or more gives way to what the round trip asks for, known or measured.
        pub max: Duration,
        /// Least term added to SRTT for variance (scps-tp §6.3: 500 ms).
        pub variance_floor: Duration,
        /// Timeouts of established data before the connection is aborted; under BETS of data that cannot be given up, because
        /// nothing follows it.
        pub retransmissions_max: u32,
        /// Unanswered SYNs before the connection is aborted; SYN-ACKs are repeated five times at most since the SYN came last.
        pub syn_retransmissions_max: u32,
        /// Timeouts of the same data after which the route is taken for unavailable; `None` for never (scps-tp §6.6).
        pub to_persist: Option<u32>,
    }
}

settings! {
    /// Probes of a closed window (scps-tp §6.6).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct PersistConfig {
        /// Greatest interval.
        pub max: Duration,
        /// Unanswered probes before the connection is aborted.
        pub probes_max: u32,
        /// First probe after the route became unavailable (scps-tp §6.8).
        pub outage_first: Duration,
    }
}

settings! {
    /// Best-effort service (scps-tp §7.1).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct BetsPolicy {
        /// Retransmissions of a segment before its octets are given up.
        pub retransmissions_max: u32,
        /// How long a reader waits at a hole before it is skipped: 0x100001 microseconds in the reference.
        pub receive_timeout: Duration,
    }
}

/// Send holes remembered for the query (scps-tp §7.1).
pub const BETS_SEND_HOLES_MAX: usize = 50;

impl Default for AckConfig {
    fn default() -> Self {
        AckConfig { behaviour: AckBehaviour::EveryNth(2), delay: Duration::from_millis(200), floor: None }
    }
}

impl Default for SnackPolicy {
    fn default() -> Self {
        SnackPolicy { delay: Duration::ZERO, repeat: 3, fast_resends: 4, double_retransmission: false }
    }
}

impl Default for RtoConfig {
    fn default() -> Self {
        RtoConfig {
            min: Duration::from_millis(250),
            max: Duration::from_secs(64),
            variance_floor: Duration::from_millis(500),
            retransmissions_max: 32,
            syn_retransmissions_max: 32,
            to_persist: None,
        }
    }
}

impl Default for PersistConfig {
    fn default() -> Self {
        PersistConfig { max: Duration::from_secs(60), probes_max: 32, outage_first: Duration::from_millis(20) }
    }
}

impl Default for BetsPolicy {
    fn default() -> Self {
        BetsPolicy { retransmissions_max: 32, receive_timeout: Duration::from_micros(0x10_0001) }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            scps: true,
            snack: true,
            snack_long: false,
            sack: true,
            bets: false,
            compression: false,
            timestamps: true,
            window_scaling: true,
            precedence: None,
            dscp: 0,
            holds_window: false,
            services: Services::NONE,
            binding_spaces: Vec::new(),
            send_buffer: 32_768,
            segments_max: None,
            receive_buffer: 32_768,
            mss: None,
            finds_black_holes: false,
            congestion: Congestion::Vegas(VegasConfig::default()),
            controller: None,
            careful_resume: None,
            initial_window: InitialWindow::Rfc3390,
            byte_counting: false,
            limited_transmit: true,
            nodelay: false,
            ack: AckConfig::default(),
            snack_policy: SnackPolicy::default(),
            rto: RtoConfig::default(),
            persist: PersistConfig::default(),
            keepalive: Some((Duration::from_secs(1), Duration::from_secs(15 * 60))),
            keepalive_asks: false,
            time_wait: Duration::from_secs(60),
            bets_policy: BetsPolicy::default(),
            fallback_after_syns: Some(3),
            shares: [1; 8],
            reassembly_pieces_max: 4096,
            initial_sequence: None,
            trace: false,
        }
    }
}

impl Config {
    /// Octets of memory that a connection with these settings takes at most, without records of its own, holes whose repair waits, and a
    /// trace.
    pub fn memory_max(&self) -> usize {
        let smallest = usize::from(MSS_MIN) - 12;
        let segments = self.segments_max.unwrap_or(self.send_buffer / smallest + 1);
        let received = self.receive_buffer.saturating_add(1 << window_shift(self.receive_buffer));
        size_of::<Connection>()
            .saturating_add(self.send_buffer.max(1))
            .saturating_add(segments.saturating_mul(SEGMENT_COST))
            .saturating_add(Reassembly::memory_max(received, self.reassembly_pieces_max))
    }

    /// The share of a connection with its code point.
    pub(crate) fn share(&self) -> u16 {
        // RFC 2474 §4.2.2: six bits, of which the upper three are the class.
        self.shares[usize::from(self.dscp >> 3 & 7)]
    }

    /// SCPS-TP without congestion control on its FY97 settings: SNACK only, 400,000-octet buffers, one segment first,
    /// each loss resent twice (apparatus P-03 to P-05), no limited transmit, which is of 2001.
    pub fn fy97_rate() -> Self {
        let mut config = Config {
            sack: false,
            send_buffer: 400_000,
            receive_buffer: 400_000,
            congestion: Congestion::None,
            initial_window: InitialWindow::Segments(1),
            limited_transmit: false,
            ..Config::default()
        };
        config.snack_policy.double_retransmission = true;
        config
    }

    /// SCPS-TP with Vegas as FY97 ran it: slow start doubles every other round trip, and the window shrinks by one segment in one
    /// (apparatus P-01).
    pub fn fy97_vegas() -> Self {
        let (slow_start, decrease) = (VegasSlowStart::EveryOtherRtt, VegasDecrease::Segment);
        let vegas = VegasConfig { slow_start, decrease, ..VegasConfig::default() };
        Config { congestion: Congestion::Vegas(vegas), ..Config::fy97_rate() }
    }

    /// The VJ variant of the NMSU papers: 65,536-octet buffers, three segments first (apparatus §2, JZUS columns).
    pub fn nmsu_vj() -> Self {
        Config {
            sack: false,
            send_buffer: 65_536,
            receive_buffer: 65_536,
            congestion: Congestion::Vj,
            initial_window: InitialWindow::Rfc3390,
            ..Config::default()
        }
    }

    /// The Vegas variant of the NMSU papers.
    pub fn nmsu_vegas() -> Self {
        Config { congestion: Congestion::Vegas(VegasConfig::default()), ..Config::nmsu_vj() }
    }

    /// Everything this stack can do that helps a long lossy path: SACK and long SNACK, 4 MiB buffers, large first
    /// window, quick timers.
    pub fn modern() -> Self {
        let mut config = Config {
            snack_long: true,
            send_buffer: 4 << 20,
            receive_buffer: 4 << 20,
            finds_black_holes: true,
            initial_window: InitialWindow::Segments(10),
            byte_counting: true,
            ..Config::default()
        };
        config.rto.variance_floor = Duration::from_millis(200);
        config.ack.delay = Duration::from_millis(40);
        config
    }
}

settings! {
    /// Settings of a route, shared by its connections.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct RouteConfig {
        /// Token bucket rate; `None` for no rate control (scps-tp §5).
        pub rate: Option<Bitrate>,
        /// Depth of the bucket in ticks and in packets (scps-tp §5: 5).
        pub bucket_factor: u32,
        /// How often credit is given; zero for continuously (scps-tp §5: 10 ms).
        pub tick: Duration,
        /// Largest packet the interface takes; feeds the MSS offered (scps-tp §8).
        pub mtu: u16,
        /// Octets of lower-layer encapsulation subtracted from the MTU (scps-tp §8).
        pub overhead: u16,
        /// Octets that lower layers add to each packet, which take the rate's time as well.
        pub framing: u16,
        /// What a loss means here (scps-tp §4.6).
        pub loss: LossMeaning,
        /// RTO before the first sample (scps-tp §6.3).
        pub initial_rto: Duration,
        /// Round-trip time if it is known beforehand (scps-tp §9.4, RTT).
        pub rtt: Option<Duration>,
        /// Pseudo-header and IP protocol of uncompressed segments (scps-tp §1.2): 6, or 106 for the stand-alone
        /// reference.
        pub protocol: u8,
        /// Whether packets carry the don't-fragment bit (RFC 1191).
        pub dont_fragment: bool,
    }
}

/// What a route's losses are taken for (scps-tp §4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossMeaning {
    /// Queues overflow: slow down.
    Congestion,
    /// Bits are damaged: resend at the same pace.
    Corruption,
}

impl Default for RouteConfig {
    fn default() -> Self {
        RouteConfig {
            rate: Some(Bitrate::from_bps(2_000_000)),
            bucket_factor: 5,
            tick: Duration::from_millis(10),
            mtu: 1500,
            overhead: 0,
            framing: 0,
            loss: LossMeaning::Congestion,
            initial_rto: Duration::from_secs(6),
            rtt: None,
            protocol: scps_wire::protocol::TCP,
            dont_fragment: true,
        }
    }
}

impl RouteConfig {
    /// Twice the bandwidth-delay product, the rule of scps-tp §8 for buffers; `None` without rate and RTT.
    pub fn buffer_for_bdp(&self) -> Option<usize> {
        Some(2 * self.rate?.bytes_in(self.rtt?) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_follow_the_bandwidth_delay_product() {
        // scps-tp §8: 2 Mbit/s * 600 ms = 150,000 octets; twice that is 300,000.
        let route = RouteConfig { rtt: Some(Duration::from_millis(600)), ..RouteConfig::default() };
        assert_eq!(route.buffer_for_bdp(), Some(300_000));
        assert_eq!(RouteConfig::default().buffer_for_bdp(), None);
    }
}
