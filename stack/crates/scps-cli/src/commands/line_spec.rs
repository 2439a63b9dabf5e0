//! A direction of `scps channel` as people write it: KEY=VALUE,...

use crate::error::CliError;
use scps_channel::{ErrorModel, ErrorSource, LineConfig, ModelError, SGLS_PERIOD_BITS};
use scps_wire::{Duration, Seed};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

/// One direction, read but not yet drawn.
#[derive(Debug)]
pub struct LineSpec {
    line: LineConfig,
    model: Option<String>,
    ber: f64,
    burst_errors: f64,
    burst_gap: f64,
    p_good_bad: f64,
    p_bad_good: f64,
    ber_good: f64,
    ber_bad: f64,
    vector: Option<PathBuf>,
    period: u64,
    /// Where the stream is written to.
    pub record: Option<PathBuf>,
}

impl LineSpec {
    /// Reads the specs in order; later keys win, outages add up. `name` is the direction's, for complaints.
    pub fn read<'a>(name: &str, specs: impl Iterator<Item = &'a String>) -> Result<Self, CliError> {
        let mut read = LineSpec {
            line: LineConfig::default(),
            model: None,
            ber: 0.0,
            burst_errors: 4.0,
            burst_gap: 3.0,
            p_good_bad: 0.0,
            p_bad_good: 0.0,
            ber_good: 0.0,
            ber_bad: 0.0,
            vector: None,
            period: SGLS_PERIOD_BITS,
            record: None,
        };
        for pair in specs.flat_map(|s| s.split(',')).filter(|p| !p.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(CliError::Usage(format!("{name}: found \"{pair}\"; expected KEY=VALUE.")));
            };
            read.set(name, key, value)?;
        }
        read.line.outages.sort();
        Ok(read)
    }

    fn set(&mut self, name: &str, key: &str, value: &str) -> Result<(), CliError> {
        let place = || format!("{name}: {key}");
        match key {
            "baud" => self.line.baud = NonZeroU32::new(number(&place(), value)?),
            "bits" => self.line.bits_per_byte = number::<NonZeroU32>(&place(), value)?.get(),
            "delay-ms" => self.line.delay = seconds(&place(), value, 1e-3)?,
            "buffer" => self.line.buffer_bytes = number::<std::num::NonZeroUsize>(&place(), value)?.get(),
            "grain" => self.line.grain_bytes = number::<std::num::NonZeroUsize>(&place(), value)?.get(),
            "flush" => self.line.flush_byte = Some(byte(&place(), value)?),
            "errors" => self.model = Some(value.into()),
            "ber" => self.ber = number(&place(), value)?,
            "burst-errors" => self.burst_errors = number(&place(), value)?,
            "burst-gap" => self.burst_gap = number(&place(), value)?,
            "p-good-bad" => self.p_good_bad = number(&place(), value)?,
            "p-bad-good" => self.p_bad_good = number(&place(), value)?,
            "ber-good" => self.ber_good = number(&place(), value)?,
            "ber-bad" => self.ber_bad = number(&place(), value)?,
            "file" => self.vector = Some(value.into()),
            "period" => self.period = number(&place(), value)?,
            "record" => self.record = Some(value.into()),
            "outage" => {
                let (from, to) = value.split_once("..").unwrap_or((value, ""));
                let (from, to) = (seconds(&place(), from, 1.0)?, seconds(&place(), to, 1.0)?);
                if from >= to {
                    return Err(CliError::Usage(format!(
                        "{}: found {value}; expected the end after the start.",
                        place()
                    )));
                }
                self.line.outages.push((from, to));
            }
            _ => return Err(CliError::Usage(format!("{name}: found the key \"{key}\"; see scps channel --help."))),
        }
        Ok(())
    }

    /// The direction, its error vector read or drawn from `seed`.
    pub fn line(self, name: &str, seed: Seed) -> Result<LineConfig, CliError> {
        let errors = self.errors(name, seed)?;
        Ok(LineConfig { errors, ..self.line })
    }

    fn errors(&self, name: &str, seed: Seed) -> Result<ErrorSource, CliError> {
        let implied = if self.vector.is_some() {
            "file"
        } else if self.ber > 0.0 {
            "independent"
        } else {
            "none"
        };
        let model = match self.model.as_deref().unwrap_or(implied) {
            "none" => return Ok(ErrorSource::none()),
            "independent" => ErrorModel::Independent { ber: self.ber },
            "clustered" => ErrorModel::Clustered {
                ber: self.ber,
                errors_per_burst: self.burst_errors,
                gap_in_burst: self.burst_gap,
            },
            "gilbert-elliott" => ErrorModel::GilbertElliott {
                p_good_bad: self.p_good_bad,
                p_bad_good: self.p_bad_good,
                ber_good: self.ber_good,
                ber_bad: self.ber_bad,
            },
            "file" => {
                let Some(path) = &self.vector else {
                    return Err(CliError::Usage(format!("{name}: errors=file without a file; expected file=FILE.")));
                };
                return Ok(ErrorSource::from_vector(&std::fs::read(path).map_err(CliError::file(path))?));
            }
            other => {
                return Err(CliError::Usage(format!(
                    "{name}: found errors={other}; expected none, independent, clustered, gilbert-elliott or file."
                )))
            }
        };
        ErrorSource::from_model(model, self.period, seed, name)
            .map_err(|ModelError(what)| CliError::Usage(format!("{name}: {what}")))
    }
}

fn number<T: FromStr>(place: &str, value: &str) -> Result<T, CliError>
where
    T::Err: std::fmt::Display,
{
    value.parse().map_err(|e| CliError::Usage(format!("{place}: found \"{value}\" ({e}); expected a number.")))
}

fn seconds(place: &str, value: &str, unit: f64) -> Result<Duration, CliError> {
    let seconds = number::<f64>(place, value)? * unit;
    if !(0.0..1e9).contains(&seconds) {
        return Err(CliError::Usage(format!("{place}: found {value}; expected a time that is not negative.")));
    }
    // Whole nanoseconds: 0.1 is not exact in binary.
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

fn byte(place: &str, value: &str) -> Result<u8, CliError> {
    let parsed = value.strip_prefix("0x").map_or_else(|| value.parse(), |hex| u8::from_str_radix(hex, 16));
    parsed.map_err(|_| CliError::Usage(format!("{place}: found \"{value}\"; expected a byte such as 0x7e.")))
}
