//! Work that may take long, a step at a time, so that other sessions are served in between: checksums, copies, updates,
//! listings on the control connection, sizes that need a look at every octet.

use super::session::Session;
use super::Shared;
use crate::ascii::Place;
use crate::crc::{crc_text, Crc};
use crate::error::{StoreError, StoreResult};
use crate::listing::Listing;
use crate::net::Net;
use crate::quota::Count;
use crate::reply::Reply;
use crate::search::{Search, STEP_OCTETS};
use crate::store::{NewFile, Store};
use crate::update::{Applier, SignalReader, UpdateError};
use cap_std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

/// Octets of replies that may wait for the client before more of a listing is made.
const UNREAD_LISTING: usize = 16 * 1024;

/// A file being read for its checksum.
#[derive(Debug)]
pub(super) struct Checking {
    file: File,
    crc: Crc,
    left: u64,
}

impl Checking {
    /// The file as long as it is now: one that grows must have an end too.
    pub fn of(file: File) -> StoreResult<Checking> {
        let left = file.metadata()?.len();
        Ok(Checking { file, crc: Crc::new(), left })
    }

    fn step(&mut self) -> StoreResult<Option<u32>> {
        let mut buffer = vec![0; STEP_OCTETS.min(usize::try_from(self.left).unwrap_or(STEP_OCTETS))];
        let n = if buffer.is_empty() { 0 } else { self.file.read(&mut buffer)? };
        self.crc.update(&buffer[..n]);
        self.left -= n as u64;
        Ok((n == 0 || self.left == 0).then(|| self.crc.value()))
    }
}

/// A file being copied.
#[derive(Debug)]
pub(super) struct Copying {
    pub count: Option<Count>,
    pub from: File,
    pub size: u64,
    pub left: u64,
    pub to: NewFile,
    pub store: Rc<Store>,
}

/// A file being made of another and edits.
#[derive(Debug)]
pub(super) struct Updating {
    pub count: Option<Count>,
    pub original: File,
    pub expected: u32,
    pub checking: Option<Checking>,
    pub applier: Applier<BufReader<File>>,
    pub signals: SignalReader<BufReader<File>>,
    pub target: NewFile,
    /// What is deleted in the end.
    pub control: Option<String>,
    pub store: Rc<Store>,
}

