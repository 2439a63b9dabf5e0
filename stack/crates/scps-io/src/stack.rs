//! The loop: device and engine joined, on one thread.

use crate::clock::Clock;
use crate::device::Device;
use crate::expiry::Expiry;
use crate::reactor::{Driven, Interest, Reactor};
use crate::sequence::{SequenceRecord, Supply};
use crate::states::StateLog;
use crate::sys::entropy_seed;
use crate::IoError;
use scps_sp::{KeyName, Notice};
use scps_tp::net::Protection;
use scps_tp::{
    Config, ConnectError, ConnectionId, Endpoint, EndpointConfig, Event, ListenError, ListenerId, RecvError,
    RouteConfig, RouteId, SendError, TraceRecord,
};
use scps_wire::{Duration, Instant, Seed};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A host's transport in operation. Calls never block but [`Stack::run_once`].
#[derive(Debug)]
pub struct Stack {
    endpoint: Endpoint,
    reactor: Reactor,
    driven: Driven,
    clock: Clock,
    now: Instant,
    /// Events that whoever calls [`Stack::run_once`] had the chance to take.
    shown: u64,
    /// Damaged frames that the engine knows of.
    damaged: u64,
    /// Where the sequence numbers of SP come from.
    supply: Supply,
    expiry: Expiry,
    states: Option<StateLog>,
    /// How long it stays after it has reset every connection.
    patience: Duration,
}

/// How long whoever resets its connections stays for peers that lost something, and ask (RFC 5961 §3): two round trips, for the answer may
/// be lost too.
pub(crate) fn parting(round_trip: Option<Duration>) -> Duration {
    round_trip.map_or(Duration::ZERO, |rtt| rtt * 2 + Duration::from_millis(100))
}

impl Stack {
    /// Joins a device to a new engine.
    pub fn new(
        device: Box<dyn Device>,
        config: EndpointConfig,
        route: RouteConfig,
        seed: Seed,
    ) -> Result<Self, IoError> {
        let clock = Clock::new();
        let mut reactor = Reactor::new().map_err(IoError::system("epoll"))?;
        let now = clock.now();
        let mut endpoint = Endpoint::new(config, route, seed, now);
        endpoint.set_carrier(device.carrier());
        let driven = Driven::new(device, &mut reactor);
        let (supply, expiry) = (Supply::default(), Expiry::default());
        let (shown, damaged, patience) = (0, 0, Duration::ZERO);
        Ok(Stack { endpoint, reactor, driven, clock, now, shown, damaged, supply, expiry, states: None, patience })
    }

    /// A host with one address and no rate, whose numbers nobody can guess.
    ///
    /// The program `examples/udp_transfer.rs`:
    ///
    /// ```
    #[doc = include_str!("../examples/udp_transfer.rs")]
    /// ```
    pub fn host(device: impl Device + 'static, own: impl Into<IpAddr>) -> Result<Self, IoError> {
        let config = EndpointConfig::default().addresses(vec![own.into()]);
        let seed = entropy_seed().map_err(IoError::system("entropy"))?;
        Stack::new(Box::new(device), config, RouteConfig::default().rate(None), seed)
    }

    /// Puts SP beneath all connections, of which there are none yet. `record` is of the keys that packets leave under; `ends` says
    /// when keys cease to be used, in seconds since 1970 by the system's clock.
    pub fn protect(
        &mut self,
        protection: Protection,
        record: SequenceRecord,
        ends: Vec<(KeyName, u64)>,
    ) -> Result<(), IoError> {
        self.endpoint.protect(protection);
        self.expiry = Expiry::new(ends);
        self.let_keys_expire();
        self.supply = Supply::new(record);
        self.reserve_numbers()
    }

