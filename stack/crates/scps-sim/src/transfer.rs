//! The bulk transfer every figure is made of: two hosts and a link each way.

use crate::link::{LinkConfig, LinkStats};
use crate::network::{Network, PORT};
use scps_net::NetworkConfig;
use scps_tp::{Config, RouteConfig, Stats};
use scps_types::{Duration, Instant, Seed};

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
