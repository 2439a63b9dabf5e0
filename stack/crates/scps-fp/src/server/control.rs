//! A control connection: lines in, replies out.

use super::session::FAREWELL;
use crate::line::{Line, LineReader};
use crate::net::{ConnId, Net, Recv};
use crate::reply::Reply;
use scps_wire::Instant;

/// Lines that may wait before more are read, and commands that wait for the end of a transfer.
pub(super) const QUEUE_MAX: usize = 16;
/// Reads in a turn: whoever sends without a pause, and never an end of line, keeps nobody waiting.
const READS_PER_TURN: usize = 16;
/// Octets of replies a client may leave unread before we stop reading its commands.
const UNREAD_MAX: usize = 64 * 1024;

/// A control connection.
#[derive(Debug)]
pub(super) struct Control {
    id: ConnId,
    lines: LineReader,
    out: Vec<u8>,
    /// Replies go without text (SUPP).
    pub suppressed: bool,
    /// Replies to transfers have a checksum.
    pub crc_on: bool,
    is_lost: bool,
    closing_since: Option<Instant>,
}

impl Control {
    pub fn new(id: ConnId, suppressed: bool) -> Control {
        let (lines, out) = (LineReader::commands(), Vec::new());
        Control { id, lines, out, suppressed, crc_on: true, is_lost: false, closing_since: None }
    }

    pub fn reply(&mut self, reply: &Reply) {
        self.out.extend_from_slice(&reply.emit(self.suppressed));
    }

    /// Lines of a reply that is not over yet.
    pub fn reply_more(&mut self, code: u16, lines: &[String]) {
        self.out.extend_from_slice(&Reply::emit_more(code, lines));
    }

    /// Octets of replies that the client has not taken.
    pub fn unread(&self) -> usize {
        self.out.len()
    }

    /// The next line.
    pub fn pop(&mut self) -> Option<Line> {
        self.lines.pop()
    }

    /// True if no line waits.
    pub fn is_read(&self) -> bool {
        self.lines.waiting() == 0
    }

    /// True if the peer has gone, as far as was seen.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Nothing is read any more: the last reply is taken, or patience for that ends.
    pub fn begin_to_close(&mut self, now: Instant) {
        self.closing_since = Some(now);
    }

    pub fn is_closing(&self) -> bool {
        self.closing_since.is_some()
    }

    /// When a connection that is being closed is given up.
    pub fn deadline(&self) -> Option<Instant> {
        self.closing_since.map(|since| since + FAREWELL)
    }

    /// Looks again whether the peer has gone; commands that came with it stay in line.
    pub fn is_gone(&mut self, net: &mut dyn Net) -> bool {
        self.read(net);
        self.is_lost
    }

    /// Reads what is there.
    pub fn read(&mut self, net: &mut dyn Net) -> Heard {
        let mut buffer = [0u8; 4096];
        let mut heard = Heard::Nothing;
        for _ in 0..READS_PER_TURN {
            let may_read = self.closing_since.is_none() && self.out.len() < UNREAD_MAX;
            if self.is_lost || !may_read || self.lines.waiting() >= QUEUE_MAX {
                break;
            }
            match net.recv(self.id, &mut buffer) {
                Ok(Recv::Data(n)) => {
                    self.lines.push(&buffer[..n]);
                    heard = Heard::Some;
                }
                Ok(Recv::Wait | Recv::Hole(_)) => break,
                Ok(Recv::End) => {
                    self.is_lost = true;
                    heard = Heard::Some;
                }
                Err(_) => {
                    self.is_lost = true;
                    return Heard::Failure;
                }
            }
        }
        heard
    }

    /// Gives the transport what it takes of the replies.
    pub fn write(&mut self, net: &mut dyn Net) -> Heard {
        if self.out.is_empty() {
            return Heard::Nothing;
        }
        match net.send(self.id, &self.out) {
            Ok(0) => Heard::Nothing,
            Ok(n) => {
                self.out.drain(..n);
                Heard::Some
            }
            Err(_) => {
                self.is_lost = true;
                self.out.clear();
                Heard::Failure
            }
        }
    }

    /// Ends the connection. Whoever reads nothing reads no end either.
    pub fn end(&self, net: &mut dyn Net) {
        if self.out.is_empty() {
            net.release(self.id);
        } else {
            net.abort(self.id);
        }
    }
}

/// What a look at the connection gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    Nothing,
    Some,
    /// Nobody is there any more, or waits for anything.
    Failure,
}
