//! All connections through a gateway: which one an event is of, and what follows from it.

use crate::account::{Account, Counters, End, Report};
use crate::bypass::{is_bypassed, Bypass};
use crate::clients::Clients;
use crate::config::{ConfigError, Forward, GatewayConfig, SetUp};
use crate::names::PairId;
use crate::pair::{Pair, Stage};
use crate::side::{PerSide, Side};
use scps_tp::net::NetworkConfig;
use scps_tp::{
    Carrier, CloseReason, Config, ConnectionId, Disposition, DropReason, Endpoint, Event, ListenError, ListenerId,
    RouteId, SegmentBatch, State, TraceRecord, Transmit, Trust,
};
use scps_wire::ipv4::Ipv4;
use scps_wire::protocol;
use scps_wire::{Duration, Instant, Seed};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where an IPv4 packet says its protocol (RFC 791 §3.1).
const PROTOCOL_AT: usize = 9;

/// A connection without data for so long is idle.
const IDLE: Duration = Duration::from_secs(60);

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The gateway has it.
    Taken,
    /// It is none of the gateway's: forward it to the other side.
    Pass,
}

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    config: GatewayConfig,
    connections_max: usize,
    opening_max: usize,
    sides: PerSide<Endpoint>,
    listeners: Vec<(Side, ListenerId)>,
    forwards: PerSide<BTreeMap<ListenerId, Forward>>,
    pairs: BTreeMap<PairId, Pair>,
    owners: PerSide<BTreeMap<ConnectionId, PairId>>,
    /// Those that are not set up.
    opening: Clients,
    /// All.
    clients: Clients,
    /// When those that are not [`Stage::Open`] are given up.
    deadlines: BTreeSet<(Instant, PairId)>,
    reports: VecDeque<Report>,
    /// Connections that the trace tells of.
    traced: Vec<Bypass>,
    counters: Counters,
}

impl Gateway {
    /// A gateway without connections.
    pub fn new(config: GatewayConfig, seed: Seed, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let endpoint = |side: Side, name: &str| {
            let settings = config.side(side);
            let own = Seed::from_u64(seed.keyed_hash("gateway", name.as_bytes()));
            let resets_unknown = settings.endpoint.resets_unknown && !config.passes_unknown;
            // Where connections have the same addresses on both sides, the other end can be told as well.
            let tells_unknown = resets_unknown && Side::BOTH.iter().any(|side| config.side(*side).takes_any);
            let settings_of_it = settings.endpoint.clone().resets_unknown(resets_unknown).tells_unknown(tells_unknown);
            Endpoint::new(settings_of_it, settings.route, own, now)
        };
        let mut gateway = Gateway {
            connections_max: config.connections_max(),
            opening_max: config.opening_max(),
            opening: Clients::default(),
            clients: Clients::default(),
            sides: PerSide { lan: endpoint(Side::Lan, "lan"), wan: endpoint(Side::Wan, "wan") },
            listeners: Vec::new(),
            forwards: PerSide::default(),
            pairs: BTreeMap::new(),
            owners: PerSide::default(),
            deadlines: BTreeSet::new(),
            reports: VecDeque::new(),
            counters: Counters::default(),
            traced: Vec::new(),
            config,
        };
        gateway.listen_all()?;
        Ok(gateway)
    }

    /// Takes other settings. Rates and the meaning of losses hold at once, limits for whoever asks next, and what else a connection is
    /// made with for those that begin from now on. Network layers, MTUs, addresses, forwards, bypasses and who is taken must be as before.
    pub fn reconfigure(&mut self, now: Instant, config: GatewayConfig) -> Result<(), ConfigError> {
        config.check()?;
        self.connections_max = config.connections_max();
        self.opening_max = config.opening_max();
        self.config = config;
        for side in Side::BOTH {
            let settings = self.config.side(side);
            let endpoint = self.sides.of_mut(side);
            endpoint.set_route(now, RouteId::default(), settings.route);
            endpoint.set_half_open_max(settings.endpoint.half_open_max);
        }
        // They stay who they are: a SYN that one of them has asked about is its forward's.
        for (side, id) in self.listeners.clone() {
            let config = self.listener_config(side);
            self.sides.of_mut(side).set_listener(id, &config);
        }
        Ok(())
    }

