//! Ends of byte streams: pseudo-terminals, serial devices, sockets.

use crate::reactor::{Interest, Reactor};
use crate::{sys, sys_tty, IoError};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::SigId;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{File, OpenOptions};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Where a byte stream comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EndAddress {
    /// A new pseudo-terminal, to be found under this path (a symbolic link, made and removed by us).
    Pty(PathBuf),
    /// A terminal, serial device or FIFO that is there.
    Device(PathBuf),
    /// A Unix socket to connect to.
    Unix(PathBuf),
    /// A Unix socket to be made; one peer is waited for.
    UnixListen(PathBuf),
    /// A TCP address to connect to.
    Tcp(String),
    /// A TCP address to listen on; one peer is waited for.
    TcpListen(String),
}

impl std::str::FromStr for EndAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or(("", text));
        if rest.is_empty() {
            return Err(format!(
                "found \"{text}\"; expected pty:PATH, unix:PATH, tcp:HOST:PORT or the path of a device"
            ));
        }
        Ok(match kind {
            "pty" => EndAddress::Pty(rest.into()),
            "unix" => EndAddress::Unix(rest.into()),
            "unix-listen" => EndAddress::UnixListen(rest.into()),
            "tcp" => EndAddress::Tcp(rest.into()),
            "tcp-listen" => EndAddress::TcpListen(rest.into()),
            _ => EndAddress::Device(text.into()),
        })
    }
}

impl std::fmt::Display for EndAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EndAddress::Pty(path) => write!(f, "pty:{}", path.display()),
            EndAddress::Device(path) => write!(f, "{}", path.display()),
            EndAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            EndAddress::UnixListen(path) => write!(f, "unix-listen:{}", path.display()),
            EndAddress::Tcp(address) => write!(f, "tcp:{address}"),
            EndAddress::TcpListen(address) => write!(f, "tcp-listen:{address}"),
        }
    }
}

/// What reading an end gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadOutcome {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The peer is gone.
    Ended,
}

/// An open end, non-blocking.
#[derive(Debug)]
pub struct ByteEnd {
    // First, for what keeps others from its name has to be open still.
    _made: Option<Made>,
    fd: OwnedFd,
    /// A pseudo-terminal whose other side nobody has open reports a hang-up for ever: we keep it open ourselves.
    _other_side: Option<File>,
}

/// A link or socket that we made, which goes with us unless its name is another program's by then.
#[derive(Debug)]
struct Made(PathBuf, Option<Identity>);

/// Device, inode, and where a link leads: our open end keeps the inode of its socket and the name of its terminal from others.
type Identity = (u64, u64, Option<PathBuf>);

impl Made {
    fn at(path: &Path) -> Made {
        Made(path.to_owned(), identity(path))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    path.symlink_metadata().ok().map(|about| (about.dev(), about.ino(), path.read_link().ok()))
}

impl ByteEnd {
    /// Opens the end; a listening one waits for its peer. `None` if a signal ended the wait.
    pub fn open(address: &EndAddress, signals: &Signals) -> Result<Option<Self>, IoError> {
        Self::try_open(address, signals).map_err(|source| IoError::Device {
            what: address.to_string(),
            advice: "expected a byte stream that can be opened for reading and writing.",
            source,
        })
    }

    /// Opens an end that waits for nobody; one that listens is refused.
    pub fn open_now(address: &EndAddress) -> Result<Self, IoError> {
        Self::try_open_now(address).map_err(|source| IoError::Device {
            what: address.to_string(),
            advice: "expected a byte stream that can be opened for reading and writing.",
            source,
        })
    }

    fn try_open(address: &EndAddress, signals: &Signals) -> io::Result<Option<Self>> {
        match address {
            EndAddress::UnixListen(path) => {
                let listener = listen_unix(path)?;
                let made = Made::at(path);
                if !signals.wait_before(listener.as_fd())? {
                    return Ok(None);
                }
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Some(ByteEnd { fd: stream.into(), _other_side: None, _made: Some(made) }))
            }
            EndAddress::TcpListen(address) => {
                let listener = TcpListener::bind(address)?;
                if !signals.wait_before(listener.as_fd())? {
                    return Ok(None);
                }
                tcp(listener.accept()?.0).map(Some)
            }
            _ => Self::try_open_now(address).map(Some),
        }
    }

