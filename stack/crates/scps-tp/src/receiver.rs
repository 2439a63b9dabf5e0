//! What a connection receives: positions, the data in and out of order, the peer's FIN, and what it was told of all that.

use crate::reassembly::Reassembly;
use scps_wire::SeqNum;

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The peer's initial sequence number, position 0.
    start: SeqNum,
    data: Reassembly,
    fin: Option<u64>,
    is_fin_received: bool,
    /// The right edge of the window, as the peer was told.
    edge: u64,
    acknowledged: u64,
    /// What came twice, for the D-SACK block (RFC 2883 §4).
    duplicate: Option<(u64, u64)>,
    is_readable_signalled: bool,
}

impl Receiver {
    pub(crate) fn new(data: Reassembly) -> Self {
        Receiver {
            start: SeqNum(0),
            data,
            fin: None,
            is_fin_received: false,
            edge: 0,
            acknowledged: 0,
            duplicate: None,
            is_readable_signalled: false,
        }
    }

    /// The peer's SYN came.
    pub(crate) fn begin(&mut self, start: SeqNum) {
        self.start = start;
        self.edge = self.edge.max(1);
    }

    // Positions.

    /// The peer's initial sequence number.
    pub(crate) fn start(&self) -> SeqNum {
        self.start
    }

    /// Next position expected, FIN included.
    pub(crate) fn next(&self) -> u64 {
        self.data.next() + u64::from(self.is_fin_received)
    }

    /// The wire form of a position.
    pub(crate) fn seq(&self, position: u64) -> SeqNum {
        self.start + position as u32
    }

    /// The position of a sequence number near the next one; negative before the first.
    pub(crate) fn position(&self, seq: SeqNum) -> i64 {
        let base = self.next();
        base as i64 + i64::from(seq.0.wrapping_sub(self.seq(base).0) as i32)
    }

    /// The right edge of the window that the peer may use.
    pub(crate) fn edge(&self) -> u64 {
        self.edge.max(self.next())
    }

    /// The last position that an acknowledgement told.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// An acknowledgement left that told a window up to `edge`; true if it is the first of what it acknowledges, SYN aside.
    pub(crate) fn on_ack_left(&mut self, edge: u64) -> bool {
        // The right edge never moves left: what was promised is promised.
        self.edge = self.edge.max(edge);
        let is_first = self.next() > self.acknowledged.max(1);
        self.acknowledged = self.next();
        is_first
    }

    /// A SYN-ACK with this window left before the connection was made.
    pub(crate) fn assume_acknowledged(&mut self, edge: u64) {
        self.edge = edge;
        self.acknowledged = self.next();
    }

    // Data.

    /// The data, in order or not.
    pub(crate) fn data(&self) -> &Reassembly {
        &self.data
    }

    /// The data, in order or not.
    pub(crate) fn data_mut(&mut self) -> &mut Reassembly {
        &mut self.data
    }

    /// Data from `position` on, `len` octets, came and had come before.
    pub(crate) fn note_duplicate(&mut self, position: i64, len: i64) {
        if position >= 1 {
            let end = ((position + len) as u64).min(self.data.limit_edge());
            self.duplicate = (end > position as u64).then_some((position as u64, end));
        }
    }

    /// What came twice since the last acknowledgement.
    pub(crate) fn duplicate(&self) -> Option<(u64, u64)> {
        self.duplicate
    }

    /// The peer was told.
    pub(crate) fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// True if the user is to be told that there is something to read: once until it reads.
    pub(crate) fn take_signal(&mut self) -> bool {
        !std::mem::replace(&mut self.is_readable_signalled, true)
    }

    /// The user reads.
    pub(crate) fn on_read(&mut self) {
        self.is_readable_signalled = false;
    }

    // The peer's FIN.

    /// A FIN came that stands at a position; the first one that may be true counts.
    pub(crate) fn note_fin(&mut self, position: u64) {
        if self.fin.is_none() && position >= self.data.next() {
            self.fin = Some(position);
        }
    }

    /// The part of data from `start` on that is not beyond the FIN: there is nothing there.
    pub(crate) fn before_fin<'a>(&self, start: u64, body: &'a [u8]) -> &'a [u8] {
        match self.fin {
            Some(fin) if start + body.len() as u64 > fin => &body[..fin.saturating_sub(start) as usize],
            _ => body,
        }
    }

    /// Where the FIN stands that came, in order or not.
    pub(crate) fn fin(&self) -> Option<u64> {
        self.fin
    }

    /// True if everything up to the FIN came.
    pub(crate) fn is_fin_received(&self) -> bool {
        self.is_fin_received
    }

    /// True, once, when everything up to the FIN has come.
    pub(crate) fn take_fin(&mut self) -> bool {
        let is_next = !self.is_fin_received && self.fin == Some(self.data.next());
        self.is_fin_received |= is_next;
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        let mut receiver = Receiver::new(Reassembly::new(10_000, 10));
        receiver.begin(SeqNum(u32::MAX - 2));
        receiver
    }

    #[test]
    fn positions_do_not_wrap() {
        let mut receiver = receiver();
        receiver.data_mut().insert(1, &[7; 10], false);
        assert_eq!((receiver.next(), receiver.seq(11), receiver.position(SeqNum(8))), (11, SeqNum(8), 11));
        assert_eq!(receiver.position(SeqNum(u32::MAX - 10)), -8);
    }

    #[test]
    fn the_window_never_shrinks_and_an_acknowledgement_is_first_once() {
        let mut receiver = receiver();
        assert!(!receiver.on_ack_left(5000), "a SYN alone is no news");
        receiver.data_mut().insert(1, &[7; 10], false);
        assert!(receiver.on_ack_left(4000) && !receiver.on_ack_left(4000));
        assert_eq!((receiver.edge(), receiver.acknowledged()), (5000, 11));
    }

    #[test]
    fn data_beyond_a_fin_does_not_exist_and_the_fin_comes_once() {
        let mut receiver = receiver();
        receiver.note_fin(6);
        receiver.note_fin(3);
        assert_eq!(receiver.before_fin(4, &[1, 2, 3, 4]), &[1, 2]);
        assert!(receiver.fin().is_some() && !receiver.take_fin());
        receiver.data_mut().insert(1, &[7; 5], false);
        assert!(receiver.take_fin() && !receiver.take_fin());
        assert_eq!(receiver.next(), 7);
    }
}