    fn listen_all(&mut self) -> Result<(), ListenError> {
        for forward in self.config.forwards.clone() {
            let id = self.listen(forward.side, forward.listen)?;
            self.forwards.of_mut(forward.side).insert(id, forward);
        }
        for side in Side::BOTH {
            if self.config.side(side).takes_any {
                self.listen(side, (Ipv4Addr::UNSPECIFIED, 0).into())?;
            }
        }
        Ok(())
    }

    fn listen(&mut self, side: Side, at: SocketAddr) -> Result<ListenerId, ListenError> {
        let (config, endpoint) = (self.listener_config(side), self.sides.of_mut(side));
        let id = match self.config.set_up {
            SetUp::AcceptFirst => endpoint.listen(at, config),
            SetUp::ConnectFirst | SetUp::Early => endpoint.listen_asking(at, config),
        }?;
        self.listeners.push((side, id));
        Ok(id)
    }

    fn listener_config(&self, side: Side) -> Config {
        self.config.half(side).holds_window(self.config.set_up == SetUp::Early)
    }

    /// Of which connections that begin from now on the trace tells, as they are on the WAN; with none, it tells nothing more of any.
    pub fn trace(&mut self, which: Vec<Bypass>) {
        if which.is_empty() {
            self.pairs.values().for_each(|pair| self.sides.wan.set_trace(pair.halves.wan, false));
        }
        self.traced = which;
    }

