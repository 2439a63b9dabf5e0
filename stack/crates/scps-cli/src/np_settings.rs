//! Settings of NP, of an end system (`--np FILE`) and of a router (`scps router FILE`): strict JSON (stack/README.md has one of
//! each).

use crate::error::CliError;
use crate::pace::Rate;
use crate::settings_file::{word, SettingsFile};
use scps_fp::users::each_once;
use scps_io::EndAddress;
use scps_np::{
    Address, Dialect, DiscardRule, NpProfile, QueueConfig, RouterConfig, RouterLink, SpRule, TableKind, Tables,
};
use scps_tp::net::NpConfig;
use scps_wire::protocol;
use scps_wire::{Bitrate, Precedence};
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::str::FromStr;

/// UDP port of NP at both ends (scps-np §4.4).
pub const UDP_PORT: u16 = 7168;
/// How a table names the node at the other end of a serial line (scps-np §4.1).
const SERIAL_HOP: Ipv4Addr = Ipv4Addr::new(0, 0, 0, 1);
const HOP_COUNT: u8 = 10;
/// Bits of an octet on a synchronous line; an asynchronous one has 10.
const BITS_PER_OCTET: u32 = 8;
const INTERFACES_MAX: usize = 64;

/// An NP address as the tables write it: hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Hex(Address);

impl FromStr for Hex {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = u32::from_str_radix(text, 16).ok().filter(|_| !text.starts_with('+') && text.len() <= 8);
        let wrong = || format!("found \"{text}\"; expected an NP address such as \"7290\"");
        value.map(|value| Hex(Address::from_value(value))).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        word(from)
    }
}

/// 0 to 15.
fn level(file: &SettingsFile, level: u8) -> Result<Precedence, CliError> {
    let wrong = || file.complaint("default_precedence", format!("found precedence {level}; expected 0 to 15"));
    Precedence::new(level).ok_or_else(wrong)
}

#[derive(Deserialize)]
#[serde(remote = "NpProfile", rename_all = "kebab-case")]
enum ProfileWord {
    Ri,
    Ccsds,
}

#[derive(Deserialize)]
#[serde(remote = "DiscardRule", rename_all = "kebab-case")]
enum RuleWord {
    LowestOldest,
    LowestNewest,
    Newest,
}

