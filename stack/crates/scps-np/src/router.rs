//! A node that forwards (scps-np §4.2): frames in, frames out by precedence, and the control messages about what it could not
//! do. Drivers hand over frames and link events, and take a frame whenever a link is free.

use crate::address::{Address, Addresses};
use crate::counters::{Counter, Counters};
use crate::header::{set_hop_count, tpid, BadDatagram, BasicQos, Datagram, Header, Routing, DATAGRAM_MAX};
use crate::limits::{ErrorBucket, PerSource, RecentSources};
use crate::profile::Dialect;
use crate::queue::{PrecedenceQueues, QueueConfig};
use crate::scmp::{quote_of, reportable_source, Message, Restored, Unreachable};
use crate::tables::Tables;
use scps_wire::{Duration, Instant, Precedence, Seed};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Flooded datagrams remembered, and for how long (scps-np §4.3).
const FLOODED_MAX: usize = 4096;
const FLOODED_LIFETIME: Duration = Duration::from_secs(30);
/// Least time between control messages of a kind to a source, or of a link (scps-np §6.3).
const INTERVAL: Duration = Duration::from_secs(1);
/// Pairs of source and destination that are told of an outage.
const OUTAGE_REPORTED_MAX: usize = 100;
/// Datagrams for this node that wait to be taken.
const DELIVERED_MAX: usize = 1024;
/// Frames whose room is kept for others, and the octets of a new one.
const SPARE_MAX: usize = 256;
const ROOM: usize = 1536;

/// Settings of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterConfig {
    /// Whether it forwards what is not for it; end systems do not.
    pub forwards: bool,
    /// Precedence of datagrams that tell none.
    pub default_precedence: Precedence,
    /// Whether it forwards datagrams that have no hop count: nothing ends those where tables of several nodes make a loop.
    pub forwards_uncounted: bool,
    /// Hop count of its own datagrams.
    pub hop_count: u8,
}

impl Default for RouterConfig {
    fn default() -> Self {
        RouterConfig {
            forwards: true,
            default_precedence: Precedence::LOWEST,
            forwards_uncounted: false,
            hop_count: 10,
        }
    }
}

/// What a link carries of SP (scps-sp §4.4, for a node that holds no keys). Control messages pass in any case: they are outside
/// SP's protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SpRule {
    /// What SP protects, and nothing else of an end system.
    Required,
    /// Everything.
    #[default]
    Accepted,
    /// Nothing that SP protects: encryption is not allowed on every link.
    None,
}

impl SpRule {
    const fn admits(self, upper: u8) -> bool {
        match (self, upper) {
            (SpRule::Accepted, _) | (_, tpid::SCMP) => true,
            (SpRule::Required, upper) => upper == tpid::SCPS_SP,
            (SpRule::None, upper) => upper != tpid::SCPS_SP,
        }
    }
}

/// Settings of a link of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouterLink {
    /// How headers look here.
    pub dialect: Dialect,
    /// Octets of the longest datagram.
    pub mtu: u16,
    /// Link addresses of the nodes at the other end, as next hops name them.
    pub neighbours: Vec<Ipv4Addr>,
    /// Its queues.
    pub queue: QueueConfig,
    /// What it carries of SP, in both directions.
    pub sp: SpRule,
}

/// What a data link tells (scps-np §6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// A frame came that was damaged.
    FrameCorrupt,
    /// The link works again.
    Up,
    /// Nothing can be sent: carrier or synchronisation is lost.
    Down,
}

/// A frame for a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The node at the other end that gets it.
    pub next_hop: Ipv4Addr,
    /// Its level in the queue.
    pub precedence: Precedence,
    /// The datagram.
    pub octets: Vec<u8>,
}

#[derive(Debug)]
struct Link {
    config: RouterLink,
    queue: PrecedenceQueues<(Ipv4Addr, Vec<u8>)>,
    sources: RecentSources,
    corruption_told_at: Option<Instant>,
    is_up: bool,
    /// Who was told of the outage, and of which destination.
    outage_told: BTreeSet<(Address, Address)>,
}

