//! Transfers between two servers, the client commanding both (scps-fp §12).

use super::report::{Integrity, Report, Status};
use super::{failure_of, Client, Context, Fault, Remote, Start, Urge};
use crate::address::{find_port, port_text};
use crate::command::FileType;
use crate::private::part_path;
use crate::reply::{find_marker, find_size, Reply};
use crate::restart::{Attempts, Decision, Failure};
use std::net::IpAddr;

/// Which server sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// From the primary to the secondary (`proxy get`).
    ToSecondary,
    /// From the secondary to the primary (`proxy put`).
    ToPrimary,
}

/// A transfer between two servers.
struct Exchange<'r, 'a> {
    cx: &'r mut Context<'a>,
    sender: &'r mut Remote,
    receiver: &'r mut Remote,
    /// The primary opens the data connection, so it gets PORT and goes first.
    sender_is_primary: bool,
    /// The receiver has begun at least once: what it stores under this name is ours.
    begun: bool,
}

impl Client<'_> {
    /// Moves `source` at one server to `target` at the other.
    pub(super) fn proxy_transfer(&mut self, direction: Direction, source: &str, target: &str) -> Result<Report, Fault> {
        let Client { cx, remote: Some(primary), proxy: Some(secondary), .. } = self else {
            return Err(Fault::Local(
                "found no proxy connection; expected `proxy open` and `proxy user` before".to_owned(),
            ));
        };
        let enabled = primary.wishes.auto_restart;
        let sender_is_primary = direction == Direction::ToSecondary;
        let (sender, receiver) = if sender_is_primary { (primary, secondary) } else { (secondary, primary) };
        let mut exchange = Exchange { cx, sender, receiver, sender_is_primary, begun: false };
        let report = exchange.run(std::mem::take(&mut self.restart), source, target, enabled);
        if report.status == Status::Interrupted {
            self.last_size = report.marker;
        }
        Ok(report)
    }
}

impl Exchange<'_, '_> {
    fn run(&mut self, start: Start, source: &str, target: &str, enabled: bool) -> Report {
        let mut attempts = Attempts::new(&self.cx.mib, enabled, self.cx.net.now());
        let mut marker = match start {
            Start::Fresh => None,
            Start::WhatIsStored => self.stored(target),
            Start::At(marker) => Some(marker),
        };
        let mut report = Report::default();
        loop {
            report.markers.push(marker.unwrap_or(0));
            let result = self.attempt(source, target, marker.unwrap_or(0)).and_then(|reply| {
                if report.markers.last() > Some(&0) {
                    self.prove_whole(source, target, &mut report)?;
                }
                Ok(reply)
            });
            let mut failure = match result {
                Ok(reply) => {
                    report.reply = Some(reply.code);
                    report.text = reply.text();
                    report.size = self.stored(target);
                    break;
                }
                Err(failure) => failure,
            };
            loop {
                match attempts.judge(&failure, self.cx.net.now()) {
                    Decision::GiveUp(text) => {
                        report.status = match failure {
                            Failure::Interrupted(_) => Status::Interrupted,
                            Failure::Aborted => Status::Aborted,
                            _ => Status::Failed,
                        };
                        if let Failure::Interrupted(at) = failure {
                            report.marker = Some(at)
                                .filter(|n| *n != u64::MAX)
                                .or_else(|| self.stored(target).filter(|_| self.begun));
                        } else {
                            report.text = text;
                        }
                        report.restarts = Some(attempts.restarts);
                        return report;
                    }
                    Decision::RetryAt(at) => {
                        report.notes.push(format!("restart {}: {failure:?}", attempts.restarts));
                        let result = self.cx.pause(at).and_then(|()| {
                            self.sender.recover(self.cx)?;
                            Ok(self.receiver.recover(self.cx)?)
                        });
                        match result {
                            Ok(()) => break,
                            Err(next) => failure = next,
                        }
                    }
                }
            }
            if self.begun {
                marker = self.stored(target);
            }
        }
        report.restarts = Some(attempts.restarts);
        report
    }

    fn stored(&mut self, path: &str) -> Option<u64> {
        let part = self.receiver.is_kin().then(|| part_path(path));
        for name in part.into_iter().chain([path.to_owned()]) {
            let reply = self.receiver.command(self.cx, &format!("SIZE {name}")).ok()?;
            if reply.code == 213 {
                return find_size(&reply.text());
            }
        }
        None
    }

    /// After a restart: length and, if nothing translates, checksum of the whole file at both servers.
    fn prove_whole(&mut self, source: &str, target: &str, report: &mut Report) -> Result<(), Failure> {
        let Exchange { cx, sender, receiver, sender_is_primary, .. } = self;
        let sizes = (sender.size(cx, source)?, receiver.size(cx, target)?);
        let sums = (sender.crc(cx, source)?, receiver.crc(cx, target)?);
        let primary = if *sender_is_primary { sender } else { receiver };
        let is_image = primary.wishes.file_type == FileType::Image;
        let (integrity, text) = match (sizes, sums) {
            ((Some(a), Some(b)), _) if a != b => (Integrity::Mismatch, "the sizes differ"),
            (_, (Some(a), Some(b))) if is_image && a != b => (Integrity::Mismatch, "the checksums differ"),
            ((Some(_), Some(_)), (Some(_), Some(_))) if is_image => (Integrity::Ok, ""),
            _ => (Integrity::NotOffered, ""),
        };
        report.integrity = Some(integrity);
        if integrity == Integrity::Mismatch {
            return Err(Failure::Final(text.to_owned()));
        }
        Ok(())
    }

