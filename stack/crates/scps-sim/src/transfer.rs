//! Two hosts and a link each way, and the bulk transfer every figure is made of.

use crate::host::Host;
use crate::link::{Link, LinkConfig, LinkStats};
use scps_net::NetworkConfig;
use scps_tp::{Config, RouteConfig, Stats};
use scps_types::{Duration, Instant, Seed};
use std::net::Ipv4Addr;

/// Two hosts joined by a link each way. `left` connects and sends, `right` listens.
#[derive(Debug)]
pub struct Network {
    /// The hosts.
    pub hosts: [Host; 2],
    /// `links[i]` leaves host `i`.
    pub links: [Link; 2],
    /// The clock.
    pub now: Instant,
    /// Every packet offered: when, by whom, what. Filled only if `captures` is set.
    pub capture: Vec<(Instant, usize, Vec<u8>)>,
    /// Whether packets are kept.
    pub captures: bool,
}

/// Where the simulated receiver listens.
pub const PORT: u16 = 5001;

impl Network {
    /// Two hosts with the same or different routes, over IPv4.
    pub fn new(routes: [RouteConfig; 2], links: [LinkConfig; 2], seed: Seed) -> Self {
        Network::over(&Default::default(), routes, links, seed)
    }

    /// Two hosts over network layers.
    pub fn over(networks: &[NetworkConfig; 2], routes: [RouteConfig; 2], links: [LinkConfig; 2], seed: Seed) -> Self {
        let host = |i: u8| {
            let own = Seed::from_u64(seed.keyed_hash("host", &[i]));
            let network = networks[usize::from(i)].clone();
            Host::new(Network::address(i), routes[usize::from(i)], network, own)
        };
        let [there, back] = links;
        Network {
            hosts: [host(0), host(1)],
            links: [Link::new(there, seed, "there"), Link::new(back, seed, "back")],
            now: Instant::ZERO,
            capture: Vec::new(),
            captures: false,
        }
    }

    /// The address of host `i`.
    pub const fn address(i: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, i + 1)
    }

    /// Lets everything that can happen now happen.
    fn settle(&mut self) {
        for i in 0..2 {
            self.hosts[i].act(self.now);
            let mut packet = Vec::new();
            while self.hosts[i].endpoint.poll_transmit(self.now, &mut packet).is_some() {
                if self.captures {
                    self.capture.push((self.now, i, packet.clone()));
                }
                self.links[i].send(self.now, &packet);
                packet.clear();
            }
            self.hosts[i].act(self.now);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let hosts = self.hosts.iter().filter_map(|h| h.endpoint.poll_timeout());
        let links = self.links.iter().filter_map(Link::next_arrival);
        hosts.chain(links).min()
    }

    /// Moves the clock to the next thing that happens; false if nothing will, or not before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        self.settle();
        let Some(at) = self.next_event().filter(|at| *at <= until) else {
            return false;
        };
        self.now = self.now.max(at);
        for i in 0..2 {
            while let Some(packet) = self.links[i].receive(self.now) {
                self.hosts[1 - i].handle(self.now, &packet);
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

/// A bulk transfer to simulate.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Octets to send.
    pub bytes: usize,
    /// Sender's settings.
    pub sender: Config,
    /// Receiver's settings.
    pub receiver: Config,
    /// Both hosts' routes.
    pub routes: [RouteConfig; 2],
    /// Both hosts' network layers.
    pub networks: [NetworkConfig; 2],
    /// Both directions: data, acknowledgements.
    pub links: [LinkConfig; 2],
    /// Everything random.
    pub seed: u64,
    /// Give up after this.
    pub limit: Duration,
}

/// How a transfer went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything arrived as it was sent, and both ends know.
    pub is_complete: bool,
    /// First data arriving to the acknowledgement of the last leaving, at the receiver (apparatus M-01).
    pub transfer: Duration,
    /// Connection request to the acknowledgement of the sender's FIN.
    pub connect: Duration,
    /// The sender's counters.
    pub sent: Stats,
    /// The receiver's counters.
    pub received: Stats,
    /// The links' counters.
    pub links: [LinkStats; 2],
}

impl Outcome {
    /// Share of resends that brought the receiver nothing new, 0..=1.
    pub fn superfluous_ratio(&self) -> f64 {
        self.received.duplicate_segments as f64 / self.sent.resends_total().max(1) as f64
    }
}

impl Transfer {
    /// Runs it.
    pub fn run(&self) -> Outcome {
        self.run_network(false).0
    }

    /// Runs it and hands the network back with every packet that was offered to a link.
    pub fn run_captured(&self) -> Network {
        self.run_network(true).1
    }

    fn run_network(&self, captures: bool) -> (Outcome, Network) {
        let seed = Seed::from_u64(self.seed);
        let mut network = Network::over(&self.networks, self.routes, self.links.clone(), seed);
        network.captures = captures;
        let mut data = vec![0; self.bytes];
        seed.stream("data").fill(&mut data);
        let remote = network.hosts[1].address;
        network.hosts[1].listen(PORT, self.receiver.clone());
        network.hosts[0].to_send = data;
        network.hosts[0].connect(Instant::ZERO, remote, PORT, self.sender.clone());
        let is_done = |n: &Network| {
            n.hosts[1].is_at_end
                && n.hosts[0]
                    .connection
                    .and_then(|id| n.hosts[0].endpoint.stats(id))
                    .is_none_or(|s| s.flushed_at.is_some())
        };
        let is_done = network.run(Instant::ZERO + self.limit, is_done);
        let stats = |i: usize| {
            let host = &network.hosts[i];
            host.connection.and_then(|id| host.endpoint.stats(id)).unwrap_or_default()
        };
        let (sent, received) = (stats(0), stats(1));
        let span = |from: Option<Instant>, to: Option<Instant>| match (from, to) {
            (Some(from), Some(to)) => to.since(from),
            _ => Duration::ZERO,
        };
        let outcome = Outcome {
            is_complete: is_done && network.hosts[1].received == network.hosts[0].to_send,
            transfer: span(received.first_data_at, received.last_data_ack_at),
            connect: span(sent.opened_at, sent.flushed_at),
            sent,
            received,
            links: [network.links[0].stats(), network.links[1].stats()],
        };
        (outcome, network)
    }
}
