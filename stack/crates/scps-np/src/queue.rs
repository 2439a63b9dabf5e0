//! The precedence queues of a link (scps-np §5): sixteen first-in-first-out queues, served in strict order.

use scps_wire::Precedence;
use std::collections::VecDeque;

/// Which packets go when a queue is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DiscardRule {
    /// The lowest precedence first, and the oldest of it first.
    #[default]
    LowestOldest,
    /// The lowest precedence first, and the newest of it first.
    LowestNewest,
    /// The newest, whatever its precedence: as if there was one queue.
    Newest,
}

/// Settings of a link's queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// Packets at which the queues are too long; more than [`QueueConfig::purge`], or nothing would be left to send.
    pub limit: usize,
    /// Packets that are then discarded; at least 1.
    pub purge: usize,
    /// Which ones.
    pub rule: DiscardRule,
}

impl Default for QueueConfig {
    /// The reference's constants (scps-np §8).
    fn default() -> Self {
        QueueConfig { limit: 100, purge: 20, rule: DiscardRule::default() }
    }
}

/// What happened at one level.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LevelCounters {
    /// Packets that came.
    pub queued: u64,
    /// Packets that left for the link.
    pub sent: u64,
    /// Packets discarded.
    pub discarded: u64,
    /// Packets that wait.
    pub waiting: usize,
    /// Most packets that waited.
    pub waiting_max: usize,
}

/// The queues of a link. `T` is what waits in them.
#[derive(Clone, Debug)]
pub struct PrecedenceQueues<T> {
    config: QueueConfig,
    levels: [VecDeque<(u64, T)>; Precedence::LEVELS],
    counters: [LevelCounters; Precedence::LEVELS],
    len: usize,
    arrivals: u64,
}

impl<T> PrecedenceQueues<T> {
    /// Empty queues.
    pub fn new(config: QueueConfig) -> Self {
        let purge = config.purge.max(1);
        let config = QueueConfig { limit: config.limit.max(purge + 1), purge, ..config };
        PrecedenceQueues {
            config,
            levels: std::array::from_fn(|_| VecDeque::new()),
            counters: [LevelCounters::default(); Precedence::LEVELS],
            len: 0,
            arrivals: 0,
        }
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if more wait than remain after a discard: their sources should send less (scps-np §6.3).
    pub fn is_congested(&self) -> bool {
        self.len > self.config.limit.saturating_sub(self.config.purge)
    }

    /// Counters of a level.
    pub fn counters(&self, precedence: Precedence) -> LevelCounters {
        self.counters[usize::from(precedence.level())]
    }

    /// True if a new packet may be handed to the link at once: nothing of its precedence or a higher one waits.
    pub fn may_bypass(&self, precedence: Precedence) -> bool {
        self.levels[usize::from(precedence.level())..].iter().all(VecDeque::is_empty)
    }

    /// Takes a packet in. If the queues are too long then, packets are discarded, perhaps this one: `discarded` gets them.
    pub fn push(&mut self, precedence: Precedence, packet: T, mut discarded: impl FnMut(Precedence, T)) {
        let level = usize::from(precedence.level());
        self.arrivals += 1;
        self.levels[level].push_back((self.arrivals, packet));
        self.counters[level].queued += 1;
        self.note_waiting(level);
        self.len += 1;
        if self.len < self.config.limit {
            return;
        }
        for _ in 0..self.config.purge {
            let Some((level, packet)) = self.discard_one() else { return };
            self.counters[level].discarded += 1;
            self.note_waiting(level);
            discarded(Precedence::from_low_bits(level as u8), packet);
        }
    }

    fn discard_one(&mut self) -> Option<(usize, T)> {
        let lowest = || self.levels.iter().position(|queue| !queue.is_empty());
        let (level, is_oldest) = match self.config.rule {
            DiscardRule::LowestOldest => (lowest()?, true),
            DiscardRule::LowestNewest => (lowest()?, false),
            DiscardRule::Newest => {
                let newest = |level: &usize| self.levels[*level].back().map(|(arrival, _)| *arrival);
                ((0..Precedence::LEVELS).max_by_key(newest)?, false)
            }
        };
        let queue = &mut self.levels[level];
        let (_, packet) = if is_oldest { queue.pop_front() } else { queue.pop_back() }?;
        self.len -= 1;
        Some((level, packet))
    }

    /// The packet that leaves next: the oldest of the highest precedence.
    pub fn pop(&mut self) -> Option<(Precedence, T)> {
        let level = self.levels.iter().rposition(|queue| !queue.is_empty())?;
        let (_, packet) = self.levels[level].pop_front()?;
        self.len -= 1;
        self.counters[level].sent += 1;
        self.note_waiting(level);
        Some((Precedence::from_low_bits(level as u8), packet))
    }

    /// Takes back what the link refused: it leaves before all others of its precedence. A refusal discards nothing.
    pub fn put_back(&mut self, precedence: Precedence, packet: T) {
        let level = usize::from(precedence.level());
        self.levels[level].push_front((0, packet));
        self.len += 1;
        self.counters[level].sent -= 1;
        self.note_waiting(level);
    }

    fn note_waiting(&mut self, level: usize) {
        let counters = &mut self.counters[level];
        counters.waiting = self.levels[level].len();
        counters.waiting_max = counters.waiting_max.max(counters.waiting);
    }
}
