//! The worked examples of scps-np §2, both ways, and what the reference does with headers.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{basic, emit, hex, CCSDS, RI};
use scps_np::{
    set_hop_count, Address, Addresses, BadDatagram, BasicQos, Datagram, Dialect, ExpandedQos, Header, Timestamp,
};
use scps_wire::Precedence;

const DATA: &[u8] = &[0xde, 0xad, 0xbe, 0xef];
const ZEROS: &[u8] = &[0; 10];

fn nine() -> BasicQos {
    BasicQos::of(Precedence::new(9).unwrap())
}

fn extended() -> Header {
    Header { tpid: 6, addresses: Addresses::Extended { dst: 0x1001_0102, src: 0x1001_0101 }, ..Header::default() }
}

/// Name, header, dialect, user data, octets of the header.
fn examples() -> Vec<(&'static str, Header, Dialect, &'static [u8], &'static str)> {
    let to_90 = basic(0x7292, 0x7290);
    let n3 = Header { qos: Some(nine()), hop_count: Some(10), ..to_90 };
    let path = |address| Header { tpid: 6, addresses: Addresses::Path(address), ..Header::default() };
    let n5 = Header { timestamp: Some(Timestamp::Milliseconds(0x0001_e240)), checksum: true, ..extended() };
    let n6 = Header {
        hop_count: Some(10),
        expanded_qos: Some(ExpandedQos { ip_precedence: 5, ip_tos: 8 }),
        intermediate_delivery: true,
        checksum: true,
        ..extended()
    };
    let v6 = |end: u16| format!("2001:db8::{end}").parse().unwrap();
    vec![
        ("N1", path(Address::Basic(0x55b2)), RI, DATA, "80 09 62 55 b2"),
        ("N2", basic(0x7290, 0x7292), RI, DATA, "80 0c 6a 40 72 90 72 92"),
        ("N3", n3, RI, ZEROS, "80 14 6a 64 72 92 72 90 90 0a"),
        ("N3k", Header { checksum: true, ..n3 }, RI, ZEROS, "80 16 6b 64 72 92 72 90 90 0a 60 a8"),
        ("N4", Header { hop_count: Some(10), ..path(Address::Basic(0x55b2)) }, RI, DATA, "80 0b 6a 20 55 b2 0a"),
        ("N5", n5, RI, DATA, "80 16 6b 5a 10 01 01 02 10 01 01 01 00 01 e2 40 ef b7"),
        (
            "N5z",
            Header { timestamp: Some(Timestamp::Milliseconds(0)), ..n5 },
            RI,
            ZEROS,
            "80 1c 6b 5a 10 01 01 02 10 01 01 01 00 00 00 00 0d 7c",
        ),
        ("N6", n6, RI, ZEROS, "80 1b 6b e2 30 10 01 01 02 10 01 01 01 0a b0 d1 2a"),
        (
            "N7",
            Header { timestamp: Some(Timestamp::Seconds(0x0001_e240)), ..to_90 },
            RI,
            DATA,
            "80 0f 6a 48 72 92 72 90 01 e2 40",
        ),
        ("N8", Header { tpid: 5, ..basic(0x8001, 0x7292) }, RI, DATA, "80 0c 5a 40 80 01 72 92"),
        (
            "N9",
            Header {
                tpid: 6,
                addresses: Addresses::V6 { dst: v6(1), src: v6(2) },
                hop_count: Some(10),
                ..Header::default()
            },
            RI,
            DATA,
            "80 2a 6a e0 40 20010db8000000000000000000000001 20010db8000000000000000000000002 0a",
        ),
        ("N10", Header { hop_count: Some(10), checksum: true, ..to_90 }, RI, ZEROS, "80 15 6b 60 72 92 72 90 0a da 98"),
        ("N11", Header { checksum: true, ..n3 }, CCSDS, DATA, "20 10 6b 64 72 92 72 90 90 0a ff 5d"),
        ("N12", path(Address::Extended(0x0001_2222)), RI, DATA, "80 0c 6a 02 00 01 22 22"),
    ]
}

#[test]
fn parameters_of_the_examples_give_exactly_their_octets() {
    for (name, header, dialect, data, octets) in examples() {
        assert_eq!(emit(&header, dialect, data), [hex(octets), data.to_vec()].concat(), "{name}");
    }
}

