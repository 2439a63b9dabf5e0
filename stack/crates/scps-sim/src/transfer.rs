//! The bulk transfer every figure is made of: two hosts and a link each way.

use crate::host::Host;
use crate::link::{LinkConfig, LinkStats};
use crate::network::{Network, ENDS, LINK, PORT};
use crate::program::Program;
use scps_tp::net::NetworkConfig;
use scps_tp::{Config, RouteConfig, Stats};
use scps_wire::{Duration, Instant, Seed};

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

impl Transfer {
    /// Runs it.
    pub fn run(&self) -> Outcome {
        self.finish(&mut self.begin())
    }

    /// Runs it and hands the network back with every packet that was offered to a link.
    pub fn run_captured(&self) -> Network {
        let mut network = self.begin();
        network.captures = true;
        self.finish(&mut network);
        network
    }

    /// The network of [`Network::over`], whose sender asks for the connection.
    pub fn begin(&self) -> Network {
        self.begin_with(|_| {})
    }

    /// The same, with a sender that `prepare` has seen before it asks.
    pub fn begin_with(&self, prepare: impl FnOnce(&mut Host)) -> Network {
        let seed = Seed::from_u64(self.seed);
        let mut network = Network::over(&self.networks, self.routes, self.links.clone(), seed);
        let mut data = vec![0; self.bytes];
        seed.stream("data").fill(&mut data);
        let remote = network[ENDS[1]].address;
        network[ENDS[1]].listen(PORT, self.receiver.clone());
        prepare(&mut network[ENDS[0]]);
        network[ENDS[0]].connect(Instant::ZERO, (remote, PORT), self.sender.clone(), Program::sending(data));
        network
    }

    /// Runs what was begun, and perhaps changed, to its end.
    pub fn finish(&self, network: &mut Network) -> Outcome {
        let is_done = |n: &Network| {
            let (sender, receiver) = (&n[ENDS[0]], &n[ENDS[1]]);
            let stats = sender.connection().and_then(|id| sender.endpoint.stats(id));
            receiver.first().is_some_and(|(_, program)| program.has_read_all())
                && stats.is_none_or(|stats| stats.flushed_at.is_some())
        };
        let is_done = network.run(network.now + self.limit, is_done);
        let stats = |host: &Host| host.connection().and_then(|id| host.endpoint.stats(id)).unwrap_or_default();
        let (sent, received) = (stats(&network[ENDS[0]]), stats(&network[ENDS[1]]));
        let span = |from: Option<Instant>, to: Option<Instant>| match (from, to) {
            (Some(from), Some(to)) => to.since(from),
            _ => Duration::ZERO,
        };
        Outcome {
            is_complete: is_done && network[ENDS[0]].has_sent_all_to(&network[ENDS[1]]),
            transfer: span(received.first_data_at, received.last_data_ack_at),
            connect: span(sent.opened_at, sent.flushed_at),
            sent,
            received,
            links: [0, 1].map(|i| network[LINK].ways[i].stats()),
        }
    }
}
