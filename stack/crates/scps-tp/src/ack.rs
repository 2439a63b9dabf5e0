//! When the receiver acknowledges (scps-tp §6.1; RFC 1122 §4.2.3.2), and the answers owed to input that the driver
//! handed over before it let anything leave.

use crate::config::{AckBehaviour, AckConfig};
use crate::connection::Connection;
use crate::endpoint::Transmit;
use crate::names::AddressPort;
use crate::net::Network;
use crate::output::{Polled, Sending};
use crate::route::Route;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::Instant;
use std::collections::VecDeque;

/// What a received segment asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckNeed {
    /// Data in order.
    InOrder,
    /// Out of order, duplicate, or a hole filled: at once, unless acknowledgements are strictly delayed.
    Disorder,
    /// FIN, probe, challenge, window update: at once in any case.
    Now,
}

/// Decides between now and later. The delayed-acknowledgement deadline itself is the connection's timer.
#[derive(Clone, Copy, Debug)]
pub struct AckPolicy {
    config: AckConfig,
    unacknowledged: u16,
    is_due: bool,
    is_shareable: bool,
    last_sent: Option<Instant>,
}

impl AckPolicy {
    /// A policy that owes nothing.
    pub fn new(config: AckConfig) -> Self {
        AckPolicy { config, unacknowledged: 0, is_due: false, is_shareable: true, last_sent: None }
    }

    /// Notes a received segment. Returns the deadline by which it must be acknowledged, `None` if that is now.
    /// `segments` is how many segments' worth of data it holds: a device may have joined several.
    pub fn on_segment(&mut self, need: AckNeed, segments: u16, now: Instant) -> Option<Instant> {
        self.unacknowledged = self.unacknowledged.saturating_add(segments.max(1));
        let later = Some(now + self.config.delay);
        let enough = match self.config.behaviour {
            AckBehaviour::Delayed => false,
            AckBehaviour::EveryNth(n) => self.unacknowledged >= n,
        };
        self.is_shareable &= need == AckNeed::InOrder && self.shares();
        let wanted = match need {
            AckNeed::Now => {
                self.is_due = true;
                return None;
            }
            AckNeed::Disorder => self.config.behaviour != AckBehaviour::Delayed,
            AckNeed::InOrder => enough,
        };
        if !wanted {
            return later;
        }
        // The floor spaces acknowledgements of data in order; disorder is reported regardless.
        if let (AckNeed::InOrder, Some(floor), Some(last)) = (need, self.config.floor, self.last_sent) {
            if now.since(last) < floor {
                return Some(last + floor);
            }
        }
        self.is_due = true;
        None
    }

    /// An acknowledgement is to leave now, whatever the policy.
    pub fn want_now(&mut self) {
        self.is_shareable = false;
        self.is_due = true;
    }

    /// The delayed-acknowledgement timer expired.
    pub fn on_timer(&mut self) {
        self.is_due |= self.unacknowledged > 0;
    }

    /// True if an acknowledgement must leave now.
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// True unless every segment is to have its own acknowledgement.
    pub fn shares(&self) -> bool {
        self.config.behaviour != AckBehaviour::EveryNth(1)
    }

    /// True if what is due may as well be told with the next segment in order: it is for data in order, and not every segment
    /// has its own.
    pub fn is_shareable(&self) -> bool {
        self.is_shareable
    }

    /// An acknowledgement left, alone or on data.
    pub fn on_sent(&mut self, now: Instant) {
        self.is_shareable = true;
        self.unacknowledged = 0;
        self.is_due = false;
        self.last_sent = Some(now);
    }
}

/// Answers that are drawn up and charged to their route, and wait for the driver. A driver may hand over many segments before
/// it transmits; each answer says what was known when it was due, as if it had left at once.
#[derive(Clone, Debug, Default)]
pub struct Owed {
    octets: Vec<u8>,
    taken: usize,
    packets: VecDeque<Transmit>,
}

/// Octets of answers kept: those of more segments than a device hands over at once. What is owed beyond them shares an answer.
const OWED_OCTETS_MAX: usize = 128 * 1024;

