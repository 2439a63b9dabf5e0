//! Who a session is of, and how long that may take (scps-fp §1.3).

use super::guard::FAILURES_PER_SESSION;
use super::Shared;
use crate::store::Store;
use crate::users::User;
use scps_wire::{Duration, Instant};
use std::net::IpAddr;
use std::rc::Rc;

/// A login, begun, done or refused.
#[derive(Debug)]
pub(super) struct Login {
    pub name: Option<String>,
    pub user: Option<User>,
    pub store: Option<Rc<Store>>,
    failures: u32,
    started_at: Instant,
    /// Failed logins hold the session.
    held_until: Option<Instant>,
    /// The end of the last hold: time spent waiting for the guesses of others is nobody's fault.
    held_for: Instant,
}

impl Login {
    pub fn new(now: Instant) -> Login {
        let (name, user, store) = (None, None, None);
        Login { name, user, store, failures: 0, started_at: now, held_until: None, held_for: now }
    }

    pub fn is_done(&self) -> bool {
        self.user.is_some()
    }

    /// Takes a name. Whoever was logged in is so no longer, and has as long for it as a newcomer.
    pub fn begin(&mut self, name: String, now: Instant) {
        if self.is_done() {
            self.started_at = now;
        }
        (self.user, self.store, self.name) = (None, None, Some(name));
    }

    /// Gives the session a user's root and rights; false if there is no such folder.
    pub fn enter(&mut self, user: User, shared: &Shared) -> bool {
        let quota = user.quota.map(|limit| shared.quota_of(&user.root, limit));
        let Ok(store) = Store::open(&user.root, quota) else { return false };
        (self.store, self.user, self.failures) = (Some(Rc::new(store)), Some(user), 0);
        true
    }

    /// Notes a wrong password, and makes the next guess wait; false if it was one too many.
    pub fn refuse(&mut self, from: IpAddr, now: Instant, shared: &mut Shared) -> bool {
        self.failures += 1;
        let delay = shared.guard.failed(from, now);
        let may_guess = self.failures < FAILURES_PER_SESSION;
        if may_guess {
            self.hold(now, delay);
        }
        may_guess
    }

    /// Makes everything wait.
    pub fn hold(&mut self, now: Instant, delay: Duration) {
        self.held_until = Some(now + delay);
        self.held_for = now + delay;
    }

    /// True while everything waits.
    pub fn is_held(&mut self, now: Instant) -> bool {
        self.held_until = self.held_until.filter(|end| *end > now);
        self.held_until.is_some()
    }

    /// The end of a hold.
    pub fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    /// When patience for a login ends.
    pub fn deadline(&self, patience: Duration) -> Option<Instant> {
        (!self.is_done()).then_some(self.started_at.max(self.held_for) + patience)
    }
}
