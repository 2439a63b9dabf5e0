//! The file of `--pcap`, which says when it can take no more.

use crate::say;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// A capture being written. The packets go on without it if it fails (a full disk), and whoever asked for it is told once.
#[derive(Debug)]
pub struct CaptureFile {
    file: File,
    path: PathBuf,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing is written yet: an error ends the program, which tells it.
    Beginning,
    Growing,
    Failed,
}

impl CaptureFile {
    /// Creates the file.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        Ok(CaptureFile { file: File::create(&path)?, path, state: State::Beginning })
    }
}

impl Write for CaptureFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.file.write(octets);
        match &written {
            Ok(_) if self.state == State::Beginning => self.state = State::Growing,
            Err(error) if self.state == State::Growing && error.kind() != io::ErrorKind::Interrupted => {
                self.state = State::Failed;
                let path = self.path.display();
                say::remark(format_args!("scps: --pcap {path}: {error}; the capture ends here, the packets go on."));
            }
            _ => {}
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
