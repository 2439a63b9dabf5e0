//! Files under a root that cannot be left (FP notes §17 item 1).
//!
//! Paths of users are made absolute and free of `..` by words; `..` above the root stays at the root. Then every access
//! goes through a descriptor of the root, and a symbolic link that leads outside is an error of the system call.

use crate::crc::crc_of;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A folder and the limits of its user.
#[derive(Debug)]
pub struct Store {
    root: Dir,
    key: String,
    quota: Option<u64>,
}

/// Why a file operation failed, as a reply code and a text without host paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreError {
    /// Reply code.
    pub code: u16,
    /// What happened.
    pub text: String,
}

/// Linux's number; `ErrorKind` has a name for it from Rust 1.87 on only.
const ENAMETOOLONG: i32 = 36;

impl StoreError {
    /// An error of our own making.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        StoreError { code, text: text.into() }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as K;
        let (code, text) = match error.kind() {
            K::NotFound => (550, "no such file or directory"),
            K::AlreadyExists => (550, "it exists already"),
            K::DirectoryNotEmpty => (550, "the directory is not empty"),
            K::NotADirectory => (550, "not a directory"),
            K::IsADirectory => (550, "a directory"),
            K::StorageFull => (452, "the disk is full"),
            K::QuotaExceeded => (552, "the quota is used up"),
            K::FileTooLarge => (552, "the file would be too large"),
            _ if error.raw_os_error() == Some(ENAMETOOLONG) => (553, "the name is too long"),
            K::PermissionDenied => (550, "not permitted"),
            _ => (550, "not possible"),
        };
        StoreError { code, text: text.to_owned() }
    }
}

/// Result of a file operation.
pub type StoreResult<T> = Result<T, StoreError>;

