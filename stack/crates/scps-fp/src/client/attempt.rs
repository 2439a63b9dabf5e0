//! One data connection, from PORT to the last reply (scps-fp §15.2, §9.1).

use super::{failure_of, Client, Remote, Urge};
use crate::address::{eprt_text, find_epsv, find_port, port_text};
use crate::crc::find_crc;
use crate::net::{ConnId, ListenId, Net, Recv, Service};
use crate::outgoing::Outgoing;
use crate::partial::Partial;
use crate::reply::Reply;
use crate::restart::Failure;
use scps_types::Instant;
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

/// The longest text a listing may have.
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

pub(super) struct Running<'a, 'f> {
    pub link: Link,
    peer: IpAddr,
    flow: Flow<'f>,
    pub course: &'a mut Course,
    pub data_ended: bool,
    fill: u8,
}

impl Client<'_> {
    /// Runs one attempt to its end.
    pub(super) fn attempt(
        &mut self,
        request: &Request<'_>,
        flow: Flow<'_>,
        course: &mut Course,
    ) -> Result<(), Failure> {
        let Some(mut remote) = self.remote.take() else { return Err(Failure::Broken("not connected".to_owned())) };
        let result = self.attempt_on(&mut remote, request, flow, course);
        self.remote = Some(remote);
        self.echo();
        result
    }

    fn attempt_on(
        &mut self,
        remote: &mut Remote,
        request: &Request<'_>,
        flow: Flow<'_>,
        course: &mut Course,
    ) -> Result<(), Failure> {
        if let Some(size) = request.announced {
            remote.extension(self.net, &self.mib, "ALLO", &format!("ALLO {size}"))?;
        }
        let link = self.prepare_data(remote, request.service)?;
        let peer = remote.address.ip();
        let mut run = Running { link, peer, flow, course, data_ended: false, fill: self.mib.bets_fill };
        let result = self.begin(remote, request, run.course).and_then(|()| self.run(remote, &mut run));
        if result.is_err() && !remote.is_reference() {
            run.abort(self.net);
        }
        run.close(self.net);
        result
    }

    /// REST if there is a marker, or one that waits from before, then the command.
    fn begin(&mut self, remote: &mut Remote, request: &Request<'_>, course: &mut Course) -> Result<(), Failure> {
        if let Err(reply) = remote.restart_at(self.net, &self.mib, request.marker)? {
            course.marker_refused = true;
            return Err(Failure::Broken(format!("the marker is refused: {} {}", reply.code, reply.text())));
        }
        Ok(remote.send(self.net, request.line)?)
    }

    fn prepare_data(&mut self, remote: &mut Remote, service: Service) -> Result<Link, Failure> {
        if self.passive {
            let target = self.passive_target(remote)?;
            let id = self.net.connect(remote.local, target, service);
            return Ok(Link::Connecting(id.map_err(|e| Failure::Broken(e.to_string()))?));
        }
        let local = SocketAddr::new(remote.local, 0);
        let (listener, address) = self.net.listen(local, service).map_err(|e| Failure::Final(e.to_string()))?;
        let line = match address.ip().to_canonical() {
            IpAddr::V4(ip) => format!("PORT {}", port_text(ip, address.port())),
            IpAddr::V6(_) => format!("EPRT {}", eprt_text(address)),
        };
        match remote.demand(self.net, &self.mib, &line) {
            Ok(_) => Ok(Link::Listening(listener)),
            Err(fault) => {
                self.net.unlisten(listener);
                Err(fault.into())
            }
        }
    }

    fn passive_target(&mut self, remote: &mut Remote) -> Result<SocketAddr, Failure> {
        let peer = remote.address.ip();
        let reply = remote.demand(self.net, &self.mib, if peer.is_ipv4() { "PASV" } else { "EPSV" })?;
        let text = reply.text();
        let port = if reply.code == 229 { find_epsv(&text) } else { find_port(&text).map(|a| a.port()) };
        // Whatever address the text names, the data connection leads to the server (scps-fp §17 item 19).
        port.map(|p| SocketAddr::new(peer, p)).ok_or_else(|| Failure::Final(format!("no address in {text:?}")))
    }

    fn run(&mut self, remote: &mut Remote, run: &mut Running<'_, '_>) -> Result<(), Failure> {
        let mut last_moved = self.net.now();
        let mut down_since: Option<Instant> = None;
        let mut done: Option<Reply> = None;
        let mut last_position = run.position(self.net);
        loop {
            if let Some(urge) = self.console.urge().or_else(|| self.armed_urge(run.flow.octets())) {
                return self.stop(remote, run, urge, done.is_some());
            }
            run.open_link(self.net)?;
            let moved = run.move_octets(self.net);
            let position = run.position(self.net);
            let mut progressed = position != last_position;
            last_position = position;
            if done.is_none() {
                if let Some(reply) = remote.poll(self.net)? {
                    progressed = true;
                    run.note(&reply);
                    match reply.class() {
                        1 => run.course.begun = true,
                        2 => {
                            remote.marker_waits = false;
                            done = Some(reply);
                        }
                        _ => return Err(run.judge(&reply)),
                    }
                }
            }
            if let Err(failure) = moved {
                return Err(self.after_data_failure(remote, run, failure));
            }
            if done.is_some() && run.data_ended {
                return Ok(());
            }
            if done.is_some() && matches!(run.flow, Flow::Send(_)) {
                return Err(Failure::Broken("the server ended the transfer before the end of the data".to_owned()));
            }
            let now = self.net.now();
            if progressed {
                last_moved = now;
                continue;
            }
            if self.net.is_link_up() {
                down_since = None;
            } else if now.since(*down_since.get_or_insert(now)) < self.mib.link_down_max {
                last_moved = now;
            }
            let is_waiting = run.data_ended || !run.course.begun;
            let patience = if is_waiting { self.mib.reply_timeout } else { self.mib.data_timeout };
            let until = last_moved + patience;
            if now >= until {
                if is_waiting {
                    remote.close(self.net);
                }
                return Err(Failure::Broken(
                    if is_waiting { "no reply in time" } else { "nothing moved for too long" }.to_owned(),
                ));
            }
            self.net.wait(Some(until)).map_err(|e| Failure::Final(e.to_string()))?;
        }
    }

    /// The server's own word on a broken data connection, if it comes soon, says more than the break.
    fn after_data_failure(&mut self, remote: &mut Remote, run: &mut Running<'_, '_>, failure: Failure) -> Failure {
        if matches!(failure, Failure::Final(_)) {
            run.close(self.net);
            return failure;
        }
        let until = self.net.now() + remote.quiet_time();
        loop {
            match remote.reply_within(self.net, until) {
                Ok(Some(reply)) if reply.class() == 1 => run.course.begun = true,
                Ok(Some(reply)) if reply.class() >= 4 => return run.judge(&reply),
                Ok(Some(_) | None) | Err(_) => return failure,
            }
        }
    }

    fn armed_urge(&mut self, octets: u64) -> Option<Urge> {
        let (urge, at) = self.armed?;
        (octets >= at).then(|| {
            self.armed = None;
            urge
        })
    }
}

