//! `scps gateway`: connections of a LAN's programs, split between their TCP and SCPS-TP over the space link.

use crate::capture_file::Captures;
use crate::commands::probe::probe;
use crate::error::CliError;
use crate::far_side::FarSide;
use crate::fp::{append_to, write_whole};
use crate::gateway_settings::{Carrier, GatewaySettings, Overrides, OwnHost, Prefix};
use crate::link::{Gauges, Link};
use crate::machine;
use crate::operator::{check_fixed, Fixed, Level, Operator, OperatorArgs};
use crate::say::{self, Told};
use crate::sp_settings::{self, SpCounts, SpTunnel};
use crate::stop::{warn_of_resets, Request, StopSignals, RESETS_MAX};
use crate::world::seed_of;
use clap::Args;
use scps_gateway::{Account, ConfigError, End, Gateway, PairId, PerSide, Report, SetUp, Side, SideConfig};
use scps_io::{cpu_time, CaptureKind, Clock, Device, GatewayLoop};
use scps_tp::Congestion;
use scps_types::{Duration, Instant};
use scps_wire::protocol;
use serde::Serialize;
use signal_hook::consts::SIGUSR1;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Routing tables of the packets for either side of the gateway.
const TABLE_LAN: u32 = 7168;
const TABLE_WAN: u32 = 7169;
/// How long a program of the LAN waits for an answer to its SYN (Linux, `tcp_syn_retries`).
const CLIENT_PATIENCE: Duration = Duration::from_secs(127);

/// A client with too many connections is told of no more often.
const CROWDED_EVERY: Duration = Duration::from_secs(60);

/// Options of `scps gateway`.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// Settings (JSON; docs/gateway-reference.md has every key); without them --peer, --rate, --rtt-ms and --far say what is needed
    config: Option<PathBuf>,
    /// Check the settings, print what the gateway would do and which commands make the kernel send it packets, and end
    #[arg(long)]
    check: bool,
    /// Ask the other gateway whether it answers, how soon, and how long packets may be, and end; no gateway may run here meanwhile
    #[arg(long, conflicts_with = "check")]
    probe: bool,
    /// Rate of the space link, such as "2 Mbit/s"; "none" for one that others share
    #[arg(long)]
    rate: Option<String>,
    /// Round-trip time of the space link; buffers follow from it and the rate
    #[arg(long, value_name = "MS")]
    rtt_ms: Option<u64>,
    /// The other gateway, for packets in UDP (port 7168 unless it is given)
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = peer)]
    peer: Option<SocketAddrV4>,
    /// A network behind the other gateway, such as 10.2.0.0/24: routed to the gateway; may be repeated
    #[arg(long, value_name = "PREFIX")]
    far: Vec<Prefix>,
    /// Settings of SCPS-SP (JSON): everything between the gateways is encrypted and authenticated, and nothing else is heard
    #[arg(long, value_name = "FILE")]
    sp: Option<PathBuf>,
    /// Append a line of JSON for each connection that ends, and for each of --counters-every seconds, SIGUSR1 and the end one for
    /// each connection and one for all
    #[arg(long, value_name = "FILE")]
    counters: Option<PathBuf>,
    /// Write counters so often; 0 for at SIGUSR1 and at the end only
    #[arg(long, value_name = "S", default_value_t = 0.0, requires = "counters")]
    counters_every: f64,
    /// Seed of initial sequence numbers and ports; real entropy without it
    #[arg(long)]
    seed: Option<u64>,
    /// Write every packet of both sides, before SCPS-SP seals it and UDP wraps it, to this pcap file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write "ready" to this file once the gateway takes connections
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    operator: OperatorArgs,
}

fn peer(text: &str) -> Result<SocketAddrV4, String> {
    let with_port = || text.parse::<Ipv4Addr>().map(|address| SocketAddrV4::new(address, 7168));
    let wrong = |_| format!("found {text:?}; expected an address such as 203.0.113.2, or with a port 203.0.113.2:7168");
    text.parse().or_else(|_| with_port()).map_err(wrong)
}

#[derive(Serialize)]
struct AccountLine {
    received: u64,
    acknowledged: u64,
    delivered: u64,
    buffered: u64,
    lost: u64,
}

impl From<Account> for AccountLine {
    fn from(account: Account) -> Self {
        let Account { received, acknowledged, delivered, buffered, lost, .. } = account;
        AccountLine { received, acknowledged, delivered, buffered, lost }
    }
}

