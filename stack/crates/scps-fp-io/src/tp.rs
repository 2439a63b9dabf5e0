//! The file protocol over SCPS-TP: the connections of one stack, which the waiting turns.

use crate::unix_time;
use rustix::event::{eventfd, EventfdFlags};
use scps_fp::net::{Accepted, Aside, ConnId, ListenId, Net, Recv, Service};
use scps_io::Stack;
use scps_tp::{CloseReason, Config, ConnectionId, Event, ListenerId, RecvError, Route, RouteId, State, Totals};
use scps_wire::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Ports for listeners that leave the choice to us (RFC 6335 §6).
const DYNAMIC_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// Octets a connection takes before they can be sent.
const UNSENT_MAX: u64 = 128 * 1024;
/// Connections that were given up but still deliver what they took; beyond these the oldest of whoever has most are reset.
/// The transport alone would keep one that nobody acknowledges for half an hour.
const LEAVING_MAX: usize = 256;

#[derive(Debug)]
struct Connection {
    id: ConnectionId,
    end: Option<CloseReason>,
}

#[derive(Debug)]
struct Listening {
    id: ListenerId,
    arrived: VecDeque<ConnectionId>,
    port: u16,
}

/// Connections of a stack.
#[derive(Debug)]
pub struct TpNet {
    stack: Stack,
    address: Ipv4Addr,
    config: Config,
    connections: BTreeMap<u64, Connection>,
    listeners: BTreeMap<u64, Listening>,
    leaving: VecDeque<ConnectionId>,
    next: u64,
    next_port: u16,
    ended: Arc<AtomicBool>,
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

fn v4(address: SocketAddr) -> io::Result<(Ipv4Addr, u16)> {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => Ok((ip, address.port())),
        IpAddr::V6(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "SCPS-TP runs over IPv4")),
    }
}

impl TpNet {
    /// Takes a stack whose address is `address`; `config` is that of all connections, best effort aside.
    pub fn new(stack: Stack, address: Ipv4Addr, config: Config) -> TpNet {
        TpNet {
            stack,
            address,
            config: config.bets(false),
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            leaving: VecDeque::new(),
            next: 1,
            next_port: *DYNAMIC_PORTS.start(),
            ended: Arc::default(),
        }
    }

    /// Lets every wait fail once `ended` is true: whoever waits for a peer is to end.
    pub fn fail_waits_when(&mut self, ended: Arc<AtomicBool>) {
        self.ended = ended;
    }

    /// Ends waits when `fd` becomes readable: a signal pipe, a keyboard.
    pub fn watch(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.stack.watch(fd).map_err(io::Error::other)
    }

    /// Counters of all connections together.
    pub fn totals(&self) -> Totals {
        self.stack.endpoint().totals()
    }

    /// The stack, for what SP has to tell.
    pub fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// Turns the stack until everything given up is delivered, at most for `longest`.
    pub fn linger(&mut self, longest: Duration) -> io::Result<()> {
        let until = self.stack.now() + longest;
        loop {
            let stack = &self.stack;
            self.leaving.retain(|id| {
                stack
                    .endpoint()
                    .state(*id)
                    .is_some_and(|s| !matches!(s, State::Closed | State::TimeWait | State::FinWait2))
            });
            if self.leaving.is_empty() || self.stack.now() >= until {
                return Ok(());
            }
            self.wait(Some(until))?;
        }
    }

    /// Resets every connection, and waits at most for `longest` until the resets have left; false if some have not.
    pub fn abort_all(&mut self, longest: Duration) -> io::Result<bool> {
        self.stack.look();
        self.stack.abort_all();
        self.stack.finish_resets(longest).map_err(io::Error::other)
    }

    fn config(&self, service: Service) -> Config {
        self.config.clone().bets(service == Service::BestEffort)
    }

    fn adopt(&mut self, id: ConnectionId) -> ConnId {
        let name = self.next;
        self.next += 1;
        self.connections.insert(name, Connection { id, end: None });
        ConnId(name)
    }

    /// Resets a connection that nobody is interested in.
    fn dismiss(&mut self, id: ConnectionId) {
        self.stack.abort(id);
        self.stack.release(id);
    }

