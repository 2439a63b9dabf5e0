//! Any bytes as a compressed header; the checksum is repaired so that the fuzzer gets behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_wire::SeqNum;
use scps_wire::compressed::Compressed;

fuzz_target!(|data: &[u8]| {
    let (a, b) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let _ = Compressed::parse(data, a, b);
    let Some((head, options)) = data.split_first_chunk::<20>() else { return };
    let word = |i: usize| u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let bit = |i: u8| head[0] & (1 << i) != 0;
    let header = Compressed {
        connection_id: head[1],
        urgent: bit(0).then_some(u16::from_be_bytes([head[2], head[3]])),
        window_ack: bit(1).then_some((u16::from_be_bytes([head[2], head[3]]), SeqNum(word(4)))),
        seq: bit(2).then_some(SeqNum(word(8))),
        ts_val: bit(3).then_some(word(12)),
        ts_ecr: bit(4).then_some(word(16)),
        record_boundary: bit(5),
        push: bit(6),
        rst: bit(7),
        fin: head[1] & 1 != 0,
        options: &options[..options.len().min(24)],
    };
    let mut packet = vec![0; header.emit_len()];
    packet.extend_from_slice(options);
    header.emit(&mut packet, a, b, 6);
    assert_eq!(Compressed::parse(&packet, a, b), Ok((header, options)));
});
