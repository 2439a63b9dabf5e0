//! When keys of SP cease to be used, by the system's clock as it is: a host without a clock of its own starts in 1970, and is told the
//! time later.

use scps_sp::{KeyName, Sp};
use scps_wire::{Duration, Instant};

/// How often the clock is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The ends of keys.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    /// Seconds since 1970.
    ends: Vec<(KeyName, u64)>,
    next_look: Instant,
}

impl Expiry {
    pub(crate) fn new(ends: Vec<(KeyName, u64)>) -> Self {
        Expiry { ends, next_look: Instant::ZERO }
    }

    /// True if the clock is to be looked at.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.ends.is_empty() && now >= self.next_look
    }

    /// Tells SP when its keys end. `unix_ns` is what the clock shows now.
    pub(crate) fn apply(&mut self, sp: &mut Sp, now: Instant, unix_ns: u64) {
        self.next_look = now + LOOK_EVERY;
        let elapsed = now.since(Instant::ZERO).as_nanos();
        for (name, end) in &self.ends {
            let end = u128::from(*end) * 1_000_000_000 + elapsed;
            let at = end.saturating_sub(u128::from(unix_ns));
            sp.set_end(*name, Some(Instant::from_nanos(u64::try_from(at).unwrap_or(u64::MAX))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_sp::{AeadKey, Association, Ends, Outgoing, Refused, Services, SpConfig, Suite, Upper};

    #[test]
    fn a_key_ends_by_the_clock_as_it_is_now_not_as_it_was_at_the_start() {
        let name = KeyName { ends: Ends::v4([10, 0, 0, 1], [10, 0, 0, 2]), key_id: 1 };
        let key = AeadKey::derive(Suite::Aes256Gcm, &[7; 32], &name.ends, 1, Services::ALL).unwrap();
        let associations = vec![Association::new(name.ends, 1, key)];
        let config = SpConfig { local: vec![name.ends.src], associations, ..SpConfig::default() };
        let mut sp = Sp::new(config, Instant::ZERO).unwrap();
        let what = Outgoing { ends: name.ends, upper: Upper::Tp, demanded: Services::NONE, pdu_len: 5 };
        let mut expiry = Expiry::new(vec![(name, 1_000_000)]);
        let second = 1_000_000_000;
        let mut refused = |at_s: u64, unix_s: u64| {
            let now = Instant::from_secs(at_s);
            assert!(expiry.is_due(now));
            expiry.apply(&mut sp, now, unix_s * second);
            sp.room(now, what).err()
        };
        // The clock begins in 1970, is set to after the end, and is corrected.
        assert_eq!(refused(5, 5), None);
        assert_eq!(refused(10, 1_000_001), Some(Refused::Expired));
        assert_eq!(refused(20, 999_990), None);
        // Ten seconds later the end has come.
        assert_eq!(refused(31, 1_000_001), Some(Refused::Expired));
        assert!(!Expiry::default().is_due(Instant::from_secs(9)), "without ends nobody looks at the clock");
    }
}
