//! Probing a closed window or an unavailable route (scps-tp §6.6, §6.8).

use crate::config::PersistConfig;
use scps_wire::Duration;

/// Intervals in seconds; the reference increments before it uses the table, so the first is 5 (scps-tp §6.6).
const INTERVALS_S: [u64; 6] = [5, 6, 12, 24, 48, 60];

/// Least time between two probes, or two keep-alives: those of a route that is down are not counted, and without it a timer that is due
/// again at once would be due for ever.
pub const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Where in the schedule the probing is.
#[derive(Clone, Copy, Debug)]
pub struct Persist {
    config: PersistConfig,
    step: usize,
    unanswered: u32,
}

impl Persist {
    /// Not probing.
    pub fn new(config: PersistConfig) -> Self {
        Persist { config, step: 0, unanswered: 0 }
    }

    /// The next interval, each longer than the last up to the cap.
    pub fn next_interval(&mut self) -> Duration {
        let interval = Duration::from_secs(INTERVALS_S[self.step.min(INTERVALS_S.len() - 1)]);
        self.step += 1;
        self.bounded(interval)
    }

    /// The first interval after the route became unavailable.
    pub fn outage_interval(&mut self) -> Duration {
        self.step = 0;
        self.bounded(self.config.outage_first)
    }

    fn bounded(&self, interval: Duration) -> Duration {
        interval.min(self.config.max).max(INTERVAL_MIN)
    }

    /// A probe left. True if the limit is reached and the connection must be aborted.
    pub fn on_probe(&mut self) -> bool {
        self.unanswered += 1;
        self.unanswered > self.config.probes_max
    }

    /// The peer answered: it lives, but its window may still be closed.
    pub fn on_answer(&mut self) {
        self.unanswered = 0;
    }

    /// The window opened or the route is back.
    pub fn stop(&mut self) {
        self.step = 0;
        self.unanswered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn intervals_follow_the_table_and_its_cap() {
        let mut p = Persist::new(Config::default().persist);
        let s: Vec<_> = (0..8).map(|_| p.next_interval().as_secs()).collect();
        assert_eq!(s, [5, 6, 12, 24, 48, 60, 60, 60]);
        let mut p = Persist::new(PersistConfig { max: Duration::from_secs(10), ..Config::default().persist });
        let s: Vec<_> = (0..4).map(|_| p.next_interval().as_secs()).collect();
        assert_eq!(s, [5, 6, 10, 10]);
        let mut p = Persist::new(PersistConfig { max: Duration::ZERO, ..Config::default().persist });
        assert_eq!([p.next_interval(), p.outage_interval()], [INTERVAL_MIN; 2]);
    }

    #[test]
    fn the_limit_counts_unanswered_probes_only() {
        let mut p = Persist::new(PersistConfig { probes_max: 2, ..Config::default().persist });
        assert!(!p.on_probe() && !p.on_probe());
        p.on_answer();
        assert!(!p.on_probe() && !p.on_probe() && p.on_probe());
    }
}
