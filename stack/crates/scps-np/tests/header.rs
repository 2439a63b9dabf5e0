//! Headers that are long, damaged, contradictory or made of anything.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{basic, dialect, emit, header, hex, CCSDS, RI};
use proptest::prelude::*;
use scps_np::{
    set_hop_count, Address, Addresses, BadDatagram, BasicQos, Datagram, Dialect, ExpandedQos, Header, Timestamp,
    TooBig, DATAGRAM_MAX, HEADER_MAX,
};
use scps_wire::Precedence;

#[test]
fn the_longest_datagram_has_8191_octets() {
    let header = Header { checksum: true, ..basic(0x7292, 0x7290) };
    let data = vec![7; DATAGRAM_MAX - header.emit_len()];
    let packet = emit(&header, RI, &data);
    assert_eq!((packet.len(), &packet[..2]), (8191, &[0x9f, 0xff][..]));
    assert_eq!(Datagram::parse(&packet, RI).unwrap().payload(), data);
    let mut longer = vec![0; 8192];
    assert_eq!(header.emit(RI, usize::MAX, &mut longer), Err(TooBig { len: 8192, max: 8191 }));
    assert!(longer.iter().all(|octet| *octet == 0));
}

#[test]
fn more_than_the_route_carries_is_refused() {
    let header = basic(0x7292, 0x7290);
    let mut packet = vec![0; 1501];
    assert_eq!(header.emit(RI, 1500, &mut packet), Err(TooBig { len: 1501, max: 1500 }));
    assert!(packet.iter().all(|octet| *octet == 0));
    assert_eq!(header.emit(RI, 1500, &mut packet[..1500]), Ok(()));
}

#[test]
fn the_longest_header_has_46_octets() {
    let header = Header {
        addresses: Addresses::V6 { dst: "::2".parse().unwrap(), src: "::1".parse().unwrap() },
        qos: Some(BasicQos::default()),
        hop_count: Some(1),
        timestamp: Some(Timestamp::Milliseconds(1)),
        expanded_qos: Some(ExpandedQos::default()),
        intermediate_delivery: true,
        checksum: true,
        tpid: 6,
    };
    assert_eq!(header.emit_len(), HEADER_MAX);
}

#[test]
fn lengths_that_contradict_the_frame_are_refused() {
    let n2 = hex("80 0c 6a 40 72 90 72 92 de ad be ef");
    assert_eq!(Datagram::parse(&n2[..11], RI), Err(BadDatagram::Length));
    assert_eq!(Datagram::parse(&[], RI), Err(BadDatagram::Length));
    // A length shorter than the header, and one shorter than any header.
    for len in [2, 5, 7] {
        let mut short = n2.clone();
        short[1] = len;
        assert_eq!(Datagram::parse(&short, RI), Err(BadDatagram::Length), "{len}");
    }
    // The reference delivers 247 octets of such a frame (scps-np §3).
    let mut claims = n2;
    claims[1] = 255;
    assert_eq!(Datagram::parse(&claims, RI), Err(BadDatagram::Length));
}

#[test]
fn octets_behind_the_stated_length_are_ignored() {
    let frame = hex("80 0c 6a 40 72 90 72 92 de ad be ef 55 55 55");
    assert_eq!(Datagram::parse(&frame, RI).unwrap().payload(), hex("de ad be ef"));
}

#[test]
fn another_version_is_refused() {
    let mut frame = hex("80 0c 6a 40 72 90 72 92 de ad be ef");
    for vpi in (0..8u8).filter(|vpi| *vpi != 0b100) {
        frame[0] = vpi << 5;
        assert_eq!(Datagram::parse(&frame, RI), Err(BadDatagram::Version), "{vpi}");
    }
    frame[0] = 0x20;
    assert!(Datagram::parse(&frame, CCSDS).is_ok());
}

