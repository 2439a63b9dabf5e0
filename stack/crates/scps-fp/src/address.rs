//! Data addresses as commands and replies write them (scps-fp §2): `PORT`, `EPRT`, 227 and 229.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `h1,h2,h3,h4,p1,p2` of an IPv4 address and port.
pub fn port_text(address: Ipv4Addr, port: u16) -> String {
    let [a, b, c, d] = address.octets();
    let [high, low] = port.to_be_bytes();
    format!("{a},{b},{c},{d},{high},{low}")
}

/// Reads exactly six decimal octets.
pub fn parse_port(text: &str) -> Option<SocketAddr> {
    let mut octets = [0u8; 6];
    let mut fields = text.split(',');
    for octet in &mut octets {
        *octet = decimal(fields.next()?.trim())?;
    }
    if fields.next().is_some() {
        return None;
    }
    let [a, b, c, d, high, low] = octets;
    Some(SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([high, low])))
}

/// The first six comma-separated numbers anywhere in a 227 reply.
pub fn find_port(text: &str) -> Option<SocketAddr> {
    let is_number_char = |c: char| c.is_ascii_digit() || c == ',';
    text.split(|c: char| !is_number_char(c)).find_map(parse_port)
}

/// `|1|132.235.1.2|6275|` (RFC 2428).
pub fn eprt_text(address: SocketAddr) -> String {
    let family = if address.is_ipv4() { 1 } else { 2 };
    format!("|{family}|{}|{}|", address.ip(), address.port())
}

/// Reads the argument of EPRT.
pub fn parse_eprt(text: &str) -> Option<SocketAddr> {
    let delimiter = text.chars().next().filter(char::is_ascii)?;
    let fields: Vec<&str> = text.split(delimiter).collect();
    let [_, family, address, port, _] = fields[..] else { return None };
    let address: IpAddr = address.parse().ok()?;
    let is_right = matches!((family, address), ("1", IpAddr::V4(_)) | ("2", IpAddr::V6(_)));
    is_right.then_some(SocketAddr::new(address, decimal(port)?))
}

/// The port in a 229 reply: `(|||6446|)`.
pub fn find_epsv(text: &str) -> Option<u16> {
    let inner = text.split('(').nth(1)?.split(')').next()?;
    let fields: Vec<&str> = inner.split(inner.chars().next()?).collect();
    let [_, _, _, port, _] = fields[..] else { return None };
    decimal(port)
}

/// Digits only: no sign, no blank, no overflow.
pub fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_six_octets_and_nothing_else() {
        let address = parse_port("127,0,0,1,19,137").unwrap();
        assert_eq!(address, "127.0.0.1:5001".parse().unwrap());
        assert_eq!(port_text(Ipv4Addr::LOCALHOST, 5001), "127,0,0,1,19,137");
        for bad in ["", "1,2,3", "1,2,3,4,5", "1,2,3,4,5,6,7", "256,0,0,1,1,1", "1,2,3,4,5,-6", "a,b,c,d,e,f"] {
            assert_eq!(parse_port(bad), None, "{bad}");
        }
    }

    #[test]
    fn passive_replies_are_searched_for_their_numbers() {
        let expected = Some("10.8.0.2:4097".parse().unwrap());
        assert_eq!(find_port("Entering Passive Mode (10,8,0,2,16,1)"), expected);
        assert_eq!(find_port("=10,8,0,2,16,1"), expected);
        assert_eq!(find_port("Entering Passive Mode"), None);
        assert_eq!(find_epsv("Entering Extended Passive Mode (|||6446|)"), Some(6446));
        assert_eq!(find_epsv("no"), None);
        assert_eq!(find_epsv("()"), None);
    }

    #[test]
    fn eprt_reads_both_families() {
        for text in ["10.8.0.2:4097", "[::1]:4097"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(parse_eprt(&eprt_text(address)), Some(address));
        }
        assert_eq!(parse_eprt("|2|10.8.0.2|4097|"), None);
        assert_eq!(parse_eprt(""), None);
    }
}
