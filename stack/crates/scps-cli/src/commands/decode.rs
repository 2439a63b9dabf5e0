//! `scps decode`: one line per packet of a capture, in the notation of packetdrill where there is one.

mod np;

use crate::error::CliError;
use clap::Args;
use scps_np::scmp::BadMessage;
use scps_np::{BadDatagram, FirstOctet, NpProfile};
use scps_wire::compressed::Compressed;
use scps_wire::icmp::IcmpError;
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::pcap::{ipv4_of, LinkType, Reader, Record};
use scps_wire::protocol;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::udp::Udp;
use scps_wire::Instant;
use scps_wire::Malformed;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Octets of a TCP header without options, and of a UDP header.
const TCP_FIXED_LEN: usize = 20;
const UDP_LEN: usize = 8;

/// Options of `scps decode`.
#[derive(Debug, Args)]
pub struct DecodeArgs {
    /// The capture: classic pcap; Ethernet, raw IP, or NP as `--pcap` writes it
    file: PathBuf,
    /// Exit with 1 if any packet is malformed
    #[arg(long)]
    strict: bool,
}

impl DecodeArgs {
    /// Prints the capture.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let file = std::fs::read(&self.file).map_err(CliError::file(&self.file))?;
        let usage = |e| CliError::Usage(format!("{}: {e}; expected a classic pcap file.", self.file.display()));
        let reader = Reader::new(&file).map_err(usage)?;
        let link_type = reader.link_type();
        let mut malformed = 0u64;
        let mut out = std::io::stdout().lock();
        let mut start: Option<Instant> = None;
        for (number, record) in reader.enumerate() {
            let line = match record {
                Err(e) => Err(e.into()),
                Ok(r) => {
                    let start = *start.get_or_insert(r.at);
                    let t = r.at.since(start).as_secs_f64();
                    describe_record(link_type, &r).map(|text| format!("{t:.6} {text}"))
                }
            };
            let text = match line {
                Ok(line) => line,
                Err(e) => {
                    malformed += 1;
                    format!("malformed: {e}")
                }
            };
            match writeln!(out, "{} {text}", number + 1) {
                Ok(()) => {}
                // Whoever reads has seen enough.
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => break,
                Err(source) => return Err(CliError::File { path: "standard output".to_owned(), source }),
            }
        }
        Ok(if self.strict && malformed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Why a packet is not what it claims to be.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Bad {
    Packet(#[from] Malformed),
    Datagram(#[from] BadDatagram),
    Message(#[from] BadMessage),
}

fn describe_record(link_type: LinkType, record: &Record<'_>) -> Result<String, Bad> {
    let (data, missing) = (record.data, record.length - record.data.len());
    let profile = if link_type == LinkType::User0 { np_profile(data) } else { None };
    let text = match (ipv4_of(link_type, data), profile) {
        (Some(packet), _) => match describe_ip(packet) {
            Err(Bad::Packet(Malformed::Truncated)) if missing > 0 => describe_cut(packet),
            other => other?,
        },
        (None, Some(profile)) if missing > 0 => np::describe_cut(data, profile),
        (None, Some(profile)) => np::describe(data, profile)?,
        (None, None) => return Ok(format!("neither IPv4 nor NP, {} bytes", data.len())),
    };
    if missing > 0 {
        return Ok(format!("{text} [cut: {} of {} octets captured]", data.len(), record.length));
    }
    Ok(text)
}

/// The profile of an NP datagram, if octets begin as one.
fn np_profile(octets: &[u8]) -> Option<NpProfile> {
    match FirstOctet::of(*octets.first()?) {
        Some(FirstOctet::Np(profile)) => Some(profile),
        _ => None,
    }
}

fn describe_ip(packet: &[u8]) -> Result<String, Bad> {
    let (ip, payload) = Ipv4::parse(packet)?;
    let (src, dst) = (ip.src, ip.dst);
    if ip.is_fragment {
        return Ok(format!("{src} > {dst} ip={} fragment, {} bytes", ip.protocol, payload.len()));
    }
    match ip.protocol {
        protocol::TCP | protocol::SCPS_STANDALONE => {
            let verify = Verify::Checksum(&[protocol::TCP, protocol::SCPS_STANDALONE]);
            let (tcp, data) = Tcp::parse(payload, src, dst, verify)?;
            Ok(format!(
                "{src}:{} > {dst}:{} ip={} {}",
                tcp.src_port,
                tcp.dst_port,
                ip.protocol,
                describe_tcp(&tcp, data)
            ))
        }
        protocol::SCPS_COMPRESSED => {
            let (header, data) = Compressed::parse(payload, src, dst)?;
            Ok(format!("{src} > {dst} ip=105 {}", describe_compressed(&header, data)))
        }
        protocol::UDP => {
            let (udp, inner) = Udp::parse(payload)?;
            let ports = format!("{src}:{} > {dst}:{} udp", udp.src_port, udp.dst_port);
            if udp.is_scps() && inner.first().is_some_and(|b| b >> 4 == 4) {
                return Ok(format!("{ports} [ {} ]", describe_ip(inner)?));
            }
            if let Some(profile) = np_profile(inner).filter(|_| udp.is_scps()) {
                return Ok(format!("{ports} [ {} ]", np::describe(inner, profile)?));
            }
            Ok(format!("{ports} {} bytes", inner.len()))
        }
        protocol::ICMP => Ok(match IcmpError::parse(payload)? {
            // Ports, unless SP hides them.
            Some(IcmpError { kind, src: from, dst: to, data: [a, b, c, d, ..], protocol })
                if protocol != protocol::SCPS_SP =>
            {
                let [from_port, to_port] = [[*a, *b], [*c, *d]].map(u16::from_be_bytes);
                format!("{src} > {dst} icmp {kind:?} of {from}:{from_port} > {to}:{to_port}")
            }
            Some(e) => format!("{src} > {dst} icmp {:?} of {} > {}", e.kind, e.src, e.dst),
            None => format!("{src} > {dst} icmp type {}", payload.first().copied().unwrap_or(0)),
        }),
        protocol::SCPS_SP => Ok(format!("{src} > {dst} ip=99 {}", np::describe_sp(payload, payload.len())?)),
        protocol::SCPS_NP => {
            let profile = np_profile(payload).ok_or(BadDatagram::Version)?;
            Ok(format!("{src} > {dst} ip=118 [ {} ]", np::describe(payload, profile)?))
        }
        other => Ok(format!("{src} > {dst} ip={other} {} bytes", payload.len())),
    }
}

/// What there is of a packet of which a capture has only the beginning; checksums cannot be tested.
fn describe_cut(packet: &[u8]) -> String {
    let mut whole = packet.to_vec();
    let total = packet.get(2..4).map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])));
    // The missing octets are data, or what is behind them is not looked at.
    whole.resize(total.max(packet.len()), 0);
    let Ok((ip, payload)) = Ipv4::parse(&whole) else { return "IPv4, the header is cut".to_owned() };
    let captured = packet.len().saturating_sub(whole[..total].len() - payload.len());
    let (src, dst, number) = (ip.src, ip.dst, ip.protocol);
    let there = &payload[..captured.min(payload.len())];
    let known = match number {
        protocol::TCP | protocol::SCPS_STANDALONE => cut_tcp(payload, there, &ip),
        protocol::SCPS_COMPRESSED => match Compressed::parse_unverified(payload) {
            Ok((header, data)) if payload.len() - data.len() <= there.len() => {
                Some(format!("{src} > {dst} ip=105 {}", describe_compressed(&header, data)))
            }
            _ => None,
        },
        protocol::UDP => cut_udp(payload, there, &ip),
        protocol::SCPS_SP => {
            np::describe_sp(there, payload.len()).ok().map(|text| format!("{src} > {dst} ip=99 {text}"))
        }
        protocol::SCPS_NP => {
            np_profile(there).map(|profile| format!("{src} > {dst} ip=118 [ {} ]", np::describe_cut(there, profile)))
        }
        _ => None,
    };
    known.unwrap_or_else(|| format!("{src} > {dst} ip={number} {} bytes, the header is cut", payload.len()))
}

fn cut_tcp(payload: &[u8], there: &[u8], ip: &Ipv4) -> Option<String> {
    let header_len = usize::from(there.get(12)? >> 4) * 4;
    let (tcp, data) = Tcp::parse(payload, ip.src, ip.dst, Verify::Trusted).ok()?;
    let ports = format!("{}:{} > {}:{} ip={}", ip.src, tcp.src_port, ip.dst, tcp.dst_port, ip.protocol);
    if header_len <= there.len() {
        return Some(format!("{ports} {}", describe_tcp(&tcp, data)));
    }
    // The options are cut: none is shown rather than some that were not there.
    let tcp = Tcp { options: Options::default(), ..tcp };
    (there.len() >= TCP_FIXED_LEN).then(|| format!("{ports} {} (options cut)", describe_tcp(&tcp, data)))
}

fn cut_udp(payload: &[u8], there: &[u8], ip: &Ipv4) -> Option<String> {
    let (udp, inner) = Udp::parse(payload).ok().filter(|_| there.len() >= UDP_LEN)?;
    let ports = format!("{}:{} > {}:{} udp", ip.src, udp.src_port, ip.dst, udp.dst_port);
    if udp.is_scps() && there.get(UDP_LEN).is_some_and(|b| b >> 4 == 4) {
        return Some(format!("{ports} [ {} ]", describe_cut(&there[UDP_LEN..])));
    }
    if let Some(profile) = np_profile(&there[UDP_LEN..]).filter(|_| udp.is_scps()) {
        return Some(format!("{ports} [ {} ]", np::describe_cut(&there[UDP_LEN..], profile)));
    }
    Some(format!("{ports} {} bytes", inner.len()))
}

fn describe_tcp(tcp: &Tcp, data: &[u8]) -> String {
    let mut text = format!("{} seq {}", tcp.flags, tcp.seq);
    if !data.is_empty() {
        // Writing to a String cannot fail, here and below.
        let _ = write!(text, ":{}({})", tcp.seq + data.len() as u32, data.len());
    }
    if tcp.flags.has(Flags::ACK) {
        let _ = write!(text, " ack {}", tcp.ack);
    }
    let _ = write!(text, " win {}", tcp.window);
    if tcp.flags.has(Flags::URG) {
        let _ = write!(text, " urg {}", tcp.urgent);
    }
    describe_options(&mut text, &tcp.options);
    text
}

fn describe_compressed(c: &Compressed<'_>, data: &[u8]) -> String {
    let mut text = format!("compressed id {}", c.connection_id);
    for (on, name) in [(c.push, " P"), (c.fin, " F"), (c.rst, " R")] {
        if on {
            text.push_str(name);
        }
    }
    if let Some(seq) = c.seq {
        let _ = write!(text, " seq {seq}");
    }
    if let Some((window, ack)) = c.window_ack {
        let _ = write!(text, " ack {ack} win {window}");
    }
    if let (Some(val), Some(ecr)) = (c.ts_val, c.ts_ecr) {
        let _ = write!(text, " TS val {val} ecr {ecr}");
    }
    if c.record_boundary {
        text.push_str(" record-end");
    }
    describe_options(&mut text, &Options::parse(c.options));
    let _ = write!(text, " data {}", data.len());
    text
}

fn describe_options(text: &mut String, o: &Options) {
    if let Some(c) = o.capabilities {
        let _ = write!(text, " scps caps {:#04x} id {}", c.bits, c.connection_id);
    }
    if let Some(b) = o.binding_spaces {
        for space in b.unpack() {
            let _ = write!(text, " binding-space {} ({} bytes)", space.id, space.data.len());
        }
    }
    if let Some(mss) = o.mss {
        let _ = write!(text, " mss {mss}");
    }
    if let Some(shift) = o.window_scale {
        let _ = write!(text, " wscale {shift}");
    }
    if o.sack_permitted {
        text.push_str(" sackOK");
    }
    if let Some(t) = o.timestamps {
        let _ = write!(text, " TS val {} ecr {}", t.val, t.ecr);
    }
    if let Some(s) = o.snack {
        let _ = write!(text, " snack hole of {} at +{}", s.size, s.offset);
        if !s.vector().is_empty() {
            text.push_str(" vector ");
            for b in s.vector() {
                let _ = write!(text, "{b:08b}");
            }
        }
    }
    for (left, right) in o.sack.as_slice() {
        let _ = write!(text, " sack {left}:{right}");
    }
    for (on, name) in [
        (o.record_boundary, " record-end"),
        (o.corruption_experienced, " corruption-experienced"),
        (o.legacy_bets, " bets-permitted(16)"),
    ] {
        if on {
            text.push_str(name);
        }
    }
}
