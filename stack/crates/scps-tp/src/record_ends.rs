//! Where records end in a stream: a bit for each octet that may be held, so that a peer whose records are of one octet each takes an
//! eighth of the buffer and no more.

/// The ends among the octets of a ring.
#[derive(Clone, Debug)]
pub(crate) struct RecordEnds {
    /// By position modulo their number; empty until a record ends.
    bits: Vec<u64>,
    words: usize,
}

impl RecordEnds {
    /// None yet; those that are kept lie within `limit` octets of each other.
    pub(crate) fn new(limit: usize) -> Self {
        RecordEnds { bits: Vec::new(), words: limit / 64 + 2 }
    }

    fn place(&self, position: u64) -> (usize, u32) {
        ((position / 64 % self.words as u64) as usize, (position % 64) as u32)
    }

    /// A record ends before `position`.
    pub(crate) fn insert(&mut self, position: u64) {
        self.bits.resize(self.words, 0);
        let (word, bit) = self.place(position);
        self.bits[word] |= 1 << bit;
    }

    /// It was read.
    pub(crate) fn remove(&mut self, position: u64) {
        let (word, bit) = self.place(position);
        if let Some(word) = self.bits.get_mut(word) {
            *word &= !(1 << bit);
        }
    }

    /// The first end beyond `from`, and not beyond `to`.
    pub(crate) fn first_in(&self, from: u64, to: u64) -> Option<u64> {
        let mut at = from + 1;
        while at <= to {
            let (word, bit) = self.place(at);
            let rest = self.bits.get(word)? >> bit;
            if rest != 0 {
                return Some(at + u64::from(rest.trailing_zeros())).filter(|end| *end <= to);
            }
            at += u64::from(64 - bit);
        }
        None
    }

    /// Octets of memory in use.
    pub(crate) fn allocated(&self) -> usize {
        self.bits.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_in_order_however_often_the_positions_wrap() {
        let mut ends = RecordEnds::new(1000);
        assert_eq!((ends.first_in(0, 1000), ends.allocated()), (None, 0));
        for start in (1..100_000).step_by(997) {
            let all = [start + 1, start + 63, start + 64, start + 500, start + 1000];
            for end in all {
                ends.insert(end);
            }
            let mut from = start;
            for end in all {
                assert_eq!((ends.first_in(from, start + 1000), ends.first_in(from, end - 1)), (Some(end), None));
                ends.remove(end);
                from = end;
            }
            assert_eq!(ends.first_in(start, start + 1000), None);
        }
    }
}
