//! A router of NP as a node.

use crate::node::Node;
use scps_np::Router;
use scps_wire::Instant;
use std::collections::BTreeMap;

/// A router whose port `i` is its link `i`. It keeps its frames until the link is free, so that a more urgent one that comes meanwhile
/// leaves before.
#[derive(Debug)]
pub struct RouterNode {
    /// The router.
    pub router: Router,
    free_at: BTreeMap<usize, Instant>,
}

impl RouterNode {
    /// A router, not joined to anything.
    pub fn new(router: Router) -> Self {
        RouterNode { router, free_at: BTreeMap::new() }
    }
}

impl Node for RouterNode {
    fn handle(&mut self, now: Instant, port: usize, packet: &[u8]) {
        self.router.handle_frame(now, port, packet);
    }

    fn poll_transmit(&mut self, now: Instant, port: usize, free_at: Instant, out: &mut Vec<u8>) -> bool {
        self.free_at.insert(port, free_at);
        if free_at > now {
            return false;
        }
        let Some(frame) = self.router.poll_frame(port) else { return false };
        out.extend_from_slice(&frame.octets);
        self.router.recycle(frame.octets);
        true
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let waiting = self.free_at.iter().filter(|(port, _)| !self.router.queue(**port).is_empty());
        waiting.map(|(_, at)| *at).filter(|at| *at > now).min()
    }
}
