//! A data connection and the file behind it (FP notes §2, §9).

use super::session::Session;
use super::Shared;
use crate::command::FileType;
use crate::crc::crc_text;
use crate::net::{ConnId, ListenId, Net, Recv, Service};
use crate::outgoing::Outgoing;
use crate::partial::Partial;
use crate::reply::Reply;
use crate::store::StoreError;
use scps_types::{Duration, Instant};
use std::net::IpAddr;

/// Octets moved in one turn, so that sessions share the time and commands are seen.
const TURN_OCTETS: u64 = 1 << 20;
/// Octets read from the transport at a time.
const CHUNK: usize = 64 * 1024;
/// How long a passive listener waits for its client (notes §2).
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
}

/// The data connection.
#[derive(Clone, Copy, Debug)]
enum Link {
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
    /// Name under which other sessions find the writer.
    lock: Option<String>,
    declared: Option<u64>,
    fill: u8,
    filled: u64,
}

/// What a command starts.
pub(super) struct Plan {
    pub flow: Flow,
    pub opening: String,
    pub lock: Option<String>,
    pub declared: Option<u64>,
    /// RETR and STOR may be best effort; listings and control files never.
    pub may_be_best_effort: bool,
}

impl Transfer {
    /// For STAT.
    pub fn progress(&self) -> String {
        match &self.flow {
            Flow::Send(outgoing) => format!("{} octets sent", outgoing.sent()),
            Flow::Receive(partial) => format!("{} octets received, {} stored", partial.received(), partial.stored()),
        }
    }

    /// While the transport waits for its link, our patience does not run, within `longest`.
    fn heed_link(&mut self, net: &dyn Net, longest: Duration) {
        let now = net.now();
        if net.is_link_up() {
            self.link_down_since = None;
        } else if now.since(*self.link_down_since.get_or_insert(now)) < longest {
            self.last_moved = now;
        }
    }

    /// When patience ends.
    pub fn deadline(&self, shared: &Shared) -> Instant {
        match self.link {
            Link::Listening(_) => self.since + ACCEPT_LIMIT,
            Link::Connecting(_) => self.since + shared.mib.connect_timeout,
            Link::Open(_) => self.last_moved + shared.mib.data_timeout,
        }
    }
}

fn same_host(a: IpAddr, b: IpAddr) -> bool {
    a.to_canonical() == b.to_canonical()
}

impl Session {
    /// True if a data connection may lead to or come from there (notes §17 item 5).
    pub fn may_exchange_with(&self, shared: &Shared, address: IpAddr) -> bool {
        same_host(address, self.peer().ip()) || shared.mib.allow_proxy.iter().any(|a| same_host(*a, address))
    }

    fn service(&self) -> Service {
        if self.bets.is_some() {
            Service::BestEffort
        } else {
            Service::Reliable
        }
    }

    /// Replaces the passive listener.
    pub fn listen_passive(&mut self, net: &mut dyn Net, shared: &Shared) -> Option<std::net::SocketAddr> {
        if let Some(old) = self.passive.take() {
            net.unlisten(old);
        }
        self.target = None;
        let (first, last) = shared.mib.passive_ports.unwrap_or((0, 0));
        let service = self.service();
        for port in first..=last {
            let mut local = self.local;
            local.set_port(port);
            if let Ok((listener, address)) = net.listen(local, service) {
                self.passive = Some(listener);
                return Some(address);
            }
        }
        None
    }

    /// Opens the data connection a plan needs.
    pub fn start_transfer(&mut self, net: &mut dyn Net, shared: &mut Shared, plan: Plan) {
        let now = net.now();
        let service = if plan.may_be_best_effort { self.service() } else { Service::Reliable };
        let link = if let Some(listener) = self.passive.take() {
            Ok(Link::Listening(listener))
        } else if let Some(target) = self.target.take() {
            net.connect(self.local.ip(), target, service).map(Link::Connecting).map_err(|e| e.to_string())
        } else {
            Err("no PORT or PASV was given".to_owned())
        };
        let (link, failure) = match link {
            Ok(link) => (link, None),
            Err(text) => (Link::Connecting(ConnId(u64::MAX)), Some(text)),
        };
        if let Some(lock) = &plan.lock {
            shared.writers.insert(lock.clone(), self.id, now);
        }
        self.transfer = Some(Transfer {
            link,
            flow: plan.flow,
            since: now,
            last_moved: now,
            link_down_since: None,
            opening: plan.opening,
            lock: plan.lock,
            declared: plan.declared,
            fill: self.bets.unwrap_or(0),
            filled: 0,
        });
        if let Some(text) = failure {
            self.end_transfer(net, shared, Ending::NoConnection(text));
        }
    }

