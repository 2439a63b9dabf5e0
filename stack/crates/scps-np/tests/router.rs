//! A node that forwards: A, B and C each on a link of their own, and what it says when it cannot (scps-np §4.2, §6.3, §9).
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;

use common::{basic, emit, hex, CCSDS, RI};
use proptest::prelude::*;
use scps_np::scmp::{Echo, Message, Restored, Unreachable};
use scps_np::{
    tpid, Address, Addresses, BasicQos, Counter, Datagram, Dialect, Header, LinkEvent, NpProfile, QueueConfig, Router,
    RouterConfig, RouterLink, Routing, ScmpCounter, SpRule, TableKind, Tables,
};
use scps_wire::{Instant, Precedence, Seed};
use std::net::Ipv4Addr;

const A: u16 = 0x7290;
const B: u16 = 0x7292;
const C: u16 = 0x7296;
const US: u16 = 0x7294;
const GROUP: u16 = 0x8001;
const PATH: u16 = 0x55b2;
const T: fn(u64) -> Instant = Instant::from_millis;

fn neighbour(link: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, 0, link)
}

fn tables() -> Tables {
    let mut tables = Tables::default();
    tables.read(TableKind::IpNp, "0a010101 7290\n0a010102 7292\n0a010103 7296\n0a010109 7294").unwrap();
    tables.read(TableKind::NextHop, "0a010109\n7290 0a020000\n7292 0a020001\n7296 0a020002").unwrap();
    tables.read(TableKind::MultiNextHop, "8001\n8001 0a020000 0a020001 0a020002").unwrap();
    tables.read(TableKind::Path, "55b2 7290 7292 7296").unwrap();
    tables
}

fn links() -> Vec<RouterLink> {
    let link = |i| RouterLink {
        dialect: RI,
        mtu: 1500,
        neighbours: vec![neighbour(i)],
        queue: QueueConfig::default(),
        sp: SpRule::default(),
    };
    vec![link(0), link(1), link(2)]
}

fn router() -> Router {
    router_with(RouterConfig::default(), links())
}

fn router_with(config: RouterConfig, links: Vec<RouterLink>) -> Router {
    Router::new(config, tables(), links, Seed::from_u64(1), T(0))
}

/// From A to somebody, ten hops.
fn to(dst: u16) -> Header {
    Header { hop_count: Some(10), checksum: true, ..basic(dst, A) }
}

fn give(router: &mut Router, now: Instant, link: usize, header: &Header) {
    router.handle_frame(now, link, &emit(header, RI, b"data that a quote has room for"));
}

fn sent(router: &mut Router, link: usize) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| router.poll_frame(link)).map(|frame| frame.octets).collect()
}

/// The control messages on the way to A, as (type, code), with their precedence.
fn told(router: &mut Router) -> Vec<((u8, u8), u8)> {
    let read = |octets: Vec<u8>| {
        let datagram = Datagram::parse(&octets, RI).unwrap();
        let header = datagram.header;
        assert_eq!((header.tpid, header.addresses), (tpid::SCMP, Addresses::Basic { dst: A, src: US }));
        let message = Message::parse(datagram.payload(), RI).unwrap();
        (message.kind(), header.qos.unwrap().precedence.level())
    };
    sent(router, 0).into_iter().map(read).collect()
}

#[test]
fn a_router_takes_one_off_the_hop_count_and_renews_the_checksum() {
    let mut r = router();
    give(&mut r, T(0), 0, &to(B));
    let out = r.poll_frame(1).unwrap();
    assert_eq!((out.next_hop, out.precedence), (neighbour(1), Precedence::LOWEST));
    let datagram = Datagram::parse(&out.octets, RI).unwrap();
    assert_eq!(datagram.header, Header { hop_count: Some(9), ..to(B) });
    assert_eq!(r.counters().get(Counter::ForwDatagrams), 1);
    assert!(r.poll_delivered().is_none());
}

