//! Ill will: leaving the root, other people's ports, guessing, flooding, filling the disk. Each is answered, nothing is
//! lost, and the server serves the next.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use cap_std::fs::Dir;
use common::peer::Peer;
use common::{folders, open_user, quick, Folders, World, SERVER};
use scps_fp::command::FileType;
use scps_fp::config::Mib;
use scps_fp::net::{Net, Service};
use scps_fp::partial::{Base, Bounds, Partial};
use scps_fp::quota::Quota;
use scps_fp::ranges::{Range, ReadRequest};
use scps_fp::server::ServerConfig;
use scps_fp::update::{Update, CONTROL_NAME};
use scps_fp::users::User;
use scps_wire::Seed;
use std::fs;
use std::net::SocketAddr;

fn connect(mib: Mib) -> (Peer, Folders) {
    let folders = folders();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, mib);
    (Peer::connect(&world).0, folders)
}

fn serve_user(folders: &Folders, user: impl Fn(User) -> User) -> World {
    let world = World::new();
    let user = user(open_user(&folders.server));
    world.serve(SERVER, move || ServerConfig { mib: quick(), open_as: Some(user.clone()), ..ServerConfig::default() });
    world
}

fn serve_login(folders: &Folders) -> World {
    let users = common::users(&folders.server, &["ann"]);
    let world = World::new();
    world.serve(SERVER, move || ServerConfig { mib: quick(), users: users.clone(), ..ServerConfig::default() });
    world
}

#[test]
fn nobody_leaves_the_root() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.client.join("secret"), b"secret").unwrap();
    std::os::unix::fs::symlink(&folders.client, folders.server.join("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folders.server.join("passwd")).unwrap();
    assert_eq!(peer.code("CWD ../../.."), 250);
    assert!(peer.say("PWD").contains("\"/\""));
    for path in ["/etc/passwd", "../../../../etc/passwd", "passwd", "link/secret", "../client/secret"] {
        assert_eq!(peer.fetch(&format!("RETR {path}")).0.get(..3), Some("550"), "{path}");
        assert_eq!(peer.code(&format!("SIZE {path}")), 550, "{path}");
    }
    assert_eq!(peer.code("CWD link"), 550);
    for line in ["STOR link/new", "STOR ../client/new", "MKD link/new", "COPY passwd here", "RNFR link/secret"] {
        assert!(peer.say(line).starts_with("550 "), "{line}");
    }
    assert_eq!(fs::read_dir(&folders.client).unwrap().count(), 1);
    assert_eq!(peer.fetch("LIST link").0.get(..3), Some("550"));
}

#[test]
fn paths_in_control_files_are_confined_too() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.client.join("secret"), b"secret").unwrap();
    std::os::unix::fs::symlink(folders.client.join("secret"), folders.server.join("link")).unwrap();
    for source in ["../client/secret", "link", "/etc/passwd"] {
        let range = Range { low: 0, high: 5 };
        let request = ReadRequest { source: source.to_owned(), forced: false, ranges: vec![range] };
        peer.store(&format!("STOR {CONTROL_NAME}"), &request.emit());
        assert_eq!(peer.fetch(&format!("READ {CONTROL_NAME}")).0.get(..3), Some("550"), "{source}");
    }
    let update = Update { original: "link".into(), target: "../client/out".into(), checksum: 0, signals: Vec::new() };
    peer.store(&format!("STOR {CONTROL_NAME}"), &update.emit());
    assert_eq!(peer.code(&format!("UPDT {CONTROL_NAME}")), 550);
    assert_eq!(fs::read_dir(&folders.client).unwrap().count(), 1);
}

#[test]
fn special_files_are_no_files() {
    let (mut peer, folders) = connect(quick());
    fs::create_dir(folders.server.join("dir")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folders.server.join("fifo")).status().unwrap();
    assert!(made.success());
    for name in ["dir", "fifo"] {
        assert_eq!(peer.fetch(&format!("RETR {name}")).0.get(..3), Some("550"), "{name}");
        assert_eq!(peer.begin_store(&format!("STOR {name}")).0.get(..3), Some("550"), "{name}");
        assert_eq!(peer.code(&format!("UPDT {name}")), 550, "{name}");
    }
}

