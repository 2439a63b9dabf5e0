//! What answers segments that belong to no connection (RFC 793 §3.4), and what tells the other end of it.

use crate::net::{Carriage, Envelope, Network, Unsent};
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Instant, SeqNum};

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
    let answer = bare(tcp.dst_port, tcp.src_port, (seq, ack, flags));
    write(now, network, &envelope.answer(), mtu, &answer)
}

/// An acknowledgement between two ports of whoever knows them: if it fits no window, as is to be expected of numbers that nobody told us, it
/// is answered by one with the right numbers (RFC 9293 §3.10.7.4), and where it belongs to no connection by a reset.
pub fn question(
    now: Instant,
    network: &mut Network,
    envelope: &Envelope,
    mtu: u16,
    (src_port, dst_port): (u16, u16),
    guess: u64,
) -> Result<Vec<u8>, Unsent> {
    let (seq, ack) = (SeqNum((guess >> 32) as u32), SeqNum(guess as u32));
    write(now, network, envelope, mtu, &bare(src_port, dst_port, (seq, ack, Flags::ACK)))
}

/// The RST that ends a connection whose SYN somebody answered, up to `ack`, or is about to.
pub fn refusal(
    now: Instant,
    network: &mut Network,
    envelope: &Envelope,
    mtu: u16,
    (src_port, dst_port): (u16, u16),
    (seq, ack): (SeqNum, SeqNum),
) -> Result<Vec<u8>, Unsent> {
    let flags = Flags::RST.with(Flags::ACK);
    write(now, network, envelope, mtu, &bare(src_port, dst_port, (seq, ack, flags)))
}

fn bare(src_port: u16, dst_port: u16, (seq, ack, flags): (SeqNum, SeqNum, Flags)) -> Tcp {
    Tcp { src_port, dst_port, seq, ack, flags, window: 0, urgent: 0, options: Options::default() }
}

fn write(now: Instant, network: &mut Network, envelope: &Envelope, mtu: u16, tcp: &Tcp) -> Result<Vec<u8>, Unsent> {
    let room = network.room(now, envelope, tcp.emit_len())?;
    let mut packet = vec![0; room.len() + tcp.emit_len()];
    tcp.emit(&mut packet[room.head..room.head + tcp.emit_len()], envelope.src, envelope.dst, envelope.protocol);
    network.wrap(now, envelope, Carriage { mtu, dont_fragment: true }, room, &mut packet)?;
    Ok(packet)
}
