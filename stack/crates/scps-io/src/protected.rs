//! SP around whole packets between two programs, such as gateways: what the other end did not seal is not heard, and nobody on the
//! way reads or changes anything (scps-sp §6.1).

use crate::clock::Clock;
use crate::device::{delegate, packets_of, Device, DeviceStats, Take};
use crate::expiry::Expiry;
use crate::sequence::{SequenceRecord, Supply};
use crate::IoError;
use scps_sp::{Ends, KeyName, Outgoing, Services, Sp, Upper};
use scps_tp::{SegmentBatch, Transmit, Trust};
use scps_types::Instant;
use std::io;

/// A device whose packets are sealed by SP.
#[derive(Debug)]
pub struct ProtectedDevice<D> {
    inner: D,
    sp: Sp,
    /// From here to the other end.
    ends: Ends,
    supply: Supply,
    expiry: Expiry,
    clock: Clock,
    /// As of the last look at the clock: once for each batch.
    now: Instant,
    opened: Vec<u8>,
    refused: u64,
}

impl<D: Device> ProtectedDevice<D> {
    /// Puts SP around what `inner` carries between `ends`. `record` is of the keys that packets leave under; `key_ends` says when
    /// keys cease to be used, in seconds since 1970 by the system's clock.
    pub fn new(
        inner: D,
        sp: Sp,
        ends: Ends,
        record: SequenceRecord,
        key_ends: Vec<(KeyName, u64)>,
        clock: Clock,
    ) -> Result<Self, IoError> {
        let (supply, expiry, now) = (Supply::new(record), Expiry::new(key_ends), clock.now());
        let mut device =
            ProtectedDevice { inner, sp, ends, supply, expiry, clock, now, opened: Vec::new(), refused: 0 };
        device.look();
        device.supply.supply(&mut device.sp)?;
        Ok(device)
    }

    fn look(&mut self) {
        self.now = self.clock.now();
        if self.expiry.is_due(self.now) {
            self.expiry.apply(&mut self.sp, self.now, Clock::unix_ns());
        }
    }

    /// Seals the packet of `len` octets at the end of the outbox; its octets then. `None` if it may not leave; it is gone then.
    fn seal(&mut self, len: usize) -> Option<usize> {
        let (ends, now) = (self.ends, self.now);
        let what = Outgoing { ends, upper: Upper::Ip, demanded: Services::NONE, pdu_len: len };
        let room = self.sp.room(now, what).inspect_err(|reason| self.sp.count_refused(*reason));
        let outbox = self.inner.outbox();
        let start = outbox.len() - len;
        let sealed = room.and_then(|room| {
            outbox.resize(start + room.len() + len, 0);
            outbox.copy_within(start..start + len, start + room.head);
            self.sp.seal(now, what, &mut outbox[start..])
        });
        if matches!(sealed, Ok(true)) {
            return Some(outbox.len() - start);
        }
        outbox.truncate(start);
        self.refused += 1;
        None
    }
}

impl<D: Device> Device for ProtectedDevice<D> {
    delegate!(self, self.inner; fd outbox is_full);

    fn overhead(&self) -> u16 {
        let own = self.sp.room_max(self.ends, Services::NONE);
        self.inner.overhead().saturating_add(u16::try_from(own).unwrap_or(u16::MAX))
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        self.seal(packet.len).map_or(0, |len| self.inner.queue(Transmit::new(packet.dst, len)))
    }

    fn flush(&mut self) -> io::Result<bool> {
        // A batch is far less than what is left of a block when the next one is asked for.
        self.look();
        self.supply.note_replaced(&mut self.sp).map_err(io::Error::other)?;
        self.supply.supply(&mut self.sp).map_err(io::Error::other)?;
        self.inner.flush()
    }

    fn receive(&mut self, take: &mut Take<'_>) -> io::Result<bool> {
        self.look();
        let (sp, opened, ends, now) = (&mut self.sp, &mut self.opened, self.ends.back(), self.now);
        self.inner.receive(&mut |octets, batch, _| {
            let mut known = None;
            for packet in packets_of(octets, batch) {
                let Ok((Upper::Ip, range)) = sp.open(now, ends, packet, opened) else { continue };
                known = take(&opened[range.clone()], SegmentBatch::Packets(range.len()), Trust::Check).or(known);
            }
            known
        })
    }

    fn stats(&self) -> DeviceStats {
        let stats = self.inner.stats();
        // What does not verify came from nobody.
        DeviceStats { received: self.sp.counters().opened, refused: stats.refused + self.refused, ..stats }
    }

