//! Command lines out of a byte stream (scps-fp §1): bounded, resynchronising, Telnet sequences removed.

use std::collections::VecDeque;

/// Longest command line, its CR LF included.
pub const LINE_MAX: usize = 4096;
/// Octets without any LF after which the peer is no longer listened to.
pub const FLOOD_MAX: usize = 1 << 20;

/// What the stream held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A line without its end.
    Text(Vec<u8>),
    /// A line that was longer than [`LINE_MAX`]; nothing of it is kept.
    TooLong,
    /// More than [`FLOOD_MAX`] octets without an end of line.
    Flood,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Telnet {
    Text,
    Iac,
    Option,
}

/// Splits a stream into lines.
#[derive(Debug)]
pub struct LineReader {
    limit: usize,
    current: Vec<u8>,
    length: usize,
    telnet: Option<Telnet>,
    lines: VecDeque<Line>,
}

const IAC: u8 = 0xFF;
const WILL: u8 = 0xFB;
const DONT: u8 = 0xFE;

impl LineReader {
    /// For a server: commands up to [`LINE_MAX`], Telnet sequences removed.
    pub fn commands() -> Self {
        LineReader {
            limit: LINE_MAX,
            current: Vec::new(),
            length: 0,
            telnet: Some(Telnet::Text),
            lines: VecDeque::new(),
        }
    }

    /// For a client: replies, as they come.
    pub fn replies(limit: usize) -> Self {
        LineReader { limit, current: Vec::new(), length: 0, telnet: None, lines: VecDeque::new() }
    }

    /// Takes octets from the stream.
    pub fn push(&mut self, octets: &[u8]) {
        for &octet in octets {
            match self.telnet {
                Some(Telnet::Iac) => {
                    self.telnet = Some(match octet {
                        WILL..=DONT => Telnet::Option,
                        _ => Telnet::Text,
                    });
                    if octet == IAC {
                        self.put(IAC);
                    }
                }
                Some(Telnet::Option) => self.telnet = Some(Telnet::Text),
                Some(Telnet::Text) if octet == IAC => self.telnet = Some(Telnet::Iac),
                _ => self.put(octet),
            }
        }
    }

    fn put(&mut self, octet: u8) {
        if octet == b'\n' {
            let mut text = std::mem::take(&mut self.current);
            let too_long = self.length + 1 > self.limit;
            self.length = 0;
            // CR NUL is a bare CR of Telnet; CRs anywhere are dropped, as the reference does.
            text.retain(|&b| b != b'\r');
            if too_long {
                self.lines.push_back(Line::TooLong);
            } else if !text.is_empty() && text != [0] {
                self.lines.push_back(Line::Text(text));
            }
            return;
        }
        self.length += 1;
        if self.length < self.limit {
            self.current.push(octet);
        } else {
            self.current = Vec::new();
            if self.length == FLOOD_MAX {
                self.lines.push_back(Line::Flood);
            }
        }
    }

    /// The next whole line.
    pub fn pop(&mut self) -> Option<Line> {
        self.lines.pop_front()
    }

    /// Whole lines waiting.
    pub fn waiting(&self) -> usize {
        self.lines.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(octets: &[u8]) -> Vec<Line> {
        let mut reader = LineReader::commands();
        reader.push(octets);
        std::iter::from_fn(|| reader.pop()).collect()
    }

    fn text(s: &str) -> Line {
        Line::Text(s.as_bytes().to_vec())
    }

    #[test]
    fn both_line_ends_are_taken_and_empty_lines_skipped() {
        assert_eq!(lines(b"NOOP\nQUIT\r\n\r\n\nSYST\r\n"), [text("NOOP"), text("QUIT"), text("SYST")]);
    }

    #[test]
    fn a_line_in_pieces_is_one_line() {
        let mut reader = LineReader::commands();
        for piece in [&b"IN"[..], b"T", b"R\r", b"\n"] {
            assert_eq!(reader.pop(), None);
            reader.push(piece);
        }
        assert_eq!(reader.pop(), Some(text("INTR")));
    }

    #[test]
    fn telnet_interrupts_and_options_are_removed() {
        assert_eq!(lines(b"\xFF\xF4\xFF\xF2ABOR\r\n"), [text("ABOR")]);
        assert_eq!(lines(b"NO\xFF\xFD\x01OP\r\n"), [text("NOOP")]);
        assert_eq!(lines(b"DELE a\xFF\xFFb\r\n"), [Line::Text(b"DELE a\xFFb".to_vec())]);
    }

    #[test]
    fn an_oversized_line_is_one_event_and_the_next_is_intact() {
        let mut input = vec![b'x'; 10_000];
        input.extend_from_slice(b"\r\nNOOP\r\n");
        assert_eq!(lines(&input), [Line::TooLong, text("NOOP")]);
        let mut longest = vec![b'x'; LINE_MAX - 2];
        longest.extend_from_slice(b"\r\n");
        assert_eq!(lines(&longest), [Line::Text(vec![b'x'; LINE_MAX - 2])]);
    }

    #[test]
    fn a_flood_is_told_once() {
        let mut reader = LineReader::commands();
        for _ in 0..40 {
            reader.push(&vec![b'x'; 65_536]);
        }
        assert_eq!(reader.pop(), Some(Line::Flood));
        assert_eq!(reader.pop(), None);
    }
}
