//! How a connection opens: what our SYNs offered and the peer's said, and which of them are still due.

use crate::config::Config;
use crate::negotiation;
use scps_wire::options::{Options, Timestamps, MAX_LEN};
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Duration, Instant};

/// The opening of a connection.
#[derive(Debug)]
pub(crate) struct Opening {
    own_options: Options,
    peer_options: Option<Options>,
    /// Our SYNs offer SCPS.
    with_scps: bool,
    /// What our SYNs offered before the fallback to one without capabilities.
    earlier_offer: Option<Options>,
    own_mss: u16,
    /// What the peer's packets with a compressed header have as identifier; 0 for none.
    connection_id: u8,
    syn_due: bool,
    update_due: bool,
    asking: Asking,
    syns_sent: u32,
    /// Of these, those before the peer's SYN came last.
    syns_answered: u32,
    syn_sent_at: Instant,
}

/// Who decides about the peer's SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asking {
    /// It is answered at once.
    Nobody,
    /// The user, and it has not said.
    Held,
    /// The user, and it said yes.
    Answered,
}

impl Opening {
    pub(crate) fn new(with_scps: bool, own_mss: u16, connection_id: u8, now: Instant) -> Self {
        Opening {
            own_options: Options::default(),
            peer_options: None,
            with_scps,
            earlier_offer: None,
            own_mss,
            connection_id,
            syn_due: true,
            update_due: false,
            asking: Asking::Nobody,
            syns_sent: 0,
            syns_answered: 0,
            syn_sent_at: now,
        }
    }

    // What is offered.

    /// True if our SYNs offer SCPS.
    pub(crate) fn offers_scps(&self) -> bool {
        self.with_scps
    }

    /// The identifier that we give our compressed packets.
    pub(crate) fn connection_id(&self) -> u8 {
        self.connection_id
    }

    /// The MSS that our SYN offers.
    pub(crate) fn own_mss(&self) -> u16 {
        self.own_mss
    }

    /// The options of our SYN.
    pub(crate) fn own_options(&self) -> &Options {
        &self.own_options
    }

    /// The options of the peer's SYN.
    pub(crate) fn peer_options(&self) -> Option<Options> {
        self.peer_options
    }

    /// The MSS that the peer's SYN offers.
    pub(crate) fn peer_mss(&self) -> Option<u16> {
        self.peer_options.and_then(|options| options.mss)
    }

    /// Fixes what our SYN offers, or answers to the peer's.
    pub(crate) fn prepare(&mut self, config: &Config, own_mss: u16, is_answer: bool, stamp: Timestamps) {
        self.own_mss = own_mss;
        let answered = if is_answer { self.peer_options } else { None };
        self.own_options =
            negotiation::syn_options(config, self.with_scps, own_mss, self.connection_id, answered.as_ref());
        if self.own_options.capabilities.is_none() && self.earlier_offer.is_none() {
            self.connection_id = 0;
        }
        let may_stamp = answered.is_none_or(|o| o.timestamps.is_some());
        self.own_options.timestamps = (config.timestamps && may_stamp).then_some(stamp);
        if self.own_options.emit_len() > MAX_LEN {
            // They alone have no fixed length, and a connection does without.
            self.own_options.binding_spaces = None;
        }
    }

    /// From now on our SYNs offer no SCPS, for some hosts never answer those that do (scps-tp §1.4). It may be the answers that
    /// get lost: a SYN-ACK to an earlier SYN still holds for what that one offered.
    pub(crate) fn fall_back(&mut self) {
        self.earlier_offer = Some(self.own_options);
        self.with_scps = false;
    }

    /// The peer's SYN came.
    pub(crate) fn on_peer_syn(&mut self, tcp: &Tcp) {
        self.peer_options = Some(tcp.options);
    }

    /// A SYN-ACK with capabilities answers a SYN with capabilities, even if the last one we sent had none: the peer goes by
    /// that one.
    pub(crate) fn settle_offer(&mut self, tcp: &Tcp) {
        let Some(offer) = self.earlier_offer.take() else { return };
        if tcp.flags.has(Flags::ACK) && tcp.options.capabilities.is_some() {
            self.own_options = offer;
            self.with_scps = true;
        } else {
            self.connection_id = 0;
        }
    }

    // What is due.

    /// True if our SYN, or SYN-ACK, is to leave.
    pub(crate) fn is_syn_due(&self) -> bool {
        self.syn_due && self.asking != Asking::Held
    }

    /// The user decides whether the peer's SYN is answered; it is not until then.
    pub(crate) fn hold(&mut self) {
        self.asking = Asking::Held;
    }

