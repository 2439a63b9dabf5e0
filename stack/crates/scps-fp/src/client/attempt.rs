//! One data connection, from PORT to the last reply (scps-fp §15.2, §9.1).

use super::{failure_of, Context, Remote};
use crate::address::{eprt_text, find_epsv, find_port, port_text};
use crate::crc::find_crc;
use crate::net::{ConnId, ListenId, Net, Recv, Service};
use crate::outgoing::Outgoing;
use crate::partial::Partial;
use crate::reply::Reply;
use crate::restart::Failure;
use scps_wire::Instant;
use std::net::{IpAddr, SocketAddr};

const CHUNK: usize = 64 * 1024;
/// Octets moved between two looks at replies and the user.
const TURN_OCTETS: u64 = 1 << 20;

/// What moves over the data connection.
pub(super) enum Flow<'f> {
    Send(&'f mut Outgoing),
    Receive(&'f mut Partial),
    Collect(&'f mut Vec<u8>),
}

impl Flow<'_> {
    fn octets(&self) -> u64 {
        match self {
            Flow::Send(o) => o.sent(),
            Flow::Receive(p) => p.received(),
            Flow::Collect(v) => v.len() as u64,
        }
    }
}

/// The most octets a listing or records read may have: they are kept in memory.
const COLLECT_MAX: usize = 16 << 20;

/// What an attempt asks for.
pub(super) struct Request<'r> {
    pub line: &'r str,
    pub marker: u64,
    /// Octets the whole file will have: announced, so that a lost client cannot look like the end of the file.
    pub announced: Option<u64>,
    pub service: Service,
}

/// How far an attempt came, whatever its end.
#[derive(Default)]
pub(super) struct Course {
    /// The server began the transfer.
    pub begun: bool,
    /// The marker was refused as such: a fresh start may work.
    pub marker_refused: bool,
    pub reply_crc: Option<u32>,
    pub filled: u64,
    pub last_reply: Option<u16>,
    pub text: String,
}

pub(super) enum Link {
    Listening(ListenId),
    Connecting(ConnId),
    Open(ConnId),
    Closed,
}

/// An attempt under way.
pub(super) struct Attempt<'r, 'a, 'f> {
    pub cx: &'r mut Context<'a>,
    pub remote: &'r mut Remote,
    pub link: Link,
    flow: Flow<'f>,
    pub course: &'r mut Course,
    pub data_ended: bool,
    /// The server has said that all is done.
    pub is_done: bool,
}

impl Remote {
    /// Runs one attempt to its end.
    pub(super) fn attempt(
        &mut self,
        cx: &mut Context<'_>,
        request: &Request<'_>,
        flow: Flow<'_>,
        course: &mut Course,
    ) -> Result<(), Failure> {
        self.shown(cx, |cx, remote| {
            if let Some(size) = request.announced {
                remote.extension(cx, "ALLO", &format!("ALLO {size}"))?;
            }
            let link = remote.prepare_data(cx, request.service)?;
            let mut attempt = Attempt { cx, remote, link, flow, course, data_ended: false, is_done: false };
            let result = attempt.begin(request).and_then(|()| attempt.run());
            if result.is_err() && !attempt.remote.is_reference() {
                attempt.abort();
            }
            attempt.close();
            result
        })
    }

    fn prepare_data(&mut self, cx: &mut Context<'_>, service: Service) -> Result<Link, Failure> {
        if cx.passive {
            let target = self.passive_target(cx)?;
            let id = cx.net.connect(self.local, target, service);
            return Ok(Link::Connecting(id.map_err(|e| Failure::Broken(e.to_string()))?));
        }
        let local = SocketAddr::new(self.local, 0);
        let (listener, address) = cx.net.listen(local, service).map_err(|e| Failure::Final(e.to_string()))?;
        let line = match address.ip().to_canonical() {
            IpAddr::V4(ip) => format!("PORT {}", port_text(ip, address.port())),
            IpAddr::V6(_) => format!("EPRT {}", eprt_text(address)),
        };
        match self.demand(cx, &line) {
            Ok(_) => Ok(Link::Listening(listener)),
            Err(fault) => {
                cx.net.unlisten(listener);
                Err(fault.into())
            }
        }
    }

