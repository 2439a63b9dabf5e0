//! Many sessions, one of which wants everything: the others are served meanwhile, and nobody gets more than is his.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::peer::Peer;
use common::{folders, open_user, quick, Folders, World, OTHER_SERVER, SERVER};
use scps_fp::crc::crc_text;
use scps_fp::net::Net;
use scps_fp::server::ServerConfig;
use scps_fp::users::User;
use scps_wire::Duration;
use std::fs;

fn serve(folders: &Folders) -> World {
    let world = World::new();
    world.serve_open(SERVER, &folders.server, quick());
    world
}

/// What a session hears that asks while another is busy: the busy one must not be done before.
fn asked_meanwhile(busy: &mut Peer, line: &str, other: &mut Peer) {
    busy.send(format!("{line}\r\n").as_bytes());
    other.send(b"NOOP\r\n");
    assert!(other.hear().starts_with("200 "), "{line}");
    assert_eq!(busy.hear(), "", "{line}: it was done in one step, so this shows nothing");
}

#[test]
fn a_checksum_a_copy_and_a_size_of_a_large_file_keep_nobody_waiting() {
    let folders = folders();
    fs::File::create(folders.server.join("big")).unwrap().set_len(100 << 20).unwrap();
    let world = serve(&folders);
    let (mut other, _) = Peer::connect(&world);
    for line in ["SITE CRC big", "COPY big copy", "TYPE A\r\nSIZE big"] {
        let (mut busy, _) = Peer::connect(&world);
        busy.say("MODE S");
        busy.send(format!("{line}\r\n").as_bytes());
        other.send(b"NOOP\r\n");
        assert!(other.hear().starts_with("200 "), "{line}");
        let early = busy.hear();
        assert!(!early.contains("250 ") && !early.contains("213 "), "{line}: {early}: done in one step");
        let said = (0..1000).map(|_| busy.hear()).find(|said| said.contains("250 ") || said.contains("213 "));
        let said = said.unwrap_or_else(|| panic!("{line}: never done"));
        assert!(!line.contains("CRC") || said.contains(&crc_text(u32::MAX)), "{said}");
        busy.say("QUIT");
    }
    assert_eq!(fs::metadata(folders.server.join("copy")).unwrap().len(), 100 << 20);
}

#[test]
fn a_copy_of_a_file_that_becomes_shorter_is_none() {
    let folders = folders();
    let big = fs::File::create(folders.server.join("big")).unwrap();
    big.set_len(100 << 20).unwrap();
    let world = serve(&folders);
    let (mut busy, _) = Peer::connect(&world);
    let (mut other, _) = Peer::connect(&world);
    asked_meanwhile(&mut busy, "COPY big copy", &mut other);
    big.set_len(1000).unwrap();
    let said = (0..1000).map(|_| busy.hear()).find(|said| !said.is_empty()).unwrap();
    assert!(said.starts_with("451 "), "{said}");
    let left: Vec<_> = fs::read_dir(&folders.server).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["big"]);
}

#[test]
fn an_update_of_a_large_file_keeps_nobody_waiting() {
    let folders = folders();
    fs::File::create(folders.server.join("big")).unwrap().set_len(20 << 20).unwrap();
    fs::write(folders.server.join("c"), b"big\nnew\n4294967295\ni\0\0\0\0\0\x03abc\xFF\x02").unwrap();
    let world = serve(&folders);
    let (mut busy, _) = Peer::connect(&world);
    let (mut other, _) = Peer::connect(&world);
    asked_meanwhile(&mut busy, "UPDT c", &mut other);
    // It has been read, and whether it is still there says nothing of the new file.
    fs::remove_file(folders.server.join("c")).unwrap();
    let said = (0..1000).map(|_| busy.hear()).find(|said| !said.is_empty()).unwrap();
    assert!(said.starts_with("250 UPDT CRC:"), "{said}");
    assert_eq!(fs::metadata(folders.server.join("new")).unwrap().len(), (20 << 20) + 3);
}

#[test]
fn listings_asked_for_in_a_row_are_made_as_they_are_read() {
    let folders = folders();
    for i in 0..2000 {
        fs::write(folders.server.join(format!("file-with-a-name-of-some-length-{i:06}")), b"").unwrap();
    }
    let world = serve(&folders);
    let (mut greedy, _) = Peer::connect(&world);
    let (mut other, _) = Peer::connect(&world);
    greedy.send(&b"STAT /\n".repeat(100));
    other.send(b"NOOP\r\n");
    assert!(other.hear().starts_with("200 "));
    let unread = greedy.hear().len();
    assert!(unread < 200_000, "{unread} octets were made for a client that reads nothing");
    let mut ends = 0;
    for _ in 0..20_000 {
        ends += greedy.hear().matches("211 End.").count();
        if ends == 100 {
            return;
        }
    }
    panic!("{ends} of 100 listings");
}