#[test]
fn reserved_bits_of_octets_3_and_4_are_refused() {
    let frame = hex("80 0c 6a 41 72 90 72 92 de ad be ef");
    assert_eq!(Datagram::parse(&frame, RI), Err(BadDatagram::Reserved(3)));
    for bit in [0x80, 0x08, 0x04, 0x02, 0x01u8] {
        let mut frame = hex("80 0d 6a c0 10 72 90 72 92 de ad be ef");
        assert!(Datagram::parse(&frame, RI).is_ok());
        frame[4] |= bit;
        assert_eq!(Datagram::parse(&frame, RI), Err(BadDatagram::Reserved(4)), "{bit:02x}");
    }
}

#[test]
fn the_reserved_bit_of_octet_2_is_ignored() {
    let frame = hex("80 0c 6e 40 72 90 72 92 de ad be ef");
    assert_eq!(Datagram::parse(&frame, RI).unwrap().header, basic(0x7290, 0x7292));
}

#[test]
fn contradictory_address_forms_are_refused() {
    let both = hex("80 0d 6a c2 40 72 90 72 92 de ad be ef");
    assert_eq!(Datagram::parse(&both, RI), Err(BadDatagram::Address));
    let source_alone = hex("80 0a 68 40 72 90 de ad be ef");
    assert_eq!(Datagram::parse(&source_alone, RI), Err(BadDatagram::Address));
}

#[test]
fn optional_control_octets_are_there_only_if_they_say_something() {
    let plain = Header { tpid: 6, ..Header::default() };
    assert_eq!(emit(&plain, RI, &[]), hex("80 03 60"));
    let hop = Header { hop_count: Some(3), ..plain };
    assert_eq!(emit(&hop, RI, &[]), hex("80 05 68 20 03"));
    let copy = Header { intermediate_delivery: true, ..plain };
    assert_eq!(emit(&copy, RI, &[]), hex("80 05 68 80 10"));
    // What nobody needs to send is read all the same.
    assert_eq!(Datagram::parse(&hex("80 05 68 80 00"), RI).unwrap().header, plain);
}

#[test]
fn data_are_not_covered_by_the_checksum() {
    let mut packet = emit(&Header { checksum: true, ..basic(0x7292, 0x7290) }, RI, &[0; 8]);
    let end = packet.len() - 1;
    packet[end] ^= 0x55;
    assert!(Datagram::parse(&packet, RI).is_ok());
}

#[test]
fn a_checksum_may_be_required() {
    let strict = Dialect { require_checksum: true, ..RI };
    let header = basic(0x7292, 0x7290);
    assert_eq!(Datagram::parse(&emit(&header, RI, &[]), strict), Err(BadDatagram::Checksum));
    assert!(Datagram::parse(&emit(&Header { checksum: true, ..header }, RI, &[]), strict).is_ok());
}

#[test]
fn a_hop_count_is_changed_only_where_there_is_one() {
    let mut packet = emit(&basic(0x7292, 0x7290), RI, &[1, 2, 3]);
    let before = packet.clone();
    assert!(!set_hop_count(&mut packet, 3, RI));
    assert_eq!(packet, before);
}

