//! Where answers go when no remote is named: to peers that are known to be where they were heard, and to whoever asks, there. Peers
//! of raw segments over UDP encapsulation on the loopback interface, where a datagram that was sent waits in the other socket.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_io::{SharedStack, Stack, Stream, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{AckBehaviour, Config, ConnectionId, EndpointConfig, Event, RouteConfig, State};
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Seed, SeqNum};
use std::cell::RefCell;
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::rc::Rc;

const US: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 8, 0, 2), 5001);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
const ISS: SeqNum = SeqNum(1000);

fn stack() -> (Stack, std::net::SocketAddr) {
    stack_with(None)
}

fn stack_with(remote: Option<std::net::SocketAddrV4>) -> (Stack, std::net::SocketAddr) {
    let local = "127.0.0.1:0".parse().unwrap();
    let config = UdpConfig { local, remote, offload: false, addressing: UdpAddressing::Learned };
    let device = UdpDevice::open(&config).unwrap();
    let at = device.local_addr().unwrap();
    let endpoint = EndpointConfig::default().addresses(vec![US.0.into()]);
    let route = RouteConfig::default().rate(None);
    let mut stack = Stack::new(Box::new(device), endpoint, route, Seed::from_u64(1)).unwrap();
    let mut config = Config::default().keepalive(None).timestamps(false);
    config.ack.behaviour = AckBehaviour::EveryNth(1);
    stack.listen(US, config).unwrap();
    (stack, at)
}

/// An outer address, from which somebody speaks for a host.
struct Outer {
    socket: UdpSocket,
    inner: Ipv4Addr,
    port: u16,
    ack: SeqNum,
}

impl Outer {
    fn new(at: std::net::SocketAddr, inner: Ipv4Addr, port: u16) -> Outer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(at).unwrap();
        socket.set_nonblocking(true).unwrap();
        Outer { socket, inner, port, ack: SeqNum(0) }
    }

    /// The same host and connection behind another outer address.
    fn moved(&self, at: std::net::SocketAddr) -> Outer {
        Outer { ack: self.ack, ..Outer::new(at, self.inner, self.port) }
    }

    fn send(&self, seq: SeqNum, flags: Flags, len: usize) {
        let (src_port, dst_port) = (self.port, US.1);
        let options = Options::default();
        let tcp = Tcp { src_port, dst_port, seq, ack: self.ack, flags, window: 60_000, urgent: 0, options };
        let mut packet = vec![0; 20 + tcp.emit_len()];
        packet.extend(vec![0x5a; len]);
        let (head, segment) = packet.split_at_mut(20);
        tcp.emit(segment, self.inner, US.0, 6);
        let payload_len = segment.len() as u16;
        let (src, dst) = (self.inner, US.0);
        Ipv4 { src, dst, protocol: 6, tos: 0, ttl: 64, id: 1, dont_fragment: true, is_fragment: false, payload_len }
            .emit(head);
        self.socket.send(&packet).unwrap();
    }

    /// What came since.
    fn heard(&self) -> Vec<Tcp> {
        let mut buffer = [0; 2048];
        let mut answers = Vec::new();
        while let Ok(n) = self.socket.recv(&mut buffer) {
            let (ip, payload) = Ipv4::parse(&buffer[..n]).unwrap();
            answers.push(Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6])).unwrap().0);
        }
        answers
    }

    fn connect(&mut self, stack: &mut Stack) {
        self.send(ISS, Flags::SYN, 0);
        run_once(stack);
        let answers = self.heard();
        assert!(
            answers.len() == 1 && answers[0].flags.has(Flags::SYN),
            "a SYN is answered where it came from: {answers:?}"
        );
        self.ack = answers[0].seq + 1;
        self.send(ISS + 1, Flags::ACK, 0);
        run_once(stack);
    }
}

/// Lets the stack take what was sent, and answer.
fn run_once(stack: &mut Stack) {
    let before = stack.device().stats().received;
    stack.run_once(Some(stack.now())).unwrap();
    assert!(stack.device().stats().received > before, "nothing was there to take");
}

/// Lets the stack do what is due.
fn turn(stack: &mut Stack) {
    stack.run_once(Some(stack.now())).unwrap();
}

/// The connections that were accepted since the last call.
fn accepted_all(stack: &mut Stack) -> Vec<ConnectionId> {
    let events = std::iter::from_fn(|| stack.poll_event());
    events.filter_map(|event| if let Event::Accepted(_, id) = event { Some(id) } else { None }).collect()
}

