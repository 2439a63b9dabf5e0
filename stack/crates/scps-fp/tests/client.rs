//! The client against our server: commands, records, integrity, two servers; and against servers that misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{folders, noise, quick, run_client, Fault, Folders, World, OTHER_SERVER, SERVER};
use scps_fp::client::{Integrity, Report, Status};
use std::fs;

fn serve() -> (World, Folders) {
    let folders = folders();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, quick());
    (world, folders)
}

fn run(world: &World, folders: &Folders, lines: &[&str]) -> Vec<Report> {
    let open = format!("open {SERVER}");
    let all: Vec<&str> = [open.as_str()].into_iter().chain(lines.iter().copied()).collect();
    run_client(world, &folders.client, &quick(), &all).unwrap().split_off(1)
}

fn all_well(reports: &[Report]) {
    for report in reports {
        assert!(report.is_complete(), "{report:#?}");
    }
}

#[test]
fn files_of_all_sizes_pass_both_ways_actively_and_passively() {
    let (world, folders) = serve();
    for size in [0, 1, 8 << 10, 32_767, 32_768, 65_537, 256 << 10, 1 << 20] {
        for passive in [false, true] {
            fs::write(folders.client.join("f"), noise(size, size as u64)).unwrap();
            let lines = ["put f there", "get there back", "check there f"];
            let reports = if passive {
                run(&world, &folders, &[&["passive"][..], &lines].concat())
            } else {
                run(&world, &folders, &lines)
            };
            all_well(&reports);
            assert!(fs::read(folders.server.join("there")).unwrap() == noise(size, size as u64));
            assert!(fs::read(folders.client.join("back")).unwrap() == noise(size, size as u64));
            assert_eq!(reports.last().unwrap().integrity, Some(Integrity::Ok));
        }
    }
}

#[test]
fn every_simple_command_works_suppressed_and_not() {
    let (world, folders) = serve();
    fs::write(folders.client.join("f"), b"12345").unwrap();
    for first in ["suppress", "unsuppress"] {
        let lines = [
            first,
            "put f f",
            "size f",
            "lsize f",
            "ls",
            "nlist",
            "mkdir d",
            "cd d",
            "pwd",
            "cdup",
            "rmdir d",
            "cp f g",
            "rename g h",
            "crc h",
            "append f h",
            "noop",
            "idle 100",
            "system",
            "rstatus",
            "rhelp",
            "site TIME",
            "mode",
            "struct",
            "ascii",
            "get f a",
            "binary",
            "autorestart",
            "noautorestart",
            "sunique",
            "put f f",
            "sunique",
            "quote MDTM f",
            "status",
            "help",
            "debug",
            "delete h",
            "delete f",
            "delete f.1",
        ];
        let reports = run(&world, &folders, &lines);
        all_well(&reports);
        assert_eq!(reports[2].size, Some(5));
        assert!(reports[8].text.contains("\"/d\""));
        assert_eq!(reports[5].text, "f");
    }
    assert_eq!(fs::read_dir(&folders.server).unwrap().count(), 0);
    let wrong = run(&world, &folders, &["size none", "frob", "get", "put none", "cd none", "bets"]);
    assert!(wrong.iter().all(|r| r.status == Status::Failed), "{wrong:#?}");
}

/// FY97 Table 3, F.2: 64 records of four sizes; one and several inserted, replaced and deleted at start, middle and end.
#[test]
fn records_are_inserted_replaced_and_deleted_anywhere() {
    for length in [512usize, 2048, 8192, 32_768] {
        let (world, folders) = serve();
        let original = noise(64 * length, length as u64);
        fs::write(folders.client.join("old"), &original).unwrap();
        fs::write(folders.server.join("old"), &original).unwrap();
        let mut cases: Vec<(Vec<u8>, usize)> = Vec::new();
        for (at, count) in [(0, 1), (0, 5), (32, 1), (32, 5), (64, 1), (64, 5)] {
            let mut new = original.clone();
            new.splice(at * length..at * length, noise(count * length, 9));
            cases.push((new, count * length));
        }
        for (first, last) in [(0, 0), (30, 34), (63, 63)] {
            let mut new = original.clone();
            new.splice(first * length..(last + 1) * length, noise((last + 1 - first) * length, 10));
            cases.push((new, (last + 1 - first) * length));
            let mut new = original.clone();
            new.drain(first * length..(last + 1) * length);
            cases.push((new, 0));
        }
        cases.push((Vec::new(), 0));
        for (number, (new, data)) in cases.into_iter().enumerate() {
            fs::write(folders.client.join("wanted"), &new).unwrap();
            let before = world.data_octets();
            let reports = run(&world, &folders, &[&format!("raupdt old new{number} old mine diff:wanted")]);
            all_well(&reports);
            assert!(fs::read(folders.server.join(format!("new{number}"))).unwrap() == new);
            assert!(fs::read(folders.client.join("mine")).unwrap() == new);
            assert!(fs::read(folders.server.join("old")).unwrap() == original);
            let sent = world.data_octets() - before;
            // A deletion of 32,767 octets takes a signal of 7.
            let signals = 7 * (original.len() / 32_767 + 1) as u64;
            assert!(sent < data as u64 * 11 / 10 + 200 + signals, "{sent} octets for {data}");
            assert!(!folders.server.join("roSCPSFP").exists());
        }
    }
}

