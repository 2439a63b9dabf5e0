//! `scps send --qlog` and `scps recv --qlog` through a relay that loses packets, read by the qlog crate.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use qlog::events::quic::{AckedRanges, PacketLost, QuicFrame};
use qlog::events::EventData;
use qlog::reader::{Event, QlogSeqReader};
use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn scps(words: &str, folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(words.split_whitespace())
        .args(["--timeout-s", "60", "--driver", "udp"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Hands on what comes from either end; of the first end's large packets every 25th is lost. Ends when nothing came for long.
fn relay(ends: [UdpSocket; 2], to: [String; 2]) -> std::thread::JoinHandle<u64> {
    let hand_on = |from: UdpSocket, out: UdpSocket, to: String, may_lose: bool| {
        std::thread::spawn(move || {
            let (mut large, mut lost, mut buffer) = (0, 0, vec![0; 65_536]);
            from.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            while let Ok(len) = from.recv(&mut buffer) {
                large += u64::from(len > 500);
                if may_lose && len > 500 && large % 25 == 0 {
                    lost += 1;
                } else {
                    let _ = out.send_to(&buffer[..len], &to);
                }
            }
            lost
        })
    };
    let [a, b] = ends;
    let [to_a, to_b] = to;
    drop(hand_on(b.try_clone().unwrap(), a.try_clone().unwrap(), to_a, false));
    hand_on(a, b, to_b, true)
}

fn events(path: &Path) -> (qlog::QlogSeq, Vec<qlog::events::Event>) {
    let records = std::fs::read_to_string(path).unwrap();
    let reader = QlogSeqReader::new(Box::new(std::io::Cursor::new(records.clone()))).unwrap();
    let header = reader.qlog.clone();
    let events: Vec<_> = reader
        .map(|event| match event {
            Event::Qlog(event) => event,
            Event::Json(event) => panic!("unknown event {event:?}"),
        })
        .collect();
    // The reader passes over what it cannot read: there is nothing of that kind beside the header.
    assert_eq!(events.len(), records.matches('\u{1e}').count() - 1);
    (header, events)
}

/// A row for each change of windows or round trip, and none else.
fn states_are_those_of_the_trace(folder: &Path, [near, far]: [String; 2]) {
    let trace = std::fs::read_to_string(folder.join("send.trace")).unwrap();
    let mut told: Vec<[u64; 3]> = trace
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| {
            let window = |name: &str| line[name].as_u64().unwrap_or(u64::from(u32::MAX));
            [window("cwnd"), window("ssthresh"), (line["srtt_s"].as_f64().unwrap_or(0.0) * 1e6 + 1e-4) as u64]
        })
        .collect();
    told.dedup();
    let content = std::fs::read(folder.join("send.states")).unwrap();
    let number = |octets: &[u8]| octets.iter().rev().fold(0, |number, octet| number << 8 | u64::from(*octet));
    let address = |octets: &[u8]| octets.iter().map(u8::to_string).collect::<Vec<_>>().join(".");
    let mut rows: Vec<[u64; 3]> = Vec::new();
    let mut last_ns = 0;
    for row in content.chunks(36) {
        assert!(number(&row[..8]) >= last_ns, "{row:?}");
        last_ns = number(&row[..8]);
        assert_eq!(
            (address(&row[8..12]), address(&row[12..16]), number(&row[18..20])),
            (near.clone(), far.clone(), 5001)
        );
        rows.push([24, 28, 32].map(|at| number(&row[at..at + 4])));
    }
    // A segment's length is no part of the trace: a row may be there for it alone.
    rows.dedup();
    assert_eq!(rows, told);
}

#[test]
fn a_qlog_reader_finds_every_packet_its_losses_and_the_windows() {
    let pid = std::process::id();
    let (high, low) = ((pid >> 8) as u8 % 64 + 192, pid as u8);
    let [near, far] = [format!("127.{high}.{low}.246"), format!("127.{high}.{low}.247")];
    let folder = tempfile::tempdir().unwrap();
    let sockets = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let at = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
    let relay = relay(sockets, [format!("{near}:7168"), format!("{far}:7168")]);
    let receiver = scps(
        &format!("recv --udp-local {far}:7168 --udp-remote {} --listen {far}:5001 --qlog recv.sqlog", at[1]),
        folder.path(),
    );
    let sender = scps(
        &format!(
            "send --udp-local {near}:7168 --udp-remote {} --local {near} --connect {far}:5001 --bytes 400000 \
             --qlog send.sqlog --trace send.trace --states send.states",
            at[0]
        ),
        folder.path(),
    );
    let [sent, received] = [sender, receiver].map(|child| child.wait_with_output().unwrap());
    assert!(sent.status.success() && received.status.success(), "{sent:?} {received:?}");
    let result: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();

    let (header, events) = events(&folder.path().join("send.sqlog"));
    assert_eq!((header.qlog_version.as_str(), header.qlog_format.as_str()), ("0.3", "JSON-SEQ"));
    let began = header.trace.common_fields.unwrap().reference_time.unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((now - began / 1000.0).abs() < 300.0, "{began}");
    assert!(events.iter().zip(&events[1..]).all(|(a, b)| a.time <= b.time));

    let mut sends: BTreeMap<u64, Option<(u64, u64)>> = BTreeMap::new();
    let (mut lost, mut acknowledged) = (Vec::new(), BTreeSet::new());
    for event in &events {
        match &event.data {
            EventData::PacketSent(packet) => {
                let frame = packet.frames.as_ref().and_then(|frames| frames.first());
                let place = frame.map(|frame| match frame {
                    QuicFrame::Stream { offset, length, .. } => (*offset, *length),
                    other => panic!("{other:?}"),
                });
                // Each sending has a number of its own, in order and without a gap.
                let number = packet.header.packet_number.unwrap();
                assert_eq!(number, sends.len() as u64);
                sends.insert(number, place);
            }
            EventData::PacketLost(PacketLost { header, trigger, .. }) => {
                assert!(trigger.is_some());
                lost.push(header.as_ref().unwrap().packet_number.unwrap());
            }
            EventData::PacketReceived(packet) => {
                for frame in packet.frames.iter().flatten() {
                    let QuicFrame::Ack { acked_ranges: Some(ranges), .. } = frame else {
                        // The peer's FIN.
                        assert!(matches!(frame, QuicFrame::Stream { length: 0, .. }), "{frame:?}");
                        continue;
                    };
                    // The reader takes pairs for lists.
                    let AckedRanges::Single(ranges) = ranges else { panic!("{ranges:?}") };
                    for range in ranges {
                        acknowledged.extend(range[0]..=range[1]);
                    }
                }
            }
            _ => {}
        }
    }
    states_are_those_of_the_trace(folder.path(), [near, far]);
    // What the trace of the same transfer says: as many losses, and the octets of every sending.
    let trace = std::fs::read_to_string(folder.path().join("send.trace")).unwrap();
    let lines: Vec<serde_json::Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |name: &str| lines.iter().filter(|line| line["event"] == name).count();
    assert!(relay.join().unwrap() >= 8 && lost.len() >= 8, "{lost:?}");
    let declared = lines.iter().filter(|l| l["event"] == "resent" && l["cause"] != "tail_probe").count();
    assert_eq!((lost.len(), lost.iter().all(|number| sends.contains_key(number))), (declared, true));
    assert_eq!(sends.len(), ["sent", "resent", "ack_sent", "probe"].map(count).iter().sum::<usize>());
    // Every octet and the FIN were acknowledged once, in the packet that carried them last.
    let covered: u64 = acknowledged.iter().filter_map(|number| sends[number].map(|(_, length)| length)).sum();
    assert_eq!((covered, result["bytes"].as_u64()), (400_001, Some(400_000)));
    // The last window is that of the last record.
    let window = events.iter().rev().find_map(|event| match &event.data {
        EventData::MetricsUpdated(metrics) => Some(metrics.congestion_window),
        _ => None,
    });
    assert_eq!(window.unwrap(), lines.last().unwrap()["cwnd"].as_u64());

    let (_, events) = self::events(&folder.path().join("recv.sqlog"));
    let of = |data: &EventData| matches!(data, EventData::PacketReceived(_));
    assert!(events.iter().filter(|event| of(&event.data)).count() > 270);
}