/// Makes `argument` absolute from `cwd`, without `.`, `..` or empty parts. `..` at the root stays there.
pub fn resolve(cwd: &str, argument: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let base = if argument.starts_with('/') { "" } else { cwd };
    for part in base.split('/').chain(argument.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// An absolute virtual path as seen from the root's descriptor.
fn below(path: &str) -> &str {
    match path.trim_start_matches('/') {
        "" => ".",
        relative => relative,
    }
}

/// Folder and name of an absolute virtual path; the root has no name.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then_some((folder, name))
}

impl Store {
    /// Opens a root; `quota` bounds the octets below it.
    pub fn open(root: &Path, quota: Option<u64>) -> io::Result<Store> {
        let key = std::fs::canonicalize(root)?.display().to_string();
        Ok(Store { root: Dir::open_ambient_dir(root, ambient_authority())?, key, quota })
    }

    /// A name for a file that is the same for all users who share the root.
    pub fn lock_name(&self, path: &str) -> String {
        format!("{}{path}", self.key)
    }

    /// What is there.
    pub fn metadata(&self, path: &str) -> StoreResult<Metadata> {
        Ok(self.root.metadata(below(path))?)
    }

    /// True if a directory is there.
    pub fn is_dir(&self, path: &str) -> bool {
        self.metadata(path).is_ok_and(|m| m.is_dir())
    }

    /// True if anything is there, also a link to nowhere.
    pub fn exists(&self, path: &str) -> bool {
        self.root.symlink_metadata(below(path)).is_ok()
    }

    /// Size of a regular file.
    pub fn size(&self, path: &str) -> StoreResult<u64> {
        let metadata = self.metadata(path)?;
        if !metadata.is_file() {
            return Err(StoreError::new(550, "not a regular file"));
        }
        Ok(metadata.len())
    }

    /// Opens a regular file.
    pub fn open_file(&self, path: &str) -> StoreResult<File> {
        self.size(path)?;
        Ok(self.root.open(below(path))?)
    }

    /// Checksum and length of a regular file.
    pub fn checksum(&self, path: &str) -> StoreResult<(u32, u64)> {
        Ok(crc_of(self.open_file(path)?)?)
    }

    /// The folder of a path and the name in it.
    pub fn folder_of(&self, path: &str) -> StoreResult<(Dir, String)> {
        let (folder, name) = split(path).ok_or_else(|| StoreError::new(550, "the root is a directory"))?;
        Ok((self.root.open_dir(below(folder))?, name.to_owned()))
    }

    /// Deletes a file or link.
    pub fn delete(&self, path: &str) -> StoreResult<()> {
        let (folder, name) = self.folder_of(path)?;
        if folder.symlink_metadata(&name)?.is_dir() {
            return Err(StoreError::new(550, "a directory"));
        }
        Ok(folder.remove_file(name)?)
    }

    /// Makes a directory.
    pub fn make_dir(&self, path: &str) -> StoreResult<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(folder.create_dir(name)?)
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, path: &str) -> StoreResult<()> {
        let (folder, name) = self.folder_of(path)?;
        Ok(folder.remove_dir(name)?)
    }

    /// Renames.
    pub fn rename(&self, from: &str, to: &str) -> StoreResult<()> {
        let (from_folder, from_name) = self.folder_of(from)?;
        let (to_folder, to_name) = self.folder_of(to)?;
        Ok(from_folder.rename(from_name, &to_folder, to_name)?)
    }

    /// Octets that may still be stored here.
    pub fn room(&self) -> StoreResult<Option<u64>> {
        let Some(quota) = self.quota else { return Ok(None) };
        Ok(Some(quota.saturating_sub(used(&self.root)?)))
    }

    /// Makes a file that appears whole or not at all, and only where nothing is yet.
    pub fn create_whole(&self, path: &str, write: impl FnOnce(&mut File) -> StoreResult<()>) -> StoreResult<()> {
        let (folder, name) = self.folder_of(path)?;
        if folder.symlink_metadata(&name).is_ok() {
            return Err(StoreError::new(550, "the new name exists already"));
        }
        let temporary = format!(".{name}.fpnew");
        // What a killed server left is of no use to anybody.
        let _ = folder.remove_file(&temporary);
        let mut file = folder.open_with(&temporary, OpenOptions::new().read(true).write(true).create_new(true))?;
        let result = write(&mut file)
            .and_then(|()| Ok(file.sync_all()?))
            // A link, unlike a rename, never replaces.
            .and_then(|()| Ok(folder.hard_link(&temporary, &folder, &name)?));
        let removed = folder.remove_file(&temporary);
        result?;
        Ok(removed?)
    }

    /// Names in a directory, or the file itself, sorted; `*` and `?` in the last part choose.
    pub fn list(&self, path: &str) -> StoreResult<Vec<Entry>> {
        if let Ok(metadata) = self.metadata(path) {
            if !metadata.is_dir() {
                let name = split(path).map_or("/", |(_, name)| name);
                return Ok(vec![Entry::new(name.to_owned(), &metadata)]);
            }
            return self.entries(path, "*");
        }
        let (folder, pattern) = split(path).ok_or_else(|| StoreError::new(550, "no such directory"))?;
        let folder = if folder.is_empty() { "/" } else { folder };
        if !pattern.contains(['*', '?']) || !self.is_dir(folder) {
            return Err(StoreError::new(550, "no such file or directory"));
        }
        self.entries(folder, pattern)
    }

    fn entries(&self, folder: &str, pattern: &str) -> StoreResult<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in self.root.read_dir(below(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if matches(pattern.as_bytes(), name.as_bytes()) {
                if let Ok(metadata) = entry.metadata() {
                    entries.push(Entry::new(name, &metadata));
                }
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}

/// Octets of all files below a directory; links are not followed.
fn used(dir: &Dir) -> io::Result<u64> {
    let mut total = 0;
    for entry in dir.entries()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            total += used(&entry.open_dir()?)?;
        } else if kind.is_file() {
            total += entry.metadata()?.len();
        }
    }
    Ok(total)
}

/// Shell wildcards `*` and `?`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Seconds since 1970 of a file's last change.
pub fn modified(metadata: &Metadata) -> u64 {
    let time = metadata.modified().map(cap_std::time::SystemTime::into_std);
    time.ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_secs())
}