#[test]
fn every_combination_of_fields_and_forms_is_read_as_written() {
    let v6 = |end: u16| format!("2001:db8::{end}").parse().unwrap();
    let forms = [
        Addresses::None,
        Addresses::Path(Address::Basic(0x55b2)),
        Addresses::Path(Address::Extended(0x0001_2222)),
        Addresses::Path(Address::V6(v6(3))),
        Addresses::Basic { dst: 0x7292, src: 0x7290 },
        Addresses::Extended { dst: 0x0a00_0001, src: 0x0a00_0002 },
        Addresses::V6 { dst: v6(1), src: v6(2) },
    ];
    let stamps = [
        None,
        Some(Timestamp::Seconds(0x01_e240)),
        Some(Timestamp::Undefined(5)),
        Some(Timestamp::Milliseconds(u32::MAX)),
    ];
    for (addresses, timestamp, bits) in
        forms.iter().flat_map(|f| stamps.iter().flat_map(move |t| (0..32u8).map(move |bits| (*f, *t, bits))))
    {
        let has = |bit: u8| bits & bit != 0;
        let header = Header {
            tpid: 6,
            addresses,
            qos: has(1).then(|| BasicQos::of(Precedence::HIGHEST)),
            hop_count: has(2).then_some(10),
            timestamp,
            expanded_qos: has(4).then_some(ExpandedQos { ip_precedence: 5, ip_tos: 8 }),
            intermediate_delivery: has(8),
            checksum: has(16),
        };
        for dialect in [RI, CCSDS] {
            let packet = emit(&header, dialect, &[1, 2, 3]);
            let datagram = Datagram::parse(&packet, dialect).unwrap();
            assert_eq!((datagram.header, datagram.payload()), (header, &[1, 2, 3][..]));
        }
    }
}

/// Octets whose parse gets somewhere: a right version and a length that fits.
fn nearly_a_datagram() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 3..80).prop_map(|mut octets| {
        octets[0] = 0x80;
        octets[1] = octets.len() as u8;
        octets[2] &= 0xfe;
        octets
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(header in header(), dialect in dialect(), data in proptest::collection::vec(any::<u8>(), 0..40)) {
        let packet = emit(&header, dialect, &data);
        prop_assert_eq!(packet.len(), header.emit_len() + data.len());
        let datagram = Datagram::parse(&packet, dialect).unwrap();
        prop_assert_eq!(datagram.header, header);
        prop_assert_eq!(datagram.payload(), &data[..]);
        prop_assert_eq!(Datagram::parse_quote(&packet, dialect).unwrap(), (header, &data[..]));
    }

    #[test]
    fn any_octets_are_read_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..65), dialect in dialect()) {
        let _ = Datagram::parse(&octets, dialect);
        let _ = Datagram::parse_quote(&octets, dialect);
        let _ = set_hop_count(&mut octets.clone(), 1, dialect);
    }

    #[test]
    fn what_is_read_is_written_the_same_way(octets in nearly_a_datagram()) {
        if let Ok(datagram) = Datagram::parse(&octets, RI) {
            prop_assert!(datagram.header_len() + datagram.payload().len() == octets.len());
            let again = emit(&datagram.header, RI, datagram.payload());
            let read = Datagram::parse(&again, RI).unwrap();
            prop_assert_eq!((read.header, read.payload()), (datagram.header, datagram.payload()));
            prop_assert!(again.len() <= octets.len(), "the shortest form");
        }
    }

    #[test]
    fn one_flipped_bit_of_a_field_is_detected(header in header(), dialect in dialect(), choice in any::<proptest::sample::Index>()) {
        let header = Header { checksum: true, ..header };
        let mut packet = emit(&header, dialect, &[]);
        let control = 3 + usize::from(packet[2] & 8 != 0) + usize::from(packet[2] & 8 != 0 && packet[3] & 0x80 != 0);
        let bit = control * 8 + choice.index((packet.len() - control) * 8);
        packet[bit / 8] ^= 0x80 >> (bit % 8);
        prop_assert_eq!(Datagram::parse(&packet, dialect), Err(BadDatagram::Checksum));
    }

    #[test]
    fn a_forwarded_header_verifies_and_differs_in_the_hop_count(header in header(), dialect in dialect(), hop in any::<u8>()) {
        let mut packet = emit(&header, dialect, &[1, 2, 3]);
        let before = packet.clone();
        if set_hop_count(&mut packet, hop, dialect) {
            let read = Datagram::parse(&packet, dialect).unwrap();
            prop_assert_eq!(read.header, Header { hop_count: Some(hop), ..header });
        } else {
            prop_assert!(header.hop_count.is_none());
            prop_assert_eq!(packet, before);
        }
    }
}
