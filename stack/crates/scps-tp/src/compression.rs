//! Header compression between endpoints: which fields to leave out, and what absent ones mean (scps-tp §3).

use scps_wire::compressed::Compressed;
use scps_wire::options::{Options, MAX_LEN};
use scps_wire::scps::{KIND_CORRUPTION_EXPERIENCED, KIND_SNACK};
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::SeqNum;

/// Octets of options other than timestamps and record boundary, as they travel in a compressed header.
pub struct OptionBytes {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl OptionBytes {
    /// The options of `options` that the control bits do not cover, unpadded (scps-tp §3.3).
    pub fn of(options: &Options) -> Self {
        let mut out = OptionBytes { bytes: [0; MAX_LEN], len: 0 };
        if let Some(s) = &options.snack {
            out.put(&[KIND_SNACK, s.option_len() as u8]);
            out.put(&s.offset.to_be_bytes());
            out.put(&s.size.to_be_bytes());
            out.put(s.vector());
        }
        if options.corruption_experienced {
            out.put(&[KIND_CORRUPTION_EXPERIENCED, 2]);
        }
        if !options.sack.is_empty() {
            let blocks = options.sack.as_slice();
            out.put(&[5, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                out.put(&left.0.to_be_bytes());
                out.put(&right.0.to_be_bytes());
            }
        }
        out
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// The octets.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The compressed form of a segment. `with_ack` adds window and acknowledgement to a data segment, which is done until
/// the peer is known to have had one (scps-tp §3.7).
pub fn compress<'a>(
    tcp: &Tcp,
    has_data: bool,
    with_ack: bool,
    connection_id: u8,
    options: &'a OptionBytes,
) -> Compressed<'a> {
    let mut c = Compressed::new(connection_id);
    // Data segments carry no acknowledgement (scps-tp §3.4); everything else does.
    if !has_data || with_ack {
        c.window_ack = Some((tcp.window, tcp.ack));
    }
    // The sequence number is always sent: leaving it out would make a packet depend on the one before (scps-tp §3.1).
    if has_data || tcp.flags.has(Flags::FIN) || tcp.flags.has(Flags::RST) || with_ack {
        c.seq = Some(tcp.seq);
    }
    c.ts_val = tcp.options.timestamps.map(|t| t.val);
    c.ts_ecr = tcp.options.timestamps.map(|t| t.ecr);
    c.record_boundary = tcp.options.record_boundary;
    c.push = tcp.flags.has(Flags::PSH);
    c.rst = tcp.flags.has(Flags::RST);
    c.fin = tcp.flags.has(Flags::FIN);
    c.urgent = tcp.flags.has(Flags::URG).then_some(tcp.urgent);
    if !has_data {
        c.options = options.as_slice();
    }
    c
}

/// What a decompressor fills in for absent fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// The peer's port.
    pub src_port: u16,
    /// Our port.
    pub dst_port: u16,
    /// Last window received.
    pub window: u16,
    /// Last acknowledgement received.
    pub ack: SeqNum,
    /// Next sequence number expected: for segments without data one that is always acceptable.
    pub seq: SeqNum,
}

/// True if more than the identifier, one octet, ties the packet to its connection. Without ports to guess, the sequence
/// number is what a stranger lacks; an acknowledgement proves itself by the number it acknowledges. Absent fields keep
/// their last value (scps-tp §3.3), so a packet without either would always fit.
pub fn is_proven(c: &Compressed<'_>, has_data: bool) -> bool {
    c.seq.is_some() || (c.window_ack.is_some() && !has_data && !c.rst && !c.fin)
}

/// The segment a compressed header stands for.
pub fn decompress(c: &Compressed<'_>, context: &Context) -> Tcp {
    let (window, ack) = c.window_ack.unwrap_or((context.window, context.ack));
    let mut flags = Flags::ACK;
    for (on, flag) in [(c.push, Flags::PSH), (c.rst, Flags::RST), (c.fin, Flags::FIN), (c.urgent.is_some(), Flags::URG)]
    {
        if on {
            flags = flags.with(flag);
        }
    }
    let mut options = Options::parse(c.options);
    if let (Some(val), Some(ecr)) = (c.ts_val, c.ts_ecr) {
        options.timestamps = Some(scps_wire::options::Timestamps { val, ecr });
    }
    options.record_boundary |= c.record_boundary;
    Tcp {
        src_port: context.src_port,
        dst_port: context.dst_port,
        seq: c.seq.unwrap_or(context.seq),
        ack,
        flags,
        window,
        urgent: c.urgent.unwrap_or(0),
        options,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_wire::options::Timestamps;
    use scps_wire::scps::Snack;

    fn context() -> Context {
        Context { src_port: 1, dst_port: 2, window: 7, ack: SeqNum(8), seq: SeqNum(9) }
    }

    fn tcp(flags: Flags) -> Tcp {
        Tcp {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(9),
            ack: SeqNum(5),
            flags,
            window: 6,
            urgent: 0,
            options: Options::default(),
        }
    }

    #[test]
    fn what_is_sent_is_what_is_rebuilt() {
        let mut t = tcp(Flags::ACK);
        t.options.timestamps = Some(Timestamps { val: 3, ecr: 4 });
        t.options.snack = Some(Snack::short(2, 1));
        t.options.sack.push(SeqNum(100), SeqNum(200));
        let bytes = OptionBytes::of(&t.options);
        assert_eq!(decompress(&compress(&t, false, false, 5, &bytes), &context()), t);
        let fin = Tcp { flags: Flags::ACK.with(Flags::FIN), ..t };
        assert_eq!(decompress(&compress(&fin, false, false, 5, &bytes), &context()), fin);
    }

    #[test]
    fn data_segments_leave_window_and_acknowledgement_out() {
        let mut t = tcp(Flags::ACK.with(Flags::PSH));
        t.options.record_boundary = true;
        let bytes = OptionBytes::of(&t.options);
        let c = compress(&t, true, false, 5, &bytes);
        assert_eq!(c.emit_len(), 8);
        let rebuilt = decompress(&c, &context());
        assert_eq!((rebuilt.window, rebuilt.ack), (7, SeqNum(8)));
        assert_eq!((rebuilt.flags, rebuilt.options.record_boundary), (t.flags, true));
        assert_eq!(decompress(&compress(&t, true, true, 5, &bytes), &context()), t);
    }
}
