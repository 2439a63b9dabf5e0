//! `scps gateway --probe`: whether the other gateway answers, how soon, and how long packets may be.
//!
//! It asks as a stranger: by a segment of no connection, which a gateway answers with a reset.

use crate::error::CliError;
use crate::gateway_settings::{Carrier, GatewaySettings};
use crate::say;
use scps_io::{Clock, Device};
use scps_tp::Transmit;
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Duration, SeqNum};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;

/// How often a question is asked.
const TRIES: u16 = 3;
/// How long an answer is waited for, or three round trips.
const PATIENCE: Duration = Duration::from_secs(2);
/// What every host takes (RFC 791 §3.1).
const LEAST: u16 = 576;
const HEADERS: u16 = 40;

struct Probe {
    device: Box<dyn Device>,
    clock: Clock,
    own: Ipv4Addr,
    peer: Ipv4Addr,
    patience: Duration,
    /// Names the next question.
    port: u16,
}

/// Asks, and says what was found.
pub fn probe(settings: &GatewaySettings) -> Result<ExitCode, CliError> {
    let Carrier::Udp(udp) = &settings.carriers.wan else {
        return Err(CliError::Usage("gateway: --probe: found a WAN of kind tun; expected udp.".to_owned()));
    };
    let remote =
        udp.remote.ok_or_else(|| CliError::Usage("gateway: --probe: found no peer; expected one.".to_owned()))?;
    let (clock, route) = (Clock::new(), settings.config.wan.route);
    let device = settings.carriers.wan.open()?;
    let device = match &settings.sp.wan {
        Some(sp) => sp.protect(device, clock)?,
        None => device,
    };
    let patience = route.rtt.map_or(PATIENCE, |rtt| PATIENCE.max(rtt * 3));
    let own = own_address(remote).unwrap_or(*udp.local.ip());
    let mut probe = Probe { device, clock, own, peer: *remote.ip(), patience, port: 1 };
    let least = LEAST.min(route.mtu) - route.overhead;
    let Some(round_trip) = probe.ask(least)? else {
        say::result(format_args!(
            "{remote}: no answer in {:.1} s, {TRIES} times; is the other gateway running, with this one as its peer?",
            patience.as_secs_f64()
        ))?;
        return Ok(ExitCode::FAILURE);
    };
    say::result(format_args!("{remote}: answers after {:.1} ms", round_trip.as_secs_f64() * 1e3))?;
    let full = route.mtu - route.overhead;
    // The longest that is answered: nothing shorter than `passes` and nothing as long as `fails` has to be tried.
    let (mut passes, mut fails) = (least, full + 1);
    let mut next = full;
    while passes + 1 < fails {
        if probe.ask(next)?.is_some() {
            passes = next;
        } else {
            fails = next;
        }
        next = u16::midpoint(passes, fails);
    }
    let longest = passes + route.overhead;
    if passes == full {
        say::result(format_args!("packets of {longest} octets arrive, which is \"mtu\""))?;
        return Ok(ExitCode::SUCCESS);
    }
    say::result(format_args!("packets of more than {longest} octets do not arrive; set \"mtu\": {longest} in \"transport\" of \"wan\" at both ends"))?;
    Ok(ExitCode::FAILURE)
}

/// The address from which this machine reaches another.
fn own_address(remote: SocketAddrV4) -> Option<Ipv4Addr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(remote).ok()?;
    match socket.local_addr().ok()?.ip() {
        std::net::IpAddr::V4(own) => Some(own),
        std::net::IpAddr::V6(_) => None,
    }
}

impl Probe {
    /// The time to the answer to a packet of so many octets, if there is one.
    fn ask(&mut self, len: u16) -> Result<Option<Duration>, CliError> {
        for _ in 0..TRIES {
            self.port += 1;
            let asked_at = self.clock.now();
            let packet = self.question(len);
            self.device.outbox().extend_from_slice(&packet);
            self.device.queue(Transmit::new(self.peer, packet.len()));
            self.device.flush().map_err(failed)?;
            while self.clock.now().since(asked_at) < self.patience {
                let (mut is_answered, peer, port) = (false, self.peer, self.port);
                self.device
                    .receive(&mut |octets, _, _, _| is_answered |= is_answer(octets, peer, port))
                    .map_err(failed)?;
                if is_answered {
                    return Ok(Some(self.clock.now().since(asked_at)));
                }
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        }
        Ok(None)
    }

    /// An acknowledgement of nothing, with data so that it is of this length.
    fn question(&self, len: u16) -> Vec<u8> {
        let (src, dst) = (self.own, self.peer);
        let (seq, ack, options) = (SeqNum(1), SeqNum(1), Options::default());
        let tcp = Tcp {
            src_port: self.port,
            dst_port: self.port,
            seq,
            ack,
            flags: Flags::ACK,
            window: 0,
            urgent: 0,
            options,
        };
        let mut packet = vec![0; usize::from(len.max(HEADERS))];
        let (head, segment) = packet.split_at_mut(20);
        tcp.emit(segment, src, dst, protocol::TCP);
        let payload_len = segment.len() as u16;
        let (protocol, dont_fragment, is_fragment) = (protocol::TCP, true, false);
        Ipv4 { src, dst, protocol, tos: 0, ttl: 64, id: self.port, dont_fragment, is_fragment, payload_len }.emit(head);
        packet
    }
}

fn failed(source: std::io::Error) -> CliError {
    CliError::File { path: "the carrier of the WAN".to_owned(), source }
}

fn is_answer(packet: &[u8], peer: Ipv4Addr, port: u16) -> bool {
    let Ok((header, payload)) = Ipv4::parse(packet) else { return false };
    let ports = payload.get(..4).is_some_and(|ports| ports == [port.to_be_bytes(), port.to_be_bytes()].concat());
    header.src == peer && ports && payload.get(13).is_some_and(|bits| Flags(*bits).has(Flags::RST))
}
