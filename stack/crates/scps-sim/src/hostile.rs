//! A gateway between hosts that answer whatever comes to their minds: random flags, numbers, options and lengths on both sides, damage,
//! and time. What has to hold all the same is asserted at every step.

use scps_gateway::{Bypass, Gateway, GatewayConfig, Limits, SetUp, Side, SideConfig};
use scps_tp::{Config, RouteConfig, Trust};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Duration, Instant, Seed, SeqNum};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Connections that the gateway may have.
const PLACES: usize = 8;
/// Packets that one step may make it send.
const ANSWERS_MAX: usize = 20_000;

/// Sender and receiver of a segment.
type Ends = ((Ipv4Addr, u16), (Ipv4Addr, u16));

struct Hostile<'a> {
    /// A number below another one.
    draw: &'a mut dyn FnMut(u64) -> u64,
    gateway: Gateway,
    now: Instant,
    /// The next number and the acknowledgement of what the gateway sent last, by side and ends.
    seen: BTreeMap<(Side, Ends), (SeqNum, SeqNum)>,
}

/// Lets a gateway meet `steps` of what `draw` makes up, and ends it. `draw` answers with a number below the one that it is given.
///
/// # Panics
/// The gateway does not keep a promise.
pub fn drive(draw: &mut dyn FnMut(u64) -> u64, steps: usize) {
    let set_up = [SetUp::ConnectFirst, SetUp::AcceptFirst, SetUp::Early][draw(3) as usize];
    let connection = Config::modern().send_buffer(20_000).receive_buffer(30_000).compression(draw(2) == 0);
    let side = |scps: bool| {
        let route = RouteConfig::default().rate(None).initial_rto(Duration::from_secs(1));
        SideConfig::default().connection(connection.clone().scps(scps)).route(route)
    };
    let limits = Limits::default().connections(PLACES);
    let bypasses = if draw(4) == 0 { vec![Bypass { net: Bypass::ANY_NET, ports: (4000, 4003) }] } else { Vec::new() };
    let config = GatewayConfig::transparent(side(false), side(true), set_up)
        .limits(limits)
        .passes_unknown(draw(4) == 0)
        .bypasses(bypasses);
    #[allow(clippy::expect_used, reason = "the settings are these")]
    let gateway = Gateway::new(config.clone(), Seed::from_u64(1), Instant::ZERO).expect("settings are good");
    let mut hostile = Hostile { draw, gateway, now: Instant::ZERO, seen: BTreeMap::new() };
    for _ in 0..steps {
        match hostile.draw(16) {
            0 => {
                let ms = hostile.draw(65_536);
                hostile.now += Duration::from_millis(ms);
                hostile.gateway.handle_timeout(hostile.now);
            }
            1 => {
                let again = hostile.gateway.reconfigure(hostile.now, config.clone());
                assert!(again.is_ok(), "the settings are those of before");
            }
            _ => hostile.offer(),
        }
        hostile.settle();
    }
    hostile.end();
}

