//! One connection of an endpoint, for its user: the calls of [`Endpoint`] that name it.

use super::Endpoint;
use crate::error::{RecvError, SendError};
use crate::names::ConnectionId;
use crate::negotiation::Agreed;
use crate::state::State;
use crate::stats::{Progress, Snapshot, Stats};
use scps_types::Instant;
use std::net::SocketAddr;

/// A connection that exists ([`Endpoint::connection`]). Keep its [`ConnectionHandle::id`], and take a handle when there is something
/// to do.
///
/// ```
/// # use scps_tp::{Config, Endpoint, EndpointConfig, RouteConfig};
/// # use scps_types::{Instant, Seed};
/// # let now = Instant::ZERO;
/// # let mut endpoint = Endpoint::new(EndpointConfig::default(), RouteConfig::default(), Seed::from_u64(1), now);
/// let id = endpoint.connect(now, ([10, 0, 0, 1], 0), ([10, 0, 0, 2], 7), Config::default())?;
/// if let Some(mut connection) = endpoint.connection(id) {
///     connection.send(now, b"hello")?;
///     connection.close(now);
///     println!("{:?}, {} octets to deliver", connection.state(), connection.snapshot().unacknowledged);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ConnectionHandle<'a> {
    endpoint: &'a mut Endpoint,
    id: ConnectionId,
}

impl Endpoint {
    /// A connection to act on, if it exists still.
    pub fn connection(&mut self, id: ConnectionId) -> Option<ConnectionHandle<'_>> {
        self.connections.get(id)?;
        Some(ConnectionHandle { endpoint: self, id })
    }
}

impl ConnectionHandle<'_> {
    /// Its name.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// [`Endpoint::send`].
    pub fn send(&mut self, now: Instant, data: &[u8]) -> Result<usize, SendError> {
        self.endpoint.send(now, self.id, data)
    }

    /// [`Endpoint::send_record`].
    pub fn send_record(&mut self, now: Instant, record: &[u8]) -> Result<bool, SendError> {
        self.endpoint.send_record(now, self.id, record)
    }

    /// [`Endpoint::recv`].
    pub fn recv(&mut self, now: Instant, out: &mut [u8]) -> Result<(usize, bool), RecvError> {
        self.endpoint.recv(now, self.id, out)
    }

    /// [`Endpoint::room`].
    pub fn room(&mut self) -> usize {
        self.endpoint.room(self.id)
    }

    /// [`Endpoint::close`].
    pub fn close(&mut self, now: Instant) {
        self.endpoint.close(now, self.id);
    }

    /// Ends the connection at once with RST, and gives it up.
    pub fn abort(self, now: Instant) {
        self.endpoint.abort(now, self.id);
        self.endpoint.release(now, self.id);
    }

    /// [`Endpoint::release`].
    pub fn release(self, now: Instant) {
        self.endpoint.release(now, self.id);
    }

    /// [`Endpoint::state`].
    pub fn state(&self) -> State {
        self.endpoint.state(self.id).unwrap_or(State::Closed)
    }

    /// [`Endpoint::stats`].
    pub fn stats(&self) -> Stats {
        self.endpoint.stats(self.id).unwrap_or_default()
    }

    /// [`Endpoint::progress`].
    pub fn progress(&self) -> Progress {
        self.endpoint.progress(self.id).unwrap_or_default()
    }

    /// [`Endpoint::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        self.endpoint.snapshot(self.id).unwrap_or_default()
    }

    /// [`Endpoint::agreed`].
    pub fn agreed(&self) -> Agreed {
        self.endpoint.agreed(self.id).unwrap_or_default()
    }

    /// The peer's address.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.endpoint.addresses(self.id).map(|(_, peer)| peer)
    }
}
