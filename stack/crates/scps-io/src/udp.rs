//! IP packets or NP datagrams inside UDP (scps-tp §11, scps-np §4.4): the whole inner packet, one per datagram.
//!
//! A peer's outer address is configured, or each connection has the one where its peer was heard: it begins where its SYN came
//! from, and follows packets that cannot be made up, for SP opened them or they are inside its windows. Whoever claims an inner
//! address redirects nothing of others (scps-tp §13.3 item 13): a connection of his own has an outer address of its own. Answers to
//! segments of no connection go where these came from.

use crate::device::{v4, Device, DeviceStats, Take};
use crate::sys::{self, Headers, Outgoing, ReceiveBatch};
use crate::IoError;
use scps_tp::{Carrier, SegmentBatch, Transmit, Trust};
use scps_wire::{ipv4, udp};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Settings of UDP encapsulation.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Where to receive.
    pub local: SocketAddrV4,
    /// Where packets go that no connection has another way for.
    pub remote: Option<SocketAddrV4>,
    /// Let the kernel join and cut batches of datagrams (UDP GSO and GRO).
    pub offload: bool,
    /// How a packet finds its peer.
    pub addressing: UdpAddressing,
}

/// How a packet finds its peer.
#[derive(Clone, Debug)]
pub enum UdpAddressing {
    /// IP packets: those of a connection go where its peer was heard, others to the configured peer.
    Learned,
    /// IP packets, all of them to and from the configured peer: what others send is not heard.
    Peer,
    /// NP datagrams: the destination that the sender names is the outer address of the next hop, unless a peer is configured.
    Hops {
        /// Its port.
        port: u16,
        /// Hops that are elsewhere.
        others: BTreeMap<Ipv4Addr, SocketAddrV4>,
    },
}

/// A UDP socket that carries IP packets.
#[derive(Debug)]
pub struct UdpDevice {
    socket: UdpSocket,
    remote: Option<SocketAddrV4>,
    offload: bool,
    addressing: UdpAddressing,
    outbox: Vec<u8>,
    messages: Vec<Outgoing>,
    headers: Headers,
    inbox: ReceiveBatch,
    stats: DeviceStats,
    /// The least MTU that a refusal made known.
    path_mtu: Option<u16>,
}

/// Most datagrams and octets the kernel cuts one message into (UDP_MAX_SEGMENTS is 64 or more; 65,535 less headers).
const ROW_MAX: usize = 44;
const ROW_OCTETS_MAX: usize = 65_000;
/// Joined messages read at once: what they hold is still in the cache when it is sent on.
const JOINED_READS: usize = 4;
/// Socket buffers: several batches, so that a burst is not lost between two turns of the loop.
const SOCKET_BUFFER: usize = 4 << 20;

impl UdpDevice {
    /// Opens the socket.
    pub fn open(config: &UdpConfig) -> Result<Self, IoError> {
        let device = |source| IoError::Device {
            what: format!("UDP socket {}", config.local),
            advice: "choose an address of this host and a free port",
            source,
        };
        let socket = UdpSocket::bind(config.local).map_err(device)?;
        socket.set_nonblocking(true).map_err(device)?;
        sys::enlarge_buffers(socket.as_fd(), SOCKET_BUFFER).map_err(device)?;
        // A kernel without offload (before Linux 5.0) sends and receives datagrams one by one.
        let offload = config.offload && sys::join_received(socket.as_fd()).is_ok();
        // A joined message can be 64 KiB; a single one is an MTU, but jumbo frames exist.
        let inbox = if offload { ReceiveBatch::new(JOINED_READS, 65_536) } else { ReceiveBatch::new(32, 16_384) };
        Ok(UdpDevice {
            socket,
            remote: config.remote,
            offload,
            addressing: config.addressing.clone(),
            outbox: Vec::new(),
            messages: Vec::new(),
            headers: Headers::default(),
            inbox,
            stats: DeviceStats::default(),
            path_mtu: None,
        })
    }

    /// A socket at a free port of this machine alone, for a program of several hosts: `remote` is the other's, and a host without one learns
    /// where its peers are.
    pub fn loopback(remote: Option<SocketAddr>) -> Result<Self, IoError> {
        let remote = remote.and_then(|remote| match remote {
            SocketAddr::V4(remote) => Some(remote),
            SocketAddr::V6(_) => None,
        });
        let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        UdpDevice::open(&UdpConfig { local, remote, offload: false, addressing: UdpAddressing::Learned })
    }

