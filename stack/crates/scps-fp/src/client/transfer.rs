//! Whole transfers: attempts until one succeeds or patience ends, then the proof (scps-fp §10, §11.3).

use super::attempt::{Course, Flow, Request};
use super::report::{Integrity, Report, Status};
use super::stored::{local_error, place, stored_locally, Source};
use super::{Context, Fault, Remote, Start};
use crate::command::FileType;
use crate::crc::{crc_of, crc_text};
use crate::error::StoreError;
use crate::net::{Net, Service};
use crate::outgoing::Outgoing;
use crate::partial::{stored_size, Base, Bounds, Partial};
use crate::restart::{Attempts, Decision, Failure};
use crate::store::modified;
use cap_std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What becomes of a file that has the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Replace,
    Append,
    /// It stays: the server chooses another name.
    Unique,
}

/// What to transfer.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// Local file to a remote name.
    Put { local: PathBuf, remote: String, way: Way },
    /// Remote file to a local name.
    Get { remote: String, local: PathBuf },
}

/// A transfer, over all its attempts.
pub(super) struct Transfer<'r, 'a> {
    cx: &'r mut Context<'a>,
    remote: &'r mut Remote,
    attempts: Attempts,
    report: Report,
    source: Source,
    octets: u64,
    after_restart: u64,
    /// The server has begun at least once: what it stores under this name is ours.
    begun: bool,
    start: Start,
    fresh_tried: bool,
    fresh_next: bool,
    /// What is stored at the server is not as long as what was sent.
    is_of_wrong_size: bool,
    /// The next attempt starts at 0 and at once, automatic restart or not: the server could not do what was asked.
    fresh_now: bool,
}

fn stored_error(error: &StoreError) -> Failure {
    Failure::Final(format!("local file: {}", error.text))
}

impl Transfer<'_, '_> {
    /// Runs a transfer to its end.
    pub(super) fn run(cx: &mut Context<'_>, remote: &mut Remote, start: Start, job: &Job) -> Report {
        let attempts = Attempts::new(&cx.mib, remote.wishes.auto_restart, cx.net.now());
        let mut transfer = Transfer {
            cx,
            remote,
            attempts,
            report: Report::default(),
            source: Source::default(),
            octets: 0,
            after_restart: 0,
            begun: false,
            start,
            fresh_tried: false,
            fresh_next: false,
            is_of_wrong_size: false,
            fresh_now: false,
        };
        if let Err(failure) = transfer.attempts(job) {
            transfer.report_failure(job, &failure);
        }
        let Transfer { attempts, report, octets, after_restart, .. } = transfer;
        Report {
            octets: Some(octets),
            octets_after_restart: (after_restart > 0).then_some(after_restart),
            restarts: Some(attempts.restarts),
            ..report
        }
    }

    /// Once more from the start, which then is the last time.
    fn start_anew(&mut self) {
        self.fresh_tried = true;
        self.fresh_next = true;
        self.fresh_now = true;
    }

    fn report_failure(&mut self, job: &Job, failure: &Failure) {
        let (status, text) = match failure {
            Failure::Interrupted(marker) => {
                self.report.marker = (*marker != u64::MAX).then_some(*marker);
                (Status::Interrupted, "interrupted; what there is stays".to_owned())
            }
            Failure::Aborted => (Status::Aborted, "aborted; everything is as before".to_owned()),
            Failure::Broken(t) | Failure::Busy(t) | Failure::Final(t) => (Status::Failed, t.clone()),
        };
        (self.report.status, self.report.text) = (status, text);
        match job {
            Job::Get { local, .. } if status != Status::Aborted => {
                self.report.marker = stored_locally(local, self.file_type()).ok().flatten().map(|s| s.size);
            }
            Job::Put { remote, .. } if status == Status::Interrupted && self.report.marker.is_none() => {
                self.report.marker = self.remote.stored(self.cx, remote).ok().flatten().map(|s| s.size);
            }
            _ => {}
        }
    }

