//! One control connection: lines in, replies out, timers, and the state that lives as long as it does.

use super::control::{Control, Heard, QUEUE_MAX};
use super::login::Login;
use super::ports::Ports;
use super::transfer::{Ending, Transfer};
use super::work::Work;
use super::Shared;
use crate::command::{Command, FileType};
use crate::line::Line;
use crate::net::{Accepted, Net};
use crate::reply::Reply;
use scps_wire::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Commands executed before the other sessions have their turn.
const COMMANDS_PER_TURN: usize = 8;
/// Unknown commands in a row.
const UNKNOWN_MAX: u32 = 20;
/// How long a session that is over, or was refused, waits for its last reply to be taken.
pub(super) const FAREWELL: Duration = Duration::from_secs(10);

/// What prepares a command and serves the next one only (scps-fp §11.4).
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub marker: Option<u64>,
    pub declared: Option<u64>,
    pub rename_from: Option<String>,
}

/// A control connection and what belongs to it.
#[derive(Debug)]
pub(super) struct Session {
    pub id: u64,
    pub control: Control,
    pub login: Login,
    pub ports: Ports,
    pub prepared: Prepared,
    /// Lines taken but not executed: pipelined during a transfer, or put back.
    queue: VecDeque<Vec<u8>>,
    last_command: Instant,
    pub cwd: String,
    pub file_type: FileType,
    pub auto_restart: bool,
    pub bare_size: bool,
    pub idle: Duration,
    pub terminate: bool,
    unknown: u32,
    pub transfer: Option<Transfer>,
    pub work: Option<Work>,
    is_quitting: bool,
    is_over: bool,
}

impl Session {
    pub fn new(id: u64, accepted: Accepted, now: Instant, shared: &Shared) -> Session {
        let mib = &shared.mib;
        let bets = mib.bets.then_some(mib.bets_fill);
        let mut session = Session {
            id,
            control: Control::new(accepted.id, !mib.reply_text),
            login: Login::new(now),
            ports: Ports { local: accepted.local, peer: accepted.peer, target: None, passive: None, bets },
            prepared: Prepared::default(),
            queue: VecDeque::new(),
            last_command: now,
            cwd: "/".to_owned(),
            file_type: mib.file_type,
            auto_restart: mib.auto_restart,
            bare_size: mib.ftp_size,
            idle: mib.idle,
            terminate: false,
            unknown: 0,
            transfer: None,
            work: None,
            is_quitting: false,
            is_over: false,
        };
        session.reply(&Reply::new(220, format!("scpslab SCPS-FP server {} ready.", env!("CARGO_PKG_VERSION"))));
        if let Some(user) = &shared.open_as {
            session.login.enter(user.clone(), shared);
        }
        session
    }

    pub fn peer(&self) -> SocketAddr {
        self.ports.peer
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn reply(&mut self, reply: &Reply) {
        self.control.reply(reply);
    }

    /// A reply whose text stays where others have none.
    pub fn reply_with_text(&mut self, code: u16, text: impl Into<String>) {
        self.reply(&Reply::new(code, text).with_text());
    }

    /// Does what can be done now; false if that was nothing.
    pub fn run_once(&mut self, net: &mut dyn Net, shared: &mut Shared) -> bool {
        let heard = self.control.read(net);
        let mut progressed = self.heed(heard);
        progressed |= self.take_lines(net, shared);
        progressed |= self.advance_work(net, shared);
        if self.control.is_lost() && self.transfer.is_some() {
            self.end_transfer(net, shared, Ending::Broken("the control connection was lost"));
            progressed = true;
        }
        progressed |= self.advance_transfer(net, shared);
        self.check_timers(net, shared);
        let written = self.control.write(net);
        // Whoever takes what work makes is there.
        if written == Heard::Some && self.work.is_some() {
            self.touch(net.now());
        }
        progressed |= self.heed(written);
        self.finish_closing(net, shared);
        progressed
    }

    /// Notes what a look at the control connection gave; false if that was nothing.
    fn heed(&mut self, heard: Heard) -> bool {
        if heard == Heard::Failure {
            self.work = None;
        }
        heard != Heard::Nothing
    }

    fn take_lines(&mut self, net: &mut dyn Net, shared: &mut Shared) -> bool {
        let mut any = false;
        for _ in 0..COMMANDS_PER_TURN {
            if self.control.is_closing() || self.is_quitting || self.work.is_some() {
                break;
            }
            if self.login.is_held(net.now()) {
                break;
            }
            if self.transfer.is_none() {
                if let Some(line) = self.queue.pop_front() {
                    if !self.execute(net, shared, &line) {
                        self.queue.push_front(line);
                        break;
                    }
                    shared.counters.commands += 1;
                    any = true;
                    continue;
                }
            }
            let Some(line) = self.control.pop() else { break };
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
                shared.note(format!("[{}] ABOR", self.id));
                self.end_transfer(net, shared, Ending::Aborted);
            }
            Ok(Command::Intr) => {
                shared.note(format!("[{}] INTR", self.id));
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
                shared.note(format!("[{}] {}: {}", self.id, Command::verb(line), error.code()));
                self.unknown += u32::from(error.code() == 500);
                self.prepared.marker = None;
                self.reply(&Reply::new(error.code(), error.to_string()));
                if self.unknown > UNKNOWN_MAX {
                    self.say_goodbye(net, "Too many unknown commands. Goodbye.");
                }
                return true;
            }
        };
        self.unknown = 0;
        shared.note(format!("[{}] {}", self.id, Command::verb(line)));
        if command == Command::Quit {
            self.reply(&Reply::new(221, "Goodbye."));
            self.is_quitting = true;
            shared.is_terminated |= self.terminate;
            self.control.begin_to_close(net.now());
            return true;
        }
        let is_rest = matches!(command, Command::Rest(_));
        let is_rename = matches!(command, Command::Rnfr(_));
        let prepares = matches!(
            command,
            Command::Port(_) | Command::Pasv | Command::Epsv | Command::Type(_) | Command::Noop | Command::Allo(_)
        );
        let done = self.run(net, shared, command);
        // Every other command forgets it (scps-fp §11.4).
        if done && !prepares {
            let Prepared { marker, declared, rename_from } = std::mem::take(&mut self.prepared);
            self.prepared = Prepared {
                marker: marker.filter(|_| is_rest),
                declared: declared.filter(|_| is_rest),
                rename_from: rename_from.filter(|_| is_rename),
            };
        }
        done
    }

