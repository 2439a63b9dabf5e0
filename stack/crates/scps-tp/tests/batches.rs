//! However many packets the driver hands over before it lets any leave, what leaves is the same (scps-tp §14 items 66, 67).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, packet, plain, Script, PEER_ISS, US};
use proptest::prelude::*;
use scps_tp::{AckBehaviour, Config, DropReason, RouteConfig, SegmentBatch, Trust};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::{Options, Timestamps};
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Bitrate, Duration, SeqNum};

const SEGMENT: u32 = 1000;

fn data(s: &Script, index: u32, segments: u32, stamp: Option<u32>) -> Vec<u8> {
    let tcp = Tcp {
        src_port: common::PEER.1,
        dst_port: US.1,
        seq: PEER_ISS + 1 + index * SEGMENT,
        ack: s.our_iss() + 1,
        flags: Flags::ACK,
        window: 65_535,
        urgent: 0,
        options: Options { timestamps: stamp.map(|val| Timestamps { val, ecr: 0 }), ..Options::default() },
    };
    packet(&tcp, &octets(index, segments * SEGMENT))
}

/// The octets of the stream from a segment on.
fn octets(index: u32, len: u32) -> Vec<u8> {
    (index * SEGMENT..index * SEGMENT + len).map(|i| (i % 251) as u8).collect()
}

/// Every packet that leaves when `input` is handed over in batches of `batch`.
fn answers(config: &Config, route: RouteConfig, syn: &str, order: &[u32], batch: usize) -> Vec<Vec<u8>> {
    let mut s = Script::accepted_by(config.clone(), route, syn);
    let stamp = config.timestamps.then_some(2000);
    let packets: Vec<_> = order.iter().map(|i| data(&s, *i, 1, stamp)).collect();
    let mut out = Vec::new();
    for batch in packets.chunks(batch) {
        for packet in batch {
            s.endpoint.handle_input(s.now, packet, Trust::Check);
        }
        let mut packet = Vec::new();
        while s.endpoint.poll_transmit(s.now, &mut packet).is_some() {
            out.push(std::mem::take(&mut packet));
        }
    }
    out
}

fn parsed(packets: &[Vec<u8>]) -> Vec<Tcp> {
    let parse = |p: &Vec<u8>| {
        let (ip, payload) = Ipv4::parse(p).unwrap();
        Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap().0
    };
    packets.iter().map(parse).collect()
}

fn receiver(n: u16) -> Config {
    let mut config = plain();
    config.ack.behaviour = AckBehaviour::EveryNth(n);
    config
}

#[test]
fn a_batch_out_of_order_has_an_answer_for_each_of_its_segments() {
    let order: Vec<u32> = (1..64).chain([0]).collect();
    let tcps = parsed(&answers(&receiver(2), no_rate(), "mss 1000 win 65535", &order[..60], 64));
    assert_eq!(tcps.len(), 60);
    assert!(
        tcps.iter().all(|t| t.ack == PEER_ISS + 1 && t.window == tcps[0].window),
        "they are duplicates to the peer"
    );
}

#[test]
fn in_order_segments_of_a_batch_have_every_nth_answered() {
    let order: Vec<u32> = (0..50).collect();
    for n in [1, 2, 3] {
        let tcps = parsed(&answers(&receiver(n), no_rate(), "mss 1000 win 65535", &order, 64));
        let acked: Vec<SeqNum> = tcps.iter().map(|t| t.ack).collect();
        let wanted: Vec<SeqNum> = (1..=50 / u32::from(n)).map(|i| PEER_ISS + 1 + i * u32::from(n) * SEGMENT).collect();
        assert_eq!(acked, wanted, "every {n}");
    }
}

