//! Where bit errors fall: the statistical models as streams of distances.

use scps_wire::Rng;

/// A statistical model of bit errors. Probabilities are per bit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ErrorModel {
    /// Every bit is wrong with the same probability, whatever the others are (additive white Gaussian noise).
    Independent {
        /// Bit error rate.
        ber: f64,
    },
    /// Independent events of several errors each, a few bits apart, as a Viterbi decoder makes them. The mean bit error
    /// rate is kept.
    Clustered {
        /// Bit error rate.
        ber: f64,
        /// Mean errors of an event, at least 1.
        errors_per_burst: f64,
        /// Mean distance of two errors of an event in bits, at least 1.
        gap_in_burst: f64,
    },
    /// A good and a bad state with a bit error rate each (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of leaving the good state.
        p_good_bad: f64,
        /// Probability of leaving the bad state.
        p_bad_good: f64,
        /// Bit error rate of the good state.
        ber_good: f64,
        /// Bit error rate of the bad state.
        ber_bad: f64,
    },
}

/// A model that asks for what cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelError(pub String);

impl std::fmt::Display for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ModelError {}

impl ErrorModel {
    /// Refuses what is not a probability, and clusters that cannot hold the bit error rate asked for.
    pub fn check(&self) -> Result<(), ModelError> {
        let probability = |name: &str, value: f64| {
            if (0.0..=1.0).contains(&value) {
                Ok(())
            } else {
                Err(ModelError(format!("{name}: found {value}; expected a probability from 0 to 1.")))
            }
        };
        match *self {
            ErrorModel::Independent { ber } => probability("ber", ber),
            ErrorModel::Clustered { ber, errors_per_burst, gap_in_burst } => {
                probability("ber", ber)?;
                if !(errors_per_burst >= 1.0 && gap_in_burst >= 1.0) {
                    return Err(ModelError("clusters: expected at least 1 error each, at least 1 bit apart.".into()));
                }
                let densest = errors_per_burst / ((errors_per_burst - 1.0) * gap_in_burst + 1.0);
                if ber > densest {
                    return Err(ModelError(format!(
                        "ber: found {ber}; expected at most {densest}, the rate in a cluster."
                    )));
                }
                Ok(())
            }
            ErrorModel::GilbertElliott { p_good_bad, p_bad_good, ber_good, ber_bad } => {
                probability("p-good-bad", p_good_bad)?;
                probability("p-bad-good", p_bad_good)?;
                probability("ber-good", ber_good)?;
                probability("ber-bad", ber_bad)
            }
        }
    }

    /// The bit error rate in the long run.
    pub fn mean_ber(&self) -> f64 {
        match *self {
            ErrorModel::Independent { ber } | ErrorModel::Clustered { ber, .. } => ber,
            ErrorModel::GilbertElliott { p_good_bad, p_bad_good, ber_good, ber_bad } => {
                if p_good_bad + p_bad_good <= 0.0 {
                    return ber_good;
                }
                (ber_good * p_bad_good + ber_bad * p_good_bad) / (p_good_bad + p_bad_good)
            }
        }
    }
}

/// Draws the distances from one bit error to the next. The first counts from a bit at any time of the channel's life: the
/// channel is in its stationary state.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    model: ErrorModel,
    rng: Rng,
    /// Gilbert-Elliott: whether the state is the bad one, and bits until it changes.
    bad: bool,
    stay: u64,
    /// Clustered: whether no error was drawn yet.
    first: bool,
}

/// Errors in a visit of a Gilbert-Elliott state. With fewer, drawing the visits takes hours, for nearly all bring none; and nearly none brings
/// two, so that errors come one by one.
const FEWEST_PER_VISIT: f64 = 1e-4;

impl Gaps {
    pub(crate) fn new(model: ErrorModel, rng: Rng) -> Self {
        let model = match model {
            ErrorModel::GilbertElliott { p_good_bad, p_bad_good, ber_good, ber_bad }
                if ber_good < FEWEST_PER_VISIT * p_good_bad && ber_bad < FEWEST_PER_VISIT * p_bad_good =>
            {
                ErrorModel::Independent { ber: model.mean_ber() }
            }
            _ => model,
        };
        let mut gaps = Gaps { model, rng, bad: false, stay: 0, first: true };
        if let ErrorModel::GilbertElliott { p_good_bad, p_bad_good, .. } = model {
            // A channel that never changes its state is in the good one.
            let share_bad = p_good_bad / (p_good_bad + p_bad_good).max(f64::MIN_POSITIVE);
            gaps.bad = gaps.rng.unit_f64() < share_bad;
            gaps.stay = gaps.geometric(if gaps.bad { p_bad_good } else { p_good_bad });
        }
        gaps
    }

    /// Bits from the last error to the next one, at least 1; `u64::MAX` when there is none.
    pub(crate) fn draw(&mut self) -> u64 {
        match self.model {
            ErrorModel::Independent { ber } => self.geometric(ber),
            ErrorModel::Clustered { ber, errors_per_burst, gap_in_burst } => {
                if ber <= 0.0 {
                    return u64::MAX;
                }
                // An event and the gap before it hold `errors_per_burst` errors in outer + (errors_per_burst - 1) inner bits.
                let outer = (errors_per_burst / ber - (errors_per_burst - 1.0) * gap_in_burst).clamp(1.0, f64::MAX);
                // From a random bit on, the next error is as far as the law says that covers the bit; such a law has no memory.
                let inner_bits = (errors_per_burst - 1.0) * gap_in_burst;
                let starts = if self.first { outer / (outer + inner_bits) } else { 1.0 / errors_per_burst };
                self.first = false;
                if self.rng.unit_f64() < starts {
                    self.geometric(1.0 / outer)
                } else {
                    self.geometric(1.0 / gap_in_burst)
                }
            }
            ErrorModel::GilbertElliott { p_good_bad, p_bad_good, ber_good, ber_bad } => {
                if self.unreachable(p_good_bad, ber_good, ber_bad) {
                    return u64::MAX;
                }
                let mut since = 0u64;
                loop {
                    let to_error = self.geometric(if self.bad { ber_bad } else { ber_good });
                    if to_error <= self.stay {
                        self.stay -= to_error;
                        return since.saturating_add(to_error);
                    }
                    if self.stay == u64::MAX {
                        return u64::MAX;
                    }
                    since = since.saturating_add(self.stay);
                    self.bad = !self.bad;
                    self.stay = self.geometric(if self.bad { p_bad_good } else { p_good_bad });
                }
            }
        }
    }

    /// Whether no state that can be reached has errors: the walk from state to state would never end.
    fn unreachable(&self, p_good_bad: f64, ber_good: f64, ber_bad: f64) -> bool {
        ber_good <= 0.0 && (ber_bad <= 0.0 || (!self.bad && p_good_bad <= 0.0))
    }

    /// Trials up to and with the first success of probability `p`.
    fn geometric(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            return u64::MAX;
        }
        if p >= 1.0 {
            return 1;
        }
        // 1 - [0, 1) is (0, 1]: its logarithm is finite.
        let draw = (1.0 - self.rng.unit_f64()).ln() / (-p).ln_1p();
        (draw.ceil() as u64).max(1)
    }
}
