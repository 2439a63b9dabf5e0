//! A data connection and the file behind it (scps-fp §2, §9).

use super::control::Control;
use super::ending::BrokenStays;
use super::ports::{Ports, Way};
use super::session::Session;
use super::Shared;
use crate::command::FileType;
use crate::error::{StoreError, StoreResult};
use crate::net::{ConnId, ListenId, Net, Recv};
use crate::outgoing::Outgoing;
use crate::partial::Partial;
use crate::private::FileId;
use crate::quota::Count;
use crate::reply::Reply;
use scps_wire::{Duration, Instant};
use std::net::IpAddr;

/// Octets moved in one turn, so that sessions share the time and commands are seen.
const TURN_OCTETS: u64 = 1 << 20;
/// Octets read from the transport at a time.
const CHUNK: usize = 64 * 1024;
/// How often the transport is asked whether it has sent everything.
const DRAIN_LOOK: Duration = Duration::from_millis(10);
/// How long a passive listener waits for its client (scps-fp §2).
const ACCEPT_LIMIT: Duration = Duration::from_secs(60);

/// What moves.
#[derive(Debug)]
pub(super) enum Flow {
    Send(Outgoing),
    Receive(Partial),
}

impl Flow {
    fn octets(&self) -> u64 {
        match self {
            Flow::Send(outgoing) => outgoing.sent(),
            Flow::Receive(partial) => partial.received(),
        }
    }

    /// Takes a step towards the first or next octet; true once it can move.
    fn prepare(&mut self, net: &mut dyn Net) -> StoreResult<bool> {
        match self {
            Flow::Send(outgoing) => outgoing.prepare(),
            Flow::Receive(partial) => {
                partial.sync_if_due(net)?;
                partial.prepare()
            }
        }
    }
}

/// The data connection.
#[derive(Clone, Copy, Debug)]
enum Link {
    /// The file is being prepared; then the connection is opened this way.
    Planned(Way),
    Listening(ListenId),
    Connecting(ConnId),
    Open(ConnId),
}

/// How a transfer ends, if not by itself.
#[derive(Debug)]
pub(super) enum Ending {
    Complete,
    Interrupted,
    Aborted,
    Broken(&'static str),
    NoConnection(String),
    Local(StoreError),
}

/// A transfer in operation.
#[derive(Debug)]
pub(super) struct Transfer {
    link: Link,
    flow: Flow,
    since: Instant,
    last_moved: Instant,
    link_down_since: Option<Instant>,
    /// Text of the 150 reply.
    opening: String,
    /// By which other sessions find the writer.
    lock: Option<FileId>,
    /// What is used of a quota is being counted.
    count: Option<Count>,
    declared: Option<u64>,
    /// Wire octets without which the end of the data is not that of the file: what is announced is exact with automatic restart, and
    /// the most there can be without (RFC 959 §4.1.3).
    ends_at: Option<u64>,
    fill: u8,
    filled: u64,
    /// Everything is with the transport, which still has to send some of it.
    is_draining: bool,
    unsent: u64,
    /// There is more to do at once, though no octet moved.
    is_working: bool,
}

/// What a command starts.
pub(super) struct Plan {
    pub flow: Flow,
    pub opening: String,
    pub count: Option<Count>,
    pub declared: Option<u64>,
    /// RETR and STOR may be best effort; listings and control files never.
    pub may_be_best_effort: bool,
}

impl Transfer {
    /// Takes a step before the connection is opened; true once that may be.
    fn make_ready(&mut self, net: &mut dyn Net) -> StoreResult<bool> {
        if let Some(count) = &mut self.count {
            if !count.step()? {
                return Ok(false);
            }
            self.count = None;
            let Flow::Receive(partial) = &self.flow else { return Ok(false) };
            partial.check_declared(self.declared)?;
        }
        self.flow.prepare(net)
    }

    /// For STAT.
    pub fn progress(&self) -> String {
        match &self.flow {
            Flow::Send(outgoing) => format!("{} octets sent", outgoing.sent()),
            Flow::Receive(partial) => format!("{} octets received, {} stored", partial.received(), partial.stored()),
        }
    }