    fn passive_target(&mut self, cx: &mut Context<'_>) -> Result<SocketAddr, Failure> {
        let peer = self.address.ip();
        let reply = self.demand(cx, if peer.is_ipv4() { "PASV" } else { "EPSV" })?;
        let text = reply.text();
        let port = if reply.code == 229 { find_epsv(&text) } else { find_port(&text).map(|a| a.port()) };
        // Whatever address the text names, the data connection leads to the server (scps-fp §17 item 19).
        port.map(|p| SocketAddr::new(peer, p)).ok_or_else(|| Failure::Final(format!("no address in {text:?}")))
    }
}

impl Attempt<'_, '_, '_> {
    /// REST if there is a marker, or one that waits from before, then the command.
    fn begin(&mut self, request: &Request<'_>) -> Result<(), Failure> {
        if let Err(reply) = self.remote.restart_at(self.cx, request.marker)? {
            self.course.marker_refused = true;
            return Err(Failure::Broken(format!("the marker is refused: {} {}", reply.code, reply.text())));
        }
        self.remote.send(self.cx, request.line)?;
        self.remote.owes_reply = true;
        Ok(())
    }

    fn run(&mut self) -> Result<(), Failure> {
        let mut last_moved = self.cx.net.now();
        let mut down_since: Option<Instant> = None;
        let mut last_position = self.position();
        loop {
            if let Some(urge) = self.cx.urge(self.flow.octets()) {
                return self.stop(urge);
            }
            self.open_link()?;
            let moved = self.move_octets();
            let position = self.position();
            let mut progressed = position != last_position;
            last_position = position;
            if !self.is_done {
                if let Some(reply) = self.remote.poll(self.cx)? {
                    progressed = true;
                    self.note(&reply);
                    match reply.class() {
                        1 => self.course.begun = true,
                        2 => {
                            self.remote.marker_waits = false;
                            self.is_done = true;
                        }
                        _ => return Err(self.judge(&reply)),
                    }
                }
            }
            if let Err(failure) = moved {
                return Err(self.after_data_failure(failure));
            }
            if self.is_done && self.data_ended {
                return Ok(());
            }
            if self.is_done && matches!(self.flow, Flow::Send(_)) {
                return Err(Failure::Broken("the server ended the transfer before the end of the data".to_owned()));
            }
            let now = self.cx.net.now();
            if progressed {
                last_moved = now;
                continue;
            }
            if self.cx.net.is_link_up() {
                down_since = None;
            } else if now.since(*down_since.get_or_insert(now)) < self.cx.mib.link_down_max {
                last_moved = now;
            }
            let is_waiting = self.data_ended || !self.course.begun;
            let patience = if is_waiting { self.cx.mib.reply_timeout } else { self.cx.mib.data_timeout };
            let until = last_moved + patience;
            if now >= until {
                if is_waiting {
                    self.remote.close(self.cx);
                }
                return Err(Failure::Broken(
                    if is_waiting { "no reply in time" } else { "nothing moved for too long" }.to_owned(),
                ));
            }
            self.cx.wait(until)?;
        }
    }

    /// The server's own word on a broken data connection, if it comes soon, says more than the break.
    fn after_data_failure(&mut self, failure: Failure) -> Failure {
        if matches!(failure, Failure::Final(_)) {
            self.close();
            return failure;
        }
        let until = self.cx.net.now() + self.remote.quiet_time();
        loop {
            let Ok(Some(reply)) = self.remote.reply_within(self.cx, until) else { return failure };
            self.note(&reply);
            match reply.class() {
                1 => self.course.begun = true,
                4.. => return self.judge(&reply),
                _ => return failure,
            }
        }
    }

    pub fn note(&mut self, reply: &Reply) {
        self.course.last_reply = Some(reply.code);
        self.course.text = reply.text();
        self.remote.owes_reply &= reply.class() == 1;
        if reply.is_done() {
            self.course.reply_crc = find_crc(&reply.text()).or(self.course.reply_crc);
        }
    }

    pub fn judge(&mut self, reply: &Reply) -> Failure {
        self.course.marker_refused = matches!(reply.code, 550 | 554);
        match failure_of(reply) {
            // No syntax is wrong in mid-transfer: it is the last word of a server that fails.
            Failure::Final(text) if self.course.begun && reply.code == 500 => Failure::Broken(text),
            other => other,
        }
    }

    /// Changes as long as something moves.
    fn position(&self) -> (u64, bool, u64) {
        let unacknowledged = match self.link {
            Link::Open(id) => self.cx.net.unacknowledged(id),
            _ => u64::MAX,
        };
        (self.flow.octets(), self.data_ended, unacknowledged)
    }

    fn open_link(&mut self) -> Result<(), Failure> {
        let net = &mut *self.cx.net;
        match self.link {
            Link::Listening(listener) => {
                while let Some(accepted) = net.accept(listener).map_err(|e| Failure::Broken(e.to_string()))? {
                    if accepted.peer.ip().to_canonical() == self.remote.address.ip().to_canonical() {
                        // Servers connect once they have opened the file; the reply that says so may still be lost.
                        self.course.begun = true;
                        net.unlisten(listener);
                        self.link = Link::Open(accepted.id);
                        break;
                    }
                    net.release(accepted.id);
                }
            }
            Link::Connecting(id) => match net.is_open(id) {
                Ok(true) => self.link = Link::Open(id),
                Ok(false) => {}
                Err(e) => return Err(Failure::Broken(format!("no data connection: {e}"))),
            },
            Link::Open(_) | Link::Closed => {}
        }
        Ok(())
    }

    /// What the transport still holds would be sent for nothing. (The reference does not survive a reset.)
    fn abort(&mut self) {
        if let Link::Open(id) | Link::Connecting(id) = self.link {
            self.cx.net.abort(id);
            self.link = Link::Closed;
        }
    }

    pub fn close(&mut self) {
        match std::mem::replace(&mut self.link, Link::Closed) {
            Link::Listening(listener) => self.cx.net.unlisten(listener),
            Link::Connecting(id) | Link::Open(id) => self.cx.net.release(id),
            Link::Closed => {}
        }
    }

    fn move_octets(&mut self) -> Result<(), Failure> {
        let Link::Open(id) = self.link else { return Ok(()) };
        if self.data_ended {
            return Ok(());
        }
        let net = &mut *self.cx.net;
        match &mut self.flow {
            Flow::Send(outgoing) => self.data_ended = send(net, id, outgoing)?,
            Flow::Receive(partial) => {
                let (ended, filled) = receive(net, id, partial, self.cx.mib.bets_fill)?;
                self.data_ended = ended;
                self.course.filled += filled;
                self.course.begun |= partial.received() > 0;
            }
            Flow::Collect(text) => self.data_ended = collect(net, id, text)?,
        }
        Ok(())
    }

    /// What has arrived already is kept too.
    pub fn receive_rest(&mut self) {
        if !matches!(self.flow, Flow::Send(_)) {
            // An error here ends only what has been ended.
            let _ = self.move_octets();
        }
    }
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::Broken(format!("the data connection failed: {error}"))
}

