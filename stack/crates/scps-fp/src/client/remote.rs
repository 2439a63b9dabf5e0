//! A control connection from the client's side, and what is known of the server behind it.

use super::{Context, Fault};
use crate::command::{Command, FileType};
use crate::config::Mib;
use crate::net::{ConnId, Recv, Service};
use crate::reply::{find_marker, names_other_marker, Incoming, Reply, ReplyReader, REPLY_MAX};
use scps_wire::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// How long a quiet control connection counts as settled, on top of two round trips.
const QUIET: Duration = Duration::from_millis(500);
/// Largest marker the older implementation's server keeps (scps-fp §10).
const REFERENCE_MARKER_MAX: u64 = 32_767;
/// Longest line the older implementation's server takes whole (scps-fp §16.3).
const REFERENCE_LINE_MAX: usize = 37;

/// Who logs in; never written anywhere.
#[derive(Clone, Default)]
pub struct Credentials {
    /// Name.
    pub user: String,
    /// Password.
    pub password: String,
    /// Account, if the server wants one.
    pub account: Option<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, ****)", self.user)
    }
}

/// What a session at the server looks like, so that it can be made again.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Who.
    pub credentials: Option<Credentials>,
    /// Where, as the server told it.
    pub directory: Option<String>,
    /// Representation last set.
    pub file_type: FileType,
    /// Automatic restart.
    pub auto_restart: bool,
    /// Reply text: unset means as the server likes.
    pub suppressed: Option<bool>,
    /// Best effort.
    pub bets: bool,
}

/// A control connection.
#[derive(Debug)]
pub struct Remote {
    /// The server.
    pub address: SocketAddr,
    /// Our address; chosen by the transport until connected.
    pub local: IpAddr,
    control: Option<ConnId>,
    reader: ReplyReader,
    ready: VecDeque<Reply>,
    /// Octets a full transport did not take yet.
    unsent: Vec<u8>,
    /// What the session is to look like.
    pub wishes: Wishes,
    greeting: String,
    /// A marker was sent that may wait for the next transfer: some servers keep it when the command after it fails.
    pub marker_waits: bool,
    /// A transfer has ended here and the server's last word on it was not read: it must not pass for the answer to a command.
    pub owes_reply: bool,
    /// Verbs the server refused as unknown.
    pub lacks: BTreeSet<&'static str>,
    round_trip: Duration,
    /// Commands and replies that were not shown yet.
    echo: Vec<String>,
}

impl Remote {
    /// A server not connected yet.
    pub fn new(address: SocketAddr, local: IpAddr, mib: &Mib) -> Remote {
        let wishes =
            Wishes { file_type: mib.file_type, bets: mib.bets, auto_restart: mib.auto_restart, ..Wishes::default() };
        Remote {
            address,
            local,
            control: None,
            reader: ReplyReader::new(),
            ready: VecDeque::new(),
            unsent: Vec::new(),
            wishes,
            greeting: String::new(),
            marker_waits: false,
            owes_reply: false,
            lacks: BTreeSet::new(),
            round_trip: Duration::ZERO,
            echo: Vec::new(),
        }
    }

