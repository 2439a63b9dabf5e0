//! A chain: client – link – gateways – link – server, and programs at its ends.
#![allow(dead_code, reason = "each test uses a part of it")]

use scps_gateway::{Account, End, Fate, Gateway, GatewayConfig, Report, SetUp, Side, SideConfig};
use scps_sim::{Link, LinkConfig};
use scps_tp::{
    CloseReason, Config, Congestion, ConnectionId, Endpoint, EndpointConfig, Event, RecvError, RouteConfig, Trust,
};
use scps_types::{Bitrate, Duration, Instant, Rng, Seed};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
pub const PORT: u16 = 80;

/// What a program does with its connection.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub to_send: Vec<u8>,
    /// When it closes at the earliest; it does so when all is given.
    pub fin_at: Instant,
    /// When it gives up, if at all.
    pub abort_at: Option<Instant>,
    /// When it begins to read.
    pub reads_from: Instant,
    pub given: usize,
    pub received: Vec<u8>,
    pub is_closing: bool,
    pub is_at_end: bool,
    pub closed: Option<CloseReason>,
}

impl Program {
    pub fn sending(to_send: Vec<u8>) -> Self {
        Program { to_send, ..Program::default() }
    }
}

/// A host with programs.
#[derive(Debug)]
pub struct Host {
    pub endpoint: Endpoint,
    pub programs: BTreeMap<ConnectionId, Program>,
    /// What the server does for the client of a port; the default is to send nothing.
    pub services: BTreeMap<u16, Program>,
    /// The peers of connections accepted.
    pub peers: Vec<SocketAddr>,
}

impl Host {
    fn new(address: Ipv4Addr, seed: Seed) -> Self {
        let config = EndpointConfig::default().addresses(vec![address.into()]);
        let route = RouteConfig::default().rate(None).initial_rto(Duration::from_secs(1));
        Host {
            endpoint: Endpoint::new(config, route, seed, Instant::ZERO),
            programs: BTreeMap::new(),
            services: BTreeMap::new(),
            peers: Vec::new(),
        }
    }

    fn act(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Accepted(_, id) => {
                    let (_, peer) = self.endpoint.addresses(id).expect("it is new");
                    self.peers.push(peer);
                    self.programs.insert(id, self.services.remove(&peer.port()).unwrap_or_default());
                }
                Event::Closed(id, reason) => {
                    if let Some(program) = self.programs.get_mut(&id) {
                        program.closed = Some(reason);
                    }
                }
                _ => {}
            }
        }
        let mut buffer = [0; 16_384];
        for (id, program) in &mut self.programs {
            if program.abort_at.is_some_and(|at| at <= now) && program.closed.is_none() {
                self.endpoint.abort(now, *id);
                program.abort_at = None;
            }
            while program.given < program.to_send.len() {
                match self.endpoint.send(now, *id, &program.to_send[program.given..]) {
                    Ok(n) if n > 0 => program.given += n,
                    _ => break,
                }
            }
            if program.given == program.to_send.len() && program.fin_at <= now && !program.is_closing {
                self.endpoint.close(now, *id);
                program.is_closing = true;
            }
            while program.reads_from <= now && !program.is_at_end {
                match self.endpoint.recv(now, *id, &mut buffer) {
                    Ok((0, _)) => program.is_at_end = true,
                    Ok((n, _)) => program.received.extend_from_slice(&buffer[..n]),
                    Err(RecvError::WouldBlock | RecvError::Unknown) => break,
                    Err(hole) => panic!("{hole}"),
                }
            }
        }
    }

    fn next_event(&self, now: Instant) -> Option<Instant> {
        let times = self.programs.values().flat_map(|p| [Some(p.fin_at), p.abort_at, Some(p.reads_from)]).flatten();
        times.filter(|at| *at > now).chain(self.endpoint.poll_timeout()).min()
    }
}

