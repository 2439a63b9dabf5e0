//! Every line of the threat table, scps-sp §9, is a test. Every drop is silent: a counter, and nothing else, tells.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{
    association, at, ends, grant, m1, m1_association, numbered, open, open_as, outgoing, receiver, seal, sender, usual,
    NOW,
};
use scps_sp::{
    AeadKey, Association, Dropped, Ends, KeyName, Policy, Protection, Refused, Services, Sp, Suite, Trouble, BLOCK,
};
use scps_wire::{Duration, Instant};

#[test]
fn tampering_with_any_bit_is_noticed() {
    let mut sp = receiver(vec![m1_association()]);
    for bit in 0..m1().len() * 8 {
        let mut packet = m1();
        packet[bit / 8] ^= 1 << (bit % 8);
        let is_key_id = (8..24).contains(&bit);
        let expected = if is_key_id { Dropped::UnknownKey } else { Dropped::Authentication };
        assert_eq!(open(&mut sp, &packet), Err(expected), "bit {bit}");
    }
    assert_eq!(sp.counters().dropped(Dropped::Authentication), (m1().len() * 8 - 16) as u64);
    assert!(open(&mut sp, &m1()).is_ok());
}

#[test]
fn truncated_packets_are_dropped() {
    let mut sp = receiver(vec![m1_association()]);
    for len in 0..m1().len() {
        assert!(open(&mut sp, &m1()[..len]).is_err(), "{len}");
    }
    let counters = sp.counters();
    assert!(counters.dropped(Dropped::Short) >= 26 && counters.dropped(Dropped::Authentication) > 0);
    assert_eq!(counters.dropped_total(), m1().len() as u64);
}

#[test]
fn extended_packets_are_dropped() {
    let mut sp = receiver(vec![m1_association()]);
    for more in 1..=32 {
        let packet = [m1(), vec![0; more]].concat();
        assert_eq!(open(&mut sp, &packet), Err(Dropped::Authentication));
    }
}

#[test]
fn a_replayed_packet_is_delivered_zero_further_times() {
    let mut sp = receiver(vec![m1_association()]);
    assert!(open(&mut sp, &m1()).is_ok());
    for times in 1..=100 {
        assert_eq!(open(&mut sp, &m1()), Err(Dropped::Replay));
        assert_eq!(sp.counters().dropped(Dropped::Replay), times);
    }
    assert_eq!(sp.counters().opened, 1);
}

#[test]
fn reordered_packets_are_delivered_once_each() {
    let mut sp = receiver(vec![m1_association()]);
    for number in [1, 3, 2] {
        let packet = numbered(m1_association(), number, &[number as u8]);
        assert_eq!(open(&mut sp, &packet), Ok(vec![number as u8]));
        assert_eq!(open(&mut sp, &packet), Err(Dropped::Replay));
    }
}

#[test]
fn packets_before_the_window_are_dropped() {
    let mut sp = receiver(vec![m1_association()]);
    let packet = |number| numbered(m1_association(), number, b"data");
    assert!(open(&mut sp, &packet(5000)).is_ok());
    assert_eq!(open(&mut sp, &packet(5000 - 1024)), Err(Dropped::TooOld));
    assert!(open(&mut sp, &packet(5000 - 1023)).is_ok());
}

#[test]
fn another_key_suite_or_salt_opens_nothing() {
    let octets: Vec<u8> = (0..32).collect();
    let with = |key| vec![Association { protection: Protection::Aead(key), ..m1_association() }];
    for wrong in [
        AeadKey::new(Suite::Aes256Gcm, &[9; 32], &common::SALT).unwrap(),
        AeadKey::new(Suite::Aes256Gcm, &octets, &[0; 4]).unwrap(),
        AeadKey::new(Suite::ChaCha20Poly1305, &octets, &common::SALT).unwrap(),
        AeadKey::new(Suite::Aes128Gcm, &octets[..16], &common::SALT).unwrap(),
    ] {
        let mut sp = receiver(with(wrong));
        assert_eq!(open(&mut sp, &m1()), Err(Dropped::Authentication));
    }
    assert!(open(&mut receiver(with(common::key(Suite::Aes256Gcm))), &m1()).is_ok());
}

