//! Commands one by one (scps-fp §3).

use super::session::Session;
use super::transfer::{opening_text, Flow, Plan};
use super::work::{Checking, Copying, Work};
use super::writers::Claim;
use super::Shared;
use crate::command::{Command, FileType, Site, VERBS};
use crate::error::{StoreError, StoreResult};
use crate::listing::calendar;
use crate::net::{aside, Net};
use crate::outgoing::Outgoing;
use crate::partial::{Base, Bounds, Partial};
use crate::reply::Reply;
use crate::search::Search;
use crate::store::{modified, resolve, Store};
use std::rc::Rc;

const BUSY: &str = "Another session is writing the file.";
/// Names STOU tries.
const UNIQUE_TRIES: u32 = 99;
const FEATURES: [&str; 16] = [
    "SIZE",
    "MDTM",
    "REST STREAM",
    "EPSV",
    "EPRT",
    "UTF8",
    "ALLO",
    "ARST;NARS",
    "BETS;NBES",
    "COPY",
    "IDLE",
    "INTR",
    "READ",
    "SUPP;NSUP",
    "UPDT",
    "SITE CRC;CRCON;CRCOFF;TIME",
];

impl Session {
    /// Runs a command; false if it has to be tried again next turn.
    pub fn run(&mut self, net: &mut dyn Net, shared: &mut Shared, command: Command) -> bool {
        match command {
            Command::User(name) => self.user(name, net, shared),
            // One in a pass: it is slow by design, and others wait.
            Command::Pass(_) if shared.has_hashed => return false,
            Command::Pass(word) => self.pass(&word, net, shared),
            Command::Noop => self.reply_noop(shared),
            Command::Feat => {
                self.bare_size = true;
                let features = FEATURES.iter().map(|f| format!(" {f}"));
                let lines = ["Features:".to_owned()].into_iter().chain(features).chain(["End".to_owned()]);
                self.reply(&Reply::multi(211, lines.collect()));
            }
            Command::Syst => self.reply(&Reply::new(215, "UNIX Type: L8")),
            Command::Help(_) => self.reply(&Reply::multi(214, help())),
            _ if !self.login.is_done() => self.reply(&Reply::new(530, "Please log in.")),
            other => {
                let Some(store) = self.login.store.clone() else { return true };
                return self.run_logged_in(net, shared, other, &store);
            }
        }
        true
    }

    fn user(&mut self, name: String, net: &mut dyn Net, shared: &Shared) {
        if shared.open_as.is_some() {
            return self.reply_with_text(230, "No login is needed.");
        }
        self.login.begin(name, net.now());
        // Everything from here waits for as long as earlier guesses from the same address demand.
        let delay = shared.guard.delay(self.peer().ip(), net.now());
        if !delay.is_zero() {
            self.login.hold(net.now(), delay);
        }
        self.reply_with_text(331, "Password required.");
    }

    fn pass(&mut self, word: &str, net: &mut dyn Net, shared: &mut Shared) {
        if self.login.is_done() {
            return self.reply(&Reply::new(503, "Already logged in."));
        }
        let Some(name) = self.login.name.take() else {
            return self.reply_with_text(503, "Send USER first.");
        };
        shared.has_hashed = true;
        // The hash takes long on purpose.
        let checked = aside(net, || shared.users.check(&name, word));
        match checked.ok().flatten() {
            None => self.refuse_login(net, shared),
            Some(user) => {
                if self.login.enter(user, shared) {
                    "/".clone_into(&mut self.cwd);
                    self.reply_with_text(230, "Logged in.");
                } else {
                    self.reply_with_text(550, "The user's folder is not available.");
                }
            }
        }
    }