    fn attempts(&mut self, job: &Job) -> Result<(), Failure> {
        loop {
            let result = self.one_attempt(job);
            let mut failure = match result {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            if std::mem::take(&mut self.fresh_now) {
                match self.recover() {
                    Ok(()) => continue,
                    Err(fault) => failure = fault.into(),
                }
            }
            loop {
                match self.attempts.judge(&failure, self.cx.net.now()) {
                    Decision::GiveUp(text) => {
                        return Err(match failure {
                            Failure::Broken(_) | Failure::Busy(_) => Failure::Broken(text),
                            other => other,
                        });
                    }
                    Decision::RetryAt(at) => {
                        self.note(format!("restart {}: {failure:?}", self.attempts.restarts));
                        self.cx.pause(at)?;
                    }
                }
                match self.recover() {
                    Ok(()) => break,
                    Err(Fault::Lost(text)) => failure = Failure::Broken(text),
                    // A server that is full or does not take us back yet may do so later.
                    Err(Fault::Refused(reply)) if reply.class() == 4 => failure = Failure::Broken(reply.text()),
                    Err(fault) => return Err(fault.into()),
                }
            }
        }
    }

    fn note(&mut self, text: String) {
        self.cx.console.show(&text);
        self.report.notes.push(text);
    }

    /// A control connection in step: the old one if it answers, otherwise a new one that looks like it.
    fn recover(&mut self) -> Result<(), Fault> {
        self.remote.shown(self.cx, |cx, remote| remote.recover(cx))
    }

    fn file_type(&self) -> FileType {
        self.remote.wishes.file_type
    }

    fn service(&self) -> Service {
        if self.remote.wishes.bets && !self.remote.lacks.contains("BETS") {
            Service::BestEffort
        } else {
            Service::Reliable
        }
    }

    fn one_attempt(&mut self, job: &Job) -> Result<(), Failure> {
        match job {
            Job::Put { local, remote, way } => self.put_once(local, remote, *way),
            Job::Get { remote, local } => self.get_once(remote, local),
        }
    }

    fn put_once(&mut self, local: &Path, remote: &str, way: Way) -> Result<(), Failure> {
        let file = open_local(local)?;
        let file_type = self.file_type();
        let size = stored_size(&file, file_type).map_err(|e| stored_error(&e))?;
        let append = way == Way::Append;
        let changed_at = file.metadata().map(|m| format!("{} {:?}", modified(&m), m.modified().ok())).ok();
        let source = Source { size: Some(size), changed_at };
        self.heed_source(source);
        let marker = if append { 0 } else { self.put_marker(local, remote, size)? };
        self.is_of_wrong_size = false;
        let is_measured = append && file_type == FileType::Image;
        let stored_before = if is_measured { self.remote.size(self.cx, remote)?.unwrap_or(0) } else { 0 };
        let mut outgoing = Outgoing::file(file, marker, file_type).map_err(|e| stored_error(&e))?;
        let verb = match way {
            Way::Append => "APPE",
            Way::Unique if marker == 0 => "STOU",
            Way::Unique | Way::Replace => "STOR",
        };
        let announces = !append && file_type == FileType::Image && self.remote.wishes.auto_restart;
        let line = format!("{verb} {remote}");
        let request = Request { line: &line, marker, announced: announces.then_some(size), service: self.service() };
        let mut course = Course::default();
        let result = self.remote.attempt(self.cx, &request, Flow::Send(&mut outgoing), &mut course);
        self.account(&course, marker, outgoing.sent());
        let result = result.and_then(|()| match outgoing.marker() {
            end if end == size => Ok(()),
            _ => Err(Failure::Broken("the source changed while it was sent".to_owned())),
        });
        let result = self.heed_refusal(&course, marker, result);
        // An append that broke may have been stored or not; doing it again might do it twice. Which name the server chose is
        // not known, and what has the name that was asked for is another file.
        let result = if matches!(verb, "APPE" | "STOU") { result.map_err(no_second_try) } else { result };
        result?;
        self.report.size = Some(size);
        let own = outgoing.crc();
        let verdict = self.judge_integrity(&course, own, outgoing.sent(), file_type);
        self.report.crc = Some(crc_text(own));
        self.report.integrity = Some(verdict);
        // A server that is not ours may have kept a marker, or what a longer file had.
        let is_kin = self.remote.is_kin();
        if is_measured || (marker == 0 && verb == "STOR" && file_type == FileType::Image && !is_kin) {
            self.prove_length(remote, stored_before.saturating_add(size))?;
        }
        if marker > 0 {
            self.prove_whole(remote, local)?;
        }
        self.settle_integrity(!append)
    }

    fn get_once(&mut self, remote: &str, local: &Path) -> Result<(), Failure> {
        let file_type = self.file_type();
        let enabled = self.remote.wishes.auto_restart;
        if enabled || self.start != Start::Fresh {
            let source = self.remote.source(self.cx, remote)?;
            self.heed_source(source);
        }
        let marker = self.get_marker(local)?;
        let (folder, name) = place(local)?;
        let base = if marker > 0 { Base::Marker(marker) } else { Base::Fresh };
        let mut partial = Partial::begin_prepared(&folder, &name, base, file_type, Bounds::default())
            .map_err(|e| stored_error(&e))?;
        let line = format!("RETR {remote}");
        let request = Request { line: &line, marker, announced: None, service: self.service() };
        let mut course = Course::default();
        let result = self.remote.attempt(self.cx, &request, Flow::Receive(&mut partial), &mut course);
        let (received, stored, crc) = (partial.received(), partial.stored(), partial.crc());
        self.account(&course, marker, received);
        let result = result.and_then(|()| match self.source.size {
            Some(size) if size != stored => Err(Failure::Broken(format!("{stored} of {size} octets came"))),
            _ => Ok(()),
        });
        let result = self.heed_refusal(&course, marker, result);
        if let Err(failure) = result {
            settle_local(self.cx.net, partial, &failure, self.begun, enabled, self.cx.mib.keep_partial)
                .map_err(|e| stored_error(&e))?;
            return Err(failure);
        }
        partial.complete(self.cx.net).map_err(|e| stored_error(&e))?;
        self.report.size = Some(stored);
        self.report.integrity = Some(self.judge_integrity(&course, crc, received, file_type));
        self.report.crc = Some(crc_text(crc));
        if marker > 0 {
            self.prove_whole(remote, local)?;
        }
        self.settle_integrity(true)
    }

    /// Counts what an attempt moved.
    fn account(&mut self, course: &Course, marker: u64, octets: u64) {
        if course.begun {
            self.begun = true;
            // From here on, what is stored says where to start.
            self.start = Start::Fresh;
        }
        self.octets += octets;
        if marker > 0 {
            self.after_restart += octets;
        }
        if octets > 0 {
            self.attempts.progressed(marker);
        }
        self.report.reply = course.last_reply;
        self.report.text.clone_from(&course.text);
        self.report.filled = (course.filled > 0).then_some(course.filled);
        self.cx.console.show(&format!("marker {marker}, {octets} octets moved"));
        self.report.markers.push(marker);
    }

    /// A marker the server does not take: once more from the start, then the end.
    fn heed_refusal(&mut self, course: &Course, marker: u64, result: Result<(), Failure>) -> Result<(), Failure> {
        if result.is_ok() || !course.marker_refused || marker == 0 || self.fresh_tried {
            return result;
        }
        // A command that is refused where no size is told: perhaps there is no such file, and the part stays for when there is.
        if self.source.size.is_none() && course.last_reply.is_some() {
            return result;
        }
        self.start_anew();
        self.note(format!("the marker {marker} is refused; starting at 0"));
        match result {
            Err(Failure::Final(text)) => Err(Failure::Broken(text)),
            other => other,
        }
    }

    /// A source that changed is transferred from the start.
    fn heed_source(&mut self, source: Source) {
        if self.source != Source::default() && self.source != source {
            self.note("the source has changed; starting at 0".to_owned());
            self.fresh_next = true;
        }
        self.source = source;
    }

    fn put_marker(&mut self, local: &Path, remote: &str, size: u64) -> Result<u64, Failure> {
        if std::mem::take(&mut self.fresh_next) {
            self.start = Start::Fresh;
            return Ok(0);
        }
        match self.start {
            Start::At(marker) => return Ok(marker.min(size)),
            Start::Fresh if !self.begun => return Ok(0),
            Start::Fresh | Start::WhatIsStored => {}
        }
        let Some(stored) = self.remote.stored(self.cx, remote)? else { return Ok(0) };
        if stored.size > size {
            self.note(format!("{} octets are stored, more than the source has; starting at 0", stored.size));
            return Ok(0);
        }
        if self.cx.mib.verify_prefix && stored.size > 0 && self.file_type() == FileType::Image {
            if let Some(theirs) = self.remote.crc(self.cx, &stored.name)? {
                let (ours, _) = crc_of(open_local(local)?.take(stored.size)).map_err(local_error(local))?;
                if ours != theirs {
                    self.note("what is stored is not the beginning of the source; starting at 0".to_owned());
                    return Ok(0);
                }
            }
        }
        Ok(stored.size)
    }

    fn get_marker(&mut self, local: &Path) -> Result<u64, Failure> {
        if std::mem::take(&mut self.fresh_next) {
            self.start = Start::Fresh;
            return Ok(0);
        }
        match self.start {
            Start::At(marker) => return Ok(marker),
            Start::Fresh if !self.begun => return Ok(0),
            Start::Fresh | Start::WhatIsStored => {}
        }
        let stored = stored_locally(local, self.file_type())?.map_or(0, |s| s.size);
        if self.source.size.is_some_and(|size| stored > size) {
            self.note("more is stored than the source has; starting at 0".to_owned());
            return Ok(0);
        }
        Ok(stored)
    }

    fn judge_integrity(&self, course: &Course, own: u32, octets: u64, file_type: FileType) -> Integrity {
        let is_reference = self.remote.is_reference();
        match course.reply_crc {
            _ if course.filled > 0 => Integrity::NotOffered,
            Some(theirs) if theirs == own => Integrity::Ok,
            // What the reference says when checksums are off, and in type A, means nothing (scps-fp §20).
            Some(u32::MAX) if octets > 0 => Integrity::NotOffered,
            Some(_) if is_reference && file_type == FileType::Ascii => Integrity::NotOffered,
            Some(_) => Integrity::Mismatch,
            None => Integrity::NotOffered,
        }
    }

    /// What is stored is as long as it must be, or it is not the file.
    fn prove_length(&mut self, remote: &str, size: u64) -> Result<(), Failure> {
        let theirs = self.remote.size(self.cx, remote)?;
        if theirs.is_some_and(|s| s != size) {
            self.note(format!("sizes differ: {size} here, {theirs:?} there"));
            self.report.integrity = Some(Integrity::Mismatch);
            self.is_of_wrong_size = true;
            // Whoever starts anew says where.
            self.remote.marker_waits = true;
        }
        Ok(())
    }

    /// After a restart: length and checksum of the whole file at both ends.
    fn prove_whole(&mut self, remote: &str, local: &Path) -> Result<(), Failure> {
        let file_type = self.file_type();
        // What was counted is no proof: of a text, other octets may be stored than came.
        let size = stored_size(&open_local(local)?, file_type).map_err(|e| stored_error(&e))?;
        let (crc, _) = crc_of(open_local(local)?).map_err(local_error(local))?;
        let their_size = self.remote.size(self.cx, remote)?;
        let their_crc = self.remote.crc(self.cx, remote)?;
        if their_size.is_some_and(|s| s != size) {
            self.note(format!("sizes differ: {size} here, {their_size:?} there"));
            self.report.integrity = Some(Integrity::Mismatch);
            self.is_of_wrong_size = true;
        } else if file_type == FileType::Image {
            self.report.crc = Some(crc_text(crc));
            self.report.integrity = Some(match their_crc {
                Some(theirs) if theirs == crc => Integrity::Ok,
                Some(_) => Integrity::Mismatch,
                None => Integrity::NotOffered,
            });
        }
        Ok(())
    }

    /// An error if both ends differ; `may_repeat` if the transfer can be done again from the start.
    fn settle_integrity(&mut self, may_repeat: bool) -> Result<(), Failure> {
        if self.report.integrity != Some(Integrity::Mismatch) {
            return Ok(());
        }
        let text = if self.is_of_wrong_size { "the sizes differ" } else { "the checksums differ" }.to_owned();
        // A stored beginning that was not ours shows only now; once more from the start decides it.
        let was_restarted = self.report.markers.last().is_some_and(|m| *m > 0);
        if may_repeat && (was_restarted || self.is_of_wrong_size) && !self.fresh_tried {
            self.start_anew();
            return Err(Failure::Broken(text));
        }
        Err(Failure::Final(text))
    }
}

fn no_second_try(failure: Failure) -> Failure {
    match failure {
        Failure::Broken(text) | Failure::Busy(text) => Failure::Final(text),
        other => other,
    }
}

fn open_local(path: &Path) -> Result<File, Fault> {
    let metadata = std::fs::metadata(path).map_err(local_error(path))?;
    if !metadata.is_file() {
        return Err(Fault::Local(format!("{}: not a regular file", path.display())));
    }
    std::fs::File::open(path).map(File::from_std).map_err(local_error(path))
}

/// What becomes of a local part (scps-fp §9.2).
fn settle_local(
    net: &mut dyn Net,
    partial: Partial,
    failure: &Failure,
    begun: bool,
    enabled: bool,
    keeps: bool,
) -> Result<(), StoreError> {
    match failure {
        Failure::Aborted => partial.undo(net),
        // A server that never began sent nothing worth keeping.
        _ if !begun && partial.received() == 0 => partial.undo(net),
        Failure::Interrupted(_) => partial.keep(net).map(|_| ()),
        Failure::Broken(_) | Failure::Busy(_) if enabled || keeps => partial.set_aside(net).map(|_| ()),
        Failure::Broken(_) | Failure::Busy(_) | Failure::Final(_) => partial.undo(net),
    }
}
