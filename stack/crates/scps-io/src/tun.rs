//! Raw IP through a TUN interface: what the engine sends appears as received by the host, which forwards it.
//!
//! With offload each packet carries a virtio header: the engine's segments leave without checksum, many as one packet which the
//! kernel cuts if it must, and joined packets come back whole, their checksums vouched for.

use crate::clock;
use crate::device::{Device, DeviceStats, Take};
use crate::ring::{Ring, Woken};
use crate::sys::{self, VNET_HEADER_LEN};
use crate::IoError;
use scps_tp::{Carrier, Offload, SegmentBatch, Transmit, Trust};
use scps_wire::Duration;
use scps_wire::{ipv4, tcp};
use std::cell::OnceCell;
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
    /// Let the kernel sum, cut and join segments.
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
    is_woken: bool,
    /// From the first wait on, what stands in for calls of one purpose each, where there is such a thing.
    ring: OnceCell<Option<Ring>>,
    stats: DeviceStats,
}

/// A packet in the outbox.
#[derive(Clone, Copy, Debug)]
struct Queued {
    start: usize,
    len: usize,
    /// What the kernel is to do.
    offload: Option<Offload>,
}

/// Packets read per turn of the loop, so that timers are not starved, and octets, so that they are still in the cache when they are sent on.
const READS_MAX: usize = 64;
const READ_OCTETS_MAX: usize = 256 * 1024;
/// Octets of a packet.
const PACKET_MAX: usize = 65_536;
/// Segments that leave as one packet: of 1448 octets of data as many as a packet has room for.
const JOINED_MAX: u16 = 44;
/// The kernel completes the checksum (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).
const VNET_NEEDS_SUM: u8 = 1;
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
        let fd = sys::tun_open(&config.name, config.offload).map_err(|source| match source.kind() {
            io::ErrorKind::ResourceBusy => IoError::Device {
                what: format!("TUN device {}", config.name),
                advice: "another program has it: end that one, or name another device",
                source,
            },
            _ => device("attach")(source),
        })?;
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
        Ok(TunDevice::over(fd, config.offload))
    }

    /// A device whose kernel is whoever has the other end of `fd`, which gives and takes one packet at a time, with virtio headers if
    /// `offload` is set.
    pub fn over(fd: OwnedFd, offload: bool) -> Self {
        TunDevice {
            fd,
            offload,
            outbox: Vec::new(),
            packets: Vec::new(),
            sent: 0,
            inbox: vec![0; PACKET_MAX + VNET_HEADER_LEN],
            is_woken: false,
            ring: OnceCell::new(),
            stats: DeviceStats::default(),
        }
    }

    fn has_ring(&self) -> bool {
        self.ring.get().is_some_and(Option::is_some)
    }

    /// Sends what is in the outbox by the ring, if there is one, and waits: for something in an epoll set, and no longer than that.
    fn send_by_ring(&mut self, wait: Option<(BorrowedFd<'_>, Option<Duration>)>) -> io::Result<Option<Woken>> {
        let Some(ring) = self.ring.get_mut().and_then(Option::as_mut) else { return Ok(None) };
        // Before there was a ring some may have left.
        let left = &self.packets[std::mem::take(&mut self.sent)..];
        let packets = left.iter().map(|packet| &self.outbox[packet.start..packet.start + packet.len]);
        let count = left.len() as u64;
        let result = match wait {
            Some((set, timeout)) => ring.wait(packets, set, timeout),
            None => ring.send(packets).map(|refused| (Woken::Time, refused)),
        };
        // What a ring took before it failed does not leave again.
        self.packets.clear();
        self.outbox.clear();
        let (woken, refused) = result?;
        self.stats.send_calls += u64::from(count > 0);
        self.stats.sent += count - refused;
        self.stats.refused += refused;
        Ok(Some(woken))
    }
}

