//! The data a generated transfer consists of: the same octets for the same seed at both ends, in this program and in the lab's others.

/// xorshift64* (Vigna 2016), little-endian words. Fast, full period, and no compressor finds anything in it.
#[derive(Clone, Debug)]
pub struct Payload {
    state: u64,
    /// The word that was given in part, and how many of its last octets are left.
    word: [u8; 8],
    left: usize,
}

impl Payload {
    /// The stream of a seed; 0 counts as 1, which the generator needs.
    pub fn new(seed: u64) -> Self {
        Payload { state: seed.max(1), word: [0; 8], left: 0 }
    }

    /// The next octets, the same ones whatever is asked for at a time.
    pub fn fill(&mut self, out: &mut [u8]) {
        let (begun, out) = out.split_at_mut(self.left.min(out.len()));
        let at = self.word.len() - self.left;
        begun.copy_from_slice(&self.word[at..at + begun.len()]);
        self.left -= begun.len();
        // Whole words by themselves: their length is known, so each is one store.
        let mut words = out.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next().to_le_bytes());
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            self.word = self.next().to_le_bytes();
            rest.copy_from_slice(&self.word[..rest.len()]);
            self.left = self.word.len() - rest.len();
        }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// Octets generated at a time by a comparison; a multiple of 8.
const CHUNK: usize = 65_536;

/// Compares what arrives with the stream of a seed.
#[derive(Debug)]
pub struct Comparison {
    payload: Payload,
    chunk: Vec<u8>,
    at: usize,
    wrong: u64,
}

impl Comparison {
    /// A comparison from the first octet on.
    pub fn new(seed: u64) -> Self {
        Comparison { payload: Payload::new(seed), chunk: vec![0; CHUNK], at: CHUNK, wrong: 0 }
    }

    /// Takes the next octets of the transfer.
    pub fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.at == CHUNK {
                self.payload.fill(&mut self.chunk);
                self.at = 0;
            }
            let n = data.len().min(CHUNK - self.at);
            let expected = &self.chunk[self.at..self.at + n];
            if data[..n] != *expected {
                self.wrong += data[..n].iter().zip(expected).filter(|(a, b)| a != b).count() as u64;
            }
            self.at += n;
            data = &data[n..];
        }
    }

    /// Octets that were not what the seed says.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_generator() {
        // First output of xorshift64* for state 1, from the recurrence worked by hand.
        let mut word = [0u8; 8];
        Payload::new(1).fill(&mut word);
        assert_eq!(u64::from_le_bytes(word), 0x47E4_CE4B_896C_DD1D);
    }

    #[test]
    fn it_is_the_same_stream_whatever_is_asked_for_at_a_time() {
        let mut whole = [0u8; 64];
        Payload::new(7).fill(&mut whole);
        for size in 1..=17 {
            let mut payload = Payload::new(7);
            let mut pieces = [0u8; 64];
            pieces.chunks_mut(size).for_each(|piece| payload.fill(piece));
            assert_eq!(pieces, whole, "{size} at a time");
        }
    }

    #[test]
    fn pieces_make_the_same_stream_and_every_wrong_octet_counts() {
        let mut whole = vec![0u8; 200_000];
        Payload::new(7).fill(&mut whole);
        let mut comparison = Comparison::new(7);
        for piece in whole.chunks(1399) {
            comparison.update(piece);
        }
        assert_eq!(comparison.wrong(), 0);
        whole[0] ^= 1;
        whole[150_000] ^= 0x80;
        let mut comparison = Comparison::new(7);
        comparison.update(&whole);
        assert_eq!(comparison.wrong(), 2);
    }
}
