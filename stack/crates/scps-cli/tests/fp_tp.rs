//! The same commands over SCPS-TP, its packets in UDP on the loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod fp_common;

use fp_common::{folders, noise, results, wait_until};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::SeqNum;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn the_commands_work_over_scps_tp() {
    commands_work(&[]);
}

#[test]
fn the_commands_work_with_compressed_headers() {
    commands_work(&["--compression", "true"]);
}

fn commands_work(options: &[&str]) {
    let folders = folders();
    let data = noise(400_000, 8);
    fs::write(folders.client.join("f"), &data).unwrap();
    let (near, far) = (free_address().to_string(), free_address().to_string());
    let ready = folders.root.path().join("ready");
    let counts = ["near", "far"].map(|end| folders.root.path().join(end));
    let common = ["--driver", "udp", "--rate", "20 Mbit/s", "--mib", folders.root.path().join("mib").to_str().unwrap()]
        .map(str::to_owned);
    let mut server = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["fpd", "--listen", "10.8.0.2", "--udp-local", &far, "--open", folders.server.to_str().unwrap()])
        .args(["--ready-file", ready.to_str().unwrap(), "--counters", counts[1].to_str().unwrap()])
        .args(&common)
        .args(options)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the server serves", || ready.exists());
    let commands = "autorestart; put f; get f g; check f g; passive; get f h; bets; put f k; get k l; check k l; bets; \
                    raread f part 10-19,399990-eof; raupdt f n f mine diff:g; suppress; size f; unsuppress; ls; cp f o; \
                    rename o p; delete p";
    let client = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["fp", "--local", "10.8.0.1", "--udp-local", &near, "--udp-remote", &far, "--quiet"])
        .args(["--folder", folders.client.to_str().unwrap(), "-e", commands, "10.8.0.2"])
        .args(["--counters", counts[0].to_str().unwrap()])
        .args(&common)
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (well, values, text) = results(client);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(well, "{text}");
    assert_eq!(values.len(), 21, "{text}");
    for path in counts {
        let counted: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert!(
            ["rtos", "retransmissions", "superfluous_resends"].iter().all(|key| counted[key].is_u64()),
            "{counted}"
        );
    }
    for name in ["g", "h", "l", "mine"] {
        assert!(fs::read(folders.client.join(name)).unwrap() == data, "{name}");
    }
    for name in ["f", "k", "n"] {
        assert!(fs::read(folders.server.join(name)).unwrap() == data, "{name}");
    }
    assert_eq!(fs::read(folders.client.join("part")).unwrap(), [&data[10..20], &data[399_990..]].concat());
}