impl Drop for TunDevice {
    fn drop(&mut self) {
        // Nobody waits any more. What cannot leave is lost like any packet.
        let _ = self.send_by_ring(None);
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

    fn carrier(&self) -> Carrier {
        if self.offload {
            Carrier::Cutting(JOINED_MAX)
        } else {
            Carrier::Single
        }
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        let start = self.outbox.len() - packet.len;
        self.packets.push(Queued { start, len: packet.len, offload: packet.offload });
        packet.len
    }

    fn flush(&mut self) -> io::Result<bool> {
        if self.has_ring() {
            // What is left leaves with the next wait.
            if self.is_full() {
                self.send_by_ring(None)?;
            }
            return Ok(true);
        }
        while self.sent < self.packets.len() {
            let Queued { start, len, offload } = self.packets[self.sent];
            let count = offload.map_or(1, |offload| offload.segments(len) as u64);
            let (vnet, octets) = (vnet_header(offload, len), &self.outbox[start..start + len]);
            let vnet = if self.offload { &vnet[..] } else { &[] };
            self.stats.send_calls += 1;
            match sys::write_packet(self.fd.as_fd(), &[IoSlice::new(vnet), IoSlice::new(octets)]) {
                Ok(()) => self.stats.sent += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // Interface down or packet refused: lost like any packet.
                Err(_) => self.stats.refused += count,
            }
            self.sent += 1;
        }
        self.packets.clear();
        self.sent = 0;
        self.outbox.clear();
        Ok(true)
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        if let Some(ring) = self.ring.get_mut().and_then(Option::as_mut) {
            let Some(packet) = ring.packet() else { return Ok(false) };
            self.stats.receive_calls += 1;
            self.stats.received += 1;
            take(packet, SegmentBatch::Packets(packet.len()), Trust::Check, None);
            return Ok(true);
        }
        let mut octets = 0;
        let reads_max = if std::mem::take(&mut self.is_woken) { 1 } else { READS_MAX };
        for i in 0..reads_max {
            if octets >= READ_OCTETS_MAX {
                break;
            }
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
            octets += n;
            self.stats.received += 1;
            let trust = if is_vouched { Trust::Unsummed } else { Trust::Check };
            let batch =
                joined_segment(&self.inbox[..skip]).map_or(SegmentBatch::Packets(n - skip), SegmentBatch::Joined);
            take(&self.inbox[skip..n], batch, trust, None);
        }
        Ok(true)
    }

    fn wait(&mut self, set: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<Option<Woken>> {
        let (fd, is_wanted) = (self.fd.as_fd(), clock::is_virtual() && !self.offload);
        self.ring.get_or_init(|| is_wanted.then(|| Ring::start(fd, PACKET_MAX)).flatten());
        self.send_by_ring(Some((set, timeout)))
    }

    fn woke(&mut self) {
        self.is_woken = true;
    }

    fn stats(&self) -> DeviceStats {
        // What a ring has not yet handed over leaves at this instant all the same.
        let leaving = if self.has_ring() { self.packets.len() as u64 } else { 0 };
        DeviceStats { sent: self.stats.sent + leaving, ..self.stats }
    }
}

/// Data octets of each segment that the kernel joined, as the virtio header tells; `None` if it joined none.
fn joined_segment(vnet: &[u8]) -> Option<usize> {
    // The type's upper bit says that one of the segments bears the ECN mark.
    let is_joined = vnet.len() == VNET_HEADER_LEN && vnet[1] & 0x7f == VNET_TCPV4;
    let size = is_joined.then(|| usize::from(u16::from_le_bytes([vnet[4], vnet[5]])))?;
    (size > 0).then_some(size)
}

/// `struct virtio_net_hdr` before a packet of `len` octets: flags, type, octets of headers, of a segment's data, where the sum begins and
/// where behind that it stands.
fn vnet_header(offload: Option<Offload>, len: usize) -> [u8; VNET_HEADER_LEN] {
    let mut vnet = [0; VNET_HEADER_LEN];
    let Some(offload) = offload else { return vnet };
    vnet[0] = VNET_NEEDS_SUM;
    let (mut header, mut segment) = (0, 0);
    if offload.segments(len) > 1 {
        vnet[1] = VNET_TCPV4;
        (header, segment) = (offload.header, offload.segment);
    }
    let numbers = [header, segment, ipv4::HEADER_LEN as u16, tcp::CHECKSUM_AT as u16];
    for (place, number) in vnet[2..].chunks_exact_mut(2).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    vnet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign;
    use crate::reactor::{Interest, Reactor};
    use scps_tp::{Config, Endpoint, EndpointConfig, RouteConfig};
    use scps_wire::ipv4::Ipv4;
    use scps_wire::tcp::{Tcp, Verify};
    use scps_wire::{Duration, Instant, Seed};
    use std::os::unix::net::UnixDatagram;

    const DST: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);

    /// A device with offload whose kernel is a socket.
    fn device() -> (TunDevice, UnixDatagram) {
        let (device, kernel) = UnixDatagram::pair().unwrap();
        // As the kernel's device is.
        device.set_nonblocking(true).unwrap();
        kernel.set_nonblocking(true).unwrap();
        (TunDevice::over(device.into(), true), kernel)
    }

    fn read(kernel: &UnixDatagram) -> Vec<Vec<u8>> {
        let mut octets = vec![0; 70_000];
        std::iter::from_fn(|| kernel.recv(&mut octets).ok().map(|n| octets[..n].to_vec())).collect()
    }

    /// What two endpoints send each other until `octets` have arrived, each packet as it is on the wire.
    fn transfer(octets: usize, carrier: Carrier) -> Vec<(Tcp, Vec<u8>)> {
        let (a, b) = (Ipv4Addr::new(10, 1, 0, 1), DST);
        let mut now = Instant::ZERO;
        let endpoint = |seed| {
            let route = RouteConfig::default().rate(None);
            Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(seed), Instant::ZERO)
        };
        let (mut sender, mut receiver) = (endpoint(1), endpoint(2));
        sender.set_carrier(carrier);
        receiver.listen((b, 80), Config::default()).unwrap();
        let config = Config::default().send_buffer(octets);
        let id = sender.connect(now, (a, 4000), (b, 80), config).unwrap();
        assert_eq!(sender.send(now, id, &vec![7; octets]).unwrap(), octets);
        sender.close(now, id);
        let (mut seen, mut buffer) = (Vec::new(), vec![0; octets]);
        for _ in 0..1000 {
            now += Duration::from_millis(1);
            sender.handle_timeout(now);
            receiver.handle_timeout(now);
            for (from, to) in [(true, false), (false, true)] {
                let mut packets = Vec::new();
                let mut out = Vec::new();
                let from = if from { &mut sender } else { &mut receiver };
                while let Some(packet) = from.poll_transmit(now, &mut out) {
                    let octets = std::mem::take(&mut out);
                    let (batch, trust) = match packet.offload {
                        Some(offload) if offload.segments(packet.len) > 1 => {
                            (SegmentBatch::Joined(offload.segment.into()), Trust::Unsummed)
                        }
                        Some(_) => (SegmentBatch::Packets(packet.len), Trust::Unsummed),
                        None => (SegmentBatch::Packets(packet.len), Trust::Check),
                    };
                    for one in octets.chunks(packet.len / packet.packets) {
                        foreign::whole(one, batch, trust, |packet| packets.push(packet.to_vec()));
                    }
                }
                let to = if to { &mut sender } else { &mut receiver };
                for packet in packets {
                    let (ip, payload) = Ipv4::parse(&packet).unwrap();
                    let (tcp, data) = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap();
                    seen.push((tcp, data.to_vec()));
                    to.handle_input(now, &packet, Trust::Check);
                }
                while let Some(event) = receiver.poll_event() {
                    while matches!(receiver.recv(now, event.connection(), &mut buffer), Ok((1.., _))) {}
                }
            }
        }
        assert!(sender.stats(id).unwrap().flushed_at.is_some(), "everything arrived");
        seen
    }

