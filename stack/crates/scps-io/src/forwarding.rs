//! The loop of an NP router: its devices and the engine joined, on one thread.
//!
//! A frame stays in the router's queues until its interface is free, so that a more urgent one that comes meanwhile leaves
//! before it. An interface with a rate is free when the last frame has left at that rate; one without, when the kernel takes
//! more.

use crate::clock::Clock;
use crate::device::{packets_of, Device, DeviceStats};
use crate::reactor::{Driven, Interest, Reactor};
use crate::IoError;
use scps_np::{LinkEvent, Router};
use scps_tp::Transmit;
use scps_wire::{Bitrate, Instant};
use std::io;
use std::os::fd::BorrowedFd;

/// An interface.
#[derive(Debug)]
pub struct Port {
    /// What carries its frames.
    pub device: Box<dyn Device>,
    /// The line rate, if the router is to keep it.
    pub rate: Option<Bitrate>,
    /// Octets that the line adds to each frame beyond those that the device knows of; they take its time as well.
    pub framing: u16,
}

/// What happened to an interface.
#[derive(Debug)]
pub struct PortNotice {
    /// Which one, in the order in which they were given.
    pub port: usize,
    /// Why it carries nothing more.
    pub error: io::Error,
}

#[derive(Debug)]
struct PortState {
    driven: Driven,
    rate: Option<Bitrate>,
    framing: u16,
    free_at: Instant,
    /// A frame waited when the last one left: the next follows it without a gap.
    is_backlogged: bool,
    is_down: bool,
    damaged: u64,
}

/// A router in operation.
#[derive(Debug)]
pub struct Forwarder {
    router: Router,
    reactor: Reactor,
    ports: Vec<PortState>,
    clock: Clock,
    now: Instant,
    notices: Vec<PortNotice>,
}

impl Forwarder {
    /// Joins interfaces to a router whose links are theirs, in the same order.
    pub fn new(router: Router, ports: Vec<Port>) -> Result<Self, IoError> {
        let mut reactor = Reactor::new().map_err(IoError::system("epoll"))?;
        let clock = Clock::new();
        let now = clock.now();
        let state = |Port { device, rate, framing }| {
            let driven = Driven::new(device, &mut reactor);
            PortState { driven, rate, framing, free_at: now, is_backlogged: false, is_down: false, damaged: 0 }
        };
        let ports = ports.into_iter().map(state).collect();
        Ok(Forwarder { router, reactor, ports, clock, now, notices: Vec::new() })
    }

    /// Makes [`Forwarder::run_once`] return when `other` becomes readable, once until it is read.
    pub fn watch(&self, other: BorrowedFd<'_>) -> Result<(), IoError> {
        self.reactor.watch(other, Interest::READ).map_err(IoError::system("epoll"))
    }

    /// The engine, for queries.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The engine, for its settings.
    pub fn router_mut(&mut self) -> &mut Router {
        &mut self.router
    }

    /// From the next frame on, an interface keeps this rate, of which each frame takes the time of `framing` octets as well.
    pub fn set_rate(&mut self, port: usize, rate: Option<Bitrate>, framing: u16) {
        (self.ports[port].rate, self.ports[port].framing) = (rate, framing);
    }

    /// Counters of an interface's device.
    pub fn device_stats(&self, port: usize) -> DeviceStats {
        self.ports[port].driven.device.stats()
    }

    /// What happened to an interface since this was asked.
    pub fn poll_notice(&mut self) -> Option<PortNotice> {
        self.notices.pop()
    }

    /// Does what is due, sleeping until something is.
    pub fn run_once(&mut self) -> Result<(), IoError> {
        self.now = self.clock.now();
        self.transmit_all();
        let found = self.wait().map_err(IoError::system("epoll"))?;
        let asleep = std::mem::replace(&mut self.now, self.clock.now());
        for index in 0..self.ports.len() {
            if self.ports[index].driven.is_readable(&found, self.now.since(asleep)) {
                self.receive(index);
            }
        }
        self.transmit_all();
        Ok(())
    }

    /// What is ready of the ports that are up.
    fn wait(&mut self) -> io::Result<Vec<(usize, Interest)>> {
        for state in &self.ports {
            if state.is_down {
                state.driven.leave(&mut self.reactor)?;
            } else {
                state.driven.ask(&mut self.reactor, true)?;
            }
        }
        self.reactor.wait(self.next_send().map(|at| at.since(self.now)))
    }

    /// When the first interface is free for which something waits.
    fn next_send(&self) -> Option<Instant> {
        let waits = |(index, state): &(usize, &PortState)| {
            !state.is_down && state.driven.has_room() && state.rate.is_some() && !self.router.queue(*index).is_empty()
        };
        self.ports.iter().enumerate().filter(waits).map(|(_, state)| state.free_at).min()
    }