#[test]
fn an_update_keeps_cr_in_type_a_and_refuses_a_wrong_original() {
    let (world, folders) = serve();
    fs::create_dir(folders.server.join("d")).unwrap();
    fs::write(folders.server.join("d/old"), b"a\r\nb\r\n").unwrap();
    fs::write(folders.client.join("old"), b"a\r\nb\r\n").unwrap();
    fs::write(folders.client.join("wanted"), b"a\r\nX\r\r\nb\r\n").unwrap();
    let reports = run(&world, &folders, &["ascii", "raupdt d/old d/new old mine diff:wanted", "pwd", "rstatus"]);
    all_well(&reports);
    assert_eq!(fs::read(folders.server.join("d/new")).unwrap(), b"a\r\nX\r\r\nb\r\n");
    assert!(reports[2].text.contains("\"/\"") && reports[3].text.contains("TYPE: A"), "{reports:#?}");
    let reports = run(&world, &folders, &["raupdt d/old d/new old mine diff:wanted"]);
    assert_eq!(reports[0].reply, Some(550), "the new name exists: {reports:#?}");
    fs::write(folders.server.join("d/old"), b"something else").unwrap();
    let reports = run(&world, &folders, &["raupdt d/old d/newer old mine diff:wanted"]);
    assert_eq!(reports[0].reply, Some(551));
    assert!(!folders.server.join("d/newer").exists());
}

#[test]
fn records_are_read_and_the_source_stays() {
    let (world, folders) = serve();
    let alphabet: Vec<u8> = (b'A'..=b'Z').collect();
    fs::write(folders.server.join("u"), &alphabet).unwrap();
    let before = fs::metadata(folders.server.join("u")).unwrap().modified().unwrap();
    let ten: Vec<String> = (0..10).map(|i| (i * 2).to_string()).collect();
    let lines = [
        "raread u a 0-2,5,20-eof".to_owned(),
        format!("raread u b {}", ten.join(",")),
        "recread u c 5 1 2".to_owned(),
        "raread u d 20-30 y".to_owned(),
        "raread u e 20-30".to_owned(),
        "raread none f 1".to_owned(),
        "raread u g 0-1 yes".to_owned(),
        format!("recread u g {} 1 2", u64::MAX),
    ];
    let reports = run(&world, &folders, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let read = |name: &str| fs::read(folders.client.join(name)).unwrap();
    assert_eq!((read("a").as_slice(), reports[0].crc.as_deref()), (&b"ABCFUVWXYZ"[..], Some("CRC:C1888866")));
    assert_eq!(read("b"), b"ACEGIKMOQS");
    assert_eq!(read("c"), b"FGHIJKLMNO");
    assert_eq!((read("d").as_slice(), reports[3].reply), (&b"UVWXYZ"[..], Some(258)));
    assert!(reports[4].text.contains("556"), "{:?}", reports[4]);
    for failed in &reports[5..] {
        assert_eq!(failed.status, Status::Failed, "{failed:?}");
    }
    assert!(reports[6].text.contains("[y|n]"), "{:?}", reports[6]);
    assert!(!folders.client.join("g").exists());
    let left: Vec<_> = fs::read_dir(&folders.server).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["u"], "a control file stays after a READ that fails");
    assert_eq!(fs::read(folders.server.join("u")).unwrap(), alphabet);
    assert_eq!(fs::metadata(folders.server.join("u")).unwrap().modified().unwrap(), before);
}

#[test]
fn records_of_a_folder_that_is_not_there_leave_the_session_as_it_was() {
    let (world, folders) = serve();
    fs::write(folders.client.join("old"), b"old").unwrap();
    for line in ["raread none/u a 0-2", "raupdt none/old none/new old mine diff:old"] {
        let reports = run(&world, &folders, &["ascii", line, "rstatus", "pwd"]);
        assert_eq!((reports[1].status, reports[1].reply), (Status::Failed, Some(550)), "{reports:#?}");
        assert!(reports[2].text.contains("TYPE: A") && reports[3].text.contains("\"/\""), "{reports:#?}");
    }
}