#[test]
fn data_connections_lead_to_the_client_only() {
    let (mut peer, _folders) = connect(quick());
    for line in ["PORT 10,0,0,9,100,1", "PORT 127,0,0,1,100,1", "PORT 10,0,0,1,0,22", "EPRT |1|10.0.0.9|5000|"] {
        assert_eq!(peer.code(line), 504, "{line}");
    }
    let mut mib = quick();
    mib.set("ALLOWPROXY", "10.0.0.9").unwrap();
    let (mut peer, _folders) = connect(mib);
    assert_eq!(peer.code("PORT 10,0,0,9,100,1"), 200);
    assert_eq!(peer.code("PORT 10,0,0,8,100,1"), 504);
}

#[test]
fn a_stranger_does_not_get_a_passive_connection() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"for the client").unwrap();
    let address: SocketAddr = scps_fp::address::find_port(&peer.say("PASV")).unwrap();
    let mut thief = peer.world.net("10.0.0.66");
    let stolen = thief.connect("10.0.0.66".parse().unwrap(), address, Service::Reliable).unwrap();
    assert_eq!(peer.say("RETR f"), "");
    assert!(thief.is_open(stolen).is_err() || matches!(thief.recv(stolen, &mut [0; 9]), Ok(scps_fp::net::Recv::End)));
    let own = peer.net.connect(common::CLIENT.parse().unwrap(), address, Service::Reliable).unwrap();
    assert!(peer.hear().contains("226 "));
    assert_eq!(peer.take(own), b"for the client");
}

#[test]
fn names_of_users_are_not_told_and_guessing_gets_slow() {
    let folders = folders();
    let world = serve_login(&folders);
    let mut said = Vec::new();
    for name in ["ann", "nobody"] {
        let (mut peer, _) = Peer::connect(&world);
        let mut replies = peer.say(&format!("USER {name}"));
        replies += &peer.pass(60);
        replies += &peer.say("PASS wrong");
        said.push(replies);
        world.kill(common::CLIENT);
        world.pass(scps_wire::Duration::from_secs(600));
    }
    assert_eq!(said[0], said[1]);
    let (mut peer, _) = Peer::connect(&world);
    assert_eq!((peer.code("USER ann"), peer.code("PASS a")), (331, 530));
    assert_eq!(peer.say("USER ann"), "", "the next guess waits");
    assert_eq!(peer.pass(1).get(..3), Some("331"));
    peer.pass(2);
    assert_eq!(peer.code("PASS b"), 530);
    peer.pass(3);
    let mut last = peer.say("USER ann");
    last += &peer.pass(5);
    last += &peer.say("PASS c");
    assert!(last.contains("421 ") && peer.is_closed, "{last}");
    let (mut next, _) = Peer::connect(&world);
    next.say("USER ann");
    assert_eq!(next.say("PASS nna"), "", "a new session from there waits too");
    assert_eq!(next.pass(60).get(..3), Some("230"));
    assert!(!world.log().contains("nna"));
}

#[test]
fn a_session_that_does_not_log_in_ends() {
    let folders = folders();
    let world = serve_login(&folders);
    let (mut peer, _) = Peer::connect(&world);
    for _ in 0..5 {
        peer.pass(11);
        peer.say("NOOP");
    }
    assert!(peer.pass(6).contains("421 "));
}

#[test]
fn too_many_sessions_are_told_so() {
    let mut mib = quick();
    mib.set("MAXSESSIONS", "3").unwrap();
    let folders = folders();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, mib);
    let mut peers: Vec<Peer> = (0..3).map(|_| Peer::connect(&world).0).collect();
    assert!(Peer::connect(&world).1.starts_with("421 "));
    assert_eq!(peers[0].code("QUIT"), 221);
    assert!(Peer::connect(&world).1.starts_with("220 "));
    let mut mib = quick();
    mib.set("MAXPERADDRESS", "1").unwrap();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, mib);
    let (_one, _) = Peer::connect(&world);
    assert!(Peer::connect(&world).1.starts_with("421 "));
    assert!(Peer::connect_from(&world, "10.0.0.77").1.starts_with("220 "));
}

#[test]
fn a_read_only_user_changes_nothing() {
    let folders = folders();
    fs::write(folders.server.join("f"), b"x").unwrap();
    let world = serve_user(&folders, |u| User { read_only: true, ..u });
    let (mut peer, _) = Peer::connect(&world);
    for line in ["STOR f", "STOU", "APPE f", "DELE f", "MKD d", "RMD d", "RNFR f", "COPY f g", "UPDT f"] {
        assert_eq!(peer.code(line), 550, "{line}");
    }
    assert_eq!(peer.fetch("RETR f").1, b"x");
}

