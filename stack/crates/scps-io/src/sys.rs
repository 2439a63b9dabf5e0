//! System calls that the standard library does not offer. Every `unsafe` of the workspace is here and in `sys_tty.rs`,
//! each with its reason.
#![allow(unsafe_code, reason = "the one place where system calls are made")]

use scps_types::{Duration, Seed};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// 16 octets of the kernel's entropy.
pub fn entropy_seed() -> io::Result<Seed> {
    let mut bytes = [0u8; 16];
    // SAFETY: the pointer and length describe a live local array.
    let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if n == 16 {
        Ok(Seed::from_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// CPU time this process has used.
pub fn cpu_time() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a live timespec; the clock id is a constant every Linux knows.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Octets in a TCP socket's send queue, sent or not, that the peer has not acknowledged; 0 if the kernel does not tell.
pub(crate) fn unacknowledged_octets(socket: RawFd) -> u64 {
    queued(socket, libc::TIOCOUTQ)
}

/// Of these, the octets that have not been sent for the first time.
pub(crate) fn unsent_octets(socket: RawFd) -> u64 {
    queued(socket, SIOCOUTQNSD)
}

/// From linux/sockios.h; the libc crate does not have it.
const SIOCOUTQNSD: libc::Ioctl = 0x894B;

fn queued(socket: RawFd, request: libc::Ioctl) -> u64 {
    let mut octets: libc::c_int = 0;
    // SAFETY: `octets` is a live integer, which is what both requests write.
    let result = unsafe { libc::ioctl(socket, request, &raw mut octets) };
    if result < 0 {
        0
    } else {
        u64::try_from(octets).unwrap_or(0)
    }
}

/// An epoll set with one descriptor in it, and others that only end a wait.
#[derive(Debug)]
pub(crate) struct Epoll {
    set: OwnedFd,
    watched: RawFd,
    wants_write: bool,
}

/// What a wait found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub readable: bool,
    pub writable: bool,
}

const DEVICE: u64 = 0;
const OTHER: u64 = 1;

impl Epoll {
    pub(crate) fn new(watched: RawFd) -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked and owned at once.
        let set = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        let epoll = Epoll { set, watched, wants_write: false };
        epoll.control(libc::EPOLL_CTL_ADD)?;
        Ok(epoll)
    }

    fn control(&self, operation: libc::c_int) -> io::Result<()> {
        let events = libc::EPOLLIN | if self.wants_write { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events as u32, u64: DEVICE };
        // SAFETY: both descriptors are open; `event` lives through the call.
        check(unsafe { libc::epoll_ctl(self.set.as_raw_fd(), operation, self.watched, &raw mut event) })?;
        Ok(())
    }

    /// Ends waits when `other` becomes readable; told once until it is read.
    pub(crate) fn watch(&self, other: RawFd) -> io::Result<()> {
        let events = libc::EPOLLIN | libc::EPOLLET;
        let mut event = libc::epoll_event { events: events as u32, u64: OTHER };
        // SAFETY: both descriptors are open; `event` lives through the call.
        check(unsafe { libc::epoll_ctl(self.set.as_raw_fd(), libc::EPOLL_CTL_ADD, other, &raw mut event) })?;
        Ok(())
    }

    pub(crate) fn want_write(&mut self, wants: bool) -> io::Result<()> {
        if self.wants_write != wants {
            self.wants_write = wants;
            self.control(libc::EPOLL_CTL_MOD)?;
        }
        Ok(())
    }

    /// Waits until the descriptor is ready or `timeout` has passed; forever without one.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<Ready> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let spec = timeout.map(|t| libc::timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() });
        let spec_pointer = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `event` and `spec` live through the call; the set is open; the null mask means "unchanged".
        let n = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.set.as_raw_fd(),
                &raw mut event,
                1,
                spec_pointer,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let n = if n < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            // Before Linux 5.11: whole milliseconds, rounded up so that the timer is due when we wake.
            let ms = timeout.map_or(-1, |t| i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
            // SAFETY: as above.
            i64::from(unsafe { libc::epoll_wait(self.set.as_raw_fd(), &raw mut event, 1, ms) })
        } else {
            n
        };
        if n < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(Ready::default()) } else { Err(error) };
        }
        if n == 0 {
            return Ok(Ready::default());
        }
        if event.u64 == OTHER {
            return Ok(Ready::default());
        }
        let events = event.events as libc::c_int;
        // An error condition is read from the descriptor.
        let readable = events & (libc::EPOLLIN | libc::EPOLLERR | libc::EPOLLHUP) != 0;
        Ok(Ready { readable, writable: events & libc::EPOLLOUT != 0 })
    }
}

