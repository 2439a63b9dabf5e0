//! Transfers between two servers, the client commanding both (scps-fp §12).

use super::report::{Report, Status};
use super::{failure_of, Client, Fault, Remote, Start, Urge};
use crate::address::{find_port, port_text};
use crate::net::Net;
use crate::reply::{find_marker, Reply};
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

struct Sides<'r> {
    sender: &'r mut Remote,
    receiver: &'r mut Remote,
    /// The primary opens the data connection, so it gets PORT and goes first.
    sender_is_primary: bool,
}

impl Client<'_> {
    /// Moves `source` at one server to `target` at the other.
    pub(super) fn proxy_transfer(&mut self, direction: Direction, source: &str, target: &str) -> Result<Report, Fault> {
        let (Some(mut primary), Some(mut secondary)) = (self.remote.take(), self.proxy.take()) else {
            return Err(Fault::Local(
                "found no proxy connection; expected `proxy open` and `proxy user` before".to_owned(),
            ));
        };
        let enabled = primary.wishes.auto_restart;
        let mut sides = match direction {
            Direction::ToSecondary => Sides { sender: &mut primary, receiver: &mut secondary, sender_is_primary: true },
            Direction::ToPrimary => Sides { sender: &mut secondary, receiver: &mut primary, sender_is_primary: false },
        };
        let report = self.proxy_attempts(&mut sides, source, target, enabled);
        self.remote = Some(primary);
        self.proxy = Some(secondary);
        self.echo();
        Ok(report)
    }

    fn proxy_attempts(&mut self, sides: &mut Sides<'_>, source: &str, target: &str, enabled: bool) -> Report {
        let mut attempts = Attempts::new(&self.mib, enabled, self.net.now());
        let mut marker = match std::mem::take(&mut self.restart) {
            Start::Fresh => None,
            Start::WhatIsStored => self.stored_at(sides.receiver, target),
            Start::At(marker) => Some(marker),
        };
        let mut report = Report::default();
        loop {
            report.markers.push(marker.unwrap_or(0));
            let mut failure = match self.proxy_once(sides, source, target, marker.unwrap_or(0)) {
                Ok(reply) => {
                    report.reply = Some(reply.code);
                    report.text = reply.text();
                    report.size = self.stored_at(sides.receiver, target);
                    break;
                }
                Err(failure) => failure,
            };
            if let Failure::Interrupted(at) = failure {
                report.status = Status::Interrupted;
                report.marker = Some(at).filter(|n| *n != u64::MAX).or_else(|| self.stored_at(sides.receiver, target));
                self.last_size = report.marker;
                break;
            }
            loop {
                match attempts.judge(&failure, self.net.now()) {
                    Decision::GiveUp(text) => {
                        report.status = if failure == Failure::Aborted { Status::Aborted } else { Status::Failed };
                        report.text = text;
                        report.restarts = Some(attempts.restarts);
                        return report;
                    }
                    Decision::RetryAt(at) => {
                        report.notes.push(format!("restart {}: {failure:?}", attempts.restarts));
                        while self.net.now() < at {
                            if self.net.wait(Some(at)).is_err() {
                                break;
                            }
                        }
                    }
                }
                let brought_back = [&mut *sides.sender, &mut *sides.receiver].into_iter().try_for_each(|r| {
                    if r.is_connected() && r.resynchronise(self.net, &self.mib).is_ok() {
                        return Ok(());
                    }
                    r.connect(self.net, &self.mib).and_then(|_| r.set_up(self.net, &self.mib))
                });
                match brought_back {
                    Ok(()) => break,
                    Err(fault) => failure = fault.into(),
                }
            }
            marker = self.stored_at(sides.receiver, target);
        }
        report.restarts = Some(attempts.restarts);
        report
    }

    fn stored_at(&mut self, remote: &mut Remote, path: &str) -> Option<u64> {
        let mut names = vec![path.to_owned()];
        if remote.is_kin() {
            names.insert(0, crate::private::part_path(path));
        }
        for name in names {
            let reply = remote.command(self.net, &self.mib, &format!("SIZE {name}")).ok()?;
            if reply.code == 213 {
                return crate::reply::find_size(&reply.text());
            }
        }
        None
    }

    fn proxy_once(&mut self, sides: &mut Sides<'_>, source: &str, target: &str, marker: u64) -> Result<Reply, Failure> {
        let Sides { sender, receiver, sender_is_primary } = sides;
        let (active, passive): (&mut Remote, &mut Remote) =
            if *sender_is_primary { (sender, receiver) } else { (receiver, sender) };
        let letter = active.wishes.file_type.letter();
        let line = format!("TYPE {letter}");
        passive.demand(self.net, &self.mib, &line)?;
        active.demand(self.net, &self.mib, &line)?;
        let reply = passive.demand(self.net, &self.mib, "PASV")?;
        let address =
            find_port(&reply.text()).ok_or_else(|| Failure::Final(format!("no address in {:?}", reply.text())))?;
        let IpAddr::V4(ip) = address.ip() else { return Err(Failure::Final("proxy needs IPv4".to_owned())) };
        active.demand(self.net, &self.mib, &format!("PORT {}", port_text(ip, address.port())))?;
        let mut is_refused = false;
        for remote in [&mut *active, &mut *passive] {
            is_refused |= remote.restart_at(self.net, &self.mib, marker)?.is_err();
        }
        if is_refused {
            // Where one of the two cannot start, none does.
            for remote in [&mut *active, &mut *passive] {
                remote.restart_at(self.net, &self.mib, 0)?.ok();
            }
        }
        let (retr, stor) = (format!("RETR {source}"), format!("STOR {target}"));
        let (to_active, to_passive) = if *sender_is_primary { (&retr, &stor) } else { (&stor, &retr) };
        // Both before any reply: each waits for the other's end of the data connection.
        active.send(self.net, to_active)?;
        passive.send(self.net, to_passive)?;
        self.proxy_replies(sides)
    }

    fn proxy_replies(&mut self, sides: &mut Sides<'_>) -> Result<Reply, Failure> {
        let mut sent: Option<Reply> = None;
        let mut stored: Option<Reply> = None;
        let mut last_word = self.net.now();
        let mut begun = 0;
        loop {
            let urge = self.console.urge().or_else(|| {
                // Octets cannot be counted here; an armed wish comes up as soon as both have begun.
                (begun >= 2).then(|| self.armed.take().map(|(urge, _)| urge)).flatten()
            });
            if let Some(urge) = urge {
                return self.proxy_stop(sides, urge);
            }
            let mut heard = false;
            let mut failed = None;
            for (remote, done) in [(&mut *sides.sender, &mut sent), (&mut *sides.receiver, &mut stored)] {
                if done.is_some() {
                    continue;
                }
                let Some(reply) = remote.poll(self.net)? else { continue };
                heard = true;
                match reply.class() {
                    1 => begun += 1,
                    2 => *done = Some(reply),
                    _ => failed = Some(failure_of(&reply)),
                }
            }
            if let Some(failure) = failed {
                self.proxy_reconcile(sides)?;
                return Err(failure);
            }
            if let (Some(_), Some(reply)) = (&sent, &stored) {
                return Ok(reply.clone());
            }
            let now = self.net.now();
            if heard {
                last_word = now;
                continue;
            }
            // Nothing can be seen of the data; a STAT now and then shows that both are alive and moving.
            let until = last_word + self.mib.data_timeout;
            if now >= until {
                self.proxy_pulse(sides, sent.is_some(), stored.is_some())?;
                last_word = self.net.now();
                continue;
            }
            self.net.wait(Some(until)).map_err(|e| Failure::Final(e.to_string()))?;
        }
    }

    fn proxy_pulse(&mut self, sides: &mut Sides<'_>, sent: bool, stored: bool) -> Result<(), Failure> {
        let until = self.net.now() + self.mib.reply_timeout;
        for (remote, done) in [(&mut *sides.sender, sent), (&mut *sides.receiver, stored)] {
            if !done {
                remote.pulse(self.net, until)?;
            }
        }
        Ok(())
    }

    /// Something went wrong on one side: both are brought to rest.
    fn proxy_reconcile(&mut self, sides: &mut Sides<'_>) -> Result<(), Failure> {
        for remote in [&mut *sides.sender, &mut *sides.receiver] {
            if remote.is_connected() {
                remote.send(self.net, "ABOR")?;
                remote.resynchronise(self.net, &self.mib)?;
            }
        }
        Ok(())
    }

    fn proxy_stop(&mut self, sides: &mut Sides<'_>, urge: Urge) -> Result<Reply, Failure> {
        if urge == Urge::Abort {
            self.proxy_reconcile(sides)?;
            return Err(Failure::Aborted);
        }
        // The sender first, so that nothing new is on its way when the receiver counts (scps-fp §12).
        let first = interrupt(self.net, sides.sender, self.mib.reply_timeout)?;
        if first.code != 256 {
            let until = self.net.now() + self.mib.reply_timeout;
            return Ok(sides.receiver.final_reply(self.net, until)?);
        }
        let second = interrupt(self.net, sides.receiver, self.mib.reply_timeout)?;
        let marker = find_marker(&second.text()).filter(|_| second.code == 256);
        for remote in [&mut *sides.sender, &mut *sides.receiver] {
            remote.resynchronise(self.net, &self.mib)?;
        }
        Err(Failure::Interrupted(marker.unwrap_or(u64::MAX)))
    }
}

fn interrupt(net: &mut dyn Net, remote: &mut Remote, patience: scps_types::Duration) -> Result<Reply, Fault> {
    remote.send(net, "INTR")?;
    let until = net.now() + patience;
    remote.final_reply(net, until)
}