impl Owed {
    /// True if another answer may be drawn up.
    pub fn has_room(&self) -> bool {
        self.octets.len() < OWED_OCTETS_MAX
    }

    /// Moves the oldest answer to `out`.
    pub fn pop(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let packet = self.packets.pop_front()?;
        let len = packet.len;
        out.extend_from_slice(&self.octets[self.taken..self.taken + len]);
        self.taken += len;
        if self.packets.is_empty() {
            self.octets.clear();
            self.taken = 0;
        }
        Some(packet)
    }

    /// Draws up what `c` owes now, as far as its route has credit. Without credit the answer stays due, and shares a packet
    /// with the next: late answers in a row would tell old news at the cost of new.
    pub(crate) fn settle(&mut self, now: Instant, c: &mut Connection, route: &mut Route, network: &mut Network) {
        while c.inbound.ack.is_due() && self.has_room() {
            let before = self.octets.len();
            let mut sending = Sending::new(now, route, network, &mut self.octets);
            if c.poll_answer(&mut sending) != Polled::Packet {
                return;
            }
            let (dst, _): AddressPort = c.control.remote;
            let len = self.octets.len() - before;
            if len > 0 {
                self.packets.push_back(Transmit::new(dst, len).by_way_of(c.control.via));
            }
        }
    }
}

/// How octets that the device received as one are made up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentBatch {
    /// Packets of so many octets, the last perhaps shorter.
    Packets(usize),
    /// One packet that the kernel joined from segments with so many octets of data, the last perhaps fewer.
    Joined(usize),
}

impl Connection {
    /// True if the segments of a joined batch are answered one by one: in order they share an answer, as in Linux, unless every
    /// segment is to have its own; out of order each has its own (RFC 5681 §4.2).
    pub(crate) fn answers_apart(&self, tcp: &Tcp) -> bool {
        let is_apart = !self.inbound.is_orderly(tcp) || !self.inbound.ack.shares();
        self.control.state.is_synchronised() && is_apart
    }
}

/// One of the segments that were joined to `tcp`: its data begins at `start` and is the last of them or not.
pub(crate) fn cut(tcp: &Tcp, start: usize, is_last: bool) -> Tcp {
    let mut part = *tcp;
    part.seq = tcp.seq + start as u32;
    if !is_last {
        part.flags = tcp.flags.without(Flags::FIN).without(Flags::PSH);
        part.options.record_boundary = false;
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_wire::Duration;

    const T: fn(u64) -> Instant = Instant::from_millis;

    fn policy(behaviour: AckBehaviour, floor_ms: Option<u64>) -> AckPolicy {
        AckPolicy::new(AckConfig {
            behaviour,
            delay: Duration::from_millis(200),
            floor: floor_ms.map(Duration::from_millis),
        })
    }

    #[test]
    fn behaviour_2_acknowledges_every_second_segment() {
        let mut p = policy(AckBehaviour::EveryNth(2), None);
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(0)), Some(T(200)));
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(1)), None);
        assert!(p.is_due());
        p.on_sent(T(1));
        assert!(!p.is_due());
    }

    #[test]
    fn behaviour_0_waits_even_on_disorder() {
        let mut p = policy(AckBehaviour::Delayed, None);
        assert_eq!(p.on_segment(AckNeed::Disorder, 1, T(0)), Some(T(200)));
        assert_eq!(p.on_segment(AckNeed::Now, 1, T(0)), None);
    }

    #[test]
    fn the_floor_spaces_acknowledgements() {
        let mut p = policy(AckBehaviour::EveryNth(1), Some(50));
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(0)), None);
        p.on_sent(T(0));
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(10)), Some(T(50)));
        assert_eq!(p.on_segment(AckNeed::Disorder, 1, T(20)), None);
    }

    #[test]
    fn a_joined_segment_counts_for_its_parts() {
        let mut p = policy(AckBehaviour::EveryNth(2), None);
        assert_eq!(p.on_segment(AckNeed::InOrder, 3, T(0)), None);
    }
}
