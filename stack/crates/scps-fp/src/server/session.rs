//! One control connection: lines in, replies out, timers, and the state that lives as long as it does.

use super::guard::FAILURES_PER_SESSION;
use super::transfer::{Ending, Transfer};
use super::work::Work;
use super::Shared;
use crate::command::{Command, FileType};
use crate::line::{Line, LineReader};
use crate::net::{Accepted, ConnId, ListenId, Net, Recv};
use crate::reply::Reply;
use crate::store::Store;
use crate::users::User;
use scps_types::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

/// Commands that wait for the end of a transfer.
const QUEUE_MAX: usize = 16;
/// Commands executed before the other sessions have their turn.
const COMMANDS_PER_TURN: usize = 8;
/// Unknown commands in a row.
const UNKNOWN_MAX: u32 = 20;
/// Octets of replies a client may leave unread before we stop reading its commands.
const UNREAD_MAX: usize = 64 * 1024;
/// How long a session that is over, or was refused, waits for its last reply to be taken.
pub(super) const FAREWELL: Duration = Duration::from_secs(10);

/// A control connection and what belongs to it.
#[derive(Debug)]
pub(super) struct Session {
    pub id: u64,
    control: ConnId,
    pub local: SocketAddr,
    peer: SocketAddr,
    lines: LineReader,
    /// Lines taken but not executed: pipelined during a transfer, or put back.
    queue: VecDeque<Vec<u8>>,
    out: Vec<u8>,
    started_at: Instant,
    last_command: Instant,
    /// Failed logins hold the session.
    held_until: Option<Instant>,
    /// The end of the last hold: time spent waiting for the guesses of others is nobody's fault.
    held_for: Instant,
    pub name: Option<String>,
    pub user: Option<User>,
    pub store: Option<Rc<Store>>,
    pub cwd: String,
    pub file_type: FileType,
    pub marker: Option<u64>,
    pub declared: Option<u64>,
    pub rename_from: Option<String>,
    pub target: Option<SocketAddr>,
    pub passive: Option<ListenId>,
    pub bets: Option<u8>,
    pub auto_restart: bool,
    pub suppressed: bool,
    pub crc_on: bool,
    pub bare_size: bool,
    pub idle: Duration,
    pub terminate: bool,
    pub failures: u32,
    unknown: u32,
    pub transfer: Option<Transfer>,
    pub work: Option<Work>,
    is_quitting: bool,
    control_lost: bool,
    closing_since: Option<Instant>,
    is_over: bool,
}

