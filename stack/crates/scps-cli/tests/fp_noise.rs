//! A minute of rubbish on the control port of a server as a process: it goes on serving, and its memory does not grow.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod fp_common;

use fp_common::{folders, run, Server};
use scps_wire::Seed;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
/// Sessions that fill a server's tables and buffers before its memory is looked at.
const WARM_UP: Duration = Duration::from_secs(10);
/// Connections at a time.
const WIDTH: usize = 8;
/// Bounds of one session's buffers, for as many sessions as there are at a time, and the allocator's own unevenness.
const GROWTH_MAX_KB: u64 = 4096;

/// Resident memory of a process in KiB.
fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sends a burst and reads what there is; false once the server has ended the session.
fn babble(stream: &mut TcpStream, octets: &[u8]) -> bool {
    let mut replies = vec![0; 65_536];
    match stream.write(octets) {
        Err(e) if e.kind() != std::io::ErrorKind::WouldBlock => return false,
        _ => {}
    }
    match stream.read(&mut replies) {
        Ok(n) => n > 0,
        Err(e) => e.kind() == std::io::ErrorKind::WouldBlock,
    }
}

#[test]
#[ignore = "takes a minute: make -C stack noise"]
fn a_minute_of_random_octets_costs_no_memory() {
    let folders = folders();
    let server = Server::open(&folders, 0);
    let mut rng = Seed::from_u64(82).stream("rubbish");
    let mut streams: Vec<Option<TcpStream>> = (0..WIDTH).map(|_| None).collect();
    let (start, mut before_kb, mut most_kb, mut sessions, mut sent) = (Instant::now(), 0, 0, 0u64, 0u64);
    while start.elapsed() < WARM_UP + MINUTE {
        for slot in &mut streams {
            let stream = slot.get_or_insert_with(|| {
                sessions += 1;
                let stream = TcpStream::connect(server.address).unwrap();
                stream.set_nonblocking(true).unwrap();
                stream
            });
            let mut octets = vec![0; 1 + rng.below(8192) as usize];
            rng.fill(&mut octets);
            // Lines that end, and now and then a peer that vanishes.
            if rng.below(2) == 0 {
                octets.push(b'\n');
            }
            sent += octets.len() as u64;
            if !babble(stream, &octets) || rng.below(200) == 0 {
                *slot = None;
            }
        }
        let now_kb = resident_kb(server.child.id());
        if start.elapsed() < WARM_UP {
            before_kb = now_kb.max(before_kb);
        }
        most_kb = most_kb.max(now_kb);
    }
    drop(streams);
    let values = run(&folders, server.address, "noop; pwd");
    println!("{sent} octets in {sessions} sessions; {before_kb} KiB after ten seconds, {most_kb} KiB at most");
    assert!(values.iter().all(|v| v["status"] == "complete"), "{values:?}");
    assert!(sessions > 100 && sent > 10_000_000, "{sent} octets in {sessions} sessions test nothing");
    assert!(most_kb <= before_kb + GROWTH_MAX_KB, "{before_kb} KiB grew to {most_kb} KiB");
}
