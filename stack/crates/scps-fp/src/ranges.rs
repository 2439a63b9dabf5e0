//! Record read (scps-fp §7): the control file of READ and the ranges a user writes.

use crate::address::decimal;
use crate::command::is_path;
use crate::update::END_MARK;

/// Most ranges a server takes in one control file, and a user may write.
pub const RANGES_MAX: usize = 1000;

/// Largest control file of READ that a server takes: as many ranges, and a path.
pub const READ_CONTROL_MAX: u64 = 64 * 1024;
/// What a control file writes as the last octet of a range that ends with the file (scps-fp §7.2).
const END_OF_FILE: u64 = u32::MAX as u64;

/// Inclusive octet positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// First octet.
    pub low: u64,
    /// Last octet, or [`Range::TO_THE_END`].
    pub high: u64,
}

impl Range {
    /// As the last octet: wherever the file ends.
    pub const TO_THE_END: u64 = u64::MAX;
}

/// A control file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// The file to read.
    pub source: String,
    /// Go on past ranges that do not exist.
    pub forced: bool,
    /// In the order in which they are sent.
    pub ranges: Vec<Range>,
}

/// What is wrong with a control file or a list of ranges.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RangeError {
    /// Malformed: 501.
    #[error("control file: {0}")]
    Malformed(&'static str),
    /// More than [`RANGES_MAX`]: 552.
    #[error("more than {RANGES_MAX} ranges")]
    TooMany,
    /// A user's list.
    #[error("ranges: found {0:?}; expected n, a-b or a-eof, ascending and apart, separated by commas")]
    List(String),
}

fn line(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = octets.iter().position(|b| *b == b'\n')?;
    Some((octets[..end].strip_suffix(b"\r").unwrap_or(&octets[..end]), &octets[end + 1..]))
}

impl ReadRequest {
    /// Reads a control file.
    pub fn parse(octets: &[u8]) -> Result<ReadRequest, RangeError> {
        use RangeError::Malformed;
        let (source, rest) = line(octets).ok_or(Malformed("the path is missing"))?;
        let source =
            std::str::from_utf8(source).ok().filter(|p| is_path(p)).ok_or(Malformed("the path is unusable"))?;
        let (flag, rest) = line(rest).ok_or(Malformed("the flag is missing"))?;
        let forced = match flag {
            b"Y" | b"y" => true,
            b"N" | b"n" => false,
            _ => return Err(Malformed("the flag is neither Y nor N")),
        };
        // Two octets that may themselves be LF, then an LF.
        let [high, low, b'\n', rest @ ..] = rest else { return Err(Malformed("the count is missing")) };
        let count = usize::from(u16::from_be_bytes([*high, *low]));
        if count > RANGES_MAX {
            return Err(RangeError::TooMany);
        }
        let mut rest = rest;
        let mut ranges = Vec::new();
        for _ in 0..count {
            let (text, after) = line(rest).ok_or(Malformed("fewer ranges than the count says"))?;
            ranges.push(parse_pair(text).ok_or(Malformed("a range is not low-high"))?);
            rest = after;
        }
        if rest.is_empty() || rest == END_MARK || rest == [b'\n', END_MARK[0], END_MARK[1]] {
            Ok(ReadRequest { source: source.to_owned(), forced, ranges })
        } else {
            Err(Malformed("more ranges than the count says"))
        }
    }

    /// Writes a control file.
    pub fn emit(&self) -> Vec<u8> {
        let flag = if self.forced { 'Y' } else { 'N' };
        let mut out = format!("{}\n{flag}\n", self.source).into_bytes();
        out.extend_from_slice(&(self.ranges.len() as u16).to_be_bytes());
        out.push(b'\n');
        for range in &self.ranges {
            let high = if range.high == Range::TO_THE_END { END_OF_FILE } else { range.high };
            out.extend_from_slice(format!("{}-{high}\n", range.low).as_bytes());
        }
        out.push(b'\n');
        out.extend_from_slice(&END_MARK);
        out
    }
}

fn parse_pair(text: &[u8]) -> Option<Range> {
    let (low, high) = std::str::from_utf8(text).ok()?.split_once('-')?;
    let (low, high) = (decimal(low)?, decimal(high)?);
    let high = if high == END_OF_FILE { Range::TO_THE_END } else { high };
    (low <= high).then_some(Range { low, high })
}

