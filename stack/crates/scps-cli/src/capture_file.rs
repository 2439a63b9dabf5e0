//! The file of `--pcap`, which says when it can take no more.

use crate::error::CliError;
use crate::say;
use scps_io::{CaptureKind, Device, Observed, PcapWriter};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

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

/// The capture of all devices of a program, if one is asked for.
pub struct Captures(Option<Rc<RefCell<PcapWriter<BufWriter<CaptureFile>>>>>);

impl Captures {
    /// Creates the file and begins the capture.
    pub fn begin(path: Option<&Path>, kind: CaptureKind) -> Result<Captures, CliError> {
        let Some(path) = path else { return Ok(Captures(None)) };
        let file = File::create(path).map_err(CliError::file(path))?;
        let file = CaptureFile { file, path: path.to_owned(), state: State::Beginning };
        let writer = PcapWriter::new(BufWriter::new(file), kind).map_err(CliError::file(path))?;
        Ok(Captures(Some(Rc::new(RefCell::new(writer)))))
    }

    /// A device whose packets are captured.
    pub fn around(&self, device: Box<dyn Device>) -> Box<dyn Device> {
        match &self.0 {
            Some(writer) => Box::new(Observed::new(device, Rc::clone(writer))),
            None => device,
        }
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