impl Running<'_, '_> {
    pub fn note(&mut self, reply: &Reply) {
        self.course.last_reply = Some(reply.code);
        self.course.text = reply.text();
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
    fn position(&self, net: &dyn Net) -> (u64, bool, u64) {
        match self.link {
            Link::Open(id) => (self.flow.octets(), self.data_ended, net.unacknowledged(id)),
            _ => (self.flow.octets(), self.data_ended, u64::MAX),
        }
    }

    fn open_link(&mut self, net: &mut dyn Net) -> Result<(), Failure> {
        match self.link {
            Link::Listening(listener) => {
                while let Some(accepted) = net.accept(listener).map_err(|e| Failure::Broken(e.to_string()))? {
                    if accepted.peer.ip().to_canonical() == self.peer.to_canonical() {
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
    fn abort(&mut self, net: &mut dyn Net) {
        if let Link::Open(id) | Link::Connecting(id) = self.link {
            net.abort(id);
            self.link = Link::Closed;
        }
    }

    pub fn close(&mut self, net: &mut dyn Net) {
        match std::mem::replace(&mut self.link, Link::Closed) {
            Link::Listening(listener) => net.unlisten(listener),
            Link::Connecting(id) | Link::Open(id) => net.release(id),
            Link::Closed => {}
        }
    }

    fn move_octets(&mut self, net: &mut dyn Net) -> Result<(), Failure> {
        let Link::Open(id) = self.link else { return Ok(()) };
        if self.data_ended {
            return Ok(());
        }
        match &mut self.flow {
            Flow::Send(outgoing) => self.data_ended = send(net, id, outgoing)?,
            Flow::Receive(partial) => {
                let (ended, filled) = receive(net, id, partial, self.fill)?;
                self.data_ended = ended;
                self.course.filled += filled;
                self.course.begun |= partial.received() > 0;
            }
            Flow::Collect(text) => self.data_ended = collect(net, id, text)?,
        }
        Ok(())
    }

    /// What has arrived already is kept too.
    pub fn receive_rest(&mut self, net: &mut dyn Net) {
        if !matches!(self.flow, Flow::Send(_)) {
            // An error here ends only what has been ended.
            let _ = self.move_octets(net);
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
                return Err(Failure::Final(format!("a listing of more than {COLLECT_MAX} octets")));
            }
            Recv::Data(n) => text.extend_from_slice(&buffer[..n]),
            Recv::Hole(_) => {}
            Recv::Wait => return Ok(false),
            Recv::End => return Ok(true),
        }
    }
}
