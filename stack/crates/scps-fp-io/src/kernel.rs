//! The file protocol over the kernel's TCP: non-blocking sockets, one wait for all.

use crate::unix_time;
use scps_fp::net::{Accepted, Aside, ConnId, ListenId, Net, Recv, Service};
use scps_io::{Clock, Interest, Reactor};
use scps_wire::Instant;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Octets a connection takes before they can be sent.
const UNSENT_MAX: u32 = 128 * 1024;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Sockets of the kernel.
#[derive(Debug)]
pub struct KernelNet {
    reactor: Reactor,
    clock: Clock,
    connections: BTreeMap<u64, TcpStream>,
    listeners: BTreeMap<u64, TcpListener>,
    next: u64,
    ended: Arc<AtomicBool>,
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

/// What an error of accept(2) speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failed {
    /// The connection that came: its network's error, a firewall's refusal.
    Newcomer,
    /// This moment: nobody is there, or the system has no descriptors or memory. Who came waits in the backlog.
    Now,
    Listener,
}

impl Failed {
    fn of(error: &io::Error) -> Failed {
        match error.raw_os_error() {
            Some(
                libc::EINTR
                | libc::ECONNABORTED
                | libc::ENETDOWN
                | libc::EPROTO
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::EOPNOTSUPP
                | libc::ENETUNREACH
                | libc::EPERM
                | libc::ETIMEDOUT,
            ) => Failed::Newcomer,
            Some(libc::EAGAIN | libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => Failed::Now,
            _ => Failed::Listener,
        }
    }
}

impl KernelNet {
    /// No sockets yet.
    pub fn new() -> io::Result<KernelNet> {
        Ok(KernelNet {
            reactor: Reactor::new()?,
            clock: Clock::new(),
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            next: 1,
            ended: Arc::default(),
        })
    }

    /// Lets every wait fail once `ended` is true: whoever waits for a peer is to end.
    pub fn fail_waits_when(&mut self, ended: Arc<AtomicBool>) {
        self.ended = ended;
    }

    /// Ends waits when `fd` becomes readable: a signal pipe, a keyboard.
    pub fn watch(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.reactor.watch(fd, Interest::READ)
    }

    /// Resets every connection: to a peer a connection that ends by FIN looks finished.
    pub fn abort_all(&mut self) {
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        for id in ids {
            self.abort(ConnId(id));
        }
    }

    fn name(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn adopt(&mut self, stream: TcpStream) -> io::Result<ConnId> {
        stream.set_nonblocking(true)?;
        // Commands are short and waited for.
        let _ = stream.set_nodelay(true);
        // What the kernel has taken cannot be called back; an older kernel takes more.
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_MAX);
        self.reactor.watch(stream.as_fd(), Interest::BOTH)?;
        let name = self.name();
        self.connections.insert(name, stream);
        Ok(ConnId(name))
    }
}

/// The kernel's transport goes on whatever this process does.
impl Aside for KernelNet {}

impl Net for KernelNet {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn unix_time(&self) -> u64 {
        unix_time()
    }

