//! Frames of a TUN interface at a gateway: virtio headers, joined segments, what passes.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the other line is another target's")]
#[path = "../../crates/scps-io/tests/hostile.rs"]
mod hostile;

fuzz_target!(|data: &[u8]| hostile::drive(hostile::Line::Tun, data).expect("sockets"));
