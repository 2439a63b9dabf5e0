//! Control messages: the examples of scps-np §6.2, every type and code, quotes, and any octets.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{basic, emit, hex, CCSDS, RI};
use proptest::prelude::*;
use scps_np::scmp::{quote_of, reportable_source, BadMessage, Echo, Message, Restored, Unreachable, QUOTE_MAX};
use scps_np::{tpid, Address, Addresses, BasicQos, Datagram, Header};
use scps_wire::Precedence;

/// The datagram that the examples quote.
const QUOTED: &str = "80 1e 6a 64 72 94 72 92 20 09 04 d2 16 2e 00 00 00 01 00 00 00 02 50 10 10 00 00 00 00 00";

fn octets(message: &Message<'_>, with_checksum: bool) -> Vec<u8> {
    let mut out = Vec::new();
    message.emit(with_checksum, &mut out);
    out
}

#[test]
fn the_examples_are_written_and_read_octet_by_octet() {
    let quote = hex(QUOTED);
    let ping = Echo { id: 0x1234, seq: 1, data: b"ping" };
    let restored = Restored::Destination(Address::Basic(0x7294));
    let examples = [
        (Message::Corruption, "13 00 ec ff".to_owned()),
        (Message::SourceQuench(&quote), format!("04 00 91 39 {QUOTED}")),
        (Message::Unreachable(Unreachable::LinkOutage, &quote), format!("03 10 92 29 {QUOTED}")),
        (Message::LinkAvailable(restored), "05 04 88 67 72 94".to_owned()),
        (Message::EchoRequest(ping), "08 00 06 fa 12 34 00 01 70 69 6e 67".to_owned()),
        (Message::EchoReply(ping), "00 00 0e fa 12 34 00 01 70 69 6e 67".to_owned()),
    ];
    for (message, text) in examples {
        assert_eq!(octets(&message, true), hex(&text), "{message:?}");
        assert_eq!(Message::parse(&hex(&text), RI), Ok(message));
        assert_eq!(Message::parse(&hex(&text), CCSDS), Ok(message));
    }
}

#[test]
fn a_whole_corruption_message_is_the_references() {
    let header = Header {
        tpid: tpid::SCMP,
        hop_count: Some(10),
        checksum: true,
        addresses: Addresses::Basic { dst: 0x7292, src: 0x7290 },
        ..Header::default()
    };
    let packet = emit(&header, RI, &octets(&Message::Corruption, false));
    assert_eq!(packet, hex("80 0f 1b 60 72 92 72 90 0a 8a 92 13 00 00 00"));
}

#[test]
fn a_whole_source_quench_begins_as_the_notes_have_it() {
    let quoted = hex(QUOTED);
    let precedence = Datagram::parse(&quoted, RI).unwrap().header.qos.unwrap().precedence;
    let header = Header {
        tpid: tpid::SCMP,
        qos: Some(BasicQos::of(precedence)),
        hop_count: Some(10),
        checksum: true,
        ..basic(0x7292, 0x7290)
    };
    let packet = emit(&header, RI, &octets(&Message::SourceQuench(&quoted), true));
    assert_eq!(packet[..18], hex("80 2e 1b 64 72 92 72 90 20 0a a0 bf 04 00 91 39 80 1e"));
}

#[test]
fn checksum_zero_is_absent_in_profile_ri_only() {
    let unsummed = octets(&Message::Corruption, false);
    assert_eq!(Message::parse(&unsummed, RI), Ok(Message::Corruption));
    assert_eq!(Message::parse(&unsummed, CCSDS), Err(BadMessage::Checksum));
    assert_eq!(Message::parse(&hex("13 00 ec fe"), RI), Err(BadMessage::Checksum));
}

#[test]
fn types_and_codes_nobody_defined_are_ignored() {
    let known: Vec<u8> = Unreachable::ALL.into_iter().map(Unreachable::code).chain([4]).collect();
    for (kind, code) in (0..=255u8).flat_map(|kind| (0..=255u8).map(move |code| (kind, code))) {
        let is_known = match kind {
            0 | 4 | 8 | 11 | 12 | 19 => code == 0,
            3 => known.contains(&code),
            5 => [1, 3, 4].contains(&code),
            _ => false,
        };
        let mut message = vec![kind, code, 0, 0, 0, 0, 0, 0];
        message.extend(hex(QUOTED));
        let read = Message::parse(&message, RI);
        assert_eq!(read != Err(BadMessage::Unknown), is_known, "type {kind} code {code}: {read:?}");
    }
}