    /// The socket's own address.
    pub fn local_addr(&self) -> io::Result<std::net::SocketAddr> {
        self.socket.local_addr()
    }

    /// Where a packet goes.
    fn outer(&self, packet: &Transmit) -> Option<SocketAddrV4> {
        match &self.addressing {
            UdpAddressing::Learned => match packet.via {
                Some(SocketAddr::V4(via)) => Some(via),
                _ => self.remote,
            },
            UdpAddressing::Peer => self.remote,
            UdpAddressing::Hops { port, others } => {
                let dst = v4(packet.dst)?;
                self.remote.or_else(|| others.get(&dst).copied()).or(Some(SocketAddrV4::new(dst, *port)))
            }
        }
    }

    /// The kernel refuses a message; the number of the next one to send.
    fn on_refused(&mut self, error: &io::Error, at: usize) -> usize {
        let Outgoing { to, segment, count, .. } = self.messages[at];
        // The kernel cuts no batch of datagrams that are longer than the way to the peer takes; one by one they are fragmented.
        let around = ipv4::HEADER_LEN + udp::HEADER_LEN;
        let path = is_of_batches(error).then(|| sys::path_mtu(to).ok()).flatten();
        let path = path.filter(|mtu| usize::from(*mtu) < segment + around);
        self.path_mtu = self.path_mtu.into_iter().chain(path).min();
        if count == 1 || !is_of_batches(error) {
            // Whatever it is, the message is lost like any packet, and the transport repairs that.
            self.stats.refused += count as u64;
            return at + 1;
        }
        // Otherwise there is no means to cut them on this way, and on another peer's it may be no better.
        self.offload &= path.is_some();
        let batches = self.messages.split_off(at);
        self.messages.extend(batches.iter().flat_map(Outgoing::apart));
        at
    }

    fn queue_one(&mut self, start: usize, len: usize, to: SocketAddrV4) {
        if let Some(last) = self.messages.last_mut().filter(|_| self.offload) {
            // A batch grows while datagrams are of one size; a shorter one ends it.
            let is_open = last.len == last.segment * last.count;
            let joins = last.to == to && last.start + last.len == start && len <= last.segment;
            if joins && is_open && last.count < ROW_MAX && last.len + len <= ROW_OCTETS_MAX {
                last.len += len;
                last.count += 1;
                return;
            }
        }
        self.messages.push(Outgoing { start, len, segment: len, count: 1, to });
    }
}

impl Device for UdpDevice {
    fn overhead(&self) -> u16 {
        (ipv4::HEADER_LEN + udp::HEADER_LEN) as u16
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    fn carrier(&self) -> Carrier {
        if self.offload {
            Carrier::Several(ROW_MAX as u16)
        } else {
            Carrier::Single
        }
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        let start = self.outbox.len() - packet.len;
        let Some(to) = self.outer(&packet) else {
            self.stats.refused += packet.packets as u64;
            self.outbox.truncate(start);
            return 0;
        };
        let len = packet.len / packet.packets.max(1);
        for start in (start..self.outbox.len()).step_by(len.max(1)) {
            self.queue_one(start, len, to);
        }
        packet.len + packet.packets * usize::from(self.overhead())
    }

    fn flush(&mut self) -> io::Result<bool> {
        let mut done = 0;
        while done < self.messages.len() {
            self.stats.send_calls += 1;
            match sys::send_batch(self.socket.as_fd(), &self.outbox, &self.messages[done..], &mut self.headers) {
                Ok(n) => {
                    self.stats.sent += self.messages[done..done + n].iter().map(|m| m.count as u64).sum::<u64>();
                    done += n;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.messages.drain(..done);
                    return Ok(false);
                }
                Err(e) => done = self.on_refused(&e, done),
            }
        }
        self.messages.clear();
        self.outbox.clear();
        Ok(true)
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        self.stats.receive_calls += 1;
        let (stats, fixed) = (&mut self.stats, self.remote);
        let learns = matches!(self.addressing, UdpAddressing::Learned);
        // The peer's datagrams have checksums over the whole of a packet, and the kernel has tested them.
        let hears_all = !matches!(self.addressing, UdpAddressing::Peer);
        let result = self.inbox.receive(self.socket.as_fd(), |message| {
            if !hears_all && fixed != Some(message.from) {
                return;
            }
            stats.received += message.octets.len().div_ceil(message.segment.max(1)) as u64;
            let via = learns.then_some(SocketAddr::V4(message.from));
            let trust = if hears_all { Trust::Check } else { Trust::Verified };
            take(message.octets, SegmentBatch::Packets(message.segment), trust, via);
        });
        match result {
            Ok(n) => Ok(n > 0),
            Err(e) if is_passing(&e) => Ok(true),
            Err(e) => Err(e),
        }
    }

    fn path_mtu(&self) -> Option<u16> {
        self.path_mtu
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}

/// Errors that are of UDP segmentation offload: an interface or a policy without checksums (EIO), a path whose MTU fell below the
/// segment (EINVAL up to Linux 6.13, EMSGSIZE since).
fn is_of_batches(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE))
}