#[test]
fn octets_of_the_examples_give_exactly_their_parameters() {
    for (name, header, dialect, data, octets) in examples() {
        let frame = [hex(octets), data.to_vec()].concat();
        let datagram = Datagram::parse(&frame, dialect).unwrap();
        assert_eq!((datagram.header, datagram.payload()), (header, data), "{name}");
    }
}

#[test]
fn forwarding_changes_the_hop_count_and_the_checksum_alone() {
    // N13.
    let mut frame = [hex("80 0f 6b 60 72 94 72 92 05 d5 96"), DATA.to_vec()].concat();
    assert_eq!(Datagram::parse(&frame, RI).unwrap().header.hop_count, Some(5));
    assert!(set_hop_count(&mut frame, 4, RI));
    assert_eq!(frame, [hex("80 0f 6b 60 72 94 72 92 04 d4 96"), DATA.to_vec()].concat());
}

#[test]
fn the_complemented_checksum_is_the_other_profiles() {
    // N3c: the version of one profile, the checksum of the other.
    let n3c = [hex("80 16 6b 64 72 92 72 90 90 0a 9f 57"), ZEROS.to_vec()].concat();
    assert_eq!(Datagram::parse(&n3c, RI), Err(BadDatagram::Checksum));
    let mut n3k = [hex("80 16 6b 64 72 92 72 90 90 0a 60 a8"), ZEROS.to_vec()].concat();
    assert!(Datagram::parse(&n3k, RI).is_ok());
    // In Ccsds the sum as it is is refused.
    n3k[0] = 0x20;
    let sum = 0x60a8 - 0x6000;
    n3k[10..12].copy_from_slice(&u16::to_be_bytes(sum));
    assert_eq!(Datagram::parse(&n3k, CCSDS), Err(BadDatagram::Checksum));
    n3k[10..12].copy_from_slice(&u16::to_be_bytes(!sum));
    assert!(Datagram::parse(&n3k, CCSDS).is_ok());
}

#[test]
fn a_checksum_with_its_octets_swapped_is_accepted_where_that_is_set() {
    // scps-np §11 quirk 8: what a router of the reference makes of N13.
    let frame = [hex("80 0f 6b 60 72 94 72 92 04 96 d4"), DATA.to_vec()].concat();
    assert_eq!(Datagram::parse(&frame, RI), Err(BadDatagram::Checksum));
    assert!(Datagram::parse(&frame, Dialect { accept_swapped_checksum: true, ..RI }).is_ok());
}

#[test]
fn precedence_follows_the_addresses_in_every_form() {
    let v6 = |end: u16| format!("2001:db8::{end}").parse().unwrap();
    let forms = [
        (Addresses::Path(Address::Basic(0x55b2)), 6),
        (Addresses::Path(Address::Extended(0x0001_2222)), 8),
        (Addresses::Basic { dst: 0x7292, src: 0x7290 }, 8),
        (Addresses::Extended { dst: 0x0a00_0001, src: 0x0a00_0002 }, 12),
        (Addresses::V6 { dst: v6(1), src: v6(2) }, 37),
    ];
    for (addresses, at) in forms {
        for precedence in Precedence::all() {
            let qos = Some(BasicQos::of(precedence));
            let header = Header { tpid: 6, addresses, qos, hop_count: Some(1), ..Header::default() };
            let packet = emit(&header, RI, DATA);
            assert_eq!(packet[at], precedence.level() << 4);
            assert_eq!(Datagram::parse(&packet, RI).unwrap().header.qos, qos);
        }
    }
}

#[test]
fn captures_of_1997_have_the_qos_octet_behind_the_timestamp() {
    let legacy = Dialect { legacy_bqos_after_ts: true, ..RI };
    let header = Header { qos: Some(nine()), timestamp: Some(Timestamp::Seconds(0x01_e240)), ..basic(0x7292, 0x7290) };
    let packet = emit(&header, legacy, DATA);
    assert_eq!(packet[8..12], [0x01, 0xe2, 0x40, 0x90]);
    assert_eq!(Datagram::parse(&packet, legacy).unwrap().header, header);
}
