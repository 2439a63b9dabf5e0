//! Compressed SCPS-TP headers, IP protocol 105, the "new" format (scps-tp §3.3).
//!
//! This file knows the layout; which fields a connection leaves out and what absent ones mean is `scps-tp`'s concern.

use crate::checksum::Checksum;
use crate::options::MAX_LEN;
use crate::protocol::{SCPS_COMPRESSED, SCPS_STANDALONE, TCP};
use crate::SeqNum;
use crate::{be16, be32, Malformed};
use std::net::Ipv4Addr;

// Control octet 1.
const MORE: u8 = 0x80;
const TS1: u8 = 0x40;
const TS2: u8 = 0x20;
const RB: u8 = 0x10;
const PUSH: u8 = 0x04;
const S: u8 = 0x02;
const A: u8 = 0x01;
// Control octet 2.
const OPTS: u8 = 0x80;
const PAD: u8 = 0x40;
const URG: u8 = 0x20;
const ACKR: u8 = 0x10;
const RST: u8 = 0x04;
const FIN: u8 = 0x01;

/// A compressed header.
///
/// ```text
/// | id | ctl1 | [ctl2] | [urgent 2] | [window 2, ack 4] | [seq 4] | [tsval 4] | [tsecr 4] |
/// | [n, options n] | [pad] | checksum 2 | data ...
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed<'a> {
    /// Identifier the sender announced in its SYN.
    pub connection_id: u8,
    /// Urgent pointer, with the URG flag.
    pub urgent: Option<u16>,
    /// Window (unscaled) and acknowledgement number.
    pub window_ack: Option<(u16, SeqNum)>,
    /// Sequence number.
    pub seq: Option<SeqNum>,
    /// Timestamp value.
    pub ts_val: Option<u32>,
    /// Timestamp echo.
    pub ts_ecr: Option<u32>,
    /// The segment ends a record.
    pub record_boundary: bool,
    /// PSH flag.
    pub push: bool,
    /// RST flag; the ACKR bit follows it (scps-tp §3.6).
    pub rst: bool,
    /// FIN flag.
    pub fin: bool,
    /// Other options, kind/length/value without padding.
    pub options: &'a [u8],
}

impl<'a> Compressed<'a> {
    /// A header with every optional field absent.
    pub fn new(connection_id: u8) -> Self {
        Compressed {
            connection_id,
            urgent: None,
            window_ack: None,
            seq: None,
            ts_val: None,
            ts_ecr: None,
            record_boundary: false,
            push: false,
            rst: false,
            fin: false,
            options: &[],
        }
    }

    /// Reads a packet and returns its header and data. The checksum is accepted with pseudo-header protocol 6, 105 or
    /// 106 (scps-tp §3.5).
    pub fn parse(packet: &'a [u8], src: Ipv4Addr, dst: Ipv4Addr) -> Result<(Self, &'a [u8]), Malformed> {
        let (header, data) = Self::parse_unverified(packet)?;
        let checksum_at = packet.len() - data.len() - 2;
        let len = u16::try_from(packet.len()).map_err(|_| Malformed::BadLength)?;
        let mut body = Checksum::pseudo_header(src, dst, 0, len);
        body.add(&packet[..checksum_at]);
        // Headers are even (scps-tp §3.4); a peer that sends an odd one is summed as if each part were aligned.
        body.add(&packet[checksum_at..checksum_at + 2]);
        body.add(data);
        let fits = |p: &u8| {
            let mut sum = body;
            sum.add_u16(u16::from(*p));
            sum.verifies()
        };
        if [TCP, SCPS_COMPRESSED, SCPS_STANDALONE].iter().any(fits) {
            Ok((header, data))
        } else {
            Err(Malformed::BadChecksum)
        }
    }