#[test]
fn spoofed_addresses_are_noticed_with_and_without_the_address_element() {
    let integrity = Services::CONFIDENTIALITY.with(Services::INTEGRITY);
    for services in [usual(), integrity] {
        let packet = numbered(association(Suite::Aes256Gcm, 1, services), 1, b"data");
        let real = ends();
        for spoofed in [Ends { src: [10, 9, 9, 9].into(), ..real }, Ends { dst: [10, 9, 9, 9].into(), ..real }] {
            // Whoever has that address knows the same key, as he would if one key served everybody.
            let everybody = Association { ends: spoofed, ..association(Suite::Aes256Gcm, 1, services) };
            let mut sp = at(spoofed.dst, Policy::Strict, vec![everybody]);
            assert_eq!(open_as(&mut sp, NOW, spoofed, &packet), Err(Dropped::Authentication));
            // And without an association there is no key to try.
            let mut sp = receiver(vec![m1_association()]);
            assert_eq!(open_as(&mut sp, NOW, spoofed, &packet), Err(Dropped::NoAssociation));
        }
    }
}

#[test]
fn a_reflected_packet_is_dropped() {
    // The way back even has the same key id; its key differs, as SP sees to.
    let back = AeadKey::new(Suite::Aes256Gcm, &[7; 32], &common::SALT).unwrap();
    let back = Association::new(ends().back(), 1, back);
    let mut sp = sender(vec![m1_association(), back]);
    assert_eq!(open_as(&mut sp, NOW, ends().back(), &m1()), Err(Dropped::Authentication));
    // Nor is it taken as it was sent: this host receives nothing from itself.
    assert_eq!(open(&mut sp, &m1()), Err(Dropped::NoAssociation));
}

