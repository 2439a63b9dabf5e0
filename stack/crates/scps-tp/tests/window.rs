//! The window that a receiver promises: never more than it has room for, and never less than it promised before.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, packet, plain, Script, PEER, PEER_ISS, US};
use proptest::prelude::*;
use scps_tp::AckBehaviour;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp};

/// A receiver, what it told, and how much was read of what it took.
struct Receiver {
    script: Script,
    buffer: u64,
    unit: u64,
    /// Where the stream stands: the acknowledgement number, the furthest edge told, and the first octet that is not read.
    next: u64,
    edge: u64,
    read: u64,
}

impl Receiver {
    fn new(buffer: usize) -> Self {
        let mut config = plain().receive_buffer(buffer);
        config.ack.behaviour = AckBehaviour::EveryNth(1);
        let mut script = Script::new(config, no_rate());
        script.run("0.0 user connect");
        let shift = script.sent.front().unwrap().tcp.options.window_scale.unwrap();
        script.run("0.5 < S. 0:0 ack 1 mss 1460 win 65535 wscale 0 caps 0x40");
        let mut receiver = Receiver { script, buffer: buffer as u64, unit: 1 << shift, next: 1, edge: 1, read: 1 };
        receiver.script.sent.pop_front();
        receiver.look();
        receiver
    }

    /// Checks every window that was told since.
    fn look(&mut self) {
        while let Some(seen) = self.script.sent.pop_front() {
            self.next = u64::from(seen.tcp.ack.0.wrapping_sub(PEER_ISS.0));
            let edge = self.next + (u64::from(seen.tcp.window) * self.unit);
            assert!(edge + self.unit > self.edge, "the edge moved from {} to {edge}, unit {}", self.edge, self.unit);
            let room = self.read + self.buffer + self.unit;
            assert!(edge <= room, "promised up to {edge}, there is room up to {room}");
            self.edge = self.edge.max(edge);
        }
    }

    /// Sends octets of the stream.
    fn send(&mut self, from: u64, to: u64) {
        let tcp = Tcp {
            src_port: PEER.1,
            dst_port: US.1,
            seq: PEER_ISS + from as u32,
            ack: self.script.our_iss() + 1,
            flags: Flags::ACK,
            window: 65_535,
            urgent: 0,
            options: Options::default(),
        };
        self.script.deliver(&packet(&tcp, &vec![0x5a; (to - from) as usize]));
        self.look();
    }

    /// Sends in order up to a position, in segments of `size`.
    fn send_to(&mut self, to: u64, size: u64) {
        while self.next < to {
            let (from, end) = (self.next, (self.next + size).min(to));
            self.send(from, end);
            assert!(self.next >= end, "octets of a window that was promised up to {} are refused", self.edge);
        }
    }

    fn read(&mut self, most: u64) {
        let mut out = vec![0; most as usize];
        let id = self.script.connection();
        if let Ok((len, _)) = self.script.endpoint.recv(self.script.now, id, &mut out) {
            self.read += len as u64;
        }
        self.script.advance(self.script.now);
        self.look();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_octet_of_an_advertised_window_is_refused(
        buffer in prop_oneof![1usize..200_000, 200_000usize..6_000_000],
        size in prop_oneof![1u64..20, 20u64..1460],
        steps in proptest::collection::vec((0u8..4, 0.0..1.0f64), 1..12),
    ) {
        let mut receiver = Receiver::new(buffer);
        for (what, share) in steps {
            let (next, edge) = (receiver.next, receiver.edge);
            let part = ((edge - next) as f64 * share) as u64;
            match what {
                // Most of the window in large segments, and the next hundred small ones, which end at no unit's edge.
                0 => receiver.send_to(next + part, 50_000),
                1 => receiver.send_to(edge.min(next + 100 * size), size),
                // The end of the window before its beginning.
                2 if edge > next + 1 => {
                    receiver.send((next + part).max(next + 1).max(edge.saturating_sub(size)), edge);
                    receiver.send_to(edge, 50_000);
                }
                _ => receiver.read(1 + (buffer as f64 * share) as u64),
            }
        }
        // Whatever was promised is taken, to the last octet, by a reader that never reads again.
        receiver.send_to(receiver.edge - (receiver.edge - receiver.next).min(200 * size), 50_000);
        receiver.send_to(receiver.edge, size);
        let edge = receiver.edge;
        receiver.send_to(edge, 1);
    }
}

#[test]
fn four_mebioctets_that_nobody_reads_close_the_window() {
    let mut receiver = Receiver::new(4 << 20);
    receiver.send_to(receiver.edge, 1448);
    for _ in 0..receiver.unit {
        if receiver.edge == receiver.next {
            break;
        }
        receiver.send_to(receiver.edge, 1448);
    }
    assert_eq!(receiver.edge, receiver.next);
    assert!((4 << 20..=(4 << 20) + receiver.unit).contains(&(receiver.next - 1)), "{}", receiver.next);
    let beyond = receiver.next;
    receiver.send(beyond, beyond + 1448);
    assert_eq!(receiver.next, beyond, "there is no room");
}
