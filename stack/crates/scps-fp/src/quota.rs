//! What the files below a user's root may have together, counted while octets arrive (scps-fp §17).
//!
//! The files are counted when a transfer starts, a step at a time; what transfers add from then on is added to the count, so
//! that several at once cannot store more than one may.

use crate::error::{StoreError, StoreResult};
use cap_std::fs::{Dir, ReadDir};
use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::rc::Rc;

/// Entries counted between two looks at anything else.
const STEP_ENTRIES: usize = 256;
/// Names of folders walked by one call of the system: together they are shorter than its longest path, 4096 octets.
const NAMES_AT_ONCE: usize = 8;
/// Counts begun anew because a folder went away meanwhile.
const RESTARTS_MAX: u32 = 3;

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
        let mut count = Count {
            quota: self.clone(),
            before: self.used.get(),
            root: root.try_clone()?,
            total: 0,
            levels: Vec::new(),
            open: None,
            restarts: 0,
        };
        count.begin()?;
        Ok(count)
    }
}

/// A folder on the way to the one being read.
#[derive(Debug, Default)]
struct Level {
    /// Its name in the folder above; of the root none.
    name: OsString,
    /// Folders in it that are still to be read.
    folders: Vec<OsString>,
}

/// Files being counted; links are not followed. Folders on the way are remembered by their names: whoever makes a deep tree must
/// not take descriptors from others.
#[derive(Debug)]
pub struct Count {
    quota: Quota,
    /// What was counted as used at the start: transfers may add to it meanwhile.
    before: u64,
    root: Dir,
    total: u64,
    /// From the root to the folder being read.
    levels: Vec<Level>,
    /// The folder being read, or the one just read.
    open: Option<(Dir, ReadDir)>,
    restarts: u32,
}

impl Count {
    fn begin(&mut self) -> StoreResult<()> {
        self.total = 0;
        self.levels = vec![Level::default()];
        self.open = Some((self.root.try_clone()?, self.root.entries()?));
        Ok(())
    }

    /// Counts on; true once everything is counted.
    pub fn step(&mut self) -> StoreResult<bool> {
        let mut left = STEP_ENTRIES;
        while left > 0 {
            left -= 1;
            let Some(entry) = self.open.as_mut().and_then(|(_, entries)| entries.next()) else {
                match self.next_folder() {
                    Ok(Some(names)) => left = left.saturating_sub(names),
                    Ok(None) => {
                        // What was added meanwhile may be counted twice, but is not missed.
                        let added = self.quota.used.get().saturating_sub(self.before);
                        self.quota.used.set(self.total.saturating_add(added));
                        return Ok(true);
                    }
                    // Renamed or removed since its name was read.
                    Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                        self.restarts += 1;
                        if self.restarts > RESTARTS_MAX {
                            return Err(StoreError::new(450, "the folders change while they are counted"));
                        }
                        self.begin()?;
                    }
                    Err(e) => return Err(e.into()),
                }
                continue;
            };
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if let Some(level) = self.levels.last_mut() {
                    level.folders.push(entry.file_name());
                }
            } else if kind.is_file() {
                // A file may go while its folder is read.
                self.total = self.total.saturating_add(entry.metadata().map_or(0, |m| m.len()));
            }
        }
        Ok(false)
    }

    /// Opens the next folder; tells how many names were walked for it, or `None` if there is none.
    fn next_folder(&mut self) -> io::Result<Option<usize>> {
        let mut above = self.open.take().map(|(dir, _)| dir);
        let name = loop {
            let Some(level) = self.levels.last_mut() else { return Ok(None) };
            if let Some(name) = level.folders.pop() {
                break name;
            }
            self.levels.pop();
            above = None;
        };
        let (above, walked) = match above {
            Some(above) => (above, 0),
            None => (self.walk()?, self.levels.len()),
        };
        let folder = above.open_dir(&name)?;
        let entries = folder.entries()?;
        self.levels.push(Level { name, folders: Vec::new() });
        self.open = Some((folder, entries));
        Ok(Some(walked))
    }

    /// The folder of the last level, from the root: names and paths have a longest length, trees have none.
    fn walk(&self) -> io::Result<Dir> {
        let mut dir = self.root.try_clone()?;
        for names in self.levels[1..].chunks(NAMES_AT_ONCE) {
            dir = dir.open_dir(names.iter().map(|level| &level.name).collect::<PathBuf>())?;
        }
        Ok(dir)
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

    /// A tree of 1,100 folders in one another, and a branch beside the last: no path leads there, and no descriptor is kept for
    /// each level.
    #[test]
    fn a_deep_tree_is_counted_with_few_descriptors() {
        const LEVELS: usize = 1100;
        let root = tempfile::tempdir().unwrap();
        let mut dir = Dir::open_ambient_dir(root.path(), cap_std::ambient_authority()).unwrap();
        let top = dir.try_clone().unwrap();
        let name = "a-name-of-twenty-oct";
        for level in 0..LEVELS {
            if level % 100 == 0 {
                dir.create_dir("beside").unwrap();
                dir.write("beside/f", [0; 7]).unwrap();
            }
            dir.create_dir(name).unwrap();
            dir = dir.open_dir(name).unwrap();
        }
        dir.write("f", [0; 30]).unwrap();
        let quota = Quota::of(1000);
        let mut count = quota.count(&top).unwrap();
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let (before, mut most) = (descriptors(), 0);
        while !count.step().unwrap() {
            most = most.max(descriptors());
        }
        assert_eq!(quota.room(), 1000 - 30 - 11 * 7);
        // Other tests of this process have files open too.
        assert!(most < before + 100, "{before} descriptors before, {most} meanwhile");
        // Removed from above: what removes a whole tree takes a descriptor for each level.
        let (first, rest) = (root.path().join(name), root.path().join("rest"));
        while std::fs::rename(first.join(name), &rest).is_ok() {
            std::fs::remove_dir_all(&first).unwrap();
            std::fs::rename(&rest, &first).unwrap();
        }
    }

    #[test]
    fn a_folder_that_goes_away_is_no_error() {
        let root = tempfile::tempdir().unwrap();
        for i in 0..300 {
            std::fs::create_dir(root.path().join(i.to_string())).unwrap();
        }
        std::fs::write(root.path().join("0/f"), [0; 300]).unwrap();
        let dir = Dir::open_ambient_dir(root.path(), cap_std::ambient_authority()).unwrap();
        let quota = Quota::of(1000);
        let mut count = quota.count(&dir).unwrap();
        assert!(!count.step().unwrap());
        // Of 300 folders some names were read, and no folder yet.
        std::fs::rename(root.path().join("0"), root.path().join("moved")).unwrap();
        (1..300).for_each(|i| std::fs::remove_dir(root.path().join(i.to_string())).unwrap());
        while !count.step().unwrap() {}
        assert_eq!(quota.room(), 700);
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
