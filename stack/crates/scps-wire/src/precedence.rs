//! Precedence of a packet (scps-np §1.7).

use std::fmt;

/// How urgent a packet is: 0 to 15, of which 15 is sent first and discarded last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Precedence(u8);

impl Precedence {
    /// Number of levels.
    pub const LEVELS: usize = 16;
    /// The level served last.
    pub const LOWEST: Precedence = Precedence(0);
    /// The level served first.
    pub const HIGHEST: Precedence = Precedence(15);

    /// A level, `None` beyond 15.
    pub const fn new(level: u8) -> Option<Self> {
        if (level as usize) < Self::LEVELS {
            Some(Precedence(level))
        } else {
            None
        }
    }

    /// The level in the lower four bits of `bits`.
    pub const fn from_low_bits(bits: u8) -> Self {
        Precedence(bits & 0x0f)
    }

    /// The level as a number.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// All levels, the lowest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Precedence> {
        (0..Self::LEVELS as u8).map(Precedence)
    }
}

impl fmt::Display for Precedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_levels_and_no_other() {
        assert_eq!(Precedence::all().map(Precedence::level).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        assert!((16..=u8::MAX).all(|level| Precedence::new(level).is_none()));
        assert_eq!(Precedence::new(15), Some(Precedence::HIGHEST));
    }
}
