//! The loop of a gateway: the devices of its two sides and the engine joined, on one thread.
//!
//! What is not the gateway's goes from one device to the other as it came, but for the work that the kernel left to the device:
//! checksums are completed, and what was joined is cut (`foreign.rs`).

use crate::clock::Clock;
use crate::device::{packets_of, Device, DeviceStats};
use crate::places::{Place, Places};
use crate::reactor::{Driven, Interest, Reactor};
use crate::stack::parting;
use crate::states::StateLog;
use crate::{foreign, IoError};
use scps_gateway::{Bypass, ConfigError, Gateway, GatewayConfig, PerSide, Side};
use scps_sp::Sp;
use scps_tp::{TraceRecord, Transmit};
use scps_wire::{Duration, Instant};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

/// Octets that may wait for a device before packets of others are dropped.
const FOREIGN_OCTETS_MAX: usize = 1 << 20;

/// Packets that are not the gateway's, by what became of them, counted on the side where they came.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passed {
    /// Handed to the other side's device.
    pub packets: u64,
    /// Their octets.
    pub octets: u64,
    /// Dropped, because the other side's rate or device had no room, or because they are IPv6.
    pub dropped: u64,
    /// Of the dropped ones, those that are IPv6, which is not carried yet.
    pub ipv6: u64,
    /// Of the dropped ones, those that are no IP at all: where nothing unseals packets, sealed ones look like that.
    pub no_ip: u64,
}

#[derive(Debug)]
struct SideState {
    driven: Driven,
    passed: Passed,
    octets: u64,
    /// Where senders of what passed are, beneath the network layer, and how many were heard.
    strangers: Places<Ipv4Addr>,
    heard: u64,
}

/// A gateway in operation.
#[derive(Debug)]
pub struct GatewayLoop {
    gateway: Gateway,
    reactor: Reactor,
    sides: PerSide<SideState>,
    /// Whether packets that pass take the rate credit of the side where they leave.
    is_metered: bool,
    states: Option<StateLog>,
    clock: Clock,
    now: Instant,
}

impl GatewayLoop {
    /// Joins two devices by a gateway, whose time begins with `clock`.
    pub fn new(
        mut gateway: Gateway,
        devices: PerSide<Box<dyn Device>>,
        is_metered: bool,
        clock: Clock,
    ) -> Result<Self, IoError> {
        let mut reactor = Reactor::new().map_err(IoError::system("epoll"))?;
        for side in Side::BOTH {
            gateway.set_carrier(side, devices.of(side).carrier());
        }
        let mut state = |device| {
            let driven = Driven::new(device, &mut reactor);
            SideState { driven, passed: Passed::default(), octets: 0, strangers: Places::default(), heard: 0 }
        };
        let sides = PerSide { lan: state(devices.lan), wan: state(devices.wan) };
        Ok(GatewayLoop { gateway, reactor, sides, is_metered, states: None, clock, now: clock.now() })
    }

    /// Writes a row of [`STATE_OCTETS`](crate::STATE_OCTETS) whenever windows or round trip of a connection on the WAN have changed, behind
    /// the whole rows of the file, until that has `octets_max`. `is_shared`: somebody takes the trace, too.
    pub fn keep_states(&mut self, file: File, octets_max: u64, is_shared: bool) -> io::Result<()> {
        let states = StateLog::new(file, octets_max, self.origin_unix_ns(), is_shared)?;
        if !states.is_full() {
            self.gateway.trace(vec![Bypass { net: Bypass::ANY_NET, ports: Bypass::ANY_PORTS }]);
        }
        self.states = Some(states);
        Ok(())
    }

    /// True if the file of states is as long as it may be.
    pub fn has_all_states(&self) -> bool {
        self.states.as_ref().is_some_and(StateLog::is_full)
    }

    /// The next record of [`Gateway::trace`].
    pub fn poll_trace(&mut self) -> Option<TraceRecord> {
        match &mut self.states {
            Some(states) => states.poll_trace(),
            None => self.gateway.poll_trace(),
        }
    }

    /// Nobody takes the trace any more.
    pub fn end_trace(&mut self) {
        if let Some(states) = &mut self.states {
            states.share_no_more();
        }
        if self.states.as_ref().is_none_or(StateLog::is_full) {
            self.gateway.trace(Vec::new());
        }
    }

    /// Makes [`GatewayLoop::run_once`] return when `other` becomes readable, once until it is read.
    pub fn watch(&self, other: BorrowedFd<'_>) -> Result<(), IoError> {
        self.reactor.watch(other, Interest::READ).map_err(IoError::system("epoll"))
    }

