//! Restart: every way a transfer can break, at ten seeded points each, both directions, by itself and by hand. Nothing is
//! lost, nothing doubled, nothing damaged, and no octet that was safely stored is sent again.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{folders, noise, quick, run_client, Fault, Folders, World, CLIENT, SERVER};
use scps_fp::client::{Integrity, Report, Status};
use scps_wire::Seed;
use std::fs;

const SIZE: usize = 1 << 20;
/// Octets a connection and the two ends hold: what may have to be sent again after a break.
const IN_FLIGHT: u64 = 64 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Put,
    Get,
}

const BOTH: [Direction; 2] = [Direction::Put, Direction::Get];

/// Ten places in a file of [`SIZE`], different for each name.
fn points(name: &str) -> Vec<u64> {
    let mut rng = Seed::from_u64(1997).stream(name);
    (0..10).map(|_| 1 + rng.below(SIZE as u64 - 1)).collect()
}

struct Case {
    world: World,
    folders: Folders,
    data: Vec<u8>,
    direction: Direction,
}

impl Case {
    fn new(direction: Direction) -> Case {
        let folders = folders();
        let data = noise(SIZE, 42);
        let (source, target) = match direction {
            Direction::Put => (&folders.client, &folders.server),
            Direction::Get => (&folders.server, &folders.client),
        };
        fs::write(source.join("file"), &data).unwrap();
        fs::write(target.join("file"), b"what was there before").unwrap();
        let world = World::new();
        world.serve_open(SERVER, &folders.server, quick());
        Case { world, folders, data, direction }
    }

    fn verb(&self) -> &'static str {
        if self.direction == Direction::Put {
            "put"
        } else {
            "get"
        }
    }

    fn run(&self, lines: &[&str]) -> Result<Report, ()> {
        let open = format!("open {SERVER}");
        let all: Vec<&str> = [open.as_str()].into_iter().chain(lines.iter().copied()).collect();
        run_client(&self.world, &self.folders.client, &quick(), &all).map(|mut r| r.pop().unwrap())
    }

    fn target(&self) -> Vec<u8> {
        let folder = if self.direction == Direction::Put { &self.folders.server } else { &self.folders.client };
        fs::read(folder.join("file")).unwrap()
    }

    /// The end of every story.
    fn assert_whole(&self, report: &Report, context: &str) {
        assert_eq!(report.status, Status::Complete, "{context}: {report:?}\n{}", self.world.log());
        assert!(self.target() == self.data, "{context}: the octets differ");
        assert_eq!(report.integrity, Some(Integrity::Ok), "{context}: {report:?}");
        for folder in [&self.folders.server, &self.folders.client] {
            assert!(!folder.join(".fppart~file").exists(), "{context}: a part was left behind");
        }
    }
}

fn automatic(fault: impl Fn(u64) -> Fault, name: &str) {
    for direction in BOTH {
        for point in points(name) {
            let case = Case::new(direction);
            case.world.fault_at(point, fault(point));
            let report = case.run(&["autorestart", &format!("{} file", case.verb())]).unwrap();
            let context = format!("{name} {direction:?} at {point}");
            case.assert_whole(&report, &context);
            let again = case.world.data_octets() - SIZE as u64;
            assert!(again <= IN_FLIGHT, "{context}: {again} octets were sent twice: {report:?}");
        }
    }
}

#[test]
fn automatic_restart_after_a_reset_data_connection() {
    automatic(|_| Fault::CutData, "data");
}

#[test]
fn automatic_restart_after_a_lost_control_connection() {
    automatic(|_| Fault::CutControl, "control");
}

#[test]
fn automatic_restart_after_an_outage_longer_than_patience() {
    automatic(|_| Fault::Outage(30), "outage");
}

#[test]
fn automatic_restart_after_a_killed_server() {
    automatic(|point| Fault::KillServer(1 + point % 20), "server");
}

#[test]
fn a_killed_client_is_continued_by_a_new_one() {
    for direction in BOTH {
        for switch in ["autorestart", "noautorestart"] {
            for point in points("client") {
                let case = Case::new(direction);
                case.world.fault_at(point, Fault::KillClient);
                let verb = case.verb();
                assert!(case.run(&[switch, &format!("{verb} file")]).is_err(), "the client was not killed");
                case.world.settle();
                let report = case.run(&[switch, &format!("resume {verb} file")]).unwrap();
                let context = format!("{switch} {direction:?} killed at {point}");
                case.assert_whole(&report, &context);
                let again = case.world.data_octets() - SIZE as u64;
                assert!(again <= IN_FLIGHT, "{context}: {again} octets were sent twice");
            }
        }
    }
}