/// True once everything was taken by the transport.
fn send(net: &mut dyn Net, id: ConnId, outgoing: &mut Outgoing) -> Result<bool, Failure> {
    let start = outgoing.sent();
    while outgoing.sent() - start < TURN_OCTETS {
        let octets = outgoing.peek().map_err(|e| Failure::Final(format!("the file cannot be read: {e}")))?;
        if octets.is_empty() {
            net.finish(id);
            return Ok(true);
        }
        match net.send(id, octets).map_err(|e| broken(&e))? {
            0 => break,
            n => outgoing.advance(n),
        }
    }
    Ok(false)
}

/// Whether the data ended, and octets filled.
fn receive(net: &mut dyn Net, id: ConnId, partial: &mut Partial, fill: u8) -> Result<(bool, u64), Failure> {
    let mut buffer = vec![0u8; CHUNK];
    let start = partial.received();
    let mut filled = 0;
    while partial.received() - start < TURN_OCTETS {
        let stored = match net.recv(id, &mut buffer).map_err(|e| broken(&e))? {
            Recv::Data(n) => partial.write(&buffer[..n]),
            Recv::Hole(n) => {
                filled += n;
                partial.fill(n, fill)
            }
            Recv::Wait => break,
            Recv::End => return Ok((true, filled)),
        };
        let stored = stored.and_then(|()| partial.sync_if_due(net));
        stored.map_err(|e| Failure::Final(format!("the file cannot be written: {e}")))?;
    }
    Ok((false, filled))
}

fn collect(net: &mut dyn Net, id: ConnId, text: &mut Vec<u8>) -> Result<bool, Failure> {
    let mut buffer = vec![0u8; CHUNK];
    loop {
        match net.recv(id, &mut buffer).map_err(|e| broken(&e))? {
            Recv::Data(n) if text.len() + n > COLLECT_MAX => {
                return Err(Failure::Final(format!("more than {COLLECT_MAX} octets came, too many to keep in memory")));
            }
            Recv::Data(n) => text.extend_from_slice(&buffer[..n]),
            Recv::Hole(_) => {}
            Recv::Wait => return Ok(false),
            Recv::End => return Ok(true),
        }
    }
}
