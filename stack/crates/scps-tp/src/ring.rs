//! A byte ring addressed by stream position, growing on demand up to its limit.

/// Octets between two stream positions.
#[derive(Clone, Debug)]
pub struct ByteRing {
    storage: Box<[u8]>,
    limit: usize,
    start: u64,
    /// What is at the front of the storage, or was.
    front: u64,
}

/// First allocation; idle connections hold none.
const FIRST_ALLOCATION: usize = 4096;

impl ByteRing {
    /// An empty ring that begins at `start` and holds up to `limit` octets.
    pub fn new(start: u64, limit: usize) -> Self {
        ByteRing { storage: Box::default(), limit, start, front: start }
    }

    /// Position of the oldest octet.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Most octets held.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Octets of memory in use.
    pub fn allocated(&self) -> usize {
        self.storage.len()
    }

    /// Grows so that `len` octets from the start fit; moves what is there.
    fn reserve(&mut self, len: usize) {
        if len <= self.storage.len() {
            return;
        }
        let size = len.max(FIRST_ALLOCATION).next_power_of_two();
        let mut storage = vec![0u8; size].into_boxed_slice();
        // Sizes are powers of two, so an octet's place follows from its position and the front's.
        let (first, second) = self.slices(self.start, self.storage.len());
        let mut position = self.start;
        for piece in [first, second] {
            let slot = ((position - self.front) & (size as u64 - 1)) as usize;
            let fits = piece.len().min(size - slot);
            storage[slot..slot + fits].copy_from_slice(&piece[..fits]);
            storage[..piece.len() - fits].copy_from_slice(&piece[fits..]);
            position += piece.len() as u64;
        }
        self.storage = storage;
    }

    fn slot(&self, position: u64) -> usize {
        ((position - self.front) & (self.storage.len() as u64 - 1)) as usize
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
        self.front = self.start;
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
    fn an_idle_ring_holds_no_memory() {
        assert_eq!(ByteRing::new(0, 1 << 20).allocated(), 0);
    }
}