#[test]
fn an_echo_is_answered_with_what_it_brought() {
    let request = Message::EchoRequest(Echo { id: 7, seq: 9, data: b"x" });
    assert_eq!(request.reply(), Some(Message::EchoReply(Echo { id: 7, seq: 9, data: b"x" })));
    assert_eq!(Message::Corruption.reply(), None);
}

#[test]
fn a_quote_ends_with_its_datagram() {
    let short = emit(&basic(0x7292, 0x7290), RI, &[1, 2, 3]);
    let frame = [short.clone(), vec![0x55; 60]].concat();
    assert_eq!(quote_of(&Datagram::parse(&frame, RI).unwrap()), short);
    let long = emit(&basic(0x7292, 0x7290), RI, &[7; 100]);
    assert_eq!(quote_of(&Datagram::parse(&long, RI).unwrap()), &long[..QUOTE_MAX]);
}

#[test]
fn no_error_is_sent_about_errors_groups_paths_and_nameless_sources() {
    let source = |header: Header, payload: &[u8]| reportable_source(&header, payload);
    let plain = basic(0x7292, 0x7290);
    let from = Some(Address::Basic(0x7290));
    assert_eq!(source(plain, b"data"), from);
    let scmp = Header { tpid: tpid::SCMP, ..plain };
    for kind in [3, 4, 5, 11, 12, 19] {
        assert_eq!(source(scmp, &[kind, 0, 0, 0]), None, "type {kind}");
    }
    assert_eq!((source(scmp, &[8, 0, 0, 0]), source(scmp, &[0, 0, 0, 0]), source(scmp, &[])), (from, from, None));
    for addresses in [
        Addresses::Basic { dst: 0x8001, src: 0x7290 },
        Addresses::Basic { dst: 0xffff, src: 0x7290 },
        Addresses::Basic { dst: 0x7292, src: 0x8001 },
        Addresses::Basic { dst: 0x7292, src: 0xffff },
        Addresses::Path(Address::Basic(0x55b2)),
        Addresses::None,
    ] {
        assert_eq!(source(Header { addresses, ..plain }, b"data"), None, "{addresses:?}");
    }
}

fn quote() -> impl Strategy<Value = Vec<u8>> {
    (common::addresses(), 0u8..16, proptest::collection::vec(any::<u8>(), 8..30)).prop_filter_map(
        "a quote names a destination",
        |(addresses, level, data)| {
            addresses.dst()?;
            let qos = Precedence::new(level).map(BasicQos::of);
            let packet = emit(&Header { tpid: 6, addresses, qos, ..Header::default() }, RI, &data);
            Some(packet[..packet.len().min(QUOTE_MAX)].to_vec())
        },
    )
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(quote in quote(), which in 0usize..11, number in any::<u16>(), data in proptest::collection::vec(any::<u8>(), 0..20)) {
        let destination = Datagram::parse_quote(&quote, RI).unwrap().0.addresses.dst().unwrap();
        let echo = Echo { id: number, seq: number ^ 3, data: &data };
        let restored = if data.len() % 2 == 0 || [2, 4, 16].contains(&quote.len()) {
            Restored::Destination(destination)
        } else {
            Restored::Quote(&quote)
        };
        for message in [
            Message::EchoReply(echo),
            Message::EchoRequest(echo),
            Message::Unreachable(Unreachable::ALL[which], &quote),
            Message::TooBig { mtu: number, quote: &quote },
            Message::SourceQuench(&quote),
            Message::TimeExceeded(&quote),
            Message::ParameterProblem { pointer: number as u8, quote: &quote },
            Message::LinkAvailable(restored),
            Message::Corruption,
        ] {
            for dialect in [RI, CCSDS] {
                let written = octets(&message, true);
                prop_assert_eq!(Message::parse(&written, dialect), Ok(message));
            }
        }
        let redirect = Message::Redirect { qos: which % 2 == 0, next_hop: destination, quote: &quote };
        let written = octets(&redirect, true);
        let read = Message::parse(&written, RI);
        // A quote behind a short address may by chance look like one behind a longer; it is read as some redirect at least.
        let is_redirect = matches!(read, Ok(Message::Redirect { .. }));
        prop_assert!(is_redirect);
    }

    #[test]
    fn any_octets_are_read_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..70)) {
        for dialect in [RI, CCSDS] {
            let _ = Message::parse(&octets, dialect);
        }
        let mut unsummed = octets;
        if let Some(field) = unsummed.get_mut(2..4) {
            field.fill(0);
            let _ = Message::parse(&unsummed, RI);
        }
    }
}