    /// The user lets the SYN be answered. False if it was not held.
    pub(crate) fn let_go(&mut self) -> bool {
        let was_held = self.asking == Asking::Held;
        if was_held {
            self.asking = Asking::Answered;
        }
        was_held
    }

    /// True if the user was asked, so that it knows of the connection before it is open.
    pub(crate) fn is_known_to_user(&self) -> bool {
        self.asking != Asking::Nobody
    }

    /// Our SYN is to leave again.
    pub(crate) fn repeat_syn(&mut self) {
        self.syn_due = true;
    }

    /// The peer's SYN came again.
    pub(crate) fn on_peer_syn_again(&mut self) {
        self.syns_answered = self.syns_sent;
        self.repeat_syn();
    }

    /// SYNs that left since the peer's came last.
    pub(crate) fn syns_unheard(&self) -> u32 {
        self.syns_sent - self.syns_answered
    }

    /// No SYN is to leave any more.
    pub(crate) fn end(&mut self) {
        self.syn_due = false;
    }

    /// True, once, if an acknowledgement is to tell the window that the SYN-ACK could not.
    pub(crate) fn take_update_due(&mut self) -> bool {
        std::mem::take(&mut self.update_due)
    }

    /// An acknowledgement is to tell the window, which the SYN-ACK could not.
    pub(crate) fn owe_update(&mut self) {
        self.update_due = self.syns_sent > 0;
    }

    /// SYNs that left.
    pub(crate) fn syns_sent(&self) -> u32 {
        self.syns_sent
    }

    /// Our SYN left. `update_due` asks for an acknowledgement right behind it.
    pub(crate) fn on_syn_sent(&mut self, now: Instant, update_due: bool) {
        self.syn_due = false;
        self.update_due = update_due;
        self.syns_sent += 1;
        self.syn_sent_at = now;
    }

    /// The SYN-ACK left before this connection was made. When, is not known: as after a repeated one, it gives no round trip.
    pub(crate) fn assume_sent(&mut self) {
        self.syn_due = false;
        self.syns_sent = 2;
    }

    /// The round trip of the opening, if it is known which SYN was answered.
    pub(crate) fn round_trip(&self, now: Instant) -> Option<Duration> {
        (self.syns_sent <= 1).then(|| now.since(self.syn_sent_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_wire::SeqNum;

    const STAMP: Timestamps = Timestamps { val: 1, ecr: 2 };

    fn opening() -> Opening {
        let mut opening = Opening::new(true, 1460, 7, Instant::ZERO);
        opening.prepare(&Config { compression: true, ..Config::default() }, 1400, false, STAMP);
        opening
    }

    fn syn_ack(options: Options) -> Tcp {
        let flags = Flags::SYN.with(Flags::ACK);
        let (seq, ack) = (SeqNum(1), SeqNum(2));
        Tcp { src_port: 1, dst_port: 2, seq, ack, flags, window: 0, urgent: 0, options }
    }

    #[test]
    fn a_late_answer_to_an_earlier_offer_still_counts() {
        let mut opening = opening();
        let offered = *opening.own_options();
        assert!(offered.capabilities.is_some() && offered.timestamps == Some(STAMP));
        opening.fall_back();
        opening.prepare(&Config::default(), 1400, false, STAMP);
        assert!(!opening.offers_scps() && opening.own_options().capabilities.is_none());
        opening.settle_offer(&syn_ack(offered));
        assert!(opening.offers_scps() && *opening.own_options() == offered);
        assert_eq!(opening.connection_id(), 7);
    }

    #[test]
    fn an_answer_to_the_plain_offer_ends_compression() {
        let mut opening = opening();
        opening.fall_back();
        opening.prepare(&Config::default(), 1400, false, STAMP);
        opening.settle_offer(&syn_ack(Options::default()));
        assert!(!opening.offers_scps() && opening.connection_id() == 0);
    }

    #[test]
    fn only_the_first_syn_gives_a_round_trip() {
        let mut opening = opening();
        opening.on_syn_sent(Instant::from_secs(1), true);
        assert_eq!(opening.round_trip(Instant::from_secs(3)), Some(Duration::from_secs(2)));
        assert!(opening.take_update_due() && !opening.take_update_due() && !opening.is_syn_due());
        opening.repeat_syn();
        opening.on_syn_sent(Instant::from_secs(4), false);
        assert_eq!((opening.round_trip(Instant::from_secs(5)), opening.syns_sent()), (None, 2));
    }
}
