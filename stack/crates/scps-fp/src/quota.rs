//! What the files below a user's root may have together, counted while octets arrive (scps-fp §17).
//!
//! The files are counted when a transfer starts, a step at a time; what transfers add from then on is added to the count, so
//! that several at once cannot store more than one may.

use crate::store::StoreResult;
use cap_std::fs::{Dir, ReadDir};
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// Entries counted between two looks at anything else.
const STEP_ENTRIES: usize = 256;

/// A bound, and what is used of it; clones share the count.
#[derive(Clone, Debug)]
pub struct Quota {
    limit: u64,
    used: Rc<Cell<u64>>,
}

impl Quota {
    /// Nothing is used yet.
    pub fn of(limit: u64) -> Quota {
        Quota { limit, used: Rc::default() }
    }

    /// The same count with another bound.
    #[must_use]
    pub fn with_limit(&self, limit: u64) -> Quota {
        Quota { limit, used: Rc::clone(&self.used) }
    }

    /// Octets that may still be stored.
    pub fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used.get())
    }

    /// Counts octets about to be stored.
    pub fn take(&self, octets: u64) -> io::Result<()> {
        if octets > self.room() {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.used.set(self.used.get().saturating_add(octets));
        Ok(())
    }

    /// Octets that are gone.
    pub fn give_back(&self, octets: u64) {
        self.used.set(self.used.get().saturating_sub(octets));
    }

    /// Counts anew what is below `root`.
    pub fn count(&self, root: &Dir) -> StoreResult<Count> {
        Ok(Count { quota: self.clone(), before: self.used.get(), total: 0, open: vec![root.entries()?] })
    }
}

/// Files being counted; links are not followed.
#[derive(Debug)]
pub struct Count {
    quota: Quota,
    /// What was counted as used at the start: transfers may add to it meanwhile.
    before: u64,
    total: u64,
    open: Vec<ReadDir>,
}

impl Count {
    /// Counts on; true once everything is counted.
    pub fn step(&mut self) -> StoreResult<bool> {
        for _ in 0..STEP_ENTRIES {
            let Some(folder) = self.open.last_mut() else {
                // What was added meanwhile may be counted twice, but is not missed.
                let added = self.quota.used.get().saturating_sub(self.before);
                self.quota.used.set(self.total.saturating_add(added));
                return Ok(true);
            };
            let Some(entry) = folder.next() else {
                self.open.pop();
                continue;
            };
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.open.push(entry.open_dir()?.entries()?);
            } else if kind.is_file() {
                // A file may go while its folder is read.
                self.total = self.total.saturating_add(entry.metadata().map_or(0, |m| m.len()));
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_counts_and_what_arrives_is_added() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("d")).unwrap();
        std::fs::write(root.path().join("d/f"), [0; 300]).unwrap();
        let dir = Dir::open_ambient_dir(root.path(), cap_std::ambient_authority()).unwrap();
        let quota = Quota::of(1000);
        let mut count = quota.count(&dir).unwrap();
        quota.take(100).unwrap();
        while !count.step().unwrap() {}
        assert_eq!(quota.room(), 600);
        let other = quota.with_limit(500);
        assert!(other.take(101).is_err());
        other.take(100).unwrap();
        assert_eq!(quota.room(), 500);
        quota.give_back(300);
        assert_eq!((quota.room(), other.room()), (800, 300));
        assert_eq!(quota.with_limit(100).room(), 0);
    }

    #[test]
    fn many_files_are_counted_in_steps() {
        let root = tempfile::tempdir().unwrap();
        for i in 0..600 {
            std::fs::write(root.path().join(i.to_string()), b"x").unwrap();
        }
        let dir = Dir::open_ambient_dir(root.path(), cap_std::ambient_authority()).unwrap();
        let quota = Quota::of(1000);
        let mut count = quota.count(&dir).unwrap();
        let steps = std::iter::from_fn(|| (!count.step().unwrap()).then_some(())).count();
        assert_eq!((steps, quota.room()), (2, 400));
    }
}
