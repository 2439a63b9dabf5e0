//! Settings of a gateway (`scps gateway FILE`): strict JSON (docs/gateway-reference.md has every key), or the command line alone.
//!
//! What is not given follows from the rate and the round-trip time of the link.

use crate::error::CliError;
use crate::pace::Rate;
use crate::resume_file::ResumeFile;
use crate::settings::{Preset, Tunables};
use crate::settings_file::{word, SettingsFile, Wrong};
use crate::sp_settings::SpTunnel;
use scps_gateway::{Bypass, Forward, GatewayConfig, Limits, PerSide, SetUp, Side, SideConfig};
use scps_io::{Device, TunConfig, TunDevice, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{Config, Congestion, InitialWindow, LossMeaning, RouteConfig, VegasConfig};
use scps_wire::Duration;
use scps_wire::{ipv4, udp};
use serde::{Deserialize, Deserializer};
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};

/// UDP port of encapsulated packets at both ends (scps-tp §9.5, `C_LOCAL_UDP_PORT`).
const UDP_PORT: u16 = 7168;
const ETHERNET_MTU: u16 = 1500;
/// Least MTU, without lower layers: headers of IP and TCP with all options are 80 octets, and data has to fit as well.
const MTU_MIN: u16 = 128;
/// Least buffer: a local network fills less in its round trip.
const BUFFER_MIN: usize = 256 * 1024;
const TUN_LAN: &str = "scpsgw0";
const TUN_WAN: &str = "scpsgw1";
/// Connections at a time, unless the file says otherwise.
const CONNECTIONS: usize = 1024;

/// A prefix: `10.2.0.0/24`, or one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// Its first address.
    pub address: Ipv4Addr,
    /// Bits that all its addresses share.
    pub length: u8,
}

impl std::str::FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        let parsed = address.parse().ok().zip(length.parse().ok().filter(|length| *length <= 32));
        let wrong = || format!("found \"{text}\"; expected a prefix such as \"10.2.0.0/24\"");
        let prefix = parsed.map(|(address, length)| Prefix { address, length }).ok_or_else(wrong)?;
        let network = prefix.network();
        if network != prefix {
            return Err(format!("found \"{text}\", an address within a network; expected \"{network}\""));
        }
        Ok(prefix)
    }
}

impl Prefix {
    /// With the first of its addresses.
    fn network(self) -> Prefix {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
        Prefix { address: Ipv4Addr::from(u32::from(self.address) & mask), ..self }
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        word(from)
    }
}

