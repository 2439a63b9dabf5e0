//! What a program does with its connection.

use scps_tp::{CloseReason, ConnectionId, Endpoint, RecvError};
use scps_wire::{Duration, Instant};

/// Octets read at a time.
pub(crate) const CHUNK: usize = 16_384;

/// A program with one connection: it gives what it has to send, closes, and reads to the end.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// What it sends.
    pub to_send: Vec<u8>,
    /// Octets per record; `None` for a plain stream.
    pub record: Option<usize>,
    /// When it closes at the earliest; it does so when all is given.
    pub fin_at: Instant,
    /// When it gives up, if at all.
    pub abort_at: Option<Instant>,
    /// When it begins to read, or goes on.
    pub reads_from: Instant,
    /// A slow reader: how much it reads at a time, and how long it waits then.
    pub pace: Option<(usize, Duration)>,
    /// How much of `to_send` the engine has taken.
    pub given: usize,
    /// What it received.
    pub received: Vec<u8>,
    /// Holes reported by the engine.
    pub holes: Vec<(u64, u64)>,
    /// Record ends read, as lengths of `received`.
    pub record_ends: Vec<usize>,
    /// Whether it has closed.
    pub is_closing: bool,
    /// Whether it has read the peer's end.
    pub is_at_end: bool,
    /// Whether it has read all there is of a connection that ended without the peer's end.
    pub is_cut: bool,
    /// Why the connection is over.
    pub closed: Option<CloseReason>,
}

impl Program {
    /// A program that sends this, and closes.
    pub fn sending(to_send: Vec<u8>) -> Self {
        Program { to_send, ..Program::default() }
    }

    /// True if there is nothing more to read.
    pub fn has_read_all(&self) -> bool {
        self.is_at_end || self.is_cut
    }

    /// When it will act by itself.
    pub(crate) fn times(&self) -> impl Iterator<Item = Instant> {
        [Some(self.fin_at), self.abort_at, Some(self.reads_from)].into_iter().flatten()
    }

    /// Does all that can be done now.
    pub(crate) fn act(&mut self, now: Instant, id: ConnectionId, endpoint: &mut Endpoint, buffer: &mut [u8]) {
        if self.abort_at.is_some_and(|at| at <= now) && self.closed.is_none() {
            endpoint.abort(now, id);
            self.abort_at = None;
        }
        self.give(now, id, endpoint);
        if self.given == self.to_send.len() && self.fin_at <= now && !self.is_closing {
            endpoint.close(now, id);
            self.is_closing = true;
        }
        self.read(now, id, endpoint, buffer);
    }

    fn give(&mut self, now: Instant, id: ConnectionId, endpoint: &mut Endpoint) {
        while self.given < self.to_send.len() {
            let rest = &self.to_send[self.given..];
            let taken = match self.record.map(|octets| &rest[..octets.min(rest.len())]) {
                Some(record) if endpoint.send_record(now, id, record) == Ok(true) => record.len(),
                Some(_) => 0,
                None => endpoint.send(now, id, rest).unwrap_or(0),
            };
            if taken == 0 {
                return;
            }
            self.given += taken;
        }
    }

    fn read(&mut self, now: Instant, id: ConnectionId, endpoint: &mut Endpoint, buffer: &mut [u8]) {
        let (mut left, wait) = self.pace.unwrap_or((usize::MAX, Duration::ZERO));
        while self.reads_from <= now && left > 0 {
            let most = left.min(buffer.len());
            match endpoint.recv(now, id, &mut buffer[..most]) {
                Ok((0, _)) => {
                    self.is_at_end = true;
                    break;
                }
                Ok((n, ends_record)) => {
                    self.received.extend_from_slice(&buffer[..n]);
                    if ends_record {
                        self.record_ends.push(self.received.len());
                    }
                    left -= n;
                }
                Err(RecvError::Hole { offset, len }) => self.holes.push((offset, len)),
                Err(error) => {
                    self.is_cut |= matches!(error, RecvError::Closed(_));
                    break;
                }
            }
        }
        if self.pace.is_some_and(|(most, _)| left < most) {
            self.reads_from = now + wait;
        }
    }
}
