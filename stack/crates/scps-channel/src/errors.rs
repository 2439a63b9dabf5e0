//! The error vector of a direction, walked from error to error instead of byte by byte.

use crate::model::{ErrorModel, Gaps, ModelError};
use scps_wire::{Rng, Seed};

/// The period of the simulator's stored vectors, "about 1 Mbit" (Horan & Wang 2000).
pub const SGLS_PERIOD_BITS: u64 = 1 << 20;

/// Which bits of a stream are wrong. Bits are numbered from 0 in order of the bytes, the most significant bit first.
#[derive(Clone, Debug)]
pub struct ErrorSource {
    kind: Kind,
    /// The bit that the next byte begins with.
    at: u64,
    /// The next wrong bit, `u64::MAX` if there is none.
    next: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    None,
    Repeated {
        positions: Vec<u64>,
        period: u64,
        index: usize,
        turn: u64,
    },
    /// Drawn again in every period, so that a long one takes no more memory than a short one.
    Redrawn {
        first: Box<Gaps>,
        gaps: Box<Gaps>,
        period: u64,
        turn: u64,
        after: u64,
    },
    Endless(Box<Gaps>),
}

impl ErrorSource {
    /// No errors.
    pub fn none() -> Self {
        ErrorSource { kind: Kind::None, at: 0, next: u64::MAX }
    }

    /// A stored vector, XORed byte by byte with the stream and repeated when it ends.
    pub fn from_vector(vector: &[u8]) -> Self {
        let mut positions = Vec::new();
        for (index, byte) in vector.iter().enumerate() {
            for bit in 0..8u64 {
                if byte & (0x80 >> bit) != 0 {
                    positions.push(index as u64 * 8 + bit);
                }
            }
        }
        Self::repeated(positions, vector.len() as u64 * 8)
    }

    /// Errors of a model: a vector of `period` bits that repeats, as the simulator's did, or with a period of 0 drawn for
    /// ever.
    pub fn from_model(model: ErrorModel, period: u64, seed: Seed, name: &str) -> Result<Self, ModelError> {
        model.check()?;
        let rng: Rng = seed.stream(name);
        let mut gaps = Gaps::new(model, rng);
        if period == 0 {
            let first = gaps.draw();
            let next = if first == u64::MAX { u64::MAX } else { first - 1 };
            return Ok(ErrorSource { kind: Kind::Endless(Box::new(gaps)), at: 0, next });
        }
        let first = Box::new(gaps.clone());
        // A gap counts from just before the first bit, so the first position is one less.
        let after = gaps.draw();
        if after > period {
            return Ok(Self::none());
        }
        let kind = Kind::Redrawn { first, gaps: Box::new(gaps), period, turn: 0, after };
        Ok(ErrorSource { kind, at: 0, next: after - 1 })
    }

    fn repeated(positions: Vec<u64>, period: u64) -> Self {
        match positions.first() {
            None => Self::none(),
            Some(&next) => ErrorSource { kind: Kind::Repeated { positions, period, index: 0, turn: 0 }, at: 0, next },
        }
    }

    /// The mask to XOR the next byte of the stream with.
    pub fn mask(&mut self) -> u8 {
        let end = self.at + 8;
        let mut mask = 0;
        while self.next < end {
            mask |= 0x80 >> (self.next - self.at);
            self.advance();
        }
        self.at = end;
        mask
    }

    /// Whether a bit of the next `octets` is wrong, for who loses all of them then.
    pub fn hits(&mut self, octets: usize) -> bool {
        self.at = self.at.saturating_add(octets as u64 * 8);
        let is_hit = self.next < self.at;
        while self.next < self.at {
            self.advance();
        }
        is_hit
    }

    fn advance(&mut self) {
        match &mut self.kind {
            Kind::None => self.next = u64::MAX,
            Kind::Repeated { positions, period, index, turn } => {
                *index += 1;
                if *index == positions.len() {
                    *index = 0;
                    *turn += 1;
                }
                self.next = turn.saturating_mul(*period).saturating_add(positions[*index]);
            }
            Kind::Redrawn { first, gaps, period, turn, after } => {
                *after = after.saturating_add(gaps.draw());
                if *after > *period {
                    gaps.clone_from(first);
                    *after = gaps.draw();
                    *turn += 1;
                }
                self.next = turn.saturating_mul(*period).saturating_add(*after - 1);
            }
            Kind::Endless(gaps) => self.next = self.next.saturating_add(gaps.draw()),
        }
    }
}