#[derive(Deserialize)]
#[serde(remote = "SetUp", rename_all = "kebab-case")]
enum SetUpWord {
    ConnectFirst,
    AcceptFirst,
    Early,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum UnknownWord {
    #[default]
    Reset,
    Pass,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindWord {
    Tcp,
    Scps,
}

#[derive(Deserialize)]
#[serde(remote = "Side", rename_all = "kebab-case")]
enum SideWord {
    Lan,
    Wan,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GatewayFile {
    #[serde(with = "SetUpWord")]
    set_up: SetUp,
    unknown: UnknownWord,
    meter_others: bool,
    lan: SidePart,
    wan: SidePart,
    forwards: Vec<ForwardPart>,
    bypass: Vec<BypassPart>,
    shares: Option<Vec<u16>>,
    host: Option<OwnHost>,
    limits: LimitsPart,
}

impl Default for GatewayFile {
    fn default() -> Self {
        GatewayFile {
            set_up: SetUp::ConnectFirst,
            unknown: UnknownWord::default(),
            meter_others: true,
            lan: SidePart::default(),
            wan: SidePart::default(),
            forwards: Vec::new(),
            bypass: Vec::new(),
            shares: None,
            host: None,
            limits: LimitsPart::default(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SidePart {
    kind: Option<KindWord>,
    carrier: Option<CarrierPart>,
    accepts: Option<bool>,
    framing: u16,
    sp: Option<SpPart>,
    transport: Tunables,
}

/// SP between this gateway and the peer of a side.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpPart {
    file: PathBuf,
    own: Option<Ipv4Addr>,
    peer: Option<Ipv4Addr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CarrierWord {
    Tun,
    Udp,
}

/// A carrier, with the keys of both kinds.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CarrierPart {
    kind: CarrierWord,
    device: Option<String>,
    #[serde(default)]
    routes: Vec<Prefix>,
    #[serde(default)]
    unconfigured: bool,
    local: Option<SocketAddrV4>,
    remote: Option<SocketAddrV4>,
    offload: Option<bool>,
}

impl CarrierPart {
    fn of(kind: CarrierWord) -> Self {
        let (device, routes, unconfigured) = (None, Vec::new(), false);
        CarrierPart { kind, device, routes, unconfigured, local: None, remote: None, offload: None }
    }

    /// A key of the other kind, and that kind.
    fn stranger(&self) -> Option<(&'static str, &'static str)> {
        let of_tun = [
            ("device", self.device.is_some()),
            ("routes", !self.routes.is_empty()),
            ("unconfigured", self.unconfigured),
        ];
        let of_udp = [("local", self.local.is_some()), ("remote", self.remote.is_some())];
        let (others, kind) = if self.kind == CarrierWord::Udp { (&of_tun[..], "tun") } else { (&of_udp[..], "udp") };
        others.iter().find(|(_, is_given)| *is_given).map(|(key, _)| (*key, kind))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForwardPart {
    #[serde(with = "SideWord")]
    side: Side,
    listen: SocketAddrV4,
    from: Ipv4Addr,
    to: SocketAddrV4,
}

/// Connections that are not split.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BypassPart {
    net: Option<Prefix>,
    ports: Option<String>,
}

/// The machine whose programs the gateway serves: it is the one that the gateway runs on.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnHost {
    /// The interface to the network.
    pub interface: String,
    /// The machine's address there.
    pub address: Ipv4Addr,
    /// Networks whose connections go through the gateway; all if there are none.
    #[serde(default)]
    pub far: Vec<Prefix>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsPart {
    connections: Option<usize>,
    buffered_bytes: Option<usize>,
    set_up_s: Option<u64>,
}

/// What carries a side's packets.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// A TUN interface.
    Tun(TunConfig),
    /// A UDP socket.
    Udp(UdpConfig),
}

impl Carrier {
    /// Opens it.
    pub fn open(&self) -> Result<Box<dyn Device>, CliError> {
        Ok(match self {
            Carrier::Tun(config) => Box::new(TunDevice::open(config)?),
            Carrier::Udp(config) => Box::new(UdpDevice::open(config)?),
        })
    }

    fn overhead(&self) -> u16 {
        match self {
            Carrier::Tun(_) => 0,
            Carrier::Udp(_) => (ipv4::HEADER_LEN + udp::HEADER_LEN) as u16,
        }
    }
}

/// What the command line says in place of the file, or of a part of it.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Rate of the WAN side.
    pub rate: Option<String>,
    /// Round-trip time of the WAN side, milliseconds.
    pub rtt_ms: Option<u64>,
    /// The other gateway.
    pub peer: Option<SocketAddrV4>,
    /// Networks behind it.
    pub far: Vec<Prefix>,
    /// Settings of SP between both.
    pub sp: Option<PathBuf>,
}

/// Everything that a gateway is made from.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// For the engine.
    pub config: GatewayConfig,
    /// For the devices.
    pub carriers: PerSide<Carrier>,
    /// What seals their packets.
    pub sp: PerSide<Option<SpTunnel>>,
    /// What is known of their paths.
    pub resume: PerSide<ResumeFile>,
    /// Whether what is not TCP takes the rate credit of the side where it leaves.
    pub is_metered: bool,
    /// The machine that the gateway runs on, if it serves that one's own programs.
    pub host: Option<OwnHost>,
}

/// True if the machine has the peer's address: no other gateway is there. On the loopback addresses may be a program that takes packets
/// further, but not at the gateway's own port.
fn is_own(local: SocketAddrV4, remote: SocketAddrV4) -> bool {
    if remote.ip().is_loopback() {
        return local.port() == remote.port() && (local.ip().is_unspecified() || local.ip() == remote.ip());
    }
    // What goes to an address of the machine itself comes from that address.
    let source = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect(remote)?;
        socket.local_addr()
    });
    local.ip() == remote.ip() || source.is_ok_and(|source| source.ip() == *remote.ip())
}

/// Why an address is no other gateway's, which depends on the machine.
fn no_peer(local: SocketAddrV4, remote: SocketAddrV4) -> Option<&'static str> {
    let ip = remote.ip();
    if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || remote.port() == 0 {
        return Some("is no address and port of one machine");
    }
    is_own(local, remote).then_some("is this machine's own address")
}

impl GatewaySettings {
    /// Reads the file, or takes the command line alone.
    pub fn read(path: Option<&Path>, overrides: &Overrides) -> Result<Self, CliError> {
        match path {
            Some(path) => GatewaySettings::of(&SettingsFile::read(path)?, overrides),
            None if overrides.peer.is_none() => {
                let expected = "expected a settings file, or --peer ADDR[:PORT] with --rate and --rtt-ms";
                Err(CliError::Usage(format!("gateway: found neither; {expected}.")))
            }
            None => GatewaySettings::of(&SettingsFile::of_text("the command line", "{}".to_owned()), overrides),
        }
    }

