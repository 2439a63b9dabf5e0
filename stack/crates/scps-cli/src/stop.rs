//! What ends a program before its work is done: a signal or --timeout-s. Peers are told by RST, which the program sees off.

use crate::error::CliError;
use scps_io::{IoError, Stack};
use scps_wire::{Duration, Instant};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Longest that resets may take to leave: 40 octets at 64 bit/s.
pub const RESETS_MAX: Duration = Duration::from_secs(5);

/// Why to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// --timeout-s has passed.
    Timeout,
    /// SIGTERM or SIGINT came.
    Signal(i32),
}

impl Cause {
    /// As results and messages say it.
    pub fn text(self) -> &'static str {
        match self {
            Cause::Timeout => "gave up: --timeout-s reached",
            Cause::Signal(SIGINT) => "ended by SIGINT",
            Cause::Signal(_) => "ended by SIGTERM",
        }
    }

    /// 1, or 128 and the number of the signal, as shells have it.
    pub fn exit_code(self) -> ExitCode {
        match self {
            Cause::Timeout => ExitCode::FAILURE,
            Cause::Signal(number) => ExitCode::from(128 + number as u8),
        }
    }
}

/// SIGTERM and SIGINT as something to look at and to wait for. A second one ends the program at once.
pub struct StopSignals {
    came: Arc<AtomicUsize>,
    wakeup: UnixStream,
}

impl StopSignals {
    /// Takes the signals over.
    pub fn install() -> Result<StopSignals, CliError> {
        StopSignals::try_install().map_err(|source| IoError::System { what: "signals", source }.into())
    }

    fn try_install() -> std::io::Result<StopSignals> {
        let (wakeup, waker) = UnixStream::pair()?;
        let (is_second, came) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&is_second))?;
            signal_hook::flag::register(signal, Arc::clone(&is_second))?;
            signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(StopSignals { came, wakeup })
    }

    /// A signal that asks for something else, as something to look at and to wait for.
    pub fn other(signal: i32) -> Result<Request, CliError> {
        let install = || -> std::io::Result<Request> {
            let (wakeup, waker) = UnixStream::pair()?;
            wakeup.set_nonblocking(true)?;
            let came = Arc::default();
            // In this order: whoever is woken sees the flag.
            signal_hook::flag::register(signal, Arc::clone(&came))?;
            signal_hook::low_level::pipe::register(signal, waker)?;
            Ok(Request { came, wakeup })
        };
        install().map_err(|source| IoError::System { what: "signals", source }.into())
    }

    /// Becomes readable with the first signal and stays so.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// The signal that came.
    pub fn came(&self) -> Option<Cause> {
        match self.came.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Cause::Signal(number as i32)),
        }
    }
}

/// A signal that does not end the program.
pub struct Request {
    came: Arc<AtomicBool>,
    wakeup: UnixStream,
}

impl Request {
    /// Readable while nobody has looked.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// True if the signal came since this was asked.
    pub fn came(&mut self) -> bool {
        // A loop asks at each turn; only what came costs a call of the system.
        let came = self.came.swap(false, Ordering::Relaxed);
        if came {
            let _ = std::io::Read::read(&mut self.wakeup, &mut [0; 64]);
        }
        came
    }
}

/// When a program that moves data stops before its end.
pub struct Stop {
    signals: StopSignals,
    deadline: Option<Instant>,
}

impl Stop {
    /// On a signal, or after `limit` from now.
    pub fn new(stack: &mut Stack, limit: Option<Duration>) -> Result<Stop, CliError> {
        let signals = StopSignals::install()?;
        stack.watch(signals.wakeup())?;
        Ok(Stop { signals, deadline: limit.map(|l| stack.now() + l) })
    }

    /// When to look again at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Why to stop now, if so.
    pub fn cause(&self, now: Instant) -> Option<Cause> {
        let timeout = self.deadline.is_some_and(|d| now >= d).then_some(Cause::Timeout);
        self.signals.came().or(timeout)
    }
}

/// Resets every connection and waits until the resets have left; says so if they have not.
pub fn abort_all(stack: &mut Stack) -> Result<(), CliError> {
    stack.abort_all();
    if !stack.finish_resets(RESETS_MAX)? {
        warn_of_resets();
    }
    Ok(())
}

/// For the person who has to tell the peer.
pub fn warn_of_resets() {
    let longest = RESETS_MAX.as_secs();
    crate::say::remark(format_args!("scps: a reset did not leave within {longest} s; the peer still waits."));
}
