//! Connections that others open: listeners, and SYNs when there are more than can be kept.

use super::Endpoint;
use crate::config::Config;
use crate::cookie;
use crate::error::ListenError;
use crate::event::{CloseReason, DropReason, Event};
use crate::names::{carried, AddressPort, ConnectionId, ListenerId};
use crate::net::Envelope;
use crate::output::{Polled, Sending};
use crate::state::State;
use scps_wire::scps::Capabilities;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Duration, Instant};
use std::collections::btree_map::{BTreeMap, Entry};
use std::net::{Ipv4Addr, SocketAddr};

/// Octets of an answer to a SYN, both headers with the options that cookies keep.
const SYN_ACK_LEN: usize = 64;

/// Who answers SYNs to a place.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    id: ListenerId,
    config: Config,
    /// Whether the user decides about each SYN.
    asks: bool,
}

/// The listeners of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    by_place: BTreeMap<AddressPort, Listener>,
    made: u32,
    last_cookie_at: Option<Instant>,
}

impl Listeners {
    fn add(&mut self, local: SocketAddr, config: Config, asks: bool) -> Result<ListenerId, ListenError> {
        let place = carried(local).map_err(ListenError::Ipv6)?;
        let Entry::Vacant(vacant) = self.by_place.entry(place) else { return Err(ListenError::InUse(local)) };
        let id = ListenerId(self.made);
        self.made += 1;
        vacant.insert(Listener { id, config, asks });
        Ok(id)
    }

    /// The one for a segment to a place: that of the place itself before that of the port, before that of all ports.
    pub(super) fn at(&self, local: AddressPort) -> Option<&Listener> {
        let places = [local, (Ipv4Addr::UNSPECIFIED, local.1), (Ipv4Addr::UNSPECIFIED, 0)];
        places.iter().find_map(|place| self.by_place.get(place))
    }

    /// True if a cookie may still come back.
    fn is_cookie_awaited(&self, now: Instant) -> bool {
        let lifetime = Duration::from_secs(cookie::LIFETIME_S);
        self.last_cookie_at.is_some_and(|at| now.since(at) <= lifetime)
    }
}

impl Endpoint {
    /// Accepts connections to `local`; an unspecified address means any of ours, and with port 0 any port that no other
    /// listener has.
    pub fn listen(&mut self, local: impl Into<SocketAddr>, config: Config) -> Result<ListenerId, ListenError> {
        self.listeners.add(local.into(), config, false)
    }

    /// As [`Endpoint::listen`], but each SYN waits for the user's decision ([`Event::Asked`]). SYNs beyond
    /// [`super::EndpointConfig::half_open_max`] are dropped, for a cookie would be an answer.
    pub fn listen_asking(&mut self, local: impl Into<SocketAddr>, config: Config) -> Result<ListenerId, ListenError> {
        self.listeners.add(local.into(), config, true)
    }

    /// Lets a SYN be answered that a listener asked about.
    pub fn answer(&mut self, now: Instant, id: ConnectionId) {
        self.connections.with(now, id, |c, _| c.control.opening.let_go());
    }

    /// Forgets a SYN that a listener asked about: its sender hears nothing and may try again.
    pub fn ignore(&mut self, now: Instant, id: ConnectionId) {
        self.connections.with(now, id, |c, _| {
            if c.control.opening.let_go() {
                c.control.is_orphan = true;
                c.control.finish(CloseReason::Aborted);
            }
        });
    }

    /// Opens the window of a connection whose listener holds it closed ([`Config::holds_window`]).
    pub fn open_window(&mut self, now: Instant, id: ConnectionId) {
        self.connections.with(now, id, |c, _| c.inbound.open_window(&mut c.control));
    }

    /// Gives a listener other settings, for connections that are asked for from now on.
    pub fn set_listener(&mut self, id: ListenerId, config: &Config) {
        self.listeners.by_place.values_mut().filter(|l| l.id == id).for_each(|l| l.config.clone_from(config));
    }

    /// Stops accepting.
    pub fn unlisten(&mut self, id: ListenerId) {
        self.listeners.by_place.retain(|_, l| l.id != id);
    }

