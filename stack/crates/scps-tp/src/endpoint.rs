//! All connections of a host, for its user: this file routes calls, `endpoint/arrival.rs` packets, and `endpoint/connections.rs` asks each
//! connection in turn what leaves next; what a connection does with them is the connection's.

mod arrival;
mod connections;
mod events;
mod following;
mod listening;
mod replies;
mod transmit;
mod unknown;

pub use transmit::{Carrier, Offload, Transmit};
pub use unknown::UnknownSegment;

use crate::ack::SegmentBatch;
use crate::cc::KnownPath;
use crate::config::{Config, Congestion, RouteConfig};
use crate::connection::{Connection, Setup};
use crate::error::{ConnectError, OptionError, RecvError, SendError};
use crate::event::{Disposition, DropReason, Event};
use crate::names::{carried, AddressPort, ConnectionId, ListenerId, RouteId};
use crate::negotiation::Agreed;
use crate::net::{Envelope, Network, NetworkConfig};
#[cfg(feature = "sp")]
use crate::net::{Protection, Unsent};
use crate::route::Route;
use crate::state::State;
use crate::stats::{Progress, Signals, Snapshot, Stats, Totals};
use crate::trace::TraceRecord;
use arrival::Reader;
use connections::Connections;
use following::Following;
use listening::Listeners;
use replies::Replies;
use scps_wire::options::Options;
use scps_wire::protocol;
use scps_wire::{settings, Duration, Instant, Precedence, Rng, Seed, SeqNum};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use unknown::Questions;

settings! {
    /// Settings of an endpoint.
    #[derive(Clone, Debug)]
    pub struct EndpointConfig {
        /// Addresses that are ours; empty for any.
        pub addresses: Vec<IpAddr>,
        /// Connections whose SYN is answered and not acknowledged; further SYNs are answered with cookies.
        pub half_open_max: usize,
        /// Open connections of each listener whose [`Event::Accepted`] the user has not taken; what asks for more hears
        /// nothing, and will ask again.
        pub backlog: usize,
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
        /// All destinations are behind one path, such as a tunnel to a gateway: what is found out about its MTU holds for every one.
        pub one_path: bool,
        /// Local ports chosen for connections without one (scps-tp §9.7).
        pub ephemeral_ports: (u16, u16),
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig {
            addresses: Vec::new(),
            half_open_max: 256,
            backlog: 256,
            resets_unknown: true,
            tells_unknown: false,
            fallback_lifetime: Duration::from_secs(600),
            network: NetworkConfig::Ipv4,
            one_path: false,
            ephemeral_ports: (5001, 64_000),
        }
    }
}

/// Whether a received packet's transport checksum still has to be tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Test it.
    Check,
    /// It holds: what carried the packet has tested it, or a sum over the whole packet.
    Verified,
    /// The device vouches for the packet, whose sum may not be written yet.
    Unsummed,
}

/// All connections of a host.
///
/// Six calls end one, and say no in six ways:
///
/// | call | for a connection that | its peer hears |
/// |---|---|---|
/// | [`Endpoint::close`] | has sent all it had | FIN behind the data; the peer may go on sending |
/// | [`Endpoint::release`] | nobody will ask for any more | FIN behind the data, and a reset if it never ends |
/// | [`Endpoint::abort`] | failed | a reset, now |
/// | [`Endpoint::dismiss`] | is asked for, and is not wanted | a reset, if there is room among the answers to strangers |
/// | [`Endpoint::refuse`] | is asked for, and leads nowhere | that the destination cannot be reached (ICMP) |
/// | [`Endpoint::ignore`] | is asked for, at the wrong time | nothing: it asks again |
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    seed: Seed,
    rng: Rng,
    connections: Connections,
    listeners: Listeners,
    replies: Replies,
    unknown: VecDeque<UnknownSegment>,
    questions: Questions,
    /// The packet in hand came in one batch with others.
    is_in_batch: bool,
    /// Data octets of each segment that the packet in hand was joined from.
    joined: Option<usize>,
    drops: [u64; DropReason::COUNT],
    /// What SP decrypted of the packet in hand.
    opened: Vec<u8>,
    /// Where the packets in hand came from, beneath the network layer.
    via: Option<SocketAddr>,
    /// Where whose packets SP opened was heard.
    authentic: BTreeMap<Ipv4Addr, SocketAddr>,
}

