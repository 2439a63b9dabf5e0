//! `scps sp-key`: a new key for SP, and the record of its sequence numbers.

use crate::error::CliError;
use clap::Args;
use rustix::rand::{getrandom, GetRandomFlags};
use scps_io::{IoError, SequenceRecord};
use scps_sp::KEY_LEN;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use zeroize::Zeroizing;

/// Options of `scps sp-key`.
#[derive(Debug, Args)]
pub struct SpKeyArgs {
    /// File to write the master key to; it must not exist. Beside it is made FILE.sequence, which must not be lost: it says
    /// which sequence numbers are used up. Copy both to the other end before the key is used; restore neither from a backup,
    /// nor use a copy of a machine that goes on sending: make a new key then
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl SpKeyArgs {
    /// Makes the key.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let mut octets = Zeroizing::new([0; KEY_LEN]);
        let mut filled = 0;
        while filled < KEY_LEN {
            let system = |error: rustix::io::Errno| IoError::System { what: "entropy", source: error.into() };
            filled += getrandom(&mut octets[filled..], GetRandomFlags::empty()).map_err(system)?;
        }
        let mut text = Zeroizing::new(String::with_capacity(8 + 2 * KEY_LEN));
        text.push_str("master ");
        for octet in octets.iter() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{octet:02x}");
        }
        text.push('\n');
        let at_key = CliError::file(&self.file);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file).map_err(&at_key)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(&at_key)?;
        SequenceRecord::create(&self.file)
            .map_err(|source| CliError::File { path: format!("{}.sequence", self.file.display()), source })?;
        Ok(ExitCode::SUCCESS)
    }
}
