//! What a datagram of 1400 octets costs: reading and writing headers, a hop count, a pass through the queues, a router.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench stops where its expectation fails")]

use criterion::{criterion_group, criterion_main, Criterion};
use scps_np::{
    set_hop_count, Address, Addresses, BasicQos, Datagram, Dialect, Header, PrecedenceQueues, QueueConfig, Router,
    RouterConfig, RouterLink, SpRule, Tables, DATAGRAM_MAX,
};
use scps_wire::{Instant, Precedence, Seed};
use std::hint::black_box;

fn packets(c: &mut Criterion) {
    let dialect = Dialect::default();
    let header = Header {
        tpid: 6,
        addresses: Addresses::Basic { dst: 0x7292, src: 0x7290 },
        qos: Some(BasicQos::of(Precedence::HIGHEST)),
        hop_count: Some(10),
        checksum: true,
        ..Header::default()
    };
    let mut packet = vec![0; 1400];
    header.emit(dialect, DATAGRAM_MAX, &mut packet).unwrap();
    c.bench_function("emit", |b| b.iter(|| black_box(&header).emit(dialect, DATAGRAM_MAX, black_box(&mut packet))));
    c.bench_function("parse", |b| b.iter(|| Datagram::parse(black_box(&packet), dialect)));
    c.bench_function("set_hop_count", |b| b.iter(|| set_hop_count(black_box(&mut packet), 9, dialect)));
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    (0..40).for_each(|n| queues.push(Precedence::from_low_bits(n), 0u64, |_, _| ()));
    let mut n = 0u8;
    c.bench_function("queue_push_pop", |b| {
        b.iter(|| {
            n = n.wrapping_add(7);
            queues.push(Precedence::from_low_bits(n), 1, |_, _| ());
            black_box(queues.pop())
        });
    });
    let hosts = [([10, 0, 0, 1].into(), 0x7290), ([10, 0, 0, 2].into(), 0x7292)];
    let mut tables = Tables::of([10, 0, 0, 9].into());
    for (ip, np) in hosts {
        tables.add_host(ip, Address::Basic(np)).unwrap();
        tables.add_next_hop(Address::Basic(np), ip).unwrap();
    }
    let link = |(ip, _)| RouterLink {
        dialect,
        mtu: 1500,
        neighbours: vec![ip],
        queue: QueueConfig::default(),
        sp: SpRule::default(),
    };
    let links = hosts.map(link).into();
    let mut router = Router::new(RouterConfig::default(), tables, links, Seed::from_u64(1), Instant::ZERO);
    header.emit(dialect, DATAGRAM_MAX, &mut packet).unwrap();
    c.bench_function("router_forward", |b| {
        b.iter(|| {
            router.handle_frame(Instant::ZERO, 0, black_box(&packet));
            let frame = router.poll_frame(1).unwrap();
            router.recycle(frame.octets);
        });
    });
}

criterion_group!(benches, packets);
criterion_main!(benches);
