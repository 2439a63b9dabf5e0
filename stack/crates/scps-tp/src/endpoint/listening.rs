//! Connections that others open: listeners, and SYNs when there are more than can be kept.

use super::{Endpoint, Listener, REPLIES_MAX};
use crate::config::Config;
use crate::cookie;
use crate::error::ListenError;
use crate::event::{CloseReason, DropReason, Event};
use crate::names::{carried, AddressPort, ConnectionId, ListenerId};
use crate::output::{Polled, Sending};
use crate::state::State;
use scps_net::Envelope;
use scps_types::{Duration, Instant};
use scps_wire::scps::Capabilities;
use scps_wire::tcp::{Flags, Tcp};
use std::net::SocketAddr;

/// Octets of an answer to a SYN, both headers with the options that cookies keep.
const SYN_ACK_LEN: usize = 64;

impl Endpoint {
    /// Accepts connections to `local`; an unspecified address means any of ours, and with port 0 any port that no other
    /// listener has.
    pub fn listen(&mut self, local: impl Into<SocketAddr>, config: Config) -> Result<ListenerId, ListenError> {
        self.add_listener(local.into(), config, false)
    }

    /// As [`Endpoint::listen`], but each SYN waits for the user's decision ([`Event::Asked`]). SYNs beyond
    /// [`super::EndpointConfig::half_open_max`] are dropped, for a cookie would be an answer.
    pub fn listen_asking(&mut self, local: impl Into<SocketAddr>, config: Config) -> Result<ListenerId, ListenError> {
        self.add_listener(local.into(), config, true)
    }

    fn add_listener(&mut self, local: SocketAddr, config: Config, asks: bool) -> Result<ListenerId, ListenError> {
        let local = carried(local).map_err(ListenError::Ipv6)?;
        let id = ListenerId(self.listeners_made);
        self.listeners_made += 1;
        self.listeners.insert(local, Listener { id, config, asks });
        Ok(id)
    }

    /// Lets a SYN be answered that a listener asked about.
    pub fn answer(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c, _| c.opening.let_go());
    }

    /// Forgets a SYN that a listener asked about: its sender hears nothing and may try again.
    pub fn ignore(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c, _| {
            if c.opening.let_go() {
                c.is_orphan = true;
                c.finish(CloseReason::Aborted);
            }
        });
    }

    /// Opens the window of a connection whose listener holds it closed ([`Config::holds_window`]).
    pub fn open_window(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |c, _| c.open_window(now));
    }

    /// Stops accepting.
    pub fn unlisten(&mut self, id: ListenerId) {
        self.listeners.retain(|_, l| l.id != id);
    }

    /// A segment for a listener, of no connection. An error without a reason asks for a reset.
    pub(super) fn on_listener(
        &mut self,
        now: Instant,
        (local, remote): (AddressPort, AddressPort),
        (listener, config, asks): (ListenerId, Config, bool),
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
        if tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK) {
            if self.table.half_open_count() < self.config.half_open_max {
                let index = self.open_half(now, local, remote, listener, config, tcp);
                self.table.begin_half_open(index);
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
        let lifetime = Duration::from_secs(cookie::LIFETIME_S);
        let is_awaited = self.last_cookie_at.is_some_and(|at| now.since(at) <= lifetime);
        if !is_awaited || !tcp.flags.has(Flags::ACK) || tcp.flags.has(Flags::SYN) {
            return Err(None);
        }
        // Data may overtake the acknowledgement that opens, so what fits no cookie is not reset: it comes again.
        let syn = cookie::open(&self.seed, now, local, remote, tcp).ok_or(Some(DropReason::NoConnection))?;
        let config = Config { initial_sequence: Some(tcp.ack + u32::MAX), ..config };
        let index = self.open_half(now, local, remote, listener, config, &syn);
        if let Some(c) = self.table.at_mut(index) {
            c.assume_syn_ack_sent(&self.routes[c.path.route().0]);
        }
        let delivered = self.deliver(now, index, envelope, tcp, data);
        if let Some(c) = self.table.at_mut(index).filter(|c| c.state == State::SynReceived) {
            c.finish(CloseReason::TimedOut);
            self.settle(index);
        }
        delivered.map_err(Some)
    }

    /// Holds the answer to a SYN back until the user decides.
    fn ask(&mut self, listener: ListenerId, index: u32) {
        if let Some(c) = self.table.at_mut(index) {
            c.opening.hold();
            c.events.push_back(Event::Asked(listener, c.id));
        }
        self.settle(index);
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
        let is_taken = |identifier| self.table.compressed(remote.0, local.0, identifier).is_some();
        let does_compress = offer
            .is_some_and(|o| o.has(Capabilities::COMPRESSION) && o.connection_id != 0 && !is_taken(o.connection_id));
        let config = Config { compression: config.compression && does_compress, ..config };
        let with_scps = config.scps && offer.is_some();
        let id = self.create(now, local, remote, config, State::SynReceived, Some(listener), with_scps);
        self.with(now, id, |c, route| c.on_peer_syn(now, route, tcp));
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
        let route = self.route_to(remote.0).0;
        if self.replies.len() >= REPLIES_MAX || !self.routes[route].has_room_for_reply(SYN_ACK_LEN, now) {
            return;
        }
        let syn = cookie::reduce(tcp);
        let initial_sequence = Some(cookie::make(&self.seed, now, local, remote, &syn));
        let index = self.open_half(now, local, remote, listener, Config { initial_sequence, ..config }, &syn);
        let Some(c) = self.table.at_mut(index) else { return };
        let mut out = Vec::new();
        let route = &mut self.routes[c.path.route().0];
        let polled = c.poll_transmit(&mut Sending::new(now, route, &mut self.network, &mut out));
        c.finish(CloseReason::TimedOut);
        self.settle(index);
        if polled == Polled::Packet && !out.is_empty() {
            self.last_cookie_at = Some(now);
            self.replies.push_back((remote.0, out));
        }
    }
}