    fn receive(&mut self, index: usize) {
        let (now, router) = (self.now, &mut self.router);
        let state = &mut self.ports[index];
        let received = state.driven.device.receive(&mut |octets, batch, _, _| {
            packets_of(octets, batch).for_each(|frame| router.handle_frame(now, index, frame));
        });
        let damaged = state.driven.device.stats().damaged;
        if damaged > std::mem::replace(&mut state.damaged, damaged) {
            router.handle_link_event(now, index, LinkEvent::FrameCorrupt);
        }
        if let Err(error) = received {
            self.give_up(index, error);
        }
    }

    fn transmit_all(&mut self) {
        for index in 0..self.ports.len() {
            if !self.ports[index].is_down {
                if let Err(error) = self.transmit(index) {
                    self.give_up(index, error);
                }
            }
        }
    }

    fn transmit(&mut self, index: usize) -> io::Result<()> {
        let (now, router) = (self.now, &mut self.router);
        let PortState { driven, rate, framing, free_at, is_backlogged, .. } = &mut self.ports[index];
        driven.transmit(|device| {
            if rate.is_some() && *free_at > now {
                return false;
            }
            let Some(frame) = router.poll_frame(index) else { return false };
            let len = frame.octets.len();
            device.outbox().extend_from_slice(&frame.octets);
            let on_the_line = device.queue(Transmit::new(frame.next_hop, len));
            router.recycle(frame.octets);
            if let Some(rate) = rate {
                let start = if *is_backlogged { *free_at } else { now };
                *free_at = start + rate.time_for((on_the_line + usize::from(*framing)) as u64);
                *is_backlogged = !router.queue(index).is_empty();
            }
            true
        })
    }