    /// Everything was handed over; it is complete once the transport has sent it, so that it can be interrupted until then.
    fn drain(&mut self, net: &mut dyn Net, id: ConnId) -> Option<Ending> {
        // What the peer says now is of no interest, only that it is there.
        match net.recv(id, &mut [0; 512]) {
            Ok(_) => {}
            Err(_) if net.unacknowledged(id) == 0 => {}
            Err(_) => return Some(Ending::Broken("the data connection failed")),
        }
        self.unsent = net.unsent(id);
        (self.unsent == 0).then_some(Ending::Complete)
    }

    /// While the transport waits for its link, our patience does not run, within `longest`.
    fn heed_link(&mut self, net: &dyn Net, longest: Duration) {
        let now = net.now();
        if net.is_link_up() {
            self.link_down_since = None;
        } else if now.since(*self.link_down_since.get_or_insert(now)) < longest {
            (self.since, self.last_moved) = (now, now);
        }
    }

    /// When patience ends.
    pub fn deadline(&self, shared: &Shared) -> Instant {
        match self.link {
            Link::Planned(_) | Link::Listening(_) => self.since + ACCEPT_LIMIT.max(shared.mib.connect_timeout),
            Link::Connecting(_) => self.since + shared.mib.connect_timeout,
            Link::Open(_) => self.last_moved + shared.mib.data_timeout,
        }
    }

    /// When to look again even if nothing happens: nobody tells when a transport has sent the last octet.
    pub fn look_again(&self, now: Instant) -> Option<Instant> {
        self.is_draining.then(|| now + DRAIN_LOOK)
    }

    /// True if there is more to do at once.
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// Moves what can be moved: whether that was something, and how it ended if it did.
    fn advance(
        &mut self,
        net: &mut dyn Net,
        shared: &mut Shared,
        ports: &Ports,
        control: &mut Control,
    ) -> (bool, Option<Ending>) {
        let was_open = matches!(self.link, Link::Open(_));
        self.heed_link(net, shared.mib.link_down_max);
        let moved_before = (self.flow.octets(), self.unsent);
        self.is_working = false;
        let ending = self.open_link(net, shared, ports, control).or_else(|| match self.link {
            Link::Open(id) => self.move_octets(net, id, control),
            _ => None,
        });
        let has_moved = moved_before != (self.flow.octets(), self.unsent);
        let now = net.now();
        let is_open = matches!(self.link, Link::Open(_));
        let has_progressed = has_moved || is_open != was_open || self.is_working;
        if has_progressed {
            self.last_moved = now;
            if let Some(lock) = self.lock {
                shared.writers.moved(lock, now);
            }
        }
        if self.is_working && !is_open {
            self.since = now;
        }
        let is_evicted = self.lock.is_some_and(|l| shared.writers.is_evicted(l));
        let ending = ending.or(match (is_evicted, now >= self.deadline(shared), is_open) {
            (true, _, _) => Some(Ending::Broken("another session took over")),
            (_, true, true) => Some(Ending::Broken("nothing moved for too long")),
            (_, true, false) => Some(Ending::NoConnection("nobody answered in time".to_owned())),
            _ => None,
        });
        (has_progressed, ending)
    }

    /// Prepares the file and asks for the connection.
    fn prepare_link(&mut self, net: &mut dyn Net, way: Way, local: IpAddr) -> Option<Ending> {
        match self.make_ready(net) {
            Ok(true) => {}
            Ok(false) => {
                self.is_working = true;
                return None;
            }
            Err(error) => return Some(Ending::Local(error)),
        }
        match way {
            Way::Passive(listener) => self.link = Link::Listening(listener),
            Way::Active(target, service) => match net.connect(local, target, service) {
                Ok(id) => self.link = Link::Connecting(id),
                Err(e) => return Some(Ending::NoConnection(e.to_string())),
            },
            Way::Unknown => return Some(Ending::NoConnection("no PORT or PASV was given".to_owned())),
        }
        None
    }

