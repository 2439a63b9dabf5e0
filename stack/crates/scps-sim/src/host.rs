//! A host: the engine, and programs with a connection each.

use crate::node::Node;
use crate::program::{Program, CHUNK};
use scps_sp::{KeyName, BLOCK};
use scps_tp::net::{NetworkConfig, Protection};
use scps_tp::{Config, ConnectionId, Endpoint, EndpointConfig, Event, RouteConfig, Trust};
use scps_wire::{Instant, Seed};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// A host with one link.
#[derive(Debug)]
pub struct Host {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its engine.
    pub endpoint: Endpoint,
    /// The programs. A connection without one is the test's.
    pub programs: BTreeMap<ConnectionId, Program>,
    /// The program for the connection that comes from a port.
    pub services: BTreeMap<u16, Program>,
    /// The program for every other connection that is accepted.
    pub service: Option<Program>,
    /// The peers of connections accepted.
    pub peers: Vec<SocketAddr>,
    /// Every event, in order.
    pub events: Vec<Event>,
    /// Sequence numbers of SP that were given out, by key: the record that a real host keeps in a file.
    reserved: BTreeMap<KeyName, u64>,
}

impl Host {
    /// A host without connection.
    pub fn new(address: Ipv4Addr, route: RouteConfig, network: NetworkConfig, seed: Seed) -> Self {
        let config = EndpointConfig::default().addresses(vec![address.into()]).network(network);
        Host {
            address,
            endpoint: Endpoint::new(config, route, seed, Instant::ZERO),
            programs: BTreeMap::new(),
            services: BTreeMap::new(),
            service: Some(Program::default()),
            peers: Vec::new(),
            events: Vec::new(),
            reserved: BTreeMap::new(),
        }
    }

    /// Puts SP beneath its connections, which do not exist yet.
    pub fn protect(&mut self, protection: Protection) {
        self.endpoint.protect(protection);
        self.reserve();
    }

    /// Gives keys the sequence numbers they want.
    fn reserve(&mut self) {
        let Some(protection) = self.endpoint.protection_mut() else { return };
        while let Some(name) = protection.sp.wanted() {
            let first = self.reserved.entry(name).or_insert(1);
            let numbers = *first..*first + BLOCK;
            *first = numbers.end;
            let granted = protection.sp.grant(name, numbers);
            debug_assert!(granted.is_ok(), "numbers are reserved once");
        }
    }

    /// Accepts on `port`.
    pub fn listen(&mut self, port: u16, config: Config) {
        let listener = self.endpoint.listen((self.address, port), config);
        debug_assert!(listener.is_ok(), "hosts have IPv4 addresses");
    }

    /// Connects a program from any port; on failure nothing happens, which the test will notice.
    pub fn connect(&mut self, now: Instant, remote: (Ipv4Addr, u16), config: Config, program: Program) {
        if let Ok(id) = self.endpoint.connect(now, (self.address, 0), remote, config) {
            self.programs.insert(id, program);
        }
    }

    /// The first program of those that are left, and its connection.
    pub fn first(&self) -> Option<(ConnectionId, &Program)> {
        self.programs.first_key_value().map(|(id, program)| (*id, program))
    }

    /// Its connection.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.first().map(|(id, _)| id)
    }

    /// What it received; nothing without a program.
    pub fn received(&self) -> &[u8] {
        self.first().map_or(&[], |(_, program)| &program.received)
    }

    /// True if the first program has sent, and `peer`'s has received, all that there is.
    pub fn has_sent_all_to(&self, peer: &Host) -> bool {
        let sent = self.first().map(|(_, program)| &program.to_send);
        peer.first().is_some_and(|(_, program)| program.is_at_end && Some(&program.received) == sent)
    }
}

impl Node for Host {
    fn handle(&mut self, now: Instant, _port: usize, packet: &[u8]) {
        self.endpoint.handle_input(now, packet, Trust::Check);
    }

    fn poll_transmit(&mut self, now: Instant, _port: usize, _free_at: Instant, out: &mut Vec<u8>) -> bool {
        self.endpoint.poll_transmit(now, out).is_some()
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let times = self.programs.values().flat_map(Program::times).filter(|at| *at > now);
        times.chain(self.endpoint.poll_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn act(&mut self, now: Instant) {
        self.reserve();
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Accepted(_, id) => {
                    let peer = self.endpoint.addresses(id).map(|(_, peer)| peer);
                    let program = peer.and_then(|peer| self.services.remove(&peer.port()));
                    self.peers.extend(peer);
                    self.programs.extend(program.or_else(|| self.service.clone()).map(|program| (id, program)));
                }
                Event::Closed(id, reason) => {
                    if let Some(program) = self.programs.get_mut(&id) {
                        program.closed = Some(reason);
                    }
                }
                _ => {}
            }
            self.events.push(event);
        }
        let mut buffer = [0; CHUNK];
        for (id, program) in &mut self.programs {
            program.act(now, *id, &mut self.endpoint, &mut buffer);
        }
    }
}
