//! Datagrams at a gateway that learns its peers.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the other line is another target's")]
#[path = "../../crates/scps-io/tests/hostile.rs"]
mod hostile;

fuzz_target!(|data: &[u8]| hostile::drive(hostile::Line::Udp, data).expect("sockets"));
