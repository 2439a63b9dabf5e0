//! What `scps gateway --check` refuses, and other commands where an address or a settings file is taken. Needs no privileges.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Exit code and complaint.
fn scps(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_scps")).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn refuses(arguments: &[&str], words: &str) {
    let (code, said) = scps(arguments);
    assert!(code == Some(2) && said.contains(words), "{arguments:?}: {code:?} {said}");
}

/// Writes a settings file that is gone after the test.
struct File(std::path::PathBuf);

impl File {
    fn of(name: &str, text: &str) -> File {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("scps-{}-{number}-{name}.json", std::process::id()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn check(text: &str, words: &str) {
    let file = File::of("check", text);
    refuses(&["gateway", "--check", file.path()], words);
}

const UDP: &str = r#""carrier": {"kind": "udp", "remote": "203.0.113.2:7168"}"#;

#[test]
fn clients_that_give_up_before_an_answer_can_come_are_told_of() {
    let said = |rtt_ms: &str, more: &[&str]| {
        let link = ["--peer", "203.0.113.2", "--rate", "1 Mbit/s", "--far", "10.2.0.0/24", "--rtt-ms", rtt_ms];
        let output =
            Command::new(env!("CARGO_BIN_EXE_scps")).args(["gateway", "--check"]).args(link).args(more).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let advice = "an answer takes 1200 s at least: set \"set_up\": \"early\"";
    assert!(said("1200000", &[]).contains(advice), "{}", said("1200000", &[]));
    assert!(!said("600", &[]).contains("gives up"));
    let wan =
        format!(r#"{{"set_up": "early", "wan": {{{UDP}, "transport": {{"rate": "1 Mbit/s", "rtt_ms": 1200000}}}}}}"#);
    let early = File::of("early", &wan);
    let output = Command::new(env!("CARGO_BIN_EXE_scps")).args(["gateway", "--check", early.path()]).output().unwrap();
    assert!(output.status.success() && !String::from_utf8(output.stdout).unwrap().contains("gives up"));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let wan = |more: &str| format!(r#"{{"wan": {{{UDP}, "transport": {{"rate": "1 Mbit/s"{more}}}}}}}"#);
    let good = File::of("good", &wan(r#", "mtu": 156"#));
    assert_eq!(scps(&["gateway", "--check", good.path()]).0, Some(0));
    check(&wan(r#", "mtu": 20"#), "wan.transport.mtu: found 20; expected at least 156");
    check(&wan(r#", "rtt_ms": 0"#), "rtt_ms: found 0; expected the link's round-trip time, 1 ms or more");
    check("nonsense", ":1: found text that is no JSON (expected ident); expected an object in braces");
    check("[]", ":1: found a list; expected an object in braces");
    check("{\n\"wan\": {", ":2: wan: found text that is no JSON");
    let (code, said) = scps(&["gateway", "--check", "no-such-settings.json"]);
    let expected = "no-such-settings.json: found no such file; expected JSON settings: give the path of a file";
    assert!(code == Some(3) && said.contains(expected), "{code:?} {said}");
    let lan = |lan: &str| wan("").replacen('{', &format!("{{\"lan\": {lan},\n"), 1);
    check(&lan(r#"{"transport": {"mtu": 100}}"#), "lan.transport.mtu: found 100; expected at least 128");
    let routes = lan(r#"{"carrier": {"kind": "tun", "routes": ["10.3.0.0/16", "10.2.0.5/24"]}}"#);
    check(
        &routes,
        ":1: lan.carrier.routes[1]: found \"10.2.0.5/24\", an address within a network; expected \"10.2.0.0/24\"",
    );
    let options = "gateway --check --rate none --rtt-ms 20 --peer 203.0.113.2 --far 10.2.0.1/8";
    refuses(&options.split(' ').collect::<Vec<_>>(), "expected \"10.0.0.0/8\"");
}

#[test]
fn what_would_have_no_effect_is_refused() {
    let rate = r#""transport": {"rate": "none"}"#;
    let tun = File::of("tun", &format!("{{\n\"wan\": {{\"carrier\": {{\"kind\": \"tun\"}}, {rate}}}}}"));
    let peer = ["gateway", "--check", tun.path(), "--peer", "203.0.113.2"];
    refuses(&peer, ":2: wan.carrier: found kind tun and --peer; expected kind udp");
    let lan = r#""lan": {"carrier": {"kind": "udp", "local": "127.0.0.1:7169"}}"#;
    let udp = File::of("udp", &format!("{{{lan}, \"wan\": {{{UDP}, {rate}}}}}"));
    let far = ["gateway", "--check", udp.path(), "--far", "10.2.0.0/24"];
    refuses(&far, ":1: lan.carrier: found kind udp and --far; expected kind tun");
    for side in ["lan", "wan"] {
        let wan = format!("{{\"wan\": {{{UDP}, {rate}}}, \"lan\": {{\"transport\":\n {{\"rate\": \"none\"}}}}}}");
        let at = wan.find(&format!("{side}\"")).unwrap();
        let (before, after) = wan.split_at(at);
        let text = before.to_owned() + &after.replacen("\"none\"", "\"none\", \"precedence\": 3", 1);
        let line = if side == "lan" { 2 } else { 1 };
        check(&text, &format!(":{line}: {side}.transport.precedence: found 3; expected none"));
    }
    refuses(
        &["gateway", "--check", "--peer", "203.0.113.2", "--rate", "none", "--counters-every", "1"],
        "--counters <FILE>",
    );
    for [option, value] in [["--rate", "none"], ["--driver", "udp"], ["--seed", "1"], ["--udp-local", "127.0.0.1:1"]] {
        let words = format!("scps: {option}: found it with --transport tcp, the kernel's TCP; expected --transport tp");
        refuses(&["fp", "--transport", "tcp", "127.0.0.1", "1", "-e", "ls", option, value], &words);
        refuses(&["fpd", "--transport", "tcp", "--open", ".", option, value], &words);
    }
    refuses(
        &["fpd", "--transport", "tcp", "--open", ".", "--counters", "x"],
        "--counters: found it with --transport tcp",
    );
    for command in ["fp", "fpd"] {
        refuses(&[command, "--timeout-s", "1"], "unexpected argument '--timeout-s'");
    }
}

/// The address from which this machine would speak to others, if it has one: no packet leaves.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("203.0.113.2:9").ok()?;
    Some(socket.local_addr().unwrap().ip().to_string())
}

#[test]
fn a_peer_is_another_machine() {
    let peer = |peer: &str, words: &str| {
        refuses(&["gateway", "--check", "--rate", "none", "--rtt-ms", "20", "--peer", peer], words);
    };
    for nobody in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "203.0.113.2:0"] {
        peer(nobody, "is no address and port of one machine; expected the address of the other gateway");
    }
    peer("127.0.0.1", "found 127.0.0.1:7168 as peer, which is this machine's own address");
    if let Some(own) = own_address() {
        peer(&own, "is this machine's own address");
        peer(&format!("{own}:7169"), "is this machine's own address");
    }
}

#[test]
fn a_record_that_does_not_fit_in_the_send_buffer_is_refused_at_once() {
    for record in ["0", "5001", "1000000000000000000"] {
        let options = ["send", "--local", "10.8.0.1", "--to", "10.8.0.2:5001", "--buffer", "5000", "--record", record];
        refuses(&options, &format!("--record: found {record}; expected 1 to 5000, the send buffer"));
    }
}

#[test]
fn a_value_of_a_wrong_type_is_named_by_its_key() {
    let number = |key: &str| format!(":1: {key}: found string \"4\"; expected a whole number");
    check(r#"{"limits": {"connections": "4"}}"#, &number("limits.connections"));
    check(
        &format!(r#"{{"wan": {{{UDP}, "transport": {{"rate": "none", "mtu": "4"}}}}}}"#),
        &number("wan.transport.mtu"),
    );
    check(
        r#"{"wan": {"framing": 70000}}"#,
        "wan.framing: found integer `70000`; expected a whole number of 0 to 65535",
    );
    check(
        "{\"wan\": {\"carrier\":\n {\"kind\": \"udp\", \"offload\": \"yes\"}}}",
        ":2: wan.carrier.offload: found string \"yes\"; expected a boolean",
    );
    let other = "{\"lan\": {\"carrier\": {\"kind\": \"tun\",\n \"remote\": \"203.0.113.2:7168\"}}}";
    check(
        other,
        ":2: lan.carrier.remote: found it in a carrier of another kind; expected it with kind udp, or not at all",
    );
    let file = File::of("tunables", r#"{"ack_every": "4"}"#);
    let send = ["send", "--local", "10.8.0.1", "--to", "10.8.0.2:5001", "--config", file.path()];
    refuses(&send, &number("ack_every"));
}

#[test]
fn ipv6_is_refused_in_plain_words() {
    let words = "which is IPv6; expected an IPv4 address. scps does not support IPv6";
    for option in ["--peer", "--far"] {
        for address in ["2001:db8::1", "[2001:db8::1]:7168", "2001:db8::/32"] {
            refuses(
                &["gateway", "--check", "--rate", "none", option, address],
                &format!("found \"{address}\", {words}"),
            );
        }
    }
    for (keys, key) in [
        (r#""wan": {"carrier": {"kind": "udp", "remote": "[::1]:7168"}}"#, "wan.carrier.remote"),
        (r#""wan": {"carrier": {"kind": "udp", "local": "[::1]:7168"}}"#, "wan.carrier.local"),
        (r#""lan": {"carrier": {"kind": "tun", "routes": ["2001:db8::/32"]}}"#, "lan.carrier.routes[0]"),
        (r#""forwards": [{"side": "lan", "listen": "[::1]:80"}]"#, "forwards[0].listen"),
        (r#""forwards": [{"side": "lan", "from": "::1"}]"#, "forwards[0].from"),
        (r#""forwards": [{"side": "lan", "to": "[::1]:80"}]"#, "forwards[0].to"),
        (r#""host": {"interface": "eth0", "address": "::1"}"#, "host.address"),
        (r#""host": {"interface": "eth0", "far": ["2001:db8::/32"]}"#, "host.far[0]"),
    ] {
        let wan = format!(r#", "wan": {{{UDP}, "transport": {{"rate": "none"}}}}"#);
        let wan = match key.split('.').next() {
            Some("wan") => String::new(),
            Some("host") => wan.replace(UDP, r#""carrier": {"kind": "tun"}"#),
            _ => wan,
        };
        let file = File::of("six", &format!("{{{keys}{wan}}}"));
        let (code, said) = scps(&["gateway", "--check", file.path()]);
        assert!(code == Some(2) && said.contains(&format!(":1: {key}: found \"")) && said.contains(words), "{said}");
    }
    let (local, to) = (["--local", "10.8.0.1"], ["--to", "10.8.0.2:5001"]);
    for (command, option) in [
        ("send", ["--to", "[::1]:5001"]),
        ("send", ["--local", "::1"]),
        ("send", ["--udp-remote", "[::1]:7168"]),
        ("recv", ["--listen", "[::1]:5001"]),
        ("recv", ["--udp-local", "[::]:7168"]),
    ] {
        let others = [local, to].concat();
        let others = if option[0] == "--listen" || option[0] == "--local" { &[][..] } else { &others[..] };
        let others = if option[0] == "--to" { &others[..2] } else { others };
        refuses(&[&[command], &option[..], others].concat(), words);
    }
    refuses(&["fpd", "--open", ".", "--listen", "::1"], words);
    let carrier = r#"{"kind": "udp", "others": {"10.8.0.3": "[::1]:7168"}}"#;
    let router = format!(r#"{{"address": "10.8.0.1", "interfaces": [{{"name": "a", "carrier": {carrier}}}]}}"#);
    refuses(&["router", File::of("router", &router).path()], words);
    refuses(&["router", File::of("router-own", &router.replace("10.8.0.1", "::1")).path()], words);
    let sp = File::of("sp", r#"{"associations": [{"src": "::1", "dst": "10.8.0.2", "key_id": 1, "key_file": "k"}]}"#);
    refuses(&[&["send", "--sp", sp.path()], &local[..], &to[..]].concat(), words);
}

/// The table under a heading of docs/gateway-reference.md: the first column.
fn first_column(heading: &str) -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/gateway-reference.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split(&format!("## {heading}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")).skip(1);
    rows.map(|row| row.split(" |").next().unwrap().to_owned()).collect()
}

#[test]
fn exit_codes_and_ports_are_those_of_the_page() {
    assert_eq!(first_column("Exit codes"), ["0", "1", "2", "3", "127", "130, 143"]);
    let good = ["gateway", "--check", "--rate", "none", "--peer", "203.0.113.2"];
    assert_eq!(scps(&good).0, Some(0));
    assert_eq!(scps(&["gateway"]).0, Some(2));
    assert_eq!(scps(&["gateway", "/nonexistent/settings.json"]).0, Some(3));
    // 143 is what the gateway's log ends with in gateway_log.rs, and 127 needs a machine without TUN devices.
    let help = |command: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_scps")).args([command, "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let ports = first_column("Ports");
    assert_eq!(ports, ["UDP 7168", "UDP 7168", "UDP 7168", "TCP 2121", "none"]);
    assert!(help("gateway").contains("port 7168 unless it is given"));
    for command in ["recv", "send", "fp", "fpd"] {
        assert!(
            help(command).contains("--udp-local <ADDR:PORT> UDP: outer address to receive on [default: 0.0.0.0:7168]"),
            "{command}"
        );
    }
    assert!(help("fpd").contains("the tunable CTLPORT, 2121"));
}

#[test]
fn sp_that_protects_nothing_is_refused() {
    let wan = |carrier: &str, sp: &File, names: &str| {
        let path = sp.path();
        format!(
            "{{\"wan\": {{{carrier},\n\"sp\": {{\"file\": \"{path}\"{names}}}, \"transport\": {{\"rate\": \"1 Mbit/s\"}}}}}}"
        )
    };
    let nobody = File::of("nobody", r#"{"associations": []}"#);
    let lax = File::of("lax", r#"{"associations": [], "policy": "on-demand", "allow_downgrade": true}"#);
    let own = r#", "own": "203.0.113.1""#;
    check(&wan(r#""carrier": {"kind": "tun"}"#, &nobody, ""), "wan.sp: found no peer; expected a carrier of kind udp");
    check(&wan(UDP, &nobody, ""), "found 0 senders to 203.0.113.2; expected one, or \"own\"");
    check(&wan(UDP, &nobody, own), "associations: found none from 203.0.113.1 to 203.0.113.2; expected one in each");
    check(&wan(UDP, &lax, own), "policy: found one that lets packets pass in clear; expected strict");
}

#[test]
fn routes_into_a_gateway_whose_wan_is_a_tun_device_are_refused() {
    let tun = |lan: &str| {
        format!(
            r#"{{"lan": {{"carrier": {{"kind": "tun"{lan}}}}}, "wan": {{"carrier": {{"kind": "tun"}}, "transport": {{"rate": "1 Mbit/s"}}}}}}"#
        )
    };
    let good = File::of("tun", &tun(""));
    assert_eq!(scps(&["gateway", "--check", good.path()]).0, Some(0));
    let words = "lan.carrier: found the route 10.2.0.0/24 beside a WAN of kind tun; expected none";
    check(&tun(r#", "routes": ["10.2.0.0/24"]"#), words);
    refuses(&["gateway", "--check", "--far", "10.2.0.0/24", good.path()], words);
}