    fn open_link(
        &mut self,
        net: &mut dyn Net,
        shared: &Shared,
        ports: &Ports,
        control: &mut Control,
    ) -> Option<Ending> {
        if let Link::Planned(way) = self.link {
            if let Some(ending) = self.prepare_link(net, way, ports.local.ip()) {
                return Some(ending);
            }
        }
        match self.link {
            Link::Planned(_) | Link::Open(_) => return None,
            Link::Connecting(id) => match net.is_open(id) {
                Ok(false) => return None,
                Ok(true) => self.link = Link::Open(id),
                Err(e) => return Some(Ending::NoConnection(e.to_string())),
            },
            Link::Listening(listener) => loop {
                match net.accept(listener) {
                    Ok(None) => return None,
                    Ok(Some(accepted)) if ports.may_exchange_with(shared, accepted.peer.ip()) => {
                        net.unlisten(listener);
                        self.link = Link::Open(accepted.id);
                        break;
                    }
                    // A stranger: reset, and the wait goes on.
                    Ok(Some(stranger)) => net.abort(stranger.id),
                    Err(e) => return Some(Ending::NoConnection(e.to_string())),
                }
            },
        }
        control.reply(&Reply::new(150, std::mem::take(&mut self.opening)));
        None
    }

    fn move_octets(&mut self, net: &mut dyn Net, id: ConnId, control: &mut Control) -> Option<Ending> {
        if self.is_draining {
            return self.drain(net, id);
        }
        match &mut self.flow {
            Flow::Send(outgoing) => match send(net, id, outgoing, &mut self.is_working) {
                Some(Ending::Complete) => {
                    self.is_draining = true;
                    self.drain(net, id)
                }
                other => other,
            },
            Flow::Receive(partial) => {
                match receive(net, id, partial, self.fill, &mut self.filled) {
                    // The end of data may be the end of the client: then nothing says that it was all (scps-fp §11.3).
                    Some(Ending::Complete) if control.is_gone(net) => {
                        Some(Ending::Broken("the control connection was lost"))
                    }
                    Some(Ending::Complete) if self.ends_at.is_some_and(|d| d != partial.stored()) => {
                        Some(Ending::Broken("the data ended before the announced size"))
                    }
                    other => other,
                }
            }
        }
    }
}

impl Session {
    /// Starts what a plan says; the data connection is opened once the file is ready.
    pub fn start_transfer(&mut self, net: &dyn Net, shared: &mut Shared, plan: Plan) {
        let now = net.now();
        let lock = if let Flow::Receive(partial) = &plan.flow { Some(partial.id()) } else { None };
        if let Some(lock) = lock {
            shared.writers.insert(lock, self.id, now);
        }
        self.transfer = Some(Transfer {
            link: Link::Planned(self.ports.take(plan.may_be_best_effort)),
            flow: plan.flow,
            since: now,
            last_moved: now,
            link_down_since: None,
            opening: plan.opening,
            lock,
            count: plan.count,
            declared: plan.declared,
            ends_at: plan.declared.filter(|_| self.auto_restart),
            fill: self.ports.bets.unwrap_or(0),
            filled: 0,
            is_draining: false,
            unsent: 0,
            is_working: false,
        });
    }

    /// Moves what can be moved; false if that was nothing.
    pub fn advance_transfer(&mut self, net: &mut dyn Net, shared: &mut Shared) -> bool {
        let Session { transfer: Some(transfer), ports, control, .. } = self else { return false };
        let (progressed, ending) = transfer.advance(net, shared, ports, control);
        if let Some(ending) = ending {
            self.end_transfer(net, shared, ending);
            return true;
        }
        progressed
    }

