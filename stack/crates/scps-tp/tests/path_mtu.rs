//! Path MTU discovery (RFC 1191): a report concerns one destination, for a while, and every connection to it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{ip_packet, no_rate, plain, US};
use scps_tp::{Congestion, ConnectionId, Endpoint, EndpointConfig, Event, RouteConfig, Trust};
use scps_wire::checksum::Checksum;
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Instant, Seed, SeqNum};
use std::net::Ipv4Addr;

const HONEST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 50);
const HOSTILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
const T: fn(u64) -> Instant = Instant::from_secs;

struct Server {
    endpoint: Endpoint,
    ports: u16,
}

impl Server {
    fn new(route: RouteConfig) -> Self {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(7), Instant::ZERO);
        endpoint.listen(US, plain().congestion(Congestion::None).mss(None)).unwrap();
        Server { endpoint, ports: 6000 }
    }

    fn drain(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let (mut packets, mut out) = (Vec::new(), Vec::new());
        while self.endpoint.poll_transmit(now, &mut out).is_some() {
            packets.push(std::mem::take(&mut out));
        }
        packets
    }

    fn take(&mut self, now: Instant, from: (Ipv4Addr, u16), tcp: Tcp) {
        let tcp = Tcp { src_port: from.1, dst_port: US.1, ..tcp };
        let packet = ip_packet(from.0, US.0, 6, tcp.emit_len(), &[], |s| tcp.emit(s, from.0, US.0, 6));
        self.endpoint.handle_input(now, &packet, Trust::Check);
    }

    /// A connection from a host, and the MSS that it is offered.
    fn accept(&mut self, now: Instant, from: Ipv4Addr) -> (ConnectionId, u16) {
        self.ports += 1;
        let from = (from, self.ports);
        let options = Options { mss: Some(1460), ..Options::default() };
        let (seq, ack, flags) = (SeqNum(100), SeqNum(0), Flags::SYN);
        let syn = Tcp { src_port: 0, dst_port: 0, seq, ack, flags, window: 65_535, urgent: 0, options };
        self.take(now, from, syn);
        let answer = tcp_of(&self.drain(now)[0]);
        let ack = Tcp { seq: SeqNum(101), ack: answer.seq + 1, flags: Flags::ACK, options: Options::default(), ..syn };
        self.take(now, from, ack);
        let accepted = std::iter::from_fn(|| self.endpoint.poll_event()).find_map(|event| match event {
            Event::Accepted(_, id) => Some(id),
            _ => None,
        });
        (accepted.expect("a connection"), answer.options.mss.unwrap())
    }

    /// Sends ten full segments of a connection; the first packet.
    fn send(&mut self, now: Instant, id: ConnectionId) -> Vec<u8> {
        self.endpoint.send(now, id, &[1; 14_600]).unwrap();
        self.drain(now).swap_remove(0)
    }

    /// A router says that a packet did not fit a link of `mtu`; what leaves after that.
    fn report(&mut self, now: Instant, packet: &[u8], mtu: u16) -> Vec<usize> {
        let [high, low] = mtu.to_be_bytes();
        let mut message = vec![3, 4, 0, 0, 0, 0, high, low];
        message.extend_from_slice(&packet[..28]);
        let mut sum = Checksum::new();
        sum.add(&message);
        let sum = sum.finish().to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        let icmp = ip_packet(Ipv4Addr::new(10, 0, 0, 9), US.0, 1, 0, &message, |_| ());
        self.endpoint.handle_input(now, &icmp, Trust::Check);
        self.drain(now).iter().map(Vec::len).collect()
    }

    fn segment(&self, id: ConnectionId) -> u64 {
        self.endpoint.segment_size(id).unwrap()
    }

    fn advance(&mut self, to: Instant) {
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= to) {
            self.endpoint.handle_timeout(at);
            self.drain(at);
        }
    }
}

fn tcp_of(packet: &[u8]) -> Tcp {
    let (ip, payload) = Ipv4::parse(packet).unwrap();
    Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap().0
}

#[test]
fn a_report_concerns_its_destination_for_ten_minutes() {
    let mut server = Server::new(no_rate());
    let (honest, _) = server.accept(T(1), HONEST);
    let (hostile, _) = server.accept(T(1), HOSTILE);
    let packet = server.send(T(1), hostile);
    server.report(T(1), &packet, 1000);
    assert_eq!((server.segment(hostile), server.segment(honest)), (960, 1460));
    // What we take ourselves is not what the path takes.
    let (later, offered) = server.accept(T(2), HOSTILE);
    assert_eq!((server.segment(later), offered), (960, 1460));
    server.endpoint.abort(T(2), hostile);
    server.advance(T(700));
    server.endpoint.send(T(700), later, &[1; 5000]).unwrap();
    assert_eq!(server.drain(T(700))[0].len(), 1500);
    let (other, offered) = server.accept(T(86_400), HOSTILE);
    assert_eq!((server.segment(other), offered), (1460, 1460));
}

#[test]
fn less_than_576_octets_are_believed_only_of_a_route_that_has_less() {
    let mut server = Server::new(no_rate());
    let (id, _) = server.accept(T(1), HOSTILE);
    let packet = server.send(T(1), id);
    let sent = server.report(T(1), &packet, 68);
    assert_eq!((server.segment(id), sent.iter().max()), (536, Some(&576)));
    // A path that is honest about less gets what it can cut.
    server.endpoint.send(T(1), id, &[1; 1000]).unwrap();
    let packet = server.drain(T(1)).swap_remove(0);
    assert_eq!(packet[6] & 0x40, 0, "don't fragment");
    let mut server = Server::new(no_rate().mtu(296));
    let (id, _) = server.accept(T(1), HOSTILE);
    let packet = server.send(T(1), id);
    server.report(T(1), &packet, 128);
    assert_eq!(server.segment(id), 88);
}

#[test]
fn every_connection_to_the_destination_sends_again_what_was_too_big() {
    let mut server = Server::new(no_rate());
    let (first, _) = server.accept(T(1), HONEST);
    let (second, _) = server.accept(T(1), HONEST);
    let (elsewhere, _) = server.accept(T(1), HOSTILE);
    let packets = [first, second, elsewhere].map(|id| server.send(T(1), id));
    // Ten segments of 1460 octets each become twice as many: 1240 and 220.
    let sent = server.report(T(1), &packets[0], 1280);
    assert_eq!((sent.len(), sent.iter().max()), (40, Some(&1280)));
    assert_eq!(server.report(T(1), &packets[1], 1280), [0; 0], "it was sent again already");
    for id in [first, second] {
        let stats = server.endpoint.stats(id).unwrap();
        assert_eq!((stats.resends_total(), stats.rtos), (20, 0));
    }
}
