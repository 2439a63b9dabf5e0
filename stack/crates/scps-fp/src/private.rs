//! Files in users' folders that belong to transfers: names that no user can have, each locked while it is used.
//!
//! A name may be reached by two paths, through a link or after its folder was renamed, and by two servers. So nothing here
//! trusts a path: a private file is its descriptor, the folder is a descriptor, the lock is on the file (flock), and before
//! and after the last rename the name must still lead to that file.

use crate::error::{StoreError, StoreResult};
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions};
use rustix::fs::{flock, fsync, openat, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, ErrorKind};

/// What the name of a file being received begins with.
const PART: &str = ".fppart~";
/// What the name of a file being made from others (COPY, UPDT) begins with.
const NEW: &str = ".fpnew~";
/// How often a name is looked up again that others make and remove at the same time.
const TRIES: usize = 16;

/// Which file this is, whatever its names are: device and inode.
pub type FileId = (u64, u64);

/// The private name of what is received for `name`.
pub fn part_name(name: &str) -> String {
    format!("{PART}{name}")
}

/// The private name of what is made for `name`.
pub fn new_name(name: &str) -> String {
    format!("{NEW}{name}")
}

/// The path of what is received for `path`.
pub fn part_path(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/{}", part_name(name)),
        None => part_name(path),
    }
}

/// The name that a file being received will have, if `name` is that of such a file.
pub fn name_of_part(name: &str) -> Option<&str> {
    name.strip_prefix(PART)
}

/// True for names that belong to transfers; users neither see nor make them.
pub fn is_private(name: &str) -> bool {
    name.starts_with(PART) || name.starts_with(NEW)
}

fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// The regular file of this name, links not followed.
pub fn id_at(folder: &Dir, name: &str) -> Option<FileId> {
    folder.symlink_metadata(name).ok().filter(Metadata::is_file).map(|m| id_of(&m))
}

fn busy() -> StoreError {
    StoreError::new(450, "The file is being written by somebody else.")
}

