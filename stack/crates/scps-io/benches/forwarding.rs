//! How fast a router forwards between two UDP sockets on loopback: packets and bits a second of processor time, system calls
//! included. The sockets at either end are filled and emptied by the same thread, outside of what is measured.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench stops where its expectation fails")]

use scps_io::{cpu_time, Device, Forwarder, Port, UdpAddressing, UdpConfig, UdpDevice};
use scps_np::{
    Address, Addresses, Dialect, Header, QueueConfig, Router, RouterConfig, RouterLink, SpRule, Tables, DATAGRAM_MAX,
};
use scps_wire::{Instant, Seed};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

const HOSTS: [(Ipv4Addr, u16); 2] = [(Ipv4Addr::new(10, 0, 0, 1), 0x7290), (Ipv4Addr::new(10, 0, 0, 2), 0x7292)];
/// Datagrams that come between two turns of the router: what its device takes with one call, and below the limit of a queue, so that
/// nothing is discarded.
const BURST: usize = 32;
const BURSTS: usize = 10_000;

fn datagram(len: usize) -> Vec<u8> {
    let addresses = Addresses::Basic { dst: HOSTS[1].1, src: HOSTS[0].1 };
    let header = Header { tpid: 6, addresses, hop_count: Some(9), checksum: true, ..Header::default() };
    let mut octets = vec![0; len];
    header.emit(Dialect::default(), DATAGRAM_MAX, &mut octets).unwrap();
    octets
}

/// A router's socket for `hop`, which is at `host`; and its address.
fn port(hop: Ipv4Addr, host: &UdpSocket) -> (Port, SocketAddr) {
    let SocketAddr::V4(at) = host.local_addr().unwrap() else { unreachable!("an IPv4 socket") };
    let addressing = UdpAddressing::Hops { port: 7168, others: [(hop, at)].into() };
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let device = UdpDevice::open(&UdpConfig { local, remote: None, offload: false, addressing }).unwrap();
    let address = device.local_addr().unwrap();
    (Port { device: Box::new(device) as Box<dyn Device>, rate: None, framing: 0 }, address)
}

fn forward(len: usize) {
    let hosts = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut tables = Tables::of([10, 0, 0, 9].into());
    for (ip, np) in HOSTS {
        tables.add_host(ip, Address::Basic(np)).unwrap();
        tables.add_next_hop(Address::Basic(np), ip).unwrap();
    }
    let link = |(hop, _)| RouterLink {
        dialect: Dialect::default(),
        mtu: 1500,
        neighbours: vec![hop],
        queue: QueueConfig::default(),
        sp: SpRule::default(),
    };
    let router = Router::new(RouterConfig::default(), tables, HOSTS.map(link).into(), Seed::from_u64(1), Instant::ZERO);
    let [(near, entry), (far, _)] = [0, 1].map(|side| port(HOSTS[side].0, &hosts[side]));
    let mut forwarder = Forwarder::new(router, vec![near, far]).unwrap();
    let octets = datagram(len);
    let mut came = vec![0; len];
    // One that was lost ends the bench.
    hosts[1].set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut spent = Duration::ZERO;
    for _ in 0..BURSTS {
        for _ in 0..BURST {
            hosts[0].send_to(&octets, entry).unwrap();
        }
        let before = cpu_time();
        forwarder.run_once().unwrap();
        spent += cpu_time().saturating_sub(before);
        for _ in 0..BURST {
            assert_eq!(hosts[1].recv(&mut came).unwrap(), len);
        }
    }
    let (count, seconds) = ((BURST * BURSTS) as f64, spent.as_secs_f64());
    println!(
        "forward {len:>4} octets: {:>6.0} ns a packet, {:>7.0} packets/s, {:>5.2} Gbit/s (of processor time)",
        seconds * 1e9 / count,
        count / seconds,
        count * len as f64 * 8.0 / seconds / 1e9
    );
}

fn main() {
    for len in [64, 512, 1400] {
        forward(len);
    }
}
