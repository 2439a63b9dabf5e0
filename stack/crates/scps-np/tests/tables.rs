//! The static tables: files as the manual shows them, wrong lines, translation both ways, next hops.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_np::{Address, Addresses, TableKind, Tables};
use std::net::Ipv4Addr;

const US: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 3);

/// A node with basic addresses for us and the peer, none for the far host, a group and two paths.
fn tables() -> Tables {
    let mut tables = Tables::of(US);
    tables.read(TableKind::IpNp, "# hosts\n0a010101 7290\n0a010102 7292 # the peer\n\n").unwrap();
    tables.read(TableKind::NextHop, "0a010101\n7292 0a020202\n0a010103 0a020203\n").unwrap();
    tables.read(TableKind::MultiNextHop, "8001 0 0\n8001 0a020202 0a020203\n8003 0a020203\n").unwrap();
    tables.read(TableKind::Path, "55b2 7290 7292 0a010103\n55b4 7292 7290 0\n").unwrap();
    tables
}

fn ends(dst: u16, src: u16) -> Addresses {
    Addresses::Basic { dst, src }
}

fn next_hops(tables: &Tables, addresses: Addresses) -> Vec<Ipv4Addr> {
    let mut hops = Vec::new();
    tables.next_hops(addresses, &mut hops);
    hops
}

#[test]
fn lines_have_as_many_columns_as_the_manual_shows() {
    let mut tables = Tables::default();
    tables.read(TableKind::MultiNextHop, "0\n8001 a020202\n8003 a020202 a020203 a020204").unwrap();
    let hops = |tables: &Tables, group| next_hops(tables, ends(group, 0x7290)).len();
    assert_eq!((hops(&tables, 0x8001), hops(&tables, 0x8003)), (1, 3));
    tables.read(TableKind::NextHop, "0x0a010101\n7292 1").unwrap();
    assert_eq!(next_hops(&tables, ends(0x7292, 0x7290)), [Ipv4Addr::from_bits(1)]);
}

