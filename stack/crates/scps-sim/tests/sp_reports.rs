//! Reports of routers about what SP protects: which of them reach the transport, over NP and over IPv4, and what whoever does
//! not see the packets can make of forged ones.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_np::scmp::{Message, Unreachable};
use scps_np::{tpid, Address, Addresses, Header, Tables};
use scps_sim::{LinkConfig, Network, Node, Program, ENDS, PORT};
use scps_sp::{AeadKey, Association, Ends, Policy, Sp, SpConfig, Suite};
use scps_tp::net::{NetworkConfig, NpConfig, Protection, Services};
use scps_tp::{Config, DropReason, RouteConfig, Snapshot};
use scps_wire::checksum::Checksum;
use scps_wire::protocol;
use scps_wire::{Bitrate, Duration, Instant, Seed};
use std::net::Ipv4Addr;

const HOSTS: [Ipv4Addr; 2] = [Network::address(0), Network::address(1)];
const NP: [u16; 2] = [0x7290, 0x7292];
const ROUTER: u16 = 0x7294;
/// Octets of a datagram that a router quotes, and of a packet that today's kernels quote.
const SCMP_QUOTE: usize = 50;
const ICMP_QUOTE: usize = 548;
const ENCRYPTED: Services = Services::CONFIDENTIALITY.with(Services::INTEGRITY);

fn np(i: usize) -> NetworkConfig {
    let mut tables = Tables::of(HOSTS[i]);
    let router = (Ipv4Addr::new(10, 0, 0, 9), ROUTER);
    for (ip, np) in HOSTS.into_iter().zip(NP).chain([router]) {
        tables.add_host(ip, Address::Basic(np)).unwrap();
    }
    NetworkConfig::Np(Box::new(NpConfig::with_tables(tables)))
}

fn protection(i: usize, services: Services) -> Protection {
    let ends = Ends::v4(HOSTS[0], HOSTS[1]);
    let associations = [ends, ends.back()].map(|ends| {
        let key = AeadKey::derive(Suite::Aes256Gcm, &[7; 32], &ends, 1, services).unwrap();
        Association { services, ..Association::new(ends, 1, key) }
    });
    let config = SpConfig {
        policy: Policy::Strict,
        local: vec![HOSTS[i].into()],
        associations: associations.into(),
        ..SpConfig::default()
    };
    Protection::new(Sp::new(config, Instant::ZERO).unwrap())
}

/// A protected transfer that is under way.
struct Midway {
    network: Network,
    is_np: bool,
}

impl Midway {
    fn new(is_np: bool, services: Services) -> Self {
        let networks = if is_np { [0, 1].map(np) } else { Default::default() };
        let link = LinkConfig {
            rate: Some(Bitrate::from_bps(2_000_000)),
            delay: Duration::from_millis(50),
            ..LinkConfig::default()
        };
        let mut network = Network::over(
            &networks,
            [RouteConfig::default(), RouteConfig::default()],
            [link.clone(), link],
            Seed::from_u64(5),
        );
        network.captures = true;
        for i in 0..2 {
            network[ENDS[i]].protect(protection(i, services));
        }
        let program = Program::sending(vec![5; 2_000_000]);
        network[ENDS[1]].listen(PORT, Config::default());
        network[ENDS[0]].connect(Instant::ZERO, (HOSTS[1], PORT), Config::default(), program);
        network.run(Instant::from_millis(1500), |_| false);
        Midway { network, is_np }
    }

    fn snapshot(&self) -> Snapshot {
        let host = &self.network[ENDS[0]];
        host.endpoint.snapshot(host.connection().unwrap()).unwrap()
    }

    fn segment_size(&self) -> u64 {
        let host = &self.network[ENDS[0]];
        host.endpoint.segment_size(host.connection().unwrap()).unwrap()
    }

    /// What left last, and is not acknowledged; and one that was acknowledged long ago.
    fn packets(&self) -> [Vec<u8>; 2] {
        let left = || self.network.capture.iter().filter(|(_, from, _)| *from == 0).map(|(.., packet)| packet);
        [left().next_back().unwrap().clone(), left().nth(2).unwrap().clone()]
    }

    /// A router, or whoever says to be one, quotes these octets.
    fn tell(&mut self, message: &Message<'_>) {
        let mut data = Vec::new();
        message.emit(true, &mut data);
        let addresses = Addresses::Basic { dst: NP[0], src: ROUTER };
        let header = Header { tpid: tpid::SCMP, addresses, checksum: true, ..Header::default() };
        let mut packet = vec![0; header.emit_len()];
        packet.extend(data);
        header.emit(scps_np::Dialect::default(), 1500, &mut packet).unwrap();
        let now = self.network.now;
        self.network[ENDS[0]].handle(now, 0, &packet);
    }

    fn tell_icmp(&mut self, mtu: u16, quote: &[u8]) {
        let mut message = vec![3, 4, 0, 0, 0, 0];
        message.extend(mtu.to_be_bytes());
        message.extend(quote);
        let mut sum = Checksum::new();
        sum.add(&message);
        message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
        let mut packet = vec![0; 20];
        packet.extend(&message);
        scps_wire::ipv4::Ipv4 {
            src: [10, 0, 0, 9].into(),
            dst: HOSTS[0],
            protocol: protocol::ICMP,
            tos: 0,
            ttl: 64,
            id: 0,
            dont_fragment: true,
            is_fragment: false,
            payload_len: message.len() as u16,
        }
        .emit(&mut packet);
        let now = self.network.now;
        self.network[ENDS[0]].handle(now, 0, &packet);
    }

