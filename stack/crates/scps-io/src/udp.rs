//! IP packets or NP datagrams inside UDP (scps-tp §11, scps-np §4.4): the whole inner packet, one per datagram.
//!
//! A peer's outer address is configured, or learned once from its first packet and then kept: a later packet cannot
//! redirect the traffic (scps-tp §13.3 item 13).

use crate::device::{Device, DeviceStats};
use crate::sys::{self, Outgoing, ReceiveBatch};
use crate::IoError;
use scps_tp::{Row, Transmit, Trust};
use scps_wire::{ipv4, udp};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Settings of UDP encapsulation.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Where to receive.
    pub local: SocketAddrV4,
    /// Where packets for unknown inner addresses go.
    pub remote: Option<SocketAddrV4>,
    /// Let the kernel join and cut rows of datagrams (UDP GSO and GRO).
    pub offload: bool,
    /// How a packet finds its peer.
    pub addressing: UdpAddressing,
}

/// How a packet finds its peer.
#[derive(Clone, Debug)]
pub enum UdpAddressing {
    /// IP packets: an inner address is where its first packet came from, or else at the configured peer.
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
    learned: BTreeMap<Ipv4Addr, SocketAddrV4>,
    offload: bool,
    addressing: UdpAddressing,
    outbox: Vec<u8>,
    messages: Vec<Outgoing>,
    inbox: ReceiveBatch,
    stats: DeviceStats,
}

/// Outer addresses remembered.
const LEARNED_MAX: usize = 4096;
/// Most datagrams and octets the kernel cuts one message into (UDP_MAX_SEGMENTS is 64 or more; 65,535 less headers).
const ROW_MAX: usize = 44;
const ROW_OCTETS_MAX: usize = 65_000;
/// Socket buffers: several rows, so that a burst is not lost between two turns of the loop.
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
        sys::tune_udp(socket.as_fd(), config.offload, SOCKET_BUFFER).map_err(device)?;
        // A joined message can be 64 KiB; a single one is an MTU, but jumbo frames exist.
        let inbox = if config.offload { ReceiveBatch::new(16, 65_536) } else { ReceiveBatch::new(32, 16_384) };
        Ok(UdpDevice {
            socket,
            remote: config.remote,
            learned: BTreeMap::new(),
            offload: config.offload,
            addressing: config.addressing.clone(),
            outbox: Vec::new(),
            messages: Vec::new(),
            inbox,
            stats: DeviceStats::default(),
        })
    }

    /// The socket's own address.
    pub fn local_addr(&self) -> io::Result<std::net::SocketAddr> {
        self.socket.local_addr()
    }

    /// Where a packet for `dst` goes.
    fn outer(&self, dst: Ipv4Addr) -> Option<SocketAddrV4> {
        match &self.addressing {
            UdpAddressing::Learned => self.learned.get(&dst).copied().or(self.remote),
            UdpAddressing::Peer => self.remote,
            UdpAddressing::Hops { port, others } => {
                self.remote.or_else(|| others.get(&dst).copied()).or(Some(SocketAddrV4::new(dst, *port)))
            }
        }
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

    fn queue(&mut self, packet: Transmit) -> usize {
        let on_the_line = packet.len + usize::from(self.overhead());
        let start = self.outbox.len() - packet.len;
        let Some(to) = self.outer(packet.dst) else {
            self.stats.refused += 1;
            self.outbox.truncate(start);
            return 0;
        };
        if let Some(last) = self.messages.last_mut().filter(|_| self.offload) {
            // A row grows while datagrams are of one size; a shorter one ends it.
            let is_open = last.len == last.segment * last.count;
            let joins = last.to == to && last.start + last.len == start && packet.len <= last.segment;
            if joins && is_open && last.count < ROW_MAX && last.len + packet.len <= ROW_OCTETS_MAX {
                last.len += packet.len;
                last.count += 1;
                return on_the_line;
            }
        }
        self.messages.push(Outgoing { start, len: packet.len, segment: packet.len, count: 1, to });
        on_the_line
    }

    fn flush(&mut self) -> io::Result<bool> {
        let mut done = 0;
        while done < self.messages.len() {
            self.stats.send_calls += 1;
            match sys::send_batch(self.socket.as_fd(), &self.outbox, &self.messages[done..]) {
                Ok(n) => {
                    self.stats.sent += self.messages[done..done + n].iter().map(|m| m.count as u64).sum::<u64>();
                    done += n;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.messages.drain(..done);
                    return Ok(false);
                }
                Err(e) if is_passing(&e) => {
                    // The first message met an error of the path or of an earlier one; it is lost like any packet.
                    self.stats.refused += 1;
                    done += 1;
                }
                Err(e) => return Err(e),
            }
        }
        self.messages.clear();
        self.outbox.clear();
        Ok(true)
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8], Row, Trust)) -> io::Result<bool> {
        self.stats.receive_calls += 1;
        let (learned, stats, fixed) = (&mut self.learned, &mut self.stats, self.remote);
        let learns = matches!(self.addressing, UdpAddressing::Learned);
        let hears_all = !matches!(self.addressing, UdpAddressing::Peer);
        let result = self.inbox.receive(self.socket.as_fd(), |message| {
            if !hears_all && fixed != Some(message.from) {
                return;
            }
            for packet in message.octets.chunks(message.segment) {
                stats.received += 1;
                if learns && packet.len() >= 20 && fixed != Some(message.from) && learned.len() < LEARNED_MAX {
                    let source = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
                    learned.entry(source).or_insert(message.from);
                }
            }
            take(message.octets, Row::Packets(message.segment), Trust::Check);
        });
        match result {
            Ok(n) => Ok(n > 0),
            Err(e) if is_passing(&e) => Ok(true),
            Err(e) => Err(e),
        }
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
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