/// One line of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name within its directory.
    pub name: String,
    is_dir: bool,
    mode: u32,
    links: u64,
    size: u64,
    modified: u64,
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Listings show the year instead of the time for files older than this.
const RECENT_S: u64 = 180 * 86_400;

impl Entry {
    fn new(name: String, metadata: &Metadata) -> Self {
        Entry {
            name,
            is_dir: metadata.is_dir(),
            mode: metadata.mode(),
            links: metadata.nlink(),
            size: metadata.len(),
            modified: modified(metadata),
        }
    }

    /// The long form, without line end.
    pub fn long(&self, unix_time: u64) -> String {
        let bits = "rwxrwxrwx".chars().enumerate();
        let mode: String = bits.map(|(i, c)| if self.mode & (0o400 >> i) == 0 { '-' } else { c }).collect();
        let (year, month, day, hour, minute, _) = calendar(self.modified);
        let when =
            if self.modified + RECENT_S > unix_time { format!("{hour:02}:{minute:02}") } else { format!(" {year:04}") };
        let (kind, month) = (if self.is_dir { 'd' } else { '-' }, MONTHS[month as usize - 1]);
        format!("{kind}{mode} {:3} fp       fp       {:12} {month} {day:2} {when} {}", self.links, self.size, self.name)
    }
}

/// Year, month 1..12, day, hour, minute, second of a Unix time (proleptic Gregorian, UTC).
pub fn calendar(unix_time: u64) -> (u64, u64, u64, u64, u64, u64) {
    let (days, second) = (unix_time / 86_400, unix_time % 86_400);
    // Days since 0000-03-01; years then end in February and leap days come last.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    (year, month, day, second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_never_rise_above_the_root() {
        assert_eq!(resolve("/a/b", "../../../../etc/passwd"), "/etc/passwd");
        assert_eq!(resolve("/a/b", ".."), "/a");
        assert_eq!(resolve("/a", "/../x/./y//z/"), "/x/y/z");
        assert_eq!(resolve("/", ".."), "/");
    }

    #[test]
    fn links_that_lead_outside_are_refused() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("dir")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), root.path().join("file")).unwrap();
        std::os::unix::fs::symlink("../../../../../../../../etc/passwd", root.path().join("up")).unwrap();
        let store = Store::open(root.path(), None).unwrap();
        for path in ["/file", "/dir/secret", "/up"] {
            assert_eq!(store.open_file(path).unwrap_err().code, 550, "{path}");
        }
        assert!(store.make_dir("/dir/new").is_err());
        assert!(store.list("/dir").is_err());
        store.delete("/file").unwrap();
        assert!(outside.path().join("secret").exists());
    }

    #[test]
    fn a_whole_file_replaces_nothing_and_leaves_no_trace_of_failure() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path(), None).unwrap();
        std::fs::write(root.path().join("old"), "old").unwrap();
        assert_eq!(store.create_whole("/old", |_| Ok(())).unwrap_err().code, 550);
        assert!(store.create_whole("/new", |_| Err(StoreError::new(551, "no"))).is_err());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read(root.path().join("old")).unwrap(), b"old");
    }

    #[test]
    fn wildcards_choose_names() {
        assert!(matches(b"*.dat", b"a.dat") && matches(b"?.dat", b"a.dat") && matches(b"*a*b*", b"xxayybzz"));
        assert!(!matches(b"*.dat", b"a.txt") && !matches(b"?", b"") && !matches(b"a*b", b"abc"));
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(calendar(0), (1970, 1, 1, 0, 0, 0));
        assert_eq!(calendar(951_827_696), (2000, 2, 29, 12, 34, 56));
        assert_eq!(calendar(1_735_689_599), (2024, 12, 31, 23, 59, 59));
    }

    #[test]
    fn what_is_stored_counts_against_the_quota() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("d")).unwrap();
        std::fs::write(root.path().join("d/f"), [0; 300]).unwrap();
        assert_eq!(Store::open(root.path(), Some(1000)).unwrap().room().unwrap(), Some(700));
        assert_eq!(Store::open(root.path(), Some(100)).unwrap().room().unwrap(), Some(0));
    }
}
