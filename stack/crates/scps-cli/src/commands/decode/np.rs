//! Datagrams of NP with SCMP, and the clear part of SP, as `scps decode` names them.

use super::{describe_compressed, describe_tcp, Bad};
use scps_np::scmp::{BadMessage, Message};
use scps_np::{tpid, Addresses, Datagram, Dialect, Header, NpProfile};
use scps_sp::{ClearHeader, Head, Upper};
use scps_wire::compressed::Compressed;
use scps_wire::tcp::{Tcp, Verify};
use scps_wire::udp::Udp;
use scps_wire::Malformed;
use std::net::Ipv4Addr;

fn dialect(profile: NpProfile) -> Dialect {
    Dialect { profile, ..Dialect::default() }
}

/// A datagram. Which IPv4 addresses its ends have is in their tables, and so transport checksums cannot be tested.
pub(super) fn describe(frame: &[u8], profile: NpProfile) -> Result<String, Bad> {
    let dialect = dialect(profile);
    let datagram = Datagram::parse(frame, dialect)?;
    let (header, payload) = (&datagram.header, datagram.payload());
    let unknown = Ipv4Addr::UNSPECIFIED;
    let upper = match header.tpid {
        tpid::SCPS_TP => {
            let (tcp, data) = Tcp::parse(payload, unknown, unknown, Verify::Trusted)?;
            format!("{} > {} {}", tcp.src_port, tcp.dst_port, describe_tcp(&tcp, data))
        }
        tpid::SCPS_COMPRESSED => {
            let (compressed, data) = Compressed::parse_unverified(payload)?;
            describe_compressed(&compressed, data)
        }
        tpid::UDP => {
            let (udp, inner) = Udp::parse(payload)?;
            format!("{} > {} udp {} bytes", udp.src_port, udp.dst_port, inner.len())
        }
        tpid::SCPS_SP => describe_sp(payload, payload.len())?,
        tpid::SCMP => describe_scmp(payload, dialect)?,
        _ => format!("{} bytes", payload.len()),
    };
    Ok(format!("{} {upper}", describe_header(header)))
}

/// What there is of a datagram of which a capture has only the beginning.
pub(super) fn describe_cut(there: &[u8], profile: NpProfile) -> String {
    let Ok((header, data)) = Datagram::parse_quote(there, dialect(profile)) else {
        return "np, the header is cut".to_owned();
    };
    let whole = usize::from(u16::from_be_bytes([there[0] & 0x1f, there[1]]));
    let len = whole.saturating_sub(there.len() - data.len());
    let upper = match header.tpid {
        tpid::SCPS_SP => describe_sp(data, len).ok(),
        _ => None,
    };
    let upper = upper.unwrap_or_else(|| format!("{len} bytes, cut"));
    format!("{} {upper}", describe_header(&header))
}

/// What is clear in a PDU of SP of `len` octets, laid out as SP-AEAD-1 has it; its flags and data are protected.
pub(super) fn describe_sp(there: &[u8], len: usize) -> Result<String, Malformed> {
    let (head, _) = Head::parse(there).ok_or(Malformed::Truncated)?;
    let protected = len.checked_sub(Head::LEN + Head::TAG_LEN).ok_or(Malformed::Truncated)?;
    let upper = upper_of(head.clear);
    let Head { clear, key_id, sequence } = head;
    Ok(format!("sp {upper} clear {clear:#04x} key {key_id} seq {sequence} protected {protected}"))
}

/// What the clear octet announces. Which variant wrote it is a setting of the association: if they differ, it is each.
fn upper_of(octet: u8) -> String {
    let mut names: Vec<&str> = Vec::new();
    for variant in [ClearHeader::Full8, ClearHeader::Nibble, ClearHeader::LowNibble] {
        let name = variant.parse(octet).map(|upper| match upper {
            Upper::Tp => "tp",
            Upper::CompressedTp => "compressed",
            Upper::Udp => "udp",
            Upper::Ip => "ip",
        });
        names.extend(name.filter(|name| !names.contains(name)));
    }
    if names.is_empty() {
        return "of an unknown protocol".to_owned();
    }
    format!("of {}", names.join(" or "))
}

fn describe_header(header: &Header) -> String {
    let ends = match header.addresses {
        Addresses::Path(path) => format!("path {path}"),
        addresses => {
            let end = |address: Option<scps_np::Address>| address.map_or("?".to_owned(), |a| a.to_string());
            format!("{} > {}", end(addresses.src()), end(addresses.dst()))
        }
    };
    let precedence = header.qos.map_or(String::new(), |qos| format!(" precedence {}", qos.precedence.level()));
    let hops = header.hop_count.map_or(String::new(), |count| format!(" hops {count}"));
    format!("{ends} np={}{precedence}{hops}", header.tpid)
}

fn describe_scmp(payload: &[u8], dialect: Dialect) -> Result<String, Bad> {
    let message = match Message::parse(payload, dialect) {
        Ok(message) => message,
        Err(BadMessage::Unknown) => return Ok(format!("scmp type {} code {}", payload[0], payload[1])),
        Err(error) => return Err(error.into()),
    };
    let (name, quote) = match message {
        Message::EchoReply(echo) => (format!("echo reply id {} seq {}", echo.id, echo.seq), None),
        Message::EchoRequest(echo) => (format!("echo request id {} seq {}", echo.id, echo.seq), None),
        Message::Unreachable(code, quote) => (format!("unreachable {code:?}"), Some(quote)),
        Message::TooBig { mtu, quote } => (format!("too big, mtu {mtu}"), Some(quote)),
        Message::SourceQuench(quote) => ("source quench".to_owned(), Some(quote)),
        Message::Redirect { next_hop, quote, .. } => (format!("redirect to {next_hop}"), Some(quote)),
        Message::LinkAvailable(_) => ("link available".to_owned(), None),
        Message::TimeExceeded(quote) => ("time exceeded".to_owned(), Some(quote)),
        Message::ParameterProblem { pointer, quote } => (format!("parameter problem at {pointer}"), Some(quote)),
        Message::Corruption => ("corruption experienced".to_owned(), None),
    };
    let quote = quote.and_then(|quote| Datagram::parse_quote(quote, dialect).ok());
    let of = quote.map_or(String::new(), |(header, _)| format!(" of [ {} ]", describe_header(&header)));
    Ok(format!("scmp {name}{of}"))
}