    /// The engine, for queries.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The engine, for reports.
    pub fn gateway_mut(&mut self) -> &mut Gateway {
        &mut self.gateway
    }

    /// [`Gateway::reconfigure`]; `is_metered` is whether packets that pass take the rate credit of the side where they leave.
    pub fn reconfigure(&mut self, config: GatewayConfig, is_metered: bool) -> Result<(), ConfigError> {
        self.gateway.reconfigure(self.now, config)?;
        self.is_metered = is_metered;
        Ok(())
    }

    /// Time as of the last look at the clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time zero of the engine on the system's clock, nanoseconds since 1970.
    pub fn origin_unix_ns(&self) -> i64 {
        self.clock.origin_unix_ns()
    }

    /// Counters of a side's device.
    pub fn device_stats(&self, side: Side) -> DeviceStats {
        self.sides.of(side).driven.device.stats()
    }

    /// Octets handed to a side's device, as they are on the line.
    pub fn octets(&self, side: Side) -> u64 {
        self.sides.of(side).octets
    }

    /// SP of a side whose device seals its packets.
    pub fn protection(&mut self, side: Side) -> Option<&mut Sp> {
        self.sides.of_mut(side).driven.device.protection()
    }

    /// What came from a side and was not the gateway's.
    pub fn passed(&self, side: Side) -> Passed {
        self.sides.of(side).passed
    }

    /// Does what is due, sleeping until something is, or until `deadline` is over.
    pub fn run_once(&mut self, deadline: Option<Instant>) -> Result<(), IoError> {
        self.now = self.clock.now();
        self.transmit_all().map_err(IoError::system("send"))?;
        let until = [self.gateway.poll_timeout(), deadline].into_iter().flatten().min();
        let readable = self.wait(true, until).map_err(IoError::system("epoll"))?;
        for side in Side::BOTH {
            if *readable.of(side) {
                self.receive(side).map_err(IoError::system("receive"))?;
            }
        }
        if self.gateway.poll_timeout().is_some_and(|at| at <= self.now) {
            self.gateway.handle_timeout(self.now);
        }
        self.transmit_all().map_err(IoError::system("send"))?;
        self.note_states()
    }

    fn note_states(&mut self) -> Result<(), IoError> {
        let Some(states) = &mut self.states else { return Ok(()) };
        let was_full = states.is_full();
        states.drain(self.gateway.endpoint_mut(Side::Wan))?;
        if states.is_full() && !was_full && !states.is_shared() {
            self.gateway.trace(Vec::new());
        }
        Ok(())
    }

    /// Resets every connection, and turns until the resets have left; false if that takes longer than `longest`. Then it answers for two
    /// round trips, no longer than that again, whoever lost something and asks for an exact reset.
    pub fn stop(&mut self, longest: Duration) -> Result<bool, IoError> {
        let round_trip = Side::BOTH.iter().filter_map(|side| self.gateway.endpoint(*side).round_trip()).max();
        self.now = self.clock.now();
        self.gateway.stop(self.now);
        self.transmit_all().map_err(IoError::system("send"))?;
        self.note_states()?;
        let until = self.now + longest;
        let is_busy = |gateway: &Self, side: &Side| {
            gateway.gateway.endpoint(*side).owes_reset() || !gateway.sides.of(*side).driven.has_room()
        };
        while Side::BOTH.iter().any(|side| is_busy(self, side)) {
            if self.now >= until {
                return Ok(false);
            }
            let timeout = self.gateway.poll_timeout().unwrap_or(until).min(until);
            self.wait(false, Some(timeout)).map_err(IoError::system("epoll"))?;
            self.gateway.handle_timeout(self.now);
            self.transmit_all().map_err(IoError::system("send"))?;
        }
        let until = self.now + parting(round_trip).min(longest);
        while self.now < until {
            self.run_once(Some(until))?;
        }
        Ok(true)
    }

    /// Waits for the devices, and tells which have something to read; who is leaving reads nothing more.
    fn wait(&mut self, reads: bool, until: Option<Instant>) -> io::Result<PerSide<bool>> {
        for side in Side::BOTH {
            self.sides.of(side).driven.ask(&mut self.reactor, reads)?;
        }
        let asleep = self.now;
        let found = self.reactor.wait(until.map(|at| at.since(asleep)))?;
        self.now = self.clock.now();
        let waited = self.now.since(asleep);
        let mut is_readable = |side| self.sides.of_mut(side).driven.is_readable(&found, waited);
        Ok(PerSide { lan: is_readable(Side::Lan), wan: is_readable(Side::Wan) })
    }