    /// Reads a packet whose checksum cannot be tested: a capture has only its beginning.
    pub fn parse_unverified(packet: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let mut reader = Reader { packet, at: 0 };
        let mut header = Compressed::new(reader.octet()?);
        let ctl1 = reader.octet()?;
        let ctl2 = if ctl1 & MORE != 0 { reader.octet()? } else { 0 };
        if ctl2 & URG != 0 {
            header.urgent = Some(be16(reader.take(2)?, 0));
        }
        if ctl1 & A != 0 {
            let f = reader.take(6)?;
            header.window_ack = Some((be16(f, 0), SeqNum(be32(f, 2))));
        }
        if ctl1 & S != 0 {
            header.seq = Some(SeqNum(be32(reader.take(4)?, 0)));
        }
        if ctl1 & TS1 != 0 {
            header.ts_val = Some(be32(reader.take(4)?, 0));
        }
        if ctl1 & TS2 != 0 {
            header.ts_ecr = Some(be32(reader.take(4)?, 0));
        }
        if ctl2 & OPTS != 0 {
            let n = usize::from(reader.octet()?);
            if n > MAX_LEN {
                return Err(Malformed::OptionsTooLong);
            }
            header.options = reader.take(n)?;
        }
        if ctl2 & PAD != 0 {
            reader.octet()?;
        }
        header.record_boundary = ctl1 & RB != 0;
        header.push = ctl1 & PUSH != 0;
        header.rst = ctl2 & RST != 0;
        header.fin = ctl2 & FIN != 0;
        if header.rebuilt_options_len() > MAX_LEN {
            return Err(Malformed::OptionsTooLong);
        }
        reader.take(2)?;
        Ok((header, &packet[reader.at..]))
    }

    /// Octets of options the decompressed header needs, padding included.
    pub fn rebuilt_options_len(&self) -> usize {
        let ts = if self.ts_val.is_some() || self.ts_ecr.is_some() { 10 } else { 0 };
        let rb = if self.record_boundary { 2 } else { 0 };
        (ts + rb + self.options.len()).next_multiple_of(4)
    }

    fn controls(&self) -> (u8, Option<u8>) {
        let bit = |on: bool, mask: u8| if on { mask } else { 0 };
        let mut ctl1 = bit(self.ts_val.is_some(), TS1)
            | bit(self.ts_ecr.is_some(), TS2)
            | bit(self.record_boundary, RB)
            | bit(self.push, PUSH)
            | bit(self.seq.is_some(), S)
            | bit(self.window_ack.is_some(), A);
        let mut ctl2 = bit(!self.options.is_empty(), OPTS)
            | bit(self.urgent.is_some(), URG)
            // scps-tp §3.6: the reference sets ACKR exactly with RST.
            | bit(self.rst, RST | ACKR)
            | bit(self.fin, FIN);
        let mut more = ctl2 != 0;
        // scps-tp §3.4: the header is made even, by PAD when octet 2 is there anyway, else by adding octet 2.
        if (self.fields_len() + usize::from(more)) % 2 != 0 {
            if more {
                ctl2 |= PAD;
            } else {
                more = true;
            }
        }
        if more {
            ctl1 |= MORE;
        }
        (ctl1, more.then_some(ctl2))
    }

    /// Octets of everything but control octet 2 and the pad.
    fn fields_len(&self) -> usize {
        let opt = |present: bool, len: usize| if present { len } else { 0 };
        4 + opt(self.urgent.is_some(), 2)
            + opt(self.window_ack.is_some(), 6)
            + opt(self.seq.is_some(), 4)
            + opt(self.ts_val.is_some(), 4)
            + opt(self.ts_ecr.is_some(), 4)
            + opt(!self.options.is_empty(), 1 + self.options.len())
    }

    /// Octets of the header, checksum included; always even.
    pub fn emit_len(&self) -> usize {
        (self.fields_len() + usize::from(self.controls().1.is_some())).next_multiple_of(2)
    }

