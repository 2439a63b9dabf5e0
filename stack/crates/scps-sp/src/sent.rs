//! What left lately under a key, so that a report which quotes a protected packet finds the segment in it.
//!
//! A quote is not authenticated, and key id and sequence number are no secret: they count up from one. What a quote must show
//! besides is eight octets that only those know who saw the packet: of the encrypted text, or, where nothing is encrypted, of
//! the transport PDU. Whoever sees the packets can forge reports, as without SP.

use crate::aead::{Head, HEAD_LEN};
use crate::Upper;

/// Packets that are remembered under a key: as many as a replay window spans by default.
const SENT_MAX: usize = 1024;
/// Octets of a transport PDU that every report quotes (RFC 792), and of what a quote must show.
const SHOWN: usize = 8;

/// The beginning of a transport PDU that a quoted packet protects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recalled {
    /// What it is.
    pub upper: Upper,
    /// Its first octets; in one of TP, both ports and the sequence number.
    pub begin: [u8; SHOWN],
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sequence: u64,
    recalled: Recalled,
    /// Octets of the packet from `shown_at` on, as they left.
    shown: [u8; SHOWN],
    shown_at: u16,
}

/// A packet that is about to be sealed: its transport PDU is not encrypted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    sequence: u64,
    recalled: Recalled,
    shown_at: u16,
}

impl Leaving {
    /// `packet` without head and tag, the transport PDU `pdu_at` octets in. `None` if it is too short to be recognised.
    pub(crate) fn new(head: &Head, upper: Upper, packet: &[u8], pdu_at: usize, is_encrypting: bool) -> Option<Self> {
        let begin = *packet.get(pdu_at..)?.first_chunk()?;
        let shown_at = u16::try_from(if is_encrypting { HEAD_LEN } else { pdu_at }).ok()?;
        Some(Leaving { sequence: head.sequence, recalled: Recalled { upper, begin }, shown_at })
    }
}

/// The packets that left last under a key, each at the place that its number gives it.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    packets: Box<[Option<Packet>]>,
}

impl Sent {
    /// The packet has been sealed and leaves as it is now.
    pub(crate) fn note(&mut self, leaving: Leaving, packet: &[u8]) {
        let Leaving { sequence, recalled, shown_at } = leaving;
        let Some(shown) = packet.get(usize::from(shown_at)..).and_then(|rest| rest.first_chunk()) else { return };
        if self.packets.is_empty() {
            self.packets = vec![None; SENT_MAX].into();
        }
        self.packets[place(sequence)] = Some(Packet { sequence, recalled, shown: *shown, shown_at });
    }

    /// The packet that `quote` is the beginning of.
    pub(crate) fn recall(&self, head: &Head, quote: &[u8]) -> Option<Recalled> {
        let packet = self.packets.get(place(head.sequence))?.as_ref()?;
        let shown = quote.get(usize::from(packet.shown_at)..)?.get(..SHOWN)?;
        (packet.sequence == head.sequence && shown == packet.shown).then_some(packet.recalled)
    }
}

const fn place(sequence: u64) -> usize {
    (sequence % SENT_MAX as u64) as usize
}