/// A node in operation.
#[derive(Debug)]
pub struct Router {
    config: RouterConfig,
    tables: Tables,
    links: Vec<Link>,
    counters: Counters,
    delivered: VecDeque<Vec<u8>>,
    /// Room of frames that have left, for those that come: a node at work asks for no memory.
    spare: Vec<Vec<u8>>,
    /// Where a datagram goes on, and what is discarded for it: empty between two calls.
    hops: Vec<Ipv4Addr>,
    onward: Vec<(usize, Ipv4Addr)>,
    discarded: Vec<Vec<u8>>,
    flooded: BTreeMap<u64, Instant>,
    quenches: PerSource,
    errors: PerSource,
    bucket: ErrorBucket,
    seed: Seed,
}

impl Router {
    /// A node with these tables and links, all of them up.
    pub fn new(config: RouterConfig, tables: Tables, links: Vec<RouterLink>, seed: Seed, now: Instant) -> Self {
        let link = |config: RouterLink| Link {
            queue: PrecedenceQueues::new(config.queue),
            config,
            sources: RecentSources::default(),
            corruption_told_at: None,
            is_up: true,
            outage_told: BTreeSet::new(),
        };
        Router {
            config,
            tables,
            links: links.into_iter().map(link).collect(),
            counters: Counters::default(),
            delivered: VecDeque::new(),
            spare: Vec::new(),
            hops: Vec::new(),
            onward: Vec::new(),
            discarded: Vec::new(),
            flooded: BTreeMap::new(),
            quenches: PerSource::new(INTERVAL),
            errors: PerSource::new(INTERVAL),
            bucket: ErrorBucket::new(now),
            seed,
        }
    }

    /// Takes other settings and tables, for what comes from now on.
    pub fn reconfigure(&mut self, config: RouterConfig, tables: Tables) {
        (self.config, self.tables) = (config, tables);
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The queues of a link.
    pub fn queue(&self, link: usize) -> &PrecedenceQueues<(Ipv4Addr, Vec<u8>)> {
        &self.links[link].queue
    }

    /// A frame came on a link.
    ///
    /// # Panics
    /// If there is no such link, here and below: a driver names those it made.
    pub fn handle_frame(&mut self, now: Instant, link: usize, frame: &[u8]) {
        self.counters.count(Counter::InReceives);
        let datagram = match Datagram::parse(frame, self.links[link].config.dialect) {
            Ok(datagram) => datagram,
            Err(bad) => {
                self.counters.count(Counter::of_bad(bad));
                if bad == BadDatagram::Checksum {
                    self.tell_corruption(now, link);
                }
                return;
            }
        };
        let addresses = datagram.header.addresses;
        if let Some(source) = addresses.src() {
            if !source.is_unicast() {
                self.counters.count(Counter::InBadAddress);
                return;
            }
            self.links[link].sources.note(now, source);
        }
        if !self.links[link].config.sp.admits(datagram.header.tpid) {
            self.filter(now, &datagram);
            return;
        }
        let is_flood = datagram.header.qos.is_some_and(|qos| qos.routing == Routing::Flood);
        if is_flood && !self.is_new(now, &datagram) {
            self.counters.count(Counter::InDiscards);
            return;
        }
        let is_ours = self.tables.is_for_us(addresses);
        if is_ours || datagram.header.intermediate_delivery {
            self.deliver(now, link, &datagram);
        }
        let mut onward = std::mem::take(&mut self.onward);
        self.find_onward(addresses, is_flood, &mut onward);
        if onward.is_empty() {
            if !is_ours {
                self.refuse_unroutable(now, &datagram);
            }
        } else {
            onward.retain(|(out, _)| *out != link || is_single(addresses, is_flood));
            if self.config.forwards {
                self.forward(now, link, &datagram, &onward);
            } else if !onward.is_empty() && !is_ours {
                self.counters.count(Counter::InAddrErrors);
            }
        }
        onward.clear();
        self.onward = onward;
    }

    /// The data link has something to say.
    pub fn handle_link_event(&mut self, now: Instant, link: usize, event: LinkEvent) {
        match event {
            LinkEvent::FrameCorrupt => self.tell_corruption(now, link),
            LinkEvent::Down => self.links[link].is_up = false,
            LinkEvent::Up => {
                self.links[link].is_up = true;
                for (source, destination) in std::mem::take(&mut self.links[link].outage_told) {
                    let message = Message::LinkAvailable(Restored::Destination(destination));
                    self.send(now, source, &message, self.config.default_precedence);
                }
            }
        }
    }

    /// The frame that leaves a link next; `None` while it is down or nothing waits.
    pub fn poll_frame(&mut self, link: usize) -> Option<Outgoing> {
        let link = &mut self.links[link];
        let (precedence, (next_hop, octets)) = link.is_up.then(|| link.queue.pop()).flatten()?;
        Some(Outgoing { next_hop, precedence, octets })
    }

    /// The link did not take a frame.
    pub fn put_back(&mut self, link: usize, frame: Outgoing) {
        self.links[link].queue.put_back(frame.precedence, (frame.next_hop, frame.octets));
    }

    /// Takes the room of a frame that has left.
    pub fn recycle(&mut self, mut octets: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            octets.clear();
            self.spare.push(octets);
        }
    }

