//! A device for tests: packets in, packets out, no kernel.

use crate::device::{Device, DeviceStats, Take};
use scps_tp::{SegmentBatch, Transmit, Trust};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Keeps what is sent, and gives what it was given.
#[derive(Debug)]
pub(crate) struct MemoryDevice {
    pub sent: Vec<(IpAddr, Vec<u8>)>,
    pub incoming: Vec<Vec<u8>>,
    /// Packets it takes before it wants to be waited for.
    pub room: usize,
    outbox: Vec<u8>,
    waiting: Vec<Transmit>,
    nothing: std::fs::File,
}

impl Default for MemoryDevice {
    fn default() -> Self {
        let nothing = std::fs::File::open("/dev/null").expect("every system has /dev/null");
        let (sent, incoming, outbox, waiting) = Default::default();
        MemoryDevice { sent, incoming, room: usize::MAX, outbox, waiting, nothing }
    }
}

impl MemoryDevice {
    /// Gives these packets.
    pub(crate) fn giving(incoming: Vec<Vec<u8>>) -> Self {
        MemoryDevice { incoming, ..MemoryDevice::default() }
    }
}

impl Device for MemoryDevice {
    fn overhead(&self) -> u16 {
        0
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.nothing.as_fd()
    }

    fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        self.waiting.push(packet);
        packet.len
    }

    fn flush(&mut self) -> io::Result<bool> {
        while !self.waiting.is_empty() && self.room > 0 {
            let packet = self.waiting.remove(0);
            self.sent.push((packet.dst, self.outbox.drain(..packet.len).collect()));
            self.room -= 1;
        }
        Ok(self.waiting.is_empty())
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        let incoming = std::mem::take(&mut self.incoming);
        for packet in &incoming {
            take(packet, SegmentBatch::Packets(packet.len()), Trust::Check, None);
        }
        Ok(!incoming.is_empty())
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats { sent: self.sent.len() as u64, ..DeviceStats::default() }
    }
}
