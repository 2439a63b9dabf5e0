//! A hub with two space links, and a gateway for each: connections of its LAN to either site, and from one site to the other.
//! Needs root, /dev/net/tun and `ip netns`; skips with the reason where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{Gateway, Lab};

/// Client and hub; then gateway and server of each site.
const CLIENT: usize = 0;
const HUB: usize = 1;
const GATES: [usize; 2] = [2, 4];
const SERVERS: [usize; 2] = [3, 5];
const RATE_CONTROL: &str = r#""rate": "50 Mbit/s", "rtt_ms": 20"#;
const VEGAS: &str = r#""rate": "none", "congestion": "vegas", "rtt_ms": 5, "mtu": 1200"#;

fn hub() -> Option<Lab> {
    let lab = Lab::of(&["c", "h", "f", "s", "g", "t"])?;
    lab.wire([(CLIENT, "v0", "10.1.0.1"), (HUB, "lan", "10.1.0.9")]);
    for (site, number) in [(0, 2), (1, 4)] {
        let (to, wan) = (format!("10.9.{number}"), format!("wan{number}"));
        lab.wire([(HUB, &wan, &format!("{to}.1")), (GATES[site], "wan", &format!("{to}.2"))]);
        let lan = format!("10.{number}.0");
        lab.wire([(GATES[site], "lan", &format!("{lan}.9")), (SERVERS[site], "v0", &format!("{lan}.1"))]);
        lab.ip(SERVERS[site], &format!("route add default via {lan}.9"));
    }
    lab.ip(CLIENT, "route add default via 10.1.0.9");
    lab.forward(&[HUB, GATES[0], GATES[1]]);
    Some(lab)
}

/// One end of a link: its address there and that of the other end; what is behind that.
fn gateway(lab: &Lab, place: usize, ends: [&str; 2], far: &[&str], transport: &str) -> Gateway {
    let (local, remote) = (ends[0], ends[1]);
    let file = lab.path(&format!("{local}.json"));
    let device = format!("gw{}", remote.replace('.', "-"));
    let text = format!(
        r#"{{"lan": {{"carrier": {{"kind": "tun", "device": "{device}", "routes": {far:?}}}}},
            "wan": {{"carrier": {{"kind": "udp", "local": "{local}:7168", "remote": "{remote}:7168"}}, "transport": {{{transport}}}}}}}"#
    );
    std::fs::write(&file, text).unwrap();
    lab.start(place, &file, "")
}

/// Octets both ways between two ends, compared; what the server saw of the client's address is `who`.
fn exchange(lab: &Lab, from: usize, to: usize, address: &str, who: &str) {
    let server = lab.server_at(
        to,
        &format!(
            "l = socket.create_server(('{address}', 80)); say('listening'); s, a = l.accept(); s.settimeout(60); n, h = every(s)\n\
             d = os.urandom(1_000_000); s.sendall(d); s.close(); say(a[0], n, h, hashlib.sha256(d).hexdigest())"
        ),
    );
    let client = lab.python(
        from,
        &format!(
            "s = socket.create_connection(('{address}', 80)); s.settimeout(60); d = os.urandom(2_000_000); s.sendall(d)\n\
             s.shutdown(1); n, h = every(s); say('{who}', len(d), hashlib.sha256(d).hexdigest(), h)"
        ),
    );
    assert_eq!(client.finish(), server.finish());
}

#[test]
fn a_gateway_for_each_link_joins_a_lan_and_two_sites() {
    let Some(lab) = hub() else { return };
    let links = [
        (["10.9.2.1", "10.9.2.2"], ["10.2.0.0/24"], ["10.1.0.0/24", "10.4.0.0/24"], RATE_CONTROL),
        (["10.9.4.1", "10.9.4.2"], ["10.4.0.0/24"], ["10.1.0.0/24", "10.2.0.0/24"], VEGAS),
    ];
    let mut gateways = Vec::new();
    for (site, (ends, behind_site, behind_hub, transport)) in links.into_iter().enumerate() {
        gateways.push(gateway(&lab, HUB, ends, &behind_site, transport));
        gateways.push(gateway(&lab, GATES[site], [ends[1], ends[0]], &behind_hub, transport));
    }
    exchange(&lab, CLIENT, SERVERS[0], "10.2.0.1", "10.1.0.1");
    exchange(&lab, CLIENT, SERVERS[1], "10.4.0.1", "10.1.0.1");
    // From site to site both of the hub's gateways split it.
    exchange(&lab, SERVERS[0], SERVERS[1], "10.4.0.1", "10.2.0.1");
    std::thread::sleep(std::time::Duration::from_millis(500));
    for gateway in gateways {
        let counters = gateway.end();
        assert_eq!((&counters["begun"], &counters["finished"]), (&2.into(), &2.into()), "{counters}");
        let delivered: u64 =
            ["from_lan", "from_wan"].iter().map(|side| counters[side]["delivered"].as_u64().unwrap()).sum();
        assert_eq!(delivered, 6_000_000, "{counters}");
    }
}

#[test]
fn a_gateway_that_ends_leaves_the_other_links_connections_alone() {
    let Some(lab) = hub() else { return };
    let first = gateway(&lab, HUB, ["10.9.2.1", "10.9.2.2"], &["10.2.0.0/24"], RATE_CONTROL);
    let _site = gateway(&lab, GATES[0], ["10.9.2.2", "10.9.2.1"], &["10.1.0.0/24"], RATE_CONTROL);
    let second = gateway(&lab, HUB, ["10.9.4.1", "10.9.4.2"], &["10.4.0.0/24"], VEGAS);
    let _other = gateway(&lab, GATES[1], ["10.9.4.2", "10.9.4.1"], &["10.1.0.0/24"], VEGAS);
    let server = lab.server_at(
        SERVERS[0],
        "l = socket.create_server(('10.2.0.1', 80)); say('listening'); s, _ = l.accept(); s.settimeout(60); say(*every(s))",
    );
    let mut client = lab.python(
        CLIENT,
        "s = socket.create_connection(('10.2.0.1', 80)); d = os.urandom(4_000_000); s.sendall(d[:2_000_000]); say('half')\n\
         time.sleep(1); s.sendall(d[2_000_000:]); s.close(); say(len(d), hashlib.sha256(d).hexdigest())",
    );
    assert_eq!(client.line(), "half");
    second.kill();
    assert_eq!(client.finish(), server.finish());
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(first.end()["finished"], 1);
}