#[test]
fn a_batch_that_the_device_joined_is_answered_once_in_order_and_for_each_segment_out_of_order() {
    for (n, in_order) in [(1, 10), (2, 1), (20, 0)] {
        let mut s = Script::accepted(receiver(n), "mss 1000 win 65535");
        let acked = joined(&mut s, 0, 10);
        assert_eq!((acked.len(), acked.last().copied()), (in_order, (n < 20).then_some(PEER_ISS + 10_001)));
        assert_eq!(joined(&mut s, 11, 10), [PEER_ISS + 10_001; 10]);
        // The batch that fills the hole and ends beyond it.
        let acked = joined(&mut s, 10, 11);
        assert_eq!((acked.len(), acked.first()), (11, Some(&(PEER_ISS + 21_001))));
    }
}

/// The acknowledgements of a batch of `segments` from `index` on that the kernel joined.
fn joined(s: &mut Script, index: u32, segments: u32) -> Vec<SeqNum> {
    let batch = data(s, index, segments, None);
    s.endpoint.handle_batch(s.now, &batch, SegmentBatch::Joined(SEGMENT as usize), Trust::Check, |_, _| ());
    s.advance(s.now);
    s.sent.drain(..).map(|x| x.tcp.ack).collect()
}

#[test]
fn a_packet_that_nobody_joined_is_one_segment_however_long_it_is() {
    for mss in [1, 100, 999, 1000] {
        let mut s = Script::accepted(receiver(2).mss(Some(mss)), "mss 1000 win 65535");
        let long = data(&s, 0, 30, None);
        s.deliver(&long);
        assert_eq!(s.sent.len(), 0, "the first of two segments");
        let long = data(&s, 31, 20, None);
        s.deliver(&long);
        assert_eq!(s.sent.drain(..).map(|x| x.tcp.ack).collect::<Vec<_>>(), [PEER_ISS + 30_001]);
    }
}

#[test]
fn a_batch_that_stays_cut_shares_answers_in_order_only() {
    for (n, wanted) in [(1, 20), (2, 1)] {
        let mut s = Script::accepted(receiver(n), "mss 1000 win 65535");
        let batch: Vec<u8> = (0..20).flat_map(|i| data(&s, i, 1, None)).collect();
        s.endpoint.handle_batch(s.now, &batch, SegmentBatch::Packets(1040), Trust::Check, |_, _| ());
        s.advance(s.now);
        let acked: Vec<_> = s.sent.drain(..).map(|x| x.tcp.ack).collect();
        assert_eq!((acked.len(), acked.last()), (wanted, Some(&(PEER_ISS + 20_001))));
        let batch: Vec<u8> = (20..24).chain(25..35).flat_map(|i| data(&s, i, 1, None)).collect();
        s.endpoint.handle_batch(s.now, &batch, SegmentBatch::Packets(1040), Trust::Check, |_, _| ());
        s.advance(s.now);
        let acked: Vec<_> = s.sent.drain(..).map(|x| x.tcp.ack).collect();
        let behind = acked.iter().filter(|a| **a == PEER_ISS + 24_001).count();
        assert_eq!(behind, 11, "what was in order, and one duplicate for each segment behind the hole: {acked:?}");
    }
}

#[test]
fn batches_that_come_before_anything_leaves_share_an_answer() {
    for (n, wanted) in [(1, 30), (2, 1)] {
        let mut s = Script::accepted(receiver(n), "mss 1000 win 65535");
        for index in [0, 10, 20] {
            let (joined, apart) = (data(&s, index, 5, None), (5..10).flat_map(|i| data(&s, index + i, 1, None)));
            let apart: Vec<u8> = apart.collect();
            s.endpoint.handle_batch(s.now, &joined, SegmentBatch::Joined(SEGMENT as usize), Trust::Check, |_, _| ());
            s.endpoint.handle_batch(s.now, &apart, SegmentBatch::Packets(1040), Trust::Check, |_, _| ());
        }
        s.advance(s.now);
        let acked: Vec<_> = s.sent.drain(..).map(|x| x.tcp.ack).collect();
        assert_eq!((acked.len(), acked.last()), (wanted, Some(&(PEER_ISS + 30_001))));
    }
}

