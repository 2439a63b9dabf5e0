//! The person at the client: what is shown, and the wishes that come by signal or keyboard.

use super::keyboard::Keyboard;
use crate::stop::Cause;
use scps_fp::client::{Console, Urge};
use signal_hook::consts::{SIGINT, SIGTERM, SIGTSTP};
use std::cell::RefCell;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Signals as flags, and a pipe that ends waiting when one comes.
pub struct Signals {
    abort: Arc<AtomicBool>,
    interrupt: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    ends_at_once: Arc<AtomicBool>,
    wakeup: UnixStream,
}

impl Signals {
    /// ^C wishes to abort, ^Z to interrupt; a second ^C that nobody heeded ends the program. SIGTERM ends the program after
    /// it has reset its connections; at once if it is the second, or comes while the program waits for a command.
    pub fn install() -> std::io::Result<Signals> {
        let (wakeup, waker) = UnixStream::pair()?;
        wakeup.set_nonblocking(true)?;
        let signals = Signals {
            abort: Arc::default(),
            interrupt: Arc::default(),
            end: Arc::default(),
            ends_at_once: Arc::default(),
            wakeup,
        };
        signal_hook::flag::register_conditional_shutdown(SIGTERM, 143, Arc::clone(&signals.ends_at_once))?;
        for flag in [&signals.ends_at_once, &signals.end] {
            signal_hook::flag::register(SIGTERM, Arc::clone(flag))?;
        }
        signal_hook::low_level::pipe::register(SIGTERM, waker.try_clone()?)?;
        signal_hook::flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&signals.abort))?;
        signal_hook::flag::register(SIGINT, Arc::clone(&signals.abort))?;
        signal_hook::flag::register(SIGTSTP, Arc::clone(&signals.interrupt))?;
        signal_hook::low_level::pipe::register(SIGINT, waker.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGTSTP, waker)?;
        Ok(signals)
    }

    /// What to watch.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// True if ^C came and nobody took it.
    pub fn take_abort(&self) -> bool {
        self.abort.swap(false, Ordering::Relaxed)
    }

    /// Forgets a wish to interrupt that came while nothing ran: it would end the next transfer before its first octet.
    pub fn forget_interrupt(&self) {
        self.interrupt.store(false, Ordering::Relaxed);
    }

    /// Why to end, if SIGTERM came.
    pub fn end(&self) -> Option<Cause> {
        self.end.load(Ordering::Relaxed).then_some(Cause::Signal(SIGTERM))
    }

    /// True once SIGTERM came.
    pub fn end_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.end)
    }

    /// Says whether the program waits for a command, from where nothing but its end can call it away.
    pub fn set_waiting(&self, waits: bool) {
        self.ends_at_once.store(waits || self.end().is_some(), Ordering::Relaxed);
    }

    fn urge(&mut self) -> Option<Urge> {
        let mut rings = [0u8; 64];
        while matches!(self.wakeup.read(&mut rings), Ok(n) if n > 0) {}
        if self.take_abort() {
            return Some(Urge::Abort);
        }
        self.interrupt.swap(false, Ordering::Relaxed).then_some(Urge::Interrupt)
    }
}

/// Shows on standard error, so that results on standard output stay pure.
pub struct Terminal {
    pub signals: Rc<RefCell<Signals>>,
    pub keyboard: Rc<RefCell<Keyboard>>,
    /// Standard input is for commands, so words on it count while a transfer runs.
    pub listens: bool,
    pub quiet: bool,
}

impl Console for Terminal {
    fn show(&mut self, line: &str) {
        if !self.quiet {
            crate::say::remark(line);
        }
    }

    fn urge(&mut self) -> Option<Urge> {
        if let Some(urge) = self.signals.borrow_mut().urge() {
            return Some(urge);
        }
        if !self.listens {
            return None;
        }
        let mut keyboard = self.keyboard.borrow_mut();
        keyboard.read_ready();
        match keyboard.take_word(&["interrupt", "abort"])?.trim() {
            "abort" => Some(Urge::Abort),
            _ => Some(Urge::Interrupt),
        }
    }
}