    fn receive(&mut self, side: Side) -> io::Result<()> {
        let (now, is_metered, gateway) = (self.now, self.is_metered, &mut self.gateway);
        let (from, to) = self.sides.both_mut(side);
        let (passed, strangers, heard) = (&mut from.passed, &mut from.strangers, &mut from.heard);
        let (onward, onward_strangers, octets_on) = (&mut to.driven.device, &to.strangers, &mut to.octets);
        let result = from.driven.device.receive(&mut |octets, batch, trust, via| {
            for packet in packets_of(octets, batch) {
                match packet.first().map(|first| first >> 4) {
                    Some(4) | None => continue,
                    Some(6) if is_of_link(packet) => continue,
                    Some(6) => passed.ipv6 += 1,
                    Some(_) => passed.no_ip += 1,
                }
                passed.dropped += 1;
            }
            gateway.hear_from(side, via);
            let mut foreigners: Vec<Vec<u8>> = Vec::new();
            gateway.handle_batch(now, side, octets, batch, trust, |packet, batch| {
                foreign::whole(packet, batch, trust, |whole| foreigners.push(whole.to_vec()));
            });
            for packet in foreigners {
                let has_room = onward.outbox().len() < FOREIGN_OCTETS_MAX;
                if !has_room || is_metered && !gateway.charge(now, side.other(), packet.len()) {
                    passed.dropped += 1;
                    continue;
                }
                passed.packets += 1;
                passed.octets += packet.len() as u64;
                onward.outbox().extend_from_slice(&packet);
                let [src, dst] =
                    [12, 16].map(|at| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]));
                if let Some(via) = via {
                    *heard += 1;
                    strangers.put(src, Place { at: via, heard: *heard });
                }
                let way = gateway
                    .way_to(side.other(), dst.into())
                    .or_else(|| onward_strangers.get(&dst).map(|place| place.at));
                *octets_on += onward.queue(Transmit::new(dst, packet.len()).by_way_of(way)) as u64;
            }
        });
        result.map(drop)
    }

    fn transmit_all(&mut self) -> io::Result<()> {
        // What one side sends can make room for what the other one acknowledges.
        Side::BOTH.into_iter().try_for_each(|side| self.transmit(side))?;
        self.transmit(Side::Lan)
    }

    fn transmit(&mut self, side: Side) -> io::Result<()> {
        let (gateway, now) = (&mut self.gateway, self.now);
        let SideState { driven, octets, .. } = self.sides.of_mut(side);
        driven.transmit(|device| {
            let packet = gateway.poll_transmit(now, side, device.outbox());
            packet.map(|packet| *octets += device.queue(packet) as u64).is_some()
        })?;
        if let Some(mtu) = self.sides.of(side).driven.device.path_mtu() {
            self.gateway.lower_mtu(now, side, mtu);
        }
        Ok(())
    }
}

