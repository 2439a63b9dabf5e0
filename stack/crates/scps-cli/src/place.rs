//! Where a position of a JSON text is, by the keys that lead there; and addresses of the wrong family.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddrV6};

/// What is at a position.
pub struct Place<'a> {
    /// Keys and indexes from the outside in, such as `wan.transport.mtu`; empty for the whole.
    pub path: String,
    /// The text that ends last before it, as it is written.
    pub value: Option<&'a str>,
}

enum Level<'a> {
    Object(Option<&'a str>),
    Array(usize),
}

/// The place of whatever ends at `end`. The text need not be JSON all through.
pub fn of(text: &str, end: usize) -> Place<'_> {
    let (octets, mut at) = (text.as_bytes(), 0);
    let (mut levels, mut value) = (Vec::new(), None);
    while at < end.min(octets.len()) {
        match (octets[at], levels.last_mut()) {
            (b'"', _) => {
                let begin = at + 1;
                at = end_of_text(octets, begin);
                value = text.get(begin..at);
            }
            (b'{', _) => levels.push(Level::Object(None)),
            (b'[', _) => levels.push(Level::Array(0)),
            (b'}' | b']', _) => drop(levels.pop()),
            (b':', Some(Level::Object(key))) => *key = value,
            (b',', Some(Level::Object(key))) => *key = None,
            (b',', Some(Level::Array(index))) => *index += 1,
            _ => {}
        }
        at += 1;
    }
    let mut path = String::new();
    for level in &levels {
        match level {
            Level::Object(Some(key)) if path.is_empty() => path.push_str(key),
            Level::Object(Some(key)) => path.extend([".", key]),
            Level::Object(None) => {}
            Level::Array(index) => path.extend(["[", &index.to_string(), "]"]),
        }
    }
    Place { path, value }
}

/// Where what is at a path begins, or else what it is missing in; `None` if that is the whole.
pub fn begin(text: &str, path: &str) -> Option<usize> {
    let mut piece = text;
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        let Some(found) = part(piece, step) else { break };
        piece = found;
    }
    (piece.len() < text.len()).then(|| (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize))
}

/// An element of a list, or the value of a key.
fn part<'a>(whole: &'a str, step: &str) -> Option<&'a str> {
    if let Ok(index) = step.parse::<usize>() {
        let items: Vec<&'a RawValue> = serde_json::from_str(whole).ok()?;
        return items.get(index).map(|item| item.get());
    }
    let mut keys: BTreeMap<String, &'a RawValue> = serde_json::from_str(whole).ok()?;
    keys.remove(step).map(RawValue::get)
}

/// The quotation mark that ends a text, or the end of all.
fn end_of_text(octets: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while at < octets.len() && octets[at] != b'"' {
        at += 1 + usize::from(octets[at] == b'\\');
    }
    at.min(octets.len())
}

/// Whether this is an address of IPv6, with a port, with a prefix length, in brackets, or bare.
pub fn is_ipv6(text: &str) -> bool {
    let address = text.split_once('/').map_or(text, |(address, _)| address);
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    bare.parse::<Ipv6Addr>().is_ok() || text.parse::<SocketAddrV6>().is_ok()
}

/// Words for it.
pub fn no_ipv6(found: &str) -> String {
    format!("found \"{found}\", which is IPv6; expected an IPv4 address. scps does not support IPv6")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_its_keys() {
        let text = r#"{"a": {"b, {": "\"x"}, "c": [1, {"d": "y"}], "e": 5}"#;
        let path = |end: &str| of(text, text.find(end).unwrap() + end.len()).path;
        assert_eq!(
            [path("x\""), path("}, "), path("[1"), path("\"y\""), path("\"d\""), path("5")],
            ["a.b, {", "", "c[0]", "c[1].d", "c[1]", "e"]
        );
        assert_eq!(of(text, text.find("\"}").unwrap() + 1).value, Some("\\\"x"));
        assert_eq!((of("\"", 9).path, of("}]", 2).path), (String::new(), String::new()));
    }

    #[test]
    fn ipv6_is_known_in_every_form() {
        assert!(["::1", "[2001:db8::1]:7168", "[::1]", "2001:db8::/32"].iter().all(|text| is_ipv6(text)));
        assert!(!["10.0.0.1", "10.0.0.1:7168", "host:80", "", "10.0.0.0/24", "a/b"].iter().any(|text| is_ipv6(text)));
    }
}
