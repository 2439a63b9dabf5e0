//! A router at work asks for no memory: neither when frames pass, nor when the queue is too long and frames are discarded.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]
#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use scps_np::{
    Address, Addresses, BasicQos, Dialect, Header, QueueConfig, Router, RouterConfig, RouterLink, SpRule, Tables,
    DATAGRAM_MAX,
};
use scps_wire::{Instant, Precedence, Seed};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Of this thread: the test's harness has threads of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is the system allocator's, with a count beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, which is the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn router() -> Router {
    let hosts = [([10, 0, 0, 1].into(), 0x7290), ([10, 0, 0, 2].into(), 0x7292)];
    let mut tables = Tables::of([10, 0, 0, 9].into());
    for (ip, np) in hosts {
        tables.add_host(ip, Address::Basic(np)).unwrap();
        tables.add_next_hop(Address::Basic(np), ip).unwrap();
    }
    let (dialect, queue) = (Dialect::default(), QueueConfig::default());
    let link = |(ip, _)| RouterLink { dialect, mtu: 1500, neighbours: vec![ip], queue, sp: SpRule::default() };
    Router::new(RouterConfig::default(), tables, hosts.map(link).into(), Seed::from_u64(1), Instant::ZERO)
}

fn packet(level: u8) -> Vec<u8> {
    let header = Header {
        tpid: 6,
        addresses: Addresses::Basic { dst: 0x7292, src: 0x7290 },
        qos: Some(BasicQos::of(Precedence::new(level).unwrap())),
        hop_count: Some(10),
        checksum: true,
        ..Header::default()
    };
    let mut packet = vec![0; 1400];
    header.emit(Dialect::default(), DATAGRAM_MAX, &mut packet).unwrap();
    packet
}

fn allocations(mut act: impl FnMut()) -> u64 {
    let before = ALLOCATIONS.get();
    act();
    ALLOCATIONS.get() - before
}

#[test]
fn a_router_at_work_asks_for_no_memory() {
    let mut router = router();
    let packets: Vec<_> = (0..16).map(packet).collect();
    let pass = |router: &mut Router| {
        for packet in &packets {
            router.handle_frame(Instant::ZERO, 0, packet);
            let frame = router.poll_frame(1).unwrap();
            router.recycle(frame.octets);
        }
    };
    pass(&mut router);
    assert_eq!(allocations(|| (0..1000).for_each(|_| pass(&mut router))), 0);

    // Two come for one that leaves. The quench for the discards was sent before; the next is not due.
    let overload = |router: &mut Router| {
        for _ in 0..400 {
            router.handle_frame(Instant::ZERO, 0, &packets[3]);
            router.handle_frame(Instant::ZERO, 0, &packets[4]);
            let frame = router.poll_frame(1).unwrap();
            router.recycle(frame.octets);
            while let Some(frame) = router.poll_frame(0) {
                router.recycle(frame.octets);
            }
        }
    };
    // Until the queues have been as long as they can be.
    (0..4).for_each(|_| overload(&mut router));
    assert_eq!(allocations(|| overload(&mut router)), 0);
    let level = |level| router.queue(1).counters(Precedence::new(level).unwrap());
    assert!(level(3).discarded > 600, "{:?}", level(3));
}