/// A folder whose listings fill every buffer, and somebody who asks for some and reads none.
fn ask_and_read_nothing(world: &World, folders: &Folders) -> Peer {
    for i in 0..2000 {
        fs::write(folders.server.join(format!("file-with-a-name-of-some-length-{i:06}")), b"").unwrap();
    }
    let (mut peer, _) = Peer::connect(world);
    peer.send(&b"STAT /\n".repeat(20));
    world.settle();
    peer
}

#[test]
fn who_reads_no_listing_is_idle() {
    let folders = folders();
    let mut mib = quick();
    mib.set("IDLE", "100").unwrap();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, mib);
    let mut peer = ask_and_read_nothing(&world, &folders);
    // Whoever takes some now and then is served, however slowly.
    for _ in 0..3 {
        assert!(!peer.pass(90).is_empty() && !peer.is_closed);
    }
    world.pass(Duration::from_secs(99));
    assert_eq!(world.session_count(SERVER), 1);
    world.pass(Duration::from_secs(12));
    assert_eq!(world.session_count(SERVER), 0);
    peer.hear();
    assert!(peer.is_closed);
}

#[test]
fn who_reads_no_listing_makes_room() {
    let folders = folders();
    let mut mib = quick();
    mib.set("MAXSESSIONS", "2").unwrap();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, mib);
    let _greedy = [ask_and_read_nothing(&world, &folders), ask_and_read_nothing(&world, &folders)];
    world.pass(Duration::from_secs(1));
    let greeting = Peer::connect_from(&world, OTHER_SERVER).1;
    assert!(greeting.starts_with("220 "), "{greeting}");
}

#[test]
fn a_quota_is_kept_by_many_transfers_at_once() {
    let folders = folders();
    let world = World::new();
    let user = User { quota: Some(100_000), ..open_user(&folders.server) };
    world.serve(SERVER, move || ServerConfig { mib: quick(), open_as: Some(user.clone()), ..ServerConfig::default() });
    let mut all: Vec<_> = (0..12)
        .map(|i| {
            let (mut peer, _) = Peer::connect(&world);
            let data = peer.begin_store(&format!("STOR f{i}")).1.unwrap();
            (peer, data)
        })
        .collect();
    for (peer, data) in &mut all {
        peer.send_data(*data, &vec![1; 90_000]);
        peer.net.release(*data);
    }
    let said: Vec<String> = all.iter_mut().map(|(peer, _)| peer.hear()).collect();
    assert_eq!(said.iter().filter(|s| s.contains("226 ")).count(), 1, "{said:?}");
    assert_eq!(said.iter().filter(|s| s.contains("552 ")).count(), 11, "{said:?}");
    let stored: u64 = fs::read_dir(&folders.server).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(stored, 90_000);
}

#[test]
fn guesses_keep_no_honest_user_out() {
    let folders = folders();
    let users = common::users(&folders.server, &["ann"]);
    let world = World::new();
    world.serve(SERVER, move || ServerConfig { mib: quick(), users: users.clone(), ..ServerConfig::default() });
    for _ in 0..10 {
        let (mut guesser, _) = Peer::connect(&world);
        guesser.send(b"USER ann\r\nPASS x\r\n");
        guesser.pass(21);
        guesser.say("QUIT");
    }
    let (mut honest, _) = Peer::connect(&world);
    let mut said = honest.say("USER ann");
    said += &honest.say("PASS nna");
    assert!(!said.contains("230 "), "guesses from the address cost nothing: {said}");
    said += &honest.pass(21);
    assert!(said.contains("230 "), "{said}");
}

#[test]
fn one_address_does_not_fill_the_server() {
    let mut mib = quick();
    mib.set("MAXSESSIONS", "4").unwrap();
    let folders = folders();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, mib);
    let mut greedy: Vec<Peer> = (0..4).map(|_| Peer::connect(&world).0).collect();
    greedy[0].pass(1);
    for peer in &mut greedy[1..] {
        peer.say("NOOP");
    }
    let (mut other, greeting) = Peer::connect_from(&world, OTHER_SERVER);
    assert!(greeting.starts_with("220 "), "{greeting}");
    assert!(greedy[0].hear().starts_with("421 "), "the one that was quiet for longest makes room");
    let _more: Vec<Peer> = ["10.0.0.77", "10.0.0.78"]
        .map(|host| {
            let (peer, greeting) = Peer::connect_from(&world, host);
            assert!(greeting.starts_with("220 "), "{host}: {greeting}");
            peer
        })
        .into();
    assert!(Peer::connect_from(&world, "10.0.0.79").1.starts_with("421 "), "shares are equal now");
    assert_eq!(other.code("NOOP"), 200);
    // An address's own sessions make room once they have been quiet for long.
    other.pass(61);
    assert!(Peer::connect_from(&world, OTHER_SERVER).1.starts_with("220 "));
    assert!(other.hear().starts_with("421 "));
}
