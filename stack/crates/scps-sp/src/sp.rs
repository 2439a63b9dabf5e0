//! SP of a host's interface: its associations, its policy, and what it does with a packet in either direction.

use crate::aead::{Aead, Bound, Head, HEAD_LEN, TAG_LEN};
use crate::association::{Association, AssociationError, Ends, KeyName, Protection};
use crate::counters::{Counters, Reported};
use crate::element::{self, flag, Parsed};
use crate::receiver::{Inbound, LIVE_MAX};
use crate::sender::{Outbound, SendingKey};
use crate::sent::{Leaving, Recalled};
use crate::{AeadKey, BadGrant, Dropped, Notice, Refused, Room, Services, Upper};
use core::ops::Range;
use scps_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What an interface lets pass (scps-sp §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Mode 0: nothing is protected, and nothing that is protected is understood.
    None,
    /// Mode 1: what has an association is protected; the rest passes without, if downgrades are allowed.
    OnDemand,
    /// Mode 2: everything is protected, or dropped.
    #[default]
    Strict,
}

/// Settings of SP.
#[derive(Clone, Debug, Default)]
pub struct SpConfig {
    /// What passes.
    pub policy: Policy,
    /// This host's addresses: it sends under associations from one of them, and receives under those to one.
    pub local: Vec<IpAddr>,
    /// Consent to packets without protection; [`Policy::OnDemand`] asks for it.
    pub allow_downgrade: bool,
    /// Keys of both directions; of one direction the oldest first. Of those to send under, the next takes over when one is due.
    pub associations: Vec<Association>,
    /// Round trip of the path, for how long an old key is still accepted.
    pub rtt: Duration,
}

/// Why settings are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// An association that makes no sense.
    #[error("{0}: {1}")]
    Association(KeyName, AssociationError),
    /// Two of one name.
    #[error("{0}: found two associations of this name; expected one")]
    Twice(KeyName),
    /// Two directions, ids or uses have one key.
    #[error("{0} and {1}: found the same key; expected different ones")]
    SharedKey(KeyName, KeyName),
    /// More keys than a receiver accepts at a time.
    #[error("{0}: found a fourth key that is live; expected at most three, of which the oldest expires")]
    FourthKey(KeyName),
    /// Neither end is this host.
    #[error("{0}: found no address of this host; expected one at either end")]
    NotOurs(KeyName),
    /// On demand, without consent.
    #[error("policy on-demand: found no consent to packets without protection; expected allow_downgrade true")]
    DowngradeNotAllowed,
}

/// A transport PDU that is to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Between whom.
    pub ends: Ends,
    /// What it is.
    pub upper: Upper,
    /// What its sender demands, beyond what the association gives in any case.
    pub demanded: Services,
    /// Its octets.
    pub pdu_len: usize,
}

/// SP of an interface.
#[derive(Debug)]
pub struct Sp {
    policy: Policy,
    local: Vec<IpAddr>,
    rtt: Duration,
    outbound: BTreeMap<Ends, Outbound>,
    inbound: BTreeMap<Ends, Inbound>,
    counters: Counters,
    told: Reported,
    /// Keys that others took over from, until that is asked for.
    replaced: Vec<KeyName>,
    /// Associated data of packets that are not encrypted; kept for its memory.
    bound: Vec<u8>,
}

impl Sp {
    /// SP with these settings. It sends nothing before it has sequence numbers ([`Sp::grant`]).
    pub fn new(config: SpConfig, now: Instant) -> Result<Self, ConfigError> {
        if config.policy == Policy::OnDemand && !config.allow_downgrade {
            return Err(ConfigError::DowngradeNotAllowed);
        }
        let mut sp = Sp {
            policy: config.policy,
            local: config.local,
            rtt: config.rtt,
            outbound: BTreeMap::new(),
            inbound: BTreeMap::new(),
            counters: Counters::default(),
            told: Reported::new(),
            replaced: Vec::new(),
            bound: Vec::new(),
        };
        config.associations.into_iter().try_for_each(|association| sp.install(now, association))?;
        Ok(sp)
    }

