//! The worked examples of scps-sp §7, octet by octet, in both directions.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{association, hex, m1, m1_association, numbered, open, receiver, usual};
use scps_sp::{Association, Services, Suite};

fn modern() -> [(&'static str, Association, u64, Vec<u8>); 3] {
    let without_addresses = Services::CONFIDENTIALITY.with(Services::INTEGRITY);
    [
        ("M1", m1_association(), 1, m1()),
        (
            "M2",
            association(Suite::ChaCha20Poly1305, 2, usual()),
            7,
            hex("6a 00 02 00 00 00 00 00 07 a9 5b 8a e5 3f cc a5 ab ac f0 73 a0 b1 bf 25 14 9f f2 fa 07 da ef d0 40 72 bd 6e f6 f4 2f"),
        ),
        (
            "M3",
            association(Suite::Aes256Gcm, 1, without_addresses),
            2,
            hex("6a 00 01 00 00 00 00 00 02 ea fb e6 d7 eb 5d 29 c4 5b 8e 51 c8 e0 9c 64 e1 df 8e e9 f0 22 77"),
        ),
    ]
}

#[test]
fn the_modern_examples_are_written_octet_by_octet() {
    for (name, association, number, octets) in modern() {
        assert_eq!(numbered(association, number, b"HELLO"), octets, "{name}");
    }
}

#[test]
fn the_modern_examples_say_hello() {
    for (name, association, _, octets) in modern() {
        assert_eq!(open(&mut receiver(vec![association]), &octets), Ok(b"HELLO".to_vec()), "{name}");
    }
}

#[cfg(feature = "legacy-insecure")]
mod legacy {
    use super::*;
    use common::{outgoing, seal, sender, NOW};
    use scps_sp::legacy::{Algorithms, Cipher};
    use scps_sp::Protection;

    const INTEGRITY: Services = Services::AUTHENTICATION.with(Services::INTEGRITY);
    const PLAIN: Services = Services::AUTHENTICATION.with(Services::INTEGRITY).with(Services::LABEL);

    fn legacy(cipher: Cipher, label: &[u8], services: Services) -> Association {
        let algorithms = Algorithms::new(cipher, *b"KEYKEYKE", *b"MD5PKEY!");
        let modern = association(Suite::Aes256Gcm, 1, services);
        Association { protection: Protection::Legacy(algorithms), label: label.to_vec(), ..modern }
    }

    fn examples() -> [(&'static str, Association, Vec<u8>); 5] {
        [
            ("P0", legacy(Cipher::Xor, b"", Services::NONE), hex("6a 00 48 45 4c 4c 4f")),
            (
                "P1",
                legacy(Cipher::Xor, b"", INTEGRITY),
                hex("6a 05 c0 30 72 80 c0 30 72 83 48 45 4c 4c 4f 7a 53 91 e9 fc fb d4 e6 77 90 18 cb 0c 3f ec f0"),
            ),
            (
                "P2",
                legacy(Cipher::Xor, b"", Services::ALL),
                hex("6a 44 45 99 7b 37 d9 8b 75 39 c6 58 03 00 15 07 0a 70 ff 90 35 04 47 05 8b 9a 2b e0 a0 8a 43 20 7c"),
            ),
            (
                "P3",
                legacy(Cipher::Des, b"", Services::ALL),
                hex("6a 9d 54 4a 30 e0 50 64 0a cb d2 a3 9e 6f a7 6b 3d e5 ad 09 d7 03 a7 36 eb 15 7a 5c 8a e8 79 31 82"),
            ),
            (
                "P4",
                legacy(Cipher::Xor, b"UNCLAS", Services::ALL),
                hex("6a 44 43 0c 05 06 15 0a 16 8b 75 2b cb 85 69 39 c6 48 46 5a 03 00 15 07 0a a5 26 ce 5f 51 d2 33 c8 28 93 6f 37 ef 17 56 c5"),
            ),
        ]
    }

    #[test]
    fn the_examples_of_the_reference_are_written_octet_by_octet() {
        for (name, association, octets) in examples() {
            assert_eq!(
                seal(&mut sender(vec![association]), NOW, outgoing(b"HELLO"), b"HELLO").unwrap(),
                octets,
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_hidden_in_the_examples_is_theirs_octet_by_octet() {
        // P2p and P4p: undoing the XOR shows elements, padding, PDU and check value.
        let key = b"KEYKEYKE";
        let reveal = |packet: &[u8]| {
            let part = packet[1..].iter().zip(key.iter().cycle()).map(|(octet, key)| octet ^ key);
            [&packet[..1], &part.collect::<Vec<u8>>()].concat()
        };
        let all = examples();
        let p2p = "6a 0f 00 c0 30 72 80 c0 30 72 83 01 48 45 4c 4c 4f 3b ba c9 7e 41 1e 4e ce d1 6e b9 eb cf 1a 6b 39";
        let p4p = "6a 0f 06 55 4e 43 4c 41 53 c0 30 72 80 c0 30 72 83 03 03 03 48 45 4c 4c 4f ee 63 97 14 14 8b 78 8d 63 d6 36 7c aa 4e 1d 80";
        assert_eq!([reveal(&all[2].2), reveal(&all[4].2)], [hex(p2p), hex(p4p)]);
    }

    #[test]
    fn the_examples_of_the_reference_say_hello() {
        for (name, association, octets) in examples() {
            let mut sp = receiver(vec![association]);
            assert_eq!(open(&mut sp, &octets), Ok(b"HELLO".to_vec()), "{name}");
            // Nothing is numbered: what came once is taken again.
            assert!(open(&mut sp, &octets).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_prefix_of_an_example_is_delivered() {
        for (name, association, octets) in &examples()[1..] {
            for len in 0..octets.len() {
                assert!(open(&mut receiver(vec![association.clone()]), &octets[..len]).is_err(), "{name} {len}");
            }
        }
    }

    #[test]
    fn padding_is_there_only_if_it_is_needed_and_checked() {
        use scps_sp::Dropped;
        // Flags, label, addresses and check value are 26 octets: with six octets of data nothing is missing to 32.
        let mut sp = sender(vec![legacy(Cipher::Xor, b"", Services::ALL)]);
        let whole = seal(&mut sp, NOW, outgoing(b"HELLO!"), b"HELLO!").unwrap();
        assert_eq!((whole.len(), whole[1] ^ b'K'), (33, 0x0d));
        // Without the check value whoever knows the key may write any padding.
        let conf = Services::CONFIDENTIALITY;
        for (part, expected) in [
            (&[2, 2, 2, 9, 9, 9, 9, 9][..], Ok(vec![9; 5])),
            (&[2, 0, 9, 9, 9, 9, 9, 9], Err(Dropped::Padding)),
            (&[2, 3, 3, 2, 9, 9, 9, 9], Err(Dropped::Padding)),
            (&[2, 8, 8, 8, 8, 8, 8, 8], Err(Dropped::Padding)),
            (&[2, 200, 200, 9, 9, 9, 9, 9], Err(Dropped::Padding)),
        ] {
            let hidden = part.iter().zip(b"KEYKEYKE").map(|(octet, key)| octet ^ key);
            let packet: Vec<u8> = [0x6a].into_iter().chain(hidden).collect();
            assert_eq!(open(&mut receiver(vec![legacy(Cipher::Xor, b"", conf)]), &packet), expected, "{part:?}");
        }
    }

    #[test]
    fn a_packet_that_announces_less_than_the_association_demands_is_dropped() {
        use scps_sp::Dropped;
        let p0 = hex("6a 00 48 45 4c 4c 4f");
        for services in [Services::INTEGRITY, Services::AUTHENTICATION, Services::LABEL, PLAIN] {
            assert_eq!(open(&mut receiver(vec![legacy(Cipher::Xor, b"", services)]), &p0), Err(Dropped::Policy));
        }
    }
}
