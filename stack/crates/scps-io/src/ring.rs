//! A device's sending, waiting and receiving in one system call, by io_uring.
//!
//! In a kernel with virtual time each call is a switch of processes, which costs more than all that the stack does with a packet. Elsewhere the
//! loop stays with epoll.
#![allow(unsafe_code, reason = "the kernel reads and writes memory that requests name; what keeps it alive is here")]

use io_uring::{opcode, squeue, types, IoUring};
use scps_wire::Duration;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// Its time, or a signal.
    Time,
    /// A packet, which the device has.
    Packet,
    /// Something else.
    Others,
}

/// Requests of a device that the kernel has or is about to have.
pub(crate) struct Ring {
    ring: IoUring,
    fd: RawFd,
    /// Where the kernel puts the next packet. It is never freed: a ring that is closed takes its requests back some time later.
    inbox: &'static mut [u8],
    /// Octets of the packet in it.
    came: Option<usize>,
    is_waiting: bool,
    /// Requests may be left that name what is gone.
    has_failed: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("fd", &self.fd).field("is_waiting", &self.is_waiting).finish_non_exhaustive()
    }
}

/// Packets that leave in one call; what waits and reads fits beside them.
const WRITES_MAX: usize = 62;
const WRITE: u64 = 0;
const READ: u64 = 1;
const WAIT: u64 = 2;

impl Ring {
    /// A ring for `fd`, whose packets have up to `len` octets; `None` where the kernel has none to give. Who starts it is who waits.
    pub(crate) fn start(fd: BorrowedFd<'_>, len: usize) -> Option<Self> {
        let ring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(WRITES_MAX as u32 + 2).ok()?;
        let inbox = Box::leak(vec![0; len].into_boxed_slice());
        Some(Ring { ring, fd: fd.as_raw_fd(), inbox, came: None, is_waiting: false, has_failed: false })
    }