    /// Ends one of too many connections that were given up: one that has delivered everything, or else the oldest of the peer that
    /// left most, so that those who leave few do not suffer from one who leaves many.
    fn bound_leaving(&mut self) {
        if self.leaving.len() <= LEAVING_MAX {
            return;
        }
        let endpoint = self.stack.endpoint();
        let has_delivered = |id: &ConnectionId| {
            endpoint.state(*id).is_none_or(|s| matches!(s, State::Closed | State::TimeWait | State::FinWait2))
        };
        let peer = |id: &ConnectionId| endpoint.addresses(*id).map(|(_, remote)| remote.ip());
        let mut counts = BTreeMap::new();
        for id in &self.leaving {
            *counts.entry(peer(id)).or_insert(0) += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, n)| *n).map(|(peer, _)| peer);
        let place = self.leaving.iter().position(has_delivered);
        let place = place.or_else(|| self.leaving.iter().position(|id| Some(peer(id)) == most));
        if let Some(id) = place.and_then(|place| self.leaving.remove(place)) {
            self.stack.abort(id);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Accepted(listener, id) => match self.listeners.values_mut().find(|l| l.id == listener) {
                    Some(found) => found.arrived.push_back(id),
                    None => self.dismiss(id),
                },
                Event::Closed(id, reason) => {
                    if let Some(connection) = self.connections.values_mut().find(|c| c.id == id) {
                        connection.end = Some(reason);
                    }
                    self.leaving.retain(|l| *l != id);
                }
                _ => {}
            }
        }
    }
}

/// The end of a job on another thread.
struct End {
    has_come: AtomicBool,
    wakeup: OwnedFd,
}

impl End {
    fn new() -> io::Result<End> {
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(End { has_come: AtomicBool::new(false), wakeup })
    }
}

/// Tells of the end when it is dropped, however the job ended.
struct Telling<'a>(&'a End);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.has_come.store(true, Ordering::Release);
        // It has room for one ring.
        let _ = rustix::io::write(&self.0.wakeup, &1u64.to_ne_bytes());
    }
}

impl Aside for TpNet {
    /// On a thread, while this one turns the stack: peers wait for acknowledgements, not for our disk.
    fn aside(&mut self, job: &mut (dyn FnMut() + Send)) {
        let Ok(end) = End::new() else { return job() };
        if self.stack.watch(end.wakeup.as_fd()).is_err() {
            return job();
        }
        let (end, job) = (&end, &Mutex::new(job));
        std::thread::scope(|scope| {
            let work = move || {
                let _end = Telling(end);
                if let Ok(mut job) = job.lock() {
                    job();
                }
            };
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                return work();
            }
            while !end.has_come.load(Ordering::Acquire) {
                self.take_events();
                // What the device has to tell is told by the next wait as well.
                if self.stack.run_once(None).is_err() {
                    return;
                }
            }
        });
        self.stack.look();
    }
}

impl Net for TpNet {
    fn now(&self) -> Instant {
        self.stack.now()
    }

    fn look(&mut self) {
        self.stack.look();
    }

    fn rest(&mut self) {
        // A device that failed fails the next wait, too.
        let _ = self.stack.send_now();
    }

    fn unix_time(&self) -> u64 {
        unix_time()
    }

    fn listen(&mut self, local: SocketAddr, service: Service) -> io::Result<(ListenId, SocketAddr)> {
        let (_, mut port) = v4(local)?;
        let in_use = |port: u16, listeners: &BTreeMap<u64, Listening>| listeners.values().any(|l| l.port == port);
        if port == 0 {
            let count = DYNAMIC_PORTS.len();
            let mut candidates = (0..count).map(|i| {
                let offset = (usize::from(self.next_port - DYNAMIC_PORTS.start()) + i) % count;
                DYNAMIC_PORTS.start() + offset as u16
            });
            port = candidates.find(|p| !in_use(*p, &self.listeners)).ok_or(io::ErrorKind::AddrInUse)?;
            // One port after the other, so that a late segment of the last transfer meets nobody.
            self.next_port = if port == *DYNAMIC_PORTS.end() { *DYNAMIC_PORTS.start() } else { port + 1 };
        } else if in_use(port, &self.listeners) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let config = self.config(service);
        let id = self.stack.listen((self.address, port), config).map_err(io::Error::other)?;
        let name = self.next;
        self.next += 1;
        self.listeners.insert(name, Listening { id, arrived: VecDeque::new(), port });
        Ok((ListenId(name), SocketAddr::new(self.address.into(), port)))
    }