#[derive(Serialize)]
struct ConnectionLine {
    event: &'static str,
    t_s: f64,
    connection: u64,
    #[serde(flatten)]
    ended: Option<Ended>,
    from_lan: AccountLine,
    from_wan: AccountLine,
}

/// What is known of a connection that is over.
#[derive(Serialize)]
struct Ended {
    asked_by: &'static str,
    client: String,
    server: String,
    lasted_s: f64,
    end: String,
}

#[derive(Serialize)]
struct PassedLine {
    packets: u64,
    octets: u64,
    dropped: u64,
    ipv6: u64,
    no_ip: u64,
}

#[derive(Serialize)]
struct SideLine {
    sent: u64,
    received: u64,
    refused: u64,
    resends: u64,
    passed: PassedLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    sp: Option<SpCounts>,
}

#[derive(Serialize)]
struct CountersLine {
    event: &'static str,
    t_s: f64,
    open: u64,
    begun: u64,
    finished: u64,
    broken: u64,
    full: u64,
    crowded: u64,
    unconnectable: u64,
    /// Of all connections, those that are open included.
    from_lan: AccountLine,
    from_wan: AccountLine,
    /// received = delivered + buffered + lost, in both directions.
    closes: bool,
    lan: SideLine,
    wan: SideLine,
    allocated_bytes: usize,
    cpu_s: f64,
}

/// What a monitoring system is shown.
#[derive(Serialize)]
struct Shown {
    link: Gauges,
    #[serde(flatten)]
    counters: CountersLine,
}

#[derive(Serialize)]
struct Ready {
    event: &'static str,
    lan: String,
    wan: String,
}

/// Where counters go.
struct Counters {
    file: Option<(File, PathBuf)>,
    every: Option<Duration>,
    next_at: Option<Instant>,
    /// What the file does not have yet.
    lines: Vec<u8>,
    told: Told,
    /// The file ends within a line.
    is_torn: bool,
    /// When a client with too many connections is told of again.
    crowded_at: Instant,
}

impl GatewayArgs {
    /// Joins connections until a signal ends it.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let settings = self.settings()?;
        if self.check {
            return describe(&settings).map(|()| ExitCode::SUCCESS);
        }
        if self.probe {
            return probe(&settings);
        }
        let seed = seed_of(self.seed)?;
        let mut operator = Operator::begin("gateway", &self.operator)?;
        let mut wish = StopSignals::other(SIGUSR1)?;
        scps_io::exact_timers()?;
        let captures = Captures::begin(self.pcap.as_deref(), CaptureKind::Ip)?;
        let clock = Clock::new();
        let open = |side: Side| -> Result<Box<dyn Device>, CliError> {
            let device = settings.carriers.of(side).open()?;
            let device = match settings.sp.of(side) {
                Some(sp) => sp.protect(device, clock)?,
                None => device,
            };
            Ok(captures.around(device))
        };
        let devices = PerSide { lan: open(Side::Lan)?, wan: open(Side::Wan)? };
        let gateway = Gateway::new(settings.config.clone(), seed, clock.now()).map_err(|error| wrong(&error))?;
        let mut gateway = GatewayLoop::new(gateway, devices, settings.is_metered, clock)?;
        let mut counters = Counters::open(self.counters.as_deref(), self.counters_every, gateway.now())?;
        let round_trip = settings.config.wan.route.rtt;
        let mut far = FarSide::new(carrier_words(&settings.carriers.wan), round_trip, gateway.now());
        let mut link = Link::new(&gateway);
        let name = |side| carrier_words(settings.carriers.of(side));
        for found in machine::findings(&settings) {
            operator.tell(Level::Warn, format_args!("{found}."));
        }
        operator.tell(Level::Info, format_args!("ready; lan: {}; wan: {}.", name(Side::Lan), name(Side::Wan)));
        say::record(&Ready { event: "ready", lan: name(Side::Lan), wan: name(Side::Wan) })?;
        if let Some(path) = &self.ready_file {
            write_whole(path, "ready\n")?;
        }
        for wakeup in operator.wakeups().chain([wish.wakeup()]) {
            gateway.watch(wakeup)?;
        }
        let cause = loop {
            gateway.run_once(counters.next_at)?;
            operator.answer(|| Shown { link: link.gauges(&gateway, far.is_up()), counters: totals(&mut gateway) });
            far.follow(&gateway, &operator);
            link.follow(&gateway, &operator);
            tell_notices(&mut gateway);
            operator.reload(&[self.config.as_deref()], || {
                counters.reopen()?;
                let new = self.settings()?;
                check_fixed(&fixed(&settings), &fixed(&new))?;
                let words =
                    format!("lan: {}; wan: {}", transport_words(&new.config.lan), transport_words(&new.config.wan));
                gateway.reconfigure(new.config, new.is_metered).map_err(|error| wrong(&error))?;
                Ok(words)
            });
            counters.follow(&mut gateway, &mut wish, &operator);
            if let Some(cause) = operator.cause() {
                break cause;
            }
        };
        if !gateway.stop(RESETS_MAX)? {
            warn_of_resets();
        }
        counters.note_ends(&mut gateway, &operator);
        counters.note_all(&mut gateway, &operator);
        say::record(&totals(&mut gateway))?;
        Ok(cause.exit_code())
    }

    /// What file and command line say now.
    fn settings(&self) -> Result<GatewaySettings, CliError> {
        let overrides = Overrides {
            rate: self.rate.clone(),
            rtt_ms: self.rtt_ms,
            peer: self.peer,
            far: self.far.clone(),
            sp: self.sp.clone(),
        };
        GatewaySettings::read(self.config.as_deref(), &overrides)
    }
}