    /// Sends all packets. Tells how many the kernel refused.
    pub(crate) fn send<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>) -> io::Result<u64> {
        let mut refused = 0;
        let mut packets = packets.peekable();
        while packets.peek().is_some() {
            let asked = self.ask_writes(&mut packets)?;
            refused += self.finish(asked, asked, None)?.1;
        }
        Ok(refused)
    }

    /// Sends all packets, and waits until something is ready in `set`, an epoll set that the device is in, no longer than `timeout`. While a
    /// packet is there that nobody has taken, it does not wait. Tells how many packets the kernel refused.
    pub(crate) fn wait<'a>(
        &mut self,
        mut packets: impl ExactSizeIterator<Item = &'a [u8]>,
        set: BorrowedFd<'_>,
        timeout: Option<Duration>,
    ) -> io::Result<(Woken, u64)> {
        let early = packets.len().saturating_sub(WRITES_MAX);
        let refused = self.send(packets.by_ref().take(early))?;
        let asked = self.ask_writes(&mut packets)?;
        // A packet may have come with the answers of an earlier call.
        if self.came.is_none() && !std::mem::replace(&mut self.is_waiting, true) {
            // The read is begun when the set is ready, and ends at once. If it were begun now, the kernel would keep the device for it, also
            // from the next process, until some time after this one's end.
            let wait = opcode::PollAdd::new(types::Fd(set.as_raw_fd()), libc::POLLIN as u32).build();
            self.ask(&wait.flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS).user_data(WAIT))?;
            let read = opcode::Read::new(types::Fd(self.fd), self.inbox.as_mut_ptr(), self.inbox.len() as u32);
            self.ask(&read.rw_flags(libc::RWF_NOWAIT).build().user_data(READ))?;
        }
        let (woken, more) = self.finish(asked, asked + usize::from(self.is_waiting), timeout)?;
        Ok((if self.came.is_some() { Woken::Packet } else { woken }, refused + more))
    }

    /// The packet that came.
    pub(crate) fn packet(&mut self) -> Option<&[u8]> {
        self.came.take().map(|len| &self.inbox[..len])
    }

    fn ask_writes<'a>(&mut self, packets: &mut impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut asked = 0;
        for packet in packets.take(WRITES_MAX) {
            let write = opcode::Write::new(types::Fd(self.fd), packet.as_ptr(), packet.len() as u32);
            // Never later than in the call that hands it over: then the packets are free again, and none overtakes another.
            self.ask(&write.rw_flags(libc::RWF_NOWAIT).build().user_data(WRITE))?;
            asked += 1;
        }
        Ok(asked)
    }

    fn ask(&mut self, request: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what a write names lives until `finish` returns, which its caller calls before it lets the packets go, and which waits for
        // every write or never enters again; the inbox lives for ever, and nobody looks at it while it is being read into.
        unsafe { self.ring.submission().push(request) }.map_err(io::Error::other)
    }

    /// Hands the requests over, with `writes` among them, and waits for so many answers.
    fn finish(&mut self, writes: usize, answers: usize, timeout: Option<Duration>) -> io::Result<(Woken, u64)> {
        let (mut woken, mut refused, mut open) = (Ok(Woken::Time), 0, writes);
        self.enter(answers, timeout)?;
        loop {
            for answer in self.ring.completion() {
                match (answer.user_data(), answer.result()) {
                    (WRITE, result) => {
                        open -= 1;
                        refused += u64::from(result < 0);
                    }
                    (READ, result) => {
                        self.is_waiting = false;
                        self.came = usize::try_from(result).ok();
                        woken = match -result {
                            libc::EAGAIN => Ok(Woken::Others),
                            error if error > 0 => Err(io::Error::from_raw_os_error(error)),
                            _ => Ok(Woken::Packet),
                        };
                    }
                    // The poll failed; then its read has no answer.
                    (_, result) => {
                        self.is_waiting = false;
                        woken = Err(io::Error::from_raw_os_error(-result));
                    }
                }
            }
            if open == 0 {
                return woken.map(|woken| (woken, refused));
            }
            self.enter(open, None)?;
        }
    }

    fn enter(&mut self, answers: usize, timeout: Option<Duration>) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("the device's ring has failed before"));
        }
        let until = timeout.map(|time| types::Timespec::new().sec(time.as_secs()).nsec(time.subsec_nanos()));
        let args = until.iter().fold(types::SubmitArgs::new(), |args, until| args.timespec(until));
        match self.ring.submitter().submit_with_args(answers, &args) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {
                self.has_failed = true;
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactor::{Interest, Reactor};
    use rustix::io::write;
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    const SOON: Option<Duration> = Some(Duration::from_millis(50));
    const LATE: Option<Duration> = Some(Duration::from_secs(60));

    /// A ring over a socket, and what it waits with.
    fn ring(near: BorrowedFd<'_>) -> Option<(Ring, Reactor)> {
        let mut reactor = Reactor::new().unwrap();
        let place = reactor.place();
        reactor.ask(place, near, Interest::READ).unwrap();
        let ring = Ring::start(near, 2000);
        if ring.is_none() {
            println!("SKIP: this kernel gives no io_uring");
        }
        Some((ring?, reactor))
    }

    fn datagrams() -> (UnixDatagram, UnixDatagram) {
        let (near, far) = UnixDatagram::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        (near, far)
    }

    #[test]
    fn packets_leave_in_their_order_within_the_call() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let Some((mut ring, reactor)) = ring(near.as_fd()) else { return };
        for count in [0, 1, WRITES_MAX - 1, WRITES_MAX, WRITES_MAX + 1, 2 * WRITES_MAX, 2 * WRITES_MAX + 1] {
            let packets: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 1 + i]).collect();
            let octets = packets.concat();
            for waits in [false, true] {
                let slices = packets.iter().map(Vec::as_slice);
                let result = if waits {
                    ring.wait(slices, reactor.as_fd(), Some(Duration::ZERO)).unwrap()
                } else {
                    (Woken::Time, ring.send(slices).unwrap())
                };
                assert_eq!(result, (Woken::Time, 0));
                let mut sent = vec![0; octets.len()];
                std::io::Read::read_exact(&mut far, &mut sent).unwrap();
                assert_eq!(sent, octets, "{count} packets");
            }
        }
    }

    #[test]
    fn a_packet_others_and_the_time_end_a_wait() {
        let ((near, far), (other, waker)) = (datagrams(), UnixStream::pair().unwrap());
        let Some((mut ring, reactor)) = ring(near.as_fd()) else { return };
        reactor.watch(other.as_fd(), Interest::READ).unwrap();
        let wait = |ring: &mut Ring, time| ring.wait(std::iter::empty(), reactor.as_fd(), time).unwrap().0;
        let start = std::time::Instant::now();
        assert_eq!(wait(&mut ring, SOON), Woken::Time);
        assert!(start.elapsed() >= SOON.unwrap());
        for len in [1, 2000] {
            far.send(&vec![7; len]).unwrap();
            assert_eq!(wait(&mut ring, LATE), Woken::Packet);
            assert_eq!(ring.packet(), Some(&vec![7; len][..]));
            assert_eq!(ring.packet(), None);
        }
        write(&waker, b"!").unwrap();
        for _ in 0..2 {
            assert_eq!(wait(&mut ring, LATE), Woken::Others, "nobody has asked the set");
        }
        reactor.wait(Some(Duration::ZERO)).unwrap();
        assert_eq!(wait(&mut ring, SOON), Woken::Time);
        write(&waker, b"!").unwrap();
        far.send(b"a").unwrap();
        far.send(b"b").unwrap();
        for packet in [b"a", b"b"] {
            assert_eq!(wait(&mut ring, None), Woken::Packet);
            assert_eq!(ring.packet(), Some(&packet[..]));
        }
        assert_eq!(wait(&mut ring, None), Woken::Others, "packets hide nothing for good");
        assert!(start.elapsed() < LATE.unwrap() / 2, "what came ended the waits");
    }

    #[test]
    fn a_packet_that_comes_while_others_are_sent_is_not_written_over() {
        let (near, far) = datagrams();
        let Some((mut ring, reactor)) = ring(near.as_fd()) else { return };
        let wait = |ring: &mut Ring, time| ring.wait(std::iter::empty(), reactor.as_fd(), time).unwrap().0;
        assert_eq!(wait(&mut ring, SOON), Woken::Time);
        far.send(b"a").unwrap();
        assert_eq!(ring.send([&b"x"[..]].into_iter()).unwrap(), 0);
        far.send(b"b").unwrap();
        for packet in [b"a", b"b"] {
            for _ in 0..2 {
                assert_eq!(wait(&mut ring, LATE), Woken::Packet, "it waits for nothing while one is there");
            }
            assert_eq!(ring.packet(), Some(&packet[..]));
        }
        assert_eq!(wait(&mut ring, SOON), Woken::Time);
    }

    #[test]
    fn what_the_kernel_does_not_take_at_once_is_refused() {
        let (near, far) = datagrams();
        let Some((mut ring, reactor)) = ring(near.as_fd()) else { return };
        let packets = vec![vec![1; 2000]; 5000];
        let (_, refused) = ring.wait(packets.iter().map(Vec::as_slice), reactor.as_fd(), SOON).unwrap();
        assert!(refused > 0, "a socket has room for less");
        let taken = std::iter::from_fn(|| far.recv(&mut [0; 2000]).ok()).count();
        assert_eq!(taken as u64 + refused, 5000);
        drop(far);
        assert_eq!(ring.send([&b"x"[..]].into_iter()).unwrap(), 1, "nobody is there");
    }

    #[test]
    fn a_wait_keeps_the_device_from_nobody() {
        let (near, far) = datagrams();
        let Some((mut ring, reactor)) = ring(near.as_fd()) else { return };
        assert_eq!(ring.wait(std::iter::empty(), reactor.as_fd(), SOON).unwrap().0, Woken::Time);
        drop(near);
        assert!(far.send(b"x").is_err(), "it is closed while the ring is there");
    }
}