    fn run_logged_in(&mut self, net: &mut dyn Net, shared: &mut Shared, command: Command, store: &Rc<Store>) -> bool {
        if self.login.user.as_ref().is_some_and(|u| u.read_only) && changes_something(&command) {
            self.reply(&Reply::new(550, "This user may change nothing."));
            return true;
        }
        match self.claim(net, shared, &command, store) {
            Claim::Free => {}
            Claim::Wait => return false,
            Claim::Busy => {
                self.reply(&Reply::new(450, BUSY));
                return true;
            }
        }
        let result = match command {
            Command::Retr(_)
            | Command::Stor(_)
            | Command::Stou(_)
            | Command::Appe(_)
            | Command::List(_)
            | Command::Nlst(_)
            | Command::Read(_) => {
                let planned = self.plan(net, shared, command, store);
                (self.prepared.marker, self.prepared.declared) = (None, None);
                planned.map(|plan| self.start_transfer(net, shared, plan))
            }
            Command::Stat(Some(path)) => store.list(&self.absolute(&path), Some(net.unix_time())).map(|listing| {
                self.control.reply_more(211, &[format!("Status of {path}:")]);
                self.work = Some(Work::List(listing));
            }),
            Command::Updt(path) => self.update(&path, store, shared),
            Command::Port(_)
            | Command::Pasv
            | Command::Epsv
            | Command::Type(_)
            | Command::Stru
            | Command::Mode
            | Command::Allo(_)
            | Command::Rest(_)
            | Command::AutoRestart(_)
            | Command::Bets(_)
            | Command::Nbes
            | Command::Idle(_)
            | Command::Suppress(_)
            | Command::Opts(_)
            | Command::Stat(None)
            | Command::Acct
            | Command::Abor
            | Command::Intr => {
                self.set_parameter(net, shared, command);
                Ok(())
            }
            other => self.run_on_files(net, shared, other, store),
        };
        if let Err(error) = result {
            self.reply(&Reply::new(error.code, error.text));
        }
        true
    }

    /// Asks for the files a command touches.
    fn claim(&mut self, net: &dyn Net, shared: &mut Shared, command: &Command, store: &Store) -> Claim {
        let Some(path) = file_touched(command).map(|p| self.absolute(p)) else { return Claim::Free };
        match store.writer_of(&path) {
            (Some(part), _) if shared.writers.knows(part) => {
                shared.writers.claim(part, self.id, net.now(), shared.mib.stall_takeover)
            }
            (_, true) => Claim::Busy,
            (_, false) => Claim::Free,
        }
    }

    /// A path of this session, absolute.
    pub fn absolute(&self, path: &str) -> String {
        resolve(&self.cwd, path)
    }