impl Hostile<'_> {
    fn draw(&mut self, below: u64) -> u64 {
        (self.draw)(below)
    }

    /// A packet from a side.
    fn offer(&mut self) {
        let side = Side::BOTH[self.draw(2) as usize];
        let known: Vec<_> = self.seen.iter().filter(|((of, _), _)| *of == side).map(|(key, at)| (key.1, *at)).collect();
        let is_new = known.is_empty() || self.draw(4) == 0;
        let (ends, (seq, ack)) = if is_new {
            let own = match side {
                Side::Lan => 1,
                Side::Wan => 2,
            };
            let host = |net: u8, host: u64| Ipv4Addr::new(10, net, 0, host as u8);
            let (from, port, to) = (self.draw(4), self.draw(8), self.draw(3));
            (((host(own, from), 4000 + port as u16), (host(3 - own, to), 80)), (SeqNum(1), SeqNum(0)))
        } else {
            // What the gateway sent has its ends the other way around.
            let ((from, to), (next, acked)) = known[self.draw(known.len() as u64) as usize];
            ((to, from), (acked, next))
        };
        let likely = [Flags::ACK, Flags::ACK, Flags::SYN, Flags(0x12), Flags(0x11), Flags(0x04), Flags(0x14)];
        let flags = match self.draw(8) {
            0 => Flags(self.draw(64) as u8),
            _ if is_new => Flags::SYN,
            i => likely[i as usize - 1],
        };
        let octets: Vec<u8> = (0..self.draw(24)).map(|_| self.draw(256) as u8).collect();
        let mut options = Options::parse(&octets);
        if flags.has(Flags::SYN) {
            options.mss = Some([0, 1, 32, 536, 1460, 65_535][self.draw(6) as usize]);
        }
        if options.emit_len() > 40 {
            options = Options::default();
        }
        let near = |number: SeqNum, by: u64| number + (by as u32).wrapping_sub(1000);
        let [seq, ack] =
            [seq, ack].map(|number| if self.draw(3) == 0 { near(number, self.draw(70_000)) } else { number });
        let window = self.draw(65_536) as u16;
        let (src_port, dst_port) = (ends.0 .1, ends.1 .1);
        let tcp = Tcp { src_port, dst_port, seq, ack, flags, window, urgent: 0, options };
        let data = if self.draw(2) == 0 { self.draw(1461) as usize } else { 0 };
        let mut packet = vec![0; 20 + tcp.emit_len() + data];
        let (head, segment) = packet.split_at_mut(20);
        let number = if self.draw(16) == 0 { protocol::SCPS_COMPRESSED } else { protocol::TCP };
        tcp.emit(segment, ends.0 .0, ends.1 .0, number);
        let payload_len = segment.len() as u16;
        Ipv4 {
            src: ends.0 .0,
            dst: ends.1 .0,
            protocol: number,
            tos: 0,
            ttl: 64,
            id: 1,
            dont_fragment: true,
            is_fragment: self.draw(64) == 0,
            payload_len,
        }
        .emit(head);
        let trust = if self.draw(16) == 0 {
            let at = self.draw(packet.len() as u64) as usize;
            packet[at] ^= 1 << self.draw(8);
            [Trust::Check, Trust::Verified][self.draw(2) as usize]
        } else {
            Trust::Check
        };
        self.gateway.handle_input(self.now, side, &packet, trust);
    }

    /// Takes what the gateway sends, and looks whether all is well.
    fn settle(&mut self) {
        let mut out = Vec::new();
        for side in Side::BOTH {
            let mut sent = 0;
            while self.gateway.poll_transmit(self.now, side, &mut out).is_some() {
                sent += 1;
                assert!(sent < ANSWERS_MAX, "one step made it send for ever");
                self.note(side, &out);
                out.clear();
            }
        }
        if self.gateway.poll_timeout().is_some_and(|at| at <= self.now) {
            self.gateway.handle_timeout(self.now);
        }
        let ids: Vec<_> = self.gateway.connections().collect();
        assert!(ids.len() <= PLACES, "{} connections", ids.len());
        for id in ids {
            let accounts = self.gateway.account(id);
            assert!(accounts.is_some_and(|of| Side::BOTH.iter().all(|side| of.of(*side).closes())), "{accounts:?}");
        }
        while let Some(report) = self.gateway.poll_report() {
            let closes = |side: &Side| report.from.of(*side).closes() && report.from.of(*side).buffered == 0;
            assert!(Side::BOTH.iter().all(closes), "{report:?}");
        }
    }

    fn note(&mut self, side: Side, packet: &[u8]) {
        let parsed = Ipv4::parse(packet);
        assert!(parsed.is_ok(), "what it sends is well formed");
        let Ok((ip, payload)) = parsed else { return };
        if ip.protocol != protocol::TCP {
            return;
        }
        let parsed = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[protocol::TCP]));
        assert!(parsed.is_ok(), "what it sends is well formed");
        let Ok((tcp, data)) = parsed else { return };
        let flags = u32::from(tcp.flags.has(Flags::SYN)) + u32::from(tcp.flags.has(Flags::FIN));
        let ends = ((ip.src, tcp.src_port), (ip.dst, tcp.dst_port));
        self.seen.insert((side, ends), (tcp.seq + data.len() as u32 + flags, tcp.ack));
        if self.seen.len() > 64 {
            self.seen.pop_first();
        }
    }

    /// It stops: nothing is left, and nothing is due for ever.
    fn end(&mut self) {
        self.gateway.stop(self.now);
        self.settle();
        let mut turns = 0;
        while let Some(at) = self.gateway.poll_timeout() {
            turns += 1;
            assert!(turns < 10_000, "a timer is left for ever");
            self.now = self.now.max(at);
            self.gateway.handle_timeout(self.now);
            self.settle();
        }
        assert_eq!(self.gateway.connections().count(), 0);
        for side in Side::BOTH {
            assert_eq!(self.gateway.endpoint(side).connection_count(), 0, "{side:?}");
        }
    }
}
