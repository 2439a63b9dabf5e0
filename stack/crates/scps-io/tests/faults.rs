//! Whole transfers over UDP sockets whose packets are lost, damaged, doubled and overtaken: the devices nest, and every octet
//! arrives.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_io::{CaptureKind, FaultConfig, Faults, Observed, PcapWriter, Stack, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{Config, EndpointConfig, Event, RouteConfig};
use scps_wire::pcap::{LinkType, Reader};
use scps_wire::{Duration, Instant, Seed};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);
const OCTETS: usize = 200_000;

fn udp(remote: Option<SocketAddrV4>) -> (UdpDevice, SocketAddrV4) {
    let local = "127.0.0.1:0".parse().unwrap();
    let config = UdpConfig { local, remote, offload: false, addressing: UdpAddressing::Learned };
    let device = UdpDevice::open(&config).unwrap();
    let SocketAddr::V4(at) = device.local_addr().unwrap() else { unreachable!("an IPv4 socket") };
    (device, at)
}

fn config() -> Config {
    let rto = Config::default().rto.min(Duration::from_millis(20));
    Config::default().rto(rto)
}

fn stack(device: impl scps_io::Device + 'static, address: Ipv4Addr) -> Stack {
    let route = RouteConfig::default().initial_rto(Duration::from_millis(50));
    let endpoint = EndpointConfig::default().addresses(vec![address.into()]);
    Stack::new(Box::new(device), endpoint, route, Seed::from_u64(1)).unwrap()
}

#[test]
fn every_octet_arrives_whatever_happens_to_packets_and_the_capture_has_them() {
    let faults = FaultConfig { loss: 0.05, corrupt: 0.03, duplicate: 0.05, reorder: 0.05 };
    let (device, at) = udp(None);
    let mut receiver = stack(device, RECEIVER);
    let file = tempfile::NamedTempFile::new().unwrap();
    let capture = PcapWriter::new(file.reopen().unwrap(), CaptureKind::Ip).unwrap();
    let device = Faults::new(Observed::new(udp(Some(at)).0, capture), faults, faults, &Seed::from_u64(2));
    let mut sender = stack(device, SENDER);

    receiver.listen((RECEIVER, 5001), config()).unwrap();
    let id = sender.connect((SENDER, 0), (RECEIVER, 5001), config()).unwrap();
    let data: Vec<u8> = (0..OCTETS).map(|i| (i / 7) as u8).collect();
    let (mut sent, mut got, mut accepted) = (0, Vec::new(), None);
    let started = std::time::Instant::now();
    while got.len() < OCTETS {
        assert!(started.elapsed().as_secs() < 60, "{} of {OCTETS} octets after a minute", got.len());
        let soon = |stack: &Stack| Some(Instant::from_nanos(stack.now().as_nanos() + 1_000_000));
        let (a, b) = (soon(&sender), soon(&receiver));
        sender.run_once(a).unwrap();
        receiver.run_once(b).unwrap();
        while sender.poll_event().is_some() {}
        while let Some(event) = receiver.poll_event() {
            if let Event::Accepted(_, id) = event {
                accepted = Some(id);
            }
        }
        sent += sender.send(id, &data[sent..]).unwrap_or(0);
        let mut buffer = [0; 8192];
        while let Some(Ok((n @ 1.., _))) = accepted.map(|id| receiver.recv(id, &mut buffer)) {
            got.extend_from_slice(&buffer[..n]);
        }
    }
    assert_eq!(got, data);
    let file = std::fs::read(file.path()).unwrap();
    let reader = Reader::new(&file).unwrap();
    assert_eq!(reader.link_type(), LinkType::RawIp);
    let count = reader.map(Result::unwrap).count() as u64;
    let stats = sender.device().stats();
    assert_eq!(count, stats.sent + stats.received);
    assert!(sender.endpoint().stats(id).unwrap().resends_total() > 0, "nothing was ever lost");
}