    fn run_on_files(
        &mut self,
        net: &mut dyn Net,
        shared: &mut Shared,
        command: Command,
        store: &Rc<Store>,
    ) -> StoreResult<()> {
        let reply = match command {
            Command::Cwd(path) => {
                let path = self.absolute(&path);
                if !store.metadata(&path)?.is_dir() {
                    return Err(StoreError::new(550, "not a directory"));
                }
                // The descriptor that a link outside would need cannot be had, nor one of a folder that may not be read.
                store.open_dir(&path)?;
                self.cwd = path;
                Reply::new(250, "CWD")
            }
            Command::Cdup => {
                self.cwd = self.absolute("..");
                Reply::new(200, "CDUP")
            }
            Command::Pwd => Reply::new(257, format!("\"{}\" is the current directory.", quoted(&self.cwd))),
            Command::Mkd(path) => {
                let path = self.absolute(&path);
                store.make_dir(&path)?;
                Reply::new(257, format!("\"{}\" created.", quoted(&path)))
            }
            Command::Rmd(path) => {
                store.remove_dir(&self.absolute(&path))?;
                Reply::new(250, "RMD")
            }
            Command::Dele(path) => {
                store.delete(&self.absolute(&path))?;
                Reply::new(250, "DELE")
            }
            Command::Rnfr(path) => {
                let path = self.absolute(&path);
                if !store.exists(&path) {
                    return Err(StoreError::new(550, "no such file or directory"));
                }
                self.prepared.rename_from = Some(path);
                Reply::new(350, "RNFR; send RNTO.").with_text()
            }
            Command::Rnto(path) => {
                let Some(from) = self.prepared.rename_from.take() else {
                    return Err(StoreError::new(503, "Send RNFR first."));
                };
                store.rename(&from, &self.absolute(&path))?;
                Reply::new(250, "RNTO")
            }
            Command::Copy(from, to) => {
                return self.copy(&from, &to, store, shared.mib.copy_overwrites);
            }
            Command::Size(path) => {
                let absolute = self.absolute(&path);
                let length = store.size(&absolute)?;
                let (head, tail) = match (self.bare_size, shared.mib.historic) {
                    (true, _) => (String::new(), ""),
                    (false, true) => (format!("{path} SIZE "), " bytes"),
                    (false, false) => (format!("{path} SIZE "), ""),
                };
                if self.file_type == FileType::Ascii {
                    let search = Search::new(store.open_file_or_part(&absolute)?, u64::MAX)?;
                    self.work = Some(Work::Size { head, tail, search });
                    return Ok(());
                }
                Reply::new(213, format!("{head}{length}{tail}"))
            }
            Command::Mdtm(path) => {
                let (y, mo, d, h, mi, s) = calendar(modified(&store.metadata(&self.absolute(&path))?));
                Reply::new(213, format!("{y:04}{mo:02}{d:02}{h:02}{mi:02}{s:02}"))
            }
            Command::Site(Site::Crc(path)) => {
                self.work = Some(Work::Crc(Checking::of(store.open_file_or_part(&self.absolute(&path))?)?));
                return Ok(());
            }
            Command::Site(site) => self.site(&site, net, shared)?,
            _ => Reply::new(502, "Not implemented."),
        };
        self.reply(&reply);
        Ok(())
    }

    fn site(&mut self, site: &Site, net: &mut dyn Net, shared: &Shared) -> StoreResult<Reply> {
        Ok(match site {
            Site::Time => Reply::new(216, format!("time {:08x}", net.unix_time() as u32)),
            Site::CrcSwitch(on) => {
                self.control.crc_on = *on;
                Reply::new(216, if *on { "CRC on." } else { "CRC off." })
            }
            Site::Terminate | Site::Crc(_) => {
                let is_admin = self.login.user.as_ref().is_some_and(|u| u.admin);
                if !shared.allow_terminate {
                    return Err(StoreError::new(502, "Not enabled."));
                }
                if !is_admin {
                    return Err(StoreError::new(550, "Only an administrator may."));
                }
                self.terminate = true;
                Reply::new(251, "The next QUIT ends the server.")
            }
        })
    }

    fn copy(&mut self, from: &str, to: &str, store: &Rc<Store>, overwrites: bool) -> StoreResult<()> {
        let (from, to) = (self.absolute(from), self.absolute(to));
        let size = store.size(&from)?;
        let from = store.open_file(&from)?;
        let to = store.make(&to, overwrites)?;
        let (count, store) = (store.count()?, Rc::clone(store));
        self.work = Some(Work::Copy(Box::new(Copying { count, from, size, left: size, to, store })));
        Ok(())
    }

