//! Files under a root that cannot be left (scps-fp §17 item 1).
//!
//! Paths of users are made absolute and free of `..` by words; `..` above the root stays at the root. Then every access
//! goes through a descriptor of the root, and a symbolic link that leads outside is an error of the system call.

use crate::crc::Crc;
use crate::error::{StoreError, StoreResult};
use crate::listing::Listing;
use crate::net::{aside, Aside};
use crate::partial::UNSYNCED_MAX;
use crate::private::{id_at, is_held, is_private, name_of_part, new_name, part_name, FileId, Private};
use crate::quota::{Count, Quota};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A folder and the limits of its user.
#[derive(Debug)]
pub struct Store {
    root: Dir,
    quota: Option<Quota>,
}

/// Entries looked at before a folder counts as not empty.
const HIDDEN_MAX: usize = 1000;

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
fn below(path: &str) -> StoreResult<&str> {
    if path.split('/').any(is_private) {
        return Err(StoreError::reserved());
    }
    Ok(relative(path))
}

fn relative(path: &str) -> &str {
    match path.trim_start_matches('/') {
        "" => ".",
        relative => relative,
    }
}

/// As [`below`], but the last name may be that of a file being received: a client looks at what it will continue.
fn below_or_part(path: &str) -> StoreResult<&str> {
    match split(path) {
        Some((folder, name)) if name_of_part(name).is_some() => below(folder).map(|_| relative(path)),
        _ => below(path),
    }
}

/// Folder and name of an absolute virtual path; the root has no name.
pub fn split(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then_some((folder, name))
}

impl Store {
    /// Opens a root; `quota` bounds the octets below it.
    pub fn open(root: &Path, quota: Option<Quota>) -> io::Result<Store> {
        Ok(Store { root: Dir::open_ambient_dir(root, ambient_authority())?, quota })
    }

    /// What is there.
    pub fn metadata(&self, path: &str) -> StoreResult<Metadata> {
        Ok(self.root.metadata(below(path)?)?)
    }

    /// Opens a directory.
    pub fn open_dir(&self, path: &str) -> StoreResult<Dir> {
        Ok(self.root.open_dir(below(path)?)?)
    }

    /// True if anything is there, also a link to nowhere.
    pub fn exists(&self, path: &str) -> bool {
        below(path).is_ok_and(|path| self.root.symlink_metadata(path).is_ok())
    }

    /// Size of a regular file, or of what is received for one.
    pub fn size(&self, path: &str) -> StoreResult<u64> {
        let metadata = self.root.metadata(below_or_part(path)?)?;
        if !metadata.is_file() {
            return Err(StoreError::new(550, "not a regular file"));
        }
        Ok(metadata.len())
    }

    /// Opens a regular file.
    pub fn open_file(&self, path: &str) -> StoreResult<File> {
        below(path)?;
        self.open_file_or_part(path)
    }

    /// Opens a regular file, or what is received for one.
    pub fn open_file_or_part(&self, path: &str) -> StoreResult<File> {
        self.size(path)?;
        Ok(self.root.open(below_or_part(path)?)?)
    }

    /// The folder of a path and the name in it.
    pub fn folder_of(&self, path: &str) -> StoreResult<(Dir, String)> {
        below(path)?;
        self.folder_and_name(path)
    }

    fn folder_and_name(&self, path: &str) -> StoreResult<(Dir, String)> {
        let (folder, name) = split(path).ok_or_else(|| StoreError::new(550, "the root is a directory"))?;
        Ok((self.root.open_dir(below(folder)?)?, name.to_owned()))
    }

    /// Which file is being received for `path`, if there is one, and whether anybody at all is making the file.
    pub fn writer_of(&self, path: &str) -> (Option<FileId>, bool) {
        let Ok((folder, name)) = self.folder_and_name(path) else { return (None, false) };
        let name = name_of_part(&name).unwrap_or(&name);
        let (part, new) = (part_name(name), new_name(name));
        (id_at(&folder, &part), is_held(&folder, &part) || is_held(&folder, &new))
    }

    /// Deletes a file or link, or what was received for one.
    pub fn delete(&self, path: &str) -> StoreResult<()> {
        below_or_part(path)?;
        let (folder, name) = self.folder_and_name(path)?;
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
        // What broken transfers left there is of no use without the folder, and nobody sees it.
        let inside = folder.open_dir(&name)?;
        let hidden: Vec<String> = inside
            .entries()?
            .map(|e| e.map(|e| e.file_name().to_string_lossy().into_owned()))
            .take(HIDDEN_MAX)
            .collect::<io::Result<_>>()?;
        if hidden.iter().all(|n| is_private(n) && !is_held(&inside, n)) {
            hidden.iter().try_for_each(|n| inside.remove_file(n))?;
        }
        Ok(folder.remove_dir(name)?)
    }

    /// Renames.
    pub fn rename(&self, from: &str, to: &str) -> StoreResult<()> {
        let (from_folder, from_name) = self.folder_of(from)?;
        let (to_folder, to_name) = self.folder_of(to)?;
        Ok(from_folder.rename(from_name, &to_folder, to_name)?)
    }

    /// What may be stored here, and is.
    pub fn quota(&self) -> Option<&Quota> {
        self.quota.as_ref()
    }

    /// Counts anew what is stored here, if that is bounded.
    pub fn count(&self) -> StoreResult<Option<Count>> {
        self.quota.as_ref().map(|quota| quota.count(&self.root)).transpose()
    }