    /// Moves what can be moved; false if that was nothing.
    pub fn advance_transfer(&mut self, net: &mut dyn Net, shared: &mut Shared) -> bool {
        let Some(mut transfer) = self.transfer.take() else { return false };
        let was_open = matches!(transfer.link, Link::Open(_));
        transfer.heed_link(net, shared.mib.link_down_max);
        let moved_before = transfer.flow.octets();
        let ending = self.open_link(net, shared, &mut transfer).or_else(|| match transfer.link {
            Link::Open(id) => self.move_octets(net, id, &mut transfer),
            _ => None,
        });
        let moved_after = transfer.flow.octets();
        let now = net.now();
        let has_opened = matches!(transfer.link, Link::Open(_)) != was_open;
        if moved_after != moved_before || has_opened {
            transfer.last_moved = now;
            if let Some(lock) = &transfer.lock {
                shared.writers.moved(lock, now);
            }
        }
        let is_evicted = transfer.lock.as_deref().is_some_and(|l| shared.writers.is_evicted(l));
        let late = now >= transfer.deadline(shared);
        let is_open = matches!(transfer.link, Link::Open(_));
        self.transfer = Some(transfer);
        let ending = ending.or(match (is_evicted, late, is_open) {
            (true, _, _) => Some(Ending::Broken("another session took over")),
            (_, true, true) => Some(Ending::Broken("nothing moved for too long")),
            (_, true, false) => Some(Ending::NoConnection("nobody answered in time".to_owned())),
            _ => None,
        });
        if let Some(ending) = ending {
            self.end_transfer(net, shared, ending);
            return true;
        }
        moved_after != moved_before || has_opened
    }

    fn open_link(&mut self, net: &mut dyn Net, shared: &Shared, transfer: &mut Transfer) -> Option<Ending> {
        match transfer.link {
            Link::Open(_) => return None,
            Link::Connecting(id) => match net.is_open(id) {
                Ok(false) => return None,
                Ok(true) => transfer.link = Link::Open(id),
                Err(e) => return Some(Ending::NoConnection(e.to_string())),
            },
            Link::Listening(listener) => loop {
                match net.accept(listener) {
                    Ok(None) => return None,
                    Ok(Some(accepted)) if self.may_exchange_with(shared, accepted.peer.ip()) => {
                        net.unlisten(listener);
                        transfer.link = Link::Open(accepted.id);
                        break;
                    }
                    // A stranger: closed, and the wait goes on.
                    Ok(Some(stranger)) => net.release(stranger.id),
                    Err(e) => return Some(Ending::NoConnection(e.to_string())),
                }
            },
        }
        let opening = Reply::new(150, std::mem::take(&mut transfer.opening));
        self.reply(&opening);
        None
    }

    fn move_octets(&mut self, net: &mut dyn Net, id: ConnId, transfer: &mut Transfer) -> Option<Ending> {
        match &mut transfer.flow {
            Flow::Send(outgoing) => send(net, id, outgoing),
            Flow::Receive(partial) => {
                match receive(net, id, partial, transfer.fill, &mut transfer.filled) {
                    // The end of data may be the end of the client: then nothing says that it was all (notes §11.3).
                    Some(Ending::Complete) if self.is_control_lost(net) => {
                        Some(Ending::Broken("the control connection was lost"))
                    }
                    Some(Ending::Complete) if transfer.declared.is_some_and(|d| d != partial.stored()) => {
                        Some(Ending::Broken("the data ended before the announced size"))
                    }
                    other => other,
                }
            }
        }
    }

    /// Ends the transfer: the file by the rules of the notes' §9.2, the connection, the replies.
    pub fn end_transfer(&mut self, net: &mut dyn Net, shared: &mut Shared, ending: Ending) {
        let Some(mut transfer) = self.transfer.take() else { return };
        if let (Ending::Interrupted, Link::Open(id), Flow::Receive(partial)) =
            (&ending, transfer.link, &mut transfer.flow)
        {
            // What has arrived counts; how the rest ends no longer matters.
            receive(net, id, partial, transfer.fill, &mut transfer.filled);
        }
        match transfer.link {
            Link::Listening(listener) => net.unlisten(listener),
            Link::Connecting(ConnId(u64::MAX)) => {}
            // What INTR leaves is a file like any other: between two servers the receiver keeps it so.
            Link::Connecting(id) | Link::Open(id) if matches!(ending, Ending::Complete | Ending::Interrupted) => {
                net.release(id);
            }
            // The peer must not take this for the end of the file, and what is on its way is of no use.
            Link::Connecting(id) | Link::Open(id) => net.abort(id),
        }
        if let Some(lock) = &transfer.lock {
            shared.writers.remove(lock);
        }
        self.touch(net.now());
        let note = format!("[{}] {ending:?}", self.id);
        match transfer.flow {
            Flow::Send(outgoing) => {
                let (sent, marker) = (outgoing.sent(), outgoing.marker());
                shared.log.push(format!("{note}: {sent} octets sent, marker {marker}"));
                self.conclude_sending(&outgoing, ending);
            }
            Flow::Receive(partial) => {
                let (received, stored) = (partial.received(), partial.stored());
                shared.log.push(format!("{note}: {received} octets received, {stored} stored"));
                self.conclude_receiving(partial, ending, shared.mib.keep_partial, transfer.filled);
            }
        }
    }

