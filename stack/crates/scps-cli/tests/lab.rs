//! Whole programs over real TUN devices and UDP sockets, in network namespaces: ours against ours, and against the kernel's
//! TCP both ways. Needs root, /dev/net/tun and `ip netns`; skips with the reason where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Two namespaces joined by a veth pair; the SCPS hosts 10.8.0.1 and 10.8.0.2 live behind TUN devices.
struct Lab {
    names: [String; 2],
}

static LABS: AtomicU32 = AtomicU32::new(0);

fn ip(args: &str) -> bool {
    Command::new("ip")
        .args(args.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// A program inside a namespace.
fn inside(ns: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", ns, program]);
    command
}

impl Lab {
    /// `None`, with the reason printed, if this machine cannot.
    fn up(netem: Option<&str>) -> Option<Lab> {
        if !std::path::Path::new("/dev/net/tun").exists() {
            eprintln!("skipped: /dev/net/tun does not exist");
            return None;
        }
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let name = |side: &str| format!("scpst{}-{number}{side}", std::process::id());
        let lab = Lab { names: [name("a"), name("b")] };
        let [a, b] = &lab.names;
        if !ip(&format!("netns add {a}")) || !ip(&format!("netns add {b}")) {
            eprintln!("skipped: `ip netns add` needs root and network namespaces");
            return None;
        }
        assert!(ip(&format!("-n {a} link add v0 type veth peer name v1 netns {b}")));
        for (ns, dev, own, other, other_scps) in
            [(a, "v0", "10.9.0.1", "10.9.0.2", "10.8.0.2"), (b, "v1", "10.9.0.2", "10.9.0.1", "10.8.0.1")]
        {
            assert!(ip(&format!("-n {ns} addr add {own}/24 dev {dev}")));
            assert!(ip(&format!("-n {ns} link set {dev} up")));
            assert!(ip(&format!("-n {ns} link set lo up")));
            assert!(ip(&format!("-n {ns} route add {other_scps}/32 via {other}")));
            assert!(inside(ns, "sysctl").args(["-qw", "net.ipv4.ip_forward=1"]).status().unwrap().success());
            if let Some(netem) = netem {
                let done = inside(ns, "tc")
                    .args(["qdisc", "add", "dev", dev, "root", "netem"])
                    .args(netem.split_whitespace())
                    .stderr(Stdio::null())
                    .status();
                if !done.is_ok_and(|s| s.success()) {
                    eprintln!("skipped: this kernel has no netem");
                    return None;
                }
            }
        }
        Some(lab)
    }

    fn scps(&self, side: usize, args: &str) -> Child {
        inside(&self.names[side], env!("CARGO_BIN_EXE_scps"))
            .args(args.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn python(&self, side: usize, script: &str) -> Child {
        inside(&self.names[side], "python3").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until the device of `side` is up, at most five seconds.
    fn wait_device(&self, side: usize) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !ip(&format!("-n {} link show scps0 up", self.names[side])) || !self.has_route(side) {
            assert!(std::time::Instant::now() < deadline, "the TUN device did not come up");
            std::thread::yield_now();
        }
    }

    fn has_route(&self, side: usize) -> bool {
        let output =
            Command::new("ip").args(["-n", &self.names[side], "route", "show", "dev", "scps0"]).output().unwrap();
        !output.stdout.is_empty()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

fn finish(mut child: Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}: {text}");
    let _ = std::io::stderr().flush();
    text
}

fn field(json: &str, name: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json.lines().last().unwrap_or("")).expect(json);
    match &value[name] {
        serde_json::Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

#[test]
fn send_and_recv_over_tun() {
    let Some(lab) = Lab::up(None) else { return };
    for options in ["--preset fy97-rate --rate 20Mbit/s", "--compression true --rate 20Mbit/s", "--offload --rate none"]
    {
        let recv = lab.scps(1, &format!("recv --listen 10.8.0.2:5001 --timeout-s 60 {options}"));
        lab.wait_device(1);
        let send =
            lab.scps(0, &format!("send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 1000000 --timeout-s 60 {options}"));
        let (sent, received) = (finish(send), finish(recv));
        assert_eq!(field(&received, "bytes"), "1000000", "{options}");
        assert_eq!(field(&sent, "sha256"), field(&received, "sha256"), "{options}");
        assert_eq!(field(&sent, "status"), "complete");
    }
}

#[test]
fn send_and_recv_over_udp() {
    let Some(lab) = Lab::up(None) else { return };
    for options in ["--rate 20Mbit/s", "--rate none --offload"] {
        let common = format!("--driver udp --timeout-s 60 --initial-rto-ms 200 {options}");
        let recv = lab.scps(1, &format!("recv --listen 10.8.0.2:5001 {common}"));
        let send = lab.scps(
            0,
            &format!("send --local 10.8.0.1 --to 10.8.0.2:5001 --udp-remote 10.9.0.2:7168 --bytes 1000000 {common}"),
        );
        let (sent, received) = (finish(send), finish(recv));
        assert_eq!(field(&sent, "sha256"), field(&received, "sha256"), "{options}");
    }
}

const SINK: &str = "
import socket, hashlib
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('10.9.0.2', 9000)); s.listen(); print('ready', flush=True)
c, _ = s.accept(); h = hashlib.sha256()
while b := c.recv(65536): h.update(b)
c.close(); print(h.hexdigest())
";

const SOURCE: &str = "
import socket, hashlib, random
s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'CC')
s.connect(('10.8.0.2', 5001)); d = random.Random(1).randbytes(1000000)
s.sendall(d); s.shutdown(socket.SHUT_WR)
while s.recv(100): pass
print(hashlib.sha256(d).hexdigest())
";

fn against_kernel(lab: &Lab) {
    let mut sink = lab.python(1, SINK);
    let mut ready = [0; 6];
    sink.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let send = lab.scps(0, "send --local 10.8.0.1 --to 10.9.0.2:9000 --bytes 1000000 --rate 50Mbit/s --timeout-s 100");
    let sent = finish(send);
    assert_eq!(finish(sink).trim(), field(&sent, "sha256"));
    assert!(sent.contains("\"scps\":false"));
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    for control in available.split_whitespace() {
        let recv = lab.scps(1, "recv --listen 10.8.0.2:5001 --rate 50Mbit/s --timeout-s 100");
        lab.wait_device(1);
        let source = lab.python(0, &SOURCE.replace("CC", control));
        let sent = finish(source);
        assert_eq!(sent.trim(), field(&finish(recv), "sha256"), "{control}");
    }
}

#[test]
fn kernel_tcp_is_the_other_end_both_ways() {
    let Some(lab) = Lab::up(None) else { return };
    against_kernel(&lab);
}

#[test]
fn kernel_tcp_is_the_other_end_under_loss_reordering_and_duplication() {
    let Some(lab) = Lab::up(Some("delay 10ms loss 2% reorder 10% duplicate 2%")) else { return };
    against_kernel(&lab);
}

const READS_THEN_SENDS: &str = "
import socket, hashlib, random
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('10.9.0.2', 9000)); s.listen(); print('ready', flush=True)
c, _ = s.accept(); d = random.Random(1).randbytes(1000000)
while c.recv(100): pass
c.sendall(d); c.close(); print(hashlib.sha256(d).hexdigest())
";

const CLOSES_THEN_READS: &str = "
import socket, hashlib
s = socket.socket(); s.connect(('10.8.0.2', 5001)); s.shutdown(socket.SHUT_WR); h = hashlib.sha256()
while b := s.recv(65536): h.update(b)
print(h.hexdigest())
";

const SENDS_UNTIL_RESET: &str = "
import socket
s = socket.socket(); s.connect(('10.8.0.2', 5001)); print('open', flush=True)
try:
    while True: s.send(bytes(1000))
except ConnectionResetError: print('reset')
";

#[test]
fn kernel_tcp_is_the_other_end_of_half_closed_and_reset_connections() {
    let Some(lab) = Lab::up(None) else { return };
    let mut source = lab.python(1, READS_THEN_SENDS);
    source.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    let recv = "recv --local 10.8.0.1 --connect 10.9.0.2:9000 --half-close --rate 50Mbit/s --timeout-s 100";
    let received = finish(lab.scps(0, recv));
    assert_eq!(finish(source).trim(), field(&received, "sha256"));
    let send = lab.scps(1, "send --listen 10.8.0.2:5001 --bytes 1000000 --rate 50Mbit/s --timeout-s 100");
    lab.wait_device(1);
    let got = finish(lab.python(0, CLOSES_THEN_READS));
    assert_eq!(got.trim(), field(&finish(send), "sha256"));
    let mut recv = lab.scps(1, "recv --listen 10.8.0.2:5001 --rate 50Mbit/s --timeout-s 100");
    lab.wait_device(1);
    let mut source = lab.python(0, SENDS_UNTIL_RESET);
    source.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    // `ip netns exec` becomes the program, so this is its process.
    assert!(Command::new("kill").arg(recv.id().to_string()).status().unwrap().success());
    assert_eq!(recv.wait().unwrap().code(), Some(143));
    assert_eq!(finish(source).trim(), "reset");
}

#[test]
fn who_sent_leaves_two_timeouts_after_both_ends_are_acknowledged() {
    let Some(lab) = Lab::up(None) else { return };
    // The peer ends half a second after our end was acknowledged: whoever waits for that end gives up after eight timeouts of two
    // seconds, but it comes, and then two are enough.
    let mut sink = lab.python(1, &SINK.replace("c.close()", "import time; time.sleep(.5); c.close()"));
    let mut ready = [0; 6];
    sink.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let begin = std::time::Instant::now();
    finish(lab.scps(
        0,
        "send --local 10.8.0.1 --to 10.9.0.2:9000 --bytes 20000 --rate 50Mbit/s --rto-variance-floor-ms 2000 --timeout-s 100",
    ));
    let took = begin.elapsed().as_secs_f64();
    assert!((4.0..12.0).contains(&took), "{took} s");
    finish(sink);
}

#[test]
fn what_cannot_work_says_so_with_its_exit_code() {
    let run = |args: &str| Command::new(env!("CARGO_BIN_EXE_scps")).args(args.split_whitespace()).output().unwrap();
    assert_eq!(run("send --to 10.0.0.1:1").status.code(), Some(2));
    assert_eq!(run("send --local 10.0.0.9 --to 10.0.0.1:1 --rate fast").status.code(), Some(2));
    let refused = run("send --driver udp --udp-local 203.0.113.7:1 --local 10.0.0.9 --to 10.0.0.1:1");
    assert_eq!(refused.status.code(), Some(3));
    let silent = run("send --driver udp --udp-local 127.0.0.1:0 --local 10.0.0.9 --to 10.0.0.1:1 --timeout-s 0.2");
    assert_eq!(silent.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&silent.stdout).contains("gave up"));
}
