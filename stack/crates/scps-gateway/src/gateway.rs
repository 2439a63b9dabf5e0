//! All connections through a gateway: which one an event is of, and what follows from it.

use crate::account::{Account, Counters, End, Report};
use crate::config::{ConfigError, Forward, GatewayConfig, SetUp};
use crate::pair::{Pair, PairId, Stage};
use crate::side::{PerSide, Side};
use scps_net::NetworkConfig;
use scps_tp::{
    CloseReason, Config, ConnectionId, DropReason, Endpoint, EndpointConfig, Event, ListenerId, Row, Transmit, Trust,
};
use scps_types::{Instant, Seed};
use scps_wire::protocol;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Octets handed on at a time.
const CHUNK: usize = 65_536;

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
    sides: PerSide<Endpoint>,
    forwards: PerSide<BTreeMap<ListenerId, Forward>>,
    pairs: BTreeMap<PairId, Pair>,
    owners: PerSide<BTreeMap<ConnectionId, PairId>>,
    /// When those that are not [`Stage::Open`] are given up.
    deadlines: BTreeSet<(Instant, PairId)>,
    reports: VecDeque<Report>,
    counters: Counters,
    /// Empty between calls.
    buffer: Vec<u8>,
}

impl Gateway {
    /// A gateway without connections.
    pub fn new(config: GatewayConfig, seed: Seed, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let endpoint = |side: Side, name: &str| {
            let settings = config.side(side);
            let own = Seed::from_u64(seed.keyed_hash("gateway", name.as_bytes()));
            let resets_strangers = settings.endpoint.resets_strangers && !config.passes_unknown;
            // Where connections have the same addresses on both sides, the other end can be told as well.
            let tells_strangers = resets_strangers && Side::BOTH.iter().any(|side| config.side(*side).takes_any);
            let settings_of_it = EndpointConfig { resets_strangers, tells_strangers, ..settings.endpoint.clone() };
            Endpoint::new(settings_of_it, settings.route, own, now)
        };
        let mut gateway = Gateway {
            connections_max: config.connections_max(),
            sides: PerSide { lan: endpoint(Side::Lan, "lan"), wan: endpoint(Side::Wan, "wan") },
            forwards: PerSide::default(),
            pairs: BTreeMap::new(),
            owners: PerSide::default(),
            deadlines: BTreeSet::new(),
            reports: VecDeque::new(),
            counters: Counters::default(),
            buffer: vec![0; CHUNK],
            config,
        };
        for forward in gateway.config.forwards.clone() {
            let id = gateway.listen(forward.side, forward.listen);
            gateway.forwards.of_mut(forward.side).insert(id, forward);
        }
        for side in Side::BOTH {
            if gateway.config.side(side).takes_any {
                gateway.listen(side, (Ipv4Addr::UNSPECIFIED, 0));
            }
        }
        Ok(gateway)
    }

    fn listen(&mut self, side: Side, at: (Ipv4Addr, u16)) -> ListenerId {
        let config = self.config.side(side).connection.clone();
        match self.config.set_up {
            SetUp::ConnectFirst => self.sides.of_mut(side).listen_asking(at, config),
            SetUp::AcceptFirst => self.sides.of_mut(side).listen(at, config),
            SetUp::Early => self.sides.of_mut(side).listen_asking(at, Config { holds_window: true, ..config }),
        }
    }

    // The contract of the engine.

    /// A packet from a side, beginning with the network layer's header.
    pub fn handle_input(&mut self, now: Instant, side: Side, packet: &[u8], trust: Trust) -> Fate {
        self.handle_one(now, side, packet, Row::Packets(packet.len()), trust)
    }

    /// What a device received as one; `pass` gets the packets that are to be forwarded to the other side as they are.
    pub fn handle_row(
        &mut self,
        now: Instant,
        side: Side,
        octets: &[u8],
        row: Row,
        trust: Trust,
        mut pass: impl FnMut(&[u8], Row),
    ) {
        let size = match row {
            Row::Packets(size) => size.max(1),
            Row::Joined(_) => octets.len().max(1),
        };
        let is_taken = |packet: &[u8]| matches!(packet, [0x45, ..]) && is_transport(packet);
        let takes_all = self.config.side(side).takes_any && !self.config.passes_unknown;
        if takes_all && octets.len() > size && octets.chunks(size).all(is_taken) {
            // Together, segments share acknowledgements.
            self.sides.of_mut(side).handle_row(now, octets, row, trust);
            self.turn(now);
            return;
        }
        for packet in octets.chunks(size) {
            let one = if let Row::Joined(segment) = row { Row::Joined(segment) } else { Row::Packets(packet.len()) };
            if self.handle_one(now, side, packet, one, trust) == Fate::Pass {
                pass(packet, one);
            }
        }
    }

