//! Any bytes as an NP datagram in every dialect, as a control message, as a quote and as a table; what is understood survives
//! being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_np::scmp::{quote_of, reportable_source, Message};
use scps_np::{set_hop_count, Datagram, Dialect, NpProfile, TableKind, Tables, DATAGRAM_MAX};

fuzz_target!(|data: &[u8]| {
    let Some((choice, frame)) = data.split_first() else { return };
    let bit = |i: u8| choice & (1 << i) != 0;
    let dialect = Dialect {
        profile: if bit(0) { NpProfile::Ccsds } else { NpProfile::Ri },
        legacy_bqos_after_ts: bit(1),
        accept_swapped_checksum: bit(2),
        require_checksum: bit(3),
    };
    let _ = Datagram::parse_quote(frame, dialect);
    if let Ok(datagram) = Datagram::parse(frame, dialect) {
        let mut again = vec![0; datagram.header.emit_len()];
        again.extend_from_slice(datagram.payload());
        datagram.header.emit(dialect, DATAGRAM_MAX, &mut again).expect("no longer than what was read");
        let read = Datagram::parse(&again, dialect).expect("written by us");
        assert_eq!((read.header, read.payload()), (datagram.header, datagram.payload()));
        assert!(quote_of(&datagram).len() <= datagram.octets.len());
        let _ = reportable_source(&datagram.header, datagram.payload());
        let _ = Message::parse(datagram.payload(), dialect);
        if set_hop_count(&mut again, 7, dialect) {
            let forwarded = Datagram::parse(&again, dialect).expect("only the hop count changed");
            assert_eq!(forwarded.header.hop_count, Some(7));
        }
    }
    if let Ok(message) = Message::parse(frame, dialect) {
        let mut again = Vec::new();
        message.emit(true, &mut again);
        assert_eq!(Message::parse(&again, dialect), Ok(message));
    }
    if let Ok(text) = std::str::from_utf8(frame) {
        let kinds = [TableKind::IpNp, TableKind::NextHop, TableKind::MultiNextHop, TableKind::Path];
        let _ = Tables::default().read(kinds[usize::from(choice >> 4) % 4], text);
    }
});