fn accepted(stack: &mut Stack) -> ConnectionId {
    let [id] = accepted_all(stack)[..] else { panic!("one connection was accepted") };
    id
}

#[test]
fn what_is_made_up_takes_no_answers() {
    let (mut stack, at) = stack();
    let stranger = Outer::new(at, PEER, 4000);
    // Addresses and nothing else; then segments of no connection.
    let mut junk = [0; 20];
    junk[12..16].copy_from_slice(&PEER.octets());
    stranger.socket.send(&junk).unwrap();
    stranger.send(SeqNum(7), Flags::ACK, 10);
    run_once(&mut stack);
    let mut peer = Outer::new(at, PEER, 4000);
    peer.connect(&mut stack);
    // A stranger who knows the ports, but has seen no packet, redirects nothing.
    stranger.heard();
    stranger.send(SeqNum(0x7000_0000), Flags::ACK, 10);
    stranger.send(ISS, Flags::SYN, 0);
    run_once(&mut stack);
    stranger.heard();
    peer.heard();
    peer.send(ISS + 1, Flags::ACK, 500);
    run_once(&mut stack);
    assert_eq!((stranger.heard().len(), peer.heard().len()), (0, 1));
}

#[test]
fn junk_from_any_number_of_addresses_keeps_nobody_out() {
    let (mut stack, at) = stack();
    let mut old = Outer::new(at, PEER, 4000);
    old.connect(&mut stack);
    let stranger = Outer::new(at, PEER, 4000);
    for i in 0..4200u16 {
        let [high, low] = i.to_be_bytes();
        let mut junk = [0; 20];
        junk[12..16].copy_from_slice(&[11, 0, high, low]);
        stranger.socket.send(&junk).unwrap();
        // A segment of no connection as well.
        Outer { inner: Ipv4Addr::new(11, 1, high, low), socket: stranger.socket.try_clone().unwrap(), ..stranger }
            .send(SeqNum(7), Flags::ACK, 0);
        run_once(&mut stack);
    }
    Outer::new(at, Ipv4Addr::new(10, 8, 0, 3), 4000).connect(&mut stack);
    old.send(ISS + 1, Flags::ACK, 500);
    run_once(&mut stack);
    assert_eq!(old.heard().len(), 1, "who is connected is not forgotten");
}

#[test]
fn a_peer_behind_another_port_is_followed() {
    let (mut stack, at) = stack();
    let mut peer = Outer::new(at, PEER, 4000);
    peer.connect(&mut stack);
    peer.send(ISS + 1, Flags::ACK, 500);
    run_once(&mut stack);
    assert_eq!(peer.heard().len(), 1);
    // In the middle of a connection, though it only repeats what was acknowledged already.
    let moved = peer.moved(at);
    moved.send(ISS + 1, Flags::ACK, 500);
    run_once(&mut stack);
    assert_eq!((peer.heard().len(), moved.heard().len()), (0, 1));
    // A new connection from a third place is there, and the one before stays where it is.
    let mut again = Outer::new(at, PEER, 4001);
    again.connect(&mut stack);
    again.send(ISS + 1, Flags::ACK, 500);
    run_once(&mut stack);
    assert_eq!((moved.heard().len(), again.heard().len()), (0, 1));
    moved.send(ISS + 501, Flags::ACK, 500);
    run_once(&mut stack);
    assert_eq!((moved.heard().len(), again.heard().len()), (1, 0));
}

