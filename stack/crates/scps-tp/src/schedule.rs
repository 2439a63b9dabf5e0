//! Whose turn it is: connections that may have something to send, connections waiting for their route's rate, deadlines.

use crate::route::RouteId;
use scps_types::Instant;
use std::collections::{BTreeSet, VecDeque};

#[derive(Clone, Debug, Default)]
struct Waiting {
    connections: Vec<u32>,
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    is_queued: bool,
    deadline: Option<Instant>,
}

/// Queues and deadlines by connection index.
#[derive(Clone, Debug)]
pub struct Schedule {
    ready: VecDeque<u32>,
    waiting: Vec<Waiting>,
    places: Vec<Place>,
    deadlines: BTreeSet<(Instant, u32)>,
}

impl Schedule {
    /// Nobody's turn, with `routes` routes.
    pub fn new(routes: usize) -> Self {
        Schedule {
            ready: VecDeque::new(),
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

    /// The connection may have something to send.
    pub fn make_ready(&mut self, index: u32) {
        let place = &mut self.places[index as usize];
        if !place.is_queued {
            place.is_queued = true;
            self.ready.push_back(index);
        }
    }

    /// The connection whose turn it is; it stays first.
    pub fn next_ready(&self) -> Option<u32> {
        self.ready.front().copied()
    }

    /// The first has nothing to send.
    pub fn not_ready(&mut self) {
        if let Some(index) = self.ready.pop_front() {
            self.places[index as usize].is_queued = false;
        }
    }

    /// The first had its turn; the others come before it comes again.
    pub fn rotate(&mut self) {
        self.ready.rotate_left(usize::from(self.ready.len() > 1));
    }

    /// The first waits for its route's rate, in order of arrival.
    pub fn block(&mut self, route: RouteId, until: Option<Instant>) {
        if let Some(index) = self.ready.pop_front() {
            let w = &mut self.waiting[route.0];
            w.connections.push(index);
            w.until = until.or(w.until);
        }
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
                self.ready.extend(w.connections.drain(..));
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