    fn accept(&mut self, listener: ListenId) -> io::Result<Option<Accepted>> {
        self.take_events();
        let Some(id) = self.listeners.get_mut(&listener.0).ok_or_else(gone)?.arrived.pop_front() else {
            return Ok(None);
        };
        let Some((local, peer)) = self.stack.endpoint().addresses(id) else { return Ok(None) };
        let id = self.adopt(id);
        Ok(Some(Accepted { id, local, peer }))
    }

    fn unlisten(&mut self, listener: ListenId) {
        if let Some(listening) = self.listeners.remove(&listener.0) {
            self.stack.endpoint_mut().unlisten(listening.id);
            for id in listening.arrived {
                self.dismiss(id);
            }
        }
    }

    fn connect(&mut self, _local: IpAddr, remote: SocketAddr, service: Service) -> io::Result<ConnId> {
        let config = self.config(service);
        let id = self.stack.connect((self.address, 0), v4(remote)?, config).map_err(io::Error::other)?;
        Ok(self.adopt(id))
    }

    fn is_open(&mut self, id: ConnId) -> io::Result<bool> {
        self.take_events();
        let connection = self.connections.get(&id.0).ok_or_else(gone)?;
        if let Some(reason) = connection.end {
            return Err(reason.into());
        }
        let state = self.stack.endpoint().state(connection.id).ok_or_else(gone)?;
        Ok(!matches!(state, State::SynSent | State::SynReceived))
    }

    fn send(&mut self, id: ConnId, octets: &[u8]) -> io::Result<usize> {
        let connection = self.connections.get(&id.0).ok_or_else(gone)?;
        if let Some(reason) = connection.end {
            return Err(reason.into());
        }
        // What the stack has taken cannot be called back.
        let room = usize::try_from(UNSENT_MAX.saturating_sub(self.unsent(id))).unwrap_or(usize::MAX);
        self.stack.send(connection.id, &octets[..octets.len().min(room)]).map_err(io::Error::other)
    }

    fn recv(&mut self, id: ConnId, out: &mut [u8]) -> io::Result<Recv> {
        self.take_events();
        let connection = self.connections.get(&id.0).ok_or_else(gone)?;
        match self.stack.recv(connection.id, out) {
            Ok((0, _)) => Ok(Recv::End),
            Ok((n, _)) => Ok(Recv::Data(n)),
            Err(RecvError::Hole { len, .. }) => Ok(Recv::Hole(len)),
            Err(RecvError::WouldBlock) => Ok(Recv::Wait),
            Err(RecvError::Closed(reason)) => Err(reason.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn finish(&mut self, id: ConnId) {
        if let Some(connection) = self.connections.get(&id.0) {
            self.stack.close(connection.id);
        }
    }

    fn release(&mut self, id: ConnId) {
        if let Some(connection) = self.connections.remove(&id.0) {
            self.stack.release(connection.id);
            if connection.end.is_none() {
                self.leaving.push_back(connection.id);
                self.bound_leaving();
            }
        }
    }

    fn abort(&mut self, id: ConnId) {
        if let Some(connection) = self.connections.remove(&id.0) {
            self.dismiss(connection.id);
        }
    }

    fn unacknowledged(&self, id: ConnId) -> u64 {
        let snapshot = self.connections.get(&id.0).and_then(|c| self.stack.endpoint().snapshot(c.id));
        snapshot.map_or(0, |s| s.unacknowledged)
    }

    fn unsent(&self, id: ConnId) -> u64 {
        let snapshot = self.connections.get(&id.0).and_then(|c| self.stack.endpoint().snapshot(c.id));
        snapshot.map_or(0, |s| s.unsent)
    }

    fn addresses(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)> {
        self.stack.endpoint().addresses(self.connections.get(&id.0)?.id)
    }

    fn has_best_effort(&self) -> bool {
        true
    }

    fn is_link_up(&self) -> bool {
        self.stack.endpoint().route(RouteId::default()).is_none_or(Route::is_available)
    }

    fn wait(&mut self, until: Option<Instant>) -> io::Result<()> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(super::ended());
        }
        self.take_events();
        self.stack.run_once(until).map_err(io::Error::other)
    }
}
