//! Our client against a server with the habits of the reference implementation: 16 bits of a marker, which it keeps when
//! the command after it fails, no truncation after a restart, checksums of the octets of one connection.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod fp_common;

use fp_common::{client, folders, noise, results, Folders};
use scps_fp::crc::{crc, crc_text};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

/// How the server goes wrong beyond its habits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Every STOR breaks after this many octets, of which nothing is kept.
    Forgets(usize),
}

struct Session {
    control: TcpStream,
    root: PathBuf,
    target: Option<SocketAddr>,
    marker: i16,
    said: Vec<String>,
    fault: Fault,
}

impl Session {
    fn reply(&mut self, text: &str) {
        let _ = self.control.write_all(format!("{text}\r\n").as_bytes());
    }

    fn store(&mut self, name: &str) {
        let path = self.root.join(name);
        let mut kept = fs::read(&path).unwrap_or_default();
        let Ok(at) = usize::try_from(self.marker) else { return self.reply("550 Bad restart point.") };
        if at > kept.len() {
            return self.reply("550 Bad restart point.");
        }
        let mut data = TcpStream::connect(self.target.unwrap()).unwrap();
        self.reply("150 opening");
        let mut octets = Vec::new();
        if let Fault::Forgets(most) = self.fault {
            octets.resize(most, 0);
            let _ = data.read_exact(&mut octets);
            return self.reply("426 broken off");
        }
        data.read_to_end(&mut octets).unwrap();
        if at == 0 {
            kept.clear();
        }
        kept.resize(kept.len().max(at + octets.len()), 0);
        kept[at..at + octets.len()].copy_from_slice(&octets);
        fs::write(path, kept).unwrap();
        self.marker = 0;
        self.reply(&format!("226 {}", crc_text(crc(&octets))));
    }

    fn retrieve(&mut self, name: &str) {
        let octets = fs::read(self.root.join(name)).unwrap_or_default();
        let at = usize::try_from(self.marker).ok().filter(|at| *at <= octets.len());
        let Some(at) = at else { return self.reply("550 Bad restart point.") };
        self.marker = 0;
        let mut data = TcpStream::connect(self.target.unwrap()).unwrap();
        self.reply("150 opening");
        data.write_all(&octets[at..]).unwrap();
        drop(data);
        self.reply(&format!("226 {}", crc_text(crc(&octets[at..]))));
    }

    /// False at the end.
    fn obey(&mut self, line: &str) -> bool {
        self.said.push(line.to_owned());
        let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
        let path = self.root.join(argument);
        match verb {
            "QUIT" => {
                self.reply("221 Bye");
                return false;
            }
            "NOOP" => self.reply("250 OK"),
            "NSUP" | "SUPP" => self.reply("211 OK"),
            "TYPE" | "ARST" | "NARS" => self.reply("200 OK"),
            "PORT" => {
                self.target = scps_fp::address::find_port(argument);
                self.reply("200 OK");
            }
            "REST" => {
                self.marker = argument.parse::<u64>().unwrap() as i16;
                let shown = i32::from(self.marker) as u32;
                self.reply(&format!("350 Next RETR or STOR will start at location {shown}"));
            }
            "SIZE" => match fs::metadata(path) {
                Ok(m) => self.reply(&format!("213 {argument} SIZE {} bytes", m.len())),
                Err(_) => self.reply("550 none"),
            },
            // The reference loses what was there.
            "STOR" | "APPE" => self.store(argument),
            "RETR" => self.retrieve(argument),
            "SITE" => match fs::read(self.root.join(argument.trim_start_matches("CRC "))) {
                Ok(octets) => self.reply(&format!("250 {}", crc_text(crc(&octets)))),
                Err(_) => self.reply("250 CRC:FFFFFFFF"),
            },
            _ => self.reply("500 unknown"),
        }
        true
    }
}