#[test]
fn an_exhausted_hop_count_is_not_forwarded_and_told() {
    for hop_count in [0, 1] {
        let mut r = router();
        give(&mut r, T(0), 0, &Header { hop_count: Some(hop_count), ..to(B) });
        assert!(sent(&mut r, 1).is_empty());
        assert_eq!(r.counters().get(Counter::HopDiscard), 1);
        assert_eq!(told(&mut r), [((11, 0), 0)]);
        // For us it is delivered all the same, and nothing is taken off.
        give(&mut r, T(0), 0, &Header { hop_count: Some(hop_count), ..to(US) });
        let delivered = r.poll_delivered().unwrap();
        assert_eq!(Datagram::parse(&delivered, RI).unwrap().header.hop_count, Some(hop_count));
    }
}

#[test]
fn what_has_no_hop_count_is_forwarded_only_where_the_operator_says_so() {
    let uncounted = Header { hop_count: None, ..to(B) };
    let mut r = router();
    give(&mut r, T(0), 0, &uncounted);
    assert!(sent(&mut r, 1).is_empty());
    assert_eq!((r.counters().get(Counter::HopDiscard), r.counters().get(Counter::ForwDatagrams)), (1, 0));
    assert_eq!(told(&mut r), [((11, 0), 0)]);
    // For us it is delivered.
    give(&mut r, T(0), 0, &Header { hop_count: None, ..to(US) });
    assert!(r.poll_delivered().is_some());
    let mut r = router_with(RouterConfig { forwards_uncounted: true, ..RouterConfig::default() }, links());
    give(&mut r, T(0), 0, &uncounted);
    assert_eq!(sent(&mut r, 1).len(), 1);
}

#[test]
fn frames_leave_by_precedence_and_those_without_one_at_the_default() {
    let default_precedence = Precedence::new(5).unwrap();
    let mut r = router_with(RouterConfig { default_precedence, ..RouterConfig::default() }, links());
    for level in [Some(0), Some(15), None, Some(7), Some(3)] {
        let qos = level.and_then(Precedence::new).map(BasicQos::of);
        give(&mut r, T(0), 0, &Header { qos, ..to(B) });
    }
    let order: Vec<u8> = std::iter::from_fn(|| r.poll_frame(1)).map(|frame| frame.precedence.level()).collect();
    assert_eq!(order, [15, 7, 5, 3, 0]);
}

#[test]
fn a_frame_that_the_link_refused_is_the_next_one() {
    let mut r = router();
    give(&mut r, T(0), 0, &to(B));
    give(&mut r, T(0), 0, &Header { timestamp: Some(scps_np::Timestamp::Seconds(1)), ..to(B) });
    let first = r.poll_frame(1).unwrap();
    r.put_back(1, first.clone());
    assert_eq!(r.poll_frame(1), Some(first));
}

#[test]
fn multicast_is_copied_to_every_next_hop_but_the_one_it_came_from() {
    let mut r = router();
    give(&mut r, T(0), 0, &to(GROUP));
    assert_eq!([0, 1, 2].map(|link| sent(&mut r, link).len()), [0, 1, 1]);
    assert!(r.poll_delivered().is_some(), "this node is a member");
}

#[test]
fn a_group_and_a_broadcast_are_known_in_the_longer_form() {
    // Who has no basic address writes all addresses so.
    let to = |dst, from_a| {
        let src = if from_a { u32::from(A) } else { 0x0a01_0177 };
        Header { addresses: Addresses::Extended { dst, src }, ..to(B) }
    };
    let mut r = router();
    give(&mut r, T(0), 0, &to(GROUP.into(), false));
    assert_eq!([0, 1, 2].map(|link| sent(&mut r, link).len()), [0, 1, 1]);
    assert!(r.poll_delivered().is_some(), "this node is a member");
    give(&mut r, T(0), 0, &to(0xffff, false));
    assert!(r.poll_delivered().is_some());
    // A group of others, whose hops are used up: no error is sent about it.
    for dst in [0x8003, GROUP.into()] {
        give(&mut r, T(0), 0, &Header { hop_count: Some(1), ..to(dst, true) });
    }
    assert!([0, 1, 2].into_iter().all(|link| sent(&mut r, link).is_empty()));
    // Nor is a group a source.
    give(
        &mut r,
        T(0),
        0,
        &Header { addresses: Addresses::Extended { dst: B.into(), src: GROUP.into() }, ..basic(B, A) },
    );
    assert_eq!(r.counters().get(Counter::InBadAddress), 1);
}

