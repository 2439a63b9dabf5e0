//! What of this machine keeps a gateway from working, as far as it shows before the first packet.

use crate::gateway_settings::{Carrier, GatewaySettings};
use scps_io::path_mtu;
use scps_wire::Bitrate;
use std::net::SocketAddrV4;
use std::path::Path;

/// Less than this is a unit that was forgotten, as a rule.
const RATE_MIN: Bitrate = Bitrate::from_bps(1000);

/// What is found, each with what to do about it.
pub fn findings(settings: &GatewaySettings) -> Vec<String> {
    let mut found = Vec::new();
    let (lan, wan, route) = (&settings.carriers.lan, &settings.carriers.wan, &settings.config.wan.route);
    if let Some(rate) = route.rate.filter(|rate| *rate < RATE_MIN) {
        found.push(format!("the rate is {rate}; write its unit, such as \"10 Mbit/s\""));
    }
    if matches!(lan, Carrier::Tun(_)) && kernel("net/ipv4/ip_forward") == Some(0) {
        found.push("net.ipv4.ip_forward is 0, so no packet of the LAN reaches the gateway; run sysctl -w net.ipv4.ip_forward=1".to_owned());
    }
    match wan {
        Carrier::Udp(udp) => found.extend(udp.remote.and_then(|remote| of_way(remote, route.mtu))),
        Carrier::Tun(_) => {
            let interface = settings.host.as_ref().map(|host| host.interface.as_str());
            found.extend(["all"].into_iter().chain(interface).filter_map(of_filter));
            found.extend(interface.and_then(|name| of_interface(name, route.mtu)));
        }
    }
    found
}

/// A number that the kernel shows below /proc/sys or /sys.
fn number(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn kernel(name: &str) -> Option<u32> {
    number(&Path::new("/proc/sys").join(name))
}

fn of_way(remote: SocketAddrV4, mtu: u16) -> Option<String> {
    match path_mtu(remote) {
        Err(error) => Some(format!("there is no way to {remote} ({error}); look at ip route get {}", remote.ip())),
        Ok(way) if way < mtu => Some(too_long(&format!("the way to {}", remote.ip()), way.into(), mtu)),
        Ok(_) => None,
    }
}

fn of_interface(name: &str, mtu: u16) -> Option<String> {
    let own = number(&Path::new("/sys/class/net").join(name).join("mtu"))?;
    (own < u32::from(mtu)).then(|| too_long(name, own, mtu))
}

fn too_long(what: &str, takes: u32, mtu: u16) -> String {
    format!("{what} takes packets of {takes} octets, and \"mtu\" is {mtu}; set \"mtu\": {takes} in \"transport\" of \"wan\"")
}

/// The kernel's test of sources drops what the gateway writes for others, who are elsewhere by its routes.
fn of_filter(interface: &str) -> Option<String> {
    let name = format!("net/ipv4/conf/{interface}/rp_filter");
    let set = format!("net.ipv4.conf.{interface}.rp_filter");
    (kernel(&name) == Some(1))
        .then(|| format!("{set} is 1, so packets with others' addresses are dropped; run sysctl -w {set}=0"))
}
