//! Settings of a gateway.

use crate::bypass::Bypass;
use crate::side::Side;
use scps_tp::{Config, EndpointConfig, ListenError, RouteConfig};
use scps_wire::{settings, Duration};
use std::net::{IpAddr, SocketAddr};

settings! {
    /// Settings of one side.
    #[derive(Clone, Debug, Default)]
    pub struct SideConfig {
        /// Network layer, half-open connections, local ports. To be transparent, `addresses` must be empty. With fewer
        /// half-open connections than [`GatewayConfig::opening_max`], SYNs beyond are dropped before anybody makes room
        /// for them.
        pub endpoint: EndpointConfig,
        /// Rate and MTU.
        pub route: RouteConfig,
        /// Transport of the halves on this side. Its buffers are all that a connection buffers here. Without `segments_max`, it follows from
        /// the send buffer.
        pub connection: Config,
        /// Whether SYNs to any address and port are taken (transparent mode). The far side then sees the client's
        /// address.
        pub takes_any: bool,
    }
}

/// What comes first when a connection is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetUp {
    /// The far half: the client's SYN is answered when the server's SYN-ACK has come. A refusal is seen as one.
    ConnectFirst,
    /// The near half: the client may send a far round trip earlier, and learns of a refusal by RST. The only one that
    /// answers floods of SYNs with cookies.
    AcceptFirst,
    /// The near half, with a window of zero until the far half is connected (scps-tp §10.1). The client is connected at
    /// once and sends nothing that a refusal would lose.
    Early,
}

/// A port of the gateway that leads to a server, for networks without a route through the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward {
    /// Where clients are.
    pub side: Side,
    /// The address and port they connect to.
    pub listen: SocketAddr,
    /// The gateway's own address on the server's side.
    pub from: IpAddr,
    /// The server.
    pub to: SocketAddr,
}

/// Octets of data in a segment that memory is reckoned with: full ones of the least MTU that every path takes have 524.
const SEGMENT_LEAST: usize = 512;
/// Segments beyond these, for the short ones of a dialogue.
const SEGMENTS_SLACK: usize = 64;

settings! {
    /// What a gateway keeps at most.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Limits {
        /// Connections at a time; more are reset. Three quarters of them may be those that are not set up; when there
        /// are more, the client that has most of these loses its oldest. When all places are taken, the client that has most
        /// connections loses the one that was idle longest, to a client with fewer: one that was idle for a minute, or any if
        /// it has three quarters of all places.
        pub connections: usize,
        /// Octets of memory that all connections take if their buffers are full ([`GatewayConfig::octets_per_connection`]). A
        /// connection that could exceed it is reset, so those that exist never have to share.
        pub buffered: usize,
        /// How long the far side may take to answer; twelve round trips if that is longer, where a side's is known, for then
        /// two lost SYNs have been sent again.
        pub set_up: Duration,
    }
}

impl Default for Limits {
    fn default() -> Self {
        // Linux gives a SYN up after 127 s (tcp_syn_retries of 6).
        Limits { connections: 1024, buffered: 1 << 30, set_up: Duration::from_secs(127) }
    }
}

settings! {
    /// Settings of a gateway.
    #[derive(Clone, Debug)]
    pub struct GatewayConfig {
        /// The local network.
        pub lan: SideConfig,
        /// The space link.
        pub wan: SideConfig,
        /// What comes first.
        pub set_up: SetUp,
        /// Whether segments in the middle of connections that the gateway does not know pass, such as those that are
        /// older than it or take another way back. Otherwise they are reset.
        pub passes_unknown: bool,
        /// Ports that lead to servers.
        pub forwards: Vec<Forward>,
        /// Connections that are not split.
        pub bypasses: Vec<Bypass>,
        /// What is kept at most.
        pub limits: Limits,
    }
}

/// Why settings are of no use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The best-effort service skips octets, which a gateway must not.
    #[error("{0:?}: bets is set; a gateway loses nothing silently, so unset it")]
    Bets(Side),
    /// Transparent means any address.
    #[error("{0:?}: takes_any is set and addresses are given; leave one of them out")]
    AnyOfSome(Side),
    /// Port 0 is no port.
    #[error("forward of {0}: a port is 0; expected 1 to 65535")]
    PortZero(SocketAddr),
    /// Any address is no address: no packet has it.
    #[error("forward of {0}: an address is 0.0.0.0; expected the gateway's own ones, and the server's")]
    NoAddress(SocketAddr),
    /// Nobody can connect there.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A server that no packet of today reaches.
    #[error(
        "forward of {0}: expected an IPv4 server, and an IPv4 address of the gateway, for IPv6 is not carried yet"
    )]
    Ipv6(SocketAddr),
    /// Two ports that are one.
    #[error("forward of {0}: given twice; leave one out")]
    Twice(SocketAddr),
    /// Nobody could connect.
    #[error("no side takes connections: set takes_any or give a forward")]
    Closed,
    /// Not even one connection fits.
    #[error("limits allow no connection: connections is {connections}, buffered {buffered} octets; a connection takes up to {needed}")]
    TooTight {
        /// The limit of connections.
        connections: usize,
        /// The limit of octets.
        buffered: usize,
        /// Octets of memory of one connection.
        needed: usize,
    },
}

