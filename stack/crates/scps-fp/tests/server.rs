//! The server's side of the conversation, line by line: grammar, replies, parameters, transfers, timers.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::peer::Peer;
use common::{connect, folders, noise, quick, serve, text, World, SERVER};
use scps_fp::config::Mib;
use scps_fp::crc::{crc, crc_text};
use scps_fp::net::Net;
use scps_fp::server::ServerConfig;
use std::fs;

#[test]
fn the_port_is_2121_unless_set_and_the_greeting_has_text() {
    assert_eq!(Mib::default().control_port, common::CONTROL_PORT);
    let (world, _folders) = serve(Mib::historic());
    let before = world.now();
    let (_, greeting) = Peer::connect(&world);
    assert!(greeting.starts_with("220 scpslab SCPS-FP server"), "{greeting}");
    assert!(world.now().since(before).as_secs() < 1);
}

#[test]
fn lines_end_in_lf_or_cr_lf_and_verbs_ignore_case() {
    let (mut peer, _folders) = connect(quick());
    peer.send(b"NOOP\nnoop\r\nNoOp\n");
    assert_eq!(peer.hear(), text(200, "NOOP").repeat(3));
}

#[test]
fn a_long_line_is_refused_once_and_the_next_is_understood() {
    let (mut peer, _folders) = connect(quick());
    peer.send(&vec![b'x'; 10_000]);
    assert!(peer.say("").starts_with("500 "));
    assert_eq!(peer.say("NOOP"), text(200, "NOOP"));
}

#[test]
fn unknown_verbs_and_wrong_arguments_have_their_codes() {
    let (mut peer, _folders) = connect(quick());
    for (line, code) in [("FROB", 500), ("RETR", 501), ("NOOP x", 501), ("COPY a", 501), ("REIN", 502), ("MODE B", 504)]
    {
        assert_eq!(peer.code(line), code, "{line}");
    }
}

#[test]
fn names_that_are_not_utf_8_are_refused_and_not_taken_for_one() {
    let (mut peer, folders) = connect(quick());
    assert!(peer.store("STOR caf\u{e9}", b"1").contains("226 "));
    for line in
        [&b"STOR caf\xE9\r\n"[..], b"STOR caf\xE8\r\n", b"COPY caf\xC3\xA9 caf\xE9\r\n", b"SITE CRC caf\xE9\r\n"]
    {
        peer.send(line);
        assert!(peer.hear().starts_with("501 "), "{line:?}");
    }
    assert_eq!(fs::read_dir(&folders.server).unwrap().count(), 1);
}

#[test]
fn more_than_twenty_unknown_commands_end_the_session() {
    let (mut peer, _folders) = connect(quick());
    for _ in 0..20 {
        assert_eq!(peer.code("FROB"), 500);
    }
    assert!(peer.say("FROB").contains("421 "));
    assert!(peer.is_closed);
}

#[test]
fn an_idle_session_is_told_and_closed() {
    let (mut peer, _folders) = connect(quick());
    assert_eq!(peer.code("IDLE 0"), 501);
    assert_eq!(peer.code("IDLE 5"), 200);
    assert_eq!(peer.pass(4), "");
    assert!(peer.pass(2).starts_with("421 "));
    assert!(peer.is_closed);
    let (mut peer, _folders) = connect(quick());
    assert_eq!(peer.pass(899), "");
    assert!(peer.pass(2).starts_with("421 "));
}

#[test]
fn suppression_takes_text_away_but_not_data() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"12345").unwrap();
    assert!(peer.say("SUPP").len() > 6);
    assert_eq!(peer.say("NOOP"), "200 \r\n");
    assert_eq!(peer.say("SIZE f"), text(213, "f SIZE 5"));
    assert!(peer.say("PWD").contains("\"/\""));
    assert!(peer.say("PASV").contains("Entering Passive Mode (10,0,0,2,"));
    assert!(peer.say("SITE CRC f").contains("CRC:"));
    let (said, data) = peer.begin_store("STOR new");
    assert_eq!(said, "150 \r\n");
    peer.send_data(data.unwrap(), b"abc");
    assert_eq!(peer.say("INTR"), text(256, "Transfer interrupted at 3"));
    peer.say("NSUP");
    assert_eq!(peer.say("NOOP"), text(200, "NOOP"));
}