    /// Takes one more key, to send or to receive under as its ends say.
    pub fn install(&mut self, now: Instant, association: Association) -> Result<(), ConfigError> {
        let name = association.name();
        association.check().map_err(|error| ConfigError::Association(name, error))?;
        for (other, key) in self.keys() {
            if other == name {
                return Err(ConfigError::Twice(name));
            }
            if matches!((&association.protection, key), (Protection::Aead(new), Some(old)) if new.is_same(old)) {
                return Err(ConfigError::SharedKey(other, name));
            }
        }
        let [sends, receives] = [name.ends.src, name.ends.dst].map(|end| self.local.contains(&end));
        if !sends && !receives {
            return Err(ConfigError::NotOurs(name));
        }
        if receives && !self.inbound.entry(name.ends).or_default().install(now, association.clone()) {
            return Err(ConfigError::FourthKey(name));
        }
        if sends {
            self.outbound.entry(name.ends).or_default().install(association);
        }
        Ok(())
    }

    /// Every key that is held, for comparison.
    fn keys(&self) -> impl Iterator<Item = (KeyName, Option<&AeadKey>)> {
        let outbound = self.outbound.values().flat_map(Outbound::keys).map(|key| &key.association);
        let inbound = self.inbound.values().flat_map(Inbound::keys).map(|key| &key.association);
        outbound.chain(inbound).map(|association| {
            let key = match &association.protection {
                Protection::Aead(key) => Some(key),
                #[cfg(feature = "legacy-insecure")]
                Protection::Legacy(_) => None,
            };
            (association.name(), key)
        })
    }

    /// What became of packets.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What passes.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Something to log: each kind of trouble once in ten seconds, however often it happens.
    pub fn poll_notice(&mut self, now: Instant) -> Option<Notice> {
        self.told.next(now, &self.counters)
    }

    /// Says anew when a key ceases to be used, for whoever learns that its clock was wrong.
    pub fn set_end(&mut self, name: KeyName, not_after: Option<Instant>) {
        let sending = self.outbound.get_mut(&name.ends).and_then(|outbound| outbound.key_mut(name.key_id));
        let receiving = self.inbound.get_mut(&name.ends).and_then(|inbound| inbound.key_of(name.key_id));
        let keys = [sending.map(|key| &mut key.association), receiving.map(|key| &mut key.association)];
        keys.into_iter().flatten().for_each(|association| association.not_after = not_after);
    }

    // Sequence numbers.