/// What a session is busy with.
#[derive(Debug)]
pub(super) enum Work {
    Crc(Checking),
    Size { head: String, tail: &'static str, search: Search },
    List(Listing),
    Copy(Box<Copying>),
    Update(Box<Updating>),
}

enum Step {
    More,
    Lines(Vec<String>),
    Done(Reply),
}

pub(super) fn update_error(error: UpdateError) -> StoreError {
    match error {
        UpdateError::Header(_) => StoreError::new(501, error.to_string()),
        UpdateError::TooMany => StoreError::new(552, error.to_string()),
        UpdateError::Signal { .. } => StoreError::new(551, error.to_string()),
        UpdateError::Io(error) => StoreError::from(error).of_storing(),
    }
}

/// True once what is used of a quota is known.
fn is_counted(count: &mut Option<Count>) -> StoreResult<bool> {
    if let Some(counting) = count {
        if !counting.step()? {
            return Ok(false);
        }
        *count = None;
    }
    Ok(true)
}

impl Work {
    /// Taken at once: the step, and the rest of the work if there is one.
    fn step(self, net: &mut dyn Net) -> StoreResult<(Step, Option<Work>)> {
        match self {
            Work::Crc(mut checking) => Ok(match checking.step()? {
                Some(value) => (Step::Done(Reply::new(250, crc_text(value)).with_text()), None),
                None => (Step::More, Some(Work::Crc(checking))),
            }),
            Work::Size { head, tail, mut search } => Ok(match search.step()? {
                None => (Step::More, Some(Work::Size { head, tail, search })),
                Some(Place::Beyond(n) | Place::At(n, _)) => {
                    (Step::Done(Reply::new(213, format!("{head}{n}{tail}"))), None)
                }
                Some(Place::Split) => return Err(StoreError::new(550, "a file of more than 2^64 octets")),
            }),
            Work::List(mut listing) => {
                let mut lines = Vec::new();
                let is_over = listing.step(&mut lines)?;
                let rest = (!is_over).then_some(Work::List(listing));
                let step =
                    if is_over { Step::Done(Reply::multi(211, vec!["End.".to_owned()])) } else { Step::Lines(lines) };
                Ok((step, rest))
            }
            Work::Copy(mut copying) => {
                copying.to.sync_if_due(net)?;
                if copying.step()? {
                    return copying.to.publish(net).map(|()| (Step::Done(Reply::new(250, "COPY")), None));
                }
                Ok((Step::More, Some(Work::Copy(copying))))
            }
            Work::Update(mut updating) => {
                updating.target.sync_if_due(net)?;
                if updating.step()? {
                    return updating.finish(net).map(|reply| (Step::Done(reply), None));
                }
                Ok((Step::More, Some(Work::Update(updating))))
            }
        }
    }
}

impl Copying {
    fn step(&mut self) -> StoreResult<bool> {
        let was_counting = self.count.is_some();
        if !is_counted(&mut self.count)? {
            return Ok(false);
        }
        if was_counting && self.store.quota().is_some_and(|q| q.room() < self.size) {
            return Err(StoreError::new(552, "the quota is used up"));
        }
        let mut buffer = vec![0; STEP_OCTETS.min(usize::try_from(self.left).unwrap_or(STEP_OCTETS))];
        let n = if buffer.is_empty() { 0 } else { self.from.read(&mut buffer)? };
        if n == 0 && self.left > 0 {
            return Err(StoreError::new(451, "the file became shorter meanwhile; nothing was copied"));
        }
        self.to.write_all(&buffer[..n]).map_err(|e| StoreError::from(e).of_storing())?;
        self.left -= n as u64;
        Ok(self.left == 0)
    }
}

impl Updating {
    fn step(&mut self) -> StoreResult<bool> {
        if let Some(checking) = &mut self.checking {
            let Some(value) = checking.step()? else { return Ok(false) };
            if value != self.expected {
                return Err(StoreError::new(551, "the checksum of the original differs; nothing was done"));
            }
            self.checking = None;
            // Both read from one position.
            self.original.seek(SeekFrom::Start(0))?;
        }
        if !is_counted(&mut self.count)? {
            return Ok(false);
        }
        let Updating { applier, signals, target, .. } = self;
        applier.step(|| signals.read_signal(), target).map_err(update_error)
    }

    fn finish(self, net: &mut dyn Net) -> StoreResult<Reply> {
        let value = self.target.crc();
        self.target.publish(net)?;
        if let Some(control) = &self.control {
            // The new file is there, which the reply is about; whoever removed the control file before has spared us that.
            let _ = self.store.delete(control);
        }
        Ok(Reply::new(250, format!("UPDT {}", crc_text(value))))
    }
}

impl Session {
    /// True if the client has to take something before the work goes on.
    pub fn is_work_held(&self) -> bool {
        self.work.is_some() && self.control.unread() > UNREAD_LISTING
    }

    /// Goes on with what the session is busy with; false if there is nothing, or nothing to be done now.
    pub fn advance_work(&mut self, net: &mut dyn Net, shared: &mut Shared) -> bool {
        if self.is_work_held() {
            return false;
        }
        let Some(work) = self.work.take() else { return false };
        self.touch(net.now());
        match work.step(net) {
            Ok((step, rest)) => {
                self.work = rest;
                match step {
                    Step::More => {}
                    Step::Lines(lines) => self.control.reply_more(211, &lines),
                    Step::Done(reply) => self.reply(&reply),
                }
            }
            Err(error) => self.reply(&Reply::new(error.code, error.text)),
        }
        if self.work.is_none() {
            shared.note(format!("[{}] done", self.id));
        }
        true
    }
}