    /// Reports "too big", with a quote of so much of a packet.
    fn too_big(&mut self, mtu: u16, packet: &[u8]) {
        if self.is_np {
            let quote = &packet[..packet.len().min(SCMP_QUOTE)];
            self.tell(&Message::TooBig { mtu, quote });
        } else {
            self.tell_icmp(mtu, &packet[..packet.len().min(ICMP_QUOTE)]);
        }
    }

    fn drops(&self, reason: DropReason) -> u64 {
        self.network[ENDS[0]].endpoint.drops(reason)
    }
}

#[test]
fn a_packet_that_is_too_big_makes_segments_fit_and_the_transfer_goes_on() {
    for is_np in [false, true] {
        for services in [ENCRYPTED, Services::INTEGRITY] {
            let mut m = Midway::new(is_np, services);
            let [in_flight, _] = m.packets();
            m.too_big(600, &in_flight);
            let (head, room) = if is_np { (12, 26) } else { (20, 26) };
            assert!(m.segment_size() + 20 + head + room <= 600 && m.segment_size() > 500, "{}", m.segment_size());
            let before = m.network.capture.len();
            let until = m.network.now + Duration::from_secs(2);
            m.network.run(until, |_| false);
            let later = &m.network.capture[before..];
            assert!(later.iter().any(|(_, from, _)| *from == 0));
            assert!(later.iter().all(|(.., packet)| packet.len() <= 600));
        }
    }
}

#[test]
fn source_quench_and_outage_reach_the_connection_that_is_quoted() {
    let mut m = Midway::new(true, ENCRYPTED);
    let [in_flight, _] = m.packets();
    let mss = m.segment_size();
    assert!(m.snapshot().cwnd > 4 * mss);
    m.tell(&Message::SourceQuench(&in_flight[..SCMP_QUOTE]));
    assert_eq!((m.snapshot().cwnd, m.snapshot().ssthresh), (mss, 2 * mss));
    m.tell(&Message::Unreachable(Unreachable::LinkOutage, &in_flight[..SCMP_QUOTE]));
    assert_eq!(m.network[ENDS[0]].endpoint.signals().outage, 1);
}

#[test]
fn whoever_does_not_see_the_packets_cannot_quote_them() {
    for is_np in [false, true] {
        for services in [ENCRYPTED, Services::INTEGRITY] {
            let mut m = Midway::new(is_np, services);
            let before = (m.snapshot(), m.segment_size());
            let [in_flight, acknowledged] = m.packets();
            let head = in_flight.len().min(if is_np { SCMP_QUOTE } else { ICMP_QUOTE });
            let at = if is_np { 11 } else { 20 };
            // Key id and sequence number are easy to guess; of what follows, no octet may be wrong.
            let shown = if services == ENCRYPTED { at + 9 } else { at + 10 };
            for place in shown..shown + 8 {
                let mut guessed = in_flight[..head].to_vec();
                guessed[place] ^= 1;
                m.too_big(600, &guessed);
            }
            // A number that was not used yet, and one of a packet that is forgotten.
            for number in [u64::from(u32::MAX), 1 << 20] {
                let mut other = in_flight[..head].to_vec();
                other[at + 3..at + 9].copy_from_slice(&number.to_be_bytes()[2..]);
                m.too_big(600, &other);
            }
            // Less than shows it, down to the eight octets of RFC 792.
            for len in at..shown + 8 {
                m.too_big(600, &in_flight[..len]);
            }
            // The packet of another direction, which this host did not send.
            let answer = m.network.capture.iter().rfind(|(_, from, _)| *from == 1).unwrap().2.clone();
            m.too_big(600, &answer);
            // A packet that was seen, but is not under way any more.
            m.too_big(600, &acknowledged);
            assert_eq!((m.snapshot(), m.segment_size()), before);
            // The same report with what left is heeded: it was not refused for its form.
            m.too_big(600, &in_flight);
            assert!(m.segment_size() < 600);
        }
    }
}

#[test]
fn a_quote_in_clear_of_what_leaves_protected_is_forged() {
    // Whoever knows ports and sequence number, as of a connection without SP.
    for is_np in [false, true] {
        let mut m = Midway::new(is_np, Services::INTEGRITY);
        let before = (m.snapshot(), m.segment_size());
        let [in_flight, _] = m.packets();
        let header = if is_np { 11 } else { 20 };
        // Head, flags: then the segment, whose octets are in clear under this association.
        let mut clear = in_flight[..header].to_vec();
        clear.extend(&in_flight[header + 10..]);
        if is_np {
            clear[2] = clear[2] & 0x0f | tpid::SCPS_TP << 4;
            let length = clear.len() as u16;
            clear[0] = clear[0] & 0xe0 | (length >> 8) as u8;
            clear[1] = length as u8;
            let mut sum = Checksum::new();
            clear[header - 2..header].fill(0);
            sum.add(&clear[..header]);
            let sum = sum.finish().to_be_bytes();
            clear[header - 2..header].copy_from_slice(&sum);
        } else {
            clear[9] = protocol::TCP;
        }
        m.too_big(600, &clear);
        assert_eq!((m.snapshot(), m.segment_size()), before);
        assert_eq!(m.drops(DropReason::UnknownProtocol), 1);
    }
}

#[test]
fn reports_are_ignored_where_that_is_asked_for() {
    for is_np in [false, true] {
        let mut m = Midway::new(is_np, ENCRYPTED);
        m.network[ENDS[0]].endpoint.protection_mut().unwrap().heeds_reports = false;
        let before = (m.snapshot(), m.segment_size());
        let [in_flight, _] = m.packets();
        m.too_big(600, &in_flight);
        assert_eq!((m.snapshot(), m.segment_size()), before);
    }
}