#[test]
fn the_server_connects_before_it_says_150() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"x").unwrap();
    let listener = peer.port();
    let said = peer.say("RETR f");
    assert!(said.starts_with("150 "), "{said}");
    assert!(peer.net.accept(listener).unwrap().is_some());
}

#[test]
fn a_refused_or_missing_data_address_is_425() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"x").unwrap();
    assert_eq!(peer.code("RETR f"), 425);
    assert_eq!(peer.code("PORT 10,0,0,1,100,1"), 200);
    assert_eq!(peer.code("RETR f"), 425);
    assert_eq!(peer.code("STOR g"), 425);
    assert!(!folders.server.join("g").exists() && !folders.server.join(".fppart~g").exists());
    assert_eq!(peer.code("NOOP"), 200);
}

#[test]
fn a_malformed_port_is_501() {
    let (mut peer, _folders) = connect(quick());
    for line in ["PORT 1,2,3", "PORT 10,0,0,256,1,1", "PORT 10,0,0,1,1,256", "PORT", "PORT a,b,c,d,e,f", "EPRT |1|x|1|"]
    {
        assert_eq!(peer.code(line), 501, "{line}");
    }
}

#[test]
fn a_passive_socket_serves_one_transfer() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"passive").unwrap();
    let said = peer.say("PASV");
    let address = scps_fp::address::find_port(&said).unwrap();
    let id = peer.net.connect(common::CLIENT.parse().unwrap(), address, scps_fp::net::Service::Reliable).unwrap();
    let said = peer.say("RETR f");
    assert!(said.contains("226 "), "{said}");
    assert_eq!(peer.take(id), b"passive");
    assert_eq!(peer.code("RETR f"), 425);
    assert!(peer.say("EPSV").contains("(|||"));
}

#[test]
fn the_checksum_covers_what_went_over_the_connection() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("empty"), b"").unwrap();
    fs::write(folders.server.join("digits"), b"123456789").unwrap();
    let (said, data) = peer.fetch("RETR empty");
    assert!(said.contains("150 ") && said.contains("226 Transfer complete. CRC:FFFFFFFF"), "{said}");
    assert_eq!(data, b"");
    assert!(peer.fetch("RETR digits").0.contains("CRC:D202D277"));
    assert!(peer.store("STOR copy", b"123456789").contains("CRC:D202D277"));
    assert!(peer.say("SITE CRC copy").starts_with("250 CRC:D202D277"));
    assert_eq!(peer.code("SITE CRC none"), 550);
    peer.say("REST 4");
    let (said, data) = peer.fetch("RETR digits");
    assert_eq!(data, b"56789");
    assert!(said.contains(&crc_text(crc(b"56789"))), "{said}");
    peer.say("SITE CRCOFF");
    assert!(!peer.fetch("RETR digits").0.contains("CRC:"));
}

#[test]
fn all_octet_values_pass_both_ways() {
    let (mut peer, _folders) = connect(quick());
    let all: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(400);
    assert!(peer.store("STOR all", &all).contains("226 "));
    assert_eq!(peer.fetch("RETR all").1, all);
}

#[test]
fn type_a_is_lines_on_the_wire_and_size_counts_them_there() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("t"), b"one\ntwo\r\nthree").unwrap();
    peer.say("TYPE A");
    let (_, data) = peer.fetch("RETR t");
    assert_eq!(data, b"one\r\ntwo\r\nthree");
    assert_eq!(peer.say("SIZE t"), text(213, "t SIZE 15"));
    peer.store("STOR u", b"a\r\nb\rc\r\n");
    assert_eq!(fs::read(folders.server.join("u")).unwrap(), b"a\nb\rc\n");
    fs::write(folders.server.join("t8"), b"ab\ncde\n\n").unwrap();
    assert_eq!(peer.say("SIZE t8"), text(213, "t8 SIZE 11"));
}

#[test]
fn a_long_path_does_not_push_the_size_out_of_its_reply() {
    let (mut peer, folders) = connect(quick());
    let folder = vec!["d".repeat(200); 6].join("/");
    fs::create_dir_all(folders.server.join(&folder)).unwrap();
    fs::write(folders.server.join(&folder).join("f"), b"12345").unwrap();
    assert!(peer.say(&format!("SIZE {folder}/f")).trim_end().ends_with("SIZE 5"));
}