    /// Something SP has to tell.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.endpoint.protection_mut()?.sp.poll_notice(self.now)
    }

    fn let_keys_expire(&mut self) {
        if self.expiry.is_due(self.now) {
            if let Some(protection) = self.endpoint.protection_mut() {
                self.expiry.apply(&mut protection.sp, self.now, Clock::unix_ns());
            }
        }
    }

    fn reserve_numbers(&mut self) -> Result<(), IoError> {
        match self.endpoint.protection_mut() {
            Some(protection) => self.supply.supply(&mut protection.sp),
            None => Ok(()),
        }
    }

    /// Time as the engine counts it, as of the last look at the clock. Every [`Stack::run_once`] looks when it begins and when
    /// it wakes.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Looks at the clock, for whoever was busy elsewhere since the last turn.
    pub fn look(&mut self) {
        self.now = self.clock.now();
    }

    /// Time zero of the engine on the system's clock, nanoseconds since 1970.
    pub fn origin_unix_ns(&self) -> i64 {
        self.clock.origin_unix_ns()
    }

    /// The engine, for queries.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The engine, for settings.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The device, for its counters.
    pub fn device(&self) -> &dyn Device {
        &*self.driven.device
    }

    /// Accepts connections.
    pub fn listen(&mut self, local: impl Into<SocketAddr>, config: Config) -> Result<ListenerId, ListenError> {
        self.endpoint.listen(local, config)
    }

    /// Asks for a connection; [`Event::Connected`] or [`Event::Closed`] follows.
    pub fn connect(
        &mut self,
        local: impl Into<SocketAddr>,
        remote: impl Into<SocketAddr>,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        self.endpoint.connect(self.now, local, remote, config)
    }

    /// Takes data to send, as much as there is room for.
    pub fn send(&mut self, id: ConnectionId, data: &[u8]) -> Result<usize, SendError> {
        self.endpoint.send(self.now, id, data)
    }

    /// Takes a whole record, or returns false until there is room.
    pub fn send_record(&mut self, id: ConnectionId, record: &[u8]) -> Result<bool, SendError> {
        self.endpoint.send_record(self.now, id, record)
    }

    /// Reads what is there.
    pub fn recv(&mut self, id: ConnectionId, out: &mut [u8]) -> Result<(usize, bool), RecvError> {
        self.endpoint.recv(self.now, id, out)
    }

    /// Ends sending.
    pub fn close(&mut self, id: ConnectionId) {
        self.endpoint.close(self.now, id);
    }

    /// Resets the connection.
    pub fn abort(&mut self, id: ConnectionId) {
        self.endpoint.abort(self.now, id);
    }

    /// Resets every connection, and accepts no more.
    pub fn abort_all(&mut self) {
        self.patience = parting(self.endpoint.round_trip());
        self.endpoint.abort_all(self.now);
    }

    /// Turns until every reset has passed the rate limit and left the device; false if that takes longer than `longest`. After
    /// [`Stack::abort_all`] it goes on as long as a peer takes to ask for an exact one.
    pub fn finish_resets(&mut self, longest: Duration) -> Result<bool, IoError> {
        self.look();
        let until = self.now + longest;
        self.transmit()?;
        while self.endpoint.owes_reset() || !self.driven.has_room() {
            if self.now >= until {
                return Ok(false);
            }
            self.run_once(Some(until))?;
        }
        self.send_now()?;
        let until = self.now + self.patience.min(longest);
        while self.now < until {
            self.run_once(Some(until))?;
        }
        self.send_now()?;
        Ok(true)
    }

    /// Sends what a device keeps for its next wait, for whoever does not wait before long.
    pub fn send_now(&mut self) -> Result<(), IoError> {
        let sent = self.driven.device.wait(self.reactor.as_fd(), Some(Duration::ZERO));
        sent.map(drop).map_err(IoError::system("send"))
    }

    /// Gives the connection up.
    pub fn release(&mut self, id: ConnectionId) {
        self.endpoint.release(self.now, id);
    }

    /// Stops accepting.
    pub fn unlisten(&mut self, id: ListenerId) {
        self.endpoint.unlisten(id);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    /// Writes a row of [`STATE_OCTETS`](crate::STATE_OCTETS) whenever windows or round trip of a connection with [`Config::trace`] have
    /// changed, behind the whole rows of the file. `is_shared`: somebody takes the trace, too.
    pub fn keep_states(&mut self, file: File, is_shared: bool) -> std::io::Result<()> {
        self.states = Some(StateLog::new(file, u64::MAX, self.origin_unix_ns(), is_shared)?);
        Ok(())
    }

    /// The next trace record.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        match &mut self.states {
            Some(states) => states.poll_trace(),
            None => self.endpoint.poll_trace(),
        }
    }

    /// Does what is due, sleeping until something is or until `deadline`. Returns without sleeping if there are new
    /// events; those left from an earlier turn keep nobody awake, so a caller drains [`Stack::poll_event`] each time.
    pub fn run_once(&mut self, deadline: Option<Instant>) -> Result<(), IoError> {
        self.look();
        self.let_keys_expire();
        self.transmit()?;
        let is_news = self.endpoint.events_made() > self.shown;
        let wait = if is_news { Some(Duration::ZERO) } else { self.time_to_wait(deadline) };
        let found = self.driven.wait(&mut self.reactor, wait).map_err(IoError::system("wait"))?;
        let asleep = self.now;
        self.look();
        let now = self.now;
        if self.driven.is_readable(&found, now.since(asleep)) {
            let endpoint = &mut self.endpoint;
            let device = &mut self.driven.device;
            device
                .receive(&mut |octets, batch, trust, from| {
                    endpoint.hear_from(from);
                    endpoint.handle_batch(now, octets, batch, trust, |_, _| ());
                })
                .map_err(IoError::system("receive"))?;
            let damaged = device.stats().damaged;
            if damaged > std::mem::replace(&mut self.damaged, damaged) {
                self.endpoint.handle_damage(now);
            }
        }
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.transmit()?;
        self.shown = self.endpoint.events_made();
        self.states.as_mut().map_or(Ok(()), |states| states.drain(&mut self.endpoint))
    }

    /// A turn for somebody who looks at his connection, not at events: only openings are kept, for listeners.
    pub(crate) fn run_once_for_stream(&mut self, until: Option<Instant>) -> Result<(), IoError> {
        self.endpoint.retain_events(|event| matches!(event, Event::Accepted(..)));
        self.run_once(until)
    }

    /// Makes [`Stack::run_once`] return when `other` becomes readable, once until it is read.
    pub fn watch(&mut self, other: BorrowedFd<'_>) -> Result<(), IoError> {
        self.reactor.watch(other, Interest::READ).map_err(IoError::system("epoll"))
    }

    fn time_to_wait(&self, deadline: Option<Instant>) -> Option<Duration> {
        let next = [self.endpoint.poll_timeout(), deadline].into_iter().flatten().min()?;
        Some(next.since(self.now))
    }

    /// Hands the engine's packets to the device until there are none or the device is full.
    fn transmit(&mut self) -> Result<(), IoError> {
        if !self.driven.has_room() {
            return Ok(());
        }
        self.reserve_numbers()?;
        let (now, endpoint, supply, mut result) = (self.now, &mut self.endpoint, &mut self.supply, Ok(()));
        let sent = self.driven.transmit(|device| {
            let packet = endpoint.poll_transmit(now, device.outbox());
            if let Some(protection) = endpoint.protection_mut() {
                result = supply.note_replaced(&mut protection.sp);
            }
            packet.filter(|_| result.is_ok()).map(|packet| device.queue(packet)).is_some()
        });
        if let Some(mtu) = self.driven.device.path_mtu() {
            self.endpoint.lower_mtu(now, RouteId::default(), mtu);
        }
        result.and(sent.map_err(IoError::system("send")))
    }
}
