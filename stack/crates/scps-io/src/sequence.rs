//! Which sequence numbers of SP were given out: a record beside every key, in a file that outlives the program (scps-sp §6).
//!
//! A number used twice under one key gives the key away. A block of numbers is therefore written down as used before the first
//! of them is; a program that is killed leaves a gap, never a number that is used again. Programs that share a key take turns.
//! A key whose record is missing is not used: nobody knows where it stands.

use crate::IoError;
use rustix::fs::{flock, FlockOperation};
use scps_sp::{KeyName, BLOCK};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// First line of a record.
const TITLE: &str = "scps-sp sequence numbers, format 1";

/// The records of the keys in use.
#[derive(Debug, Default)]
pub struct SequenceRecord {
    key_files: BTreeMap<KeyName, PathBuf>,
}

impl SequenceRecord {
    /// Says in which file a key is.
    pub fn add(&mut self, name: KeyName, key_file: &Path) {
        self.key_files.insert(name, key_file.to_owned());
    }

    /// Makes the record of a key that nobody has used yet.
    pub fn create(key_file: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(record_of(key_file))?;
        writeln!(file, "{TITLE}")?;
        file.sync_all()
    }

    /// Writes a block of numbers down as used.
    pub fn reserve(&self, name: KeyName) -> Result<Range<u64>, IoError> {
        let Some(key_file) = self.key_files.get(&name) else {
            let source = io::Error::new(io::ErrorKind::NotFound, "no file");
            return Err(IoError::Device {
                what: name.to_string(),
                advice: "name its file in the settings of SP",
                source,
            });
        };
        reserve_in(key_file, name).map_err(|source| IoError::Device {
            what: record_of(key_file).display().to_string(),
            advice: "it says which sequence numbers of the key are used up; if it cannot be had back, make a new key with scps sp-key",
            source,
        })
    }
}

/// The record of the key in a file.
fn record_of(key_file: &Path) -> PathBuf {
    let mut name = OsString::from(key_file);
    name.push(".sequence");
    name.into()
}

fn reserve_in(key_file: &Path, name: KeyName) -> io::Result<Range<u64>> {
    // The key's file is never replaced, so it can be locked; the record is.
    let lock = File::open(key_file)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let path = record_of(key_file);
    let mut next = parse(&fs::read_to_string(&path)?)?;
    let first = next.get(&line_of(name)).copied().unwrap_or(1);
    let end = first.saturating_add(BLOCK);
    next.insert(line_of(name), end);
    let mut text = format!("{TITLE}\n");
    text.extend(next.iter().map(|(key, end)| format!("{key} {end}\n")));
    let unfinished = path.with_extension("sequence-unfinished");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    // The new name has to outlive a power failure as well.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(first..end)
}

/// A key as a record names it.
fn line_of(name: KeyName) -> String {
    format!("{} {} {}", name.ends.src, name.ends.dst, name.key_id)
}

/// The first number of each key that is not used.
fn parse(text: &str) -> io::Result<BTreeMap<String, u64>> {
    let wrong = |line: usize, what: &str| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("line {line}: found {what}; expected a record of sequence numbers"),
        )
    };
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(wrong(1, "another title"));
    }
    let mut next = BTreeMap::new();
    for (i, line) in lines.enumerate() {
        let (key, end) = line.rsplit_once(' ').ok_or_else(|| wrong(i + 2, "one word"))?;
        let end = end.parse().map_err(|_| wrong(i + 2, "no number"))?;
        if next.insert(key.to_owned(), end).is_some() {
            return Err(wrong(i + 2, "a key for the second time"));
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_sp::Ends;
    use std::os::unix::fs::PermissionsExt;

    fn name(key_id: u16) -> KeyName {
        KeyName { ends: Ends::v4([10, 0, 0, 1], [10, 0, 0, 2]), key_id }
    }

    fn key(folder: &Path) -> (PathBuf, SequenceRecord) {
        let path = folder.join("a.key");
        fs::write(&path, "").unwrap();
        let mut record = SequenceRecord::default();
        record.add(name(1), &path);
        record.add(name(2), &path);
        (path, record)
    }

    #[test]
    fn blocks_follow_each_other_across_programs_and_keys_have_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let (path, record) = key(folder.path());
        SequenceRecord::create(&path).unwrap();
        assert_eq!(record.reserve(name(1)).unwrap(), 1..1 + BLOCK);
        let (_, later) = key(folder.path());
        assert_eq!(later.reserve(name(1)).unwrap(), 1 + BLOCK..1 + 2 * BLOCK);
        assert_eq!(later.reserve(name(2)).unwrap(), 1..1 + BLOCK);
        assert_eq!(record.reserve(name(1)).unwrap(), 1 + 2 * BLOCK..1 + 3 * BLOCK);
        assert_eq!(fs::metadata(record_of(&path)).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_lost_or_damaged_record_gives_no_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let (path, record) = key(folder.path());
        let text = record.reserve(name(1)).unwrap_err().to_string();
        assert!(text.contains("a.key.sequence") && text.contains("scps sp-key"), "{text}");
        for damaged in ["", "something else\n", &format!("{TITLE}\n10.0.0.1 10.0.0.2 1 x\n"), &format!("{TITLE}\nx\n")]
        {
            fs::write(record_of(&path), damaged).unwrap();
            assert!(record.reserve(name(1)).is_err(), "{damaged}");
            assert_eq!(fs::read_to_string(record_of(&path)).unwrap(), damaged, "it is left as it is");
        }
    }

    #[test]
    fn a_record_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = key(folder.path());
        SequenceRecord::create(&path).unwrap();
        assert_eq!(SequenceRecord::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
