//! System calls that neither the standard library nor rustix offers, and what is built of rustix's. Every `unsafe` of the
//! workspace is here or in `ring.rs`, each with its reason.
#![allow(unsafe_code, reason = "one of two places where system calls are made")]

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt;
use scps_wire::{Duration, Seed};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

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
    // The kernel gives up to 256 octets whole.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())? {
        16 => Ok(Seed::from_bytes(bytes)),
        n => Err(io::Error::other(format!("{n} octets of entropy; expected 16"))),
    }
}

/// CPU time this process has used.
pub fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Octets in a TCP socket's send queue, sent or not, that the peer has not acknowledged; 0 if the kernel does not tell.
pub fn unacknowledged_octets(socket: BorrowedFd<'_>) -> u64 {
    queued(socket, libc::TIOCOUTQ)
}

/// Of these, the octets that have not been sent for the first time.
pub fn unsent_octets(socket: BorrowedFd<'_>) -> u64 {
    queued(socket, SIOCOUTQNSD)
}

/// From linux/sockios.h; the libc crate does not have it.
const SIOCOUTQNSD: libc::Ioctl = 0x894B;

fn queued(socket: BorrowedFd<'_>, request: libc::Ioctl) -> u64 {
    let mut octets: libc::c_int = 0;
    // SAFETY: `octets` is a live integer, which is what both requests write.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut octets) };
    if result < 0 {
        0
    } else {
        u64::try_from(octets).unwrap_or(0)
    }
}

/// The page in which a kernel with virtual time says what time it is, in nanoseconds since it began; `None` under every other kernel.
pub(crate) fn clock_page() -> Option<&'static AtomicU64> {
    const PAGE: usize = 4096;
    let file = rustix::fs::open("/proc/lab_clock", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // SAFETY: no address is asked for, and the length is that of the file's only page.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    // SAFETY: the page begins with the number, is mapped until the process ends, and is written by the kernel alone, whole.
    (at != libc::MAP_FAILED).then(|| unsafe { AtomicU64::from_ptr(at.cast()) })
}

/// Lets sleeps of this thread end at their time instead of up to 50 µs later.
pub(crate) fn exact_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?)
}

/// A time as the kernel takes it.
pub(crate) fn timespec(time: Duration) -> rustix::time::Timespec {
    rustix::time::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

// TUN.

const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::Ioctl = 0x4004_54d8;
const TUN_F_CSUM: libc::c_ulong = 1;
const TUN_F_TSO4: libc::c_ulong = 2;

/// `struct ifreq`: a name, and a union of which a number of 16 or 32 bits is the first member. The libc crate's has a union, which
/// only unsafe code may read.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; 24],
}

impl InterfaceRequest {
    fn new(name: &str, value: &[u8]) -> io::Result<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "interface names have 1 to 15 characters"));
        }
        let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], value: [0; 24] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        request.value[..value.len()].copy_from_slice(value);
        Ok(request)
    }

    /// One of the requests that read or write a `struct ifreq`.
    fn ask(&mut self, fd: BorrowedFd<'_>, request: libc::Ioctl) -> io::Result<()> {
        const { assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>()) };
        // SAFETY: every caller's request takes a struct ifreq, which this is in size and layout, and it lives on.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(self)) }).map(drop)
    }
}

/// Attaches to the TUN device `name`, creating it if need be. With `offload`, packets carry a virtio header and may be
/// joined segments without checksum.
pub(crate) fn tun_open(name: &str, offload: bool) -> io::Result<OwnedFd> {
    let fd = rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | if offload { libc::IFF_VNET_HDR } else { 0 };
    InterfaceRequest::new(name, &(flags as u16).to_ne_bytes())?.ask(fd.as_fd(), TUNSETIFF)?;
    if offload {
        let size: libc::c_int = VNET_HEADER_LEN as libc::c_int;
        // SAFETY: TUNSETVNETHDRSZ reads a live int; TUNSETOFFLOAD takes its flags by value.
        unsafe {
            check(libc::ioctl(fd.as_raw_fd(), TUNSETVNETHDRSZ, &raw const size))?;
            check(libc::ioctl(fd.as_raw_fd(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4))?;
        }
    }
    Ok(fd)
}

/// Octets of the virtio header in front of each packet of an offloading TUN.
pub(crate) const VNET_HEADER_LEN: usize = 10;

/// Sets MTU and brings the interface up.
pub(crate) fn interface_up(name: &str, mtu: u16) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    InterfaceRequest::new(name, &i32::from(mtu).to_ne_bytes())?.ask(socket.as_fd(), libc::SIOCSIFMTU)?;
    let mut request = InterfaceRequest::new(name, &[])?;
    request.ask(socket.as_fd(), libc::SIOCGIFFLAGS)?;
    let flags = with_up(request.value);
    request.value[..2].copy_from_slice(&flags.to_ne_bytes());
    request.ask(socket.as_fd(), libc::SIOCSIFFLAGS)
}

