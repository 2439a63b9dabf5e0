//! A network and a clock that are numbers: connections are queues, time passes when everybody waits, faults happen at
//! chosen octets.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod peer;
pub mod script;

use scps_fp::client::{Client, Console, Report, Resolver, Urge};
use scps_fp::config::Mib;
use scps_fp::net::{Accepted, Aside, ConnId, ListenId, Net, Recv, Service};
use scps_fp::server::{Server, ServerConfig};
use scps_fp::users::{User, Users};
use scps_wire::{Duration, Instant};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub const SERVER: &str = "10.0.0.2";
pub const OTHER_SERVER: &str = "10.0.0.3";
pub const CLIENT: &str = "10.0.0.1";
pub const CONTROL_PORT: u16 = 2121;
/// Octets a connection holds on its way.
const ROOM: usize = 64 * 1024;

/// Octets of them that have left the sender.
const WINDOW: usize = 16 * 1024;

/// What happens at a chosen octet of all data connections together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Every control connection is reset.
    CutControl,
    /// Every data connection is reset.
    CutData,
    /// Nothing passes for so many seconds; nobody is told.
    Outage(u64),
    /// The server's process ends; a new one starts after so many seconds.
    KillServer(u64),
    /// The client's process ends.
    KillClient,
}

#[derive(Debug)]
struct End {
    peer: u64,
    host: IpAddr,
    local: SocketAddr,
    remote: SocketAddr,
    inbox: VecDeque<u8>,
    /// Lost in an outage: the sender took them for sent.
    in_outage: VecDeque<u8>,
    peer_finished: bool,
    finish_in_outage: bool,
    reset: bool,
    accepted_by: Option<u64>,
}

struct Host {
    config: Box<dyn Fn() -> ServerConfig>,
    server: Option<Server>,
    back_at: Option<Instant>,
}

#[derive(Default)]
struct Core {
    now: Instant,
    version: u64,
    next: u64,
    ends: BTreeMap<u64, End>,
    listeners: BTreeMap<u64, (SocketAddr, VecDeque<u64>)>,
    refused: BTreeSet<u64>,
    data_octets: u64,
    faults: VecDeque<(u64, Fault)>,
    outage_until: Option<Instant>,
    killed_client: bool,
    /// The transport knows that its link is down.
    link_down: bool,
    asides: u32,
    kill_server_for: Option<u64>,
    pub log: Vec<String>,
}

/// Everything.
#[derive(Clone)]
pub struct World {
    core: Rc<RefCell<Core>>,
    hosts: Rc<RefCell<BTreeMap<IpAddr, Host>>>,
    scripts: Rc<RefCell<Vec<script::Script>>>,
}

/// One host's view.
pub struct SimNet {
    world: World,
    host: IpAddr,
}

impl Core {
    fn is_control(&self, id: u64) -> bool {
        self.ends.get(&id).is_some_and(|e| e.local.port() == CONTROL_PORT || e.remote.port() == CONTROL_PORT)
    }

    fn reset_where(&mut self, control: bool) {
        let ids: Vec<u64> = self.ends.keys().copied().filter(|id| self.is_control(*id) == control).collect();
        for id in ids {
            if let Some(end) = self.ends.get_mut(&id) {
                end.reset = true;
            }
        }
    }

    fn close_host(&mut self, host: IpAddr) {
        let ids: Vec<u64> = self.ends.iter().filter(|(_, e)| e.host == host).map(|(id, _)| *id).collect();
        for id in ids {
            self.close(id);
        }
        self.listeners.retain(|_, (address, _)| address.ip() != host);
    }

    /// As a kernel closes: orderly, unless something was left unread.
    fn close(&mut self, id: u64) {
        let Some(end) = self.ends.remove(&id) else { return };
        let in_outage = self.outage_until.is_some();
        if let Some(peer) = self.ends.get_mut(&end.peer) {
            if !end.inbox.is_empty() {
                peer.reset = true;
            } else if in_outage {
                peer.finish_in_outage = true;
            } else {
                peer.peer_finished = true;
            }
        }
        self.version += 1;
    }