    #[test]
    fn what_leaves_joined_is_cut_into_the_segments_that_leave_without_offload() {
        for octets in [1, 1448, 1449, 200_000, 1 << 20] {
            let whole = transfer(octets, Carrier::Single);
            for max in [1, 2, JOINED_MAX, u16::MAX] {
                for carrier in [Carrier::Cutting(max), Carrier::Several(max)] {
                    assert!(transfer(octets, carrier) == whole, "{octets} octets, {carrier:?}: other segments");
                }
            }
        }
    }

    #[test]
    fn a_packet_leaves_in_one_piece_with_what_is_left_to_the_kernel_before_it() {
        let (mut device, kernel) = device();
        let mut engine =
            Endpoint::new(EndpointConfig::default(), RouteConfig::default(), Seed::from_u64(1), Instant::ZERO);
        engine.set_carrier(device.carrier());
        engine.connect(Instant::ZERO, (Ipv4Addr::new(10, 1, 0, 1), 4000), (DST, 80), Config::default()).unwrap();
        let syn = engine.poll_transmit(Instant::ZERO, device.outbox()).unwrap();
        device.queue(syn);
        let mut joined = syn;
        joined.offload.as_mut().unwrap().segment = 100;
        for (mut packet, more) in [(joined, 250), (Transmit::new(DST, 0), 60)] {
            packet.len += more;
            device.outbox().extend(vec![0x45; packet.len]);
            device.queue(packet);
        }
        assert!(device.flush().unwrap());
        let (left, header) = (read(&kernel), syn.len as u8);
        assert_eq!(left.iter().map(Vec::len).collect::<Vec<_>>(), [10 + syn.len, 10 + syn.len + 250, 70]);
        assert_eq!(left[0][..10], [1, 0, 0, 0, 0, 0, 20, 0, 16, 0]);
        assert_eq!(left[1][..10], [1, 1, header, 0, 100, 0, 20, 0, 16, 0]);
        assert_eq!(left[2][..10], [0; 10], "what others wrote is complete");
        assert_eq!(device.stats().sent, 1 + 3 + 1);
    }

