//! Captures around any device: every packet that leaves and comes, in a pcap file, or as a line of text.
//!
//! What is captured is what the device is given, before the device adds anything: around a UDP device the inner packets, around
//! one that encapsulates the datagrams inside.

use crate::clock::Clock;
use crate::device::{delegate, packets_of, Device, Take};
use scps_tp::Transmit;
use std::cell::RefCell;
use std::fmt::Debug;
use std::io::{self, Write};
use std::rc::Rc;

/// What packets begin with, as pcap's link types have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaptureKind {
    /// An IP header (`LINKTYPE_RAW`, 101).
    Ip,
    /// An NP header. It has no number of its own: `LINKTYPE_USER0`, 147, which a preference of Wireshark maps to `scps.np`.
    Np,
}

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It leaves.
    Out,
    /// It came.
    In,
}

/// Takes each packet that passes.
pub trait Observer: Debug {
    /// A packet, at `unix_ns` nanoseconds since 1970.
    fn see(&mut self, unix_ns: i64, direction: Direction, packet: &[u8]) -> io::Result<()>;

    /// Nothing more passes for now.
    fn rest(&mut self) -> io::Result<()>;
}

/// Writes packets to a pcap file with nanoseconds.
#[derive(Debug)]
pub struct PcapWriter<W: Write + Debug> {
    out: W,
}

impl<W: Write + Debug> PcapWriter<W> {
    /// Begins the file.
    pub fn new(mut out: W, kind: CaptureKind) -> io::Result<Self> {
        let link_type: u32 = match kind {
            CaptureKind::Ip => 101,
            CaptureKind::Np => 147,
        };
        // Magic number for nanoseconds, version 2.4, zone, accuracy, and octets kept of a packet.
        for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, link_type] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.flush()?;
        Ok(PcapWriter { out })
    }
}

impl<W: Write + Debug> Observer for PcapWriter<W> {
    fn see(&mut self, unix_ns: i64, _: Direction, packet: &[u8]) -> io::Result<()> {
        let (s, ns) = (unix_ns.div_euclid(1_000_000_000), unix_ns.rem_euclid(1_000_000_000));
        let len = packet.len() as u32;
        for word in [s as u32, ns as u32, len, len] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(packet)
    }

