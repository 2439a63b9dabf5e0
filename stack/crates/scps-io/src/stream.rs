//! Sockets as other programs know them: blocking listeners and streams over a shared stack.
//!
//! Whoever waits turns the loop, so any number of streams live on one thread; a program that serves many at once uses
//! [`Stack::run_once`] and events directly.

use crate::stack::Stack;
use crate::IoError;
use scps_tp::{Config, ConnectionId, Event, ListenerId, RecvError, State};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;

/// A stack several streams use.
pub type SharedStack = Rc<RefCell<Stack>>;

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

/// Turns the loop until `found` picks an event out; events it leaves are kept for others.
fn wait_event<T>(stack: &SharedStack, mut found: impl FnMut(&Event) -> Option<T>) -> Result<T, IoError> {
    loop {
        let mut left = Vec::new();
        let mut result = None;
        {
            let mut stack = stack.borrow_mut();
            while let Some(event) = stack.poll_event() {
                result = found(&event);
                if result.is_some() {
                    break;
                }
                // Only openings concern somebody who is not waiting now; the rest shows in the connection's state.
                if matches!(event, Event::Accepted(..)) {
                    left.push(event);
                }
            }
            if result.is_none() {
                stack.run_once(None)?;
            }
            for event in left {
                stack.defer_event(event);
            }
        }
        if let Some(result) = result {
            return Ok(result);
        }
    }
}

impl Listener {
    /// Listens on `local`.
    pub fn bind(stack: &SharedStack, local: impl Into<SocketAddr>, config: Config) -> io::Result<Self> {
        let id = stack.borrow_mut().listen(local, config).map_err(other)?;
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

    /// Ends sending, and waits until the peer has acknowledged everything, the end included: a program that leaves
    /// without has perhaps not said that it is done.
    pub fn finish(self) -> io::Result<()> {
        self.shutdown_write();
        loop {
            let is_flushed = |s: scps_tp::Stats| s.flushed_at.is_some();
            if self.stack.borrow().endpoint().stats(self.id).is_some_and(is_flushed) {
                return Ok(());
            }
            if self.stack.borrow().endpoint().state(self.id).is_none_or(|s| s == State::Closed) {
                return Err(undelivered());
            }
            self.stack.borrow_mut().run_once_for_stream().map_err(other)?;
        }
    }

    /// Reads up to the end of a record; the flag tells whether it was reached.
    pub fn read_record(&mut self, out: &mut [u8]) -> io::Result<(usize, bool)> {
        loop {
            match self.stack.borrow_mut().recv(self.id, out) {
                Ok(got) => return Ok(got),
                Err(RecvError::WouldBlock) => {}
                Err(e) => return Err(other(e)),
            }
            self.stack.borrow_mut().run_once_for_stream().map_err(other)?;
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
            let n = self.stack.borrow_mut().send(self.id, data).map_err(other)?;
            if n > 0 || data.is_empty() {
                return Ok(n);
            }
            self.stack.borrow_mut().run_once_for_stream().map_err(other)?;
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
            self.stack.borrow_mut().run_once_for_stream().map_err(other)?;
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // What was given is still delivered as long as somebody turns the stack.
        self.stack.borrow_mut().release(self.id);
    }
}