#[test]
fn manual_restart_after_every_break_with_automatic_restart_off() {
    for direction in BOTH {
        for (name, fault) in [
            ("manual data", Fault::CutData),
            ("manual control", Fault::CutControl),
            ("manual outage", Fault::Outage(25)),
            ("manual server", Fault::KillServer(2)),
        ] {
            for point in points(name) {
                let case = Case::new(direction);
                case.world.fault_at(point, fault);
                let verb = case.verb();
                let broken = case.run(&[&format!("{verb} file")]).unwrap();
                let context = format!("{name} {direction:?} at {point}");
                if broken.status == Status::Complete {
                    // The last octets and the reply had left when it happened.
                    assert!(point + IN_FLIGHT >= SIZE as u64, "{context}: {broken:?}");
                    case.assert_whole(&broken, &context);
                    continue;
                }
                assert_eq!(broken.status, Status::Failed, "{context}");
                assert_eq!(case.target(), b"what was there before", "{context}: the target was touched");
                case.world.pass(scps_wire::Duration::from_secs(30));
                let report = case.run(&[&format!("resume {verb} file")]).unwrap();
                case.assert_whole(&report, &context);
                assert!(report.markers[0] > 0 || point < IN_FLIGHT, "{context}: it started at 0");
            }
        }
    }
}

#[test]
fn an_interrupted_transfer_is_continued_at_exactly_its_marker() {
    for direction in BOTH {
        for point in [1, 32_767, 32_768, 40_000, 70_000, SIZE as u64 - 1].into_iter().chain(points("interrupt")) {
            let case = Case::new(direction);
            let verb = case.verb();
            let (first, size) = (format!("interrupt {point}"), format!("{verb} file"));
            let stopped = case.run(&[&first, &size]).unwrap();
            let context = format!("{direction:?} interrupted at {point}");
            if stopped.status == Status::Complete {
                // The last octets had left when the wish came up.
                assert!(point + IN_FLIGHT >= SIZE as u64, "{context}: {stopped:?}");
                case.assert_whole(&stopped, &context);
                continue;
            }
            assert_eq!(stopped.status, Status::Interrupted, "{context}: {stopped:?}");
            let marker = stopped.marker.unwrap();
            assert_eq!(marker, case.target().len() as u64, "{context}: the marker is what is stored");
            // Twice in one file.
            let again = case.run(&["interrupt 1", &format!("resume {verb} file")]).unwrap();
            let report = if again.status == Status::Interrupted {
                case.run(&[&format!("resume {verb} file")]).unwrap()
            } else {
                again
            };
            case.assert_whole(&report, &context);
            assert!(report.markers[0] >= marker, "{context}: less is stored than was");
            let sent = report.octets_after_restart.unwrap_or(0);
            assert_eq!(sent, SIZE as u64 - report.markers[0], "{context}: the beginning was sent again");
        }
    }
}

#[test]
fn an_aborted_transfer_leaves_everything_as_it_was() {
    for direction in BOTH {
        let case = Case::new(direction);
        let aborted = case.run(&["abort 100000", &format!("{} file", case.verb())]).unwrap();
        assert_eq!(aborted.status, Status::Aborted, "{aborted:?}");
        assert_eq!(case.target(), b"what was there before");
        let noop = case.run(&["noop"]).unwrap();
        assert_eq!(noop.reply, Some(200));
    }
}

#[test]
fn several_outages_in_one_transfer_are_several_restarts() {
    for direction in BOTH {
        let case = Case::new(direction);
        for percent in [10, 30, 50, 70, 90] {
            case.world.fault_at(SIZE as u64 * percent / 100, Fault::Outage(30));
        }
        let report = case.run(&["autorestart", &format!("{} file", case.verb())]).unwrap();
        case.assert_whole(&report, "five outages");
        assert!(report.restarts.unwrap() >= 4, "{report:?}");
    }
}

#[test]
fn a_short_outage_is_left_to_the_transport() {
    for direction in BOTH {
        let case = Case::new(direction);
        case.world.fault_at(300_000, Fault::Outage(3));
        let report = case.run(&["autorestart", &format!("{} file", case.verb())]).unwrap();
        case.assert_whole(&report, "3 s");
        assert_eq!(report.restarts, Some(0));
        assert_eq!(report.octets, Some(SIZE as u64));
    }
}

#[test]
fn without_automatic_restart_an_outage_ends_the_transfer_and_the_marker_is_told() {
    for direction in BOTH {
        let case = Case::new(direction);
        case.world.fault_at(300_000, Fault::Outage(30));
        let report = case.run(&[&format!("{} file", case.verb())]).unwrap();
        assert_eq!((report.status, report.restarts), (Status::Failed, Some(0)));
        if direction == Direction::Get {
            assert!(report.marker.unwrap() > 200_000, "{report:?}");
        }
    }
}

#[test]
fn restarts_are_bounded() {
    let case = Case::new(Direction::Put);
    let mut mib = quick();
    mib.set("RESTARTNUM", "3").unwrap();
    case.world.fault_at(1000, Fault::KillServer(1_000_000));
    let open = format!("open {SERVER}");
    let reports = run_client(&case.world, &case.folders.client, &mib, &[&open, "autorestart", "put file"]).unwrap();
    let report = reports.last().unwrap();
    assert_eq!(report.status, Status::Failed);
    assert!(report.text.contains("after 3 restarts"), "{}", report.text);
}

