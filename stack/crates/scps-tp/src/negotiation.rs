//! What both SYNs agree on (scps-tp §1.3, §1.4).

use crate::config::Config;
use scps_wire::options::Options;
use scps_wire::scps::{BindingSpace, BindingSpaces, Capabilities};

/// What is in force on a connection; all false until the peer's SYN is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Agreed {
    /// Both SYNs carried option 20.
    pub scps: bool,
    /// Short-form SNACK.
    pub snack: bool,
    /// Long-form SNACK.
    pub snack_long: bool,
    /// RFC 2018 SACK.
    pub sack: bool,
    /// Best-effort service.
    pub bets: bool,
    /// Header compression: the peer's connection identifier.
    pub compression: Option<u8>,
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// The peer's window shift and ours.
    pub window_scale: Option<(u8, u8)>,
}

/// Greatest window shift (scps-tp §2.8).
const SHIFT_MAX: u8 = 14;

/// Our window shift: the smallest that covers the receive buffer (scps-tp §2.8).
pub fn window_shift(receive_buffer: usize) -> u8 {
    (0..SHIFT_MAX).find(|s| 65_535usize << s >= receive_buffer).unwrap_or(SHIFT_MAX)
}

/// The capability option for our SYN. `connection_id` is 0 without compression.
pub fn capabilities(config: &Config, connection_id: u8) -> Capabilities {
    let bit = |on: bool, mask: u8| if on { mask } else { 0 };
    Capabilities {
        bits: bit(config.bets, Capabilities::BETS)
            | bit(config.snack, Capabilities::SNACK1)
            | bit(config.snack && config.snack_long, Capabilities::SNACK2)
            | bit(connection_id != 0, Capabilities::COMPRESSION),
        connection_id,
    }
}

/// The options of our SYN, or of our SYN-ACK when `answering` the options of a SYN.
pub fn syn_options(
    config: &Config,
    with_scps: bool,
    mss: u16,
    connection_id: u8,
    answering: Option<&Options>,
) -> Options {
    // What a SYN-ACK may carry depends on what the SYN carried (scps-tp §1.3, §2.8, §2.9).
    let allowed = |offered: fn(&Options) -> bool| answering.is_none_or(offered);
    let scps = config.scps && with_scps && allowed(|o| o.capabilities.is_some());
    let spaces: Vec<BindingSpace> = match answering {
        None => config.binding_spaces.clone(),
        Some(o) => common_spaces(config, o),
    };
    Options {
        capabilities: scps.then(|| capabilities(config, connection_id)),
        binding_spaces: if scps && !spaces.is_empty() { BindingSpaces::pack(&spaces) } else { None },
        mss: Some(mss),
        window_scale: (config.window_scaling && allowed(|o| o.window_scale.is_some()))
            .then(|| window_shift(config.receive_buffer)),
        sack_permitted: config.sack && allowed(|o| o.sack_permitted),
        ..Options::default()
    }
}

/// Binding spaces both sides have, data ANDed (scps-tp §2.3, reply rule).
fn common_spaces(config: &Config, syn: &Options) -> Vec<BindingSpace> {
    let theirs = syn.binding_spaces.map(|b| b.unpack()).unwrap_or_default();
    let and = |ours: &BindingSpace| {
        let peer = theirs.iter().find(|t| t.id == ours.id)?;
        Some(BindingSpace {
            id: ours.id,
            first_nibble: ours.first_nibble & peer.first_nibble,
            data: ours.data.iter().zip(peer.data.iter().chain(core::iter::repeat(&0))).map(|(a, b)| a & b).collect(),
        })
    };
    config.binding_spaces.iter().filter_map(and).collect()
}

