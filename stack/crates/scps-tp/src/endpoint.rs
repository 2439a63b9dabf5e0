//! All connections of a host: finding them, feeding them, and asking each in turn what leaves next.
//!
//! This file routes calls, `endpoint/arrival.rs` packets; what a connection does with them is the connection's.

mod arrival;
mod handle;
mod listening;
mod transmit;
mod unknown;

pub use handle::ConnectionHandle;
pub use transmit::{Offload, Transmit};
pub use unknown::UnknownSegment;

use crate::ack::{Owed, SegmentBatch};
use crate::config::{Config, Congestion, LossMeaning, RouteConfig};
use crate::connection::{Connection, PendingReset, Setup};
use crate::error::{ConnectError, OptionError, RecvError, SendError};
use crate::event::{CloseReason, Disposition, DropReason, Event};
use crate::fallbacks::Fallbacks;
use crate::names::{carried, AddressPort, ConnectionId, ListenerId, RouteId};
use crate::negotiation::Agreed;
use crate::output::{Polled, Sending};
use crate::path_mtu::PathMtus;
use crate::route::Route;
use crate::schedule::Schedule;
use crate::state::State;
use crate::stats::{Progress, Signals, Snapshot, Stats, Totals};
use crate::table::ConnectionTable;
use crate::trace::TraceRecord;
use scps_net::{Envelope, Network, NetworkConfig};
#[cfg(feature = "sp")]
use scps_net::{Protection, Unsent};
use scps_types::{settings, Duration, Instant, Precedence, Rng, Seed, SeqNum};
use scps_wire::options::Options;
use scps_wire::protocol;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

settings! {
    /// Settings of an endpoint.
    #[derive(Clone, Debug)]
    pub struct EndpointConfig {
        /// Addresses that are ours; empty for any.
        pub addresses: Vec<IpAddr>,
        /// Connections whose SYN is answered and not acknowledged; further SYNs are answered with cookies.
        pub half_open_max: usize,
        /// Whether segments of no connection are answered by a reset (RFC 9293 §3.5.2). Whoever hands them on to
        /// somebody who knows them says no.
        pub resets_unknown: bool,
        /// Whether those that are reset are told of ([`Endpoint::poll_unknown`]), which is for whoever stands between
        /// the ends of connections.
        pub tells_unknown: bool,
        /// How long a destination that ignored SCPS SYNs is spared them (scps-tp §1.4).
        pub fallback_lifetime: Duration,
        /// What carries segments.
        pub network: NetworkConfig,
        /// Local ports chosen for connections without one (scps-tp §9.7).
        pub ephemeral_ports: (u16, u16),
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig {
            addresses: Vec::new(),
            half_open_max: 256,
            resets_unknown: true,
            tells_unknown: false,
            fallback_lifetime: Duration::from_secs(600),
            network: NetworkConfig::Ipv4,
            ephemeral_ports: (5001, 64_000),
        }
    }
}

/// Whether a received packet's transport checksum still has to be tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Test it.
    Check,
    /// The device vouches for it.
    Verified,
}

#[derive(Debug)]
struct Listener {
    id: ListenerId,
    config: Config,
    /// Whether the user decides about each SYN.
    asks: bool,
}

/// Replies to strangers waiting to leave.
const REPLIES_MAX: usize = 64;

/// All connections of a host.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    seed: Seed,
    rng: Rng,
    routes: Vec<Route>,
    route_table: BTreeMap<IpAddr, RouteId>,
    table: ConnectionTable,
    listeners: BTreeMap<AddressPort, Listener>,
    listeners_made: u32,
    last_cookie_at: Option<Instant>,
    schedule: Schedule,
    events: VecDeque<Event>,
    traces: VecDeque<TraceRecord>,
    replies: VecDeque<(Ipv4Addr, Vec<u8>)>,
    unknown: VecDeque<UnknownSegment>,
    questions: unknown::Questions,
    signals: Signals,
    owed: Owed,
    /// The packet in hand came in one batch with the one before it.
    is_in_batch: bool,
    /// Data octets of each segment that the packet in hand was joined from.
    joined: Option<usize>,
    fallbacks: Fallbacks,
    path_mtus: PathMtus,
    drops: [u64; DropReason::COUNT],
    gone: Totals,
    network: Network,
    joined_max: u16,
    /// What SP decrypted of the packet in hand.
    opened: Vec<u8>,
    /// Who sent a packet that cannot be made up.
    vouched: Option<Ipv4Addr>,
    now: Instant,
}

