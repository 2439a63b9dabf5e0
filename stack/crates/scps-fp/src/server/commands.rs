//! Commands one by one (FP notes §3).

use super::session::Session;
use super::transfer::{opening_text, Flow, Plan};
use super::writers::Claim;
use super::Shared;
use crate::command::{Command, FileType, Site, VERBS};
use crate::crc::crc_text;
use crate::net::Net;
use crate::outgoing::Outgoing;
use crate::partial::{stored_size, Base, Bounds, Partial, SUFFIX};
use crate::reply::Reply;
use crate::store::{calendar, modified, resolve, Store, StoreError, StoreResult};
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
            _ if !self.is_logged_in() => self.reply(&Reply::new(530, "Please log in.")),
            other => {
                let Some(store) = self.store.clone() else { return true };
                return self.run_logged_in(net, shared, other, &store);
            }
        }
        true
    }

    fn user(&mut self, name: String, net: &mut dyn Net, shared: &Shared) {
        if shared.open_as.is_some() {
            return self.reply_with_text(230, "No login is needed.");
        }
        self.user = None;
        self.store = None;
        self.name = Some(name);
        self.hold_for_guesses(net, shared);
        self.reply_with_text(331, "Password required.");
    }

    fn pass(&mut self, word: &str, net: &mut dyn Net, shared: &mut Shared) {
        if self.is_logged_in() {
            return self.reply(&Reply::new(503, "Already logged in."));
        }
        let Some(name) = self.name.take() else {
            return self.reply_with_text(503, "Send USER first.");
        };
        match shared.users.check(&name, word) {
            None => self.refuse_login(net, shared),
            Some(user) => {
                if self.enter(user) {
                    self.failures = 0;
                    self.reply_with_text(230, "Logged in.");
                } else {
                    self.reply_with_text(550, "The user's folder is not available.");
                }
            }
        }
    }

    fn run_logged_in(&mut self, net: &mut dyn Net, shared: &mut Shared, command: Command, store: &Rc<Store>) -> bool {
        if self.user.as_ref().is_some_and(|u| u.read_only) && changes_something(&command) {
            self.reply(&Reply::new(550, "This user may change nothing."));
            return true;
        }
        if let Some(path) = file_touched(&command).map(|p| self.absolute(p)) {
            // What is being written under another name is the same file.
            let lock = store.lock_name(path.strip_suffix(SUFFIX).unwrap_or(&path));
            match shared.writers.claim(&lock, self.id, net.now(), shared.mib.stall_takeover) {
                Claim::Free => {}
                Claim::Wait => return false,
                Claim::Busy => {
                    self.reply(&Reply::new(450, BUSY));
                    return true;
                }
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
                self.marker = None;
                self.declared = None;
                planned.map(|plan| self.start_transfer(net, shared, plan))
            }
            Command::Stat(Some(path)) => self.list(&path, store, net.unix_time(), true).map(|text| {
                let lines = [format!("Status of {path}:")].into_iter();
                let lines = lines.chain(text.lines().map(str::to_owned)).chain(["End.".to_owned()]);
                self.reply(&Reply::multi(211, lines.collect()));
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

    /// A path of this session, absolute.
    pub fn absolute(&self, path: &str) -> String {
        resolve(&self.cwd, path)
    }

    fn run_on_files(
        &mut self,
        net: &mut dyn Net,
        shared: &mut Shared,
        command: Command,
        store: &Store,
    ) -> StoreResult<()> {
        let reply = match command {
            Command::Cwd(path) => {
                let path = self.absolute(&path);
                if !store.metadata(&path)?.is_dir() {
                    return Err(StoreError::new(550, "not a directory"));
                }
                // The descriptor that a link outside would need cannot be had.
                store.list(&path)?;
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
                self.rename_from = Some(path);
                Reply::new(350, "RNFR; send RNTO.").with_text()
            }
            Command::Rnto(path) => {
                let Some(from) = self.rename_from.take() else {
                    return Err(StoreError::new(503, "Send RNFR first."));
                };
                store.rename(&from, &self.absolute(&path))?;
                Reply::new(250, "RNTO")
            }
            Command::Copy(from, to) => {
                self.copy(&from, &to, store, shared.mib.copy_overwrites)?;
                Reply::new(250, "COPY")
            }
            Command::Size(path) => {
                let absolute = self.absolute(&path);
                store.size(&absolute)?;
                let size = stored_size(&store.open_file(&absolute)?, self.file_type)?;
                match (self.bare_size, shared.mib.historic) {
                    (true, _) => Reply::new(213, size.to_string()),
                    (false, true) => Reply::new(213, format!("{path} SIZE {size} bytes")),
                    (false, false) => Reply::new(213, format!("{path} SIZE {size}")),
                }
            }
            Command::Mdtm(path) => {
                let (y, mo, d, h, mi, s) = calendar(modified(&store.metadata(&self.absolute(&path))?));
                Reply::new(213, format!("{y:04}{mo:02}{d:02}{h:02}{mi:02}{s:02}"))
            }
            Command::Site(site) => self.site(site, net, shared, store)?,
            _ => Reply::new(502, "Not implemented."),
        };
        self.reply(&reply);
        Ok(())
    }

    fn site(&mut self, site: Site, net: &mut dyn Net, shared: &Shared, store: &Store) -> StoreResult<Reply> {
        Ok(match site {
            Site::Time => Reply::new(216, format!("time {:08x}", net.unix_time() as u32)),
            Site::Crc(path) => {
                let (value, _) = store.checksum(&self.absolute(&path))?;
                Reply::new(250, crc_text(value)).with_text()
            }
            Site::CrcSwitch(on) => {
                self.crc_on = on;
                Reply::new(216, if on { "CRC on." } else { "CRC off." })
            }
            Site::Terminate => {
                let is_admin = self.user.as_ref().is_some_and(|u| u.admin);
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

    fn copy(&mut self, from: &str, to: &str, store: &Store, overwrites: bool) -> StoreResult<()> {
        let (from, to) = (self.absolute(from), self.absolute(to));
        let size = store.size(&from)?;
        if store.room()?.is_some_and(|room| room < size) {
            return Err(StoreError::new(552, "the quota is used up"));
        }
        if overwrites && from != to && store.size(&to).is_ok() {
            store.delete(&to)?;
        }
        let mut source = store.open_file(&from)?;
        store.create_whole(&to, |file| Ok(std::io::copy(&mut source, file).map(|_| ())?))
    }

    fn plan(&mut self, net: &mut dyn Net, shared: &mut Shared, command: Command, store: &Store) -> StoreResult<Plan> {
        let file_type = self.file_type;
        let sending = |flow, opening| Plan { flow, opening, lock: None, declared: None, may_be_best_effort: false };
        match command {
            Command::Retr(path) => {
                let absolute = self.absolute(&path);
                let file = store.open_file(&absolute)?;
                // Beyond the end of a file there is nothing to restart (notes §10).
                let outgoing = Outgoing::file(file, self.marker.unwrap_or(0), file_type)
                    .map_err(|e| StoreError::new(550, e.text))?;
                Ok(Plan { may_be_best_effort: true, ..sending(Flow::Send(outgoing), opening_text(&path, file_type)) })
            }
            Command::List(path) => {
                let text = self.list(path.as_deref().unwrap_or(""), store, net.unix_time(), true)?;
                Ok(sending(
                    Flow::Send(Outgoing::text(text.into_bytes())),
                    "Opening ASCII mode data connection for a list.".into(),
                ))
            }
            Command::Nlst(path) => {
                let text = self.list(path.as_deref().unwrap_or(""), store, net.unix_time(), false)?;
                Ok(sending(
                    Flow::Send(Outgoing::text(text.into_bytes())),
                    "Opening ASCII mode data connection for names.".into(),
                ))
            }
            Command::Read(path) => {
                let outgoing = self.read_plan(&path, store)?;
                Ok(sending(Flow::Send(outgoing), opening_text(&path, FileType::Image)))
            }
            Command::Stor(path) => {
                let base = self.marker.filter(|m| *m > 0).map_or(Base::Fresh, Base::Marker);
                self.plan_receiving(shared, store, &self.absolute(&path), base, opening_text(&path, file_type))
            }
            Command::Appe(path) => {
                self.plan_receiving(shared, store, &self.absolute(&path), Base::End, opening_text(&path, file_type))
            }
            Command::Stou(path) => {
                let wanted = self.absolute(path.as_deref().unwrap_or("unique"));
                let taken = |p: &str| store.exists(p) || store.exists(&format!("{p}{SUFFIX}"));
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
        let room = store.room()?;
        let start = if let Base::Marker(n) = base { n } else { 0 };
        if let (Some(room), Some(declared)) = (room, self.declared) {
            if declared.saturating_sub(start) > room {
                return Err(StoreError::new(552, "the quota is used up"));
            }
        }
        let (folder, name) = store.folder_of(path)?;
        let size = (shared.mib.file_size_max > 0).then_some(shared.mib.file_size_max);
        let partial = Partial::begin(folder, &name, base, self.file_type, Bounds { room, size })?;
        // What is announced counts the whole file, an appended one has no announced size.
        let declared = self.declared.filter(|_| base != Base::End);
        let lock = Some(store.lock_name(path));
        Ok(Plan { flow: Flow::Receive(partial), opening, lock, declared, may_be_best_effort: true })
    }

    fn list(&self, path: &str, store: &Store, unix_time: u64, long: bool) -> StoreResult<String> {
        let entries = store.list(&self.absolute(path))?;
        let line = |e: &crate::store::Entry| if long { e.long(unix_time) } else { e.name.clone() } + "\r\n";
        Ok(entries.iter().map(line).collect())
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
        | Command::Site(Site::Crc(p)) => Some(p),
        _ => None,
    }
}
