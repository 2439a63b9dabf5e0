//! What the user of an endpoint is still to be told.

use crate::event::Event;
use crate::names::ListenerId;
use std::collections::{BTreeMap, VecDeque};

/// Events that wait for the user.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<Event>,
    /// How many there ever were.
    made: u64,
    /// Those of connections that are open and that nobody has accepted, by listener.
    accepted: BTreeMap<ListenerId, usize>,
}

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        if let Event::Accepted(listener, _) = event {
            *self.accepted.entry(listener).or_default() += 1;
        }
        self.made += 1;
        self.waiting.push_back(event);
    }

    /// Takes the first that `found` picks out.
    pub(super) fn find<T>(&mut self, found: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        let (at, picked) = self.waiting.iter().map(found).enumerate().find_map(|(at, found)| Some((at, found?)))?;
        if let Some(event) = self.waiting.remove(at) {
            on_taken(&mut self.accepted, &event);
        }
        Some(picked)
    }

    /// Forgets those that `keep` does not keep.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Event) -> bool) {
        let Events { waiting, accepted, .. } = self;
        waiting.retain(|event| {
            let is_kept = keep(event);
            if !is_kept {
                on_taken(accepted, event);
            }
            is_kept
        });
    }

    /// How many there ever were.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Connections of a listener that are open and that nobody has accepted.
    pub(super) fn unaccepted(&self, listener: ListenerId) -> usize {
        self.accepted.get(&listener).copied().unwrap_or_default()
    }
}

fn on_taken(accepted: &mut BTreeMap<ListenerId, usize>, event: &Event) {
    if let Event::Accepted(listener, _) = event {
        let left = accepted.remove(listener).unwrap_or_default().saturating_sub(1);
        if left > 0 {
            accepted.insert(*listener, left);
        }
    }
}
