//! Hosts and routers, and links between them, each in one direction.

use crate::host::Host;
use crate::link::{Link, LinkConfig};
use scps_net::NetworkConfig;
use scps_np::Router;
use scps_tp::RouteConfig;
use scps_types::{Instant, Seed};
use std::net::Ipv4Addr;

/// Where simulated receivers listen.
pub const PORT: u16 = 5001;

/// A node, by its place in [`Network::hosts`] or [`Network::routers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// A host. It has one link out.
    Host(usize),
    /// A router. Its links are numbered in the order in which those that leave it were added, and what comes back from the
    /// node at the other end has the same number.
    Router(usize),
}

/// Which nodes a link joins.
#[derive(Clone, Copy, Debug)]
struct Ends {
    from: Node,
    to: Node,
    /// Number of the link at the router it leaves.
    out_port: usize,
    /// Number of the way back at the router it reaches.
    in_port: usize,
}

/// Nodes joined by links, and a clock.
#[derive(Debug)]
pub struct Network {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The routers.
    pub routers: Vec<Router>,
    /// The links, in the order in which they were added.
    pub links: Vec<Link>,
    ends: Vec<Ends>,
    /// The clock.
    pub now: Instant,
    /// Every packet offered by a host: when, by which one, what. Filled only if `captures` is set.
    pub capture: Vec<(Instant, usize, Vec<u8>)>,
    /// Whether packets are kept.
    pub captures: bool,
}

impl Network {
    /// Nodes without links.
    pub fn of(hosts: Vec<Host>, routers: Vec<Router>) -> Self {
        Network {
            hosts,
            routers,
            links: Vec::new(),
            ends: Vec::new(),
            now: Instant::ZERO,
            capture: Vec::new(),
            captures: false,
        }
    }

    /// Adds a link from a node to another, and one back. `name` picks their random streams.
    pub fn join(&mut self, a: Node, b: Node, [there, back]: [LinkConfig; 2], seed: Seed, [name, back_name]: [&str; 2]) {
        let ports = [self.ports(a), self.ports(b)];
        for (from, to, out_port, in_port, config, name) in
            [(a, b, ports[0], ports[1], there, name), (b, a, ports[1], ports[0], back, back_name)]
        {
            self.ends.push(Ends { from, to, out_port, in_port });
            self.links.push(Link::new(config, seed, name));
        }
    }

    fn ports(&self, node: Node) -> usize {
        self.ends.iter().filter(|ends| ends.from == node).count()
    }

    /// Two hosts with the same or different routes, over IPv4. `links[i]` leaves host `i`.
    pub fn new(routes: [RouteConfig; 2], links: [LinkConfig; 2], seed: Seed) -> Self {
        Network::over(&Default::default(), routes, links, seed)
    }

    /// Two hosts over network layers.
    pub fn over(networks: &[NetworkConfig; 2], routes: [RouteConfig; 2], links: [LinkConfig; 2], seed: Seed) -> Self {
        let host = |i: u8| {
            let own = Seed::from_u64(seed.keyed_hash("host", &[i]));
            Host::new(Network::address(i), routes[usize::from(i)], networks[usize::from(i)].clone(), own)
        };
        let mut network = Network::of(vec![host(0), host(1)], Vec::new());
        network.join(Node::Host(0), Node::Host(1), links, seed, ["there", "back"]);
        network
    }

    /// The address of host `i` of two.
    pub const fn address(i: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, i + 1)
    }

    /// Lets everything that can happen now happen.
    fn settle(&mut self) {
        for i in 0..self.links.len() {
            match self.ends[i].from {
                Node::Host(h) => self.settle_host(h, i),
                Node::Router(r) => self.settle_router(r, i),
            }
        }
    }

    fn settle_host(&mut self, host: usize, link: usize) {
        self.hosts[host].act(self.now);
        let mut packet = Vec::new();
        while self.hosts[host].endpoint.poll_transmit(self.now, &mut packet).is_some() {
            if self.captures {
                self.capture.push((self.now, host, packet.clone()));
            }
            self.links[link].send(self.now, &packet);
            packet.clear();
        }
        self.hosts[host].act(self.now);
    }

    /// A router keeps its frames until the link is free, so that a more urgent one that comes meanwhile leaves before.
    fn settle_router(&mut self, router: usize, link: usize) {
        let port = self.ends[link].out_port;
        while self.links[link].free_at() <= self.now {
            let Some(frame) = self.routers[router].poll_frame(port) else { return };
            self.links[link].send(self.now, &frame.octets);
            self.routers[router].recycle(frame.octets);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let hosts = self.hosts.iter().filter_map(|h| h.endpoint.poll_timeout());
        let links = self.links.iter().filter_map(Link::next_arrival);
        let waiting = self.ends.iter().zip(&self.links).filter_map(|(ends, link)| match ends.from {
            Node::Router(r) if !self.routers[r].queue(ends.out_port).is_empty() => Some(link.free_at()),
            _ => None,
        });
        hosts.chain(links).chain(waiting.filter(|at| *at > self.now)).min()
    }

    /// Moves the clock to the next thing that happens; false if nothing will, or not before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        self.settle();
        let Some(at) = self.next_event().filter(|at| *at <= until) else {
            return false;
        };
        self.now = self.now.max(at);
        for (ends, link) in self.ends.iter().zip(&mut self.links) {
            while let Some(packet) = link.receive(self.now) {
                match ends.to {
                    Node::Host(h) => self.hosts[h].handle(self.now, &packet),
                    Node::Router(r) => self.routers[r].handle_frame(self.now, ends.in_port, &packet),
                }
            }
        }
        for host in &mut self.hosts {
            host.endpoint.handle_timeout(self.now);
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