#[test]
fn a_flood_that_nobody_lets_leave_is_bounded() {
    let mut s = Script::accepted(receiver(1), "mss 1000 win 65535");
    let packets: Vec<_> = (1..40).map(|i| data(&s, i, 1, None)).collect();
    for packet in packets.iter().cycle().take(100_000) {
        s.endpoint.handle_input(s.now, packet, Trust::Check);
    }
    let mut out = Vec::new();
    while s.endpoint.poll_transmit(s.now, &mut out).is_some() {}
    assert!(out.len() < 132 * 1024, "{} octets", out.len());
}

#[test]
fn without_rate_credit_answers_wait_and_share() {
    // 9600 bit/s and a bucket of five packets: later answers wait, and what leaves then tells the newest.
    let rate = RouteConfig::default().rate(Some(Bitrate::from_bps(9600)));
    let mut s = Script::accepted_by(receiver(1), rate, "mss 1000 caps 0x40 win 65535");
    let packets: Vec<_> = (0..50).cycle().take(400).map(|i| data(&s, i, 1, None)).collect();
    for packet in &packets {
        s.endpoint.handle_input(s.now, packet, Trust::Check);
    }
    s.advance(s.now + Duration::from_secs(2));
    let sent = s.sent.len();
    assert!((100..250).contains(&sent), "{sent}");
    assert_eq!(s.sent.back().unwrap().tcp.ack, PEER_ISS + 50_001);
}

fn config() -> impl Strategy<Value = (Config, String)> {
    (1..4u16, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(n, snack, long, sack, stamps)| {
        let config = receiver(n).snack(snack).snack_long(snack && long).sack(sack).timestamps(stamps);
        let bits = if snack { 0x40 } else { 0 } | if snack && long { 0x20 } else { 0 };
        let mut syn = format!("mss 1000 win 65535 caps {bits:#04x}");
        if sack {
            syn.push_str(" sackok yes");
        }
        if stamps {
            syn.push_str(" ts 1000");
        }
        (config, syn)
    })
}

/// Segments 0..50 with losses, repetitions and displacements.
fn order() -> impl Strategy<Value = Vec<u32>> {
    let fate = (0..10u32, 0..12u32);
    prop::collection::vec(fate, 50).prop_map(|fates| {
        let mut arrivals = Vec::new();
        for (i, (fate, displacement)) in fates.into_iter().enumerate() {
            let i = i as u32;
            match fate {
                0 => {}
                1 => arrivals.extend([(i, i), (i + displacement, i)]),
                2 => arrivals.push((i + displacement, i)),
                3 => arrivals.push((i + 20 + displacement, i)),
                _ => arrivals.push((i, i)),
            }
        }
        arrivals.sort_by_key(|a| a.0);
        arrivals.into_iter().map(|a| a.1).collect()
    })
}

/// How packets are handed over.
#[derive(Clone, Copy)]
enum Way {
    OneByOne,
    Batches,
    /// To a reader that takes so many octets at a time.
    Passed(usize),
}

/// What a connection brings of `packets` of one length: the stream, the last acknowledgement, and what was counted.
fn brought(s: &mut Script, packets: &[Vec<u8>], batch: usize, way: Way) -> (Vec<u8>, SeqNum, Vec<u64>) {
    let (mut stream, mut buffer) = (Vec::new(), vec![0; 60_000]);
    let id = s.id.unwrap();
    for batch in packets.chunks(batch) {
        let (size, octets) = (batch[0].len(), batch.concat());
        let kind = SegmentBatch::Packets(size);
        match way {
            Way::OneByOne => {
                for packet in batch {
                    s.endpoint.handle_input(s.now, packet, Trust::Check);
                }
            }
            Way::Batches => s.endpoint.handle_batch(s.now, &octets, kind, Trust::Check, |_, _| ()),
            Way::Passed(most) => {
                let mut reader = |of, octets: &[u8]| {
                    assert_eq!(of, id);
                    stream.extend_from_slice(&octets[..octets.len().min(most)]);
                    octets.len().min(most)
                };
                s.endpoint.handle_batch_for(s.now, &octets, kind, Trust::Check, |_, _| (), &mut reader);
            }
        }
        while let Ok((n @ 1.., _)) = s.endpoint.recv(s.now, id, &mut buffer) {
            stream.extend_from_slice(&buffer[..n]);
        }
        s.advance(s.now);
    }
    s.advance(s.now + Duration::from_secs(1));
    let (stats, progress) = (s.endpoint.stats(id).unwrap(), s.endpoint.progress(id).unwrap());
    let counted = vec![
        stats.segments_received,
        stats.octets_received,
        stats.out_of_order_segments,
        stats.duplicate_segments,
        s.endpoint.drops(DropReason::BadSegment),
        s.endpoint.drops(DropReason::BadHeader),
        progress.received,
        progress.readable,
    ];
    (stream, s.sent.back().map_or(PEER_ISS, |x| x.tcp.ack), counted)
}

