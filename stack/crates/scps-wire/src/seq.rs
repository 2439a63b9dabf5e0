//! 32-bit sequence numbers that wrap (RFC 793 §3.3).

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number. Comparison is modular: `a < b` when the shorter way from `a` to `b` leads forward.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// The later of two sequence numbers.
    #[must_use]
    pub fn max(self, other: SeqNum) -> SeqNum {
        if self < other {
            other
        } else {
            self
        }
    }

    /// The earlier of two sequence numbers.
    #[must_use]
    pub fn min(self, other: SeqNum) -> SeqNum {
        if self < other {
            self
        } else {
            other
        }
    }
}

impl PartialOrd for SeqNum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some((self.0.wrapping_sub(other.0) as i32).cmp(&0))
    }
}

impl Add<u32> for SeqNum {
    type Output = SeqNum;
    fn add(self, rhs: u32) -> SeqNum {
        SeqNum(self.0.wrapping_add(rhs))
    }
}

impl Sub<u32> for SeqNum {
    type Output = SeqNum;
    fn sub(self, rhs: u32) -> SeqNum {
        SeqNum(self.0.wrapping_sub(rhs))
    }
}

impl AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, rhs: u32) {
        *self = *self + rhs;
    }
}

impl fmt::Debug for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_follows_the_wrap() {
        assert!(SeqNum(u32::MAX) < SeqNum(0));
        assert!(SeqNum(u32::MAX - 10) < SeqNum(u32::MAX - 10) + 20);
        assert!(SeqNum(5) > SeqNum(5) - 10);
    }
}
