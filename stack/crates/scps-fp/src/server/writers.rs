//! One writer per file (scps-fp §11.3): a second one waits, or takes over from one that stands still.

use crate::private::FileId;
use scps_wire::{Duration, Instant};
use std::collections::BTreeMap;

#[derive(Debug)]
struct Writer {
    session: u64,
    last_moved: Instant,
    is_evicted: bool,
}

/// Files being written, whatever their names are.
#[derive(Debug, Default)]
pub struct Writers(BTreeMap<FileId, Writer>);

/// Whether a file may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Nobody writes it, or only the asking session.
    Free,
    /// Somebody does.
    Busy,
    /// Somebody did and is being ended; ask again next turn.
    Wait,
}

impl Writers {
    /// Asks for `session` whether it may use a file; evicts a writer that has not moved for `patience`.
    pub fn claim(&mut self, file: FileId, session: u64, now: Instant, patience: Duration) -> Claim {
        match self.0.get_mut(&file) {
            None => Claim::Free,
            Some(w) if w.session == session => Claim::Free,
            Some(w) if w.is_evicted => Claim::Wait,
            Some(w) if now.since(w.last_moved) >= patience => {
                w.is_evicted = true;
                Claim::Wait
            }
            Some(_) => Claim::Busy,
        }
    }

    /// True if a session of this server writes it.
    pub fn knows(&self, file: FileId) -> bool {
        self.0.contains_key(&file)
    }

    /// Notes a writer.
    pub fn insert(&mut self, file: FileId, session: u64, now: Instant) {
        self.0.insert(file, Writer { session, last_moved: now, is_evicted: false });
    }

    /// Notes that a writer stored something; false if it has to end.
    pub fn moved(&mut self, file: FileId, now: Instant) {
        if let Some(w) = self.0.get_mut(&file) {
            w.last_moved = now;
        }
    }

    /// True if the writer has to end.
    pub fn is_evicted(&self, file: FileId) -> bool {
        self.0.get(&file).is_some_and(|w| w.is_evicted)
    }

    /// Ends a writer.
    pub fn remove(&mut self, file: FileId) {
        self.0.remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: FileId = (1, 2);

    #[test]
    fn a_writer_that_stands_still_makes_room_once_it_has_ended() {
        let mut writers = Writers::default();
        let patience = Duration::from_secs(10);
        let at = Instant::from_secs;
        assert_eq!(writers.claim(F, 2, at(0), patience), Claim::Free);
        writers.insert(F, 1, at(0));
        assert_eq!(writers.claim(F, 1, at(5), patience), Claim::Free);
        assert_eq!(writers.claim(F, 2, at(9), patience), Claim::Busy);
        writers.moved(F, at(9));
        assert_eq!(writers.claim(F, 2, at(10), patience), Claim::Busy);
        assert_eq!(writers.claim(F, 2, at(19), patience), Claim::Wait);
        assert!(writers.is_evicted(F));
        writers.remove(F);
        assert_eq!(writers.claim(F, 2, at(19), patience), Claim::Free);
    }
}