// TUN.

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;
const TUN_F_CSUM: libc::c_ulong = 1;
const TUN_F_TSO4: libc::c_ulong = 2;

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: ifreq is plain old data; all-zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "interface names have 1 to 15 characters"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Attaches to the TUN device `name`, creating it if need be. With `offload`, packets carry a virtio header and may be
/// joined segments without checksum.
pub(crate) fn tun_open(name: &str, offload: bool) -> io::Result<OwnedFd> {
    let path = c"/dev/net/tun";
    // SAFETY: the path is a C string; the result is checked and owned at once.
    let fd = unsafe {
        OwnedFd::from_raw_fd(check(libc::open(path.as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC))?)
    };
    let mut request = interface_request(name)?;
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | if offload { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: TUNSETIFF reads and writes an ifreq, which `request` is.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETIFF, &raw mut request) })?;
    if offload {
        let size: libc::c_int = VNET_HEADER_LEN as libc::c_int;
        // SAFETY: TUNSETVNETHDRSZ reads an int; TUNSETOFFLOAD takes its flags by value.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETVNETHDRSZ, &raw const size) })?;
        check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) })?;
    }
    Ok(fd)
}

/// Octets of the virtio header in front of each packet of an offloading TUN.
pub(crate) const VNET_HEADER_LEN: usize = 10;

/// Sets MTU and brings the interface up.
pub(crate) fn interface_up(name: &str, mtu: u16) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let fd = socket.as_raw_fd();
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_mtu = i32::from(mtu);
    // SAFETY: each request reads or writes an ifreq, which `request` is.
    check(unsafe { libc::ioctl(fd, libc::SIOCSIFMTU, &raw mut request) })?;
    let mut request = interface_request(name)?;
    check(unsafe { libc::ioctl(fd, libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: SIOCGIFFLAGS filled the flags member of the union.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as i16 };
    check(unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw mut request) })?;
    Ok(())
}

/// Routes packets for `address` to the interface; an existing route is left alone.
pub(crate) fn route_to_interface(name: &str, address: Ipv4Addr) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut device = [0 as libc::c_char; libc::IFNAMSIZ];
    for (to, from) in device.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: rtentry is plain old data; all-zero is a valid value.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = generic_address(SocketAddrV4::new(address, 0));
    route.rt_genmask = generic_address(SocketAddrV4::new(Ipv4Addr::BROADCAST, 0));
    route.rt_flags = libc::RTF_UP | libc::RTF_HOST;
    route.rt_dev = device.as_mut_ptr();
    // SAFETY: SIOCADDRT reads an rtentry; the device name it points to is a terminated array that lives on.
    match check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &raw const route) }) {
        Err(e) if e.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(drop),
    }
}

fn generic_address(address: SocketAddrV4) -> libc::sockaddr {
    // SAFETY: sockaddr_in and sockaddr have the same size, and both are plain old data.
    unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(socket_address(address)) }
}

fn socket_address(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

/// Reads a packet; `None` when there is none.
pub(crate) fn read_packet(fd: RawFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: the pointer and length describe a live slice.
    let n = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    if n >= 0 {
        return Ok(Some(n as usize));
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock {
        Ok(None)
    } else {
        Err(error)
    }
}

/// Writes one packet made of pieces.
pub(crate) fn write_packet(fd: RawFd, pieces: &[&[u8]]) -> io::Result<()> {
    let vectors: Vec<libc::iovec> =
        pieces.iter().map(|p| libc::iovec { iov_base: p.as_ptr().cast_mut().cast(), iov_len: p.len() }).collect();
    // SAFETY: every vector describes a live slice, which writev only reads.
    let n = unsafe { libc::writev(fd, vectors.as_ptr(), vectors.len() as libc::c_int) };
    if n < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

// UDP in batches.

/// A datagram, or a row of datagrams of equal size, to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Where it begins in the batch's octets.
    pub start: usize,
    /// Its octets, all datagrams together.
    pub len: usize,
    /// Octets per datagram; the last may be shorter.
    pub segment: usize,
    /// Datagrams.
    pub count: usize,
    /// Where it goes.
    pub to: SocketAddrV4,
}

const CONTROL_LEN: usize = 64;
const SOL_UDP: libc::c_int = 17;
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_LEN]);

