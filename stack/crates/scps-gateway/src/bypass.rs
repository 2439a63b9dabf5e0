//! Connections that are not split: a list by network and port.

use scps_wire::ipv4::Ipv4;
use scps_wire::protocol;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Connections of which one end is in a network and has one of some ports. Their segments pass as they came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bypass {
    /// The network: an address in it, and the length of its prefix.
    pub net: (Ipv4Addr, u8),
    /// The first and the last port.
    pub ports: (u16, u16),
}

impl Bypass {
    /// Every address.
    pub const ANY_NET: (Ipv4Addr, u8) = (Ipv4Addr::UNSPECIFIED, 0);
    /// Every port.
    pub const ANY_PORTS: (u16, u16) = (0, u16::MAX);

    /// True if it is about an end of a connection.
    pub(crate) fn has_end(&self, end: SocketAddr) -> bool {
        matches!(end.ip(), IpAddr::V4(address) if self.has(address, end.port()))
    }

    fn has(&self, address: Ipv4Addr, port: u16) -> bool {
        let (net, length) = self.net;
        let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
        (u32::from(net) ^ u32::from(address)) & mask == 0 && (self.ports.0..=self.ports.1).contains(&port)
    }
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.net {
            Bypass::ANY_NET => f.write_str("any address")?,
            (net, length) => write!(f, "{net}/{length}")?,
        }
        match self.ports {
            Bypass::ANY_PORTS => f.write_str(", any port"),
            (first, last) if first == last => write!(f, ", port {first}"),
            (first, last) => write!(f, ", ports {first} to {last}"),
        }
    }
}

/// True if a packet is of a connection that one of them is about: both of its directions are. Of pieces of a packet, all but the first have
/// no ports, so only those are that ask for none.
pub(crate) fn is_bypassed(bypasses: &[Bypass], packet: &[u8]) -> bool {
    if bypasses.is_empty() || packet.get(9) != Some(&protocol::TCP) {
        return false;
    }
    let Ok((ip, segment)) = Ipv4::parse(packet) else { return false };
    // The upper three bits are flags.
    let is_first = matches!(packet, [_, _, _, _, _, _, high, low, ..] if u16::from_be_bytes([*high, *low]) << 3 == 0);
    let port = |at: usize| segment.get(at..at + 2).map(|octets| u16::from_be_bytes([octets[0], octets[1]]));
    let (Some(from), Some(to)) = (port(0), port(2)) else { return false };
    bypasses
        .iter()
        .filter(|bypass| is_first || bypass.ports == Bypass::ANY_PORTS)
        .any(|bypass| bypass.has(ip.src, from) || bypass.has(ip.dst, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 9);

    fn packet(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), protocol: u8, fragment_at: u16) -> Vec<u8> {
        let mut packet = vec![0; 40];
        let header = Ipv4 {
            src: from.0,
            dst: to.0,
            protocol,
            tos: 0,
            ttl: 9,
            id: 1,
            dont_fragment: false,
            is_fragment: false,
            payload_len: 20,
        };
        header.emit(&mut packet);
        packet[6..8].copy_from_slice(&(fragment_at / 8).to_be_bytes());
        packet[10..12].fill(0);
        let mut sum = scps_wire::checksum::Checksum::new();
        sum.add(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        packet[20..22].copy_from_slice(&from.1.to_be_bytes());
        packet[22..24].copy_from_slice(&to.1.to_be_bytes());
        packet
    }

    #[test]
    fn both_directions_of_a_connection_pass_and_others_do_not() {
        let rule = |net, ports| [Bypass { net, ports }];
        let of = |rule: &[Bypass], port| {
            let (client, server) = ((CLIENT, 4000), (SERVER, port));
            let ways = [packet(client, server, 6, 0), packet(server, client, 6, 0)];
            ways.map(|packet| is_bypassed(rule, &packet))
        };
        let server = rule((SERVER, 32), (22, 22));
        assert_eq!([of(&server, 22), of(&server, 23)], [[true; 2], [false; 2]]);
        let voice = rule(Bypass::ANY_NET, (5060, 5061));
        assert_eq!([of(&voice, 5061), of(&voice, 5062)], [[true; 2], [false; 2]]);
        let net = rule((Ipv4Addr::new(10, 2, 3, 4), 16), Bypass::ANY_PORTS);
        assert_eq!(of(&net, 80), [true; 2]);
        assert_eq!(of(&rule((Ipv4Addr::new(10, 2, 1, 0), 24), Bypass::ANY_PORTS), 80), [false; 2]);
        assert_eq!(of(&[], 22), [false; 2]);
    }

    #[test]
    fn what_has_no_ports_passes_by_its_network_alone() {
        let [by_port, by_net] = [(22, 22), Bypass::ANY_PORTS].map(|ports| [Bypass { net: (SERVER, 32), ports }]);
        let piece = packet((CLIENT, 4000), (SERVER, 22), 6, 1480);
        assert!(!is_bypassed(&by_port, &piece) && is_bypassed(&by_net, &piece));
        assert!(!is_bypassed(&by_net, &packet((CLIENT, 4000), (SERVER, 22), 17, 0)), "others pass anyway");
        let whole = packet((CLIENT, 4000), (SERVER, 22), 6, 0);
        assert!((0..40).all(|len| !is_bypassed(&by_net, &whole[..len])), "what is cut off");
    }

    #[test]
    fn a_list_is_told_in_words() {
        let words = |net, ports| Bypass { net, ports }.to_string();
        assert_eq!(words((SERVER, 32), (22, 22)), "10.2.0.9/32, port 22");
        assert_eq!(words(Bypass::ANY_NET, (5060, 5061)), "any address, ports 5060 to 5061");
        assert_eq!(words((SERVER, 24), Bypass::ANY_PORTS), "10.2.0.9/24, any port");
    }
}
