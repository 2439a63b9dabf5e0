//! HDLC-like framing of a serial line (RFC 1662 §3, §4): flags between frames, octets that are flags escaped, 16 bits of check
//! behind each. There is no address, control or protocol field: the first octet of what is carried says what it is.

/// Between frames.
pub const FLAG: u8 = 0x7e;
/// The octet behind it has bit 5 inverted.
const ESCAPE: u8 = 0x7d;
const INVERTED: u8 = 0x20;
/// Octets of the check.
const CHECK_LEN: usize = 2;
/// The check over a frame that has its own behind it (RFC 1662 §C.2).
const GOOD: u16 = 0xf0b8;

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut value = n as u16;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0x8408 } else { value >> 1 };
            bit += 1;
        }
        table[n] = value;
        n += 1;
    }
    table
};

fn check_of(octets: &[u8]) -> u16 {
    octets.iter().fold(0xffff, |sum, octet| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ octet)])
}

/// Appends a packet as a frame, with a flag before it and one behind.
pub fn emit(packet: &[u8], line: &mut Vec<u8>) {
    line.push(FLAG);
    let check = (!check_of(packet)).to_le_bytes();
    for octet in packet.iter().chain(&check) {
        if matches!(*octet, FLAG | ESCAPE) {
            line.extend([ESCAPE, octet ^ INVERTED]);
        } else {
            line.push(*octet);
        }
    }
    line.push(FLAG);
}

/// Octets of a frame of `packet_len` octets of which none is escaped.
pub const fn emit_len(packet_len: usize) -> usize {
    packet_len + CHECK_LEN + 2
}

/// A frame was not as it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

/// Finds frames in a stream of octets, however it is cut.
#[derive(Clone, Debug)]
pub struct Deframer {
    frame: Vec<u8>,
    longest: usize,
    is_escaped: bool,
    is_too_long: bool,
}

impl Deframer {
    /// Packets have at most `longest` octets; what is longer is damaged.
    pub fn new(longest: usize) -> Self {
        let longest = longest.saturating_add(CHECK_LEN);
        Deframer { frame: Vec::with_capacity(longest), longest, is_escaped: false, is_too_long: false }
    }

    /// Takes octets in and hands every packet that ends in them to `take`, or that one was damaged.
    pub fn push(&mut self, octets: &[u8], mut take: impl FnMut(Result<&[u8], Damaged>)) {
        for octet in octets {
            match *octet {
                FLAG => self.end(&mut take),
                ESCAPE => self.is_escaped = true,
                octet => {
                    let inverted = if std::mem::take(&mut self.is_escaped) { INVERTED } else { 0 };
                    if self.frame.len() < self.longest {
                        self.frame.push(octet ^ inverted);
                    } else {
                        self.is_too_long = true;
                    }
                }
            }
        }
    }

    fn end(&mut self, take: &mut impl FnMut(Result<&[u8], Damaged>)) {
        let is_aborted = std::mem::take(&mut self.is_escaped);
        let is_whole = !std::mem::take(&mut self.is_too_long) && !is_aborted;
        // Two flags with nothing between them are one.
        if !self.frame.is_empty() || is_aborted {
            let is_good = is_whole && self.frame.len() > CHECK_LEN && check_of(&self.frame) == GOOD;
            take(if is_good { Ok(&self.frame[..self.frame.len() - CHECK_LEN]) } else { Err(Damaged) });
        }
        self.frame.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(deframer: &mut Deframer, octets: &[u8]) -> Vec<Result<Vec<u8>, Damaged>> {
        let mut found = Vec::new();
        deframer.push(octets, |frame| found.push(frame.map(<[u8]>::to_vec)));
        found
    }

    fn line_of(packets: &[&[u8]]) -> Vec<u8> {
        let mut line = Vec::new();
        for packet in packets {
            emit(packet, &mut line);
        }
        line
    }

    #[test]
    fn the_check_is_the_standards() {
        // The check value of CRC-16/X-25, the CRC of RFC 1662, over "123456789".
        assert_eq!(!check_of(b"123456789"), 0x906e);
        assert_eq!(line_of(&[b"123456789"]), b"\x7e123456789\x6e\x90\x7e");
        assert_eq!(line_of(&[b"123456789"]).len(), emit_len(9));
    }

    #[test]
    fn flags_and_escapes_inside_a_packet_are_escaped() {
        let line = line_of(&[&[0x80, 0x7e, 0x7d, 0x01]]);
        assert_eq!(line[..7], [0x7e, 0x80, 0x7d, 0x5e, 0x7d, 0x5d, 0x01]);
        assert_eq!(read(&mut Deframer::new(100), &line), [Ok(vec![0x80, 0x7e, 0x7d, 0x01])]);
    }

    #[test]
    fn what_is_damaged_short_long_or_aborted_is_told_and_the_next_frame_is_found() {
        let mut deframer = Deframer::new(4);
        let mut flipped = line_of(&[b"abcd"]);
        flipped[2] ^= 4;
        let bad: [&[u8]; 4] = [&flipped, &[FLAG, 1, 2, FLAG], &line_of(&[b"abcde"]), &[FLAG, b'a', b'b', ESCAPE, FLAG]];
        for line in bad {
            assert_eq!(read(&mut deframer, line), [Err(Damaged)], "{line:x?}");
            assert_eq!(read(&mut deframer, &line_of(&[b"good"])), [Ok(b"good".to_vec())]);
        }
        assert_eq!(read(&mut deframer, &[FLAG, FLAG, FLAG]), []);
    }

    proptest! {
        #[test]
        fn packets_come_back_however_the_stream_is_cut(
            packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 1..6), cut in 1usize..9
        ) {
            let line = line_of(&packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let mut deframer = Deframer::new(50);
            let found: Vec<_> = line.chunks(cut).flat_map(|piece| read(&mut deframer, piece)).collect();
            prop_assert_eq!(found, packets.into_iter().map(Ok).collect::<Vec<_>>());
        }

        #[test]
        fn one_flipped_bit_never_gives_a_packet_that_was_not_sent(
            packet in proptest::collection::vec(any::<u8>(), 1..40), at in any::<proptest::sample::Index>()
        ) {
            let mut line = line_of(&[&packet]);
            let bit = at.index(line.len() * 8);
            line[bit / 8] ^= 1 << (bit % 8);
            let found = read(&mut Deframer::new(50), &line);
            prop_assert!(found.iter().all(|frame| frame.is_err() || frame.as_ref() == Ok(&packet)), "{:?}", found);
        }

        #[test]
        fn any_octets_are_read_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&mut Deframer::new(20), &octets);
        }
    }
}