impl Endpoint {
    /// An endpoint whose default route is `route`.
    pub fn new(config: EndpointConfig, route: RouteConfig, seed: Seed, now: Instant) -> Self {
        let mut rng = seed.stream("endpoint");
        let network = Network::new(&config.network, rng.next_u32() as u16);
        let route = Route::new(within(&network, route), now);
        let mut connections = Connections::new(network, route, config.fallback_lifetime, now);
        connections.is_one_path = config.one_path;
        Endpoint {
            connections,
            config,
            seed,
            rng,
            listeners: Listeners::default(),
            replies: Replies::default(),
            unknown: VecDeque::new(),
            questions: Questions::default(),
            is_in_batch: false,
            joined: None,
            drops: [0; DropReason::COUNT],
            opened: Vec::new(),
            via: None,
            authentic: BTreeMap::new(),
        }
    }

    /// What carries packets from now on.
    pub fn set_carrier(&mut self, carrier: Carrier) {
        self.connections.carrier = carrier;
    }

    // Routes.

    /// Adds a route for `destinations`.
    pub fn add_route(&mut self, now: Instant, config: RouteConfig, destinations: &[IpAddr]) -> RouteId {
        let route = Route::new(within(&self.connections.network, config), now);
        self.connections.schedule.add_route();
        self.connections.routes.add(route, destinations)
    }

    /// A route, if there is one of that name.
    pub fn route(&self, id: RouteId) -> Option<&Route> {
        self.connections.routes.get(id)
    }

    /// Changes the settings of a route (scps-tp §14 item 63). Rate and the meaning of losses hold at once; a connection that exists keeps
    /// what it was made with, such as its estimate of the round trip.
    pub fn set_route(&mut self, now: Instant, id: RouteId, config: RouteConfig) {
        self.connections.advance_clock(now);
        let config = within(&self.connections.network, config);
        if let Some(route) = self.connections.routes.get_mut(id) {
            route.set_config(config, now);
            self.connections.schedule.look_again(id, now);
        }
    }

    /// The link of a route takes packets of `mtu` octets, its overhead included: connections send in smaller pieces, and what was longer
    /// is sent again. False if that is no news.
    pub fn lower_mtu(&mut self, now: Instant, id: RouteId, mtu: u16) -> bool {
        let Some(config) = self.route(id).map(|route| *route.config()).filter(|config| mtu < config.mtu) else {
            return false;
        };
        self.set_route(now, id, RouteConfig { mtu, ..config });
        self.connections.on_link_mtu(now, id);
        true
    }

    /// What is known of a path from elsewhere, such as from an earlier run. One connection that has [`Config::careful_resume`] begins with
    /// it, and leaves what it has observed for the next.
    pub fn learn_path(&mut self, now: Instant, path: &KnownPath) {
        self.connections.paths.learn(now, path);
    }

