//! Text forms of settings that have units or names.

use scps_wire::Bitrate;
use std::str::FromStr;

/// A rate, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate(pub Option<Bitrate>);

impl FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Rate(None));
        }
        text.parse().map(|r| Rate(Some(r))).map_err(|e: scps_wire::ParseBitrateError| e.to_string())
    }
}

/// A first window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstWindow(pub scps_tp::InitialWindow);

impl FromStr for FirstWindow {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "rfc3390" {
            return Ok(FirstWindow(scps_tp::InitialWindow::Rfc3390));
        }
        match text.parse::<u32>() {
            Ok(n) if n > 0 => Ok(FirstWindow(scps_tp::InitialWindow::Segments(n))),
            _ => Err(format!("found {text:?}; expected \"rfc3390\" or a number of segments above zero")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_windows_have_names() {
        assert_eq!("none".parse(), Ok(Rate(None)));
        assert_eq!("2 Mbit/s".parse(), Ok(Rate(Some(Bitrate::from_bps(2_000_000)))));
        assert!("fast".parse::<Rate>().is_err());
        assert_eq!("10".parse(), Ok(FirstWindow(scps_tp::InitialWindow::Segments(10))));
        assert!("0".parse::<FirstWindow>().is_err());
    }
}
