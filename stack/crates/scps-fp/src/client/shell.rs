//! The commands people and scripts write (scps-fp §13); both use the same.

use super::proxy::Direction;
use super::report::{Integrity, Report, Status};
use super::transfer::{Job, Transfer, Way};
use super::{Client, Credentials, Fault, Remote, Start, Urge};
use crate::address::decimal;
use crate::client::attempt::{Course, Flow};
use crate::client::records::quoted_path;
use crate::command::{split_quoted, FileType};
use crate::crc::{crc_of, crc_text};
use crate::diff::difference;
use crate::restart::Failure;
use crate::update::Update;
use std::net::SocketAddr;
use std::path::Path;

/// Finds the address of a name; the core knows no name service.
pub trait Resolver {
    /// The first address of `host`, at `port`.
    fn resolve(&self, host: &str, port: u16) -> Option<SocketAddr>;
}

/// Every command with its arguments and what it does.
pub const VERBS: [(&str, &str, &str); 52] = [
    ("open", "host [port]", "connect"),
    ("user", "name [password] [account]", "log in"),
    ("close", "", "end the session"),
    ("quit", "", "end the session and leave"),
    ("get", "remote [local]", "fetch a file"),
    ("put", "local [remote]", "store a file"),
    ("append", "local [remote]", "append to a remote file"),
    ("resume", "get|put file [file]", "continue where a transfer broke"),
    ("restart", "[marker]", "the next transfer starts there, or where what is stored ends"),
    ("autorestart", "", "broken transfers continue by themselves"),
    ("noautorestart", "", "broken transfers end"),
    ("interrupt", "[octets]", "interrupt the running transfer, or the next one there"),
    ("abort", "[octets]", "abort the running transfer, or the next one there"),
    ("ls", "[path]", "long listing"),
    ("nlist", "[path]", "names only"),
    ("cd", "path", "change the remote directory"),
    ("cdup", "", "to the parent directory"),
    ("pwd", "", "show the remote directory"),
    ("lcd", "path", "change the local directory"),
    ("mkdir", "path", "make a directory"),
    ("rmdir", "path", "remove a directory"),
    ("delete", "path", "delete a file"),
    ("rename", "from to", "rename"),
    ("cp", "from to", "copy a file at the server"),
    ("size", "remote", "size of a remote file"),
    ("lsize", "local", "size of a local file"),
    ("check", "remote local", "compare size and checksum"),
    ("crc", "remote", "checksum of a remote file"),
    ("raread", "remote local ranges [y|n]", "read records; ranges as 0-511,1024-eof; y to go on past missing ones"),
    ("raupdt", "rem-old rem-new loc-old loc-new script", "update records; the script may be diff:FILE"),
    ("recread", "remote local reclen first [last]", "read whole records"),
    ("fpdiff", "old new script", "write the edits that turn one local file into another"),
    ("ascii", "", "type A"),
    ("binary", "", "type I"),
    ("image", "", "type I"),
    ("suppress", "", "replies without text"),
    ("unsuppress", "", "replies with text"),
    ("idle", "seconds", "idle time-out of the server"),
    ("bets", "", "best effort on or off"),
    ("passive", "", "who opens data connections"),
    ("sunique", "", "the server chooses unique names, on or off"),
    ("mode", "stream", "transfer mode"),
    ("struct", "file", "file structure"),
    ("proxy", "command ...", "the same at a second server; get and put move between the two"),
    ("noop", "", "nothing, at the server"),
    ("site", "words", "local services of the server"),
    ("quote", "words", "send a line as it is"),
    ("rstatus", "[path]", "state of the server"),
    ("system", "", "system type of the server"),
    ("rhelp", "", "commands of the server"),
    ("status", "", "state of this side"),
    ("debug", "", "show commands as they are sent, on or off"),
];

type Outcome = Result<Report, Fault>;

