//! Transport scripts: a table of time, direction and segment, as packetdrill would write it.
//!
//! ```text
//! 0.000 user connect
//! 0.000 > S 0:0 caps 0x40 mss 1000
//! 0.500 < S. 0:0 ack 1 win 65535 caps 0x40 mss 1000
//! 0.500 > . 1:1 ack 1
//! 0.600 user send 2000
//! 0.600 > . 1:1001 ack 1
//! 0.600 > P. 1001:2001 ack 1
//! 1.100 < . 1:1 ack 1 snack 0+1
//! 1.100 state cwnd 4000
//! 9.000 quiet
//! ```
//! `>` is what the engine must send next, at that time; `<` is what the peer sends; `quiet` demands that nothing was sent
//! up to that time. Numbers are relative to the initial sequence numbers. A field that a `>` line does not name is not
//! checked, except that `snack` and `sack` must not appear unnamed. Everything else is in the line's own words.
#![allow(dead_code, reason = "each test file uses its part of the script language")]

use scps_tp::{Config, ConnectionId, Endpoint, EndpointConfig, Event, RecvError, RouteConfig, RouteId, State, Trust};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::{Options, Timestamps};
use scps_wire::scps::{Capabilities, Snack};
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Duration, Instant, Seed, SeqNum};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

pub const US: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 5000);
pub const PEER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 6000);
/// The peer's initial sequence number: near the wrap, so that every script crosses it.
pub const PEER_ISS: SeqNum = SeqNum(u32::MAX - 1500);

/// A segment the engine sent.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub tcp: Tcp,
    pub len: u32,
    pub packet: Vec<u8>,
}

pub struct Script {
    pub endpoint: Endpoint,
    pub id: Option<ConnectionId>,
    pub now: Instant,
    pub sent: VecDeque<Seen>,
    pub events: Vec<Event>,
    pub received: Vec<u8>,
    pub holes: Vec<(u64, u64)>,
    config: Config,
    iss: Option<SeqNum>,
    our_last_ts: u32,
    log: String,
}

/// Segments of 1000 octets, no timestamps, no rate: numbers that can be read.
pub fn plain() -> Config {
    Config::default()
        .mss(Some(1000))
        .timestamps(false)
        .sack(false)
        .keepalive(None)
        .send_buffer(100_000)
        .receive_buffer(60_000)
}

pub fn no_rate() -> RouteConfig {
    RouteConfig::default().rate(None)
}

