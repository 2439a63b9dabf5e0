//! Datagrams at a gateway that learns its peers (`scps_io::hostile`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_io::hostile::{drive, Line};

fuzz_target!(|data: &[u8]| drive(Line::Udp, data).expect("sockets"));