    /// Takes a side's rate credit for a packet that passes to it; false if the rate has no room for it (scps-tp §10.6).
    pub fn charge(&mut self, now: Instant, side: Side, octets: usize) -> bool {
        self.sides.of_mut(side).charge(now, octets)
    }

    fn handle_one(&mut self, now: Instant, side: Side, packet: &[u8], row: Row, trust: Trust) -> Fate {
        let fate = self.receive(now, side, packet, row, trust);
        self.counters.passed += u64::from(fate == Fate::Pass);
        self.turn(now);
        fate
    }

    fn receive(&mut self, now: Instant, side: Side, packet: &[u8], row: Row, trust: Trust) -> Fate {
        let endpoint = self.sides.of_mut(side);
        // A reset of no connection may be of one that is not split, unless it is for an address of the gateway's own; nobody answers it.
        let is_others = self.config.passes_unknown || self.config.forwards.is_empty() && is_reset(packet);
        let segments: &[DropReason] =
            if is_others { &[DropReason::NotOurs, DropReason::NoConnection] } else { &[DropReason::NotOurs] };
        // RFC 791 §3.1: octet 9 is the protocol. What is no packet at all is the endpoint's to count.
        let is_ipv4 = packet.first().is_some_and(|first| first >> 4 == 4);
        let foreign: &[DropReason] = match (&self.config.side(side).endpoint.network, packet.get(9)) {
            (NetworkConfig::Np(_), _) | (NetworkConfig::Ipv4, None) => &[],
            _ if !is_ipv4 => &[],
            _ if is_transport(packet) => segments,
            // Errors that quote a half are the gateway's.
            (_, Some(&protocol::ICMP)) => {
                &[DropReason::NotOurs, DropReason::ForeignReport, DropReason::BadSegment, DropReason::UnknownProtocol]
            }
            _ => return Fate::Pass,
        };
        let refused = |e: &Endpoint| foreign.iter().map(|reason| e.drops(*reason)).sum::<u64>();
        let before = refused(endpoint);
        endpoint.handle_row(now, packet, row, trust);
        if refused(endpoint) > before {
            return Fate::Pass;
        }
        Fate::Taken
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sides.lan.handle_timeout(now);
        self.sides.wan.handle_timeout(now);
        self.turn(now);
        while let Some((at, id)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, id));
            self.give_up(now, id, End::SetUpTimedOut);
        }
        self.turn(now);
    }

    /// Appends the next packet of a side to `out`; `None` when nothing may leave there now.
    pub fn poll_transmit(&mut self, now: Instant, side: Side, out: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let transmit = self.sides.of_mut(side).poll_transmit(now, out);
            if transmit.is_some() || !self.turn(now) {
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

    /// Resets every connection. What it buffered is lost, and the account says so.
    pub fn stop(&mut self, now: Instant) {
        for id in self.pairs.keys().copied().collect::<Vec<_>>() {
            self.give_up(now, id, End::Stopped);
        }
        self.turn(now);
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

    /// Octets of memory that the halves of connections hold.
    pub fn allocated(&self) -> usize {
        let of = |side: Side, pair: &Pair| self.sides.of(side).allocated(*pair.halves.of(side)).unwrap_or(0);
        self.pairs.values().map(|pair| of(Side::Lan, pair) + of(Side::Wan, pair)).sum()
    }

    // Private steps.

    /// Acts on events until there are none; false if there were none.
    fn turn(&mut self, now: Instant) -> bool {
        let mut was_busy = false;
        loop {
            let mut is_busy = false;
            for side in Side::BOTH {
                while let Some(event) = self.sides.of_mut(side).poll_event() {
                    self.on_event(now, side, event);
                    is_busy = true;
                }
                while let Some(stranger) = self.sides.of_mut(side).poll_stranger() {
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
        let (Event::Asked(_, half)
        | Event::Accepted(_, half)
        | Event::Connected(half)
        | Event::Readable(half)
        | Event::Writable(half)
        | Event::Flushed(half)
        | Event::Closed(half, _)) = event;
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
                self.deadlines.remove(&(pair.began_at + self.config.limits.set_up, id));
                let near = *pair.halves.of(pair.near);
                let endpoint = self.sides.of_mut(pair.near);
                match std::mem::replace(&mut pair.stage, Stage::Open) {
                    Stage::Held => endpoint.answer(now, near),
                    Stage::Accepted | Stage::Open => endpoint.open_window(now, near),
                }
            }
            Event::Readable(_) => pair.pump(now, &mut self.sides, side, &mut self.buffer),
            Event::Writable(_) => pair.pump(now, &mut self.sides, side.other(), &mut self.buffer),
            Event::Closed(_, reason) => {
                let is_undelivered = pair.account(&self.sides, side.other()).buffered > 0;
                if reason != CloseReason::Finished || is_undelivered {
                    return self.give_up(now, id, End::Broken(side, reason));
                }
            }
            Event::Asked(..) | Event::Accepted(..) | Event::Flushed(_) => {}
        }
        if self.pairs.get(&id).is_some_and(|pair| pair.is_finished(&self.sides)) {
            self.finish(now, id, End::Finished);
        }
    }

    /// Somebody asks for a connection: the far half is asked for, if there is room for one more.
    fn begin(&mut self, now: Instant, near: Side, listener: ListenerId, half: ConnectionId, stage: Stage) {
        let Some((server, client)) = self.sides.of(near).addresses(half) else { return };
        if self.pairs.len() >= self.connections_max {
            self.counters.full += 1;
            return self.drop_half(now, near, half);
        }
        let (from, to) = match self.forwards.of(near).get(&listener) {
            Some(forward) => ((forward.from, 0), forward.to),
            None => (client, server),
        };
        let far = near.other();
        let dscp = self.sides.of(near).dscp(half).unwrap_or_default();
        let config = Config { dscp, ..self.config.side(far).connection.clone() };
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
        self.deadlines.insert((now + self.config.limits.set_up, id));
        let mut pair = Pair { near, client, server, halves, stage, began_at: now, is_ended: PerSide::default() };
        if self.config.set_up == SetUp::Early {
            pair.stage = Stage::Accepted;
            self.sides.of_mut(near).answer(now, half);
        }
        // What overtook the event that tells of the connection was told before.
        pair.pump(now, &mut self.sides, near, &mut self.buffer);
        self.pairs.insert(id, pair);
    }

    /// Refuses a half that has no other.
    fn drop_half(&mut self, now: Instant, side: Side, half: ConnectionId) {
        let endpoint = self.sides.of_mut(side);
        endpoint.abort(now, half);
        endpoint.release(now, half);
    }

    /// Ends what is left of a connection. A client whose SYN was held, and whom nobody answered, is not answered either, as
    /// without a gateway, and is told by ICMP what ICMP told the gateway; all others are reset.
    fn give_up(&mut self, now: Instant, id: PairId, end: End) {
        let Some(pair) = self.pairs.get(&id) else { return };
        let far = pair.near.other();
        let is_silent = end == End::SetUpTimedOut || end == End::Broken(far, CloseReason::TimedOut);
        if pair.stage == Stage::Held && is_silent {
            let half = *pair.halves.of(pair.near);
            self.sides.of_mut(pair.near).ignore(now, half);
        }
        if let (Stage::Held, End::Broken(_, CloseReason::Unreachable { code })) = (pair.stage, end) {
            let half = *pair.halves.of(pair.near);
            self.sides.of_mut(pair.near).turn_away(now, half, code);
        }
        let halves = pair.halves;
        for side in Side::BOTH {
            self.sides.of_mut(side).abort(now, *halves.of(side));
        }
        self.finish(now, id, end);
    }

    /// Draws up the account of a connection that is over, and forgets it.
    fn finish(&mut self, now: Instant, id: PairId, end: End) {
        let Some(pair) = self.pairs.remove(&id) else { return };
        self.deadlines.remove(&(pair.began_at + self.config.limits.set_up, id));
        let account = |side| pair.account(&self.sides, side).at_end();
        let from = PerSide { lan: account(Side::Lan), wan: account(Side::Wan) };
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
        let Pair { near, client, server, began_at, .. } = pair;
        self.reports.push_back(Report { pair: id, near, client, server, began_at, ended_at: now, end, from });
    }
}

/// True if a packet is a reset with a header that is not compressed (RFC 9293 §3.1: octet 13 has the control bits).
fn is_reset(packet: &[u8]) -> bool {
    packet.first() == Some(&0x45)
        && packet.get(9) == Some(&protocol::TCP)
        && packet.get(33).is_some_and(|bits| bits & 4 != 0)
}

/// True if an IPv4 packet's protocol is one of a transport (RFC 791 §3.1: octet 9).
fn is_transport(packet: &[u8]) -> bool {
    matches!(packet.get(9), Some(&(protocol::TCP | protocol::SCPS_STANDALONE | protocol::SCPS_COMPRESSED)))
}