    /// The paths that ended connections have observed.
    pub fn known_paths(&self, now: Instant) -> impl Iterator<Item = KnownPath> + '_ {
        self.connections.paths.all(now)
    }

    /// Changes [`EndpointConfig::half_open_max`].
    pub fn set_half_open_max(&mut self, half_open_max: usize) {
        self.config.half_open_max = half_open_max;
    }

    /// Declares a route unavailable or available (scps-tp §6.8).
    pub fn set_route_available(&mut self, now: Instant, id: RouteId, available: bool) {
        self.connections.advance_clock(now);
        self.connections.set_route_available(now, id, available);
    }

    /// Takes the default route's rate credit for a packet that is not the endpoint's and does not wait; false if it
    /// must not leave, because more than a bucket full is owed (scps-tp §10.6). While connections wait for credit they
    /// have half of the rate.
    pub fn charge(&mut self, now: Instant, octets: usize) -> bool {
        self.connections.advance_clock(now);
        self.connections.charge(now, RouteId::default(), octets)
    }

    /// Puts SP beneath all connections. There must be none yet: a segment's size is agreed on when a connection is
    /// made.
    #[cfg(feature = "sp")]
    pub fn protect(&mut self, protection: Protection) {
        debug_assert!(self.connections.table.places().is_empty(), "connections are protected from the start");
        self.connections.network.protect(protection);
    }

    /// SP, for its counters.
    #[cfg(feature = "sp")]
    pub fn protection(&self) -> Option<&Protection> {
        self.connections.network.protection()
    }

    /// SP, for its keys and sequence numbers.
    #[cfg(feature = "sp")]
    pub fn protection_mut(&mut self) -> Option<&mut Protection> {
        self.connections.network.protection_mut()
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
        self.connections.advance_clock(now);
        let mut local = carried(local.into()).map_err(ConnectError::Ipv6)?;
        let remote = carried(remote.into()).map_err(ConnectError::Ipv6)?;
        if local.1 == 0 {
            local.1 = self.connections.free_port(local.0, remote, self.config.ephemeral_ports, &mut self.rng)?;
        }
        self.connections.clear(local, remote)?;
        #[cfg(feature = "sp")]
        if let Err(Unsent::Unprotected(reason)) =
            self.connections.network.room(now, &envelope_of(local, remote, &config), 0)
        {
            return Err(ConnectError::Unprotected(reason));
        }
        let spared = self.connections.fallbacks.spares(now, remote.0);
        let with_scps = config.scps && !(spared && config.fallback_after_syns.is_some());
        Ok(self.create(now, local, remote, config, State::SynSent, None, with_scps))
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
        let (id, is_place_new) = self.connections.table.reserve();
        if is_place_new {
            self.connections.schedule.add_connection();
        }
        let route = self.connections.routes.to(remote.0);
        let connection_id = if config.compression && with_scps {
            let first = self.rng.below(255) as u8;
            self.connections.table.take_identifier(now, local.0, remote.0, first)
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
        let via = if listener.is_some() { self.via } else { self.way_to(remote.0) };
        let saved = config.careful_resume.and_then(|_| self.connections.take_path(now, local, remote));
        let setup = Setup {
            id,
            local,
            remote,
            via,
            config,
            route,
            path_mtu: self.connections.path_mtus.to(self.connections.path_to(remote.0), now),
            saved,
            network_header: self.connections.network.overhead(&envelope) as u16,
            iss,
            // RFC 7323 §5.4: an offset per connection keeps the host's uptime private.
            timestamp_offset: self.seed.keyed_hash("timestamp", &tuple) as u32,
            connection_id,
            listener,
            with_scps,
        };
        let precedence = setup.config.precedence.unwrap_or(Precedence::LOWEST);
        let share = setup.config.share();
        let connection = Connection::new(setup, &self.connections.routes[route], state, now);
        self.connections.table.insert(connection);
        self.connections.schedule.set_precedence(id.place(), precedence);
        self.connections.schedule.set_share(id.place(), share);
        self.connections.settle(id.place());
        id
    }

    /// Ends sending: FIN follows the data.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        self.connections.with(now, id, |c, _| c.close());
    }

    /// Ends the connection at once with RST.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.connections.with(now, id, |c, _| c.control.abort());
    }

    /// Ends every connection at once with RST, those that no user has heard of included, and accepts no more. A peer to whom the number of
    /// that RST is not the next one asks (RFC 5961 §3), and a round trip later every peer is asked, should its RST be lost; whoever goes
    /// on for two round trips can answer.
    pub fn abort_all(&mut self, now: Instant) {
        self.listeners = Listeners::default();
        // Who waits for old segments to die owes its peer nothing.
        let has_peer = |state: State| state.is_synchronised() && state != State::TimeWait;
        for c in self.connections.table.iter().filter(|c| has_peer(c.control.state)) {
            let wait = c.outbound.path.srtt().unwrap_or_default();
            self.questions.note((c.control.local, c.control.remote), 0, now + wait);
        }
        for index in self.connections.table.places() {
            self.abort(now, self.connections.table.id_at(index));
        }
    }

    /// True while a reset waits to leave, for rate credit or because nobody polled.
    pub fn owes_reset(&self) -> bool {
        self.connections.table.iter().any(|c| c.control.is_reset_due)
    }

    /// Gives the connection up: it closes if it has not, and its memory is freed when it is gone.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        self.connections.with(now, id, |c, _| c.orphan(now));
    }

    // Data.

    /// Takes as much of `data` as the send buffer has room for; [`Event::Writable`] follows if that was not all.
    pub fn send(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, SendError> {
        self.connections.with(now, id, |c, _| c.send(data)).unwrap_or(Err(SendError::Closed))
    }

    /// Octets that [`Endpoint::send`] would take now; [`Event::Writable`] follows when there is room for more.
    pub fn room(&mut self, id: ConnectionId) -> usize {
        self.connections
            .table
            .get_mut(id)
            .filter(|c| c.control.state.may_send())
            .map_or(0, |c| c.outbound.sender.await_room())
    }

    /// Takes a whole record, or returns false until [`Event::Writable`].
    pub fn send_record(&mut self, now: Instant, id: ConnectionId, record: &[u8]) -> Result<bool, SendError> {
        self.connections.with(now, id, |c, _| c.send_record(record)).unwrap_or(Err(SendError::Closed))
    }

    /// Reads octets; the flag tells whether the last one ends a record. `Ok((0, _))` is the end of the stream, as the peer set it; one that
    /// ended otherwise is [`RecvError::Closed`].
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
        self.connections.with(now, id, |c, r| c.recv(now, r, len_max, take)).unwrap_or(Err(RecvError::Unknown))
    }

    // Queries and settings.

    /// The state of a connection, `None` if it does not exist.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.connections.get(id).map(|c| c.control.state)
    }

    /// Counters of a connection.
    pub fn stats(&self, id: ConnectionId) -> Option<Stats> {
        self.connections.get(id).map(|c| c.control.stats)
    }

    /// What routers told.
    pub fn signals(&self) -> Signals {
        self.connections.signals
    }

    /// Counters of all connections together.
    pub fn totals(&self) -> Totals {
        self.connections.totals()
    }

    /// How often a peer was asked again for an answer that was due, by SYNs, resends after a timeout and probes: it
    /// grows while peers are silent, and otherwise slowly.
    pub fn asked_again(&self) -> u64 {
        self.connections.asked_again()
    }

    /// What both sides agreed on.
    pub fn agreed(&self, id: ConnectionId) -> Option<Agreed> {
        self.connections.get(id).map(|c| c.control.agreed)
    }

    /// Options of the peer's SYN.
    pub fn peer_options(&self, id: ConnectionId) -> Option<Options> {
        self.connections.get(id).and_then(|c| c.control.opening.peer_options())
    }

    /// Local and remote address.
    pub fn addresses(&self, id: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        self.connections.get(id).map(|c| (c.control.local.into(), c.control.remote.into()))
    }

    /// Differentiated-services code point of its packets.
    pub fn dscp(&self, id: ConnectionId) -> Option<u8> {
        self.connections.get(id).map(|c| c.control.config.dscp)
    }

    /// Largest data per segment towards the peer.
    pub fn segment_size(&self, id: ConnectionId) -> Option<u64> {
        let segment =
            |c: &Connection| c.outbound.full_segment(&c.control, &self.connections.routes[c.outbound.path.route()]);
        self.connections.get(id).map(segment)
    }

    /// Windows and times now, as a trace record shows them: cwnd, ssthresh, srtt, rto, flight.
    pub fn snapshot(&self, id: ConnectionId) -> Option<Snapshot> {
        self.connections.get(id).map(|c| c.outbound.snapshot())
    }

    /// The longest smoothed round trip of the connections that are open.
    pub fn round_trip(&self) -> Option<Duration> {
        let open = self.connections.table.iter().filter(|c| c.control.state.is_synchronised());
        open.filter_map(|c| c.outbound.path.srtt()).max()
    }

    /// How far a connection's data came in either direction, FINs aside. Known until the connection is released.
    pub fn progress(&self, id: ConnectionId) -> Option<Progress> {
        self.connections.get(id).map(Connection::progress)
    }

    /// When whoever is done with a connection may leave it to itself, though it is not gone: until then it waits for the peer's end, or
    /// answers that again if our acknowledgement was lost. `None` while there is something to deliver.
    pub fn may_leave_at(&self, id: ConnectionId) -> Option<Instant> {
        self.connections.get(id).and_then(|c| c.may_leave_at(&self.connections.routes[c.outbound.path.route()]))
    }

    /// Octets of memory a connection holds.
    pub fn allocated(&self, id: ConnectionId) -> Option<usize> {
        self.connections.get(id).map(Connection::allocated)
    }

    /// Octet ranges given up under BETS, first and last (scps-tp §14 item 100).
    pub fn bets_send_holes(&self, id: ConnectionId) -> Result<Vec<(u64, u64)>, OptionError> {
        self.connections.get(id).ok_or(OptionError::Unknown)?.bets_send_holes().map(<[_]>::to_vec)
    }

    /// Congestion control is fixed once the SYN has left (scps-tp §14 item 65).
    pub fn set_congestion(&mut self, id: ConnectionId, congestion: Congestion) -> Result<(), OptionError> {
        self.connections.set_congestion(id, congestion)
    }

    /// The network asked the connection to slow down (scps-tp §4.6).
    pub fn source_quench(&mut self, now: Instant, id: ConnectionId) {
        self.connections.with(now, id, |c, route| {
            let mss = c.outbound.full_segment(&c.control, route);
            c.outbound.path.on_source_quench(mss);
        });
    }

    /// Packets dropped for a reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Connections that exist, closed ones not yet released included.
    pub fn connection_count(&self) -> usize {
        self.connections.table.iter().count()
    }

    // The contract of the engine.

    /// A packet from the network, beginning with the network layer's header. Tells what became of it.
    pub fn handle_input(&mut self, now: Instant, packet: &[u8], trust: Trust) -> Disposition {
        self.handle_packet(now, packet, trust, &mut |_, _| 0)
    }

    fn handle_packet(&mut self, now: Instant, packet: &[u8], trust: Trust, reader: Reader<'_>) -> Disposition {
        self.connections.advance_clock(now);
        match self.dispatch(now, packet, trust, reader) {
            Ok(()) => Disposition::Used,
            Err(reason) => {
                self.drops[reason as usize] += 1;
                Disposition::Dropped(reason)
            }
        }
    }

    /// What the device received as one; `each` is told what became of every packet. Segments in order of such a batch
    /// share an acknowledgement unless every segment is to have its own, as in Linux; others do not. Batches that come
    /// before anything leaves share one too. How many segments there are is what the device says: lengths do not tell,
    /// for a segment's longest depends on its options, and a stranger may send a packet of 64 KiB.
    pub fn handle_batch(
        &mut self,
        now: Instant,
        octets: &[u8],
        batch: SegmentBatch,
        trust: Trust,
        each: impl FnMut(&[u8], Disposition),
    ) {
        self.handle_batch_for(now, octets, batch, trust, each, &mut |_, _| 0);
    }

    /// As [`Endpoint::handle_batch`], but that `reader` may have what a user would read next of a connection at once, and tells
    /// how many of the octets it took. What it leaves is buffered, and [`Event::Readable`] tells of it.
    pub fn handle_batch_for(
        &mut self,
        now: Instant,
        octets: &[u8],
        batch: SegmentBatch,
        trust: Trust,
        mut each: impl FnMut(&[u8], Disposition),
        reader: &mut dyn FnMut(ConnectionId, &[u8]) -> usize,
    ) {
        let size = match batch {
            SegmentBatch::Packets(size) => size.max(1),
            SegmentBatch::Joined(segment) => {
                self.joined = Some(segment.max(1));
                octets.len().max(1)
            }
        };
        self.is_in_batch = self.joined.is_some() || octets.len() > size;
        let mut following: Option<Following> = None;
        for packet in octets.chunks(size) {
            if following.as_mut().is_some_and(|following| self.follow(now, packet, trust, following, reader)) {
                each(packet, Disposition::Used);
                continue;
            }
            self.end_following(following.take());
            let disposition = self.handle_packet(now, packet, trust, reader);
            if self.is_in_batch && self.joined.is_none() && disposition == Disposition::Used {
                following = self.after(packet);
            }
            each(packet, disposition);
        }
        self.end_following(following);
        (self.is_in_batch, self.joined) = (false, None);
    }

    /// Where packets that are handled from now on come from, beneath the network layer: the outer address of encapsulation, if a
    /// carrier tells its peers apart. Answers go there. A connection follows its peer to another one by packets that nobody makes up
    /// who sees none: SP opened them, or they are inside its windows and no bare SYN.
    pub fn hear_from(&mut self, via: Option<SocketAddr>) {
        self.via = via;
    }

    /// Where a new connection to `remote` goes, beneath the network layer: where SP heard it, or where its connections are if all are
    /// in one place. Whoever claims somebody's address by a connection of his own gets none of the other's.
    pub fn way_to(&self, remote: impl Into<IpAddr>) -> Option<SocketAddr> {
        let IpAddr::V4(remote) = remote.into() else { return None };
        // A carrier that does not tell its peers apart has one way.
        self.via?;
        let is_there = |state: State| state.is_synchronised() && state.may_send();
        let of = |c: &Connection| c.control.via.filter(|_| c.control.remote.0 == remote && is_there(c.control.state));
        let mut ways = self.connections.table.iter().filter_map(of);
        let is_known = self.authentic.get(&remote).copied();
        is_known.or_else(|| ways.next().filter(|first| ways.all(|way| way == *first)))
    }

    /// SP opened a packet of `src`: all its connections are where it came from.
    fn note_authentic(&mut self, src: Ipv4Addr) {
        let Some(via) = self.via else { return };
        if self.authentic.insert(src, via) != Some(via) {
            for place in self.connections.table.places() {
                if let Some(c) = self.connections.table.at_mut(place).filter(|c| c.control.remote.0 == src) {
                    c.control.via = Some(via);
                }
            }
        }
    }

    /// The data link received packets that were damaged, and told no more of them: losses mean corruption for a while,
    /// and acknowledgements tell the peers so (scps-np §6.4, §6.5).
    pub fn handle_damage(&mut self, now: Instant) {
        self.connections.advance_clock(now);
        self.connections.routes.iter_mut().for_each(|route| route.on_damage(now));
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connections.advance_clock(now);
        self.connections.schedule.unblock(now);
        self.ask_again(now);
        self.connections.on_timeout(now);
    }

    /// Appends the next packet to `out`; `None` when nothing may leave now.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.connections.advance_clock(now);
        let answer = self.replies.pop(out).or_else(|| self.connections.owed.pop(out));
        answer.or_else(|| self.connections.poll_transmit(now, out))
    }

    /// When [`Endpoint::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.connections.schedule.next_timeout(), self.questions.next_at()].into_iter().flatten().min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.connections.events.find(|event| Some(*event))
    }

    /// Takes the first event that `found` picks out, for whoever waits for one of them.
    pub fn find_event<T>(&mut self, found: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        self.connections.events.find(found)
    }

    /// Forgets the events that `keep` does not keep. A listener's connections count as accepted once their event is taken or forgotten.
    pub fn retain_events(&mut self, keep: impl FnMut(&Event) -> bool) {
        self.connections.events.retain(keep);
    }

    /// Events there ever were, taken ones included.
    pub fn events_made(&self) -> u64 {
        self.connections.events.made()
    }

    /// Whether the trace tells of a connection from now on ([`Config::trace`]).
    pub fn set_trace(&mut self, id: ConnectionId, is_traced: bool) {
        if let Some(c) = self.connections.table.get_mut(id) {
            c.control.config.trace = is_traced;
        }
    }

    /// The next trace record. Some 65,000 wait to be taken; then the oldest are forgotten.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        self.connections.traces.pop_front()
    }

    /// Trace records that were forgotten because too many waited.
    pub fn traces_forgotten(&self) -> u64 {
        self.connections.traces_forgotten
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
