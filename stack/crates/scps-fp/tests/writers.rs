//! Files that are being written: one writer each, and names of parts that are nobody's.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::peer::Peer;
use common::{connect, quick, serve, text};
use scps_fp::crc::{crc, crc_text};
use scps_fp::net::Net;
use std::fs;

#[test]
fn two_writers_need_two_files() {
    let (world, folders) = serve(quick());
    let (mut first, _) = Peer::connect(&world);
    let (mut second, _) = Peer::connect(&world);
    let (_, one) = first.begin_store("STOR a");
    let (said, two) = second.begin_store("STOR b");
    assert!(said.starts_with("150 "));
    assert_eq!(second.code("NOOP"), 200);
    first.send_data(one.unwrap(), b"first");
    second.send_data(two.unwrap(), b"second");
    second.net.release(two.unwrap());
    assert!(second.hear().contains("226 "));
    assert!(second.begin_store("STOR a").0.starts_with("450 "));
    assert!(second.say("SIZE a").starts_with("450 "));
    first.net.release(one.unwrap());
    assert!(first.hear().contains("226 "));
    assert_eq!(fs::read(folders.server.join("a")).unwrap(), b"first");
    assert_eq!(fs::read(folders.server.join("b")).unwrap(), b"second");
}

#[test]
fn a_writer_that_stands_still_gives_way() {
    let (world, _folders) = serve(quick());
    let (mut dead, _) = Peer::connect(&world);
    dead.say("ARST");
    let (_, data) = dead.begin_store("STOR f");
    dead.send_data(data.unwrap(), &[1; 500]);
    let (mut alive, _) = Peer::connect(&world);
    assert_eq!(alive.code("SIZE f"), 450);
    alive.pass(3);
    assert_eq!(alive.say("SIZE f"), text(213, "f SIZE 500"));
    alive.say("REST 500");
    assert!(alive.store("STOR f", &[2; 10]).contains("226 "));
    assert_eq!(alive.say("SIZE f"), text(213, "f SIZE 510"));
    assert!(dead.hear().contains("426 "));
}

#[test]
fn a_client_that_dies_in_mid_store_damages_nothing() {
    for restarts in [false, true] {
        let (world, folders) = serve(quick());
        fs::write(folders.server.join("f"), b"before").unwrap();
        let (mut peer, _) = Peer::connect(&world);
        if restarts {
            peer.say("ARST");
        }
        let (_, data) = peer.begin_store("STOR f");
        peer.send_data(data.unwrap(), &[1; 500]);
        world.kill(common::CLIENT);
        world.settle();
        let expected = if restarts { vec![1; 500] } else { b"before".to_vec() };
        assert_eq!(fs::read(folders.server.join("f")).unwrap(), expected);
        assert_eq!(folders.server.join(".fppart~f").exists(), !restarts);
    }
}

#[test]
fn a_renamed_folder_does_not_give_a_file_two_writers() {
    let (world, folders) = serve(quick());
    fs::create_dir(folders.server.join("d")).unwrap();
    let (mut first, _) = Peer::connect(&world);
    let (mut second, _) = Peer::connect(&world);
    let one = first.begin_store("STOR d/a").1.unwrap();
    first.send_data(one, b"AAAA");
    assert_eq!((second.code("RNFR d"), second.code("RNTO e")), (350, 250));
    assert!(second.begin_store("STOR e/a").0.starts_with("450 "));
    first.send_data(one, b"AAAA");
    first.net.release(one);
    assert!(first.hear().contains(&crc_text(crc(b"AAAAAAAA"))));
    assert_eq!(fs::read(folders.server.join("e/a")).unwrap(), b"AAAAAAAA");
    assert!(second.store("STOR e/a", b"B").contains("226 "));
}

#[test]
fn a_link_to_a_folder_does_not_give_a_file_two_writers() {
    let (world, folders) = serve(quick());
    fs::create_dir(folders.server.join("d")).unwrap();
    std::os::unix::fs::symlink("d", folders.server.join("dd")).unwrap();
    let (mut first, _) = Peer::connect(&world);
    let (mut second, _) = Peer::connect(&world);
    let one = first.begin_store("STOR d/a").1.unwrap();
    first.send_data(one, b"AAAA");
    for line in ["STOR dd/a", "APPE dd/a"] {
        assert!(second.begin_store(line).0.starts_with("450 "), "{line}");
    }
    for line in ["SIZE dd/a", "DELE dd/a", "DELE dd/.fppart~a", "RNFR dd/a", "SITE CRC dd/a"] {
        assert_eq!(second.code(line), 450, "{line}");
    }
    first.net.release(one);
    assert!(first.hear().contains(&crc_text(crc(b"AAAA"))));
    assert_eq!(fs::read(folders.server.join("d/a")).unwrap(), b"AAAA");
}

