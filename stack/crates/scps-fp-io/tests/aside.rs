//! Slow work of the file protocol, such as a disk's, keeps no peer of SCPS-TP waiting.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_fp::net::{aside, Net, Service};
use scps_fp_io::TpNet;
use scps_io::{SharedStack, Stack, Stream, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{Config, EndpointConfig, RouteConfig};
use scps_wire::Seed;
use std::cell::RefCell;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;

const US: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 8, 0, 2), 5001);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);

fn stack(own: Ipv4Addr, remote: Option<SocketAddrV4>) -> (Stack, SocketAddrV4) {
    let local = "127.0.0.1:0".parse().unwrap();
    let addressing = UdpAddressing::Learned;
    let device = UdpDevice::open(&UdpConfig { local, remote, offload: false, addressing }).unwrap();
    let at = device.local_addr().unwrap().to_string().parse().unwrap();
    let endpoint = EndpointConfig::default().addresses(vec![own.into()]);
    let route = RouteConfig::default().rate(None);
    (Stack::new(Box::new(device), endpoint, route, Seed::from_u64(1)).unwrap(), at)
}

#[test]
fn a_peer_is_answered_while_the_disk_is_slow() {
    let (ours, at) = stack(US.0, None);
    let mut net = TpNet::new(ours, US.0, Config::default());
    net.listen(SocketAddrV4::new(US.0, US.1).into(), Service::Reliable).unwrap();
    let (told, heard) = channel();
    let peer = std::thread::spawn(move || {
        let shared: SharedStack = Rc::new(RefCell::new(stack(PEER, Some(at)).0));
        let mut stream = Stream::connect(&shared, (PEER, 0), US, Config::default()).unwrap();
        stream.write_all(&[7; 10_000]).unwrap();
        stream.flush().unwrap();
        told.send(()).unwrap();
    });
    // The disk is ready when the peer has all its acknowledgements, which begin with that of its SYN.
    let in_time = aside(&mut net, move || heard.recv_timeout(Duration::from_secs(20)).is_ok()).unwrap();
    assert!(in_time, "nobody acknowledged what the peer sent");
    peer.join().unwrap();
    assert_eq!(aside(&mut net, || 7).unwrap(), 7, "and it is over when the work is");
}
