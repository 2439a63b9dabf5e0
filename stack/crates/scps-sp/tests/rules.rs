//! Rules of scps-sp §4, §6 and §10 that are neither threats nor examples.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{
    association, at, ends, grant, m1_association, numbered, open, outgoing, receiver, seal, sender, usual, NOW,
};
use proptest::prelude::*;
use scps_sp::{
    AeadKey, Association, ClearHeader, ConfigError, Dropped, Ends, KeyName, Outgoing, Policy, Refused, Services, Sp,
    SpConfig, Suite, Upper,
};
use scps_wire::Duration;

#[test]
fn the_default_build_has_no_algorithm_of_the_reference() {
    let manifest = include_str!("../Cargo.toml");
    assert!(manifest.contains("default = []"));
    for name in ["cbc", "des", "md-5"] {
        assert!(manifest.contains(&format!("\n{name} = {{ workspace = true, optional = true }}")), "{name}");
    }
    // Every other crate of the workspace takes this one as it is by default.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for folder in std::fs::read_dir(root).unwrap() {
        let text = std::fs::read_to_string(folder.unwrap().path().join("Cargo.toml")).unwrap();
        assert!(!text.contains("legacy-insecure") || text.contains("name = \"scps-sp\""));
    }
}

proptest! {
    #[test]
    fn any_octets_are_dropped_without_a_panic(
        octets in proptest::collection::vec(any::<u8>(), 0..129),
        services in (0u8..16).prop_map(Services::from_bits),
        variant in prop_oneof![Just(ClearHeader::Full8), Just(ClearHeader::Nibble), Just(ClearHeader::LowNibble)],
    ) {
        let services = services.with(Services::INTEGRITY);
        let association = Association { clear_header: variant, ..association(Suite::Aes256Gcm, 1, services) };
        let mut sp = receiver(vec![association]);
        prop_assert!(open(&mut sp, &octets).is_err());
        // And as a packet of the right key.
        let known = [&[0x6a, 0, 1], &octets[..]].concat();
        prop_assert!(open(&mut sp, &known).is_err());
        prop_assert_eq!(sp.counters().dropped_total(), 2);
    }

    #[test]
    fn what_is_sealed_fits_the_room_and_is_opened_as_it_was(
        pdu in proptest::collection::vec(any::<u8>(), 0..300),
        bits in 0u8..16,
        label in proptest::collection::vec(any::<u8>(), 0..33),
        pad_to in proptest::option::of(2u8..=255),
        is_v6 in any::<bool>(),
        upper in prop_oneof![Just(Upper::Ip), Just(Upper::Tp), Just(Upper::CompressedTp), Just(Upper::Udp)],
        suite in prop_oneof![Just(Suite::Aes256Gcm), Just(Suite::ChaCha20Poly1305), Just(Suite::Aes128Gcm)],
    ) {
        let services = Services::from_bits(bits).with(Services::INTEGRITY);
        let ends = if is_v6 {
            Ends { src: "2001:db8::1".parse().unwrap(), dst: "2001:db8::2".parse().unwrap() }
        } else {
            ends()
        };
        let label = if services.has(Services::LABEL) { label } else { Vec::new() };
        let association = Association { ends, label, pad_to, ..association(suite, 1, services) };
        let mut from = at(ends.src, Policy::Strict, vec![association.clone()]);
        from.grant(KeyName { ends, key_id: 1 }, 1..10).unwrap();
        let what = Outgoing { ends, upper, demanded: Services::NONE, pdu_len: pdu.len() };
        let room = from.room(NOW, what).unwrap();
        prop_assert!(room.len() <= from.room_max(ends, Services::NONE));
        let packet = seal(&mut from, NOW, what, &pdu).unwrap();
        prop_assert_eq!(packet.len(), room.len() + pdu.len());
        if let Some(multiple) = pad_to {
            // Head and tag are not padded.
            prop_assert_eq!((packet.len() - 9 - 16) % usize::from(multiple), 0);
        }
        let mut out = Vec::new();
        let mut to = at(ends.dst, Policy::Strict, vec![association]);
        let (read, range) = to.open(NOW, ends, &packet, &mut out).unwrap();
        prop_assert_eq!((read, &out[range]), (upper, &pdu[..]));
    }
}