impl GatewayConfig {
    /// A gateway between two sides. One that takes connections has `takes_any` or a forward.
    pub fn new(lan: SideConfig, wan: SideConfig, set_up: SetUp) -> Self {
        let (forwards, limits) = (Vec::new(), Limits::default());
        GatewayConfig { lan, wan, set_up, passes_unknown: false, forwards, bypasses: Vec::new(), limits }
    }

    /// A transparent gateway for connections from either side.
    pub fn transparent(lan: SideConfig, wan: SideConfig, set_up: SetUp) -> Self {
        GatewayConfig::new(lan.takes_any(true), wan.takes_any(true), set_up)
    }

    /// Settings of a side.
    pub fn side(&self, side: Side) -> &SideConfig {
        match side {
            Side::Lan => &self.lan,
            Side::Wan => &self.wan,
        }
    }

    /// Settings of the halves on a side. Unless they say otherwise, as many segments may be under way as fill the send buffer by
    /// [`SEGMENT_LEAST`] octets each: a peer with shorter ones gets less under way, and takes no more memory than another.
    pub(crate) fn half(&self, side: Side) -> Config {
        let connection = self.side(side).connection.clone();
        let segments = connection.segments_max.unwrap_or(connection.send_buffer / SEGMENT_LEAST + SEGMENTS_SLACK);
        connection.segments_max(Some(segments))
    }

    /// Octets of memory that a connection takes at most: its four buffers, and what is remembered of the segments in them.
    pub fn octets_per_connection(&self) -> usize {
        Side::BOTH.iter().map(|side| self.half(*side).memory_max()).fold(0, usize::saturating_add)
    }

    /// How long the far side may take to answer over the ways that the routes say.
    pub fn set_up_max(&self) -> Duration {
        let routes = Side::BOTH.map(|side| self.side(side).route);
        let patience = |route: RouteConfig| route.rtt.map_or(route.initial_rto * 4, |rtt| rtt * 12);
        routes.into_iter().map(patience).fold(self.limits.set_up, Duration::max)
    }

    /// Connections at a time that both limits allow.
    pub fn connections_max(&self) -> usize {
        self.limits.connections.min(self.limits.buffered / self.octets_per_connection())
    }

    /// Of these, connections whose ends are not both connected: nobody's SYNs alone take all places.
    pub fn opening_max(&self) -> usize {
        let most = self.connections_max();
        most - most / 4
    }

    /// Finds settings of no use.
    pub fn check(&self) -> Result<(), ConfigError> {
        for side in Side::BOTH {
            let config = self.side(side);
            if config.connection.bets {
                return Err(ConfigError::Bets(side));
            }
            if config.takes_any && !config.endpoint.addresses.is_empty() {
                return Err(ConfigError::AnyOfSome(side));
            }
        }
        for (i, forward) in self.forwards.iter().enumerate() {
            if forward.to.is_ipv6() || forward.from.is_ipv6() {
                return Err(ConfigError::Ipv6(forward.listen));
            }
            if forward.listen.port() == 0 || forward.to.port() == 0 {
                return Err(ConfigError::PortZero(forward.listen));
            }
            if [forward.listen.ip(), forward.to.ip(), forward.from].iter().any(IpAddr::is_unspecified) {
                return Err(ConfigError::NoAddress(forward.listen));
            }
            if self.forwards[..i].iter().any(|f| f.side == forward.side && f.listen == forward.listen) {
                return Err(ConfigError::Twice(forward.listen));
            }
        }
        if self.forwards.is_empty() && !self.lan.takes_any && !self.wan.takes_any {
            return Err(ConfigError::Closed);
        }
        if self.connections_max() == 0 {
            let Limits { connections, buffered, .. } = self.limits;
            return Err(ConfigError::TooTight { connections, buffered, needed: self.octets_per_connection() });
        }
        Ok(())
    }
}