    fn plan(&mut self, net: &mut dyn Net, shared: &mut Shared, command: Command, store: &Store) -> StoreResult<Plan> {
        let file_type = self.file_type;
        let sending = |flow, opening| Plan { flow, opening, count: None, declared: None, may_be_best_effort: false };
        match command {
            Command::Retr(path) => {
                let absolute = self.absolute(&path);
                let file = store.open_file(&absolute)?;
                // Beyond the end of a file there is nothing to restart (scps-fp §10).
                let outgoing = Outgoing::begin(file, self.prepared.marker.unwrap_or(0), file_type)
                    .map_err(|e| StoreError::new(550, e.text))?;
                Ok(Plan { may_be_best_effort: true, ..sending(Flow::Send(outgoing), opening_text(&path, file_type)) })
            }
            Command::List(path) => {
                let now = net.unix_time();
                let listing = store.list(&self.absolute(path.as_deref().unwrap_or("")), Some(now))?;
                Ok(sending(
                    Flow::Send(Outgoing::list(listing)),
                    "Opening ASCII mode data connection for a list.".into(),
                ))
            }
            Command::Nlst(path) => {
                let listing = store.list(&self.absolute(path.as_deref().unwrap_or("")), None)?;
                Ok(sending(Flow::Send(Outgoing::list(listing)), "Opening ASCII mode data connection for names.".into()))
            }
            Command::Read(path) => {
                let outgoing = self.read_plan(&path, store)?;
                Ok(sending(Flow::Send(outgoing), opening_text(&path, FileType::Image)))
            }
            Command::Stor(path) => {
                let base = self.prepared.marker.filter(|m| *m > 0).map_or(Base::Fresh, Base::Marker);
                self.plan_receiving(shared, store, &self.absolute(&path), base, opening_text(&path, file_type))
            }
            Command::Appe(path) => {
                self.plan_receiving(shared, store, &self.absolute(&path), Base::End, opening_text(&path, file_type))
            }
            Command::Stou(path) => {
                let wanted = self.absolute(path.as_deref().unwrap_or("unique"));
                let taken = |p: &str| store.exists(p) || store.writer_of(p).0.is_some();
                let tries = (1..=UNIQUE_TRIES).map(|n| format!("{wanted}.{n}"));
                let free = [wanted.clone()].into_iter().chain(tries).find(|p| !taken(p));
                let path = free.ok_or_else(|| StoreError::new(452, "no name is free"))?;
                self.plan_receiving(
                    shared,
                    store,
                    &path,
                    Base::Fresh,
                    format!("FILE: {}", path.trim_start_matches('/')),
                )
            }
            _ => Err(StoreError::new(502, "not a transfer")),
        }
    }

    fn plan_receiving(
        &self,
        shared: &Shared,
        store: &Store,
        path: &str,
        base: Base,
        opening: String,
    ) -> StoreResult<Plan> {
        let (folder, name) = store.folder_of(path)?;
        let size = (shared.mib.file_size_max > 0).then_some(shared.mib.file_size_max);
        let bounds = Bounds { quota: store.quota().cloned(), size };
        let partial = Partial::begin(&folder, &name, base, self.file_type, bounds)?;
        // What is announced are octets of the whole file (RFC 959 §4.1.3): what is appended is a part, and a text has others on the wire.
        let is_comparable = base != Base::End && self.file_type == FileType::Image;
        let declared = self.prepared.declared.filter(|_| is_comparable);
        Ok(Plan { flow: Flow::Receive(partial), opening, count: store.count()?, declared, may_be_best_effort: true })
    }
}

/// Inner quotes doubled (RFC 959 appendix II).
fn quoted(path: &str) -> String {
    path.replace('"', "\"\"")
}

fn help() -> Vec<String> {
    let rows = VERBS.chunks(12).map(|row| format!(" {}", row.join(" ")));
    ["Commands:".to_owned()].into_iter().chain(rows).chain(["End.".to_owned()]).collect()
}

fn changes_something(command: &Command) -> bool {
    matches!(
        command,
        Command::Stor(_)
            | Command::Stou(_)
            | Command::Appe(_)
            | Command::Dele(_)
            | Command::Mkd(_)
            | Command::Rmd(_)
            | Command::Rnfr(_)
            | Command::Rnto(_)
            | Command::Copy(..)
            | Command::Updt(_)
    )
}

/// The file whose writer, if there is one, stands in the way.
fn file_touched(command: &Command) -> Option<&str> {
    match command {
        Command::Stor(p)
        | Command::Appe(p)
        | Command::Size(p)
        | Command::Dele(p)
        | Command::Rnfr(p)
        | Command::Rnto(p)
        | Command::Copy(_, p)
        | Command::Site(Site::Crc(p)) => Some(p),
        _ => None,
    }
}