    fn of(file: &SettingsFile, overrides: &Overrides) -> Result<Self, CliError> {
        let whole: GatewayFile = file.parse()?;
        let none = Overrides::default();
        let wan = SideReader { file, part: &whole.wan, side: Side::Wan, overrides };
        let lan = SideReader { file, part: &whole.lan, side: Side::Lan, overrides: &none };
        let mut carriers = PerSide { lan: lan.carrier(&overrides.far)?, wan: wan.carrier(&[])? };
        let is_alone = whole.forwards.is_empty();
        if let (true, Carrier::Tun(lan_tun), Carrier::Tun(wan_tun)) = (is_alone, &carriers.lan, &carriers.wan) {
            if let Some((address, length)) = lan_tun.routes.iter().chain(&wan_tun.routes).next() {
                let expected =
                    "expected none: with TUN on both sides rules lead packets to the gateway, as --check prints them";
                let problem = format!("found the route {address}/{length} beside a WAN of kind tun; {expected}");
                return Err(lan.complaint("carrier", problem));
            }
        }
        let shares = whole.shares.as_deref().map(|given| shares(file, given)).transpose()?;
        let sp = PerSide { lan: lan.sp(&carriers.lan)?, wan: wan.sp(&carriers.wan)? };
        let resume = PerSide { lan: lan.resume(), wan: wan.resume() };
        let around = |side: Side| carriers.of(side).overhead() + sp.of(side).as_ref().map_or(0, SpTunnel::overhead);
        let mut wan = wan.config(around(Side::Wan), None, is_alone)?;
        let mut lan = lan.config(around(Side::Lan), Some(&wan), is_alone)?;
        for side in [&mut wan, &mut lan] {
            side.connection.shares = shares.unwrap_or(side.connection.shares);
        }
        let forward = |part: &ForwardPart| Forward {
            side: part.side,
            listen: part.listen.into(),
            from: part.from.into(),
            to: part.to.into(),
        };
        let bypasses = whole.bypass.iter().enumerate().map(|(i, part)| bypass(file, i, part));
        let mut config = GatewayConfig::new(lan, wan, whole.set_up)
            .passes_unknown(whole.unknown == UnknownWord::Pass)
            .forwards(whole.forwards.iter().map(forward).collect())
            .bypasses(bypasses.collect::<Result<_, _>>()?)
            .limits(limits(&whole.limits));
        settle_addresses(&mut config);
        for side in [&mut config.lan, &mut config.wan] {
            side.endpoint.half_open_max = side.endpoint.half_open_max.max(config.limits.connections);
        }
        // Whatever is at the other end of a tunnel is behind the other gateway.
        let is_tunnel = |side| matches!(carriers.of(side), Carrier::Udp(udp) if udp.remote.is_some());
        (config.lan.endpoint.one_path, config.wan.endpoint.one_path) = (is_tunnel(Side::Lan), is_tunnel(Side::Wan));
        config.check().map_err(|error| file.complaint("", error))?;
        settle_mtu(&config, &mut carriers);
        // Programs of the machine itself keep its address on both sides, so the kernel must tell the sides apart by interface.
        let other = Side::BOTH.into_iter().find(|side| !matches!(carriers.of(*side), Carrier::Tun(_)));
        if let (Some(side), Some(_)) = (other, &whole.host) {
            let expected = "expected \"carrier\": {\"kind\": \"tun\"} on both sides";
            return Err(file.complaint("host", format!("found UDP on {}; {expected}", name(side))));
        }
        Ok(GatewaySettings { config, carriers, sp, resume, is_metered: whole.meter_others, host: whole.host })
    }
}

/// Connections that are not split, of the entry `i`.
fn bypass(file: &SettingsFile, i: usize, part: &BypassPart) -> Result<Bypass, CliError> {
    if part.net.is_none() && part.ports.is_none() {
        let problem = "found neither net nor ports; expected at least one of them";
        return Err(file.complaint(&format!("bypass[{i}]"), problem));
    }
    let net = part.net.map_or(Bypass::ANY_NET, |net| (net.address, net.length));
    let ports = part.ports.as_deref().map_or(Ok(Bypass::ANY_PORTS), |text| {
        let expected = "expected a port such as \"22\", or a range such as \"5060-5061\"";
        let wrong = || file.complaint(&format!("bypass[{i}].ports"), format!("found {text:?}; {expected}"));
        port_range(text).ok_or_else(wrong)
    })?;
    Ok(Bypass { net, ports })
}

/// The first and the last port, of "22" or "5060-5061".
pub fn port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let ports = (port(first)?, port(last)?);
    (ports.0 <= ports.1).then_some(ports)
}

