//! Replies: written by the server, read by the client (scps-fp §1.1, §1.2).

use crate::line::{Line, LineReader, LINE_MAX};

/// Octets of one reply after which the server is no longer believed (scps-fp §17 item 19).
pub const REPLY_MAX: usize = 64 * 1024;
/// Longest text the server writes in one line: a path as long as a command line, with its quotes doubled, and words.
const TEXT_MAX: usize = 2 * LINE_MAX + 64;

/// Replies whose text a peer needs; suppression leaves them whole (scps-fp §1.2).
const NEVER_STRIPPED: [u16; 10] = [211, 213, 214, 215, 216, 220, 227, 229, 256, 257];

/// A server's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Three digits.
    pub code: u16,
    /// The lines' text, without code; at least one.
    pub lines: Vec<String>,
    keeps_text: bool,
}

impl Reply {
    /// A reply of one line.
    pub fn new(code: u16, text: impl Into<String>) -> Self {
        Reply { code, lines: vec![text.into()], keeps_text: NEVER_STRIPPED.contains(&code) || code == 331 }
    }

    /// A reply of several lines.
    pub fn multi(code: u16, lines: Vec<String>) -> Self {
        Reply { code, lines, keeps_text: true }
    }

    /// The same, never stripped.
    #[must_use]
    pub fn with_text(mut self) -> Self {
        self.keeps_text = true;
        self
    }

    /// First digit.
    pub fn class(&self) -> u16 {
        self.code / 100
    }

    /// 2xx.
    pub fn is_done(&self) -> bool {
        self.class() == 2
    }

    /// All text in one line.
    pub fn text(&self) -> String {
        self.lines.join(" ")
    }

    /// The octets on the wire.
    pub fn emit(&self, suppressed: bool) -> Vec<u8> {
        use std::fmt::Write as _;
        let code = self.code;
        if suppressed && !self.keeps_text {
            return format!("{code} \r\n").into_bytes();
        }
        let mut out = String::new();
        let last = self.lines.len().saturating_sub(1);
        for (i, line) in self.lines.iter().enumerate() {
            let separator = if i == last { ' ' } else { '-' };
            // Writing to a String cannot fail.
            let _ = write!(out, "{code}{separator}{}\r\n", shown(line));
        }
        out.into_bytes()
    }

    /// The octets of lines that others follow in the same reply.
    pub fn emit_more(code: u16, lines: &[String]) -> Vec<u8> {
        lines.iter().flat_map(|line| format!("{code}-{}\r\n", shown(line)).into_bytes()).collect()
    }
}

fn shown(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect()
}

/// What the client's control connection held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// A whole reply.
    Reply(Reply),
    /// Something that is not one: the connection is of no more use.
    Garbage(String),
}

/// Reads replies from a stream.
#[derive(Debug)]
pub struct ReplyReader {
    lines: LineReader,
    open: Option<(u16, Vec<String>, usize)>,
}

impl Default for ReplyReader {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplyReader {
    /// At the start of a connection.
    pub fn new() -> Self {
        ReplyReader { lines: LineReader::replies(REPLY_MAX), open: None }
    }

    /// Takes octets from the stream.
    pub fn push(&mut self, octets: &[u8]) {
        self.lines.push(octets);
    }

