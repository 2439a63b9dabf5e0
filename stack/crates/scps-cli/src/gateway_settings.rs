//! Settings of a gateway (`scps gateway FILE`): strict JSON (docs/gateway-reference.md has every key), or the command line alone.
//!
//! What is not given follows from the rate and the round-trip time of the link.

use crate::error::CliError;
use crate::pace::Rate;
use crate::settings::{Preset, Tunables};
use crate::settings_file::{SettingsFile, Wrong};
use crate::sp_settings::SpTunnel;
use scps_gateway::{Bypass, Forward, GatewayConfig, Limits, PerSide, SetUp, Side, SideConfig};
use scps_io::{Device, TunConfig, TunDevice, UdpAddressing, UdpConfig, UdpDevice};
use scps_tp::{Config, Congestion, InitialWindow, LossMeaning, RouteConfig, VegasConfig};
use scps_types::Duration;
use scps_wire::{ipv4, udp};
use serde::de::{self, Deserializer, IgnoredAny};
use serde::Deserialize;
use serde_json::value::RawValue;
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
        // By a visitor, the parser knows where it is.
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Prefix;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a prefix such as \"10.2.0.0/24\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Prefix, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_str(Text)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SetUpWord {
    #[default]
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GatewayFile<'a> {
    set_up: SetUpWord,
    unknown: UnknownWord,
    meter_others: Option<bool>,
    #[serde(borrow)]
    lan: Option<&'a RawValue>,
    #[serde(borrow)]
    wan: Option<&'a RawValue>,
    #[serde(borrow)]
    forwards: Vec<&'a RawValue>,
    #[serde(borrow)]
    bypass: Vec<&'a RawValue>,
    #[serde(borrow)]
    shares: Option<&'a RawValue>,
    #[serde(borrow)]
    host: Option<&'a RawValue>,
    limits: LimitsPart,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SidePart<'a> {
    kind: Option<KindWord>,
    #[serde(borrow)]
    carrier: Option<&'a RawValue>,
    accepts: Option<bool>,
    framing: u16,
    #[serde(borrow)]
    sp: Option<&'a RawValue>,
    #[serde(borrow)]
    transport: Option<&'a RawValue>,
}

/// SP between this gateway and the peer of a side.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpPart {
    file: PathBuf,
    own: Option<Ipv4Addr>,
    peer: Option<Ipv4Addr>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CarrierWord {
    Tun,
    Udp,
}

/// A carrier, of which `kind` says how to read the rest.
#[derive(Deserialize)]
struct CarrierKind {
    kind: CarrierWord,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TunPart {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    device: Option<String>,
    routes: Vec<Prefix>,
    unconfigured: bool,
    offload: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct UdpPart {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    local: Option<SocketAddrV4>,
    remote: Option<SocketAddrV4>,
    offload: Option<bool>,
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
        let whole: GatewayFile<'_> = file.parse()?;
        let wan = SideReader::new(file, whole.wan, Side::Wan)?;
        let lan = SideReader::new(file, whole.lan, Side::Lan)?;
        let carriers = PerSide { lan: lan.carrier(overrides)?, wan: wan.carrier(overrides)? };
        let is_alone = whole.forwards.is_empty();
        if let (true, Carrier::Tun(lan_tun), Carrier::Tun(wan_tun)) = (is_alone, &carriers.lan, &carriers.wan) {
            let given = lan_tun.routes.iter().chain(&wan_tun.routes).next();
            if let Some((address, length)) = given {
                let expected =
                    "expected none: with TUN on both sides rules lead packets to the gateway, as --check prints them";
                return Err(lan.complaint(&format!(
                    "carrier: found the route {address}/{length} beside a WAN of kind tun; {expected}"
                )));
            }
        }
        let shares = whole.shares.map(|raw| shares(file, raw)).transpose()?;
        let sp = PerSide { lan: lan.sp(&Overrides::default(), &carriers.lan)?, wan: wan.sp(overrides, &carriers.wan)? };
        let around = |side: Side| carriers.of(side).overhead() + sp.of(side).as_ref().map_or(0, SpTunnel::overhead);
        let mut wan = wan.config(overrides, around(Side::Wan), None, is_alone)?;
        let mut lan = lan.config(&Overrides::default(), around(Side::Lan), Some(&wan), is_alone)?;
        for side in [&mut wan, &mut lan] {
            side.connection.shares = shares.unwrap_or(side.connection.shares);
        }
        let forwards = whole.forwards.iter().map(|raw| forward(file, raw)).collect::<Result<Vec<_>, _>>()?;
        let bypasses = whole.bypass.iter().map(|raw| bypass(file, raw)).collect::<Result<Vec<_>, _>>()?;
        let set_up = match whole.set_up {
            SetUpWord::ConnectFirst => SetUp::ConnectFirst,
            SetUpWord::AcceptFirst => SetUp::AcceptFirst,
            SetUpWord::Early => SetUp::Early,
        };
        let passes_unknown = whole.unknown == UnknownWord::Pass;
        let is_metered = whole.meter_others.unwrap_or(true);
        let mut config = GatewayConfig::new(lan, wan, set_up)
            .passes_unknown(passes_unknown)
            .forwards(forwards)
            .bypasses(bypasses)
            .limits(limits(&whole.limits));
        settle_addresses(&mut config);
        for side in [&mut config.lan, &mut config.wan] {
            side.endpoint.half_open_max = side.endpoint.half_open_max.max(config.limits.connections);
        }
        for side in Side::BOTH {
            // Whatever is there is behind the other gateway.
            let is_tunnel = matches!(carriers.of(side), Carrier::Udp(udp) if udp.remote.is_some());
            match side {
                Side::Lan => config.lan.endpoint.one_path = is_tunnel,
                Side::Wan => config.wan.endpoint.one_path = is_tunnel,
            }
        }
        config.check().map_err(|error| CliError::Usage(format!("{}: {error}.", file.name())))?;
        let mut carriers = carriers;
        settle_mtu(&config, &mut carriers);
        let host = whole.host.map(|raw| own_host(file, raw, &carriers)).transpose()?;
        Ok(GatewaySettings { config, carriers, sp, is_metered, host })
    }
}

/// Connections that are not split.
fn bypass(file: &SettingsFile, raw: &RawValue) -> Result<Bypass, CliError> {
    let part: BypassPart = file.part(raw)?;
    if part.net.is_none() && part.ports.is_none() {
        return Err(file.complaint(raw, "bypass: found neither net nor ports; expected at least one of them"));
    }
    let net = part.net.map_or(Bypass::ANY_NET, |net| (net.address, net.length));
    let ports = match part.ports.as_deref().map(|text| (text, port_range(text))) {
        None => Bypass::ANY_PORTS,
        Some((_, Some(ports))) => ports,
        Some((found, None)) => {
            let text =
                format!("ports: found {found:?}; expected a port such as \"22\", or a range such as \"5060-5061\"");
            return Err(file.complaint(raw, &text));
        }
    };
    Ok(Bypass { net, ports })
}

/// The first and the last port, of "22" or "5060-5061".
fn port_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let ports = (port(first)?, port(last)?);
    (ports.0 <= ports.1).then_some(ports)
}