/// What follows from our SYN's options and the peer's.
pub fn agree(config: &Config, ours: &Options, theirs: &Options) -> Agreed {
    let (Some(own), Some(peer)) = (ours.capabilities, theirs.capabilities) else {
        return plain(config, ours, theirs);
    };
    let both = |mask: u8| own.has(mask) && peer.has(mask);
    Agreed {
        scps: true,
        snack: both(Capabilities::SNACK1),
        snack_long: both(Capabilities::SNACK1 | Capabilities::SNACK2),
        // The reference also announces BETS by the legacy kind 16 (scps-tp §2.1).
        bets: own.has(Capabilities::BETS) && (peer.has(Capabilities::BETS) || theirs.legacy_bets),
        compression: (both(Capabilities::COMPRESSION) && peer.connection_id != 0).then_some(peer.connection_id),
        ..plain(config, ours, theirs)
    }
}

fn plain(config: &Config, ours: &Options, theirs: &Options) -> Agreed {
    let shifts = (ours.window_scale, theirs.window_scale);
    Agreed {
        sack: ours.sack_permitted && theirs.sack_permitted,
        timestamps: config.timestamps && theirs.timestamps.is_some(),
        window_scale: if let (Some(own), Some(peer)) = shifts { Some((peer.min(SHIFT_MAX), own)) } else { None },
        ..Agreed::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_capabilities_are_0x40() {
        assert_eq!(capabilities(&Config::default(), 0).bits, 0x40);
    }

    #[test]
    fn each_setting_moves_its_bit() {
        let off = Config { snack: false, ..Config::default() };
        assert_eq!(capabilities(&off, 0).bits, 0);
        let bets = Config { bets: true, ..Config::default() };
        assert_eq!(capabilities(&bets, 0).bits, 0xc0);
        assert_eq!(capabilities(&Config::default(), 9), Capabilities { bits: 0x50, connection_id: 9 });
    }

    #[test]
    fn shift_is_the_smallest_that_covers_the_buffer() {
        // scps-tp §8: 65536 -> 1, 300000 -> 3, 500000 -> 3.
        assert_eq!([65_535, 65_536, 300_000, 500_000].map(window_shift), [0, 1, 3, 3]);
        assert_eq!(window_shift(usize::MAX >> 20), 14);
    }

    #[test]
    fn bits_of_one_side_only_do_nothing() {
        let config = Config::default();
        let ours = syn_options(&config, true, 1460, 0, None);
        let mut theirs = ours;
        theirs.capabilities = Some(Capabilities { bits: 0xff, connection_id: 3 });
        let agreed = agree(&config, &ours, &theirs);
        assert!(agreed.snack && !agreed.bets && !agreed.snack_long && agreed.compression.is_none());
    }

    #[test]
    fn a_plain_peer_keeps_the_plain_options() {
        let config = Config::default();
        let mut ours = syn_options(&config, true, 1460, 0, None);
        ours.timestamps = Some(scps_wire::options::Timestamps { val: 1, ecr: 0 });
        let theirs = Options { capabilities: None, ..ours };
        let agreed = agree(&config, &ours, &theirs);
        assert!(!agreed.scps && !agreed.snack && agreed.sack && agreed.timestamps);
        assert_eq!(agreed.window_scale, Some((0, 0)));
    }

    #[test]
    fn answers_name_only_the_spaces_of_the_syn() {
        let space = |id, data: [u8; 2]| BindingSpace { id, first_nibble: 0, data: data.to_vec() };
        let config = Config { binding_spaces: vec![space(1, [0xf0, 0xff]), space(2, [1, 1])], ..Config::default() };
        let peer = Config { binding_spaces: vec![space(1, [0x3c, 0x0f]), space(7, [1, 1])], ..Config::default() };
        let syn = syn_options(&peer, true, 1460, 0, None);
        let answer = syn_options(&config, true, 1460, 0, Some(&syn));
        assert_eq!(answer.binding_spaces.map(|b| b.unpack()), Some(vec![space(1, [0x30, 0x0f])]));
        let bare = syn_options(&peer, false, 1460, 0, None);
        assert_eq!(syn_options(&config, true, 1460, 0, Some(&bare)).capabilities, None);
    }
}
