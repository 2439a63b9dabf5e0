//! The client against servers that refuse, break off and answer late at every turn: nothing foreign is taken for a beginning
//! of its own, nothing is lost, and replies stay in step with commands.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{folders, noise, quick, run_client, Folders, Names, World, CLIENT, OTHER_SERVER, SERVER};
use scps_fp::client::{Client, Console, Integrity, Report, Status, Urge};
use scps_fp::net::Net;
use scps_wire::{Duration, Instant};
use std::fs;
use std::path::PathBuf;

fn run(world: &World, folders: &Folders, lines: &[&str]) -> Vec<Report> {
    let open = format!("open {SERVER}");
    let all: Vec<&str> = [open.as_str()].into_iter().chain(lines.iter().copied()).collect();
    run_client(world, &folders.client, &quick(), &all).unwrap().split_off(1)
}

/// A server that may exchange data with [`SERVER`], for a proxy's other end.
fn serve_other(world: &World, folders: &Folders) -> String {
    let mut mib = quick();
    mib.set("ALLOWPROXY", SERVER).unwrap();
    world.serve_open(OTHER_SERVER, &folders.server, mib);
    format!("proxy open {OTHER_SERVER}")
}

#[test]
fn a_move_between_servers_that_never_began_does_not_continue_another_file() {
    let (world, folders) = (World::new(), folders());
    let (data, mut refusals) = (noise(3000, 1), 1);
    let sent = data.clone();
    world.serve_script(SERVER, move |talk, line| {
        match line {
            "RETR f" if refusals > 0 => {
                refusals -= 1;
                talk.say("450 busy");
            }
            "RETR f" => {
                talk.say("150 opening");
                talk.give(&sent[talk.marker..]);
                talk.say("226 done");
            }
            _ => return false,
        }
        true
    });
    let open = serve_other(&world, &folders);
    fs::write(folders.server.join("g"), noise(1000, 2)).unwrap();
    let report = run(&world, &folders, &[&open, "autorestart", "proxy get f g"]).pop().unwrap();
    assert_eq!((report.status, &report.markers[..]), (Status::Complete, &[0, 0][..]), "{report:?}");
    assert!(fs::read(folders.server.join("g")).unwrap() == data);
}

#[test]
fn a_continued_move_between_servers_is_compared_as_a_whole() {
    let (world, folders) = (World::new(), folders());
    fs::create_dir(folders.server.join("one")).unwrap();
    let mut mib = quick();
    mib.set("ALLOWPROXY", OTHER_SERVER).unwrap();
    world.serve_open(SERVER, &folders.server.join("one"), mib);
    let open = serve_other(&world, &folders);
    let data = noise(3000, 1);
    fs::write(folders.server.join("one/f"), &data).unwrap();
    for (stored, status, integrity) in [
        (noise(1000, 2), Status::Failed, Integrity::Mismatch),
        (data[..1000].to_vec(), Status::Complete, Integrity::Ok),
    ] {
        fs::write(folders.server.join("g"), stored).unwrap();
        let report = run(&world, &folders, &[&open, "restart 1000", "proxy get f g"]).pop().unwrap();
        assert_eq!((report.status, report.integrity), (status, Some(integrity)), "{report:?}");
    }
    assert!(fs::read(folders.server.join("g")).unwrap() == data);
}

#[test]
fn replies_stay_in_step_after_a_transfer_that_the_client_gave_up() {
    let (world, folders) = (World::new(), folders());
    world.serve_open(SERVER, &folders.server, quick());
    // More than is collected in memory.
    fs::File::create(folders.server.join("f")).unwrap().set_len(17 << 20).unwrap();
    let reports = run(&world, &folders, &["raread f out 0-eof", "noop", "pwd"]);
    assert_eq!(reports[0].status, Status::Failed, "{reports:?}");
    assert!(reports[0].text.starts_with("more than 16777216 octets"), "{reports:?}");
    assert_eq!((reports[1].reply, reports[2].reply), (Some(200), Some(257)), "{reports:?}");
}

#[test]
fn replies_stay_in_step_where_a_transfer_failed_before_it_was_interrupted() {
    let (world, folders) = (World::new(), folders());
    world.serve_script(SERVER, |talk, line| {
        match line {
            "RETR f" => talk.say("150 opening"),
            "INTR" => talk.say("426 broken off\n226 nothing to interrupt"),
            _ => return false,
        }
        true
    });
    let reports = run(&world, &folders, &["interrupt", "get f", "noop"]);
    assert_eq!((reports[1].status, reports[2].reply), (Status::Failed, Some(200)), "{reports:?}");
}