fn wrong(error: &ConfigError) -> CliError {
    CliError::Usage(format!("gateway: {error}."))
}

/// What devices and listeners are made with, once.
fn fixed(settings: &GatewaySettings) -> Fixed {
    let GatewaySettings { config, carriers, sp, host, .. } = settings;
    let mut fixed = vec![
        ("set_up".to_owned(), format!("{:?}", config.set_up)),
        ("unknown".to_owned(), format!("{:?}", config.passes_unknown)),
        ("forwards".to_owned(), format!("{:?}", config.forwards)),
        ("host".to_owned(), format!("{host:?}")),
    ];
    for side in Side::BOTH {
        let SideConfig { route, connection, takes_any, .. } = config.side(side);
        for (key, text) in [
            ("carrier", format!("{:?}", carriers.of(side))),
            ("sp", format!("{:?}", sp.of(side))),
            ("accepts", takes_any.to_string()),
            ("kind", connection.scps.to_string()),
            ("mtu", format!("{} {} {}", route.mtu, route.overhead, route.protocol)),
        ] {
            fixed.push((format!("{}: {key}", side_name(side)), text));
        }
    }
    fixed
}

impl Counters {
    fn open(path: Option<&Path>, every_s: f64, now: Instant) -> Result<Self, CliError> {
        let open = |path: &Path| Ok::<_, CliError>((append_to(path)?, path.to_owned()));
        let file = path.map(open).transpose()?;
        let every = (every_s > 0.0 && file.is_some()).then(|| Duration::from_secs_f64(every_s.clamp(0.01, 1e9)));
        let next_at = every.map(|every| now + every);
        Ok(Counters { file, every, next_at, lines: Vec::new(), told: Told::default(), is_torn: false, crowded_at: now })
    }

    /// Goes on in the file that has the name now: the one of before may have been put aside.
    fn reopen(&mut self) -> Result<(), CliError> {
        if let Some((file, path)) = &mut self.file {
            *file = append_to(path)?;
            self.is_torn &= file.metadata().is_ok_and(|about| about.len() > 0);
        }
        Ok(())
    }

    /// Writes what is due.
    fn follow(&mut self, gateway: &mut GatewayLoop, wish: &mut Request, operator: &Operator) {
        self.note_ends(gateway, operator);
        let now = gateway.now();
        let is_due = self.next_at.is_some_and(|at| at <= now);
        if is_due {
            self.next_at = self.every.map(|every| now + every);
        }
        if wish.came() || is_due {
            self.note_all(gateway, operator);
        }
    }

    fn note_ends(&mut self, gateway: &mut GatewayLoop, operator: &Operator) {
        let now = gateway.now();
        while let Some(report) = gateway.gateway_mut().poll_report() {
            if report.end == End::Crowded && now >= self.crowded_at {
                let client = report.client.ip();
                let text = format!(
                    "full: {client} has most connections, and loses those that are idle to clients with fewer."
                );
                operator.tell(Level::Warn, text);
                self.crowded_at = now + CROWDED_EVERY;
            }
            if operator.hears(Level::Debug) {
                operator.tell(Level::Debug, in_words(&report));
            }
            self.add(&ended(now, &report));
        }
        self.write(operator);
    }

