//! What the kernel refuses of a gateway's packets to the far side, told on standard error.

use crate::operator::{Level, Operator};
use scps_gateway::Side;
use scps_io::GatewayLoop;
use scps_tp::RouteId;
use scps_types::{Duration, Instant};

/// Refused packets are told no more often.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// What was told of the link.
pub struct Link {
    mtu: u16,
    refused: u64,
    tell_at: Instant,
    knows_ipv6: bool,
}

impl Link {
    /// A link of which nothing was told yet.
    pub fn new(gateway: &GatewayLoop) -> Self {
        Link { mtu: mtu(gateway), refused: 0, tell_at: Instant::ZERO, knows_ipv6: false }
    }

    /// Looks after each turn of the loop.
    pub fn follow(&mut self, gateway: &GatewayLoop, operator: &Operator) {
        let (now, mtu, refused) = (gateway.now(), mtu(gateway), gateway.device_stats(Side::Wan).refused);
        if mtu < self.mtu {
            let text = format!(
                "the way to the far side takes packets of {mtu} octets, not {}: segments are shorter from now on. Set \"mtu\": {mtu} in \"transport\" of \"wan\".",
                self.mtu
            );
            operator.tell(Level::Warn, text);
        }
        self.mtu = mtu;
        if !self.knows_ipv6 && gateway.passed(Side::Lan).ipv6 > 0 {
            self.knows_ipv6 = true;
            operator.tell(
                Level::Warn,
                "IPv6 packets come from the LAN and are dropped: only IPv4 is carried. Route IPv6 another way.",
            );
        }
        if refused > self.refused && now >= self.tell_at {
            let count = refused - self.refused;
            operator.tell(
                Level::Warn,
                format_args!("{count} packets to the far side were refused by the kernel: no route, an interface that is down, or a firewall."),
            );
            (self.refused, self.tell_at) = (refused, now + TELL_EVERY);
        }
    }
}

fn mtu(gateway: &GatewayLoop) -> u16 {
    gateway.gateway().endpoint(Side::Wan).route(RouteId::default()).map_or(0, |route| route.config().mtu)
}