/// Serves one session after the other until a client is done; what clients said.
fn serve(folders: &Folders, fault: Fault, commands: &str) -> (bool, Vec<serde_json::Value>, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let child = client(folders, address, commands).spawn().unwrap();
    let control = listener.accept().unwrap().0;
    let lines = BufReader::new(control.try_clone().unwrap());
    let root = folders.server.clone();
    let mut session = Session { control, root, target: None, marker: 0, said: Vec::new(), fault };
    session.reply("220 SCPS-FP server (V : C) ready.");
    for line in lines.lines() {
        if !line.is_ok_and(|line| session.obey(&line)) {
            break;
        }
    }
    let (well, values, _) = results(child);
    (well, values, session.said)
}

#[test]
fn a_marker_that_the_server_wraps_is_taken_back_and_the_file_sent_from_the_start() {
    for (command, direction) in [("put f", "put"), ("get f", "get")] {
        let folders = folders();
        let data = noise(100_000, 1);
        let (source, target) = match direction {
            "put" => (&folders.client, &folders.server),
            _ => (&folders.server, &folders.client),
        };
        fs::write(source.join("f"), &data).unwrap();
        // What an interrupted transfer left: more than 16 bits count, the part of the client under its own name.
        fs::write(target.join("f"), &data[..70_000]).unwrap();
        let (well, values, said) = serve(&folders, Fault::None, &format!("resume {command}"));
        assert!(well, "{values:?}\n{said:?}");
        let report = values.iter().find(|v| v["markers"].is_array()).unwrap();
        assert_eq!((&report["status"], &report["integrity"]), (&"complete".into(), &"ok".into()), "{report}");
        assert_eq!(fs::read(target.join("f")).unwrap(), data, "{direction}");
        let wrapped = said.iter().position(|l| l == "REST 70000").unwrap();
        assert_eq!(said[wrapped + 1], "REST 0", "{said:?}");
    }
}

#[test]
fn a_marker_that_waited_for_the_next_transfer_is_found_by_the_size() {
    let folders = folders();
    fs::write(folders.server.join("f"), [b'o'; 5000]).unwrap();
    let data = noise(9000, 2);
    fs::write(folders.client.join("f"), &data).unwrap();
    let (well, values, said) = serve(&folders, Fault::None, "quote REST 5000; put f");
    assert!(well, "{values:?}\n{said:?}");
    let report = values.last().unwrap();
    assert_eq!((&report["status"], &report["integrity"]), (&"complete".into(), &"ok".into()), "{report}");
    assert_eq!(fs::read(folders.server.join("f")).unwrap(), data);
    assert_eq!(said.iter().filter(|l| *l == "STOR f").count(), 2, "{said:?}");
}

#[test]
fn an_append_that_loses_what_was_there_is_found_by_the_size_and_not_repeated() {
    let folders = folders();
    fs::write(folders.server.join("f"), [b'o'; 5000]).unwrap();
    fs::write(folders.client.join("f"), noise(9000, 2)).unwrap();
    let (well, values, said) = serve(&folders, Fault::None, "append f");
    assert!(!well, "{values:?}");
    let report = values.iter().find(|v| v["status"] == "failed").unwrap();
    assert_eq!((&report["integrity"], &report["text"]), (&"mismatch".into(), &"the sizes differ".into()), "{report}");
    assert!(report["notes"].to_string().contains("14000 here, Some(9000) there"), "{report}");
    assert_eq!(said.iter().filter(|l| *l == "APPE f").count(), 1, "{said:?}");
}

#[test]
fn automatic_restart_ends_where_nothing_is_ever_stored() {
    let folders = folders();
    fs::write(folders.client.join("f"), noise(400_000, 3)).unwrap();
    let (well, values, said) = serve(&folders, Fault::Forgets(1000), "autorestart; put f");
    assert!(!well);
    let text = values.iter().find(|v| v["status"] == "failed").unwrap()["text"].to_string();
    assert!(text.contains("no further"), "{text}");
    assert!(said.iter().filter(|l| *l == "STOR f").count() < 20, "{said:?}");
}
