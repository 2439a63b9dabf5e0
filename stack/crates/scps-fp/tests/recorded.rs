//! Sessions recorded from the MITRE reference implementation 1.1.146: our server answers that client's octets, our client
//! reads that server's, and its control files are understood.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::peer::Peer;
use common::{folders, quick, World, SERVER};
use scps_fp::ranges::{Range, ReadRequest};
use scps_fp::reply::{find_marker, find_size, Incoming, ReplyReader};
use scps_fp::update::{Edit, Update};
use std::fs;

/// The control file of the recorded UPDT.
const UPDATE: &[u8] = b"rec.txt\nrec_upd.txt\n2144744598\n\
    w\0\0\0\xbe\0\x0eRECORD five ABi\0\0\0\xcc\0\x04DCDFd\0\0\x02\xdc\0\x26i\0\0\x04\x99\0\x13\
    inserted line 30.5\n\xff\x02";
/// The control file of the recorded READ.
const READ: &[u8] = b"srv.bin\nN\n\0\x02\n100-199\n1000-1499\n\n\xff\x02";

/// What the client sent, packet by packet, and the class of the reply that followed.
const SAID: [(&[&str], char); 20] = [
    (&["USER root", "\r\n"], '2'),
    (&["TYPE I", "\r\n"], '2'),
    (&["PWD", "\r\n"], '2'),
    (&["CWD dlb/fps", "\r\n"], '2'),
    (&["SIZE srv.bin", "\r\n"], '2'),
    (&["TYPE A", "\r\n"], '2'),
    (&["TYPE I", "\r\n"], '2'),
    (&["RNFR put.bin", "\r\n"], '3'),
    (&["RNTO put2.bin", "\r\n"], '2'),
    (&["DELE put2.bin", "\r\n"], '2'),
    (&["MKD dd", "\r\n"], '2'),
    (&["RMD dd", "\r\n"], '2'),
    (&["REST 10000", "\r\n"], '3'),
    (&["ABOR\r\n"], '2'),
    (&["ARST", "\r\n"], '2'),
    (&["SYST", "\r\nSTAT\r\nSITE help\r\n"], '2'),
    (&["IDLE 100", "\r\n"], '2'),
    (&["NOOP", "\r\n"], '2'),
    (&["XYZZ", "\r\n"], '5'),
    (&["QUIT", "\r\n"], '2'),
];

/// What the server said, in one piece.
const HEARD: &[u8] = b"220 SCPS-FP server (V : C) ready.\r\n331 Need password.\r\n230 Login OK.\r\n200 BINARY\r\n\
    257 \"/root\"\r\n250 OK. CWD:/fps\r\n213 srv.bin SIZE 30000 bytes\r\n150 srv.bin BINARY.\r\n226 CRC:90C5FDA6\r\n\
    350 Next RETR or STOR will start at location 10000\r\n226 OK\r\n200 Autorestart enabled\r\n\
    211-10.77.0.2 SCPS-FP server status:\r\n211-Version  : C\r\n211-BETS: Disabled  ARST: Enabled  \r\n211 End of status\r\n\
    501 help?\r\n221 Cheers, Bye\r\n";

#[test]
fn our_server_answers_the_recorded_client() {
    let folders = folders();
    fs::create_dir_all(folders.server.join("dlb/fps")).unwrap();
    for name in ["srv.bin", "put.bin"] {
        fs::write(folders.server.join("dlb/fps").join(name), vec![7; 30_000]).unwrap();
    }
    let world = World::new();
    world.serve_open(SERVER, &folders.server, quick());
    let (mut peer, _) = Peer::connect(&world);
    for (packets, class) in SAID {
        let (last, first) = packets.split_last().unwrap();
        for packet in first {
            peer.send(packet.as_bytes());
            assert_eq!(peer.hear(), "", "{packet} is not a whole line yet");
        }
        peer.send(last.as_bytes());
        let said = peer.hear();
        assert!(said.starts_with(class), "{packets:?}: {said}");
    }
    assert!(peer.is_closed);
}

#[test]
fn our_client_reads_the_recorded_server() {
    for step in [1, 7, HEARD.len()] {
        let mut reader = ReplyReader::new();
        let mut codes = Vec::new();
        for piece in HEARD.chunks(step) {
            reader.push(piece);
            while let Some(incoming) = reader.pop() {
                let Incoming::Reply(reply) = incoming else { panic!("{incoming:?}") };
                match reply.code {
                    213 => assert_eq!(find_size(&reply.text()), Some(30_000)),
                    350 => assert_eq!(find_marker(&reply.text()), Some(10_000)),
                    _ => {}
                }
                codes.push(reply.code);
            }
        }
        assert_eq!(codes, [220, 331, 230, 200, 257, 250, 213, 150, 226, 350, 226, 200, 211, 501, 221]);
    }
}

#[test]
fn recorded_control_files_are_understood_and_written_alike() {
    let update = Update::parse(UPDATE).unwrap();
    assert_eq!((update.original.as_str(), update.target.as_str()), ("rec.txt", "rec_upd.txt"));
    let shape: Vec<(u32, bool)> =
        update.signals.iter().map(|s| (s.offset, matches!(s.edit, Edit::Insert(_)))).collect();
    assert_eq!(shape, [(190, false), (204, true), (732, false), (1177, true)]);
    assert_eq!(update.emit(), UPDATE);
    let read = ReadRequest::parse(READ).unwrap();
    assert_eq!(read.ranges, [Range { low: 100, high: 199 }, Range { low: 1000, high: 1499 }]);
    assert_eq!(read.emit(), READ);
}
