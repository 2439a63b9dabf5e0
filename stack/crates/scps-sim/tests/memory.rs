//! The bound on a gateway's memory, judged by an allocator that counts: two sides that send as much as they may, out of order, in segments
//! of any size, acknowledge nothing but every other segment, and read nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]
#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use scps_gateway::{Gateway, GatewayConfig, SetUp, Side, SideConfig};
use scps_sim::cases;
use scps_tp::{Config, Congestion, RouteConfig, Trust};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::{Options, Timestamps};
use scps_wire::protocol::TCP;
use scps_wire::scps::Capabilities;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Duration, Instant, Rng, Seed, SeqNum};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::Ipv4Addr;

struct Counting;

thread_local! {
    /// Whether this thread's allocations are the gateway's.
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    /// Octets that it has, and had at most.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(octets: isize) {
    if IS_COUNTED.get() {
        let (held, most) = HELD.get();
        HELD.set((held + octets, most.max(held + octets)));
    }
}

// SAFETY: every call is the system allocator's, with a count beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the pointer came from `alloc` above, which is the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the gateway does in `act` is counted.
fn counted<T>(act: impl FnOnce() -> T) -> T {
    IS_COUNTED.set(true);
    let result = act();
    IS_COUNTED.set(false);
    result
}

const SHIFT: u8 = 14;

/// One end of a connection.
struct Peer {
    side: Side,
    own: (Ipv4Addr, u16),
    other: (Ipv4Addr, u16),
    mss: u16,
    is_opening: bool,
    /// Where the next segment begins that follows what was sent.
    next: SeqNum,
    /// Where the gateway's window ends, and what it expects.
    window: Option<(SeqNum, SeqNum)>,
    /// Its first number, once it has said one, and the end of what came.
    first: Option<SeqNum>,
    blocks: Vec<(SeqNum, SeqNum)>,
    segments: u64,
    /// The scale of the gateway's windows.
    shift: u8,
}

impl Peer {
    fn packet(&self, flags: Flags, seq: SeqNum, mut options: Options, data: usize) -> Vec<u8> {
        if flags.has(Flags::SYN) {
            options.mss = Some(self.mss);
            options.window_scale = Some(SHIFT);
            options.sack_permitted = true;
            options.capabilities = (self.side == Side::Wan).then_some(Capabilities { bits: 0x40, connection_id: 0 });
        }
        options.timestamps = Some(Timestamps { val: 1, ecr: 0 });
        let ack = self.first.map_or(SeqNum(0), |first| first + 1);
        let (src_port, dst_port) = (self.own.1, self.other.1);
        let tcp = Tcp { src_port, dst_port, seq, ack, flags, window: 65_535, urgent: 0, options };
        let mut packet = vec![7; 20 + tcp.emit_len() + data];
        let (head, segment) = packet.split_at_mut(20);
        tcp.emit(segment, self.own.0, self.other.0, TCP);
        let (src, dst, payload_len) = (self.own.0, self.other.0, segment.len() as u16);
        let ip = Ipv4 {
            src,
            dst,
            protocol: TCP,
            tos: 0,
            ttl: 64,
            id: 1,
            dont_fragment: true,
            is_fragment: false,
            payload_len,
        };
        ip.emit(head);
        packet
    }

    /// Takes a packet of the gateway's, and answers it.
    fn take(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let (ip, segment) = Ipv4::parse(packet).unwrap();
        let (tcp, data) = Tcp::parse(segment, ip.src, ip.dst, Verify::Checksum(&[TCP])).unwrap();
        let is_syn = tcp.flags.has(Flags::SYN);
        if tcp.flags.has(Flags::RST) || (ip.dst, tcp.dst_port) != self.own {
            return None;
        }
        if tcp.flags.has(Flags::ACK) {
            let shift = if is_syn { 0 } else { self.shift };
            self.window = Some((tcp.ack + (u32::from(tcp.window) << shift), tcp.ack));
        }
        if is_syn {
            self.other.0 = ip.src;
            self.other.1 = tcp.src_port;
            self.first = Some(tcp.seq);
            if let Some(own) = tcp.options.window_scale {
                self.shift = own;
            }
            let flags = if self.is_opening { Flags::ACK } else { Flags::SYN.with(Flags::ACK) };
            let seq = if self.is_opening { SeqNum(1) } else { SeqNum(0) };
            return Some(self.packet(flags, seq, Options::default(), 0));
        }
        if data.is_empty() {
            return None;
        }
        self.segments += 1;
        let mut options = Options::default();
        // Every other one arrived, as far as the gateway is told: most entries that there can be.
        if self.segments % 2 == 0 {
            self.blocks.push((tcp.seq, tcp.seq + data.len() as u32));
        }
        for block in self.blocks.iter().rev().take(3) {
            options.sack.push(block.0, block.1);
        }
        Some(self.packet(Flags::ACK, self.next, options, 0))
    }