    fn listen(&mut self, local: SocketAddr, _service: Service) -> io::Result<(ListenId, SocketAddr)> {
        let socket = Socket::new(Domain::for_address(local), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from(socket);
        let address = listener.local_addr()?;
        self.reactor.watch(listener.as_fd(), Interest::READ)?;
        let name = self.name();
        self.listeners.insert(name, listener);
        Ok((ListenId(name), address))
    }

    fn accept(&mut self, listener: ListenId) -> io::Result<Option<Accepted>> {
        let socket = self.listeners.get(&listener.0).ok_or_else(gone)?;
        loop {
            match socket.accept() {
                Ok((stream, peer)) => {
                    // A peer that has gone already is nobody.
                    let Ok(local) = stream.local_addr() else { continue };
                    let Ok(id) = self.adopt(stream) else { return Ok(None) };
                    return Ok(Some(Accepted { id, local, peer }));
                }
                Err(e) => match Failed::of(&e) {
                    Failed::Newcomer => {}
                    Failed::Now => return Ok(None),
                    Failed::Listener => return Err(e),
                },
            }
        }
    }

    fn unlisten(&mut self, listener: ListenId) {
        self.listeners.remove(&listener.0);
    }

    fn connect(&mut self, local: IpAddr, mut remote: SocketAddr, _service: Service) -> io::Result<ConnId> {
        // Where a listener serves both families, an address of IPv4 is written as one of IPv6; sockets are of one family.
        let local = local.to_canonical();
        remote.set_ip(remote.ip().to_canonical());
        let socket = Socket::new(Domain::for_address(remote), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        if !local.is_unspecified() {
            // The peer compares the source with the control connection's.
            socket.bind(&SocketAddr::new(local, 0).into())?;
        }
        match socket.connect(&remote.into()) {
            Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => return Err(e),
            _ => {}
        }
        self.adopt(socket.into())
    }

    fn is_open(&mut self, id: ConnId) -> io::Result<bool> {
        let stream = self.connections.get(&id.0).ok_or_else(gone)?;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn send(&mut self, id: ConnId, octets: &[u8]) -> io::Result<usize> {
        let stream = self.connections.get_mut(&id.0).ok_or_else(gone)?;
        loop {
            match stream.write(octets) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn recv(&mut self, id: ConnId, out: &mut [u8]) -> io::Result<Recv> {
        let stream = self.connections.get_mut(&id.0).ok_or_else(gone)?;
        loop {
            match stream.read(out) {
                Ok(0) => return Ok(Recv::End),
                Ok(n) => return Ok(Recv::Data(n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Recv::Wait),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn finish(&mut self, id: ConnId) {
        if let Some(stream) = self.connections.get(&id.0) {
            // An error means that it has ended already.
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    }

    fn release(&mut self, id: ConnId) {
        self.connections.remove(&id.0);
    }

    fn abort(&mut self, id: ConnId) {
        if let Some(stream) = self.connections.remove(&id.0) {
            // Closing then resets; if it cannot be set, closing is the next best.
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        }
    }

    fn unacknowledged(&self, id: ConnId) -> u64 {
        self.connections.get(&id.0).map_or(0, |stream| scps_io::unacknowledged_octets(stream.as_fd()))
    }

    fn unsent(&self, id: ConnId) -> u64 {
        self.connections.get(&id.0).map_or(0, |stream| scps_io::unsent_octets(stream.as_fd()))
    }

    fn addresses(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)> {
        let stream = self.connections.get(&id.0)?;
        Some((stream.local_addr().ok()?, stream.peer_addr().ok()?))
    }

    fn has_best_effort(&self) -> bool {
        false
    }

    fn is_link_up(&self) -> bool {
        true
    }

    fn wait(&mut self, until: Option<Instant>) -> io::Result<()> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(super::ended());
        }
        // Whole milliseconds, and one more: timers of the protocol are seconds, and due when we wake.
        let whole = |d: Duration| Duration::from_millis((d.as_nanos().div_ceil(1_000_000) + 1) as u64);
        let timeout = until.map(|t| t.since(self.now())).map(|d| if d.is_zero() { d } else { whole(d) });
        self.reactor.wait(timeout).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_from_an_address_of_ipv4_that_is_written_as_one_of_ipv6() {
        let mut net = KernelNet::new().unwrap();
        let (listener, address) = net.listen("127.0.0.1:0".parse().unwrap(), Service::Reliable).unwrap();
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        for (local, remote) in [(mapped, address.ip()), (mapped, mapped), (address.ip(), mapped)] {
            let remote = SocketAddr::new(remote, address.port());
            net.connect(local, remote, Service::Reliable).unwrap();
            let accepted = loop {
                match net.accept(listener).unwrap() {
                    Some(accepted) => break accepted,
                    None => net.wait(None).unwrap(),
                }
            };
            assert_eq!(accepted.peer.ip(), address.ip());
        }
    }

    #[test]
    fn only_an_error_of_the_listener_ends_the_service() {
        let of = |code| Failed::of(&io::Error::from_raw_os_error(code));
        for code in [libc::ENOBUFS, libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::EWOULDBLOCK] {
            assert_eq!(of(code), Failed::Now);
        }
        for code in [libc::ECONNABORTED, libc::EPROTO, libc::EPERM, libc::EHOSTUNREACH, libc::EINTR] {
            assert_eq!(of(code), Failed::Newcomer);
        }
        assert_eq!((of(libc::EBADF), of(libc::EINVAL)), (Failed::Listener, Failed::Listener));
    }
}
