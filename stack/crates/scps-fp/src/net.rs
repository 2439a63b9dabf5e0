//! What the protocol needs of a transport and a clock; drivers are elsewhere.

use scps_wire::Instant;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// A connection's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnId(pub u64);

/// A listener's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListenId(pub u64);

/// What a connection promises.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Service {
    /// Every octet arrives.
    #[default]
    Reliable,
    /// Octets may be missing; the reader is told where (BETS, scps-fp §8).
    BestEffort,
}

/// What a read found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recv {
    /// This many octets.
    Data(usize),
    /// Nothing yet.
    Wait,
    /// This many octets will never come (best effort only).
    Hole(u64),
    /// The peer has finished sending.
    End,
}

/// A new connection at a listener.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// Its name.
    pub id: ConnId,
    /// Our address.
    pub local: SocketAddr,
    /// The other side's.
    pub peer: SocketAddr,
}

/// Somebody who can do slow work on the side.
pub trait Aside {
    /// Does what may take long and asks nobody, such as writing to a disk, and returns when it is done. A transport of this process
    /// goes on meanwhile.
    fn aside(&mut self, job: &mut (dyn FnMut() + Send)) {
        job();
    }
}

/// Does `job` on the side, for its result.
pub fn aside<T: Send>(by: &mut (impl Aside + ?Sized), job: impl FnOnce() -> T + Send) -> io::Result<T> {
    let (mut job, mut result) = (Some(job), None);
    by.aside(&mut || result = job.take().map(|job| job()));
    result.ok_or_else(|| io::ErrorKind::Interrupted.into())
}

/// Connections and time. No call but [`Net::wait`] blocks.
pub trait Net: Aside {
    /// Time since an arbitrary start, as of the last wait at the least.
    fn now(&self) -> Instant;
    /// Makes `now` current again, for whoever was busy elsewhere since the last wait.
    fn look(&mut self) {}
    /// Sends what waits for the next [`Net::wait`], which may be long in coming. What fails is told by that wait.
    fn rest(&mut self) {}
    /// Seconds since 1970.
    fn unix_time(&self) -> u64;
    /// Listens; port 0 lets the transport choose. Returns the address in use.
    fn listen(&mut self, local: SocketAddr, service: Service) -> io::Result<(ListenId, SocketAddr)>;
    /// A connection that came in, if one did.
    fn accept(&mut self, listener: ListenId) -> io::Result<Option<Accepted>>;
    /// Stops listening.
    fn unlisten(&mut self, listener: ListenId);
    /// Asks for a connection from `local` (any port).
    fn connect(&mut self, local: IpAddr, remote: SocketAddr, service: Service) -> io::Result<ConnId>;
    /// True once open, false while opening, an error once it failed.
    fn is_open(&mut self, id: ConnId) -> io::Result<bool>;
    /// Takes octets to send; 0 means no room now.
    fn send(&mut self, id: ConnId, octets: &[u8]) -> io::Result<usize>;
    /// Reads what is there.
    fn recv(&mut self, id: ConnId, out: &mut [u8]) -> io::Result<Recv>;
    /// Ends sending; what was taken is still delivered.
    fn finish(&mut self, id: ConnId);
    /// Gives the connection up, orderly; what was taken is still delivered.
    fn release(&mut self, id: ConnId);
    /// Ends the connection at once; what was taken and not delivered is lost, and the peer is told so.
    fn abort(&mut self, id: ConnId);
    /// Octets taken that the peer has not acknowledged yet: while this shrinks, the connection is alive.
    fn unacknowledged(&self, id: ConnId) -> u64;
    /// Octets taken that have not been sent for the first time yet.
    fn unsent(&self, id: ConnId) -> u64;
    /// Our address and the peer's.
    fn addresses(&self, id: ConnId) -> Option<(SocketAddr, SocketAddr)>;
    /// True if [`Service::BestEffort`] exists here.
    fn has_best_effort(&self) -> bool;
    /// False while the transport knows that the link is down and waits by itself.
    fn is_link_up(&self) -> bool;
    /// Sleeps until something happened or `until`.
    fn wait(&mut self, until: Option<Instant>) -> io::Result<()>;
}