    fn protection(&mut self) -> Option<&mut Sp> {
        Some(&mut self.sp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{UdpAddressing, UdpConfig, UdpDevice};
    use scps_sp::{AeadKey, Association, SpConfig, Suite};
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
    use std::path::Path;

    const NEAR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
    const SECRET: &[u8] = b"a packet of whatever protocol";

    fn sp(own: Ipv4Addr, now: Instant) -> Sp {
        let associations = [(NEAR, FAR), (FAR, NEAR)].map(|(src, dst)| {
            let ends = Ends::v4(src, dst);
            Association::new(ends, 1, AeadKey::derive(Suite::Aes256Gcm, &[7; 32], &ends, 1, Services::ALL).unwrap())
        });
        let config = SpConfig { local: vec![own.into()], associations: associations.into(), ..SpConfig::default() };
        Sp::new(config, now).unwrap()
    }

    fn device(own: Ipv4Addr, peer: Ipv4Addr, remote: &UdpSocket, folder: &Path) -> ProtectedDevice<UdpDevice> {
        let at = |socket: &UdpSocket| -> SocketAddrV4 { socket.local_addr().unwrap().to_string().parse().unwrap() };
        let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let addressing = UdpAddressing::Peer;
        let config = UdpConfig { local, remote: Some(at(remote)), offload: false, addressing };
        let (clock, ends) = (Clock::new(), Ends::v4(own, peer));
        let key = folder.join(own.to_string());
        if !key.exists() {
            std::fs::write(&key, "").unwrap();
            SequenceRecord::create(&key).unwrap();
        }
        let mut record = SequenceRecord::default();
        record.add(KeyName { ends, key_id: 1 }, &key);
        let inner = UdpDevice::open(&config).unwrap();
        ProtectedDevice::new(inner, sp(own, clock.now()), ends, record, Vec::new(), clock).unwrap()
    }

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        socket
    }

    /// What leaves when these octets are sent.
    fn sealed(device: &mut ProtectedDevice<UdpDevice>, line: &UdpSocket, octets: &[u8]) -> Vec<u8> {
        device.outbox().extend_from_slice(octets);
        device.queue(Transmit::new(FAR, octets.len()));
        assert!(device.flush().unwrap());
        let mut buffer = [0; 2000];
        let n = line.recv(&mut buffer).unwrap();
        buffer[..n].to_vec()
    }

    /// What a device takes of a datagram.
    fn taken(device: &mut ProtectedDevice<UdpDevice>, line: &UdpSocket, datagram: &[u8]) -> Vec<Vec<u8>> {
        line.send_to(datagram, device.inner.local_addr().unwrap()).unwrap();
        let mut came = Vec::new();
        while !device
            .receive(&mut |octets, _, _| {
                came.push(octets.to_vec());
                None
            })
            .unwrap()
        {}
        came
    }

    #[test]
    fn what_the_other_end_sealed_is_taken_once_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let line = socket();
        let (mut near, mut far) = (device(NEAR, FAR, &line, folder.path()), device(FAR, NEAR, &line, folder.path()));
        let datagram = sealed(&mut near, &line, SECRET);
        assert!(!datagram.windows(8).any(|octets| SECRET.windows(8).any(|secret| octets == secret)));
        assert_eq!(datagram.len() + 28, SECRET.len() + usize::from(near.overhead()));
        let mut changed = datagram.clone();
        changed[20] ^= 1;
        // What is changed, what is not sealed, what it sealed itself; then the packet, and the packet again.
        let own = sealed(&mut far, &line, SECRET);
        for refused in [&changed[..], SECRET, &own, &[]] {
            assert!(taken(&mut far, &line, refused).is_empty());
        }
        assert_eq!(taken(&mut far, &line, &datagram), [SECRET]);
        assert!(taken(&mut far, &line, &datagram).is_empty());
        assert_eq!(far.protection().unwrap().counters().opened, 1);
    }

    #[test]
    fn an_end_that_starts_again_uses_other_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let line = socket();
        let mut far = device(FAR, NEAR, &line, folder.path());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let mut near = device(NEAR, FAR, &line, folder.path());
            for _ in 0..3 {
                let datagram = sealed(&mut near, &line, SECRET);
                // Octets 1 to 8 are key id and number.
                assert!(seen.insert(datagram[1..9].to_vec()), "{:?}", &datagram[..9]);
                assert_eq!(taken(&mut far, &line, &datagram), [SECRET]);
            }
        }
    }

    #[test]
    fn nothing_leaves_without_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let line = socket();
        let mut near = device(NEAR, FAR, &line, folder.path());
        near.sp = sp(NEAR, near.now);
        near.outbox().extend_from_slice(SECRET);
        assert_eq!(near.queue(Transmit::new(FAR, SECRET.len())), 0);
        assert!(near.outbox().is_empty() && near.stats().refused == 1);
    }
}