    /// A line for each open connection, and one for all.
    fn note_all(&mut self, gateway: &mut GatewayLoop, operator: &Operator) {
        if self.file.is_none() {
            return;
        }
        for id in gateway.gateway().connections() {
            if let Some(accounts) = gateway.gateway().account(id) {
                self.add(&still_open(gateway.now(), id, accounts));
            }
        }
        self.add(&totals(gateway));
        self.write(operator);
    }

    fn add(&mut self, line: &impl Serialize) {
        if let (Some(_), Ok(text)) = (&self.file, say::json(line)) {
            self.lines.extend(text.bytes().chain([b'\n']));
        }
    }

    /// Hands the lines on. Where they cannot be written, as on a full disk, they are lost: the connections do not wait for them.
    fn write(&mut self, operator: &Operator) {
        let Some((file, path)) = self.file.as_mut().filter(|_| !self.lines.is_empty()) else { return };
        if self.is_torn {
            self.lines.insert(0, b'\n');
        }
        let mut rest = &self.lines[..];
        let written = loop {
            match file.write(rest) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.is_torn = rest[n - 1] != b'\n';
                    rest = &rest[n..];
                    if rest.is_empty() {
                        break Ok(());
                    }
                }
            }
        };
        self.lines.clear();
        if let Some(error) = self.told.news(written) {
            operator.tell(
                Level::Warn,
                format_args!("{}: {error}; lines are lost until it can be written.", path.display()),
            );
        }
    }
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Lan => "lan",
        Side::Wan => "wan",
    }
}

/// A connection that ended, for the log.
fn in_words(report: &Report) -> String {
    let Report { pair, client, server, end, from, .. } = report;
    let (lan, wan) = (from.lan.delivered, from.wan.delivered);
    let lasted_s = report.ended_at.since(report.began_at).as_secs_f64();
    let id = pair.as_u64();
    format!("connection {id} ({client} to {server}): {end} after {lasted_s:.1} s; {lan} octets of the LAN and {wan} of the WAN delivered.")
}

fn ended(now: Instant, report: &Report) -> ConnectionLine {
    ConnectionLine {
        event: "connection",
        t_s: seconds(now),
        connection: report.pair.as_u64(),
        ended: Some(Ended {
            asked_by: side_name(report.near),
            client: report.client.to_string(),
            server: report.server.to_string(),
            lasted_s: report.ended_at.since(report.began_at).as_secs_f64(),
            end: report.end.to_string(),
        }),
        from_lan: report.from.lan.into(),
        from_wan: report.from.wan.into(),
    }
}

fn still_open(now: Instant, id: PairId, accounts: PerSide<Account>) -> ConnectionLine {
    ConnectionLine {
        event: "open",
        t_s: seconds(now),
        connection: id.as_u64(),
        ended: None,
        from_lan: accounts.lan.into(),
        from_wan: accounts.wan.into(),
    }
}

fn tell_notices(gateway: &mut GatewayLoop) {
    let now = gateway.now();
    for side in Side::BOTH {
        while let Some(notice) = gateway.protection(side).and_then(|sp| sp.poll_notice(now)) {
            sp_settings::tell(&notice);
        }
    }
}

fn totals(gateway: &mut GatewayLoop) -> CountersLine {
    let mut sp_of = |side| gateway.protection(side).map(|sp| SpCounts::from(&*sp));
    let mut sp = PerSide { lan: sp_of(Side::Lan), wan: sp_of(Side::Wan) };
    let engine = gateway.gateway();
    let counters = engine.counters();
    let mut from = counters.from;
    let mut open = 0;
    for accounts in engine.connections().filter_map(|id| engine.account(id)) {
        open += 1;
        for side in Side::BOTH {
            from.of_mut(side).add(accounts.of(side));
        }
    }
    let mut side = |side: Side| {
        let (stats, passed) = (gateway.device_stats(side), gateway.passed(side));
        SideLine {
            sent: stats.sent,
            received: stats.received,
            refused: stats.refused,
            resends: engine.endpoint(side).totals().resends,
            passed: PassedLine {
                packets: passed.packets,
                octets: passed.octets,
                dropped: passed.dropped,
                ipv6: passed.ipv6,
                no_ip: passed.no_ip,
            },
            sp: sp.of_mut(side).take(),
        }
    };
    CountersLine {
        event: "counters",
        t_s: seconds(gateway.now()),
        open,
        begun: counters.begun,
        finished: counters.finished,
        broken: counters.broken,
        full: counters.full,
        crowded: counters.crowded,
        unconnectable: counters.unconnectable,
        closes: from.lan.closes() && from.wan.closes(),
        from_lan: from.lan.into(),
        from_wan: from.wan.into(),
        lan: side(Side::Lan),
        wan: side(Side::Wan),
        allocated_bytes: engine.allocated(),
        cpu_s: cpu_time().as_secs_f64(),
    }
}