fn with_up(value: [u8; 24]) -> u16 {
    u16::from_ne_bytes([value[0], value[1]]) | libc::IFF_UP as u16
}

/// Routes packets for the addresses that begin as the first `length` bits of `address` do to the interface, unless that is so already. A
/// route elsewhere for the same prefix is an error: the kernel would have two, and who made the other one expects it to be taken.
pub(crate) fn route_to_interface(name: &str, address: Ipv4Addr, length: u8) -> io::Result<()> {
    let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0));
    let table = std::fs::read_to_string("/proc/self/net/route").unwrap_or_default();
    match routed_to(&table, address & mask, mask) {
        Some(other) if other == name => return Ok(()),
        Some(other) => {
            let problem = format!("{}/{length} is routed to {other} already", address & mask);
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        None => {}
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut device = InterfaceRequest::new(name, &[])?.name;
    // SAFETY: rtentry is plain old data; all-zero is a valid value.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = generic_address(address & mask);
    route.rt_genmask = generic_address(mask);
    route.rt_flags = libc::RTF_UP | if length >= 32 { libc::RTF_HOST } else { 0 };
    route.rt_dev = device.as_mut_ptr().cast();
    // SAFETY: SIOCADDRT reads an rtentry; the device name it points to is a terminated array that lives on.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &raw const route) }).map(drop)
}

/// The interface to which a table as in `/proc/net/route` routes exactly this prefix with the metric of a route that names none.
fn routed_to(table: &str, address: Ipv4Addr, mask: Ipv4Addr) -> Option<&str> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, to, _, _, _, _, metric, bits, ..] = fields[..] else { return None };
        // Addresses are numbers of the machine's order in hexadecimal.
        let number = |text| u32::from_str_radix(text, 16).ok().map(|n| Ipv4Addr::from(n.to_ne_bytes()));
        (metric == "0" && number(to) == Some(address) && number(bits) == Some(mask)).then_some(interface)
    })
}