    fn try_open_now(address: &EndAddress) -> io::Result<Self> {
        let end = |fd: OwnedFd| ByteEnd { fd, _other_side: None, _made: None };
        match address {
            EndAddress::Pty(path) => {
                let (fd, slave) = sys_tty::open_pty()?;
                let other_side = open_device(&slave)?;
                sys_tty::make_raw(&other_side)?;
                // A link left by an earlier run is replaced; anything else in this place is not ours.
                if path.symlink_metadata().is_ok_and(|m| m.file_type().is_symlink()) {
                    std::fs::remove_file(path)?;
                }
                std::os::unix::fs::symlink(&slave, path)?;
                Ok(ByteEnd { fd, _other_side: Some(other_side), _made: Some(Made::at(path)) })
            }
            EndAddress::Device(path) => {
                let file = open_device(path)?;
                if sys_tty::is_terminal(&file) {
                    sys_tty::make_raw(&file)?;
                }
                Ok(end(file.into()))
            }
            EndAddress::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Ok(end(stream.into()))
            }
            EndAddress::Tcp(address) => tcp(TcpStream::connect(address)?),
            EndAddress::UnixListen(_) | EndAddress::TcpListen(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "it would wait for a peer"))
            }
        }
    }

    /// What to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Reads at most `limit` bytes to the end of `into`.
    pub fn read(&mut self, into: &mut Vec<u8>, limit: usize) -> Result<ReadOutcome, IoError> {
        self.read_some(into, limit).map_err(IoError::system("read"))
    }

    pub(crate) fn read_some(&mut self, into: &mut Vec<u8>, limit: usize) -> io::Result<ReadOutcome> {
        let before = into.len();
        into.resize(before + limit, 0);
        let result = sys::read_packet(self.fd.as_fd(), &mut into[before..]);
        into.truncate(before + result.as_ref().map_or(0, |n| n.unwrap_or(0)));
        match result {
            Ok(Some(0)) => Ok(ReadOutcome::Ended),
            Ok(Some(n)) => Ok(ReadOutcome::Bytes(n)),
            Ok(None) => Ok(ReadOutcome::Nothing),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EIO | libc::ECONNRESET)) => Ok(ReadOutcome::Ended),
            Err(e) => Err(e),
        }
    }

    /// Writes what fits of `bytes` and takes that away from their front.
    pub fn write(&mut self, bytes: &mut Vec<u8>) -> Result<(), IoError> {
        self.write_some(bytes).map_err(IoError::system("write"))
    }

    pub(crate) fn write_some(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        match sys_tty::write_some(&self.fd, bytes) {
            Ok(n) => {
                bytes.drain(..n);
                Ok(())
            }
            // The peer is gone; what it would have read goes where bytes on an unplugged line go.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET | libc::EIO)) => {
                bytes.clear();
                Ok(())
            }
            Err(e) => Err(e),
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if identity(&self.0) == self.1 {
            // Somebody may have taken it away already.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// Listens at a path. A socket that a killed program left there, so that nobody answers at it, is replaced; whatever else has this place is
/// not ours.
pub fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) => {}
        result => return result,
    }
    std::fs::remove_file(path)?;
    UnixListener::bind(path)
}

fn is_left_over(path: &Path) -> bool {
    let asks = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // Who lives and is busy is not waited for.
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    };
    path.symlink_metadata().is_ok_and(|about| about.file_type().is_socket())
        && asks().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn open_device(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK).open(path)
}

fn tcp(stream: TcpStream) -> io::Result<ByteEnd> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(ByteEnd { fd: stream.into(), _other_side: None, _made: None })
}

/// A signal that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGTERM or SIGINT: end.
    End,
    /// SIGUSR1: begin.
    Begin,
}

/// Signals of this process as something to wait for. Each kind has a pipe, into which its handler writes an octet.
#[derive(Debug)]
pub struct Signals {
    end: UnixStream,
    begin: UnixStream,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Takes SIGTERM, SIGINT and SIGUSR1 over. SIGPIPE is ignored by Rust's start-up code.
    pub fn new() -> Result<Self, IoError> {
        Signals::install().map_err(IoError::system("signals"))
    }

    fn install() -> io::Result<Self> {
        let pipe = |signals: &[i32], handlers: &mut Vec<SigId>| {
            let (wakeup, waker) = UnixStream::pair()?;
            wakeup.set_nonblocking(true)?;
            for signal in signals {
                handlers.push(signal_hook::low_level::pipe::register(*signal, waker.try_clone()?)?);
            }
            Ok::<_, io::Error>(wakeup)
        };
        let mut handlers = Vec::new();
        let (end, begin) = (pipe(&[SIGTERM, SIGINT], &mut handlers)?, pipe(&[SIGUSR1], &mut handlers)?);
        Ok(Signals { end, begin, handlers })
    }

    /// Lets waits tell of signals as well, in places behind those that the reactor has.
    pub fn join(&self, reactor: &mut Reactor) -> Result<(), IoError> {
        self.ask(reactor).map_err(IoError::system("signals"))
    }

    fn ask(&self, reactor: &mut Reactor) -> io::Result<()> {
        [&self.end, &self.begin].into_iter().try_for_each(|pipe| {
            let place = reactor.place();
            reactor.ask(place, pipe.as_fd(), Interest::READ)
        })
    }

    /// Waits until `fd` can be read; false if a signal came first.
    fn wait_before(&self, fd: BorrowedFd<'_>) -> io::Result<bool> {
        let mut reactor = Reactor::new()?;
        let peer = reactor.place();
        reactor.ask(peer, fd, Interest::READ)?;
        self.ask(&mut reactor)?;
        loop {
            let found = reactor.wait(None)?;
            if !found.is_empty() {
                return Ok(found.iter().all(|(place, _)| *place == peer));
            }
        }
    }

    /// The next signal that came.
    pub fn take(&mut self) -> Result<Option<Signal>, IoError> {
        for (pipe, signal) in [(&self.end, Signal::End), (&self.begin, Signal::Begin)] {
            if sys::read_packet(pipe.as_fd(), &mut [0]).map_err(IoError::system("signals"))?.is_some() {
                return Ok(Some(signal));
            }
        }
        Ok(None)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

/// Lets waits of this thread end at their time instead of up to 50 µs later.
pub fn exact_timers() -> Result<(), IoError> {
    sys::exact_timers().map_err(IoError::system("timer slack"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_replaced_that_nobody_listens_at_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let in_use = |path: &Path| listen_unix(path).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        let first = listen_unix(&path).unwrap();
        assert!(in_use(&path), "somebody lives there");
        drop(first);
        let again = listen_unix(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(again);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "of somebody").unwrap();
        assert!(in_use(&link) && in_use(&file), "no socket");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "of somebody");
    }
}