    /// Data in the gateway's window.
    fn data(&mut self, rng: &mut Rng) -> Option<Vec<u8>> {
        let (edge, expected) = self.window?;
        let room = edge.0.wrapping_sub(expected.0).min(1 << 30);
        let len = (1 + rng.below(1400) as u32).min(room);
        if len == 0 {
            return None;
        }
        // Mostly somewhere, as small pieces with holes between them, and sometimes what is missing.
        let is_piece = rng.below(3) > 0;
        let (at, len) = if is_piece { (rng.below(u64::from(room)) as u32, len.min(9)) } else { (0, len) };
        let options = Options { record_boundary: rng.below(4) == 0, ..Options::default() };
        Some(self.packet(Flags::ACK, expected + at, options, len as usize))
    }
}

fn case(seed: u64, rng: &mut Rng) {
    let mut buffer = || {
        let bits = 4 + rng.below(18);
        16_384 + rng.below(1 << bits) as usize
    };
    let sizes = [buffer(), buffer(), buffer(), buffer()];
    let half = |send: usize, receive: usize| {
        let route = RouteConfig::default().rate(None).initial_rto(Duration::from_secs(1));
        let transport = Config::modern().congestion(Congestion::None).send_buffer(send).receive_buffer(receive);
        SideConfig::default().connection(transport).route(route)
    };
    let set_up = [SetUp::ConnectFirst, SetUp::AcceptFirst, SetUp::Early][rng.below(3) as usize];
    let mut config = GatewayConfig::transparent(half(sizes[0], sizes[1]), half(sizes[2], sizes[3]), set_up);
    let connections = 1 + rng.below(3) as usize;
    config.limits.buffered = connections * config.octets_per_connection();
    let limit = config.limits.buffered;
    let mut now = Instant::from_secs(1);
    let mut gateway = Gateway::new(config, Seed::from_u64(seed), now).unwrap();
    HELD.set((0, 0));
    let ends = |i: usize| [(Ipv4Addr::new(10, 1, 0, 1), 4000 + i as u16), (Ipv4Addr::new(10, 2, 0, 1 + i as u8), 80)];
    let mut peers: Vec<Peer> = (0..connections)
        .flat_map(|i| [(Side::Lan, ends(i)[0], ends(i)[1]), (Side::Wan, ends(i)[1], ends(i)[0])])
        .map(|(side, own, other)| Peer {
            side,
            own,
            other,
            mss: [0, 1, 32, 88, 536, 1460, 65_535][rng.below(7) as usize],
            is_opening: side == Side::Lan,
            next: SeqNum(1),
            window: None,
            first: None,
            blocks: Vec::new(),
            segments: 0,
            shift: 0,
        })
        .collect();
    let mut out = Vec::with_capacity(1 << 17);
    let mut waiting: Vec<(Side, Vec<u8>)> = peers
        .iter()
        .filter(|peer| peer.is_opening)
        .map(|peer| (peer.side, peer.packet(Flags::SYN, SeqNum(0), Options::default(), 0)))
        .collect();
    for step in 0..3000 {
        for (side, packet) in waiting.drain(..) {
            counted(|| gateway.handle_input(now, side, &packet, Trust::Check));
        }
        for side in Side::BOTH {
            while counted(|| gateway.poll_transmit(now, side, &mut out)).is_some() {
                let answers = peers.iter_mut().filter(|peer| peer.side == side).filter_map(|peer| peer.take(&out));
                waiting.extend(answers.map(|answer| (side, answer)));
                out.clear();
            }
        }
        waiting.extend(peers.iter_mut().filter_map(|peer| Some((peer.side, peer.data(rng)?))));
        now += Duration::from_millis(if step % 64 == 0 { 500 } else { 1 });
        if gateway.poll_timeout().is_some_and(|at| at <= now) {
            counted(|| gateway.handle_timeout(now));
        }
        let told = gateway.allocated();
        let most = HELD.get().1;
        assert!(told <= limit, "it tells of {told} octets of {limit}");
        assert!(
            most as f64 <= 1.1 * limit as f64,
            "{most} octets were allocated of {limit}, with buffers of {sizes:?}"
        );
    }
    let began = peers.iter().filter(|peer| peer.segments > 0).count();
    assert!(began > 0, "somebody has data");
}

#[test]
fn a_gateway_takes_the_memory_that_its_limit_says_and_no_more() {
    cases::for_each("cargo test -p scps-sim --test memory", 24, case);
}
