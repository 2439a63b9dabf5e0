//! The precedence queues: the examples of scps-np §7, and a simple model that does the same more slowly.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_np::{DiscardRule, PrecedenceQueues, QueueConfig};
use scps_wire::Precedence;

fn level(n: u8) -> Precedence {
    Precedence::new(n).unwrap()
}

/// Pushes levels in order, each packet being its number; returns the discarded.
fn push_all(queues: &mut PrecedenceQueues<usize>, levels: impl IntoIterator<Item = u8>) -> Vec<(u8, usize)> {
    let mut discarded = Vec::new();
    for (number, n) in levels.into_iter().enumerate() {
        queues.push(level(n), number, |p, packet| discarded.push((p.level(), packet)));
    }
    discarded
}

fn drain(queues: &mut PrecedenceQueues<usize>) -> Vec<(u8, usize)> {
    std::iter::from_fn(|| queues.pop()).map(|(p, packet)| (p.level(), packet)).collect()
}

#[test]
fn the_highest_precedence_leaves_first() {
    // T10 of scps-np §7.
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    push_all(&mut queues, [0, 15, 7, 3]);
    assert_eq!(drain(&mut queues).into_iter().map(|(n, _)| n).collect::<Vec<_>>(), [15, 7, 3, 0]);
    push_all(&mut queues, 0..16);
    assert_eq!(queues.pop().map(|(p, _)| p), Some(Precedence::HIGHEST));
}

#[test]
fn packets_of_a_level_leave_in_order_of_arrival() {
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    push_all(&mut queues, [4, 9, 4, 4, 9]);
    assert_eq!(drain(&mut queues), [(9, 1), (9, 4), (4, 0), (4, 2), (4, 3)]);
}

#[test]
fn of_a_hundred_packets_the_twenty_lowest_and_oldest_are_discarded() {
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    // 30 at level 5, then 70 at level 2: the oldest 20 of level 2 go when the hundredth comes.
    let levels = std::iter::repeat_n(5, 30).chain(std::iter::repeat_n(2, 70));
    let discarded = push_all(&mut queues, levels);
    assert_eq!(discarded, (30..50).map(|number| (2, number)).collect::<Vec<_>>());
    assert_eq!(queues.len(), 80);
    assert_eq!((queues.counters(level(2)).discarded, queues.counters(level(5)).discarded), (20, 0));
    // T3: however many come, a hundred never wait.
    let more = push_all(&mut queues, std::iter::repeat_n(2, 150));
    assert_eq!(queues.len() + more.len(), 230);
    assert!(queues.len() < 100);
}

#[test]
fn a_packet_that_comes_alone_always_leaves() {
    for (limit, purge) in [(0, 0), (1, 1), (1, 20), (20, 20)] {
        for rule in [DiscardRule::LowestOldest, DiscardRule::LowestNewest, DiscardRule::Newest] {
            let mut queues = PrecedenceQueues::new(QueueConfig { limit, purge, rule });
            assert_eq!((push_all(&mut queues, [3]), drain(&mut queues)), (vec![], vec![(3, 0)]), "{limit}, {purge}");
            push_all(&mut queues, std::iter::repeat_n(3, 100));
            assert!(!queues.is_empty(), "{limit}, {purge}, {rule:?}");
        }
    }
}

#[test]
fn survivors_are_no_lower_than_what_was_discarded() {
    // T4: ten packets at each of levels 0 to 9, then twenty at 15.
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    let levels = (0..10).flat_map(|n| std::iter::repeat_n(n, 10)).chain(std::iter::repeat_n(15, 20));
    let discarded = push_all(&mut queues, levels);
    let survivors = drain(&mut queues);
    let highest_gone = discarded.iter().map(|(n, _)| *n).max().unwrap();
    assert!(survivors.iter().all(|(n, _)| *n >= highest_gone));
    assert_eq!(survivors.iter().filter(|(n, _)| *n == 15).count(), 20);
}

#[test]
fn an_arrival_lower_than_all_that_wait_is_itself_discarded() {
    let mut queues = PrecedenceQueues::new(QueueConfig { limit: 4, purge: 1, ..QueueConfig::default() });
    assert_eq!(push_all(&mut queues, [5, 5, 5, 1]), [(1, 3)]);
}

#[test]
fn a_packet_that_the_link_refused_leaves_before_its_like() {
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    push_all(&mut queues, [7, 7, 3]);
    let (precedence, refused) = queues.pop().unwrap();
    assert_eq!((precedence.level(), refused), (7, 0));
    queues.put_back(precedence, refused);
    assert_eq!(drain(&mut queues), [(7, 0), (7, 1), (3, 2)]);
    assert_eq!(queues.counters(level(7)).sent, 2);
}

#[test]
fn only_what_nothing_equal_or_higher_waits_for_bypasses_the_queue() {
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    assert!(Precedence::all().all(|p| queues.may_bypass(p)));
    push_all(&mut queues, [7]);
    let may: Vec<u8> = Precedence::all().filter(|p| queues.may_bypass(*p)).map(Precedence::level).collect();
    assert_eq!(may, (8..16).collect::<Vec<_>>());
}

