//! The server (scps-fp §15.1): sessions that take turns, each as far as it gets without waiting.

mod commands;
mod control;
mod ending;
mod guard;
mod login;
mod parameters;
mod ports;
mod records;
mod session;
mod transfer;
mod work;
mod writers;

use crate::config::Mib;
use crate::net::{ConnId, ListenId, Net, Service};
use crate::quota::Quota;
use crate::reply::Reply;
use crate::users::{User, Users};
use guard::Guard;
use scps_wire::Instant;
use session::{Session, FAREWELL};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use writers::Writers;

/// What the sessions of a server share.
#[derive(Debug)]
struct Shared {
    mib: Mib,
    users: Users,
    /// Sessions start logged in as this user (minimum profile).
    open_as: Option<User>,
    writers: Writers,
    guard: Guard,
    /// What is used below the roots that have a quota.
    quotas: RefCell<BTreeMap<PathBuf, Quota>>,
    /// A password was checked in this pass; that takes long.
    has_hashed: bool,
    log: Vec<LogLine>,
    counters: Counters,
    allow_terminate: bool,
    is_terminated: bool,
}

/// A line for a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogLine {
    /// Somebody was refused.
    pub is_warning: bool,
    /// Peers' text in it is escaped, passwords never appear.
    pub text: String,
}

/// What a server has done since it was started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Counters {
    /// Sessions that began.
    pub sessions: u64,
    /// Connections that were refused, for there was no place.
    pub refused: u64,
    /// Logins that were refused.
    pub logins_refused: u64,
    /// Commands, unknown ones included.
    pub commands: u64,
    /// Transfers to clients that ended, whether whole or not.
    pub transfers_out: u64,
    /// Octets sent in them.
    pub octets_out: u64,
    /// Transfers from clients that ended, whether whole or not.
    pub transfers_in: u64,
    /// Octets received in them.
    pub octets_in: u64,
}

impl Shared {
    /// Adds a line to the log.
    fn note(&mut self, text: String) {
        self.log.push(LogLine { is_warning: false, text });
    }

    /// Adds a line to the log about somebody who was refused.
    fn warn(&mut self, text: String) {
        self.log.push(LogLine { is_warning: true, text });
    }

    /// The count of a root, shared by all sessions there.
    fn quota_of(&self, root: &Path, limit: u64) -> Quota {
        let mut quotas = self.quotas.borrow_mut();
        quotas.entry(root.to_owned()).or_insert_with(|| Quota::of(limit)).with_limit(limit)
    }
}

/// Rounds of sessions before the caller is heard again.
const PASSES_MAX: usize = 16;
/// Refused connections that still have time to take the reason.
const REFUSED_MAX: usize = 16;

/// Who may do what, and how.
#[derive(Debug, Default)]
pub struct ServerConfig {
    /// Tunables.
    pub mib: Mib,
    /// Those who may log in.
    pub users: Users,
    /// Sessions need no login and have this user's rights.
    pub open_as: Option<User>,
    /// An administrator may end the server.
    pub allow_terminate: bool,
}

/// A server.
#[derive(Debug)]
pub struct Server {
    shared: Shared,
    listener: ListenId,
    address: SocketAddr,
    sessions: BTreeMap<u64, Session>,
    next_session: u64,
    /// Connections that were told that there is no place, and when.
    refused: VecDeque<(ConnId, Instant)>,
    /// The session that is heard first in the next pass.
    next_first: u64,
}

impl Server {
    /// Starts listening.
    pub fn start(net: &mut dyn Net, local: SocketAddr, config: ServerConfig) -> io::Result<Server> {
        let (listener, address) = net.listen(local, Service::Reliable)?;
        let shared = Shared {
            mib: config.mib,
            users: config.users,
            open_as: config.open_as,
            writers: Writers::default(),
            guard: Guard::default(),
            quotas: RefCell::default(),
            has_hashed: false,
            log: Vec::new(),
            counters: Counters::default(),
            allow_terminate: config.allow_terminate,
            is_terminated: false,
        };
        let (sessions, refused) = (BTreeMap::new(), VecDeque::new());
        Ok(Server { shared, listener, address, sessions, next_session: 1, refused, next_first: 0 })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sessions now.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// True once an administrator ended the server and everybody has left.
    pub fn is_finished(&self) -> bool {
        self.shared.is_terminated && self.sessions.is_empty()
    }

    /// Takes other settings. Tunables hold at once; whoever is logged in keeps the rights of the login.
    pub fn reconfigure(&mut self, config: ServerConfig) {
        let ServerConfig { mib, users, open_as, allow_terminate } = config;
        let shared = &mut self.shared;
        (shared.mib, shared.users, shared.open_as) = (mib, users, open_as);
        shared.allow_terminate = allow_terminate;
    }

    /// What it has done.
    pub fn counters(&self) -> Counters {
        self.shared.counters
    }

    /// Lines for a log since the last call.
    pub fn take_log(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.shared.log)
    }

