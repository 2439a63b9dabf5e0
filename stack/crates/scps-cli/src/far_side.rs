//! Whether the far side of a gateway is heard, told on standard error when that changes.
//!
//! It is seen from what goes on anyway: nothing is sent to find out, and the gateway never wakes for it. A far side that nobody asks
//! for anything may be quiet without being silent.

use crate::operator::{Level, Operator};
use scps_gateway::Side;
use scps_io::GatewayLoop;
use scps_wire::{Duration, Instant};

/// Counts of what is asked again are taken no more often, for they cost a walk over all connections.
const LOOK: Duration = Duration::from_secs(1);
/// A far side that leaves repeated questions unanswered for so long, or for three round trips, is silent.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of the far side.
pub struct FarSide {
    name: String,
    patience: Duration,
    began_at: Instant,
    received: u64,
    heard_at: Option<Instant>,
    is_silent: bool,
    look_at: Instant,
    asked_again: u64,
    /// When something was asked again first since the far side was heard.
    waits_since: Option<Instant>,
}

impl FarSide {
    /// The far side by its name, which nobody has heard yet.
    pub fn new(name: String, round_trip: Option<Duration>, now: Instant) -> Self {
        let patience = round_trip.map_or(PATIENCE, |rtt| PATIENCE.max(rtt * 3));
        FarSide {
            name,
            patience,
            began_at: now,
            received: 0,
            heard_at: None,
            is_silent: false,
            look_at: now,
            asked_again: 0,
            waits_since: None,
        }
    }

    /// False while it is silent, or was never heard.
    pub fn is_up(&self) -> bool {
        self.heard_at.is_some() && !self.is_silent
    }

    /// Looks what has come, after each turn of the loop.
    pub fn follow(&mut self, gateway: &GatewayLoop, operator: &Operator) {
        let (now, received) = (gateway.now(), gateway.device_stats(Side::Wan).received);
        if received > self.received {
            self.received = received;
            self.hear(now, operator);
        } else if now >= self.look_at && !self.is_silent {
            self.look_at = now + LOOK;
            self.look(now, gateway.gateway().endpoint(Side::Wan).asked_again(), operator);
        }
    }

    fn hear(&mut self, now: Instant, operator: &Operator) {
        let silence = now.since(self.heard_at.unwrap_or(self.began_at)).as_secs_f64();
        match self.heard_at {
            None => self.tell(operator, Level::Info, "up"),
            Some(_) if self.is_silent => self.tell(operator, Level::Info, &format!("back after {silence:.1} s")),
            Some(_) => {}
        }
        (self.heard_at, self.is_silent, self.waits_since) = (Some(now), false, None);
    }

    fn look(&mut self, now: Instant, asked_again: u64, operator: &Operator) {
        let is_asking = asked_again > self.asked_again;
        self.asked_again = asked_again;
        if !is_asking || now.since(*self.waits_since.get_or_insert(now)) < self.patience {
            return;
        }
        self.is_silent = true;
        let (since, from) = match self.heard_at {
            Some(at) => (at, ""),
            None => (self.began_at, ", since the gateway started"),
        };
        let silence = now.since(since).as_secs_f64();
        let state =
            format!("silent; nothing was heard for {silence:.1} s{from}, and what is sent again is not answered");
        self.tell(operator, Level::Warn, &state);
    }

    fn tell(&self, operator: &Operator, level: Level, state: &str) {
        operator.tell(level, format_args!("far side ({}): {state}.", self.name));
    }
}