#[test]
fn a_connection_of_ones_own_with_anothers_address_takes_nothing_of_his() {
    for remote in [false, true] {
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap();
        let remote = remote.then(|| nobody.local_addr().unwrap().to_string().parse().unwrap());
        let (mut stack, at) = stack_with(remote);
        let mut peer = Outer::new(at, PEER, 4000);
        peer.connect(&mut stack);
        let of_peer = accepted(&mut stack);
        let mut stranger = Outer::new(at, PEER, 4999);
        stranger.connect(&mut stack);
        let of_stranger = accepted(&mut stack);
        stranger.send(ISS + 1, Flags::ACK, 500);
        run_once(&mut stack);
        assert_eq!(stranger.heard().len(), 1, "his own connection is his");
        // What was accepted first has something to say, and is asked, and ends.
        stack.send(of_peer, b"for the peer alone").unwrap();
        turn(&mut stack);
        let [data] = peer.heard()[..] else { panic!("the peer hears it once") };
        assert_eq!((data.dst_port, stranger.heard().len()), (4000, 0));
        // One to the address itself, which two claim, goes to neither.
        let port = (US.0, 20);
        let third = stack.connect(port, (PEER, 4500), Config::default()).unwrap();
        turn(&mut stack);
        assert_eq!((peer.heard().len(), stranger.heard().len()), (0, 0));
        assert_eq!(stack.device().stats().refused, u64::from(remote.is_none()), "without a remote it has no way");
        stack.abort(third);
        // The stranger gone, it is the peer's again.
        stack.abort(of_stranger);
        turn(&mut stack);
        assert_eq!((peer.heard().len(), stranger.heard().len()), (0, 1));
        stack.connect(port, (PEER, 4501), Config::default()).unwrap();
        turn(&mut stack);
        assert_eq!((peer.heard().len(), stranger.heard().len()), (1, 0));
        stack.abort(of_peer);
        turn(&mut stack);
        assert_eq!((peer.heard().len(), stranger.heard().len()), (1, 0), "a reset is the peer's too");
    }
}

#[test]
fn a_joined_message_of_two_connections_moves_both() {
    let (mut stack, at) = stack();
    let mut peers = [4000, 4001].map(|port| Outer::new(at, PEER, port));
    for peer in &mut peers {
        peer.connect(&mut stack);
    }
    let ids = accepted_all(&mut stack);
    // Both speak from one new place in one turn.
    let moved = peers[0].moved(at);
    let second = Outer { socket: moved.socket.try_clone().unwrap(), ..peers[1].moved(at) };
    moved.send(ISS + 1, Flags::ACK, 500);
    second.send(ISS + 1, Flags::ACK, 500);
    run_once(&mut stack);
    moved.heard();
    assert!(ids.iter().all(|id| stack.send(*id, b"x") == Ok(1)));
    turn(&mut stack);
    assert_eq!((moved.heard().len(), peers[0].heard().len(), peers[1].heard().len()), (2, 0, 0));
}

#[test]
fn a_segment_of_no_connection_is_reset_where_it_came_from() {
    let (mut stack, at) = stack();
    let stranger = Outer::new(at, PEER, 4000);
    stranger.send(SeqNum(7), Flags::ACK, 0);
    run_once(&mut stack);
    let answers = stranger.heard();
    assert!(answers.len() == 1 && answers[0].flags.has(Flags::RST), "{answers:?}");
}

#[test]
fn flush_returns_when_everything_was_acknowledged() {
    let (here, there) = (stack(), stack());
    let [local, remote] = [here.1, there.1].map(|at| at.to_string().parse().unwrap());
    drop((here, there));
    let stack = |local, remote, addresses: Ipv4Addr| {
        let config = UdpConfig { local, remote: Some(remote), offload: false, addressing: UdpAddressing::Learned };
        let device = UdpDevice::open(&config).unwrap();
        let endpoint = EndpointConfig::default().addresses(vec![addresses.into()]);
        let route = RouteConfig::default().rate(None);
        Stack::new(Box::new(device), endpoint, route, Seed::from_u64(1)).unwrap()
    };
    // The peer takes turns on a thread of its own, for the stream waits.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    let peer = std::thread::spawn(move || {
        let mut peer = stack(remote, local, US.0);
        peer.listen(US, Config::default()).unwrap();
        ready.send(()).unwrap();
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            let soon = peer.now() + scps_wire::Duration::from_millis(5);
            peer.run_once(Some(soon)).unwrap();
        }
    });
    is_ready.recv().unwrap();
    let shared: SharedStack = Rc::new(RefCell::new(stack(local, remote, PEER)));
    let mut stream = Stream::connect(&shared, (PEER, 0), US, Config::default()).unwrap();
    stream.write_all(b"x").unwrap();
    stream.flush().unwrap();
    let snapshot = shared.borrow().endpoint().snapshot(stream.id()).unwrap();
    assert_eq!((snapshot.unacknowledged, snapshot.unsent), (0, 0));
    assert_eq!(shared.borrow().endpoint().state(stream.id()), Some(State::Established));
    stop.send(()).unwrap();
    peer.join().unwrap();
}
