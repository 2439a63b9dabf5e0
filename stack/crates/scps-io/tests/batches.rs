//! The loop reads packets in batches; the peer must not notice. A peer of raw segments over UDP encapsulation on the loopback
//! interface, where a datagram that was sent waits in the other socket: one turn finds all of them.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_io::{Stack, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{AckBehaviour, Config, EndpointConfig, Event, RouteConfig};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::scps::Capabilities;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Seed, SeqNum};
use std::net::{Ipv4Addr, UdpSocket};

const US: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 8, 0, 2), 5001);
const PEER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 8, 0, 1), 4000);
const ISS: SeqNum = SeqNum(1000);
const SEGMENT: u32 = 500;

struct Peer {
    stack: Stack,
    socket: UdpSocket,
    ack: SeqNum,
}

impl Peer {
    /// A connection of a peer that speaks SNACK or nothing beyond RFC 793; every n-th segment is to be acknowledged.
    fn connected(n: u16, snack: bool, offload: bool) -> Peer {
        let local = "127.0.0.1:0".parse().unwrap();
        let config = UdpConfig { local, remote: None, offload, addressing: UdpAddressing::Learned };
        let device = UdpDevice::open(&config).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(device.local_addr().unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let endpoint = EndpointConfig::default().addresses(vec![US.0.into()]);
        let route = RouteConfig::default().rate(None);
        let mut stack = Stack::new(Box::new(device), endpoint, route, Seed::from_u64(1)).unwrap();
        let mut config = Config::default().keepalive(None).timestamps(false).receive_buffer(60_000);
        config.ack.behaviour = AckBehaviour::EveryNth(n);
        stack.listen(US, config).unwrap();
        let mut peer = Peer { stack, socket, ack: SeqNum(0) };
        let capabilities = snack.then_some(Capabilities { bits: 0x40, connection_id: 0 });
        let options = Options { mss: Some(1400), capabilities, ..Options::default() };
        peer.send(ISS, Flags::SYN, options, 0);
        let syn_ack = peer.run_once();
        peer.ack = syn_ack[0].seq + 1;
        peer.send(ISS + 1, Flags::ACK, Options::default(), 0);
        assert!(peer.run_once().is_empty());
        assert!(matches!(peer.stack.poll_event(), Some(Event::Accepted(..))));
        peer
    }

    fn send(&self, seq: SeqNum, flags: Flags, options: Options, len: usize) {
        let (src_port, dst_port) = (PEER.1, US.1);
        let tcp = Tcp { src_port, dst_port, seq, ack: self.ack, flags, window: 60_000, urgent: 0, options };
        let mut packet = vec![0; 20 + tcp.emit_len()];
        packet.extend(vec![0x5a; len]);
        let (head, segment) = packet.split_at_mut(20);
        tcp.emit(segment, PEER.0, US.0, 6);
        let payload_len = segment.len() as u16;
        let (src, dst) = (PEER.0, US.0);
        Ipv4 { src, dst, protocol: 6, tos: 0, ttl: 64, id: 1, dont_fragment: true, is_fragment: false, payload_len }
            .emit(head);
        self.socket.send(&packet).unwrap();
    }

    fn data(&self, index: u32) {
        self.send(ISS + 1 + index * SEGMENT, Flags::ACK, Options::default(), SEGMENT as usize);
    }

    /// Lets the stack take what was sent, and returns what it answers.
    fn run_once(&mut self) -> Vec<Tcp> {
        let before = self.stack.device().stats().received;
        self.stack.run_once(Some(self.stack.now())).unwrap();
        assert!(self.stack.device().stats().received > before, "nothing was there to take");
        let mut buffer = [0; 2048];
        let mut answers = Vec::new();
        while let Ok(n) = self.socket.recv(&mut buffer) {
            let (ip, payload) = Ipv4::parse(&buffer[..n]).unwrap();
            answers.push(Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap().0);
        }
        answers
    }
}

/// Acknowledged segments, counted from the first.
fn acked(answers: &[Tcp]) -> Vec<u32> {
    answers.iter().map(|t| (t.ack.0 - ISS.0 - 1) / SEGMENT).collect()
}

#[test]
fn a_batch_in_order_has_every_second_segment_answered() {
    // scps-tp §14 item 66.
    let mut peer = Peer::connected(2, true, false);
    (0..30).for_each(|i| peer.data(i));
    assert_eq!(acked(&peer.run_once()), (1..=15).map(|i| 2 * i).collect::<Vec<_>>());
}

#[test]
fn a_batch_in_order_has_every_segment_answered_with_behaviour_1() {
    // scps-tp §14 item 67, and the same where the kernel may join datagrams.
    for offload in [false, true] {
        let mut peer = Peer::connected(1, true, offload);
        (0..16).for_each(|i| peer.data(i));
        // What may be joined is read in smaller batches: one that is empty ends the test.
        let mut answers = peer.run_once();
        while offload && answers.len() < 16 {
            answers.extend(peer.run_once());
        }
        assert_eq!(acked(&answers), (1..=16).collect::<Vec<_>>());
    }
}

#[test]
fn every_segment_behind_a_hole_has_its_answer() {
    for snack in [false, true] {
        let mut peer = Peer::connected(2, snack, false);
        (1..30).for_each(|i| peer.data(i));
        let answers = peer.run_once();
        assert_eq!(acked(&answers), [0; 29], "duplicates, one a segment");
        assert!(answers.iter().all(|t| t.window == answers[0].window && t.options.snack.is_some() == snack));
        // The hole is filled, and everything comes once more.
        (0..30).for_each(|i| peer.data(i));
        assert_eq!(acked(&peer.run_once()), [30; 30]);
    }
}