/// Ranges as a user writes them; `eof` is the last octet of a file of `size`.
pub fn parse_list(text: &str, size: u64) -> Result<Vec<Range>, RangeError> {
    let wrong = || RangeError::List(text.to_owned());
    let mut ranges = Vec::new();
    for word in text.split(',') {
        let (low, high) = word.split_once('-').unwrap_or((word, word));
        let low = decimal(low).ok_or_else(wrong)?;
        let high = if high.eq_ignore_ascii_case("eof") {
            size.checked_sub(1).ok_or_else(wrong)?
        } else {
            decimal(high).ok_or_else(wrong)?
        };
        // A server would send everything up to the end instead.
        let means_the_end = high == END_OF_FILE && high.checked_add(1) != Some(size);
        if low > high || means_the_end {
            return Err(wrong());
        }
        ranges.push(Range { low, high });
    }
    ranges.sort_by_key(|r| r.low);
    if ranges.len() > RANGES_MAX {
        return Err(RangeError::TooMany);
    }
    if ranges.windows(2).any(|w| w[1].low <= w[0].high) {
        return Err(wrong());
    }
    Ok(ranges)
}

/// Cuts a list so that no part's count holds the octet 0A, which older servers take for an end of line (scps-fp §7.2).
pub fn split_for_old_servers(ranges: &[Range]) -> Vec<&[Range]> {
    let is_safe = |n: usize| !(n as u16).to_be_bytes().contains(&b'\n');
    if is_safe(ranges.len()) {
        return vec![ranges];
    }
    let first = (1..ranges.len()).rev().find(|n| is_safe(*n) && is_safe(ranges.len() - n)).unwrap_or(1);
    vec![&ranges[..first], &ranges[first..]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(low: u64, high: u64) -> Range {
        Range { low, high }
    }

    #[test]
    fn the_worked_example_is_24_octets() {
        let request =
            ReadRequest { source: "u".into(), forced: false, ranges: vec![range(0, 2), range(5, 5), range(20, 25)] };
        let octets = request.emit();
        assert_eq!(octets, b"u\nN\n\0\x03\n0-2\n5-5\n20-25\n\n\xFF\x02");
        assert_eq!(octets.len(), 24);
        assert_eq!(ReadRequest::parse(&octets), Ok(request));
    }

    #[test]
    fn ten_ranges_are_read_though_their_count_looks_like_a_line_end() {
        let ranges: Vec<Range> = (0..10).map(|i| range(i * 2, i * 2)).collect();
        let request = ReadRequest { source: "u".into(), forced: true, ranges };
        assert_eq!(ReadRequest::parse(&request.emit()), Ok(request));
    }

    #[test]
    fn the_largest_32_bit_position_means_the_end_of_the_file() {
        let request = ReadRequest::parse(b"u\nN\n\0\x01\n4000-4294967295\n\n\xFF\x02").unwrap();
        assert_eq!(request.ranges, [range(4000, Range::TO_THE_END)]);
        assert!(request.emit().ends_with(b"4000-4294967295\n\n\xFF\x02"));
        assert_eq!(parse_list("5-4294967295", 1 << 32), Ok(vec![range(5, 4_294_967_295)]));
        assert!(parse_list("5-4294967295", 1 << 33).is_err(), "there is no way to say this to a server");
    }

    #[test]
    fn counts_that_look_like_a_line_end_are_avoided() {
        for count in [10, 266, 522] {
            let ranges: Vec<Range> = (0..count).map(|i| range(i * 2, i * 2)).collect();
            let parts = split_for_old_servers(&ranges);
            assert_eq!(parts.concat(), ranges);
            assert!(parts.iter().all(|p| !(p.len() as u16).to_be_bytes().contains(&10)));
        }
        assert_eq!(split_for_old_servers(&[range(0, 1)]).len(), 1);
    }

    #[test]
    fn malformed_control_files_are_refused() {
        for bad in [
            &b""[..],
            b"u\n",
            b"u\nX\n\0\x01\n0-1\n\n\xFF\x02",
            b"u\nN\n\0\x02\n0-1\n\n\xFF\x02",
            b"u\nN\n\0\x01\n0-1\n2-3\n\n\xFF\x02",
            b"u\nN\n\0\x01\n5-1\n\n\xFF\x02",
            b"\nN\n\0\x01\n0-1\n\n\xFF\x02",
        ] {
            assert!(matches!(ReadRequest::parse(bad), Err(RangeError::Malformed(_))), "{bad:?}");
        }
        assert_eq!(ReadRequest::parse(b"u\nN\n\x04\x00\n"), Err(RangeError::TooMany));
    }

    #[test]
    fn lists_are_sorted_and_checked() {
        assert_eq!(parse_list("20-EOF,5,0-2", 26), Ok(vec![range(0, 2), range(5, 5), range(20, 25)]));
        for bad in ["", "5-2", "0-5,3-4", "0-5,5-9", "x", "1,,2", "-1", "eof"] {
            assert!(parse_list(bad, 26).is_err(), "{bad}");
        }
        assert!(parse_list("0-eof", 0).is_err());
    }

    proptest! {
        #[test]
        fn any_octets_are_parsed_or_refused(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = ReadRequest::parse(&octets);
        }
    }
}
