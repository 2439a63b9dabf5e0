//! The server (FP notes §15.1): sessions that take turns, each as far as it gets without waiting.

mod commands;
mod guard;
mod parameters;
mod records;
mod session;
mod transfer;
mod writers;

use crate::config::Mib;
use crate::net::{ListenId, Net, Service};
use crate::reply::Reply;
use crate::users::{User, Users};
use guard::Guard;
use scps_types::Instant;
use session::Session;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
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
    log: Vec<String>,
    allow_terminate: bool,
    is_terminated: bool,
}

/// Rounds of sessions before the caller is heard again.
const PASSES_MAX: usize = 16;

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
            log: Vec::new(),
            allow_terminate: config.allow_terminate,
            is_terminated: false,
        };
        Ok(Server { shared, listener, address, sessions: BTreeMap::new(), next_session: 1 })
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

    /// Lines for a log since the last call; peers' text in them is escaped, passwords never appear.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.shared.log)
    }

    /// Does what can be done now; returns when to come back if nothing happens before.
    pub fn turn(&mut self, net: &mut dyn Net) -> io::Result<Option<Instant>> {
        for _ in 0..PASSES_MAX {
            let mut progressed = self.accept(net)?;
            for session in self.sessions.values_mut() {
                progressed |= session.turn(net, &mut self.shared);
            }
            self.sessions.retain(|_, s| !s.is_over());
            if !progressed {
                return Ok(self.sessions.values().filter_map(|s| s.deadline(&self.shared)).min());
            }
        }
        Ok(Some(net.now()))
    }

    fn accept(&mut self, net: &mut dyn Net) -> io::Result<bool> {
        let mut any = false;
        while let Some(accepted) = net.accept(self.listener)? {
            any = true;
            let from = accepted.peer.ip();
            let same = self.sessions.values().filter(|s| s.peer().ip() == from).count();
            let mib = &self.shared.mib;
            if self.sessions.len() >= mib.sessions_max || same >= mib.sessions_per_address {
                let reply = Reply::new(421, "Too many sessions. Try again later.").emit(false);
                // If there is no room for it, the end of the connection says the same.
                let _ = net.send(accepted.id, &reply);
                net.release(accepted.id);
                self.shared.log.push(format!("{} refused: too many sessions", accepted.peer));
                continue;
            }
            let id = self.next_session;
            self.next_session += 1;
            self.shared.log.push(format!("[{id}] connected from {}", accepted.peer));
            self.sessions.insert(id, Session::new(id, accepted, net.now(), &self.shared));
        }
        Ok(any)
    }
}