#[test]
fn a_marker_beyond_32_bits_of_sign_is_a_position() {
    let (mut peer, folders) = connect(quick());
    let file = fs::File::create(folders.server.join("big")).unwrap();
    file.set_len(3_000_000_010).unwrap();
    peer.say("PWD");
    let listener = peer.port();
    assert_eq!(peer.code("REST 3000000000"), 350);
    let said = peer.say("RETR big");
    assert!(said.starts_with("150 "), "{said}");
    let id = peer.accept(listener);
    assert_eq!(peer.take(id), [0; 10]);
}

#[test]
fn a_marker_serves_the_next_transfer_only() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"0123456789").unwrap();
    for kept in ["TYPE I", "NOOP", "ALLO 5"] {
        peer.say("REST 4");
        peer.say(kept);
        assert_eq!(peer.fetch("RETR f").1, b"456789", "{kept}");
    }
    for forgets in ["PWD", "SIZE f", "STAT", "FROB"] {
        peer.say("REST 4");
        peer.say(forgets);
        assert_eq!(peer.fetch("RETR f").1, b"0123456789", "{forgets}");
    }
    peer.say("REST 4");
    peer.fetch("RETR missing");
    assert_eq!(peer.fetch("RETR f").1, b"0123456789");
    peer.say("REST 11");
    assert!(peer.fetch("RETR f").0.contains("550 "));
    peer.say("REST 10");
    assert!(peer.fetch("RETR f").0.contains("226 "));
}

#[test]
fn a_restarted_store_keeps_the_beginning_and_truncates_the_rest() {
    let (mut peer, folders) = connect(quick());
    let path = folders.server.join("f");
    fs::write(&path, b"0123456789").unwrap();
    peer.say("REST 4");
    assert!(peer.store("STOR f", b"abc").contains("226 "));
    assert_eq!(fs::read(&path).unwrap(), b"0123abc");
    peer.say("REST 8");
    assert_eq!(peer.begin_store("STOR f").0.get(..3), Some("554"));
    assert_eq!(fs::read(&path).unwrap(), b"0123abc");
}

#[test]
fn interrupting_a_store_keeps_what_came_and_tells_how_much() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"before").unwrap();
    let (_, data) = peer.begin_store("STOR f");
    peer.send_data(data.unwrap(), &vec![7; 50_000]);
    assert_eq!(peer.say("INTR"), text(256, "Transfer interrupted at 50000"));
    assert_eq!(peer.say("SIZE f"), text(213, "f SIZE 50000"));
    assert_eq!(peer.code("NOOP"), 200);
}

#[test]
fn interrupting_a_store_that_has_no_connection_yet_leaves_the_file() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"before").unwrap();
    for (marker, kept) in [("REST 0", 0), ("REST 4", 4)] {
        assert_eq!((peer.code("PASV"), peer.code(marker)), (227, 350));
        assert_eq!(peer.say("STOR f"), "");
        assert_eq!(peer.say("INTR"), text(256, &format!("Transfer interrupted at {kept}")));
        assert_eq!(fs::read(folders.server.join("f")).unwrap(), b"before");
        assert!(!folders.server.join(".fppart~f").exists());
    }
}

#[test]
fn a_command_in_several_segments_interrupts() {
    let (mut peer, _folders) = connect(quick());
    let (_, data) = peer.begin_store("STOR f");
    peer.send_data(data.unwrap(), b"abc");
    for piece in [&b"I"[..], b"NT", b"R\r"] {
        peer.send(piece);
        assert_eq!(peer.hear(), "");
    }
    peer.send(b"\n");
    assert!(peer.hear().starts_with("256 "));
}

#[test]
fn interrupting_a_retrieval_gives_one_256() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), noise(500_000, 1)).unwrap();
    let listener = peer.port();
    assert!(peer.say("RETR f").starts_with("150 "));
    let id = peer.accept(listener);
    let said = peer.say("INTR");
    assert!(said.starts_with("256 Transfer interrupted at ") && said.matches("\r\n").count() == 1, "{said}");
    peer.net.release(id);
    assert_eq!(peer.code("NOOP"), 200);
}