    /// Does what can be done now; returns when to come back if nothing happens before.
    pub fn run_once(&mut self, net: &mut dyn Net) -> io::Result<Option<Instant>> {
        for _ in 0..PASSES_MAX {
            let mut progressed = self.accept(net)?;
            self.shared.has_hashed = false;
            // Whoever came first last time comes last now: of what is there once a pass, everybody gets some.
            let from = self.next_first;
            let (before, after) = (self.sessions.range(..from), self.sessions.range(from..));
            let order: Vec<u64> = after.chain(before).map(|(id, _)| *id).collect();
            self.next_first = order.first().map_or(0, |id| id + 1);
            for id in order {
                if let Some(session) = self.sessions.get_mut(&id) {
                    progressed |= session.run_once(net, &mut self.shared);
                }
            }
            self.sessions.retain(|_, s| !s.is_over());
            if self.sessions.values().any(Session::is_working) {
                break;
            }
            if !progressed {
                let now = net.now();
                let refused = self.refused.front().map(|(_, at)| *at + FAREWELL);
                return Ok(self.sessions.values().filter_map(|s| s.deadline(now, &self.shared)).chain(refused).min());
            }
        }
        Ok(Some(net.now()))
    }

    fn accept(&mut self, net: &mut dyn Net) -> io::Result<bool> {
        let mut any = false;
        self.forget_refused(net);
        while let Some(accepted) = net.accept(self.listener)? {
            any = true;
            if !self.has_place_for(net, accepted.peer.ip()) {
                let reply = Reply::new(421, "Too many sessions. Try again later.").emit(false);
                // If there is no room for it, the end of the connection says the same.
                let _ = net.send(accepted.id, &reply);
                net.finish(accepted.id);
                self.refused.push_back((accepted.id, net.now()));
                self.forget_refused(net);
                self.shared.counters.refused += 1;
                self.shared.warn(format!("{} refused: too many sessions", accepted.peer));
                continue;
            }
            let id = self.next_session;
            self.next_session += 1;
            self.shared.counters.sessions += 1;
            self.shared.note(format!("[{id}] connected from {}", accepted.peer));
            self.sessions.insert(id, Session::new(id, accepted, net.now(), &self.shared));
        }
        Ok(any)
    }

    /// Ends refused connections that had their time, and the oldest of too many: one that is never acknowledged would else
    /// live as long as the transport is patient.
    fn forget_refused(&mut self, net: &mut dyn Net) {
        let now = net.now();
        while self.refused.front().is_some_and(|(_, at)| *at + FAREWELL <= now) || self.refused.len() > REFUSED_MAX {
            let Some((id, _)) = self.refused.pop_front() else { return };
            net.abort(id);
        }
    }

    /// True if a session from `from` may begin. Where all places are taken, one that does nothing is given up: an address'
    /// own, if it has been quiet for long, and one of the address that has most, if the newcomer's then still has fewer.
    fn has_place_for(&mut self, net: &mut dyn Net, from: IpAddr) -> bool {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for session in self.sessions.values().filter(|s| !s.is_leaving()) {
            *counts.entry(session.peer().ip()).or_default() += 1;
        }
        let same = counts.get(&from).copied().unwrap_or(0);
        let (most_sessions, per_address) = (self.shared.mib.sessions_max, self.shared.mib.sessions_per_address);
        // Those who leave have some seconds for it; nobody may fill the memory with them.
        if self.sessions.len() >= most_sessions.saturating_mul(2) {
            return false;
        }
        let now = net.now();
        let long_ago = now - self.shared.mib.login;
        if same >= per_address {
            return self.make_room(net, from, long_ago);
        }
        if counts.values().sum::<usize>() < most_sessions {
            return true;
        }
        let greediest = counts.into_iter().max_by_key(|(_, n)| *n);
        match greediest {
            Some((address, most)) if most > same + 1 => self.make_room(net, address, now),
            _ => self.make_room(net, from, long_ago),
        }
    }

    /// Ends the session of an address that has been quiet for longest, at least since `since`.
    fn make_room(&mut self, net: &mut dyn Net, address: IpAddr, since: Instant) -> bool {
        let there = self.sessions.values_mut().filter(|s| s.peer().ip() == address);
        let quiet = there.filter(|s| s.quiet_since().is_some_and(|t| t <= since));
        let Some(session) = quiet.min_by_key(|s| s.quiet_since()) else { return false };
        session.make_room(net);
        true
    }
}