    fn rest(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One capture of several devices on one thread.
impl<O: Observer> Observer for Rc<RefCell<O>> {
    fn see(&mut self, unix_ns: i64, direction: Direction, packet: &[u8]) -> io::Result<()> {
        self.borrow_mut().see(unix_ns, direction, packet)
    }

    fn rest(&mut self) -> io::Result<()> {
        self.borrow_mut().rest()
    }
}

/// Writes a line for each packet: time, direction, length, first octets.
#[derive(Debug)]
pub struct LineWriter<W: Write + Debug> {
    out: W,
}

impl<W: Write + Debug> LineWriter<W> {
    /// Lines to `out`.
    pub fn new(out: W) -> Self {
        LineWriter { out }
    }
}

/// Octets of a packet that a line shows: an IP header with its ports, or an NP header with more.
const SHOWN: usize = 24;

impl<W: Write + Debug> Observer for LineWriter<W> {
    fn see(&mut self, unix_ns: i64, direction: Direction, packet: &[u8]) -> io::Result<()> {
        let (s, ns) = (unix_ns.div_euclid(1_000_000_000), unix_ns.rem_euclid(1_000_000_000));
        let arrow = if direction == Direction::Out { '>' } else { '<' };
        write!(self.out, "{s}.{ns:09} {arrow} {} ", packet.len())?;
        packet.iter().take(SHOWN).try_for_each(|octet| write!(self.out, "{octet:02x}"))?;
        writeln!(self.out)
    }

    fn rest(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A device that is observed. An observer that fails (a full disk) is left; the packets go on.
#[derive(Debug)]
pub struct Observed<D, O> {
    inner: D,
    observer: O,
    clock: Clock,
    failure: Option<io::Error>,
}

impl<D: Device, O: Observer> Observed<D, O> {
    /// Shows `observer` what passes `inner`.
    pub fn new(inner: D, observer: O) -> Self {
        Observed { inner, observer, clock: Clock::new(), failure: None }
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    /// Shows the packet that was appended last.
    fn see_out(&mut self, len: usize) {
        if self.failure.is_none() {
            let outbox = self.inner.outbox();
            let start = outbox.len() - len;
            let seen = self.observer.see(Self::unix_ns(&self.clock), Direction::Out, &outbox[start..]);
            self.note(seen);
        }
    }

    fn unix_ns(clock: &Clock) -> i64 {
        clock.origin_unix_ns() + clock.now().as_nanos() as i64
    }
}

impl<D: Device, O: Observer> Device for Observed<D, O> {
    delegate!(self, self.inner; overhead fd outbox is_full wait woke path_mtu stats protection);

    fn queue(&mut self, packet: Transmit) -> usize {
        self.see_out(packet.len);
        self.inner.queue(packet)
    }

    fn flush(&mut self) -> io::Result<bool> {
        if self.failure.is_none() {
            let rested = self.observer.rest();
            self.note(rested);
        }
        self.inner.flush()
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        let Observed { inner, observer, clock, failure } = self;
        let at = Self::unix_ns(clock);
        inner.receive(&mut |octets, batch, trust, from| {
            for packet in packets_of(octets, batch) {
                if failure.is_none() {
                    *failure = observer.see(at, Direction::In, packet).err();
                }
            }
            take(octets, batch, trust, from);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDevice;
    use scps_wire::pcap::{LinkType, Reader};
    use std::net::Ipv4Addr;

    const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn exchange(device: &mut impl Device) -> Vec<Vec<u8>> {
        device.outbox().extend_from_slice(b"out");
        device.queue(Transmit::new(TO, 3));
        assert!(device.flush().unwrap());
        let mut came = Vec::new();
        device
            .receive(&mut |octets, _, _, _| {
                came.push(octets.to_vec());
            })
            .unwrap();
        came
    }

    fn memory() -> MemoryDevice {
        MemoryDevice::giving(vec![b"in".to_vec(), Vec::new()])
    }

    #[test]
    fn a_capture_has_every_packet_and_its_time() {
        let mut device = Observed::new(memory(), PcapWriter::new(Vec::new(), CaptureKind::Ip).unwrap());
        assert_eq!(exchange(&mut device), [b"in".to_vec(), Vec::new()]);
        assert_eq!(device.inner.sent, [(TO.into(), b"out".to_vec())]);
        let file = device.observer.out;
        let reader = Reader::new(&file).unwrap();
        assert_eq!(reader.link_type(), LinkType::RawIp);
        let records: Vec<_> = reader.map(Result::unwrap).collect();
        let data: Vec<_> = records.iter().map(|record| record.data).collect();
        assert_eq!(data, [&b"out"[..], b"in"]);
        let year_2020 = 1_577_836_800;
        assert!(records.iter().all(|record| record.at.as_nanos() / 1_000_000_000 > year_2020));
    }

    #[test]
    fn a_line_tells_direction_length_and_first_octets() {
        let mut out = LineWriter::new(Vec::new());
        out.see(1_500_000_000_000_000_123, Direction::Out, &[0x45; 40]).unwrap();
        out.see(-1, Direction::In, &[1, 2]).unwrap();
        let expected = format!("1500000000.000000123 > 40 {}\n-1.999999999 < 2 0102\n", "45".repeat(24));
        assert_eq!(String::from_utf8(out.out).unwrap(), expected);
    }

    #[test]
    fn a_full_disk_ends_the_capture_and_not_the_transfer() {
        #[derive(Debug)]
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut device = Observed::new(memory(), LineWriter::new(Full));
        assert_eq!(exchange(&mut device).len(), 2);
        assert_eq!(device.failure.unwrap().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn observers_and_encapsulation_nest_in_any_order() {
        let inner = Observed::new(memory(), LineWriter::new(Vec::new()));
        let outer = crate::IpEncapsulation::new(inner, Ipv4Addr::new(10, 0, 0, 1), 118);
        let mut device = Observed::new(outer, LineWriter::new(Vec::new()));
        exchange(&mut device);
        let line = |out: &[u8]| String::from_utf8(out.to_vec()).unwrap().lines().next().unwrap().to_owned();
        assert!(line(&device.observer.out).ends_with("> 3 6f7574"));
        assert!(device.overhead() == 20 && device.inner.stats().sent == 1);
    }
}
