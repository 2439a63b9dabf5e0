//! Raw IP through a TUN interface: what the engine sends appears as received by the host, which forwards it.
//!
//! With offload each packet carries a virtio header; batches of segments are joined into one packet on the way to the
//! kernel, and joined packets come back whole, their checksums vouched for.

use crate::device::{Device, DeviceStats, Take};
use crate::sys::{self, VNET_HEADER_LEN};
use crate::IoError;
use scps_tp::{SegmentBatch, Transmit, Trust};
use scps_wire::checksum::Checksum;
use std::io::{self, IoSlice};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Settings of a TUN device.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Interface name; created if it does not exist.
    pub name: String,
    /// Interface MTU.
    pub mtu: u16,
    /// Destinations that are routed to the interface, with the length of their prefix: the address of the stack, which the kernel
    /// must not own, or whatever goes through a gateway.
    pub routes: Vec<(Ipv4Addr, u8)>,
    /// Bring the interface up and add the routes; otherwise whoever made the device does.
    pub configure: bool,
    /// Join and cut batches of segments.
    pub offload: bool,
}

/// A TUN interface in operation.
#[derive(Debug)]
pub struct TunDevice {
    fd: OwnedFd,
    offload: bool,
    outbox: Vec<u8>,
    packets: Vec<Queued>,
    sent: usize,
    inbox: Vec<u8>,
    stats: DeviceStats,
}

/// A packet in the outbox.
#[derive(Clone, Copy, Debug)]
struct Queued {
    start: usize,
    len: usize,
    /// Octets of its headers if it is a segment of our own, which may be joined to others.
    header: Option<usize>,
}

/// Packets read per turn of the loop, so that timers are not starved.
const READS_MAX: usize = 64;
/// Segments joined into one packet, and their octets.
const JOIN_MAX: usize = 44;
const JOIN_OCTETS_MAX: usize = 64_000;
/// Type of a batch of TCP segments over IPv4 (`VIRTIO_NET_HDR_GSO_TCPV4`).
const VNET_TCPV4: u8 = 1;

impl TunDevice {
    /// Attaches to the interface and, if asked, configures it.
    pub fn open(config: &TunConfig) -> Result<Self, IoError> {
        if !std::path::Path::new("/dev/net/tun").exists() {
            return Err(IoError::Unsupported(
                "/dev/net/tun does not exist; load the tun module or use --driver udp".to_owned(),
            ));
        }
        let device = |what: &str| {
            let what = format!("TUN device {}: {what}", config.name);
            move |source| IoError::Device {
                what: what.clone(),
                advice: "run as root (CAP_NET_ADMIN), or attach to a device made for you with `ip tuntap add`",
                source,
            }
        };
        let fd = sys::tun_open(&config.name, config.offload).map_err(device("attach"))?;
        if config.configure {
            sys::interface_up(&config.name, config.mtu).map_err(device("set MTU and bring up"))?;
            for (address, length) in &config.routes {
                let added = sys::route_to_interface(&config.name, *address, *length);
                added.map_err(|source| match source.kind() {
                    io::ErrorKind::AlreadyExists => IoError::Device {
                        what: format!("TUN device {}: add route", config.name),
                        advice: "delete that route with `ip route del`, give it a metric, or leave its prefix out",
                        source,
                    },
                    _ => device("add route")(source),
                })?;
            }
        }
        Ok(TunDevice {
            fd,
            offload: config.offload,
            outbox: Vec::new(),
            packets: Vec::new(),
            sent: 0,
            inbox: vec![0; 65_536 + VNET_HEADER_LEN],
            stats: DeviceStats::default(),
        })
    }

    fn packet(&self, index: usize) -> &[u8] {
        let Queued { start, len, .. } = self.packets[index];
        &self.outbox[start..start + len]
    }

    fn note(&mut self, len: usize, is_own: bool) -> usize {
        let start = self.outbox.len() - len;
        let header = if is_own && self.offload { tcp_header_len(&self.outbox[start..]) } else { None };
        self.packets.push(Queued { start, len, header });
        len
    }

    /// How many packets from the next one on are segments of one batch: same headers but for sequence, identification,
    /// checksums and PSH, contiguous data of one size.
    fn batch_len(&self) -> usize {
        let first = self.packet(self.sent);
        let Some(header) = self.packets[self.sent].header else { return 1 };
        let size = first.len() - header;
        let seq = |p: &[u8]| u32::from_be_bytes([p[24], p[25], p[26], p[27]]);
        let mut octets = first.len();
        let mut count = 1;
        // A flagged segment ends its batch: cutting repeats the first header on all but PSH and FIN, which go last.
        let is_plain = |p: &[u8]| p[33] == 0x10;
        if size == 0 || !is_plain(first) {
            return 1;
        }
        while self.sent + count < self.packets.len() && count < JOIN_MAX {
            let next = self.packet(self.sent + count);
            let is_same = self.packets[self.sent + count].header == Some(header)
                && next.len() > header
                && next.len() - header <= size
                && next[8..10] == first[8..10]
                && next[12..24] == first[12..24]
                && next[28..33] == first[28..33]
                && next[34..36] == first[34..36]
                && next[40..header] == first[40..header]
                && seq(next) == seq(first).wrapping_add((size * count) as u32)
                && next[33] & !0x08 == 0x10;
            if !is_same || octets + next.len() - header > JOIN_OCTETS_MAX {
                break;
            }
            octets += next.len() - header;
            count += 1;
            if next.len() - header < size || !is_plain(next) {
                break;
            }
        }
        count
    }

