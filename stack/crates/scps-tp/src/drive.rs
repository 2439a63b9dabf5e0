//! A turn of an endpoint, for drivers that have nothing else to do.

use crate::endpoint::{Endpoint, Trust};
use scps_wire::{Duration, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What carries the packets of one endpoint.
pub trait Wire {
    /// A packet leaves.
    fn send(&mut self, now: Instant, packet: &[u8]);

    /// The next packet that has arrived.
    fn receive(&mut self, now: Instant) -> Option<Vec<u8>>;

    /// When the next packet arrives, where that is known before.
    fn next_arrival(&self) -> Option<Instant> {
        None
    }
}

/// One end of a link in memory, with a delay and nothing else.
#[derive(Clone, Debug)]
pub struct MemoryWire {
    delay: Duration,
    /// Where its packets leave, and where it hears the other's.
    ways: [Way; 2],
}

/// Packets under way in one direction, and when they arrive.
type Way = Rc<RefCell<VecDeque<(Instant, Vec<u8>)>>>;

impl MemoryWire {
    /// Both ends of a link.
    pub fn pair(delay: Duration) -> [MemoryWire; 2] {
        let (there, back) = (Way::default(), Way::default());
        [[&there, &back], [&back, &there]].map(|ways| MemoryWire { delay, ways: ways.map(Rc::clone) })
    }
}

impl Wire for MemoryWire {
    fn send(&mut self, now: Instant, packet: &[u8]) {
        self.ways[0].borrow_mut().push_back((now + self.delay, packet.to_vec()));
    }

    fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next_arrival().filter(|at| *at <= now)?;
        self.ways[1].borrow_mut().pop_front().map(|(_, packet)| packet)
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.ways[1].borrow().front().map(|(at, _)| *at)
    }
}

/// Takes what has arrived, does what is due, and sends what may leave; when it wants the next turn. Between turns are the calls of the
/// user, after which there is something to do at once.
///
/// The program `examples/two_endpoints.rs`, a megabyte over a link of 300 ms. The routes of both ends say that there is no rate; without
/// that they have 2 Mbit/s.
///
/// ```
#[doc = include_str!("../examples/two_endpoints.rs")]
/// ```
pub fn drive(now: Instant, endpoint: &mut Endpoint, wire: &mut impl Wire) -> Option<Instant> {
    while let Some(packet) = wire.receive(now) {
        endpoint.handle_input(now, &packet, Trust::Check);
    }
    if endpoint.poll_timeout().is_some_and(|at| at <= now) {
        endpoint.handle_timeout(now);
    }
    let mut out = Vec::new();
    while endpoint.poll_transmit(now, &mut out).is_some() {
        wire.send(now, &out);
        out.clear();
    }
    [endpoint.poll_timeout(), wire.next_arrival()].into_iter().flatten().min()
}