    /// Writes the header into the front of `packet`, whose remaining octets are the data, and sets the checksum with
    /// pseudo-header protocol `protocol`.
    ///
    /// # Panics
    /// If `packet` is shorter than [`Compressed::emit_len`]: the caller sized it.
    pub fn emit(&self, packet: &mut [u8], src: Ipv4Addr, dst: Ipv4Addr, protocol: u8) {
        let len = packet.len() as u16;
        let mut at = 0;
        let mut put = |packet: &mut [u8], bytes: &[u8]| {
            packet[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let (ctl1, ctl2) = self.controls();
        put(packet, &[self.connection_id, ctl1]);
        if let Some(ctl2) = ctl2 {
            put(packet, &[ctl2]);
        }
        if let Some(urgent) = self.urgent {
            put(packet, &urgent.to_be_bytes());
        }
        if let Some((window, ack)) = self.window_ack {
            put(packet, &window.to_be_bytes());
            put(packet, &ack.0.to_be_bytes());
        }
        for field in [self.seq.map(|s| s.0), self.ts_val, self.ts_ecr].into_iter().flatten() {
            put(packet, &field.to_be_bytes());
        }
        if !self.options.is_empty() {
            put(packet, &[self.options.len() as u8]);
            put(packet, self.options);
        }
        if ctl2.is_some_and(|c| c & PAD != 0) {
            put(packet, &[0]);
        }
        put(packet, &[0, 0]);
        let mut sum = Checksum::pseudo_header(src, dst, protocol, len);
        sum.add(packet);
        packet[at - 2..at].copy_from_slice(&sum.finish().to_be_bytes());
    }
}

struct Reader<'a> {
    packet: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let piece = self.packet.get(self.at..self.at + n).ok_or(Malformed::Truncated)?;
        self.at += n;
        Ok(piece)
    }

    fn octet(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SRC: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn sizes_are_those_worked_out_in_the_notes() {
        // scps-tp §3.4: 8; 10; 18; 26; 24.
        let mut h = Compressed::new(1);
        h.seq = Some(SeqNum(1));
        assert_eq!(h.emit_len(), 8);
        let mut h = Compressed::new(1);
        h.window_ack = Some((1, SeqNum(1)));
        assert_eq!(h.emit_len(), 10);
        (h.ts_val, h.ts_ecr) = (Some(1), Some(2));
        assert_eq!(h.emit_len(), 18);
        h.options = &[21, 6, 0, 0, 0, 1];
        assert_eq!(h.emit_len(), 26);
        h.options = &[];
        h.seq = Some(SeqNum(1));
        h.fin = true;
        assert_eq!(h.emit_len(), 24);
    }

    #[test]
    fn oversized_options_are_refused() {
        let mut p = vec![1, MORE, OPTS, 41];
        p.extend([1; 60]);
        assert_eq!(Compressed::parse(&p, SRC, DST), Err(Malformed::OptionsTooLong));
        assert_eq!(Compressed::parse(&[1, MORE, OPTS, 9, 1, 1], SRC, DST), Err(Malformed::Truncated));
    }

    #[test]
    fn checksums_with_protocol_6_105_and_106_are_accepted() {
        for protocol in [6, 105, 106] {
            let h = Compressed::new(9);
            let mut p = vec![0; h.emit_len()];
            h.emit(&mut p, SRC, DST, protocol);
            assert!(Compressed::parse(&p, SRC, DST).is_ok());
        }
        let h = Compressed::new(9);
        let mut p = vec![0; h.emit_len()];
        h.emit(&mut p, SRC, DST, 17);
        assert_eq!(Compressed::parse(&p, SRC, DST), Err(Malformed::BadChecksum));
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Compressed::parse(&bytes, SRC, DST);
        }

        #[test]
        fn emit_then_parse_is_identity(
            id in any::<u8>(), urgent in any::<Option<u16>>(), wa in any::<Option<(u16, u32)>>(), seq in any::<Option<u32>>(),
            ts in any::<(Option<u32>, Option<u32>)>(), flags in any::<(bool, bool, bool, bool)>(),
            options in proptest::collection::vec(2u8..=255, 0..24), data in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let h = Compressed {
                connection_id: id, urgent, window_ack: wa.map(|(w, a)| (w, SeqNum(a))), seq: seq.map(SeqNum),
                ts_val: ts.0, ts_ecr: ts.1, record_boundary: flags.0, push: flags.1, rst: flags.2, fin: flags.3, options: &options,
            };
            let n = h.emit_len();
            prop_assert_eq!(n % 2, 0);
            let mut p = vec![0; n];
            p.extend(&data);
            h.emit(&mut p, SRC, DST, 6);
            prop_assert_eq!(Compressed::parse(&p, SRC, DST).unwrap(), (h, &data[..]));
        }
    }
}
