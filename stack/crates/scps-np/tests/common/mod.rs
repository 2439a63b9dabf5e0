//! What the tests share: octets as the notes write them, and any header.
#![allow(dead_code, clippy::unwrap_used, missing_docs, reason = "a test uses what it needs and stops where it fails")]

use proptest::prelude::*;
use scps_np::{Address, Addresses, BasicQos, Dialect, ExpandedQos, Header, NpProfile, Routing, Timestamp};
use scps_wire::Precedence;
use std::net::Ipv6Addr;

pub const RI: Dialect = Dialect {
    profile: NpProfile::Ri,
    legacy_bqos_after_ts: false,
    accept_swapped_checksum: false,
    require_checksum: false,
};
pub const CCSDS: Dialect = Dialect { profile: NpProfile::Ccsds, ..RI };

/// Octets from hexadecimal digits with spaces.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

/// A datagram: a header in front of user data.
pub fn emit(header: &Header, dialect: Dialect, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; header.emit_len()];
    packet.extend_from_slice(data);
    header.emit(dialect, usize::MAX, &mut packet).unwrap();
    packet
}

/// A header between two basic addresses, without options.
pub fn basic(dst: u16, src: u16) -> Header {
    Header { tpid: 6, addresses: Addresses::Basic { dst, src }, ..Header::default() }
}

pub fn addresses() -> impl Strategy<Value = Addresses> {
    let v6 = any::<u128>().prop_map(Ipv6Addr::from_bits);
    prop_oneof![
        Just(Addresses::None),
        any::<u16>().prop_map(|a| Addresses::Path(Address::Basic(a))),
        any::<u32>().prop_map(|a| Addresses::Path(Address::Extended(a))),
        v6.clone().prop_map(|a| Addresses::Path(Address::V6(a))),
        any::<(u16, u16)>().prop_map(|(dst, src)| Addresses::Basic { dst, src }),
        any::<(u32, u32)>().prop_map(|(dst, src)| Addresses::Extended { dst, src }),
        (v6.clone(), v6).prop_map(|(dst, src)| Addresses::V6 { dst, src }),
    ]
}

pub fn qos() -> impl Strategy<Value = BasicQos> {
    let routing = prop_oneof![Just(Routing::Normal), Just(Routing::Flood), any::<bool>().prop_map(Routing::Reserved)];
    (0u8..16, routing, 0u8..4).prop_map(|(level, routing, specific)| BasicQos {
        precedence: Precedence::new(level).unwrap(),
        routing,
        specific,
    })
}

pub fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        (0u32..1 << 24).prop_map(Timestamp::Seconds),
        (0u32..1 << 24).prop_map(Timestamp::Undefined),
        any::<u32>().prop_map(Timestamp::Milliseconds),
    ]
}

prop_compose! {
    pub fn header()(
        tpid in 0u8..16,
        addresses in addresses(),
        qos in proptest::option::of(qos()),
        hop_count in any::<Option<u8>>(),
        timestamp in proptest::option::of(timestamp()),
        expanded_qos in proptest::option::of((0u8..8, 0u8..16)),
        intermediate_delivery in any::<bool>(),
        checksum in any::<bool>(),
    ) -> Header {
        let expanded_qos = expanded_qos.map(|(ip_precedence, ip_tos)| ExpandedQos { ip_precedence, ip_tos });
        Header { tpid, addresses, qos, hop_count, timestamp, expanded_qos, intermediate_delivery, checksum }
    }
}

pub fn dialect() -> impl Strategy<Value = Dialect> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_ccsds, legacy_bqos_after_ts)| Dialect {
        legacy_bqos_after_ts,
        ..if is_ccsds { CCSDS } else { RI }
    })
}