/// Shares of the rate by IP precedence.
fn shares(file: &SettingsFile, raw: &RawValue) -> Result<[u16; 8], CliError> {
    let given: Vec<u16> = file.part(raw)?;
    let wanted = <[u16; 8]>::try_from(given.as_slice()).ok().filter(|shares| shares.iter().all(|share| *share > 0));
    wanted.ok_or_else(|| {
        let expected = "expected eight numbers of 1 to 65535, for the precedences 0 to 7";
        file.complaint(raw, &format!("shares: found {given:?}; {expected}"))
    })
}

/// Programs of the machine itself keep its address on both sides, so the kernel must tell the sides apart by interface.
fn own_host(file: &SettingsFile, raw: &RawValue, carriers: &PerSide<Carrier>) -> Result<OwnHost, CliError> {
    if let Some(side) = Side::BOTH.iter().find(|side| !matches!(carriers.of(**side), Carrier::Tun(_))) {
        let name = if *side == Side::Lan { "lan" } else { "wan" };
        let expected = "expected \"carrier\": {\"kind\": \"tun\"} on both sides";
        return Err(file.complaint(raw, &format!("host: found UDP on {name}; {expected}")));
    }
    file.part(raw)
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

fn forward(file: &SettingsFile, raw: &RawValue) -> Result<Forward, CliError> {
    let part: ForwardPart = file.part(raw)?;
    Ok(Forward { side: part.side, listen: part.listen.into(), from: part.from.into(), to: part.to.into() })
}

/// A side of the file.
struct SideReader<'a> {
    file: &'a SettingsFile,
    raw: Option<&'a RawValue>,
    part: SidePart<'a>,
    side: Side,
}

impl<'a> SideReader<'a> {
    fn new(file: &'a SettingsFile, raw: Option<&'a RawValue>, side: Side) -> Result<Self, CliError> {
        let part = raw.map_or_else(|| Ok(SidePart::default()), |raw| file.part(raw))?;
        Ok(SideReader { file, raw, part, side })
    }