    fn write_batch(&mut self, count: usize) -> io::Result<()> {
        let Queued { start, len, header } = self.packets[self.sent];
        if !self.offload {
            return sys::write_packet(self.fd.as_fd(), &[IoSlice::new(&self.outbox[start..start + len])]);
        }
        let mut vnet = [0u8; VNET_HEADER_LEN];
        let (Some(header), 2..) = (header, count) else {
            return sys::write_packet(
                self.fd.as_fd(),
                &[IoSlice::new(&vnet), IoSlice::new(&self.outbox[start..start + len])],
            );
        };
        let last = self.packet(self.sent + count - 1);
        let last_flags = last[33];
        let payload: usize = (0..count).map(|i| self.packets[self.sent + i].len - header).sum();
        let total = (header + payload) as u16;
        // struct virtio_net_hdr, little-endian: flags (1 = checksum to be completed), type (1 = TCPv4), header length,
        // segment size, checksum start, checksum offset.
        vnet[0] = 1;
        vnet[1] = VNET_TCPV4;
        vnet[2..4].copy_from_slice(&(header as u16).to_le_bytes());
        vnet[4..6].copy_from_slice(&((len - header) as u16).to_le_bytes());
        vnet[6..8].copy_from_slice(&20u16.to_le_bytes());
        vnet[8..10].copy_from_slice(&16u16.to_le_bytes());
        let head = &mut self.outbox[start..start + header];
        head[2..4].copy_from_slice(&total.to_be_bytes());
        head[10..12].fill(0);
        let mut sum = Checksum::new();
        sum.add(&head[..20]);
        let sum = sum.finish().to_be_bytes();
        head[10..12].copy_from_slice(&sum);
        head[33] |= last_flags;
        let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]);
        // The kernel completes the checksum from the pseudo-header's part.
        let pseudo = Checksum::pseudo_header(address(12), address(16), head[9], total - 20).partial();
        head[36..38].copy_from_slice(&pseudo.to_be_bytes());
        let mut pieces: Vec<IoSlice<'_>> = Vec::with_capacity(count + 1);
        pieces.push(IoSlice::new(&vnet));
        pieces.push(IoSlice::new(&self.outbox[start..start + len]));
        for i in 1..count {
            pieces.push(IoSlice::new(&self.packet(self.sent + i)[header..]));
        }
        sys::write_packet(self.fd.as_fd(), &pieces)
    }
}

impl Device for TunDevice {
    fn overhead(&self) -> u16 {
        0
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        self.note(packet.len, true)
    }

    fn queue_foreign(&mut self, packet: Transmit) -> usize {
        self.note(packet.len, false)
    }

    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.packets.len() {
            let count = if self.offload { self.batch_len() } else { 1 };
            self.stats.send_calls += 1;
            match self.write_batch(count) {
                Ok(()) => self.stats.sent += count as u64,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // Interface down or packet refused: lost like any packet.
                Err(_) => self.stats.refused += count as u64,
            }
            self.sent += count;
        }
        self.packets.clear();
        self.sent = 0;
        self.outbox.clear();
        Ok(true)
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        for i in 0..READS_MAX {
            self.stats.receive_calls += 1;
            let Some(n) = sys::read_packet(self.fd.as_fd(), &mut self.inbox)? else {
                return Ok(i > 0);
            };
            let skip = if self.offload { VNET_HEADER_LEN } else { 0 };
            if n <= skip {
                continue;
            }
            // Flag 1: the checksum was never computed (it came from this host); flag 2: the device verified it.
            let is_vouched = self.offload && self.inbox[0] & 3 != 0;
            self.stats.received += 1;
            let trust = if is_vouched { Trust::Verified } else { Trust::Check };
            let batch =
                joined_segment(&self.inbox[..skip]).map_or(SegmentBatch::Packets(n - skip), SegmentBatch::Joined);
            take(&self.inbox[skip..n], batch, trust);
        }
        Ok(true)
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}

/// Data octets of each segment that the kernel joined, as the virtio header tells; `None` if it joined none.
fn joined_segment(vnet: &[u8]) -> Option<usize> {
    // The type's upper bit says that one of the segments bears the ECN mark.
    let is_joined = vnet.len() == VNET_HEADER_LEN && vnet[1] & 0x7f == VNET_TCPV4;
    let size = is_joined.then(|| usize::from(u16::from_le_bytes([vnet[4], vnet[5]])))?;
    (size > 0).then_some(size)
}

