//! Frames of a TUN interface at a gateway: virtio headers, joined segments, what passes (`scps_io::hostile`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_io::hostile::{drive, Line};

fuzz_target!(|data: &[u8]| drive(Line::Tun, data).expect("sockets"));
