//! Lines of standard input without waiting for them, so that words can be heard while a transfer runs.

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::collections::VecDeque;
use std::io::{Read, Stdin};

/// Standard input, unbuffered by anybody else.
#[derive(Debug)]
pub struct Keyboard {
    input: Stdin,
    partial: Vec<u8>,
    lines: VecDeque<String>,
    is_at_end: bool,
}

/// Longest line taken.
const LINE_MAX: usize = 64 * 1024;

impl Keyboard {
    /// Standard input.
    pub fn new() -> Keyboard {
        Keyboard { input: std::io::stdin(), partial: Vec::new(), lines: VecDeque::new(), is_at_end: false }
    }

    /// Takes what is there, without waiting.
    pub fn read_ready(&mut self) {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while !self.is_at_end {
            let ready = {
                let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
                poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0)
            };
            if !ready {
                return;
            }
            self.read_some();
        }
    }

    fn read_some(&mut self) {
        let mut buffer = [0u8; 4096];
        // The handle of the standard library would keep octets back; a descriptor does not.
        let n = match rustix::io::read(&self.input, &mut buffer) {
            Ok(n) => n,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return,
            Err(_) => 0,
        };
        self.is_at_end = n == 0;
        self.partial.extend_from_slice(&buffer[..n]);
        while let Some(end) = self.partial.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            self.lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        if self.is_at_end && !self.partial.is_empty() || self.partial.len() > LINE_MAX {
            let line = std::mem::take(&mut self.partial);
            self.lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    }

    /// The first line that is `wanted`, out of turn.
    pub fn take_word(&mut self, wanted: &[&str]) -> Option<String> {
        let at = self.lines.iter().position(|l| wanted.contains(&l.trim()))?;
        self.lines.remove(at)
    }

    /// A line that is there.
    pub fn pop(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// The next line; waits for it. `None` at the end.
    pub fn next_line(&mut self) -> Option<String> {
        while self.lines.is_empty() && !self.is_at_end {
            // Whoever gave the descriptor may have set it so that reading does not wait. What cannot be asked is read.
            let _ = poll(&mut [PollFd::new(&self.input, PollFlags::IN)], None);
            self.read_some();
        }
        self.pop()
    }
}

/// All of standard input, without a last line end.
pub fn read_secret() -> std::io::Result<String> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