    fn fire(&mut self, fault: Fault) {
        self.version += 1;
        match fault {
            Fault::CutControl => self.reset_where(true),
            Fault::CutData => self.reset_where(false),
            Fault::Outage(seconds) => self.outage_until = Some(self.now + Duration::from_secs(seconds)),
            Fault::KillServer(seconds) => self.kill_server_for = Some(seconds),
            Fault::KillClient => self.killed_client = true,
        }
    }
}

impl World {
    /// Nobody yet.
    pub fn new() -> World {
        let core = Core { now: Instant::from_secs(1000), next: 1, ..Core::default() };
        World { core: Rc::new(RefCell::new(core)), hosts: Rc::default(), scripts: Rc::default() }
    }

    pub fn net(&self, host: &str) -> SimNet {
        SimNet { world: self.clone(), host: host.parse().unwrap() }
    }

    /// A server that comes back as `config` says.
    pub fn serve(&self, host: &str, config: impl Fn() -> ServerConfig + 'static) {
        let address: IpAddr = host.parse().unwrap();
        let server = Server::start(&mut self.net(host), SocketAddr::new(address, CONTROL_PORT), config()).unwrap();
        let entry = Host { config: Box::new(config), server: Some(server), back_at: None };
        self.hosts.borrow_mut().insert(address, entry);
    }

    /// A server without login over `root`.
    pub fn serve_open(&self, host: &str, root: &Path, mib: Mib) {
        let root = root.to_owned();
        self.serve(host, move || ServerConfig {
            mib: mib.clone(),
            open_as: Some(open_user(&root)),
            ..ServerConfig::default()
        });
    }

    pub fn fault_at(&self, octet: u64, fault: Fault) {
        self.core.borrow_mut().faults.push_back((octet, fault));
    }

    pub fn set_link_down(&self, down: bool) {
        self.core.borrow_mut().link_down = down;
    }

    pub fn now(&self) -> Instant {
        self.core.borrow().now
    }

    pub fn data_octets(&self) -> u64 {
        self.core.borrow().data_octets
    }

    /// Jobs that were done on the side.
    pub fn asides(&self) -> u32 {
        self.core.borrow().asides
    }

    pub fn log(&self) -> String {
        self.core.borrow().log.join("\n")
    }

    /// Ends every connection of a host as its kernel does when the process dies.
    pub fn kill(&self, host: &str) {
        self.core.borrow_mut().close_host(host.parse().unwrap());
        self.core.borrow_mut().killed_client = false;
    }

    /// Lets servers work until none has anything to do; returns when the first wants to be called again.
    pub fn settle(&self) -> Option<Instant> {
        loop {
            let before = self.core.borrow().version;
            self.end_and_start_servers();
            let mut next: Option<Instant> = None;
            let mut hosts = std::mem::take(&mut *self.hosts.borrow_mut());
            for (address, host) in &mut hosts {
                if let Some(server) = &mut host.server {
                    let due = server.run_once(&mut SimNet { world: self.clone(), host: *address }).unwrap();
                    self.core.borrow_mut().log.extend(server.take_log().into_iter().map(|line| line.text));
                    next = [next, due].into_iter().flatten().min();
                }
                next = [next, host.back_at].into_iter().flatten().min();
            }
            *self.hosts.borrow_mut() = hosts;
            let mut scripts = std::mem::take(&mut *self.scripts.borrow_mut());
            for script in &mut scripts {
                next = [next, script.run(self)].into_iter().flatten().min();
            }
            *self.scripts.borrow_mut() = scripts;
            if self.core.borrow().version == before {
                return next;
            }
        }
    }

    fn end_and_start_servers(&self) {
        let now = self.now();
        let killed = self.core.borrow_mut().kill_server_for.take();
        if let Some(seconds) = killed {
            for host in self.hosts.borrow_mut().values_mut().filter(|h| h.server.is_some()) {
                host.server = None;
                host.back_at = Some(now + Duration::from_secs(seconds));
            }
            let addresses: Vec<IpAddr> = self.hosts.borrow().keys().copied().collect();
            for address in addresses {
                self.core.borrow_mut().close_host(address);
            }
        }
        for (address, host) in self.hosts.borrow_mut().iter_mut() {
            if host.back_at.is_some_and(|t| t <= now) {
                host.back_at = None;
                let mut net = SimNet { world: self.clone(), host: *address };
                host.server =
                    Some(Server::start(&mut net, SocketAddr::new(*address, CONTROL_PORT), (host.config)()).unwrap());
                self.core.borrow_mut().version += 1;
            }
        }
    }