#[test]
fn a_fetch_that_failed_in_between_does_not_continue_another_file() {
    let (world, folders) = (World::new(), folders());
    let (data, mut attempts) = (noise(3000, 1), 0);
    let sent = data.clone();
    // No checksum would show it.
    world.serve_script(SERVER, move |talk, line| {
        match line {
            "SIZE f" => talk.say("213 3000"),
            "RETR f" => {
                attempts += 1;
                if attempts == 2 {
                    talk.say("425 no data connection");
                    return true;
                }
                talk.say("150 opening");
                talk.give(if attempts == 1 { b"" } else { &sent[talk.marker..] });
                talk.say(if attempts == 1 { "426 broken off" } else { "226 done" });
            }
            _ => return false,
        }
        true
    });
    fs::write(folders.client.join("f"), noise(1000, 2)).unwrap();
    let report = run(&world, &folders, &["autorestart", "get f"]).pop().unwrap();
    assert_eq!((report.status, &report.markers[..]), (Status::Complete, &[0, 0, 0][..]), "{report:?}");
    assert!(fs::read(folders.client.join("f")).unwrap() == data);
}

#[test]
fn a_broken_store_under_a_unique_name_is_not_continued_in_the_file_it_was_to_spare() {
    let (world, folders) = (World::new(), folders());
    let said = world.serve_script(SERVER, |talk, line| {
        match line {
            "SIZE f" => talk.say("213 1000"),
            "STOU f" => {
                talk.say("150 FILE: f.1");
                talk.give(b"");
                talk.say("426 broken off");
            }
            _ => return false,
        }
        true
    });
    fs::write(folders.client.join("f"), noise(3000, 1)).unwrap();
    let report = run(&world, &folders, &["autorestart", "sunique", "put f"]).pop().unwrap();
    assert_eq!(report.status, Status::Failed, "{report:?}");
    assert!(!said.borrow().iter().any(|line| line.starts_with("STOR")), "{said:?}");
}

#[test]
fn a_restart_by_hand_is_one_still_after_an_attempt_that_never_began() {
    for verb in ["put", "get"] {
        let (world, folders) = (World::new(), folders());
        let (data, mut refusals) = (noise(3000, 1), 1);
        let sent = data.clone();
        let said = world.serve_script(SERVER, move |talk, line| {
            let is_put = verb == "put";
            match line {
                "SIZE f" if is_put && refusals > 0 => {
                    refusals -= 1;
                    talk.say("450 busy");
                }
                "SIZE f" => talk.say(if is_put { "213 1000" } else { "213 3000" }),
                "STOR f" => talk.say("553 enough is known"),
                "RETR f" if refusals > 0 => {
                    refusals -= 1;
                    talk.say("425 no data connection");
                }
                "RETR f" => {
                    talk.say("150 opening");
                    talk.give(&sent[talk.marker..]);
                    talk.say("226 done");
                }
                _ => return false,
            }
            true
        });
        fs::write(folders.client.join("f"), if verb == "put" { &data } else { &data[..1000] }).unwrap();
        let report = run(&world, &folders, &["autorestart", &format!("resume {verb} f")]).pop().unwrap();
        assert_eq!(report.markers.last(), Some(&1000), "{report:?}");
        assert!(said.borrow().iter().all(|line| line != "REST 0"), "{said:?}");
        assert!(fs::read(folders.client.join("f")).unwrap() == data, "{verb}");
    }
}

#[test]
fn resuming_a_file_that_the_server_lacks_leaves_the_part() {
    let (world, folders) = (World::new(), folders());
    world.serve_open(SERVER, &folders.server, quick());
    let part = folders.client.join(".fppart~f");
    for switch in ["noautorestart", "autorestart"] {
        fs::write(&part, noise(1000, 1)).unwrap();
        let report = run(&world, &folders, &[switch, "resume get f"]).pop().unwrap();
        assert_eq!((report.status, report.reply), (Status::Failed, Some(550)), "{report:?}");
        assert!(fs::read(&part).unwrap() == noise(1000, 1), "{switch}");
    }
}

/// Somebody who changes a file's length once octets of it have left.
struct Editor {
    world: World,
    file: PathBuf,
    length: Option<u64>,
}

impl Console for Editor {
    fn show(&mut self, _line: &str) {}

    fn urge(&mut self) -> Option<Urge> {
        if self.world.data_octets() > 0 {
            if let Some(length) = self.length.take() {
                fs::File::options().write(true).open(&self.file).unwrap().set_len(length).unwrap();
            }
        }
        None
    }
}

