//! Every packet of the captures decodes, and the tools of others read what we write.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_channel::ErrorModel;
use scps_np::scmp::Message;
use scps_np::{Addresses, Dialect, Header, DATAGRAM_MAX};
use scps_sim::{Impairment, LinkConfig, Transfer};
use scps_tp::{Config, RouteConfig};
use scps_wire::ipv4::Ipv4;
use scps_wire::pcap::Writer;
use scps_wire::tcp::{Tcp, Verify};
use scps_wire::{Bitrate, Duration, Instant};
use std::path::PathBuf;
use std::process::Command;

fn scps(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_scps")).args(args).output().unwrap()
}

#[test]
fn every_packet_of_the_captures_decodes() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captures");
    let mut packets = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "pcap") {
            let output = scps(&["decode", "--strict", path.to_str().unwrap()]);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{}: {text}", path.display());
            packets += text.lines().count();
        }
    }
    assert!(packets > 2000, "{packets}");
}

#[test]
fn lines_name_what_a_packet_carries() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captures");
    let text = |name: &str| String::from_utf8(scps(&["decode", folder.join(name).to_str().unwrap()]).stdout).unwrap();
    assert!(text("raw_default.pcap").contains("scps caps 0x40 id 0"));
    assert!(text("raw_loss_rate.pcap").contains("snack hole of 1 at +0"));
    assert!(text("raw_record.pcap").contains("record-end"));
    assert!(text("raw_bets.pcap").contains("bets-permitted(16)"));
    assert!(text("raw_comp.pcap").contains("compressed id"));
    assert!(text("udp_default.pcap").contains("udp [ "));
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 20];
    let header = Ipv4 {
        src: [10, 8, 0, 1].into(),
        dst: [10, 8, 0, 2].into(),
        protocol,
        tos: 0,
        ttl: 64,
        id: 0,
        dont_fragment: true,
        is_fragment: false,
        payload_len: payload.len() as u16,
    };
    header.emit(&mut packet);
    [packet, payload.to_vec()].concat()
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut datagram = [7168u16, 7168, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    datagram
}

fn np(tpid: u8, payload: &[u8]) -> Vec<u8> {
    let addresses = Addresses::Basic { dst: 0x7292, src: 0x7290 };
    let header = Header { tpid, addresses, hop_count: Some(9), checksum: true, ..Header::default() };
    let mut datagram = vec![0; header.emit_len()];
    datagram.extend(payload);
    header.emit(Dialect::default(), DATAGRAM_MAX, &mut datagram).unwrap();
    datagram
}

/// Decodes packets of a link type, of which at most `longest` octets each were captured; how it ended, and its lines.
fn decoded(link_type: u8, packets: &[Vec<u8>], longest: usize) -> (bool, Vec<String>) {
    let mut writer = Writer::new();
    for packet in packets {
        writer.push(Instant::ZERO, packet);
    }
    let mut file = snapped(writer.as_bytes(), longest);
    file[20] = link_type;
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.pcap");
    std::fs::write(&path, file).unwrap();
    let output = scps(&["decode", "--strict", path.to_str().unwrap()]);
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (output.status.success(), lines)
}

#[test]
fn fragments_are_named_and_not_malformed() {
    let datagram = udp(&[7; 24]);
    let fragments = [(0x20, 0, &datagram[..16]), (0, 2, &datagram[16..])].map(|(more, offset, octets)| {
        let mut packet = ipv4(17, octets);
        // RFC 791 section 3.1: flags and offset; a header checksum of 0 is taken as not computed.
        packet[6..8].copy_from_slice(&[more, offset]);
        packet[10..12].fill(0);
        packet
    });
    let lines = [1, 2].map(|number| format!("{number} 0.000000 10.8.0.1 > 10.8.0.2 ip=17 fragment, 16 bytes"));
    assert_eq!(decoded(101, &fragments, usize::MAX), (true, lines.to_vec()));
}

/// A PDU of SCPS-SP: clear header 0x6a, key 513, sequence number 7, 21 protected octets, tag.
fn sp_pdu() -> Vec<u8> {
    [&[0x6a, 2, 1, 0, 0, 0, 0, 0, 7][..], &[0xee; 21 + 16]].concat()
}