    /// A wrong password: says so, and makes the next guess wait.
    pub fn refuse_login(&mut self, net: &mut dyn Net, shared: &mut Shared) {
        let may_guess = self.login.refuse(self.ports.peer.ip(), net.now(), shared);
        shared.counters.logins_refused += 1;
        shared.warn(format!("[{}] login refused", self.id));
        if may_guess {
            self.reply_with_text(530, "Login incorrect.");
        } else {
            self.say_goodbye(net, "Too many failed logins. Goodbye.");
        }
    }

    fn say_goodbye(&mut self, net: &mut dyn Net, text: &str) {
        self.work = None;
        self.reply(&Reply::new(421, text));
        self.control.begin_to_close(net.now());
    }

    fn check_timers(&mut self, net: &mut dyn Net, shared: &mut Shared) {
        if self.control.is_closing() || self.control.is_lost() {
            return;
        }
        let now = net.now();
        if self.login.deadline(shared.mib.login).is_some_and(|d| d <= now) {
            self.say_goodbye(net, "Login took too long. Goodbye.");
        } else if self.idle_deadline().is_some_and(|d| d <= now) {
            shared.note(format!("[{}] idle", self.id));
            self.say_goodbye(net, "Idle for too long. Goodbye.");
        }
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.is_waiting().then_some(self.last_command + self.idle)
    }

    /// Since when nothing has happened here; `None` while something does.
    pub fn quiet_since(&self) -> Option<Instant> {
        (self.is_waiting() && !self.control.is_closing()).then_some(self.last_command)
    }

    /// True if it is the client's turn: to say something, or to take what work waits for.
    fn is_waiting(&self) -> bool {
        self.transfer.is_none() && (self.work.is_none() || self.is_work_held())
    }

    /// True if there is more to do at once.
    pub fn is_working(&self) -> bool {
        self.work.is_some() && self.control.unread() == 0 || self.transfer.as_ref().is_some_and(Transfer::is_working)
    }

    /// Ends a session that does nothing, because others want its place.
    pub fn make_room(&mut self, net: &mut dyn Net) {
        self.say_goodbye(net, "Idle, and others want to be served. Goodbye.");
    }

    pub fn is_leaving(&self) -> bool {
        self.control.is_closing()
    }

    /// Patience counts from a command, from the end of a transfer, and from the last octet taken of what work makes.
    pub fn touch(&mut self, now: Instant) {
        self.last_command = now;
    }

    /// When something is due even if nothing happens.
    pub fn deadline(&self, now: Instant, shared: &Shared) -> Option<Instant> {
        if let Some(end) = self.control.deadline() {
            return Some(end);
        }
        let transfer = self.transfer.as_ref().map(|t| t.deadline(shared));
        let look = self.transfer.as_ref().and_then(|t| t.look_again(now));
        let held = self.login.held_until();
        [look, self.login.deadline(shared.mib.login), self.idle_deadline(), transfer, held].into_iter().flatten().min()
    }

    fn finish_closing(&mut self, net: &mut dyn Net, shared: &mut Shared) {
        let is_taken = self.control.unread() == 0;
        let is_idle = self.queue.is_empty() && self.control.is_read();
        let is_gone = self.control.is_lost() && self.transfer.is_none() && self.work.is_none() && (is_idle || is_taken);
        let is_done = self.control.deadline().is_some_and(|end| is_taken || net.now() >= end);
        if (is_gone || is_done) && !self.is_over {
            if self.transfer.is_some() {
                self.end_transfer(net, shared, Ending::Broken("the session ended"));
            }
            self.ports.stop_listening(net);
            self.control.end(net);
            shared.note(format!("[{}] closed", self.id));
            self.is_over = true;
        }
    }
}
