//! Packets that are forwarded as they came: what the kernel left undone in them, because a device could do it, is done here.
//!
//! An interface with offload hands over packets whose transport checksum was never computed, and TCP segments joined to one packet.

use scps_tp::{SegmentBatch, Trust};
use scps_wire::checksum::Checksum;
use scps_wire::protocol;
use std::net::Ipv4Addr;

const IP_LEN: usize = 20;
const TCP_LEN: usize = 20;
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Calls `take` with each packet that `packet` stands for, as it is on a wire. What is no IPv4 is none.
pub(crate) fn whole(packet: &[u8], batch: SegmentBatch, trust: Trust, mut take: impl FnMut(&[u8])) {
    if packet.len() < IP_LEN || packet[0] >> 4 != 4 {
        return;
    }
    let header = usize::from(packet[0] & 0x0f) * 4;
    let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
    match (batch, trust) {
        (SegmentBatch::Joined(size), _) if packet[9] == protocol::TCP => cut(packet, header, size, take),
        (_, Trust::Unsummed) if !is_fragment => {
            let mut packet = packet.to_vec();
            sum_transport(&mut packet, header);
            take(&packet);
        }
        _ => take(packet),
    }
}

/// Cuts a joined packet into segments with `size` octets of data.
fn cut(packet: &[u8], ip: usize, size: usize, mut take: impl FnMut(&[u8])) {
    let Some(offset) = packet.get(ip + 12) else { return };
    let headers = ip + usize::from(offset >> 4) * 4;
    if headers < ip + TCP_LEN || headers > packet.len() {
        return;
    }
    let (head, data) = packet.split_at(headers);
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (first_seq, first_id) = (word(ip + 4), u16::from_be_bytes([head[4], head[5]]));
    let size = size.max(1);
    let count = data.len().div_ceil(size).max(1);
    for i in 0..count {
        let part = &data[(i * size).min(data.len())..((i + 1) * size).min(data.len())];
        let mut segment = [head, part].concat();
        let total = segment.len() as u16;
        segment[2..4].copy_from_slice(&total.to_be_bytes());
        segment[4..6].copy_from_slice(&first_id.wrapping_add(i as u16).to_be_bytes());
        segment[ip + 4..ip + 8].copy_from_slice(&first_seq.wrapping_add((i * size) as u32).to_be_bytes());
        if i + 1 < count {
            segment[ip + 13] &= !FIN_PSH;
        }
        // RFC 3168 §6.1.2: told once.
        if i > 0 {
            segment[ip + 13] &= !CWR;
        }
        segment[10..12].fill(0);
        let mut sum = Checksum::new();
        sum.add(&segment[..ip]);
        let sum = sum.finish().to_be_bytes();
        segment[10..12].copy_from_slice(&sum);
        sum_transport(&mut segment, ip);
        take(&segment);
    }
}

/// Writes the checksum of TCP or UDP anew.
fn sum_transport(packet: &mut [u8], header: usize) {
    let at = header
        + match packet[9] {
            protocol::TCP => 16,
            protocol::UDP => 6,
            _ => return,
        };
    if packet.len() < at + 2 {
        return;
    }
    let address = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    let mut sum = Checksum::pseudo_header(address(12), address(16), packet[9], (packet.len() - header) as u16);
    packet[at..at + 2].fill(0);
    sum.add(&packet[header..]);
    let sum = match (sum.finish(), packet[9]) {
        // RFC 768: zero would say that there is none.
        (0, protocol::UDP) => 0xffff,
        (sum, _) => sum,
    };
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_wire::ipv4::Ipv4;
    use scps_wire::options::Options;
    use scps_wire::tcp::{Flags, Tcp, Verify};
    use scps_wire::SeqNum;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let header = Ipv4 {
            src: FROM,
            dst: TO,
            protocol,
            tos: 0,
            ttl: 9,
            id: 65_535,
            dont_fragment: true,
            is_fragment: false,
            payload_len: payload.len() as u16,
        };
        let mut octets = vec![0; IP_LEN];
        header.emit(&mut octets);
        octets.extend_from_slice(payload);
        octets
    }

    fn all(packet: &[u8], batch: SegmentBatch, trust: Trust) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        whole(packet, batch, trust, |packet| found.push(packet.to_vec()));
        found
    }

    #[test]
    fn a_joined_packet_is_cut_into_segments_whose_checksums_hold() {
        let data: Vec<u8> = (0..2500u32).map(|i| i as u8).collect();
        let tcp = Tcp {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(u32::MAX - 999),
            ack: SeqNum(5),
            flags: Flags::ACK.with(Flags::FIN),
            window: 7,
            urgent: 0,
            options: Options::default(),
        };
        let mut segment = vec![0; TCP_LEN];
        tcp.emit(&mut segment, FROM, TO, 6);
        segment.extend_from_slice(&data);
        let parts = all(&packet(6, &segment), SegmentBatch::Joined(1000), Trust::Unsummed);
        let mut joined = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            let (ip, payload) = Ipv4::parse(part).unwrap();
            let (tcp, data) = Tcp::parse(payload, FROM, TO, Verify::Checksum(&[6])).unwrap();
            assert_eq!(ip.id, 65_535u16.wrapping_add(i as u16));
            assert_eq!(tcp.seq, SeqNum(u32::MAX - 999) + (i * 1000) as u32);
            assert_eq!(tcp.flags.has(Flags::FIN), i == 2);
            joined.extend_from_slice(data);
        }
        assert_eq!((parts.len(), joined), (3, data));
    }

    #[test]
    fn a_checksum_that_was_left_to_the_device_is_computed() {
        let udp = [0, 1, 0, 2, 0, 11, 0xab, 0xcd, 1, 2, 3];
        let done = all(&packet(17, &udp), SegmentBatch::Packets(31), Trust::Unsummed).remove(0);
        let mut sum = Checksum::pseudo_header(FROM, TO, 17, 11);
        sum.add(&done[IP_LEN..]);
        assert!(sum.verifies());
        let as_it_came = packet(17, &udp);
        assert_eq!(all(&as_it_came, SegmentBatch::Packets(31), Trust::Check), [as_it_came]);
    }

    #[test]
    fn what_is_too_short_or_no_ipv4_goes_nowhere() {
        assert!(all(&[0x60; 40], SegmentBatch::Packets(40), Trust::Check).is_empty());
        assert!(all(&[0x45; 19], SegmentBatch::Packets(19), Trust::Check).is_empty());
        for len in IP_LEN..44 {
            let octets = vec![0x45; len];
            let _ = all(&octets, SegmentBatch::Joined(3), Trust::Unsummed);
            let mut tcp = packet(6, &vec![0xff; len - IP_LEN]);
            assert!(all(&tcp, SegmentBatch::Joined(0), Trust::Unsummed).len() <= 1);
            tcp[9] = 17;
            let _ = all(&tcp, SegmentBatch::Packets(len), Trust::Unsummed);
        }
    }
}
