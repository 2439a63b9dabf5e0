//! Terminals.

use rustix::io::Errno;
use rustix::pty::{openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{tcgetattr, tcsetattr, ControlModes, OptionalActions};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
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

#[cfg(test)]
mod tests {
    use super::*;

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
                let mut buffer = [0; 300];
                match rustix::io::read(to, &mut buffer) {
                    Ok(n) => came.extend_from_slice(&buffer[..n]),
                    Err(Errno::AGAIN) => std::thread::yield_now(),
                    Err(error) => unreachable!("{error}"),
                }
            }
            assert_eq!(came, all);
        }
        // A full line takes nothing, and says so without waiting.
        while write_some(&master, &all).unwrap() > 0 {}
    }
}
