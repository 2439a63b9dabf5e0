//! When the receiver acknowledges (SCPS-TP notes §6.1; RFC 1122 §4.2.3.2).

use crate::config::{AckBehaviour, AckConfig};
use scps_types::Instant;

/// What a received segment asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckNeed {
    /// Data in order.
    InOrder,
    /// Out of order, duplicate, or a hole filled: at once, unless acknowledgements are strictly delayed.
    Disorder,
    /// FIN, probe, challenge, window update: at once in any case.
    Now,
}

/// Decides between now and later. The delayed-acknowledgement deadline itself is the connection's timer.
#[derive(Clone, Copy, Debug)]
pub struct AckPolicy {
    config: AckConfig,
    unacknowledged: u16,
    is_due: bool,
    last_sent: Option<Instant>,
}

impl AckPolicy {
    /// A policy that owes nothing.
    pub fn new(config: AckConfig) -> Self {
        AckPolicy { config, unacknowledged: 0, is_due: false, last_sent: None }
    }

    /// Notes a received segment. Returns the deadline by which it must be acknowledged, `None` if that is now.
    /// `segments` is how many segments' worth of data it holds: a device may have joined several.
    pub fn on_segment(&mut self, need: AckNeed, segments: u16, now: Instant) -> Option<Instant> {
        self.unacknowledged = self.unacknowledged.saturating_add(segments.max(1));
        let later = Some(now + self.config.delay);
        let enough = match self.config.behaviour {
            AckBehaviour::Delayed => false,
            AckBehaviour::EveryNth(n) => self.unacknowledged >= n,
        };
        let wanted = match need {
            AckNeed::Now => {
                self.is_due = true;
                return None;
            }
            AckNeed::Disorder => self.config.behaviour != AckBehaviour::Delayed,
            AckNeed::InOrder => enough,
        };
        if !wanted {
            return later;
        }
        // The floor spaces acknowledgements of data in order; disorder is reported regardless.
        if let (AckNeed::InOrder, Some(floor), Some(last)) = (need, self.config.floor, self.last_sent) {
            if now.since(last) < floor {
                return Some(last + floor);
            }
        }
        self.is_due = true;
        None
    }

    /// The delayed-acknowledgement timer expired.
    pub fn on_timer(&mut self) {
        self.is_due |= self.unacknowledged > 0;
    }

    /// True if an acknowledgement must leave now.
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// An acknowledgement left, alone or on data.
    pub fn on_sent(&mut self, now: Instant) {
        self.unacknowledged = 0;
        self.is_due = false;
        self.last_sent = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_types::Duration;

    const T: fn(u64) -> Instant = Instant::from_millis;

    fn policy(behaviour: AckBehaviour, floor_ms: Option<u64>) -> AckPolicy {
        AckPolicy::new(AckConfig {
            behaviour,
            delay: Duration::from_millis(200),
            floor: floor_ms.map(Duration::from_millis),
        })
    }

    #[test]
    fn behaviour_2_acknowledges_every_second_segment() {
        let mut p = policy(AckBehaviour::EveryNth(2), None);
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(0)), Some(T(200)));
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(1)), None);
        assert!(p.is_due());
        p.on_sent(T(1));
        assert!(!p.is_due());
    }

    #[test]
    fn behaviour_0_waits_even_on_disorder() {
        let mut p = policy(AckBehaviour::Delayed, None);
        assert_eq!(p.on_segment(AckNeed::Disorder, 1, T(0)), Some(T(200)));
        assert_eq!(p.on_segment(AckNeed::Now, 1, T(0)), None);
    }

    #[test]
    fn the_floor_spaces_acknowledgements() {
        let mut p = policy(AckBehaviour::EveryNth(1), Some(50));
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(0)), None);
        p.on_sent(T(0));
        assert_eq!(p.on_segment(AckNeed::InOrder, 1, T(10)), Some(T(50)));
        assert_eq!(p.on_segment(AckNeed::Disorder, 1, T(20)), None);
    }

    #[test]
    fn a_joined_segment_counts_for_its_parts() {
        let mut p = policy(AckBehaviour::EveryNth(2), None);
        assert_eq!(p.on_segment(AckNeed::InOrder, 3, T(0)), None);
    }
}
