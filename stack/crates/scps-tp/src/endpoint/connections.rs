//! The connections of an endpoint: the way to each, the routes and the network that they share, whose turn it is, and what they tell.
//!
//! Whatever touches a connection settles it: it may want to send, its deadline may have moved, it may be gone.

use super::events::Events;
use super::{Carrier, Transmit};
use crate::ack::Owed;
use crate::cc::Saved;
use crate::config::Congestion;
use crate::connection::Connection;
use crate::error::{ConnectError, OptionError};
use crate::event::{CloseReason, DropReason, Event};
use crate::fallbacks::Fallbacks;
use crate::inbound::Payload;
use crate::input::Verdict;
use crate::names::{AddressPort, ConnectionId, RouteId};
use crate::net::{Envelope, Network, Report, ReportKind};
use crate::output::{Polled, Sending};
use crate::path::MtuFound;
use crate::path_memory::PathMemory;
use crate::path_mtu::PathMtus;
use crate::route::Route;
use crate::routes::Routes;
use crate::schedule::Schedule;
use crate::state::State;
use crate::stats::{Signals, Totals};
use crate::table::ConnectionTable;
use crate::trace::TraceRecord;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Duration, Instant, Rng};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Records of a trace that wait to be taken; the oldest are forgotten when there are more.
const TRACES_MAX: usize = 65_536;

#[derive(Debug)]
pub(super) struct Connections {
    pub(super) table: ConnectionTable,
    pub(super) routes: Routes,
    pub(super) network: Network,
    pub(super) schedule: Schedule,
    pub(super) events: Events,
    pub(super) traces: VecDeque<TraceRecord>,
    /// Records that were forgotten because nobody took them.
    pub(super) traces_forgotten: u64,
    pub(super) owed: Owed,
    pub(super) fallbacks: Fallbacks,
    fallback_lifetime: Duration,
    pub(super) path_mtus: PathMtus,
    /// What ended connections observed.
    pub(super) paths: PathMemory,
    /// All destinations are behind one path.
    pub(super) is_one_path: bool,
    pub(super) carrier: Carrier,
    /// What routers told.
    pub(super) signals: Signals,
    /// Counters of those that are gone.
    gone: Totals,
    now: Instant,
}

impl Connections {
    /// None yet.
    pub(super) fn new(network: Network, route: Route, fallback_lifetime: Duration, now: Instant) -> Self {
        Connections {
            table: ConnectionTable::default(),
            routes: Routes::new(route),
            network,
            schedule: Schedule::new(1),
            events: Events::default(),
            traces: VecDeque::new(),
            traces_forgotten: 0,
            owed: Owed::default(),
            fallbacks: Fallbacks::default(),
            fallback_lifetime,
            path_mtus: PathMtus::default(),
            paths: PathMemory::default(),
            is_one_path: false,
            carrier: Carrier::Single,
            signals: Signals::default(),
            gone: Totals::default(),
            now,
        }
    }

    pub(super) fn advance_clock(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time went backwards from {} to {now}", self.now);
        self.now = self.now.max(now);
    }

    // One of them.

