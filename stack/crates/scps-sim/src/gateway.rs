//! A gateway as a node.

use crate::node::Node;
use scps_gateway::{Fate, Gateway, Report, Side};
use scps_tp::Trust;
use scps_wire::Instant;
use std::collections::VecDeque;

/// A gateway whose port 0 is the side that it was given, and port 1 the other.
#[derive(Debug)]
pub struct GatewayNode {
    /// The gateway; `None` while it is off.
    pub gateway: Option<Gateway>,
    /// Connections that are over.
    pub reports: Vec<Report>,
    /// What passed to either side as it came, and had room within that side's rate.
    pub passed: Vec<Vec<u8>>,
    first: Side,
    /// Numbers of packets of `passed` that have not left, by port.
    passing: [VecDeque<usize>; 2],
}

impl GatewayNode {
    /// A gateway whose port 0 is of side `first`.
    pub fn new(gateway: Gateway, first: Side) -> Self {
        GatewayNode {
            gateway: Some(gateway),
            reports: Vec::new(),
            passed: Vec::new(),
            first,
            passing: Default::default(),
        }
    }

    fn side(&self, port: usize) -> Side {
        if port == 0 {
            self.first
        } else {
            self.first.other()
        }
    }
}

impl Node for GatewayNode {
    fn handle(&mut self, now: Instant, port: usize, packet: &[u8]) {
        let side = self.side(port);
        let Some(gateway) = &mut self.gateway else { return };
        let passes = gateway.handle_input(now, side, packet, Trust::Check) == Fate::Pass;
        if passes && gateway.charge(now, side.other(), packet.len()) {
            self.passing[1 - port].push_back(self.passed.len());
            self.passed.push(packet.to_vec());
        }
    }

    fn poll_transmit(&mut self, now: Instant, port: usize, _free_at: Instant, out: &mut Vec<u8>) -> bool {
        if let Some(number) = self.passing[port].pop_front() {
            out.extend_from_slice(&self.passed[number]);
            return true;
        }
        let side = self.side(port);
        self.gateway.as_mut().is_some_and(|gateway| gateway.poll_transmit(now, side, out).is_some())
    }

    fn poll_timeout(&self, _now: Instant) -> Option<Instant> {
        self.gateway.as_ref().and_then(Gateway::poll_timeout)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(gateway) = &mut self.gateway {
            gateway.handle_timeout(now);
        }
    }

    fn act(&mut self, _now: Instant) {
        if let Some(gateway) = &mut self.gateway {
            self.reports.extend(std::iter::from_fn(|| gateway.poll_report()));
        }
    }
}
