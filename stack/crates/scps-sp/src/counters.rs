//! What became of packets, and what deserves a line in a log.

use scps_types::{Duration, Instant};

/// Why a received packet was dropped. Nobody is told but the counter of the reason.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Dropped {
    /// Shorter than its headers, its elements or its tag.
    #[error("truncated")]
    Short,
    /// A clear header that names no transport.
    #[error("unknown transport")]
    ClearHeader,
    /// No association for its ends.
    #[error("no security association")]
    NoAssociation,
    /// No key of that id for its ends.
    #[error("unknown key id")]
    UnknownKey,
    /// A key whose time is over.
    #[error("expired key")]
    ExpiredKey,
    /// It came before.
    #[error("replayed")]
    Replay,
    /// Its number lies before the replay window.
    #[error("too old for the replay window")]
    TooOld,
    /// The tag or check value does not verify.
    #[error("not authentic")]
    Authentication,
    /// Flags that nobody defined.
    #[error("reserved flags")]
    ReservedFlags,
    /// Without a service that is demanded, or without any.
    #[error("less protection than the policy demands")]
    Policy,
    /// Another label than the association's.
    #[error("wrong label")]
    Label,
    /// Addresses in the protected part that are not the packet's.
    #[error("wrong addresses")]
    Addresses,
    /// Padding that is none.
    #[error("bad padding")]
    Padding,
}

impl Dropped {
    /// Each reason, and its name in records.
    pub const NAMES: [(Dropped, &'static str); 13] = [
        (Dropped::Short, "short"),
        (Dropped::ClearHeader, "clear_header"),
        (Dropped::NoAssociation, "no_association"),
        (Dropped::UnknownKey, "unknown_key"),
        (Dropped::ExpiredKey, "expired_key"),
        (Dropped::Replay, "replay"),
        (Dropped::TooOld, "too_old"),
        (Dropped::Authentication, "auth_fail"),
        (Dropped::ReservedFlags, "reserved_flags"),
        (Dropped::Policy, "policy_fail"),
        (Dropped::Label, "label_fail"),
        (Dropped::Addresses, "address_fail"),
        (Dropped::Padding, "padding_fail"),
    ];
}

/// Why a packet is not sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Refused {
    /// No association for its ends, and the policy demands one.
    #[error("no security association for these addresses")]
    NoAssociation,
    /// Its sender demands a service that the association does not have.
    #[error("the security association lacks a service that was asked for")]
    Service,
    /// Which sequence numbers are used up is not known.
    #[error("no sequence numbers reserved for the key")]
    NoNumbers,
    /// Every number that the key may be used for is used up.
    #[error("the key is used up; install a new one")]
    Exhausted,
    /// Every key for its ends is past its time.
    #[error("the key has expired; install a new one")]
    Expired,
}

impl Refused {
    /// Each reason, and its name in records.
    pub const NAMES: [(Refused, &'static str); 5] = [
        (Refused::NoAssociation, "no_association"),
        (Refused::Service, "service"),
        (Refused::NoNumbers, "no_numbers"),
        (Refused::Exhausted, "exhausted"),
        (Refused::Expired, "expired"),
    ];
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
    dropped: [u64; Dropped::NAMES.len()],
    refused: [u64; Refused::NAMES.len()],
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

const TROUBLES: usize = Dropped::NAMES.len() + Refused::NAMES.len() + 2;
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
        let dropped = Dropped::NAMES.iter().map(|(reason, _)| Trouble::Dropped(*reason));
        let refused = Refused::NAMES.iter().map(|(reason, _)| Trouble::Refused(*reason));
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
        for (i, (reason, name)) in Dropped::NAMES.iter().enumerate() {
            assert_eq!(*reason as usize, i, "{name}");
            (0..=i).for_each(|_| counters.count_dropped(*reason));
        }
        for (i, (reason, name)) in Refused::NAMES.iter().enumerate() {
            assert_eq!(*reason as usize, i, "{name}");
            (0..=i).for_each(|_| counters.count_refused(*reason));
        }
        for (i, (reason, _)) in Dropped::NAMES.iter().enumerate() {
            assert_eq!(counters.dropped(*reason), i as u64 + 1);
        }
        for (i, (reason, _)) in Refused::NAMES.iter().enumerate() {
            assert_eq!(counters.refused(*reason), i as u64 + 1);
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
