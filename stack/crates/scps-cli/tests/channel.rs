//! `scps channel` between real byte streams: ptys and sockets.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test stops where it fails")]

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

struct Channel {
    process: Child,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Channel {
    fn between(name: &str, a: &str, b: &str, options: &str) -> Channel {
        let folder = std::env::temp_dir().join(format!("scps-channel-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let place = |text: &str| text.replace("DIR", folder.to_str().unwrap());
        let mut process = Command::new(env!("CARGO_BIN_EXE_scps"))
            .args(["channel", &place(a), &place(b)])
            .args(place(options).split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Channel { process, output, folder }
    }

    fn wait_until_ready(&mut self) {
        assert_eq!(self.line()["event"], "ready");
    }

    fn line(&mut self) -> serde_json::Value {
        let mut text = String::new();
        self.output.read_line(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn open(&self, name: &str) -> File {
        OpenOptions::new().read(true).write(true).open(self.folder.join(name)).unwrap()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap().success());
    }

    fn end(mut self) -> serde_json::Value {
        self.signal("-TERM");
        let counters = self.line();
        assert!(self.process.wait().unwrap().success());
        std::fs::remove_dir_all(&self.folder).unwrap();
        counters
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read(file: &mut impl Read, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    file.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_signal_ends_the_wait_for_a_peer() {
    for end in ["unix-listen:DIR/b", "tcp-listen:127.0.0.1:0"] {
        let mut channel = Channel::between("early", "pty:DIR/a", end, "");
        let deadline = Instant::now() + Duration::from_secs(10);
        // Signals are taken over before the first end is made.
        while !channel.folder.join("a").exists() {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        channel.signal("-TERM");
        assert_eq!(channel.process.wait().unwrap().code(), Some(1));
        assert!(!channel.folder.join("a").exists() && !channel.folder.join("b").exists());
        std::fs::remove_dir_all(&channel.folder).unwrap();
    }
}

#[test]
fn two_ptys_pass_every_byte_at_the_baud_rate_and_after_the_delay() {
    let mut channel = Channel::between("rate", "pty:DIR/a", "pty:DIR/b", "--both baud=115200,delay-ms=100");
    channel.wait_until_ready();
    let (mut a, mut b) = (channel.open("a"), channel.open("b"));
    let sent: Vec<u8> = (0..11_520u32).map(|n| (n * 7 % 256) as u8).collect();
    let start = Instant::now();
    a.write_all(&sent).unwrap();
    let got = read(&mut b, sent.len());
    let took = start.elapsed().as_secs_f64();
    assert_eq!(got, sent);
    // 11,520 bytes of 10 bits at 115,200 bit/s and the delay; the machine may be late, never early.
    assert!(took >= 1.1, "{took} s");
    b.write_all(b"\x00\x03\x04\x11\x13\r\n\x7f").unwrap();
    assert_eq!(read(&mut a, 8), b"\x00\x03\x04\x11\x13\r\n\x7f");
    let counters = channel.end();
    assert_eq!(counters["a_to_b"]["delivered_bytes"], 11_520);
    assert_eq!(counters["b_to_a"]["delivered_bytes"], 8);
}

#[test]
fn a_vector_file_changes_exactly_its_bits_of_one_direction_from_the_start_signal_on() {
    let folder = std::env::temp_dir();
    let vector = folder.join(format!("scps-channel-{}.bits", std::process::id()));
    std::fs::write(&vector, [0x01, 0x00, 0x80]).unwrap();
    let options = format!("--a-to-b file={},record=DIR/stream --hold", vector.display());
    let mut channel = Channel::between("vector", "pty:DIR/a", "pty:DIR/b", &options);
    channel.wait_until_ready();
    let (mut a, mut b) = (channel.open("a"), channel.open("b"));
    a.write_all(b"AAA").unwrap();
    assert_eq!(read(&mut b, 3), b"AAA");
    channel.signal("-USR1");
    // The signal is taken before a byte that is written after the wait for it has ended.
    wait_for_sleep(channel.process.id());
    a.write_all(&[0; 7]).unwrap();
    let expected = [1, 0, 0x80, 1, 0, 0x80, 1];
    assert_eq!(read(&mut b, 7), expected);
    b.write_all(&[0; 5]).unwrap();
    assert_eq!(read(&mut a, 5), [0; 5]);
    let record = channel.folder.join("stream");
    channel.signal("-TERM");
    let counters = channel.line();
    assert!(channel.process.wait().unwrap().success());
    assert_eq!(counters["a_to_b"]["bit_errors"], 5);
    assert_eq!(counters["a_to_b"]["wrong_bytes"], 5);
    assert_eq!(counters["a_to_b"]["taken_before_start_bytes"], 3);
    assert_eq!(counters["b_to_a"]["bit_errors"], 0);
    assert_eq!(std::fs::read(record).unwrap(), [b"AAA".as_slice(), &expected].concat());
    std::fs::remove_dir_all(&channel.folder).unwrap();
    std::fs::remove_file(vector).unwrap();
}

/// Waits until the process has no pending signal and sleeps again, at most five seconds.
fn wait_for_sleep(pid: u32) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim().to_string();
        if field("State:").starts_with('S') && u64::from_str_radix(&field("ShdPnd:"), 16).unwrap() == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "the channel did not take its signal");
        std::thread::yield_now();
    }
}

/// Connects as soon as somebody listens there.
fn connect(path: &Path) -> UnixStream {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return stream,
            Err(e) => assert!(Instant::now() < deadline, "{e}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn sockets_are_byte_streams_too_and_their_end_is_the_channels() {
    let mut channel = Channel::between("sockets", "unix-listen:DIR/a", "unix-listen:DIR/b", "--both delay-ms=20");
    let mut a = connect(&channel.folder.join("a"));
    let mut b = connect(&channel.folder.join("b"));
    channel.wait_until_ready();
    a.write_all(b"there").unwrap();
    assert_eq!(read(&mut b, 5), b"there");
    b.write_all(b"back").unwrap();
    assert_eq!(read(&mut a, 4), b"back");
    drop((a, b));
    let counters = channel.line();
    assert_eq!(counters["event"], "counters");
    assert!(channel.process.wait().unwrap().success());
    std::fs::remove_dir_all(&channel.folder).unwrap();
}

#[test]
fn what_a_later_channel_has_made_under_the_same_name_stays() {
    let ends = |name| Channel::between(name, "pty:DIR/a", "unix-listen:DIR/b", "");
    let (mut first, place) = (ends("again"), |channel: &Channel, name| channel.folder.join(name));
    let _peer = connect(&place(&first, "b"));
    first.wait_until_ready();
    let mut second = ends("again");
    let _other = connect(&place(&second, "b"));
    second.wait_until_ready();
    first.signal("-TERM");
    assert!(first.process.wait().unwrap().success());
    assert!(place(&second, "a").is_symlink() && place(&second, "b").exists());
    second.signal("-TERM");
    assert!(second.process.wait().unwrap().success());
    assert!(!place(&second, "a").is_symlink() && !place(&second, "b").exists());
    std::fs::remove_dir_all(&second.folder).unwrap();
}

#[test]
fn an_idle_channel_sleeps() {
    let mut channel = Channel::between("idle", "pty:DIR/a", "pty:DIR/b", "--both baud=9600,ber=1e-5");
    channel.wait_until_ready();
    wait_for_sleep(channel.process.id());
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/schedstat", channel.process.id())).unwrap();
        stat.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let before = used();
    // The test measures what happens while time passes; there is nothing else to wait for.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(used(), before, "nanoseconds of processor time");
    channel.end();
}

#[test]
fn what_cannot_be_meant_is_said_with_exit_code_2() {
    for spec in
        ["baud=fast", "speed=1", "ber=2", "outage=5..3", "errors=file", "bits=0", "delay-ms=-1", "flush=0x100", "ber"]
    {
        let done = Command::new(env!("CARGO_BIN_EXE_scps"))
            .args(["channel", "pty:a", "pty:b", "--both", spec])
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(2), "{spec}");
    }
    let nowhere =
        Command::new(env!("CARGO_BIN_EXE_scps")).args(["channel", "unix:/nowhere/a", "unix:/nowhere/b"]).output();
    assert_eq!(nowhere.unwrap().status.code(), Some(3));
}