#[test]
fn what_is_clear_of_sp_is_named_however_it_is_carried() {
    let pdu = sp_pdu();
    let sp = "sp of tp clear 0x6a key 513 seq 7 protected 21";
    let in_np = format!("7290 > 7292 np=8 hops 9 {sp}");
    let packets =
        [ipv4(99, &pdu), ipv4(118, &np(8, &pdu)), ipv4(17, &udp(&ipv4(99, &pdu))), ipv4(17, &udp(&np(8, &pdu)))];
    let ends = "0.000000 10.8.0.1 > 10.8.0.2";
    let ports = "0.000000 10.8.0.1:7168 > 10.8.0.2:7168 udp";
    let expected = [
        format!("1 {ends} ip=99 {sp}"),
        format!("2 {ends} ip=118 [ {in_np} ]"),
        format!("3 {ports} [ 10.8.0.1 > 10.8.0.2 ip=99 {sp} ]"),
        format!("4 {ports} [ {in_np} ]"),
    ];
    assert_eq!(decoded(101, &packets, usize::MAX), (true, expected.to_vec()));
    // The heads of all four are in the first 70 octets.
    let (is_well, lines) = decoded(101, &packets, 70);
    assert!(is_well);
    for (line, whole) in lines.iter().zip(&expected) {
        assert_eq!(line.split(" [cut: ").next(), Some(whole.as_str()));
    }
    assert_eq!(decoded(147, &[np(8, &pdu)], usize::MAX), (true, vec![format!("1 0.000000 {in_np}")]));
    // However short, a packet is one line.
    for longest in 0..75 {
        assert_eq!(decoded(101, &packets, longest).1.len(), 4, "{longest}");
    }
    // An octet that two variants of the clear header read differently, and one that none reads.
    let clear = |octet: u8| decoded(101, &[ipv4(99, &[&[octet][..], &sp_pdu()[1..]].concat())], usize::MAX).1;
    assert!(clear(0x69)[0].contains("sp of compressed or tp clear 0x69"), "{:?}", clear(0x69));
    assert!(clear(0xff)[0].contains("sp of an unknown protocol clear 0xff"), "{:?}", clear(0xff));
}

#[test]
fn datagrams_of_np_and_their_control_messages_are_named() {
    let tcp = [&[4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0x10, 0, 0, 0, 0, 0][..], b"data"].concat();
    let segment = np(6, &tcp);
    let mut quench = Vec::new();
    Message::SourceQuench(&segment).emit(true, &mut quench);
    let (is_well, lines) = decoded(147, &[segment, np(1, &quench), np(1, &[200, 3, 0, 0])], usize::MAX);
    assert!(is_well, "{lines:?}");
    assert_eq!(
        lines,
        [
            "1 0.000000 7290 > 7292 np=6 hops 9 1234 > 5678 . seq 1:5(4) ack 2 win 4096",
            "2 0.000000 7290 > 7292 np=1 hops 9 scmp source quench of [ 7290 > 7292 np=6 hops 9 ]",
            "3 0.000000 7290 > 7292 np=1 hops 9 scmp type 200 code 3",
        ]
    );
}

#[test]
fn damaged_datagrams_are_malformed_and_any_octets_are_one_line() {
    let mut damaged = np(8, &sp_pdu());
    damaged[5] ^= 1;
    let short = ipv4(99, &sp_pdu()[..24]);
    assert_eq!(decoded(147, &[damaged], usize::MAX), (false, vec!["1 malformed: bad header checksum".to_owned()]));
    assert_eq!(decoded(101, &[short], usize::MAX), (false, vec!["1 malformed: truncated".to_owned()]));
    let whole = np(1, &[3, 4, 0, 0, 5, 220, 0x80]);
    let mut packets = Vec::new();
    for at in 0..whole.len() {
        packets.push(whole[..at].to_vec());
        for value in [0, 0x08, 0x7f, 0x88, 0xff] {
            let mut packet = whole.clone();
            packet[at] = value;
            packets.push(ipv4(118, &packet));
            packets.push(ipv4(17, &udp(&packet)));
        }
    }
    for link_type in [101, 147] {
        assert_eq!(decoded(link_type, &packets, usize::MAX).1.len(), packets.len());
    }
}

/// A capture as a snap length would have made it.
fn snapped(file: &[u8], longest: usize) -> Vec<u8> {
    let mut out = file[..24].to_vec();
    let mut rest = &file[24..];
    while rest.len() >= 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let kept = length.min(longest);
        out.extend_from_slice(&rest[..8]);
        out.extend_from_slice(&(kept as u32).to_le_bytes());
        out.extend_from_slice(&rest[12..16 + kept]);
        rest = &rest[16 + length..];
    }
    out
}

