//! Any bytes as a packet of SP: nothing forged is delivered; what is sealed is opened once, and not if any of it was changed. In
//! a genuine packet of any content nothing is read beyond its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_sp::legacy::{read_table, Algorithms, Cipher};
use scps_sp::{
    AeadKey, Association, ClearHeader, Ends, KeyName, Outgoing, Protection, Services, Sp, SpConfig, Suite, Upper,
};
use scps_wire::Instant;

const NOW: Instant = Instant::ZERO;

fn side(address: [u8; 4], association: Association) -> Sp {
    let config = SpConfig { local: vec![address.into()], associations: vec![association], ..SpConfig::default() };
    Sp::new(config, NOW).expect("a good association")
}

fuzz_target!(|data: &[u8]| {
    let [choice, more, data @ ..] = data else { return };
    let ends = Ends::v4([10, 0, 0, 1], [10, 0, 0, 2]);
    let suite = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Aes128Gcm][usize::from(choice >> 6) % 3];
    let services = Services::from_bits(choice & 15).with(Services::INTEGRITY);
    let key = AeadKey::derive(suite, &[7; 32], &ends, 1, services).expect("32 octets");
    let label = if services.has(Services::LABEL) { data[..data.len().min(32)].to_vec() } else { Vec::new() };
    let association = Association {
        services,
        label,
        clear_header: [ClearHeader::Full8, ClearHeader::Nibble, ClearHeader::LowNibble][usize::from(choice >> 4) % 3],
        pad_to: (*more > 1).then_some(*more),
        ..Association::new(ends, 1, key)
    };
    let (mut sender, mut receiver) = (side([10, 0, 0, 1], association.clone()), side([10, 0, 0, 2], association.clone()));
    sender.grant(KeyName { ends, key_id: 1 }, 1..1000).expect("new numbers");
    let mut out = Vec::new();
    assert!(receiver.open(NOW, ends, data, &mut out).is_err() && out.is_empty(), "nobody has the key");
    let upper = [Upper::Tp, Upper::CompressedTp, Upper::Udp][usize::from(*more) % 3];
    let what = Outgoing { ends, upper, demanded: Services::NONE, pdu_len: data.len() };
    let room = sender.room(NOW, what).expect("there is an association");
    assert!(room.len() <= sender.room_max(ends, Services::NONE));
    let mut packet = vec![0; room.head];
    packet.extend_from_slice(data);
    packet.resize(room.len() + data.len(), 0);
    assert_eq!(sender.seal(NOW, what, &mut packet), Ok(true));
    let mut changed = packet.clone();
    let at = usize::from(*more) * 7 % changed.len();
    changed[at] ^= 1 << (choice % 8);
    assert!(receiver.open(NOW, ends, &changed, &mut out).is_err());
    let (read, range) = receiver.open(NOW, ends, &packet, &mut out).expect("genuine");
    assert_eq!((read, &out[range]), (upper, data));
    assert!(receiver.open(NOW, ends, &packet, &mut out).is_err(), "once");
    // The PDU of the reference shows the parser any content: XOR is no obstacle.
    let cipher = if choice & 0x40 == 0 { Cipher::Xor } else { Cipher::Des };
    for services in [Services::NONE, Services::CONFIDENTIALITY, services] {
        let protection = Protection::Legacy(Algorithms::new(cipher, *b"KEYKEYKE", *b"MD5PKEY!"));
        let label = if services.has(Services::LABEL) { association.label.clone() } else { Vec::new() };
        let legacy = Association { protection, services, label, ..association.clone() };
        if let Ok((_, range)) = side([10, 0, 0, 2], legacy).open(NOW, ends, data, &mut out) {
            assert!(range.end <= out.len());
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = read_table(text);
    }
});