/// Packets in an order, some of which differ from the one before by more than their number.
fn odd_packets(s: &Script, order: &[u32], odds: &[u8], stamp: Option<u32>) -> Vec<Vec<u8>> {
    let one = |(i, odd): (&u32, &u8)| {
        let whole = data(s, *i, 1, stamp);
        let (ip, payload) = Ipv4::parse(&whole).unwrap();
        let (mut tcp, data) = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap();
        match odd {
            0 => tcp.flags = tcp.flags.with(Flags::PSH),
            1 => tcp.window = 65_000,
            2 => tcp.ack = s.our_iss() + 9,
            _ => {}
        }
        let mut octets = packet(&tcp, data);
        let damaged = match odd {
            3 => octets.len() - 1,
            4 => 8,
            5 => 9,
            _ => return octets,
        };
        octets[damaged] ^= 0x10;
        octets
    };
    order.iter().zip(odds).map(one).collect()
}

proptest! {
    #[test]
    fn a_batch_brings_what_its_packets_bring(
        (config, syn) in config(),
        order in order(),
        odds in prop::collection::vec(0..30u8, 100),
        batch in 1..65usize,
        most in 0..1500usize,
    ) {
        let stamp = config.timestamps.then_some(2000);
        let brought = |way| {
            let mut s = Script::accepted(config.clone(), &syn);
            let packets = odd_packets(&s, &order, &odds, stamp);
            brought(&mut s, &packets, batch, way)
        };
        let wanted = brought(Way::OneByOne);
        prop_assert_eq!(&wanted.0, &octets(0, wanted.0.len() as u32));
        prop_assert!(brought(Way::Batches) == wanted, "a batch differs");
        prop_assert!(brought(Way::Passed(most)) == wanted, "a reader that takes {} differs", most);
    }

    #[test]
    fn what_leaves_does_not_depend_on_the_batch((config, syn) in config(), order in order()) {
        let apart = answers(&config, no_rate(), &syn, &order, 1);
        for batch in [2, 3, 5, 8, 13, 21, 34, 64] {
            let together = answers(&config, no_rate(), &syn, &order, batch);
            prop_assert_eq!(parsed(&together), parsed(&apart), "batches of {}", batch);
            prop_assert!(together == apart, "batches of {}", batch);
        }
    }

    #[test]
    fn every_segment_out_of_order_has_its_answer(order in order(), batch in 1..65usize, snack in any::<bool>()) {
        let syn = format!("mss 1000 win 65535 caps {:#04x}", if snack { 0x40 } else { 0 });
        let sent = parsed(&answers(&receiver(2), no_rate(), &syn, &order, batch)).len() as u32;
        // What a receiver without any queue would say: one for each segment that is not next or meets a hole.
        let (mut next, mut held, mut owed, mut waiting) = (0, std::collections::BTreeSet::new(), 0, 0);
        for i in order {
            if i == next && held.is_empty() {
                next += 1;
                waiting += 1;
                if waiting == 2 {
                    (owed, waiting) = (owed + 1, 0);
                }
                continue;
            }
            (owed, waiting) = (owed + 1, 0);
            if i >= next {
                held.insert(i);
            }
            while held.remove(&next) {
                next += 1;
            }
        }
        prop_assert_eq!(sent, owed);
    }
}
