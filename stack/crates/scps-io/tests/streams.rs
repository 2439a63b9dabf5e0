//! Blocking streams between two programs, each on a thread with a stack of its own, over UDP on the loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_io::{Listener, SharedStack, Stack, Stream, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{Config, EndpointConfig, RouteConfig};
use scps_wire::{Duration, Seed};
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;

const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 8, 0, 2), 5001);
const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 8, 0, 1), 0);

fn stack(own: Ipv4Addr, remote: Option<SocketAddrV4>) -> (SharedStack, SocketAddrV4) {
    let local = "127.0.0.1:0".parse().unwrap();
    let config = UdpConfig { local, remote, offload: false, addressing: UdpAddressing::Learned };
    let device = UdpDevice::open(&config).unwrap();
    let at = device.local_addr().unwrap().to_string().parse().unwrap();
    let endpoint = EndpointConfig::default().addresses(vec![own.into()]);
    let route = RouteConfig::default().rate(None);
    (Rc::new(RefCell::new(Stack::new(Box::new(device), endpoint, route, Seed::from_u64(1)).unwrap())), at)
}

/// A server on a thread, which does this with its connection; and a client's connection to it.
fn joined<T: Send + 'static>(serve: impl FnOnce(Stream) -> T + Send + 'static) -> (SharedStack, Stream, JoinHandle<T>) {
    let (told, heard) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let (stack, at) = stack(SERVER.0, None);
        let listener = Listener::bind(&stack, SERVER, Config::modern()).unwrap();
        told.send(at).unwrap();
        serve(listener.accept().unwrap())
    });
    let (stack, _) = stack(CLIENT.0, Some(heard.recv().unwrap()));
    let client = Stream::connect(&stack, CLIENT, SERVER, Config::modern()).unwrap();
    (stack, client, server)
}

#[test]
fn both_ends_may_finish() {
    let (_stack, mut client, server) = joined(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.finish().unwrap();
        all.len()
    });
    client.write_all(&vec![7; 1_000_000]).unwrap();
    client.finish().unwrap();
    assert_eq!(server.join().unwrap(), 1_000_000);
}

#[test]
fn what_a_peer_says_after_the_end_does_not_keep_finish_waiting() {
    // More than fits into the buffer of whoever does not read any more.
    let (_stack, client, server) = joined(|mut stream| {
        stream.write_all(&vec![7; 9_000_000]).unwrap();
        stream.finish()
    });
    client.finish().unwrap();
    server.join().unwrap().unwrap();
}

#[test]
fn a_stream_that_was_reset_has_no_end() {
    let (stack, mut client, server) = joined(|mut stream| {
        let mut all = Vec::new();
        let got = stream.read_to_end(&mut all).map_err(|error| error.kind());
        let again = stream.read(&mut [0; 10]).map_err(|error| error.kind());
        (all.len(), got, again, stream.write(b"x").map_err(|error| error.kind()), stream.finish().map_err(|e| e.kind()))
    });
    client.write_all(&[7; 500]).unwrap();
    client.flush().unwrap();
    stack.borrow_mut().abort(client.id());
    stack.borrow_mut().finish_resets(Duration::from_secs(1)).unwrap();
    let reset = Err(ErrorKind::ConnectionReset);
    let (len, got, again, written, finished) = server.join().unwrap();
    assert_eq!((len, got, again), (500, reset, reset));
    assert_eq!((written, finished), (Err(ErrorKind::BrokenPipe), Err(ErrorKind::BrokenPipe)));
}

#[test]
fn a_port_has_one_listener_until_it_is_dropped() {
    let (stack, _) = stack(SERVER.0, None);
    let first = Listener::bind(&stack, SERVER, Config::modern()).unwrap();
    assert_eq!(Listener::bind(&stack, SERVER, Config::modern()).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(first);
    Listener::bind(&stack, SERVER, Config::modern()).unwrap();
}
