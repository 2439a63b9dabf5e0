//! Terminals, signals as descriptors, and waiting for several byte streams at once.

use crate::sys::timespec;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pty::{openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{tcgetattr, tcsetattr, ControlModes, OptionalActions};
use scps_types::Duration;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A new pseudo-terminal: our end (non-blocking), and the path of the other.
pub(crate) fn open_pty() -> io::Result<(OwnedFd, PathBuf)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    Ok((master, PathBuf::from(OsString::from_vec(name.into_bytes()))))
}

/// Makes a terminal pass bytes unchanged, without echo and without control lines. Its speed stays as it is.
pub(crate) fn make_raw(fd: impl AsFd) -> io::Result<()> {
    let mut settings = tcgetattr(&fd)?;
    settings.make_raw();
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    settings.control_modes &= !ControlModes::CRTSCTS;
    Ok(tcsetattr(&fd, OptionalActions::Now, &settings)?)
}

/// Whether the descriptor is a terminal.
pub(crate) fn is_terminal(fd: impl AsFd) -> bool {
    rustix::termios::isatty(fd)
}

/// Writes what fits; 0 when nothing does now.
pub(crate) fn write_some(fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    match rustix::io::write(fd, bytes) {
        Ok(n) => Ok(n),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// What to wait for at a descriptor, and what was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'a> {
    pub fd: BorrowedFd<'a>,
    pub read: bool,
    pub write: bool,
}

impl<'a> Watch<'a> {
    /// Waits for bytes to read.
    pub(crate) fn reading(fd: BorrowedFd<'a>) -> Self {
        Watch { fd, read: true, write: false }
    }
}

/// Waits until a descriptor is ready or `timeout` has passed (forever without one); the descriptors say what they are ready for.
pub(crate) fn wait(watches: &mut [Watch<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // A descriptor that is not waited for would still report a hang-up, over and over.
    let mut polled: Vec<PollFd<'_>> = (watches.iter().filter(|w| w.read || w.write))
        .map(|w| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, w.read);
            flags.set(PollFlags::OUT, w.write);
            PollFd::from_borrowed_fd(w.fd, flags)
        })
        .collect();
    let found = match poll(&mut polled, timeout.map(timespec).as_ref()) {
        Ok(_) => polled.iter().map(PollFd::revents).collect(),
        Err(Errno::INTR) => vec![PollFlags::empty(); polled.len()],
        Err(error) => return Err(error.into()),
    };
    for (watch, found) in watches.iter_mut().filter(|w| w.read || w.write).zip(found) {
        // An error condition is read from the descriptor.
        let bad = found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        watch.read = watch.read && (found.contains(PollFlags::IN) || bad);
        watch.write = watch.write && (found.contains(PollFlags::OUT) || bad);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_raw_pseudo_terminal_passes_every_octet_both_ways() {
        let (master, path) = open_pty().unwrap();
        let slave = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        make_raw(&slave).unwrap();
        assert!(is_terminal(&slave) && !is_terminal(std::fs::File::open("/dev/null").unwrap()));
        let all: Vec<u8> = (0..=255).collect();
        for (from, to) in [(master.as_fd(), slave.as_fd()), (slave.as_fd(), master.as_fd())] {
            assert_eq!(write_some(from, &all).unwrap(), 256);
            let mut came = Vec::new();
            while came.len() < 256 {
                wait(&mut [Watch::reading(to)], Some(Duration::from_secs(10))).unwrap();
                let mut buffer = [0; 300];
                let n = rustix::io::read(to, &mut buffer).unwrap();
                came.extend_from_slice(&buffer[..n]);
            }
            assert_eq!(came, all);
        }
        // A full line takes nothing, and says so without waiting.
        while write_some(&master, &all).unwrap() > 0 {}
    }

    #[test]
    fn only_what_is_waited_for_is_told() {
        let (near, far) = UnixStream::pair().unwrap();
        let (idle, _kept) = UnixStream::pair().unwrap();
        drop(far);
        let not_waited_for = Watch { fd: near.as_fd(), read: false, write: false };
        let mut watches = [not_waited_for, Watch::reading(idle.as_fd())];
        wait(&mut watches, Some(Duration::from_millis(1))).unwrap();
        assert!(watches.iter().all(|w| !w.read && !w.write), "a hang-up nobody waits for ends no wait");
        let mut watches = [Watch::reading(near.as_fd()), Watch::reading(idle.as_fd())];
        wait(&mut watches, None).unwrap();
        assert_eq!((watches[0].read, watches[0].write, watches[1].read), (true, false, false));
    }
}