impl Session {
    pub fn new(id: u64, accepted: Accepted, now: Instant, shared: &Shared) -> Session {
        let mib = &shared.mib;
        let mut session = Session {
            id,
            control: accepted.id,
            local: accepted.local,
            peer: accepted.peer,
            lines: LineReader::commands(),
            queue: VecDeque::new(),
            out: Vec::new(),
            started_at: now,
            last_command: now,
            held_until: None,
            held_for: now,
            name: None,
            user: None,
            store: None,
            cwd: "/".to_owned(),
            file_type: mib.file_type,
            marker: None,
            declared: None,
            rename_from: None,
            target: None,
            passive: None,
            bets: mib.bets.then_some(mib.bets_fill),
            auto_restart: mib.auto_restart,
            suppressed: !mib.reply_text,
            crc_on: true,
            bare_size: mib.ftp_size,
            idle: mib.idle,
            terminate: false,
            failures: 0,
            unknown: 0,
            transfer: None,
            work: None,
            is_quitting: false,
            control_lost: false,
            closing_since: None,
            is_over: false,
        };
        session.reply(&Reply::new(220, format!("scpslab SCPS-FP server {} ready.", env!("CARGO_PKG_VERSION"))));
        if let Some(user) = &shared.open_as {
            session.enter(user.clone(), shared);
        }
        session
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn reply(&mut self, reply: &Reply) {
        self.out.extend_from_slice(&reply.emit(self.suppressed));
    }

    /// Lines of a reply that is not over yet.
    pub fn reply_more(&mut self, code: u16, lines: &[String]) {
        self.out.extend_from_slice(&Reply::emit_more(code, lines));
    }

    /// Octets of replies that the client has not taken.
    pub fn unread(&self) -> usize {
        self.out.len()
    }

    pub fn reply_with_text(&mut self, code: u16, text: impl Into<String>) {
        self.out.extend_from_slice(&Reply::new(code, text).emit(false));
    }

    /// Gives the session a user's root and rights.
    pub fn enter(&mut self, user: User, shared: &Shared) -> bool {
        let quota = user.quota.map(|limit| shared.quota_of(&user.root, limit));
        match Store::open(&user.root, quota) {
            Ok(store) => {
                self.store = Some(Rc::new(store));
                self.user = Some(user);
                "/".clone_into(&mut self.cwd);
                true
            }
            Err(_) => false,
        }
    }

    pub fn is_logged_in(&self) -> bool {
        self.user.is_some()
    }

    /// Does what can be done now; false if that was nothing.
    pub fn run_once(&mut self, net: &mut dyn Net, shared: &mut Shared) -> bool {
        let mut progressed = self.read_control(net);
        progressed |= self.take_lines(net, shared);
        progressed |= self.advance_work(net, shared);
        if self.control_lost && self.transfer.is_some() {
            self.end_transfer(net, shared, Ending::Broken("the control connection was lost"));
            progressed = true;
        }
        progressed |= self.advance_transfer(net, shared);
        self.check_timers(net, shared);
        progressed |= self.write_control(net);
        self.finish_closing(net, shared);
        progressed
    }

    fn read_control(&mut self, net: &mut dyn Net) -> bool {
        let mut buffer = [0u8; 4096];
        let mut any = false;
        while !self.control_lost
            && self.closing_since.is_none()
            && self.out.len() < UNREAD_MAX
            && self.lines.waiting() < QUEUE_MAX
        {
            match net.recv(self.control, &mut buffer) {
                Ok(Recv::Data(n)) => {
                    self.lines.push(&buffer[..n]);
                    any = true;
                }
                Ok(Recv::Wait | Recv::Hole(_)) => break,
                Ok(Recv::End) => {
                    self.control_lost = true;
                    any = true;
                }
                Err(_) => {
                    self.control_lost = true;
                    // Nobody waits for it.
                    self.work = None;
                    any = true;
                }
            }
        }
        any
    }

    /// Looks again whether the peer has gone; commands that came with it stay in line.
    pub fn is_control_lost(&mut self, net: &mut dyn Net) -> bool {
        self.read_control(net);
        self.control_lost
    }

    fn take_lines(&mut self, net: &mut dyn Net, shared: &mut Shared) -> bool {
        let mut any = false;
        for _ in 0..COMMANDS_PER_TURN {
            if self.closing_since.is_some() || self.is_quitting || self.work.is_some() {
                break;
            }
            if self.held_until.is_some_and(|t| t > net.now()) {
                break;
            }
            self.held_until = None;
            if self.transfer.is_none() {
                if let Some(line) = self.queue.pop_front() {
                    if !self.execute(net, shared, &line) {
                        self.queue.push_front(line);
                        break;
                    }
                    any = true;
                    continue;
                }
            }
            let Some(line) = self.lines.pop() else { break };
            any = true;
            self.last_command = net.now();
            match line {
                Line::TooLong => self.reply(&Reply::new(500, "The line is too long; nothing of it was done.")),
                Line::Flood => self.say_goodbye(net, "A line without end. Goodbye."),
                Line::Text(line) if self.transfer.is_none() => self.queue.push_back(line),
                Line::Text(line) => self.take_during_transfer(net, shared, line),
            }
        }
        any
    }

    fn take_during_transfer(&mut self, net: &mut dyn Net, shared: &mut Shared, line: Vec<u8>) {
        match Command::parse(&line) {
            Ok(Command::Abor) => {
                shared.log.push(format!("[{}] ABOR", self.id));
                self.end_transfer(net, shared, Ending::Aborted);
            }
            Ok(Command::Intr) => {
                shared.log.push(format!("[{}] INTR", self.id));
                self.end_transfer(net, shared, Ending::Interrupted);
            }
            Ok(Command::Noop) => self.reply_noop(shared),
            Ok(Command::Stat(None)) => {
                let text = self.transfer.as_ref().map_or(String::new(), Transfer::progress);
                self.reply(&Reply::multi(211, vec!["Transfer in progress.".to_owned(), text, "End.".to_owned()]));
            }
            _ if self.queue.len() < QUEUE_MAX => self.queue.push_back(line),
            _ => self.reply(&Reply::new(503, "Too many commands wait for the end of the transfer.")),
        }
    }

    pub fn reply_noop(&mut self, shared: &Shared) {
        self.reply(&Reply::new(if shared.mib.historic { 250 } else { 200 }, "NOOP"));
    }

    /// Executes a line; false if it has to be tried again next turn.
    fn execute(&mut self, net: &mut dyn Net, shared: &mut Shared, line: &[u8]) -> bool {
        let command = match Command::parse(line) {
            Ok(command) => command,
            Err(error) => {
                shared.log.push(format!("[{}] {}: {}", self.id, Command::verb(line), error.code()));
                self.unknown += u32::from(error.code() == 500);
                self.marker = None;
                self.reply(&Reply::new(error.code(), error.to_string()));
                if self.unknown > UNKNOWN_MAX {
                    self.say_goodbye(net, "Too many unknown commands. Goodbye.");
                }
                return true;
            }
        };
        self.unknown = 0;
        shared.log.push(format!("[{}] {}", self.id, Command::verb(line)));
        if command == Command::Quit {
            self.reply(&Reply::new(221, "Goodbye."));
            self.is_quitting = true;
            shared.is_terminated |= self.terminate;
            self.closing_since = Some(net.now());
            return true;
        }
        let is_rest = matches!(command, Command::Rest(_));
        let is_rename = matches!(command, Command::Rnfr(_));
        let prepares = matches!(
            command,
            Command::Port(_) | Command::Pasv | Command::Epsv | Command::Type(_) | Command::Noop | Command::Allo(_)
        );
        let done = self.run(net, shared, command);
        // What prepares a command serves the next one only; every other forgets it (scps-fp §11.4).
        if done && !prepares {
            if !is_rest {
                self.marker = None;
                self.declared = None;
            }
            if !is_rename {
                self.rename_from = None;
            }
        }
        done
    }

    /// A wrong password: says so, and makes the next guess wait.
    pub fn refuse_login(&mut self, net: &mut dyn Net, shared: &mut Shared) {
        let now = net.now();
        self.failures += 1;
        let delay = shared.guard.failed(self.peer.ip(), now);
        shared.log.push(format!("[{}] login refused", self.id));
        if self.failures >= FAILURES_PER_SESSION {
            self.say_goodbye(net, "Too many failed logins. Goodbye.");
        } else {
            self.reply(&Reply::new(530, "Login incorrect.").with_text());
            self.hold_until(now + delay);
        }
    }

    /// Makes everything from here wait for as long as earlier guesses from the same address demand.
    pub fn hold_for_guesses(&mut self, net: &mut dyn Net, shared: &Shared) {
        let delay = shared.guard.delay(self.peer.ip(), net.now());
        if !delay.is_zero() {
            self.hold_until(net.now() + delay);
        }
    }

    fn hold_until(&mut self, end: Instant) {
        self.held_until = Some(end);
        self.held_for = end;
    }

    fn say_goodbye(&mut self, net: &mut dyn Net, text: &str) {
        self.work = None;
        self.reply(&Reply::new(421, text));
        self.closing_since = Some(net.now());
    }

    fn check_timers(&mut self, net: &mut dyn Net, shared: &mut Shared) {
        if self.closing_since.is_some() || self.control_lost {
            return;
        }
        let now = net.now();
        if self.login_deadline(shared).is_some_and(|d| d <= now) {
            self.say_goodbye(net, "Login took too long. Goodbye.");
        } else if self.idle_deadline().is_some_and(|d| d <= now) {
            shared.log.push(format!("[{}] idle", self.id));
            self.say_goodbye(net, "Idle for too long. Goodbye.");
        }
    }

    fn login_deadline(&self, shared: &Shared) -> Option<Instant> {
        (!self.is_logged_in()).then_some(self.started_at.max(self.held_for) + shared.mib.login)
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.is_waiting().then_some(self.last_command + self.idle)
    }

    /// Since when nothing has happened here; `None` while something does.
    pub fn quiet_since(&self) -> Option<Instant> {
        (self.is_waiting() && self.closing_since.is_none()).then_some(self.last_command)
    }

    /// True if it is the client's turn: to say something, or to take what work waits for.
    fn is_waiting(&self) -> bool {
        self.transfer.is_none() && (self.work.is_none() || self.is_work_held())
    }

    /// True if there is more to do at once.
    pub fn is_working(&self) -> bool {
        self.work.is_some() && self.unread() == 0 || self.transfer.as_ref().is_some_and(Transfer::is_working)
    }

    /// Ends a session that does nothing, because others want its place.
    pub fn make_room(&mut self, net: &mut dyn Net) {
        self.say_goodbye(net, "Idle, and others want to be served. Goodbye.");
    }

    pub fn is_leaving(&self) -> bool {
        self.closing_since.is_some()
    }

    /// Patience counts from a command, from the end of a transfer, and from the last octet taken of what work makes.
    pub fn touch(&mut self, now: Instant) {
        self.last_command = now;
    }

    /// When something is due even if nothing happens.
    pub fn deadline(&self, now: Instant, shared: &Shared) -> Option<Instant> {
        if let Some(since) = self.closing_since {
            return Some(since + FAREWELL);
        }
        let transfer = self.transfer.as_ref().map(|t| t.deadline(shared));
        let look = self.transfer.as_ref().and_then(|t| t.look_again(now));
        let held = self.held_until;
        [look, self.login_deadline(shared), self.idle_deadline(), transfer, held].into_iter().flatten().min()
    }

    fn write_control(&mut self, net: &mut dyn Net) -> bool {
        if self.out.is_empty() {
            return false;
        }
        if let Ok(n) = net.send(self.control, &self.out) {
            self.out.drain(..n);
            if n > 0 && self.work.is_some() {
                self.touch(net.now());
            }
            n > 0
        } else {
            self.control_lost = true;
            self.work = None;
            self.out.clear();
            true
        }
    }

    fn finish_closing(&mut self, net: &mut dyn Net, shared: &mut Shared) {
        let is_idle = self.queue.is_empty() && self.lines.waiting() == 0;
        let is_gone =
            self.control_lost && self.transfer.is_none() && self.work.is_none() && (is_idle || self.out.is_empty());
        let is_done = self.closing_since.is_some_and(|since| self.out.is_empty() || net.now() >= since + FAREWELL);
        if (is_gone || is_done) && !self.is_over {
            if self.transfer.is_some() {
                self.end_transfer(net, shared, Ending::Broken("the session ended"));
            }
            if let Some(listener) = self.passive.take() {
                net.unlisten(listener);
            }
            if self.out.is_empty() {
                net.release(self.control);
            } else {
                // Whoever reads nothing reads no end either.
                net.abort(self.control);
            }
            shared.log.push(format!("[{}] closed", self.id));
            self.is_over = true;
        }
    }
}
