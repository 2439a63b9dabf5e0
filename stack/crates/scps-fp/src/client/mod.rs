//! The client (scps-fp §15.2): one control connection, or two for transfers between servers, and transfers that are
//! continued where they broke.
//!
//! It waits by [`Net::wait`] only; whoever implements that decides what time is. A user's wish to interrupt comes
//! through [`Console`].

mod attempt;
mod proxy;
mod records;
mod remote;
mod report;
mod shell;
mod stop;
mod stored;
mod transfer;

use remote::{Credentials, Remote};
pub use report::{Integrity, Report, Status};
pub use shell::{Resolver, VERBS};

use crate::config::Mib;
use crate::net::Net;
use crate::reply::Reply;
use crate::restart::Failure;
use scps_wire::Instant;
use std::path::{Path, PathBuf};

/// Why a command had no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The control connection is gone.
    #[error("{0}")]
    Lost(String),
    /// The server said no.
    #[error("{} {}", .0.code, .0.text())]
    Refused(Reply),
    /// Something on this side: a file, a wrong argument.
    #[error("{0}")]
    Local(String),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        match fault {
            Fault::Lost(text) => Failure::Broken(text),
            Fault::Refused(reply) => failure_of(&reply),
            Fault::Local(text) => Failure::Final(text),
        }
    }
}

/// What a negative reply means for a transfer (scps-fp §11.3).
fn failure_of(reply: &Reply) -> Failure {
    let text = format!("{} {}", reply.code, reply.text());
    match reply.code {
        450 => Failure::Busy(text),
        421 | 425 | 426 | 451 => Failure::Broken(text),
        _ => Failure::Final(text),
    }
}

/// What a user may want while a transfer runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urge {
    /// End it, keep what there is (INTR).
    Interrupt,
    /// End it, undo it (ABOR).
    Abort,
}

/// Where a transfer starts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Start {
    /// At the beginning of the file.
    #[default]
    Fresh,
    /// Where what is stored at the receiver ends.
    WhatIsStored,
    /// There.
    At(u64),
}

/// The person, or what stands for one.
pub trait Console {
    /// Something to show.
    fn show(&mut self, line: &str);
    /// A wish that came up since the last call.
    fn urge(&mut self) -> Option<Urge>;
}

/// What a command needs of this side: its transport, its user, and what both want.
struct Context<'a> {
    net: &'a mut dyn Net,
    console: &'a mut dyn Console,
    mib: Mib,
    /// Data connections are opened by this side (PASV) instead of by the server (PORT).
    passive: bool,
    shows_commands: bool,
    /// A wish that comes up by itself once so many octets of a transfer have moved.
    armed: Option<(Urge, u64)>,
}

impl Context<'_> {
    /// A wish that came up, or does now that so many octets of a transfer have moved.
    fn urge(&mut self, octets: u64) -> Option<Urge> {
        self.console.urge().or_else(|| self.armed.take_if(|(_, at)| *at <= octets).map(|(urge, _)| urge))
    }

    fn wait(&mut self, until: Instant) -> Result<(), Failure> {
        self.net.wait(Some(until)).map_err(|e| Failure::Final(e.to_string()))
    }

    /// Waits before a restart; the user can end the waiting and with it the restarts.
    fn pause(&mut self, until: Instant) -> Result<(), Failure> {
        while self.net.now() < until {
            match self.console.urge() {
                Some(Urge::Interrupt) => return Err(Failure::Interrupted(u64::MAX)),
                Some(Urge::Abort) => return Err(Failure::Aborted),
                None => {}
            }
            self.wait(until)?;
        }
        Ok(())
    }

    /// The end of patience for a reply that is awaited from now on.
    fn reply_deadline(&self) -> Instant {
        self.net.now() + self.mib.reply_timeout
    }
}

/// A client.
pub struct Client<'a> {
    cx: Context<'a>,
    remote: Option<Remote>,
    proxy: Option<Remote>,
    /// Local files are relative to this.
    pub folder: PathBuf,
    unique_remote: bool,
    /// Marker for the next transfer, and what `restart` without a number means.
    restart: Start,
    last_size: Option<u64>,
    bind: std::net::IpAddr,
}

impl<'a> Client<'a> {
    /// A client that is not connected. Connections leave from `bind`.
    pub fn new(net: &'a mut dyn Net, console: &'a mut dyn Console, mib: Mib, bind: std::net::IpAddr) -> Client<'a> {
        Client {
            cx: Context { net, console, mib, passive: false, shows_commands: false, armed: None },
            remote: None,
            proxy: None,
            folder: PathBuf::from("."),
            unique_remote: false,
            restart: Start::Fresh,
            last_size: None,
            bind,
        }
    }

    /// Data connections are opened by this side (PASV) instead of by the server (PORT).
    pub fn set_passive(&mut self, passive: bool) {
        self.cx.passive = passive;
    }

    /// Shows commands as they are sent; passwords stay hidden.
    pub fn show_commands(&mut self, shows: bool) {
        self.cx.shows_commands = shows;
    }

    /// The next command may be long in coming.
    pub fn rest(&mut self) {
        self.cx.net.rest();
    }

    /// True if there is a control connection.
    pub fn is_connected(&self) -> bool {
        self.remote.as_ref().is_some_and(Remote::is_connected)
    }

    fn local_path(&self, name: &str) -> PathBuf {
        self.folder.join(Path::new(name))
    }

    /// Runs `action` on the control connection.
    fn on_remote<T>(
        &mut self,
        action: impl FnOnce(&mut Context<'a>, &mut Remote) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let remote = self.remote.as_mut().ok_or_else(|| Fault::Lost("not connected".to_owned()))?;
        remote.shown(&mut self.cx, action)
    }
}
