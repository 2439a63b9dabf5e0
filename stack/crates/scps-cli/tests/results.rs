//! Where results go, and captures that cannot grow: two programs over UDP encapsulation on loopback addresses; no privileges are needed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::process::{Child, Command, Stdio};

fn scps(words: &str, folder: &std::path::Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(words.split_whitespace())
        .args(["--timeout-s", "30", "--driver", "udp"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_result_file_called_minus_is_standard_output() {
    let pid = std::process::id();
    let (high, low) = ((pid >> 8) as u8 % 64 + 192, pid as u8);
    let [near, far] = [format!("127.{high}.{low}.251"), format!("127.{high}.{low}.252")];
    let folder = std::env::temp_dir().join(format!("scps-results-{pid}"));
    std::fs::create_dir_all(&folder).unwrap();
    let receiver = scps(&format!("recv --udp-local {far}:7168 --listen {far}:5001 --json -"), &folder);
    let sender =
        scps(&format!("send --udp-local {near}:7168 --udp-remote {far}:7168 --local {near} --connect {far}:5001 --bytes 20000 --json -"), &folder);

    for (role, child) in [("send", sender), ("recv", receiver)] {
        let output = child.wait_with_output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        let result: serde_json::Value = serde_json::from_str(line.trim()).expect(&line);
        assert_eq!((result["role"].as_str(), result["bytes"].as_u64()), (Some(role), Some(20_000)));
        // The sentence is for people at a terminal.
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(left.is_empty(), "found a file {left:?}");
}

#[test]
fn a_capture_that_cannot_grow_is_told_once_and_the_transfer_goes_on() {
    let pid = std::process::id();
    let (high, low) = ((pid >> 8) as u8 % 64 + 192, pid as u8);
    let [near, far] = [format!("127.{high}.{low}.249"), format!("127.{high}.{low}.250")];
    let folder = tempfile::tempdir().unwrap();
    let receiver = scps(&format!("recv --udp-local {far}:7168 --listen {far}:5001"), folder.path());
    let options = format!(
        "send --udp-local {near}:7168 --udp-remote {far}:7168 --local {near} --connect {far}:5001 --bytes 200000 --pcap a.pcap \
         --timeout-s 30 --driver udp"
    );
    // Files may have 16 blocks, as on a disk that is full then.
    let sender = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 16; exec "$0" "$@""#, env!("CARGO_BIN_EXE_scps")])
        .args(options.split_whitespace())
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (sent, received) = (sender.wait_with_output().unwrap(), receiver.wait_with_output().unwrap());
    let error = String::from_utf8(sent.stderr).unwrap();
    assert!(sent.status.success() && received.status.success(), "{error}");
    assert!(error.starts_with("scps: --pcap a.pcap: File too large"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    // No octet fits at all: the program does not begin.
    let output = scps(&format!("recv --udp-local {far}:7168 --listen {far}:5001 --pcap /dev/full"), folder.path());
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("scps: /dev/full: ") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_program_that_nobody_connects_to_has_a_result_that_says_so() {
    let pid = std::process::id();
    let (high, low) = ((pid >> 8) as u8 % 64 + 192, pid as u8);
    let own = format!("127.{high}.{low}.248");
    let folder = tempfile::tempdir().unwrap();
    for role in ["recv", "send"] {
        let options = format!("{role} --udp-local {own}:7168 --listen {own}:5001 --timeout-s 0.2");
        let child = Command::new(env!("CARGO_BIN_EXE_scps"))
            .args(options.split_whitespace())
            .args(["--driver", "udp"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let line = String::from_utf8(output.stdout).unwrap();
        let result: serde_json::Value = serde_json::from_str(line.trim()).expect(&line);
        assert_eq!((&result["role"], &result["status"], &result["bytes"]), (&role.into(), &"failed".into(), &0.into()));
        assert_eq!(result["reason"], "gave up: --timeout-s reached");
        assert_eq!((&result["local"], &result["remote"]), (&format!("{own}:5001").into(), &"".into()));
        assert!(result["opened_s"].is_null() && result["established_s"].is_null());
    }
}
