//! A file being received, at either end (scps-fp §9.2, §10).
//!
//! Octets go to a private file beside the target ([`crate::private`]), so the target is whole until the last octet is safely
//! stored. How a transfer ends decides what becomes of the two: complete and kept replace the target, undone leaves it, set
//! aside leaves both for a later restart. A killed process leaves both too.

use crate::ascii::{wire_length, Decoder, Place};
use crate::command::FileType;
use crate::crc::Crc;
use crate::error::{StoreError, StoreResult};
use crate::net::{aside, Aside};
use crate::private::{is_held, is_private, new_name, part_name, FileId, Private};
use crate::quota::Quota;
pub use crate::search::Base;
use crate::search::{beyond, preparation, search_step, Preparation, STEP_OCTETS};
use cap_std::fs::{Dir, File};
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Octets that may wait for the disk, so that the last of them do not take long.
pub const UNSYNCED_MAX: u64 = 16 << 20;

/// How much may be stored.
#[derive(Clone, Default, Debug)]
pub struct Bounds {
    /// Of all files below the root together.
    pub quota: Option<Quota>,
    /// Octets the file may have.
    pub size: Option<u64>,
}

/// A file being received.
#[derive(Debug)]
pub struct Partial {
    part: Private,
    name: String,
    preparation: Preparation,
    file_type: FileType,
    decoder: Decoder,
    /// Wire octets before the first of this connection.
    start: u64,
    /// File octets before the first of this connection.
    start_position: u64,
    continues_part: bool,
    received: u64,
    /// Wire octets of this connection that are in the file.
    settled: u64,
    position: u64,
    /// Octets the part has on the disk.
    length: u64,
    unsynced: u64,
    bounds: Bounds,
    crc: Crc,
    scratch: Vec<u8>,
}

/// Wire octets of a stored file.
pub fn stored_size(file: &File, file_type: FileType) -> StoreResult<u64> {
    match file_type {
        FileType::Image => Ok(file.metadata()?.len()),
        FileType::Ascii => Ok(wire_length(file)?),
    }
}

impl Partial {
    /// Starts or continues, and prepares everything at once; see [`Partial::begin`].
    pub fn begin_prepared(
        folder: &Dir,
        name: &str,
        base: Base,
        file_type: FileType,
        bounds: Bounds,
    ) -> StoreResult<Partial> {
        let mut partial = Partial::begin(folder, name, base, file_type, bounds)?;
        while !partial.prepare()? {}
        Ok(partial)
    }

    /// Starts or continues. A marker continues the part beside the target if that is long enough, otherwise a copy of
    /// the target's beginning. Nothing is taken before [`Partial::prepare`] has said that it is ready.
    pub fn begin(folder: &Dir, name: &str, base: Base, file_type: FileType, bounds: Bounds) -> StoreResult<Partial> {
        if is_private(name) {
            return Err(StoreError::reserved());
        }
        if folder.metadata(name).is_ok_and(|m| !m.is_file()) {
            return Err(StoreError::new(550, "not a regular file"));
        }
        let mut part = Private::hold(folder, &part_name(name))?;
        let preparation = if is_held(part.folder(), &new_name(name)) {
            Err(StoreError::new(450, "The file is being made by somebody else."))
        } else {
            preparation(&mut part, name, base, file_type)
        };
        let preparation = match preparation {
            Ok(preparation) => preparation,
            Err(error) => {
                if !part.existed() {
                    part.remove()?;
                }
                return Err(error);
            }
        };
        let length = part.file().metadata()?.len();
        Ok(Partial {
            part,
            name: name.to_owned(),
            preparation,
            file_type,
            decoder: Decoder::default(),
            start: 0,
            start_position: 0,
            continues_part: false,
            received: 0,
            settled: 0,
            position: 0,
            length,
            unsynced: 0,
            bounds,
            crc: Crc::new(),
            scratch: Vec::new(),
        })
    }

    /// Which file the part is.
    pub fn id(&self) -> FileId {
        self.part.id()
    }