    /// True if a connection exists, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.control.is_some()
    }

    /// True if the server is this one: its partial files have a known name.
    pub fn is_kin(&self) -> bool {
        self.greeting.contains("scpslab SCPS-FP server")
    }

    /// True if the server is the older implementation.
    pub fn is_reference(&self) -> bool {
        !self.is_kin() && self.greeting.contains("SCPS-FP")
    }

    /// How long replies take, twice, and some: silence of this length means there is nothing more.
    pub fn quiet_time(&self) -> Duration {
        QUIET + self.round_trip * 2
    }

    /// Connects and waits for the greeting.
    pub fn connect(&mut self, cx: &mut Context<'_>) -> Result<Reply, Fault> {
        self.close(cx);
        let lost = |e: std::io::Error| Fault::Lost(format!("cannot connect: {e}"));
        let id = cx.net.connect(self.local, self.address, Service::Reliable).map_err(lost)?;
        self.control = Some(id);
        self.reader = ReplyReader::new();
        self.ready.clear();
        self.unsent.clear();
        self.marker_waits = false;
        self.owes_reply = false;
        let start = cx.net.now();
        let deadline = start + cx.mib.connect_timeout;
        loop {
            match cx.net.is_open(id) {
                Ok(true) => break,
                Ok(false) if cx.net.now() < deadline => cx.net.wait(Some(deadline)).map_err(lost)?,
                Ok(false) => {
                    self.close(cx);
                    return Err(Fault::Lost("cannot connect: no answer in time".to_owned()));
                }
                Err(e) => {
                    self.close(cx);
                    return Err(lost(e));
                }
            }
        }
        self.round_trip = self.round_trip.max(cx.net.now().since(start));
        if let Some((local, _)) = cx.net.addresses(id) {
            self.local = local.ip();
        }
        let until = cx.reply_deadline();
        let reply = self.final_reply(cx, until)?;
        if reply.code != 220 {
            self.close(cx);
            return Err(Fault::Refused(reply));
        }
        self.greeting = reply.text();
        Ok(reply)
    }

    /// Runs `action`, and shows what went over the connection.
    pub fn shown<'a, T, E>(
        &mut self,
        cx: &mut Context<'a>,
        action: impl FnOnce(&mut Context<'a>, &mut Remote) -> Result<T, E>,
    ) -> Result<T, E> {
        let result = action(cx, self);
        self.show(cx);
        result
    }

    /// Shows what went over the connection since the last call.
    pub fn show(&mut self, cx: &mut Context<'_>) {
        for line in std::mem::take(&mut self.echo) {
            if cx.shows_commands || !line.starts_with("---> ") {
                cx.console.show(&line);
            }
        }
    }

    /// Gives the connection up.
    pub fn close(&mut self, cx: &mut Context<'_>) {
        if let Some(id) = self.control.take() {
            cx.net.release(id);
        }
    }

    /// Sends a line.
    pub fn send(&mut self, cx: &mut Context<'_>, line: &str) -> Result<(), Fault> {
        let id = self.control.ok_or_else(|| Fault::Lost("not connected".to_owned()))?;
        if line.contains(['\r', '\n', '\0']) {
            return Err(Fault::Local("a name holds control characters".to_owned()));
        }
        if self.is_reference() && line.len() > REFERENCE_LINE_MAX {
            return Err(Fault::Local(format!("this server would cut the line after {REFERENCE_LINE_MAX} octets")));
        }
        self.echo.push(format!("---> {}", Command::verb(line.as_bytes())));
        self.unsent.extend_from_slice(line.as_bytes());
        self.unsent.extend_from_slice(b"\r\n");
        self.flush(cx, id)
    }

    fn flush(&mut self, cx: &mut Context<'_>, id: ConnId) -> Result<(), Fault> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        match cx.net.send(id, &self.unsent) {
            Ok(n) => {
                self.unsent.drain(..n);
                Ok(())
            }
            Err(e) => {
                self.close(cx);
                Err(Fault::Lost(format!("the control connection failed: {e}")))
            }
        }
    }

    /// A reply that is there, without waiting.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Result<Option<Reply>, Fault> {
        if let Some(reply) = self.ready.pop_front() {
            return Ok(Some(reply));
        }
        let id = self.control.ok_or_else(|| Fault::Lost("the control connection is closed".to_owned()))?;
        self.flush(cx, id)?;
        let mut buffer = [0u8; 4096];
        let mut octets = 0;
        let why = loop {
            match self.reader.pop() {
                Some(Incoming::Reply(reply)) => {
                    self.echo.push(format!("{} {}", reply.code, reply.lines.join("\n    ")));
                    return Ok(Some(reply));
                }
                Some(Incoming::Garbage(text)) => break format!("the server does not speak FP: {text}"),
                None => {}
            }
            // Empty lines make no reply, however many there are.
            if octets > 2 * REPLY_MAX {
                break format!("the server does not speak FP: {octets} octets without a reply");
            }
            match cx.net.recv(id, &mut buffer) {
                Ok(Recv::Data(n)) => {
                    octets += n;
                    self.reader.push(&buffer[..n]);
                }
                Ok(Recv::Wait | Recv::Hole(_)) => return Ok(None),
                Ok(Recv::End) => break "the control connection ended: closed by the server".to_owned(),
                Err(e) => break format!("the control connection ended: {e}"),
            }
        };
        self.close(cx);
        Err(Fault::Lost(why))
    }

    /// The next reply; waits until `until`, then gives the connection up.
    pub fn reply(&mut self, cx: &mut Context<'_>, until: Instant) -> Result<Reply, Fault> {
        if let Some(reply) = self.reply_within(cx, until)? {
            return Ok(reply);
        }
        self.close(cx);
        Err(Fault::Lost("no reply in time".to_owned()))
    }

    /// The next reply if it comes before `until`.
    pub fn reply_within(&mut self, cx: &mut Context<'_>, until: Instant) -> Result<Option<Reply>, Fault> {
        loop {
            if let Some(reply) = self.poll(cx)? {
                return Ok(Some(reply));
            }
            if cx.net.now() >= until {
                return Ok(None);
            }
            cx.net.wait(Some(until)).map_err(|e| Fault::Local(e.to_string()))?;
        }
    }

    /// The next reply that is not preliminary.
    pub fn final_reply(&mut self, cx: &mut Context<'_>, until: Instant) -> Result<Reply, Fault> {
        loop {
            let reply = self.reply(cx, until)?;
            if reply.class() != 1 {
                return Ok(reply);
            }
            self.heed_end(cx, until)?;
        }
    }

    /// Gives the connection up once `until` is over: replies that keep coming are no answer.
    fn heed_end(&mut self, cx: &mut Context<'_>, until: Instant) -> Result<(), Fault> {
        cx.net.look();
        if cx.net.now() < until {
            return Ok(());
        }
        self.close(cx);
        Err(Fault::Lost("replies without an end, and none to what was asked".to_owned()))
    }

    /// Sends a command and waits for its answer.
    pub fn command(&mut self, cx: &mut Context<'_>, line: &str) -> Result<Reply, Fault> {
        if self.owes_reply {
            self.resynchronise(cx)?;
        }
        let start = cx.net.now();
        self.send(cx, line)?;
        let until = cx.reply_deadline();
        let reply = self.final_reply(cx, until)?;
        self.round_trip = self.round_trip.max(cx.net.now().since(start));
        if reply.code == 421 {
            self.close(cx);
            return Err(Fault::Lost(format!("421 {}", reply.text())));
        }
        Ok(reply)
    }

    /// Sends a marker; true if the server will start there. If not, it will start at 0.
    pub fn restart_at(&mut self, cx: &mut Context<'_>, marker: u64) -> Result<Result<(), Reply>, Fault> {
        if marker == 0 {
            if std::mem::take(&mut self.marker_waits) {
                self.command(cx, "REST 0")?;
            }
            return Ok(Ok(()));
        }
        let reply = self.command(cx, &format!("REST {marker}"))?;
        self.marker_waits = true;
        let text = reply.text();
        let is_unseen = self.is_reference() && marker > REFERENCE_MARKER_MAX && find_marker(&text).is_none();
        if reply.code == 350 && !is_unseen && !names_other_marker(&text, marker) {
            return Ok(Ok(()));
        }
        self.restart_at(cx, 0)?.ok();
        Ok(Err(reply))
    }

    /// Sends an extension that ordinary servers lack: `None` if this one does.
    pub fn extension(&mut self, cx: &mut Context<'_>, verb: &'static str, line: &str) -> Result<Option<Reply>, Fault> {
        if self.lacks.contains(verb) {
            return Ok(None);
        }
        let reply = self.command(cx, line)?;
        if matches!(reply.code, 500 | 502) {
            self.lacks.insert(verb);
            return Ok(None);
        }
        Ok(Some(reply))
    }

    /// As [`Remote::command`]; any reply but 2xx and 3xx is an error.
    pub fn demand(&mut self, cx: &mut Context<'_>, line: &str) -> Result<Reply, Fault> {
        let reply = self.command(cx, line)?;
        if matches!(reply.class(), 2 | 3) {
            Ok(reply)
        } else {
            Err(Fault::Refused(reply))
        }
    }

    /// Reads what is still to come of earlier replies: up to the answer to a NOOP, which is no answer to a transfer.
    pub fn settle(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        self.send(cx, "NOOP")?;
        let until = cx.reply_deadline();
        while let Some(reply) = self.reply_within(cx, until)? {
            if answers_noop(&reply) {
                return Ok(());
            }
            self.heed_end(cx, until)?;
        }
        self.close(cx);
        Err(Fault::Lost("no reply in time".to_owned()))
    }

    /// Brings replies and commands in step again after a transfer that ended oddly: late replies come first, then the
    /// answer to a NOOP, then silence.
    pub fn resynchronise(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        self.owes_reply = false;
        self.send(cx, "NOOP")?;
        let end = cx.reply_deadline();
        let mut until = end;
        let mut answered = false;
        loop {
            match self.reply_within(cx, until)? {
                Some(reply) if reply.code == 421 => {
                    self.close(cx);
                    return Err(Fault::Lost(format!("421 {}", reply.text())));
                }
                Some(reply) => {
                    answered |= answers_noop(&reply);
                    self.heed_end(cx, end)?;
                    if answered {
                        until = cx.net.now() + self.quiet_time();
                    }
                }
                None if answered => return Ok(()),
                None => {
                    self.close(cx);
                    return Err(Fault::Lost("no reply in time".to_owned()));
                }
            }
        }
    }

    /// Brings the connection in step if it answers, otherwise a new one that looks like it.
    pub fn recover(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        if self.is_connected() && self.resynchronise(cx).is_ok() {
            return Ok(());
        }
        self.connect(cx).and_then(|_| self.set_up(cx))
    }

    /// Asks in mid-transfer whether the server is alive; replies of the transfer stay for [`Remote::poll`].
    pub fn pulse(&mut self, cx: &mut Context<'_>, until: Instant) -> Result<(), Fault> {
        self.send(cx, "NOOP")?;
        let mut others = VecDeque::new();
        loop {
            let reply = self.reply(cx, until)?;
            if answers_noop(&reply) {
                break;
            }
            others.push_back(reply);
            self.heed_end(cx, until)?;
        }
        others.append(&mut self.ready);
        self.ready = others;
        Ok(())
    }

    /// Logs in with the wishes' credentials.
    pub fn log_in(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let Some(credentials) = self.wishes.credentials.clone() else { return Ok(()) };
        let mut reply = self.command(cx, &format!("USER {}", credentials.user))?;
        if reply.code == 331 {
            reply = self.command(cx, &format!("PASS {}", credentials.password))?;
        }
        if reply.code == 332 {
            let account = credentials.account.as_deref().unwrap_or("");
            reply = self.command(cx, &format!("ACCT {account}"))?;
        }
        // The smallest servers have no login and do not know the verb.
        if reply.is_done() || matches!(reply.code, 500 | 502) {
            Ok(())
        } else {
            Err(Fault::Refused(reply))
        }
    }

    /// Makes a new session look as the wishes say. Where nobody has logged in yet, that waits for the login.
    pub fn set_up(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        match self.prepare(cx) {
            Err(Fault::Refused(reply)) if reply.code == 530 && self.wishes.credentials.is_none() => Ok(()),
            other => other,
        }
    }

    fn prepare(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        self.log_in(cx)?;
        let wishes = self.wishes.clone();
        // Sizes, markers and checksums are in the text of replies.
        if wishes.suppressed == Some(true) {
            self.extension(cx, "SUPP", "SUPP")?;
        } else if wishes.suppressed == Some(false) || self.is_reference() {
            self.extension(cx, "NSUP", "NSUP")?;
        }
        if let Some(directory) = &wishes.directory {
            self.demand(cx, &format!("CWD {directory}"))?;
        }
        if wishes.file_type != FileType::Image || !self.is_kin() {
            self.demand(cx, &format!("TYPE {}", wishes.file_type.letter()))?;
        }
        if wishes.auto_restart {
            self.extension(cx, "ARST", "ARST")?;
        }
        if wishes.bets {
            self.extension(cx, "BETS", &format!("BETS {}", cx.mib.bets_fill))?;
        }
        Ok(())
    }
}

/// Transfers and their ends are answered with 226, 250 after an update only, or 4xx; a server without NOOP says so.
fn answers_noop(reply: &Reply) -> bool {
    matches!(reply.code, 200 | 250 | 500 | 502)
}