    /// Begins a file that appears whole or not at all.
    pub fn make(&self, path: &str, replaces: bool) -> StoreResult<NewFile> {
        let (folder, name) = self.folder_of(path)?;
        let exists = folder.symlink_metadata(&name).ok();
        if exists.as_ref().is_some_and(|m| !replaces || !m.is_file()) {
            return Err(StoreError::new(550, "the new name exists already"));
        }
        let mut file = Private::hold(&folder, &new_name(&name))?;
        if is_held(file.folder(), &part_name(&name)) {
            file.remove()?;
            return Err(StoreError::new(450, "The file is being written by somebody else."));
        }
        // What a killed server left is of no use to anybody.
        file.file().set_len(0)?;
        let quota = self.quota.clone();
        Ok(NewFile { file, name, replaces, quota, crc: Crc::new(), length: 0, unsynced: 0, is_published: false })
    }

    /// Names in a directory, or the file itself, sorted; `*` and `?` in the last part choose. Long with the time now.
    pub fn list(&self, path: &str, long: Option<u64>) -> StoreResult<Listing> {
        if let Ok(metadata) = self.metadata(path) {
            if metadata.is_dir() {
                return Listing::of_folder(self.open_dir(path)?, "*", long);
            }
            let (folder, name) = self.folder_of(path)?;
            return Ok(Listing::of_file(folder, name, long));
        }
        let (folder, pattern) = split(path).ok_or_else(|| StoreError::new(550, "no such directory"))?;
        if !pattern.contains(['*', '?']) {
            return Err(StoreError::new(550, "no such file or directory"));
        }
        let folder = self.open_dir(folder).map_err(|_| StoreError::new(550, "no such file or directory"))?;
        Listing::of_folder(folder, pattern, long)
    }
}

/// A file being made of others (COPY, UPDT); gone again unless published.
#[derive(Debug)]
pub struct NewFile {
    file: Private,
    name: String,
    replaces: bool,
    quota: Option<Quota>,
    crc: Crc,
    length: u64,
    unsynced: u64,
    is_published: bool,
}

impl io::Write for NewFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if let Some(quota) = &self.quota {
            quota.take(octets.len() as u64)?;
        }
        self.length = self.length.saturating_add(octets.len() as u64);
        self.file.file().write_all(octets)?;
        self.crc.update(octets);
        self.unsynced += octets.len() as u64;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NewFile {
    /// Checksum of what was written.
    pub fn crc(&self) -> u32 {
        self.crc.value()
    }

    /// Lets the disk have what was written, if that is much.
    pub fn sync_if_due(&mut self, by: &mut (impl Aside + ?Sized)) -> io::Result<()> {
        if self.unsynced < UNSYNCED_MAX {
            return Ok(());
        }
        self.unsynced = 0;
        let file = self.file.file();
        aside(by, || file.sync_data())?
    }

    /// The file appears under its name.
    pub fn publish(mut self, by: &mut (impl Aside + ?Sized)) -> StoreResult<()> {
        let (file, name, replaces) = (&mut self.file, &self.name, self.replaces);
        aside(by, || {
            file.file().sync_all()?;
            if replaces {
                file.rename(name)
            } else {
                file.publish(name)
            }
        })??;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_published {
            // There is nobody left to tell; the next to make this file begins anew.
            let _ = self.file.remove();
            if let Some(quota) = &self.quota {
                quota.give_back(self.length);
            }
        }
    }
}

/// Seconds since 1970 of a file's last change.
pub fn modified(metadata: &Metadata) -> u64 {
    let time = metadata.modified().map(cap_std::time::SystemTime::into_std);
    time.ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    struct AtOnce;

    impl Aside for AtOnce {}

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
        assert!(store.list("/dir", None).is_err());
        store.delete("/file").unwrap();
        assert!(outside.path().join("secret").exists());
    }

    #[test]
    fn a_whole_file_replaces_nothing_and_leaves_no_trace_of_failure() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path(), None).unwrap();
        std::fs::write(root.path().join("old"), "old").unwrap();
        assert_eq!(store.make("/old", false).unwrap_err().code, 550);
        let mut new = store.make("/new", false).unwrap();
        new.write_all(b"new").unwrap();
        assert_eq!(store.make("/new", false).unwrap_err().code, 450);
        drop(new);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
        let mut new = store.make("/new", false).unwrap();
        new.write_all(b"new").unwrap();
        std::fs::write(root.path().join("new"), b"somebody else's").unwrap();
        assert_eq!(new.publish(&mut AtOnce).unwrap_err().code, 550);
        let mut new = store.make("/old", true).unwrap();
        new.write_all(b"newer").unwrap();
        assert_eq!(std::fs::read(root.path().join("old")).unwrap(), b"old");
        new.publish(&mut AtOnce).unwrap();
        assert_eq!(std::fs::read(root.path().join("old")).unwrap(), b"newer");
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn private_names_are_nobodys() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path(), None).unwrap();
        std::fs::create_dir(root.path().join("d")).unwrap();
        std::fs::write(root.path().join("d/.fppart~f"), b"part").unwrap();
        assert_eq!(store.size("/d/.fppart~f").unwrap(), 4);
        assert!(!store.exists("/d/.fppart~f"));
        for code in [
            store.open_file("/d/.fppart~f").unwrap_err().code,
            store.rename("/d/.fppart~f", "/f").unwrap_err().code,
            store.make_dir("/.fppart~d").unwrap_err().code,
            store.make("/.fpnew~d", true).unwrap_err().code,
            store.size("/.fppart~d/f").unwrap_err().code,
        ] {
            assert_eq!(code, 553);
        }
        store.remove_dir("/d").unwrap();
    }
}
