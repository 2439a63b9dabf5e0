//! Any frames, and half-good ones, at a router of three links in both profiles, with links that fail, are congested and come
//! back: queues keep their limits, what leaves parses, and one frame makes no more than a few.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_np::{
    Address, Addresses, BasicQos, Datagram, Dialect, Header, LinkEvent, NpProfile, QueueConfig, Router, RouterConfig,
    RouterLink, SpRule, Tables, DATAGRAM_MAX,
};
use scps_wire::{Instant, Precedence, Seed};
use std::net::Ipv4Addr;

const HOSTS: [u16; 3] = [0x7290, 0x7292, 0x7296];
const US: u16 = 0x7294;
const GROUP: u16 = 0x8001;
const LINKS: usize = 3;
const QUEUE: QueueConfig = QueueConfig { limit: 8, purge: 2, rule: scps_np::DiscardRule::LowestOldest };

fn hop(link: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, 0, link)
}

fn dialect_of(choice: u8) -> Dialect {
    let profile = if choice & 1 == 0 { NpProfile::Ri } else { NpProfile::Ccsds };
    Dialect { profile, require_checksum: choice & 2 != 0, ..Dialect::default() }
}

fn router(choice: u8) -> Router {
    let mut tables = Tables::of(Ipv4Addr::new(10, 1, 1, 9));
    tables.add_host(Ipv4Addr::new(10, 1, 1, 9), Address::Basic(US)).expect("a host");
    for (i, host) in (0..).zip(HOSTS) {
        tables.add_host(Ipv4Addr::new(10, 1, 1, i), Address::Basic(host)).expect("a host");
        tables.add_next_hop(Address::Basic(host), hop(i)).expect("a hop");
    }
    let group = format!("{GROUP:x}\n{GROUP:x} 0a020000 0a020001 0a020002");
    tables.read(scps_np::TableKind::MultiNextHop, &group).expect("a group");
    let link = |i| RouterLink { dialect: dialect_of(choice), mtu: 200, neighbours: vec![hop(i)], queue: QUEUE, sp: SpRule::default() };
    Router::new(RouterConfig::default(), tables, vec![link(0), link(1), link(2)], Seed::from_u64(1), Instant::ZERO)
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, mut rest)) = data.split_first() else { return };
    let dialect = dialect_of(*choice);
    let mut router = router(*choice);
    let mut now = Instant::ZERO;
    while let [what, more, tail @ ..] = rest {
        let link = usize::from(what & 3) % LINKS;
        now = Instant::from_nanos(now.as_nanos() + (u64::from(*more) << (what >> 4)));
        let before: usize = (0..LINKS).map(|i| router.queue(i).len()).sum();
        rest = tail;
        match (what >> 2) & 3 {
            0 => {
                let events = [LinkEvent::Down, LinkEvent::Up, LinkEvent::FrameCorrupt];
                router.handle_link_event(now, link, events[usize::from(*more) % events.len()]);
            }
            1 => while router.poll_frame(link).is_some_and(|frame| {
                assert!(frame.octets.len() <= 200 && Datagram::parse(&frame.octets, dialect).is_ok());
                router.recycle(frame.octets);
                true
            }) {},
            2 => {
                let (frame, tail) = tail.split_at(tail.len().min(usize::from(*more)));
                rest = tail;
                router.handle_frame(now, link, frame);
            }
            _ => {
                let (body, tail) = tail.split_at(tail.len().min(usize::from(more >> 2)));
                rest = tail;
                let dst = [HOSTS[0], HOSTS[1], HOSTS[2], US, GROUP, 0x7a7a][usize::from(*more) % 6];
                let header = Header {
                    tpid: [6, 1][usize::from(more & 1)],
                    addresses: Addresses::Basic { dst, src: HOSTS[link] },
                    qos: Precedence::new(what >> 4).map(BasicQos::of),
                    hop_count: Some(more & 7),
                    checksum: true,
                    ..Header::default()
                };
                let mut frame = vec![0; header.emit_len()];
                frame.extend_from_slice(body);
                if header.emit(dialect, DATAGRAM_MAX, &mut frame).is_ok() {
                    router.handle_frame(now, link, &frame);
                }
            }
        }
        while router.poll_delivered().is_some() {}
        let after: usize = (0..LINKS).map(|i| router.queue(i).len()).sum();
        // A frame to a group leaves on every link, and each that cannot makes a message to one sender.
        assert!(after <= before + 2 * LINKS + 1 || (what >> 2) & 3 == 0, "{before} frames became {after}");
        assert!((0..LINKS).all(|i| router.queue(i).len() <= QUEUE.limit));
    }
});