/// A genuine packet whose protected part begins with `part`.
fn forged_inside(part: &[u8], services: Services) -> Vec<u8> {
    // Whoever has the key, but not our sender, writes what he likes: here through an association without any elements, whose
    // PDU is the part but for its flags.
    use aes_gcm::aead::{AeadInPlace, KeyInit};
    let head = [0x6a, 0, 1, 0, 0, 0, 0, 0, 1];
    let bound = common::hex("6a 00 01 00 00 00 00 00 01 04 c0 30 72 80 c0 30 72 83 08");
    let key: Vec<u8> = (0..32).collect();
    let cipher = aes_gcm::Aes256Gcm::new(key[..].into());
    let nonce = [&common::SALT[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
    let mut text = part.to_vec();
    let tag = if services.has(Services::CONFIDENTIALITY) {
        cipher.encrypt_in_place_detached(nonce[..].into(), &bound, &mut text).unwrap()
    } else {
        cipher.encrypt_in_place_detached(nonce[..].into(), &[bound, text.clone()].concat(), &mut []).unwrap()
    };
    [&head[..], &text, &tag].concat()
}

#[test]
fn a_downgrade_is_refused() {
    let mut sp = receiver(vec![m1_association()]);
    assert_eq!(sp.admit_clear(ends()), Err(Dropped::Policy));
    // Inside a valid tag, but without the ICV bit, or without the addresses that the association demands.
    assert_eq!(
        open(&mut sp, &forged_inside(b"\x04\xc0\x30\x72\x80\xc0\x30\x72\x83HELLO", usual())),
        Err(Dropped::Policy)
    );
    let mut sp = receiver(vec![m1_association()]);
    assert_eq!(open(&mut sp, &forged_inside(b"\x01HELLO", usual())), Err(Dropped::Policy));
    assert_eq!(sp.counters().dropped(Dropped::Policy), 1);
    // What is not encrypted is no substitute for what is to be.
    let plain = Services::AUTHENTICATION.with(Services::INTEGRITY);
    let part = b"\x05\xc0\x30\x72\x80\xc0\x30\x72\x83HELLO";
    assert_eq!(open(&mut receiver(vec![m1_association()]), &forged_inside(part, plain)), Err(Dropped::Authentication));
    assert!(open(&mut receiver(vec![m1_association()]), &forged_inside(part, usual())).is_ok());
}

#[test]
fn another_label_is_dropped_though_its_tag_is_right() {
    let labelled = |label: &[u8]| {
        let services = usual().with(Services::LABEL);
        Association { label: label.to_vec(), ..association(Suite::Aes256Gcm, 1, services) }
    };
    let packet = numbered(labelled(b"SECRET"), 1, b"data");
    for other in [&b"UNCLAS"[..], b"SECRE", b"SECRET!", b""] {
        let mut sp = receiver(vec![labelled(other)]);
        assert_eq!(open(&mut sp, &packet), Err(Dropped::Label));
        assert_eq!(sp.counters().dropped(Dropped::Label), 1);
    }
    assert!(open(&mut receiver(vec![labelled(b"SECRET")]), &packet).is_ok());
    assert_eq!(open(&mut receiver(vec![labelled(b"")]), &m1()), Err(Dropped::Policy));
}

#[test]
fn bad_padding_is_dropped() {
    let services = Services::CONFIDENTIALITY.with(Services::INTEGRITY);
    for (part, expected) in [
        (&b"\x03\x02\x02HELLO"[..], Ok(b"HELLO".to_vec())),
        (b"\x03\x00HELLO", Err(Dropped::Padding)),
        (b"\x03\x09\x09\x09", Err(Dropped::Padding)),
        (b"\x03\x03\x03\x02HELLO", Err(Dropped::Padding)),
    ] {
        let mut sp = receiver(vec![association(Suite::Aes256Gcm, 1, services)]);
        assert_eq!(open(&mut sp, &forged_inside(part, services)), expected);
    }
}

#[test]
fn reserved_flags_are_dropped_though_the_tag_is_right() {
    for flags in [0x10, 0x20, 0x40, 0x80, 0xf0] {
        let part = [&[0x05 | flags][..], b"\xc0\x30\x72\x80\xc0\x30\x72\x83HELLO"].concat();
        let mut sp = receiver(vec![m1_association()]);
        assert_eq!(open(&mut sp, &forged_inside(&part, usual())), Err(Dropped::ReservedFlags));
    }
}

#[test]
fn without_a_record_of_used_numbers_nothing_is_sent() {
    // As after a restart whose record is lost: no nonce is risked.
    let mut sp = sender(vec![m1_association()]);
    let what = outgoing(b"HELLO");
    assert_eq!(seal(&mut sp, NOW, what, b"HELLO"), Err(Refused::NoNumbers));
    assert_eq!(sp.counters().refused(Refused::NoNumbers), 1);
    let name = KeyName { ends: ends(), key_id: 1 };
    assert_eq!(sp.wanted(), Some(name));
    // With one it goes on above them, and numbers that may have been used are not taken.
    grant(&mut sp, 1, 65_537..65_539);
    let first = seal(&mut sp, NOW, what, b"HELLO").unwrap();
    assert_eq!(first[3..9], [0, 0, 0, 1, 0, 1]);
    assert!(sp.grant(name, 65_538..70_000).is_err() && sp.grant(name, 1..2).is_err());
    assert!(seal(&mut sp, NOW, what, b"HELLO").is_ok());
    assert_eq!(seal(&mut sp, NOW, what, b"HELLO"), Err(Refused::NoNumbers));
}

#[test]
fn at_its_limit_a_key_is_refused_and_an_alarm_says_so() {
    for (suite, limit) in
        [(Suite::Aes256Gcm, 1u64 << 32), (Suite::Aes128Gcm, 1 << 32), (Suite::ChaCha20Poly1305, (1 << 48) - 1)]
    {
        let mut sp = sender(vec![association(suite, 1, usual())]);
        grant(&mut sp, 1, limit - 1..limit + BLOCK);
        let what = outgoing(b"HELLO");
        assert!((0..2).all(|_| seal(&mut sp, NOW, what, b"HELLO").is_ok()));
        assert_eq!(seal(&mut sp, NOW, what, b"HELLO"), Err(Refused::Exhausted));
        assert_eq!(sp.wanted(), None, "there are no more");
        let notices: Vec<Trouble> = std::iter::from_fn(|| sp.poll_notice(NOW)).map(|notice| notice.trouble).collect();
        assert_eq!(notices, [Trouble::Refused(Refused::Exhausted), Trouble::RekeyDue]);
    }
}

#[test]
fn a_forged_number_does_not_move_the_window() {
    let mut sp = receiver(vec![m1_association()]);
    let mut forged = m1();
    forged[3..9].fill(0xff);
    assert_eq!(open(&mut sp, &forged), Err(Dropped::Authentication));
    assert!(open(&mut sp, &m1()).is_ok());
    assert!(open(&mut sp, &numbered(m1_association(), 2, b"data")).is_ok());
}

#[test]
fn without_an_association_everything_is_dropped_and_life_goes_on() {
    let mut sp = at([10, 0, 0, 1].into(), Policy::Strict, Vec::new());
    for packet in [&m1()[..], b"", b"j"] {
        assert_eq!(open(&mut sp, packet), Err(Dropped::NoAssociation));
    }
    assert_eq!(sp.counters().dropped(Dropped::NoAssociation), 3);
    assert_eq!(seal(&mut sp, NOW, outgoing(b"HELLO"), b"HELLO"), Err(Refused::NoAssociation));
}

#[test]
fn a_million_forged_packets_leave_a_few_lines_and_no_memory() {
    let mut sp = receiver(vec![m1_association()]);
    let mut out = Vec::new();
    let mut forged = m1();
    assert!(sp.open(NOW, ends(), &m1(), &mut out).is_ok());
    let (memory, room) = (sp.allocated(), out.capacity());
    let mut lines = 0;
    for n in 0..1_000_000u64 {
        let now = NOW + Duration::from_micros(n);
        forged[3..9].copy_from_slice(&(n + 2).to_be_bytes()[2..]);
        assert!(sp.open(now, ends(), &forged, &mut out).is_err());
        lines += u32::from(sp.poll_notice(now).is_some());
    }
    assert_eq!((sp.allocated(), out.capacity(), lines), (memory, room, 1));
    assert_eq!(sp.counters().dropped(Dropped::Authentication), 1_000_000);
}

#[test]
fn no_text_shows_a_key() {
    let association = m1_association();
    let sp = sender(vec![association.clone()]);
    let shared = Association { key_id: 2, ..association.clone() };
    let refused = Sp::new(
        scps_sp::SpConfig {
            local: vec![ends().src],
            associations: vec![association.clone(), shared],
            ..Default::default()
        },
        NOW,
    );
    let short = AeadKey::new(Suite::Aes256Gcm, &[0x5a; 31], &common::SALT);
    let text = format!("{association:?} {sp:?} {refused:?} {} {short:?}", refused.as_ref().unwrap_err());
    // Some octets in a row of the key, or of the short one, in the ways they might be written.
    for shown in ["4, 5, 6", "040506", "04 05 06", "0x04", "90, 90", "5a5a", "ZZ", "160, 161"] {
        assert!(!text.contains(shown), "{shown} in {text}");
    }
}

#[test]
fn old_and_new_keys_come_together_during_a_rekey() {
    let other = |key_id: u16| {
        let key = AeadKey::new(Suite::Aes256Gcm, &[key_id as u8; 32], &common::SALT).unwrap();
        Association::new(ends(), key_id, key)
    };
    let mut sp = receiver(vec![other(1), other(2)]);
    let mut number = 0;
    let mut send = |sp: &mut Sp, now: Instant, key_id| {
        number += 1;
        open_as(sp, now, ends(), &numbered(other(key_id), number, b"data")).map(|_| ())
    };
    assert_eq!(send(&mut sp, NOW, 1), Ok(()));
    assert_eq!(send(&mut sp, NOW, 2), Ok(()));
    // No round trip is configured: the old key lives for a minute more.
    let minute = NOW + Duration::from_secs(60);
    assert_eq!((send(&mut sp, minute, 1), send(&mut sp, minute, 2)), (Ok(()), Ok(())));
    sp.install(minute, other(3)).unwrap();
    assert!(sp.install(minute, other(4)).is_err(), "three are live");
    let later = minute + Duration::from_millis(1);
    assert_eq!(send(&mut sp, later, 1), Err(Dropped::ExpiredKey));
    sp.install(later, other(4)).unwrap();
    assert_eq!(send(&mut sp, later, 4), Ok(()));
}
