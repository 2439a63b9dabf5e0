//! Record update (scps-fp §6): the control file of UPDT, its signals, and applying them.

use crate::address::decimal;
use crate::command::is_path;
use crate::search::STEP_OCTETS;
use std::io::{self, BufRead, Read, Write};

/// Longest data a new signal carries: older servers hold the length in a signed 16-bit variable.
pub const SIGNAL_LENGTH_MAX: usize = 32_767;
/// Most signals a server takes (scps-fp §17 item 10).
pub const SIGNALS_MAX: usize = 1_000_000;
/// Largest control file a server takes (scps-fp §6.8).
pub const CONTROL_FILE_MAX: u64 = 64 << 20;
/// The name under which control files are stored.
pub const CONTROL_NAME: &str = "roSCPSFP";
/// Longest line of a control file's header.
const HEADER_LINE_MAX: u64 = 8192;
/// What reading a signal counts as, in octets of a step.
const SIGNAL_COST: u64 = 64;
/// Octets that end a control file.
pub const END_MARK: [u8; 2] = [0xFF, 0x02];

/// What a signal does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// Insert before the offset.
    Insert(Vec<u8>),
    /// Copy the octet at the offset, then insert.
    Append(Vec<u8>),
    /// Drop octets.
    Delete(u16),
    /// Overwrite octets.
    Overwrite(Vec<u8>),
}

/// One edit at an offset of the original file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signal {
    /// Octets from the start of the original.
    pub offset: u32,
    /// What to do there.
    pub edit: Edit,
}

/// A control file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Update {
    /// The file to read.
    pub original: String,
    /// The file to make.
    pub target: String,
    /// Checksum of the original.
    pub checksum: u32,
    /// Edits, ascending.
    pub signals: Vec<Signal>,
}