    /// Sessions of a server.
    pub fn session_count(&self, host: &str) -> usize {
        let hosts = self.hosts.borrow();
        hosts[&host.parse().unwrap()].server.as_ref().map_or(0, Server::session_count)
    }

    /// Lets time pass, servers working whenever they are due.
    pub fn pass(&self, duration: Duration) {
        let until = self.now() + duration;
        while self.now() < until {
            let due = self.settle().unwrap_or(until).clamp(self.now(), until);
            self.advance_to(if due == self.now() { due + Duration::from_millis(1) } else { due });
        }
        self.settle();
    }

    fn advance_to(&self, time: Instant) {
        let mut core = self.core.borrow_mut();
        core.now = core.now.max(time);
        if core.outage_until.is_some_and(|t| t <= core.now) {
            // What the transport kept is delivered now.
            core.outage_until = None;
            core.version += 1;
            for end in core.ends.values_mut() {
                let late = std::mem::take(&mut end.in_outage);
                end.inbox.extend(late);
                end.peer_finished |= std::mem::take(&mut end.finish_in_outage);
            }
        }
    }
}

pub fn open_user(root: &Path) -> User {
    User { password: None, root: root.to_owned(), read_only: false, quota: None, admin: false }
}

/// Users with a password each: the name backwards, so that nobody knows it by heart.
pub fn users(root: &Path, names: &[&str]) -> Users {
    let entries: Vec<String> = names
        .iter()
        .map(|name| {
            let password: String = name.chars().rev().collect();
            let hash = scps_fp::users::hash_password(&password, [1; 16]).unwrap();
            let home = root.join(name);
            std::fs::create_dir_all(&home).unwrap();
            format!(r#""{name}": {{"password": "{hash}", "root": "{}"}}"#, home.display())
        })
        .collect();
    Users::parse(&format!(r#"{{"users": {{{}}}}}"#, entries.join(",")), root).unwrap()
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl Aside for SimNet {
    fn aside(&mut self, job: &mut (dyn FnMut() + Send)) {
        self.world.core.borrow_mut().asides += 1;
        job();
    }
}

impl Net for SimNet {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn unix_time(&self) -> u64 {
        1_700_000_000 + self.now().as_millis() / 1000
    }

    fn listen(&mut self, local: SocketAddr, _service: Service) -> io::Result<(ListenId, SocketAddr)> {
        let mut core = self.world.core.borrow_mut();
        core.next += 1;
        let id = core.next;
        let port = if local.port() == 0 { 20_000 + (id % 40_000) as u16 } else { local.port() };
        let address = SocketAddr::new(self.host, port);
        if core.listeners.values().any(|(a, _)| *a == address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        core.listeners.insert(id, (address, VecDeque::new()));
        Ok((ListenId(id), address))
    }

    fn accept(&mut self, listener: ListenId) -> io::Result<Option<Accepted>> {
        let mut core = self.world.core.borrow_mut();
        let Some(id) = core.listeners.get_mut(&listener.0).ok_or_else(gone)?.1.pop_front() else { return Ok(None) };
        core.version += 1;
        let end = core.ends.get(&id).map(|e| (e.local, e.remote));
        Ok(end.map(|(local, peer)| Accepted { id: ConnId(id), local, peer }))
    }

    fn unlisten(&mut self, listener: ListenId) {
        let mut core = self.world.core.borrow_mut();
        if let Some((_, waiting)) = core.listeners.remove(&listener.0) {
            for id in waiting {
                core.close(id);
            }
        }
    }

    fn connect(&mut self, _local: IpAddr, remote: SocketAddr, _service: Service) -> io::Result<ConnId> {
        let mut core = self.world.core.borrow_mut();
        core.next += 2;
        let (ours, theirs) = (core.next, core.next + 1);
        core.next += 1;
        core.version += 1;
        let local = SocketAddr::new(self.host, 10_000 + (ours % 50_000) as u16);
        let found = core.listeners.iter().find(|(_, (a, _))| *a == remote).map(|(id, _)| *id);
        let Some(listener) = found.filter(|_| core.outage_until.is_none()) else {
            core.refused.insert(ours);
            return Ok(ConnId(ours));
        };
        let end = |peer, host, local, remote| End {
            peer,
            host,
            local,
            remote,
            inbox: VecDeque::new(),
            in_outage: VecDeque::new(),
            peer_finished: false,
            finish_in_outage: false,
            reset: false,
            accepted_by: None,
        };
        core.ends.insert(ours, end(theirs, self.host, local, remote));
        core.ends.insert(theirs, end(ours, remote.ip(), remote, local));
        core.listeners.get_mut(&listener).unwrap().1.push_back(theirs);
        Ok(ConnId(ours))
    }

    fn is_open(&mut self, id: ConnId) -> io::Result<bool> {
        let mut core = self.world.core.borrow_mut();
        if core.refused.remove(&id.0) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        match core.ends.get(&id.0) {
            Some(end) if end.reset => Err(io::ErrorKind::ConnectionReset.into()),
            Some(_) => Ok(true),
            None => Err(gone()),
        }
    }

    fn send(&mut self, id: ConnId, octets: &[u8]) -> io::Result<usize> {
        let mut core = self.world.core.borrow_mut();
        let end = core.ends.get(&id.0).ok_or_else(gone)?;
        let peer_id = end.peer;
        if end.reset || !core.ends.contains_key(&peer_id) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let is_data = !core.is_control(id.0);
        let in_outage = core.outage_until.is_some();
        let fault_at = core.faults.front().map(|(at, _)| *at).filter(|_| is_data);
        let data_octets = core.data_octets;
        let peer = core.ends.get_mut(&peer_id).unwrap();
        let queue = if in_outage { &mut peer.in_outage } else { &mut peer.inbox };
        let mut n = octets.len().min(ROOM.saturating_sub(queue.len()));
        if let Some(at) = fault_at {
            n = n.min(usize::try_from(at.saturating_sub(data_octets)).unwrap());
        }
        queue.extend(&octets[..n]);
        core.version += u64::from(n > 0);
        if is_data {
            core.data_octets += n as u64;
            if fault_at.is_some_and(|at| core.data_octets >= at) {
                let (_, fault) = core.faults.pop_front().unwrap();
                core.fire(fault);
            }
        }
        Ok(n)
    }

    fn recv(&mut self, id: ConnId, out: &mut [u8]) -> io::Result<Recv> {
        let mut core = self.world.core.borrow_mut();
        let end = core.ends.get_mut(&id.0).ok_or_else(gone)?;
        if end.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let n = end.inbox.len().min(out.len());
        if n == 0 {
            return Ok(if end.peer_finished { Recv::End } else { Recv::Wait });
        }
        for (slot, octet) in out.iter_mut().zip(end.inbox.drain(..n)) {
            *slot = octet;
        }
        core.version += 1;
        Ok(Recv::Data(n))
    }

    fn finish(&mut self, id: ConnId) {
        let mut core = self.world.core.borrow_mut();
        let in_outage = core.outage_until.is_some();
        let Some(peer) = core.ends.get(&id.0).map(|e| e.peer) else { return };
        if let Some(peer) = core.ends.get_mut(&peer) {
            if in_outage {
                peer.finish_in_outage = true;
            } else {
                peer.peer_finished = true;
            }
        }
        core.version += 1;
    }

    fn release(&mut self, id: ConnId) {
        self.world.core.borrow_mut().close(id.0);
    }

    fn abort(&mut self, id: ConnId) {
        let mut core = self.world.core.borrow_mut();
        let in_outage = core.outage_until.is_some();
        let Some(end) = core.ends.remove(&id.0) else { return };
        core.version += 1;
        if let Some(peer) = core.ends.get_mut(&end.peer).filter(|_| !in_outage) {
            peer.reset = true;
        }
    }

    fn unacknowledged(&self, id: ConnId) -> u64 {
        let core = self.world.core.borrow();
        let peer = core.ends.get(&id.0).and_then(|e| core.ends.get(&e.peer));
        peer.map_or(0, |p| (p.inbox.len() + p.in_outage.len()) as u64)
    }

    fn unsent(&self, id: ConnId) -> u64 {
        // What fits into the window has left.
        self.unacknowledged(id).saturating_sub(WINDOW as u64)
    }

    fn addresses(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)> {
        self.world.core.borrow().ends.get(&id.0).map(|e| (e.local, e.remote))
    }

    fn has_best_effort(&self) -> bool {
        false
    }

    fn is_link_up(&self) -> bool {
        !self.world.core.borrow().link_down
    }

    fn wait(&mut self, until: Option<Instant>) -> io::Result<()> {
        let before = self.world.core.borrow().version;
        let due = self.world.settle();
        let killed = std::mem::take(&mut self.world.core.borrow_mut().killed_client);
        assert!(!killed, "{KILLED}");
        let (changed, outage) = {
            let core = self.world.core.borrow();
            (core.version != before, core.outage_until)
        };
        if !changed {
            let next = [until, due, outage].into_iter().flatten().min().expect("everybody waits for ever");
            self.world.advance_to(next.max(self.now() + Duration::from_micros(1)));
        }
        Ok(())
    }
}

/// What a killed client's thread of control ends with.
pub const KILLED: &str = "the client's process was killed";

/// A user who may lose patience at some octet, and hears everything.
#[derive(Default)]
pub struct Person {
    pub heard: Vec<String>,
}

impl Console for Person {
    fn show(&mut self, line: &str) {
        self.heard.push(line.to_owned());
    }

    fn urge(&mut self) -> Option<Urge> {
        None
    }
}

pub struct Names;

impl Resolver for Names {
    fn resolve(&self, host: &str, port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::new(host.parse().ok()?, port))
    }
}

/// Runs lines in a new client; `Err` if its process was killed.
pub fn run_client(world: &World, folder: &Path, mib: &Mib, lines: &[&str]) -> Result<Vec<Report>, ()> {
    let (world, folder, mib) = (world.clone(), folder.to_owned(), mib.clone());
    let lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
    let attempt = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut net = world.net(CLIENT);
        let mut person = Person::default();
        let mut client = Client::new(&mut net, &mut person, mib, CLIENT.parse().unwrap());
        client.folder.clone_from(&folder);
        lines.iter().filter_map(|l| client.run_line(l, &Names)).collect::<Vec<Report>>()
    }));
    world.kill(CLIENT);
    attempt.map_err(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str).or(cause.downcast_ref::<&str>().copied());
        if text != Some(KILLED) {
            std::panic::resume_unwind(cause);
        }
    })
}

