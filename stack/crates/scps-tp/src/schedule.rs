//! Whose turn it is: connections that may have something to send, connections waiting for their route's rate, deadlines.
//!
//! The highest precedence comes first. Among equals turns go round: where a route has a rate, each turn is worth as many octets
//! as the route's longest packet, times the connection's share, and what a connection took beyond its turns it has to wait for (deficit round robin, Shreedhar
//! and Varghese 1995).

use crate::names::RouteId;
use scps_wire::{Instant, Precedence};
use std::collections::{BTreeSet, VecDeque};

#[derive(Clone, Debug, Default)]
struct Waiting {
    connections: Vec<u32>,
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    is_queued: bool,
    level: usize,
    /// Turns are worth so many times as much; 0 until it is told.
    share: u16,
    /// Octets it may still send in this turn.
    credit: i64,
    deadline: Option<Instant>,
}

/// Packets that a connection sends in a turn on a route without a rate.
const BURST_MAX: u32 = 64;

/// Queues and deadlines by connection index.
#[derive(Clone, Debug)]
pub struct Schedule {
    ready: [VecDeque<u32>; Precedence::LEVELS],
    /// Packets sent in this turn.
    burst: u32,
    waiting: Vec<Waiting>,
    places: Vec<Place>,
    deadlines: BTreeSet<(Instant, u32)>,
}

impl Schedule {
    /// Nobody's turn, with `routes` routes.
    pub fn new(routes: usize) -> Self {
        Schedule {
            ready: Default::default(),
            burst: 0,
            waiting: vec![Waiting::default(); routes],
            places: Vec::new(),
            deadlines: BTreeSet::new(),
        }
    }

    /// Another route exists.
    pub fn add_route(&mut self) {
        self.waiting.push(Waiting::default());
    }

    /// Another connection index exists.
    pub fn add_connection(&mut self) {
        self.places.push(Place::default());
    }

    /// A connection's precedence.
    pub fn set_precedence(&mut self, index: u32, precedence: Precedence) {
        self.places[index as usize].level = usize::from(precedence.level());
    }

    /// A connection's share of its route's rate.
    pub fn set_share(&mut self, index: u32, share: u16) {
        self.places[index as usize].share = share;
    }

    /// The connection may have something to send.
    pub fn make_ready(&mut self, index: u32) {
        let place = &mut self.places[index as usize];
        if !place.is_queued {
            place.is_queued = true;
            place.credit = 0;
            self.ready[place.level].push_back(index);
        }
    }

    /// The queue of the highest precedence that is ready.
    fn first_queue(&mut self) -> Option<&mut VecDeque<u32>> {
        self.ready.iter_mut().rev().find(|queue| !queue.is_empty())
    }

    /// The connection whose turn it is; it stays first.
    pub fn next_ready(&mut self) -> Option<u32> {
        self.first_queue()?.front().copied()
    }

    /// The first has nothing to send.
    pub fn not_ready(&mut self) {
        self.burst = 0;
        if let Some(index) = self.first_queue().and_then(VecDeque::pop_front) {
            self.places[index as usize].is_queued = false;
        }
    }

    /// The first sent `packets`, together `octets`. When its turn is over, the others of its precedence come before it comes again.
    /// `turn` is how many octets a turn is worth; `None` on a route without a rate, where there is enough for all.
    pub fn sent(&mut self, octets: usize, packets: u32, turn: Option<u16>) {
        let Some(index) = self.next_ready() else { return };
        let place = &mut self.places[index as usize];
        self.burst += packets;
        let is_over = match turn {
            None => self.burst >= BURST_MAX,
            Some(turn) => {
                // A turn begins.
                if place.credit <= 0 {
                    place.credit += i64::from(turn.max(1)) * i64::from(place.share.max(1));
                }
                place.credit -= octets as i64;
                place.credit <= 0
            }
        };
        if is_over {
            self.burst = 0;
            if let Some(queue) = self.first_queue() {
                queue.rotate_left(1);
            }
        }
    }