#[test]
fn different_files_of_equal_checksum_are_told_apart_by_length() {
    let (world, folders) = serve();
    fs::write(folders.server.join("zeros"), [0; 100]).unwrap();
    fs::write(folders.client.join("zeros"), [0; 99]).unwrap();
    let reports = run(&world, &folders, &["check zeros zeros"]);
    assert_eq!((reports[0].status, reports[0].integrity), (Status::Failed, Some(Integrity::Mismatch)));
}

#[test]
fn nothing_is_proven_about_a_file_the_server_refuses_to_speak_of() {
    let (world, folders) = serve();
    fs::write(folders.client.join("f"), b"octets").unwrap();
    let report = run(&world, &folders, &["check none f"]).remove(0);
    assert_eq!((report.status, report.integrity), (Status::Failed, Some(Integrity::NotOffered)));
    assert!(report.text.contains("no size"), "{report:?}");
    fs::write(folders.server.join("f"), b"octets").unwrap();
    let report = run(&world, &folders, &["check f f"]).remove(0);
    assert_eq!((report.status, report.integrity), (Status::Complete, Some(Integrity::Ok)));
}

fn two_servers() -> (World, Folders) {
    let folders = folders();
    let world = World::new();
    for (host, name, other) in [(SERVER, "one", OTHER_SERVER), (OTHER_SERVER, "two", SERVER)] {
        let root = folders.server.join(name);
        fs::create_dir(&root).unwrap();
        let mut mib = quick();
        mib.set("ALLOWPROXY", other).unwrap();
        world.serve_open(host, &root, mib);
    }
    (world, folders)
}

#[test]
fn a_file_moves_between_two_servers() {
    let (world, folders) = two_servers();
    let data = noise(300_000, 3);
    fs::write(folders.server.join("one/f"), &data).unwrap();
    let open = format!("proxy open {OTHER_SERVER}");
    all_well(&run(&world, &folders, &[&open, "proxy get f g", "proxy put g back"]));
    assert!(fs::read(folders.server.join("two/g")).unwrap() == data);
    assert!(fs::read(folders.server.join("one/back")).unwrap() == data);
    assert_eq!(fs::read_dir(&folders.client).unwrap().count(), 0);
}

#[test]
fn an_interrupted_move_between_servers_is_continued_at_the_receivers_marker() {
    let (world, folders) = two_servers();
    let data = noise(1 << 20, 3);
    fs::write(folders.server.join("one/f"), &data).unwrap();
    let open = format!("proxy open {OTHER_SERVER}");
    world.fault_at(400_000, Fault::Outage(5));
    let reports = run(&world, &folders, &[&open, "interrupt", "proxy get f g"]);
    let stopped = &reports[2];
    assert_eq!(stopped.status, Status::Interrupted, "{stopped:?}\n{}", world.log());
    let stored = fs::metadata(folders.server.join("two/g")).unwrap().len();
    assert_eq!(stopped.marker, Some(stored));
    assert!((300_000..1 << 20).contains(&stored), "{stored}");
    let reports = run(&world, &folders, &[&open, "restart", "proxy get f g"]);
    all_well(&reports);
    assert_eq!(reports[2].markers, [stored]);
    assert!(fs::read(folders.server.join("two/g")).unwrap() == data);
}

#[test]
fn a_broken_move_between_servers_continues_by_itself() {
    let (world, folders) = two_servers();
    let data = noise(1 << 20, 3);
    fs::write(folders.server.join("one/f"), &data).unwrap();
    world.fault_at(400_000, Fault::CutData);
    let (open, lines) = (format!("proxy open {OTHER_SERVER}"), ["autorestart", "proxy autorestart", "proxy get f g"]);
    let reports = run(&world, &folders, &[&[open.as_str()][..], &lines].concat());
    all_well(&reports);
    assert!(reports[3].markers.len() == 2 && reports[3].markers[1] > 0, "{:?}", reports[3]);
    assert!(fs::read(folders.server.join("two/g")).unwrap() == data);
}

#[test]
fn a_server_that_never_answers_is_given_up_in_time() {
    let (world, folders) = serve();
    world.fault_at(10, Fault::Outage(100_000));
    fs::write(folders.client.join("f"), noise(1000, 1)).unwrap();
    let before = world.now();
    let reports = run(&world, &folders, &["put f", "noop"]);
    assert_eq!(reports[0].status, Status::Failed);
    assert!(world.now().since(before).as_secs() < 60, "it waited too long");
}
