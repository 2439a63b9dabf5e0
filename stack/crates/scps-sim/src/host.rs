//! A host: the engine and a user who sends a stream, receives one, or both.

use scps_net::{NetworkConfig, Protection};
use scps_sp::{KeyName, BLOCK};
use scps_tp::{Config, ConnectionId, Endpoint, EndpointConfig, Event, RecvError, RouteConfig, Trust};
use scps_types::{Instant, Seed};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A host with one transfer to make or take.
#[derive(Debug)]
pub struct Host {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its engine.
    pub endpoint: Endpoint,
    /// The connection, once there is one.
    pub connection: Option<ConnectionId>,
    /// What is left to send.
    pub to_send: Vec<u8>,
    /// How much of it was given to the engine.
    pub given: usize,
    /// Octets per record; `None` for a plain stream.
    pub record: Option<usize>,
    /// What was received.
    pub received: Vec<u8>,
    /// Holes reported by the engine.
    pub holes: Vec<(u64, u64)>,
    /// Record ends read, as lengths of `received`.
    pub record_ends: Vec<usize>,
    /// Every event, in order.
    pub events: Vec<Event>,
    /// Whether it closes when all is given.
    pub closes: bool,
    /// Whether it reads at all; a host that does not closes its window.
    pub reads: bool,
    /// Whether the peer's end was read.
    pub is_at_end: bool,
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
            connection: None,
            to_send: Vec::new(),
            given: 0,
            record: None,
            received: Vec::new(),
            holes: Vec::new(),
            record_ends: Vec::new(),
            events: Vec::new(),
            closes: true,
            reads: true,
            is_at_end: false,
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

    /// Connects; on failure nothing happens, which the test will notice.
    pub fn connect(&mut self, now: Instant, remote: Ipv4Addr, port: u16, config: Config) {
        self.connection = self.endpoint.connect(now, (self.address, 0), (remote, port), config).ok();
    }

    /// Gives a packet to the engine.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) {
        self.endpoint.handle_input(now, packet, Trust::Check);
    }

    /// Lets the user act until nothing is left to do.
    pub fn act(&mut self, now: Instant) {
        self.reserve();
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Accepted(_, id) = event {
                self.connection = Some(id);
            }
            self.events.push(event);
        }
        let Some(id) = self.connection else { return };
        self.give(now, id);
        if self.reads {
            self.take(now, id);
        }
    }

    fn give(&mut self, now: Instant, id: ConnectionId) {
        while self.given < self.to_send.len() {
            let rest = &self.to_send[self.given..];
            let taken = match self.record {
                Some(n) => {
                    let record = &rest[..n.min(rest.len())];
                    if self.endpoint.send_record(now, id, record) == Ok(true) {
                        record.len()
                    } else {
                        0
                    }
                }
                None => self.endpoint.send(now, id, rest).unwrap_or(0),
            };
            if taken == 0 {
                return;
            }
            self.given += taken;
        }
        if self.closes {
            self.endpoint.close(now, id);
            self.closes = false;
        }
    }

    fn take(&mut self, now: Instant, id: ConnectionId) {
        let mut buffer = [0u8; 16_384];
        loop {
            match self.endpoint.recv(now, id, &mut buffer) {
                Ok((0, _)) => {
                    self.is_at_end = true;
                    return;
                }
                Ok((n, ends_record)) => {
                    self.received.extend_from_slice(&buffer[..n]);
                    if ends_record {
                        self.record_ends.push(self.received.len());
                    }
                }
                Err(RecvError::Hole { offset, len }) => self.holes.push((offset, len)),
                Err(_) => return,
            }
        }
    }
}
