//! Nodes, joined to each other, and a clock.

use crate::gateway::GatewayNode;
use crate::host::Host;
use crate::link::{Link, LinkConfig};
use crate::node::{AnyNode, At, Node, Place};
use scps_gateway::{ConfigError, Gateway, GatewayConfig, Side};
use scps_tp::net::NetworkConfig;
use scps_tp::RouteConfig;
use scps_wire::{Duration, Instant, Seed};
use std::net::Ipv4Addr;
use std::ops::{Index, IndexMut};

/// Where simulated receivers listen.
pub const PORT: u16 = 5001;
/// The hosts of [`Network::over`].
pub const ENDS: [At<Host>; 2] = [At::new(0), At::new(1)];
/// The link between them.
pub const LINK: At<Link> = At::new(2);

/// A packet that a node offered: when, the number of the node (the first that was added is 0), the packet.
pub type Captured = (Instant, usize, Vec<u8>);

/// Nodes joined to each other, and a clock.
#[derive(Debug, Default)]
pub struct Network {
    nodes: Vec<Box<dyn AnyNode>>,
    /// The nodes that are links.
    links: Vec<usize>,
    others: Vec<usize>,
    /// Node and port that what leaves a node by a port arrives at.
    wires: Vec<Vec<(usize, usize)>>,
    /// The clock.
    pub now: Instant,
    /// Every packet offered by a node that is no link. Filled only if `captures` is set.
    pub capture: Vec<Captured>,
    /// Whether packets are kept.
    pub captures: bool,
    /// The packet that is handed on.
    packet: Vec<u8>,
}

impl Network {
    /// Adds a node, joined to nothing.
    pub fn add<N: Node>(&mut self, node: N) -> At<N> {
        let place = self.nodes.len();
        if node.free_at(0).is_some() { &mut self.links } else { &mut self.others }.push(place);
        self.nodes.push(Box::new(node));
        self.wires.push(Vec::new());
        At::new(place)
    }

    /// Joins each node with the next one of the list: at the next port of both.
    pub fn chain(&mut self, places: &[Place]) {
        for pair in places.windows(2) {
            let (a, b) = (pair[0].0, pair[1].0);
            let ports = (self.wires[a].len(), self.wires[b].len());
            self.wires[a].push((b, ports.1));
            self.wires[b].push((a, ports.0));
        }
    }

    /// From now on, what leaves `from` by a port arrives at the first port of `to`; the way back stays.
    pub fn redirect(&mut self, (from, port): (Place, usize), to: Place) {
        self.wires[from.0][port] = (to.0, 0);
    }

    /// Two hosts with the same or different routes, over IPv4. `links[i]` leaves host `i`.
    pub fn new(routes: [RouteConfig; 2], links: [LinkConfig; 2], seed: Seed) -> Self {
        Network::over(&Default::default(), routes, links, seed)
    }

    /// Two hosts over network layers: [`ENDS`], and [`LINK`] between them.
    pub fn over(networks: &[NetworkConfig; 2], routes: [RouteConfig; 2], links: [LinkConfig; 2], seed: Seed) -> Self {
        let mut network = Network::default();
        let ends = [0, 1].map(|i| {
            let own = Seed::from_u64(seed.keyed_hash("host", &[i]));
            let place = usize::from(i);
            network.add(Host::new(Network::address(i), routes[place], networks[place].clone(), own))
        });
        let link = network.add(Link::new(links, seed, ["there", "back"]));
        network.chain(&[ends[0].into(), link.into(), ends[1].into()]);
        network
    }

    /// Puts a gateway at each end of [`LINK`], a millisecond from the host there.
    pub fn put_gateways(&mut self, config: &GatewayConfig, seed: Seed) -> Result<[At<GatewayNode>; 2], ConfigError> {
        let mut add = |i: u8, first| {
            let gateway = Gateway::new(config.clone(), Seed::from_u64(seed.keyed_hash("gateway", &[i])), self.now)?;
            let lan = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
            let lan = self.add(Link::new([lan.clone(), lan], seed, ["there", "back"]));
            Ok::<_, ConfigError>((lan, self.add(GatewayNode::new(gateway, first))))
        };
        let ((near_lan, near), (far_lan, far)) = (add(0, Side::Lan)?, add(1, Side::Wan)?);
        self.wires.iter_mut().for_each(Vec::clear);
        let [sender, receiver] = ENDS.map(Place::from);
        self.chain(&[sender, near_lan.into(), near.into(), LINK.into(), far.into(), far_lan.into(), receiver]);
        Ok([near, far])
    }

    /// The address of host `i` of two.
    pub const fn address(i: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, i + 1)
    }

    /// Hands on the next packet that leaves a node by a port; false if none does now.
    fn carry(&mut self, place: usize, port: usize, is_captured: bool) -> bool {
        let (to, arrival) = self.wires[place][port];
        let free_at = self.nodes[to].free_at(arrival).unwrap_or_default();
        self.packet.clear();
        let is_one = self.nodes[place].poll_transmit(self.now, port, free_at, &mut self.packet);
        if is_one {
            if is_captured {
                self.capture.push((self.now, place, self.packet.clone()));
            }
            self.nodes[to].handle(self.now, arrival, &self.packet);
        }
        is_one
    }

    /// Hands on all that leaves a node now.
    fn empty(&mut self, place: usize, is_captured: bool) {
        let mut is_idle = false;
        while !is_idle {
            is_idle = true;
            for port in 0..self.wires[place].len() {
                while self.carry(place, port, is_captured) {
                    is_idle = false;
                }
            }
        }
    }

    /// Lets everything that can happen now happen.
    fn settle(&mut self) {
        for i in 0..self.others.len() {
            let place = self.others[i];
            self.nodes[place].act(self.now);
            self.empty(place, self.captures);
            self.nodes[place].act(self.now);
        }
    }

    /// Moves the clock to the next thing that happens; false if nothing will, or not before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        self.settle();
        let times = self.nodes.iter().filter_map(|node| node.poll_timeout(self.now));
        let Some(at) = times.min().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        for i in 0..self.links.len() {
            self.empty(self.links[i], false);
        }
        for node in &mut self.nodes {
            node.handle_timeout(self.now);
        }
        self.settle();
        true
    }

    /// Runs until `done` says so; false if time ran out or nothing was left to happen.
    pub fn run(&mut self, until: Instant, mut done: impl FnMut(&Network) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step(until) {
                return done(self);
            }
        }
    }
}

impl<N: Node> Index<At<N>> for Network {
    type Output = N;

    #[allow(clippy::expect_used, reason = "a place is made with the node, in one network")]
    fn index(&self, at: At<N>) -> &N {
        self.nodes[at.0].any().downcast_ref().expect("the place is of this network")
    }
}

impl<N: Node> IndexMut<At<N>> for Network {
    #[allow(clippy::expect_used, reason = "a place is made with the node, in one network")]
    fn index_mut(&mut self, at: At<N>) -> &mut N {
        self.nodes[at.0].any_mut().downcast_mut().expect("the place is of this network")
    }
}