#[test]
fn two_servers_of_one_folder_do_not_write_one_file() {
    let (world, folders) = serve(quick());
    world.serve_open(common::OTHER_SERVER, &folders.server, quick());
    let (mut first, _) = Peer::connect(&world);
    let (mut second, _) = Peer::connect_to(&world, common::CLIENT, common::OTHER_SERVER);
    let one = first.begin_store("STOR t").1.unwrap();
    first.send_data(one, b"AAAA");
    assert!(second.begin_store("STOR t").0.starts_with("450 "));
    assert_eq!(second.code("DELE t"), 450);
    first.net.release(one);
    assert!(first.hear().contains("226 "));
    assert_eq!(fs::read(folders.server.join("t")).unwrap(), b"AAAA");
    assert!(second.store("STOR t", b"BB").contains(&crc_text(crc(b"BB"))));
    assert_eq!(fs::read(folders.server.join("t")).unwrap(), b"BB");
}

#[test]
fn a_part_that_somebody_else_replaced_is_not_stored() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("a"), b"before").unwrap();
    let data = peer.begin_store("STOR a").1.unwrap();
    peer.send_data(data, b"AAAA");
    let part = folders.server.join(".fppart~a");
    fs::rename(&part, folders.server.join("away")).unwrap();
    fs::write(&part, b"somebody else's").unwrap();
    peer.net.release(data);
    assert!(peer.hear().starts_with("451 "));
    assert_eq!(fs::read(folders.server.join("a")).unwrap(), b"before");
    assert_eq!(fs::read(part).unwrap(), b"somebody else's");
}

#[test]
fn users_files_are_not_taken_for_the_servers_own() {
    let (world, folders) = serve(quick());
    for name in ["a.fppart", ".n.fpnew", "f"] {
        fs::write(folders.server.join(name), name).unwrap();
    }
    let (mut peer, _) = Peer::connect(&world);
    let (mut other, _) = Peer::connect(&world);
    let one = peer.begin_store("STOR a.fppart").1.unwrap();
    let two = other.begin_store("STOR a").1.unwrap();
    peer.send_data(one, b"BBBB");
    other.send_data(two, b"AAAA");
    peer.net.release(one);
    other.net.release(two);
    assert!(peer.hear().contains(&crc_text(crc(b"BBBB"))));
    assert!(other.hear().contains(&crc_text(crc(b"AAAA"))));
    assert_eq!(fs::read(folders.server.join("a.fppart")).unwrap(), b"BBBB");
    assert_eq!(fs::read(folders.server.join("a")).unwrap(), b"AAAA");
    assert_eq!(peer.code("COPY f n"), 250);
    assert_eq!(fs::read(folders.server.join(".n.fpnew")).unwrap(), b".n.fpnew");
}

#[test]
fn names_of_parts_are_seen_by_nobody_and_nobodys() {
    let (mut peer, folders) = connect(quick());
    fs::create_dir(folders.server.join("d")).unwrap();
    let data = peer.begin_store("STOR d/f").1.unwrap();
    peer.send_data(data, b"12345");
    peer.net.abort(data);
    assert!(peer.hear().starts_with("426 "));
    assert_eq!(peer.fetch("NLST d").1, b"");
    assert!(!peer.say("STAT d").contains("fppart"));
    // What a restart needs.
    assert_eq!(peer.say("SIZE d/.fppart~f"), text(213, "d/.fppart~f SIZE 5"));
    assert!(peer.say("SITE CRC d/.fppart~f").starts_with("250 "));
    for line in ["RETR", "STOR", "APPE", "MKD", "RNFR", "CWD", "RMD", "COPY d/.fppart~f", "STAT", "NLST"] {
        for name in ["d/.fppart~f", ".fpnew~x", ".fppart~x/y"] {
            assert!(
                matches!(peer.begin_store(&format!("{line} {name}")).0.get(..3), Some("553" | "550")),
                "{line} {name}"
            );
        }
    }
    assert_eq!((peer.code("RNFR d"), peer.code("RNTO .fppart~d")), (350, 553));
    assert_eq!((peer.code("DELE d/.fppart~f"), peer.code("SIZE d/.fppart~f")), (250, 550));
    let data = peer.begin_store("STOR d/f").1.unwrap();
    peer.net.abort(data);
    assert!(peer.hear().starts_with("426 "));
    assert_eq!(peer.code("RMD d"), 250, "nobody sees why it could not be removed");
}

#[test]
fn a_copy_is_neither_made_over_a_file_being_stored_nor_replaced_by_it() {
    let (world, folders) = serve(quick());
    fs::write(folders.server.join("f"), b"f").unwrap();
    let (mut writer, _) = Peer::connect(&world);
    let (mut copier, _) = Peer::connect(&world);
    let data = writer.begin_store("STOR n").1.unwrap();
    writer.send_data(data, b"AAAA");
    assert_eq!(copier.code("COPY f n"), 450);
    writer.net.release(data);
    assert!(writer.hear().contains("226 "));
    assert_eq!(fs::read(folders.server.join("n")).unwrap(), b"AAAA");
    assert_eq!(copier.code("COPY f n"), 550);
}
