//! `wireshark/scps.lua` in tshark: it reads every capture of the reference implementation, protected transfers and datagrams of every kind without an error,
//! and shows what is in them. Skipped with a word where tshark is not installed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_wire::ipv4::Ipv4;
use scps_wire::pcap::Writer;
use scps_wire::Instant;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What tshark says of a capture, or `None`, with the reason printed, if there is no tshark.
fn tshark(file: &Path, options: &[&str]) -> Option<String> {
    let script = format!("lua_script:{}", folder().join("wireshark/scps.lua").display());
    let Ok(output) = Command::new("tshark").args(["-X", &script, "-r"]).arg(file).args(options).output() else {
        eprintln!("skipped: tshark is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !errors.contains("Lua"), "{}: {errors}", file.display());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("Lua Error"), "{}: {text}", file.display());
    Some(text)
}

/// A capture of raw IPv4 packets with these payloads, each of protocol `protocol`.
fn capture(name: &str, protocol: u8, payloads: &[Vec<u8>]) -> PathBuf {
    let mut writer = Writer::new();
    for (number, payload) in payloads.iter().enumerate() {
        let mut packet = vec![0; 20];
        let (src, dst) = ([10, 8, 0, 1].into(), [10, 8, 0, 2].into());
        let header = Ipv4 {
            src,
            dst,
            protocol,
            tos: 0,
            ttl: 64,
            id: number as u16,
            dont_fragment: true,
            is_fragment: false,
            payload_len: payload.len() as u16,
        };
        header.emit(&mut packet);
        packet.extend(payload);
        writer.push(Instant::from_millis(number as u64), &packet);
    }
    let path = std::env::temp_dir().join(format!("scps-wireshark-{name}-{}.pcap", std::process::id()));
    std::fs::write(&path, writer.as_bytes()).unwrap();
    path
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect()
}

#[test]
fn every_capture_of_the_reference_is_read_without_an_error() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder().join("testdata/captures")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "pcap") {
            let Some(text) = tshark(&path, &[]) else { return };
            assert!(!text.is_empty(), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen} captures");
}

#[test]
fn fields_of_np_datagrams_are_shown() {
    // scps-np §2: N3k, N5, N6 (expanded QoS, intermediate delivery), N9 (IPv6), N12 (a path), N3c (the other profile's checksum).
    let datagrams = [
        "80 16 6b 64 72 92 72 90 90 0a 60 a8 00 00 00 00 00 00 00 00 00 00",
        "80 16 6b 5a 10 01 01 02 10 01 01 01 00 01 e2 40 ef b7 de ad be ef",
        "80 1b 6b e2 30 10 01 01 02 10 01 01 01 0a b0 d1 2a 00 00 00 00 00 00 00 00 00 00",
        "80 0c 6a 02 00 01 22 22 de ad be ef",
        "80 16 6b 64 72 92 72 90 90 0a 9f 57 00 00 00 00 00 00 00 00 00 00",
        "20 10 6b 64 72 92 72 90 90 0a ff 5d de ad be ef",
    ];
    let file = capture("fields", 118, &datagrams.map(hex));
    let fields = ["dst", "src", "path", "precedence", "hop_count", "timestamp", "checksum.good", "tpid"];
    let mut options = vec!["-T", "fields"];
    let names = fields.map(|name| format!("scps_np.{name}"));
    for name in &names {
        options.extend(["-e", name]);
    }
    let Some(text) = tshark(&file, &options) else { return };
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(
        rows,
        [
            "7292\t7290\t\t9\t10\t\t1\t6",
            "10010102\t10010101\t\t\t\t123456\t1\t6",
            "10010102\t10010101\t\t\t10\t\t1\t6",
            "\t\t00012222\t\t\t\t\t6",
            "7292\t7290\t\t9\t10\t\t0\t6",
            "7292\t7290\t\t9\t10\t\t1\t6",
        ]
    );
    std::fs::remove_file(file).unwrap();
}

#[test]
fn control_messages_and_protected_datagrams_are_named() {
    // scps-np §6.2: corruption, link outage with a quote, link available, an echo; and a datagram of SCPS-SP.
    let quote = "80 1e 6a 64 72 94 72 92 20 09 04 d2 16 2e 00 00 00 01 00 00 00 02 50 10 10 00 00 00 00 00";
    let bodies = [
        "80 0f 1b 60 72 92 72 90 0a 8a 92 13 00 00 00".to_owned(),
        format!("80 2a 1a 40 72 92 72 90 03 10 92 29 {quote}"),
        "80 0e 1a 40 72 92 72 90 05 04 88 67 72 94".to_owned(),
        "80 14 1a 40 72 92 72 90 08 00 06 fa 12 34 00 01 70 69 6e 67".to_owned(),
        "80 0c 8a 40 72 92 72 90 6a 01 02 03".to_owned(),
    ];
    let file = capture("control", 118, &bodies.map(|body| hex(&body)));
    let Some(text) = tshark(&file, &["-T", "fields", "-e", "_ws.col.Info", "-e", "scmp.checksum.good"]) else { return };
    let rows: Vec<&str> = text.lines().collect();
    let expected = [
        "corruption experienced\t",
        "link outage\t1",
        "link available\t1",
        "echo request\t1",
        "clear header 0x6a, 3 protected octets\t",
    ];
    assert_eq!(rows, expected);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn key_and_sequence_number_of_protected_segments_are_shown_in_ip_and_in_np() {
    let columns = ["_ws.col.Protocol", "scps_sp.upper", "scps_sp.key_id", "scps_sp.seq", "scps_sp.short", "ip.src"];
    let mut options = vec!["-T", "fields"];
    for column in columns {
        options.extend(["-e", column]);
    }
    for (name, far) in [("sp_in_ip", "198.18.2.1"), ("sp_in_np", "198.18.3.1")] {
        let file = folder().join(format!("testdata/protected/{name}.pcap"));
        let Some(text) = tshark(&file, &options) else { return };
        for from in ["198.18.1.1", far] {
            let rows: Vec<&str> = text.lines().filter(|row| row.ends_with(from)).collect();
            // One direction's key counts from 1, and every packet is a segment of SCPS-TP.
            let expected: Vec<String> =
                (1..=rows.len()).map(|seq| format!("SCPS-SP\t0x6a\t1\t{seq}\t\t{from}")).collect();
            assert_eq!(rows, expected, "{name}");
            assert!(rows.len() > 3, "{name}: {text}");
        }
        let Some(text) =
            tshark(&file, &["-o", "scps_sp.aead:FALSE", "-T", "fields", "-e", "scps_sp.key_id", "-e", "_ws.col.Info"])
        else {
            return;
        };
        assert!(text.lines().all(|row| row.starts_with("\tclear header 0x6a, ")), "{name}: {text}");
    }
}

#[test]
fn any_octets_are_read_without_an_error() {
    // Every beginning of a datagram that uses every field, and octets that are none.
    let whole = hex("80 1b 6b e2 30 10 01 01 02 10 01 01 01 0a b0 d1 2a 00 00 00 00 00 00 00 00 00 00");
    let mut payloads: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
    let mut state = 1u64;
    for len in 1..80 {
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        let mut octets: Vec<u8> = (0..len).map(|_| draw()).collect();
        octets[0] = 0x80;
        payloads.push(octets);
    }
    for protocol in [118, 105, 99] {
        let file = capture(&format!("any{protocol}"), protocol, &payloads);
        if tshark(&file, &["-V"]).is_none() {
            return;
        }
        std::fs::remove_file(file).unwrap();
    }
}
