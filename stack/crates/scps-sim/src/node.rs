//! What hosts, routers, gateways and links have in common.

use scps_wire::Instant;
use std::any::Any;
use std::fmt::Debug;
use std::marker::PhantomData;

/// A part of a network: packets come in at its ports, and leave by them. Ports are numbered in the order in which they were joined.
pub trait Node: Any + Debug {
    /// A packet arrives at a port.
    fn handle(&mut self, now: Instant, port: usize, packet: &[u8]);

    /// Appends the next packet that leaves by a port to `out`; false if none does now. What the port leads to has sent what it was
    /// offered at `free_at`.
    fn poll_transmit(&mut self, now: Instant, port: usize, free_at: Instant, out: &mut Vec<u8>) -> bool;

    /// When something happens here unless a packet comes before.
    fn poll_timeout(&self, now: Instant) -> Option<Instant>;

    /// Time has passed.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Lets whoever uses the node act until nothing is left to do.
    fn act(&mut self, _now: Instant) {}

    /// Of a link: when it has sent what it was offered at a port. What is in links arrives before anything else of the same time.
    fn free_at(&self, _port: usize) -> Option<Instant> {
        None
    }
}

/// The place of a node in its network, which knows its type.
#[derive(Debug)]
pub struct At<N>(pub(crate) usize, PhantomData<fn() -> N>);

impl<N> At<N> {
    pub(crate) const fn new(place: usize) -> Self {
        At(place, PhantomData)
    }
}

impl<N> Clone for At<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for At<N> {}

/// The place of a node, whatever it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place(pub(crate) usize);

impl<N> From<At<N>> for Place {
    fn from(at: At<N>) -> Self {
        Place(at.0)
    }
}

/// Conversions that trait objects have from Rust 1.86 on.
pub(crate) trait AnyNode: Node {
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
}

impl<N: Node> AnyNode for N {
    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