    /// Virtio headers of all kinds, and segments that are cut off anywhere, to a gateway's engine and past it.
    #[test]
    fn whatever_comes_behind_whatever_header_ends_nothing() {
        let mut rng = Seed::from_u64(8).stream("hostile");
        let now = Instant::ZERO;
        let mut engine = Endpoint::new(EndpointConfig::default(), RouteConfig::default(), Seed::from_u64(1), now);
        engine.listen((DST, 80), Config::default()).unwrap();
        let (mut device, kernel) = device();
        let (mut come, mut sent) = (0, 0);
        for _ in 0..20_000 {
            let mut frame: Vec<u8> = (0..rng.below(200)).map(|_| rng.next_u32() as u8).collect();
            let likely =
                [rng.below(4) as u8, rng.below(3) as u8 | (rng.below(2) as u8) << 7, 40, 0, rng.below(9) as u8, 0];
            for (place, octet) in likely.into_iter().enumerate() {
                if let Some(at) = frame.get_mut(place) {
                    *at = octet;
                }
            }
            for (place, octet) in
                [(0, 0x45), (3, rng.below(200) as u8), (6, 0), (7, 0), (9, 6), (32, rng.next_u32() as u8 & 0xf0)]
            {
                if let Some(at) = frame.get_mut(VNET_HEADER_LEN + place) {
                    *at = octet;
                }
            }
            sent += u64::from(frame.len() > VNET_HEADER_LEN);
            kernel.send(&frame).unwrap();
            let mut take = |octets: &[u8], batch, trust, _: Option<std::net::SocketAddr>| {
                come += 1;
                foreign::whole(octets, batch, trust, |packet| assert!(packet.len() <= octets.len()));
                engine.handle_batch(now, octets, batch, trust, |_, _| ());
            };
            device.receive(&mut take).unwrap();
            while engine.poll_transmit(now, &mut Vec::new()).is_some() {}
        }
        assert_eq!((come, device.stats().received), (sent, sent));
    }

    #[test]
    fn after_a_sleep_one_packet_is_read_and_the_others_in_the_next_turn() {
        let (mut device, kernel) = device();
        for _ in 0..3 {
            kernel.send(&[0; VNET_HEADER_LEN + 20]).unwrap();
        }
        device.woke();
        let mut found = Vec::new();
        for _ in 0..3 {
            let (mut packets, calls) = (0, device.stats().receive_calls);
            device
                .receive(&mut |_, _, _, _| {
                    packets += 1;
                })
                .unwrap();
            found.push((packets, device.stats().receive_calls - calls));
        }
        assert_eq!(found, [(1, 1), (2, 3), (0, 1)]);
    }

    #[test]
    fn with_a_ring_packets_leave_with_the_wait_and_none_is_left_at_the_end() {
        let (mut device, kernel) = device();
        device.offload = false;
        let ring = Ring::start(device.fd(), PACKET_MAX);
        if ring.is_none() {
            println!("SKIP: this kernel gives no io_uring");
            return;
        }
        device.ring = OnceCell::from(ring);
        let mut reactor = Reactor::new().unwrap();
        let place = reactor.place();
        reactor.ask(place, device.fd(), Interest::READ).unwrap();
        let queue = |device: &mut TunDevice, len: usize| {
            device.outbox().extend(vec![len as u8; len]);
            device.queue(Transmit::new(DST, len));
            assert!(device.flush().unwrap());
        };
        queue(&mut device, 40);
        queue(&mut device, 41);
        assert_eq!((read(&kernel).len(), device.stats().sent), (0, 2));
        kernel.send(&[3; 30]).unwrap();
        assert_eq!(device.wait(reactor.as_fd(), None).unwrap(), Some(Woken::Packet));
        assert_eq!(read(&kernel), [vec![40; 40], vec![41; 41]]);
        let mut came = Vec::new();
        for is_there in [true, false] {
            let take = &mut |octets: &[u8], _, _, _: Option<std::net::SocketAddr>| {
                came.push(octets.to_vec());
            };
            assert_eq!(device.receive(take).unwrap(), is_there);
        }
        assert_eq!(came, [vec![3; 30]]);
        while !device.is_full() {
            device.outbox().extend(vec![7; 60_000]);
            device.queue(Transmit::new(DST, 60_000));
        }
        assert!(device.flush().unwrap() && device.outbox().is_empty(), "a full outbox leaves without a wait");
        let DeviceStats { sent, received, refused, send_calls, .. } = device.stats();
        assert_eq!((sent + refused, received, send_calls), (2 + 5, 1, 2));
        read(&kernel);
        queue(&mut device, 50);
        drop(device);
        assert_eq!(read(&kernel), [vec![50; 50]]);
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