/// True for what a machine says of itself on every interface that has IPv6: its source is of the link, or nobody's (RFC 4291 §2.5.6).
fn is_of_link(packet: &[u8]) -> bool {
    packet.get(8..24).is_none_or(|src| src[0] == 0xfe && src[1] & 0xc0 == 0x80 || src.iter().all(|octet| *octet == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{UdpAddressing, UdpConfig, UdpDevice};
    use scps_gateway::{SetUp, SideConfig};
    use scps_tp::RouteConfig;
    use scps_wire::ipv4::Ipv4;
    use scps_wire::Seed;
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);

    /// A gateway between two UDP sockets.
    struct Lab {
        gateway: GatewayLoop,
        client: UdpSocket,
        server: UdpSocket,
    }

    fn lab(rate: Option<u64>) -> Lab {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            let std::net::SocketAddr::V4(at) = socket.local_addr().unwrap() else { unreachable!("an IPv4 socket") };
            (socket, at)
        };
        let ((client, to_client), (server, to_server)) = (socket(), socket());
        let device = |remote| {
            let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
            let addressing = UdpAddressing::Peer;
            UdpDevice::open(&UdpConfig { local, remote: Some(remote), offload: false, addressing }).unwrap()
        };
        let (lan, wan) = (device(to_client), device(to_server));
        client.connect(lan.local_addr().unwrap()).unwrap();
        server.connect(wan.local_addr().unwrap()).unwrap();
        let route = RouteConfig::default().rate(rate.map(scps_wire::Bitrate::from_bps));
        let side = SideConfig::default().route(route);
        let config = GatewayConfig::transparent(side.clone(), side, SetUp::ConnectFirst);
        let clock = Clock::new();
        let engine = Gateway::new(config, Seed::from_u64(1), clock.now()).unwrap();
        let gateway = GatewayLoop::new(engine, PerSide { lan: Box::new(lan), wan: Box::new(wan) }, true, clock);
        Lab { gateway: gateway.unwrap(), client, server }
    }

    impl Lab {
        fn run_once(&mut self) {
            self.gateway.run_once(None).unwrap();
        }
    }

    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let header = Ipv4 {
            src: CLIENT,
            dst: SERVER,
            protocol,
            tos: 0xb8,
            ttl: 9,
            id: 7,
            dont_fragment: false,
            is_fragment: false,
            payload_len: payload.len() as u16,
        };
        let mut octets = vec![0; 20];
        header.emit(&mut octets);
        octets.extend_from_slice(payload);
        octets
    }

    #[test]
    fn what_is_not_tcp_crosses_unchanged_in_both_directions() {
        let mut lab = lab(None);
        let mut came = [0; 200];
        for protocol in [1, 17, 50] {
            let sent = packet(protocol, b"anything at all");
            lab.client.send(&sent).unwrap();
            lab.run_once();
            let n = lab.server.recv(&mut came).unwrap();
            assert_eq!(&came[..n], &sent[..], "protocol {protocol}");
            lab.server.send(&sent).unwrap();
            lab.run_once();
            let n = lab.client.recv(&mut came).unwrap();
            assert_eq!(&came[..n], &sent[..]);
        }
        assert_eq!((lab.gateway.passed(Side::Lan).packets, lab.gateway.passed(Side::Wan).packets), (3, 3));
    }

    #[test]
    fn ipv6_is_counted_and_goes_nowhere() {
        let mut lab = lab(None);
        // Of the link, of nobody, of a host.
        for src in [[0xfe, 0x80], [0, 0], [0xfd, 1]] {
            let mut sent = [0; 60];
            sent[0] = 0x60;
            sent[8..10].copy_from_slice(&src);
            lab.client.send(&sent).unwrap();
            lab.run_once();
        }
        lab.client.send(&packet(17, b"IPv4")).unwrap();
        lab.run_once();
        let mut came = [0; 200];
        assert_eq!(lab.server.recv(&mut came).unwrap(), 24);
        let passed = lab.gateway.passed(Side::Lan);
        assert_eq!((passed.packets, passed.dropped, passed.ipv6, passed.no_ip), (1, 1, 1, 0));
        // What is no IP, as where the other end seals and this one does not.
        lab.server.send(&[0x10; 60]).unwrap();
        lab.run_once();
        let passed = lab.gateway.passed(Side::Wan);
        assert_eq!((passed.packets, passed.dropped, passed.no_ip), (0, 1, 1));
    }

    #[test]
    fn packets_that_pass_take_the_credit_of_the_side_where_they_leave() {
        let mut lab = lab(Some(80_000));
        // The first credit and the debt are each five packets of 1500 octets: ten of them, or a few more for the time that passes.
        for _ in 0..30 {
            lab.client.send(&packet(17, &[0; 1480])).unwrap();
            lab.run_once();
        }
        let passed = lab.gateway.passed(Side::Lan);
        assert_eq!(passed.packets + passed.dropped, 30);
        assert!((10..=13).contains(&passed.packets), "{passed:?}");
    }

    #[test]
    fn a_stranger_at_the_socket_is_not_heard() {
        let mut lab = lab(None);
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = lab.client.peer_addr().unwrap();
        stranger.send_to(&packet(17, b"let me in"), at).unwrap();
        lab.client.send(&packet(17, b"from a friend")).unwrap();
        let mut came = [0; 200];
        while lab.gateway.passed(Side::Lan).packets == 0 {
            lab.run_once();
        }
        let n = lab.server.recv(&mut came).unwrap();
        assert_eq!(&came[20..n], b"from a friend");
    }

    #[test]
    fn a_syn_becomes_a_syn_on_the_other_side_with_its_code_point() {
        let mut lab = lab(None);
        let mut segment = vec![0; 20];
        let syn = scps_wire::tcp::Tcp {
            src_port: 4000,
            dst_port: 80,
            seq: scps_wire::SeqNum(1),
            ack: scps_wire::SeqNum(0),
            flags: scps_wire::tcp::Flags::SYN,
            window: 9000,
            urgent: 0,
            options: scps_wire::options::Options::default(),
        };
        syn.emit(&mut segment, CLIENT, SERVER, 6);
        lab.client.send(&packet(6, &segment)).unwrap();
        lab.run_once();
        let mut came = [0; 200];
        let n = lab.server.recv(&mut came).unwrap();
        let (header, payload) = Ipv4::parse(&came[..n]).unwrap();
        assert_eq!((header.src, header.dst, header.tos), (CLIENT, SERVER, 0xb8));
        assert_eq!(payload[..4], [0x0f, 0xa0, 0, 80]);
    }
}