    /// Ends the transfer: the file by the rules of scps-fp §9.2, the connection, the replies.
    pub fn end_transfer(&mut self, net: &mut dyn Net, shared: &mut Shared, ending: Ending) {
        let Some(mut transfer) = self.transfer.take() else { return };
        if let (Ending::Interrupted, Link::Open(id), Flow::Receive(partial)) =
            (&ending, transfer.link, &mut transfer.flow)
        {
            // What has arrived counts; how the rest ends no longer matters.
            receive(net, id, partial, transfer.fill, &mut transfer.filled);
        }
        match transfer.link {
            Link::Planned(Way::Passive(listener)) | Link::Listening(listener) => net.unlisten(listener),
            Link::Planned(_) => {}
            // What INTR leaves is a file like any other: between two servers the receiver keeps it so.
            Link::Connecting(id) | Link::Open(id) if matches!(ending, Ending::Complete | Ending::Interrupted) => {
                net.release(id);
            }
            // The peer must not take this for the end of the file, and what is on its way is of no use.
            Link::Connecting(id) | Link::Open(id) => net.abort(id),
        }
        if let Some(lock) = transfer.lock {
            shared.writers.remove(lock);
        }
        let has_begun = matches!(transfer.link, Link::Open(_));
        self.touch(net.now());
        let note = format!("[{}] {ending:?}", self.id);
        match transfer.flow {
            Flow::Send(outgoing) => {
                let (sent, marker) = (outgoing.sent(), outgoing.marker());
                shared.counters.transfers_out += 1;
                shared.counters.octets_out += sent;
                shared.note(format!("{note}: {sent} octets sent, marker {marker}"));
                self.control.conclude_sending(&outgoing, ending);
            }
            Flow::Receive(partial) => {
                let (received, stored) = (partial.received(), partial.stored());
                shared.counters.transfers_in += 1;
                shared.counters.octets_in += received;
                shared.note(format!("{note}: {received} octets received, {stored} stored"));
                let broken_stays = match (self.auto_restart, shared.mib.keep_partial) {
                    (true, _) => BrokenStays::ToGoOn,
                    (false, true) => BrokenStays::Aside,
                    (false, false) => BrokenStays::No,
                };
                self.control.conclude_receiving(net, partial, ending, has_begun, broken_stays, transfer.filled);
            }
        }
    }
}

fn send(net: &mut dyn Net, id: ConnId, outgoing: &mut Outgoing, is_working: &mut bool) -> Option<Ending> {
    let start = outgoing.sent();
    while outgoing.sent() - start < TURN_OCTETS {
        match outgoing.prepare() {
            Ok(true) => {}
            Ok(false) => {
                *is_working = true;
                return None;
            }
            Err(error) => return Some(Ending::Local(StoreError { code: 551, ..error })),
        }
        let octets = match outgoing.peek() {
            Ok([]) => {
                net.finish(id);
                return Some(Ending::Complete);
            }
            Ok(octets) => octets,
            Err(_) => return Some(Ending::Local(StoreError::new(551, "the file cannot be read"))),
        };
        match net.send(id, octets) {
            Ok(0) => break,
            Ok(n) => outgoing.advance(n),
            Err(_) => return Some(Ending::Broken("the data connection failed")),
        }
    }
    None
}

fn receive(net: &mut dyn Net, id: ConnId, partial: &mut Partial, fill: u8, filled: &mut u64) -> Option<Ending> {
    let mut buffer = vec![0u8; CHUNK];
    let start = partial.received();
    while partial.received() - start < TURN_OCTETS {
        let stored = match net.recv(id, &mut buffer) {
            Ok(Recv::Data(n)) => partial.write(&buffer[..n]),
            Ok(Recv::Hole(n)) => {
                *filled += n;
                partial.fill(n, fill)
            }
            Ok(Recv::Wait) => break,
            Ok(Recv::End) => return Some(Ending::Complete),
            Err(_) => return Some(Ending::Broken("the data connection failed")),
        };
        if let Err(error) = stored.and_then(|()| partial.sync_if_due(net)) {
            return Some(Ending::Local(StoreError::from(error).of_storing()));
        }
    }
    None
}

/// The text of a 150 reply.
pub(super) fn opening_text(path: &str, file_type: FileType) -> String {
    let kind = if file_type == FileType::Ascii { "ASCII" } else { "BINARY" };
    format!("Opening {kind} mode data connection for {path}.")
}
