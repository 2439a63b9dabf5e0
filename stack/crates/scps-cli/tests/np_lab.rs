//! Whole programs over NP, with a router process between them: UDP, IP protocol 118 between network namespaces (root,
//! /dev/net/tun and `ip netns`; skipped with the reason where that is not to be had), a serial line; a router that is killed;
//! strangers who send to its sockets; settings that make no sense.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_np::scmp::{Message, Unreachable};
use scps_np::{Addresses, Datagram, Dialect, Header, DATAGRAM_MAX};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static LABS: AtomicU32 = AtomicU32::new(0);

/// A folder, and the processes and namespaces of one test.
struct Lab {
    name: String,
    folder: PathBuf,
    namespaces: Vec<String>,
}

fn ip(args: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(args.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Lab {
    fn new() -> Lab {
        let name = format!("npt{}-{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        Lab { name, folder, namespaces: Vec::new() }
    }

    /// Three namespaces in a row: host a (10.9.1.1), router r (10.9.1.9, 10.9.2.9), host b (10.9.2.2).
    fn with_namespaces() -> Option<Lab> {
        if !Path::new("/dev/net/tun").exists() {
            eprintln!("skipped: /dev/net/tun does not exist");
            return None;
        }
        let mut lab = Lab::new();
        for side in ["a", "r", "b"] {
            let name = format!("{}{side}", lab.name);
            if !ip(&format!("netns add {name}")) {
                eprintln!("skipped: `ip netns add` needs root and network namespaces");
                return None;
            }
            lab.namespaces.push(name);
        }
        let [a, r, b] = &lab.namespaces[..] else { unreachable!("three were made") };
        assert!(ip(&format!("-n {a} link add va type veth peer name vra netns {r}")));
        assert!(ip(&format!("-n {b} link add vb type veth peer name vrb netns {r}")));
        for (ns, dev, address) in
            [(a, "va", "10.9.1.1"), (r, "vra", "10.9.1.9"), (r, "vrb", "10.9.2.9"), (b, "vb", "10.9.2.2")]
        {
            assert!(ip(&format!("-n {ns} addr add {address}/24 dev {dev}")));
            assert!(ip(&format!("-n {ns} link set {dev} up")) && ip(&format!("-n {ns} link set lo up")));
            let forward = ["netns", "exec", ns, "sysctl", "-qw", "net.ipv4.ip_forward=1"];
            assert!(Command::new("ip").args(forward).status().unwrap().success());
        }
        Some(lab)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The tables of all nodes: hosts 10.8.0.1 (7290) and 10.8.0.2 (7292), router 10.8.0.9 (7294).
    fn tables(next_hops: &str) -> String {
        format!(
            r#""tables": {{
                "hosts": [{{"ip": "10.8.0.1", "np": "7290"}}, {{"ip": "10.8.0.2", "np": "7292"}}, {{"ip": "10.8.0.9", "np": "7294"}}],
                "next_hops": [{next_hops}]
            }}"#
        )
    }

    /// A host's file: everything goes to `router`.
    fn host(&self, name: &str, peer: &str, router: &str, more: &str) -> String {
        let tables = Lab::tables(&format!(r#"{{"to": "{peer}", "via": "{router}"}}"#));
        self.write(name, &format!(r#"{{{tables}, "believed": ["10.8.0.9"]{more}}}"#))
    }

    fn router_file(&self, hops: [&str; 2], interfaces: &str) -> String {
        let [to_a, to_b] = hops;
        let tables = Lab::tables(&format!(r#"{{"to": "7290", "via": "{to_a}"}}, {{"to": "7292", "via": "{to_b}"}}"#));
        let text = format!(r#"{{"address": "10.8.0.9", {tables}, "interfaces": [{interfaces}]}}"#);
        self.write("router.json", &text)
    }

    fn scps(&self, ns: Option<usize>, args: &str) -> Child {
        let program = env!("CARGO_BIN_EXE_scps");
        let mut command = match ns {
            None => Command::new(program),
            Some(ns) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &self.namespaces[ns], program]);
                command
            }
        };
        command.args(args.split_whitespace()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn router(&self, ns: Option<usize>, file: &str) -> Router {
        let mut child = self.scps(ns, &format!("router {file} --seed 1"));
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("\"ready\""), "{line}");
        Router { child, said }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.namespaces {
            ip(&format!("netns del {name}"));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Router {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Router {
    /// Ends it as an operator does; its counters.
    fn end(mut self) -> serde_json::Value {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        let mut text = String::new();
        self.said.read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
        serde_json::from_str(text.lines().last().unwrap()).expect(&text)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn finish(mut child: Child) -> serde_json::Value {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}: {text}");
    serde_json::from_str(text.lines().last().unwrap()).expect(&text)
}

/// Waits for the line by which a receiver says that it listens.
fn listening(child: &mut Child) {
    let mut line = [0; 23];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert!(String::from_utf8_lossy(&line).contains("listening"));
}

fn levels(counters: &serde_json::Value, interface: usize) -> Vec<u64> {
    let levels = counters["interfaces"][interface]["levels"].as_array().unwrap();
    levels.iter().map(|level| level["precedence"].as_u64().unwrap()).collect()
}

#[test]
fn a_transfer_crosses_a_router_over_udp_between_namespaces() {
    let Some(lab) = Lab::with_namespaces() else { return };
    let interface = |name, local, neighbour| {
        format!(
            r#"{{"name": "{name}", "carrier": {{"kind": "udp", "local": "{local}:7168"}}, "neighbours": ["{neighbour}"]}}"#
        )
    };
    let interfaces = [interface("to-a", "10.9.1.9", "10.9.1.1"), interface("to-b", "10.9.2.9", "10.9.2.2")];
    let router = lab.router(Some(1), &lab.router_file(["10.9.1.1", "10.9.2.2"], &interfaces.join(",")));
    let (a, b) = (lab.host("a.json", "7292", "10.9.1.9", ""), lab.host("b.json", "7290", "10.9.2.9", ""));
    let common = "--driver udp --network np --rate 20Mbit/s --precedence 9 --timeout-s 60";
    let mut recv = lab.scps(Some(2), &format!("recv --listen 10.8.0.2:5001 --announce --np {b} {common}"));
    listening(&mut recv);
    let send =
        lab.scps(Some(0), &format!("send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 1000000 --np {a} {common}"));
    let (sent, received) = (finish(send), finish(recv));
    assert_eq!(sent["sha256"], received["sha256"]);
    assert_eq!(received["bytes"], 1_000_000);
    let counters = router.end();
    assert!(counters["np"]["npForwDatagrams"].as_u64().unwrap() > 1000, "{counters}");
    assert_eq!((levels(&counters, 0), levels(&counters, 1)), (vec![9], vec![9]), "both directions are of precedence 9");
}

#[test]
fn a_transfer_crosses_a_router_in_ip_of_protocol_118_between_namespaces() {
    let Some(lab) = Lab::with_namespaces() else { return };
    let [a, r, b] = &lab.namespaces[..] else { unreachable!("three were made") };
    for (ns, to, via) in [
        (a, "10.8.0.9", "10.9.1.9"),
        (r, "10.8.0.1", "10.9.1.1"),
        (r, "10.8.0.2", "10.9.2.2"),
        (b, "10.8.0.9", "10.9.2.9"),
    ] {
        assert!(ip(&format!("-n {ns} route add {to}/32 via {via}")));
    }
    let interfaces =
        r#"{"name": "ip", "carrier": {"kind": "ip", "device": "np0"}, "neighbours": ["10.8.0.1", "10.8.0.2"]}"#;
    let router = lab.router(Some(1), &lab.router_file(["10.8.0.1", "10.8.0.2"], interfaces));
    let (a, b) = (lab.host("a.json", "7292", "10.8.0.9", ""), lab.host("b.json", "7290", "10.8.0.9", ""));
    let common = "--network np --rate 20Mbit/s --timeout-s 60";
    let mut recv = lab.scps(Some(2), &format!("recv --listen 10.8.0.2:5001 --announce --np {b} {common}"));
    listening(&mut recv);
    let send =
        lab.scps(Some(0), &format!("send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 1000000 --np {a} {common}"));
    let (sent, received) = (finish(send), finish(recv));
    assert_eq!(sent["sha256"], received["sha256"]);
    // 1500 less 20 of IP, 11 of NP, 20 of TCP and 12 of timestamps, made even.
    assert_eq!(sent["negotiated"]["segment_bytes"], 1436);
    assert!(router.end()["np"]["npForwDatagrams"].as_u64().unwrap() > 1000);
}

/// A router on loopback: UDP to host a, and a second way to host b.
fn loopback(lab: &Lab, second: &str, hop_to_b: &str) -> (String, String) {
    let base = 20_000 + u32::from(std::process::id() as u16) % 20_000 + 7 * LABS.fetch_add(1, Ordering::Relaxed);
    let (own, host) = (format!("127.0.0.1:{base}"), format!("127.0.0.1:{}", base + 1));
    let first = format!(
        r#"{{"name": "udp", "carrier": {{"kind": "udp", "local": "{own}", "others": {{"10.9.1.1": "{host}"}}}}, "neighbours": ["10.9.1.1"]}}"#
    );
    let file = lab.router_file(["10.9.1.1", hop_to_b], &format!("{first}, {second}"));
    (file, format!("--driver udp --udp-local {host} --udp-remote {own}"))
}

#[test]
fn a_transfer_crosses_a_router_onto_a_serial_line() {
    let lab = Lab::new();
    let line = lab.folder.join("line").display().to_string();
    let serial = format!(
        r#"{{"name": "modem", "carrier": {{"kind": "serial", "line": "pty:{line}"}}, "rate": "8 Mbit/s",
            "queue": {{"limit": 1000, "purge": 20}}}}"#
    );
    let (file, udp) = loopback(&lab, &serial, "0.0.0.1");
    let router = lab.router(None, &file);
    let (a, b) = (lab.host("a.json", "7292", "10.9.1.9", ""), lab.host("b.json", "7290", "0.0.0.1", ""));
    let common = "--network np --rate 7Mbit/s --timeout-s 60";
    let mut recv = lab.scps(
        None,
        &format!("recv --listen 10.8.0.2:5001 --announce --np {b} {common} --driver serial --serial {line}"),
    );
    listening(&mut recv);
    let send =
        lab.scps(None, &format!("send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 500000 --np {a} {common} {udp}"));
    let (sent, received) = (finish(send), finish(recv));
    assert_eq!(sent["sha256"], received["sha256"]);
    let counters = router.end();
    assert!(counters["interfaces"][1]["sent"].as_u64().unwrap() > 300, "{counters}");
    assert_eq!(counters["interfaces"][1]["damaged"], 0);
}

#[test]
fn a_transfer_outlives_a_router_that_is_killed_and_started_again() {
    let lab = Lab::new();
    let line = lab.folder.join("line").display().to_string();
    let mut channel = lab.scps(None, &format!("channel pty:{line}-r pty:{line}-b --seed 1"));
    let mut ready = String::new();
    BufReader::new(channel.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("\"ready\""), "{ready}");
    let serial = format!(r#"{{"name": "modem", "carrier": {{"kind": "serial", "line": "{line}-r"}}}}"#);
    let (file, udp) = loopback(&lab, &serial, "0.0.0.1");
    let router = lab.router(None, &file);
    let (a, b) = (lab.host("a.json", "7292", "10.9.1.9", ""), lab.host("b.json", "7290", "0.0.0.1", ""));
    let common = "--network np --rate 1Mbit/s --initial-rto-ms 300 --rto-min-ms 300 --timeout-s 60";
    let mut recv = lab.scps(
        None,
        &format!("recv --listen 10.8.0.2:5001 --announce --np {b} {common} --driver serial --serial {line}-b"),
    );
    listening(&mut recv);
    let trace = lab.folder.join("trace");
    let send = lab.scps(
        None,
        &format!(
            "send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 200000 --np {a} {common} {udp} --trace {}",
            trace.display()
        ),
    );
    // Data have crossed once the sender has heard an acknowledgement of some.
    while !std::fs::metadata(&trace).is_ok_and(|meta| meta.len() > 4096) {
        std::thread::yield_now();
    }
    router.kill();
    let second = lab.router(None, &file);
    let (sent, received) = (finish(send), finish(recv));
    assert_eq!(sent["sha256"], received["sha256"]);
    assert!(second.end()["np"]["npForwDatagrams"].as_u64().unwrap() > 20);
    channel.kill().unwrap();
    channel.wait().unwrap();
}

/// A router on loopback with a UDP interface to each host: its settings, and what host a and host b need to reach it. Sockets of
/// the router and of the hosts, for those who send to them without being asked.
fn between_two_sockets(lab: &Lab) -> (String, [String; 2], [String; 4]) {
    let base = 20_000 + u32::from(std::process::id() as u16) % 20_000 + 7 * LABS.fetch_add(1, Ordering::Relaxed);
    let at = [0, 1, 2, 3].map(|more| format!("127.0.0.1:{}", base + more));
    let interface = |name: &str, own: &str, neighbour: &str, host: &str| {
        format!(
            r#"{{"name": "{name}", "carrier": {{"kind": "udp", "local": "{own}", "others": {{"{neighbour}": "{host}"}}}},
                "neighbours": ["{neighbour}"]}}"#
        )
    };
    let to_a = interface("to-a", &at[0], "10.9.1.1", &at[1]);
    let to_b = interface("to-b", &at[2], "10.9.2.2", &at[3]);
    let file = lab.router_file(["10.9.1.1", "10.9.2.2"], &format!("{to_a}, {to_b}"));
    let host = |own: &str, router: &str| format!("--driver udp --udp-local {own} --udp-remote {router}");
    let hosts = [host(&at[1], &at[0]), host(&at[3], &at[2])];
    (file, hosts, at)
}

/// A datagram as a stranger makes it.
fn datagram(dst: u16, src: u16, tpid: u8, payload: &[u8]) -> Vec<u8> {
    datagram_of(dst, src, tpid, Some(9), payload)
}

fn datagram_of(dst: u16, src: u16, tpid: u8, hop_count: Option<u8>, payload: &[u8]) -> Vec<u8> {
    let addresses = Addresses::Basic { dst, src };
    let header = Header { tpid, addresses, hop_count, checksum: true, ..Header::default() };
    let mut octets = vec![0; header.emit_len()];
    octets.extend(payload);
    header.emit(Dialect::default(), DATAGRAM_MAX, &mut octets).unwrap();
    octets
}

/// What somebody off the path can send: octets of no meaning, damaged datagrams, segments that fit no window, and control messages of
/// a believed router about a segment that was never sent.
fn unasked() -> Vec<Vec<u8>> {
    let reset = [0x13, 0x88, 0x13, 0x89, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 0x50, 0x14, 0, 0, 0, 0, 0, 0];
    let forged = datagram(0x7292, 0x7290, 6, &reset);
    let control = |message: Message<'_>| {
        let mut octets = Vec::new();
        message.emit(true, &mut octets);
        [datagram(0x7290, 0x7294, 1, &octets), datagram(0x7292, 0x7294, 1, &octets)]
    };
    let mut all = vec![Vec::new(), vec![0x80], vec![0xe5; 1509], forged.clone()];
    for at in 0..forged.len() {
        let mut damaged = forged.clone();
        damaged[at] ^= 0x10;
        all.push(damaged);
        all.push(forged[..at].to_vec());
    }
    all.extend(control(Message::Unreachable(Unreachable::LinkOutage, &forged)));
    all.extend(control(Message::TooBig { mtu: 68, quote: &forged }));
    all.extend(control(Message::SourceQuench(&forged)));
    all
}

#[test]
fn a_transfer_crosses_a_router_while_strangers_send_to_its_sockets() {
    let lab = Lab::new();
    let (file, [udp_a, udp_b], sockets) = between_two_sockets(&lab);
    let router = lab.router(None, &file);
    let (a, b) = (lab.host("a.json", "7292", "10.9.1.9", ""), lab.host("b.json", "7290", "10.9.2.9", ""));
    let common = "--network np --rate 8Mbit/s --timeout-s 120";
    let mut recv = lab.scps(None, &format!("recv --listen 10.8.0.2:5001 --announce --np {b} {common} {udp_b}"));
    listening(&mut recv);
    let send =
        lab.scps(None, &format!("send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 1000000 --np {a} {common} {udp_a}"));
    let is_over = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let datagrams = unasked();
            while !is_over.load(Ordering::Relaxed) {
                for (octets, to) in datagrams.iter().flat_map(|octets| sockets.iter().map(move |to| (octets, to))) {
                    // A program that has ended refuses.
                    let _ = stranger.send_to(octets, to);
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        let ends = (send.wait_with_output().unwrap(), recv.wait_with_output().unwrap());
        is_over.store(true, Ordering::Relaxed);
        ends
    });
    let result = |output: std::process::Output| -> serde_json::Value {
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    };
    let (sent, received) = (result(sent), result(received));
    assert_eq!((&sent["sha256"], &received["bytes"]), (&received["sha256"], &1_000_000.into()));
    let np = &router.end()["np"];
    for counter in ["npInBadLength", "npInBadVersion", "npInBadChecksum"] {
        assert!(np[counter].as_u64().unwrap() > 0, "{counter}: {np}");
    }
}

/// Two routers, each of which takes the other for the way to host b.
#[test]
fn a_loop_of_two_routers_ends() {
    let lab = Lab::new();
    // Addresses of this process alone: a free port of a common one may be another program's a moment later.
    let id = std::process::id();
    let at = [1, 2, 3].map(|n| format!("127.{}.{}.{n}:7168", 64 + id % 128, id / 128 % 256));
    let host = std::net::UdpSocket::bind(&at[2]).unwrap();
    let file = |i: usize| {
        let (own, other, to_a) = (&at[i], &at[1 - i], ["10.9.1.1", "10.9.3.3"][i]);
        let tables = Lab::tables(&format!(r#"{{"to": "7290", "via": "{to_a}"}}, {{"to": "7292", "via": "10.9.3.3"}}"#));
        let others = format!(r#"{{"10.9.1.1": "{}", "10.9.3.3": "{other}"}}"#, at[2]);
        let udp = format!(r#"{{"kind": "udp", "local": "{own}", "others": {others}}}"#);
        let interface = format!(r#"{{"name": "udp", "carrier": {udp}, "neighbours": ["10.9.1.1", "10.9.3.3"]}}"#);
        lab.write(
            &format!("router-{i}.json"),
            &format!(r#"{{"address": "10.8.0.9", {tables}, "interfaces": [{interface}]}}"#),
        )
    };
    let files = [file(0), file(1)];
    host.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let routers = files.map(|file| lab.router(None, &file));
    host.send_to(&datagram_of(0x7292, 0x7290, 6, None, &[0; 40]), &at[0]).unwrap();
    let mut buffer = [0; 2048];
    let told = host.recv(&mut buffer).expect("the sender was not told");
    let reply = Datagram::parse(&buffer[..told], Dialect::default()).unwrap();
    assert_eq!(Message::parse(reply.payload(), Dialect::default()).unwrap().kind(), (11, 0));
    let counters = routers.map(Router::end);
    let sum = |name: &str| counters.iter().map(|c| c["np"][name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("npForwDatagrams"), sum("npHopDiscard")), (0, 1), "{counters:?}");
}

/// A monitoring system asks a router while eight others hold its endpoint, and after.
#[test]
fn the_metrics_of_a_router_are_its_counters() {
    let lab = Lab::new();
    let (file, _, _) = between_two_sockets(&lab);
    let place = lab.folder.join("metrics");
    let mut child = lab.scps(None, &format!("router {file} --seed 1 --metrics unix:{}", place.display()));
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("\"ready\""), "{line}");
    let ask = || -> String {
        let mut stream = UnixStream::connect(&place).unwrap();
        let mut answer = String::new();
        let asked =
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").and_then(|()| stream.read_to_string(&mut answer));
        assert!(asked.is_ok() || answer.is_empty());
        answer
    };
    let idle: Vec<UnixStream> = (0..8).map(|_| UnixStream::connect(&place).unwrap()).collect();
    assert_eq!(ask(), "");
    drop(idle);
    // The places are free as soon as their threads have seen the ends.
    let answer = loop {
        let answer = ask();
        if !answer.is_empty() {
            break answer;
        }
        std::thread::yield_now();
    };
    let counters = Router { child, said }.end();
    let sent = counters["interfaces"][0]["sent"].as_u64().unwrap();
    let name = counters["interfaces"][0]["name"].as_str().unwrap();
    assert!(answer.contains(&format!("\nscps_router_interfaces_sent{{interface=\"{name}\"}} {sent}\n")), "{answer}");
    assert!(!place.exists());
}

#[test]
fn a_transfer_whose_router_stays_dead_ends_and_says_so() {
    let lab = Lab::new();
    let (file, [udp_a, udp_b], _) = between_two_sockets(&lab);
    let router = lab.router(None, &file);
    let (a, b) = (lab.host("a.json", "7292", "10.9.1.9", ""), lab.host("b.json", "7290", "10.9.2.9", ""));
    let common = "--network np --rate 1Mbit/s --timeout-s 5";
    let mut recv = lab.scps(None, &format!("recv --listen 10.8.0.2:5001 --announce --np {b} {common} {udp_b}"));
    listening(&mut recv);
    let trace = lab.folder.join("trace");
    let send = lab.scps(
        None,
        &format!(
            "send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 5000000 --np {a} {common} {udp_a} --trace {}",
            trace.display()
        ),
    );
    while !std::fs::metadata(&trace).is_ok_and(|meta| meta.len() > 4096) {
        std::thread::yield_now();
    }
    router.kill();
    for child in [send, recv] {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let result: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).expect(&text);
        assert_eq!(result["status"], "failed", "{result}");
        assert!(result["reason"] == "gave up: --timeout-s reached", "{result}");
    }
}

/// A settings file of SP in a folder of its own, and the key that both hosts have.
fn sp_settings(lab: &Lab, host: &str) -> String {
    let folder = lab.folder.join(host);
    std::fs::create_dir(&folder).unwrap();
    let key = lab.folder.join("a.key");
    if !key.exists() {
        let made = Command::new(env!("CARGO_BIN_EXE_scps")).arg("sp-key").arg(&key).output().unwrap();
        assert!(made.status.success());
    }
    for name in ["a.key", "a.key.sequence"] {
        std::fs::copy(lab.folder.join(name), folder.join(name)).unwrap();
    }
    let entry =
        |src, dst| format!(r#"{{"src": "10.8.0.{src}", "dst": "10.8.0.{dst}", "key_id": 1, "key_file": "a.key"}}"#);
    lab.write(&format!("{host}/sp.json"), &format!(r#"{{"associations": [{}, {}]}}"#, entry(1, 2), entry(2, 1)))
}

#[test]
fn a_router_that_demands_sp_refuses_the_rest_and_captures_both() {
    let lab = Lab::new();
    let (file, [udp_a, udp_b], _) = between_two_sockets(&lab);
    let text =
        std::fs::read_to_string(&file).unwrap().replace(r#""name": "to-b","#, r#""name": "to-b", "sp": "required","#);
    assert!(text.contains("required"));
    lab.write("router.json", &text);
    let capture = lab.folder.join("router.pcap");
    let router = lab.router(None, &format!("{file} --pcap {}", capture.display()));
    let (a, b) = (lab.host("a.json", "7292", "10.9.1.9", ""), lab.host("b.json", "7290", "10.9.2.9", ""));
    let common = "--network np --rate 20Mbit/s --timeout-s 30";
    let to_b = format!("send --local 10.8.0.1 --to 10.8.0.2:5001 --bytes 100000 --np {a} {common} {udp_a}");
    // In clear: the router tells so, and the sender ends at once.
    let refused = lab.scps(None, &to_b).wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((refused.status.code(), &result["reason"]), (Some(1), &"unreachable".into()));
    let (sp_a, sp_b) = (sp_settings(&lab, "a"), sp_settings(&lab, "b"));
    let mut recv =
        lab.scps(None, &format!("recv --listen 10.8.0.2:5001 --announce --np {b} {common} {udp_b} --sp {sp_b}"));
    listening(&mut recv);
    let (sent, received) = (finish(lab.scps(None, &format!("{to_b} --sp {sp_a}"))), finish(recv));
    assert_eq!(sent["sha256"], received["sha256"]);
    let counters = router.end();
    assert_eq!(counters["np"]["npSpDiscards"], 1, "{counters}");
    let file = std::fs::read(&capture).unwrap();
    let packets = scps_wire::pcap::Reader::new(&file).unwrap();
    let upper = |octets: &[u8]| scps_np::Datagram::parse(octets, Dialect::default()).unwrap().header.tpid;
    let seen: Vec<u8> = packets.map(|packet| upper(packet.unwrap().data)).collect();
    // The segment in clear, the message about it; then everything as it came and as it left.
    let forwarded = counters["np"]["npForwDatagrams"].as_u64().unwrap() as usize;
    assert_eq!((seen[..2].to_vec(), seen.len()), (vec![6, 1], 2 + 2 * forwarded));
    assert!(seen[2..].iter().all(|upper| *upper == 8), "{seen:?}");
}

#[test]
fn settings_that_make_no_sense_are_named_with_file_and_line() {
    let lab = Lab::new();
    let run = |args: &str| Command::new(env!("CARGO_BIN_EXE_scps")).args(args.split_whitespace()).output().unwrap();
    let says = |args: &str, code: i32, words: &str| {
        let output = run(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args}: {text}");
        assert!(text.contains(words), "{args}: {text}");
    };
    let bad = lab.write("bad.json", "{\n \"tables\": {\"hosts\": [\n  {\"ip\": \"10.8.0.1\", \"np\": \"7291\"}]}\n}");
    let ends = "--local 10.8.0.1 --to 10.8.0.2:5001";
    says(&format!("send {ends} --network np --np {bad}"), 2, &format!("{bad}:3: tables.hosts[0]: found 7291, a group"));
    let router = lab.write("router.json", "{\n \"address\": \"10.8.0.9\",\n \"interfaces\": [\n  {\"nam\": \"x\"}]}");
    says(&format!("router {router}"), 2, &format!("{router}:4: unknown field `nam`"));
    says(
        &format!("router {}", lab.folder.join("none.json").display()),
        3,
        "none.json: found no such file; expected JSON settings",
    );
    let empty = lab.write("empty.json", "{\"address\": \"10.8.0.9\", \"interfaces\": []}");
    says(&format!("router {empty}"), 2, "found 0; expected 1 to 64");
    let taken = lab.write(
        "taken.json",
        r#"{"address": "10.8.0.9", "interfaces": [{"name": "s", "carrier": {"kind": "serial", "line": "/nowhere/tty"}}]}"#,
    );
    says(&format!("router {taken}"), 3, "/nowhere/tty: No such file");
    says(&format!("send {ends} --driver serial --serial x"), 2, "expected --network np");
    says(&format!("send {ends} --precedence 3"), 2, "--precedence: found a level with --network ip");
    says(&format!("send {ends} --network np --precedence 16"), 2, "16 is not in 0..=15");
    says(&format!("send {ends} --np {bad}"), 2, "--np: found a file with --network ip");
    says(&format!("send {ends} --network np --driver serial"), 2, "--serial: found one of");
    says(&format!("send {ends} --network np --offload"), 2, "--offload");
    says("fp 10.8.0.2 --network np --transport tcp", 2, "--network: found it with --transport tcp");
}