#[test]
fn packets_cut_by_a_snap_length_show_what_is_there() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captures");
    let scratch = tempfile::tempdir().unwrap();
    for name in ["raw_default.pcap", "raw_comp.pcap", "udp_default.pcap", "fp_tcp_getput.pcap"] {
        let file = std::fs::read(folder.join(name)).unwrap();
        assert!(matches!(file[..4], [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1]), "{name}: not little-endian");
        let lines = |octets: &[u8]| {
            let path = scratch.path().join("cut.pcap");
            std::fs::write(&path, octets).unwrap();
            let output = scps(&["decode", "--strict", path.to_str().unwrap()]);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let whole = lines(&file);
        // All headers are there: a line says the same, and that it is cut.
        let mut cut = 0;
        for (line, expected) in lines(&snapped(&file, 150)).iter().zip(&whole) {
            let shown = line.split(" [cut: ").next().unwrap();
            assert_eq!(shown, expected, "{name}");
            cut += usize::from(line.contains(" [cut: 150 of "));
        }
        assert!(cut > 0, "{name}: nothing was cut");
        // However short, a packet is one line and nobody falls over.
        for longest in 0..80 {
            assert_eq!(lines(&snapped(&file, longest)).len(), whole.len(), "{name} cut to {longest}");
        }
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_fault() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captures/raw_default.pcap");
    let mut child = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["decode", file.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Nobody reads at all.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_wrong_file_is_named() {
    let output = scps(&["decode", env!("CARGO_BIN_EXE_scps")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("classic pcap"));
}

/// What tshark says of a simulated lossy transfer, beside the packets themselves.
struct Dissection {
    packets: Vec<Vec<u8>>,
    malformed: Vec<bool>,
    checksum_status: Vec<String>,
    verbose: String,
}

fn dissect(config: &Config) -> Dissection {
    let route = RouteConfig::default();
    let link = LinkConfig {
        rate: Some(Bitrate::from_bps(2_000_000)),
        delay: Duration::from_millis(50),
        impairment: Impairment { errors: Some(ErrorModel::Independent { ber: 1e-5 }), ..Impairment::default() },
        ..LinkConfig::default()
    };
    let transfer = Transfer {
        bytes: 200_000,
        sender: config.clone(),
        receiver: config.clone(),
        routes: [route, route],
        networks: Default::default(),
        links: [link.clone(), link],
        seed: 2,
        limit: Duration::from_secs(100),
    };
    let network = transfer.run_captured();
    let mut writer = Writer::new();
    for (at, _, packet) in &network.capture {
        writer.push(*at, packet);
    }
    let name = format!("scps-tshark-{}-{}.pcap", std::process::id(), u8::from(config.snack));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, writer.as_bytes()).unwrap();
    let run = |args: &[&str]| {
        let output = Command::new("tshark").args(["-r", path.to_str().unwrap()]).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let fields =
        run(&["-o", "tcp.check_checksum:TRUE", "-T", "fields", "-e", "_ws.malformed", "-e", "tcp.checksum.status"]);
    let verbose = run(&["-V"]);
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<(&str, &str)> = fields.lines().map(|l| l.split_once('\t').unwrap_or((l, ""))).collect();
    assert_eq!(lines.len(), network.capture.len());
    Dissection {
        packets: network.capture.into_iter().map(|c| c.2).collect(),
        malformed: lines.iter().map(|l| !l.0.is_empty()).collect(),
        checksum_status: lines.iter().map(|l| l.1.to_owned()).collect(),
        verbose,
    }
}

fn has_snack(packet: &[u8]) -> bool {
    let (ip, payload) = Ipv4::parse(packet).unwrap();
    let (tcp, _) = Tcp::parse(payload, ip.src, ip.dst, Verify::Trusted).unwrap();
    tcp.options.snack.is_some()
}

#[test]
fn tshark_names_every_option_and_finds_nothing_malformed() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    // The dissector knows the short SNACK only.
    let snack = dissect(&Config::modern().bets(true).snack_long(false));
    let sack = dissect(&Config::modern().snack(false));
    for d in [&snack, &sack] {
        // 1 is "good" in fields, 2 "unverified" where tshark does not look.
        assert!(d.checksum_status.iter().all(|s| s == "1" || s == "2" || s == "Good"), "{:?}", d.checksum_status);
        assert!(!d.verbose.contains("TCP Option - Unknown"));
        assert!(d.verbose.contains("TCP Option - SCPS capabilities"));
        for name in ["Maximum segment size", "Window scale", "SACK permitted", "Timestamps"] {
            assert!(d.verbose.contains(&format!("TCP Option - {name}")), "{name}");
        }
    }
    assert!(sack.malformed.iter().all(|m| !m));
    assert!(sack.verbose.contains("TCP Option - SACK"));
    assert!(snack.verbose.contains("TCP Option - Selective Negative Acknowledgment"));
    // tshark 4.0 fails inside its own SNACK code, on the reference's segments as on ours, and calls that malformed; every
    // other segment must be well formed to it.
    let unexpected = snack.packets.iter().zip(&snack.malformed).filter(|(p, m)| **m && !has_snack(p)).count();
    assert_eq!(unexpected, 0);
}