    /// The connection of a name.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.table.get(id)
    }

    /// Lets `f` act on a connection with its route.
    pub(super) fn with<T>(
        &mut self,
        now: Instant,
        id: ConnectionId,
        f: impl FnOnce(&mut Connection, &mut Route) -> T,
    ) -> Option<T> {
        self.advance_clock(now);
        let c = self.table.get_mut(id)?;
        let result = f(c, &mut self.routes[c.outbound.path.route()]);
        self.settle(id.place());
        Some(result)
    }

    /// Ends the connection at a place without a word to its peer.
    pub(super) fn finish(&mut self, place: u32, reason: CloseReason) {
        if let Some(c) = self.table.at_mut(place) {
            c.control.finish(reason);
        }
        self.settle(place);
    }

    /// Congestion control is fixed once the SYN has left (scps-tp §14 item 65).
    pub(super) fn set_congestion(&mut self, id: ConnectionId, congestion: Congestion) -> Result<(), OptionError> {
        let control = &mut self.table.get_mut(id).ok_or(OptionError::Unknown)?.control;
        if control.opening.syns_sent() > 0 || control.state != State::SynSent {
            return Err(OptionError::TooLate);
        }
        control.config.congestion = congestion;
        Ok(())
    }

    /// Makes room for a connection between two addresses, if none is in its way.
    pub(super) fn clear(&mut self, local: AddressPort, remote: AddressPort) -> Result<(), ConnectError> {
        let Some(place) = self.table.between(local, remote) else { return Ok(()) };
        // What waits for stray segments only may be followed at once (RFC 6191 §2): the new sequence numbers are
        // other ones.
        let is_waiting =
            self.table.at(place).is_some_and(|c| c.control.state == State::TimeWait && c.control.is_orphan);
        if !is_waiting {
            return Err(ConnectError::InUse);
        }
        self.finish(place, CloseReason::Finished);
        Ok(())
    }

    /// A port that no connection between the two addresses has.
    pub(super) fn free_port(
        &self,
        local: Ipv4Addr,
        remote: AddressPort,
        (low, high): (u16, u16),
        rng: &mut Rng,
    ) -> Result<u16, ConnectError> {
        let count = u64::from(high.saturating_sub(low)) + 1;
        // RFC 6056 §3.3.1: a random start, then upwards.
        let start = rng.below(count);
        (0..count)
            .map(|i| low + ((start + i) % count) as u16)
            .find(|p| self.table.between((local, *p), remote).is_none())
            .ok_or(ConnectError::NoPort)
    }

    // All of them.

    /// Counters of all together, and of those that were.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.gone;
        self.table.iter().for_each(|c| totals.add(&c.control.stats));
        totals
    }

    /// How often a peer was asked again for an answer that was due.
    pub(super) fn asked_again(&self) -> u64 {
        self.gone.rtos + self.table.iter().map(Connection::asked_again).sum::<u64>()
    }

    /// Declares a route unavailable or available (scps-tp §6.8).
    pub(super) fn set_route_available(&mut self, now: Instant, id: RouteId, available: bool) {
        let Some(route) = self.routes.get_mut(id).filter(|route| route.is_available() != available) else { return };
        route.set_available(available);
        self.tell_of_route(now, id, None);
    }

    /// A route was given up or is back: its connections suspend or resume, but for one that knows.
    fn tell_of_route(&mut self, now: Instant, id: RouteId, except: Option<u32>) {
        let available = self.routes[id].is_available();
        for place in self.table.places().filter(|i| Some(*i) != except) {
            let Some(c) = self.table.at_mut(place).filter(|c| c.outbound.path.route() == id) else { continue };
            if available {
                c.resume(now);
            } else {
                c.control.suspend(now);
            }
            self.settle(place);
        }
    }

    /// A packet of a connection was too big: it sends in smaller pieces, and so do the others to the same destination.
    pub(super) fn on_too_big(&mut self, now: Instant, place: u32, mtu: u16) {
        let Some(c) = self.table.at(place) else { return };
        let (dst, route) = (self.path_to(c.control.remote.0), c.outbound.path.route());
        let (of_route, is_cut) = (self.routes[route].config().mtu, self.network.routers_cut());
        let Some((path, is_news)) = self.path_mtus.on_report(now, dst, mtu, of_route, is_cut) else { return };
        let is_one_path = self.is_one_path;
        let concerned = if is_news { self.table.places() } else { place..place + 1 };
        for place in concerned {
            let Some(c) = self.table.at_mut(place).filter(|c| is_one_path || c.control.remote.0 == dst) else {
                continue;
            };
            c.outbound.path.set_mtu(Some(path));
            c.outbound.on_mtu_lowered(&mut c.control, now, &self.routes[c.outbound.path.route()]);
            self.settle(place);
        }
    }

    /// A connection found out what its path takes: it tells the others.
    fn on_mtu_found(&mut self, now: Instant, place: u32) {
        let Some(c) = self.table.at_mut(place) else { return };
        let Some(found) = c.outbound.path.take_mtu_found() else { return };
        let dst = self.path_to(self.table.at(place).map_or(Ipv4Addr::UNSPECIFIED, |c| c.control.remote.0));
        let path = match found {
            MtuFound::Less(mtu) => {
                self.signals.black_holes = (self.signals.black_holes.0 + 1, mtu);
                Some(self.path_mtus.on_black_hole(now, dst, mtu))
            }
            MtuFound::AsRoute => {
                self.path_mtus.forget(dst);
                None
            }
        };
        for place in self.table.places() {
            let is_concerned = |c: &&mut Connection| self.is_one_path || c.control.remote.0 == dst;
            let Some(c) = self.table.at_mut(place).filter(is_concerned) else { continue };
            c.outbound.path.set_mtu(path);
            c.outbound.on_mtu_lowered(&mut c.control, now, &self.routes[c.outbound.path.route()]);
            self.settle(place);
        }
    }

    /// By which name the path to a destination is known.
    pub(super) fn path_to(&self, dst: Ipv4Addr) -> Ipv4Addr {
        if self.is_one_path {
            Ipv4Addr::UNSPECIFIED
        } else {
            dst
        }
    }

    /// By which names the path between two ends is remembered.
    fn path_between(&self, local: AddressPort, remote: AddressPort) -> (Ipv4Addr, Ipv4Addr) {
        (self.path_to(local.0), self.path_to(remote.0))
    }

    /// What is saved of the path between two ends, for one connection.
    pub(super) fn take_path(&mut self, now: Instant, local: AddressPort, remote: AddressPort) -> Option<Saved> {
        self.paths.take(now, self.path_between(local, remote))
    }

    /// A connection is over, or its data is: what it saw of its path is for the next.
    fn save_path(&mut self, place: u32) {
        let Some(c) = self.table.at_mut(place) else { return };
        let (local, remote) = (c.control.local, c.control.remote);
        if let Some(saved) = c.outbound.path.take_saved(self.now) {
            self.paths.put(self.path_between(local, remote), saved);
        }
    }

    /// The link of a route takes less than it did.
    pub(super) fn on_link_mtu(&mut self, now: Instant, id: RouteId) {
        for place in self.table.places() {
            let Some(c) = self.table.at_mut(place).filter(|c| c.outbound.path.route() == id) else { continue };
            c.outbound.on_mtu_lowered(&mut c.control, now, &self.routes[id]);
            self.settle(place);
        }
    }

    /// Takes the rate credit of the route to `dst` for a packet of no connection; false if it must not leave. While connections wait
    /// for credit they have half of the rate.
    pub(super) fn charge(&mut self, now: Instant, id: RouteId, octets: usize) -> bool {
        let others_wait = self.schedule.is_blocked(id);
        self.routes[id].charge(octets, now, others_wait)
    }

    // The contract of the engine.

    /// Gives a connection a segment, after drawing up what it owes for those before: that answer says what was known then.
    /// `is_in_batch` if it came together with others.
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        place: u32,
        tcp: &Tcp,
        payload: &mut Payload<'_>,
        is_in_batch: bool,
    ) -> Verdict {
        let Some(c) = self.table.at_mut(place) else {
            return Verdict::Dropped(DropReason::NoConnection);
        };
        let route = c.outbound.path.route();
        let is_shared = is_in_batch && c.inbound.ack.is_shareable() && c.inbound.is_orderly(tcp);
        if c.inbound.ack.is_due() && !is_shared && (!payload.data.is_empty() || tcp.flags.has(Flags::FIN)) {
            self.schedule.unblock(now);
            if !self.schedule.is_blocked(route) {
                self.owed.settle(now, c, &mut self.routes[route], &mut self.network);
            }
        }
        let was_available = self.routes[route].is_available();
        let verdict = c.on_segment(now, &mut self.routes[route], tcp, payload);
        self.on_mtu_found(now, place);
        if self.routes[route].is_available() != was_available {
            self.tell_of_route(now, route, Some(place));
        }
        verdict
    }

    /// Time has passed.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        while let Some(place) = self.schedule.take_due(now) {
            if let Some(c) = self.table.at_mut(place) {
                let route = c.outbound.path.route();
                let was_available = self.routes[route].is_available();
                c.on_timeout(now, &mut self.routes[route]);
                self.on_mtu_found(now, place);
                if self.routes[route].is_available() != was_available {
                    self.tell_of_route(now, route, Some(place));
                }
            }
            self.settle(place);
        }
    }

    /// Appends the next packet of a connection to `out`; `None` when none may leave now.
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.schedule.unblock(now);
        while let Some(place) = self.schedule.next_ready() {
            let Some(c) = self.table.at_mut(place) else {
                self.schedule.not_ready();
                continue;
            };
            let route = c.outbound.path.route();
            if self.schedule.is_blocked(route) {
                self.schedule.block(route, None);
                continue;
            }
            let before = out.len();
            let sending = Sending::new(now, &mut self.routes[route], &mut self.network, out);
            let mut sending = Sending { carrier: self.carrier, ..sending };
            match c.poll_transmit(&mut sending) {
                Polled::Packet => {
                    let (dst, via) = (c.control.remote.0, c.control.via);
                    let (packets, offload) = (sending.packets, sending.offload);
                    let len = out.len() - before;
                    let config = self.routes[route].config();
                    let segments = offload.map_or(packets, |offload| offload.segments(len));
                    self.schedule.sent(len, segments.max(1) as u32, config.rate.map(|_| config.mtu));
                    if len > 0 {
                        return Some(Transmit { via, offload, ..Transmit::several(dst, len, packets) });
                    }
                }
                Polled::Blocked(at) => {
                    self.schedule.block(route, Some(at));
                }
                Polled::Idle => {
                    self.schedule.not_ready();
                    self.settle_quietly(place);
                }
            }
        }
        None
    }

    /// A control message of the network came.
    pub(super) fn on_report(&mut self, now: Instant, envelope: &Envelope, message: &[u8]) -> Result<(), DropReason> {
        let (kind, quote) = match self.network.report(envelope, message)? {
            Report::Segment { kind, quote } => (kind, quote),
            Report::Corruption => {
                self.routes.iter_mut().for_each(|route| route.on_corruption_experienced(now));
                self.signals.corruption += 1;
                return Ok(());
            }
            Report::Available { dst } => {
                let route = self.routes.to(dst);
                self.set_route_available(now, route, true);
                return Ok(());
            }
        };
        let index = self.table.between(quote.src, quote.dst).ok_or(DropReason::ForeignReport)?;
        let Some(c) = self.table.at_mut(index) else {
            return Err(DropReason::ForeignReport);
        };
        // RFC 5927 §4.1: the quoted sequence number must be of something in flight.
        let quoted = c.outbound.sender.position(quote.seq);
        if !c.outbound.sender.is_under_way(quoted) {
            return Err(DropReason::ForeignReport);
        }
        match kind {
            ReportKind::TooBig { mtu } => self.on_too_big(now, index, mtu),
            // A synchronised connection outlives unreachability (RFC 5927 §5.2, RFC 1122 §4.2.3.9).
            ReportKind::Unreachable { code, is_soft }
                if c.control.state == State::SynSent && (!is_soft || c.control.opening.syns_sent() > 1) =>
            {
                c.control.finish(CloseReason::Unreachable { code });
            }
            ReportKind::Unreachable { .. } => {}
            ReportKind::Congestion => {
                let mss = c.outbound.full_segment(&c.control, &self.routes[c.outbound.path.route()]);
                c.outbound.path.on_source_quench(mss);
                self.signals.congestion += 1;
            }
            ReportKind::Outage => {
                let route = c.outbound.path.route();
                self.set_route_available(now, route, false);
                self.signals.outage += 1;
            }
        }
        self.settle(index);
        Ok(())
    }

    // What follows whatever touched one.

    pub(super) fn settle(&mut self, place: u32) {
        self.schedule.make_ready(place);
        self.settle_quietly(place);
    }

    fn settle_quietly(&mut self, place: u32) {
        let Some(c) = self.table.at_mut(place) else { return };
        let control = &mut c.control;
        let id = control.id;
        let (mut is_half_open_over, mut is_path_known) = (false, false);
        while let Some(event) = control.events.pop_front() {
            is_half_open_over |= matches!(event, Event::Accepted(..));
            // A path on which a connection died is another one, or none.
            let is_lost = event == Event::Closed(id, CloseReason::TimedOut) && control.stats.established_at.is_some();
            is_path_known |= matches!(event, Event::Flushed(_) | Event::Closed(..)) && !is_lost;
            let wanted_scps = control.config.scps && !control.opening.offers_scps();
            if matches!(event, Event::Connected(_)) && !control.agreed.scps && wanted_scps {
                let until = self.now + self.fallback_lifetime;
                self.fallbacks.remember(self.now, control.remote.0, until);
            }
            // The user never heard of a connection that ends half-open.
            let has_opened = control.listener.is_none() || control.stats.established_at.is_some();
            if matches!(event, Event::Closed(..)) && !has_opened {
                is_half_open_over = true;
                if !control.opening.is_known_to_user() {
                    control.is_orphan = true;
                    continue;
                }
            }
            self.events.push(event);
        }
        self.traces.extend(control.trace.drain(..));
        while self.traces.len() > TRACES_MAX {
            self.traces.pop_front();
            self.traces_forgotten += 1;
        }
        self.schedule.set_deadline(place, control.timers.next());
        let is_closed = control.state == State::Closed;
        let is_gone = is_closed && control.is_orphan && !control.is_reset_due;
        if is_gone {
            self.gone.add(&control.stats);
        }
        if is_path_known {
            self.save_path(place);
        }
        if is_half_open_over {
            self.table.end_half_open(id);
        }
        let robbed = self.table.settle_identifiers(self.now, place);
        if is_closed {
            self.table.forget_addresses(place);
        }
        if is_gone {
            self.schedule.forget(place);
            self.table.remove(place);
        }
        if let Some(robbed) = robbed {
            self.ask_robbed(robbed);
        }
    }

    /// The peer gave the identifier of a connection to another one. It is asked whether it has the old one still; if
    /// not, it resets it.
    fn ask_robbed(&mut self, place: u32) {
        let Some(c) = self.table.at_mut(place) else { return };
        if c.control.state.is_synchronised() && c.control.state != State::TimeWait {
            c.control.probing.want_answer();
            self.schedule.make_ready(place);
        }
    }
}
