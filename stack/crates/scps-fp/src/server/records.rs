//! READ and UPDT (scps-fp §6, §7).

use super::session::Session;
use super::work::{update_error, Checking, Updating, Work};
use super::Shared;
use crate::error::{StoreError, StoreResult};
use crate::outgoing::Outgoing;
use crate::ranges::{RangeError, ReadRequest, READ_CONTROL_MAX};
use crate::store::Store;
use crate::update::{Applier, SignalReader, CONTROL_FILE_MAX};
use cap_std::fs::File;
use std::io::{BufReader, Read};
use std::rc::Rc;

fn control_file(store: &Store, path: &str, longest: u64) -> StoreResult<File> {
    if store.size(path)? > longest {
        return Err(StoreError::new(552, format!("the control file has more than {longest} octets")));
    }
    store.open_file(path)
}

impl Session {
    /// What READ sends.
    pub fn read_plan(&self, control: &str, store: &Store) -> StoreResult<Outgoing> {
        let mut octets = Vec::new();
        let file = control_file(store, &self.absolute(control), READ_CONTROL_MAX)?;
        file.take(READ_CONTROL_MAX).read_to_end(&mut octets)?;
        let request = ReadRequest::parse(&octets).map_err(|error| {
            let code = if error == RangeError::TooMany { 552 } else { 501 };
            StoreError::new(code, error.to_string())
        })?;
        let file = store.open_file(&self.absolute(&request.source))?;
        Ok(Outgoing::ranges(file, request.ranges, request.forced))
    }

    /// Makes a new file of an old one and edits; the old one stays, the new one appears whole or not at all.
    pub fn update(&mut self, control: &str, store: &Rc<Store>, shared: &Shared) -> StoreResult<()> {
        let control = self.absolute(control);
        let file = BufReader::new(control_file(store, &control, CONTROL_FILE_MAX)?);
        let (original, target, expected, signals) = SignalReader::open(file).map_err(update_error)?;
        let original = store.open_file(&self.absolute(&original))?;
        let checking = Some(Checking::of(original.try_clone()?)?);
        let target = store.make(&self.absolute(&target), false)?;
        self.work = Some(Work::Update(Box::new(Updating {
            count: store.count()?,
            applier: Applier::new(BufReader::new(original.try_clone()?)),
            original,
            expected,
            checking,
            signals,
            target,
            control: (!shared.mib.keep_control).then_some(control),
            store: Rc::clone(store),
        })));
        Ok(())
    }
}
