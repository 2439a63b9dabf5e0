//! A chain: client – link – gateways – link – server, and programs at its ends.

use scps_gateway::{Account, End, Gateway, GatewayConfig, Report, SetUp, Side, SideConfig};
use scps_sim::{At, GatewayNode, Host, Link, LinkConfig, Network, Node, Place, Program};
use scps_tp::net::NetworkConfig;
use scps_tp::{Config, Congestion, ConnectionId, RouteConfig};
use scps_wire::{Bitrate, Duration, Instant, Rng, Seed};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
pub const PORT: u16 = 80;

/// Everything. The LAN of the first gateway is on the left, that of all others on the right.
pub struct Chain {
    pub network: Network,
    client: At<Host>,
    server: At<Host>,
    gateways: Vec<At<GatewayNode>>,
    links: Vec<At<Link>>,
}

pub fn plain() -> Config {
    let mut config = Config::default().scps(false).congestion(Congestion::Vj);
    config.rto.syn_retransmissions_max = 6;
    config.rto.retransmissions_max = 15;
    config
}

pub fn space() -> Config {
    let mut config = Config::modern().congestion(Congestion::None);
    (config.send_buffer, config.receive_buffer) = (200_000, 200_000);
    config.rto.syn_retransmissions_max = 6;
    config
}

pub fn gateway_config(set_up: SetUp) -> GatewayConfig {
    let lan = RouteConfig::default().rate(None).initial_rto(Duration::from_secs(1));
    let wan = RouteConfig::default().rate(Some(Bitrate::from_bps(4_000_000)));
    GatewayConfig::transparent(
        SideConfig::default().connection(plain()).route(lan),
        SideConfig::default().connection(space()).route(wan),
        set_up,
    )
}

pub fn lan() -> LinkConfig {
    LinkConfig { rate: Some(Bitrate::from_bps(100_000_000)), delay: Duration::from_millis(1), ..LinkConfig::default() }
}

pub fn satellite(loss: f64) -> LinkConfig {
    let mut link = LinkConfig {
        rate: Some(Bitrate::from_bps(5_000_000)),
        delay: Duration::from_millis(250),
        ..LinkConfig::default()
    };
    link.impairment.loss = loss;
    link
}

pub fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut rng: Rng = Seed::from_u64(seed).stream("content");
    (0..len).map(|_| rng.next_u32() as u8).collect()
}

impl Chain {
    /// As many links as gateways and one.
    pub fn new(config: &GatewayConfig, links: &[LinkConfig], seed: u64) -> Self {
        let seed = Seed::from_u64(seed);
        let own = |name: &str| Seed::from_u64(seed.keyed_hash("node", name.as_bytes()));
        let mut network = Network::default();
        let route = RouteConfig::default().rate(None).initial_rto(Duration::from_secs(1));
        let [client, server] = [(CLIENT, "client"), (SERVER, "server")]
            .map(|(address, name)| network.add(Host::new(address, route, NetworkConfig::Ipv4, own(name))));
        network[server].listen(PORT, plain());
        let gateways: Vec<_> = (0..links.len() - 1)
            .map(|i| {
                let own = own(&format!("gateway {}", i + 1));
                let gateway = Gateway::new(config.clone(), own, Instant::ZERO).expect("settings are good");
                network.add(GatewayNode::new(gateway, if i == 0 { Side::Lan } else { Side::Wan }))
            })
            .collect();
        let links: Vec<_> = (0..)
            .zip(links)
            .map(|(i, link)| {
                let names = [0, 1].map(|way| format!("link {i} {way}"));
                network.add(Link::new([link.clone(), link.clone()], seed, [&names[0], &names[1]]))
            })
            .collect();
        let mut places = vec![client.into(), links[0].into()];
        for (gateway, link) in gateways.iter().zip(&links[1..]) {
            places.extend([Place::from(*gateway), Place::from(*link)]);
        }
        places.push(server.into());
        network.chain(&places);
        Chain { network, client, server, gateways, links }
    }

    /// A pair of gateways around a satellite.
    pub fn pair(set_up: SetUp, loss: f64, seed: u64) -> Self {
        Chain::new(&gateway_config(set_up), &[lan(), satellite(loss), lan()], seed)
    }

    pub fn now(&self) -> Instant {
        self.network.now
    }

    pub fn client(&self) -> &Host {
        &self.network[self.client]
    }

    pub fn client_mut(&mut self) -> &mut Host {
        &mut self.network[self.client]
    }

    pub fn server(&self) -> &Host {
        &self.network[self.server]
    }

    pub fn server_mut(&mut self) -> &mut Host {
        &mut self.network[self.server]
    }

