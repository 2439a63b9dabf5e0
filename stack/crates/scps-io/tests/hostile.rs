//! What anybody may send to the devices of a gateway: frames of a TUN interface with whatever virtio header, and datagrams. The fuzz targets
//! `tun` and `udp` are this file too, with other data.
#![allow(clippy::unwrap_used, reason = "a test stops where its expectation fails")]

use scps_gateway::{Gateway, GatewayConfig, PerSide, SetUp, Side, SideConfig};
use scps_io::{Clock, Device, GatewayLoop, TunDevice, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::RouteConfig;
use scps_wire::Seed;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::unix::net::UnixDatagram;

/// Octets before a packet that a TUN interface with offload gives.
const VNET: usize = 10;
/// Connections that the gateway may have.
const PLACES: usize = 4;
const LOOPBACK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// Where frames come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    /// A TUN interface with offload.
    Tun,
    /// A UDP socket whose peers are learned.
    Udp,
}

fn udp(remote: Option<SocketAddrV4>) -> Result<UdpDevice, Box<dyn Error>> {
    let addressing = if remote.is_some() { UdpAddressing::Peer } else { UdpAddressing::Learned };
    Ok(UdpDevice::open(&UdpConfig { local: LOOPBACK, remote, offload: true, addressing })?)
}

/// The next of `data`: an octet that says how to make it likely, one that says how long it is, and itself.
fn next_frame(data: &mut &[u8], before: usize) -> Option<Vec<u8>> {
    let [kind, len, rest @ ..] = *data else { return None };
    let (octets, rest) = rest.split_at(rest.len().min(usize::from(*len)));
    *data = rest;
    let mut frame = octets.to_vec();
    let total = frame.len().saturating_sub(before) as u16;
    let [high, low] = total.to_be_bytes();
    let protocol = [6, 6, 6, 17, 1, 105, 106, 99][usize::from(kind >> 2 & 7)];
    let likely = [(0, 0x45), (2, high), (3, low), (6, 0), (7, 0), (9, protocol), (12, 10), (16, 10)];
    for (place, octet) in likely.into_iter().filter(|_| kind & 3 > 0) {
        if let Some(at) = frame.get_mut(before + place) {
            *at = octet;
        }
    }
    Some(frame)
}

/// Lets a gateway between `line` and a UDP socket meet what `data` stands for.
///
/// # Errors
/// This machine has no sockets.
///
/// # Panics
/// The gateway does not keep a promise.
pub fn drive(line: Line, mut data: &[u8]) -> Result<(), Box<dyn Error>> {
    let sink = UdpSocket::bind(LOOPBACK)?;
    sink.set_nonblocking(true)?;
    let SocketAddr::V4(far) = sink.local_addr()? else { return Err("an IPv4 socket has another address".into()) };
    let (own, kernel) = UnixDatagram::pair()?;
    own.set_nonblocking(true)?;
    kernel.set_nonblocking(true)?;
    let stranger = UdpSocket::bind(LOOPBACK)?;
    stranger.set_nonblocking(true)?;
    let lan: Box<dyn Device> = match line {
        Line::Tun => Box::new(TunDevice::over(own.into(), true)),
        Line::Udp => {
            let device = udp(None)?;
            stranger.connect(device.local_addr()?)?;
            Box::new(device)
        }
    };
    let side = SideConfig::default().route(RouteConfig::default().rate(None));
    let mut config = GatewayConfig::transparent(side.clone(), side, SetUp::Early);
    config.limits.connections = PLACES;
    let clock = Clock::new();
    let engine = Gateway::new(config, Seed::from_u64(1), clock.now())?;
    let mut gateway = GatewayLoop::new(engine, PerSide { lan, wan: Box::new(udp(Some(far))?) }, true, clock)?;
    let before = if line == Line::Tun { VNET } else { 0 };
    let mut came = vec![0; 70_000];
    while let Some(frame) = next_frame(&mut data, before) {
        // What a full socket does not take is lost, as on any line.
        let _ = match line {
            Line::Tun => kernel.send(&frame),
            Line::Udp => stranger.send(&frame),
        };
        gateway.run_once(Some(gateway.now()))?;
        while kernel.recv(&mut came).is_ok() || stranger.recv(&mut came).is_ok() || sink.recv(&mut came).is_ok() {}
        let engine = gateway.gateway();
        assert!(engine.connections().count() <= PLACES);
        let closes = |id| engine.account(id).is_some_and(|of| Side::BOTH.iter().all(|side| of.of(*side).closes()));
        assert!(engine.connections().all(closes), "octets are neither here nor there");
    }
    Ok(())
}

#[test]
fn whatever_comes_from_a_line_the_gateway_goes_on() {
    scps_sim::cases::for_each("cargo test -p scps-io --test hostile", 40, |_, rng| {
        let data: Vec<u8> = (0..rng.below(8000)).map(|_| rng.next_u32() as u8).collect();
        for line in [Line::Tun, Line::Udp] {
            drive(line, &data).unwrap();
        }
    });
}