    /// The keys that run short of sequence numbers. Whoever keeps the record reserves a block ([`crate::BLOCK`]) above all that
    /// were ever reserved for one, stores that, and only then calls [`Sp::grant`].
    pub fn wanting(&self) -> impl Iterator<Item = KeyName> + '_ {
        let keys = self.outbound.values().flat_map(Outbound::keys);
        keys.filter(|key| key.wants_numbers()).map(|key| key.association.name())
    }

    /// The first of them.
    pub fn wanted(&self) -> Option<KeyName> {
        self.wanting().next()
    }

    /// True if a key has a number left to use.
    pub fn has_numbers(&self, name: KeyName) -> bool {
        let mut keys = self.outbound.get(&name.ends).map_or(&[][..], Outbound::keys).iter();
        keys.any(|key| key.association.key_id == name.key_id && key.has_numbers())
    }

    /// A key that another one took over from, or that was passed over, since the last call. Whoever keeps the record stores that all of its numbers are
    /// used ([`crate::NUMBERS_END`]) before a packet under the other one leaves: after a restart it would be used again, and
    /// receivers have let it expire.
    pub fn poll_replaced(&mut self) -> Option<KeyName> {
        self.replaced.pop()
    }

    /// Lets a key use these numbers, of which none was used before.
    pub fn grant(&mut self, name: KeyName, numbers: Range<u64>) -> Result<(), BadGrant> {
        let outbound = self.outbound.get_mut(&name.ends).ok_or(BadGrant::Unknown)?;
        outbound.key_mut(name.key_id).ok_or(BadGrant::Unknown)?.grant(numbers)
    }

    /// Lets the next key of a direction that can be used take over; false if there is none.
    pub fn rekey(&mut self, now: Instant, ends: Ends) -> bool {
        let Some(outbound) = self.outbound.get_mut(&ends) else { return false };
        let Some(place) = outbound.next(now) else { return false };
        self.replaced.extend(outbound.take_over(place));
        true
    }

    // Sending.

    /// The most octets around a transport PDU of these ends, under any of the keys that may be in use.
    pub fn room_max(&self, ends: Ends, demanded: Services) -> usize {
        let keys = self.outbound.get(&ends).filter(|_| self.policy != Policy::None).map_or(&[][..], Outbound::keys);
        let room = |key: &SendingKey| {
            let association = &key.association;
            let pad = match &association.protection {
                Protection::Aead(_) => usize::from(association.pad_to.unwrap_or(1)) - 1,
                #[cfg(feature = "legacy-insecure")]
                Protection::Legacy(algorithms) => algorithms.block_size() - 1,
            };
            let services = association.services.with(demanded);
            let elements = element::Elements { pad: 0, ..association.elements(services, 0) };
            frame_room(key, services).len() + elements.len() + pad
        };
        keys.iter().map(room).max().unwrap_or(0)
    }

    /// Octets around a transport PDU of `pdu_len` octets; none if it goes without protection.
    pub fn room(&self, now: Instant, what: Outgoing) -> Result<Room, Refused> {
        let Outgoing { ends, demanded, pdu_len, .. } = what;
        let Some(outbound) = self.outbound.get(&ends).filter(|_| self.policy != Policy::None) else {
            return self.without_association(demanded).map(|()| Room::default());
        };
        let key = outbound.key(now)?;
        let services = key.services(demanded)?;
        let Room { head, tail } = frame_room(key, services);
        Ok(Room { head: head + key.association.elements(services, pdu_len).len(), tail })
    }

    /// Whether a packet may leave without an association.
    fn without_association(&self, demanded: Services) -> Result<(), Refused> {
        match self.policy {
            Policy::Strict => Err(Refused::NoAssociation),
            Policy::None | Policy::OnDemand if demanded == Services::NONE => Ok(()),
            Policy::None | Policy::OnDemand => Err(Refused::Service),
        }
    }

    /// Protects the transport PDU of `pdu_len` octets in `packet`, which has the [`Room`] around it that [`Sp::room`] asked for
    /// at the same `now`. False if it is to go as it is. A refusal is counted, and `packet` must not leave.
    pub fn seal(&mut self, now: Instant, what: Outgoing, packet: &mut [u8]) -> Result<bool, Refused> {
        let sealed = self.try_seal(now, what, packet);
        match sealed {
            Ok(true) => self.counters.sealed += 1,
            Ok(false) => self.counters.downgraded_out += u64::from(self.policy == Policy::OnDemand),
            Err(reason) => self.counters.count_refused(reason),
        }
        sealed
    }

    /// Counts a refusal of [`Sp::room`], after which nothing is sealed.
    pub fn count_refused(&mut self, reason: Refused) {
        self.counters.count_refused(reason);
    }

    fn try_seal(&mut self, now: Instant, what: Outgoing, packet: &mut [u8]) -> Result<bool, Refused> {
        let Outgoing { ends, upper, demanded, pdu_len } = what;
        let policy = self.policy;
        let Some(outbound) = self.outbound.get_mut(&ends).filter(|_| policy != Policy::None) else {
            return self.without_association(demanded).map(|()| false);
        };
        let place = outbound.place(now)?;
        let key = outbound.key_at(place);
        let services = key.services(demanded)?;
        let frame = frame_room(key, services);
        let elements = key.association.elements(services, pdu_len);
        if packet.len() != frame.len() + elements.len() + pdu_len {
            // The room was that of another key, which has expired since.
            return Err(Refused::Expired);
        }
        let pdu_at = frame.head + elements.len();
        elements.emit(&mut packet[frame.head..pdu_at]);
        let clear = key.association.clear_header.emit(upper, services);
        match &key.association.protection {
            Protection::Aead(_) => {
                let head = Head { clear, key_id: key.association.key_id, sequence: key.take_number(now)? };
                let Some(aead) = &key.aead else { return Err(Refused::NoNumbers) };
                let is_encrypting = services.has(Services::CONFIDENTIALITY);
                let leaving = Leaving::new(&head, upper, packet, pdu_at, is_encrypting);
                seal_aead(aead, &head, &ends, is_encrypting, packet, &mut self.bound).ok_or(Refused::Exhausted)?;
                if let Some(leaving) = leaving {
                    key.sent.note(leaving, packet);
                }
            }
            #[cfg(feature = "legacy-insecure")]
            Protection::Legacy(algorithms) => {
                packet[0] = clear;
                algorithms.seal(services, packet);
            }
        }
        // What was passed over because its time is over is given up as well: the clock may be another after a restart.
        self.replaced.extend(outbound.take_over(place));
        if outbound.is_due(now) && !self.rekey(now, ends) {
            self.counters.rekey_due += 1;
        }
        Ok(true)
    }

    /// The transport PDU of a packet that left between `ends` lately and that `quote` is the beginning of, as a report has it.
    pub fn recall(&self, ends: Ends, quote: &[u8]) -> Option<Recalled> {
        let (head, _) = Head::parse(quote)?;
        let mut keys = self.outbound.get(&ends)?.keys().iter();
        keys.find(|key| key.association.key_id == head.key_id)?.sent.recall(&head, quote)
    }

    /// True if nothing leaves between `ends` without protection.
    pub fn protects(&self, ends: Ends) -> bool {
        self.policy == Policy::Strict || (self.policy == Policy::OnDemand && self.outbound.contains_key(&ends))
    }

    // Receiving.

    /// Verifies what came in a packet of SP and appends it to `out`, which is cleared first. The answer is what the transport
    /// PDU is, and where in `out`.
    pub fn open(
        &mut self,
        now: Instant,
        ends: Ends,
        octets: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(Upper, Range<usize>), Dropped> {
        out.clear();
        let opened = self.try_open(now, ends, octets, out);
        match opened {
            Ok(_) => self.counters.opened += 1,
            Err(reason) => {
                out.clear();
                self.counters.count_dropped(reason);
            }
        }
        opened
    }

    fn try_open(
        &mut self,
        now: Instant,
        ends: Ends,
        octets: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(Upper, Range<usize>), Dropped> {
        let policy = self.policy;
        let inbound = self.inbound.get_mut(&ends).filter(|_| policy != Policy::None).ok_or(Dropped::NoAssociation)?;
        #[cfg(feature = "legacy-insecure")]
        if let Some(key) = inbound.keys().iter().find(|key| key.aead.is_none()) {
            return crate::legacy::open(&key.association, ends, octets, out);
        }
        let (head, rest) = Head::parse(octets).ok_or(Dropped::Short)?;
        let (text, tag) =
            rest.split_last_chunk::<TAG_LEN>().filter(|(text, _)| !text.is_empty()).ok_or(Dropped::Short)?;
        let place = inbound.keys().iter().position(|key| key.association.key_id == head.key_id);
        let place = place.ok_or(Dropped::UnknownKey)?;
        let key = inbound.key_mut(place);
        if key.is_expired(now) {
            return Err(Dropped::ExpiredKey);
        }
        if head.sequence == 0 {
            // No sender numbers a packet so.
            return Err(Dropped::Authentication);
        }
        key.window.check(head.sequence)?;
        let Some(aead) = &key.aead else { return Err(Dropped::UnknownKey) };
        let is_encrypted = key.association.services.has(Services::CONFIDENTIALITY);
        out.extend_from_slice(text);
        let bound = Bound::new(&head, &ends);
        let is_genuine = if is_encrypted {
            aead.open(head.sequence, bound.as_slice(), out, tag)
        } else {
            join(&mut self.bound, &bound, text);
            aead.open(head.sequence, &self.bound, &mut [], tag)
        };
        if !is_genuine {
            return Err(Dropped::Authentication);
        }
        key.window.commit(head.sequence);
        inbound.on_genuine(now, place, self.rtt);
        let association = &inbound.keys()[place].association;
        let upper = association.clear_header.parse(head.clear).ok_or(Dropped::ClearHeader)?;
        let parsed = element::parse(out, ends.address_len(), 255)?;
        judge(association, ends, &parsed, out)?;
        Ok((upper, parsed.pdu))
    }

    /// Whether a transport PDU that came without SP is taken.
    pub fn admit_clear(&mut self, ends: Ends) -> Result<(), Dropped> {
        let has_association = self.inbound.get(&ends).is_some_and(|inbound| !inbound.keys().is_empty());
        match self.policy {
            Policy::None => Ok(()),
            Policy::OnDemand if !has_association => {
                self.counters.downgraded_in += 1;
                Ok(())
            }
            Policy::OnDemand | Policy::Strict => {
                self.counters.count_dropped(Dropped::Policy);
                Err(Dropped::Policy)
            }
        }
    }

    /// Octets of memory that grow with traffic.
    pub fn allocated(&self) -> usize {
        self.bound.capacity()
    }
}

/// Whether a genuine packet has what its association demands. `part` is its protected part.
pub(crate) fn judge(association: &Association, ends: Ends, parsed: &Parsed, part: &[u8]) -> Result<(), Dropped> {
    let demanded = association.services;
    let lacks = |service, flag| demanded.has(service) && !parsed.has(flag);
    if lacks(Services::INTEGRITY, flag::ICV)
        || lacks(Services::AUTHENTICATION, flag::ADDRESSES)
        || lacks(Services::LABEL, flag::LABEL)
    {
        return Err(Dropped::Policy);
    }
    if parsed.label.as_ref().is_some_and(|range| part[range.clone()] != association.label[..]) {
        return Err(Dropped::Label);
    }
    let (src, dst) = (ends.src_octets(), ends.dst_octets());
    let expected = src.as_slice().iter().chain(dst.as_slice());
    if parsed.addresses.as_ref().is_some_and(|range| !part[range.clone()].iter().eq(expected)) {
        return Err(Dropped::Addresses);
    }
    Ok(())
}

/// Octets before and behind the protected part.
fn frame_room(key: &SendingKey, services: Services) -> Room {
    match &key.association.protection {
        Protection::Aead(_) => {
            // The tag is there whatever the services.
            debug_assert!(services.has(Services::INTEGRITY));
            Room { head: HEAD_LEN, tail: TAG_LEN }
        }
        #[cfg(feature = "legacy-insecure")]
        Protection::Legacy(_) => {
            let has_icv = services.has(Services::INTEGRITY);
            Room { head: 1, tail: if has_icv { crate::legacy::ICV_LEN } else { 0 } }
        }
    }
}

/// Writes head and tag around the protected part, which is encrypted or not.
fn seal_aead(
    aead: &Aead,
    head: &Head,
    ends: &Ends,
    is_encrypting: bool,
    packet: &mut [u8],
    joined: &mut Vec<u8>,
) -> Option<()> {
    let bound = Bound::new(head, ends);
    let (front, rest) = packet.split_at_mut(HEAD_LEN);
    let (text, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
    front.copy_from_slice(&head.emit());
    let sealed = if is_encrypting {
        aead.seal(head.sequence, bound.as_slice(), text)
    } else {
        join(joined, &bound, text);
        aead.seal(head.sequence, joined, &mut [])
    };
    tag.copy_from_slice(&sealed?);
    Some(())
}

/// Bound data of a packet whose protected part is only authenticated.
fn join(out: &mut Vec<u8>, bound: &Bound, text: &[u8]) {
    out.clear();
    out.extend_from_slice(bound.as_slice());
    out.extend_from_slice(text);
}

impl From<crate::Unacceptable> for Dropped {
    fn from(number: crate::Unacceptable) -> Self {
        match number {
            crate::Unacceptable::Replay => Dropped::Replay,
            crate::Unacceptable::TooOld => Dropped::TooOld,
        }
    }
}

const _: () = assert!(LIVE_MAX == 3, "the text of FourthKey says so");
