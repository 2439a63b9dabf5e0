//! Links between gateways that take shorter packets than the settings say. Needs root, /dev/net/tun and `ip netns`; skips with the reason
//! where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{Lab, CLIENT, FAR, NEAR};

/// The near gateway's and the far one's counters after a transfer of so many octets each way.
fn both_ways(lab: &Lab, octets: usize) -> [serde_json::Value; 2] {
    let (near, far) = lab.pair("");
    let server = lab.server(&format!(
        "l = listening(80); s, _ = l.accept(); s.settimeout(40); d = os.urandom({octets}); s.sendall(d); s.shutdown(1)\n\
         n, h = every(s); say(n, h, hashlib.sha256(d).hexdigest())"
    ));
    let client = lab.python(
        CLIENT,
        &format!(
            "s = socket.create_connection(('10.2.0.1', 80)); s.settimeout(40); d = os.urandom({octets})\n\
             s.sendall(d); s.shutdown(1); n, h = every(s); say(len(d), hashlib.sha256(d).hexdigest(), h)"
        ),
    );
    assert_eq!(client.finish(), server.finish());
    std::thread::sleep(std::time::Duration::from_millis(300));
    [near.end(), far.end()]
}

#[test]
fn a_link_of_1492_octets_carries_what_the_settings_take_for_1500() {
    for (near_mtu, far_mtu) in [(1492, 1492), (1500, 1492), (1300, 1300)] {
        let Some(lab) = Lab::new() else { return };
        lab.ip(NEAR, &format!("link set wan mtu {near_mtu}"));
        lab.ip(FAR, &format!("link set wan mtu {far_mtu}"));
        for counters in both_ways(&lab, 1_000_000) {
            assert_eq!((&counters["finished"], &counters["wan"]["refused"]), (&1.into(), &0.into()), "{counters}");
        }
    }
}
