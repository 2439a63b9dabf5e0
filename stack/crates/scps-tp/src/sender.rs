//! What a connection sends: positions, the data and its end, the peer's window, and what was given up.

use crate::config::BETS_SEND_HOLES_MAX;
use crate::send_buffer::SendBuffer;
use scps_wire::SeqNum;

/// The sending half of a connection. What is under way is the scoreboard's.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Our initial sequence number, position 0.
    start: SeqNum,
    una: u64,
    next: u64,
    data: SendBuffer,
    is_fin_wanted: bool,
    fin: Option<u64>,
    /// The right edge of the peer's window.
    edge: u64,
    /// Where the segment began that told `edge` (`SND.WL1` of RFC 793 §3.2).
    edge_told_at: i64,
    window_max: u64,
    /// The window and acknowledgement number that came last, as they came.
    last_heard: (u16, SeqNum),
    is_ack_heard: bool,
    /// Octets given up under BETS, first and last.
    abandoned: Vec<(u64, u64)>,
    is_room_awaited: bool,
}

impl Sender {
    pub(crate) fn new(start: SeqNum, data: SendBuffer) -> Self {
        Sender {
            start,
            una: 0,
            next: 1,
            data,
            is_fin_wanted: false,
            fin: None,
            edge: 1,
            edge_told_at: i64::MIN,
            window_max: 0,
            last_heard: (0, start),
            is_ack_heard: false,
            abandoned: Vec::new(),
            is_room_awaited: false,
        }
    }

    // Positions.

    /// The first position that is not acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The next position to send, FIN included.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The wire form of a position.
    pub(crate) fn seq(&self, position: u64) -> SeqNum {
        self.start + position as u32
    }

    /// The position of an acknowledgement number near `una`; negative before the first.
    pub(crate) fn position(&self, ack: SeqNum) -> i64 {
        let base = self.una;
        base as i64 + i64::from(ack.0.wrapping_sub(self.seq(base).0) as i32)
    }

    /// True if a position is of something sent and not acknowledged.
    pub(crate) fn is_under_way(&self, position: i64) -> bool {
        position >= self.una as i64 && position < self.next as i64
    }

    /// RFC 5961 §5: not beyond what was sent, not older than the largest window. The peer may acknowledge what BETS made us
    /// give up; that is below `una` and within the window.
    pub(crate) fn is_ack_acceptable(&self, acked: i64) -> bool {
        acked <= self.next as i64 && acked >= self.una as i64 - self.window_max as i64
    }

    // What the peer says.

    /// The peer's SYN came. The window of a SYN is never scaled (scps-tp §2.8).
    pub(crate) fn on_peer_syn(&mut self, window: u16, ack: SeqNum) {
        self.edge = self.una.max(1) + u64::from(window);
        self.window_max = u64::from(window);
        self.edge_told_at = 0;
        self.last_heard = (window, ack);
    }

    /// Our SYN is acknowledged. The window was learned before; it counts from the first data octet.
    pub(crate) fn on_syn_acked(&mut self) {
        self.una = 1;
        self.edge = self.edge.max(1);
    }

    /// An acknowledgement of something sent came, with this window field.
    pub(crate) fn on_ack_heard(&mut self, acked: u64, window: u16, ack: SeqNum) {
        self.is_ack_heard |= acked > 1 || self.next == 1;
        self.last_heard = (window, ack);
    }

    /// True once the peer has acknowledged data: until then compressed segments must carry an acknowledgement.
    pub(crate) fn is_ack_heard(&self) -> bool {
        self.is_ack_heard
    }

    /// The window and acknowledgement number that came last, as they came.
    pub(crate) fn last_heard(&self) -> (u16, SeqNum) {
        self.last_heard
    }

    /// A segment that begins at `told_at` tells a window.
    pub(crate) fn on_window(&mut self, acked: u64, window: u64, told_at: i64) {
        let edge = acked + window;
        // RFC 793 §3.9 with one liberty: an edge further right is believed whatever the order of arrival.
        if acked > self.una || (acked == self.una && (told_at > self.edge_told_at || edge > self.edge)) {
            self.edge = edge;
            self.edge_told_at = told_at;
            self.window_max = self.window_max.max(window);
        }
    }

    /// The right edge of the peer's window.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// The largest window the peer told.
    pub(crate) fn window_max(&self) -> u64 {
        self.window_max
    }

    /// Everything up to `acked` is acknowledged or given up.
    pub(crate) fn advance(&mut self, acked: u64) {
        self.una = acked;
        self.data.release_to(acked);
    }

    // Data.

    /// The data, sent or not.
    pub(crate) fn data(&self) -> &SendBuffer {
        &self.data
    }

    /// Octets of data that were never sent.
    pub(crate) fn waiting(&self) -> u64 {
        self.data.end().saturating_sub(self.next)
    }

    /// Takes as much data as there is room for.
    pub(crate) fn push(&mut self, data: &[u8]) -> usize {
        let taken = self.data.push(data);
        self.is_room_awaited |= taken < data.len();
        taken
    }

    /// Octets that would be taken now; the user is told when there are more.
    pub(crate) fn await_room(&mut self) -> usize {
        if self.is_fin_wanted {
            return 0;
        }
        self.is_room_awaited = true;
        self.data.room()
    }