    /// A datagram for this node.
    pub fn poll_delivered(&mut self) -> Option<Vec<u8>> {
        self.delivered.pop_front()
    }

    /// Makes a datagram of this node and queues it.
    pub fn originate(&mut self, now: Instant, header: &Header, data: &[u8]) {
        self.counters.count(Counter::OutRequests);
        let mut onward = std::mem::take(&mut self.onward);
        self.find_onward(header.addresses, false, &mut onward);
        for (link, hop) in &onward {
            let (link, hop) = (*link, *hop);
            let mut octets = self.room();
            octets.resize(header.emit_len(), 0);
            octets.extend_from_slice(data);
            let config = &self.links[link].config;
            if header.emit(config.dialect, usize::from(config.mtu), &mut octets).is_err() {
                self.counters.count(Counter::OutDiscards);
                continue;
            }
            self.enqueue(now, link, hop, self.level(header), octets);
        }
        if onward.is_empty() {
            self.counters.count(Counter::OutNoRoutes);
        }
        onward.clear();
        self.onward = onward;
    }

    // Private steps.

    fn level(&self, header: &Header) -> Precedence {
        header.qos.map_or(self.config.default_precedence, |qos| qos.precedence)
    }

    fn link_to(&self, hop: Ipv4Addr) -> Option<usize> {
        self.links.iter().position(|link| link.config.neighbours.contains(&hop))
    }

    /// The links and next hops of a datagram; of a flooded one all of them.
    fn find_onward(&mut self, addresses: Addresses, is_flood: bool, onward: &mut Vec<(usize, Ipv4Addr)>) {
        let mut hops = std::mem::take(&mut self.hops);
        if is_flood {
            hops.extend(self.links.iter().flat_map(|link| link.config.neighbours.iter().copied()));
        } else {
            self.tables.next_hops(addresses, &mut hops);
        }
        onward.extend(hops.drain(..).filter_map(|hop| Some((self.link_to(hop)?, hop))));
        self.hops = hops;
    }

