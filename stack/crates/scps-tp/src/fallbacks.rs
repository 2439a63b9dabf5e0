//! Destinations that ignored SYNs with capabilities, and are spared them for a while (scps-tp §1.4).

use scps_wire::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Destinations that are remembered; further ones are asked anew each time.
const REMEMBERED_MAX: usize = 4096;

/// Those of an endpoint, and until when.
#[derive(Debug, Default)]
pub(crate) struct Fallbacks {
    until: BTreeMap<Ipv4Addr, Instant>,
}

impl Fallbacks {
    /// A destination answered only when it was spared capabilities.
    pub(crate) fn remember(&mut self, now: Instant, dst: Ipv4Addr, until: Instant) {
        self.until.retain(|_, until| now < *until);
        if self.until.len() < REMEMBERED_MAX {
            self.until.insert(dst, until);
        }
    }

    /// True if it is still spared.
    pub(crate) fn spares(&self, now: Instant, dst: Ipv4Addr) -> bool {
        self.until.get(&dst).is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_forgotten_and_the_number_is_bounded() {
        let mut fallbacks = Fallbacks::default();
        let (t, dst) = (Instant::from_secs, Ipv4Addr::from);
        (0..10_000).for_each(|i| fallbacks.remember(t(0), dst(i), t(600)));
        assert_eq!(fallbacks.until.len(), REMEMBERED_MAX);
        assert!(
            fallbacks.spares(t(599), dst(1))
                && !fallbacks.spares(t(600), dst(1))
                && !fallbacks.spares(t(0), dst(9_999))
        );
        fallbacks.remember(t(600), dst(1 << 20), t(1200));
        assert_eq!(fallbacks.until.len(), 1);
    }
}
