//! What a gateway, a router and a file server have for their operator: SIGHUP, the level of the log, counters for a monitoring system.
//! Everything goes through UDP or the kernel's TCP on the loopback interface, so nothing here needs privileges.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod fp_common;

use fp_common::wait_until;
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::pcap::Reader;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::SeqNum;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

/// A program that runs, with its log.
struct Daemon {
    child: Child,
    log: Receiver<String>,
    folder: tempfile::TempDir,
}

impl Daemon {
    /// Starts `scps COMMAND FILE` with settings, and waits until it is ready.
    fn start(command: &str, settings: &str, more: &[&str]) -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.json");
        fs::write(&file, settings).unwrap();
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_scps"));
        daemon.args([command.as_ref(), file.as_os_str()]).args(more).stdout(Stdio::null());
        Daemon::spawn(daemon, folder)
    }

    fn spawn(mut command: Command, folder: tempfile::TempDir) -> Daemon {
        let ready = folder.path().join("ready");
        let place = format!("unix:{}", folder.path().join("metrics").display());
        command.args(["--metrics", &place]).arg("--ready-file").arg(&ready);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, log) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        wait_until("the program is ready", || ready.exists());
        Daemon { child, log, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("settings.json")
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn line(&self) -> String {
        self.log.recv_timeout(Duration::from_secs(30)).expect("a line in the log")
    }

    /// Reads the log up to what a gateway says when it is ready; what it found of the machine stands before that.
    fn read_to_ready(&self) {
        while !self.line().starts_with("scps: gateway: ready; ") {}
    }

    /// What the log says of settings that are read again.
    fn reload(&self, settings: &str) -> String {
        fs::write(self.file(), settings).unwrap();
        self.signal("-HUP");
        self.line()
    }

    fn reader(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("metrics")).unwrap()
    }

    /// The answer of the endpoint to a request; empty if it hangs up.
    fn asked(&self, request: &[u8]) -> String {
        let (mut reader, mut answer) = (self.reader(), String::new());
        let _ = reader.write_all(request).and_then(|()| reader.read_to_string(&mut answer));
        answer
    }

    fn metrics(&self) -> String {
        let mut answer = String::new();
        wait_until("the endpoint has a place", || {
            answer = self.asked(b"GET /metrics HTTP/1.1\r\n\r\n");
            !answer.is_empty()
        });
        answer
    }

    /// Ends it by SIGTERM; what it wrote to its log and nobody read.
    fn end(mut self) -> Vec<String> {
        self.signal("-TERM");
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
        self.log.iter().collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A gateway between two UDP sockets; `wan` is added to the transport, `more` to the file.
fn gateway(ports: [u16; 4], wan: &str, more: &str) -> String {
    let side = |local, remote, transport: &str| {
        let ends = format!(r#""local": "127.0.0.1:{local}", "remote": "127.0.0.1:{remote}""#);
        format!(r#"{{"carrier": {{"kind": "udp", {ends}}}, "transport": {{{transport}}}}}"#)
    };
    let lan = side(ports[0], ports[1], "");
    let wan = side(ports[2], ports[3], wan);
    format!(r#"{{"lan": {lan}, "wan": {wan}{more}}}"#)
}

/// Asks the gateway's LAN for a connection, and refuses it at the WAN.
fn refused_connection(ends: &[UdpSocket; 2], gateway: [u16; 2], port: u16) {
    let [client, server] = ends;
    let syn = segment(port, 80, Flags::SYN, SeqNum(0), [10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    client.send_to(&syn, ("127.0.0.1", gateway[0])).unwrap();
    let mut came = [0; 2048];
    let n = server.recv(&mut came).unwrap();
    let (ip, payload) = Ipv4::parse(&came[..n]).unwrap();
    let (tcp, _) = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6, 105])).unwrap();
    let flags = Flags::RST.with(Flags::ACK);
    let reset = segment(tcp.dst_port, tcp.src_port, flags, tcp.seq + 1, ip.dst, ip.src);
    server.send_to(&reset, ("127.0.0.1", gateway[1])).unwrap();
    // The client is told when the connection is accounted for.
    client.recv(&mut came).unwrap();
}

fn segment(src_port: u16, dst_port: u16, flags: Flags, ack: SeqNum, src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
    let (seq, options) = (SeqNum(1), Options::default());
    let tcp = Tcp { src_port, dst_port, seq, ack, flags, window: 60_000, urgent: 0, options };
    let mut packet = vec![0; 20 + tcp.emit_len()];
    let (head, segment) = packet.split_at_mut(20);
    tcp.emit(segment, src, dst, 6);
    let payload_len = segment.len() as u16;
    Ipv4 { src, dst, protocol: 6, tos: 0, ttl: 64, id: 1, dont_fragment: true, is_fragment: false, payload_len }
        .emit(head);
    packet
}

fn bound() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

#[test]
fn a_full_disk_costs_a_gateway_its_account_and_no_connection() {
    let (ends, own) = ([bound(), bound()], [free_port(), free_port()]);
    let [client, server] = [0, 1].map(|i: usize| ends[i].local_addr().unwrap().port());
    let settings = gateway([own[0], client, own[1], server], SLOW, "");
    let daemon = Daemon::start("gateway", &settings, &["--counters", "/dev/full", "--counters-every", "0.05"]);
    for port in 4000..4005 {
        refused_connection(&ends, own, port);
    }
    let metrics = daemon.metrics();
    assert!(metrics.contains("\nscps_gateway_broken 5\n"), "{metrics}");
    let log = daemon.end();
    let about_disk: Vec<_> = log.iter().filter(|line| line.contains("/dev/full")).collect();
    assert_eq!(about_disk.len(), 1, "{log:?}");
    assert!(about_disk[0].ends_with("; lines are lost until it can be written."), "{log:?}");
}

#[test]
fn a_capture_has_the_packets_of_a_sealed_side_in_clear() {
    let (ends, own) = ([bound(), bound()], [free_port(), free_port()]);
    let [client, server] = [0, 1].map(|i: usize| ends[i].local_addr().unwrap().port());
    let folder = tempfile::tempdir().unwrap();
    let [key, sp, capture] = ["link.key", "sp.json", "a.pcap"].map(|name| folder.path().join(name));
    assert!(Command::new(env!("CARGO_BIN_EXE_scps")).arg("sp-key").arg(&key).status().unwrap().success());
    let way = |src, dst| format!(r#"{{"src": "{src}", "dst": "{dst}", "key_id": 1, "key_file": "link.key"}}"#);
    let ways = [way("10.9.0.1", "10.9.0.2"), way("10.9.0.2", "10.9.0.1")].join(", ");
    fs::write(&sp, format!(r#"{{"associations": [{ways}]}}"#)).unwrap();
    let names = r#""own": "10.9.0.1", "peer": "10.9.0.2""#;
    let sealed = format!(r#""wan": {{"sp": {{"file": "{}", {names}}}, "#, sp.display());
    let settings = gateway([own[0], client, own[1], server], SLOW, "").replacen("\"wan\": {", &sealed, 1);
    let daemon = Daemon::start("gateway", &settings, &["--pcap", capture.to_str().unwrap()]);
    let syn = segment(4000, 80, Flags::SYN, SeqNum(0), [10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    ends[0].send_to(&syn, ("127.0.0.1", own[0])).unwrap();
    let mut came = [0; 2048];
    let n = ends[1].recv(&mut came).unwrap();
    daemon.end();
    let capture = fs::read(capture).unwrap();
    let packets: Vec<&[u8]> = Reader::new(&capture).unwrap().map(|packet| packet.unwrap().data).collect();
    let ports = |packet: &&[u8]| packet.windows(4).any(|octets| octets == [4000u16, 80].map(u16::to_be_bytes).concat());
    assert!(!ports(&&came[..n]) && packets.iter().filter(|packet| ports(packet)).count() >= 2, "LAN and WAN");
    // What is sealed is no IP packet, as which the capture would show it.
    assert!(Ipv4::parse(&came[..n]).is_err() && packets.iter().all(|packet| Ipv4::parse(packet).is_ok()));
}

#[test]
fn an_account_goes_on_in_a_line_of_its_own_when_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let (file, settings) = (folder.path().join("counters"), folder.path().join("settings.json"));
    fs::write(&settings, gateway([(); 4].map(|()| free_port()), SLOW, "")).unwrap();
    // Files may have one block, as on a disk that is full then: the second line does not fit.
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; ulimit -S -f 1; exec "$0" "$@""#, env!("CARGO_BIN_EXE_scps")]);
    command.arg("gateway").arg(&settings).arg("--counters").arg(&file).stdout(Stdio::null());
    let daemon = Daemon::spawn(command, folder);
    daemon.read_to_ready();
    let octets = || fs::metadata(&file).map_or(0, |about| about.len());
    let mut before = None;
    while before != Some(octets()) {
        before = Some(octets());
        daemon.signal("-USR1");
        // Metrics are answered after what was asked for before.
        daemon.metrics();
        daemon.metrics();
    }
    assert!(daemon.line().ends_with("; lines are lost until it can be written."));
    let freed = Command::new("prlimit").args(["--pid", &daemon.child.id().to_string(), "--fsize=unlimited"]).status();
    assert!(freed.unwrap().success());
    daemon.signal("-USR1");
    wait_until("the account goes on", || Some(octets()) != before);
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<bool> = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).collect();
    // The one that is torn has its place still.
    assert_eq!(lines.iter().filter(|is_whole| !**is_whole).count(), 1, "{text}");
    assert_eq!(lines.last(), Some(&true), "{text}");
    assert_eq!(daemon.end(), [""; 0]);
}

#[test]
fn a_router_whose_output_nobody_takes_forwards_on() {
    let folder = tempfile::tempdir().unwrap();
    let lines = ["one", "two"].map(|name| (name, UnixListener::bind(folder.path().join(name)).unwrap()));
    let interface = |(hop, (name, _)): (usize, &(&str, UnixListener))| {
        let line = folder.path().join(name);
        let carrier = format!(r#"{{"kind": "serial", "line": "unix:{}"}}"#, line.display());
        format!(r#"{{"name": "{name}", "carrier": {carrier}, "neighbours": ["127.0.1.{hop}"]}}"#)
    };
    let interfaces = lines.iter().enumerate().map(interface).collect::<Vec<_>>().join(", ");
    let settings = folder.path().join("settings.json");
    fs::write(&settings, format!(r#"{{"address": "10.8.0.9", "tables": {{}}, "interfaces": [{interfaces}]}}"#))
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
    command.arg("router").arg(&settings).stdout(Stdio::piped());
    let mut daemon = Daemon::spawn(command, folder);
    drop(daemon.child.stdout.take());
    let hang_up = |(_, listener): &(&str, UnixListener)| drop(listener.accept().unwrap());
    hang_up(&lines[0]);
    assert!(daemon.line().contains("interface one is down"));
    assert!(daemon.line().ends_with("; lines are lost until it can be written."));
    hang_up(&lines[1]);
    assert!(daemon.line().contains("interface two is down"));
    assert!(daemon.metrics().contains("\nscps_router_interfaces_sent{interface=\"two\"} 0\n"));
}

const SLOW: &str = r#""rate": "2 Mbit/s", "rtt_ms": 500"#;
const FAST: &str = r#""rate": "5 Mbit/s", "rtt_ms": 500, "congestion": "vegas""#;

#[test]
fn a_gateway_takes_new_rates_and_refuses_what_it_cannot_change() {
    let ports = [(); 4].map(|()| free_port());
    let daemon = Daemon::start("gateway", &gateway(ports, SLOW, ""), &[]);
    daemon.read_to_ready();
    let said = daemon.reload(&gateway(ports, FAST, r#", "limits": {"connections": 7, "set_up_s": 3}"#));
    assert!(said.starts_with("scps: gateway: SIGHUP: settings are read again: lan: TCP, VJ, no rate"), "{said}");
    assert!(said.contains("; wan: SCPS-TP, Vegas, rate 5000000 bit/s"), "{said}");
    // Carriers, MTUs and what decides who is taken hold until the end; nothing of such a file is taken.
    let other = gateway([ports[0], ports[1], ports[2], ports[0]], &format!(r#"{SLOW}, "mtu": 1000"#), "");
    let said = daemon.reload(&other);
    assert!(said.contains("found changes that only a restart makes (lan: mtu, wan: carrier, wan: mtu)"), "{said}");
    assert!(said.ends_with("The settings stay as they were."), "{said}");
    let said = daemon.reload(&gateway(ports, FAST, r#", "unknown": "pass", "set_up": "early""#));
    assert!(said.contains("(set_up, unknown)"), "{said}");
    assert_eq!(daemon.end(), [""; 0]);
}

#[test]
fn settings_that_are_no_good_change_nothing() {
    let ports = [(); 4].map(|()| free_port());
    let daemon = Daemon::start("gateway", &gateway(ports, SLOW, ""), &["--log-level", "error"]);
    let stays = |said: String, why: &str| {
        assert!(said.starts_with("scps: gateway: SIGHUP: ") && said.contains(why), "{said}");
        assert!(said.ends_with("The settings stay as they were."), "{said}");
    };
    stays(daemon.reload("{\"wan\": {"), "settings.json:1: wan: found text that is no JSON");
    stays(daemon.reload(&gateway(ports, r#""rate": "fast""#, "")), "wan.transport.rate: ");
    stays(daemon.reload(&gateway(ports, SLOW, r#", "limits": {"connections": 0}"#)), "limits allow no connection");
    stays(daemon.reload(&"[".repeat(1 << 19)), "found a list");
    stays(daemon.reload(&" ".repeat(1 << 21)), "more than 1048576 octets");
    fs::remove_file(daemon.file()).unwrap();
    daemon.signal("-HUP");
    stays(daemon.line(), "settings.json: ");
    // A pipe that nobody writes to would keep whoever opens it waiting.
    assert!(Command::new("mkfifo").arg(daemon.file()).status().unwrap().success());
    daemon.signal("-HUP");
    stays(daemon.line(), "found no file");
    fs::remove_file(daemon.file()).unwrap();
    // Good ones are taken without a word at this level, and it works still.
    fs::write(daemon.file(), gateway(ports, FAST, "")).unwrap();
    daemon.signal("-HUP");
    assert!(daemon.metrics().contains("\nscps_gateway_open 0\n"));
    assert_eq!(daemon.end(), [""; 0]);
}

#[test]
fn readers_that_dawdle_or_flood_keep_nobody_out_for_long() {
    let ports = [(); 4].map(|()| free_port());
    let daemon = Daemon::start("gateway", &gateway(ports, SLOW, ""), &[]);
    assert_eq!(daemon.asked(&vec![b'x'; 1 << 20]), "");
    assert!(daemon.asked(b"GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
    // Every place is held by somebody who says an octet now and then; more than there are places are turned away.
    let mut dawdlers: Vec<UnixStream> = (0..20).map(|_| daemon.reader()).collect();
    let begin = Instant::now();
    let mut answer = String::new();
    wait_until("a place is free", || {
        for dawdler in &mut dawdlers {
            let _ = dawdler.write_all(b"G");
        }
        std::thread::park_timeout(Duration::from_millis(100));
        answer = daemon.asked(b"GET /metrics HTTP/1.0\r\n\r\n");
        !answer.is_empty()
    });
    assert!(answer.contains("\nscps_gateway_begun 0\n"), "{answer}");
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    drop(dawdlers);
    daemon.end();
}

#[test]
fn metrics_have_their_socket_file_again_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
        let settings = folder.path().join("settings.json");
        fs::write(&settings, gateway([(); 4].map(|()| free_port()), SLOW, "")).unwrap();
        let place = format!("unix:{}", folder.path().join("metrics").display());
        command.arg("gateway").arg(settings).args(["--metrics", &place]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let is_ready = |child: &mut Child| {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.contains("ready")
    };
    let mut killed = start();
    assert!(is_ready(&mut killed));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut again = start();
    let is_again = is_ready(&mut again);
    // One that lives keeps its place.
    let second = start().wait_with_output().unwrap();
    again.kill().unwrap();
    again.wait().unwrap();
    assert!(is_again);
    let error = String::from_utf8(second.stderr).unwrap();
    assert!(second.status.code() == Some(3) && error.contains("metrics: Address already in use"), "{error}");
}

fn router(port: u16, next_hops: &str, interface: &str) -> String {
    let tables = format!(r#""tables": {{"hosts": [{{"ip": "10.8.0.1", "np": "7290"}}], "next_hops": [{next_hops}]}}"#);
    let udp = format!(r#"{{"kind": "udp", "local": "127.0.0.1:{port}"}}"#);
    let interface = format!(r#"{{"name": "hop", "carrier": {udp}, "neighbours": ["127.0.0.9"]{interface}}}"#);
    format!(r#"{{"address": "10.8.0.9", {tables}, "interfaces": [{interface}]}}"#)
}

#[test]
fn a_router_takes_new_tables_and_rates() {
    let port = free_port();
    let daemon = Daemon::start("router", &router(port, "", ""), &[]);
    let said = daemon.reload(&router(port, r#"{"to": "7290", "via": "127.0.0.9"}"#, r#", "rate": "1 Mbit/s""#));
    assert!(said.starts_with("scps: router: SIGHUP: settings are read again: "), "{said}");
    let said = daemon.reload(&router(port, "", r#", "mtu": 900"#));
    assert!(said.contains("only a restart makes (interface hop)"), "{said}");
    let said = daemon.reload(&router(port, r#"{"to": "729x", "via": "127.0.0.9"}"#, ""));
    assert!(said.contains("found \"729x\"; expected an NP address"), "{said}");
    assert!(daemon.metrics().contains("\nscps_router_interfaces_sent{interface=\"hop\"} 0\n"));
    assert_eq!(daemon.end(), [""; 0]);
}

fn hash(password: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scps"));
    let mut child =
        child.args(["fpd", "--hash-password"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

/// A file server over the kernel's TCP, with these users.
fn file_server(users: &str) -> (Daemon, std::net::SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("files")).unwrap();
    fs::write(folder.path().join("settings.json"), users).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
    command.args(["fpd", "--transport", "tcp", "--port", "0", "--users"]).arg(folder.path().join("settings.json"));
    command.stdout(Stdio::null());
    let daemon = Daemon::spawn(command, folder);
    let address = fs::read_to_string(daemon.folder.path().join("ready")).unwrap().trim().parse().unwrap();
    (daemon, address)
}

/// The answer to a login, and a session that goes on.
fn log_in(address: std::net::SocketAddr, name: &str) -> (String, std::net::TcpStream) {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "USER {name}\r\nPASS secret\r\n").unwrap();
    let answers = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let answer = answers.filter(|line| line.starts_with("230") || line.starts_with("530")).take(1).collect();
    (answer, stream)
}

fn log_line(daemon: &Daemon, words: &str) -> String {
    loop {
        let said = daemon.line();
        if said.contains(words) {
            return said;
        }
    }
}

#[test]
fn a_file_server_takes_new_users_and_counts_what_it_does() {
    let user = |name: &str| format!(r#""{name}": {{"password": "{}", "root": "files"}}"#, hash("secret"));
    let (daemon, address) = file_server(&format!(r#"{{"users": {{{}}}}}"#, user("ann")));
    let (answer, mut ann) = log_in(address, "ann");
    assert!(answer.starts_with("230"), "{answer}");
    assert!(log_in(address, "bob").0.starts_with("530"));
    let twice = format!(r#"{{"users": {{{}, {}}}}}"#, user("ann"), user("ann"));
    for (text, why) in [
        ("{\"users\": 7}", "settings.json"),
        ("{\"users\": {}}", "found nobody to serve"),
        (&twice, "settings.json: found ann twice; expected it once"),
    ] {
        fs::write(daemon.file(), text).unwrap();
        daemon.signal("-HUP");
        let said = log_line(&daemon, "SIGHUP");
        assert!(said.contains(why) && said.ends_with("The settings stay as they were."), "{said}");
    }
    fs::write(daemon.file(), format!(r#"{{"users": {{{}}}}}"#, user("bob"))).unwrap();
    daemon.signal("-HUP");
    let said = log_line(&daemon, "SIGHUP");
    assert!(said.contains("settings are read again: 1 users"), "{said}");
    assert!(log_in(address, "bob").0.starts_with("230"));
    assert!(log_in(address, "ann").0.starts_with("530"));
    // Who was logged in goes on.
    write!(ann, "PWD\r\n").unwrap();
    let mut lines = BufReader::new(ann).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("257")));
    let metrics = daemon.metrics();
    for line in ["sessions 4", "logins_refused 2", "commands 9", "refused 0", "to_clients_octets 0"] {
        assert!(metrics.contains(&format!("\nscps_fpd_{line}\n")), "{line}: {metrics}");
    }
    daemon.end();
}

#[test]
fn an_anonymous_user_of_the_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.json");
    fs::write(&file, r#"{"users": {"anonymous": {"root": ".", "read_only": true}}}"#).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
    command.args(["fpd", "--transport", "tcp", "--port", "0"]).arg("--users").arg(&file).arg("--anonymous");
    // Whoever serves is ended by its log, which cannot be written.
    let output = command.arg(folder.path()).args(["--log", "/nowhere/log"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("found a user \"anonymous\" in the file"), "{error}");
}

#[test]
fn the_log_level_leaves_out_what_matters_less() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
    command.args(["fpd", "--transport", "tcp", "--port", "0", "--open"]).arg(folder.path()).env("SCPS_LOG", "warn");
    command.stdout(Stdio::null());
    let daemon = Daemon::spawn(command, folder);
    let ready: &Path = &daemon.folder.path().join("ready");
    let address: std::net::SocketAddr = fs::read_to_string(ready).unwrap().trim().parse().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "QUIT\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    // Neither the session nor the signal is worth a warning.
    daemon.signal("-HUP");
    assert!(daemon.metrics().contains("\nscps_fpd_sessions 1\n"));
    assert_eq!(daemon.end(), [""; 0]);
}
