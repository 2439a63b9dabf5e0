//! SP around whole packets between two programs, such as gateways: what the other end did not seal is not heard, and nobody on the
//! way reads or changes anything (scps-sp §6.1).

use crate::clock::Clock;
use crate::device::{delegate, packets_of, Device, DeviceStats, Take};
use crate::expiry::Expiry;
use crate::sequence::{SequenceRecord, Supply};
use crate::IoError;
use scps_sp::{Ends, KeyName, Outgoing, Services, Sp, Upper};
use scps_tp::{Carrier, SegmentBatch, Transmit, Trust};
use scps_wire::Instant;
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
    opening: Opening,
    refused: u64,
}

/// Where packets are opened.
#[derive(Debug, Default)]
struct Opening {
    one: Vec<u8>,
    /// Those that are handed on together.
    batch: Vec<u8>,
}

impl Opening {
    /// Opens what came as one, and hands it on as one, as far as it is of one length.
    fn open(
        &mut self,
        sp: &mut Sp,
        (now, ends): (Instant, Ends),
        octets: &[u8],
        batch: SegmentBatch,
        take: &mut dyn FnMut(&[u8], SegmentBatch),
    ) {
        let mut size = 0;
        for packet in packets_of(octets, batch) {
            let Ok((Upper::Ip, range)) = sp.open(now, ends, packet, &mut self.one) else { continue };
            if !self.batch.is_empty() && (range.len() > size || self.batch.len() % size != 0) {
                take(&self.batch, SegmentBatch::Packets(size));
                self.batch.clear();
            }
            if self.batch.is_empty() {
                size = range.len();
            }
            self.batch.extend_from_slice(&self.one[range]);
        }
        if !self.batch.is_empty() {
            take(&self.batch, SegmentBatch::Packets(size));
            self.batch.clear();
        }
    }
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
        let opening = Opening::default();
        let mut device = ProtectedDevice { inner, sp, ends, supply, expiry, clock, now, opening, refused: 0 };
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

    /// Seals so many packets of `len` octets each at the end of the outbox. Tells how many, and their octets; from the first on that may
    /// not leave they are gone.
    fn seal(&mut self, len: usize, packets: usize) -> (usize, usize) {
        let (ends, now) = (self.ends, self.now);
        let what = Outgoing { ends, upper: Upper::Ip, demanded: Services::NONE, pdu_len: len };
        let room = self.sp.room(now, what).inspect_err(|reason| self.sp.count_refused(*reason));
        let outbox = self.inner.outbox();
        let start = outbox.len() - packets * len;
        let (head, sealed_len) = room.map_or((0, 0), |room| (room.head, room.len() + len));
        outbox.resize(start + packets * sealed_len.max(len), 0);
        // From the last one on, so that none is written over one that is still to be moved.
        for i in (0..packets).rev().filter(|_| room.is_ok()) {
            let packet = start + i * len;
            outbox.copy_within(packet..packet + len, start + i * sealed_len + head);
        }
        let mut is_sealed = |packet: &mut [u8]| matches!(self.sp.seal(now, what, packet), Ok(true));
        let sealed = match room {
            Ok(_) => outbox[start..].chunks_exact_mut(sealed_len).map_while(|p| is_sealed(p).then_some(())).count(),
            Err(_) => 0,
        };
        outbox.truncate(start + sealed * sealed_len);
        self.refused += (packets - sealed) as u64;
        (sealed, sealed * sealed_len)
    }
}

impl<D: Device> Device for ProtectedDevice<D> {
    delegate!(self, self.inner; fd outbox is_full wait woke path_mtu);

    fn overhead(&self) -> u16 {
        let own = self.sp.room_max(self.ends, Services::NONE);
        self.inner.overhead().saturating_add(u16::try_from(own).unwrap_or(u16::MAX))
    }

    fn carrier(&self) -> Carrier {
        match self.inner.carrier() {
            Carrier::Several(max) => Carrier::Several(max),
            // What is sealed can neither be summed nor cut.
            Carrier::Cutting(_) | Carrier::Single => Carrier::Single,
        }
    }

    fn queue(&mut self, packet: Transmit) -> usize {
        let (sealed, len) = self.seal(packet.len / packet.packets.max(1), packet.packets);
        if sealed == 0 {
            return 0;
        }
        self.inner.queue(Transmit::several(packet.dst, len, sealed).by_way_of(packet.via))
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
        let (sp, opening, at) = (&mut self.sp, &mut self.opening, (self.now, self.ends.back()));
        self.inner.receive(&mut |octets, batch, _, from| {
            // What verifies is as it was sealed.
            opening.open(sp, at, octets, batch, &mut |octets, batch| take(octets, batch, Trust::Verified, from));
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
            .receive(&mut |octets, _, _, _| {
                came.push(octets.to_vec());
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
    fn what_leaves_at_once_comes_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let line = socket();
        let mut near = device(NEAR, FAR, &line, folder.path());
        let mut far = device(FAR, NEAR, &line, folder.path());
        let octets: Vec<u8> = (0..=255).cycle().take(3000).collect();
        near.outbox().extend_from_slice(&octets);
        let on_the_line = near.queue(Transmit::several(FAR, octets.len(), 3));
        assert_eq!(on_the_line, octets.len() + 3 * usize::from(near.overhead()));
        near.outbox().extend_from_slice(&octets[..700]);
        near.queue(Transmit::new(FAR, 700));
        assert!(near.flush().unwrap());
        let mut joined = Vec::new();
        let mut buffer = [0; 2000];
        for _ in 0..4 {
            let n = line.recv(&mut buffer).unwrap();
            joined.push(buffer[..n].to_vec());
        }
        // As the kernel joins them; the first once more in their midst, which is dropped.
        joined.insert(2, joined[0].clone());
        let (size, mut came) = (joined[0].len(), Vec::new());
        let at = (far.now, far.ends.back());
        far.opening.open(&mut far.sp, at, &joined.concat(), SegmentBatch::Packets(size), &mut |octets, batch| {
            came.push((octets.to_vec(), batch));
        });
        let wanted = [&octets[..], &octets[..700]].concat();
        assert_eq!(came, [(wanted, SegmentBatch::Packets(1000))]);
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
