//! What a gateway would do, in words, and what the kernel has to do for it.

use super::lines::side_name;
use crate::error::CliError;
use crate::gateway_settings::{Carrier, GatewaySettings, OwnHost};
use crate::machine;
use crate::say;
use crate::sp_settings::SpTunnel;
use scps_gateway::{SetUp, Side, SideConfig};
use scps_tp::Congestion;
use scps_wire::protocol;
use scps_wire::Duration;

/// Routing tables of the packets for either side of the gateway.
const TABLE_LAN: u32 = 7168;

const TABLE_WAN: u32 = 7169;

/// How long a program of the LAN waits for an answer to its SYN (Linux, `tcp_syn_retries`).
const CLIENT_PATIENCE: Duration = Duration::from_secs(127);

pub(super) fn carrier_words(carrier: &Carrier) -> String {
    match carrier {
        Carrier::Tun(tun) => format!("TUN interface {}", tun.name),
        Carrier::Udp(udp) => match udp.remote {
            Some(remote) => format!("UDP from {} to {remote}", udp.local),
            None => format!("UDP at {}", udp.local),
        },
    }
}

/// What the gateway would do, and what the kernel has to do for it.
pub(super) fn describe(settings: &GatewaySettings) -> Result<(), CliError> {
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
    for bypass in &config.bypasses {
        say::result(format_args!(
            "bypass: {bypass} is not split, at the other gateway neither if its list says so too"
        ))?;
    }
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

pub(super) fn transport_words(config: &SideConfig) -> String {
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