#[test]
fn a_path_goes_to_each_of_its_ends() {
    let mut r = router();
    let header = Header { addresses: Addresses::Path(Address::Basic(PATH)), ..to(B) };
    give(&mut r, T(0), 0, &header);
    assert_eq!([0, 1, 2].map(|link| sent(&mut r, link).len()), [0, 1, 1]);
    assert!(r.poll_delivered().is_none());
}

#[test]
fn intermediate_delivery_delivers_and_forwards() {
    let mut r = router();
    give(&mut r, T(0), 0, &Header { intermediate_delivery: true, ..to(B) });
    assert_eq!(sent(&mut r, 1).len(), 1);
    assert!(r.poll_delivered().is_some());
}

#[test]
fn a_broadcast_is_delivered_and_goes_nowhere() {
    let mut r = router();
    give(&mut r, T(0), 0, &to(0xffff));
    assert!([0, 1, 2].into_iter().all(|link| sent(&mut r, link).is_empty()));
    assert!(r.poll_delivered().is_some());
}

#[test]
fn a_flooded_datagram_goes_once_to_every_other_link_and_is_delivered_once() {
    let mut r = router();
    let flood = |hop_count, dst| Header {
        qos: Some(BasicQos { routing: Routing::Flood, ..BasicQos::default() }),
        hop_count,
        ..to(dst)
    };
    give(&mut r, T(0), 0, &flood(Some(10), US));
    // The same comes back by another link, later and with fewer hops left.
    give(&mut r, T(5), 1, &flood(Some(8), US));
    assert_eq!([0, 1, 2].map(|link| sent(&mut r, link).len()), [0, 1, 1]);
    assert!(r.poll_delivered().is_some() && r.poll_delivered().is_none());
    assert_eq!(r.counters().get(Counter::InDiscards), 1);
    // After half a minute it may be another one.
    give(&mut r, T(30_001), 0, &flood(Some(10), US));
    assert_eq!(sent(&mut r, 1).len(), 1);
    // Without a hop count nothing would end it.
    give(&mut r, T(0), 0, &flood(None, B));
    assert!(sent(&mut r, 1).is_empty());
    assert_eq!(r.counters().get(Counter::HopDiscard), 1);
}

#[test]
fn an_upper_protocol_nobody_assigned_is_not_delivered_and_told() {
    let mut r = router();
    give(&mut r, T(0), 0, &Header { tpid: 7, ..to(US) });
    assert!(r.poll_delivered().is_none());
    assert_eq!(r.counters().get(Counter::InUnknownProtos), 1);
    assert_eq!(told(&mut r), [((3, 2), 0)]);
}

#[test]
fn an_echo_comes_back_at_its_precedence() {
    let mut r = router();
    let mut body = Vec::new();
    Message::EchoRequest(Echo { id: 1, seq: 2, data: b"ping" }).emit(true, &mut body);
    let qos = Precedence::new(9).map(BasicQos::of);
    r.handle_frame(T(0), 0, &emit(&Header { tpid: tpid::SCMP, qos, ..to(US) }, RI, &body));
    let out = sent(&mut r, 0).remove(0);
    let datagram = Datagram::parse(&out, RI).unwrap();
    let reply = Message::EchoReply(Echo { id: 1, seq: 2, data: b"ping" });
    assert_eq!((Message::parse(datagram.payload(), RI), datagram.header.qos), (Ok(reply), qos));
    let counters = r.counters();
    assert_eq!((counters.scmp_in(ScmpCounter::Echos), counters.scmp_out(ScmpCounter::EchoReps)), (1, 1));
}

