//! System calls for byte streams: terminals, signals as descriptors, waiting for several at once.
#![allow(unsafe_code, reason = "beside sys.rs the one place where system calls are made")]

use scps_types::Duration;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A new pseudo-terminal: our end (non-blocking), and the path of the other.
pub(crate) fn open_pty() -> io::Result<(OwnedFd, PathBuf)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: no pointers; the result is checked and owned at once.
    let master = unsafe { OwnedFd::from_raw_fd(check(libc::posix_openpt(flags))?) };
    // SAFETY: the descriptor is an open pseudo-terminal.
    check(unsafe { libc::unlockpt(master.as_raw_fd()) })?;
    let mut name = [0 as libc::c_char; 64];
    // SAFETY: the pointer and length describe a live local array.
    let failed = unsafe { libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len()) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    let name: Vec<u8> = name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    Ok((master, PathBuf::from(String::from_utf8_lossy(&name).into_owned())))
}

/// Makes a terminal pass bytes unchanged, without echo and without control lines. Its speed stays as it is.
pub(crate) fn make_raw(fd: RawFd) -> io::Result<()> {
    // SAFETY: termios is plain old data, filled by tcgetattr; the calls only read and write it.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        check(libc::tcgetattr(fd, &raw mut settings))?;
        libc::cfmakeraw(&raw mut settings);
        settings.c_cflag |= libc::CLOCAL | libc::CREAD;
        settings.c_cflag &= !libc::CRTSCTS;
        check(libc::tcsetattr(fd, libc::TCSANOW, &raw const settings))?;
    }
    Ok(())
}

/// Whether the descriptor is a terminal.
pub(crate) fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::isatty(fd) == 1 }
}

/// Writes what fits; 0 when nothing does now.
pub(crate) fn write_some(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe a live slice, which write only reads.
    let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    if n >= 0 {
        return Ok(n as usize);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

/// Blocks the signals for this thread and makes them readable.
pub(crate) fn signal_descriptor(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: sigset_t is plain old data, initialised by sigemptyset; the descriptor is checked and owned at once.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&raw mut set))?;
        for &signal in signals {
            check(libc::sigaddset(&raw mut set, signal))?;
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        Ok(OwnedFd::from_raw_fd(check(libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC))?))
    }
}

/// The next signal of a signal descriptor.
pub(crate) fn read_signal(fd: RawFd) -> io::Result<Option<libc::c_int>> {
    // SAFETY: signalfd_siginfo is plain old data; read fills at most its size.
    let (info, n) = unsafe {
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let n = libc::read(fd, (&raw mut info).cast(), size_of::<libc::signalfd_siginfo>());
        (info, n)
    };
    if n == size_of::<libc::signalfd_siginfo>() as isize {
        return Ok(Some(info.ssi_signo as libc::c_int));
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock {
        Ok(None)
    } else {
        Err(error)
    }
}

/// Lets sleeps of this thread end at their time instead of up to 50 µs later.
pub(crate) fn exact_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes its argument by value.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) }).map(drop)
}

/// What to wait for at a descriptor, and what was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub fd: RawFd,
    pub read: bool,
    pub write: bool,
}

/// Waits until a descriptor is ready or `timeout` has passed (forever without one); the descriptors say what they are ready for.
pub(crate) fn wait(watches: &mut [Watch], timeout: Option<Duration>) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> = watches
        .iter()
        .map(|w| {
            let events = if w.read { libc::POLLIN } else { 0 } | if w.write { libc::POLLOUT } else { 0 };
            // A descriptor that is not waited for would still report a hang-up, over and over.
            libc::pollfd { fd: if events == 0 { -1 } else { w.fd }, events, revents: 0 }
        })
        .collect();
    let spec = timeout.map(|t| libc::timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() });
    let spec_pointer = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array and the timespec live through the call; the null mask means "unchanged".
    let n = unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, spec_pointer, std::ptr::null()) };
    if n < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    for (watch, found) in watches.iter_mut().zip(&polled) {
        // An error condition is read from the descriptor.
        let bad = found.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
        watch.read = watch.read && (found.revents & libc::POLLIN != 0 || bad);
        watch.write = watch.write && (found.revents & libc::POLLOUT != 0 || bad);
    }
    Ok(())
}
