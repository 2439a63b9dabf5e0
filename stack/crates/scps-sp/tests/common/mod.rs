//! Two ends, c0307280 and c0307283, as in the worked examples (scps-sp §7).
#![allow(
    dead_code,
    clippy::unwrap_used,
    missing_docs,
    reason = "not every test needs everything, and it stops where its expectation fails"
)]

use scps_sp::{AeadKey, Association, Dropped, Ends, Outgoing, Policy, Refused, Services, Sp, SpConfig, Suite, Upper};
use scps_wire::Instant;

pub const SALT: [u8; 4] = [0xa0, 0xa1, 0xa2, 0xa3];
pub const NOW: Instant = Instant::from_secs(1);

/// The direction of the examples.
pub fn ends() -> Ends {
    Ends::v4([0xc0, 0x30, 0x72, 0x80], [0xc0, 0x30, 0x72, 0x83])
}

/// The key 00 01 02 …, as long as the suite's are.
pub fn key(suite: Suite) -> AeadKey {
    let octets: Vec<u8> = (0..suite.key_len() as u8).collect();
    AeadKey::new(suite, &octets, &SALT).unwrap()
}

/// The association of M1, with these services.
pub fn association(suite: Suite, key_id: u16, services: Services) -> Association {
    Association { services, ..Association::new(ends(), key_id, key(suite)) }
}

pub fn usual() -> Services {
    Services::CONFIDENTIALITY.with(Services::AUTHENTICATION).with(Services::INTEGRITY)
}

pub fn m1_association() -> Association {
    association(Suite::Aes256Gcm, 1, usual())
}

/// SP of the host at the source.
pub fn sender(associations: Vec<Association>) -> Sp {
    at(ends().src, Policy::Strict, associations)
}

/// SP of the host at the destination.
pub fn receiver(associations: Vec<Association>) -> Sp {
    at(ends().dst, Policy::Strict, associations)
}

pub fn at(address: std::net::IpAddr, policy: Policy, associations: Vec<Association>) -> Sp {
    let config = SpConfig { policy, local: vec![address], allow_downgrade: true, associations, ..SpConfig::default() };
    Sp::new(config, NOW).unwrap()
}

/// Lets the sender use `numbers` under a key.
pub fn grant(sp: &mut Sp, key_id: u16, numbers: core::ops::Range<u64>) {
    sp.grant(scps_sp::KeyName { ends: ends(), key_id }, numbers).unwrap();
}

pub fn outgoing(pdu: &[u8]) -> Outgoing {
    Outgoing { ends: ends(), upper: Upper::Tp, demanded: Services::NONE, pdu_len: pdu.len() }
}

/// What leaves for a transport PDU.
pub fn seal(sp: &mut Sp, now: Instant, what: Outgoing, pdu: &[u8]) -> Result<Vec<u8>, Refused> {
    let room = sp.room(now, what)?;
    let mut packet = vec![0; room.head];
    packet.extend_from_slice(pdu);
    packet.resize(room.head + pdu.len() + room.tail, 0);
    sp.seal(now, what, &mut packet)?;
    Ok(packet)
}

/// The packet that carries `pdu` under sequence number `number`.
pub fn numbered(association: Association, number: u64, pdu: &[u8]) -> Vec<u8> {
    let key_id = association.key_id;
    let mut sp = sender(vec![association]);
    grant(&mut sp, key_id, number..number + 1);
    seal(&mut sp, NOW, outgoing(pdu), pdu).unwrap()
}

/// What is delivered of a packet between the ends of the examples.
pub fn open(sp: &mut Sp, packet: &[u8]) -> Result<Vec<u8>, Dropped> {
    open_as(sp, NOW, ends(), packet)
}

pub fn open_as(sp: &mut Sp, now: Instant, ends: Ends, packet: &[u8]) -> Result<Vec<u8>, Dropped> {
    let mut out = Vec::new();
    let opened = sp.open(now, ends, packet, &mut out);
    assert!(opened.is_ok() || out.is_empty(), "nothing of a dropped packet is handed out");
    opened.map(|(_, range)| out[range].to_vec())
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

pub fn m1() -> Vec<u8> {
    hex("6a 00 01 00 00 00 00 00 01 b5 6f 88 fc ec b4 f6 c6 98 92 e8 26 37 24 88 2d 56 9f 91 8a dd 17 f4 4a 45 ce d0 9d eb 81")
}