    fn room(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(ROOM))
    }

    fn deliver(&mut self, now: Instant, link: usize, datagram: &Datagram<'_>) {
        let header = &datagram.header;
        if matches!(header.tpid, 0 | 2 | 3 | 7 | 12..) {
            self.counters.count(Counter::InUnknownProtos);
            self.report(now, datagram, &Message::Unreachable(Unreachable::Protocol, quote_of(datagram)));
            return;
        }
        self.counters.count(Counter::InDelivers);
        if header.tpid == tpid::SCMP {
            let message = Message::parse(datagram.payload(), self.links[link].config.dialect).ok();
            self.counters.count_in(message.as_ref());
            if let Some((reply, source)) = message.and_then(|m| m.reply()).zip(header.addresses.src()) {
                self.send(now, source, &reply, self.level(header));
                return;
            }
        }
        if self.delivered.len() < DELIVERED_MAX {
            self.delivered.push_back(datagram.octets.to_vec());
        }
    }

    fn refuse_unroutable(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let unknown = |dst: Address| matches!(dst, Address::Basic(_)) && self.tables.ip_of(dst).is_none();
        let is_end = !matches!(datagram.header.addresses, Addresses::Path(_));
        if datagram.header.addresses.dst().is_some_and(|dst| is_end && dst.is_unicast() && unknown(dst)) {
            self.counters.count(Counter::InBadAddress);
            return;
        }
        self.counters.count(Counter::OutNoRoutes);
        self.report(now, datagram, &Message::Unreachable(Unreachable::UnknownHost, quote_of(datagram)));
    }

    /// A link must not carry the datagram.
    fn filter(&mut self, now: Instant, datagram: &Datagram<'_>) {
        self.counters.count(Counter::SpDiscards);
        self.report(now, datagram, &Message::Unreachable(Unreachable::Filtered, quote_of(datagram)));
    }

    fn forward(&mut self, now: Instant, arrival: usize, datagram: &Datagram<'_>, onward: &[(usize, Ipv4Addr)]) {
        let header = &datagram.header;
        let hop_count = header.hop_count.map(|count| count.saturating_sub(1));
        let is_flood = header.qos.is_some_and(|qos| qos.routing == Routing::Flood);
        // Without a hop count nothing would end a flood (scps-np §4.3), or whatever meets a loop of routes.
        let is_endless = hop_count.is_none() && (is_flood || !self.config.forwards_uncounted);
        if hop_count == Some(0) || is_endless {
            self.counters.count(Counter::HopDiscard);
            self.report(now, datagram, &Message::TimeExceeded(quote_of(datagram)));
            return;
        }
        let dialect = self.links[arrival].config.dialect;
        for (out, hop) in onward {
            let to = &self.links[*out];
            let (mtu, out_dialect, is_up) = (to.config.mtu, to.config.dialect, to.is_up);
            if !to.config.sp.admits(header.tpid) {
                self.filter(now, datagram);
                continue;
            }
            if !is_up {
                self.counters.count(Counter::OutDiscards);
                self.tell_outage(now, *out, datagram);
                continue;
            }
            let mut octets = self.room();
            if out_dialect == dialect {
                octets.extend_from_slice(datagram.octets);
                if let Some(count) = hop_count {
                    set_hop_count(&mut octets, count, dialect);
                }
            } else {
                octets.resize(header.emit_len(), 0);
                octets.extend_from_slice(datagram.payload());
                // Its length is checked below, with the message that belongs to it.
                let _ = Header { hop_count, ..*header }.emit(out_dialect, DATAGRAM_MAX, &mut octets);
            }
            if octets.len() > usize::from(mtu) {
                self.recycle(octets);
                self.counters.count(Counter::OutDiscards);
                self.report(now, datagram, &Message::TooBig { mtu, quote: quote_of(datagram) });
                continue;
            }
            self.counters.count(Counter::ForwDatagrams);
            self.enqueue(now, *out, *hop, self.level(header), octets);
            if self.links[*out].queue.is_congested() {
                self.quench(now, datagram);
            }
        }
    }

    /// Queues a frame. Whoever sent what is discarded for it is quenched.
    fn enqueue(&mut self, now: Instant, link: usize, hop: Ipv4Addr, level: Precedence, octets: Vec<u8>) {
        // A quench is queued itself, and may be one too many: what it discards is looked at in a list of its own.
        let mut discarded = std::mem::take(&mut self.discarded);
        self.links[link].queue.push(level, (hop, octets), |_, (_, octets)| discarded.push(octets));
        let dialect = self.links[link].config.dialect;
        for octets in discarded.drain(..) {
            self.counters.count(Counter::OutDiscards);
            if let Ok(datagram) = Datagram::parse(&octets, dialect) {
                self.quench(now, &datagram);
            }
            self.recycle(octets);
        }
        self.discarded = discarded;
    }

    // Control messages.

    fn quench(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let Some(source) = self.tellable_source(datagram) else { return };
        if self.quenches.allow(now, source) {
            let message = Message::SourceQuench(quote_of(datagram));
            self.send(now, source, &message, self.level(&datagram.header));
        }
    }

    /// All sources that were heard on a link lately: whose datagram was damaged cannot be told.
    fn tell_corruption(&mut self, now: Instant, link: usize) {
        if self.links[link].corruption_told_at.is_some_and(|at| now.since(at) < INTERVAL) {
            return;
        }
        self.links[link].corruption_told_at = Some(now);
        for source in self.links[link].sources.of(now) {
            self.send(now, source, &Message::Corruption, self.config.default_precedence);
        }
    }

    fn tell_outage(&mut self, now: Instant, link: usize, datagram: &Datagram<'_>) {
        let Some(source) = self.tellable_source(datagram) else { return };
        let Some(destination) = datagram.header.addresses.dst() else { return };
        let told = &mut self.links[link].outage_told;
        if told.len() < OUTAGE_REPORTED_MAX && told.insert((source, destination)) {
            let message = Message::Unreachable(Unreachable::LinkOutage, quote_of(datagram));
            self.send(now, source, &message, self.level(&datagram.header));
        }
    }

    /// An error about a datagram, to its source.
    fn report(&mut self, now: Instant, datagram: &Datagram<'_>, message: &Message<'_>) {
        let Some(source) = self.tellable_source(datagram) else { return };
        if self.errors.allow(now, source) && self.bucket.allow(now) {
            self.send(now, source, message, self.level(&datagram.header));
        } else {
            self.counters.count_held_back();
        }
    }

    fn tellable_source(&self, datagram: &Datagram<'_>) -> Option<Address> {
        reportable_source(&datagram.header, datagram.payload()).filter(|source| self.tables.own() != Some(*source))
    }

    fn send(&mut self, now: Instant, to: Address, message: &Message<'_>, precedence: Precedence) {
        let Some(addresses) = self.tables.own().and_then(|own| Addresses::of_ends(to, own)) else { return };
        let header = Header {
            tpid: tpid::SCMP,
            addresses,
            qos: Some(BasicQos::of(precedence)),
            hop_count: Some(self.config.hop_count),
            checksum: true,
            ..Header::default()
        };
        let mut body = Vec::new();
        message.emit(true, &mut body);
        self.counters.count_out(message);
        self.originate(now, &header, &body);
    }

    // Flooding.

    /// True if a flooded datagram comes for the first time. What routers change does not count.
    fn is_new(&mut self, now: Instant, datagram: &Datagram<'_>) -> bool {
        let header = Header { hop_count: None, checksum: false, ..datagram.header };
        let mut octets = vec![0; header.emit_len()];
        octets.extend_from_slice(datagram.payload());
        let _ = header.emit(Dialect::default(), DATAGRAM_MAX, &mut octets);
        let key = self.seed.keyed_hash("flooded", &octets);
        if self.flooded.get(&key).is_some_and(|at| now.since(*at) <= FLOODED_LIFETIME) {
            return false;
        }
        if self.flooded.len() >= FLOODED_MAX {
            self.flooded.retain(|_, at| now.since(*at) <= FLOODED_LIFETIME);
        }
        // A table full of fresh ones: forwarding what may be a duplicate would amplify.
        let has_room = self.flooded.len() < FLOODED_MAX;
        if has_room {
            self.flooded.insert(key, now);
        }
        has_room
    }
}

/// One copy to one end system may go back where it came from: the sender's table was wrong, not this one.
fn is_single(addresses: Addresses, is_flood: bool) -> bool {
    !is_flood && !matches!(addresses, Addresses::Path(_)) && addresses.dst().is_some_and(Address::is_unicast)
}