#[test]
fn a_source_that_shrinks_or_grows_while_it_is_sent_is_not_sent() {
    for (length, switch, kind) in
        [(200_000, "noautorestart", "binary"), (400_000, "noautorestart", "ascii"), (200_000, "autorestart", "binary")]
    {
        let (world, folders) = (World::new(), folders());
        world.serve_open(SERVER, &folders.server, quick());
        let file = folders.client.join("f");
        fs::write(&file, noise(300_000, 1)).unwrap();
        let mut console = Editor { world: world.clone(), file, length: Some(length) };
        let mut net = world.net(CLIENT);
        let mut client = Client::new(&mut net, &mut console, quick(), CLIENT.parse().unwrap());
        client.folder.clone_from(&folders.client);
        let open = format!("open {SERVER}");
        let [.., report] = [open.as_str(), switch, kind, "put f"].map(|line| client.run_line(line, &Names).unwrap());
        if switch == "autorestart" {
            assert_eq!((report.status, report.size), (Status::Complete, Some(length)), "{report:?}");
            assert_eq!(fs::read(folders.server.join("f")).unwrap(), fs::read(folders.client.join("f")).unwrap());
        } else {
            assert_eq!(report.status, Status::Failed, "{kind}: {report:?}");
            assert!(report.text.contains("changed"), "{kind}: {report:?}");
        }
    }
}

#[test]
fn an_interrupted_move_that_had_ended_is_what_the_receiver_says() {
    for (answer, status) in [("426 broken off", Status::Failed), ("226 done", Status::Complete)] {
        let (world, folders) = (World::new(), folders());
        world.serve_script(SERVER, |talk, line| {
            match line {
                "RETR f" => talk.say("150 opening"),
                "INTR" => talk.say("226 done\n226 nothing to interrupt"),
                _ => return false,
            }
            true
        });
        world.serve_script(OTHER_SERVER, move |talk, line| {
            if line == "STOR g" {
                talk.say(&format!("150 opening\n{answer}"));
            }
            line == "STOR g"
        });
        let open = format!("proxy open {OTHER_SERVER}");
        let reports = run(&world, &folders, &[&open, "interrupt", "proxy get f g", "noop", "proxy noop"]);
        assert_eq!(reports[2].status, status, "{reports:?}");
        assert_eq!((reports[3].reply, reports[4].reply), (Some(200), Some(200)), "{reports:?}");
    }
}

#[test]
fn replies_that_never_stop_keep_nobody_for_longer_than_patience() {
    let (world, folders) = (World::new(), folders());
    let mut left = 300;
    world.serve_script(SERVER, move |talk, line| {
        match line {
            "RETR f" => talk.say("150 opening"),
            "INTR" => talk.say("426 broken off"),
            "NOOP" => talk.say("200 done"),
            "" => talk.say("226 and again"),
            _ => return false,
        }
        left -= i32::from(matches!(line, "" | "NOOP"));
        if left < 300 && left > 0 {
            talk.again = Some(talk.net.now() + Duration::from_millis(300));
        }
        true
    });
    let before = world.now();
    let reports = run(&world, &folders, &["interrupt", "get f", "noop"]);
    assert_eq!(reports[2].status, Status::Failed, "{reports:?}");
    assert!(reports[2].text.contains("without an end"), "{reports:?}");
    assert!(world.now().since(before) < Duration::from_secs(20));
}

/// Somebody who has enough after a time.
struct Impatient {
    world: World,
    at: Instant,
    urge: Urge,
}

impl Console for Impatient {
    fn show(&mut self, _line: &str) {}

    fn urge(&mut self) -> Option<Urge> {
        (self.world.now() >= self.at).then_some(self.urge)
    }
}

#[test]
fn whoever_has_enough_of_restarts_between_servers_ends_them() {
    for (urge, status) in [(Urge::Abort, Status::Aborted), (Urge::Interrupt, Status::Interrupted)] {
        let (world, folders) = (World::new(), folders());
        world.serve_script(SERVER, |talk, line| {
            if line == "RETR f" {
                talk.say("450 busy");
            }
            line == "RETR f"
        });
        let (open, other) = (format!("open {SERVER}"), serve_other(&world, &folders));
        let at = world.now() + Duration::from_millis(500);
        let mut console = Impatient { world: world.clone(), at, urge };
        let mut net = world.net(CLIENT);
        let mut client = Client::new(&mut net, &mut console, quick(), CLIENT.parse().unwrap());
        let lines = [open.as_str(), &other, "autorestart", "proxy get f g"];
        let [.., report] = lines.map(|line| client.run_line(line, &Names).unwrap());
        assert_eq!((report.status, report.marker), (status, None), "{report:?}");
        assert!(world.now().since(at) < Duration::from_secs(2));
    }
}