    pub fn link_mut(&mut self, i: usize) -> &mut Link {
        &mut self.network[self.links[i]]
    }

    /// Offers a packet to the client's link.
    pub fn inject(&mut self, packet: &[u8]) {
        let now = self.now();
        self.link_mut(0).handle(now, 0, packet);
    }

    /// A gateway that was not killed.
    pub fn gateway(&self, i: usize) -> &Gateway {
        self.network[self.gateways[i]].gateway.as_ref().expect("it was not killed")
    }

    pub fn gateway_node(&mut self, i: usize) -> &mut GatewayNode {
        &mut self.network[self.gateways[i]]
    }

    pub fn kill(&mut self, i: usize) {
        self.gateway_node(i).gateway = None;
    }

    pub fn restart(&mut self, i: usize, config: &GatewayConfig, seed: u64) {
        let again = Gateway::new(config.clone(), Seed::from_u64(seed), self.now()).expect("settings are good");
        self.gateway_node(i).gateway = Some(again);
    }

    fn nodes(&self) -> impl Iterator<Item = &GatewayNode> {
        self.gateways.iter().map(|at| &self.network[*at])
    }

    pub fn gateways(&self) -> impl Iterator<Item = &Gateway> {
        self.nodes().filter_map(|node| node.gateway.as_ref())
    }

    /// True if no gateway has a connection.
    pub fn are_gateways_idle(&self) -> bool {
        self.gateways().all(|gateway| gateway.connections().next().is_none())
    }

    pub fn reports(&self) -> Vec<Report> {
        self.nodes().flat_map(|node| &node.reports).copied().collect()
    }

    pub fn passed(&self) -> Vec<Vec<u8>> {
        self.nodes().flat_map(|node| node.passed.clone()).collect()
    }

    /// Packets to the server (0) or to the client (1) take another way around all gateways.
    pub fn bypass(&mut self, way: usize) {
        let (link, to) = [(self.links[0], self.server), (self.links[self.links.len() - 1], self.client)][way];
        self.network.redirect((link.into(), 1 - way), to.into());
    }

    /// The client's program connects from a port, and the server's answers it.
    pub fn open(&mut self, port: u16, client: Program, server: Program) -> ConnectionId {
        self.server_mut().services.insert(port, server);
        self.open_to(port, (SERVER, PORT), plain(), client)
    }

    pub fn open_to(&mut self, port: u16, to: (Ipv4Addr, u16), config: Config, client: Program) -> ConnectionId {
        let now = self.now();
        let id = self.client_mut().endpoint.connect(now, (CLIENT, port), to, config).expect("the port is free");
        self.client_mut().programs.insert(id, client);
        id
    }

    pub fn run_for(&mut self, time: Duration) {
        let until = self.now() + time;
        self.network.run(until, |_| false);
        self.network.now = self.now().max(until);
        self.assert_accounts();
    }

    /// Until every program has seen the end of its connection, or time ran out: then false.
    pub fn run(&mut self, time: Duration) -> bool {
        let until = self.now() + time;
        loop {
            let mut programs = self.client().programs.values().chain(self.server().programs.values());
            if self.are_gateways_idle() && programs.all(|p| p.has_read_all() && (p.is_closing || p.closed.is_some())) {
                return self.reports().iter().all(closes);
            }
            if !self.network.step(until) {
                return false;
            }
            self.assert_accounts();
        }
    }

    /// Accounts close at any time.
    pub fn assert_accounts(&self) {
        for gateway in self.gateways() {
            for id in gateway.connections() {
                let accounts = gateway.account(id).expect("it is not over");
                for side in Side::BOTH {
                    assert!(accounts.of(side).closes(), "{accounts:?}");
                }
            }
        }
        for report in self.nodes().flat_map(|node| &node.reports) {
            assert!(closes(report), "{report:?}");
        }
    }

    pub fn server_program(&self, port: u16) -> Option<&Program> {
        let of_port =
            |id: &ConnectionId| self.server().endpoint.addresses(*id).is_some_and(|(_, peer)| peer.port() == port);
        self.server().programs.iter().find(|(id, _)| of_port(id)).map(|(_, program)| program)
    }

    pub fn ends(&self) -> Vec<End> {
        self.reports().iter().map(|r| r.end).collect()
    }

    /// Names of gateways' connections seen in reports, to be sure that none was told of twice.
    pub fn distinct_reports(&self) -> usize {
        self.reports().iter().map(|r| (r.client, r.began_at, r.pair)).collect::<BTreeSet<_>>().len()
    }
}

fn closes(report: &Report) -> bool {
    Side::BOTH.iter().all(|side| {
        let account: &Account = report.from.of(*side);
        account.closes() && account.buffered == 0
    })
}
