//! A byte ring addressed by stream position, growing on demand up to its limit.

/// Octets between two stream positions.
#[derive(Clone, Debug)]
pub struct ByteRing {
    storage: Vec<u8>,
    limit: usize,
    start: u64,
    /// A position, and where in the storage it is or was.
    anchor: (u64, usize),
}

/// First allocation; idle connections hold none.
const FIRST_ALLOCATION: usize = 4096;

impl ByteRing {
    /// An empty ring that begins at `start` and holds up to `limit` octets.
    pub fn new(start: u64, limit: usize) -> Self {
        ByteRing { storage: Vec::new(), limit, start, anchor: (start, 0) }
    }

    /// Position of the oldest octet.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Most octets held.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Octets of memory in use, at most the limit.
    pub fn allocated(&self) -> usize {
        self.storage.capacity()
    }

    /// Grows in place so that `len` octets from the start fit; moves what would lie across the seam.
    fn reserve(&mut self, len: usize) {
        let old = self.storage.len();
        if len <= old {
            return;
        }
        let size = len.max(FIRST_ALLOCATION).next_power_of_two().min(self.limit.max(len));
        let slot = if old == 0 { 0 } else { self.slot(self.start) };
        self.storage.reserve_exact(size - old);
        self.storage.resize(size, 0);
        let tail = if slot == 0 { 0 } else { old - slot };
        if tail > 0 {
            // What was up to the old end is up to the new one; what follows it is at the front already.
            self.storage.copy_within(slot..old, size - tail);
        }
        self.anchor = (self.start, (size - tail) % size);
    }

    fn slot(&self, position: u64) -> usize {
        let size = self.storage.len() as u64;
        ((position - self.anchor.0 + self.anchor.1 as u64) % size) as usize
    }

    /// Writes `data` at `position`, which must lie in `[start, start + limit]` with its end.
    pub fn write(&mut self, position: u64, data: &[u8]) {
        debug_assert!(position >= self.start);
        let end = (position - self.start) as usize + data.len();
        debug_assert!(end <= self.limit, "{end} octets in a ring of {}", self.limit);
        if data.is_empty() {
            return;
        }
        self.reserve(end);
        let slot = self.slot(position);
        let first = data.len().min(self.storage.len() - slot);
        self.storage[slot..slot + first].copy_from_slice(&data[..first]);
        self.storage[..data.len() - first].copy_from_slice(&data[first..]);
    }

    /// The octets `[position, position + len)` as two pieces, the second empty unless they wrap.
    pub fn slices(&self, position: u64, len: usize) -> (&[u8], &[u8]) {
        if len == 0 {
            return (&[], &[]);
        }
        let slot = self.slot(position);
        let first = len.min(self.storage.len() - slot);
        (&self.storage[slot..slot + first], &self.storage[..len - first])
    }

    /// Forgets octets before `position`.
    pub fn release_to(&mut self, position: u64) {
        self.start = self.start.max(position);
    }

    /// Nothing is held. What comes next is written to the front again, which is in the processor's cache.
    pub fn rewind(&mut self) {
        self.anchor = (self.start, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(ring: &ByteRing, position: u64, len: usize) -> Vec<u8> {
        let (first, second) = ring.slices(position, len);
        [first, second].concat()
    }

    #[test]
    fn growing_keeps_what_is_there_across_the_wrap() {
        let mut r = ByteRing::new(4000, 100_000);
        let data: Vec<u8> = (0..4000u32).map(|i| i as u8).collect();
        r.write(4000, &data);
        r.release_to(5000);
        r.write(8000, &data);
        assert_eq!(collect(&r, 5000, 3000), &data[1000..]);
        assert_eq!(collect(&r, 8000, 4000), data);
    }

    #[test]
    fn writes_out_of_order_land_in_place() {
        let mut r = ByteRing::new(0, 10_000);
        r.write(500, b"world");
        r.write(495, b"hello");
        assert_eq!(collect(&r, 495, 10), b"helloworld");
    }

    #[test]
    fn a_ring_that_is_empty_begins_at_its_front_again() {
        let mut r = ByteRing::new(1, 100_000);
        r.write(1, &[1; 3000]);
        r.release_to(3001);
        r.rewind();
        let data: Vec<u8> = (0..6000u32).map(|i| i as u8).collect();
        r.write(3001, &data[..2000]);
        assert_eq!(r.slices(3001, 2000), (&data[..2000], &[][..]), "in one piece, which it would not be without");
        r.write(5001, &data[2000..]);
        assert_eq!(collect(&r, 3001, 6000), data, "growing knows the front");
    }

    #[test]
    fn a_ring_takes_its_limit_and_no_more_whatever_its_size_is() {
        for limit in [1, 100, 4096, 5000, 100_001] {
            let mut r = ByteRing::new(7, limit);
            let (mut written, mut released) = (7u64, 7u64);
            let octet = |position: u64| (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
            for step in 0..400u64 {
                let room = limit - (written - released) as usize;
                let len = room.min(1 + (step * 977 % 9000) as usize);
                let data: Vec<u8> = (written..written + len as u64).map(octet).collect();
                r.write(written, &data);
                written += len as u64;
                let held: Vec<u8> = (released..written).map(octet).collect();
                assert_eq!(collect(&r, released, held.len()), held);
                assert!(r.allocated() <= limit, "{} octets of {limit}", r.allocated());
                released += (written - released) * (step % 4) / 3;
                r.release_to(released);
            }
        }
    }

    #[test]
    fn an_idle_ring_holds_no_memory() {
        assert_eq!(ByteRing::new(0, 1 << 20).allocated(), 0);
    }
}
