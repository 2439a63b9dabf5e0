//! A device's sending, waiting and receiving in one system call, by io_uring.
//!
//! In a kernel with virtual time each call is a switch of processes, which costs more than all that the stack does with a packet. Elsewhere the
//! loop stays with epoll.
#![allow(unsafe_code, reason = "the kernel reads and writes memory that requests name; what keeps it alive is here")]

use io_uring::{opcode, squeue, types, IoUring};
use scps_types::Duration;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Woken {
    /// The device has a packet.
    pub packet: bool,
    /// Something else that was waited for.
    pub others: bool,
}

/// Requests of a device that the kernel has or is about to have.
pub(crate) struct Ring {
    ring: IoUring,
    fd: RawFd,
    /// Where the kernel puts the next packet. It is never freed: a ring that is closed takes its requests back some time later.
    inbox: &'static mut [u8],
    came: Option<io::Result<usize>>,
    is_reading: bool,
    is_watching: bool,
    /// Requests may be left that name what is gone.
    has_failed: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("fd", &self.fd).field("is_reading", &self.is_reading).finish_non_exhaustive()
    }
}

/// Packets that leave in one call; a read and a watch fit beside them.
const WRITES_MAX: usize = 62;
const WRITE: u64 = 0;
const READ: u64 = 1;
const WATCH: u64 = 2;

impl Ring {
    /// A ring for `fd`, whose packets have up to `len` octets; `None` where the kernel has none to give. Who starts it is who waits.
    pub(crate) fn start(fd: BorrowedFd<'_>, len: usize) -> Option<Self> {
        let ring = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(WRITES_MAX as u32 + 2).ok()?;
        let inbox = Box::leak(vec![0; len].into_boxed_slice());
        Some(Ring {
            ring,
            fd: fd.as_raw_fd(),
            inbox,
            came: None,
            is_reading: false,
            is_watching: false,
            has_failed: false,
        })
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

    /// Sends all packets, and waits until there is one to read or `others` is readable, no longer than `timeout`. The packet is to be taken
    /// before the next wait. Tells how many packets the kernel refused.
    pub(crate) fn wait<'a>(
        &mut self,
        mut packets: impl ExactSizeIterator<Item = &'a [u8]>,
        others: BorrowedFd<'_>,
        timeout: Option<Duration>,
    ) -> io::Result<(Woken, u64)> {
        let early = packets.len().saturating_sub(WRITES_MAX);
        let refused = self.send(packets.by_ref().take(early))?;
        let asked = self.ask_writes(&mut packets)?;
        if !std::mem::replace(&mut self.is_reading, true) {
            let read = opcode::Read::new(types::Fd(self.fd), self.inbox.as_mut_ptr(), self.inbox.len() as u32);
            self.ask(&read.build().user_data(READ))?;
        }
        if !std::mem::replace(&mut self.is_watching, true) {
            let watch = opcode::PollAdd::new(types::Fd(others.as_raw_fd()), libc::POLLIN as u32);
            self.ask(&watch.build().user_data(WATCH))?;
        }
        let (woken, more) = self.finish(asked, asked + 1, timeout)?;
        Ok((woken, refused + more))
    }

    /// The packet that came.
    pub(crate) fn packet(&mut self) -> io::Result<Option<&[u8]>> {
        let len = self.came.take().transpose()?;
        Ok(len.map(|len| &self.inbox[..len]))
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
        let (mut woken, mut refused) = (Woken::default(), 0);
        let (mut open, mut timeout) = (writes, timeout);
        self.enter(answers, timeout)?;
        loop {
            for answer in self.ring.completion() {
                let result = answer.result();
                match answer.user_data() {
                    WRITE => {
                        open -= 1;
                        refused += u64::from(result < 0);
                    }
                    READ => {
                        self.is_reading = false;
                        self.came = Some(usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result)));
                        woken.packet = true;
                    }
                    _ => {
                        self.is_watching = false;
                        woken.others = true;
                    }
                }
            }
            if open == 0 {
                return Ok((woken, refused));
            }
            timeout = None;
            self.enter(open, timeout)?;
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
    use rustix::io::write;
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    const SOON: Option<Duration> = Some(Duration::from_millis(50));
    const LATE: Option<Duration> = Some(Duration::from_secs(60));