fn carrier_words(carrier: &Carrier) -> String {
    match carrier {
        Carrier::Tun(tun) => format!("TUN interface {}", tun.name),
        Carrier::Udp(udp) => match udp.remote {
            Some(remote) => format!("UDP from {} to {remote}", udp.local),
            None => format!("UDP at {}", udp.local),
        },
    }
}

/// What the gateway would do, and what the kernel has to do for it.
fn describe(settings: &GatewaySettings) -> Result<(), CliError> {
    for side in Side::BOTH {
        let config = settings.config.side(side);
        let accepts = if config.takes_any {
            "takes connections to any address"
        } else {
            "takes no connections of its own accord"
        };
        let mut carrier = carrier_words(settings.carriers.of(side));
        if let Some(ends) = settings.sp.of(side).as_ref().map(SpTunnel::ends) {
            carrier = format!("{carrier}, sealed by SCPS-SP from {} to {}", ends.src, ends.dst);
        }
        say::result(format_args!("{}: {carrier}; {}; {accepts}", side_name(side), transport_words(config)))?;
    }
    for forward in &settings.config.forwards {
        let (listen, to) = (forward.listen, forward.to);
        let side = side_name(forward.side);
        let from = forward.from;
        say::result(format_args!("forward: {side} {listen} leads to {to}, which sees {from}"))?;
    }
    let config = &settings.config;
    let set_up = match config.set_up {
        SetUp::ConnectFirst => "connect-first: a client is answered when the server has answered",
        SetUp::AcceptFirst => "accept-first: a client is answered at once and may send",
        SetUp::Early => "early: a client is answered at once and may send when the server has answered",
    };
    say::result(format_args!("set-up: {set_up}"))?;
    let far = config.wan.route.rtt.filter(|rtt| config.set_up == SetUp::ConnectFirst && *rtt >= CLIENT_PATIENCE / 2);
    if let Some(rtt) = far {
        let (rtt, patience) = (rtt.as_secs_f64(), CLIENT_PATIENCE.as_secs());
        say::result(format_args!(
            "        (a client of the LAN gives up after {patience} s or so, and an answer takes {rtt} s at least: set \"set_up\": \"early\")"
        ))?;
    }
    let (each, most) = (config.octets_per_connection(), config.connections_max());
    say::result(format_args!("limits: {most} connections at a time, each at most {each} octets of memory"))?;
    if most < config.limits.connections {
        let asked = config.limits.connections;
        let buffered = config.limits.buffered;
        say::result(format_args!(
            "        ({asked} are asked for; {buffered} octets allow fewer: set \"buffered_bytes\" or smaller \"buffer\")"
        ))?;
    }
    let unknown = if config.passes_unknown { "pass" } else { "are reset" };
    let metered = if settings.is_metered { "at the rate of the side where they leave" } else { "whatever the rate" };
    say::result(format_args!(
        "others: segments of connections older than the gateway {unknown}; other IPv4 passes, {metered}; IPv6 is dropped"
    ))?;
    let shares = config.wan.connection.shares;
    if shares != [1; 8] {
        let shares: Vec<String> = shares.iter().map(u16::to_string).collect();
        say::result(format_args!("shares of the rate by IP precedence 0 to 7: {}", shares.join(", ")))?;
    }
    for found in machine::findings(settings) {
        say::result(format_args!("look: {found}"))?;
    }
    say::result("the kernel's part, as root:")?;
    say::result("  sysctl -w net.ipv4.ip_forward=1")?;
    match (&settings.host, &settings.carriers.lan, &settings.carriers.wan) {
        (Some(host), Carrier::Tun(lan), Carrier::Tun(wan)) => {
            for line in host_words(host, &lan.name, &wan.name, config.wan.route.protocol) {
                say::result(format_args!("  {line}"))?;
            }
            Ok(())
        }
        _ => kernel_words(settings),
    }
}