    /// The next record of the trace.
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        self.sides.wan.poll_trace()
    }

    /// What carries a side's packets from now on.
    pub fn set_carrier(&mut self, side: Side, carrier: Carrier) {
        self.sides.of_mut(side).set_carrier(carrier);
    }

    // The contract of the engine.

    /// A packet from a side, beginning with the network layer's header.
    pub fn handle_input(&mut self, now: Instant, side: Side, packet: &[u8], trust: Trust) -> Fate {
        let mut fate = Fate::Taken;
        self.handle_batch(now, side, packet, SegmentBatch::Packets(packet.len()), trust, |_, _| fate = Fate::Pass);
        fate
    }

    /// What a device received as one; `pass` gets the packets that are to be forwarded to the other side as they are.
    pub fn handle_batch(
        &mut self,
        now: Instant,
        side: Side,
        octets: &[u8],
        batch: SegmentBatch,
        trust: Trust,
        mut pass: impl FnMut(&[u8], SegmentBatch),
    ) {
        let size = match batch {
            SegmentBatch::Packets(size) => size.max(1),
            SegmentBatch::Joined(_) => octets.len().max(1),
        };
        let bypasses = &self.config.bypasses;
        let is_taken =
            |packet: &[u8]| matches!(packet, [0x45, ..]) && is_transport(packet) && !is_bypassed(bypasses, packet);
        let takes_all = self.config.side(side).takes_any && !self.config.passes_unknown;
        // Together, segments share acknowledgements.
        let at_once = if takes_all && octets.chunks(size).all(is_taken) { octets.len().max(1) } else { size };
        for part in octets.chunks(at_once) {
            self.receive(now, side, part, batch, trust, &mut pass);
            self.run_once(now);
        }
    }

    /// The link of a side takes packets of `mtu` octets ([`Endpoint::lower_mtu`]). False if that is no news.
    pub fn lower_mtu(&mut self, now: Instant, side: Side, mtu: u16) -> bool {
        self.sides.of_mut(side).lower_mtu(now, RouteId::default(), mtu)
    }

    /// Takes a side's rate credit for a packet that passes to it; false if the rate has no room for it (scps-tp §10.6).
    pub fn charge(&mut self, now: Instant, side: Side, octets: usize) -> bool {
        self.sides.of_mut(side).charge(now, octets)
    }

    /// Where packets of `side` that are handled from now on come from ([`Endpoint::hear_from`]).
    pub fn hear_from(&mut self, side: Side, via: Option<SocketAddr>) {
        self.sides.of_mut(side).hear_from(via);
    }

    /// Where a packet for `dst` that passes to `side` goes, beneath the network layer ([`Endpoint::way_to`]).
    pub fn way_to(&self, side: Side, dst: IpAddr) -> Option<SocketAddr> {
        self.sides.of(side).way_to(dst)
    }

    /// Takes a packet, or a batch of which every one is a segment.
    fn receive(
        &mut self,
        now: Instant,
        side: Side,
        octets: &[u8],
        batch: SegmentBatch,
        trust: Trust,
        pass: &mut impl FnMut(&[u8], SegmentBatch),
    ) {
        let passed = &mut self.counters.passed;
        let mut pass = |packet: &[u8]| {
            *passed += 1;
            pass(packet, if let SegmentBatch::Joined(_) = batch { batch } else { SegmentBatch::Packets(packet.len()) });
        };
        let is_ipv4 = matches!(self.config.side(side).endpoint.network, NetworkConfig::Ipv4);
        // What is no packet at all is the endpoint's to count.
        let is_ipv4 = is_ipv4 && octets.len() > PROTOCOL_AT && octets[0] >> 4 == 4;
        let protocol = octets.get(PROTOCOL_AT).copied().unwrap_or_default();
        if is_ipv4 && !is_transport(octets) && protocol != protocol::ICMP
            || is_transport(octets) && is_others_fragment(&self.config, &self.pairs, side, octets)
            || is_ipv4 && is_bypassed(&self.config.bypasses, octets)
        {
            return pass(octets);
        }
        let passes_unknown = self.config.passes_unknown;
        // A reset of no connection may be of one that is not split, unless it is for an address of the gateway's own; nobody answers it.
        let passes_resets = self.config.forwards.is_empty();
        let is_others = |packet: &[u8], reason| match reason {
            _ if !is_ipv4 => false,
            DropReason::NotOurs => true,
            DropReason::NoConnection => is_transport(packet) && (passes_unknown || passes_resets && is_reset(packet)),
            // Errors that quote a half are the gateway's.
            DropReason::ForeignReport | DropReason::BadSegment | DropReason::UnknownProtocol | DropReason::Fragment => {
                protocol == protocol::ICMP
            }
            _ => false,
        };
        let each = |packet: &[u8], disposition| {
            if matches!(disposition, Disposition::Dropped(reason) if is_others(packet, reason)) {
                pass(packet);
            }
        };
        let (from, to) = self.sides.both_mut(side);
        let (owners, pairs) = (self.owners.of(side), &self.pairs);
        from.handle_batch_for(now, octets, batch, trust, each, &mut |half, octets| {
            let pair = owners.get(&half).and_then(|id| pairs.get(id));
            pair.and_then(|pair| to.send(now, *pair.halves.of(side.other()), octets).ok()).unwrap_or(0)
        });
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sides.lan.handle_timeout(now);
        self.sides.wan.handle_timeout(now);
        self.run_once(now);
        while let Some((at, id)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, id));
            self.give_up(now, id, End::SetUpTimedOut);
        }
        self.run_once(now);
    }

    /// Appends the next packet of a side to `out`; `None` when nothing may leave there now.
    pub fn poll_transmit(&mut self, now: Instant, side: Side, out: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let transmit = self.sides.of_mut(side).poll_transmit(now, out);
            if transmit.is_some() || !self.run_once(now) {
                return transmit;
            }
        }
    }

    /// When [`Gateway::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        [self.sides.lan.poll_timeout(), self.sides.wan.poll_timeout(), deadline].into_iter().flatten().min()
    }

    /// The next connection that ended.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Resets every connection, and takes no more. What it buffered is lost, and the account says so.
    pub fn stop(&mut self, now: Instant) {
        for side in Side::BOTH {
            self.sides.of_mut(side).abort_all(now);
        }
        for id in self.pairs.keys().copied().collect::<Vec<_>>() {
            self.give_up(now, id, End::Stopped);
        }
        self.run_once(now);
    }

    // Queries.

    /// What connections that are over did.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Connections that are not over.
    pub fn connections(&self) -> impl Iterator<Item = PairId> + '_ {
        self.pairs.keys().copied()
    }

    /// What became of the octets of a connection that is not over, by the side they came from.
    pub fn account(&self, id: PairId) -> Option<PerSide<Account>> {
        let of = |pair: &Pair, side| pair.account(&self.sides, side);
        self.pairs.get(&id).map(|pair| PerSide { lan: of(pair, Side::Lan), wan: of(pair, Side::Wan) })
    }

    /// True if a half agreed on SCPS with its peer. False if there is no such connection.
    pub fn is_scps(&self, id: PairId, side: Side) -> bool {
        let half = self.pairs.get(&id).map(|pair| *pair.halves.of(side));
        half.and_then(|half| self.sides.of(side).agreed(half)).is_some_and(|agreed| agreed.scps)
    }

    /// The engine of a side, for its counters.
    pub fn endpoint(&self, side: Side) -> &Endpoint {
        self.sides.of(side)
    }

    /// The engine of a side, for what it is to know before the first connection.
    pub fn endpoint_mut(&mut self, side: Side) -> &mut Endpoint {
        self.sides.of_mut(side)
    }

    /// Octets of memory that the halves of connections hold.
    pub fn allocated(&self) -> usize {
        let of = |side: Side, pair: &Pair| self.sides.of(side).allocated(*pair.halves.of(side)).unwrap_or(0);
        self.pairs.values().map(|pair| of(Side::Lan, pair) + of(Side::Wan, pair)).sum()
    }

    // Private steps.

    /// Acts on events until there are none; false if there were none.
    fn run_once(&mut self, now: Instant) -> bool {
        let mut was_busy = false;
        loop {
            let mut is_busy = false;
            for side in Side::BOTH {
                while let Some(event) = self.sides.of_mut(side).poll_event() {
                    self.on_event(now, side, event);
                    is_busy = true;
                }
                while let Some(stranger) = self.sides.of_mut(side).poll_unknown() {
                    self.sides.of_mut(side.other()).ask_after(now, &stranger);
                    is_busy = true;
                }
            }
            if !is_busy {
                return was_busy;
            }
            was_busy = true;
        }
    }

    fn on_event(&mut self, now: Instant, side: Side, event: Event) {
        let half = event.connection();
        let Some(id) = self.owners.of(side).get(&half).copied() else {
            match event {
                Event::Asked(listener, _) => self.begin(now, side, listener, half, Stage::Held),
                Event::Accepted(listener, _) => self.begin(now, side, listener, half, Stage::Accepted),
                // Of a half that was given up.
                _ => {}
            }
            return;
        };
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        match event {
            Event::Connected(_) => {
                self.deadlines.remove(&(pair.deadline, id));
                let near = *pair.halves.of(pair.near);
                let endpoint = self.sides.of_mut(pair.near);
                match std::mem::replace(&mut pair.stage, Stage::Open) {
                    Stage::Held => endpoint.answer(now, near),
                    Stage::Accepted | Stage::Open => endpoint.open_window(now, near),
                }
            }
            Event::Readable(_) => pair.pump(now, &mut self.sides, side),
            Event::Writable(_) => pair.pump(now, &mut self.sides, side.other()),
            Event::Closed(_, reason) => {
                let is_undelivered = pair.account(&self.sides, side.other()).buffered > 0;
                if reason != CloseReason::Finished || is_undelivered {
                    return self.give_up(now, id, End::Broken(side, reason));
                }
            }
            _ => {}
        }
        let near = self.sides.of(pair.near).state(*pair.halves.of(pair.near));
        if pair.stage == Stage::Open && near != Some(State::SynReceived) {
            self.opening.remove(pair.client.ip(), id);
        }
        if let Some(pair) = self.pairs.get(&id).filter(|pair| pair.is_finished(&self.sides)) {
            let from = self.account_at_end(pair);
            self.finish(now, id, End::Finished, from);
        }
    }

    /// Somebody asks for a connection: the far half is asked for, if there is room for one more.
    fn begin(&mut self, now: Instant, near: Side, listener: ListenerId, half: ConnectionId, stage: Stage) {
        let Some((server, client)) = self.sides.of(near).addresses(half) else { return };
        if !self.make_room(now, client.ip()) {
            self.counters.full += 1;
            return self.drop_half(now, near, half);
        }
        let (from, to) = match self.forwards.of(near).get(&listener) {
            Some(forward) => (SocketAddr::new(forward.from, 0), forward.to),
            None => (client, server),
        };
        let far = near.other();
        let dscp = self.sides.of(near).dscp(half).unwrap_or_default();
        let config = self.config.half(far).dscp(dscp);
        let Ok(far_half) = self.sides.of_mut(far).connect(now, from, to, config) else {
            self.counters.unconnectable += 1;
            return self.drop_half(now, near, half);
        };
        let id = PairId(self.counters.begun);
        self.counters.begun += 1;
        let halves = match near {
            Side::Lan => PerSide { lan: half, wan: far_half },
            Side::Wan => PerSide { lan: far_half, wan: half },
        };
        for side in Side::BOTH {
            self.owners.of_mut(side).insert(*halves.of(side), id);
        }
        let deadline = now + self.config.set_up_max();
        self.deadlines.insert((deadline, id));
        let mut pair =
            Pair { near, client, server, halves, stage, began_at: now, deadline, is_ended: PerSide::default() };
        if self.config.set_up == SetUp::Early {
            pair.stage = Stage::Accepted;
            self.sides.of_mut(near).answer(now, half);
        }
        let is_traced = self.traced.iter().any(|which| which.has_end(client) || which.has_end(server));
        self.sides.wan.set_trace(halves.wan, is_traced);
        // What overtook the event that tells of the connection was told before.
        pair.pump(now, &mut self.sides, near);
        self.pairs.insert(id, pair);
        self.opening.add(client.ip(), id);
        self.clients.add(client.ip(), id);
    }

    /// True if there is a place for one more of `client`, perhaps because another one lost its own.
    fn make_room(&mut self, now: Instant, client: IpAddr) -> bool {
        let is_full = self.pairs.len() >= self.connections_max;
        let is_crowded = self.opening.len() >= self.opening_max && self.opening_max < self.connections_max;
        if !is_full && !is_crowded {
            return true;
        }
        let greedier = self.opening.oldest_of_greedier(client);
        let victim = greedier.or_else(|| self.opening.oldest_for(client).filter(|_| is_crowded));
        let idle = || self.idlest_of_greedier(now, client).map(|id| (id, End::Crowded));
        let victim = victim.map(|id| (id, End::Displaced)).or_else(idle);
        if let Some((id, end)) = victim {
            self.counters.crowded += u64::from(end == End::Crowded);
            self.give_up(now, id, end);
        }
        victim.is_some()
    }

    /// Of the client with most connections the one that was idle longest, if that is long, or if the client has nearly all places: who
    /// sends SYNs with made-up addresses is not to end what others use.
    fn idlest_of_greedier(&self, now: Instant, client: IpAddr) -> Option<PairId> {
        let all = self.clients.of_greedier(client)?;
        let moved_at = |pair: &Pair| {
            let of = |side: Side| self.sides.of(side).stats(*pair.halves.of(side)).and_then(|stats| stats.last_data_at);
            Side::BOTH.into_iter().filter_map(of).max().unwrap_or(pair.began_at)
        };
        let open =
            all.iter().filter_map(|id| Some((moved_at(self.pairs.get(id).filter(|p| p.stage == Stage::Open)?), *id)));
        let (since, id) = open.min()?;
        (now.since(since) >= IDLE || all.len() > self.opening_max).then_some(id)
    }

    /// Refuses a half that has no other.
    fn drop_half(&mut self, now: Instant, side: Side, half: ConnectionId) {
        let endpoint = self.sides.of_mut(side);
        endpoint.dismiss(now, half);
        endpoint.release(now, half);
    }

    /// Ends what is left of a connection. A client whose SYN was held, and whom nobody answered, is not answered either, as
    /// without a gateway, and is told by ICMP what ICMP told the gateway; all others are reset.
    fn give_up(&mut self, now: Instant, id: PairId, end: End) {
        let Some(pair) = self.pairs.get(&id) else { return };
        // As long as there are halves: one that nobody answered is gone when it is ignored, with what came in its SYN.
        let from = self.account_at_end(pair);
        let far = pair.near.other();
        let is_silent =
            matches!(end, End::SetUpTimedOut | End::Displaced) || end == End::Broken(far, CloseReason::TimedOut);
        if pair.stage == Stage::Held && is_silent {
            let half = *pair.halves.of(pair.near);
            self.sides.of_mut(pair.near).ignore(now, half);
        }
        if let (Stage::Held, End::Broken(_, CloseReason::Unreachable { code })) = (pair.stage, end) {
            let half = *pair.halves.of(pair.near);
            self.sides.of_mut(pair.near).refuse(now, half, code);
        }
        let halves = pair.halves;
        for side in Side::BOTH {
            let (endpoint, half) = (self.sides.of_mut(side), *halves.of(side));
            match end {
                // Whoever stops waits until the resets have left.
                End::Stopped => endpoint.abort(now, half),
                _ => endpoint.dismiss(now, half),
            }
        }
        self.finish(now, id, end, from);
    }

    fn account_at_end(&self, pair: &Pair) -> PerSide<Account> {
        let account = |side| pair.account(&self.sides, side).at_end();
        PerSide { lan: account(Side::Lan), wan: account(Side::Wan) }
    }

    /// Reports a connection that is over with its account, and forgets it.
    fn finish(&mut self, now: Instant, id: PairId, end: End, from: PerSide<Account>) {
        let Some(pair) = self.pairs.remove(&id) else { return };
        self.deadlines.remove(&(pair.deadline, id));
        self.opening.remove(pair.client.ip(), id);
        self.clients.remove(pair.client.ip(), id);
        for side in Side::BOTH {
            let half = *pair.halves.of(side);
            self.sides.of_mut(side).release(now, half);
            self.owners.of_mut(side).remove(&half);
            self.counters.from.of_mut(side).add(from.of(side));
        }
        match end {
            End::Finished => self.counters.finished += 1,
            _ => self.counters.broken += 1,
        }
        // A flood of SYNs is not to fill a disk with reports.
        if end == End::Displaced && from == PerSide::default() {
            return;
        }
        let Pair { near, client, server, began_at, .. } = pair;
        self.reports.push_back(Report { pair: id, near, client, server, began_at, ended_at: now, end, from });
    }
}