#[test]
fn the_usual_overhead_is_26_octets_and_the_elements() {
    // scps-sp §6.
    let room = |services, label: &[u8]| {
        let association = Association { label: label.to_vec(), ..association(Suite::Aes256Gcm, 1, services) };
        let sp = sender(vec![association]);
        (sp.room(NOW, outgoing(b"HELLO")).unwrap().len(), sp.room_max(ends(), Services::NONE))
    };
    let secret = Services::CONFIDENTIALITY.with(Services::INTEGRITY);
    assert_eq!(room(secret, b""), (26, 26));
    assert_eq!(room(Services::INTEGRITY, b""), (26, 26));
    assert_eq!(room(usual(), b""), (34, 34));
    assert_eq!(room(usual().with(Services::LABEL), b"UNCLAS"), (41, 41));
}

#[test]
fn integrity_without_confidentiality_is_readable_and_just_as_fast_to_break() {
    let association = association(Suite::Aes256Gcm, 1, Services::INTEGRITY);
    let packet = numbered(association.clone(), 1, b"HELLO");
    assert_eq!(&packet[9..15], b"\x01HELLO");
    for bit in 0..packet.len() * 8 {
        let mut changed = packet.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&mut receiver(vec![association.clone()]), &changed).is_err(), "{bit}");
    }
    assert_eq!(open(&mut receiver(vec![association]), &packet), Ok(b"HELLO".to_vec()));
}

#[test]
fn associations_that_make_no_sense_are_refused() {
    let refused = |policy, change: &dyn Fn(&mut Association), local: [u8; 4]| {
        let mut association = m1_association();
        change(&mut association);
        let config =
            SpConfig { policy, local: vec![local.into()], associations: vec![association], ..SpConfig::default() };
        Sp::new(config, NOW).map(|_| ()).map_err(|error| error.to_string())
    };
    let us = [0xc0, 0x30, 0x72, 0x80];
    assert_eq!(refused(Policy::Strict, &|_| (), us), Ok(()));
    for (change, text) in [
        (&(|a: &mut Association| a.key_id = 0) as &dyn Fn(&mut Association), "key id 0"),
        (&|a: &mut Association| a.services = Services::CONFIDENTIALITY, "without integrity"),
        (&|a: &mut Association| a.services = Services::NONE, "without integrity"),
        (&|a: &mut Association| a.label = b"SECRET".to_vec(), "label"),
        (&|a: &mut Association| (a.label, a.services) = (vec![0; 33], Services::ALL), "33 octets"),
        (&|a: &mut Association| a.window = 63, "window of 63"),
        (&|a: &mut Association| a.window = 65_537, "window of 65537"),
        (&|a: &mut Association| a.pad_to = Some(1), "multiples of 1"),
        (&|a: &mut Association| a.ends.dst = "2001:db8::1".parse().unwrap(), "two of one kind"),
    ] {
        let refused = refused(Policy::Strict, change, us).unwrap_err();
        assert!(refused.contains(text), "{refused}");
    }
    assert!(refused(Policy::Strict, &|_| (), [10, 0, 0, 1]).unwrap_err().contains("no address of this host"));
    assert!(refused(Policy::OnDemand, &|_| (), us).unwrap_err().contains("allow_downgrade"));
}