impl Endpoint {
    /// An endpoint whose default route is `route`.
    pub fn new(config: EndpointConfig, route: RouteConfig, seed: Seed, now: Instant) -> Self {
        let mut rng = seed.stream("endpoint");
        let network = Network::new(&config.network, rng.next_u32() as u16);
        Endpoint {
            config,
            seed,
            rng,
            routes: vec![Route::new(within(&network, route), now)],
            route_table: BTreeMap::new(),
            table: ConnectionTable::default(),
            listeners: BTreeMap::new(),
            listeners_made: 0,
            last_cookie_at: None,
            schedule: Schedule::new(1),
            events: VecDeque::new(),
            traces: VecDeque::new(),
            replies: VecDeque::new(),
            unknown: VecDeque::new(),
            questions: unknown::Questions::default(),
            signals: Signals::default(),
            owed: Owed::default(),
            is_in_batch: false,
            joined: None,
            fallbacks: Fallbacks::default(),
            path_mtus: PathMtus::default(),
            drops: [0; DropReason::COUNT],
            gone: Totals::default(),
            network,
            joined_max: 0,
            opened: Vec::new(),
            vouched: None,
            now,
        }
    }

    /// From now on, up to so many segments of a connection leave as one packet, and all segments without their checksum: its carrier
    /// does what [`Transmit::offload`] says. 0 for none, as in the beginning.
    pub fn set_joined_max(&mut self, joined_max: u16) {
        self.joined_max = joined_max;
    }

    // Routes.

    /// Adds a route for `destinations`.
    pub fn add_route(&mut self, now: Instant, config: RouteConfig, destinations: &[IpAddr]) -> RouteId {
        let id = RouteId(self.routes.len());
        self.routes.push(Route::new(within(&self.network, config), now));
        self.schedule.add_route();
        self.route_table.extend(destinations.iter().map(|d| (*d, id)));
        id
    }

    /// A route, if there is one of that name.
    pub fn route(&self, id: RouteId) -> Option<&Route> {
        self.routes.get(id.0)
    }

    /// Changes what losses mean on a route (scps-tp §14 item 63).
    pub fn set_route_loss(&mut self, now: Instant, id: RouteId, loss: LossMeaning) {
        if let Some(route) = self.routes.get_mut(id.0) {
            route.set_config(RouteConfig { loss, ..*route.config() }, now);
        }
    }

    /// Declares a route unavailable or available (scps-tp §6.8).
    pub fn set_route_available(&mut self, now: Instant, id: RouteId, available: bool) {
        self.advance_clock(now);
        let Some(route) = self.routes.get_mut(id.0) else { return };
        if route.is_available() == available {
            return;
        }
        route.set_available(available);
        self.tell_connections(now, id, None);
    }

    /// A route was given up or is back: its connections suspend or resume, but for one that knows.
    fn tell_connections(&mut self, now: Instant, id: RouteId, except: Option<u32>) {
        let available = self.routes[id.0].is_available();
        for index in self.table.places().filter(|i| Some(*i) != except) {
            let Some(c) = self.table.at_mut(index).filter(|c| c.path.route() == id) else { continue };
            if available {
                c.resume(now);
            } else {
                c.suspend(now);
            }
            self.settle(index);
        }
    }