/// True for a piece of a segment that is not for the gateway. Only the first piece has ports, so between two ends that have a connection
/// here, all pieces count as that one's, and the engine drops them: at the other end its numbers mean something else.
fn is_others_fragment(config: &GatewayConfig, pairs: &BTreeMap<PairId, Pair>, side: Side, packet: &[u8]) -> bool {
    let own = &config.side(side).endpoint.addresses;
    if own.is_empty() && !config.passes_unknown {
        return false;
    }
    let Ok((Ipv4 { src, dst, is_fragment: true, .. }, _)) = Ipv4::parse(packet) else { return false };
    let (src, dst) = (IpAddr::V4(src), IpAddr::V4(dst));
    let is_split = || pairs.values().any(|p| [(src, dst), (dst, src)].contains(&(p.client.ip(), p.server.ip())));
    !own.is_empty() && !own.contains(&dst) || config.passes_unknown && !is_split()
}

/// True if a packet is a reset with a header that is not compressed (RFC 9293 §3.1: octet 13 has the control bits).
fn is_reset(packet: &[u8]) -> bool {
    packet.first() == Some(&0x45)
        && packet.get(9) == Some(&protocol::TCP)
        && packet.get(33).is_some_and(|bits| bits & 4 != 0)
}

/// True if an IPv4 packet's protocol is one of a transport.
fn is_transport(packet: &[u8]) -> bool {
    matches!(packet.get(PROTOCOL_AT), Some(&(protocol::TCP | protocol::SCPS_STANDALONE | protocol::SCPS_COMPRESSED)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SideConfig;

    #[test]
    fn settings_that_are_read_again_leave_no_listener_behind() {
        let forward = Forward {
            side: Side::Lan,
            listen: ([10, 1, 0, 9], 80).into(),
            from: [10, 9, 0, 1].into(),
            to: ([10, 2, 0, 1], 80).into(),
        };
        let side = SideConfig::default();
        let config = GatewayConfig::new(side.clone(), side.takes_any(true), SetUp::Early).forwards(vec![forward]);
        let mut gateway = Gateway::new(config.clone(), Seed::from_u64(1), Instant::ZERO).unwrap();
        let (before, forwards) = (gateway.listeners.clone(), gateway.forwards.clone());
        for second in 1..4 {
            gateway.reconfigure(Instant::from_secs(second), config.clone()).unwrap();
        }
        assert_eq!((gateway.listeners.len(), &gateway.listeners, &gateway.forwards), (2, &before, &forwards));
    }
}