#[derive(Deserialize)]
#[serde(remote = "SpRule", rename_all = "kebab-case")]
enum SpWord {
    Required,
    Accepted,
    None,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TablesPart {
    hosts: Vec<HostRow>,
    next_hops: Vec<HopRow>,
    groups: Vec<GroupRow>,
    paths: Vec<PathRow>,
    /// Tables as files of the historic form: name of the table, path of the file.
    files: TableFiles,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostRow {
    ip: Ipv4Addr,
    np: Hex,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HopRow {
    to: Hex,
    via: Ipv4Addr,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupRow {
    group: Hex,
    #[serde(default)]
    via: Vec<Ipv4Addr>,
    #[serde(default)]
    member: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathRow {
    path: Hex,
    from: Hex,
    to: BTreeSet<Hex>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TableFiles {
    ip_np: Option<String>,
    next_hop: Option<String>,
    multi_next_hop: Option<String>,
    path: Option<String>,
}

/// The tables of a node with the address `own`.
fn tables(file: &SettingsFile, rows: TablesPart, own: Ipv4Addr) -> Result<Tables, CliError> {
    let mut tables = Tables::of(own);
    read_files(file, rows.files, &mut tables)?;
    let complaint = |name: &str, i: usize, problem: String| file.complaint(&format!("tables.{name}[{i}]"), problem);
    for (i, row) in rows.hosts.into_iter().enumerate() {
        tables.add_host(row.ip, row.np.0).map_err(|problem| complaint("hosts", i, problem))?;
    }
    for (i, row) in rows.next_hops.into_iter().enumerate() {
        tables.add_next_hop(row.to.0, row.via).map_err(|problem| complaint("next_hops", i, problem))?;
    }
    for (i, row) in rows.groups.into_iter().enumerate() {
        let joined = if row.member { tables.join(row.group.0) } else { Ok(()) };
        let added = joined.and_then(|()| tables.add_group(row.group.0, row.via));
        added.map_err(|problem| complaint("groups", i, problem))?;
    }
    for (i, row) in rows.paths.into_iter().enumerate() {
        let ends = row.to.into_iter().map(|address| address.0).collect();
        tables.add_path(row.path.0, row.from.0, ends).map_err(|problem| complaint("paths", i, problem))?;
    }
    Ok(tables)
}

/// Tables of the historic form; what the last of their files says of the own address is that of this node.
fn read_files(file: &SettingsFile, named: TableFiles, tables: &mut Tables) -> Result<(), CliError> {
    for (kind, name) in [
        (TableKind::IpNp, named.ip_np),
        (TableKind::NextHop, named.next_hop),
        (TableKind::MultiNextHop, named.multi_next_hop),
        (TableKind::Path, named.path),
    ] {
        let Some(name) = name else { continue };
        let path = file.folder().join(name);
        let text = std::fs::read_to_string(&path).map_err(CliError::file(&path))?;
        tables.read(kind, &text).map_err(|errors| {
            let lines = errors.iter().map(|error| format!("{}:{}: {}.", path.display(), error.line, error.problem));
            CliError::Usage(lines.collect::<Vec<_>>().join("\n"))
        })?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HostFile {
    #[serde(with = "ProfileWord")]
    profile: NpProfile,
    checksum: bool,
    require_checksum: bool,
    accept_swapped_checksum: bool,
    /// 0 leaves the count out.
    hop_count: u8,
    default_precedence: u8,
    believed: Vec<Ipv4Addr>,
    tables: TablesPart,
    ip_protocol: u8,
    udp_port: u16,
    #[serde(deserialize_with = "each_once")]
    udp_hops: BTreeMap<Ipv4Addr, SocketAddrV4>,
}

impl Default for HostFile {
    fn default() -> Self {
        HostFile {
            profile: NpProfile::default(),
            checksum: true,
            require_checksum: false,
            accept_swapped_checksum: false,
            hop_count: HOP_COUNT,
            default_precedence: 0,
            believed: Vec::new(),
            tables: TablesPart::default(),
            ip_protocol: protocol::SCPS_NP,
            udp_port: UDP_PORT,
            udp_hops: BTreeMap::new(),
        }
    }
}

/// NP as an end system has it.
#[derive(Clone, Debug)]
pub struct NpHost {
    /// For the transport's network layer.
    pub config: NpConfig,
    /// Protocol number in IP.
    pub ip_protocol: u8,
    /// Port in UDP.
    pub udp_port: u16,
    /// Next hops that have another UDP address.
    pub udp_hops: BTreeMap<Ipv4Addr, SocketAddrV4>,
}

impl NpHost {
    /// The file's settings, or the defaults without one, for the end system `own`; `transport` is the number of SCPS-TP.
    pub fn read(path: Option<&Path>, own: Ipv4Addr, transport: u8) -> Result<Self, CliError> {
        let file =
            path.map_or_else(|| Ok(SettingsFile::of_text("the command line", "{}".to_owned())), SettingsFile::read)?;
        let settings: HostFile = file.parse()?;
        Ok(NpHost {
            config: NpConfig {
                dialect: dialect(settings.profile, settings.require_checksum, settings.accept_swapped_checksum),
                hop_count: (settings.hop_count > 0).then_some(settings.hop_count),
                checksum: settings.checksum,
                default_precedence: level(&file, settings.default_precedence)?,
                transport,
                believed: settings.believed,
                ..NpConfig::with_tables(tables(&file, settings.tables, own)?)
            },
            ip_protocol: settings.ip_protocol,
            udp_port: settings.udp_port,
            udp_hops: settings.udp_hops,
        })
    }
}

fn dialect(profile: NpProfile, require_checksum: bool, accept_swapped_checksum: bool) -> Dialect {
    Dialect { profile, require_checksum, accept_swapped_checksum, ..Dialect::default() }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouterFile {
    address: Ipv4Addr,
    #[serde(default)]
    default_precedence: u8,
    #[serde(default = "ten_hops")]
    hop_count: u8,
    #[serde(default)]
    forwards_uncounted: bool,
    #[serde(default)]
    tables: TablesPart,
    interfaces: Vec<InterfacePart>,
}

const fn ten_hops() -> u8 {
    HOP_COUNT
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfacePart {
    name: String,
    carrier: CarrierPart,
    #[serde(default)]
    neighbours: Vec<Ipv4Addr>,
    #[serde(default = "ethernet_mtu")]
    mtu: u16,
    #[serde(default, with = "ProfileWord")]
    profile: NpProfile,
    #[serde(default)]
    require_checksum: bool,
    #[serde(default)]
    accept_swapped_checksum: bool,
    #[serde(default = "no_rate", deserialize_with = "word")]
    rate: Rate,
    #[serde(default)]
    framing: u16,
    #[serde(default)]
    queue: QueuePart,
    #[serde(default, with = "SpWord")]
    sp: SpRule,
}

const fn ethernet_mtu() -> u16 {
    1500
}

const fn no_rate() -> Rate {
    Rate(None)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct QueuePart {
    limit: usize,
    purge: usize,
    #[serde(with = "RuleWord")]
    rule: DiscardRule,
}

impl Default for QueuePart {
    fn default() -> Self {
        let QueueConfig { limit, purge, rule } = QueueConfig::default();
        QueuePart { limit, purge, rule }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CarrierWord {
    Ip,
    Udp,
    Serial,
}

/// A carrier, with the keys of every kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CarrierPart {
    kind: CarrierWord,
    device: Option<String>,
    #[serde(default)]
    unconfigured: bool,
    protocol: Option<u8>,
    local: Option<SocketAddrV4>,
    port: Option<u16>,
    #[serde(default, deserialize_with = "each_once")]
    others: BTreeMap<Ipv4Addr, SocketAddrV4>,
    #[serde(default, deserialize_with = "stream")]
    line: Option<EndAddress>,
    bits_per_octet: Option<u32>,
}

fn stream<'de, D: Deserializer<'de>>(from: D) -> Result<Option<EndAddress>, D::Error> {
    word(from).map(Some)
}

/// What carries an interface's frames.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// IP, through a TUN device.
    Ip {
        /// The device; made if it does not exist.
        device: String,
        /// Whether the device's MTU, state and route are left to whoever made it.
        unconfigured: bool,
        /// The number of NP in IP.
        protocol: u8,
    },
    /// UDP.
    Udp {
        /// Where to receive.
        local: SocketAddrV4,
        /// The port of neighbours.
        port: u16,
        /// Neighbours that are elsewhere.
        others: BTreeMap<Ipv4Addr, SocketAddrV4>,
    },
    /// A serial line.
    Serial {
        /// A byte stream, as `scps channel` names its ends.
        line: EndAddress,
        /// Bits on the line per octet, for the rate.
        bits_per_octet: u32,
    },
}

impl CarrierPart {
    /// The carrier, or a key of it and what is wrong with that.
    fn carrier(self) -> Result<Carrier, (&'static str, String)> {
        let missing = |key, what: &str| (key, format!("found none; expected {what}"));
        let given = [
            ("device", self.device.is_some(), CarrierWord::Ip),
            ("unconfigured", self.unconfigured, CarrierWord::Ip),
            ("protocol", self.protocol.is_some(), CarrierWord::Ip),
            ("local", self.local.is_some(), CarrierWord::Udp),
            ("port", self.port.is_some(), CarrierWord::Udp),
            ("others", !self.others.is_empty(), CarrierWord::Udp),
            ("line", self.line.is_some(), CarrierWord::Serial),
            ("bits_per_octet", self.bits_per_octet.is_some(), CarrierWord::Serial),
        ];
        if let Some((key, ..)) = given.iter().find(|(_, is_given, kind)| *is_given && *kind != self.kind) {
            return Err((*key, "found it in a carrier of another kind; expected it not at all".to_owned()));
        }
        Ok(match self.kind {
            CarrierWord::Ip => Carrier::Ip {
                device: self.device.ok_or_else(|| missing("device", "the name of a TUN device"))?,
                unconfigured: self.unconfigured,
                protocol: self.protocol.unwrap_or(protocol::SCPS_NP),
            },
            CarrierWord::Udp => Carrier::Udp {
                local: self.local.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, UDP_PORT)),
                port: self.port.unwrap_or(UDP_PORT),
                others: self.others,
            },
            CarrierWord::Serial => {
                let bits_per_octet = self.bits_per_octet.unwrap_or(BITS_PER_OCTET);
                if bits_per_octet == 0 || bits_per_octet > 20 {
                    return Err(("bits_per_octet", format!("found {bits_per_octet} bits per octet; expected 1 to 20")));
                }
                Carrier::Serial {
                    line: self.line.ok_or_else(|| missing("line", "a byte stream such as \"pty:PATH\""))?,
                    bits_per_octet,
                }
            }
        })
    }
}

/// An interface of a router.
#[derive(Debug)]
pub struct Interface {
    /// Its name in messages and counters.
    pub name: String,
    /// What carries its frames.
    pub carrier: Carrier,
    /// For the engine.
    pub link: RouterLink,
    /// The line rate to keep, in octets of eight bits.
    pub rate: Option<Bitrate>,
    /// Octets that the line adds to a frame.
    pub framing: u16,
}

/// A router's settings.
#[derive(Debug)]
pub struct RouterSettings {
    /// Its address.
    pub address: Ipv4Addr,
    /// For the engine.
    pub config: RouterConfig,
    /// Its tables.
    pub tables: Tables,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
}

impl RouterSettings {
    /// Reads a router's file.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        RouterSettings::of(&SettingsFile::read(path)?)
    }

    fn of(file: &SettingsFile) -> Result<Self, CliError> {
        let settings: RouterFile = file.parse()?;
        let tables = tables(file, settings.tables, settings.address)?;
        let count = settings.interfaces.len();
        if count == 0 || count > INTERFACES_MAX {
            return Err(file.complaint("interfaces", format!("found {count}; expected 1 to {INTERFACES_MAX}")));
        }
        let mut interfaces: Vec<Interface> = Vec::new();
        for (i, part) in settings.interfaces.into_iter().enumerate() {
            let complaint = |(key, problem): (&str, String)| {
                let dot = if key.is_empty() { "" } else { "." };
                file.complaint(&format!("interfaces[{i}]{dot}{key}"), problem)
            };
            let interface = interface(part).map_err(|(key, problem)| complaint((&key, problem)))?;
            if interfaces.iter().any(|other| other.name == interface.name) {
                let problem = format!("found interface \"{}\" again; expected every name once", interface.name);
                return Err(complaint(("", problem)));
            }
            let known = |hop: &&Ipv4Addr| interfaces.iter().any(|other| other.link.neighbours.contains(hop));
            if let Some(hop) = interface.link.neighbours.iter().find(known) {
                let problem = format!("found neighbour {hop} at a second interface; expected every neighbour at one");
                return Err(complaint(("", problem)));
            }
            interfaces.push(interface);
        }
        let config = RouterConfig {
            default_precedence: level(file, settings.default_precedence)?,
            hop_count: settings.hop_count,
            forwards_uncounted: settings.forwards_uncounted,
            ..RouterConfig::default()
        };
        Ok(RouterSettings { address: settings.address, config, tables, interfaces })
    }
}

/// An interface, or a key of it and what is wrong with that.
fn interface(part: InterfacePart) -> Result<Interface, (String, String)> {
    let carrier = part.carrier.carrier().map_err(|(key, problem)| (format!("carrier.{key}"), problem))?;
    let QueuePart { limit, purge, rule } = part.queue;
    if purge == 0 || purge >= limit {
        let expected = "expected a purge of 1 or more, and a limit above it";
        return Err(("queue".to_owned(), format!("found limit {limit} and purge {purge}; {expected}")));
    }
    let (mut neighbours, mut rate) = (part.neighbours, part.rate.0);
    if let Carrier::Serial { bits_per_octet, .. } = &carrier {
        rate = rate.map(|rate| Bitrate::from_bps(rate.as_bps() * 8 / u64::from(*bits_per_octet)));
        if neighbours.is_empty() {
            neighbours.push(SERIAL_HOP);
        }
        if neighbours.len() > 1 {
            let problem = format!("found {} neighbours at a serial line; expected one", neighbours.len());
            return Err(("neighbours".to_owned(), problem));
        }
    }
    if neighbours.is_empty() {
        let problem = "found no neighbours; expected the addresses of the nodes that are next here";
        return Err((String::new(), problem.to_owned()));
    }
    Ok(Interface {
        name: part.name,
        carrier,
        link: RouterLink {
            dialect: dialect(part.profile, part.require_checksum, part.accept_swapped_checksum),
            mtu: part.mtu,
            neighbours,
            queue: QueueConfig { limit, purge, rule },
            sp: part.sp,
        },
        rate,
        framing: part.framing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings_file::tests::file;

    const ROUTER: &str = r#"{
  "address": "10.8.0.9",
  "default_precedence": 3,
  "tables": {
    "hosts": [{"ip": "10.8.0.1", "np": "7290"}, {"ip": "10.8.0.2", "np": "7292"}],
    "next_hops": [
      {"to": "7290", "via": "10.8.0.1"},
      {"to": "7292", "via": "0.0.0.1"}
    ]
  },
  "interfaces": [
    {"name": "lan", "carrier": {"kind": "ip", "device": "np0"}, "neighbours": ["10.8.0.1"], "mtu": 1480},
    {"name": "modem", "carrier": {"kind": "serial", "line": "pty:/tmp/x", "bits_per_octet": 10},
     "rate": "2 Mbit/s", "sp": "required", "queue": {"limit": 50, "purge": 10, "rule": "newest"}}
  ]
}"#;

    fn complaint(from: &str, to: &str) -> String {
        assert!(ROUTER.contains(from), "{from}");
        RouterSettings::of(&file(&ROUTER.replacen(from, to, 1))).unwrap_err().to_string()
    }

    #[test]
    fn a_router_has_its_tables_interfaces_queues_and_rates() {
        let settings = RouterSettings::of(&file(ROUTER)).unwrap();
        assert_eq!(settings.config.default_precedence.level(), 3);
        assert_eq!(settings.tables.next_hop(Address::Basic(0x7292)), Some(SERIAL_HOP));
        let [lan, modem] = &settings.interfaces[..] else { panic!("two interfaces") };
        assert_eq!((lan.link.mtu, lan.rate, lan.link.queue), (1480, None, QueueConfig::default()));
        assert_eq!((lan.link.sp, modem.link.sp), (SpRule::Accepted, SpRule::Required));
        assert_eq!(modem.link.neighbours, [SERIAL_HOP]);
        assert_eq!(modem.link.queue, QueueConfig { limit: 50, purge: 10, rule: DiscardRule::Newest });
        assert_eq!(modem.rate, Some(Bitrate::from_bps(1_600_000)), "ten bits for eight");
    }

    #[test]
    fn what_is_wrong_is_named_with_file_and_line() {
        for (from, to, line, words) in [
            (r#""np": "7290""#, r#""np": "729x""#, 5, "found \"729x\"; expected an NP address"),
            (r#""np": "7292""#, r#""np": "7291""#, 5, "found 7291, a group or a broadcast"),
            (r#"{"to": "7292","#, r#"{"to": "7290","#, 8, "found 7290 again"),
            ("10.8.0.1\"],", "10.8.0.x\"],", 12, "found \"10.8.0.x\"; expected an IPv4 address"),
            (r#""purge": 10"#, r#""purge": 51"#, 14, "found limit 50 and purge 51"),
            (r#""purge": 10"#, r#""purge": 50"#, 14, "expected a purge of 1 or more, and a limit above it"),
            (r#""kind": "serial""#, r#""kind": "modem""#, 13, "unknown variant `modem`"),
            (r#""name": "modem""#, r#""name": "lan""#, 13, "found interface \"lan\" again"),
            (r#""neighbours": ["10.8.0.1"], "#, "", 12, "found no neighbours"),
            (
                r#""neighbours": ["10.8.0.1"]"#,
                r#""neighbours": ["0.0.0.1"]"#,
                13,
                "found neighbour 0.0.0.1 at a second",
            ),
            (r#""default_precedence": 3"#, r#""default_precedence": 16"#, 3, "found precedence 16; expected 0 to 15"),
            (r#""mtu": 1480"#, r#""mut": 1480"#, 12, "unknown field `mut`"),
            (r#""bits_per_octet": 10"#, r#""bits_per_octet": 0"#, 13, "found 0 bits per octet"),
            ("2 Mbit/s", "fast", 14, "fast"),
            (r#""sp": "required""#, r#""sp": "strict""#, 14, "unknown variant `strict`"),
            (r#""line": "pty:/tmp/x""#, r#""line": "pty:""#, 13, "expected pty:PATH"),
        ] {
            let text = complaint(from, to);
            assert!(text.starts_with(&format!("s.json:{line}: ")) && text.contains(words), "{text}");
        }
        assert!(complaint(r#""interfaces": ["#, r#""interfaces": [], "x": ["#).contains("unknown field `x`"));
    }

    #[test]
    fn an_end_system_needs_no_file_and_has_the_notes_defaults() {
        let host = NpHost::read(None, Ipv4Addr::LOCALHOST, 6).unwrap();
        assert_eq!((host.config.hop_count, host.config.checksum, host.ip_protocol), (Some(10), true, 118));
        assert_eq!((host.udp_port, host.config.default_precedence), (7168, Precedence::LOWEST));
    }

    #[test]
    fn a_neighbour_that_is_elsewhere_twice_is_refused() {
        let twice = r#"{"10.8.0.9": "127.0.0.1:1", "10.8.0.9": "127.0.0.1:2"}"#;
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("settings.json");
            std::fs::write(&path, text).unwrap();
            path
        };
        let host = NpHost::read(Some(&read(&format!(r#"{{"udp_hops": {twice}}}"#))), Ipv4Addr::LOCALHOST, 6);
        let carrier = format!(r#"{{"kind": "udp", "others": {twice}}}"#);
        let interface = format!(r#"{{"name": "hop", "carrier": {carrier}, "neighbours": ["10.8.0.9"]}}"#);
        let router = RouterSettings::read(&read(&format!(r#"{{"address": "10.8.0.1", "interfaces": [{interface}]}}"#)));
        for text in [host.map(|_| ()).unwrap_err().to_string(), router.map(|_| ()).unwrap_err().to_string()] {
            assert!(text.contains("settings.json:1: ") && text.contains("found 10.8.0.9 twice"), "{text}");
        }
    }

    #[test]
    fn tables_of_the_historic_form_are_files_beside_it() {
        let folder = std::env::temp_dir().join(format!("scps-np-settings-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("host.json", r#"{"tables": {"files": {"ip_np": "addresses"}}, "hop_count": 0}"#);
        write("addresses", "# IP, NP\n0a080001 7290\n0a080002 7292\n");
        let read = || NpHost::read(Some(&folder.join("host.json")), Ipv4Addr::new(10, 8, 0, 1), 6);
        let config = read().unwrap().config;
        assert_eq!((config.tables.own(), config.hop_count), (Some(Address::Basic(0x7290)), None));
        write("addresses", "0a080001 7290\n\n0a080002 7290\nx\n");
        let text = read().unwrap_err().to_string();
        assert!(text.contains("addresses:3: found 10.8.0.2 and 7290") && text.contains("addresses:4: "), "{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
