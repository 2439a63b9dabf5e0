//! Record read and record update from the client's side (scps-fp §6.1, §7.1).

use super::attempt::{Course, Flow, Request};
use super::report::{Integrity, Report};
use super::{Client, Fault};
use crate::command::FileType;
use crate::crc::{crc, crc_text, find_crc};
use crate::diff::difference;
use crate::net::Service;
use crate::outgoing::Outgoing;
use crate::ranges::{parse_list, split_for_old_servers, ReadRequest};
use crate::reply::Reply;
use crate::restart::Failure;
use crate::update::{self, apply, Signal, Update, CONTROL_NAME};

fn failure_text(failure: Failure) -> Fault {
    Fault::Local(match failure {
        Failure::Broken(t) | Failure::Busy(t) | Failure::Final(t) => t,
        Failure::Interrupted(_) => "interrupted".to_owned(),
        Failure::Aborted => "aborted".to_owned(),
    })
}

/// Folder part of a remote path, and the name in it.
fn remote_parts(path: &str) -> (Option<&str>, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => (Some("/"), name),
        Some((folder, name)) => (Some(folder), name),
        None => (None, path),
    }
}

impl Client<'_> {
    /// Runs one attempt on the control connection.
    pub(super) fn attempt(&mut self, line: &str, flow: Flow<'_>, course: &mut Course) -> Result<(), Failure> {
        let request = Request { line, marker: 0, announced: None, service: Service::Reliable };
        let remote = self.remote.as_mut().ok_or_else(|| Failure::Broken("not connected".to_owned()))?;
        remote.attempt(&mut self.cx, &request, flow, course)
    }

    /// Stores a control file, in type I whatever the session's type is, and runs `then`.
    fn with_control_file(
        &mut self,
        octets: Vec<u8>,
        then: impl FnOnce(&mut Self) -> Result<Report, Fault>,
    ) -> Result<Report, Fault> {
        let mut outgoing = Outgoing::text(octets);
        let line = format!("STOR {CONTROL_NAME}");
        self.attempt(&line, Flow::Send(&mut outgoing), &mut Course::default()).map_err(failure_text)?;
        let result = then(self);
        if self.cx.mib.keep_control || !self.is_connected() {
            return result;
        }
        // A server may have removed it already, and why `then` failed says more than why this does.
        let line = format!("DELE {CONTROL_NAME}");
        let removed = self.on_remote(|cx, remote| remote.command(cx, &line));
        result.and_then(|report| removed.map(|_| report))
    }

    /// Goes to a folder in type I, and back afterwards.
    fn in_folder(
        &mut self,
        folder: Option<&str>,
        action: impl FnOnce(&mut Self) -> Result<Report, Fault>,
    ) -> Result<Report, Fault> {
        let mut back = None;
        let gone = self.on_remote(|cx, remote| {
            if remote.wishes.file_type != FileType::Image {
                remote.demand(cx, "TYPE I")?;
            }
            if let Some(folder) = folder {
                back = quoted_path(&remote.demand(cx, "PWD")?);
                remote.demand(cx, &format!("CWD {folder}"))?;
            }
            Ok(())
        });
        let result = gone.and_then(|()| action(self));
        let returned = self.on_remote(|cx, remote| {
            if let Some(back) = back {
                remote.demand(cx, &format!("CWD {back}"))?;
            }
            if remote.wishes.file_type != FileType::Image {
                remote.demand(cx, &format!("TYPE {}", remote.wishes.file_type.letter()))?;
            }
            Ok(())
        });
        // Why the action failed says more than why the way back did.
        result.and_then(|report| returned.map(|()| report))
    }

    /// Reads ranges of a remote file into a local one.
    pub(super) fn read_records(
        &mut self,
        remote: &str,
        local: &str,
        list: &str,
        forced: bool,
    ) -> Result<Report, Fault> {
        let (folder, name) = remote_parts(remote);
        let destination = self.local_path(local);
        self.in_folder(folder, |client| {
            let size = client
                .on_remote(|cx, remote| remote.size(cx, name))?
                .ok_or_else(|| Fault::Local(format!("{remote}: no such file")))?;
            let ranges = parse_list(list, size).map_err(|e| Fault::Local(e.to_string()))?;
            let mut octets = Vec::new();
            let mut last = Course::default();
            let mut verdict = Integrity::Ok;
            for part in split_for_old_servers(&ranges) {
                let request = ReadRequest { source: name.to_owned(), forced, ranges: part.to_vec() };
                let mut piece = Vec::new();
                client.with_control_file(request.emit(), |client| {
                    let line = format!("READ {CONTROL_NAME}");
                    last = Course::default();
                    client.attempt(&line, Flow::Collect(&mut piece), &mut last).map_err(failure_text)?;
                    Ok(Report::default())
                })?;
                verdict = match last.reply_crc {
                    Some(theirs) if theirs != crc(&piece) => Integrity::Mismatch,
                    None => Integrity::NotOffered,
                    Some(_) => verdict,
                };
                octets.extend_from_slice(&piece);
            }
            std::fs::write(&destination, &octets).map_err(|e| Fault::Local(format!("{local}: {e}")))?;
            let mut report = if verdict == Integrity::Mismatch {
                Report::failed("the checksums differ")
            } else {
                Report::done(last.text)
            };
            report.reply = last.last_reply;
            report.octets = Some(octets.len() as u64);
            report.integrity = Some(verdict);
            report.crc = Some(crc_text(crc(&octets)));
            Ok(report)
        })
    }

    /// Makes `remote_new` of `remote_old` by edits; the local pair shows the same edit.
    pub(super) fn update_records(
        &mut self,
        [remote_old, remote_new, local_old, local_new]: [&str; 4],
        mut signals: Vec<Signal>,
    ) -> Result<Report, Fault> {
        let path = self.local_path(local_old);
        let original = std::fs::read(&path).map_err(|e| Fault::Local(format!("{local_old}: {e}")))?;
        update::sort(&mut signals);
        let mut result = Vec::new();
        apply(&original[..], &signals, &mut result).map_err(|e| Fault::Local(e.to_string()))?;
        let destination = self.local_path(local_new);
        std::fs::write(&destination, &result).map_err(|e| Fault::Local(format!("{local_new}: {e}")))?;
        let (folder, name) = remote_parts(remote_old);
        let (new_folder, new_name) = remote_parts(remote_new);
        // Both names are given as seen from the original's folder.
        let target = if folder == new_folder { new_name } else { remote_new };
        let update = Update { original: name.to_owned(), target: target.to_owned(), checksum: crc(&original), signals };
        let octets = update.emit();
        let sent = octets.len() as u64;
        self.in_folder(folder, |client| {
            client.with_control_file(octets, |client| {
                let line = format!("UPDT {CONTROL_NAME}");
                let reply = client.on_remote(|cx, remote| remote.demand(cx, &line))?;
                let verdict = match find_crc(&reply.text()) {
                    Some(theirs) if theirs == crc(&result) => Integrity::Ok,
                    Some(_) => Integrity::Mismatch,
                    None => Integrity::NotOffered,
                };
                let mut report = Report::done(reply.text());
                if verdict == Integrity::Mismatch {
                    report = Report::failed("the checksums differ");
                }
                report.reply = Some(reply.code);
                report.octets = Some(sent);
                report.size = Some(result.len() as u64);
                report.integrity = Some(verdict);
                report.crc = Some(crc_text(crc(&result)));
                Ok(report)
            })
        })
    }

    /// Edits by a script, or the difference of two local files.
    pub(super) fn edits(&self, script: &str, local_old: &str) -> Result<Vec<Signal>, Fault> {
        let read = |name: &str| std::fs::read(self.local_path(name)).map_err(|e| Fault::Local(format!("{name}: {e}")));
        if let Some(wanted) = script.strip_prefix("diff:") {
            return difference(&read(local_old)?, &read(wanted)?)
                .ok_or_else(|| Fault::Local(format!("{local_old}: more than 4 GiB")));
        }
        // A script is the signals of a control file, as the difference tool writes them.
        let mut octets = b"-\n-\n0\n".to_vec();
        octets.extend(read(script)?);
        Ok(Update::parse(&octets).map_err(|e| Fault::Local(format!("{script}: {e}")))?.signals)
    }
}

/// The path in a 257 reply.
pub(super) fn quoted_path(reply: &Reply) -> Option<String> {
    let text = reply.text();
    let inner = text.split_once('"')?.1;
    let mut path = String::new();
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '"' {
            path.push(c);
        } else if chars.next_if_eq(&'"').is_some() {
            path.push('"');
        } else {
            return Some(path);
        }
    }
    None
}
