//! Two programs with SP between them, over UDP encapsulation on loopback addresses; no privileges are needed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use rustix::fs::{mknodat, FileType, Mode, CWD};
use scps_wire::pcap::Reader;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use tempfile::TempDir;

/// A loopback address nobody else uses.
fn outer() -> Ipv4Addr {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let pid = std::process::id();
    Ipv4Addr::new(127, 32 + (pid >> 8) as u8 % 32, pid as u8, NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn scps(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How it ended, standard output, standard error.
fn ended(child: Child) -> (ExitStatus, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status, text(&output.stdout), text(&output.stderr))
}

/// A folder with a key and a settings file for both directions.
fn folder(name: &str, more: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("a.key");
    let (status, _, error) = ended(scps(&["sp-key", key.to_str().unwrap()]));
    assert!(status.success(), "{error}");
    write_settings(&folder.path().join(name), more);
    folder
}

fn write_settings(path: &Path, more: &str) {
    let entry = |src: u8, dst: u8| {
        format!(r#"{{"src": "10.8.0.{src}", "dst": "10.8.0.{dst}", "key_id": 1, "key_file": "a.key"{more}}}"#)
    };
    fs::write(path, format!("{{\"associations\": [\n  {},\n  {}\n]}}\n", entry(1, 2), entry(2, 1))).unwrap();
}

/// Gives `to` the key of `from`, as an administrator does before it is used.
fn share(from: &TempDir, to: &TempDir) {
    for name in ["a.key", "a.key.sequence"] {
        fs::copy(from.path().join(name), to.path().join(name)).unwrap();
    }
}

/// Sends from one folder's settings to another's; without a folder there is no SP at that end.
fn transfer(
    sender: Option<&TempDir>,
    receiver: Option<&TempDir>,
    timeout_s: &str,
) -> [(ExitStatus, String, String); 2] {
    let [here, there] = [outer(), outer()].map(|address| format!("{address}:7168"));
    let settings = |folder: Option<&TempDir>| folder.map(|f| f.path().join("sp.json").to_str().unwrap().to_owned());
    let (own, peers) = (settings(sender), settings(receiver));
    let sp = |file: &Option<String>| file.clone().map_or(Vec::new(), |file| vec!["--sp".to_owned(), file]);
    let run = |options: String, file: &Option<String>| {
        let words = options.split_whitespace().map(str::to_owned).chain(sp(file)).collect::<Vec<String>>();
        scps(&words.iter().map(String::as_str).collect::<Vec<&str>>())
    };
    let receiving = run(
        format!("recv --driver udp --udp-local {there} --listen 10.8.0.2:5001 --expect-seed 1 --timeout-s {timeout_s}"),
        &peers,
    );
    let sending = run(
        format!(
            "send --driver udp --udp-local {here} --udp-remote {there} --local 10.8.0.1 --to 10.8.0.2:5001 \
             --bytes 100000 --rate none --timeout-s {timeout_s}"
        ),
        &own,
    );
    [ended(sending), ended(receiving)]
}

fn json(text: &str) -> Value {
    serde_json::from_str(text.lines().last().expect("a result")).unwrap()
}

#[test]
fn with_the_same_key_a_transfer_is_complete_and_counted() {
    for more in
        ["", r#", "suite": "chacha20-poly1305", "services": ["integrity", "label"], "label": "UNCLAS", "pad_to": 16"#]
    {
        let (a, b) = (folder("sp.json", more), folder("sp.json", more));
        fs::remove_file(b.path().join("a.key")).unwrap();
        share(&a, &b);
        let [sent, received] = transfer(Some(&a), Some(&b), "60");
        assert!(sent.0.success() && received.0.success(), "{sent:?} {received:?}");
        let (sent, received) = (json(&sent.1), json(&received.1));
        assert_eq!((&received["bytes"], &received["wrong_bytes"]), (&Value::from(100_000), &Value::from(0)));
        assert!(sent["sp"]["sealed"].as_u64() > Some(60) && received["sp"]["opened"].as_u64() > Some(60), "{sent}");
        assert_eq!(received["sp"]["dropped"], Value::Object(serde_json::Map::default()));
    }
}

#[test]
fn after_a_restart_sequence_numbers_go_on_above_those_used() {
    let (a, b) = (folder("sp.json", ""), folder("sp.json", ""));
    share(&a, &b);
    let record = || fs::read_to_string(a.path().join("a.key.sequence")).unwrap();
    for runs in 1..=2u64 {
        let [sent, received] = transfer(Some(&a), Some(&b), "60");
        assert!(sent.0.success() && received.0.success(), "{sent:?} {received:?}");
        assert!(record().contains(&format!("10.8.0.1 10.8.0.2 1 {}\n", 1 + runs * 65_536)), "{}", record());
    }
    // A record that is lost is not begun again.
    fs::remove_file(a.path().join("a.key.sequence")).unwrap();
    let [(status, _, error), _] = transfer(Some(&a), Some(&b), "2");
    assert_eq!(status.code(), Some(3));
    assert!(error.contains("a.key.sequence") && error.contains("scps sp-key"), "{error}");
}

#[test]
fn with_another_key_both_ends_say_what_may_be_wrong() {
    let (a, b) = (folder("sp.json", ""), folder("sp.json", ""));
    let [sent, received] = transfer(Some(&a), Some(&b), "3");
    assert_eq!((sent.0.code(), received.0.code()), (Some(1), Some(1)));
    assert!(sent.2.contains("nothing came that verifies; the peer may have another key"), "{}", sent.2);
    assert!(received.2.contains("SP: received packets dropped: not authentic"), "{}", received.2);
    assert_eq!(json(&sent.1)["status"], Value::from("failed"));
}

#[test]
fn with_sp_at_one_end_only_there_is_a_clear_end() {
    let a = folder("sp.json", "");
    let [sent, received] = transfer(Some(&a), None, "3");
    assert_eq!((sent.0.code(), received.0.code()), (Some(1), Some(1)));
    assert!(sent.2.contains("or no SP"), "{}", sent.2);
    assert!(received.2.contains("this end needs --sp"), "{}", received.2);
    let [sent, received] = transfer(None, Some(&a), "3");
    assert_eq!((sent.0.code(), received.0.code()), (Some(1), Some(1)));
    assert!(
        received.2.contains("SP: received packets dropped: less protection than the policy demands"),
        "{}",
        received.2
    );
}

#[test]
fn what_was_recorded_before_a_restart_delivers_nothing_after_it() {
    let (a, b) = (folder("sp.json", ""), folder("sp.json", ""));
    share(&a, &b);
    let [here, there] = [outer(), outer()].map(|address| format!("{address}:7168"));
    let pcap = b.path().join("line.pcap");
    let receiving = |timeout_s: &str, more: &[&str]| {
        let settings = b.path().join("sp.json");
        let options =
            format!("recv --driver udp --udp-local {there} --listen 10.8.0.2:5001 --announce --timeout-s {timeout_s}");
        let words: Vec<&str> = options.split_whitespace().chain(["--sp", settings.to_str().unwrap()]).collect();
        let mut child = scps(&[&words, more].concat());
        // The line by which it says that it listens.
        let mut line = [0; 23];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        child
    };
    let first = receiving("60", &["--pcap", pcap.to_str().unwrap()]);
    let settings = a.path().join("sp.json");
    let options = format!(
        "send --driver udp --udp-local {here} --udp-remote {there} --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 20000 \
         --rate none --timeout-s 60"
    );
    let words: Vec<&str> = options.split_whitespace().chain(["--sp", settings.to_str().unwrap()]).collect();
    let (sent, received) = (ended(scps(&words)), ended(first));
    assert!(sent.0.success() && received.0.success(), "{sent:?} {received:?}");

    let second = receiving("4", &[]);
    let stranger = UdpSocket::bind((outer(), 7168)).unwrap();
    let file = fs::read(&pcap).unwrap();
    let recorded: Vec<&[u8]> = Reader::new(&file).unwrap().map(|record| record.unwrap().data).collect();
    // Twice: the window of the new receiver knows them by then.
    for packet in recorded.repeat(2) {
        stranger.send_to(packet, &there).unwrap();
    }
    let (status, text, error) = ended(second);
    assert_eq!(status.code(), Some(1), "{text} {error}");
    let result: Value = serde_json::from_str(&text).unwrap();
    assert!(result["status"] == "failed" && result["segments_received"] == 0 && result["bytes"] == 0, "{text}");
    assert!(error.contains("replayed"), "{error}");
}

#[test]
fn what_cannot_be_protected_ends_before_it_begins() {
    let a = folder("sp.json", "");
    let send = |to: &str| {
        let file = a.path().join("sp.json");
        let here = outer();
        let options = format!(
            "send --driver udp --udp-local {here}:7168 --udp-remote {here}:7169 --local 10.8.0.1 --to {to} --sp"
        );
        let words: Vec<&str> = options.split_whitespace().chain([file.to_str().unwrap()]).collect();
        ended(scps(&words))
    };
    let (status, _, error) = send("10.8.0.77:5001");
    assert_eq!(status.code(), Some(2));
    assert!(error.contains("10.8.0.77:5001: no security association for these addresses"), "{error}");
    // A key that others may read.
    fs::set_permissions(a.path().join("a.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let (status, _, error) = send("10.8.0.2:5001");
    assert_eq!(status.code(), Some(2));
    assert!(error.contains("found mode 0644; expected 0600"), "{error}");
    let key = fs::read_to_string(a.path().join("a.key")).unwrap();
    assert!(!error.contains(key.trim().trim_start_matches("master ")));
    // A pipe that nobody writes to.
    fs::remove_file(a.path().join("a.key")).unwrap();
    mknodat(CWD, a.path().join("a.key"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let (status, _, error) = send("10.8.0.2:5001");
    assert_eq!(status.code(), Some(2));
    assert!(error.contains("a.key: found no key file"), "{error}");
}

#[test]
fn a_key_is_made_once_and_only_its_owner_may_read_it() {
    let folder = folder("sp.json", "");
    let path = folder.path().join("a.key");
    for name in ["a.key", "a.key.sequence"] {
        assert_eq!(fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let before = fs::read(&path).unwrap();
    assert_eq!(before.len(), "master ".len() + 64 + 1);
    let (status, _, error) = ended(scps(&["sp-key", path.to_str().unwrap()]));
    assert!(status.code() == Some(3) && error.contains("a.key"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn files_move_under_sp() {
    let (a, b) = (folder("sp.json", ""), folder("sp.json", ""));
    share(&a, &b);
    let served = tempfile::tempdir().unwrap();
    let [here, there] = [outer(), outer()].map(|address| format!("{address}:7168"));
    let settings = |folder: &TempDir| folder.path().join("sp.json").to_str().unwrap().to_owned();
    let ready = served.path().join("ready");
    let mut server = scps(&[
        "fpd",
        "--listen",
        "10.8.0.2",
        "--open",
        served.path().to_str().unwrap(),
        "--driver",
        "udp",
        "--udp-local",
        &there,
        "--sp",
        &settings(&b),
        "--ready-file",
        ready.to_str().unwrap(),
        "--rate",
        "none",
    ]);
    while !ready.exists() {
        assert!(server.try_wait().unwrap().is_none(), "{:?}", ended(server));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let data: Vec<u8> = (0..50_000u32).flat_map(u32::to_be_bytes).collect();
    let file = a.path().join("data");
    fs::write(&file, &data).unwrap();
    let commands = format!("put {} copy", file.display());
    let client = scps(&[
        "fp",
        "--local",
        "10.8.0.1",
        "10.8.0.2",
        "-e",
        &commands,
        "--driver",
        "udp",
        "--udp-local",
        &here,
        "--udp-remote",
        &there,
        "--sp",
        &settings(&a),
        "--rate",
        "none",
    ]);
    let (status, _, error) = ended(client);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(status.success(), "{error}");
    assert_eq!(fs::read(served.path().join("copy")).unwrap(), data);
}
