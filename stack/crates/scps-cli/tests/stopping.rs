//! Programs that end before their work is done tell their peer by RST, and either end may be the one that connects. The peer is a
//! socket of this test over UDP encapsulation, each test on its own loopback address; no privileges are needed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::SeqNum;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
const PEERS: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);
const PEER_ISS: SeqNum = SeqNum(5000);

/// A loopback address nobody else uses.
fn outer() -> Ipv4Addr {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let pid = std::process::id();
    Ipv4Addr::new(127, 64 + (pid >> 8) as u8 % 128, pid as u8, NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn scps(args: &str) -> Child {
    let (command, options) = args.split_once(' ').unwrap();
    Command::new(env!("CARGO_BIN_EXE_scps"))
        // A test that fails leaves no program behind for long; a later option overrides this one.
        .args([command, "--timeout-s", "60"])
        .args(options.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

/// How it ended, standard output, standard error.
fn ended(child: Child) -> (ExitStatus, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status, text(&output.stdout), text(&output.stderr))
}

fn value(json: &str, name: &str) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(json.lines().last().expect("a result")).unwrap()[name].clone()
}

/// Plain TCP in UDP, by hand.
struct Peer {
    socket: UdpSocket,
    program: SocketAddr,
    port: u16,
    their_port: u16,
    acked: SeqNum,
}

impl Peer {
    fn new(socket: UdpSocket, program: SocketAddr) -> Peer {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Peer { socket, program, port: 5001, their_port: 5001, acked: SeqNum(0) }
    }

    fn receive(&mut self) -> (Tcp, usize) {
        let mut buffer = [0; 2048];
        loop {
            let (n, from) = self.socket.recv_from(&mut buffer).expect("a packet of the program");
            self.program = from;
            let (ip, payload) = Ipv4::parse(&buffer[..n]).unwrap();
            let (tcp, data) = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap();
            if tcp.dst_port == self.port {
                return (tcp, data.len());
            }
        }
    }

    fn send(&self, seq: SeqNum, flags: Flags, data: &[u8]) {
        let options = Options::default();
        let (src_port, dst_port) = (self.port, self.their_port);
        let tcp = Tcp { src_port, dst_port, seq, ack: self.acked, flags, window: 60_000, urgent: 0, options };
        let mut packet = vec![0; 20 + tcp.emit_len()];
        packet.extend(data);
        let (head, segment) = packet.split_at_mut(20);
        tcp.emit(segment, PEERS, OURS, 6);
        let payload_len = segment.len() as u16;
        let (src, dst) = (PEERS, OURS);
        Ipv4 { src, dst, protocol: 6, tos: 0, ttl: 64, id: 1, dont_fragment: true, is_fragment: false, payload_len }
            .emit(head);
        self.socket.send_to(&packet, self.program).unwrap();
    }

    /// Answers the program's SYN.
    fn accept(&mut self) {
        let (syn, _) = self.receive();
        assert!(syn.flags.has(Flags::SYN));
        (self.their_port, self.acked) = (syn.src_port, syn.seq + 1);
        self.send(PEER_ISS, Flags::SYN.with(Flags::ACK), &[]);
    }

    /// Connects to the program that listens, and gives it some data.
    fn connect(&mut self) {
        self.send(PEER_ISS, Flags::SYN, &[]);
        let (syn_ack, _) = self.receive();
        assert!(syn_ack.flags.has(Flags::SYN));
        self.acked = syn_ack.seq + 1;
        self.send(PEER_ISS + 1, Flags::ACK, &[7; 1000]);
        while self.receive().0.ack != PEER_ISS + 1001 {}
    }

    /// Everything up to a reset.
    fn until_reset(&mut self) {
        while !self.receive().0.flags.has(Flags::RST) {}
    }
}

/// `scps send` at a rate that makes it wait, and the peer that accepted.
fn sender(options: &str) -> (Child, Peer) {
    let socket = UdpSocket::bind((outer(), 7168)).unwrap();
    let peer = socket.local_addr().unwrap();
    let child = scps(&format!(
        "send --driver udp --udp-local {}:0 --udp-remote {peer} --local {OURS} --to {PEERS}:5001 {options}",
        outer()
    ));
    let mut peer = Peer::new(socket, peer);
    peer.accept();
    (child, peer)
}

/// A listening program and the peer that connected.
fn listener(command: &str) -> (Child, Peer) {
    let here = outer();
    let mut child =
        scps(&format!("{command} --driver udp --udp-local {here}:7168 --listen {OURS}:5001 --announce --rate none"));
    let mut line = [0; 23];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(String::from_utf8_lossy(&line), "{\"event\": \"listening\"}\n");
    let socket = UdpSocket::bind((outer(), 0)).unwrap();
    let mut peer = Peer::new(socket, SocketAddr::from((here, 7168)));
    peer.port = 4000;
    peer.connect();
    (child, peer)
}

#[test]
fn a_sender_that_gives_up_at_a_low_rate_resets() {
    let (child, mut peer) = sender("--rate 9600 --timeout-s 1");
    peer.until_reset();
    let (status, out, _) = ended(child);
    assert_eq!((status.code(), value(&out, "reason")), (Some(1), "gave up: --timeout-s reached".into()));
}

#[test]
fn a_receiver_that_gives_up_resets() {
    let (child, mut peer) = listener("recv --timeout-s 1");
    peer.until_reset();
    let (status, out, err) = ended(child);
    assert_eq!((status.code(), value(&out, "reason")), (Some(1), "gave up: --timeout-s reached".into()), "{err}");
    assert_eq!(value(&out, "bytes"), 1000);
}

#[test]
fn a_receiver_whose_transfers_are_done_resets_who_came_beside_them() {
    let (child, mut peer) = listener("recv");
    let mut other = Peer::new(peer.socket.try_clone().unwrap(), peer.program);
    other.port = 4001;
    other.connect();
    peer.send(PEER_ISS + 1001, Flags::FIN.with(Flags::ACK), &[]);
    let fin = loop {
        let (tcp, _) = peer.receive();
        if tcp.flags.has(Flags::FIN) {
            break tcp;
        }
    };
    peer.acked = fin.seq + 1;
    peer.send(PEER_ISS + 1002, Flags::ACK, &[]);
    other.until_reset();
    let (status, out, err) = ended(child);
    let results: Vec<_> = out.lines().map(|line| value(line, "status")).collect();
    assert_eq!((status.code(), results), (Some(1), vec!["complete".into(), "failed".into()]), "{err}");
}

#[test]
fn signals_reset_and_are_reported() {
    for (name, code, reason) in [("TERM", 143, "ended by SIGTERM"), ("INT", 130, "ended by SIGINT")] {
        let (child, mut peer) = sender("--rate 9600");
        // The first data is there, so the program is past its preparations.
        while peer.receive().1 == 0 {}
        signal(&child, name);
        peer.until_reset();
        let (status, out, _) = ended(child);
        assert_eq!((status.code(), value(&out, "reason")), (Some(code), reason.into()));
        let (child, mut peer) = listener("recv --count 0");
        signal(&child, name);
        peer.until_reset();
        let (status, out, _) = ended(child);
        assert_eq!((status.code(), value(&out, "reason")), (Some(code), reason.into()));
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    // At 80 bit/s the reset would wait for seconds.
    let (child, mut peer) = sender("--rate 80");
    while peer.receive().1 == 0 {}
    signal(&child, "TERM");
    signal(&child, "INT");
    let (status, out, _) = ended(child);
    assert!(matches!(status.code(), Some(130 | 143)), "{status}");
    assert!(out.is_empty(), "no time for a result: {out}");
}

#[test]
fn a_reset_that_cannot_leave_is_said() {
    let (child, mut peer) = sender("--rate 8");
    while peer.receive().1 == 0 {}
    signal(&child, "TERM");
    let (status, _, err) = ended(child);
    assert_eq!(status.code(), Some(143));
    assert!(err.contains("did not leave within 5 s"), "{err}");
}

#[test]
fn a_sender_whose_input_is_silent_heeds_signals_and_sends_what_there_is() {
    let (mut child, mut peer) = sender("--file - --nodelay true");
    child.stdin.as_mut().unwrap().write_all(b"a few octets").unwrap();
    while peer.receive().1 != 12 {}
    signal(&child, "TERM");
    peer.until_reset();
    let (status, out, _) = ended(child);
    assert_eq!((status.code(), value(&out, "bytes")), (Some(143), 12.into()));
}

#[test]
fn an_error_on_our_side_resets() {
    // A full device as the output: the data cannot be written.
    let here = outer();
    let mut child =
        scps(&format!("recv --driver udp --udp-local {here}:7168 --listen {OURS}:5001 --announce --output /dev/full"));
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut peer = Peer::new(UdpSocket::bind((outer(), 0)).unwrap(), SocketAddr::from((here, 7168)));
    peer.port = 4000;
    peer.send(PEER_ISS, Flags::SYN, &[]);
    peer.acked = peer.receive().0.seq + 1;
    // More than is buffered on the way to the file.
    (0..20).for_each(|i| peer.send(PEER_ISS + 1 + i * 1000, Flags::ACK, &[7; 1000]));
    peer.until_reset();
    let (status, _, err) = ended(child);
    assert_eq!(status.code(), Some(3), "{err}");
}

#[test]
fn without_a_connection_the_end_is_said_too() {
    for command in ["send", "recv"] {
        let child =
            scps(&format!("{command} --driver udp --udp-local {}:0 --listen {OURS}:5001 --timeout-s 0.1", outer()));
        let (status, out, err) = ended(child);
        assert_eq!(status.code(), Some(1), "{err}");
        assert_eq!((value(&out, "role"), value(&out, "status")), (command.into(), "failed".into()));
        assert!(err.contains("--timeout-s reached"), "{err}");
    }
}

#[test]
fn either_end_connects_and_a_half_closed_connection_carries_on() {
    for (listening, connecting) in
        [("send", "recv"), ("send", "recv --half-close"), ("recv", "send"), ("recv --half-close", "send")]
    {
        let here = outer();
        let common = "--driver udp --timeout-s 60 --rate 20Mbit/s --initial-rto-ms 200";
        let bytes = |command: &str| if command == "send" { "--bytes 1000000" } else { "" };
        let mut first = scps(&format!(
            "{listening} {} --udp-local {here}:7168 --listen {OURS}:5001 --announce {common}",
            bytes(listening)
        ));
        let mut out = BufReader::new(first.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let second = scps(&format!(
            "{connecting} {} --udp-local {}:0 --udp-remote {here}:7168 --local {PEERS} --connect {OURS}:5001 {common}",
            bytes(connecting),
            outer()
        ));
        let (status, theirs, err) = ended(second);
        assert!(status.success(), "{connecting}: {err}");
        let mut ours = String::new();
        out.read_to_string(&mut ours).unwrap();
        assert!(first.wait().unwrap().success(), "{listening}");
        assert_eq!((value(&ours, "sha256"), value(&ours, "bytes")), (value(&theirs, "sha256"), 1_000_000.into()));
    }
}
