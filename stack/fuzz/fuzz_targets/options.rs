//! Any bytes as TCP options; what is understood survives being written and read again, if it fits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_wire::options::{Options, MAX_LEN};

fuzz_target!(|data: &[u8]| {
    let options = Options::parse(data);
    if let Some(spaces) = options.binding_spaces {
        let _ = spaces.unpack();
    }
    // Kind 16 is read and never sent.
    let sendable = Options { legacy_bets: false, ..options };
    let len = sendable.emit_len();
    if len <= MAX_LEN {
        let mut out = [0u8; MAX_LEN];
        sendable.emit(&mut out[..len]);
        assert_eq!(Options::parse(&out[..len]), sendable);
    }
});
