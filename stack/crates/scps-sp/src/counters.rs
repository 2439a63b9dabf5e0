//! What became of packets, and what deserves a line in a log.

use scps_wire::{Duration, Instant};

scps_wire::named! {
    /// Why a received packet was dropped. Nobody is told but the counter of the reason.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
    pub enum Dropped {
        /// Shorter than its headers, its elements or its tag.
        #[error("truncated")]
        Short = "short",
        /// A clear header that names no transport.
        #[error("unknown transport")]
        ClearHeader = "clear_header",
        /// No association for its ends.
        #[error("no security association")]
        NoAssociation = "no_association",
        /// No key of that id for its ends.
        #[error("unknown key id")]
        UnknownKey = "unknown_key",
        /// A key whose time is over.
        #[error("expired key")]
        ExpiredKey = "expired_key",
        /// It came before.
        #[error("replayed")]
        Replay = "replay",
        /// Its number lies before the replay window.
        #[error("too old for the replay window")]
        TooOld = "too_old",
        /// The tag or check value does not verify.
        #[error("not authentic")]
        Authentication = "auth_fail",
        /// Flags that nobody defined.
        #[error("reserved flags")]
        ReservedFlags = "reserved_flags",
        /// Without a service that is demanded, or without any.
        #[error("less protection than the policy demands")]
        Policy = "policy_fail",
        /// Another label than the association's.
        #[error("wrong label")]
        Label = "label_fail",
        /// Addresses in the protected part that are not the packet's.
        #[error("wrong addresses")]
        Addresses = "address_fail",
        /// Padding that is none.
        #[error("bad padding")]
        Padding = "padding_fail",
    }
}

scps_wire::named! {
    /// Why a packet is not sent.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
    pub enum Refused {
        /// No association for its ends, and the policy demands one.
        #[error("no security association for these addresses")]
        NoAssociation = "no_association",
        /// Its sender demands a service that the association does not have.
        #[error("the security association lacks a service that was asked for")]
        Service = "service",
        /// Which sequence numbers are used up is not known.
        #[error("no sequence numbers reserved for the key")]
        NoNumbers = "no_numbers",
        /// Every number that the key may be used for is used up.
        #[error("the key is used up; install a new one")]
        Exhausted = "exhausted",
        /// Every key for its ends is past its time.
        #[error("the key has expired; install a new one")]
        Expired = "expired",
    }
}

/// What deserves a line in a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Trouble {
    /// Packets were dropped.
    #[error("received packets dropped: {0}")]
    Dropped(Dropped),
    /// Packets were not sent.
    #[error("packets not sent: {0}")]
    Refused(Refused),
    /// Packets were sent or taken without protection, as the policy allows.
    #[error("packets without protection, as allow_downgrade permits")]
    Downgraded,
    /// A key should be replaced and no other is there.
    #[error("packets sent under a key that is due to be replaced")]
    RekeyDue,
}

/// Something that happened since it was told last, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// What.
    pub trouble: Trouble,
    /// How often.
    pub count: u64,
}

/// What became of packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Protected and sent.
    pub sealed: u64,
    /// Verified and delivered.
    pub opened: u64,
    /// Sent without protection because there is no association.
    pub downgraded_out: u64,
    /// Taken without protection because there is no association.
    pub downgraded_in: u64,
    /// Sent under a key that is due to be replaced, with no other to replace it.
    pub rekey_due: u64,
    dropped: [u64; Dropped::ALL.len()],
    refused: [u64; Refused::ALL.len()],
}

impl Counters {
    /// Packets dropped for a reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.dropped[reason as usize]
    }

    /// Packets not sent for a reason.
    pub fn refused(&self, reason: Refused) -> u64 {
        self.refused[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(crate) fn count_dropped(&mut self, reason: Dropped) {
        self.dropped[reason as usize] += 1;
    }

    pub(crate) fn count_refused(&mut self, reason: Refused) {
        self.refused[reason as usize] += 1;
    }

    fn of(&self, trouble: Trouble) -> u64 {
        match trouble {
            Trouble::Dropped(reason) => self.dropped(reason),
            Trouble::Refused(reason) => self.refused(reason),
            Trouble::Downgraded => self.downgraded_in + self.downgraded_out,
            Trouble::RekeyDue => self.rekey_due,
        }
    }
}

const TROUBLES: usize = Dropped::ALL.len() + Refused::ALL.len() + 2;
/// How long a trouble is not told again. Whoever floods a host with forged packets does not fill its disk.
const SILENCE: Duration = Duration::from_secs(10);

/// What was told, and when.
#[derive(Debug)]
pub(crate) struct Reported {
    troubles: [(Trouble, u64, Option<Instant>); TROUBLES],
}

impl Reported {
    pub(crate) fn new() -> Self {
        let mut troubles = [(Trouble::Downgraded, 0, None); TROUBLES];
        let dropped = Dropped::ALL.into_iter().map(Trouble::Dropped);
        let refused = Refused::ALL.into_iter().map(Trouble::Refused);
        let all = dropped.chain(refused).chain([Trouble::Downgraded, Trouble::RekeyDue]);
        troubles.iter_mut().zip(all).for_each(|(slot, trouble)| slot.0 = trouble);
        Reported { troubles }
    }

    pub(crate) fn next(&mut self, now: Instant, counters: &Counters) -> Option<Notice> {
        self.troubles.iter_mut().find_map(|(trouble, told, at)| {
            let count = counters.of(*trouble) - *told;
            let is_quiet = at.is_some_and(|at| now < at + SILENCE);
            if count == 0 || is_quiet {
                return None;
            }
            (*told, *at) = (*told + count, Some(now));
            Some(Notice { trouble: *trouble, count })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_counter_of_its_own() {
        let mut counters = Counters::default();
        for (i, reason) in Dropped::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, i);
            (0..=i).for_each(|_| counters.count_dropped(reason));
        }
        for (i, reason) in Refused::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, i);
            (0..=i).for_each(|_| counters.count_refused(reason));
        }
        for (i, reason) in Dropped::ALL.into_iter().enumerate() {
            assert_eq!(counters.dropped(reason), i as u64 + 1);
        }
        for (i, reason) in Refused::ALL.into_iter().enumerate() {
            assert_eq!(counters.refused(reason), i as u64 + 1);
        }
    }

    #[test]
    fn a_trouble_is_told_once_in_ten_seconds() {
        let (mut counters, mut told) = (Counters::default(), Reported::new());
        let mut lines = Vec::new();
        // A million packets in a second of three kinds of trouble, over half a minute.
        for ms in 0..30_000 {
            for reason in [Dropped::Authentication, Dropped::Replay, Dropped::UnknownKey] {
                (0..11).for_each(|_| counters.count_dropped(reason));
            }
            while let Some(notice) = told.next(Instant::from_millis(ms), &counters) {
                lines.push(notice);
            }
        }
        assert_eq!(lines.len(), 9, "{lines:?}");
        let told: u64 = lines.iter().map(|notice| notice.count).sum();
        assert_eq!(told, 3 * 11 * 20_001);
    }
}
