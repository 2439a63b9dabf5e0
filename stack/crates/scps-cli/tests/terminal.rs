//! What a person at a terminal sees, through a pseudo-terminal; and what a reader who has gone does to the program: nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

/// A pair of loopback addresses nobody else uses.
fn addresses() -> [String; 2] {
    static NUMBER: AtomicU8 = AtomicU8::new(0);
    let (pid, number) = (std::process::id(), NUMBER.fetch_add(2, Ordering::Relaxed));
    [0, 1].map(|side| format!("127.{}.{}.{}", (pid >> 8) as u8 % 64 + 128, pid as u8, 100 + number + side))
}

fn scps(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
    command.args(words.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Both ends of a transfer inside UDP.
fn transfer(options: &str) -> [Command; 2] {
    let [near, far] = addresses();
    let common = "--driver udp --timeout-s 60 --initial-rto-ms 200";
    let recv = format!("recv {common} --udp-local {far}:7168 --listen {far}:5001");
    let send = format!("send {common} --udp-local {near}:7168 --udp-remote {far}:7168 --local {near} --to {far}:5001");
    [scps(&format!("{recv} {options}")), scps(&format!("{send} --bytes 400000 --rate 2Mbit/s {options}"))]
}

/// What a command shows on a terminal that is its standard error.
fn at_a_terminal(mut command: Command) -> (std::thread::JoinHandle<String>, std::process::Child) {
    let mut master = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = File::options().read(true).write(true).open(name).unwrap();
    let child = command.env("TERM", "xterm").stderr(slave).spawn().unwrap();
    drop(command); // It has the slave too.
    let reader = std::thread::spawn(move || {
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        // The master of a terminal that nobody has open any more answers with an error.
        while let Ok(n @ 1..) = master.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..n]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    });
    (reader, child)
}

/// The lines that were drawn over each other, without what the terminal is told.
fn drawn(seen: &str) -> Vec<String> {
    seen.split(['\r', '\n'])
        .map(|line| line.replace("\x1b[?7l", "").replace("\x1b[K", "").replace("\x1b[?7h", ""))
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn a_terminal_shows_progress_and_then_one_sentence() {
    let [recv, send] = transfer("");
    let (far, mut receiver) = at_a_terminal(recv);
    let (near, mut sender) = at_a_terminal(send);
    assert!(sender.wait().unwrap().success() && receiver.wait().unwrap().success());
    let (near, far) = (drawn(&near.join().unwrap()), drawn(&far.join().unwrap()));

    // 400,000 bytes with 2 Mbit/s are 1.7 s: eight lines or so, of which a busy machine draws fewer.
    let moving: Vec<&String> =
        near.iter().filter(|l| l.starts_with("scps: send: ") && l.contains(" of 400.0 kB, ")).collect();
    assert!(moving.len() >= 3, "{near:?}");
    assert!(moving.iter().any(|l| l.contains(" %, ") && l.contains("Mbit/s, 0:0") && l.ends_with(" left")), "{near:?}");
    let last = near.last().unwrap();
    assert!(last.starts_with("scps: send: complete: 400000 bytes in "), "{near:?}");
    assert!(last.ends_with("rate control at 2 Mbit/s, which --rate sets."), "{near:?}");

    assert!(far[0].starts_with("scps: recv: waiting for a connection at 127."), "{far:?}");
    assert!(far.iter().any(|l| l.contains("kB, ") && l.ends_with("bit/s")), "{far:?}");
    assert!(far.last().unwrap().starts_with("scps: recv: complete: 400000 bytes in "), "{far:?}");
}

#[test]
fn somebody_who_does_not_answer_is_named() {
    let [near, far] = addresses();
    let send = scps(&format!(
        "send --driver udp --udp-local {near}:7168 --udp-remote {far}:7168 --local {near} --to {far}:5001 --timeout-s 0.7"
    ));
    let (seen, mut child) = at_a_terminal(send);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let seen = drawn(&seen.join().unwrap());
    assert_eq!(seen[0], format!("scps: send: no answer from {far}:5001 yet, 0:00"));
    assert!(seen.last().unwrap().contains("failed (gave up: --timeout-s reached)"), "{seen:?}");
}

#[test]
fn nothing_is_shown_to_a_file_or_to_whoever_wants_quiet() {
    let [recv, send] = transfer("");
    let (receiver, sender) = ({ recv }.spawn().unwrap(), { send }.spawn().unwrap());
    for child in [receiver, sender] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
    let [recv, send] = transfer("--quiet");
    let ((far, receiver), (near, sender)) = (at_a_terminal(recv), at_a_terminal(send));
    for mut child in [receiver, sender] {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!((near.join().unwrap(), far.join().unwrap()), (String::new(), String::new()));
}

#[test]
fn the_result_says_which_rate_and_congestion_control_were_in_force() {
    let [recv, send] = transfer("--congestion none");
    let receiver = { recv }.spawn().unwrap();
    let sent: serde_json::Value = serde_json::from_slice(&{ send }.output().unwrap().stdout).unwrap();
    let received: serde_json::Value = serde_json::from_slice(&receiver.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&sent["rate_bps"], &sent["congestion"]), (&2_000_000.into(), &"none".into()));
    // The receiver was given none: its default is that of the help.
    assert_eq!(received["rate_bps"], 2_000_000);
    let help = String::from_utf8(scps("send --help").output().unwrap().stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("[default: 2 Mbit/s, whatever the preset]"), "{help}");
}

/// Runs a command whose reader has gone: of standard output alone, or of standard error as well.
fn unheard(mut command: Command, is_deaf: bool) -> Output {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    if is_deaf {
        command.stderr(writer.try_clone().unwrap());
    }
    let child = command.stdout(writer).spawn().unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn no_command_panics_when_its_reader_has_gone() {
    let capture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captures/raw_default.pcap");
    let decode = format!("decode {}", capture.display());
    let commands = [
        "--help",
        "--version",
        "send --help",
        "fpd --hash-password",
        "fpd",
        "fp --transport tcp 127.0.0.1 1 -e ls",
        "channel unix:/nowhere unix:/nowhere",
        "channel pty:/nowhere/a pty:/nowhere/b",
        "recv --listen 0.0.0.0:1",
        "recv --driver udp --udp-local 127.0.0.1:0 --listen 10.8.0.2:5001 --announce --timeout-s 0.1",
        "send --driver udp --udp-local 127.0.0.1:0 --listen 10.8.0.2:5001 --timeout-s 0.1",
        "send --driver udp --udp-local 127.0.0.1:0 --local 10.8.0.1 --to 10.8.0.2:5001 --timeout-s 0.1",
        &decode,
    ];
    for words in commands {
        for is_deaf in [false, true] {
            let output = unheard(scps(words), is_deaf);
            let code = output.status.code();
            assert!(code.is_some_and(|code| code <= 3), "{words}: {output:?}");
            assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{words}: {output:?}");
        }
    }
}

#[test]
fn a_transfer_whose_reader_has_gone_ends_all_the_same() {
    let [recv, send] = transfer("");
    let receiver = { recv }.spawn().unwrap();
    let sender = unheard(send, false);
    assert_eq!(sender.status.code(), Some(3));
    let said = String::from_utf8_lossy(&sender.stderr).into_owned();
    assert!(said.starts_with("scps: standard output: Broken pipe"), "{said}");
    // Only the result is lost.
    assert!(receiver.wait_with_output().unwrap().status.success());
}