    /// An interface that fails takes nothing with it: its link is down, and the router goes on.
    fn give_up(&mut self, port: usize, error: io::Error) {
        self.ports[port].is_down = true;
        self.router.handle_link_event(self.now, port, LinkEvent::Down);
        self.notices.push(PortNotice { port, error });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_stream::EndAddress;
    use crate::serial::SerialDevice;
    use crate::udp::{UdpAddressing, UdpConfig, UdpDevice};
    use scps_np::{
        Address, Addresses, BasicQos, Dialect, Header, QueueConfig, RouterConfig, RouterLink, SpRule, Tables,
        DATAGRAM_MAX,
    };
    use scps_wire::hdlc::{self, Deframer};
    use scps_wire::{Precedence, Seed};
    use std::io::Read;
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
    use std::os::unix::net::{UnixListener, UnixStream};

    const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn datagram(level: u8, len: usize) -> Vec<u8> {
        let addresses = Addresses::Basic { dst: 0x7292, src: 0x7290 };
        let qos = Precedence::new(level).map(BasicQos::of);
        let header = Header { tpid: 6, addresses, qos, hop_count: Some(9), checksum: true, ..Header::default() };
        let mut octets = vec![0; len];
        header.emit(Dialect::default(), DATAGRAM_MAX, &mut octets).unwrap();
        octets
    }

    /// A router between a UDP socket (of a host that is `NEAR`) and a serial line.
    struct Lab {
        forwarder: Forwarder,
        host: UdpSocket,
        line: UnixStream,
    }

    fn lab(name: &str, rate: Option<u64>) -> Lab {
        let host = UdpSocket::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(at) = host.local_addr().unwrap() else { unreachable!("an IPv4 socket") };
        let others = [(NEAR, at)].into();
        let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let addressing = UdpAddressing::Hops { port: 7168, others };
        let udp = UdpDevice::open(&UdpConfig { local, remote: None, offload: false, addressing }).unwrap();
        host.connect(udp.local_addr().unwrap()).unwrap();
        let path = std::env::temp_dir().join(format!("scps-forwarding-{name}-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let serial = SerialDevice::open(&EndAddress::Unix(path.clone()), 1500).unwrap();
        std::fs::remove_file(path).unwrap();
        let mut tables = Tables::of(Ipv4Addr::new(10, 0, 0, 9));
        for (ip, np) in [(NEAR, 0x7290), (FAR, 0x7292)] {
            tables.add_host(ip, Address::Basic(np)).unwrap();
            tables.add_next_hop(Address::Basic(np), ip).unwrap();
        }
        let link = |hop| RouterLink {
            dialect: Dialect::default(),
            mtu: 1500,
            neighbours: vec![hop],
            queue: QueueConfig::default(),
            sp: SpRule::default(),
        };
        let links = [NEAR, FAR].map(link).into();
        let router = Router::new(RouterConfig::default(), tables, links, Seed::from_u64(1), Instant::ZERO);
        let plain = |device: Box<dyn Device>, rate| Port { device, rate, framing: 0 };
        let ports = vec![plain(Box::new(udp), None), plain(Box::new(serial), rate.map(Bitrate::from_bps))];
        let line = listener.accept().unwrap().0;
        Lab { forwarder: Forwarder::new(router, ports).unwrap(), host, line }
    }

    impl Lab {
        fn run_once(&mut self) {
            self.forwarder.run_once().unwrap();
        }

        /// Turns until `count` frames have crossed the line; their precedences.
        fn frames(&mut self, count: usize) -> Vec<u8> {
            let mut deframer = Deframer::new(1500);
            let mut levels = Vec::new();
            self.line.set_nonblocking(true).unwrap();
            let mut octets = [0; 4096];
            while levels.len() < count {
                self.run_once();
                while let Ok(n) = self.line.read(&mut octets) {
                    deframer.push(&octets[..n], |frame| {
                        let header = scps_np::Datagram::parse(frame.unwrap(), Dialect::default()).unwrap().header;
                        levels.push(header.qos.unwrap_or_default().precedence.level());
                    });
                }
            }
            levels
        }
    }

    #[test]
    fn frames_cross_between_a_socket_and_a_line() {
        let mut lab = lab("cross", None);
        lab.host.send(&datagram(3, 100)).unwrap();
        assert_eq!(lab.frames(1), [3]);
        let mut back = Vec::new();
        let header = Header {
            tpid: 6,
            addresses: Addresses::Basic { dst: 0x7290, src: 0x7292 },
            hop_count: Some(9),
            ..Header::default()
        };
        let mut octets = vec![0; 40];
        header.emit(Dialect::default(), DATAGRAM_MAX, &mut octets).unwrap();
        hdlc::emit(&octets, &mut back);
        std::io::Write::write_all(&mut lab.line, &back).unwrap();
        lab.run_once();
        let mut came = [0; 100];
        assert_eq!(lab.host.recv(&mut came).unwrap(), 40);
        assert_eq!(came[8], 8, "the hop count is one less");
    }

    #[test]
    fn an_interface_with_a_rate_keeps_it_and_the_most_urgent_leave_first() {
        let mut lab = lab("rate", Some(80_000));
        for level in [0, 0, 0, 7, 15] {
            lab.host.send(&datagram(level, 96)).unwrap();
        }
        let begin = std::time::Instant::now();
        assert_eq!(lab.frames(5), [15, 7, 0, 0, 0]);
        // 100 octets with framing are 10 ms; the first leaves at once.
        assert!(begin.elapsed() >= std::time::Duration::from_millis(40), "{:?}", begin.elapsed());
    }

    #[test]
    fn damaged_frames_are_told_to_those_who_sent_over_the_line() {
        let mut lab = lab("damage", None);
        let mut octets = vec![0; 40];
        let addresses = Addresses::Basic { dst: 0x7290, src: 0x7292 };
        Header { tpid: 6, addresses, ..Header::default() }.emit(Dialect::default(), DATAGRAM_MAX, &mut octets).unwrap();
        let mut line = Vec::new();
        hdlc::emit(&octets, &mut line);
        let good = line.clone();
        line[20] ^= 1;
        std::io::Write::write_all(&mut lab.line, &[good, line].concat()).unwrap();
        lab.run_once();
        let mut deframer = Deframer::new(1500);
        let mut told = Vec::new();
        let mut came = [0; 200];
        lab.line.set_nonblocking(false).unwrap();
        while told.is_empty() {
            let n = lab.line.read(&mut came).unwrap();
            deframer.push(&came[..n], |frame| told = frame.unwrap().to_vec());
        }
        let datagram = scps_np::Datagram::parse(&told, Dialect::default()).unwrap();
        assert_eq!((datagram.header.tpid, datagram.payload()[0]), (1, 19));
        assert_eq!(lab.forwarder.device_stats(1).damaged, 1);
    }

    #[test]
    fn a_line_that_ends_takes_nothing_with_it() {
        let mut lab = lab("ended", None);
        drop(std::mem::replace(&mut lab.line, UnixStream::pair().unwrap().0));
        lab.run_once();
        let notice = lab.forwarder.poll_notice().unwrap();
        assert_eq!((notice.port, notice.error.kind()), (1, io::ErrorKind::UnexpectedEof));
        lab.host.send(&datagram(3, 100)).unwrap();
        lab.run_once();
        // The sender is told of the outage: 3/16.
        let mut came = [0; 200];
        let n = lab.host.recv(&mut came).unwrap();
        let datagram = scps_np::Datagram::parse(&came[..n], Dialect::default()).unwrap();
        assert_eq!(datagram.payload()[..2], [3, 16]);
    }
}