/// Shares of the rate by IP precedence.
fn shares(file: &SettingsFile, given: &[u16]) -> Result<[u16; 8], CliError> {
    let wanted = <[u16; 8]>::try_from(given).ok().filter(|shares| shares.iter().all(|share| *share > 0));
    wanted.ok_or_else(|| {
        let expected = "expected eight numbers of 1 to 65535, for the precedences 0 to 7";
        file.complaint("shares", format!("found {given:?}; {expected}"))
    })
}

fn limits(part: &LimitsPart) -> Limits {
    Limits::default()
        .connections(part.connections.unwrap_or(CONNECTIONS))
        .buffered(part.buffered_bytes.unwrap_or_else(quarter_of_memory))
        .set_up(part.set_up_s.map_or(Limits::default().set_up, Duration::from_secs))
}

/// A quarter of the memory that this program may have; what the engine takes without being told where that is unknown. The rest is the
/// kernel's, whose own buffers grow with the gateway's, and other programs'.
fn quarter_of_memory() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let limit = |group: &Path| std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(group).join("memory.max")).ok();
    let group = own.map(|path| PathBuf::from(path.trim_start_matches('/')));
    let limits = group.iter().flat_map(|group| group.ancestors()).filter_map(limit);
    memory_of(&info, limits).map_or(Limits::default().buffered, |octets| octets / 4)
}

/// Octets of memory by `/proc/meminfo`, or by the least of the groups' limits if that is less (`max` for none).
fn memory_of(info: &str, limits: impl Iterator<Item = String>) -> Option<usize> {
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|text| text.split_whitespace().next()?.parse::<usize>().ok())?;
    Some(limits.filter_map(|text| text.trim().parse().ok()).fold(kib * 1024, usize::min))
}

/// A side that takes connections to any address must take packets to any; one of forwards only takes those to its own.
fn settle_addresses(config: &mut GatewayConfig) {
    if config.lan.takes_any || config.wan.takes_any {
        return;
    }
    for side in Side::BOTH {
        let own = |f: &Forward| if f.side == side { f.listen.ip() } else { f.from };
        let mut addresses: Vec<IpAddr> = config.forwards.iter().map(own).collect();
        addresses.sort_unstable();
        addresses.dedup();
        match side {
            Side::Lan => config.lan.endpoint.addresses = addresses,
            Side::Wan => config.wan.endpoint.addresses = addresses,
        }
    }
}

/// An interface has the MTU of its side, so that the kernel tells those whose packets are too long for the link.
fn settle_mtu(config: &GatewayConfig, carriers: &mut PerSide<Carrier>) {
    for side in Side::BOTH {
        if let Carrier::Tun(tun) = carriers.of_mut(side) {
            tun.mtu = config.side(side).route.mtu;
        }
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Lan => "lan",
        Side::Wan => "wan",
    }
}

/// A side of the file, and what the command line says of it.
struct SideReader<'a> {
    file: &'a SettingsFile,
    part: &'a SidePart,
    side: Side,
    overrides: &'a Overrides,
}