    /// A segment for a listener, of no connection. An error without a reason asks for a reset.
    pub(super) fn on_listener(
        &mut self,
        now: Instant,
        (local, remote): (AddressPort, AddressPort),
        Listener { id: listener, config, asks }: Listener,
        envelope: &Envelope,
        tcp: &Tcp,
        data: &[u8],
    ) -> Result<(), Option<DropReason>> {
        if tcp.flags.has(Flags::RST) {
            return Err(None);
        }
        // What answers a request is as urgent as the request (scps-np §7).
        let dscp = if config.dscp == 0 { envelope.dscp } else { config.dscp };
        let config = Config { precedence: config.precedence.or(envelope.precedence), dscp, ..config };
        let is_full = self.connections.events.unaccepted(listener) >= self.config.backlog;
        if tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK) {
            if is_full {
                return Err(Some(DropReason::BacklogFull));
            }
            if self.connections.table.half_open_count() < self.config.half_open_max {
                let index = self.open_half(now, local, remote, listener, config, tcp);
                self.connections.table.begin_half_open(index);
                if asks {
                    self.ask(listener, index);
                }
                return Ok(());
            }
            if asks {
                return Err(Some(DropReason::BacklogFull));
            }
            self.answer_with_cookie(now, local, remote, listener, config, tcp);
            return Err(Some(DropReason::BacklogFull));
        }
        if !self.listeners.is_cookie_awaited(now) || !tcp.flags.has(Flags::ACK) || tcp.flags.has(Flags::SYN) {
            return Err(None);
        }
        // Data may overtake the acknowledgement that opens, so what fits no cookie is not reset: it comes again.
        let syn = cookie::open(&self.seed, now, local, remote, tcp).ok_or(Some(DropReason::NoConnection))?;
        if is_full {
            return Err(Some(DropReason::BacklogFull));
        }
        let config = Config { initial_sequence: Some(tcp.ack + u32::MAX), ..config };
        let index = self.open_half(now, local, remote, listener, config, &syn);
        if let Some(c) = self.connections.table.at_mut(index) {
            c.assume_syn_ack_sent(&self.connections.routes[c.outbound.path.route()]);
        }
        let delivered = self.deliver(now, index, envelope, tcp, data, &mut |_, _| 0);
        if let Some(c) = self.connections.table.at_mut(index).filter(|c| c.control.state == State::SynReceived) {
            c.control.finish(CloseReason::TimedOut);
            self.connections.settle(index);
        }
        delivered.map_err(Some)
    }

    /// Holds the answer to a SYN back until the user decides.
    fn ask(&mut self, listener: ListenerId, index: u32) {
        if let Some(c) = self.connections.table.at_mut(index) {
            c.control.opening.hold();
            c.control.events.push_back(Event::Asked(listener, c.control.id));
        }
        self.connections.settle(index);
    }

    /// A connection for a SYN; the place it has.
    fn open_half(
        &mut self,
        now: Instant,
        local: AddressPort,
        remote: AddressPort,
        listener: ListenerId,
        config: Config,
        tcp: &Tcp,
    ) -> u32 {
        let offer = tcp.options.capabilities;
        // Without ports a packet of one connection could be taken for another's, so an identifier that leads to one here, which its
        // peer may have forgotten, is not agreed on.
        let is_taken = |identifier| self.connections.table.compressed(remote.0, local.0, identifier).is_some();
        let does_compress = offer
            .is_some_and(|o| o.has(Capabilities::COMPRESSION) && o.connection_id != 0 && !is_taken(o.connection_id));
        let config = Config { compression: config.compression && does_compress, ..config };
        let with_scps = config.scps && offer.is_some();
        let id = self.create(now, local, remote, config, State::SynReceived, Some(listener), with_scps);
        self.connections.with(now, id, |c, route| c.on_peer_syn(now, route, tcp));
        id.place()
    }

    /// Answers a SYN and keeps nothing of it. The SYN-ACK is that of a connection that exists for no longer than it takes
    /// to write it.
    fn answer_with_cookie(
        &mut self,
        now: Instant,
        local: AddressPort,
        remote: AddressPort,
        listener: ListenerId,
        config: Config,
        tcp: &Tcp,
    ) {
        let route = self.connections.routes.to(remote.0);
        if !self.replies.has_room() || !self.connections.routes[route].has_room_for_reply(SYN_ACK_LEN, now) {
            return;
        }
        let syn = cookie::reduce(tcp);
        let initial_sequence = Some(cookie::make(&self.seed, now, local, remote, &syn));
        let index = self.open_half(now, local, remote, listener, Config { initial_sequence, ..config }, &syn);
        let Some(c) = self.connections.table.at_mut(index) else { return };
        let mut out = Vec::new();
        let route = &mut self.connections.routes[c.outbound.path.route()];
        let polled = c.poll_transmit(&mut Sending::new(now, route, &mut self.connections.network, &mut out));
        c.control.finish(CloseReason::TimedOut);
        self.connections.settle(index);
        if polled == Polled::Packet && !out.is_empty() {
            self.listeners.last_cookie_at = Some(now);
            self.replies.push((remote.0, self.via), out);
        }
    }
}