#[test]
fn a_key_has_one_direction_one_id_and_one_use() {
    let (us, back) = (ends().src, ends().back());
    let both = |second: Association| {
        let config = SpConfig { local: vec![us], associations: vec![m1_association(), second], ..SpConfig::default() };
        Sp::new(config, NOW).map(|_| ()).unwrap_err()
    };
    let (first, second) = (KeyName { ends: ends(), key_id: 1 }, KeyName { ends: ends(), key_id: 2 });
    assert_eq!(both(m1_association()), ConfigError::Twice(first));
    assert_eq!(both(Association { key_id: 2, ..m1_association() }), ConfigError::SharedKey(first, second));
    let reverse = KeyName { ends: back, key_id: 1 };
    assert_eq!(both(Association { ends: back, ..m1_association() }), ConfigError::SharedKey(first, reverse));
    let plain = Association { key_id: 2, services: Services::INTEGRITY, ..m1_association() };
    assert_eq!(both(plain), ConfigError::SharedKey(first, second));
}

fn numbered_keys(count: u16) -> Vec<Association> {
    let key = |id: u16| AeadKey::new(Suite::Aes256Gcm, &[id as u8; 32], &common::SALT).unwrap();
    (1..=count).map(|id| Association::new(ends(), id, key(id))).collect()
}

fn key_id(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1], packet[2]])
}

#[test]
fn the_next_key_takes_over_after_a_day_or_two_thousand_million_packets() {
    let day = Duration::from_secs(24 * 3600);
    let send = |sp: &mut Sp, now| seal(sp, now, outgoing(b"HELLO"), b"HELLO").map(|packet| key_id(&packet));
    let mut sp = sender(numbered_keys(3));
    for id in 1..=3 {
        grant(&mut sp, id, if id == 2 { (1 << 31) - 1..1 << 32 } else { 1..100 });
    }
    assert_eq!(send(&mut sp, NOW), Ok(1));
    // The packet that finds the key a day old is the last under it.
    assert_eq!([0, 1].map(|_| send(&mut sp, NOW + day)), [Ok(1), Ok(2)]);
    assert_eq!([0, 1].map(|_| send(&mut sp, NOW + day)), [Ok(2), Ok(3)]);
    // There is no fourth: the third stays in use, and that is told.
    assert_eq!((send(&mut sp, NOW + day * 3), sp.counters().rekey_due), (Ok(3), 1));
}

#[test]
fn a_key_past_its_time_is_neither_sent_nor_accepted() {
    let end = NOW + Duration::from_secs(10);
    let mut keys = numbered_keys(2);
    keys[0].not_after = Some(end);
    let mut sp = sender(keys.clone());
    (1..=2).for_each(|id| grant(&mut sp, id, 1..100));
    let later = end + Duration::from_millis(1);
    let [before, after] = [end, later].map(|now| seal(&mut sp, now, outgoing(b"HELLO"), b"HELLO").unwrap());
    assert_eq!((key_id(&before), key_id(&after)), (1, 2));
    let mut to = receiver(keys);
    assert_eq!(common::open_as(&mut to, later, ends(), &before), Err(Dropped::ExpiredKey));
    assert_eq!(common::open_as(&mut to, later, ends(), &after), Ok(b"HELLO".to_vec()));
    let alone = Association { not_after: Some(end), ..m1_association() };
    let mut sp = sender(vec![alone]);
    grant(&mut sp, 1, 1..100);
    assert_eq!(seal(&mut sp, later, outgoing(b"HELLO"), b"HELLO"), Err(Refused::Expired));
}

#[test]
fn a_key_that_was_passed_over_is_not_used_again() {
    let end = NOW + Duration::from_secs(10);
    let mut keys = numbered_keys(3);
    keys[0].not_after = Some(end);
    let mut sp = sender(keys);
    // The second one's record says that it was replaced before a restart.
    grant(&mut sp, 2, scps_sp::NUMBERS_END..scps_sp::NUMBERS_END + 1);
    grant(&mut sp, 1, 1..100);
    grant(&mut sp, 3, 1..100);
    let send = |sp: &mut Sp, now| key_id(&seal(sp, now, outgoing(b"HELLO"), b"HELLO").unwrap());
    assert_eq!((send(&mut sp, end), sp.poll_replaced()), (1, None));
    let later = end + Duration::from_millis(1);
    assert_eq!(send(&mut sp, later), 3);
    assert_eq!([0; 2].map(|_| sp.poll_replaced()), [Some(KeyName { ends: ends(), key_id: 1 }), None]);
}

