//! What the kernel refuses of a gateway's packets to the far side, told on standard error.

use crate::operator::{Level, Operator};
use scps_gateway::Side;
use scps_io::GatewayLoop;
use scps_tp::RouteId;
use scps_wire::{Duration, Instant};
use serde_json::{json, Value};

/// Refused packets are told no more often.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Least time that a share and a rate are of.
const WINDOW: Duration = Duration::from_secs(10);

/// What was told of the link.
pub struct Link {
    mtu: u16,
    black_holes: u64,
    refused: u64,
    tell_at: Instant,
    knows_ipv6: bool,
    knows_no_ip: bool,
    mark: Mark,
    /// Share of packets sent again, and bits a second.
    in_use: (f64, f64),
}

/// What had been sent at a time.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    packets: u64,
    resends: u64,
    octets: u64,
}

impl Mark {
    fn now(gateway: &GatewayLoop) -> Self {
        let wan = gateway.gateway().endpoint(Side::Wan);
        let (packets, octets) = (gateway.device_stats(Side::Wan).sent, gateway.octets(Side::Wan));
        Mark { at: gateway.now(), packets, resends: wan.totals().resends, octets }
    }
}

impl Link {
    /// A link of which nothing was told yet.
    pub fn new(gateway: &GatewayLoop) -> Self {
        Link {
            mtu: mtu(gateway),
            black_holes: 0,
            refused: 0,
            tell_at: Instant::ZERO,
            knows_ipv6: false,
            knows_no_ip: false,
            mark: Mark::now(gateway),
            in_use: (0.0, 0.0),
        }
    }

    /// What the link does now, for a monitoring system.
    pub fn gauges(&mut self, gateway: &GatewayLoop, up: bool) -> Value {
        let (now, mark) = (Mark::now(gateway), self.mark);
        let time_s = now.at.since(mark.at).as_secs_f64();
        if now.at.since(mark.at) >= WINDOW {
            let packets = (now.packets - mark.packets).max(1) as f64;
            self.in_use =
                ((now.resends - mark.resends) as f64 / packets, (now.octets - mark.octets) as f64 * 8.0 / time_s);
            self.mark = now;
        }
        let round_trip = gateway.gateway().endpoint(Side::Wan).round_trip();
        let (resent_share, rate_bps) = self.in_use;
        let round_trip_s = round_trip.map(|rtt| rtt.as_secs_f64());
        json!({"up": up, "round_trip_s": round_trip_s, "resent_share": resent_share, "rate_bps": rate_bps})
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
        let black_holes = gateway.gateway().endpoint(Side::Wan).signals().black_holes;
        if black_holes.0 > self.black_holes {
            let found = black_holes.1;
            let text = format!("long packets to the far side vanish, while it answers short ones: packets have {found} octets at most from now on, and longer ones are tried every ten minutes. Ask what arrives (--probe), and set \"mtu\" in \"transport\" of \"wan\" at both ends.");
            operator.tell(Level::Warn, text);
        }
        self.black_holes = black_holes.0;
        if !self.knows_ipv6 && gateway.passed(Side::Lan).ipv6 > 0 {
            self.knows_ipv6 = true;
            operator.tell(
                Level::Warn,
                "IPv6 packets come from the LAN and are dropped: only IPv4 is carried. Route IPv6 another way.",
            );
        }
        if !self.knows_no_ip && gateway.passed(Side::Wan).no_ip > 0 {
            self.knows_no_ip = true;
            operator.tell(Level::Warn, "packets come from the far side that are no IP, and are dropped. If it seals them by SCPS-SP, give this gateway the key (--sp).");
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