impl SideReader<'_> {
    /// A complaint about a key of the side.
    fn complaint(&self, key: &str, problem: impl Display) -> CliError {
        let path = if key.is_empty() { name(self.side).to_owned() } else { format!("{}.{key}", name(self.side)) };
        self.file.complaint(&path, problem)
    }

    fn carrier(&self, far: &[Prefix]) -> Result<Carrier, CliError> {
        let usual = if self.side == Side::Lan { CarrierWord::Tun } else { CarrierWord::Udp };
        let part = self.part.carrier.clone().unwrap_or_else(|| CarrierPart::of(usual));
        if let Some((key, kind)) = part.stranger() {
            let problem = format!("found it in a carrier of another kind; expected it with kind {kind}, or not at all");
            return Err(self.complaint(&format!("carrier.{key}"), problem));
        }
        let peer = self.overrides.peer;
        if part.kind == CarrierWord::Tun {
            if peer.is_some() {
                let expected = "expected kind udp, which has one. Correct \"carrier\", or leave --peer out";
                return Err(self.complaint("carrier", format!("found kind tun and --peer; {expected}")));
            }
            let usual = if self.side == Side::Lan { TUN_LAN } else { TUN_WAN };
            return Ok(Carrier::Tun(TunConfig {
                name: part.device.unwrap_or_else(|| usual.to_owned()),
                mtu: ETHERNET_MTU,
                routes: part.routes.iter().chain(far).map(|prefix| (prefix.address, prefix.length)).collect(),
                configure: !part.unconfigured,
                // What the kernel joins costs a tenth; a link that judges packets one by one is not on a LAN.
                offload: part.offload.unwrap_or(self.side == Side::Lan),
            }));
        }
        if !far.is_empty() {
            let expected = "expected kind tun, which has routes. Correct \"carrier\", or leave --far out";
            return Err(self.complaint("carrier", format!("found kind udp and --far; {expected}")));
        }
        let remote = peer.or(part.remote);
        let local = part.local.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, UDP_PORT));
        if remote.is_none() && self.part.carrier.is_none() {
            let expected = "expected \"carrier\", or --peer with the address of the other gateway";
            return Err(self.complaint("", format!("found nothing that carries packets; {expected}")));
        }
        if let Some((remote, what)) = remote.and_then(|remote| Some((remote, no_peer(local, remote)?))) {
            let problem = format!("found {remote} as peer, which {what}; expected the address of the other gateway");
            return Err(match peer {
                Some(_) => Wrong("peer", problem).of_option(),
                None => self.complaint("carrier.remote", problem),
            });
        }
        // Without a peer, packets go where those of their destination came from first.
        let addressing = if remote.is_some() { UdpAddressing::Peer } else { UdpAddressing::Learned };
        Ok(Carrier::Udp(UdpConfig { local, remote, offload: part.offload.unwrap_or(true), addressing }))
    }

    /// What seals the packets of the side.
    fn sp(&self, carrier: &Carrier) -> Result<Option<SpTunnel>, CliError> {
        let named = self.part.sp.clone().map(|part| SpPart { file: self.file.folder().join(&part.file), ..part });
        let option = self.overrides.sp.clone().map(|file| SpPart { file, own: None, peer: None });
        let Some(SpPart { file, own, peer }) = option.or(named) else { return Ok(None) };
        let Carrier::Udp(UdpConfig { local, remote: Some(remote), .. }) = carrier else {
            let expected = "expected a carrier of kind udp with \"remote\", the gateway that has the key too";
            return Err(self.complaint("sp", format!("found no peer; {expected}")));
        };
        let own = own.or_else(|| Some(*local.ip()).filter(|ip| !ip.is_unspecified()));
        SpTunnel::read(&file, own, peer.unwrap_or(*remote.ip())).map(Some)
    }

    /// What is known of its paths; the file is beside the settings.
    fn resume(&self) -> ResumeFile {
        let resume = self.part.transport.resume_file();
        ResumeFile::new(resume.file.map(|file| self.file.folder().join(file)), resume.given)
    }

    /// Settings of the transport; lower layers add `around` octets. `wan` are those of the other side, which that of the LAN follows.
    fn config(&self, around: u16, wan: Option<&SideConfig>, is_alone: bool) -> Result<SideConfig, CliError> {
        let (mut tunables, overrides) = (self.part.transport.clone(), self.overrides);
        tunables.rate = overrides.rate.clone().or(tunables.rate);
        tunables.rtt_ms = overrides.rtt_ms.or(tunables.rtt_ms);
        let wrong = |wrong: Wrong| match wrong.0 {
            "rate" if overrides.rate.is_some() => wrong.of_option(),
            "rtt_ms" if overrides.rtt_ms.is_some() => wrong.of_option(),
            key => self.complaint(&format!("transport.{key}"), wrong.1),
        };
        let default = if self.side == Side::Lan { KindWord::Tcp } else { KindWord::Scps };
        let base = match self.part.kind.unwrap_or(default) {
            KindWord::Tcp => plain(tunables.preset),
            KindWord::Scps => {
                let Some(rate) = &tunables.rate else {
                    let expected =
                        "expected \"rate\" in \"transport\" or --rate: that of the link, or \"none\" for a shared one";
                    return Err(self.complaint("", format!("found no rate; {expected}")));
                };
                let is_shared = rate.parse::<Rate>().is_ok_and(|rate| rate.0.is_none());
                space(tunables.preset, is_shared)
            }
        };
        if let Some(level) = tunables.precedence {
            let problem = format!("found {level}; expected none, for the packets of a gateway carry none");
            return Err(wrong(Wrong("precedence", problem)));
        }
        let (mut config, mut route) = tunables.over(base).map_err(wrong)?;
        // A preset that is named says these too, unless the link says better.
        let is_preset = tunables.preset.is_some();
        if tunables.initial_rto_ms.is_none() && (!is_preset || route.rtt.is_some()) {
            // Three round trips: the first SYN of a slow link is not sent twice.
            let patience = route.rtt.map_or(Duration::ZERO, |rtt| rtt * 3);
            route.initial_rto = patience.max(Duration::from_secs(1));
        }
        route.framing = self.part.framing.saturating_add(around);
        route.overhead = route.overhead.saturating_add(around);
        if tunables.names_no_buffer() {
            let follows = wan.map(|wan| wan.connection.send_buffer.max(wan.connection.receive_buffer));
            let own = route.buffer_for_bdp().or(follows.filter(|_| !is_preset));
            if let Some(buffer) = own.or_else(|| (!is_preset).then_some(config.send_buffer)) {
                let buffer = buffer.max(BUFFER_MIN);
                (config.send_buffer, config.receive_buffer) = (buffer, buffer);
            }
        }
        if let (Some(wan), None) = (wan, tunables.mtu) {
            route.mtu = wan.route.mtu.saturating_sub(wan.route.overhead);
        }
        let least = MTU_MIN + around;
        if route.mtu < least {
            let expected = format!("expected at least {least}, for headers of up to 80 octets");
            return Err(self.complaint("transport.mtu", format!("found {}; {expected}", route.mtu)));
        }
        let takes_any = self.part.accepts.unwrap_or(is_alone);
        Ok(SideConfig::default().connection(config).route(route).takes_any(takes_any))
    }
}

