//! Data the user gave and the peer has not acknowledged, with record ends (scps-tp §2.5).

use crate::ring::ByteRing;
use std::collections::VecDeque;

/// Data to send, addressed by position: octets since the initial sequence number, so the first is at 1.
#[derive(Clone, Debug)]
pub struct SendBuffer {
    ring: ByteRing,
    end: u64,
    record_ends: VecDeque<u64>,
    record_ends_max: usize,
}

impl SendBuffer {
    /// An empty buffer of `limit` octets.
    pub fn new(limit: usize) -> Self {
        // A record of one octet each would cost eight octets of bookkeeping; a quarter of the buffer bounds that.
        SendBuffer {
            ring: ByteRing::new(1, limit),
            end: 1,
            record_ends: VecDeque::new(),
            record_ends_max: (limit / 4).max(1),
        }
    }

    /// Octets that can be added.
    pub fn room(&self) -> usize {
        self.ring.limit() - (self.end - self.ring.start()) as usize
    }

    /// Position after the last octet.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds as much of `data` as fits and returns how much that was.
    pub fn push(&mut self, data: &[u8]) -> usize {
        let n = data.len().min(self.room());
        self.ring.write(self.end, &data[..n]);
        self.end += n as u64;
        n
    }

    /// Adds a whole record or nothing.
    pub fn push_record(&mut self, record: &[u8]) -> bool {
        if record.len() > self.room() || record.is_empty() || self.record_ends.len() >= self.record_ends_max {
            return false;
        }
        self.push(record);
        self.record_ends.push_back(self.end);
        true
    }

    /// The first record end after `position`.
    pub fn record_end_after(&self, position: u64) -> Option<u64> {
        if self.record_ends.is_empty() {
            return None;
        }
        let i = self.record_ends.partition_point(|e| *e <= position);
        self.record_ends.get(i).copied()
    }

    /// The octets `[position, position + len)`.
    pub fn slices(&self, position: u64, len: usize) -> (&[u8], &[u8]) {
        self.ring.slices(position, len)
    }

    /// Forgets octets before `position`.
    pub fn release_to(&mut self, position: u64) {
        let position = position.min(self.end);
        self.ring.release_to(position);
        while self.record_ends.front().is_some_and(|e| *e <= position) {
            self.record_ends.pop_front();
        }
    }

    /// Octets of memory in use.
    pub fn allocated(&self) -> usize {
        self.ring.allocated() + self.record_ends.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_fits() {
        let mut b = SendBuffer::new(10);
        assert_eq!(b.push(&[1; 8]), 8);
        assert_eq!(b.push(&[2; 8]), 2);
        b.release_to(5);
        assert_eq!(b.room(), 4);
    }

    #[test]
    fn a_record_is_taken_whole_or_not_at_all() {
        let mut b = SendBuffer::new(10);
        assert!(b.push_record(&[1; 6]));
        assert!(!b.push_record(&[1; 6]));
        assert_eq!(b.record_end_after(1), Some(7));
        b.release_to(7);
        assert_eq!(b.record_end_after(7), None);
    }
}
