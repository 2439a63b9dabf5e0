//! NP between its nodes (scps-np §4.4): which node is next, and the IP header that brings a datagram there.

use crate::device::{delegate, packets_of, v4, Device, Take};
use scps_np::Tables;
use scps_tp::{SegmentBatch, Transmit, Trust};
use scps_wire::ipv4::{self, Ipv4};
use std::io;
use std::net::Ipv4Addr;

/// Puts an IP header before each packet, and takes it off those that come for this node. The packet's destination is that of
/// the header.
#[derive(Debug)]
pub struct IpEncapsulation<D> {
    inner: D,
    own: Ipv4Addr,
    protocol: u8,
    last_id: u16,
}

impl<D: Device> IpEncapsulation<D> {
    /// Packets from `own`, with this protocol number.
    pub fn new(inner: D, own: Ipv4Addr, protocol: u8) -> Self {
        IpEncapsulation { inner, own, protocol, last_id: 0 }
    }
}

impl<D: Device> Device for IpEncapsulation<D> {
    delegate!(self, self.inner; fd outbox is_full flush wait woke stats);

    fn overhead(&self) -> u16 {
        self.inner.overhead() + ipv4::HEADER_LEN as u16
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        let outbox = self.inner.outbox();
        let start = outbox.len() - packet.len;
        let Some(dst) = v4(packet.dst) else {
            outbox.truncate(start);
            return 0;
        };
        self.last_id = self.last_id.wrapping_add(1);
        let header = Ipv4 {
            src: self.own,
            dst,
            protocol: self.protocol,
            tos: 0,
            ttl: ipv4::DEFAULT_TTL,
            id: self.last_id,
            // A datagram is never cut; neither is what carries it.
            dont_fragment: true,
            is_fragment: false,
            payload_len: packet.len as u16,
        };
        outbox.resize(outbox.len() + ipv4::HEADER_LEN, 0);
        outbox.copy_within(start..start + packet.len, start + ipv4::HEADER_LEN);
        header.emit(&mut outbox[start..]);
        self.inner.queue(Transmit::new(dst, packet.len + ipv4::HEADER_LEN).by_way_of(packet.via))
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        let (own, protocol) = (self.own, self.protocol);
        self.inner.receive(&mut |octets, batch, _, from| {
            for packet in packets_of(octets, batch) {
                let Ok((header, datagram)) = Ipv4::parse(packet) else { continue };
                if header.dst == own && header.protocol == protocol && !header.is_fragment {
                    take(datagram, SegmentBatch::Packets(datagram.len()), Trust::Check, from);
                }
            }
        })
    }
}

/// Sends each datagram of an end system to the node that is next on its way.
#[derive(Debug)]
pub struct NextHops<D> {
    inner: D,
    tables: Tables,
}

impl<D: Device> NextHops<D> {
    /// Next hops of `tables`; a destination without one is itself the next.
    pub fn new(inner: D, tables: Tables) -> Self {
        NextHops { inner, tables }
    }
}

impl<D: Device> Device for NextHops<D> {
    delegate!(self, self.inner; overhead fd outbox is_full flush receive wait woke stats);

    fn queue(&mut self, packet: Transmit) -> usize {
        let hop = v4(packet.dst).and_then(|dst| self.tables.next_hop(self.tables.np_of(dst)));
        self.inner.queue(Transmit::new(hop.map_or(packet.dst, Into::into), packet.len).by_way_of(packet.via))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDevice;
    use scps_np::Address;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn send(device: &mut impl Device, dst: Ipv4Addr, octets: &[u8]) {
        device.outbox().extend_from_slice(octets);
        device.queue(Transmit::new(dst, octets.len()));
        assert!(device.flush().unwrap());
    }

    fn received(device: &mut impl Device) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        device
            .receive(&mut |octets, _, _, _| {
                found.push(octets.to_vec());
            })
            .unwrap();
        found
    }

    #[test]
    fn a_datagram_gets_a_header_and_loses_it_at_the_other_end() {
        let mut sender = IpEncapsulation::new(MemoryDevice::default(), OWN, 118);
        send(&mut sender, PEER, b"one");
        send(&mut sender, PEER, b"another");
        assert_eq!(sender.overhead(), 20);
        let sent = sender.inner.sent.clone();
        let (header, datagram) = Ipv4::parse(&sent[1].1).unwrap();
        assert_eq!((header.src, header.dst, header.protocol, datagram), (OWN, PEER, 118, &b"another"[..]));
        let mut receiver = IpEncapsulation::new(MemoryDevice::default(), PEER, 118);
        receiver.inner.incoming = sent.into_iter().map(|(_, packet)| packet).collect();
        assert_eq!(received(&mut receiver), [b"one".to_vec(), b"another".to_vec()]);
    }

    #[test]
    fn what_is_of_another_protocol_or_for_another_node_is_left() {
        for (own, protocol) in [(OWN, 118), (PEER, 105)] {
            let mut sender = IpEncapsulation::new(MemoryDevice::default(), ROUTER, 118);
            send(&mut sender, PEER, b"one");
            let mut receiver = IpEncapsulation::new(MemoryDevice::default(), own, protocol);
            receiver.inner.incoming = vec![sender.inner.sent[0].1.clone(), b"no packet".to_vec(), Vec::new()];
            assert!(received(&mut receiver).is_empty());
        }
    }

    #[test]
    fn datagrams_go_to_the_next_hop_and_without_one_to_their_destination() {
        let mut tables = Tables::of(OWN);
        tables.add_host(PEER, Address::Basic(0x7292)).unwrap();
        tables.add_next_hop(Address::Basic(0x7292), ROUTER).unwrap();
        let mut device = NextHops::new(MemoryDevice::default(), tables);
        send(&mut device, PEER, b"far");
        send(&mut device, ROUTER, b"near");
        let to: Vec<_> = device.inner.sent.iter().map(|(dst, _)| *dst).collect();
        assert_eq!(to, [ROUTER, ROUTER]);
    }
}
