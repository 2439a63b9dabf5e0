//! READ and UPDT (FP notes §6, §7).

use super::session::Session;
use super::transfer::storing_code;
use super::Shared;
use crate::crc::{crc_of, crc_text};
use crate::outgoing::Outgoing;
use crate::ranges::{RangeError, ReadRequest};
use crate::reply::Reply;
use crate::store::{Store, StoreError, StoreResult};
use crate::update::{apply, Update, UpdateError, CONTROL_FILE_MAX};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom};

fn control_file(store: &Store, path: &str) -> StoreResult<Vec<u8>> {
    if store.size(path)? > CONTROL_FILE_MAX {
        return Err(StoreError::new(552, format!("the control file has more than {CONTROL_FILE_MAX} octets")));
    }
    let mut octets = Vec::new();
    store.open_file(path)?.take(CONTROL_FILE_MAX).read_to_end(&mut octets)?;
    Ok(octets)
}

fn update_error(error: UpdateError) -> StoreError {
    match error {
        UpdateError::Header(_) => StoreError::new(501, error.to_string()),
        UpdateError::TooMany => StoreError::new(552, error.to_string()),
        UpdateError::Signal { .. } => StoreError::new(551, error.to_string()),
        UpdateError::Io(error) => {
            let error = StoreError::from(error);
            StoreError { code: storing_code(error.code), ..error }
        }
    }
}

impl Session {
    /// What READ sends.
    pub fn read_plan(&self, control: &str, store: &Store) -> StoreResult<Outgoing> {
        let octets = control_file(store, &self.absolute(control))?;
        let request = ReadRequest::parse(&octets).map_err(|error| {
            let code = if error == RangeError::TooMany { 552 } else { 501 };
            StoreError::new(code, error.to_string())
        })?;
        let file = store.open_file(&self.absolute(&request.source))?;
        Ok(Outgoing::ranges(file, request.ranges, request.forced))
    }

    /// Makes a new file of an old one and edits; the old one stays, the new one appears whole or not at all.
    pub fn update(&mut self, control: &str, store: &Store, shared: &Shared) -> StoreResult<()> {
        let control = self.absolute(control);
        let update = Update::parse(&control_file(store, &control)?).map_err(update_error)?;
        let mut original = store.open_file(&self.absolute(&update.original))?;
        let (checksum, length) = crc_of(&mut original)?;
        if checksum != update.checksum {
            return Err(StoreError::new(551, "the checksum of the original differs; nothing was done"));
        }
        let added: u64 = update.signals.iter().map(crate::update::Signal::data_length).sum();
        if store.room()?.is_some_and(|room| room < length + added) {
            return Err(StoreError::new(552, "the quota is used up"));
        }
        original.seek(SeekFrom::Start(0))?;
        let mut value = 0;
        store.create_whole(&self.absolute(&update.target), |file| {
            apply(BufReader::new(&mut original), &update.signals, BufWriter::new(&mut *file)).map_err(update_error)?;
            file.seek(SeekFrom::Start(0))?;
            value = crc_of(file)?.0;
            Ok(())
        })?;
        if !shared.mib.keep_control {
            store.delete(&control)?;
        }
        self.reply(&Reply::new(250, format!("UPDT {}", crc_text(value))));
        Ok(())
    }
}