    fn conclude_sending(&mut self, outgoing: &Outgoing, ending: Ending) {
        match ending {
            Ending::Complete if outgoing.has_missing() => self.reply_missing(outgoing),
            Ending::Complete => self.reply_complete(226, outgoing.crc()),
            Ending::Interrupted => {
                self.reply(&Reply::new(256, format!("Transfer interrupted at {}", outgoing.marker())));
            }
            other => self.reply_failure(other),
        }
    }

    /// Some ranges of a READ did not exist: with force that is 258, otherwise 556.
    fn reply_missing(&mut self, outgoing: &Outgoing) {
        if outgoing.is_forced() {
            self.reply_complete(258, outgoing.crc());
        } else {
            self.reply(&Reply::new(556, "A range lies beyond the end of the file."));
        }
    }

    fn reply_complete(&mut self, code: u16, crc: u32) {
        let crc = if self.crc_on { format!(" {}", crc_text(crc)) } else { String::new() };
        self.reply(&Reply::new(code, format!("Transfer complete.{crc}")));
    }

    fn reply_failure(&mut self, ending: Ending) {
        match ending {
            Ending::NoConnection(why) => self.reply(&Reply::new(425, format!("No data connection: {why}."))),
            Ending::Local(error) => self.reply(&Reply::new(error.code, error.text)),
            Ending::Aborted => {
                self.reply(&Reply::new(426, "Transfer aborted."));
                self.reply(&Reply::new(226, "ABOR done."));
            }
            Ending::Broken(why) => self.reply(&Reply::new(426, format!("Transfer broken off: {why}."))),
            Ending::Complete | Ending::Interrupted => {}
        }
    }

    fn conclude_receiving(&mut self, partial: Partial, ending: Ending, keeps: bool, filled: u64) {
        let crc = partial.crc();
        let outcome = match &ending {
            Ending::Complete => partial.complete().map(|_| ()),
            Ending::Interrupted => partial.keep().map(|stored| {
                self.reply(&Reply::new(256, format!("Transfer interrupted at {stored}")));
            }),
            // The peer's SIZE has to see what it will continue.
            Ending::Broken(_) if self.auto_restart => partial.keep().map(|_| ()),
            Ending::Broken(_) if keeps => partial.set_aside().map(|_| ()),
            Ending::Broken(_) | Ending::Aborted | Ending::NoConnection(_) | Ending::Local(_) => partial.undo(),
        };
        match (outcome, ending) {
            (Err(error), _) => self.reply(&Reply::new(storing_code(error.code), error.text)),
            (Ok(()), Ending::Complete) if filled > 0 => {
                self.reply(&Reply::new(226, format!("Transfer complete. {filled} octets were lost and filled.")));
            }
            (Ok(()), Ending::Complete) => self.reply_complete(226, crc),
            (Ok(()), Ending::Interrupted) => {}
            (Ok(()), other) => self.reply_failure(other),
        }
    }
}

/// Failing to store what arrived is 451 unless it has a code of its own.
pub(super) fn storing_code(code: u16) -> u16 {
    if code == 550 {
        451
    } else {
        code
    }
}

fn send(net: &mut dyn Net, id: ConnId, outgoing: &mut Outgoing) -> Option<Ending> {
    let start = outgoing.sent();
    while outgoing.sent() - start < TURN_OCTETS {
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
        if let Err(error) = stored {
            let error = StoreError::from(error);
            return Some(Ending::Local(StoreError { code: storing_code(error.code), ..error }));
        }
    }
    None
}

/// The text of a 150 reply.
pub(super) fn opening_text(path: &str, file_type: FileType) -> String {
    let kind = if file_type == FileType::Ascii { "ASCII" } else { "BINARY" };
    format!("Opening {kind} mode data connection for {path}.")
}