#[test]
fn a_source_that_changed_is_sent_from_the_start() {
    let case = Case::new(Direction::Put);
    case.run(&["interrupt 500000", "put file"]).unwrap();
    let other = noise(SIZE, 43);
    fs::write(case.folders.client.join("file"), &other).unwrap();
    let report = case.run(&["resume put file"]).unwrap();
    assert_eq!(report.markers, [0], "{report:?}");
    assert!(case.target() == other);
    assert!(report.notes.iter().any(|n| n.contains("not the beginning")), "{:?}", report.notes);
}

#[test]
fn a_damaged_beginning_of_a_fetched_file_is_found_and_fetched_anew() {
    let case = Case::new(Direction::Get);
    case.run(&["interrupt 500000", "get file"]).unwrap();
    let path = case.folders.client.join("file");
    let mut stored = fs::read(&path).unwrap();
    stored[1000] ^= 1;
    fs::write(&path, &stored).unwrap();
    let report = case.run(&["autorestart", "resume get file"]).unwrap();
    case.assert_whole(&report, "damaged beginning");
    assert_eq!(*report.markers.last().unwrap(), 0);
}

#[test]
fn a_refused_marker_starts_at_zero() {
    let case = Case::new(Direction::Put);
    let report = case.run(&["autorestart", "restart 900000", "put file"]).unwrap();
    case.assert_whole(&report, "marker beyond what is stored");
    assert_eq!(report.markers, [900_000, 0]);
}

#[test]
fn ascii_transfers_restart_at_wire_octets() {
    let folders = folders();
    let text: Vec<u8> = (0..40_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    for (direction, source, target) in
        [(Direction::Put, &folders.client, &folders.server), (Direction::Get, &folders.server, &folders.client)]
    {
        for point in points("ascii").into_iter().map(|p| p % text.len() as u64) {
            let _ = fs::remove_file(target.join("text"));
            fs::write(source.join("text"), &text).unwrap();
            let world = World::new();
            world.serve_open(SERVER, &folders.server, quick());
            world.fault_at(point, Fault::CutData);
            let verb = if direction == Direction::Put { "put" } else { "get" };
            let (open, move_it) = (format!("open {SERVER}"), format!("{verb} text"));
            let reports =
                run_client(&world, &folders.client, &quick(), &[&open, "ascii", "autorestart", &move_it]).unwrap();
            assert_eq!(reports[3].status, Status::Complete, "{direction:?} {point}: {:?}\n{}", reports[3], world.log());
            assert!(fs::read(target.join("text")).unwrap() == text, "{direction:?} {point}");
        }
    }
}

#[test]
fn a_text_whose_stored_octets_do_not_tell_where_it_broke_is_fetched_anew() {
    let folders = folders();
    // CR CR LF comes as it is and is stored as CR LF, of which the wire has no more.
    fs::write(folders.server.join("text"), b"line\r\r\n".repeat(40_000)).unwrap();
    let world = World::new();
    world.serve_open(SERVER, &folders.server, quick());
    world.fault_at(150_000, Fault::CutData);
    let open = format!("open {SERVER}");
    let lines = [&open, "ascii", "autorestart", "get text"];
    let report = run_client(&world, &folders.client, &quick(), &lines).unwrap().pop().unwrap();
    assert_eq!((report.status, report.markers.last()), (Status::Complete, Some(&0)), "{report:?}");
    assert!(report.markers.len() == 3 && report.notes.iter().any(|n| n.contains("sizes differ")), "{report:?}");
    assert!(fs::read(folders.client.join("text")).unwrap() == b"line\r\n".repeat(40_000));
}

#[test]
fn a_lost_session_is_made_again_as_it_was() {
    let folders = folders();
    let root = folders.server.clone();
    fs::create_dir_all(root.join("ann/deep")).unwrap();
    fs::write(root.join("ann/deep/file"), noise(SIZE, 7)).unwrap();
    let world = World::new();
    let users = common::users(&root, &["ann"]);
    world.serve(SERVER, move || scps_fp::server::ServerConfig {
        mib: quick(),
        users: users.clone(),
        ..scps_fp::server::ServerConfig::default()
    });
    world.fault_at(SIZE as u64 / 2, Fault::KillServer(5));
    let open = format!("open {SERVER}");
    let lines = [&open, "user ann nna", "cd deep", "autorestart", "get file", "pwd", "rstatus"];
    let reports = run_client(&world, &folders.client, &quick(), &lines).unwrap();
    assert!(reports.iter().all(Report::is_complete), "{reports:#?}");
    assert!(reports[4].restarts.unwrap() >= 1);
    assert!(reports[5].text.contains("\"/deep\""), "{}", reports[5].text);
    assert!(reports[6].text.contains("AUTORESTART: on"), "{}", reports[6].text);
    assert!(fs::read(folders.client.join("file")).unwrap() == noise(SIZE, 7));
    let log = world.log();
    assert!(log.contains("PASS ****") && !log.contains("nna"), "a password is in the log");
    assert_eq!(CLIENT, "10.0.0.1");
}