fn usage(verb: &str) -> Fault {
    let line = VERBS.iter().find(|(v, _, _)| *v == verb).map_or("", |(_, arguments, _)| arguments);
    Fault::Local(format!("{verb}: expected {verb} {line}"))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Client<'_> {
    /// Runs one line. `None` for an empty one or a comment.
    pub fn run_line(&mut self, line: &str, resolver: &dyn Resolver) -> Option<Report> {
        // Whoever types may have taken his time.
        self.cx.net.look();
        let start = self.cx.net.now();
        let words = match split_quoted(line.trim()) {
            Some(words) if words.is_empty() || words[0].starts_with('#') => return None,
            Some(words) => words,
            None => return Some(Report::failed("a quote without its end")),
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let report = match self.run_words(&words, resolver) {
            Ok(report) => report,
            Err(Fault::Refused(reply)) => {
                Report { reply: Some(reply.code), ..Report::failed(format!("{} {}", reply.code, reply.text())) }
            }
            Err(fault) => Report::failed(fault.to_string()),
        };
        for remote in [&mut self.remote, &mut self.proxy].into_iter().flatten() {
            remote.show(&mut self.cx);
        }
        let shown = match words[..] {
            ["user", name, ..] => format!("user {name}"),
            ["proxy", "user", name, ..] => format!("proxy user {name}"),
            _ => words.join(" "),
        };
        Some(report.timed(shown, self.cx.net.now().since(start)))
    }

    fn run_words(&mut self, words: &[&str], resolver: &dyn Resolver) -> Outcome {
        let (verb, arguments) = (words[0], &words[1..]);
        match (verb, arguments) {
            ("open", [host, rest @ ..]) => self.open(host, rest, resolver),
            ("user", [name, rest @ ..]) => self.user(name, rest),
            ("close" | "quit" | "bye", []) => self.close(),
            ("get", [remote, rest @ ..]) if rest.len() <= 1 => Ok(self.get(remote, rest.first().copied())),
            ("put", [local, rest @ ..]) if rest.len() <= 1 => {
                let way = if self.unique_remote { Way::Unique } else { Way::Replace };
                Ok(self.put(local, rest.first().copied(), way))
            }
            ("append", [local, rest @ ..]) if rest.len() <= 1 => {
                Ok(self.put(local, rest.first().copied(), Way::Append))
            }
            ("resume", [what @ ("get" | "put"), rest @ ..]) if !rest.is_empty() => {
                self.restart = Start::WhatIsStored;
                let again: Vec<&str> = [&[*what][..], rest].concat();
                self.run_words(&again, resolver)
            }
            ("restart", []) => {
                self.restart = self.last_size.take().map_or(Start::WhatIsStored, Start::At);
                Ok(Report::done("the next transfer continues"))
            }
            ("restart", [marker]) => {
                self.restart = Start::At(decimal(marker).ok_or_else(|| usage(verb))?);
                Ok(Report::done(format!("the next transfer starts at {marker}")))
            }
            ("interrupt", rest) => self.arm(Urge::Interrupt, rest).ok_or_else(|| usage(verb)),
            ("abort", rest) => self.arm(Urge::Abort, rest).ok_or_else(|| usage(verb)),
            ("ls" | "dir", rest) => self.listing("LIST", &rest.join(" ")),
            ("nlist", rest) => self.listing("NLST", &rest.join(" ")),
            ("cd", [path]) => self.change_directory(&format!("CWD {path}")),
            ("cdup", []) => self.change_directory("CDUP"),
            ("lcd", [path]) => self.change_local(path),
            ("lsize", [local]) => self.local_size(local),
            ("size", [remote]) => self.size(remote),
            ("crc", [remote]) => self.simple(&format!("SITE CRC {remote}")),
            ("check", [remote, local]) => self.check(remote, local),
            ("raread", [remote, local, ranges, rest @ ..]) => {
                let forced = match rest {
                    [] | ["n" | "N"] => false,
                    ["y" | "Y"] => true,
                    _ => return Err(usage(verb)),
                };
                self.read_records(remote, local, ranges, forced)
            }
            ("recread", [remote, local, reclen, first, rest @ ..]) if rest.len() <= 1 => {
                let number = |text: &str| decimal::<u64>(text).ok_or_else(|| usage(verb));
                let (length, first) = (number(reclen)?, number(first)?);
                let last = rest.first().map_or(Ok(first), |l| number(l))?;
                let octets = records(length, first, last).ok_or_else(|| usage(verb))?;
                self.read_records(remote, local, &octets, false)
            }
            ("raupdt", [rem_old, rem_new, loc_old, loc_new, script]) => {
                let signals = self.edits(script, loc_old)?;
                self.update_records([rem_old, rem_new, loc_old, loc_new], signals)
            }
            ("fpdiff", [old, new, script]) => self.write_difference(old, new, script),
            ("autorestart", []) => self.set_auto_restart(true),
            ("noautorestart", []) => self.set_auto_restart(false),
            ("ascii", []) => self.set_type(FileType::Ascii),
            ("binary" | "image", []) => self.set_type(FileType::Image),
            ("suppress", []) => self.set_suppressed(true),
            ("unsuppress", []) => self.set_suppressed(false),
            ("bets", []) => self.toggle_bets(),
            ("passive", []) => {
                self.cx.passive = !self.cx.passive;
                Ok(Report::done(if self.cx.passive { "passive" } else { "active" }))
            }
            ("sunique", []) => {
                self.unique_remote = !self.unique_remote;
                Ok(Report::done(if self.unique_remote { "unique names" } else { "names as given" }))
            }
            ("debug", []) => {
                self.cx.shows_commands = !self.cx.shows_commands;
                Ok(Report::done(if self.cx.shows_commands { "commands are shown" } else { "commands are not shown" }))
            }
            ("mode", ["stream"] | []) => self.with_digit("MODE S", "MODE 1"),
            ("struct", ["file"] | []) => self.with_digit("STRU F", "STRU 1"),
            ("rename", [from, to]) => {
                self.simple(&format!("RNFR {from}"))?;
                self.simple(&format!("RNTO {to}"))
            }
            ("cp", [from, to]) => self.simple(&format!("COPY {} {}", quoted(from), quoted(to))),
            ("proxy", rest) if !rest.is_empty() => self.proxy_words(rest, resolver),
            ("quote", rest) if !rest.is_empty() => self.quote(&rest.join(" ")),
            ("help", _) => Ok(Report::done(VERBS.map(|(v, a, d)| format!("{v} {a}: {d}")).join("\n"))),
            ("status", []) => Ok(Report::done(self.status())),
            _ => self.plain(verb, arguments),
        }
    }

    /// Commands that are one command of the protocol.
    fn plain(&mut self, verb: &str, arguments: &[&str]) -> Outcome {
        let line = match (verb, arguments) {
            ("pwd", []) => "PWD".to_owned(),
            ("mkdir", [path]) => format!("MKD {path}"),
            ("rmdir", [path]) => format!("RMD {path}"),
            ("delete", [path]) => format!("DELE {path}"),
            ("idle", [seconds]) => format!("IDLE {seconds}"),
            ("noop", []) => "NOOP".to_owned(),
            ("site", words) if !words.is_empty() => format!("SITE {}", words.join(" ")),
            ("rstatus", []) => "STAT".to_owned(),
            ("rstatus", [path]) => format!("STAT {path}"),
            ("system", []) => "SYST".to_owned(),
            ("rhelp", []) => "HELP".to_owned(),
            (known, _) if VERBS.iter().any(|(v, _, _)| *v == known) => return Err(usage(known)),
            (unknown, _) => {
                return Err(Fault::Local(format!("found {unknown:?}; expected a command: help lists them")));
            }
        };
        self.simple(&line)
    }

    fn simple(&mut self, line: &str) -> Outcome {
        let reply = self.on_remote(|cx, remote| remote.demand(cx, line))?;
        Ok(Report { reply: Some(reply.code), ..Report::done(reply.text()) })
    }

    fn quote(&mut self, line: &str) -> Outcome {
        let reply = self.on_remote(|cx, remote| remote.command(cx, line))?;
        let report = if reply.class() < 4 { Report::done(reply.text()) } else { Report::failed(reply.text()) };
        Ok(Report { reply: Some(reply.code), ..report })
    }

    fn with_digit(&mut self, letter: &str, digit: &str) -> Outcome {
        match self.simple(letter) {
            Err(Fault::Refused(reply)) if matches!(reply.code, 501 | 502 | 504) => self.simple(digit),
            other => other,
        }
    }

    fn open(&mut self, host: &str, rest: &[&str], resolver: &dyn Resolver) -> Outcome {
        let port = match rest {
            [] => self.cx.mib.control_port,
            [port] => decimal(port).ok_or_else(|| usage("open"))?,
            _ => return Err(usage("open")),
        };
        let address = resolver.resolve(host, port).ok_or_else(|| Fault::Local(format!("{host}: unknown host")))?;
        self.close_quietly();
        let mut remote = Remote::new(address, self.bind, &self.cx.mib);
        let connected = remote.connect(&mut self.cx).and_then(|reply| {
            remote.set_up(&mut self.cx)?;
            Ok(reply)
        });
        self.remote = Some(remote);
        let reply = connected?;
        self.cx.console.show(&format!("Connected to {host}."));
        Ok(Report { reply: Some(reply.code), ..Report::done(reply.text()) })
    }

    fn user(&mut self, name: &str, rest: &[&str]) -> Outcome {
        let credentials = Credentials {
            user: name.to_owned(),
            password: rest.first().map_or_else(String::new, |p| (*p).to_owned()),
            account: rest.get(1).map(|a| (*a).to_owned()),
        };
        self.on_remote(|cx, remote| {
            remote.wishes.credentials = Some(credentials);
            let done = remote.set_up(cx);
            if done.is_err() {
                remote.wishes.credentials = None;
            }
            done
        })?;
        Ok(Report::done("logged in"))
    }

    fn close(&mut self) -> Outcome {
        let report = self.simple("QUIT");
        self.close_quietly();
        report.or_else(|fault| match fault {
            Fault::Lost(text) => Ok(Report::done(text)),
            other => Err(other),
        })
    }

    fn close_quietly(&mut self) {
        if let Some(mut remote) = self.remote.take() {
            remote.close(&mut self.cx);
        }
    }

    fn get(&mut self, remote: &str, local: Option<&str>) -> Report {
        // A name a server chose is never a local path; this one the user wrote.
        let local = self.local_path(local.unwrap_or(last_part(remote)));
        self.transfer(&Job::Get { remote: remote.to_owned(), local }, "received")
    }

    fn put(&mut self, local: &str, remote: Option<&str>, way: Way) -> Report {
        let remote = remote.unwrap_or(last_part(local)).to_owned();
        self.transfer(&Job::Put { local: self.local_path(local), remote, way }, "sent")
    }

    fn transfer(&mut self, job: &Job, direction: &str) -> Report {
        let start = std::mem::take(&mut self.restart);
        let report = match &mut self.remote {
            Some(remote) => Transfer::run(&mut self.cx, remote, start, job),
            None => Report::failed("not connected"),
        };
        if !report.is_complete() {
            self.last_size = report.marker.or(self.last_size);
        }
        self.cx.console.show(&format!("{} bytes {direction}", report.octets.unwrap_or(0)));
        report
    }

    fn arm(&mut self, urge: Urge, arguments: &[&str]) -> Option<Report> {
        let at = match arguments {
            [] => 0,
            [octets] => decimal(octets)?,
            _ => return None,
        };
        self.cx.armed = Some((urge, at));
        Some(Report::done(format!("the next transfer ends after {at} octets")))
    }

    fn listing(&mut self, verb: &str, path: &str) -> Outcome {
        let line = if path.is_empty() { verb.to_owned() } else { format!("{verb} {path}") };
        let mut text = Vec::new();
        let mut course = Course::default();
        self.attempt(&line, Flow::Collect(&mut text), &mut course).map_err(|failure| match failure {
            Failure::Broken(t) | Failure::Busy(t) | Failure::Final(t) => Fault::Local(t),
            Failure::Interrupted(_) | Failure::Aborted => Fault::Local("ended by the user".to_owned()),
        })?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<String> = text.lines().map(|l| l.chars().filter(|c| !c.is_control()).collect()).collect();
        for line in &lines {
            self.cx.console.show(line);
        }
        Ok(Report { reply: course.last_reply, ..Report::done(lines.join("\n")) })
    }

    fn change_directory(&mut self, line: &str) -> Outcome {
        let reply = self.on_remote(|cx, remote| {
            let reply = remote.demand(cx, line)?;
            // What a new session has to go back to.
            let here = remote.demand(cx, "PWD")?;
            remote.wishes.directory = quoted_path(&here);
            Ok(reply)
        })?;
        Ok(Report { reply: Some(reply.code), ..Report::done(reply.text()) })
    }

    fn change_local(&mut self, path: &str) -> Outcome {
        let folder = self.local_path(path);
        if !folder.is_dir() {
            return Err(Fault::Local(format!("{}: not a directory", folder.display())));
        }
        let text = folder.display().to_string();
        self.folder = folder;
        Ok(Report::done(text))
    }

    fn local_size(&mut self, local: &str) -> Outcome {
        let path = self.local_path(local);
        let metadata = std::fs::metadata(&path).map_err(|e| Fault::Local(format!("{local}: {e}")))?;
        self.last_size = Some(metadata.len());
        Ok(Report { size: Some(metadata.len()), ..Report::done(metadata.len().to_string()) })
    }

    fn size(&mut self, remote: &str) -> Outcome {
        let size = self
            .on_remote(|cx, server| server.size(cx, remote))?
            .ok_or_else(|| Fault::Local(format!("{remote}: no size")))?;
        self.last_size = Some(size);
        Ok(Report { size: Some(size), ..Report::done(size.to_string()) })
    }

    /// Length and checksum; equal checksums alone prove nothing (scps-fp §5.1).
    fn check(&mut self, remote: &str, local: &str) -> Outcome {
        let path = self.local_path(local);
        let file = std::fs::File::open(&path).map_err(|e| Fault::Local(format!("{local}: {e}")))?;
        let (ours, length) = crc_of(file).map_err(|e| Fault::Local(format!("{local}: {e}")))?;
        let their_size = self.on_remote(|cx, server| server.size(cx, remote))?;
        let theirs = self.on_remote(|cx, server| server.crc(cx, remote))?;
        let (status, integrity, text) = match (their_size, theirs) {
            (Some(size), _) if size != length => {
                (Status::Failed, Integrity::Mismatch, format!("{length} octets here, {size} there"))
            }
            (_, Some(crc)) if crc != ours => (Status::Failed, Integrity::Mismatch, "the checksums differ".to_owned()),
            (Some(_), Some(_)) => (Status::Complete, Integrity::Ok, "size and checksum are equal".to_owned()),
            (Some(_), None) => {
                let text = "the sizes are equal; the server offers no checksum";
                (Status::Complete, Integrity::NotOffered, text.to_owned())
            }
            (None, _) => {
                let text = format!("{remote}: the server tells no size; nothing is proven");
                (Status::Failed, Integrity::NotOffered, text)
            }
        };
        Ok(Report {
            status,
            size: Some(length),
            integrity: Some(integrity),
            crc: Some(crc_text(ours)),
            text,
            ..Report::default()
        })
    }

    fn write_difference(&mut self, old: &str, new: &str, script: &str) -> Outcome {
        let read = |name: &str| std::fs::read(self.local_path(name)).map_err(|e| Fault::Local(format!("{name}: {e}")));
        let signals =
            difference(&read(old)?, &read(new)?).ok_or_else(|| Fault::Local(format!("{old}: more than 4 GiB")))?;
        let count = signals.len();
        let update = Update { original: String::new(), target: String::new(), checksum: 0, signals };
        // Only the signals; the header is written when the update is sent.
        let octets = update.emit().split_off(b"\n\n0\n".len());
        let path: &Path = &self.local_path(script);
        std::fs::write(path, &octets).map_err(|e| Fault::Local(format!("{script}: {e}")))?;
        Ok(Report { octets: Some(octets.len() as u64), ..Report::done(format!("{count} signals")) })
    }

    fn set_auto_restart(&mut self, on: bool) -> Outcome {
        self.on_remote(|cx, remote| {
            remote.wishes.auto_restart = on;
            let verb = if on { "ARST" } else { "NARS" };
            let known = remote.extension(cx, verb, verb)?.is_some();
            let state = if on { "automatic restart on" } else { "automatic restart off" };
            Ok(Report::done(format!("{state}{}", if known { "" } else { "; the server does not know it" })))
        })
    }

    fn set_type(&mut self, file_type: FileType) -> Outcome {
        let report = self.simple(&format!("TYPE {}", file_type.letter()))?;
        self.on_remote(|_, remote| {
            remote.wishes.file_type = file_type;
            Ok(report)
        })
    }

    fn set_suppressed(&mut self, on: bool) -> Outcome {
        let report = self.simple(if on { "SUPP" } else { "NSUP" })?;
        self.on_remote(|_, remote| {
            remote.wishes.suppressed = Some(on);
            Ok(report)
        })
    }

    fn toggle_bets(&mut self) -> Outcome {
        let on = !self.remote.as_ref().is_some_and(|r| r.wishes.bets);
        let line = if on { format!("BETS {}", self.cx.mib.bets_fill) } else { "NBES".to_owned() };
        let report = self.simple(&line)?;
        self.on_remote(|_, remote| {
            remote.wishes.bets = on;
            Ok(report)
        })
    }

    /// Acts on the second server; `get` and `put` move between the two.
    fn proxy_words(&mut self, words: &[&str], resolver: &dyn Resolver) -> Outcome {
        match words {
            ["get", source, rest @ ..] if rest.len() <= 1 => {
                self.proxy_transfer(Direction::ToSecondary, source, rest.first().unwrap_or(&last_part(source)))
            }
            ["put", source, rest @ ..] if rest.len() <= 1 => {
                self.proxy_transfer(Direction::ToPrimary, source, rest.first().unwrap_or(&last_part(source)))
            }
            ["proxy", ..] => Err(Fault::Local("proxy: expected a command, not proxy again".to_owned())),
            others => {
                std::mem::swap(&mut self.remote, &mut self.proxy);
                let result = self.run_words(others, resolver);
                std::mem::swap(&mut self.remote, &mut self.proxy);
                result
            }
        }
    }

    fn status(&self) -> String {
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        let Some(remote) = &self.remote else { return "not connected".to_owned() };
        format!(
            "{} {}; type {}; automatic restart {}; best effort {}; data connections {}",
            if remote.is_connected() { "connected to" } else { "lost" },
            remote.address,
            remote.wishes.file_type.letter(),
            on(remote.wishes.auto_restart),
            on(remote.wishes.bets),
            if self.cx.passive { "passive" } else { "active" },
        )
    }
}

/// Records `first` to `last` of `length` octets each, as a range of octets.
fn records(length: u64, first: u64, last: u64) -> Option<String> {
    let (low, end) = (first.checked_mul(length)?, last.checked_add(1)?.checked_mul(length)?);
    (low < end).then(|| format!("{low}-{}", end - 1))
}

/// A name as COPY wants it.
fn quoted(name: &str) -> String {
    if name.contains([' ', '"']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}