impl Script {
    pub fn new(config: Config, route: RouteConfig) -> Self {
        let endpoint = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(7), Instant::ZERO);
        Script {
            endpoint,
            id: None,
            now: Instant::ZERO,
            sent: VecDeque::new(),
            events: Vec::new(),
            received: Vec::new(),
            holes: Vec::new(),
            config,
            iss: None,
            our_last_ts: 0,
            log: String::new(),
        }
    }

    /// An open connection that we asked for: handshake done at 0.5 s with an RTT of 500 ms.
    pub fn connected(config: Config, route: RouteConfig) -> Self {
        let caps = if config.scps { " caps 0x40" } else { "" };
        Script::connected_with(config, route, &format!("win 65535 mss 1000 wscale 0{caps}"))
    }

    /// The same with the peer's SYN-ACK fields given.
    pub fn connected_with(config: Config, route: RouteConfig, syn_ack: &str) -> Self {
        let mut s = Script::new(config, route);
        s.run(&format!("0.000 user connect\n0.500 < S. 0:0 ack 1 {syn_ack}"));
        s.advance(Instant::from_millis(500));
        s.sent.clear();
        s
    }

    /// An open connection that the peer asked for.
    pub fn accepted(config: Config, syn: &str) -> Self {
        Script::accepted_by(config, no_rate(), syn)
    }

    /// The same over a route of its own.
    pub fn accepted_by(config: Config, route: RouteConfig, syn: &str) -> Self {
        let mut s = Script::new(config, route);
        s.run(&format!("0.000 user listen\n0.000 < S 0:0 {syn}"));
        s.run("0.100 < . 1:1 ack 1 win 65535");
        s.sent.clear();
        s
    }

    pub fn run(&mut self, script: &str) -> &mut Self {
        for line in script.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                self.line(line);
            }
        }
        self
    }

    /// The sequence number of our SYN.
    pub fn our_iss(&self) -> SeqNum {
        self.iss.expect("we sent a SYN")
    }

    fn fail(&self, what: &str) -> ! {
        panic!(
            "{what}\nso far:\n{}still to be looked at: {:#?}",
            self.log,
            self.sent.front().map(|s| (s.at, s.tcp, s.len))
        );
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let time = words.next().unwrap_or("");
        let at =
            Instant::from_nanos((time.parse::<f64>().unwrap_or_else(|_| panic!("no time in {line:?}")) * 1e9) as u64);
        self.advance(at);
        self.log.push_str(line);
        self.log.push('\n');
        let verb = words.next().unwrap_or("");
        let words: Vec<&str> = words.collect();
        match verb {
            ">" => self.expect(at, line, &words),
            "<" => self.inject(&words),
            "user" => self.user(line, &words),
            "state" => self.state(line, &words),
            "quiet" => {
                if !self.sent.is_empty() {
                    self.fail(&format!("{line}: expected silence"));
                }
            }
            _ => panic!("what is {verb:?} in {line:?}?"),
        }
        self.drain();
    }

    /// Lets time pass, timers included.
    pub fn advance(&mut self, to: Instant) {
        self.drain();
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        self.now = self.now.max(to);
    }

    fn drain(&mut self) {
        let mut packet = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut packet).is_some() {
            let (ip, payload) = Ipv4::parse(&packet).expect("a good IP header");
            if ip.protocol == 6 {
                let (tcp, data) = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).expect("a good segment");
                if tcp.flags.has(Flags::SYN) {
                    self.iss = Some(tcp.seq);
                }
                if let Some(t) = tcp.options.timestamps {
                    self.our_last_ts = t.val;
                }
                self.sent.push_back(Seen { at: self.now, tcp, len: data.len() as u32, packet: packet.clone() });
            }
            packet.clear();
        }
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Accepted(_, id) = event {
                self.id = Some(id);
            }
            self.events.push(event);
        }
    }

    fn rel(&self, seq: SeqNum) -> u32 {
        seq.0.wrapping_sub(self.iss.unwrap_or(seq).0)
    }

    fn expect(&mut self, at: Instant, line: &str, words: &[&str]) {
        let Some(seen) = self.sent.pop_front() else { self.fail(&format!("{line}: nothing was sent")) };
        let show = format!(
            "{} {} {}:{} ack {} win {} {:?}",
            seen.at,
            seen.tcp.flags,
            self.rel(seen.tcp.seq),
            self.rel(seen.tcp.seq) + seen.len,
            seen.tcp.ack.0.wrapping_sub(PEER_ISS.0),
            seen.tcp.window,
            seen.tcp.options
        );
        let check = |ok: bool, what: &str| {
            if !ok {
                self.fail(&format!("{line}: {what}; seen {show}"));
            }
        };
        let off = seen.at.since(at).max(at.since(seen.at));
        check(off <= Duration::from_millis(2), "the time differs");
        check(seen.tcp.flags.to_string() == words[0], "the flags differ");
        let range = format!("{}:{}", self.rel(seen.tcp.seq), self.rel(seen.tcp.seq) + seen.len);
        check(range == words[1], "the range differs");
        let o = &seen.tcp.options;
        let mut names_snack = false;
        let mut names_sack = false;
        for pair in words[2..].chunks(2) {
            let value = pair.get(1).copied().unwrap_or("");
            match pair[0] {
                "ack" => check(seen.tcp.ack.0.wrapping_sub(PEER_ISS.0).to_string() == value, "ack"),
                "win" => check(seen.tcp.window.to_string() == value, "window"),
                "caps" => {
                    let caps = o.capabilities.map_or("none".to_owned(), |c| format!("{:#04x}", c.bits));
                    check(caps == value, "capabilities");
                }
                "mss" => check(o.mss.map_or("none".to_owned(), |m| m.to_string()) == value, "mss"),
                "wscale" => check(o.window_scale.map_or("none".to_owned(), |m| m.to_string()) == value, "wscale"),
                "ts" => {
                    check(if value == "yes" { o.timestamps.is_some() } else { o.timestamps.is_none() }, "timestamps");
                }
                "rb" => check(o.record_boundary == (value == "yes"), "record boundary"),
                "snack" => {
                    names_snack = true;
                    let snack = o.snack.map_or("none".to_owned(), |s| format!("{}+{}", s.offset, s.size));
                    check(snack == value, "snack");
                }
                "sack" => {
                    names_sack = true;
                    let blocks: Vec<String> = o
                        .sack
                        .as_slice()
                        .iter()
                        .map(|(l, r)| format!("{}:{}", l.0.wrapping_sub(PEER_ISS.0), r.0.wrapping_sub(PEER_ISS.0)))
                        .collect();
                    check(blocks.join(",") == value, "sack");
                }
                other => panic!("what is {other:?} in {line:?}?"),
            }
        }
        check(names_snack || o.snack.is_none(), "an unnamed snack");
        check(names_sack || o.sack.is_empty(), "an unnamed sack");
    }

    fn inject(&mut self, words: &[&str]) {
        let mut flags = Flags::default();
        for letter in words[0].chars() {
            flags = flags.with(match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'U' => Flags::URG,
                _ => Flags::ACK,
            });
        }
        let (from, to) = words[1].split_once(':').expect("a range");
        let (from, to): (i64, i64) = (from.parse().unwrap(), to.parse().unwrap());
        let mut tcp = Tcp {
            src_port: PEER.1,
            dst_port: US.1,
            seq: PEER_ISS + from as u32,
            ack: SeqNum(0),
            flags,
            window: 65_535,
            urgent: 0,
            options: Options::default(),
        };
        let o = &mut tcp.options;
        for pair in words[2..].chunks(2) {
            let value = pair.get(1).copied().unwrap_or("");
            match pair[0] {
                "ack" => tcp.ack = self.iss.unwrap_or(SeqNum(0)) + value.parse::<i64>().unwrap() as u32,
                "win" => tcp.window = value.parse().unwrap(),
                "caps" => {
                    let bits = u8::from_str_radix(value.trim_start_matches("0x"), 16).unwrap();
                    o.capabilities = Some(Capabilities { bits, connection_id: if bits & 0x10 != 0 { 77 } else { 0 } });
                }
                "mss" => o.mss = Some(value.parse().unwrap()),
                "wscale" => o.window_scale = Some(value.parse().unwrap()),
                "sackok" => o.sack_permitted = true,
                "rb" => o.record_boundary = true,
                "ce" => o.corruption_experienced = true,
                "ts" => o.timestamps = Some(Timestamps { val: value.parse().unwrap(), ecr: self.our_last_ts }),
                // The echo of an earlier timestamp, so many milliseconds before our last.
                "ecr" => {
                    let earlier: u32 = value.trim_start_matches('-').parse().unwrap();
                    o.timestamps.as_mut().expect("ts comes first").ecr = self.our_last_ts.wrapping_sub(earlier);
                }
                "snack" | "snackvector" => {
                    let (offset, size) = value.split_once('+').unwrap();
                    // 1010 0000: the units after the hole: received, missing, received.
                    let vector: &[u8] = if pair[0] == "snack" { &[] } else { &[0xa0] };
                    o.snack = Some(Snack::long(offset.parse().unwrap(), size.parse().unwrap(), vector));
                }
                "sack" => {
                    for block in value.split(',') {
                        let (l, r) = block.split_once(':').unwrap();
                        let seq = |n: &str| self.iss.unwrap_or(SeqNum(0)) + n.parse::<u32>().unwrap();
                        o.sack.push(seq(l), seq(r));
                    }
                }
                other => panic!("what is {other:?}?"),
            }
        }
        let data = vec![0x5a; (to - from) as usize];
        self.deliver(&packet(&tcp, &data));
    }

    /// Gives the engine a packet.
    pub fn deliver(&mut self, packet: &[u8]) {
        self.endpoint.handle_input(self.now, packet, Trust::Check);
        self.drain();
    }

    fn user(&mut self, line: &str, words: &[&str]) {
        let n = || words[1].parse::<usize>().unwrap_or_else(|_| panic!("no number in {line:?}"));
        let now = self.now;
        match words[0] {
            "connect" => self.id = self.endpoint.connect(now, US, PEER, self.config.clone()).ok(),
            "listen" => drop(self.endpoint.listen(US, self.config.clone()).unwrap()),
            "send" => {
                let data = vec![0xa5; n()];
                assert_eq!(self.endpoint.send(now, self.id.unwrap(), &data), Ok(data.len()), "{line}");
            }
            "record" => {
                assert_eq!(self.endpoint.send_record(now, self.id.unwrap(), &vec![0xa5; n()]), Ok(true), "{line}");
            }
            "close" => self.endpoint.close(now, self.id.unwrap()),
            "abort" => self.endpoint.abort(now, self.id.unwrap()),
            "read" => {
                let mut buffer = vec![0; n()];
                match self.endpoint.recv(now, self.id.unwrap(), &mut buffer) {
                    Ok((n, _)) => self.received.extend_from_slice(&buffer[..n]),
                    Err(RecvError::Hole { offset, len }) => self.holes.push((offset, len)),
                    Err(_) => {}
                }
            }
            "outage" => self.endpoint.set_route_available(now, RouteId::default(), false),
            "restore" => self.endpoint.set_route_available(now, RouteId::default(), true),
            other => panic!("what is {other:?} in {line:?}?"),
        }
        self.drain();
    }

    fn state(&mut self, line: &str, words: &[&str]) {
        let snapshot = self.endpoint.snapshot(self.id.unwrap()).expect("a connection");
        for pair in words.chunks(2) {
            let seen = match pair[0] {
                "cwnd" => snapshot.cwnd.to_string(),
                "ssthresh" => snapshot.ssthresh.to_string(),
                "flight" => snapshot.flight_size.to_string(),
                "rto_ms" => snapshot.rto.as_millis().to_string(),
                "is" => format!("{:?}", self.endpoint.state(self.id.unwrap()).unwrap_or(State::Closed)),
                other => panic!("what is {other:?} in {line:?}?"),
            };
            if seen != pair[1] {
                self.fail(&format!("{line}: {} is {seen}", pair[0]));
            }
        }
    }

    /// The connection's name.
    pub fn connection(&self) -> ConnectionId {
        self.id.expect("a connection")
    }

    /// Our initial sequence number, once a SYN has left.
    pub fn iss(&self) -> Option<SeqNum> {
        self.iss
    }

    /// Everything sent up to a time, as `start:end`.
    pub fn ranges_until(&mut self, seconds: f64) -> Vec<String> {
        self.advance(Instant::from_nanos((seconds * 1e9) as u64));
        let ranges =
            self.sent.iter().map(|s| format!("{}:{}", self.rel(s.tcp.seq), self.rel(s.tcp.seq) + s.len)).collect();
        self.sent.clear();
        ranges
    }
}

/// An IPv4 packet from the peer.
pub fn packet(tcp: &Tcp, data: &[u8]) -> Vec<u8> {
    ip_packet(PEER.0, US.0, 6, tcp.emit_len(), data, |segment| tcp.emit(segment, PEER.0, US.0, 6))
}

/// An IPv4 packet of `data` behind a transport header of `header_len` octets, which `emit` writes when the data is in its place.
pub fn ip_packet(
    src: Ipv4Addr,
    dst: Ipv4Addr,
    protocol: u8,
    header_len: usize,
    data: &[u8],
    emit: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let mut packet = vec![0; 20 + header_len];
    packet.extend_from_slice(data);
    let (head, segment) = packet.split_at_mut(20);
    emit(segment);
    let payload_len = segment.len() as u16;
    Ipv4 { src, dst, protocol, tos: 0, ttl: 64, id: 1, dont_fragment: true, is_fragment: false, payload_len }
        .emit(head);
    packet
}