    /// Takes the default route's rate credit for a packet that is not the endpoint's and does not wait; false if it
    /// must not leave, because more than a bucket full is owed (scps-tp §10.6). While connections wait for credit they
    /// have half of the rate.
    pub fn charge(&mut self, now: Instant, octets: usize) -> bool {
        self.advance_clock(now);
        let others_wait = self.schedule.is_blocked(RouteId::default());
        self.routes[0].charge(octets, now, others_wait)
    }

    fn route_to(&self, dst: Ipv4Addr) -> RouteId {
        self.route_table.get(&dst.into()).copied().unwrap_or_default()
    }

    /// Puts SP beneath all connections. There must be none yet: a segment's size is agreed on when a connection is
    /// made.
    #[cfg(feature = "sp")]
    pub fn protect(&mut self, protection: Protection) {
        debug_assert!(self.table.places().is_empty(), "connections are protected from the start");
        self.network.protect(protection);
    }

    /// SP, for its counters.
    #[cfg(feature = "sp")]
    pub fn protection(&self) -> Option<&Protection> {
        self.network.protection()
    }

    /// SP, for its keys and sequence numbers.
    #[cfg(feature = "sp")]
    pub fn protection_mut(&mut self) -> Option<&mut Protection> {
        self.network.protection_mut()
    }

    // Opening and closing.

    /// Asks for a connection. A local port of 0 lets the endpoint choose.
    pub fn connect(
        &mut self,
        now: Instant,
        local: impl Into<SocketAddr>,
        remote: impl Into<SocketAddr>,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        self.advance_clock(now);
        let local = carried(local.into()).map_err(ConnectError::Ipv6)?;
        let remote = carried(remote.into()).map_err(ConnectError::Ipv6)?;
        let local = (local.0, if local.1 == 0 { self.choose_port(local.0, remote)? } else { local.1 });
        if let Some(index) = self.table.between(local, remote) {
            // What waits for stray segments only may be followed at once (RFC 6191 §2): the new sequence numbers are
            // other ones.
            let is_waiting = self.table.at(index).is_some_and(|c| c.state == State::TimeWait && c.is_orphan);
            if !is_waiting {
                return Err(ConnectError::InUse);
            }
            if let Some(c) = self.table.at_mut(index) {
                c.finish(CloseReason::Finished);
            }
            self.settle(index);
        }
        #[cfg(feature = "sp")]
        if let Err(Unsent::Unprotected(reason)) = self.network.room(now, &envelope_of(local, remote, &config), 0) {
            return Err(ConnectError::Unprotected(reason));
        }
        let spared = self.fallbacks.spares(now, remote.0);
        let with_scps = config.scps && !(spared && config.fallback_after_syns.is_some());
        Ok(self.create(now, local, remote, config, State::SynSent, None, with_scps))
    }

    fn choose_port(&mut self, local: Ipv4Addr, remote: AddressPort) -> Result<u16, ConnectError> {
        let (low, high) = self.config.ephemeral_ports;
        let count = u64::from(high.saturating_sub(low)) + 1;
        // RFC 6056 §3.3.1: a random start, then upwards.
        let start = self.rng.below(count);
        (0..count)
            .map(|i| low + ((start + i) % count) as u16)
            .find(|p| self.table.between((local, *p), remote).is_none())
            .ok_or(ConnectError::NoPort)
    }

