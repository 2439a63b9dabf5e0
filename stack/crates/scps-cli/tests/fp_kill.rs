//! Processes that die: client, server and control connection, at ten seeded points each, both directions, over kernel
//! TCP. What was transferred is whole in the end.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod fp_common;

use fp_common::{client, folders, length, noise, results, run, wait_until, Folders, Server};
use scps_wire::Seed;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const SIZE: usize = 24 << 20;

fn points(name: &str) -> Vec<u64> {
    let mut rng = Seed::from_u64(1997).stream(name);
    (0..10).map(|_| 1 + rng.below(SIZE as u64 * 3 / 4)).collect()
}

struct Case {
    folders: Folders,
    verb: &'static str,
    data: Vec<u8>,
}

impl Case {
    fn new(verb: &'static str) -> Case {
        let folders = folders();
        let data = noise(SIZE, 5);
        let source = if verb == "put" { &folders.client } else { &folders.server };
        fs::write(source.join("file"), &data).unwrap();
        Case { folders, verb, data }
    }

    fn target(&self, name: &str) -> std::path::PathBuf {
        if self.verb == "put" {
            self.folders.server.join(name)
        } else {
            self.folders.client.join(name)
        }
    }

    /// Waits until the receiver has stored `point` octets.
    fn wait_for(&self, point: u64) {
        let (part, whole) = (self.target(".fppart~file"), self.target("file"));
        wait_until("octets are stored", || length(&part) >= point || length(&whole) >= point);
    }

    fn assert_whole(&self, context: &str) {
        assert!(fs::read(self.target("file")).unwrap() == self.data, "{context}: the octets differ");
        assert!(!self.target(".fppart~file").exists(), "{context}: a part was left behind");
    }
}

fn each(name: &str, story: impl Fn(&Case, u64) -> bool) {
    for verb in ["put", "get"] {
        let mut in_middle = 0;
        for point in points(name) {
            let case = Case::new(verb);
            in_middle += u32::from(story(&case, point));
            case.assert_whole(&format!("{name} {verb} at {point}"));
        }
        assert!(in_middle >= 5, "{name} {verb}: only {in_middle} of 10 transfers were hit in the middle");
    }
}

#[test]
fn a_killed_client_is_continued_by_the_next() {
    each("client", |case, point| {
        let server = Server::open(&case.folders, 0);
        let mut victim =
            client(&case.folders, server.address, &format!("autorestart; {} file", case.verb)).spawn().unwrap();
        case.wait_for(point);
        victim.kill().unwrap();
        victim.wait().unwrap();
        let values = run(&case.folders, server.address, &format!("autorestart; resume {} file", case.verb));
        assert_eq!(values[2]["integrity"], "ok", "{values:?}");
        values[2]["octets"].as_u64().unwrap() > 0 && values[2]["markers"][0].as_u64().unwrap() > 0
    });
}

#[test]
fn a_killed_server_is_waited_for() {
    each("server", |case, point| {
        let mut server = Server::open(&case.folders, 0);
        let child = client(&case.folders, server.address, &format!("autorestart; {} file", case.verb)).spawn().unwrap();
        case.wait_for(point);
        server.kill();
        let _again = Server::open(&case.folders, server.address.port());
        let (well, values, text) = results(child);
        assert!(well, "{text}");
        assert_eq!(values[2]["integrity"], "ok", "{text}");
        values[2]["restarts"].as_u64().unwrap() > 0 && values[2]["markers"][1].as_u64().unwrap() > 0
    });
}

/// Passes control connections on, and cuts them when asked; data connections are direct.
fn relay(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<TcpStream>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let all = Arc::clone(&open);
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect(to) else { continue };
            let mut both = all.lock().unwrap();
            both.push(near.try_clone().unwrap());
            both.push(far.try_clone().unwrap());
            for (mut from, mut into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(n @ 1..) = from.read(&mut buffer) {
                        if into.write_all(&buffer[..n]).is_err() {
                            break;
                        }
                    }
                    let _ = into.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (address, open)
}

#[test]
fn a_cut_control_connection_is_made_again() {
    each("control", |case, point| {
        let server = Server::open(&case.folders, 0);
        let (address, open) = relay(server.address);
        let child = client(&case.folders, address, &format!("autorestart; {} file", case.verb)).spawn().unwrap();
        case.wait_for(point);
        for stream in open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let (well, values, text) = results(child);
        assert!(well, "{text}");
        assert_eq!(values[2]["integrity"], "ok", "{text}");
        values[2]["restarts"].as_u64().unwrap() > 0 && values[2]["markers"][1].as_u64().unwrap() > 0
    });
}
