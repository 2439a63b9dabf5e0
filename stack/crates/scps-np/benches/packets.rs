//! What a datagram costs: reading and writing headers, a hop count, a pass through the queues.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench stops where its expectation fails")]

use criterion::{criterion_group, criterion_main, Criterion};
use scps_np::{
    set_hop_count, Addresses, BasicQos, Datagram, Dialect, Header, PrecedenceQueues, QueueConfig, DATAGRAM_MAX,
};
use scps_types::Precedence;
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
}

criterion_group!(benches, packets);
criterion_main!(benches);