    /// A ring over one end, the other end, and what else is waited for with its other end.
    fn parts() -> Option<(Ring, [UnixDatagram; 2], [UnixStream; 2])> {
        let sockets = UnixDatagram::pair().unwrap();
        sockets.1.set_nonblocking(true).unwrap();
        let ring = Ring::start(sockets.0.as_fd(), 2000);
        if ring.is_none() {
            println!("SKIP: this kernel gives no io_uring");
        }
        Some((ring?, sockets.into(), UnixStream::pair().unwrap().into()))
    }

    fn came(socket: &UnixDatagram) -> Vec<Vec<u8>> {
        let mut octets = [0; 2000];
        std::iter::from_fn(|| socket.recv(&mut octets).ok().map(|n| octets[..n].to_vec())).collect()
    }

    #[test]
    fn packets_leave_in_their_order_within_the_call() {
        let ((near, mut far), others) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let Some(mut ring) = Ring::start(near.as_fd(), 2000) else { return };
        for count in [0, 1, WRITES_MAX - 1, WRITES_MAX, WRITES_MAX + 1, 2 * WRITES_MAX, 2 * WRITES_MAX + 1] {
            let packets: Vec<Vec<u8>> = (0..count).map(|i| vec![i as u8; 1 + i]).collect();
            let octets = packets.concat();
            for waits in [false, true] {
                let slices = packets.iter().map(Vec::as_slice);
                let refused = if waits {
                    ring.wait(slices, others.0.as_fd(), Some(Duration::ZERO)).unwrap()
                } else {
                    (Woken::default(), ring.send(slices).unwrap())
                };
                assert_eq!(refused, (Woken::default(), 0));
                let mut sent = vec![0; octets.len()];
                far.set_nonblocking(true).unwrap();
                std::io::Read::read_exact(&mut far, &mut sent).unwrap();
                assert_eq!(sent, octets, "{count} packets");
            }
        }
    }

    #[test]
    fn a_packet_others_and_the_time_end_a_wait() {
        let Some((mut ring, [_device, kernel], [others, waker])) = parts() else { return };
        let wait = |ring: &mut Ring, time| ring.wait(std::iter::empty(), others.as_fd(), time).unwrap().0;
        let start = std::time::Instant::now();
        assert_eq!(wait(&mut ring, SOON), Woken::default());
        assert!(start.elapsed() >= SOON.unwrap());
        for len in [1, 2000] {
            kernel.send(&vec![7; len]).unwrap();
            assert_eq!(wait(&mut ring, LATE), Woken { packet: true, others: false });
            assert_eq!(ring.packet().unwrap(), Some(&vec![7; len][..]));
            assert_eq!(ring.packet().unwrap(), None);
        }
        write(&waker, b"!").unwrap();
        for _ in 0..2 {
            assert_eq!(wait(&mut ring, LATE), Woken { packet: false, others: true }, "nobody has read it");
        }
        let _ = rustix::io::read(&others, &mut [0; 8]).unwrap();
        assert_eq!(wait(&mut ring, SOON), Woken::default());
        kernel.send(b"a").unwrap();
        kernel.send(b"b").unwrap();
        let both = [b"a", b"b"].map(|packet| {
            assert_eq!(wait(&mut ring, None), Woken { packet: true, others: false });
            ring.packet().unwrap() == Some(packet)
        });
        assert_eq!(both, [true; 2]);
        assert!(start.elapsed() < LATE.unwrap() / 2, "what came ended the waits");
    }

    #[test]
    fn what_the_kernel_does_not_take_at_once_is_refused() {
        let Some((mut ring, [_device, kernel], [others, _waker])) = parts() else { return };
        let packets = vec![vec![1; 2000]; 5000];
        let (_, refused) = ring.wait(packets.iter().map(Vec::as_slice), others.as_fd(), SOON).unwrap();
        assert!(refused > 0, "a socket has room for less");
        assert_eq!(came(&kernel).len() as u64 + refused, 5000);
        drop(kernel);
        assert_eq!(ring.send([&b"x"[..]].into_iter()).unwrap(), 1, "nobody is there");
    }
}
