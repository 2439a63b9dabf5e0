//! What carries packets: a TUN interface, a UDP socket, a serial line; and devices that nest around any other.

use crate::ring::Woken;
use scps_sp::Sp;
use scps_tp::{Carrier, SegmentBatch, Transmit, Trust};
use scps_wire::Duration;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;

/// Packets by fate, as the device saw them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DeviceStats {
    /// Handed to the kernel.
    pub sent: u64,
    /// Taken from the kernel.
    pub received: u64,
    /// Refused by the kernel: interface down, no route, no peer. The transport repairs it like any loss.
    pub refused: u64,
    /// System calls that sent packets.
    pub send_calls: u64,
    /// System calls that received packets.
    pub receive_calls: u64,
    /// Frames of a serial line that were not as they were sent.
    pub damaged: u64,
}

/// Takes what came in a message, and where that came from, if the device tells its peers apart.
pub type Take<'a> = dyn FnMut(&[u8], SegmentBatch, Trust, Option<SocketAddr>) + 'a;

/// A device in operation. Whoever sends appends a packet to the outbox, queues it, and flushes when nothing more is to be
/// appended now.
pub trait Device: Debug {
    /// Octets that the device adds to each packet on the way, which the packet's route cannot carry.
    fn overhead(&self) -> u16;

    /// What to wait for.
    fn fd(&self) -> BorrowedFd<'_>;

    /// What it takes at a time.
    fn carrier(&self) -> Carrier {
        Carrier::Single
    }

    /// The octets of packets waiting to leave; a sender appends to it.
    fn outbox(&mut self) -> &mut Vec<u8>;

    /// Notes what was just appended to the outbox. Returns how many octets it is on the line, as far as the device knows.
    fn queue(&mut self, packet: Transmit) -> usize;

    /// True if the outbox is worth flushing before more is appended.
    fn is_full(&mut self) -> bool {
        self.outbox().len() >= OUTBOX_OCTETS
    }

    /// Sends the outbox; false if the kernel took only a part and wants to be waited for.
    fn flush(&mut self) -> io::Result<bool>;

    /// Hands every packet that is there, up to a batch, to `take`; false if there was none. What the kernel joined comes as
    /// one batch.
    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool>;

    /// Tells that the next packets come after a sleep, which one packet ends as a rule: to look for another one is a system call that
    /// finds nothing.
    fn woke(&mut self) {}

    /// Flushes, and waits until something is ready in `set`, an epoll set that the device is in, no longer than `timeout`, all in one system
    /// call; `None` if that takes more than one, and the caller is to wait. From the first wait on, whoever flushes waits before long.
    fn wait(&mut self, _set: BorrowedFd<'_>, _timeout: Option<Duration>) -> io::Result<Option<Woken>> {
        Ok(None)
    }

    /// The longest packet that the way to its peers takes, whatever is around ours included, if it found that to be less than expected.
    fn path_mtu(&self) -> Option<u16> {
        None
    }

    /// Counters.
    fn stats(&self) -> DeviceStats;

    /// SP, if the device seals its packets.
    fn protection(&mut self) -> Option<&mut Sp> {
        None
    }
}

/// Methods of a device that another one does as it is.
macro_rules! delegate {
    ($self:ident, $inner:expr; $($method:ident)*) => { $($crate::device::delegate!(@$method $self, $inner);)* };
    (@overhead $self:ident, $inner:expr) => { fn overhead(&$self) -> u16 { $inner.overhead() } };
    (@fd $self:ident, $inner:expr) => { fn fd(&$self) -> std::os::fd::BorrowedFd<'_> { $inner.fd() } };
    (@carrier $self:ident, $inner:expr) => { fn carrier(&$self) -> scps_tp::Carrier { $inner.carrier() } };
    (@outbox $self:ident, $inner:expr) => { fn outbox(&mut $self) -> &mut Vec<u8> { $inner.outbox() } };
    (@queue $self:ident, $inner:expr) => { fn queue(&mut $self, packet: Transmit) -> usize { $inner.queue(packet) } };
    (@is_full $self:ident, $inner:expr) => { fn is_full(&mut $self) -> bool { $inner.is_full() } };
    (@flush $self:ident, $inner:expr) => { fn flush(&mut $self) -> std::io::Result<bool> { $inner.flush() } };
    (@receive $self:ident, $inner:expr) => {
        fn receive(&mut $self, take: &mut $crate::device::Take<'_>) -> std::io::Result<bool> { $inner.receive(take) }
    };
    (@wait $self:ident, $inner:expr) => {
        fn wait(
            &mut $self,
            set: std::os::fd::BorrowedFd<'_>,
            timeout: Option<scps_wire::Duration>,
        ) -> std::io::Result<Option<$crate::ring::Woken>> {
            $inner.wait(set, timeout)
        }
    };
    (@woke $self:ident, $inner:expr) => { fn woke(&mut $self) { $inner.woke(); } };
    (@path_mtu $self:ident, $inner:expr) => { fn path_mtu(&$self) -> Option<u16> { $inner.path_mtu() } };
    (@stats $self:ident, $inner:expr) => { fn stats(&$self) -> $crate::device::DeviceStats { $inner.stats() } };
    (@protection $self:ident, $inner:expr) => {
        fn protection(&mut $self) -> Option<&mut scps_sp::Sp> { $inner.protection() }
    };
}
pub(crate) use delegate;

impl<D: Device + ?Sized> Device for Box<D> {
    delegate!(self, (**self); overhead fd carrier outbox queue is_full flush receive wait woke path_mtu stats protection);
}

/// Octets gathered before they are handed to the kernel: a few of its largest joined packets, which fit in the cache.
const OUTBOX_OCTETS: usize = 256 * 1024;

/// An address that today's carriers have a way to.
pub(crate) fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// The packets of a batch that nobody joined.
pub(crate) fn packets_of(octets: &[u8], batch: SegmentBatch) -> impl Iterator<Item = &[u8]> {
    let len = match batch {
        SegmentBatch::Packets(len) => len,
        SegmentBatch::Joined(_) => octets.len(),
    };
    octets.chunks(len.max(1))
}