    #[allow(clippy::too_many_arguments, reason = "what makes a connection; the struct would be built on the spot")]
    fn create(
        &mut self,
        now: Instant,
        local: AddressPort,
        remote: AddressPort,
        config: Config,
        state: State,
        listener: Option<ListenerId>,
        with_scps: bool,
    ) -> ConnectionId {
        let (id, is_place_new) = self.table.reserve();
        if is_place_new {
            self.schedule.add_connection();
        }
        let route = self.route_to(remote.0);
        let connection_id = if config.compression && with_scps {
            let first = self.rng.below(255) as u8;
            self.table.take_identifier(now, local.0, remote.0, first)
        } else {
            0
        };
        let mut tuple = Vec::with_capacity(12);
        for (address, port) in [local, remote] {
            tuple.extend(address.octets());
            tuple.extend(port.to_be_bytes());
        }
        // RFC 6528 §3: ISN = M + F(tuple, secret), M counting 4 microseconds.
        let isn = (now.as_nanos() / 4000).wrapping_add(self.seed.keyed_hash("isn", &tuple));
        let iss = config.initial_sequence.unwrap_or(SeqNum(isn as u32));
        let envelope = envelope_of(local, remote, &config);
        let setup = Setup {
            id,
            local,
            remote,
            config,
            route,
            path_mtu: self.path_mtus.to(remote.0, now),
            network_header: self.network.overhead(&envelope) as u16,
            iss,
            // RFC 7323 §5.4: an offset per connection keeps the host's uptime private.
            timestamp_offset: self.seed.keyed_hash("timestamp", &tuple) as u32,
            connection_id,
            listener,
            with_scps,
        };
        let precedence = setup.config.precedence.unwrap_or(Precedence::LOWEST);
        let share = setup.config.share();
        let connection = Connection::new(setup, &self.routes[route.0], state, now);
        self.table.insert(connection);
        self.schedule.set_precedence(id.place(), precedence);
        self.schedule.set_share(id.place(), share);
        self.settle(id.place());
        id
    }