    fn name(&self) -> &'static str {
        match self.side {
            Side::Lan => "lan",
            Side::Wan => "wan",
        }
    }

    fn complaint(&self, problem: &str) -> CliError {
        let problem = format!("{}: {problem}", self.name());
        match self.raw {
            Some(raw) => self.file.complaint(raw, &problem),
            None => CliError::Usage(format!("{}: {problem}.", self.file.name())),
        }
    }

    fn carrier(&self, overrides: &Overrides) -> Result<Carrier, CliError> {
        let kind = match (self.part.carrier, self.side) {
            (Some(raw), _) => self.file.part::<CarrierKind>(raw)?.kind,
            (None, Side::Lan) => CarrierWord::Tun,
            (None, Side::Wan) => CarrierWord::Udp,
        };
        match kind {
            CarrierWord::Tun => {
                if self.side == Side::Wan && overrides.peer.is_some() {
                    let expected = "expected kind udp, which has one. Correct \"carrier\", or leave --peer out";
                    return Err(self.complaint(&format!("carrier: found kind tun and --peer; {expected}")));
                }
                let TunPart { device, mut routes, unconfigured, offload, .. } = self.carrier_part()?;
                if self.side == Side::Lan {
                    routes.extend(&overrides.far);
                }
                let name = if self.side == Side::Lan { TUN_LAN } else { TUN_WAN };
                Ok(Carrier::Tun(TunConfig {
                    name: device.unwrap_or_else(|| name.to_owned()),
                    mtu: ETHERNET_MTU,
                    routes: routes.iter().map(|prefix| (prefix.address, prefix.length)).collect(),
                    configure: !unconfigured,
                    // What the kernel joins costs a tenth; a link that judges packets one by one is not on a LAN.
                    offload: offload.unwrap_or(self.side == Side::Lan),
                }))
            }
            CarrierWord::Udp => {
                if self.side == Side::Lan && !overrides.far.is_empty() {
                    let expected = "expected kind tun, which has routes. Correct \"carrier\", or leave --far out";
                    return Err(self.complaint(&format!("carrier: found kind udp and --far; {expected}")));
                }
                let UdpPart { local, remote, offload, .. } = self.carrier_part()?;
                let remote = if self.side == Side::Wan { overrides.peer.or(remote) } else { remote };
                let local = local.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, UDP_PORT));
                if remote.is_none() && self.part.carrier.is_none() {
                    let expected = "expected \"carrier\", or --peer with the address of the other gateway";
                    return Err(self.complaint(&format!("found nothing that carries packets; {expected}")));
                }
                if let Some((remote, what)) = remote.and_then(|remote| Some((remote, no_peer(local, remote)?))) {
                    let key = if self.side == Side::Wan && overrides.peer.is_some() { "--peer" } else { "remote" };
                    let expected = "expected the address of the other gateway";
                    return Err(self.complaint(&format!("{key}: found {remote} as peer, which {what}; {expected}")));
                }
                // Without a peer, packets go where those of their destination came from first.
                let addressing = if remote.is_some() { UdpAddressing::Peer } else { UdpAddressing::Learned };
                Ok(Carrier::Udp(UdpConfig { local, remote, offload: offload.unwrap_or(true), addressing }))
            }
        }
    }

    fn carrier_part<T: Default + Deserialize<'a>>(&self) -> Result<T, CliError> {
        self.part.carrier.map_or_else(|| Ok(T::default()), |raw| self.file.part(raw))
    }

    /// What seals the packets of the side.
    fn sp(&self, overrides: &Overrides, carrier: &Carrier) -> Result<Option<SpTunnel>, CliError> {
        let part: Option<SpPart> = self.part.sp.map(|raw| self.file.part(raw)).transpose()?;
        let named = part.map(|part| SpPart { file: self.file.folder().join(part.file), ..part });
        let option = overrides.sp.clone().map(|file| SpPart { file, own: None, peer: None });
        let Some(SpPart { file, own, peer }) = option.or(named) else { return Ok(None) };
        let Carrier::Udp(UdpConfig { local, remote: Some(remote), .. }) = carrier else {
            let expected = "expected a carrier of kind udp with \"remote\", the gateway that has the key too";
            return Err(self.complaint(&format!("sp: found no peer; {expected}")));
        };
        let own = own.or_else(|| Some(*local.ip()).filter(|ip| !ip.is_unspecified()));
        SpTunnel::read(&file, own, peer.unwrap_or(*remote.ip())).map(Some)
    }

    /// Settings of the transport; lower layers add `around` octets. `wan` are those of the other side, which that of the LAN follows.
    fn config(
        &self,
        overrides: &Overrides,
        around: u16,
        wan: Option<&SideConfig>,
        is_alone: bool,
    ) -> Result<SideConfig, CliError> {
        let mut tunables: Tunables = match self.part.transport {
            Some(raw) => self.file.part(raw)?,
            None => Tunables::default(),
        };
        tunables.rate = overrides.rate.clone().or(tunables.rate);
        tunables.rtt_ms = overrides.rtt_ms.or(tunables.rtt_ms);
        let is_option =
            |key| (key == "rate" && overrides.rate.is_some()) || (key == "rtt_ms" && overrides.rtt_ms.is_some());
        let wrong = |wrong: Wrong| match self.part.transport.filter(|_| !is_option(wrong.0)) {
            Some(raw) => self.file.complaint_about(raw.get(), wrong),
            None => wrong.of_option(),
        };
        let default = if self.side == Side::Lan { KindWord::Tcp } else { KindWord::Scps };
        let base = match self.part.kind.unwrap_or(default) {
            KindWord::Tcp => plain(tunables.preset),
            KindWord::Scps => {
                let Some(rate) = &tunables.rate else {
                    let expected =
                        "expected \"rate\" in \"transport\" or --rate: that of the link, or \"none\" for a shared one";
                    return Err(self.complaint(&format!("found no rate; {expected}")));
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
            return Err(self.complaint(&format!("transport: found \"mtu\": {}; {expected}", route.mtu)));
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