/// How the kernel of a machine hands the gateway the connections of its own programs: by the interface where a packet comes from.
/// What comes from the network for the machine itself goes to the gateway before it counts as the machine's own; what the gateway
/// has written for the machine's programs does not, and so is theirs.
fn host_words(host: &OwnHost, lan: &str, wan: &str, uncompressed: u8) -> Vec<String> {
    let OwnHost { interface, address, far } = host;
    let ends = |word: &str| match &far[..] {
        [] => vec![String::new()],
        prefixes => prefixes.iter().map(|prefix| format!(" {word} {prefix}")).collect(),
    };
    let mut lines = vec![
        // A packet of the link looks like one of the program's own connection, which has the same addresses and ports.
        "sysctl -w net.ipv4.tcp_early_demux=0".to_owned(),
        format!("sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{interface}.rp_filter=0"),
    ];
    let from_link = |from: &str, what: &str| {
        format!("ip rule add pref 100 iif {interface}{from} to {address} ipproto {what} lookup {TABLE_WAN}")
    };
    for from in ends("from") {
        for number in [uncompressed, protocol::SCPS_COMPRESSED] {
            lines.push(from_link(&from, if number == protocol::TCP { "tcp" } else { "105" }));
        }
    }
    lines.push(from_link("", "icmp") + "    # reports about its packets; all else passes");
    lines.push("ip rule add pref 200 lookup local && ip rule del pref 0 lookup local".to_owned());
    for to in ends("to") {
        lines.push(format!("ip rule add pref 300 iif lo from {address}{to} ipproto tcp lookup {TABLE_LAN}"));
    }
    lines.push("once the gateway runs:".to_owned());
    lines.push(format!(
        "sysctl -w net.ipv4.conf.{lan}.rp_filter=0 net.ipv4.conf.{wan}.rp_filter=0 net.ipv4.conf.{wan}.accept_local=1"
    ));
    for (device, table) in [(lan, TABLE_LAN), (wan, TABLE_WAN)] {
        lines.push(format!("ip route add default dev {device} table {table}"));
    }
    lines
}

fn kernel_words(settings: &GatewaySettings) -> Result<(), CliError> {
    let both_tun = Side::BOTH.iter().all(|side| matches!(settings.carriers.of(*side), Carrier::Tun(_)));
    for side in Side::BOTH {
        let Carrier::Tun(tun) = settings.carriers.of(side) else { continue };
        if both_tun && settings.config.forwards.is_empty() {
            // Packets are told apart by where they come in; those that the gateway sends take the main table.
            let (table, near) = match side {
                Side::Lan => (TABLE_LAN, "LAN-INTERFACE"),
                Side::Wan => (TABLE_WAN, "WAN-INTERFACE"),
            };
            say::result(format_args!("  sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{near}.rp_filter=0"))?;
            say::result(format_args!("  ip rule add iif {near} lookup {table}"))?;
            say::result(format_args!(
                "  ip route add default dev {} table {table}    # once the gateway runs",
                tun.name
            ))?;
        } else if tun.routes.is_empty() {
            say::result(format_args!("  ip route add FAR-NETWORK dev {}    # once the gateway runs", tun.name))?;
        } else {
            for (address, length) in &tun.routes {
                let who = if tun.configure { "the gateway adds it" } else { "once the gateway runs" };
                say::result(format_args!("  ip route add {address}/{length} dev {}    # {who}", tun.name))?;
            }
        }
    }
    Ok(())
}

fn transport_words(config: &SideConfig) -> String {
    let (c, route) = (&config.connection, &config.route);
    let kind = if c.scps { "SCPS-TP" } else { "TCP" };
    let congestion = match c.congestion {
        Congestion::None => "no congestion control",
        Congestion::Vj => "VJ",
        Congestion::Vegas(_) => "Vegas",
        other => other.name(),
    };
    let rate = match route.rate {
        Some(rate) if route.framing > 0 => {
            format!("rate {rate} with {} octets a packet for lower layers", route.framing)
        }
        Some(rate) => format!("rate {rate}"),
        None => "no rate".to_owned(),
    };
    let mut words = vec![kind.to_owned(), congestion.to_owned(), rate, format!("MTU {}", route.mtu)];
    words.extend(c.mss.map(|mss| format!("MSS at most {mss}")));
    words.push(format!("buffers {} and {} octets", c.send_buffer, c.receive_buffer));
    for (is_on, word) in
        [(c.scps && c.snack, "SNACK"), (c.sack, "SACK"), (c.scps && c.compression, "compressed headers")]
    {
        words.extend(is_on.then(|| word.to_owned()));
    }
    words.join(", ")
}