/// An IPv4 address as `struct sockaddr`: behind the family a port of 16 bits, which is 0, and the address.
fn generic_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data[2..].iter_mut().zip(address.octets()) {
        *to = from as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
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
pub(crate) fn read_packet(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match rustix::io::read(fd, buffer) {
        Ok(n) => Ok(Some(n)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes one packet made of pieces.
pub(crate) fn write_packet(fd: BorrowedFd<'_>, pieces: &[IoSlice<'_>]) -> io::Result<()> {
    rustix::io::writev(fd, pieces)?;
    Ok(())
}

// UDP in batches.

/// A datagram, or a batch of datagrams of equal size, to send.
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

impl Outgoing {
    /// Its datagrams, each a message.
    pub(crate) fn apart(&self) -> impl Iterator<Item = Outgoing> + '_ {
        (self.start..self.start + self.len).step_by(self.segment.max(1)).map(|start| {
            let len = self.segment.min(self.start + self.len - start);
            Outgoing { start, len, segment: len, count: 1, to: self.to }
        })
    }
}

const CONTROL_LEN: usize = 64;
const SOL_UDP: libc::c_int = 17;
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

/// Room for control messages, as `cmsg(3)` lays them out: length, level and type, then the value, aligned like a pointer.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_LEN]);

const CONTROL_HEADER_LEN: usize = size_of::<libc::cmsghdr>();

impl Control {
    const EMPTY: Control = Control([0; CONTROL_LEN]);
    const NONE: (Control, usize) = (Control::EMPTY, 0);

    /// One message of 16 bits; its octets, and those of the room it takes.
    fn of_u16(kind: libc::c_int, value: u16) -> (Control, usize) {
        let mut control = Control::EMPTY;
        let len = CONTROL_HEADER_LEN + 2;
        let at = size_of::<usize>();
        control.0[..at].copy_from_slice(&len.to_ne_bytes());
        control.0[at..at + 4].copy_from_slice(&SOL_UDP.to_ne_bytes());
        control.0[at + 4..at + 8].copy_from_slice(&kind.to_ne_bytes());
        control.0[CONTROL_HEADER_LEN..len].copy_from_slice(&value.to_ne_bytes());
        (control, len.next_multiple_of(size_of::<usize>()))
    }

    /// The 16 bits at the front of the first message of this type among the first `filled` octets.
    fn find_u16(&self, kind: libc::c_int, filled: usize) -> Option<u16> {
        let mut rest = &self.0[..filled.min(CONTROL_LEN)];
        while let Some((header, _)) = rest.split_at_checked(CONTROL_HEADER_LEN) {
            let (len, of) = header.split_first_chunk::<{ size_of::<usize>() }>()?;
            let len = usize::from_ne_bytes(*len);
            let message = rest.get(..len)?;
            let (value, is_sought) =
                (message.get(CONTROL_HEADER_LEN..)?, [SOL_UDP, kind].map(i32::to_ne_bytes).concat());
            if of[..8] == is_sought[..] {
                return value.first_chunk::<2>().map(|value| u16::from_ne_bytes(*value));
            }
            rest = rest.get(len.next_multiple_of(size_of::<usize>())..)?;
        }
        None
    }
}

/// What a system call is told of each message. The room is kept from one call to the next.
#[derive(Default)]
pub(crate) struct Headers {
    addresses: Vec<libc::sockaddr_in>,
    vectors: Vec<libc::iovec>,
    controls: Vec<(Control, usize)>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: its pointers are to what it owns and to octets of the call that set them, and are set again before the next call.
unsafe impl Send for Headers {}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Headers(of {} messages)", self.headers.len())
    }
}

impl Headers {
    fn clear(&mut self) {
        self.addresses.clear();
        self.vectors.clear();
        self.controls.clear();
    }

    /// One more message, and how many octets of its control messages there are.
    fn push(&mut self, address: SocketAddrV4, piece: libc::iovec, control: (Control, usize)) {
        self.addresses.push(socket_address(address));
        self.vectors.push(piece);
        self.controls.push(control);
    }

    /// The headers of all messages. They point to what was pushed, which stays where it is until the next call to `self`.
    fn all(&mut self) -> &mut [libc::mmsghdr] {
        self.headers.clear();
        for ((address, piece), (control, len)) in
            self.addresses.iter_mut().zip(&mut self.vectors).zip(&mut self.controls)
        {
            // SAFETY: msghdr is plain old data; all-zero is a valid value.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_name = std::ptr::from_mut(address).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_iov = piece;
            header.msg_iovlen = 1;
            if *len > 0 {
                header.msg_control = std::ptr::from_mut(control).cast();
                header.msg_controllen = *len as _;
            }
            self.headers.push(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        }
        &mut self.headers
    }
}

/// Sends messages; returns how many left before the socket was full.
pub(crate) fn send_batch(
    fd: BorrowedFd<'_>,
    octets: &[u8],
    messages: &[Outgoing],
    headers: &mut Headers,
) -> io::Result<usize> {
    headers.clear();
    for m in messages {
        let piece = &octets[m.start..m.start + m.len];
        let piece = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() };
        let is_row = m.count > 1;
        headers.push(m.to, piece, if is_row { Control::of_u16(UDP_SEGMENT, m.segment as u16) } else { Control::NONE });
    }
    let (raw, n) = (fd.as_raw_fd(), messages.len() as libc::c_uint);
    // SAFETY: every header points to what `headers` holds, or to the octets, which sendmmsg only reads.
    let sent = unsafe { libc::sendmmsg(raw, headers.all().as_mut_ptr(), n, libc::MSG_DONTWAIT) };
    check(sent).map(|n| n as usize)
}

/// Octets of a packet that the way to an address takes, as the kernel knows it now.
pub fn path_mtu(to: SocketAddrV4) -> io::Result<u16> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to)?;
    let (mut mtu, mut len): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: value and length are live storage of this frame, of the size that is given.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_MTU,
            std::ptr::from_mut(&mut mtu).cast(),
            std::ptr::from_mut(&mut len),
        )
    })?;
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Room for a batch of received datagrams.
pub(crate) struct ReceiveBatch {
    octets: Vec<u8>,
    headers: Headers,
    slot_len: usize,
    slots: usize,
}