/// Sends messages; returns how many left before the socket was full.
pub(crate) fn send_batch(fd: RawFd, octets: &[u8], messages: &[Outgoing]) -> io::Result<usize> {
    let n = messages.len();
    let mut addresses: Vec<libc::sockaddr_in> = messages.iter().map(|m| socket_address(m.to)).collect();
    let mut vectors: Vec<libc::iovec> = messages
        .iter()
        .map(|m| {
            let piece = &octets[m.start..m.start + m.len];
            libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() }
        })
        .collect();
    let mut controls = vec![Control([0; CONTROL_LEN]); n];
    let mut headers = Vec::with_capacity(n);
    for i in 0..n {
        // SAFETY: msghdr is plain old data; all-zero is a valid value.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut addresses[i]).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        header.msg_iov = &raw mut vectors[i];
        header.msg_iovlen = 1;
        if messages[i].count > 1 {
            header.msg_control = (&raw mut controls[i]).cast();
            // SAFETY: the control buffer is aligned and larger than CMSG_SPACE(2); the macros stay within it.
            unsafe {
                header.msg_controllen = libc::CMSG_SPACE(2) as _;
                let c = libc::CMSG_FIRSTHDR(&raw const header);
                (*c).cmsg_level = SOL_UDP;
                (*c).cmsg_type = UDP_SEGMENT;
                (*c).cmsg_len = libc::CMSG_LEN(2) as _;
                libc::CMSG_DATA(c).cast::<u16>().write_unaligned(messages[i].segment as u16);
            }
        }
        headers.push(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
    }
    // SAFETY: every header points to live storage of this frame; none is moved before the call ends.
    let sent = unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), n as libc::c_uint, libc::MSG_DONTWAIT) };
    check(sent).map(|n| n as usize)
}

/// Room for a batch of received datagrams.
pub(crate) struct ReceiveBatch {
    octets: Vec<u8>,
    slot_len: usize,
    slots: usize,
}

/// A received message: one datagram or a row of equal ones.
pub(crate) struct Incoming<'a> {
    pub octets: &'a [u8],
    pub segment: usize,
    pub from: SocketAddrV4,
}

impl std::fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceiveBatch({} slots of {} octets)", self.slots, self.slot_len)
    }
}

impl ReceiveBatch {
    pub(crate) fn new(slots: usize, slot_len: usize) -> Self {
        ReceiveBatch { octets: vec![0; slots * slot_len], slot_len, slots }
    }

    /// Receives what is there and hands each message to `take`; returns how many there were.
    pub(crate) fn receive(&mut self, fd: RawFd, mut take: impl FnMut(Incoming<'_>)) -> io::Result<usize> {
        let n = self.slots;
        let mut addresses = vec![socket_address(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)); n];
        let mut controls = vec![Control([0; CONTROL_LEN]); n];
        let mut vectors: Vec<libc::iovec> = self
            .octets
            .chunks_exact_mut(self.slot_len)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() })
            .collect();
        let mut headers = Vec::with_capacity(n);
        for i in 0..n {
            // SAFETY: msghdr is plain old data; all-zero is a valid value.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_name = (&raw mut addresses[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_iov = &raw mut vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut controls[i]).cast();
            header.msg_controllen = CONTROL_LEN as _;
            headers.push(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        }
        // SAFETY: every header points to live storage of this frame or of `self`; the null timeout means "none".
        let got = unsafe {
            libc::recvmmsg(fd, headers.as_mut_ptr(), n as libc::c_uint, libc::MSG_DONTWAIT, std::ptr::null_mut())
        };
        let got = match check(got) {
            Ok(n) => n as usize,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(e) => return Err(e),
        };
        for i in 0..got {
            let len = headers[i].msg_len as usize;
            let mut segment = len;
            // SAFETY: the kernel filled the control buffer up to msg_controllen; the macros stay within that.
            unsafe {
                let header = &raw const headers[i].msg_hdr;
                let mut c = libc::CMSG_FIRSTHDR(header);
                while !c.is_null() {
                    if (*c).cmsg_level == SOL_UDP && (*c).cmsg_type == UDP_GRO {
                        segment = libc::CMSG_DATA(c).cast::<u16>().read_unaligned() as usize;
                    }
                    c = libc::CMSG_NXTHDR(header, c);
                }
            }
            let from = SocketAddrV4::new(
                Ipv4Addr::from(addresses[i].sin_addr.s_addr.to_ne_bytes()),
                u16::from_be(addresses[i].sin_port),
            );
            let start = i * self.slot_len;
            take(Incoming { octets: &self.octets[start..start + len], segment: segment.max(1), from });
        }
        Ok(got)
    }
}

/// Asks the kernel to join received datagrams and for large socket buffers.
pub(crate) fn tune_udp(fd: RawFd, gro: bool, buffer: usize) -> io::Result<()> {
    let set = |level: libc::c_int, name: libc::c_int, value: libc::c_int| {
        // SAFETY: the option value is a live int of the length given.
        check(unsafe {
            libc::setsockopt(fd, level, name, (&raw const value).cast(), size_of::<libc::c_int>() as libc::socklen_t)
        })
    };
    let size = libc::c_int::try_from(buffer).unwrap_or(libc::c_int::MAX);
    for (force, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        // Without privilege the system's limit applies, which only costs speed.
        if set(libc::SOL_SOCKET, force, size).is_err() {
            set(libc::SOL_SOCKET, plain, size)?;
        }
    }
    if gro {
        set(SOL_UDP, UDP_GRO, 1)?;
    }
    Ok(())
}
