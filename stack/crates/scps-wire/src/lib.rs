//! Packet formats of the SCPS stack: what the bytes mean, and nothing about what to do with them; and the values that every crate speaks
//! in: time, sequence numbers, bit rates, seeds, and what protects a packet. Nothing here reads a clock or a source of entropy.
//!
//! Every format offers the same verbs: `parse` (bytes to value, checking lengths and checksums), `emit` (value to
//! bytes), `emit_len`, and `Display` where a person reads it. A malformed packet is malformed: `parse` never panics
//! and never reads outside what it was given.
//!
//! Sources: docs/protocol/scps-tp.md, RFC 791, 793, 768, 792, 1662, 2018, 7323.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod bitrate;
pub mod checksum;
pub mod compressed;
pub mod hdlc;
pub mod icmp;
mod instant;
pub mod ipv4;
pub mod options;
pub mod pcap;
mod precedence;
pub mod scps;
mod seed;
mod seq;
mod services;
mod settings;
pub mod tcp;
pub mod udp;

pub use bitrate::{Bitrate, ParseBitrateError};
pub use core::time::Duration;
pub use instant::Instant;
pub use precedence::Precedence;
pub use seed::{Rng, Seed};
pub use seq::SeqNum;
pub use services::{Room, Services};

/// IP protocol numbers the stack uses (scps-tp §1.2).
pub mod protocol {
    /// ICMP, RFC 792.
    pub const ICMP: u8 = 1;
    /// TCP and uncompressed SCPS-TP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// SCPS-SP: the number for any private encryption (scps-sp §1).
    pub const SCPS_SP: u8 = 99;
    /// Compressed SCPS-TP, registered as "SCPS".
    pub const SCPS_COMPRESSED: u8 = 105;
    /// Uncompressed SCPS-TP of the stand-alone reference stack; a compatibility setting only.
    pub const SCPS_STANDALONE: u8 = 106;
    /// SCPS-NP in IP, as the reference implementation numbers it; registered to another protocol (scps-np §4.4).
    pub const SCPS_NP: u8 = 118;
}

/// Why bytes are not the packet they claim to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the headers say.
    #[error("truncated")]
    Truncated,
    /// A length field that contradicts the packet.
    #[error("bad length field")]
    BadLength,
    /// A version or format this parser does not know.
    #[error("unknown version")]
    BadVersion,
    /// The checksum does not verify.
    #[error("bad checksum")]
    BadChecksum,
    /// More options than the 40 octets a header can hold.
    #[error("options exceed 40 octets")]
    OptionsTooLong,
}

pub(crate) fn be16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

pub(crate) fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}