#[test]
fn a_datagram_longer_than_the_next_link_carries_is_told_its_mtu() {
    let mut narrow = links();
    narrow[1].mtu = 40;
    let mut r = router_with(RouterConfig::default(), narrow);
    give(&mut r, T(0), 0, &to(B));
    assert!(sent(&mut r, 1).is_empty());
    let out = sent(&mut r, 0).remove(0);
    let datagram = Datagram::parse(&out, RI).unwrap();
    let message = Message::parse(datagram.payload(), RI).unwrap();
    assert!(matches!(message, Message::TooBig { mtu: 40, .. }), "{message:?}");
    assert_eq!(r.counters().get(Counter::OutDiscards), 1);
}

#[test]
fn a_known_host_without_a_next_hop_is_told_and_an_unknown_address_is_discarded() {
    let mut r = router();
    let far = Addresses::Extended { dst: 0x0a01_0177, src: 0x0a01_0101 };
    r.handle_frame(T(0), 0, &emit(&Header { addresses: far, ..to(B) }, RI, b"data"));
    assert_eq!(r.counters().get(Counter::OutNoRoutes), 1);
    assert_eq!(r.counters().scmp_out(ScmpCounter::DestUnreachs), 1);
    give(&mut r, T(0), 0, &to(0x7a7a));
    assert_eq!(r.counters().get(Counter::InBadAddress), 1);
}

#[test]
fn an_end_system_does_not_forward() {
    let mut r = router_with(RouterConfig { forwards: false, ..RouterConfig::default() }, links());
    give(&mut r, T(0), 0, &to(B));
    assert!(sent(&mut r, 1).is_empty());
    assert_eq!(r.counters().get(Counter::InAddrErrors), 1);
}

#[test]
fn sources_are_quenched_above_eighty_waiting_once_a_second_each() {
    let mut r = router();
    for _ in 0..80 {
        give(&mut r, T(0), 0, &to(B));
    }
    assert!(told(&mut r).is_empty());
    give(&mut r, T(0), 0, &to(B));
    assert_eq!(told(&mut r), [((4, 0), 0)]);
    // Overload for ten seconds: a packet every 10 ms, and nothing leaves.
    let mut at = Vec::new();
    for ms in (10..=10_000).step_by(10) {
        give(&mut r, T(ms), 0, &to(B));
        at.extend(told(&mut r).iter().map(|_| ms));
        assert!(r.queue(1).len() < 100);
    }
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{at:?}");
    assert!(at.len() >= 5, "at least one in two seconds: {at:?}");
    assert_eq!(r.counters().scmp_out(ScmpCounter::SrcQuenchs), 1 + at.len() as u32);
}

#[test]
fn damage_is_told_to_all_recent_sources_of_the_link_once_a_second() {
    let mut r = router();
    give(&mut r, T(0), 0, &to(B));
    // C is heard on the same link, B on another.
    give(&mut r, T(0), 0, &Header { addresses: Addresses::Basic { dst: B, src: C }, ..to(B) });
    give(&mut r, T(0), 1, &Header { addresses: Addresses::Basic { dst: C, src: B }, ..to(C) });
    for link in 0..3 {
        sent(&mut r, link);
    }
    let mut damaged = emit(&to(B), RI, b"data");
    damaged[8] ^= 1;
    r.handle_frame(T(100), 0, &damaged);
    assert_eq!(r.counters().get(Counter::InBadChecksum), 1);
    assert_eq!([0, 1, 2].map(|link| sent(&mut r, link).len()), [1, 0, 1]);
    r.handle_frame(T(1099), 0, &damaged);
    r.handle_link_event(T(1099), 0, LinkEvent::FrameCorrupt);
    assert_eq!(sent(&mut r, 0).len(), 0);
    r.handle_link_event(T(1100), 0, LinkEvent::FrameCorrupt);
    assert_eq!(told(&mut r), [((19, 0), 0)]);
    // Nobody was heard for a minute.
    r.handle_link_event(T(62_000), 0, LinkEvent::FrameCorrupt);
    assert_eq!(sent(&mut r, 0).len(), 0);
    assert_eq!(r.counters().scmp_out(ScmpCounter::CorrExps), 4);
}

