//! The receiving side of a direction: the keys that may come, and what came under each (scps-sp §6).

use crate::aead::Aead;
use crate::association::{Association, Protection};
use crate::window::ReplayWindow;
use scps_wire::{Duration, Instant};

/// Keys of one direction that are accepted at a time (scps-sp §6).
pub(crate) const LIVE_MAX: usize = 3;
/// How long an old key is accepted beyond two round trips after the first packet under a newer one (scps-sp §6).
const GRACE: Duration = Duration::from_secs(60);

/// A key that packets may come under.
#[derive(Debug)]
pub(crate) struct ReceivingKey {
    pub(crate) association: Association,
    /// `None` for the algorithms of the reference.
    pub(crate) aead: Option<Aead>,
    pub(crate) window: ReplayWindow,
    /// Since a newer key is in use.
    expires_at: Option<Instant>,
    is_used: bool,
}

impl ReceivingKey {
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        let ends = [self.expires_at, self.association.not_after];
        ends.into_iter().flatten().any(|end| now > end)
    }
}

/// The keys of a direction that ends at this host, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    keys: Vec<ReceivingKey>,
}

impl Inbound {
    /// Takes one more key; false if as many are live as may be.
    pub(crate) fn install(&mut self, now: Instant, association: Association) -> bool {
        self.keys.retain(|key| !key.is_expired(now));
        if self.keys.len() >= LIVE_MAX {
            return false;
        }
        let aead = match &association.protection {
            Protection::Aead(key) => Some(Aead::new(key)),
            #[cfg(feature = "legacy-insecure")]
            Protection::Legacy(_) => None,
        };
        let window = ReplayWindow::new(association.window);
        self.keys.push(ReceivingKey { association, aead, window, expires_at: None, is_used: false });
        true
    }

    pub(crate) fn keys(&self) -> &[ReceivingKey] {
        &self.keys
    }

    pub(crate) fn key_mut(&mut self, place: usize) -> &mut ReceivingKey {
        &mut self.keys[place]
    }

    pub(crate) fn key_of(&mut self, key_id: u16) -> Option<&mut ReceivingKey> {
        self.keys.iter_mut().find(|key| key.association.key_id == key_id)
    }

    /// A packet under the key at `place` was genuine: the keys before it are on their way out. `rtt` is the path's.
    pub(crate) fn on_genuine(&mut self, now: Instant, place: usize, rtt: Duration) {
        if core::mem::replace(&mut self.keys[place].is_used, true) {
            return;
        }
        let end = now + rtt * 2 + GRACE;
        for older in &mut self.keys[..place] {
            older.expires_at = older.expires_at.or(Some(end));
        }
    }
}
