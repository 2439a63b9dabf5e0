//! The data of `scps send` on its way from its source to the stack.

use crate::error::CliError;
use crate::payload::Payload;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use scps_io::Stack;
use scps_tp::ConnectionId;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Where the data comes from.
pub enum Source {
    /// Generated data.
    Generated {
        /// Its generator.
        payload: Payload,
        /// Octets to come.
        left: u64,
    },
    /// A file, pipe or terminal.
    File(File),
}

/// Octets taken from the source at a time; a multiple of 8, so that generated data does not depend on it.
const CHUNK: usize = 256 * 1024;

impl Source {
    /// `"-"` is standard input.
    pub fn open(path: &Path) -> Result<Source, CliError> {
        let file = if path.as_os_str() == "-" {
            std::io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(path)
        };
        file.map(Source::File).map_err(CliError::file(path))
    }

    /// Appends to `out` what is there, up to `size` octets in all; true at the end of the data.
    fn read(&mut self, out: &mut Vec<u8>, size: usize) -> std::io::Result<bool> {
        let mut have = out.len();
        out.resize(size, 0);
        let is_at_end = match self {
            Source::Generated { payload, left } => {
                let n = (size - have).min(usize::try_from(*left).unwrap_or(usize::MAX));
                payload.fill(&mut out[have..have + n]);
                *left -= n as u64;
                have += n;
                *left == 0
            }
            Source::File(file) => loop {
                // A pipe that is silent must not keep timers and signals waiting.
                if have == size || !is_ready(file) {
                    break false;
                }
                match file.read(&mut out[have..]) {
                    Ok(0) => break true,
                    Ok(n) => have += n,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            },
        };
        out.truncate(have);
        Ok(is_at_end)
    }
}

fn is_ready(file: &File) -> bool {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    // What cannot be asked is read, and answers for itself.
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).map_or(true, |n| n > 0)
}

/// The data under way.
pub struct Feed {
    source: Source,
    record: Option<usize>,
    chunk: Vec<u8>,
    start: usize,
    is_drained: bool,
    given: u64,
    hash: Option<Sha256>,
}

impl Feed {
    /// Data of `source`, in records of so many octets, which fit in the send buffer, or as one stream.
    pub fn new(source: Source, record: Option<usize>, hashes: bool) -> Feed {
        let hash = hashes.then(Sha256::new);
        Feed { source, record, chunk: Vec::new(), start: 0, is_drained: false, given: 0, hash }
    }

    /// What to wait for when the source has nothing now; regular files and generated data always have.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Generated { .. } => None,
            Source::File(file) => Some(file.as_fd()),
        }
    }

    /// All octets there will be, where that is known: not of a pipe.
    pub fn total(&self) -> Option<u64> {
        match &self.source {
            Source::Generated { left, .. } => Some(self.given + *left),
            Source::File(file) => file.metadata().ok().filter(std::fs::Metadata::is_file).map(|facts| facts.len()),
        }
    }

    /// Octets given so far.
    pub fn given(&self) -> u64 {
        self.given
    }

    /// Octets given so far, and their hash.
    pub fn finish(self) -> (u64, Option<String>) {
        (self.given, self.hash.map(|h| hex(&h.finalize())))
    }

    /// Gives as much as the stack takes and the source has; true when all was given.
    pub fn give(&mut self, stack: &mut Stack, id: ConnectionId) -> Result<bool, CliError> {
        loop {
            let least = self.record.unwrap_or(1);
            if self.chunk.len() - self.start < least && !self.is_drained {
                self.refill()?;
            }
            let rest = &self.chunk[self.start..];
            if rest.len() < least && !self.is_drained {
                return Ok(false);
            }
            if rest.is_empty() {
                return Ok(true);
            }
            let taken = match self.record {
                Some(n) => {
                    let record = &rest[..n.min(rest.len())];
                    match stack.send_record(id, record) {
                        Ok(true) => record.len(),
                        Ok(false) => 0,
                        Err(_) => return Ok(false),
                    }
                }
                None => stack.send(id, rest).unwrap_or(0),
            };
            if taken == 0 {
                return Ok(false);
            }
            if let Some(hash) = &mut self.hash {
                hash.update(&self.chunk[self.start..self.start + taken]);
            }
            self.start += taken;
            self.given += taken as u64;
        }
    }

    fn refill(&mut self) -> Result<(), CliError> {
        // Whole records per chunk, so that none is cut at its end.
        let size = self.record.map_or(CHUNK, |r| r * (CHUNK / r).max(1));
        self.chunk.drain(..self.start);
        self.start = 0;
        let read_error = |source| CliError::File { path: "data source".to_owned(), source };
        self.is_drained = self.source.read(&mut self.chunk, size).map_err(read_error)?;
        Ok(())
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, b| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{b:02x}");
        text
    })
}
