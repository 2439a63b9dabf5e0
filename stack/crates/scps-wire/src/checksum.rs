//! The Internet checksum (RFC 1071): ones'-complement sums in native byte order, swapped once at the end.

use std::net::Ipv4Addr;

/// A running ones'-complement sum.
#[derive(Clone, Copy, Default, Debug)]
pub struct Checksum(u64);

impl Checksum {
    /// An empty sum.
    pub const fn new() -> Self {
        Checksum(0)
    }

    /// The IPv4 pseudo-header (RFC 793 §3.1): addresses, protocol, length of what follows.
    pub fn pseudo_header(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: u16) -> Self {
        let mut sum = Checksum::new();
        sum.add(&src.octets());
        sum.add(&dst.octets());
        sum.add_u16(u16::from(protocol));
        sum.add_u16(len);
        sum
    }

    /// Adds octets that begin at an even offset of the summed message.
    pub fn add(&mut self, data: &[u8]) {
        // Both halves of eight words at once, which the compiler makes four additions of 16 octets of.
        let mut rows = data.chunks_exact(64);
        let mut halves = [[0u64; 8]; 2];
        for row in &mut rows {
            for (i, word) in row.chunks_exact(8).enumerate() {
                let Ok(octets) = word.try_into() else { continue };
                let word = u64::from_ne_bytes(octets);
                halves[0][i] += word & 0xffff_ffff;
                halves[1][i] += word >> 32;
            }
        }
        let mut chunks = rows.remainder().chunks_exact(4);
        let mut sum: u64 = halves.iter().flatten().sum();
        for c in &mut chunks {
            sum += u64::from(u32::from_ne_bytes([c[0], c[1], c[2], c[3]]));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut last = [0u8; 4];
            last[..rest.len()].copy_from_slice(rest);
            sum += u64::from(u32::from_ne_bytes(last));
        }
        // A packet is at most 64 KiB, so the 64-bit sum of 32-bit words cannot overflow.
        self.0 += sum;
    }

    /// Adds a 16-bit field.
    pub fn add_u16(&mut self, value: u16) {
        self.0 += u64::from(value.to_be());
    }

    fn fold(self) -> u16 {
        let mut sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        sum as u16
    }

    /// The sum itself, as it would be written on the wire without the final complement.
    pub fn partial(self) -> u16 {
        self.fold().to_be()
    }

    /// The checksum field's value.
    pub fn finish(self) -> u16 {
        !self.fold().to_be()
    }

    /// True if a message summed with its checksum field in place is intact.
    pub fn verifies(self) -> bool {
        self.fold() == 0xffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for (i, b) in data.iter().enumerate() {
            sum += u32::from(*b) << if i % 2 == 0 { 8 } else { 0 };
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn equals_the_definition_for_every_length() {
        let data: Vec<u8> = (0..67u8).map(|i| i.wrapping_mul(37)).collect();
        for len in 0..data.len() {
            let mut sum = Checksum::new();
            sum.add(&data[..len]);
            assert_eq!(sum.finish(), slow(&data[..len]), "length {len}");
        }
    }
}
