//! Resets for segments that belong to no connection (RFC 793 §3.4).

use scps_types::SeqNum;
use scps_wire::ipv4::{self, Ipv4};
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp};

/// The RST that answers `tcp` with `data_len` octets of data.
pub fn reset(ip: &Ipv4, tcp: &Tcp, data_len: usize, id: u16) -> Vec<u8> {
    let occupied = data_len as u32 + u32::from(tcp.flags.has(Flags::SYN)) + u32::from(tcp.flags.has(Flags::FIN));
    let (seq, ack, flags) = if tcp.flags.has(Flags::ACK) {
        (tcp.ack, SeqNum(0), Flags::RST)
    } else {
        (SeqNum(0), tcp.seq + occupied, Flags::RST.with(Flags::ACK))
    };
    let answer = Tcp {
        src_port: tcp.dst_port,
        dst_port: tcp.src_port,
        seq,
        ack,
        flags,
        window: 0,
        urgent: 0,
        options: Options::default(),
    };
    let mut packet = vec![0; ipv4::HEADER_LEN + answer.emit_len()];
    let (head, segment) = packet.split_at_mut(ipv4::HEADER_LEN);
    answer.emit(segment, ip.dst, ip.src, ip.protocol);
    Ipv4 {
        src: ip.dst,
        dst: ip.src,
        protocol: ip.protocol,
        tos: 0,
        ttl: ipv4::DEFAULT_TTL,
        id,
        dont_fragment: true,
        is_fragment: false,
        payload_len: segment.len() as u16,
    }
    .emit(head);
    packet
}