#[test]
fn aborting_restores_the_file_or_leaves_none() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("old"), b"precious").unwrap();
    for (name, left) in [("old", Some(b"precious".to_vec())), ("new", None)] {
        let (_, data) = peer.begin_store(&format!("STOR {name}"));
        peer.send_data(data.unwrap(), b"rubbish");
        let said = peer.say("\u{0}ABOR".trim_start_matches('\0'));
        assert!(said.starts_with("426 ") && said.contains("\r\n226 "), "{said}");
        assert_eq!(fs::read(folders.server.join(name)).ok(), left);
        assert!(!folders.server.join(format!(".fppart~{name}")).exists());
    }
    assert_eq!((peer.code("ABOR"), peer.code("INTR")), (226, 226));
    peer.begin_store("STOR again");
    peer.send(b"\xFF\xF4\xFF\xF2ABOR\r\n");
    assert!(peer.hear().starts_with("426 "));
}

#[test]
fn commands_during_a_transfer_are_answered_after_it_in_order() {
    let (mut peer, folders) = connect(quick());
    let (_, data) = peer.begin_store("STOR f");
    let data = data.unwrap();
    peer.send_data(data, b"abc");
    peer.send(b"SIZE f\r\nPWD\r\n");
    assert_eq!(peer.hear(), "");
    assert!(peer.say("STAT").contains("3 octets received, 3 stored"));
    assert_eq!(peer.code("NOOP"), 200);
    peer.net.release(data);
    let said = peer.hear();
    let codes: Vec<&str> = said.lines().map(|l| &l[..3]).collect();
    assert_eq!(codes, ["226", "213", "257"], "{said}");
    let (_, _data) = peer.begin_store("STOR g");
    for _ in 0..16 {
        assert_eq!(peer.say("PWD"), "");
    }
    assert_eq!(peer.code("PWD"), 503);
    assert!(peer.say("ABOR").starts_with("426 "));
    assert_eq!(fs::read(folders.server.join("f")).unwrap(), b"abc");
}

#[test]
fn a_reset_or_silent_data_connection_is_426_and_the_session_goes_on() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"before").unwrap();
    let (_, data) = peer.begin_store("STOR f");
    let data = data.unwrap();
    peer.send_data(data, b"some");
    peer.net.abort(data);
    assert!(peer.hear().starts_with("426 "));
    let (_, _silent) = peer.begin_store("STOR f");
    assert_eq!(peer.pass(9), "");
    assert!(peer.pass(2).starts_with("426 "));
    assert_eq!(peer.code("NOOP"), 200);
    assert_eq!(fs::read(folders.server.join("f")).unwrap(), b"before");
}

#[test]
fn nobody_is_missed_while_the_link_is_down() {
    let (mut peer, _folders) = connect(quick());
    assert_eq!((peer.code("PASV"), peer.say("STOR f")), (227, String::new()));
    peer.world.set_link_down(true);
    assert_eq!(peer.pass(120), "");
    peer.world.set_link_down(false);
    assert_eq!(peer.pass(59), "");
    assert!(peer.pass(2).starts_with("425 "));
}

#[test]
fn with_automatic_restart_a_broken_store_shows_its_part_under_the_name() {
    let (mut peer, _folders) = connect(quick());
    peer.say("ARST");
    assert!(peer.say("STAT").contains("AUTORESTART: on"));
    let (_, data) = peer.begin_store("STOR f");
    peer.send_data(data.unwrap(), &[1; 1234]);
    peer.net.abort(data.unwrap());
    assert!(peer.hear().starts_with("426 "));
    assert_eq!(peer.say("SIZE f"), text(213, "f SIZE 1234"));
    peer.say("NARS");
    assert!(peer.say("STAT").contains("AUTORESTART: off"));
}

#[test]
fn appending_keeps_and_unique_names_never_replace() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"one").unwrap();
    assert!(peer.store("APPE f", b"two").contains("226 "));
    assert!(peer.store("APPE new", b"x").contains("226 "));
    assert_eq!(fs::read(folders.server.join("f")).unwrap(), b"onetwo");
    let said = peer.store("STOU f", b"other");
    assert!(said.contains("150 FILE: f.1"), "{said}");
    assert!(peer.store("STOU f", b"third").contains("150 FILE: f.2"));
    assert_eq!(fs::read(folders.server.join("f")).unwrap(), b"onetwo");
    assert_eq!(fs::read(folders.server.join("f.1")).unwrap(), b"other");
}

