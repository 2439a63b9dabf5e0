//! Seeds with named streams: adding a consumer does not shift the numbers of the others.

use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// Where all randomness of an engine comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed {
    k0: u64,
    k1: u64,
}

impl Seed {
    /// A seed from a number, for reproducible runs.
    pub const fn from_u64(value: u64) -> Self {
        Seed { k0: value, k1: 0x5343_5053_5350_4c42 }
    }

    /// A seed from 16 octets of entropy, for unpredictable runs.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let value = u128::from_le_bytes(bytes);
        Seed { k0: value as u64, k1: (value >> 64) as u64 }
    }

    /// A hash of `message` keyed by this seed and `name`; unpredictable without the seed (RFC 6528 §3).
    pub fn keyed_hash(&self, name: &str, message: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.k0, self.k1);
        hasher.write(name.as_bytes());
        hasher.write(&[0xff]);
        hasher.write(message);
        hasher.finish()
    }

    /// The generator of the consumer called `name`.
    pub fn stream(&self, name: &str) -> Rng {
        Rng::new([0u8, 1, 2, 3].map(|lane| self.keyed_hash(name, &[lane])))
    }
}

/// A small deterministic generator (xoshiro256**, Blackman and Vigna 2018).
#[derive(Clone, Debug)]
pub struct Rng {
    s: [u64; 4],
}

impl Rng {
    fn new(mut s: [u64; 4]) -> Self {
        if s == [0; 4] {
            // The all-zero state is the one fixed point of the generator.
            s[0] = 1;
        }
        Rng { s }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let result = self.s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = self.s[1] << 17;
        self.s[2] ^= self.s[0];
        self.s[3] ^= self.s[1];
        self.s[1] ^= self.s[2];
        self.s[0] ^= self.s[3];
        self.s[2] ^= t;
        self.s[3] = self.s[3].rotate_left(45);
        result
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1), for channel models only.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fills `out` with octets.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_distinct() {
        let seed = Seed::from_u64(7);
        assert_eq!(seed.stream("isn").next_u64(), seed.stream("isn").next_u64());
        assert_ne!(seed.stream("isn").next_u64(), seed.stream("id").next_u64());
        assert_ne!(seed.stream("isn").next_u64(), Seed::from_u64(8).stream("isn").next_u64());
    }

    #[test]
    fn below_stays_below() {
        let mut rng = Seed::from_u64(1).stream("t");
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert_eq!(rng.below(0), 0);
    }
}
