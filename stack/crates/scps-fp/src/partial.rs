//! A file being received, at either end (FP notes §9.2, §10).
//!
//! Octets go to `<name>.fppart` beside the target, so the target is whole until the last octet is safely stored. How a
//! transfer ends decides what becomes of the two: complete and kept replace the target, undone leaves it, set aside
//! leaves both for a later restart. A killed process leaves both too.

use crate::ascii::{place_of, wire_length, Decoder, Place};
use crate::command::FileType;
use crate::crc::Crc;
use crate::store::{StoreError, StoreResult};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};

/// What is appended to the name of a file that is not complete.
pub const SUFFIX: &str = ".fppart";

/// Where a received file starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// At nothing.
    Fresh,
    /// After this many wire octets of what is stored.
    Marker(u64),
    /// At the end of the target.
    End,
}

/// How much may be stored.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bounds {
    /// Octets that may be added.
    pub room: Option<u64>,
    /// Octets the file may have.
    pub size: Option<u64>,
}

/// A file being received.
#[derive(Debug)]
pub struct Partial {
    folder: Dir,
    name: String,
    file: File,
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
    limit: Option<u64>,
    crc: Crc,
    scratch: Vec<u8>,
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

/// Wire octets of a stored file.
pub fn stored_size(file: &File, file_type: FileType) -> StoreResult<u64> {
    match file_type {
        FileType::Image => Ok(file.metadata()?.len()),
        FileType::Ascii => Ok(wire_length(file)?),
    }
}

impl Partial {
    /// Starts or continues. A marker continues the part beside the target if that is long enough, otherwise a copy of
    /// the target's beginning.
    pub fn begin(folder: Dir, name: &str, base: Base, file_type: FileType, bounds: Bounds) -> StoreResult<Partial> {
        let part = format!("{name}{SUFFIX}");
        if folder.metadata(name).is_ok_and(|m| !m.is_file()) {
            return Err(StoreError::new(550, "not a regular file"));
        }
        let (file, start, position, continues_part) = match base {
            Base::Fresh | Base::Marker(0) => (create(&folder, &part)?, 0, 0, false),
            Base::Marker(marker) => continued(&folder, name, &part, marker, file_type)?,
            Base::End => appended(&folder, name, &part, file_type)?,
        };
        let mut file = file;
        file.seek(SeekFrom::Start(position))?;
        let room = bounds.room.map(|r| position.saturating_add(r));
        let limit = [room, bounds.size].into_iter().flatten().min();
        Ok(Partial {
            folder,
            name: name.to_owned(),
            file,
            file_type,
            decoder: Decoder::default(),
            start,
            start_position: position,
            continues_part,
            received: 0,
            settled: 0,
            position,
            limit,
            crc: Crc::new(),
            scratch: Vec::new(),
        })
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
        if self.limit.is_some_and(|l| end > l) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.file.write_all(octets)?;
        self.position = end;
        Ok(())
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

    fn settle(&mut self) -> io::Result<()> {
        self.file.set_len(self.position)?;
        self.file.sync_all()
    }

    fn part(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// All octets are there: the file takes its place.
    pub fn complete(mut self) -> StoreResult<u64> {
        let mut rest = Vec::new();
        self.decoder.finish(&mut rest);
        self.store_octets(&rest)?;
        self.replace()
    }

    /// Interrupted: the part takes the target's place and is what a restart continues. Returns its wire octets.
    pub fn keep(self) -> StoreResult<u64> {
        self.replace()
    }

    fn replace(mut self) -> StoreResult<u64> {
        self.settle()?;
        self.folder.rename(self.part(), &self.folder, &self.name)?;
        Ok(self.stored())
    }

    /// Broken off: the part stays beside the untouched target. Returns its wire octets.
    pub fn set_aside(mut self) -> StoreResult<u64> {
        self.settle()?;
        Ok(self.stored())
    }

    /// Aborted: everything is as before the transfer.
    pub fn undo(mut self) -> StoreResult<()> {
        if self.continues_part {
            self.position = self.start_position;
            return Ok(self.settle()?);
        }
        Ok(self.folder.remove_file(self.part())?)
    }
}

fn create(folder: &Dir, part: &str) -> StoreResult<File> {
    match folder.remove_file(part) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e.into()),
    }
    Ok(folder.open_with(part, options().create_new(true))?)
}

/// The position of a marker in a stored file.
pub fn position_of(file: &mut File, marker: u64, file_type: FileType) -> StoreResult<(u64, bool)> {
    let beyond = || StoreError::new(554, "the marker lies beyond the stored file");
    if file_type == FileType::Image {
        return if marker <= file.metadata()?.len() { Ok((marker, false)) } else { Err(beyond()) };
    }
    file.seek(SeekFrom::Start(0))?;
    match place_of(marker, &mut *file)? {
        Place::At(position, after_cr) => Ok((position, after_cr)),
        Place::Split => Err(StoreError::new(554, "the marker lies between CR and LF")),
        Place::Beyond(_) => Err(beyond()),
    }
}

type Started = (File, u64, u64, bool);

fn continued(folder: &Dir, name: &str, part: &str, marker: u64, file_type: FileType) -> StoreResult<Started> {
    if folder.symlink_metadata(part).is_ok_and(|m| m.is_file()) {
        let mut file = folder.open_with(part, &options())?;
        if let Ok((position, _)) = position_of(&mut file, marker, file_type) {
            return Ok((file, marker, position, true));
        }
    }
    let mut target = folder.open(name)?;
    let (position, _) = position_of(&mut target, marker, file_type)?;
    Ok((copy_of(target, position, folder, part)?, marker, position, false))
}

fn appended(folder: &Dir, name: &str, part: &str, file_type: FileType) -> StoreResult<Started> {
    let target = match folder.open(name) {
        Ok(target) => target,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((create(folder, part)?, 0, 0, false)),
        Err(e) => return Err(e.into()),
    };
    let (length, start) = (target.metadata()?.len(), stored_size(&target, file_type)?);
    Ok((copy_of(target, length, folder, part)?, start, length, false))
}

fn copy_of(mut target: File, length: u64, folder: &Dir, part: &str) -> StoreResult<File> {
    use std::io::Read as _;
    target.seek(SeekFrom::Start(0))?;
    let mut file = create(folder, part)?;
    let copied = io::copy(&mut target.take(length), &mut file);
    if !copied.as_ref().is_ok_and(|n| *n == length) {
        let _ = folder.remove_file(part);
        copied?;
        return Err(StoreError::new(451, "the file changed while it was copied"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn begin(folder: &Path, base: Base, file_type: FileType) -> StoreResult<Partial> {
        let dir = Dir::open_ambient_dir(folder, cap_std::ambient_authority()).unwrap();
        Partial::begin(dir, "f", base, file_type, Bounds::default())
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
        assert_eq!(partial.complete().unwrap(), 3);
        assert_eq!(read(folder.path(), "f").unwrap(), b"new");
        assert_eq!(read(folder.path(), "f.fppart"), None);
    }

    #[test]
    fn undoing_restores_and_setting_aside_keeps_both() {
        let folder = folder_with(b"old");
        let mut partial = begin(folder.path(), Base::Fresh, FileType::Image).unwrap();
        partial.write(b"new").unwrap();
        partial.undo().unwrap();
        assert_eq!((read(folder.path(), "f").unwrap(), read(folder.path(), "f.fppart")), (b"old".to_vec(), None));
        let mut partial = begin(folder.path(), Base::Fresh, FileType::Image).unwrap();
        partial.write(b"new").unwrap();
        partial.set_aside().unwrap();
        assert_eq!(read(folder.path(), "f").unwrap(), b"old");
        assert_eq!(read(folder.path(), "f.fppart").unwrap(), b"new");
    }

    #[test]
    fn a_marker_continues_the_part_first_then_the_target_and_truncates() {
        let folder = folder_with(b"0123456789");
        let mut partial = begin(folder.path(), Base::Marker(4), FileType::Image).unwrap();
        partial.write(b"ab").unwrap();
        assert_eq!(partial.complete().unwrap(), 6);
        assert_eq!(read(folder.path(), "f").unwrap(), b"0123ab");
        std::fs::write(folder.path().join("f.fppart"), b"PQRSTU").unwrap();
        let mut partial = begin(folder.path(), Base::Marker(5), FileType::Image).unwrap();
        partial.write(b"!").unwrap();
        partial.undo().unwrap();
        assert_eq!(read(folder.path(), "f.fppart").unwrap(), b"PQRST");
        assert_eq!(begin(folder.path(), Base::Marker(7), FileType::Image).unwrap_err().code, 554);
        assert_eq!(read(folder.path(), "f").unwrap(), b"0123ab");
    }

    #[test]
    fn appending_keeps_what_was_there() {
        let folder = folder_with(b"one\n");
        let mut partial = begin(folder.path(), Base::End, FileType::Ascii).unwrap();
        partial.write(b"two\r\n").unwrap();
        assert_eq!(partial.stored(), 10);
        partial.complete().unwrap();
        assert_eq!(read(folder.path(), "f").unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn an_ascii_part_cut_between_cr_and_lf_does_not_count_the_cr() {
        let folder = folder_with(b"");
        let mut partial = begin(folder.path(), Base::Fresh, FileType::Ascii).unwrap();
        partial.write(b"a\r\nb\r").unwrap();
        assert_eq!(partial.stored(), 4);
        assert_eq!(partial.keep().unwrap(), 4);
        let mut partial = begin(folder.path(), Base::Marker(4), FileType::Ascii).unwrap();
        partial.write(b"\r\nc").unwrap();
        partial.complete().unwrap();
        assert_eq!(read(folder.path(), "f").unwrap(), b"a\nb\nc");
    }

    #[test]
    fn a_limit_and_gaps_are_kept() {
        let folder = folder_with(b"old");
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let mut partial =
            Partial::begin(dir, "f", Base::Fresh, FileType::Image, Bounds { room: Some(9), size: Some(5) }).unwrap();
        partial.fill(4, b'.').unwrap();
        assert_eq!(partial.write(b"xy").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    }

    #[test]
    fn octets_beyond_a_limit_are_not_counted_as_stored() {
        let folder = folder_with(b"");
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let bounds = Bounds { room: Some(5), size: None };
        let mut partial = Partial::begin(dir, "f", Base::Fresh, FileType::Ascii, bounds).unwrap();
        assert_eq!(partial.write(b"abcdefgh\r").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        assert_eq!((partial.received(), partial.stored()), (0, 0));
    }
}