/// Octets of IP and TCP header of an uncompressed segment; `None` for anything else.
fn tcp_header_len(packet: &[u8]) -> Option<usize> {
    let is_tcp = packet.len() >= 40 && packet[0] == 0x45 && packet[9] == scps_wire::protocol::TCP;
    let header = 20 + usize::from(packet.get(32)? >> 4) * 4;
    (is_tcp && (40..=packet.len()).contains(&header)).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_types::{Rng, Seed};
    use std::os::unix::net::UnixDatagram;

    const DST: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);

    /// A device with offload whose kernel is a socket.
    fn device() -> (TunDevice, UnixDatagram) {
        let (device, kernel) = UnixDatagram::pair().unwrap();
        kernel.set_nonblocking(true).unwrap();
        let device = TunDevice {
            fd: device.into(),
            offload: true,
            outbox: Vec::new(),
            packets: Vec::new(),
            sent: 0,
            inbox: Vec::new(),
            stats: DeviceStats::default(),
        };
        (device, kernel)
    }

    fn read(kernel: &UnixDatagram) -> Vec<Vec<u8>> {
        let mut octets = vec![0; 70_000];
        std::iter::from_fn(|| kernel.recv(&mut octets).ok().map(|n| octets[..n].to_vec())).collect()
    }

    /// A segment, or what looks like one.
    fn segment(seq: u32, data_offset: u8, flags: u8, len: usize) -> Vec<u8> {
        let mut packet = vec![0; len.max(40)];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[24..28].copy_from_slice(&seq.to_be_bytes());
        packet[32] = data_offset << 4;
        packet[33] = flags;
        packet.truncate(len);
        packet
    }

    #[test]
    fn segments_of_a_batch_leave_as_one_and_those_of_others_one_by_one() {
        let batch = || (0..3).map(|i| segment(i * 100, 5, 0x10, 140));
        for (is_foreign, expected) in [(false, vec![10 + 340]), (true, vec![150; 3])] {
            let (mut device, kernel) = device();
            for packet in batch() {
                device.outbox().extend_from_slice(&packet);
                let packet = Transmit::new(DST, packet.len());
                let _ = if is_foreign { device.queue_foreign(packet) } else { device.queue(packet) };
            }
            assert!(device.flush().unwrap());
            assert_eq!(read(&kernel).iter().map(Vec::len).collect::<Vec<_>>(), expected);
        }
    }

    /// Whatever a stranger makes look like segments of a batch leaves as it came; taken for our own it does no harm either.
    #[test]
    fn foreign_octets_are_never_joined_and_never_end_the_device() {
        let mut rng: Rng = Seed::from_u64(8).stream("foreign");
        for case in 0..20_000u32 {
            let (mut device, kernel) = device();
            let is_foreign = case % 2 == 0;
            let (offset, size) = (rng.below(16) as u8, rng.below(90) as usize);
            let packets: Vec<Vec<u8>> = (0..=rng.below(4) as u32)
                .map(|i| {
                    let len = if rng.below(3) == 0 { rng.below(120) as usize } else { 40 + size };
                    let data = (20 + size).saturating_sub(usize::from(offset) * 4);
                    let offset = if rng.below(8) == 0 { rng.below(16) as u8 } else { offset };
                    let mut packet = segment(i * data as u32, offset, 0x10 | [0, 0, 0, 8][rng.below(4) as usize], len);
                    if let (0, Some(octet)) = (rng.below(6), packet.get_mut(rng.below(40) as usize)) {
                        *octet = rng.next_u32() as u8;
                    }
                    packet
                })
                .collect();
            for octets in &packets {
                device.outbox().extend_from_slice(octets);
                let packet = Transmit::new(DST, octets.len());
                let _ = if is_foreign { device.queue_foreign(packet) } else { device.queue(packet) };
            }
            assert!(device.flush().unwrap());
            let left = read(&kernel);
            if is_foreign {
                let whole: Vec<Vec<u8>> = packets.iter().map(|p| [&[0; VNET_HEADER_LEN], &p[..]].concat()).collect();
                assert_eq!(left, whole, "case {case}");
            }
            assert_eq!(device.stats().sent, packets.len() as u64, "case {case}");
        }
    }

    #[test]
    fn the_virtio_header_tells_what_the_kernel_joined() {
        let header = |kind: u8, size: u16| {
            let [low, high] = size.to_le_bytes();
            joined_segment(&[0, kind, 52, 0, low, high, 0, 0, 0, 0])
        };
        assert_eq!((header(1, 1448), header(0x81, 536)), (Some(1448), Some(536)));
        // One packet; a batch of another protocol; a batch without a size; no header.
        assert_eq!((header(0, 0), header(4, 1448), header(1, 0), joined_segment(&[])), (None, None, None, None));
    }
}