/// Everything.
pub struct Chain {
    pub client: Host,
    pub server: Host,
    /// `None` where one was killed. The LAN of the first is on the left, that of the second on the right.
    pub gateways: Vec<Option<Gateway>>,
    /// `links[i]` is on the left of node `i + 1`: there, and back.
    pub links: Vec<[Link; 2]>,
    pub reports: Vec<Report>,
    pub now: Instant,
    /// A hash of every packet that arrived anywhere, in order.
    pub hash: u64,
    pub passed: Vec<Vec<u8>>,
    /// Packets with a compressed header that arrived anywhere.
    pub compressed: u64,
    /// Packets to the server (0) or to the client (1) take another way around all gateways.
    pub bypass: [bool; 2],
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
        let gateways = (1..links.len()).map(|i| {
            Some(Gateway::new(config.clone(), own(&format!("gateway {i}")), Instant::ZERO).expect("settings are good"))
        });
        let ways = links
            .iter()
            .enumerate()
            .map(|(i, link)| [0, 1].map(|way| Link::new(link.clone(), seed, &format!("link {i} {way}"))));
        let mut server = Host::new(SERVER, own("server"));
        server.endpoint.listen((SERVER, PORT), plain()).unwrap();
        Chain {
            client: Host::new(CLIENT, own("client")),
            server,
            gateways: gateways.collect(),
            links: ways.collect(),
            reports: Vec::new(),
            now: Instant::ZERO,
            hash: 0,
            passed: Vec::new(),
            compressed: 0,
            bypass: [false; 2],
        }
    }

    /// A pair of gateways around a satellite.
    pub fn pair(set_up: SetUp, loss: f64, seed: u64) -> Self {
        Chain::new(&gateway_config(set_up), &[lan(), satellite(loss), lan()], seed)
    }

    /// The client's program connects from a port, and the server's answers it.
    pub fn open(&mut self, port: u16, client: Program, server: Program) -> ConnectionId {
        self.server.services.insert(port, server);
        self.open_to(port, (SERVER, PORT), client)
    }

    pub fn open_to(&mut self, port: u16, to: (Ipv4Addr, u16), client: Program) -> ConnectionId {
        let id = self.client.endpoint.connect(self.now, (CLIENT, port), to, plain()).expect("the port is free");
        self.client.programs.insert(id, client);
        id
    }

    fn side_of(gateway: usize, from_left: bool) -> Side {
        if (gateway == 0) == from_left {
            Side::Lan
        } else {
            Side::Wan
        }
    }

    /// Lets everything that can happen now happen.
    fn settle(&mut self) {
        let now = self.now;
        let last = self.links.len() - 1;
        let mut packet = Vec::new();
        for (host, link, way) in [(&mut self.client, 0, 0), (&mut self.server, last, 1)] {
            host.act(now);
            while host.endpoint.poll_transmit(now, &mut packet).is_some() {
                self.links[link][way].send(now, &packet);
                packet.clear();
            }
            host.act(now);
        }
        for (i, gateway) in self.gateways.iter_mut().enumerate() {
            let Some(gateway) = gateway else { continue };
            loop {
                let mut is_idle = true;
                for (from_left, link, way) in [(true, i, 1), (false, i + 1, 0)] {
                    let side = Self::side_of(i, from_left);
                    while gateway.poll_transmit(now, side, &mut packet).is_some() {
                        self.links[link][way].send(now, &packet);
                        packet.clear();
                        is_idle = false;
                    }
                }
                if is_idle {
                    break;
                }
            }
            while let Some(report) = gateway.poll_report() {
                assert!(closes(&report), "{report:?}");
                self.reports.push(report);
            }
        }
    }

    /// Moves the clock to the next thing that happens; false if nothing will before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        self.settle();
        let links = self.links.iter().flatten().filter_map(Link::next_arrival);
        let gateways = self.gateways.iter().flatten().filter_map(Gateway::poll_timeout);
        let hosts = [&self.client, &self.server].into_iter().filter_map(|h| h.next_event(self.now));
        let Some(at) = links.chain(gateways).chain(hosts).min().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        for i in 0..self.links.len() {
            for way in [0, 1] {
                while let Some(packet) = self.links[i][way].receive(self.now) {
                    self.arrive(i, way, &packet);
                }
            }
        }
        self.client.endpoint.handle_timeout(self.now);
        self.server.endpoint.handle_timeout(self.now);
        for gateway in self.gateways.iter_mut().flatten() {
            gateway.handle_timeout(self.now);
        }
        self.settle();
        true
    }

    fn arrive(&mut self, link: usize, way: usize, packet: &[u8]) {
        self.hash = Seed::from_u64(self.hash ^ self.now.as_nanos()).keyed_hash("packet", packet);
        let node = if way == 0 { link + 1 } else { link };
        self.compressed += u64::from(packet[9] == scps_wire::protocol::SCPS_COMPRESSED);
        let node = match (self.bypass[way], way) {
            (false, _) => node,
            (true, 0) => self.links.len(),
            (true, _) => 0,
        };
        if node == 0 {
            self.client.endpoint.handle_input(self.now, packet, Trust::Check);
            return;
        }
        if node == self.links.len() {
            self.server.endpoint.handle_input(self.now, packet, Trust::Check);
            return;
        }
        let Some(gateway) = &mut self.gateways[node - 1] else { return };
        if gateway.handle_input(self.now, Self::side_of(node - 1, way == 0), packet, Trust::Check) == Fate::Pass {
            self.passed.push(packet.to_vec());
            let onward = if way == 0 { node } else { node - 1 };
            self.links[onward][way].send(self.now, packet);
        }
    }

    pub fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Until every program has seen the end of its connection, or time ran out: then false.
    pub fn run(&mut self, time: Duration) -> bool {
        let until = self.now + time;
        loop {
            let are_gateways_done = self.gateways.iter().flatten().all(|g| g.connections().next().is_none());
            let mut programs = self.client.programs.values().chain(self.server.programs.values());
            if are_gateways_done && programs.all(|p| p.is_at_end && (p.is_closing || p.closed.is_some())) {
                return true;
            }
            if !self.step(until) {
                return false;
            }
            self.assert_accounts();
        }
    }

    /// Accounts close at any time.
    pub fn assert_accounts(&self) {
        for gateway in self.gateways.iter().flatten() {
            for id in gateway.connections() {
                let accounts = gateway.account(id).expect("it is not over");
                for side in Side::BOTH {
                    assert!(accounts.of(side).closes(), "{accounts:?}");
                }
            }
        }
    }

    pub fn server_program(&self, port: u16) -> Option<&Program> {
        let of_port =
            |id: &ConnectionId| self.server.endpoint.addresses(*id).is_some_and(|(_, peer)| peer.port() == port);
        self.server.programs.iter().find(|(id, _)| of_port(id)).map(|(_, program)| program)
    }

    pub fn ends(&self) -> Vec<End> {
        self.reports.iter().map(|r| r.end).collect()
    }

    /// Names of gateways' connections seen in reports, to be sure that none was told of twice.
    pub fn distinct_reports(&self) -> usize {
        self.reports.iter().map(|r| (r.client, r.began_at, r.pair)).collect::<BTreeSet<_>>().len()
    }
}

pub fn closes(report: &Report) -> bool {
    Side::BOTH.iter().all(|side| {
        let account: &Account = report.from.of(*side);
        account.closes() && account.buffered == 0
    })
}