/// Errors that say something of the path, not of the socket.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::EHOSTDOWN
                | libc::ENOBUFS
                | libc::EPERM
                | libc::EMSGSIZE
                | libc::EINTR
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);

    /// A device that sends to a socket of the test.
    fn device() -> (UdpDevice, UdpSocket) {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.set_nonblocking(true).unwrap();
        let remote = peer.local_addr().unwrap().to_string().parse().unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let config = UdpConfig { local, remote: Some(remote), offload: true, addressing: UdpAddressing::Learned };
        (UdpDevice::open(&config).unwrap(), peer)
    }

    fn queue(device: &mut UdpDevice, sizes: &[usize]) {
        for (i, size) in sizes.iter().enumerate() {
            device.outbox().extend(vec![i as u8; *size]);
            device.queue(Transmit::new(INNER, *size));
        }
    }

    fn came(peer: &UdpSocket) -> Vec<(u8, usize)> {
        let mut octets = [0; 2000];
        std::iter::from_fn(|| peer.recv(&mut octets).ok().map(|n| (octets[0], n))).collect()
    }

    #[test]
    fn a_path_that_takes_no_batches_has_datagrams() {
        let (mut device, peer) = device();
        sys::refuse_batches(device.fd()).unwrap();
        queue(&mut device, &[1000, 1000, 1000, 300, 500]);
        assert!(device.flush().unwrap());
        assert_eq!(came(&peer), [(0, 1000), (1, 1000), (2, 1000), (3, 300), (4, 500)]);
        assert_eq!((device.stats().sent, device.stats().refused), (5, 0));
        // And from then on at once.
        let calls = device.stats().send_calls;
        queue(&mut device, &[700, 700]);
        assert!(device.flush().unwrap());
        assert_eq!((came(&peer).len(), device.stats().send_calls), (2, calls + 1));
    }

    #[test]
    fn a_batch_that_is_too_long_for_the_path_leaves_as_datagrams() {
        for errno in [libc::EMSGSIZE, libc::EINVAL, libc::EIO] {
            let (mut device, peer) = device();
            queue(&mut device, &[1000, 1000, 300]);
            assert_eq!((device.messages.len(), device.messages[0].count), (1, 3));
            assert_eq!(device.on_refused(&io::Error::from_raw_os_error(errno), 0), 0);
            assert!(device.flush().unwrap());
            assert_eq!(came(&peer), [(0, 1000), (1, 1000), (2, 300)]);
            // The loopback interface takes them, so its MTU is not why: nothing is known, and batches end.
            assert_eq!((device.path_mtu(), device.offload, device.stats().refused), (None, false, 0));
        }
        // A single one is lost.
        let (mut device, peer) = device();
        queue(&mut device, &[100, 200]);
        assert_eq!(device.on_refused(&io::Error::from_raw_os_error(libc::EMSGSIZE), 0), 1);
        assert_eq!((came(&peer), device.stats().refused), (vec![], 1));
    }

    #[test]
    fn the_mtu_of_the_way_to_a_peer_is_known() {
        let (_, peer) = device();
        let SocketAddr::V4(at) = peer.local_addr().unwrap() else { unreachable!("an IPv4 socket") };
        // That of the loopback interface is 65,536.
        assert!(sys::path_mtu(at).unwrap() >= 1500);
    }

    #[test]
    fn whatever_the_kernel_says_of_a_packet_it_is_lost_and_the_next_one_leaves() {
        let (mut device, peer) = device();
        queue(&mut device, &[100]);
        // Port 0 is nobody's: EINVAL.
        device.messages[0].to.set_port(0);
        queue(&mut device, &[200]);
        assert!(device.flush().unwrap());
        assert_eq!((came(&peer), device.stats().refused), (vec![(0, 200)], 1));
    }
}
