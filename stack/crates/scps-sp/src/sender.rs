//! The sending side of a direction: which key, and which sequence numbers it may still use (scps-sp §6).
//!
//! A number used twice under one key reveals both packets and lets anybody forge more. Numbers are therefore handed out in
//! blocks by whoever keeps a record of them: after a restart the next block lies above everything that may have been used.

use crate::aead::Aead;
use crate::association::{Association, KeyName, Protection};
use crate::sent::Sent;
#[cfg(feature = "legacy-insecure")]
use crate::Suite;
use crate::{Refused, Services};
use core::ops::Range;
use scps_wire::{Duration, Instant};

/// Sequence numbers of a block, which is reserved before its first number is used (scps-sp §6).
pub const BLOCK: u64 = 65_536;
/// The first number that no packet can have: a key whose record says that it is the next one is not used any more.
pub const NUMBERS_END: u64 = 1 << 48;
/// Packets after which a key should be replaced (scps-sp §6).
const SOFT_LIMIT: u64 = 1 << 31;
/// How long a key should be used (scps-sp §6).
const SOFT_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Why sequence numbers are not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadGrant {
    /// There is no such key.
    #[error("no such key")]
    Unknown,
    /// They begin at or below one that may have been used.
    #[error("found numbers from {found}; expected them above {last}, which may have been used")]
    Used {
        /// The first one.
        found: u64,
        /// The highest one granted before.
        last: u64,
    },
}

/// A key that packets leave under.
#[derive(Debug)]
pub(crate) struct SendingKey {
    pub(crate) association: Association,
    /// `None` for the algorithms of the reference, which number nothing.
    pub(crate) aead: Option<Aead>,
    /// Numbers that may be used, lowest first.
    granted: Vec<Range<u64>>,
    /// The highest number that was granted ever.
    last: u64,
    first_used_at: Option<Instant>,
    pub(crate) sent: Sent,
}

impl SendingKey {
    pub(crate) fn new(association: Association) -> Self {
        let aead = match &association.protection {
            Protection::Aead(key) => Some(Aead::new(key)),
            #[cfg(feature = "legacy-insecure")]
            Protection::Legacy(_) => None,
        };
        SendingKey { association, aead, granted: Vec::new(), last: 0, first_used_at: None, sent: Sent::default() }
    }

    fn sequence_max(&self) -> u64 {
        match &self.association.protection {
            Protection::Aead(key) => key.suite().sequence_max(),
            #[cfg(feature = "legacy-insecure")]
            Protection::Legacy(_) => Suite::ChaCha20Poly1305.sequence_max(),
        }
    }

    /// True if fewer than half a block of numbers is left and there are more.
    pub(crate) fn wants_numbers(&self) -> bool {
        let left: u64 = self.granted.iter().map(|range| range.end - range.start).sum();
        self.aead.is_some() && left < BLOCK / 2 && self.last < self.sequence_max()
    }

    pub(crate) fn grant(&mut self, numbers: Range<u64>) -> Result<(), BadGrant> {
        if numbers.start <= self.last {
            return Err(BadGrant::Used { found: numbers.start, last: self.last });
        }
        self.last = self.last.max(numbers.end.saturating_sub(1));
        let numbers = numbers.start..numbers.end.min(self.sequence_max() + 1);
        match self.granted.last_mut() {
            Some(range) if range.end == numbers.start => range.end = numbers.end,
            _ if numbers.is_empty() => {}
            _ => self.granted.push(numbers),
        }
        Ok(())
    }

    /// True if all its numbers were used, by this sender or by one before.
    fn is_used_up(&self) -> bool {
        !self.has_numbers() && self.last >= self.sequence_max()
    }

    pub(crate) fn has_numbers(&self) -> bool {
        self.granted.iter().any(|range| !range.is_empty())
    }

    /// The next number; it is used up from now on.
    pub(crate) fn take_number(&mut self, now: Instant) -> Result<u64, Refused> {
        self.granted.retain(|range| !range.is_empty());
        let is_used_up = self.is_used_up();
        let Some(range) = self.granted.first_mut() else {
            return Err(if is_used_up { Refused::Exhausted } else { Refused::NoNumbers });
        };
        self.first_used_at = self.first_used_at.or(Some(now));
        range.start += 1;
        Ok(range.start - 1)
    }

    /// True if another key should take over (scps-sp §6).
    fn is_due(&self, now: Instant) -> bool {
        let next = self.granted.first().map_or(self.last, |range| range.start);
        next > SOFT_LIMIT || self.first_used_at.is_some_and(|at| now.since(at) >= SOFT_LIFETIME)
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.association.not_after.is_some_and(|end| now > end)
    }

    /// What its packets get when their sender demands `demanded`.
    pub(crate) fn services(&self, demanded: Services) -> Result<Services, Refused> {
        let own = self.association.services;
        // The bound data hold the addresses in any case, so there is no association that could not send them.
        let is_possible = [Services::CONFIDENTIALITY, Services::LABEL, Services::INTEGRITY]
            .into_iter()
            .all(|service| !demanded.has(service) || own.has(service));
        if is_possible {
            Ok(own.with(demanded))
        } else {
            Err(Refused::Service)
        }
    }
}

/// The keys of a direction that leaves this host, in the order in which they take over.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    keys: Vec<SendingKey>,
    current: usize,
}

impl Outbound {
    pub(crate) fn install(&mut self, association: Association) {
        self.keys.push(SendingKey::new(association));
    }

    pub(crate) fn keys(&self) -> &[SendingKey] {
        &self.keys
    }

    pub(crate) fn key_mut(&mut self, key_id: u16) -> Option<&mut SendingKey> {
        self.keys.iter_mut().find(|key| key.association.key_id == key_id)
    }

    /// Place of the key in use. A key whose time is over, or that was replaced before a restart, is passed over.
    pub(crate) fn place(&self, now: Instant) -> Result<usize, Refused> {
        let mut valid = (self.current..self.keys.len()).filter(|i| !self.keys[*i].is_expired(now));
        let first = valid.next().ok_or(Refused::Expired)?;
        let has_numbers = |i: &usize| !self.keys[*i].is_used_up();
        Ok([first].into_iter().chain(valid).find(has_numbers).unwrap_or(first))
    }

    pub(crate) fn key(&self, now: Instant) -> Result<&SendingKey, Refused> {
        self.place(now).map(|place| &self.keys[place])
    }

    pub(crate) fn key_at(&mut self, place: usize) -> &mut SendingKey {
        &mut self.keys[place]
    }

    /// Lets the key at `place` be the one in use, and names those before it that could still be used.
    pub(crate) fn take_over(&mut self, place: usize) -> impl Iterator<Item = KeyName> + '_ {
        let passed = core::mem::replace(&mut self.current, place)..place;
        self.keys[passed].iter().filter(|key| !key.is_used_up()).map(|key| key.association.name())
    }

    /// Place of the next key that could take over from the one in use.
    pub(crate) fn next(&self, now: Instant) -> Option<usize> {
        let from = self.place(now).unwrap_or(self.current) + 1;
        (from..self.keys.len()).find(|i| !self.keys[*i].is_expired(now) && !self.keys[*i].is_used_up())
    }

    /// True if another key should take over from the one in use.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.keys.get(self.current).is_some_and(|key| key.is_due(now))
    }
}