#[test]
fn wrong_lines_are_named_by_number_and_nothing_is_taken() {
    let mut tables = Tables::default();
    let long = format!("0a010109 7298 # {}", "x".repeat(300));
    let text = format!(
        "0a010101 7290\nxyz 7292\n0a010103\n0a010104 7291\n0a010105 7290\n0a010106 123456789\n+a 7296\n{long}\n0a010107 ffff\n"
    );
    let errors = tables.read(TableKind::IpNp, &text).unwrap_err();
    assert_eq!(errors.iter().map(|e| e.line).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(errors[0].to_string(), "line 2: found \"xyz\"; expected up to eight hexadecimal digits");
    assert_eq!(errors[1].to_string(), "line 3: found \"a010103\"; expected an IPv4 address and an NP address");
    assert_eq!(tables, Tables::default());
}

#[test]
fn other_tables_name_wrong_lines_too() {
    let wrong = |kind, text: &str| {
        let errors = Tables::default().read(kind, text).unwrap_err();
        errors.into_iter().map(|e| e.line).collect::<Vec<_>>()
    };
    assert_eq!(wrong(TableKind::NextHop, "7292 0a020202\n"), [1]);
    assert_eq!(wrong(TableKind::NextHop, "0a010101\n7292\n7292 1\n7292 1\n8001 1\n"), [2, 4, 5]);
    assert_eq!(wrong(TableKind::MultiNextHop, "8000\n8001\n7292 1\n"), [1, 2, 3]);
    assert_eq!(wrong(TableKind::Path, "55b2\n55b2 7290\n55b2 7290 0\n55b2 7291 7292\n"), [1, 2, 3, 4]);
}

#[test]
fn addresses_are_translated_by_the_first_table_that_knows_them() {
    let tables = tables();
    // Both have basic addresses.
    assert_eq!(tables.addresses_to(US, PEER), ends(0x7292, 0x7290));
    // The far host has none, but a path of ours leads there.
    assert_eq!(tables.addresses_to(US, FAR), Addresses::Path(Address::Basic(0x55b2)));
    // From another host no path does: IPv4 addresses as they are, in the longer form.
    assert_eq!(tables.addresses_to(PEER, FAR), Addresses::Extended { dst: 0x0a01_0103, src: 0x7292 });
    // A group.
    let group = Ipv4Addr::from_bits(0x8001);
    assert_eq!(tables.addresses_to(US, group), ends(0x8001, 0x7290));
    // Nobody knows these.
    let (a, b) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    assert_eq!(tables.addresses_to(a, b), Addresses::Extended { dst: b.to_bits(), src: a.to_bits() });
}

#[test]
fn a_host_of_the_first_table_is_never_reached_by_a_path() {
    let mut tables = tables();
    tables.read(TableKind::Path, "55b6 7290 0a010102").unwrap();
    assert_eq!(tables.addresses_to(US, PEER), ends(0x7292, 0x7290));
}

#[test]
fn addresses_are_translated_back() {
    let tables = tables();
    assert_eq!(tables.ends_of(ends(0x7290, 0x7292)), Some((PEER, US)));
    assert_eq!(tables.ends_of(Addresses::Path(Address::Basic(0x55b4))), Some((PEER, US)));
    // A path that does not end here, and one nobody knows.
    assert_eq!(tables.ends_of(Addresses::Path(Address::Basic(0x55b2))), None);
    assert_eq!(tables.ends_of(Addresses::Path(Address::Basic(0x5678))), None);
    // Unknown basic addresses are refused; extended ones are IPv4 addresses.
    assert_eq!(tables.ends_of(ends(0x7290, 0x7a7a)), None);
    assert_eq!(tables.ends_of(ends(0x7a7a, 0x7292)), None);
    let far = Addresses::Extended { dst: 0x7290, src: FAR.to_bits() };
    assert_eq!(tables.ends_of(far), Some((FAR, US)));
    let v6 = Addresses::V6 { dst: "::1".parse().unwrap(), src: "::2".parse().unwrap() };
    assert_eq!(tables.ends_of(v6), None);
}

#[test]
fn a_datagram_is_for_us_by_address_group_path_or_broadcast() {
    let tables = tables();
    let is = |addresses| tables.is_for_us(addresses);
    assert!(is(ends(0x7290, 0x7292)) && !is(ends(0x7292, 0x7290)));
    assert!(is(Addresses::Extended { dst: US.to_bits(), src: 1 }));
    // An odd basic address is a group: of one we are a member.
    assert!(is(ends(0x8001, 0x7292)) && !is(ends(0x8003, 0x7292)));
    assert!(is(ends(0xffff, 0x7292)) && !is(ends(0xff02, 0x7292)));
    assert!(is(Addresses::None));
    assert!(is(Addresses::Path(Address::Basic(0x55b4))) && !is(Addresses::Path(Address::Basic(0x55b2))));
}

#[test]
fn an_end_system_is_not_looked_up_among_the_paths() {
    let tables = tables();
    // 55b4 is a path that ends here; as the address of an end system it is somebody unknown.
    assert!(!tables.is_for_us(ends(0x55b4, 0x7292)));
    assert_eq!(tables.ends_of(ends(0x55b4, 0x7292)), None);
    assert!(next_hops(&tables, ends(0x55b4, 0x7292)).is_empty());
    // And a path is not looked up among the end systems.
    assert!(!tables.is_for_us(Addresses::Path(Address::Basic(0x7290))));
}

#[test]
fn next_hops_are_those_of_the_destination_the_group_or_the_path() {
    let tables = tables();
    let (peer_hop, far_hop) = (Ipv4Addr::new(10, 2, 2, 2), Ipv4Addr::new(10, 2, 2, 3));
    assert_eq!(next_hops(&tables, ends(0x7292, 0x7290)), [peer_hop]);
    assert_eq!(next_hops(&tables, Addresses::Extended { dst: 0x7292, src: 1 }), [peer_hop]);
    assert_eq!(next_hops(&tables, Addresses::Extended { dst: FAR.to_bits(), src: 1 }), [far_hop]);
    assert_eq!(next_hops(&tables, ends(0x8001, 0x7290)), [peer_hop, far_hop]);
    assert_eq!(next_hops(&tables, Addresses::Path(Address::Basic(0x55b2))), [peer_hop, far_hop]);
    assert!(next_hops(&tables, ends(0x7290, 0x7292)).is_empty());
    assert!(next_hops(&tables, ends(0xffff, 0x7292)).is_empty());
    assert!(next_hops(&tables, Addresses::None).is_empty());
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "[0-9a-fx# \n\t+-]{0,200}", kind in 0usize..4) {
        let kinds = [TableKind::IpNp, TableKind::NextHop, TableKind::MultiNextHop, TableKind::Path];
        let mut tables = Tables::default();
        if tables.read(kinds[kind], &text).is_err() {
            prop_assert_eq!(tables, Tables::default());
        }
    }

    #[test]
    fn translation_there_and_back_gives_the_same_hosts(pairs in proptest::collection::btree_map(any::<u32>(), (1u32..0x7fff).prop_map(|n| n * 2), 0..20), src in any::<u32>(), dst in any::<u32>()) {
        let mut tables = Tables::of(Ipv4Addr::from_bits(dst));
        for (ip, np) in &pairs {
            let _ = tables.add_host(Ipv4Addr::from_bits(*ip), Address::from_value(*np));
        }
        let hosts: Vec<u32> = pairs.keys().copied().chain([src, dst]).filter(|ip| Ipv4Addr::from_bits(*ip).octets()[0] > 0 && !Ipv4Addr::from_bits(*ip).is_multicast() && *ip != u32::MAX).collect();
        for from in &hosts {
            for to in &hosts {
                let (from, to) = (Ipv4Addr::from_bits(*from), Ipv4Addr::from_bits(*to));
                prop_assert_eq!(tables.ends_of(tables.addresses_to(from, to)), Some((from, to)));
            }
        }
    }
}
