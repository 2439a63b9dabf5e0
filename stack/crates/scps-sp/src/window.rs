//! Which sequence numbers have come: a sliding bitmap, as in IPsec (RFC 4303 §3.4.3, RFC 6479).

/// Numbers a window spans unless somebody says otherwise (scps-sp §6).
pub const WINDOW_DEFAULT: u32 = 1024;
/// Fewest.
pub const WINDOW_MIN: u32 = 64;
/// Most.
pub const WINDOW_MAX: u32 = 65_536;

/// Why a number is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unacceptable {
    /// It came before.
    Replay,
    /// It lies before the window, where nobody remembers what came.
    TooOld,
}

/// The numbers that were accepted: the highest, and which of the `span` up to it.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    span: u64,
    highest: u64,
    /// A ring with a bit for each number, one word longer than the span so that moving on clears whole words.
    bits: Box<[u64]>,
}

const WORD: u64 = u64::BITS as u64;

impl ReplayWindow {
    /// A window that nothing has come in. `span` is held to [`WINDOW_MIN`]..=[`WINDOW_MAX`].
    pub fn new(span: u32) -> Self {
        let span = u64::from(span.clamp(WINDOW_MIN, WINDOW_MAX));
        ReplayWindow { span, highest: 0, bits: vec![0; span.div_ceil(WORD) as usize + 1].into() }
    }

    /// The highest number accepted; 0 if none was.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether `number` may be accepted. Cheap, and changes nothing: whether the packet is genuine is not known yet.
    pub fn check(&self, number: u64) -> Result<(), Unacceptable> {
        if number > self.highest {
            return Ok(());
        }
        if self.highest - number >= self.span {
            return Err(Unacceptable::TooOld);
        }
        let (word, bit) = self.place(number);
        if self.bits[word] & bit == 0 {
            Ok(())
        } else {
            Err(Unacceptable::Replay)
        }
    }

    /// Accepts `number`, once its packet is known to be genuine. The caller has asked [`ReplayWindow::check`].
    pub fn commit(&mut self, number: u64) {
        if number > self.highest {
            let ahead = (number / WORD - self.highest / WORD).min(self.bits.len() as u64);
            for i in 0..ahead {
                let word = ((number / WORD - i) % self.bits.len() as u64) as usize;
                self.bits[word] = 0;
            }
            self.highest = number;
        }
        let (word, bit) = self.place(number);
        self.bits[word] |= bit;
    }

    fn place(&self, number: u64) -> (usize, u64) {
        (((number / WORD) % self.bits.len() as u64) as usize, 1 << (number % WORD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What the window does, with all numbers remembered.
    #[derive(Default)]
    struct Model {
        came: BTreeSet<u64>,
    }

    impl Model {
        fn check(&self, span: u32, number: u64) -> Result<(), Unacceptable> {
            let highest = self.came.last().copied().unwrap_or(0);
            match highest.checked_sub(number) {
                Some(behind) if behind >= u64::from(span) => Err(Unacceptable::TooOld),
                _ if self.came.contains(&number) => Err(Unacceptable::Replay),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn the_window_ends_where_its_span_does() {
        let mut window = ReplayWindow::new(1024);
        window.commit(5000);
        assert_eq!(window.check(5000 - 1024), Err(Unacceptable::TooOld));
        assert_eq!(window.check(5000 - 1023), Ok(()));
        assert_eq!(window.check(5000), Err(Unacceptable::Replay));
    }

    proptest! {
        #[test]
        fn the_window_does_as_a_memory_without_end(
            span in prop_oneof![Just(WINDOW_MIN), Just(WINDOW_DEFAULT), WINDOW_MIN..3000, Just(WINDOW_MAX)],
            // Near the beginning, across many turns of the ring, and up to the last number there is.
            start in prop_oneof![Just(1u64), 1u64..100_000, Just((1 << 48) - 200_001)],
            steps in proptest::collection::vec((-3000i64..3000, any::<bool>(), 0u8..50), 1..400),
        ) {
            let (mut window, mut model) = (ReplayWindow::new(span), Model::default());
            let mut at = start;
            for (step, is_genuine, leap) in steps {
                // One step in fifty leaps over whole turns of the ring.
                let step = if leap == 0 { step.abs() * 70 } else { step };
                at = at.saturating_add_signed(step).clamp(1, (1 << 48) - 1);
                let (said, expected) = (window.check(at), model.check(span, at));
                prop_assert_eq!(said, expected, "{}", at);
                if said.is_ok() && is_genuine {
                    window.commit(at);
                    model.came.insert(at);
                }
            }
            prop_assert_eq!(window.highest(), model.came.last().copied().unwrap_or(0));
        }
    }
}
