//! Programs that answer over UDP encapsulation without a named remote; no privileges are needed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

/// A loopback address nobody else uses.
fn outer() -> Ipv4Addr {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let pid = std::process::id();
    Ipv4Addr::new(127, 192 + (pid >> 8) as u8 % 32, pid as u8, NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn scps(options: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(options.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How it ended, and what it said.
fn ended(child: Child) -> (ExitStatus, String) {
    let output = child.wait_with_output().unwrap();
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Settings of SP for both directions, with a new key.
fn protection(folder: &Path) -> String {
    let (key, settings) = (folder.join("a.key"), folder.join("sp.json"));
    assert!(ended(scps(&format!("sp-key {}", key.display()))).0.success());
    let entry = |src: u8, dst: u8| {
        format!(r#"{{"src": "10.8.0.{src}", "dst": "10.8.0.{dst}", "key_id": 1, "key_file": "a.key"}}"#)
    };
    fs::write(&settings, format!(r#"{{"associations": [{}, {}]}}"#, entry(1, 2), entry(2, 1))).unwrap();
    format!("--sp {}", settings.display())
}

#[test]
fn a_stray_datagram_takes_nobodys_answers() {
    let folder = tempfile::tempdir().unwrap();
    for sp in [String::new(), protection(folder.path())] {
        let there = format!("{}:7168", outer());
        let mut receiver = scps(&format!(
            "recv --driver udp --udp-local {there} --listen 10.8.0.2:5001 --expect-seed 1 --announce --timeout-s 60 {sp}"
        ));
        // The line by which it says that it listens.
        receiver.stdout.as_mut().unwrap().read_exact(&mut [0; 23]).unwrap();
        let mut junk = [0; 20];
        junk[12..16].copy_from_slice(&[10, 8, 0, 1]);
        UdpSocket::bind((outer(), 0)).unwrap().send_to(&junk, &there).unwrap();
        let sender = scps(&format!(
            "send --driver udp --udp-local {}:0 --udp-remote {there} --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 100000 \
             --rate none --timeout-s 20 {sp}",
            outer()
        ));
        let (sent, received) = (ended(sender), ended(receiver));
        assert!(sent.0.success() && received.0.success(), "{sp}: {sent:?} {received:?}");
    }
}

#[test]
fn a_client_whose_outer_port_changed_is_served() {
    let (served, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (there, here) = (format!("{}:7168", outer()), outer());
    let ready = own.path().join("ready");
    let mut server = scps(&format!(
        "fpd --listen 10.8.0.2 --open {} --driver udp --udp-local {there} --ready-file {} --rate none",
        served.path().display(),
        ready.display()
    ));
    while !ready.exists() {
        assert!(server.try_wait().unwrap().is_none(), "{:?}", ended(server));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    fs::write(own.path().join("data"), vec![7; 50_000]).unwrap();
    let clients = [7001, 7002, 7001].map(|port| {
        let options = format!(
            "fp --local 10.8.0.1 10.8.0.2 --driver udp --udp-local {here}:{port} --udp-remote {there} --rate none -e"
        );
        let words: Vec<&str> = options.split_whitespace().collect();
        let put = format!("put {} copy{port}", own.path().join("data").display());
        let output = Command::new(env!("CARGO_BIN_EXE_scps")).args(words).arg(put).stdin(Stdio::null()).output();
        output.unwrap()
    });
    server.kill().unwrap();
    server.wait().unwrap();
    for client in clients {
        assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
    }
}
