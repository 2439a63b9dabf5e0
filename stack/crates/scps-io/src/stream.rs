//! Sockets as other programs know them: blocking listeners and streams over a shared stack.
//!
//! Whoever waits turns the loop, so any number of streams live on one thread; a program that serves many at once uses
//! [`Stack::run_once`] and events directly.

use crate::stack::Stack;
use crate::IoError;
use scps_tp::{Config, ConnectionId, Event, ListenError, ListenerId, RecvError, State};
use scps_wire::Duration;
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;

/// How long a stream that is finished waits for its peer's end (Linux, `tcp_fin_timeout`).
const FIN_PATIENCE: Duration = Duration::from_secs(60);
/// How long a reset may wait for the rate.
const RESET_PATIENCE: Duration = Duration::from_secs(1);

/// A stack several streams use.
pub type SharedStack = Rc<RefCell<Stack>>;

impl Stack {
    /// The stack, for several streams.
    pub fn shared(self) -> SharedStack {
        Rc::new(RefCell::new(self))
    }
}

/// Accepts connections.
#[derive(Debug)]
pub struct Listener {
    stack: SharedStack,
    id: ListenerId,
}

/// An open connection.
#[derive(Debug)]
pub struct Stream {
    stack: SharedStack,
    id: ConnectionId,
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

fn taken(error: ListenError) -> io::Error {
    let kind = if let ListenError::InUse(_) = error { io::ErrorKind::AddrInUse } else { io::ErrorKind::Unsupported };
    io::Error::new(kind, error)
}

/// Turns the loop until `found` picks an event out. Of the others, openings are kept: what else there is shows in its connection's state.
fn wait_event<T>(stack: &SharedStack, mut found: impl FnMut(&Event) -> Option<T>) -> Result<T, IoError> {
    let mut stack = stack.borrow_mut();
    loop {
        if let Some(result) = stack.endpoint_mut().find_event(&mut found) {
            return Ok(result);
        }
        stack.run_once_for_stream(None)?;
    }
}

impl Listener {
    /// Listens on `local`.
    pub fn bind(stack: &SharedStack, local: impl Into<SocketAddr>, config: Config) -> io::Result<Self> {
        let id = stack.borrow_mut().listen(local, config).map_err(taken)?;
        Ok(Listener { stack: Rc::clone(stack), id })
    }

    /// Waits for a connection.
    pub fn accept(&self) -> io::Result<Stream> {
        let found = |event: &Event| match event {
            Event::Accepted(listener, id) if *listener == self.id => Some(*id),
            _ => None,
        };
        let id = wait_event(&self.stack, found).map_err(other)?;
        Ok(Stream { stack: Rc::clone(&self.stack), id })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut stack = self.stack.borrow_mut();
        stack.unlisten(self.id);
        let of_ours = |event: &Event| match event {
            Event::Accepted(listener, id) if *listener == self.id => Some(*id),
            _ => None,
        };
        while let Some(id) = stack.endpoint_mut().find_event(of_ours) {
            stack.abort(id);
            stack.release(id);
        }
    }
}

impl Stream {
    /// Connects and waits for the answer.
    pub fn connect(
        stack: &SharedStack,
        local: impl Into<SocketAddr>,
        remote: impl Into<SocketAddr>,
        config: Config,
    ) -> io::Result<Self> {
        let id = stack.borrow_mut().connect(local, remote, config).map_err(other)?;
        let found = |event: &Event| match event {
            Event::Connected(c) if *c == id => Some(Ok(())),
            Event::Closed(c, reason) if *c == id => Some(Err(*reason)),
            _ => None,
        };
        match wait_event(stack, found).map_err(other)? {
            Ok(()) => Ok(Stream { stack: Rc::clone(stack), id }),
            Err(reason) => Err(reason.into()),
        }
    }

    /// The connection's name in the engine.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Ends sending; reading goes on.
    pub fn shutdown_write(&self) {
        self.stack.borrow_mut().close(self.id);
    }

    /// Ends sending, and sees the connection off, as a kernel does behind a program's back: waits until the peer has acknowledged
    /// everything, the end included, and has ended too, and then for a round trip or two, should our acknowledgement of its end be
    /// lost. Both ends may call it. What the peer still sends is dropped; one that does not end within a minute, or
    /// eight timeouts if that is longer, is reset. An error if not everything of ours was acknowledged.
    pub fn finish(self) -> io::Result<()> {
        self.shutdown_write();
        let mut dropped = [0; 4096];
        loop {
            let mut stack = self.stack.borrow_mut();
            while matches!(stack.recv(self.id, &mut dropped), Ok((n, _)) if n > 0) {}
            let endpoint = stack.endpoint();
            let flushed_at = endpoint.stats(self.id).and_then(|stats| stats.flushed_at);
            let state = endpoint.state(self.id).filter(|state| *state != State::Closed);
            let Some(state) = state else { return flushed_at.map(drop).ok_or_else(undelivered) };
            let may_leave_at = endpoint.may_leave_at(self.id);
            let until = match (state, may_leave_at, flushed_at) {
                (State::FinWait2, Some(at), Some(flushed_at)) => Some(at.max(flushed_at + FIN_PATIENCE)),
                _ => may_leave_at,
            };
            if until.is_some_and(|at| at <= stack.now()) {
                if state == State::FinWait2 {
                    stack.abort(self.id);
                    stack.finish_resets(RESET_PATIENCE).map_err(other)?;
                }
                return Ok(());
            }
            stack.run_once_for_stream(until).map_err(other)?;
        }
    }

    /// Reads up to the end of a record; the flag tells whether it was reached.
    pub fn read_record(&mut self, out: &mut [u8]) -> io::Result<(usize, bool)> {
        loop {
            match self.stack.borrow_mut().recv(self.id, out) {
                Ok(got) => return Ok(got),
                Err(RecvError::WouldBlock) => {}
                Err(RecvError::Closed(reason)) => return Err(reason.into()),
                Err(e) => return Err(other(e)),
            }
            self.stack.borrow_mut().run_once_for_stream(None).map_err(other)?;
        }
    }
}

fn undelivered() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the connection ended before everything was acknowledged")
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        self.read_record(out).map(|(n, _)| n)
    }
}

impl Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        loop {
            let taken = self.stack.borrow_mut().send(self.id, data);
            let n = taken.map_err(|error| io::Error::new(io::ErrorKind::BrokenPipe, error))?;
            if n > 0 || data.is_empty() {
                return Ok(n);
            }
            self.stack.borrow_mut().run_once_for_stream(None).map_err(other)?;
        }
    }

    /// Waits until the peer has acknowledged everything; an error if it no longer can.
    fn flush(&mut self) -> io::Result<()> {
        loop {
            let waiting = self.stack.borrow().endpoint().snapshot(self.id).map_or(0, |s| s.unacknowledged);
            let state = self.stack.borrow().endpoint().state(self.id);
            if waiting == 0 {
                return Ok(());
            }
            if state.is_none_or(|s| s == State::Closed) {
                return Err(undelivered());
            }
            self.stack.borrow_mut().run_once_for_stream(None).map_err(other)?;
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // What was given is still delivered as long as somebody turns the stack.
        self.stack.borrow_mut().release(self.id);
    }
}
