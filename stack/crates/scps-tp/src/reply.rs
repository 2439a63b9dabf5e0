//! Resets for segments that belong to no connection (RFC 793 §3.4).

use scps_net::{Carriage, Envelope, Network, Unsent};
use scps_types::{Instant, SeqNum};
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp};

/// The RST that answers `tcp`, which came in `envelope` with `data_len` octets of data.
pub fn reset(
    now: Instant,
    network: &mut Network,
    envelope: &Envelope,
    mtu: u16,
    tcp: &Tcp,
    data_len: usize,
) -> Result<Vec<u8>, Unsent> {
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
    let back = envelope.answer();
    let room = network.room(now, &back, answer.emit_len())?;
    let mut packet = vec![0; room.len() + answer.emit_len()];
    answer.emit(&mut packet[room.head..room.head + answer.emit_len()], back.src, back.dst, back.protocol);
    network.wrap(now, &back, Carriage { mtu, dont_fragment: true }, room, &mut packet)?;
    Ok(packet)
}