#[test]
fn the_quota_and_the_largest_file_are_kept() {
    let folders = folders();
    fs::write(folders.server.join("old"), b"precious").unwrap();
    let world = serve_user(&folders, |u| User { quota: Some(1000), ..u });
    let (mut peer, _) = Peer::connect(&world);
    assert!(peer.store("STOR old", &[1; 5000]).contains("552 "));
    assert_eq!(fs::read(folders.server.join("old")).unwrap(), b"precious");
    peer.say("ALLO 5000");
    assert_eq!(peer.begin_store("STOR new").0.get(..3), Some("552"));
    assert!(peer.store("STOR new", &[1; 500]).contains("226 "));
    assert_eq!(peer.code("COPY new newer"), 552);
    let mut mib = quick();
    mib.set("MAXFILESIZE", "100").unwrap();
    let (mut peer, folders) = connect(mib);
    assert!(peer.store("STOR f", &[1; 101]).contains("552 "));
    assert!(peer.store("STOR f", &[1; 100]).contains("226 "));
    assert_eq!(fs::read_dir(&folders.server).unwrap().count(), 1);
}

/// Needs a file system of its own that can be full: a small tmpfs, which only root may mount.
#[test]
fn a_full_disk_is_452_and_the_original_stays() {
    let folders = folders();
    let mount = |args: &[&str]| {
        std::process::Command::new(args[0]).args(&args[1..]).arg(&folders.server).status().is_ok_and(|s| s.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
        eprintln!("skipped: mounting a tmpfs needs root");
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        fs::write(folders.server.join("f"), b"precious").unwrap();
        // What did not fit is not counted.
        let folder = Dir::open_ambient_dir(&folders.server, cap_std::ambient_authority()).unwrap();
        let quota = Quota::of(300_000);
        let bounds = Bounds { quota: Some(quota.clone()), size: None };
        let mut partial = Partial::begin_prepared(&folder, "f", Base::Fresh, FileType::Image, bounds).unwrap();
        assert!(partial.write(&vec![1; 200_000]).is_err());
        assert_eq!(quota.room(), 300_000);
        partial.undo(&mut World::new().net(SERVER)).unwrap();
        let world = serve_user(&folders, |u| User { quota: Some(300_000), ..u });
        let (mut peer, _) = Peer::connect(&world);
        let said = peer.store("STOR f", &vec![1; 200_000]);
        assert!(said.contains("452 "), "{said}");
        assert_eq!(fs::read(folders.server.join("f")).unwrap(), b"precious");
        assert_eq!(fs::read_dir(&folders.server).unwrap().count(), 1);
        assert!(peer.store("STOR g", &[1; 1000]).contains("226 "));
    });
    assert!(mount(&["umount"]));
    outcome.unwrap();
}

#[test]
fn a_client_that_reads_no_replies_is_not_served_more() {
    let (mut peer, _folders) = connect(quick());
    for _ in 0..2000 {
        peer.send(b"STAT\r\n");
    }
    let first = peer.hear();
    assert!(first.len() < 300_000, "{} octets of replies were kept for a client that reads none", first.len());
    let mut replies = first;
    loop {
        let more = peer.hear();
        if more.is_empty() {
            break;
        }
        replies += &more;
    }
    assert_eq!(replies.matches("211 End").count(), 2000);
}

#[test]
fn random_octets_do_no_harm() {
    let folders = folders();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, quick());
    let mut rng = Seed::from_u64(7).stream("rubbish");
    for _ in 0..50 {
        let (mut peer, _) = Peer::connect(&world);
        for _ in 0..40 {
            let mut octets = vec![0; 1 + rng.below(3000) as usize];
            rng.fill(&mut octets);
            peer.send(&octets);
            peer.hear();
        }
        world.kill(common::CLIENT);
        world.settle();
    }
    let (mut peer, _) = Peer::connect(&world);
    assert_eq!(peer.code("NOOP"), 200);
}

#[test]
fn a_line_without_end_ends_the_session() {
    let (mut peer, _folders) = connect(quick());
    for _ in 0..17 {
        peer.send(&vec![b'x'; 65_536]);
    }
    assert!(peer.hear().contains("421 "));
    assert!(peer.is_closed);
}

#[test]
fn only_an_administrator_ends_the_server() {
    let folders = folders();
    let world = World::new();
    let root = folders.server.clone();
    world.serve(SERVER, move || ServerConfig {
        mib: quick(),
        open_as: Some(open_user(&root)),
        allow_terminate: true,
        ..ServerConfig::default()
    });
    let (mut peer, _) = Peer::connect(&world);
    assert_eq!(peer.code("SITE TERMINATE"), 550);
    assert_eq!(peer.code("QUIT"), 221);
}