#[test]
fn files_and_directories_are_managed() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"12345").unwrap();
    assert_eq!(peer.code("RNTO g"), 503);
    assert_eq!((peer.code("RNFR f"), peer.code("RNTO g")), (350, 250));
    assert_eq!((peer.code("RNFR g"), peer.code("PWD"), peer.code("RNTO f")), (350, 257, 503));
    assert_eq!((peer.code("COPY g h"), peer.code("COPY g h"), peer.code("COPY no h2")), (250, 550, 550));
    assert_eq!(fs::read(folders.server.join("h")).unwrap(), b"12345");
    assert!(peer.say("MKD a \"b\"").contains("257 \"/a \"\"b\"\"\""));
    assert_eq!(peer.code("CWD a \"b\""), 250);
    assert_eq!(peer.code("CDUP"), 200);
    assert_eq!((peer.code("RMD a \"b\""), peer.code("RMD none")), (250, 550));
    assert_eq!((peer.code("DELE h"), peer.code("DELE h")), (250, 550));
    assert!(peer.say("MDTM g").starts_with("213 20"));
    assert_eq!(peer.say("SYST"), text(215, "UNIX Type: L8"));
    assert!(peer.say("SITE TIME").starts_with("216 time "));
    assert!(peer.say("HELP").contains("UPDT"));
    assert_eq!(peer.code("SITE TERMINATE"), 502);
}

#[test]
fn listings_are_long_or_names_and_end_in_cr_lf() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("b.dat"), b"12345").unwrap();
    fs::create_dir(folders.server.join("a")).unwrap();
    let (said, names) = peer.fetch("NLST");
    assert!(said.contains("226 "));
    assert_eq!(names, b"a\r\nb.dat\r\n");
    assert_eq!(peer.fetch("NLST *.dat").1, b"b.dat\r\n");
    let long = String::from_utf8(peer.fetch("LIST -la").1).unwrap();
    let lines: Vec<&str> = long.split_terminator("\r\n").collect();
    assert!(lines[0].starts_with('d') && lines[0].ends_with(" a"), "{long}");
    assert!(
        lines[1].starts_with("-rw") && lines[1].contains("           5 ") && lines[1].ends_with(" b.dat"),
        "{long}"
    );
    assert!(peer.say("STAT b.dat").contains("b.dat"));
    assert_eq!(peer.fetch("LIST none").0.get(..3), Some("550"));
}

#[test]
fn sizes_are_bare_numbers_for_those_who_ask_for_features() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("f"), b"12345").unwrap();
    assert_eq!(peer.say("SIZE f"), text(213, "f SIZE 5"));
    assert!(peer.say("FEAT").contains("REST STREAM"));
    assert_eq!(peer.say("SIZE f"), text(213, "5"));
}

#[test]
fn a_read_may_end_where_the_file_ends() {
    let (mut peer, folders) = connect(quick());
    fs::write(folders.server.join("u"), noise(5000, 3)).unwrap();
    peer.store("STOR c", b"u\nN\n\0\x01\n4000-4294967295\n\n\xFF\x02");
    let (said, data) = peer.fetch("READ c");
    assert!(said.contains("226 "), "{said}");
    assert_eq!(data, noise(5000, 3)[4000..]);
    peer.store("STOR c", b"u\nN\n\0\x01\n5000-4294967295\n\n\xFF\x02");
    assert!(peer.fetch("READ c").0.contains("556 "));
}

#[test]
fn a_transfer_can_be_interrupted_until_its_last_octet_has_left() {
    let (mut peer, folders) = connect(quick());
    // All of it fits between the two ends.
    fs::write(folders.server.join("f"), noise(60_000, 1)).unwrap();
    let listener = peer.port();
    let said = peer.say("RETR f");
    assert!(said.starts_with("150 ") && !said.contains("226 "), "{said}");
    let id = peer.accept(listener);
    assert!(peer.say("INTR").starts_with("256 "));
    peer.net.release(id);
    let (said, data) = peer.fetch("RETR f");
    assert!(said.contains("226 ") && data.len() == 60_000, "{said}");
}

#[test]
fn parameters_are_taken_as_letters_and_digits() {
    let (mut peer, _folders) = connect(quick());
    for line in ["MODE S", "MODE 1", "STRU F", "STRU 1", "TYPE A", "TYPE A N", "TYPE I", "TYPE L 8"] {
        assert_eq!(peer.code(line), 200, "{line}");
    }
    for line in ["MODE B", "STRU R", "TYPE E", "BETS 32"] {
        assert_eq!(peer.code(line), 504, "{line}");
    }
}