/// Short times, automatic restart by command only.
pub fn quick() -> Mib {
    let mut mib = Mib::default();
    for (name, value) in [("DATATIMEOUT", "10"), ("REPLYTIMEOUT", "10"), ("RESTARTDELAY", "1"), ("STALLTAKEOVER", "2")]
    {
        mib.set(name, value).unwrap();
    }
    mib
}

/// Octets that are all different enough.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut octets = vec![0; length];
    scps_wire::Seed::from_u64(seed).stream("noise").fill(&mut octets);
    octets
}

/// Two folders: the server's and the client's.
pub struct Folders {
    _root: tempfile::TempDir,
    pub server: PathBuf,
    pub client: PathBuf,
}

pub fn folders() -> Folders {
    let root = tempfile::tempdir().unwrap();
    let (server, client) = (root.path().join("server"), root.path().join("client"));
    std::fs::create_dir(&server).unwrap();
    std::fs::create_dir(&client).unwrap();
    Folders { _root: root, server, client }
}

/// A world with one server that everybody may use, and its folders.
pub fn serve(mib: Mib) -> (World, Folders) {
    let folders = folders();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, mib);
    (world, folders)
}

/// A peer that is connected to such a server.
pub fn connect(mib: Mib) -> (peer::Peer, Folders) {
    let (world, folders) = serve(mib);
    (peer::Peer::connect(&world).0, folders)
}

/// A reply of one line.
pub fn text(code: u16, rest: &str) -> String {
    format!("{code} {rest}\r\n")
}