    /// Takes a whole record, if there is room.
    pub(crate) fn push_record(&mut self, record: &[u8]) -> bool {
        let is_taken = self.data.push_record(record);
        self.is_room_awaited |= !is_taken;
        is_taken
    }

    /// True, once, if the user was refused and there is room now.
    pub(crate) fn take_room(&mut self) -> bool {
        self.is_room_awaited && self.data.room() > 0 && std::mem::take(&mut self.is_room_awaited)
    }

    /// Everything up to `end` was sent; `fin` is where the FIN among it stands.
    pub(crate) fn on_sent(&mut self, end: u64, fin: Option<u64>) {
        self.next = end;
        self.fin = self.fin.or(fin);
    }

    // The end.

    /// No more data: FIN follows.
    pub(crate) fn end(&mut self) {
        self.is_fin_wanted = true;
    }

    /// True if no more data is taken.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_fin_wanted
    }

    /// True if a FIN is still to be sent.
    pub(crate) fn is_fin_due(&self) -> bool {
        self.is_fin_wanted && self.fin.is_none()
    }

    /// True if a FIN was sent.
    pub(crate) fn is_fin_sent(&self) -> bool {
        self.fin.is_some()
    }

    /// True if our FIN is acknowledged.
    pub(crate) fn is_fin_acked(&self) -> bool {
        self.fin.is_some_and(|fin| self.una > fin)
    }

    // BETS.

    /// The octets from `start` to before `end` will not be sent again. Queries count from the first octet of the stream, which
    /// is at position 1.
    pub(crate) fn abandon(&mut self, start: u64, end: u64) {
        let (first, last) = (start - 1, end - 2);
        let recorded = self.abandoned.len();
        match self.abandoned.last_mut() {
            Some(before) if before.1 + 1 == first => before.1 = last,
            _ if recorded < BETS_SEND_HOLES_MAX => self.abandoned.push((first, last)),
            _ => {}
        }
    }

    /// What was given up, as first and last octets of the stream.
    pub(crate) fn abandoned(&self) -> &[(u64, u64)] {
        &self.abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> Sender {
        let mut sender = Sender::new(SeqNum(u32::MAX - 2), SendBuffer::new(100));
        sender.on_peer_syn(1000, SeqNum(0));
        sender.on_syn_acked();
        sender
    }

    #[test]
    fn positions_do_not_wrap() {
        let mut sender = sender();
        sender.on_sent(50, None);
        assert_eq!(
            (sender.seq(4), sender.position(SeqNum(7)), sender.position(SeqNum(u32::MAX - 10))),
            (SeqNum(1), 10, -8)
        );
        assert!(
            sender.is_under_way(1) && sender.is_under_way(49) && !sender.is_under_way(0) && !sender.is_under_way(50)
        );
    }

    #[test]
    fn an_older_segment_moves_the_window_only_to_the_right() {
        let mut sender = sender();
        sender.on_window(1, 500, 10);
        assert_eq!(sender.edge(), 501);
        sender.on_window(1, 400, 9);
        assert_eq!(sender.edge(), 501, "it left before the one that told 501");
        sender.on_window(1, 2000, 9);
        assert_eq!((sender.edge(), sender.window_max()), (2001, 2000));
        sender.on_sent(100, None);
        sender.advance(50);
        sender.on_window(49, 9000, 99);
        assert_eq!(sender.edge(), 2001, "an old acknowledgement tells nothing");
    }

    #[test]
    fn acknowledgements_are_believed_a_window_back_and_not_beyond_what_was_sent() {
        let mut sender = sender();
        sender.on_sent(100, None);
        let believed = |acked| sender.is_ack_acceptable(acked);
        assert!(believed(100) && !believed(101) && believed(1 - 1000) && !believed(-1000));
    }

    #[test]
    fn the_user_is_told_of_room_once_and_only_if_it_was_refused() {
        let mut sender = sender();
        assert_eq!(sender.push(&[0; 60]), 60);
        assert!(!sender.take_room() && !sender.push_record(&[0; 50]));
        sender.on_sent(31, None);
        sender.advance(31);
        assert!(sender.take_room() && !sender.take_room());
        assert_eq!((sender.push(&[0; 100]), sender.waiting()), (70, 100));
        assert!(!sender.take_room(), "it is full again");
    }

    #[test]
    fn a_fin_is_due_once_and_acknowledged_beyond_its_position() {
        let mut sender = sender();
        sender.push(&[0; 10]);
        sender.end();
        assert!(sender.is_ended() && sender.is_fin_due());
        sender.on_sent(12, Some(11));
        assert!(!sender.is_fin_due() && sender.is_fin_sent());
        sender.advance(11);
        assert!(!sender.is_fin_acked());
        sender.advance(12);
        assert!(sender.is_fin_acked());
    }

    #[test]
    fn what_is_given_up_joins_what_was_given_up_before_it() {
        let mut sender = sender();
        for (start, end) in [(1, 11), (11, 21), (31, 41)] {
            sender.abandon(start, end);
        }
        assert_eq!(sender.abandoned(), [(0, 19), (30, 39)]);
    }
}
