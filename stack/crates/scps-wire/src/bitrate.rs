//! Bits per second, with the unit in the text form.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// A rate in bits per second, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bitrate(core::num::NonZeroU64);

/// Why a text is not a rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseBitrateError(String);

impl fmt::Display for ParseBitrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "found {:?}; expected a rate above zero such as \"2 Mbit/s\", \"9600 bit/s\" or a bare number of bit/s",
            self.0
        )
    }
}

impl std::error::Error for ParseBitrateError {}

impl Bitrate {
    /// A rate of `bps` bits per second; zero is taken as 1 bit/s.
    pub const fn from_bps(bps: u64) -> Self {
        match core::num::NonZeroU64::new(bps) {
            Some(v) => Bitrate(v),
            None => Bitrate(core::num::NonZeroU64::MIN),
        }
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0.get()
    }

    /// Time to send `bytes` at this rate, rounded up to a nanosecond.
    pub fn time_for(self, bytes: u64) -> Duration {
        let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.as_bps()));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Whole bytes that fit in `time` at this rate.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.as_bps()) * time.as_nanos() / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.as_bps())
    }
}

impl FromStr for Bitrate {
    type Err = ParseBitrateError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ParseBitrateError(text.to_owned());
        let t = text.trim();
        let split = t.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(t.len());
        let (number, unit) = t.split_at(split);
        let factor = match unit.trim() {
            "" | "bit/s" | "bps" => 1.0,
            "kbit/s" => 1e3,
            "Mbit/s" => 1e6,
            "Gbit/s" => 1e9,
            _ => return Err(bad()),
        };
        // A float is exact here up to 2^53 bit/s and only used while reading text.
        let bps = number.parse::<f64>().map_err(|_| bad())? * factor;
        if (1.0..=9e15).contains(&bps) {
            Ok(Bitrate::from_bps(bps.round() as u64))
        } else {
            Err(bad())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() {
        assert_eq!("2 Mbit/s".parse::<Bitrate>().unwrap().as_bps(), 2_000_000);
        assert_eq!("9600".parse::<Bitrate>().unwrap().as_bps(), 9600);
        assert_eq!("1.5kbit/s".parse::<Bitrate>().unwrap().as_bps(), 1500);
    }

    #[test]
    fn refuses_zero_and_unknown_units() {
        assert!("0".parse::<Bitrate>().is_err());
        assert!("2 Mb".parse::<Bitrate>().is_err());
        assert!("".parse::<Bitrate>().is_err());
    }

    #[test]
    fn fy97_tick_is_2500_octets() {
        // 2,000,000 bit/s * 10 ms / 8 = 2500 octets (scps-tp §5).
        assert_eq!(Bitrate::from_bps(2_000_000).bytes_in(Duration::from_millis(10)), 2500);
    }
}
