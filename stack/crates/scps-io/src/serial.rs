//! Packets on a serial line, in HDLC-like frames (scps-np §4.4: the native link).

use crate::byte_stream::{ByteEnd, EndAddress, ReadOutcome};
use crate::device::{Device, DeviceStats, Take};
use crate::IoError;
use scps_tp::{SegmentBatch, Transmit, Trust};
use scps_wire::hdlc::{self, Deframer};
use std::io;
use std::os::fd::BorrowedFd;

/// Octets read per turn of the loop, so that timers are not starved.
const READ_OCTETS: usize = 16 * 1024;

/// A serial line in operation.
#[derive(Debug)]
pub struct SerialDevice {
    end: ByteEnd,
    deframer: Deframer,
    outbox: Vec<u8>,
    /// Frames that the line has not taken.
    line: Vec<u8>,
    frames: u64,
    inbox: Vec<u8>,
    stats: DeviceStats,
}

impl SerialDevice {
    /// Opens the line; what comes on it has at most `longest` octets.
    pub fn open(address: &EndAddress, longest: usize) -> Result<Self, IoError> {
        Ok(SerialDevice {
            end: ByteEnd::open_now(address)?,
            deframer: Deframer::new(longest),
            outbox: Vec::new(),
            line: Vec::new(),
            frames: 0,
            inbox: Vec::new(),
            stats: DeviceStats::default(),
        })
    }
}

impl Device for SerialDevice {
    fn overhead(&self) -> u16 {
        0
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.end.fd()
    }

    fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        let start = self.outbox.len() - packet.len;
        let before = self.line.len();
        hdlc::emit(&self.outbox[start..], &mut self.line);
        self.frames += 1;
        self.outbox.truncate(start);
        self.line.len() - before
    }

    /// One frame at a time: a more urgent packet overtakes those that are not framed yet.
    fn is_full(&mut self) -> bool {
        !self.line.is_empty()
    }

    fn flush(&mut self) -> io::Result<bool> {
        while !self.line.is_empty() {
            let before = self.line.len();
            self.stats.send_calls += 1;
            self.end.write_some(&mut self.line)?;
            if self.line.len() == before {
                return Ok(false);
            }
        }
        self.stats.sent += std::mem::take(&mut self.frames);
        Ok(true)
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        self.stats.receive_calls += 1;
        self.inbox.clear();
        match self.end.read_some(&mut self.inbox, READ_OCTETS)? {
            ReadOutcome::Nothing => return Ok(false),
            ReadOutcome::Ended => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the line has ended")),
            ReadOutcome::Bytes(_) => {}
        }
        let stats = &mut self.stats;
        self.deframer.push(&self.inbox, |frame| match frame {
            Ok(packet) => {
                stats.received += 1;
                take(packet, SegmentBatch::Packets(packet.len()), Trust::Check, None);
            }
            Err(hdlc::Damaged) => stats.damaged += 1,
        });
        Ok(true)
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn line(name: &str) -> (SerialDevice, UnixStream) {
        let path = std::env::temp_dir().join(format!("scps-serial-{name}-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let device = SerialDevice::open(&EndAddress::Unix(path.clone()), 100).unwrap();
        std::fs::remove_file(path).unwrap();
        (device, listener.accept().unwrap().0)
    }

    fn queue(device: &mut SerialDevice, packet: &[u8]) {
        device.outbox().extend_from_slice(packet);
        device.queue(Transmit::new(Ipv4Addr::UNSPECIFIED, packet.len()));
    }

    #[test]
    fn packets_cross_in_frames_and_damaged_ones_are_counted() {
        let (mut device, mut peer) = line("cross");
        queue(&mut device, b"there");
        assert!(device.is_full() && device.flush().unwrap() && !device.is_full());
        let mut frame = [0; 9];
        peer.read_exact(&mut frame).unwrap();
        assert_eq!((frame[0], &frame[1..6], frame[8]), (0x7e, &b"there"[..], 0x7e));
        let mut back = frame.to_vec();
        back.extend(frame);
        back[2] ^= 1;
        peer.write_all(&back).unwrap();
        let mut found = Vec::new();
        assert!(device
            .receive(&mut |octets, _, _, _| {
                found.push(octets.to_vec());
            })
            .unwrap());
        assert_eq!(found, [b"there"]);
        assert_eq!(
            device.stats(),
            DeviceStats { sent: 1, received: 1, send_calls: 1, receive_calls: 1, damaged: 1, refused: 0 }
        );
    }

    #[test]
    fn a_line_that_takes_no_more_is_waited_for_and_one_that_ended_says_so() {
        let (mut device, mut peer) = line("full");
        let mut sent = 0;
        loop {
            queue(&mut device, &[7; 100]);
            sent += 1;
            if !device.flush().unwrap() {
                break;
            }
        }
        assert!(device.is_full() && device.stats().sent < sent);
        peer.read_exact(&mut vec![0; 104 * (sent as usize - 1)]).unwrap();
        assert!(device.flush().unwrap());
        assert_eq!(device.stats().sent, sent);
        drop(peer);
        let ended = loop {
            match device.receive(&mut |_, _, _, _| ()) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }
}
