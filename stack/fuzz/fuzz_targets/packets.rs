//! Any bytes as an IPv4 packet, a UDP datagram, an ICMP message, a TCP segment, and a capture file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scps_wire::icmp::IcmpError;
use scps_wire::ipv4::Ipv4;
use scps_wire::pcap::{ipv4_of, Reader};
use scps_wire::tcp::{Tcp, Verify};
use scps_wire::udp::Udp;

fuzz_target!(|data: &[u8]| {
    let (a, b) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    if let Ok((ip, payload)) = Ipv4::parse(data) {
        assert_eq!(payload.len(), usize::from(ip.payload_len));
    }
    let _ = Udp::parse(data);
    let _ = IcmpError::parse(data);
    let _ = Tcp::parse(data, a, b, Verify::Trusted);
    let _ = Tcp::parse(data, a, b, Verify::Checksum(&[6, 106]));
    if let Ok(reader) = Reader::new(data) {
        let link_type = reader.link_type();
        for record in reader.flatten() {
            let _ = ipv4_of(link_type, record.data).map(Ipv4::parse);
        }
    }
});