#[test]
fn congestion_alone_and_corruption_alone_are_told_apart() {
    // T1 and T1b of scps-np §7: an idle queue and damage, then an overload without damage.
    let mut r = router();
    give(&mut r, T(0), 0, &to(B));
    for ms in (0..5000).step_by(50) {
        r.handle_link_event(T(ms), 0, LinkEvent::FrameCorrupt);
    }
    assert_eq!(told(&mut r), [((19, 0), 0); 5]);
    let mut r = router();
    for ms in 0..3000 {
        give(&mut r, T(ms), 0, &to(B));
    }
    assert_eq!(told(&mut r), [((4, 0), 0); 3]);
}

#[test]
fn an_outage_is_told_once_per_source_and_its_end_as_well() {
    let mut r = router();
    r.handle_link_event(T(0), 1, LinkEvent::Down);
    for ms in 0..10 {
        give(&mut r, T(ms), 0, &Header { qos: Precedence::new(6).map(BasicQos::of), ..to(B) });
    }
    assert_eq!(told(&mut r), [((3, 16), 6)]);
    assert_eq!(r.counters().get(Counter::OutDiscards), 10);
    r.handle_link_event(T(500), 1, LinkEvent::Up);
    let out = sent(&mut r, 0).remove(0);
    let datagram = Datagram::parse(&out, RI).unwrap();
    let restored = Restored::Destination(Address::Basic(B));
    assert_eq!(Message::parse(datagram.payload(), RI), Ok(Message::LinkAvailable(restored)));
    give(&mut r, T(501), 0, &to(B));
    assert_eq!(sent(&mut r, 1).len(), 1);
}

#[test]
fn what_waits_when_a_link_goes_down_waits_until_it_is_up() {
    let mut r = router();
    give(&mut r, T(0), 0, &to(B));
    r.handle_link_event(T(0), 1, LinkEvent::Down);
    assert!(r.poll_frame(1).is_none());
    r.handle_link_event(T(1), 1, LinkEvent::Up);
    assert!(r.poll_frame(1).is_some());
}

#[test]
fn errors_are_limited_and_never_about_errors() {
    let mut r = router();
    for ms in 0..900 {
        give(&mut r, T(ms), 0, &Header { hop_count: Some(1), ..to(B) });
    }
    assert_eq!(told(&mut r), [((11, 0), 0)]);
    assert_eq!(r.counters().scmp_out(ScmpCounter::Errors), 899);
    // An error that cannot be forwarded, in a fresh second.
    let mut body = Vec::new();
    Message::Unreachable(Unreachable::Host, &[]).emit(true, &mut body);
    r.handle_frame(T(5000), 0, &emit(&Header { tpid: tpid::SCMP, hop_count: Some(1), ..to(B) }, RI, &body));
    assert!(told(&mut r).is_empty());
}

#[test]
fn a_router_joins_links_of_different_profiles() {
    let mut mixed = links();
    mixed[1].dialect = CCSDS;
    let mut r = router_with(RouterConfig::default(), mixed);
    give(&mut r, T(0), 0, &to(B));
    let out = sent(&mut r, 1).remove(0);
    assert_eq!(out[0] >> 5, NpProfile::Ccsds.vpi());
    assert_eq!(Datagram::parse(&out, CCSDS).unwrap().header, Header { hop_count: Some(9), ..to(B) });
}