/// True if somebody, in this process or another, holds the private file of this name.
pub fn is_held(folder: &Dir, name: &str) -> bool {
    if id_at(folder, name).is_none() {
        return false;
    }
    let Ok(file) = folder.open(name) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// A private file, held until it is dropped.
#[derive(Debug)]
pub struct Private {
    folder: Dir,
    name: String,
    file: File,
    id: FileId,
    existed: bool,
}

impl Private {
    /// Opens or makes the file and locks it; 450 if somebody else holds it. What a dead holder left is taken over as it is.
    pub fn hold(folder: &Dir, name: &str) -> StoreResult<Private> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        for _ in 0..TRIES {
            let (file, existed) = match folder.symlink_metadata(name) {
                Ok(metadata) if !metadata.is_file() => {
                    return Err(StoreError::new(451, "something else has the name of the partial file"));
                }
                Ok(_) => (folder.open_with(name, &options), true),
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    (folder.open_with(name, options.clone().create_new(true)), false)
                }
                Err(e) => return Err(e.into()),
            };
            let file = match file {
                Ok(file) => file,
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists) => continue,
                Err(e) => return Err(e.into()),
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(busy()),
                Err(e) => return Err(io::Error::from(e).into()),
            }
            let id = id_of(&file.metadata()?);
            let private = Private { folder: folder.try_clone()?, name: name.to_owned(), file, id, existed };
            // Whoever held it may have renamed or removed it before we got the lock.
            if private.is_in_place() {
                return Ok(private);
            }
        }
        Err(busy())
    }

    /// Its contents.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The folder it is in, wherever that is now.
    pub fn folder(&self) -> &Dir {
        &self.folder
    }

    /// Which file it is.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// True if it was there before.
    pub fn existed(&self) -> bool {
        self.existed
    }

    fn is_in_place(&self) -> bool {
        id_at(&self.folder, &self.name) == Some(self.id)
    }

    fn demand_place(&self) -> StoreResult<()> {
        if self.is_in_place() {
            Ok(())
        } else {
            Err(StoreError::new(451, "the partial file was removed or replaced"))
        }
    }

    /// Gives it the name `target`, replacing what has it. An error means that `target` is not this file, or that it may not be
    /// after a power cut.
    pub fn rename(&self, target: &str) -> StoreResult<()> {
        self.demand_place()?;
        self.folder.rename(&self.name, &self.folder, target)?;
        self.sync_folder()?;
        if id_at(&self.folder, target) == Some(self.id) {
            Ok(())
        } else {
            Err(StoreError::new(451, "the file was replaced by somebody else"))
        }
    }

    /// Gives it the name `target` if nothing has it.
    pub fn publish(&self, target: &str) -> StoreResult<()> {
        self.demand_place()?;
        // A link, unlike a rename, never replaces.
        self.folder.hard_link(&self.name, &self.folder, target)?;
        self.remove()?;
        self.sync_folder()?;
        if id_at(&self.folder, target) == Some(self.id) {
            Ok(())
        } else {
            Err(StoreError::new(451, "the file was replaced by somebody else"))
        }
    }

    /// The name is on the disk too, not only the file.
    fn sync_folder(&self) -> StoreResult<()> {
        // The folder's own descriptor is a place only.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = openat(&self.folder, ".", flags, Mode::empty()).and_then(fsync);
        match synced {
            // Some file systems cannot, and have nothing to write.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(e) => Err(StoreError::from(io::Error::from(e)).of_storing()),
        }
    }

    /// Removes it, unless the name is somebody else's by now.
    pub fn remove(&self) -> StoreResult<()> {
        if self.is_in_place() {
            self.folder.remove_file(&self.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn open(path: &std::path::Path) -> Dir {
        Dir::open_ambient_dir(path, cap_std::ambient_authority()).unwrap()
    }

    #[test]
    fn a_private_file_has_one_holder_and_is_taken_over_when_he_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Private::hold(&open(folder.path()), &part_name("f")).unwrap();
        first.file().write_all(b"abc").unwrap();
        assert!(is_held(&open(folder.path()), ".fppart~f"));
        assert_eq!(Private::hold(&open(folder.path()), &part_name("f")).unwrap_err().code, 450);
        drop(first);
        assert!(!is_held(&open(folder.path()), ".fppart~f"));
        let second = Private::hold(&open(folder.path()), &part_name("f")).unwrap();
        assert!(second.existed());
        second.rename("f").unwrap();
        assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"abc");
    }

    #[test]
    fn what_was_replaced_is_neither_renamed_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let private = Private::hold(&open(folder.path()), &part_name("f")).unwrap();
        let path = folder.path().join(".fppart~f");
        std::fs::rename(&path, folder.path().join("away")).unwrap();
        std::fs::write(&path, b"somebody else's").unwrap();
        assert_eq!(private.rename("f").unwrap_err().code, 451);
        assert_eq!(private.publish("f").unwrap_err().code, 451);
        private.remove().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"somebody else's");
        assert!(!folder.path().join("f").exists());
    }

    #[test]
    fn a_link_with_a_private_name_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine"), b"mine").unwrap();
        std::os::unix::fs::symlink("mine", folder.path().join(".fppart~f")).unwrap();
        assert_eq!(Private::hold(&open(folder.path()), &part_name("f")).unwrap_err().code, 451);
        assert!(!is_held(&open(folder.path()), ".fppart~f"));
    }

    #[test]
    fn parts_lie_beside_their_targets() {
        assert_eq!(
            (part_path("a/b"), part_path("b"), part_path("/b")),
            ("a/.fppart~b".into(), ".fppart~b".into(), "/.fppart~b".into())
        );
        assert_eq!(name_of_part(".fppart~b"), Some("b"));
        assert!(is_private(".fpnew~b") && !is_private("b.fppart") && !is_private(".b.fpnew"));
    }
}