#[test]
fn no_key_gives_way_to_one_that_is_of_no_use() {
    let day = Duration::from_secs(24 * 3600);
    let send = |sp: &mut Sp| key_id(&seal(sp, NOW + day, outgoing(b"HELLO"), b"HELLO").unwrap());
    let mut keys = numbered_keys(4);
    keys[1].not_after = Some(NOW);
    for (count, expected) in [(4, [1, 4]), (3, [1, 1])] {
        let mut sp = sender(keys[..count].to_vec());
        (1..=count as u16).for_each(|id| {
            let numbers = if id == 3 { scps_sp::NUMBERS_END..scps_sp::NUMBERS_END + 1 } else { 1..100 };
            grant(&mut sp, id, numbers);
        });
        seal(&mut sp, NOW, outgoing(b"HELLO"), b"HELLO").unwrap();
        // The packet that finds the first key a day old is the last under it, if there is another that can be used.
        assert_eq!([0; 2].map(|_| send(&mut sp)), expected);
        assert_eq!(sp.counters().rekey_due, if count == 4 { 0 } else { 2 });
        let mut replaced: Vec<u16> = std::iter::from_fn(|| sp.poll_replaced()).map(|name| name.key_id).collect();
        replaced.sort_unstable();
        assert_eq!(replaced, if count == 4 { vec![1, 2] } else { vec![] });
        assert!(!sp.rekey(NOW + day, ends()));
    }
}

#[test]
fn numbers_are_wanted_before_the_last_one_is_used() {
    let mut sp = sender(vec![m1_association()]);
    let name = KeyName { ends: ends(), key_id: 1 };
    sp.grant(name, 1..1 + scps_sp::BLOCK).unwrap();
    assert_eq!(sp.wanted(), None);
    for _ in 0..=scps_sp::BLOCK / 2 {
        seal(&mut sp, NOW, outgoing(b"HELLO"), b"HELLO").unwrap();
    }
    assert_eq!(sp.wanted(), Some(name));
    // A receiver's key wants none.
    assert_eq!(receiver(vec![m1_association()]).wanted(), None);
}

#[test]
fn without_protection_only_what_the_policy_allows_passes() {
    for (policy, clear_in) in
        [(Policy::None, Ok(())), (Policy::OnDemand, Ok(())), (Policy::Strict, Err(Dropped::Policy))]
    {
        assert_eq!(at(ends().dst, policy, Vec::new()).admit_clear(ends()), clear_in);
    }
    assert_eq!(at(ends().dst, Policy::OnDemand, vec![m1_association()]).admit_clear(ends()), Err(Dropped::Policy));
    let out = |policy, demanded| {
        let mut sp = at(ends().src, policy, Vec::new());
        let mut packet = *b"HELLO";
        let sealed = sp.seal(NOW, Outgoing { demanded, ..outgoing(b"HELLO") }, &mut packet);
        assert_eq!(&packet, b"HELLO");
        (sealed, sp.counters().downgraded_out)
    };
    assert_eq!(out(Policy::None, Services::NONE), (Ok(false), 0));
    assert_eq!(out(Policy::OnDemand, Services::NONE), (Ok(false), 1));
    assert_eq!(out(Policy::Strict, Services::NONE), (Err(Refused::NoAssociation), 0));
    // Whoever demands a service is not content with none.
    assert_eq!(out(Policy::OnDemand, Services::CONFIDENTIALITY), (Err(Refused::Service), 0));
}