#[test]
fn bad_frames_are_counted_once_each_and_nothing_comes_of_them() {
    let good = "80 0c 6a 40 72 92 72 90 de ad be ef";
    let cases = [
        (hex(&good.replace("80 0c", "a0 0c")), Counter::InBadVersion),
        (hex(&good.replace("80 0c", "80 ff")), Counter::InBadLength),
        (hex("80"), Counter::InBadLength),
        (hex("80 0d 6a c2 40 72 92 72 90 de ad be ef"), Counter::InBadAddress),
        (hex(&good.replace("6a 40", "6a 41")), Counter::InDiscards),
        (hex(&good.replace("72 90", "80 01")), Counter::InBadAddress),
        (hex(&good.replace("72 90", "ff ff")), Counter::InBadAddress),
    ];
    for (frame, counter) in cases {
        let mut r = router();
        r.handle_frame(T(0), 0, &frame);
        for other in Counter::ALL {
            let expected = u32::from(other == counter || other == Counter::InReceives);
            assert_eq!(r.counters().get(other), expected, "{frame:02x?}: {other:?}");
        }
        assert!([0, 1, 2].into_iter().all(|link| r.poll_frame(link).is_none()));
    }
}

proptest! {
    #[test]
    fn any_frames_leave_a_router_that_works(
        frames in proptest::collection::vec((0usize..3, proptest::collection::vec(any::<u8>(), 0..60), common::header()), 0..60),
        down in proptest::option::of(0usize..3),
    ) {
        let mut r = router();
        if let Some(link) = down {
            r.handle_link_event(T(0), link, LinkEvent::Down);
        }
        for (ms, (link, octets, header)) in frames.iter().enumerate() {
            r.handle_frame(T(ms as u64), *link, octets);
            r.handle_frame(T(ms as u64), *link, &emit(header, RI, octets));
        }
        for link in 0..3 {
            for octets in sent(&mut r, link) {
                prop_assert!(Datagram::parse(&octets, Dialect::default()).is_ok());
            }
        }
        while r.poll_delivered().is_some() {}
        let mut fresh = to(B);
        fresh.timestamp = Some(scps_np::Timestamp::Undefined(1));
        if down != Some(1) {
            give(&mut r, T(10_000), 0, &fresh);
            prop_assert!(!sent(&mut r, 1).is_empty());
        }
    }
}

#[test]
fn a_link_carries_only_what_sp_protects_or_nothing_of_it_and_tells_who_is_refused() {
    let with = |at: usize, rule| {
        let mut links = links();
        links[at].sp = rule;
        router_with(RouterConfig::default(), links)
    };
    let upper = |tpid| Header { tpid, ..to(B) };
    let filtered = |r: &mut Router| (r.counters().get(Counter::SpDiscards), told(r));
    // From link 0 to link 1, either of which has the rule: it is for both directions.
    for at in [0, 1] {
        for (rule, carried, refused) in [
            (SpRule::Required, vec![tpid::SCPS_SP, tpid::SCMP], vec![tpid::SCPS_TP, tpid::SCPS_COMPRESSED, tpid::UDP]),
            (SpRule::None, vec![tpid::SCPS_TP, tpid::SCPS_COMPRESSED, tpid::UDP, tpid::SCMP], vec![tpid::SCPS_SP]),
        ] {
            for tpid in carried {
                let mut r = with(at, rule);
                give(&mut r, T(0), 0, &upper(tpid));
                assert_eq!((sent(&mut r, 1).len(), filtered(&mut r)), (1, (0, vec![])), "{rule:?} {tpid}");
            }
            for tpid in refused {
                let mut r = with(at, rule);
                give(&mut r, T(0), 0, &upper(tpid));
                let unreachable = Unreachable::Filtered.code();
                assert_eq!(
                    (sent(&mut r, 1).len(), filtered(&mut r)),
                    (0, (1, vec![((3, unreachable), 0)])),
                    "{rule:?} {tpid}"
                );
            }
        }
        let mut r = with(at, SpRule::Accepted);
        for tpid in [tpid::SCPS_SP, tpid::SCPS_TP] {
            give(&mut r, T(0), 0, &upper(tpid));
        }
        assert_eq!((sent(&mut r, 1).len(), r.counters().get(Counter::SpDiscards)), (2, 0));
    }
}