/// A server, a client that stores a file slowly, and the moment at which some of it is stored: who gets SIGTERM there, and what
/// the client says in the end. Answers with both exit codes.
fn ended_in_the_middle(who: &str) -> ((Option<i32>, Option<i32>), String, String) {
    let folders = folders();
    fs::write(folders.client.join("f"), noise(400_000, 8)).unwrap();
    let (near, far) = (free_address().to_string(), free_address().to_string());
    let (ready, log) = (folders.root.path().join("ready"), folders.root.path().join("log"));
    let scps = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
        command.args(args).args(["--driver", "udp", "--rate", "200 kbit/s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let path = |p: &std::path::Path| p.to_str().unwrap().to_owned();
    let server = scps(&[
        "fpd",
        "--listen",
        "10.8.0.2",
        "--udp-local",
        &far,
        "--open",
        &path(&folders.server),
        "--ready-file",
        &path(&ready),
        "--log",
        &path(&log),
    ]);
    wait_until("the server serves", || ready.exists());
    let client = scps(&[
        "fp",
        "--local",
        "10.8.0.1",
        "--udp-local",
        &near,
        "--udp-remote",
        &far,
        "--folder",
        &path(&folders.client),
        "-e",
        "put f",
        "10.8.0.2",
    ]);
    wait_until("some is stored", || {
        fs::read_dir(&folders.server).unwrap().flatten().any(|e| e.metadata().unwrap().len() > 0)
    });
    let victim = if who == "server" { server.id() } else { client.id() };
    assert!(Command::new("kill").arg(victim.to_string()).status().unwrap().success());
    let output = client.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if who == "client" {
        wait_until("the server knows", || fs::read_to_string(&log).unwrap().contains("closed"));
        assert!(Command::new("kill").arg(server.id().to_string()).status().unwrap().success());
    }
    let served = server.wait_with_output().unwrap();
    ((output.status.code(), served.status.code()), text, fs::read_to_string(&log).unwrap())
}

#[test]
fn a_server_that_is_ended_resets_its_clients() {
    let (codes, text, _) = ended_in_the_middle("server");
    assert_eq!(codes, (Some(1), Some(143)), "{text}");
    assert!(text.contains("reset by the peer"), "{text}");
}

#[test]
fn a_client_that_is_ended_resets_its_server() {
    let (codes, text, log) = ended_in_the_middle("client");
    assert_eq!(codes, (Some(143), Some(143)), "{text}");
    assert!(text.contains("ended by a signal"), "{text}");
    // Both connections are reset; which reset the server reads first is chance.
    let is_told = log.contains("connection was lost") || log.contains("connection failed");
    assert!(is_told && !log.contains("ABOR"), "{log}");
}

/// Ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);

/// A segment without data, as a peer of the UDP driver sends it.
fn segment(from: Ipv4Addr, seq: u32, ack: u32, flags: Flags) -> Vec<u8> {
    let header = Tcp {
        src_port: 1024,
        dst_port: 2121,
        seq: SeqNum(seq),
        ack: SeqNum(ack),
        flags,
        window: 65_535,
        urgent: 0,
        options: Options::default(),
    };
    let mut octets = vec![0; 20 + header.emit_len()];
    header.emit(&mut octets[20..], from, SERVER, protocol::TCP);
    let payload_len = (octets.len() - 20) as u16;
    let outer = Ipv4 {
        src: from,
        dst: SERVER,
        protocol: protocol::TCP,
        tos: 0,
        ttl: 64,
        id: 1,
        dont_fragment: true,
        is_fragment: false,
        payload_len,
    };
    outer.emit(&mut octets);
    octets
}

/// Everybody here opens a connection and says nothing more. Whoever is refused gets a reason, and then a reset, at once if many
/// are refused: none of them waits in the server until the transport loses patience.
#[test]
fn refused_connections_are_reset_and_not_kept() {
    const STRANGERS: u8 = 60;
    let folders = folders();
    let (socket, far) = (UdpSocket::bind("127.0.0.1:0").unwrap(), free_address());
    let ready = folders.root.path().join("ready");
    let server = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["fpd", "--driver", "udp", "--listen", "10.8.0.2", "--udp-local", &far.to_string()])
        .args(["--open", folders.server.to_str().unwrap(), "--ready-file", ready.to_str().unwrap()])
        .args(["--set", "MAXSESSIONS=4"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Ended(server);
    wait_until("the server serves", || ready.exists());
    socket.connect(far).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let stranger = |i: u8| Ipv4Addr::new(10, 9, 0, i);
    for i in 0..STRANGERS {
        socket.send(&segment(stranger(i), 1000, 0, Flags::SYN)).unwrap();
    }
    let (mut reset, mut buffer) = (std::collections::BTreeSet::new(), [0; 2048]);
    // Four have a session, and sixteen time for the reason: those are reset some seconds later.
    while reset.len() < usize::from(STRANGERS) - 4 {
        let n = socket.recv(&mut buffer).expect("a connection was kept");
        let (outer, payload) = Ipv4::parse(&buffer[..n]).unwrap();
        let (header, _) = Tcp::parse(payload, outer.src, outer.dst, Verify::Checksum(&[protocol::TCP])).unwrap();
        if header.flags.has(Flags::RST) {
            reset.insert(outer.dst);
        } else if header.flags.has(Flags::SYN) {
            socket.send(&segment(outer.dst, 1001, header.seq.0.wrapping_add(1), Flags::ACK)).unwrap();
        }
    }
}

/// Somebody opens a connection and acknowledges nothing: what changes are the server's timeouts.
#[test]
fn counters_that_can_no_longer_be_written_cost_a_server_nothing() {
    let folders = folders();
    let (socket, far) = (UdpSocket::bind("127.0.0.1:0").unwrap(), free_address());
    let (ready, place) = (folders.root.path().join("ready"), folders.root.path().join("counts"));
    fs::create_dir(&place).unwrap();
    let counts = place.join("far");
    let mut server = Ended(
        Command::new(env!("CARGO_BIN_EXE_scps"))
            .args(["fpd", "--driver", "udp", "--listen", "10.8.0.2", "--udp-local", &far.to_string()])
            .args(["--open", folders.server.to_str().unwrap(), "--ready-file", ready.to_str().unwrap()])
            .args(["--rto-min-ms", "50", "--rto-max-ms", "50", "--retransmissions-max", "1000"])
            .args(["--counters", counts.to_str().unwrap()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let said = BufReader::new(server.0.stderr.take().unwrap());
    wait_until("the server serves", || ready.exists() && counts.exists());
    fs::remove_dir_all(&place).unwrap();
    let receive = || {
        let mut octets = [0; 2048];
        let n = socket.recv(&mut octets).expect("a segment of the server");
        let (ip, payload) = Ipv4::parse(&octets[..n]).unwrap();
        Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[protocol::TCP])).unwrap().0
    };
    socket.connect(far).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let stranger = Ipv4Addr::new(10, 9, 0, 1);
    socket.send(&segment(stranger, 1000, 0, Flags::SYN)).unwrap();
    socket.send(&segment(stranger, 1001, receive().seq.0.wrapping_add(1), Flags::ACK)).unwrap();
    // The greeting, and three times again.
    for _ in 0..4 {
        receive();
    }
    fs::create_dir(&place).unwrap();
    wait_until("the counts go on", || counts.exists());
    assert!(Command::new("kill").arg(server.0.id().to_string()).status().unwrap().success());
    assert_eq!(server.0.wait().unwrap().code(), Some(143));
    let about: Vec<String> = said.lines().map_while(Result::ok).filter(|line| line.contains("counters")).collect();
    assert!(about.len() == 1 && about[0].starts_with("scps: counters are not written for now: "), "{about:?}");
}

/// The next client has the addresses and ports of one that was killed: its SYN meets a connection that the server believes in.
#[test]
fn a_client_that_was_killed_is_followed_on_the_same_ports() {
    let folders = folders();
    let data = noise(50_000, 9);
    fs::write(folders.client.join("f"), noise(4_000_000, 8)).unwrap();
    fs::write(folders.client.join("g"), &data).unwrap();
    let (near, far) = (free_address().to_string(), free_address().to_string());
    let (ready, log) = (folders.root.path().join("ready"), folders.root.path().join("log"));
    for compression in ["false", "true"] {
        for file in [&ready, &log] {
            let _ = fs::remove_file(file);
        }
        let scps = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
            command.args(args).args(["--driver", "udp", "--rate", "1 Mbit/s", "--compression", compression]);
            command.stdout(Stdio::piped()).stderr(Stdio::null());
            command
        };
        let _server = Ended(
            scps(&["fpd", "--listen", "10.8.0.2", "--udp-local", &far, "--open", folders.server.to_str().unwrap()])
                .args(["--ready-file", ready.to_str().unwrap(), "--log", log.to_str().unwrap()])
                .spawn()
                .unwrap(),
        );
        wait_until("the server serves", || ready.exists());
        let client = |commands: &str| {
            scps(&["fp", "--local", "10.8.0.1", "--udp-local", &near, "--udp-remote", &far, "--seed", "5"])
                .args(["--folder", folders.client.to_str().unwrap(), "-e", commands, "10.8.0.2"])
                .spawn()
                .unwrap()
        };
        let victim = Ended(client("put f"));
        wait_until("some is stored", || {
            fs::read_dir(&folders.server).unwrap().flatten().any(|e| e.metadata().unwrap().len() > 0)
        });
        drop(victim);
        let (well, _, text) = results(client("put g"));
        assert!(well, "compression {compression}: {text}");
        assert!(fs::read(folders.server.join("g")).unwrap() == data);
        let ports: Vec<String> = fs::read_to_string(&log)
            .unwrap()
            .lines()
            .filter_map(|line| line.split_once("connected from ").map(|(_, peer)| peer.to_owned()))
            .collect();
        assert!(ports.len() == 2 && ports[0] == ports[1], "{ports:?}");
        for entry in fs::read_dir(&folders.server).unwrap().flatten() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}