    /// The connection is gone: whoever has its index next begins with nothing, in no queue.
    pub fn forget(&mut self, index: u32) {
        let place = std::mem::take(&mut self.places[index as usize]);
        if let Some(deadline) = place.deadline {
            self.deadlines.remove(&(deadline, index));
        }
        if place.is_queued {
            // It was settled a moment ago, so it is last among those that are ready, unless it waits.
            let queue = &mut self.ready[place.level];
            match queue.iter().rposition(|queued| *queued == index) {
                Some(at) => drop(queue.remove(at)),
                None => self.waiting.iter_mut().for_each(|w| w.connections.retain(|waits| *waits != index)),
            }
        }
    }

    /// The first waits for its route's rate, in order of arrival.
    pub fn block(&mut self, route: RouteId, until: Option<Instant>) {
        self.burst = 0;
        if let Some(index) = self.first_queue().and_then(VecDeque::pop_front) {
            let w = &mut self.waiting[route.0];
            w.connections.push(index);
            w.until = until.or(w.until);
        }
    }

    /// The route has another rate: whoever waits for it looks again at the next [`Schedule::unblock`].
    pub fn look_again(&mut self, route: RouteId, now: Instant) {
        let waiting = &mut self.waiting[route.0];
        waiting.until = waiting.until.map(|until| until.min(now));
    }

    /// True if others already wait for this route's rate: whoever comes later waits behind them.
    pub fn is_blocked(&self, route: RouteId) -> bool {
        self.waiting[route.0].until.is_some()
    }

    /// Routes whose rate has credit again let their connections go on.
    pub fn unblock(&mut self, now: Instant) {
        for w in &mut self.waiting {
            if w.until.is_some_and(|u| u <= now) {
                w.until = None;
                for index in w.connections.drain(..) {
                    self.ready[self.places[index as usize].level].push_back(index);
                }
            }
        }
    }

    /// Moves a connection's deadline.
    pub fn set_deadline(&mut self, index: u32, deadline: Option<Instant>) {
        let place = &mut self.places[index as usize];
        if place.deadline == deadline {
            return;
        }
        if let Some(old) = place.deadline {
            self.deadlines.remove(&(old, index));
        }
        if let Some(new) = deadline {
            self.deadlines.insert((new, index));
        }
        place.deadline = deadline;
    }

    /// A connection whose deadline has passed.
    pub fn take_due(&mut self, now: Instant) -> Option<u32> {
        let (at, index) = *self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.deadlines.pop_first();
        self.places[index as usize].deadline = None;
        Some(index)
    }