/// A received message: one datagram or a batch of equal ones.
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
        ReceiveBatch { octets: vec![0; slots * slot_len], headers: Headers::default(), slot_len, slots }
    }

    /// Receives what is there and hands each message to `take`; returns how many there were.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>, mut take: impl FnMut(Incoming<'_>)) -> io::Result<usize> {
        self.headers.clear();
        for slot in self.octets.chunks_exact_mut(self.slot_len) {
            let piece = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            let from = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
            self.headers.push(from, piece, (Control::EMPTY, CONTROL_LEN));
        }
        let (raw, n, nothing) = (fd.as_raw_fd(), self.slots as libc::c_uint, std::ptr::null_mut());
        let headers = self.headers.all().as_mut_ptr();
        // SAFETY: every header points to what `self` holds; the null timeout means "none".
        let got = unsafe { libc::recvmmsg(raw, headers, n, libc::MSG_DONTWAIT, nothing) };
        let got = match check(got) {
            Ok(n) => n as usize,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(e) => return Err(e),
        };
        let Headers { headers, addresses, controls, .. } = &self.headers;
        for (i, slot) in self.octets.chunks_exact(self.slot_len).take(got).enumerate() {
            let (len, filled) = (headers[i].msg_len as usize, headers[i].msg_hdr.msg_controllen);
            let segment = controls[i].0.find_u16(UDP_GRO, filled).map_or(len, usize::from);
            let libc::sockaddr_in { sin_addr, sin_port, .. } = addresses[i];
            let from = SocketAddrV4::new(Ipv4Addr::from(sin_addr.s_addr.to_ne_bytes()), u16::from_be(sin_port));
            take(Incoming { octets: &slot[..len.min(slot.len())], segment: segment.max(1), from });
        }
        Ok(got)
    }
}

/// Asks for large socket buffers. Without privilege the system's limit applies, which only costs speed.
pub(crate) fn enlarge_buffers(fd: BorrowedFd<'_>, octets: usize) -> io::Result<()> {
    if sockopt::set_socket_recv_buffer_size_force(fd, octets).is_err() {
        sockopt::set_socket_recv_buffer_size(fd, octets)?;
    }
    if sockopt::set_socket_send_buffer_size_force(fd, octets).is_err() {
        sockopt::set_socket_send_buffer_size(fd, octets)?;
    }
    Ok(())
}

/// Asks the kernel to join received datagrams.
pub(crate) fn join_received(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_flag(fd, SOL_UDP, UDP_GRO)
}

fn set_flag(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let (on, len): (libc::c_int, _) = (1, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the option value is a live int of the length given.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const on).cast(), len) }).map(drop)
}

