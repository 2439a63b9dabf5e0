//! Any packet and any report at a host's network layer, IPv4 and NP, with and without SP: reading them is total, and what SP
//! protects lets nothing of them through.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_tp::net::{Carriage, Envelope, Network, NetworkConfig, NpConfig, Protection, Report, Services};
use scps_np::{Address, Tables};
use scps_sp::{AeadKey, Association, Ends, KeyName, Sp, SpConfig, Suite};
use scps_wire::Instant;
use scps_wire::protocol;
use std::net::Ipv4Addr;

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn network(is_np: bool) -> Network {
    let mut tables = Tables::of(US);
    tables.add_host(US, Address::Basic(0x7290)).expect("a host");
    tables.add_host(PEER, Address::Basic(0x7292)).expect("a host");
    let np = NetworkConfig::Np(Box::new(NpConfig::with_tables(tables)));
    Network::new(if is_np { &np } else { &NetworkConfig::Ipv4 }, 0)
}

fn protected(is_np: bool) -> Network {
    let ends = Ends::v4(US.octets(), PEER.octets());
    let services = Services::INTEGRITY.with(Services::CONFIDENTIALITY);
    let associations = [ends, ends.back()].map(|ends| {
        let key = AeadKey::derive(Suite::Aes256Gcm, &[7; 32], &ends, 1, services).expect("32 octets");
        Association { services, ..Association::new(ends, 1, key) }
    });
    let config = SpConfig { local: vec![US.into()], associations: associations.into(), ..SpConfig::default() };
    let mut sp = Sp::new(config, Instant::ZERO).expect("good associations");
    sp.grant(KeyName { ends, key_id: 1 }, 1..100).expect("new numbers");
    let mut network = network(is_np);
    network.protect(Protection::new(sp));
    network
}

/// A segment that leaves, so that reports can quote it.
fn leave(network: &mut Network) {
    let envelope = Envelope { src: US, dst: PEER, protocol: protocol::TCP, precedence: None, dscp: 0, services: Services::NONE };
    let room = network.room(Instant::ZERO, &envelope, 20).expect("a key");
    let mut packet = vec![0; room.len() + 20];
    let carriage = Carriage { mtu: 1500, dont_fragment: true };
    network.wrap(Instant::ZERO, &envelope, carriage, room, &mut packet).expect("it fits");
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, octets)) = data.split_first() else { return };
    let is_np = choice & 1 != 0;
    let envelope =
        Envelope { src: PEER, dst: US, protocol: protocol::ICMP, precedence: None, dscp: 0, services: Services::NONE };
    let mut opened = Vec::new();
    let mut plain = network(is_np);
    if let Ok((outer, segment)) = plain.unwrap(Instant::ZERO, octets, &mut opened) {
        assert!(segment.len() <= octets.len());
        let segment = segment.to_vec();
        let _ = plain.report(&outer, &segment);
    }
    let _ = plain.report(&envelope, octets);
    let mut guarded = protected(is_np);
    if let Ok((outer, _)) = guarded.unwrap(Instant::ZERO, octets, &mut opened) {
        let transports = [protocol::TCP, protocol::SCPS_STANDALONE, protocol::SCPS_COMPRESSED, protocol::UDP];
        assert!(!transports.contains(&outer.protocol), "a segment that nobody sealed");
    }
    leave(&mut guarded);
    if let Ok(Report::Segment { quote, .. }) = guarded.report(&envelope, octets) {
        assert_eq!((quote.src, quote.dst), ((US, 0), (PEER, 0)), "what left, and nothing else");
    }
});
