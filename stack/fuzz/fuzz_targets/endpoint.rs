//! The state machine through its packet interface: a listener and an active connection fed with segments made from the
//! input (near the sequence numbers in force, so that they are not all dropped), user calls, and time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_tp::{Config, Congestion, Endpoint, EndpointConfig, Event, RouteConfig, Trust};
use scps_wire::{Duration, Instant, Seed, SeqNum};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp, Verify};
use std::net::Ipv4Addr;

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(f, r)| (*f, r));
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.byte()).collect()
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mut now = Instant::from_secs(1);
    let choice = input.byte();
    let config = Config::default()
        .compression(choice & 1 != 0)
        .bets(choice & 2 != 0)
        .sack(choice & 4 != 0)
        .snack_long(choice & 8 != 0)
        .congestion([Congestion::None, Congestion::Vj, Config::default().congestion][usize::from(choice >> 6) % 3])
        .send_buffer(20_000)
        .receive_buffer(70_000)
        .reassembly_pieces_max(16);
    let route = RouteConfig::default().rate(None);
    let mut endpoint = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(1), now);
    endpoint.listen((US, 7), config.clone()).expect("an IPv4 address");
    let mut id = endpoint.connect(now, (US, 9), (PEER, 9), config).ok();
    // The last numbers seen from us, per local port, so that the input can aim near them.
    let mut seen: [(SeqNum, SeqNum); 2] = Default::default();
    let mut out = Vec::new();
    let mut buffer = [0u8; 4096];
    let mut steps = 0;
    while !input.0.is_empty() && steps < 400 {
        steps += 1;
        match input.byte() % 8 {
            0..=3 => {
                let which = usize::from(input.byte() & 1);
                let near = |base: SeqNum, delta: u16| base + (i32::from(delta as i16)) as u32;
                let flags = Flags(input.byte() & 0x3f);
                let n = usize::from(input.byte() % 41);
                let options = Options::parse(&input.bytes(n));
                if options.emit_len() > 40 {
                    continue;
                }
                let tcp = Tcp {
                    src_port: 9,
                    dst_port: [7, 9][which],
                    seq: near(seen[which].1, input.word()),
                    ack: near(seen[which].0, input.word()),
                    flags,
                    window: input.word(),
                    urgent: 0,
                    options,
                };
                let body = usize::from(input.word() % 1500);
                let mut packet = vec![0u8; 20 + tcp.emit_len() + body];
                let (head, segment) = packet.split_at_mut(20);
                tcp.emit(segment, PEER, US, 6);
                Ipv4 {
                    src: PEER,
                    dst: US,
                    protocol: 6,
                    tos: 0,
                    ttl: 64,
                    id: 0,
                    dont_fragment: true,
                    is_fragment: false,
                    payload_len: segment.len() as u16,
                }
                .emit(head);
                endpoint.handle_input(now, &packet, Trust::Check);
            }
            4 => {
                let n = usize::from(input.word() % 200);
                let mut packet = input.bytes(n);
                if packet.len() >= 20 {
                    packet[0] = 0x45;
                    packet[10..12].fill(0);
                    let total = (packet.len() as u16).to_be_bytes();
                    packet[2..4].copy_from_slice(&total);
                    packet[6..8].fill(0);
                    packet[9] = [6, 105, 106, 1][usize::from(packet[9]) % 4];
                    packet[12..16].copy_from_slice(&PEER.octets());
                    packet[16..20].copy_from_slice(&US.octets());
                }
                endpoint.handle_input(now, &packet, Trust::Verified);
            }
            5 => {
                now += Duration::from_millis(u64::from(input.word()));
                endpoint.handle_timeout(now);
            }
            6 => {
                if let Some(id) = id {
                    match input.byte() % 6 {
                        0 => drop(endpoint.send(now, id, &buffer[..usize::from(input.word() % 4096)])),
                        1 => drop(endpoint.send_record(now, id, &buffer[..usize::from(input.byte())])),
                        2 => drop(endpoint.recv(now, id, &mut buffer)),
                        3 => endpoint.close(now, id),
                        4 => endpoint.source_quench(now, id),
                        _ => endpoint.set_route_available(now, scps_tp::RouteId::default(), input.byte() & 1 != 0),
                    }
                }
            }
            _ => {
                if input.byte() == 0 {
                    if let Some(id) = id {
                        endpoint.abort(now, id);
                    }
                }
            }
        }
        let mut sent = 0;
        while endpoint.poll_transmit(now, &mut out).is_some() {
            sent += 1;
            assert!(sent < 10_000, "one input must not make the engine send forever");
            let (ip, payload) = Ipv4::parse(&out).expect("what we send is well formed");
            if ip.protocol == 6 {
                let (tcp, body) =
                    Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).expect("what we send is well formed");
                let which = usize::from(tcp.src_port == 9);
                seen[which] = (tcp.seq + body.len() as u32, tcp.ack);
            }
            out.clear();
        }
        while let Some(event) = endpoint.poll_event() {
            if let Event::Accepted(_, accepted) = event {
                id = Some(accepted);
            }
        }
        // Whoever waits must wait for the future, or a driver would spin.
        if let Some(at) = endpoint.poll_timeout() {
            if at <= now {
                endpoint.handle_timeout(now);
                while endpoint.poll_transmit(now, &mut out).is_some() {
                    out.clear();
                }
                assert!(endpoint.poll_timeout().is_none_or(|at| at > now), "a due timer stays due");
            }
        }
        assert!(endpoint.connection_count() <= 300);
    }
});
