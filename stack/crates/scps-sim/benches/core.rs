//! The core alone: two engines that hand each other packets, 1400-octet segments. `transfer`: no loss; one iteration moves 10 MB, so
//! 10 Gbit/s is 8 ms. `loss`: the first segment of 93 MB is lost; the sender's time for the acknowledgements of all others.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench measures, and stops where its expectation fails"
)]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use scps_tp::{Config, Congestion, ConnectionId, Endpoint, EndpointConfig, Event, RouteConfig, Trust};
use scps_wire::{Duration, Instant, Seed};

const BYTES: usize = 10_000_000;

/// Two endpoints without a rate, of which the first one connects to the other.
fn connecting(config: Config) -> (Endpoint, Endpoint, ConnectionId) {
    let route = RouteConfig::default().rate(None);
    let end = |i| Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(i), Instant::ZERO);
    let (mut a, mut b) = (end(1), end(2));
    let (from, to) = (([10, 0, 0, 1], 1), ([10, 0, 0, 2], 2));
    b.listen(to, config.clone()).unwrap();
    let id = a.connect(Instant::ZERO, from, to, config).unwrap();
    (a, b, id)
}

fn transfer(compression: bool) {
    let config = Config::modern()
        .congestion(Congestion::None)
        .mss(Some(1412))
        .compression(compression)
        .send_buffer(1 << 20)
        .receive_buffer(1 << 20);
    let mut now = Instant::ZERO;
    let (mut a, mut b, id) = connecting(config);
    let chunk = vec![7u8; 64 * 1024];
    let mut sink = vec![0u8; 64 * 1024];
    let mut batch = Vec::with_capacity(300_000);
    let mut lens = Vec::new();
    let (mut given, mut taken, mut peer) = (0, 0, None);
    while taken < BYTES {
        now += Duration::from_micros(10);
        a.handle_timeout(now);
        b.handle_timeout(now);
        while given < BYTES {
            let n = a.send(now, id, &chunk[..chunk.len().min(BYTES - given)]).unwrap();
            given += n;
            if n == 0 {
                break;
            }
        }
        for is_forward in [true, false] {
            let (src, dst) = if is_forward { (&mut a, &mut b) } else { (&mut b, &mut a) };
            batch.clear();
            lens.clear();
            while let Some(packet) = src.poll_transmit(now, &mut batch) {
                lens.push(packet.len);
                if lens.len() == 128 {
                    break;
                }
            }
            let mut start = 0;
            for len in &lens {
                dst.handle_input(now, &batch[start..start + len], Trust::Check);
                start += len;
            }
        }
        while let Some(event) = b.poll_event() {
            if let Event::Accepted(_, id) = event {
                peer = Some(id);
            }
        }
        while a.poll_event().is_some() {}
        if let Some(peer) = peer {
            while let Ok((n @ 1.., _)) = b.recv(now, peer, &mut sink) {
                taken += n;
            }
        }
    }
}

fn acknowledgements_after_a_loss(octets: usize) -> std::time::Duration {
    let config =
        Config::modern().congestion(Congestion::None).mss(Some(1412)).send_buffer(octets).receive_buffer(octets);
    let mut now = Instant::ZERO;
    let (mut a, mut b, id) = connecting(config);
    let packets_of = |from: &mut Endpoint, now| {
        let mut packets = Vec::new();
        let mut out = Vec::new();
        while from.poll_transmit(now, &mut out).is_some() {
            packets.push(std::mem::take(&mut out));
        }
        packets
    };
    for _ in 0..3 {
        now += Duration::from_millis(1);
        for packet in packets_of(&mut a, now) {
            b.handle_input(now, &packet, Trust::Check);
        }
        for packet in packets_of(&mut b, now) {
            a.handle_input(now, &packet, Trust::Check);
        }
    }
    assert_eq!(a.send(now, id, &vec![7; octets]).unwrap(), octets);
    let data = packets_of(&mut a, now);
    now += Duration::from_millis(1);
    let mut answers = Vec::new();
    for packet in &data[1..] {
        b.handle_input(now, packet, Trust::Check);
        answers.extend(packets_of(&mut b, now));
    }
    assert!(answers.len() >= data.len() - 1, "each has its answer");
    let start = std::time::Instant::now();
    for packet in &answers {
        a.handle_input(now, packet, Trust::Check);
    }
    start.elapsed()
}

fn core(c: &mut Criterion) {
    let mut group = c.benchmark_group("core");
    group.throughput(Throughput::Bytes(BYTES as u64)).sample_size(20);
    group.bench_function("transfer_1400", |b| b.iter(|| transfer(false)));
    group.bench_function("transfer_1400_compressed", |b| b.iter(|| transfer(true)));
    group.finish();
    let mut group = c.benchmark_group("loss");
    group.sample_size(10).bench_function("acknowledgements_of_93_MB", |b| {
        b.iter_custom(|n| (0..n).map(|_| acknowledgements_after_a_loss(93_000_000)).sum());
    });
    group.finish();
}

criterion_group!(benches, core);
criterion_main!(benches);
