//! What protecting a transport PDU costs, by suite and length, and how many octets it adds. Both directions; for the cost per
//! octet compare the long ones with each other.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench stops where its expectation fails")]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use scps_sp::{AeadKey, Association, Ends, KeyName, Outgoing, Services, Sp, SpConfig, Suite, Upper};
use scps_wire::Instant;
use std::hint::black_box;

/// Segments of FY97 (apparatus §7), and headers of 32 octets before each.
const LENGTHS: [usize; 3] = [50 + 32, 512 + 32, 1400 + 32];

fn ends() -> Ends {
    Ends::v4([10, 0, 0, 1], [10, 0, 0, 2])
}

fn side(address: [u8; 4], suite: Suite, services: Services) -> Sp {
    let key = AeadKey::derive(suite, &[7; 32], &ends(), 1, services).unwrap();
    let association = Association { services, ..Association::new(ends(), 1, key) };
    let config = SpConfig { local: vec![address.into()], associations: vec![association], ..SpConfig::default() };
    Sp::new(config, Instant::ZERO).unwrap()
}

fn sender(suite: Suite, services: Services) -> Sp {
    let mut sp = side([10, 0, 0, 1], suite, services);
    sp.grant(KeyName { ends: ends(), key_id: 1 }, 1..1 << 48).unwrap();
    sp
}

fn cost(c: &mut Criterion) {
    let secret = Services::CONFIDENTIALITY.with(Services::INTEGRITY);
    for (suite, services, name) in [
        (Suite::Aes256Gcm, secret, "aes-256-gcm"),
        (Suite::Aes128Gcm, secret, "aes-128-gcm"),
        (Suite::ChaCha20Poly1305, secret, "chacha20-poly1305"),
        (Suite::Aes256Gcm, Services::INTEGRITY, "aes-256-gcm, integrity only"),
    ] {
        let mut group = c.benchmark_group(name);
        for len in LENGTHS {
            group.throughput(Throughput::Bytes(len as u64));
            let what = Outgoing { ends: ends(), upper: Upper::Tp, demanded: Services::NONE, pdu_len: len };
            let mut sp = sender(suite, services);
            let room = sp.room(Instant::ZERO, what).unwrap();
            println!("{name}: {} octets around each segment", room.len());
            let mut packet = vec![0; room.len() + len];
            group.bench_function(format!("seal {len}"), |b| {
                b.iter(|| sp.seal(Instant::ZERO, what, black_box(&mut packet)).unwrap());
            });
            // A packet is opened once; what a replay costs is another matter. So every round has its own.
            let mut sent = sender(suite, services);
            let mut receiver = side([10, 0, 0, 2], suite, services);
            let mut out = Vec::new();
            group.bench_function(format!("seal and open {len}"), |b| {
                b.iter(|| {
                    sent.seal(Instant::ZERO, what, &mut packet).unwrap();
                    receiver.open(Instant::ZERO, ends(), black_box(&packet), &mut out).unwrap()
                });
            });
            group.bench_function(format!("drop a replay {len}"), |b| {
                b.iter(|| receiver.open(Instant::ZERO, ends(), black_box(&packet), &mut out).unwrap_err());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, cost);
criterion_main!(benches);