/// Lets datagrams leave without checksums, for which the kernel refuses batches (EINVAL), as it does on paths that cannot take them.
#[cfg(test)]
pub(crate) fn refuse_batches(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_flag(fd, libc::SOL_SOCKET, libc::SO_NO_CHECK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> (UdpSocket, SocketAddrV4) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let std::net::SocketAddr::V4(at) = socket.local_addr().unwrap() else { unreachable!("an IPv4 socket") };
        (socket, at)
    }

    #[test]
    fn a_route_for_the_same_prefix_is_found_in_the_kernels_table() {
        let hex = |address: Ipv4Addr| format!("{:08X}", u32::from_ne_bytes(address.octets()));
        let (far, mask) = (Ipv4Addr::new(10, 2, 0, 0), Ipv4Addr::new(255, 255, 255, 0));
        let line = |interface: &str, metric: &str, mask: Ipv4Addr| {
            format!("{interface}\t{}\t00000000\t0003\t0\t0\t{metric}\t{}\t0\t0\t0\n", hex(far), hex(mask))
        };
        let wider = Ipv4Addr::new(255, 255, 0, 0);
        let rest = format!("head\n{}{}", line("eth1", "0", wider), line("eth2", "100", mask));
        assert_eq!(routed_to(&rest, far, mask), None);
        assert_eq!(routed_to(&format!("{rest}{}", line("eth3", "0", mask)), far, mask), Some("eth3"));
    }

    fn received(batch: &mut ReceiveBatch, fd: BorrowedFd<'_>) -> Vec<(Vec<u8>, usize, SocketAddrV4)> {
        let mut all = Vec::new();
        let n = batch.receive(fd, |m| all.push((m.octets.to_vec(), m.segment, m.from))).unwrap();
        assert_eq!(n, all.len());
        all
    }

    #[test]
    fn a_batch_comes_as_it_left_with_its_sender() {
        let ((from, sender), (to, receiver)) = (socket(), socket());
        let message = |start, len| Outgoing { start, len, segment: len, count: 1, to: receiver };
        assert_eq!(
            send_batch(from.as_fd(), b"onethree", &[message(0, 3), message(3, 5)], &mut Headers::default()).unwrap(),
            2
        );
        let mut batch = ReceiveBatch::new(4, 100);
        let expected = [(b"one".to_vec(), 3, sender), (b"three".to_vec(), 5, sender)];
        assert_eq!(received(&mut batch, to.as_fd()), expected);
        assert_eq!(received(&mut batch, to.as_fd()), []);
    }

    #[test]
    fn a_batch_is_cut_by_the_kernel_and_joined_by_it() {
        let ((from, _), (to, receiver)) = (socket(), socket());
        if join_received(to.as_fd()).is_err() {
            eprintln!("skipped: this kernel does not join datagrams");
            return;
        }
        let batch = Outgoing { start: 0, len: 2500, segment: 1000, count: 3, to: receiver };
        let octets: Vec<u8> = (0..2500u32).map(|i| i as u8).collect();
        assert_eq!(send_batch(from.as_fd(), &octets, &[batch], &mut Headers::default()).unwrap(), 1);
        let mut datagrams = Vec::new();
        let mut batch = ReceiveBatch::new(8, 65_536);
        while datagrams.iter().map(Vec::len).sum::<usize>() < 2500 {
            let parts = received(&mut batch, to.as_fd());
            let cut = |(octets, segment, _): (Vec<u8>, usize, _)| -> Vec<_> {
                octets.chunks(segment).map(<[u8]>::to_vec).collect()
            };
            datagrams.extend(parts.into_iter().flat_map(cut));
        }
        assert_eq!(datagrams, [&octets[..1000], &octets[1000..2000], &octets[2000..]]);
    }

    #[test]
    fn control_messages_are_found_behind_others_and_never_beyond_their_end() {
        let (control, len) = Control::of_u16(UDP_GRO, 1234);
        assert_eq!(control.find_u16(UDP_GRO, len), Some(1234));
        assert_eq!((control.find_u16(UDP_SEGMENT, len), control.find_u16(UDP_GRO, 0)), (None, None));
        let (mut other, _) = Control::of_u16(UDP_SEGMENT, 7);
        other.0[len..2 * len].copy_from_slice(&control.0[..len]);
        assert_eq!(other.find_u16(UDP_GRO, 2 * len), Some(1234));
        for wrong in [0, 1, 17, 65, usize::MAX] {
            let mut control = control;
            control.0[..size_of::<usize>()].copy_from_slice(&wrong.to_ne_bytes());
            assert_eq!(control.find_u16(UDP_GRO, CONTROL_LEN), None, "a length of {wrong}");
        }
    }

    #[test]
    fn names_of_interfaces_fit_or_are_refused() {
        for name in ["", "sixteen-letters-"] {
            assert_eq!(InterfaceRequest::new(name, &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
        let request = InterfaceRequest::new("fifteen-letters", &1500i32.to_ne_bytes()).unwrap();
        assert_eq!((&request.name[..], &request.value[..5]), (&b"fifteen-letters\0"[..], &[0xdc, 5, 0, 0, 0][..]));
        let mut flags = [0; 24];
        flags[..2].copy_from_slice(&0x1002u16.to_ne_bytes());
        assert_eq!(with_up(flags), 0x1003);
    }

    #[test]
    fn entropy_differs_and_time_passes() {
        assert_ne!(entropy_seed().unwrap(), entropy_seed().unwrap());
        let before = cpu_time();
        while cpu_time() == before {
            std::hint::spin_loop();
        }
        exact_timers().unwrap();
    }

    #[test]
    fn octets_on_their_way_are_counted_and_what_is_no_socket_has_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!((unacknowledged_octets(stream.as_fd()), unsent_octets(stream.as_fd())), (0, 0));
        let (mut stream, mut written) = (stream, 0);
        stream.set_nonblocking(true).unwrap();
        while let Ok(n) = std::io::Write::write(&mut stream, &[0; 4096]) {
            written += n as u64;
        }
        // Nobody reads: the listener's buffer is full, and what it did not take waits.
        let (unacknowledged, unsent) = (unacknowledged_octets(stream.as_fd()), unsent_octets(stream.as_fd()));
        assert!(
            0 < unsent && unsent <= unacknowledged && unacknowledged < written,
            "{unsent} {unacknowledged} {written}"
        );
        let nothing = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(unacknowledged_octets(nothing.as_fd()), 0);
    }
}