#[test]
fn the_historic_dialect_is_the_older_implementations() {
    let (mut peer, folders) = connect(Mib::historic());
    fs::write(folders.server.join("f"), b"12345").unwrap();
    assert_eq!(peer.say("NOOP"), "250 \r\n");
    assert_eq!(peer.say("SIZE f"), text(213, "f SIZE 5 bytes"));
    assert_eq!(peer.code("PASV"), 502);
    assert_eq!(peer.fetch("RETR f").1, b"12345");
    assert!(peer.say("NSUP").starts_with("211 "));
    assert_eq!(peer.say("NOOP"), text(250, "NOOP"));
}

#[test]
fn an_announced_size_is_waited_for_with_automatic_restart() {
    let (mut peer, folders) = connect(quick());
    assert_eq!(peer.code("ALLO 100"), 200);
    assert!(peer.store("STOR most", &[1; 99]).contains("226 "), "it is the most there can be");
    assert_eq!((peer.code("ARST"), peer.code("ALLO 100")), (200, 200));
    assert!(peer.store("STOR f", &[1; 99]).contains("426 "));
    assert_eq!(fs::read(folders.server.join("f")).unwrap(), [1; 99], "what a restart goes on with");
    peer.say("ALLO 100");
    assert!(peer.store("STOR f", &[1; 100]).contains("226 "));
}

#[test]
fn what_is_announced_of_a_text_is_not_compared_with_the_wire() {
    let (mut peer, folders) = connect(quick());
    assert_eq!((peer.code("ARST"), peer.code("TYPE A"), peer.code("ALLO 8")), (200, 200, 200));
    assert!(peer.store("STOR f", b"one\r\ntwo\r\n").contains("226 "));
    assert_eq!(fs::read(folders.server.join("f")).unwrap(), b"one\ntwo\n");
}

#[test]
fn login_is_needed_and_given() {
    let folders = folders();
    let users = common::users(&folders.server, &["ann"]);
    let world = World::new();
    world.serve(SERVER, move || ServerConfig { mib: quick(), users: users.clone(), ..ServerConfig::default() });
    let (mut peer, _) = Peer::connect(&world);
    for line in ["RETR f", "PWD", "SIZE f", "USERX"] {
        assert!(matches!(peer.code(line), 530 | 500), "{line}");
    }
    assert_eq!(peer.code("RETR f"), 530);
    assert_eq!((peer.code("NOOP"), peer.code("PASS x")), (200, 503));
    assert_eq!((peer.code("USER ann"), peer.code("PASS nna"), peer.code("PASS nna")), (331, 230, 503));
    assert_eq!((peer.code("ACCT x"), peer.code("PWD")), (202, 257));
}

#[test]
fn a_login_again_has_as_long_as_the_first() {
    let folders = folders();
    let users = common::users(&folders.server, &["ann"]);
    let world = World::new();
    world.serve(SERVER, move || ServerConfig { mib: quick(), users: users.clone(), ..ServerConfig::default() });
    let (mut peer, _) = Peer::connect(&world);
    assert_eq!((peer.code("USER ann"), peer.code("PASS nna")), (331, 230));
    peer.pass(61);
    assert_eq!((peer.code("USER ann"), peer.code("PASS nna")), (331, 230));
    // Names alone put the end off no further.
    assert_eq!((peer.code("USER ann"), peer.pass(40), peer.code("USER ann")), (331, String::new(), 331));
    assert!(peer.pass(21).starts_with("421 "));
}

/// Whoever carries the connections goes on with them meanwhile (scps-io, tests/aside.rs).
#[test]
fn what_waits_for_a_disk_or_a_hash_is_done_on_the_side() {
    let folders = folders();
    let users = common::users(&folders.server, &["ann"]);
    let world = World::new();
    world.serve(SERVER, move || ServerConfig { mib: quick(), users: users.clone(), ..ServerConfig::default() });
    let (mut peer, _) = Peer::connect(&world);
    assert_eq!((peer.code("USER ann"), world.asides()), (331, 0));
    assert_eq!((peer.code("PASS nna"), world.asides()), (230, 1));
    // 33 MiB: the disk gets them twice on the way, at the end the rest, and then the name.
    let octets = vec![7; 33 << 20];
    assert!(peer.store("STOR f", &octets).contains("226 "));
    assert_eq!(world.asides(), 1 + 2 + 2);
    let said = peer.say("COPY f g") + &peer.pass(1);
    assert_eq!((&said[..3], world.asides()), ("250", 5 + 2 + 1));
}