    /// The next whole reply.
    pub fn pop(&mut self) -> Option<Incoming> {
        while let Some(line) = self.lines.pop() {
            let Line::Text(octets) = line else {
                return Some(Incoming::Garbage(format!("a reply line of more than {REPLY_MAX} octets")));
            };
            let text: String = String::from_utf8_lossy(&octets).chars().filter(|c| !c.is_control()).collect();
            let head = parse_head(&text);
            if let Some((code, mut lines, mut size)) = self.open.take() {
                // As they came: lines of nothing but what is left out take memory too.
                size += octets.len() + 1;
                if size > REPLY_MAX {
                    return Some(Incoming::Garbage(format!("a reply of more than {REPLY_MAX} octets")));
                }
                match head {
                    Some((c, true, rest)) if c == code => {
                        lines.push(rest.to_owned());
                        return Some(Incoming::Reply(Reply { code, lines, keeps_text: true }));
                    }
                    Some((c, false, rest)) if c == code => lines.push(rest.to_owned()),
                    // Middle lines may be anything (RFC 959 §4.2).
                    _ => lines.push(text.trim_start().to_owned()),
                }
                self.open = Some((code, lines, size));
                continue;
            }
            match head {
                Some((code, true, rest)) => {
                    return Some(Incoming::Reply(Reply { code, lines: vec![rest.to_owned()], keeps_text: true }));
                }
                Some((code, false, rest)) => self.open = Some((code, vec![rest.to_owned()], text.len())),
                None => {
                    return Some(Incoming::Garbage(format!("found {:?}; expected a reply code", shortened(&text))));
                }
            }
        }
        None
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Code, whether the line ends the reply, and the text after it.
fn parse_head(text: &str) -> Option<(u16, bool, &str)> {
    let digits = text.get(..3)?;
    let code = crate::address::decimal::<u16>(digits).filter(|c| (100..600).contains(c))?;
    match text.as_bytes().get(3) {
        None => Some((code, true, "")),
        Some(b' ') => Some((code, true, &text[4..])),
        Some(b'-') => Some((code, false, &text[4..])),
        Some(_) => None,
    }
}

/// The size in a 213 reply, in any of its forms (scps-fp §3.3).
pub fn find_size(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(n) = crate::address::decimal(text) {
        return Some(n);
    }
    let after = text.rsplit_once("SIZE ")?.1;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    crate::address::decimal(&digits)
}

/// True if a 350 reply names a marker, and another than the one asked for: the reference keeps 16 bits of it.
pub fn names_other_marker(text: &str, marker: u64) -> bool {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|s| !s.is_empty()).peekable();
    numbers.peek().is_some() && !numbers.any(|n| crate::address::decimal(n) == Some(marker))
}

/// The marker in a 256 or 350 reply: its last number.
pub fn find_marker(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_digit()).rfind(|s| !s.is_empty()).and_then(crate::address::decimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8]) -> Vec<Incoming> {
        let mut reader = ReplyReader::new();
        reader.push(octets);
        std::iter::from_fn(|| reader.pop()).collect()
    }

    fn codes(octets: &[u8]) -> Vec<(u16, String)> {
        read(octets)
            .into_iter()
            .map(|i| match i {
                Incoming::Reply(r) => (r.code, r.text()),
                Incoming::Garbage(g) => panic!("{g}"),
            })
            .collect()
    }

    #[test]
    fn suppressed_replies_with_and_without_the_blank() {
        assert_eq!(codes(b"200 \r\n226\r\n"), [(200, String::new()), (226, String::new())]);
    }

    #[test]
    fn multi_line_replies_may_have_bare_middle_lines() {
        let got = codes(b"211-Status\r\n  free text\r\n212 not the end\r\n211-more\r\n211 End\r\n200 ok\r\n");
        assert_eq!(got, [(211, "Status free text 212 not the end more End".to_owned()), (200, "ok".to_owned())]);
    }

    #[test]
    fn what_is_no_reply_is_told() {
        assert!(matches!(read(b"hello\r\n")[0], Incoming::Garbage(_)));
        assert!(matches!(read(b"999 x\r\n")[0], Incoming::Garbage(_)));
        let endless =
            [b"211-x\r\n".to_vec(), b"y".repeat(100).into_iter().chain(*b"\r\n").collect::<Vec<u8>>().repeat(1000)];
        assert!(matches!(read(&endless.concat())[0], Incoming::Garbage(_)));
        let invisible = [b"211-x\r\n".to_vec(), b"\x01\r\n".repeat(40_000)];
        assert!(matches!(read(&invisible.concat())[..], [Incoming::Garbage(_), ..]));
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(codes(b"200 a\x1b[2Jb\r\n"), [(200, "a[2Jb".to_owned())]);
    }

    #[test]
    fn suppression_strips_what_nobody_parses() {
        assert_eq!(Reply::new(200, "ok").emit(true), b"200 \r\n");
        assert_eq!(Reply::new(200, "ok").emit(false), b"200 ok\r\n");
        for code in [213, 227, 256, 257, 331] {
            assert_eq!(Reply::new(code, "data").emit(true), format!("{code} data\r\n").into_bytes());
        }
        let multi = Reply::multi(211, vec!["a".into(), "b".into()]);
        assert_eq!(multi.emit(true), b"211-a\r\n211 b\r\n");
    }

    #[test]
    fn sizes_in_all_three_forms() {
        assert_eq!(find_size("1234"), Some(1234));
        assert_eq!(find_size("dir/file SIZE 1234"), Some(1234));
        assert_eq!(find_size("SIZE 9 SIZE 1234 bytes"), Some(1234));
        assert_eq!(find_size("unknown"), None);
        assert_eq!(find_marker("Transfer interrupted at 40000"), Some(40000));
        assert_eq!(find_marker(""), None);
        assert!(names_other_marker("Restarting at 4294941760", 40_000));
        assert!(!names_other_marker("Restart position accepted (40000).", 40_000));
        assert!(!names_other_marker("Requested file action pending", 40_000));
    }
}