/// What all halves have in common: what the programs wrote is not held back to be joined, and ports are free soon again.
fn half(mut config: Config) -> Config {
    config.nodelay = true;
    // scps-tp §6.7: 10 s in gateways.
    config.time_wait = Duration::from_secs(10);
    // An idle half finds out in a minute or two that its peer was restarted.
    config.keepalive = Some((Duration::from_secs(1), Duration::from_secs(60)));
    config.keepalive_asks = true;
    // As patient as Linux (tcp_syn_retries).
    config.rto.syn_retransmissions_max = 6;
    config
}

/// A TCP of our days.
fn plain(preset: Option<Preset>) -> (Config, RouteConfig) {
    let (config, _) = preset.unwrap_or(Preset::Modern).settings();
    let mut config = half(config.scps(false).congestion(Congestion::Vj));
    // tcp_retries2.
    config.rto.retransmissions_max = 15;
    (config, RouteConfig::default().rate(None))
}

/// SCPS-TP: on a link of its own the rate is all the control there is; on one that others share there is Vegas too.
fn space(preset: Option<Preset>, is_shared: bool) -> (Config, RouteConfig) {
    let (config, route) = preset.unwrap_or(Preset::Modern).settings();
    if preset.is_some() {
        return (half(config), route);
    }
    let (congestion, loss) = if is_shared {
        (Congestion::Vegas(VegasConfig::default()), LossMeaning::Congestion)
    } else {
        (Congestion::None, LossMeaning::Corruption)
    };
    let initial_window = InitialWindow::Segments(10);
    (half(config.congestion(congestion).initial_window(initial_window)), route.loss(loss))
}

#[cfg(test)]
mod tests;