    /// The earliest of deadlines and rate waits.
    pub fn next_timeout(&self) -> Option<Instant> {
        let rate = self.waiting.iter().filter_map(|w| w.until).min();
        [self.deadlines.first().map(|d| d.0), rate].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocked_connections_keep_their_order() {
        let mut s = Schedule::new(1);
        for i in 0..3 {
            s.add_connection();
            s.make_ready(i);
        }
        s.block(RouteId(0), Some(Instant::from_secs(1)));
        assert!(s.is_blocked(RouteId(0)));
        s.block(RouteId(0), None);
        s.not_ready();
        assert_eq!((s.next_ready(), s.next_timeout()), (None, Some(Instant::from_secs(1))));
        s.make_ready(0);
        assert_eq!(s.next_ready(), None, "a blocked connection is already queued");
        s.unblock(Instant::from_secs(1));
        assert_eq!(s.next_ready(), Some(0));
    }

    #[test]
    fn whoever_has_an_index_next_inherits_no_place_in_a_queue() {
        let mut s = Schedule::new(2);
        (0..3).for_each(|_| s.add_connection());
        s.set_precedence(1, Precedence::HIGHEST);
        (0..3).for_each(|i| s.make_ready(i));
        s.block(RouteId(0), Some(Instant::from_secs(1000)));
        s.set_deadline(1, Some(Instant::from_secs(5)));
        (0..3).for_each(|i| s.forget(i));
        assert_eq!((s.next_ready(), s.take_due(Instant::from_secs(9))), (None, None));
        s.make_ready(1);
        assert_eq!(s.next_ready(), Some(1), "it does not wait for a route of another");
        s.not_ready();
        s.unblock(Instant::from_secs(1000));
        assert_eq!(s.next_ready(), None);
    }

    #[test]
    fn who_waits_for_a_slow_rate_does_not_wait_for_it_when_there_is_another() {
        let mut s = with_three();
        s.block(RouteId(0), Some(Instant::from_secs(1000)));
        s.look_again(RouteId(0), Instant::from_secs(2));
        assert_eq!(s.next_timeout(), Some(Instant::from_secs(2)));
        s.unblock(Instant::from_secs(2));
        assert!(!s.is_blocked(RouteId(0)));
    }

    fn with_three() -> Schedule {
        let mut s = Schedule::new(1);
        for i in 0..3 {
            s.add_connection();
            s.make_ready(i);
        }
        s
    }

    #[test]
    fn the_highest_precedence_comes_first_also_behind_a_rate() {
        let mut s = Schedule::new(1);
        (0..3).for_each(|_| s.add_connection());
        s.set_precedence(2, Precedence::HIGHEST);
        (0..3).for_each(|i| s.make_ready(i));
        assert_eq!(s.next_ready(), Some(2));
        while s.next_ready().is_some() {
            s.block(RouteId(0), Some(Instant::from_secs(1)));
        }
        s.unblock(Instant::from_secs(1));
        assert_eq!(s.next_ready(), Some(2));
        s.not_ready();
        assert_eq!(s.next_ready(), Some(0));
    }

    #[test]
    fn where_there_is_enough_for_all_a_turn_is_a_burst() {
        let mut s = with_three();
        (1..BURST_MAX).for_each(|_| s.sent(1500, 1, None));
        assert_eq!(s.next_ready(), Some(0));
        s.sent(1500, 1, None);
        assert_eq!(s.next_ready(), Some(1));
    }

    proptest! {
        /// Whatever the lengths of their packets, and however little credit the route has at a time, connections that always have
        /// something to send get the same, to within two packets.
        #[test]
        fn turns_on_a_route_with_a_rate_are_worth_the_same(
            lens in proptest::array::uniform3(40usize..=1500),
            credits in proptest::collection::vec(1usize..5, 50..200),
        ) {
            let mut s = with_three();
            let mut got = [0usize; 3];
            for (i, packets) in credits.iter().enumerate() {
                for _ in 0..*packets {
                    let index = s.next_ready().unwrap();
                    got[index as usize] += lens[index as usize];
                    s.sent(lens[index as usize], 1, Some(1500));
                }
                let at = Instant::from_secs(i as u64 + 1);
                s.block(RouteId(0), Some(at));
                while s.next_ready().is_some() {
                    s.block(RouteId(0), None);
                }
                s.unblock(at);
            }
            let (least, most) = (got.iter().min().unwrap(), got.iter().max().unwrap());
            prop_assert!(most - least <= 3000, "{:?}", got);
        }
    }

    #[test]
    fn a_share_of_three_is_three_times_as_much() {
        let mut s = with_three();
        s.set_share(1, 3);
        let mut got = [0usize; 3];
        for i in 0..5000 {
            let index = s.next_ready().unwrap();
            let len = 700 + i % 700;
            got[index as usize] += len;
            s.sent(len, 1, Some(1500));
        }
        let ratio = |a: usize, b: usize| got[a] as f64 / got[b] as f64;
        assert!((ratio(0, 2) - 1.0).abs() < 0.02 && (ratio(1, 0) - 3.0).abs() < 0.06, "{got:?}");
    }

    #[test]
    fn deadlines_come_out_in_order() {
        let mut s = Schedule::new(1);
        s.add_connection();
        s.add_connection();
        s.set_deadline(0, Some(Instant::from_secs(2)));
        s.set_deadline(1, Some(Instant::from_secs(1)));
        s.set_deadline(0, Some(Instant::from_secs(3)));
        assert_eq!(s.take_due(Instant::from_secs(5)), Some(1));
        assert_eq!(s.take_due(Instant::from_secs(2)), None);
        assert_eq!(s.take_due(Instant::from_secs(3)), Some(0));
    }
}