/// What is wrong with a control file or with the edits.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The header is malformed: 501.
    #[error("control file: {0}")]
    Header(&'static str),
    /// Too large: 552.
    #[error("control file: more than {SIGNALS_MAX} signals")]
    TooMany,
    /// An edit that cannot be applied: 551.
    #[error("signal {number}: {what}")]
    Signal {
        /// Counted from 1.
        number: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Signal {
    /// Octets it brings.
    pub fn data_length(&self) -> u64 {
        match &self.edit {
            Edit::Insert(data) | Edit::Append(data) | Edit::Overwrite(data) => data.len() as u64,
            Edit::Delete(_) => 0,
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let (opcode, length, data): (u8, usize, &[u8]) = match &self.edit {
            Edit::Insert(data) => (b'i', data.len(), data),
            Edit::Append(data) => (b'a', data.len(), data),
            Edit::Delete(n) => (b'd', usize::from(*n), &[]),
            Edit::Overwrite(data) => (b'w', data.len(), data),
        };
        out.push(opcode);
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(data);
    }
}

/// A header line: its text without LF or CR LF, and what follows.
fn header_line(octets: &[u8]) -> Option<(&str, &[u8])> {
    let end = octets.iter().position(|b| *b == b'\n')?;
    let text = octets[..end].strip_suffix(b"\r").unwrap_or(&octets[..end]);
    Some((std::str::from_utf8(text).ok()?, &octets[end + 1..]))
}

impl Update {
    /// Reads a control file.
    pub fn parse(octets: &[u8]) -> Result<Update, UpdateError> {
        let (original, rest) = header_line(octets).ok_or(UpdateError::Header("the original's path is missing"))?;
        let (target, rest) = header_line(rest).ok_or(UpdateError::Header("the new path is missing"))?;
        let (checksum, rest) = header_line(rest).ok_or(UpdateError::Header("the checksum is missing"))?;
        if !is_path(original) || !is_path(target) {
            return Err(UpdateError::Header("a path is empty or holds control characters"));
        }
        let checksum = decimal(checksum).ok_or(UpdateError::Header("the checksum is no decimal 32-bit number"))?;
        let signals = parse_signals(rest)?;
        Ok(Update { original: original.to_owned(), target: target.to_owned(), checksum, signals })
    }

    /// Writes a control file.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = format!("{}\n{}\n{}\n", self.original, self.target, self.checksum).into_bytes();
        for signal in &self.signals {
            signal.emit(&mut out);
        }
        out.extend_from_slice(&END_MARK);
        out
    }
}

fn parse_signals(rest: &[u8]) -> Result<Vec<Signal>, UpdateError> {
    let mut reader = SignalReader::new(rest);
    std::iter::from_fn(|| reader.read_signal().transpose()).collect()
}

/// Reads the signals of a control file one by one.
#[derive(Debug)]
pub struct SignalReader<R> {
    source: R,
    read: usize,
}

impl<R: Read> SignalReader<R> {
    /// From behind the header on.
    pub fn new(source: R) -> Self {
        SignalReader { source, read: 0 }
    }

    /// Reads the header of a control file: paths of original and new file, and the original's checksum.
    pub fn open(mut source: R) -> Result<(String, String, u32, Self), UpdateError>
    where
        R: BufRead,
    {
        let mut head = Vec::new();
        for _ in 0..3 {
            source.by_ref().take(HEADER_LINE_MAX).read_until(b'\n', &mut head)?;
        }
        let Update { original, target, checksum, .. } = Update::parse(&head)?;
        Ok((original, target, checksum, SignalReader::new(source)))
    }

    /// The next signal; `None` at the end.
    pub fn read_signal(&mut self) -> Result<Option<Signal>, UpdateError> {
        let number = self.read + 1;
        let wrong = |what| UpdateError::Signal { number, what };
        let mut head = [0u8; 7];
        let length = fill(&mut self.source, &mut head)?;
        if length == 0 || head[..length] == END_MARK {
            return Ok(None);
        }
        if self.read == SIGNALS_MAX {
            return Err(UpdateError::TooMany);
        }
        if length < head.len() {
            return Err(wrong("the head is cut short"));
        }
        let [opcode, o0, o1, o2, o3, l0, l1] = head;
        let offset = u32::from_be_bytes([o0, o1, o2, o3]);
        let length = u16::from_be_bytes([l0, l1]);
        let mut data = || {
            let mut data = vec![0; usize::from(length)];
            let is_whole = fill(&mut self.source, &mut data)? == data.len();
            if is_whole {
                Ok(data)
            } else {
                Err(wrong("the data is cut short"))
            }
        };
        let edit = match opcode {
            b'i' => Edit::Insert(data()?),
            b'a' => Edit::Append(data()?),
            b'w' => Edit::Overwrite(data()?),
            b'd' => Edit::Delete(length),
            _ => return Err(wrong("unknown opcode")),
        };
        self.read = number;
        Ok(Some(Signal { offset, edit }))
    }
}

/// Reads until `out` is full or the source ends; octets read.
fn fill(source: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < out.len() {
        match source.read(&mut out[read..]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(read)
}

/// Orders signals as servers want them: by offset, inserts first, otherwise as they were.
pub fn sort(signals: &mut [Signal]) {
    signals.sort_by_key(|s| (s.offset, !matches!(s.edit, Edit::Insert(_))));
}

/// Copies `original` to `out` with the edits applied; returns octets written.
pub fn apply(original: impl Read, signals: &[Signal], mut out: impl Write) -> Result<u64, UpdateError> {
    let mut applier = Applier::new(original);
    let mut signals = signals.iter();
    while !applier.step(|| Ok(signals.next().cloned()), &mut out)? {}
    Ok(applier.written)
}

/// Applies edits a step at a time, so that whoever has others to serve can do so in between.
#[derive(Debug)]
pub struct Applier<R> {
    original: R,
    at: u64,
    written: u64,
    last: Option<(u32, bool)>,
    number: usize,
    /// The signal under way, and octets to copy before it.
    pending: Option<(Signal, u64)>,
    has_all: bool,
}

impl<R: Read> Applier<R> {
    /// Reads `original` from its start.
    pub fn new(original: R) -> Self {
        Applier { original, at: 0, written: 0, last: None, number: 0, pending: None, has_all: false }
    }

    /// Goes on with the signals that `next` gives; true once all is written.
    pub fn step(
        &mut self,
        mut next: impl FnMut() -> Result<Option<Signal>, UpdateError>,
        out: &mut impl Write,
    ) -> Result<bool, UpdateError> {
        let mut budget = STEP_OCTETS as u64;
        while budget > 0 {
            if let Some((signal, gap)) = self.pending.take() {
                let now = gap.min(budget);
                self.copy(now, out)?;
                budget -= now;
                if now < gap {
                    self.pending = Some((signal, gap - now));
                } else {
                    budget = budget.saturating_sub(SIGNAL_COST + self.act(signal, out)?);
                }
            } else if self.has_all {
                let copied = copy(&mut self.original, budget, out)?;
                self.written += copied;
                if copied < budget {
                    out.flush()?;
                    return Ok(true);
                }
                budget = 0;
            } else {
                match next()? {
                    None => self.has_all = true,
                    Some(signal) => self.accept(signal)?,
                }
            }
        }
        Ok(false)
    }

    fn wrong(&self, what: &'static str) -> UpdateError {
        UpdateError::Signal { number: self.number, what }
    }

    fn accept(&mut self, signal: Signal) -> Result<(), UpdateError> {
        self.number += 1;
        let is_insert = matches!(signal.edit, Edit::Insert(_));
        if let Some((before, was_insert)) = self.last.replace((signal.offset, is_insert)) {
            if signal.offset < before || (signal.offset == before && !was_insert) {
                return Err(self.wrong("offsets do not ascend"));
            }
        }
        let gap = u64::from(signal.offset).checked_sub(self.at);
        let gap = gap.ok_or_else(|| self.wrong("it overlaps the one before"))?;
        self.pending = Some((signal, gap));
        Ok(())
    }

    fn copy(&mut self, length: u64, out: &mut impl Write) -> Result<(), UpdateError> {
        if copy(&mut self.original, length, out)? != length {
            return Err(self.wrong("the offset lies beyond the end"));
        }
        self.at += length;
        self.written += length;
        Ok(())
    }

    /// Octets read or written.
    fn act(&mut self, signal: Signal, out: &mut impl Write) -> Result<u64, UpdateError> {
        let (dropped, data) = match signal.edit {
            Edit::Insert(data) => (0, data),
            Edit::Append(data) => {
                self.copy(1, out)?;
                (0, data)
            }
            Edit::Delete(length) => (u64::from(length), Vec::new()),
            Edit::Overwrite(data) => (data.len() as u64, data),
        };
        if copy(&mut self.original, dropped, &mut io::sink())? != dropped {
            return Err(self.wrong("the range lies beyond the end"));
        }
        self.at += dropped;
        out.write_all(&data)?;
        self.written += data.len() as u64;
        Ok(dropped + data.len() as u64)
    }
}

fn copy(from: &mut impl Read, length: u64, to: &mut impl Write) -> io::Result<u64> {
    io::copy(&mut from.take(length), to)
}

/// Edits that insert `data`, in pieces older servers take.
pub fn insert(offset: u32, data: &[u8]) -> Vec<Signal> {
    let piece = |d: &[u8]| Signal { offset, edit: Edit::Insert(d.to_vec()) };
    data.chunks(SIGNAL_LENGTH_MAX).map(piece).collect()
}

/// Edits that overwrite with `data`.
pub fn overwrite(offset: u32, data: &[u8]) -> Vec<Signal> {
    let pieces = data.chunks(SIGNAL_LENGTH_MAX).enumerate();
    let at = |i: usize| offset.saturating_add((i * SIGNAL_LENGTH_MAX) as u32);
    pieces.map(|(i, d)| Signal { offset: at(i), edit: Edit::Overwrite(d.to_vec()) }).collect()
}

/// Edits that drop `length` octets.
pub fn delete(offset: u32, length: u32) -> Vec<Signal> {
    let end = offset.saturating_add(length);
    let starts = (offset..end).step_by(SIGNAL_LENGTH_MAX);
    starts
        .map(|at| Signal { offset: at, edit: Edit::Delete((end - at).min(SIGNAL_LENGTH_MAX as u32) as u16) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alphabet() -> Vec<u8> {
        (b'A'..=b'Z').collect()
    }

    fn applied(original: &[u8], signals: &[Signal]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        apply(original, signals, &mut out).map_err(|e| e.to_string())?;
        Ok(out)
    }

    fn example() -> Update {
        let mut signals = vec![
            Signal { offset: 26, edit: Edit::Insert(b"tail".to_vec()) },
            Signal { offset: 9, edit: Edit::Append(b"!".to_vec()) },
            Signal { offset: 5, edit: Edit::Overwrite(b"55".to_vec()) },
            Signal { offset: 2, edit: Edit::Delete(2) },
            Signal { offset: 0, edit: Edit::Insert(b"000".to_vec()) },
        ];
        sort(&mut signals);
        Update { original: "u".into(), target: "unew".into(), checksum: 4_226_038_255, signals }
    }

    #[test]
    fn the_worked_example_is_65_octets_and_gives_its_result() {
        let octets = example().emit();
        assert_eq!(octets.len(), 65);
        assert_eq!(&octets[..18], b"u\nunew\n4226038255\n");
        assert_eq!(&octets[18..28], b"i\0\0\0\0\0\x03000");
        assert_eq!(&octets[28..35], b"d\0\0\0\x02\0\x02");
        assert_eq!(&octets[63..], END_MARK);
        let read = Update::parse(&octets).unwrap();
        assert_eq!(read, example());
        let result = applied(&alphabet(), &read.signals).unwrap();
        assert_eq!(result, b"000ABE55HIJ!KLMNOPQRSTUVWXYZtail");
        assert_eq!(crate::crc::crc(&result), 0x832E_BF7E);
    }

    #[test]
    fn edits_that_cannot_be_are_refused() {
        let at = |offset, edit| Signal { offset, edit };
        for (signals, expected) in [
            (vec![at(27, Edit::Insert(vec![1]))], "beyond"),
            (vec![at(26, Edit::Append(vec![1]))], "beyond"),
            (vec![at(25, Edit::Delete(2))], "beyond"),
            (vec![at(25, Edit::Overwrite(vec![1, 2]))], "beyond"),
            (vec![at(3, Edit::Delete(4)), at(5, Edit::Insert(vec![1]))], "overlaps"),
            (vec![at(3, Edit::Delete(1)), at(3, Edit::Insert(vec![1]))], "ascend"),
            (vec![at(0, Edit::Delete(1)), at(0, Edit::Delete(1))], "ascend"),
        ] {
            let error = applied(&alphabet(), &signals).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn all_opcodes_take_65535_octets() {
        let original = vec![7u8; 65_535];
        let long = vec![9u8; 65_535];
        for edit in
            [Edit::Insert(long.clone()), Edit::Append(long.clone()), Edit::Overwrite(long), Edit::Delete(65_535)]
        {
            let update = Update { signals: vec![Signal { offset: 0, edit }], ..example() };
            let read = Update::parse(&update.emit()).unwrap();
            assert_eq!(read, update);
            applied(&original, &read.signals).unwrap();
        }
    }

    #[test]
    fn a_cut_control_file_is_an_error_not_a_shorter_edit() {
        let octets = example().emit();
        for length in 0..octets.len() - 2 {
            let is_boundary = [18, 28, 35, 44, 52].contains(&length);
            assert_eq!(Update::parse(&octets[..length]).is_ok(), is_boundary, "{length}");
        }
        assert!(Update::parse(b"u\r\nunew\r\n1\r\n\xFF\x02").is_ok());
        assert!(Update::parse(b"u\nunew\n-1\n\xFF\x02").is_err());
        assert!(Update::parse(b"u\n\n1\n\xFF\x02").is_err());
        assert!(Update::parse(b"u\nn\n1\nx\0\0\0\0\0\0\xFF\x02").is_err());
    }

    proptest! {
        #[test]
        fn any_octets_are_parsed_or_refused(octets in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Update::parse(&octets);
        }
    }
}
