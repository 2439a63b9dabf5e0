//! Links and machines that are not as the settings say, and what a gateway does and says about it. Needs root, /dev/net/tun and
//! `ip netns`; skips with the reason where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{Lab, CLIENT, FAR, NEAR};

/// What the near gateway finds out before it starts, and whether all is well.
fn probe(lab: &Lab, options: &str) -> (bool, String) {
    let all = format!("gateway --probe --rate none --peer 10.9.0.2 --far 10.2.0.0/24 {options}");
    let output = lab.inside(NEAR, env!("CARGO_BIN_EXE_scps")).args(all.split_whitespace()).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr))
}

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

/// A program on the way between the gateways drops what is too long, in silence, fragments aside: as tunnels do whose ICMP is filtered.
#[test]
fn a_link_on_which_long_packets_vanish_is_found_out() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "20 Mbit/s", "rtt_ms": 20"#;
    let _link = lab.narrow_link(1400);
    for counters in both_ways(&lab, 300_000) {
        assert_eq!(counters["finished"], 1, "{counters}");
        assert_eq!(counters["wan"]["black_holes"], 1, "{counters}");
    }
}

#[test]
fn a_probe_says_whether_the_far_side_answers_and_what_arrives() {
    let Some(lab) = Lab::new() else { return };
    let (is_well, said) = probe(&lab, "");
    assert!(
        !is_well && said.contains("10.9.0.2:7168: no answer in 2.0 s, 3 times; is the other gateway running"),
        "{said}"
    );
    let far = lab.gateway(FAR, "", "");
    let (is_well, said) = probe(&lab, "");
    assert!(is_well && said.contains("answers after ") && said.contains("packets of 1500 octets arrive"), "{said}");
    // Between the gateways what is too long vanishes: fragments do, too.
    let drop_long = ["-A", "OUTPUT", "-p", "udp", "-m", "length", "--length", "1401:", "-j", "DROP"];
    let is_filtered = lab.inside(NEAR, "iptables").args(drop_long).output().is_ok_and(|output| output.status.success());
    if is_filtered {
        let (is_well, said) = probe(&lab, "");
        assert!(
            !is_well && said.contains("packets of more than 1400 octets do not arrive; set \"mtu\": 1400"),
            "{said}"
        );
    }
    far.end();
}

#[test]
fn sealed_packets_at_a_gateway_without_the_key_are_counted() {
    let Some(lab) = Lab::new() else { return };
    let sp = lab.sp();
    let (near, far) = (lab.gateway(NEAR, "", &sp), lab.gateway(FAR, "", ""));
    let client = lab.python(
        CLIENT,
        "s = socket.socket(); s.settimeout(3)\ntry: s.connect(('10.2.0.1', 80))\nexcept OSError: say('nothing')",
    );
    assert_eq!(client.finish(), "nothing");
    let counters = far.end();
    let passed = &counters["wan"]["passed"];
    assert!(passed["no_ip"].as_u64() > Some(0) && passed["no_ip"] == passed["dropped"], "{counters}");
    near.end();
}

#[test]
fn the_start_looks_at_the_machine() {
    let Some(lab) = Lab::new() else { return };
    lab.ip(NEAR, "link set wan mtu 1492");
    lab.shell(NEAR, "sysctl -w net.ipv4.ip_forward=0");
    let check = |options: &str| {
        let all = format!("gateway --check --far 10.2.0.0/24 {options}");
        let output = lab.inside(NEAR, env!("CARGO_BIN_EXE_scps")).args(all.split_whitespace()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let said = check("--peer 10.9.0.2 --rate 10");
    for words in [
        "look: the rate is 10 bit/s; write its unit",
        "look: net.ipv4.ip_forward is 0",
        "look: the way to 10.9.0.2 takes packets of 1492 octets, and \"mtu\" is 1500; set \"mtu\": 1492",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(check("--peer 192.0.2.77 --rate none").contains("look: there is no way to 192.0.2.77:7168"));
    lab.shell(NEAR, "sysctl -w net.ipv4.ip_forward=1");
    lab.ip(NEAR, "link set wan mtu 1500");
    assert!(!check("--peer 10.9.0.2 --rate none").contains("look: "));
    // A second gateway of the same device.
    let _first = lab.gateway(NEAR, "", "");
    let output = lab.inside(NEAR, env!("CARGO_BIN_EXE_scps")).args(["gateway", &lab.path("1.json")]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("another program has it: end that one, or name another device"), "{said}");
}

/// What was lost on the way makes the reset's number another than the one that the other gateway expects, and it asks.
#[test]
fn a_gateway_that_stops_on_a_lossy_link_is_told_to_programs_at_once() {
    for place in [FAR, NEAR] {
        let Some(mut lab) = Lab::new() else { return };
        let _link = lab.bad_link([2, 98, 0]);
        let (near, far) = lab.pair("");
        let _server = lab.server(
            "l = listening(80); s, _ = l.accept()\ntry:\n  while True: s.sendall(bytes(65536))\nexcept OSError: pass",
        );
        let mut client = lab.python(
            CLIENT,
            "s = socket.create_connection(('10.2.0.1', 80)); s.settimeout(90); n = 0\n\
             while n < 2_000_000: n += len(s.recv(65536))\n\
             say('under way'); last = time.monotonic()\n\
             try:\n  while s.recv(65536): last = time.monotonic()\n  say('end of file')\n\
             except ConnectionResetError: say('reset', time.monotonic() - last < 20)",
        );
        assert_eq!(client.line(), "under way");
        let (stopped, _other) = if place == FAR { (far, near) } else { (near, far) };
        stopped.end();
        assert_eq!(client.finish(), "reset True");
    }
}