#[test]
fn of_a_group_only_the_links_with_the_rule_are_left_out() {
    let mut links = links();
    links[1].sp = SpRule::Required;
    let mut r = router_with(RouterConfig::default(), links);
    give(&mut r, T(0), 0, &to(GROUP));
    assert_eq!([sent(&mut r, 1).len(), sent(&mut r, 2).len()], [0, 1]);
    assert_eq!((r.counters().get(Counter::SpDiscards), told(&mut r).len()), (1, 0), "nobody is told about a group");
}

#[test]
fn every_counter_counts_but_those_of_messages_that_no_router_here_sends() {
    let mut links = links();
    links.truncate(2);
    links[1].sp = SpRule::Required;
    let mut r = router_with(RouterConfig::default(), links);
    let onward = Header { tpid: tpid::SCPS_SP, ..to(B) };
    let good = "80 0c 6a 40 72 92 72 90 de ad be ef";
    for (from, with) in [("80 0c", "a0 0c"), ("80 0c", "80 ff"), ("6a 40", "6a 41"), ("72 90", "80 01")] {
        r.handle_frame(T(0), 0, &hex(&good.replace(from, with)));
    }
    // One that goes on; one without a way, one without a hop left, and one in the same second that nobody is told about.
    give(&mut r, T(0), 0, &onward);
    give(&mut r, T(1000), 0, &to(C));
    give(&mut r, T(2000), 0, &Header { hop_count: Some(1), ..onward });
    give(&mut r, T(2000), 0, &to(B));
    give(&mut r, T(3000), 0, &Header { tpid: 7, ..to(US) });
    let mut damaged = emit(&onward, RI, b"data");
    damaged[4] ^= 1;
    r.handle_frame(T(4000), 0, &damaged);
    (0..100).for_each(|_| give(&mut r, T(5000), 0, &onward));
    r.handle_link_event(T(6000), 1, LinkEvent::Down);
    give(&mut r, T(6000), 0, &onward);
    r.handle_link_event(T(7000), 1, LinkEvent::Up);
    let echo = Echo { id: 1, seq: 2, data: b"" };
    let quote = &emit(&basic(A, US), RI, b"sixteen octets..")[..];
    for message in [
        Message::EchoRequest(echo),
        Message::EchoReply(echo),
        Message::Unreachable(Unreachable::Host, quote),
        Message::TimeExceeded(quote),
        Message::ParameterProblem { pointer: 3, quote },
        Message::SourceQuench(quote),
        Message::LinkAvailable(Restored::Destination(Address::Basic(B))),
        Message::Corruption,
    ] {
        let mut body = Vec::new();
        message.emit(true, &mut body);
        r.handle_frame(T(8000), 0, &emit(&Header { tpid: tpid::SCMP, ..to(US) }, RI, &body));
    }
    r.handle_frame(T(8000), 0, &emit(&Header { tpid: tpid::SCMP, ..to(US) }, RI, b"nonsense"));
    let mut end = router_with(RouterConfig { forwards: false, ..RouterConfig::default() }, crate::links());
    give(&mut end, T(0), 0, &to(B));
    for counter in Counter::ALL {
        let counted = r.counters().get(counter) + end.counters().get(counter);
        assert!(counted > 0, "{}", counter.name());
    }
    let never = [ScmpCounter::Echos, ScmpCounter::ParmProbs];
    for counter in ScmpCounter::ALL {
        let (came, left) = (r.counters().scmp_in(counter), r.counters().scmp_out(counter));
        assert!(came > 0 && (left > 0) != never.contains(&counter), "{}: {came} in, {left} out", counter.name());
    }
}
