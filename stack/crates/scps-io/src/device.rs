//! What carries IP packets: a TUN interface or a UDP socket.

use crate::tun::TunDevice;
use crate::udp::UdpDevice;
use scps_tp::{Row, Transmit, Trust};
use scps_wire::{ipv4, udp};
use std::io;
use std::os::fd::RawFd;

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
}

/// A device in operation.
#[derive(Debug)]
pub enum Device {
    /// Raw IP through a TUN interface.
    Tun(TunDevice),
    /// IP packets inside UDP.
    Udp(UdpDevice),
}

impl Device {
    /// Octets that the device adds to each packet on the way, which the packet's route cannot carry.
    pub fn overhead(&self) -> u16 {
        match self {
            Device::Tun(_) => 0,
            Device::Udp(_) => (ipv4::HEADER_LEN + udp::HEADER_LEN) as u16,
        }
    }

    pub(crate) fn fd(&self) -> RawFd {
        match self {
            Device::Tun(d) => d.fd(),
            Device::Udp(d) => d.fd(),
        }
    }

    /// The octets of packets waiting to leave; the engine appends to it.
    pub(crate) fn outbox(&mut self) -> &mut Vec<u8> {
        match self {
            Device::Tun(d) => &mut d.outbox,
            Device::Udp(d) => &mut d.outbox,
        }
    }

    /// Notes a packet just appended to the outbox.
    pub(crate) fn queue(&mut self, packet: Transmit) {
        match self {
            Device::Tun(d) => d.queue(packet),
            Device::Udp(d) => d.queue(packet),
        }
    }

    /// True if the outbox is worth flushing before more is appended.
    pub(crate) fn is_full(&self) -> bool {
        let octets = match self {
            Device::Tun(d) => d.outbox.len(),
            Device::Udp(d) => d.outbox.len(),
        };
        octets >= OUTBOX_OCTETS
    }

    /// Sends the outbox; false if the kernel took only a part and wants to be waited for.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        match self {
            Device::Tun(d) => Ok(d.flush()),
            Device::Udp(d) => d.flush(),
        }
    }

    /// Hands every packet that is there, up to a batch, to `take`; false if there was none. What the kernel joined
    /// comes as one row.
    pub(crate) fn receive(&mut self, take: impl FnMut(&[u8], Row, Trust)) -> io::Result<bool> {
        match self {
            Device::Tun(d) => d.receive(take),
            Device::Udp(d) => d.receive(take),
        }
    }

    /// Counters.
    pub fn stats(&self) -> DeviceStats {
        match self {
            Device::Tun(d) => d.stats,
            Device::Udp(d) => d.stats,
        }
    }
}

/// Octets gathered before they are handed to the kernel: a few of its largest joined packets, which fit in the cache.
const OUTBOX_OCTETS: usize = 256 * 1024;