#[test]
fn more_than_eighty_of_a_hundred_are_congestion() {
    let mut queues = PrecedenceQueues::new(QueueConfig::default());
    push_all(&mut queues, [0; 80]);
    assert!(!queues.is_congested());
    push_all(&mut queues, [0]);
    assert!(queues.is_congested());
}

#[test]
fn the_discard_rule_is_a_setting() {
    let gone = |rule| {
        let mut queues = PrecedenceQueues::new(QueueConfig { limit: 5, purge: 2, rule });
        push_all(&mut queues, [1, 9, 1, 9, 9])
    };
    assert_eq!(gone(DiscardRule::LowestOldest), [(1, 0), (1, 2)]);
    assert_eq!(gone(DiscardRule::LowestNewest), [(1, 2), (1, 0)]);
    assert_eq!(gone(DiscardRule::Newest), [(9, 4), (9, 3)]);
}

/// The same by sorting one list.
struct Model {
    config: QueueConfig,
    waiting: Vec<(u8, i64, usize)>,
    arrivals: i64,
    refusals: i64,
}

impl Model {
    fn push(&mut self, n: u8, packet: usize) -> Vec<(u8, usize)> {
        self.arrivals += 1;
        self.waiting.push((n, self.arrivals, packet));
        let mut gone = Vec::new();
        if self.waiting.len() >= self.config.limit {
            for _ in 0..self.config.purge.min(self.waiting.len()) {
                let keys = self.waiting.iter().enumerate();
                let victim = match self.config.rule {
                    DiscardRule::LowestOldest => keys.min_by_key(|(_, w)| (w.0, w.1)),
                    DiscardRule::LowestNewest => keys.min_by_key(|(_, w)| (w.0, -w.1)),
                    DiscardRule::Newest => keys.max_by_key(|(_, w)| w.1),
                };
                let index = victim.unwrap().0;
                let (n, _, packet) = self.waiting.remove(index);
                gone.push((n, packet));
            }
        }
        gone
    }

    fn pop(&mut self) -> Option<(u8, usize)> {
        let next = self.waiting.iter().enumerate().min_by_key(|(_, w)| (std::cmp::Reverse(w.0), w.1))?.0;
        let (n, _, packet) = self.waiting.remove(next);
        Some((n, packet))
    }

    fn put_back(&mut self, n: u8, packet: usize) {
        self.refusals -= 1;
        self.waiting.push((n, self.refusals, packet));
    }
}

proptest! {
    #[test]
    fn the_queues_do_as_the_model(
        limit in 1usize..12,
        purge in 1usize..5,
        rule in prop_oneof![Just(DiscardRule::LowestOldest), Just(DiscardRule::LowestNewest)],
        steps in proptest::collection::vec((0u8..10, 0u8..16), 0..200),
    ) {
        let config = QueueConfig { limit, purge, rule };
        let mut queues = PrecedenceQueues::new(config);
        let mut model = Model { config: QueueConfig { limit: limit.max(purge + 1), ..config }, waiting: Vec::new(), arrivals: 0, refusals: 0 };
        let (mut pushed, mut popped, mut discarded) = (0, 0, 0);
        for (number, (what, n)) in steps.into_iter().enumerate() {
            match what {
                0..=5 => {
                    let mut gone = Vec::new();
                    queues.push(level(n), number, |p, packet| gone.push((p.level(), packet)));
                    pushed += 1;
                    discarded += gone.len();
                    let lowest_left = model.waiting.iter().map(|w| w.0).chain([n]).min();
                    prop_assert!(gone.is_empty() || gone.first().map(|g| g.0) == lowest_left);
                    prop_assert_eq!(gone, model.push(n, number));
                }
                6..=8 => {
                    let next = queues.pop().map(|(p, packet)| (p.level(), packet));
                    popped += usize::from(next.is_some());
                    prop_assert_eq!(next, model.pop());
                }
                _ => {
                    let next = queues.pop();
                    prop_assert_eq!(next.map(|(p, packet)| (p.level(), packet)), model.pop());
                    if let Some((p, packet)) = next {
                        queues.put_back(p, packet);
                        model.put_back(p.level(), packet);
                    }
                }
            }
            prop_assert_eq!(queues.len(), model.waiting.len());
            for p in Precedence::all() {
                let is_free = model.waiting.iter().all(|w| w.0 < p.level());
                prop_assert_eq!(queues.may_bypass(p), is_free);
                let waiting = model.waiting.iter().filter(|w| w.0 == p.level()).count();
                prop_assert_eq!(queues.counters(p).waiting, waiting);
            }
        }
        // Every packet is somewhere, once.
        prop_assert_eq!(pushed, popped + discarded + queues.len());
        let sums = Precedence::all().map(|p| queues.counters(p)).fold((0, 0, 0), |(a, b, c), l| {
            (a + l.queued, b + l.sent, c + l.discarded)
        });
        prop_assert_eq!(sums, (pushed as u64, popped as u64, discarded as u64));
    }
}