    /// Refuses a file of which it is known that it will be too large: `declared` is its whole length.
    pub fn check_declared(&self, declared: Option<u64>) -> StoreResult<()> {
        let (Some(quota), Some(declared)) = (&self.bounds.quota, declared) else { return Ok(()) };
        if declared.saturating_sub(self.length) > quota.room() {
            return Err(StoreError::from(io::Error::from(io::ErrorKind::QuotaExceeded)));
        }
        Ok(())
    }

    /// Takes a step towards the first octet; true once it can be taken.
    pub fn prepare(&mut self) -> StoreResult<bool> {
        match &mut self.preparation {
            Preparation::Done => return Ok(true),
            Preparation::Empty => {
                self.empty()?;
                return self.start_at(0, 0, Preparation::Done);
            }
            Preparation::Find { marker, file_type, part, target } => {
                let marker = *marker;
                if let Some(search) = part {
                    let Some(place) = search_step(search, marker, *file_type)? else { return Ok(false) };
                    if let Place::At(position, _) = place {
                        self.continues_part = true;
                        return self.start_at(marker, position, Preparation::Done);
                    }
                    *part = None;
                    return Ok(false);
                }
                let Some(search) = target else { return Err(beyond()) };
                let Some(place) = search_step(search, marker, *file_type)? else { return Ok(false) };
                let (wire, position) = match place {
                    Place::At(position, _) => (marker, position),
                    // The end of the file was looked for.
                    Place::Beyond(length) if marker == u64::MAX => (length, search.length),
                    Place::Beyond(_) => return Err(beyond()),
                    Place::Split => return Err(StoreError::new(554, "the marker lies between CR and LF")),
                };
                let mut from = search.file.try_clone()?;
                from.seek(SeekFrom::Start(0))?;
                self.empty()?;
                return self.start_at(wire, position, Preparation::Copy { from, left: position });
            }
            Preparation::Copy { from, left } => {
                let mut buffer = vec![0; STEP_OCTETS.min(usize::try_from(*left).unwrap_or(STEP_OCTETS))];
                if !buffer.is_empty() {
                    let n = from.read(&mut buffer)?;
                    if n == 0 {
                        return Err(StoreError::new(451, "the file changed while it was copied"));
                    }
                    *left -= n as u64;
                    let end = self.position.saturating_add(n as u64);
                    self.append(&buffer[..n], end)?;
                }
            }
        }
        if matches!(self.preparation, Preparation::Copy { left: 0, .. }) {
            self.preparation = Preparation::Done;
            return Ok(true);
        }
        Ok(false)
    }

    /// Makes the part empty, whatever it was.
    fn empty(&mut self) -> StoreResult<()> {
        self.part.file().set_len(0)?;
        if let Some(quota) = &self.bounds.quota {
            quota.give_back(self.length);
        }
        self.length = 0;
        Ok(())
    }

    fn start_at(&mut self, wire: u64, position: u64, next: Preparation) -> StoreResult<bool> {
        self.start = wire;
        self.start_position = position;
        let is_ready = matches!(next, Preparation::Done);
        // What is copied first counts from the start of the file.
        self.position = if is_ready { position } else { 0 };
        self.part.file().seek(SeekFrom::Start(self.position))?;
        self.preparation = next;
        Ok(is_ready)
    }