    fn attempt(&mut self, source: &str, target: &str, marker: u64) -> Result<Reply, Failure> {
        let Exchange { cx, sender, receiver, sender_is_primary, .. } = self;
        let (active, passive): (&mut Remote, &mut Remote) =
            if *sender_is_primary { (sender, receiver) } else { (receiver, sender) };
        let letter = active.wishes.file_type.letter();
        let line = format!("TYPE {letter}");
        passive.demand(cx, &line)?;
        active.demand(cx, &line)?;
        let reply = passive.demand(cx, "PASV")?;
        let address =
            find_port(&reply.text()).ok_or_else(|| Failure::Final(format!("no address in {:?}", reply.text())))?;
        let IpAddr::V4(ip) = address.ip() else { return Err(Failure::Final("proxy needs IPv4".to_owned())) };
        active.demand(cx, &format!("PORT {}", port_text(ip, address.port())))?;
        let mut is_refused = false;
        for remote in [&mut *active, &mut *passive] {
            is_refused |= remote.restart_at(cx, marker)?.is_err();
        }
        if is_refused {
            // Where one of the two cannot start, none does.
            for remote in [&mut *active, &mut *passive] {
                remote.restart_at(cx, 0)?.ok();
            }
        }
        let (retr, stor) = (format!("RETR {source}"), format!("STOR {target}"));
        let (to_active, to_passive) = if *sender_is_primary { (&retr, &stor) } else { (&stor, &retr) };
        // Both before any reply: each waits for the other's end of the data connection.
        active.send(cx, to_active)?;
        passive.send(cx, to_passive)?;
        self.replies()
    }

    fn replies(&mut self) -> Result<Reply, Failure> {
        let mut sent: Option<Reply> = None;
        let mut stored: Option<Reply> = None;
        let mut last_word = self.cx.net.now();
        let mut begun = [false; 2];
        loop {
            // Octets cannot be counted here; an armed wish comes up as soon as both have begun.
            let urge = if begun == [true; 2] { self.cx.urge(u64::MAX) } else { self.cx.console.urge() };
            if let Some(urge) = urge {
                return self.stop(urge, stored);
            }
            let mut heard = false;
            let mut failed = None;
            let sides = [(&mut *self.sender, &mut sent), (&mut *self.receiver, &mut stored)];
            for ((remote, done), begun) in sides.into_iter().zip(&mut begun) {
                if done.is_some() {
                    continue;
                }
                let Some(reply) = remote.poll(self.cx)? else { continue };
                heard = true;
                match reply.class() {
                    1 => *begun = true,
                    2 => *done = Some(reply),
                    _ => failed = Some(failure_of(&reply)),
                }
            }
            self.begun |= begun[1];
            if let Some(failure) = failed {
                self.reconcile()?;
                return Err(failure);
            }
            if let (Some(_), Some(reply)) = (&sent, &stored) {
                return Ok(reply.clone());
            }
            let now = self.cx.net.now();
            if heard {
                last_word = now;
                continue;
            }
            // Nothing can be seen of the data; a STAT now and then shows that both are alive and moving.
            let until = last_word + self.cx.mib.data_timeout;
            if now >= until {
                self.pulse(sent.is_some(), stored.is_some())?;
                last_word = self.cx.net.now();
                continue;
            }
            self.cx.wait(until)?;
        }
    }

    fn pulse(&mut self, sent: bool, stored: bool) -> Result<(), Failure> {
        let until = self.cx.reply_deadline();
        for (remote, done) in [(&mut *self.sender, sent), (&mut *self.receiver, stored)] {
            if !done {
                remote.pulse(self.cx, until)?;
            }
        }
        Ok(())
    }

    /// Something went wrong on one side: both are brought to rest.
    fn reconcile(&mut self) -> Result<(), Failure> {
        for remote in [&mut *self.sender, &mut *self.receiver] {
            if remote.is_connected() {
                remote.send(self.cx, "ABOR")?;
                remote.resynchronise(self.cx)?;
            }
        }
        Ok(())
    }

    /// Ends it at the user's wish; `stored` is the receiver's final reply if it is there.
    fn stop(&mut self, urge: Urge, stored: Option<Reply>) -> Result<Reply, Failure> {
        if urge == Urge::Abort {
            self.reconcile()?;
            return Err(Failure::Aborted);
        }
        // The sender first, so that nothing new is on its way when the receiver counts (scps-fp §12).
        let first = interrupt(self.cx, self.sender)?;
        if first.code != 256 {
            // The sender had ended before it read INTR, which has an answer of its own; the receiver ends by itself.
            self.sender.resynchronise(self.cx)?;
            let until = self.cx.reply_deadline();
            let reply = stored.map_or_else(|| self.receiver.final_reply(self.cx, until), Ok)?;
            return if reply.is_done() { Ok(reply) } else { Err(failure_of(&reply)) };
        }
        let second = interrupt(self.cx, self.receiver)?;
        let marker = find_marker(&second.text()).filter(|_| second.code == 256);
        for remote in [&mut *self.sender, &mut *self.receiver] {
            remote.resynchronise(self.cx)?;
        }
        Err(Failure::Interrupted(marker.unwrap_or(u64::MAX)))
    }
}

fn interrupt(cx: &mut Context<'_>, remote: &mut Remote) -> Result<Reply, Fault> {
    remote.send(cx, "INTR")?;
    let until = cx.reply_deadline();
    remote.final_reply(cx, until)
}