    /// Ends sending: FIN follows the data.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c, _| c.close());
    }

    /// Ends the connection at once with RST.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c, _| c.abort());
    }

    /// Ends every connection at once with RST, those that no user has heard of included.
    pub fn abort_all(&mut self, now: Instant) {
        for index in self.table.places() {
            self.abort(now, self.table.id_at(index));
        }
    }

    /// True while a reset waits to leave, for rate credit or because nobody polled.
    pub fn owes_reset(&self) -> bool {
        self.table.iter().any(|c| c.pending_reset != PendingReset::None)
    }

    /// Gives the connection up: it closes if it has not, and its memory is freed when it is gone.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c, _| c.orphan(now));
    }

    // Data.

    /// Takes as much of `data` as the send buffer has room for; [`Event::Writable`] follows if that was not all.
    pub fn send(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, SendError> {
        self.with(now, id, |c, _| c.send(data)).unwrap_or(Err(SendError::Closed))
    }

    /// Octets that [`Endpoint::send`] would take now; [`Event::Writable`] follows when there is room for more.
    pub fn room(&mut self, id: ConnectionId) -> usize {
        self.table.get_mut(id).filter(|c| c.state.may_send()).map_or(0, |c| c.sender.await_room())
    }

    /// Takes a whole record, or returns false until [`Event::Writable`].
    pub fn send_record(&mut self, now: Instant, id: ConnectionId, record: &[u8]) -> Result<bool, SendError> {
        self.with(now, id, |c, _| c.send_record(record)).unwrap_or(Err(SendError::Closed))
    }

    /// Reads octets; the flag tells whether the last one ends a record. `Ok((0, _))` is the end of the stream.
    pub fn recv(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<(usize, bool), RecvError> {
        self.recv_with(now, id, out.len(), |a, b| {
            out[..a.len()].copy_from_slice(a);
            out[a.len()..a.len() + b.len()].copy_from_slice(b);
        })
    }

    /// As [`Endpoint::recv`], but that `take` is given the octets, `len_max` at most, where they are: two pieces, the second
    /// perhaps empty.
    pub fn recv_with(
        &mut self,
        now: Instant,
        id: ConnectionId,
        len_max: usize,
        take: impl FnOnce(&[u8], &[u8]),
    ) -> Result<(usize, bool), RecvError> {
        self.with(now, id, |c, r| c.recv(now, r, len_max, take)).unwrap_or(Err(RecvError::Unknown))
    }

    // Queries and settings.

    /// The state of a connection, `None` if it does not exist.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.table.get(id).map(|c| c.state)
    }

    /// Counters of a connection.
    pub fn stats(&self, id: ConnectionId) -> Option<Stats> {
        self.table.get(id).map(|c| c.stats)
    }

    /// What routers told.
    pub fn signals(&self) -> Signals {
        self.signals
    }

    /// Counters of all connections together.
    pub fn totals(&self) -> Totals {
        let mut totals = self.gone;
        self.table.iter().for_each(|c| totals.add(&c.stats));
        totals
    }

    /// How often a peer was asked again for an answer that was due, by SYNs, resends after a timeout and probes: it
    /// grows while peers are silent, and otherwise slowly.
    pub fn asked_again(&self) -> u64 {
        let of = |c: &Connection| {
            let is_opening = matches!(c.state, State::SynSent | State::SynReceived);
            let syns = if is_opening { c.stats.segments_sent.saturating_sub(1) } else { 0 };
            syns + c.stats.rtos + c.stats.probes_sent
        };
        self.gone.rtos + self.table.iter().map(of).sum::<u64>()
    }

    /// What both sides agreed on.
    pub fn agreed(&self, id: ConnectionId) -> Option<Agreed> {
        self.table.get(id).map(|c| c.agreed)
    }

    /// Options of the peer's SYN.
    pub fn peer_options(&self, id: ConnectionId) -> Option<Options> {
        self.table.get(id).and_then(|c| c.opening.peer_options())
    }

    /// Local and remote address.
    pub fn addresses(&self, id: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        self.table.get(id).map(|c| (c.local.into(), c.remote.into()))
    }

    /// Differentiated-services code point of its packets.
    pub fn dscp(&self, id: ConnectionId) -> Option<u8> {
        self.table.get(id).map(|c| c.config.dscp)
    }

    /// Largest data per segment towards the peer.
    pub fn segment_size(&self, id: ConnectionId) -> Option<u64> {
        self.table.get(id).map(|c| c.full_segment(&self.routes[c.path.route().0]))
    }

    /// Windows and times now, as a trace record shows them: cwnd, ssthresh, srtt, rto, flight.
    pub fn snapshot(&self, id: ConnectionId) -> Option<Snapshot> {
        self.table.get(id).map(|c| Snapshot {
            cwnd: c.path.cwnd(),
            ssthresh: c.path.ssthresh(),
            srtt: c.path.srtt(),
            rtt_min: c.path.rtt_min(),
            rto: c.path.rto(),
            flight_size: c.board.flight_size(),
            unacknowledged: c.sender.data().end().saturating_sub(c.sender.una()),
            unsent: c.sender.waiting(),
        })
    }

    /// How far a connection's data came in either direction, FINs aside. Known until the connection is released.
    pub fn progress(&self, id: ConnectionId) -> Option<Progress> {
        self.table.get(id).map(|c| {
            let (sent, received) = (c.sender.data(), c.receiver.data());
            Progress {
                taken: sent.end().saturating_sub(1),
                delivered: c.sender.una().min(sent.end()).saturating_sub(1),
                received: received.next().saturating_sub(1),
                acknowledged: c.receiver.acknowledged().min(received.next()).saturating_sub(1),
                readable: received.readable() as u64,
            }
        })
    }

    /// Octets of memory a connection holds.
    pub fn allocated(&self, id: ConnectionId) -> Option<usize> {
        self.table.get(id).map(Connection::allocated)
    }

    /// Octet ranges given up under BETS, first and last (scps-tp §14 item 100).
    pub fn bets_send_holes(&self, id: ConnectionId) -> Result<Vec<(u64, u64)>, OptionError> {
        self.table.get(id).ok_or(OptionError::Unknown)?.bets_send_holes().map(<[_]>::to_vec)
    }

    /// Congestion control is fixed once the SYN has left (scps-tp §14 item 65).
    pub fn set_congestion(&mut self, id: ConnectionId, congestion: Congestion) -> Result<(), OptionError> {
        let c = self.table.get_mut(id).ok_or(OptionError::Unknown)?;
        if c.opening.syns_sent() > 0 || c.state != State::SynSent {
            return Err(OptionError::TooLate);
        }
        c.config.congestion = congestion;
        Ok(())
    }

    /// The network asked the connection to slow down (scps-tp §4.6).
    pub fn source_quench(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c, route| {
            let mss = c.full_segment(route);
            c.path.on_source_quench(mss);
        });
    }

    /// Packets dropped for a reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Connections that exist, closed ones not yet released included.
    pub fn connection_count(&self) -> usize {
        self.table.iter().count()
    }

    // The contract of the engine.

    /// A packet from the network, beginning with the network layer's header. Tells what became of it.
    pub fn handle_input(&mut self, now: Instant, packet: &[u8], trust: Trust) -> Disposition {
        self.advance_clock(now);
        match self.dispatch(now, packet, trust) {
            Ok(()) => Disposition::Used,
            Err(reason) => {
                self.drops[reason as usize] += 1;
                Disposition::Dropped(reason)
            }
        }
    }

    /// What the device received as one; `each` is told what became of every packet. Segments in order of such a batch
    /// share an acknowledgement unless every segment is to have its own, as in Linux; others do not. How many there are
    /// is what the device says: lengths do not tell, for a segment's longest depends on its options, and a stranger may
    /// send a packet of 64 KiB.
    pub fn handle_batch(
        &mut self,
        now: Instant,
        octets: &[u8],
        batch: SegmentBatch,
        trust: Trust,
        mut each: impl FnMut(&[u8], Disposition),
    ) {
        let size = match batch {
            SegmentBatch::Packets(size) => size.max(1),
            SegmentBatch::Joined(segment) => {
                self.joined = Some(segment.max(1));
                octets.len().max(1)
            }
        };
        for packet in octets.chunks(size) {
            each(packet, self.handle_input(now, packet, trust));
            self.is_in_batch = true;
        }
        (self.is_in_batch, self.joined) = (false, None);
    }

    /// The sender of a packet handled since the last call that is not made up by somebody who sees none: SP opened it,
    /// or it is of a connection, inside its windows and no bare SYN. The last one, if there were several.
    pub fn take_vouched(&mut self) -> Option<IpAddr> {
        self.vouched.take().map(IpAddr::V4)
    }

    /// The data link received packets that were damaged, and told no more of them: losses mean corruption for a while,
    /// and acknowledgements tell the peers so (scps-np §6.4, §6.5).
    pub fn handle_damage(&mut self, now: Instant) {
        self.advance_clock(now);
        self.routes.iter_mut().for_each(|route| route.on_damage(now));
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance_clock(now);
        self.schedule.unblock(now);
        self.ask_again(now);
        while let Some(index) = self.schedule.take_due(now) {
            if let Some(c) = self.table.at_mut(index) {
                let route = c.path.route();
                let was_available = self.routes[route.0].is_available();
                c.on_timeout(now, &mut self.routes[route.0]);
                if self.routes[route.0].is_available() != was_available {
                    self.tell_connections(now, route, Some(index));
                }
            }
            self.settle(index);
        }
    }

    /// Appends the next packet to `out`; `None` when nothing may leave now.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.advance_clock(now);
        if let Some((dst, reply)) = self.replies.pop_front() {
            out.extend_from_slice(&reply);
            return Some(Transmit::new(dst, reply.len()));
        }
        if let Some((dst, len)) = self.owed.pop(out) {
            return Some(Transmit::new(dst, len));
        }
        self.schedule.unblock(now);
        while let Some(index) = self.schedule.next_ready() {
            let Some(c) = self.table.at_mut(index) else {
                self.schedule.not_ready();
                continue;
            };
            let route = c.path.route();
            if self.schedule.is_blocked(route) {
                self.schedule.block(route, None);
                continue;
            }
            let before = out.len();
            let sending = Sending::new(now, &mut self.routes[route.0], &mut self.network, out);
            let mut sending = Sending { joined_max: self.joined_max, ..sending };
            match c.poll_transmit(&mut sending) {
                Polled::Packet => {
                    let dst = c.remote.0;
                    let offload = sending.offload;
                    let len = out.len() - before;
                    let config = self.routes[route.0].config();
                    let packets = offload.map_or(1, |offload| offload.segments(len) as u32);
                    self.schedule.sent(len, packets, config.rate.map(|_| config.mtu));
                    if len > 0 {
                        return Some(Transmit { offload, ..Transmit::new(dst, len) });
                    }
                }
                Polled::Blocked(at) => {
                    self.schedule.block(route, Some(at));
                }
                Polled::Idle => {
                    self.schedule.not_ready();
                    self.settle_quietly(index);
                }
            }
        }
        None
    }

    /// When [`Endpoint::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.schedule.next_timeout(), self.questions.next_at()].into_iter().flatten().min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next trace record.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        self.traces.pop_front()
    }

    // Private steps.

    fn advance_clock(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time went backwards from {} to {now}", self.now);
        self.now = self.now.max(now);
    }

    fn with<T>(
        &mut self,
        now: Instant,
        id: ConnectionId,
        f: impl FnOnce(&mut Connection, &mut Route) -> T,
    ) -> Option<T> {
        self.advance_clock(now);
        let c = self.table.get_mut(id)?;
        let result = f(c, &mut self.routes[c.path.route().0]);
        self.settle(id.place());
        Some(result)
    }

    /// After anything touched a connection: it may want to send, its deadline may have moved, it may be gone.
    fn settle(&mut self, index: u32) {
        self.schedule.make_ready(index);
        self.settle_quietly(index);
    }

    fn settle_quietly(&mut self, index: u32) {
        let Some(c) = self.table.at_mut(index) else { return };
        let id = c.id;
        let mut is_half_open_over = false;
        while let Some(event) = c.events.pop_front() {
            is_half_open_over |= matches!(event, Event::Accepted(..));
            if matches!(event, Event::Connected(_)) && !c.agreed.scps && c.config.scps && !c.opening.offers_scps() {
                let until = self.now + self.config.fallback_lifetime;
                self.fallbacks.remember(self.now, c.remote.0, until);
            }
            // The user never heard of a connection that ends half-open.
            if matches!(event, Event::Closed(..)) && c.listener.is_some() && c.stats.established_at.is_none() {
                is_half_open_over = true;
                if !c.opening.is_known_to_user() {
                    c.is_orphan = true;
                    continue;
                }
            }
            self.events.push_back(event);
        }
        self.traces.extend(c.trace.drain(..));
        self.schedule.set_deadline(index, c.timers.next());
        let is_closed = c.state == State::Closed;
        let is_gone = is_closed && c.is_orphan && c.pending_reset == PendingReset::None;
        if is_gone {
            self.gone.add(&c.stats);
        }
        if is_half_open_over {
            self.table.end_half_open(id);
        }
        let robbed = self.table.settle_identifiers(self.now, index);
        if is_closed {
            self.table.forget_addresses(index);
        }
        if is_gone {
            self.table.remove(index);
        }
        if let Some(robbed) = robbed {
            self.ask_robbed(robbed);
        }
    }

    /// The peer gave the identifier of a connection to another one. It is asked whether it has the old one still; if
    /// not, it resets it.
    fn ask_robbed(&mut self, index: u32) {
        let Some(c) = self.table.at_mut(index) else { return };
        if c.state.is_synchronised() && c.state != State::TimeWait {
            c.probing.want_answer();
            self.schedule.make_ready(index);
        }
    }
}

/// For whom the segments of a connection are.
fn envelope_of(local: AddressPort, remote: AddressPort, config: &Config) -> Envelope {
    let Config { precedence, dscp, services, .. } = *config;
    Envelope { src: local.0, dst: remote.0, protocol: protocol::TCP, precedence, dscp, services }
}

/// Settings of a route whose packets the layer can write.
fn within(network: &Network, config: RouteConfig) -> RouteConfig {
    let max = u16::try_from(network.octets_max()).unwrap_or(u16::MAX);
    RouteConfig { mtu: config.mtu.min(max), ..config }
}
