//! SYN cookies: a SYN-ACK whose sequence number says all there is to know of the connection, so that none need be kept
//! until the peer shows, by acknowledging it, that it is where it says (RFC 4987 §3.6).
//!
//! ```text
//! | period 2 | MSS 3 | window shift 4 | SACK 1 | SNACK 1 | keyed hash 21 |
//! ```
//! What does not fit is not offered: header compression, BETS and long SNACKs. A SNACK counts in units of the exact MSS,
//! so it is offered only where the table holds that.

use crate::names::AddressPort;
use scps_wire::options::Options;
use scps_wire::scps::Capabilities;
use scps_wire::tcp::{Flags, Tcp};
use scps_wire::{Instant, Seed, SeqNum};

/// Values an MSS is rounded down to; the first is the least believed. 62 is that of FY97's segments of 50 octets.
const MSS_TABLE: [u16; 8] = [crate::route::MSS_MIN, 62, 512, 536, 1024, 1300, 1412, 1460];
/// MSS of a peer that named none (RFC 9293 §3.7.1).
const MSS_DEFAULT: u16 = 536;
/// Seconds of a period. A cookie is good in its period and the next.
const PERIOD_S: u64 = 64;
/// How long the last cookie may be answered, in seconds.
pub const LIFETIME_S: u64 = 2 * PERIOD_S;
const HASH_BITS: u32 = 21;
const NO_SHIFT: u32 = 15;

/// `syn` with what of its options a cookie keeps.
pub fn reduce(syn: &Tcp) -> Tcp {
    Tcp { options: unpack(pack(&syn.options), &syn.options), ..*syn }
}

/// The sequence number that answers a reduced SYN.
pub fn make(seed: &Seed, now: Instant, local: AddressPort, remote: AddressPort, syn: &Tcp) -> SeqNum {
    let (period, options) = (now.as_millis() / 1000 / PERIOD_S, pack(&syn.options));
    SeqNum((period as u32 & 3) << 30 | options << HASH_BITS | hash(seed, local, remote, syn.seq, period, options))
}

/// The reduced SYN whose cookie `ack` acknowledges.
pub fn open(seed: &Seed, now: Instant, local: AddressPort, remote: AddressPort, ack: &Tcp) -> Option<Tcp> {
    let (cookie, irs) = (ack.ack.0.wrapping_sub(1), SeqNum(ack.seq.0.wrapping_sub(1)));
    let options = cookie >> HASH_BITS & 0x1ff;
    let current = now.as_millis() / 1000 / PERIOD_S;
    let is_ours = |period: u64| {
        period as u32 & 3 == cookie >> 30
            && hash(seed, local, remote, irs, period, options) == cookie & ((1 << HASH_BITS) - 1)
    };
    [Some(current), current.checked_sub(1)].into_iter().flatten().find(|p| is_ours(*p))?;
    let options = unpack(options, &ack.options);
    Some(Tcp { seq: irs, ack: SeqNum(0), flags: Flags::SYN, window: 0, urgent: 0, options, ..*ack })
}

fn hash(seed: &Seed, local: AddressPort, remote: AddressPort, irs: SeqNum, period: u64, options: u32) -> u32 {
    let mut message = Vec::with_capacity(28);
    for (address, port) in [local, remote] {
        message.extend(address.octets());
        message.extend(port.to_be_bytes());
    }
    message.extend(irs.0.to_be_bytes());
    message.extend(period.to_be_bytes());
    message.extend(options.to_be_bytes());
    seed.keyed_hash("syn cookie", &message) as u32 & ((1 << HASH_BITS) - 1)
}

fn pack(options: &Options) -> u32 {
    let mss = options.mss.unwrap_or(MSS_DEFAULT);
    let index = MSS_TABLE.iter().rposition(|m| *m <= mss).unwrap_or(0);
    let shift = options.window_scale.map_or(NO_SHIFT, |s| u32::from(s.min(14)));
    let has_snack =
        options.mss == Some(MSS_TABLE[index]) && options.capabilities.is_some_and(|c| c.has(Capabilities::SNACK1));
    (index as u32) << 6 | shift << 2 | u32::from(options.sack_permitted) << 1 | u32::from(has_snack)
}

/// `stamps` gives the timestamps: every segment has them once both sides do.
fn unpack(bits: u32, stamps: &Options) -> Options {
    let shift = bits >> 2 & 15;
    Options {
        mss: Some(MSS_TABLE[(bits >> 6 & 7) as usize]),
        window_scale: (shift != NO_SHIFT).then_some(shift as u8),
        sack_permitted: bits & 2 != 0,
        capabilities: (bits & 1 != 0).then_some(Capabilities { bits: Capabilities::SNACK1, connection_id: 0 }),
        timestamps: stamps.timestamps,
        ..Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const A: AddressPort = (Ipv4Addr::new(10, 0, 0, 1), 7);
    const B: AddressPort = (Ipv4Addr::new(10, 0, 0, 2), 9);

    fn syn(options: Options) -> Tcp {
        Tcp {
            src_port: 9,
            dst_port: 7,
            seq: SeqNum(77),
            ack: SeqNum(0),
            flags: Flags::SYN,
            window: 1,
            urgent: 0,
            options,
        }
    }

    fn answer(cookie: SeqNum) -> Tcp {
        Tcp { seq: SeqNum(78), ack: cookie + 1, flags: Flags::ACK, ..syn(Options::default()) }
    }

    #[test]
    fn a_cookie_brings_back_its_options_and_lasts_a_period_more() {
        let seed = Seed::from_u64(1);
        for mss in [Some(1460), Some(62), Some(100), None] {
            for window_scale in [None, Some(0), Some(14)] {
                for sack_permitted in [false, true] {
                    let capabilities = Some(Capabilities { bits: 0x50, connection_id: 3 });
                    let options = Options { mss, window_scale, sack_permitted, capabilities, ..Options::default() };
                    let reduced = reduce(&syn(options));
                    let cookie = make(&seed, Instant::from_secs(63), A, B, &reduced);
                    let open = |s| open(&seed, Instant::from_secs(s), A, B, &answer(cookie));
                    assert_eq!(open(127).map(|t| (t.seq, t.options)), Some((SeqNum(77), reduced.options)));
                    assert_eq!(open(128), None);
                    let has_exact = [Some(1460), Some(62)].contains(&mss);
                    assert_eq!(reduced.options.capabilities.is_some(), has_exact);
                }
            }
        }
    }

    #[test]
    fn a_cookie_of_another_peer_or_number_does_not_open() {
        let (seed, now) = (Seed::from_u64(1), Instant::from_secs(5));
        let cookie = make(&seed, now, A, B, &reduce(&syn(Options::default())));
        assert!(open(&seed, now, A, B, &answer(cookie)).is_some());
        assert!(open(&seed, now, A, (B.0, 10), &answer(cookie)).is_none());
        assert!(open(&Seed::from_u64(2), now, A, B, &answer(cookie)).is_none());
        assert!(open(&seed, now, A, B, &Tcp { seq: SeqNum(79), ..answer(cookie) }).is_none());
        let guesses = (0..10_000).filter(|i| open(&seed, now, A, B, &answer(cookie + 7919 * i)).is_some());
        assert_eq!(guesses.count(), 1);
    }
}
