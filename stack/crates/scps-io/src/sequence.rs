//! Which sequence numbers of SP were given out: a record beside every key, in a file that outlives the program (scps-sp §6).
//!
//! A number used twice under one key gives the key away. A block of numbers is therefore written down as used before the first
//! of them is; a program that is killed leaves a gap, never a number that is used again. Programs that share a key take turns.
//! A key whose record is missing is not used: nobody knows where it stands.

use crate::IoError;
use rustix::fs::{flock, open, FlockOperation, Mode, OFlags};
use scps_sp::{Ends, KeyName, Sp, BLOCK, NUMBERS_END};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

/// First line of a record.
const TITLE: &str = "scps-sp sequence numbers, format 1";

/// Bits of a file's mode that let others than the owner write.
const OTHERS_WRITE: u32 = 0o022;

/// The records of the keys in use.
#[derive(Clone, Debug, Default)]
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

    /// Writes a block of numbers down as used. A key that has none left gets some that no packet can have.
    pub fn reserve(&self, name: KeyName) -> Result<Range<u64>, IoError> {
        let end = |first: u64| if first < NUMBERS_END { first + BLOCK } else { first };
        self.write(name, end).map(|numbers| numbers.start..numbers.end.max(numbers.start.saturating_add(1)))
    }

    /// Writes all numbers of a key down as used: another one has taken over.
    pub fn retire(&self, name: KeyName) -> Result<(), IoError> {
        self.write(name, |_| NUMBERS_END).map(drop)
    }

    fn write(&self, name: KeyName, next_of: impl FnOnce(u64) -> u64) -> Result<Range<u64>, IoError> {
        let Some(key_file) = self.key_files.get(&name) else {
            let source = io::Error::new(io::ErrorKind::NotFound, "no file");
            return Err(IoError::Device {
                what: name.to_string(),
                advice: "name its file in the settings of SP",
                source,
            });
        };
        use_up(key_file, name, next_of).map_err(|source| IoError::Device {
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

/// Notes in a key's record that all numbers up to `next_of` the first unused one are used, and returns them. Nothing is written if
/// there are none.
fn use_up(key_file: &Path, name: KeyName, next_of: impl FnOnce(u64) -> u64) -> io::Result<Range<u64>> {
    // The key's file is never replaced, so it can be locked; the record is.
    let lock = File::open(key_file)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let path = record_of(key_file);
    let mut next = parse(&read(&path)?)?;
    let first = next.get(&line_of(name)).copied().unwrap_or(1);
    let end = next_of(first).max(first);
    if end == first {
        return Ok(first..end);
    }
    next.insert(line_of(name), end);
    let mut text = format!("{TITLE}\n");
    text.extend(next.iter().map(|(key, end)| format!("{key} {end}\n")));
    let unfinished = path.with_extension("sequence-unfinished");
    // A program that was killed may have left one. Whatever else has the name is not ours to touch.
    match fs::symlink_metadata(&unfinished) {
        Ok(about) if about.is_file() => fs::remove_file(&unfinished)?,
        Ok(_) => return Err(found(format!("{} is no file; expected none. Remove it", unfinished.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    // The new name has to outlive a power failure as well.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(first..end)
}

/// The text of a record, unless somebody else may have written it.
fn read(path: &Path) -> io::Result<String> {
    if fs::symlink_metadata(path)?.is_symlink() {
        // The file at its end would stay as it is, and the link be replaced.
        return Err(found("a symbolic link; expected the record itself. Move the file to this name".into()));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Mode::empty())?);
    let about = file.metadata()?;
    let mode = about.permissions().mode() & 0o7777;
    if !about.is_file() {
        return Err(found("no file; expected a record of sequence numbers".into()));
    }
    if mode & OTHERS_WRITE != 0 {
        return Err(found(format!(
            "found mode {mode:04o}; expected 0600, a record that only its owner may write. If nobody changed it, run: chmod 600 {}",
            path.display()
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn found(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A key as a record names it.
fn line_of(name: KeyName) -> String {
    format!("{} {} {}", name.ends.src, name.ends.dst, name.key_id)
}

/// The first number of each key that is not used. A line is as a record is written, octet by octet: another spelling of a key would
/// be another key, whose numbers begin again.
fn parse(text: &str) -> io::Result<BTreeMap<String, u64>> {
    let wrong = |line: usize, what: &str| {
        found(format!(
            "line {line}: found {what}; expected \"SOURCE DESTINATION KEY-ID NEXT-NUMBER\" as it was written"
        ))
    };
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(found(format!("line 1: found another title; expected \"{TITLE}\"")));
    }
    let mut next = BTreeMap::new();
    for (i, line) in lines.enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let entry = match words[..] {
            [src, dst, id, end] => match (src.parse(), dst.parse(), id.parse(), end.parse()) {
                (Ok(src), Ok(dst), Ok(key_id), Ok(end)) => Some((KeyName { ends: Ends { src, dst }, key_id }, end)),
                _ => None,
            },
            _ => None,
        };
        let (name, end) = entry.ok_or_else(|| wrong(i + 2, "another line"))?;
        if end == 0 || format!("{} {end}", line_of(name)) != line {
            return Err(wrong(i + 2, "another spelling"));
        }
        if next.insert(line_of(name), end).is_some() {
            return Err(wrong(i + 2, "a key for the second time"));
        }
    }
    Ok(next)
}

/// Supplies SP with sequence numbers. A block is reserved on a thread when less than half of one is left: the disk may be slow, and
/// whoever turns the loop has acknowledgements to send.
#[derive(Debug, Default)]
pub(crate) struct Supply {
    record: Arc<SequenceRecord>,
    /// What the thread was asked for and has not answered.
    asked: BTreeSet<KeyName>,
    worker: Option<Worker>,
}

type Reserved = (KeyName, Result<Range<u64>, IoError>);

/// A thread that reserves blocks; it ends when its user does.
#[derive(Debug)]
struct Worker {
    wishes: Sender<KeyName>,
    reserved: Receiver<Reserved>,
}

impl Worker {
    fn start(record: Arc<SequenceRecord>) -> Result<Worker, IoError> {
        let (wishes, wished) = channel();
        let (done, reserved) = channel();
        let work = move || {
            for name in wished {
                if done.send((name, record.reserve(name))).is_err() {
                    return;
                }
            }
        };
        let started = std::thread::Builder::new().name("sequence numbers".into()).spawn(work);
        started.map(|_| Worker { wishes, reserved }).map_err(IoError::system("thread"))
    }
}

impl Supply {
    pub(crate) fn new(record: SequenceRecord) -> Self {
        Supply { record: Arc::new(record), ..Supply::default() }
    }

    /// Gives SP what it is short of. It waits for the disk only for a key that has no number left.
    pub(crate) fn supply(&mut self, sp: &mut Sp) -> Result<(), IoError> {
        while let Some((name, numbers)) = self.worker.as_ref().and_then(|worker| worker.reserved.try_recv().ok()) {
            // A full disk must not end what has numbers left: it asks again, and the record's error ends it when there are none.
            if numbers.is_err() && sp.has_numbers(name) {
                self.asked.remove(&name);
            } else {
                self.take(sp, (name, numbers))?;
            }
        }
        if sp.wanted().is_none() {
            return Ok(());
        }
        let wanting: Vec<KeyName> = sp.wanting().collect();
        for name in wanting {
            if sp.has_numbers(name) {
                self.ask(name)?;
                continue;
            }
            while self.asked.contains(&name) {
                match self.worker.as_ref().and_then(|worker| worker.reserved.recv().ok()) {
                    Some(reserved) => self.take(sp, reserved)?,
                    None => self.asked.clear(),
                }
            }
            if !sp.has_numbers(name) {
                let numbers = self.record.reserve(name);
                self.take(sp, (name, numbers))?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, name: KeyName) -> Result<(), IoError> {
        if self.asked.contains(&name) {
            return Ok(());
        }
        if self.worker.is_none() {
            self.worker = Some(Worker::start(Arc::clone(&self.record))?);
        }
        if self.worker.as_ref().is_some_and(|worker| worker.wishes.send(name).is_ok()) {
            self.asked.insert(name);
        }
        Ok(())
    }

    fn take(&mut self, sp: &mut Sp, (name, numbers): Reserved) -> Result<(), IoError> {
        self.asked.remove(&name);
        sp.grant(name, numbers?).map_err(|refused| IoError::Device {
            what: name.to_string(),
            advice: "make a new key with scps sp-key",
            source: found(refused.to_string()),
        })
    }

    /// Records which keys others took over from, before a packet under the new ones leaves.
    pub(crate) fn note_replaced(&self, sp: &mut Sp) -> Result<(), IoError> {
        while let Some(name) = sp.poll_replaced() {
            self.record.retire(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_sp::{AeadKey, Association, Outgoing, Policy, Services, SpConfig, Suite, Upper};
    use scps_wire::{Duration, Instant};
    use std::os::unix::fs::symlink;

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
    fn a_line_in_another_spelling_gives_no_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let (path, record) = key(folder.path());
        for line in [
            "10.0.0.1 10.0.0.2  1 9",
            "10.0.0.1 10.0.0.2 01 9",
            "10.0.0.1 10.0.0.2 1 09",
            " 10.0.0.1 10.0.0.2 1 9",
            "10.0.0.1 10.0.0.2 1 +9",
            "10.0.0.1 10.0.0.2 1 0",
            "10.0.0.1 10.0.0.2 1 9 ",
            "10.0.0.1,10.0.0.2 1 9",
            "",
        ] {
            let text = format!("{TITLE}\n{line}\n");
            fs::write(record_of(&path), &text).unwrap();
            fs::set_permissions(record_of(&path), fs::Permissions::from_mode(0o600)).unwrap();
            let error = record.reserve(name(1)).expect_err(line).to_string();
            assert!(error.contains("line 2: found another"), "{line:?}: {error}");
            assert_eq!(fs::read_to_string(record_of(&path)).unwrap(), text, "it is left as it is");
        }
    }

    #[test]
    fn a_record_that_others_may_write_or_that_is_a_link_gives_no_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let (path, record) = key(folder.path());
        SequenceRecord::create(&path).unwrap();
        let place = record_of(&path);
        for mode in [0o666, 0o620, 0o602] {
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
            let error = record.reserve(name(1)).unwrap_err().to_string();
            assert!(
                error.contains(&format!("found mode {mode:04o}; expected 0600")) && error.contains("chmod 600"),
                "{error}"
            );
        }
        fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&place, &elsewhere).unwrap();
        symlink(&elsewhere, &place).unwrap();
        let error = record.reserve(name(1)).unwrap_err().to_string();
        assert!(error.contains("a.key.sequence: ") && error.contains("symbolic link"), "{error}");
        assert!(fs::symlink_metadata(&place).unwrap().is_symlink(), "the link is left");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), format!("{TITLE}\n"));
    }

    #[test]
    fn nothing_is_written_through_a_link_and_what_a_killed_program_left_is_no_matter() {
        let folder = tempfile::tempdir().unwrap();
        let (path, record) = key(folder.path());
        SequenceRecord::create(&path).unwrap();
        let unfinished = folder.path().join("a.key.sequence-unfinished");
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &unfinished).unwrap();
        let error = record.reserve(name(1)).unwrap_err().to_string();
        assert!(error.contains("a.key.sequence-unfinished is no file; expected none. Remove it"), "{error}");
        fs::remove_file(&unfinished).unwrap();
        fs::hard_link(&victim, &unfinished).unwrap();
        assert_eq!(record.reserve(name(1)).unwrap(), 1..1 + BLOCK);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    fn sp(local: [u8; 4], now: Instant) -> Sp {
        let association = |id: u16| {
            let ends = name(id).ends;
            let key = AeadKey::derive(Suite::Aes256Gcm, &[7; 32], &ends, id, Services::ALL).unwrap();
            Association::new(ends, id, key)
        };
        let associations = vec![association(1), association(2)];
        let config =
            SpConfig { policy: Policy::Strict, local: vec![local.into()], associations, ..SpConfig::default() };
        Sp::new(config, now).unwrap()
    }

    /// Sends a packet; the id of its key, and whether it is taken.
    fn send(from: &mut Sp, to: &mut Sp, now: Instant) -> (u16, bool) {
        let ends = name(1).ends;
        let what = Outgoing { ends, upper: Upper::Tp, demanded: Services::NONE, pdu_len: 5 };
        let mut packet = vec![0; from.room(now, what).unwrap().len() + 5];
        from.seal(now, what, &mut packet).unwrap();
        let is_taken = to.open(now, ends, &packet, &mut Vec::new()).is_ok();
        (u16::from_be_bytes([packet[1], packet[2]]), is_taken)
    }

    /// A record, what takes numbers from it for a sender, and a receiver.
    fn begun(folder: &Path, now: Instant) -> (PathBuf, Supply, Sp, Sp) {
        let (path, record) = key(folder);
        SequenceRecord::create(&path).unwrap();
        let (mut supply, mut sender) = (Supply::new(record), sp([10, 0, 0, 1], now));
        supply.supply(&mut sender).unwrap();
        (path, supply, sender, sp([10, 0, 0, 2], now))
    }

    #[test]
    fn a_sender_that_starts_again_stays_with_the_key_that_took_over() {
        let folder = tempfile::tempdir().unwrap();
        let (path, record) = key(folder.path());
        SequenceRecord::create(&path).unwrap();
        let mut now = Instant::from_secs(10);
        let mut receiver = sp([10, 0, 0, 2], now);
        let start = |now| {
            let mut record = SequenceRecord::default();
            record.add(name(1), &path);
            record.add(name(2), &path);
            let (mut supply, mut sender) = (Supply::new(record), sp([10, 0, 0, 1], now));
            supply.supply(&mut sender).unwrap();
            (supply, sender)
        };
        let (supply, mut sender) = start(now);
        assert_eq!(send(&mut sender, &mut receiver, now), (1, true));
        now += Duration::from_secs(25 * 3600);
        // The packet that finds the key a day old is the last under it.
        for expected in [(1, true), (2, true)] {
            assert_eq!(send(&mut sender, &mut receiver, now), expected);
            supply.note_replaced(&mut sender).unwrap();
        }
        // The receiver has let the first key expire by then.
        now += Duration::from_secs(600);
        let (_, mut sender) = start(now);
        assert_eq!(send(&mut sender, &mut receiver, now), (2, true));
        assert!(record.reserve(name(1)).unwrap().start >= NUMBERS_END, "the first key is not used again");
    }

    #[test]
    fn a_block_is_reserved_while_packets_leave() {
        let folder = tempfile::tempdir().unwrap();
        let now = Instant::from_secs(10);
        let (path, mut supply, mut sender, mut receiver) = begun(folder.path(), now);
        for _ in 0..=BLOCK / 2 {
            send(&mut sender, &mut receiver, now);
        }
        assert_eq!(sender.wanted(), Some(name(1)));
        // Another program has the record, for as long as it likes.
        let other = File::open(&path).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        supply.supply(&mut sender).unwrap();
        assert_eq!(sender.wanted(), Some(name(1)), "nothing came yet, and nobody waited");
        send(&mut sender, &mut receiver, now);
        drop(other);
        while sender.has_numbers(name(1)) {
            send(&mut sender, &mut receiver, now);
        }
        supply.supply(&mut sender).unwrap();
        assert_eq!((sender.wanted(), send(&mut sender, &mut receiver, now)), (None, (1, true)));
    }

    #[test]
    fn a_record_that_cannot_be_written_ends_nothing_before_the_last_number() {
        let folder = tempfile::tempdir().unwrap();
        let now = Instant::from_secs(10);
        let (_, mut supply, mut sender, mut receiver) = begun(folder.path(), now);
        // As on a full disk, no file can be made under this name.
        let unfinished = folder.path().join("a.key.sequence-unfinished");
        fs::create_dir(&unfinished).unwrap();
        while sender.has_numbers(name(1)) {
            supply.supply(&mut sender).unwrap();
            send(&mut sender, &mut receiver, now);
        }
        assert!(supply.supply(&mut sender).is_err());
        fs::remove_dir(&unfinished).unwrap();
        supply.supply(&mut sender).unwrap();
        assert_eq!(send(&mut sender, &mut receiver, now), (1, true));
    }

    #[test]
    fn a_record_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = key(folder.path());
        SequenceRecord::create(&path).unwrap();
        assert_eq!(SequenceRecord::create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