    /// Takes octets of the wire.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.crc.update(octets);
        if self.file_type == FileType::Image {
            self.store_octets(octets)?;
        } else {
            let mut out = std::mem::take(&mut self.scratch);
            out.clear();
            self.decoder.decode(octets, &mut out);
            let result = self.store_octets(&out);
            self.scratch = out;
            result?;
        }
        self.received += octets.len() as u64;
        self.settled = self.received - self.decoder.held();
        Ok(())
    }

    fn store_octets(&mut self, octets: &[u8]) -> io::Result<()> {
        let end = self.position.checked_add(octets.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        if self.bounds.size.is_some_and(|l| end > l) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.append(octets, end)
    }

    fn append(&mut self, octets: &[u8], end: u64) -> io::Result<()> {
        let growth = end.saturating_sub(self.length);
        if let Some(quota) = &self.bounds.quota {
            quota.take(growth)?;
        }
        if let Err(error) = self.part.file().write_all(octets) {
            // Some of them may be there; what is not counted must not stay. If that fails too, the next count tells.
            let _ = self.part.file().set_len(self.length);
            if let Some(quota) = &self.bounds.quota {
                quota.give_back(growth);
            }
            return Err(error);
        }
        self.position = end;
        self.length += growth;
        self.unsynced += octets.len() as u64;
        Ok(())
    }

    /// Lets the disk have what was taken, if that is much.
    pub fn sync_if_due(&mut self, by: &mut (impl Aside + ?Sized)) -> io::Result<()> {
        if self.unsynced < UNSYNCED_MAX {
            return Ok(());
        }
        self.unsynced = 0;
        let file = self.part.file();
        aside(by, || file.sync_data())?
    }

    /// Fills a gap of `length` wire octets (best effort).
    pub fn fill(&mut self, length: u64, octet: u8) -> io::Result<()> {
        let chunk = vec![octet; usize::try_from(length.min(65_536)).unwrap_or(65_536)];
        let mut left = length;
        while left > 0 {
            let n = left.min(chunk.len() as u64);
            self.write(&chunk[..n as usize])?;
            left -= n;
        }
        Ok(())
    }

    /// Wire octets of this connection.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Wire octets of the file so far, all stored.
    pub fn stored(&self) -> u64 {
        self.start.saturating_add(self.settled)
    }

    /// Checksum of this connection's octets.
    pub fn crc(&self) -> u32 {
        self.crc.value()
    }

    fn settle(&mut self, by: &mut (impl Aside + ?Sized)) -> io::Result<()> {
        let (position, file) = (self.position, self.part.file());
        aside(by, || file.set_len(position).and_then(|()| file.sync_all()))?
    }

    /// All octets are there: the file takes its place.
    pub fn complete(mut self, by: &mut (impl Aside + ?Sized)) -> StoreResult<u64> {
        let mut rest = Vec::new();
        self.decoder.finish(&mut rest);
        self.store_octets(&rest)?;
        self.settled = self.received;
        self.replace(by)
    }

    /// Interrupted: the part takes the target's place and is what a restart continues. Returns its wire octets.
    pub fn keep(self, by: &mut (impl Aside + ?Sized)) -> StoreResult<u64> {
        if matches!(self.preparation, Preparation::Done) {
            self.replace(by)
        } else {
            self.undo(by).map(|()| 0)
        }
    }

    fn replace(mut self, by: &mut (impl Aside + ?Sized)) -> StoreResult<u64> {
        self.settle(by)?;
        let (part, name) = (&self.part, &self.name);
        aside(by, || part.rename(name))??;
        Ok(self.stored())
    }

    /// Broken off: the part stays beside the untouched target. Returns its wire octets.
    pub fn set_aside(mut self, by: &mut (impl Aside + ?Sized)) -> StoreResult<u64> {
        if matches!(self.preparation, Preparation::Done) {
            self.settle(by)?;
            Ok(self.stored())
        } else {
            self.undo(by).map(|()| 0)
        }
    }

    /// Aborted: everything is as before the transfer.
    pub fn undo(mut self, by: &mut (impl Aside + ?Sized)) -> StoreResult<()> {
        let is_untouched =
            matches!(self.preparation, Preparation::Empty | Preparation::Find { .. }) && self.part.existed();
        if is_untouched {
            return Ok(());
        }
        if self.continues_part {
            self.position = self.start_position;
            return Ok(self.settle(by)?);
        }
        if let Some(quota) = &self.bounds.quota {
            quota.give_back(self.length);
        }
        self.part.remove()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    struct AtOnce;

    impl Aside for AtOnce {}

    fn begin(folder: &Path, base: Base, file_type: FileType) -> StoreResult<Partial> {
        let dir = Dir::open_ambient_dir(folder, cap_std::ambient_authority()).unwrap();
        Partial::begin_prepared(&dir, "f", base, file_type, Bounds::default())
    }

    fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
        std::fs::read(folder.join(name)).ok()
    }

    fn folder_with(target: &[u8]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), target).unwrap();
        folder
    }

    #[test]
    fn the_target_is_whole_until_the_end() {
        let folder = folder_with(b"old");
        let mut partial = begin(folder.path(), Base::Fresh, FileType::Image).unwrap();
        partial.write(b"new").unwrap();
        assert_eq!(read(folder.path(), "f").unwrap(), b"old");
        assert_eq!(partial.complete(&mut AtOnce).unwrap(), 3);
        assert_eq!(read(folder.path(), "f").unwrap(), b"new");
        assert_eq!(read(folder.path(), ".fppart~f"), None);
    }

    #[test]
    fn undoing_restores_and_setting_aside_keeps_both() {
        let folder = folder_with(b"old");
        let mut partial = begin(folder.path(), Base::Fresh, FileType::Image).unwrap();
        partial.write(b"new").unwrap();
        partial.undo(&mut AtOnce).unwrap();
        assert_eq!((read(folder.path(), "f").unwrap(), read(folder.path(), ".fppart~f")), (b"old".to_vec(), None));
        let mut partial = begin(folder.path(), Base::Fresh, FileType::Image).unwrap();
        partial.write(b"new").unwrap();
        partial.set_aside(&mut AtOnce).unwrap();
        assert_eq!(read(folder.path(), "f").unwrap(), b"old");
        assert_eq!(read(folder.path(), ".fppart~f").unwrap(), b"new");
    }

    #[test]
    fn a_marker_continues_the_part_first_then_the_target_and_truncates() {
        let folder = folder_with(b"0123456789");
        let mut partial = begin(folder.path(), Base::Marker(4), FileType::Image).unwrap();
        partial.write(b"ab").unwrap();
        assert_eq!(partial.complete(&mut AtOnce).unwrap(), 6);
        assert_eq!(read(folder.path(), "f").unwrap(), b"0123ab");
        std::fs::write(folder.path().join(".fppart~f"), b"PQRSTU").unwrap();
        let mut partial = begin(folder.path(), Base::Marker(5), FileType::Image).unwrap();
        partial.write(b"!").unwrap();
        partial.undo(&mut AtOnce).unwrap();
        assert_eq!(read(folder.path(), ".fppart~f").unwrap(), b"PQRST");
        assert_eq!(begin(folder.path(), Base::Marker(7), FileType::Image).unwrap_err().code, 554);
        assert_eq!(read(folder.path(), "f").unwrap(), b"0123ab");
    }

    #[test]
    fn appending_keeps_what_was_there() {
        let folder = folder_with(b"one\n");
        let mut partial = begin(folder.path(), Base::End, FileType::Ascii).unwrap();
        partial.write(b"two\r\n").unwrap();
        assert_eq!(partial.stored(), 10);
        partial.complete(&mut AtOnce).unwrap();
        assert_eq!(read(folder.path(), "f").unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn an_ascii_part_cut_between_cr_and_lf_does_not_count_the_cr() {
        let folder = folder_with(b"");
        let mut partial = begin(folder.path(), Base::Fresh, FileType::Ascii).unwrap();
        partial.write(b"a\r\nb\r").unwrap();
        assert_eq!(partial.stored(), 4);
        assert_eq!(partial.keep(&mut AtOnce).unwrap(), 4);
        let mut partial = begin(folder.path(), Base::Marker(4), FileType::Ascii).unwrap();
        partial.write(b"\r\nc").unwrap();
        partial.complete(&mut AtOnce).unwrap();
        assert_eq!(read(folder.path(), "f").unwrap(), b"a\nb\nc");
    }

    #[test]
    fn a_limit_and_gaps_are_kept() {
        let folder = folder_with(b"old");
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let mut partial = Partial::begin_prepared(
            &dir,
            "f",
            Base::Fresh,
            FileType::Image,
            Bounds { quota: Some(Quota::of(9)), size: Some(5) },
        )
        .unwrap();
        partial.fill(4, b'.').unwrap();
        assert_eq!(partial.write(b"xy").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    }

    #[test]
    fn octets_beyond_a_limit_are_not_counted_as_stored() {
        let folder = folder_with(b"");
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let bounds = Bounds { quota: Some(Quota::of(5)), size: None };
        let mut partial = Partial::begin_prepared(&dir, "f", Base::Fresh, FileType::Ascii, bounds).unwrap();
        assert_eq!(partial.write(b"abcdefgh\r").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        assert_eq!((partial.received(), partial.stored()), (0, 0));
    }
}
