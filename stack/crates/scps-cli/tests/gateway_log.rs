//! What a gateway tells its operator while it runs. Needs root, /dev/net/tun and `ip netns`; skips with the reason where that is not to
//! be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{Gateway, Lab, CLIENT, FAR, NEAR};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

/// The near gateway, and its log.
fn near(lab: &Lab) -> (Gateway, Receiver<String>) {
    let options = "gateway --rate none --rtt-ms 20 --peer 10.9.0.2 --far 10.2.0.0/24 --counters";
    let mut command = lab.inside(NEAR, env!("CARGO_BIN_EXE_scps"));
    command.args(options.split(' ')).arg(lab.path("near.jsonl"));
    command.arg("--metrics").arg(format!("unix:{}", lab.path("metrics"))).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let (sender, log) = channel();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut ready = String::new();
    said.read_line(&mut ready).unwrap();
    assert!(ready.contains("\"ready\""), "{ready}");
    assert!(line(&log).starts_with("scps: gateway: ready; lan: TUN interface scpsgw0; wan: UDP from "));
    (Gateway { child, said }, log)
}

fn line(log: &Receiver<String>) -> String {
    log.recv_timeout(Duration::from_secs(60)).expect("a line in the log")
}

#[test]
fn sighup_is_told_and_ends_nothing() {
    let Some(lab) = Lab::new() else { return };
    let (gateway, log) = near(&lab);
    for _ in 0..2 {
        gateway.signal("-HUP");
        let said = line(&log);
        assert!(said.starts_with("scps: gateway: SIGHUP: settings are read again: lan: TCP"), "{said}");
    }
    // It still works, and accounts for everything at its end.
    assert_eq!(gateway.end()["begun"], 0);
}

#[test]
fn the_log_has_the_state_of_the_far_side() {
    let Some(lab) = Lab::new() else { return };
    let (gateway, log) = near(&lab);
    let ask = |timeout: &str| {
        let script = "s = socket.socket(); s.settimeout(TIMEOUT)\n\
                      try: s.connect(('10.2.0.1', 81))\nexcept OSError as e: say(type(e).__name__)";
        lab.python(CLIENT, &script.replace("TIMEOUT", timeout))
    };
    let far = lab.gateway(FAR, "", "");
    // Nobody listens there; the far side says so, and is heard.
    assert_eq!(ask("20").finish(), "ConnectionRefusedError");
    assert_eq!(line(&log), "scps: gateway: far side (UDP from 0.0.0.0:7168 to 10.9.0.2:7168): up.");
    far.kill();
    let waiting = ask("60");
    let said = line(&log);
    assert!(said.contains("10.9.0.2:7168): silent; nothing was heard for "), "{said}");
    let _far = lab.gateway(FAR, "", "");
    assert_eq!(ask("20").finish(), "ConnectionRefusedError");
    let said = line(&log);
    assert!(said.contains("10.9.0.2:7168): back after "), "{said}");
    drop(waiting);
    gateway.end();
}

/// What a monitoring system gets.
fn metrics(lab: &Lab) -> BTreeMap<String, serde_json::Value> {
    let mut stream = UnixStream::connect(lab.path("metrics")).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: near\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (header, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(header.starts_with("HTTP/1.0 200 OK"), "{header}");
    let pair = |line: &str| {
        line.split_once(' ').map(|(name, number)| (name.to_owned(), serde_json::from_str(number).unwrap()))
    };
    body.lines().filter(|line| !line.starts_with('#')).map(|line| pair(line).unwrap()).collect()
}

#[test]
fn metrics_are_the_counters_of_now_whoever_else_holds_the_endpoint() {
    let Some(lab) = Lab::new() else { return };
    let (near, _log) = near(&lab);
    let far = lab.gateway(FAR, "", "");
    assert_eq!(metrics(&lab)["scps_gateway_begun"], 0);
    // Readers that ask nothing hold no more than their own places.
    let idle: Vec<UnixStream> = (0..7).map(|_| UnixStream::connect(lab.path("metrics")).unwrap()).collect();
    let script = "s = socket.socket(); s.settimeout(20)\n\
                  try: s.connect(('10.2.0.1', 81))\nexcept OSError as e: say(type(e).__name__)";
    assert_eq!(lab.python(CLIENT, script).finish(), "ConnectionRefusedError");
    let now = metrics(&lab);
    drop(idle);
    far.end();
    let counters = near.end();
    for name in ["begun", "unconnectable", "finished", "broken"] {
        assert_eq!(now[&format!("scps_gateway_{name}")], counters[name], "{name}");
    }
    assert_eq!((&now["scps_gateway_begun"], &now["scps_gateway_closes"]), (&1.into(), &1.into()));
    // The far side answered.
    assert_eq!((&now["scps_gateway_link_up"], &now["scps_gateway_link_rate_bps"]), (&1.into(), &0.0.into()));
    // A gateway that ends takes its socket file away.
    assert!(!std::path::Path::new(&lab.path("metrics")).exists());
}

/// Rows of a file of states by connection, (our port, the peer's), each window, threshold and round trip once.
fn states(lab: &Lab, name: &str) -> BTreeMap<(u16, u16), Vec<[u32; 3]>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in std::fs::read(lab.path(name)).unwrap().chunks_exact(36) {
        let port = |at: usize| u16::from_le_bytes(row[at..at + 2].try_into().unwrap());
        let told = [24, 28, 32].map(|at| u32::from_le_bytes(row[at..at + 4].try_into().unwrap()));
        assert_eq!(row[8..16], [10, 1, 0, 1, 10, 2, 0, 1], "the ends are those of the programs");
        found.entry((port(16), port(18))).or_default().push(told);
    }
    found.values_mut().for_each(Vec::dedup);
    found
}

/// Hands 100 kB each over connections, one after another, from the ports that follow the first.
fn transfers(lab: &Lab, first: u16, count: u16) {
    let mut server = lab.server(&format!("l = listening(80)\nfor _ in range({count}): say(every(l.accept()[0])[0])"));
    let client = format!(
        "for port in range({first}, {first} + {count}):\n\
         \x20 s = socket.create_connection(('10.2.0.1', 80), 60, ('10.1.0.1', port)); s.sendall(bytes(100000)); s.close()"
    );
    lab.python(CLIENT, &client).finish();
    (0..count).for_each(|_| assert_eq!(server.line(), "100000"));
}

#[test]
fn states_are_those_of_the_qlog_connection_by_connection_and_outlive_a_kill() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "none", "congestion": "vegas", "loss": "congestion", "rtt_ms": 20"#;
    let _relay = lab.bad_link([1, 30, 0]);
    let _far = lab.gateway(FAR, "", "");
    let options = format!("--qlog {} --states {}", lab.path("near.sqlog"), lab.path("near.states"));
    let near = lab.gateway(NEAR, "", &options);
    transfers(&lab, 4000, 3);
    near.end();
    let found = states(&lab, "near.states");
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [(4000, 80), (4001, 80), (4002, 80)]);
    // The qlog tells metrics that changed, by the number of the connection.
    let mut told: BTreeMap<u64, Vec<serde_json::Value>> = BTreeMap::new();
    for line in std::fs::read_to_string(lab.path("near.sqlog")).unwrap().lines() {
        let event: serde_json::Value = serde_json::from_str(line.trim_start_matches('\u{1e}')).unwrap();
        if event["name"] == "recovery:metrics_updated" {
            told.entry(event["group_id"].as_str().unwrap().parse().unwrap()).or_default().push(event["data"].clone());
        }
    }
    assert_eq!(told.len(), 3, "{:?}", told.keys());
    for (rows, metrics) in found.values().zip(told.values()) {
        let mut windows: Vec<_> = rows.iter().map(|row| u64::from(row[0])).collect();
        let mut in_qlog: Vec<_> = metrics.iter().filter_map(|data| data["congestion_window"].as_u64()).collect();
        windows.dedup();
        in_qlog.dedup();
        assert_eq!(windows, in_qlog);
        assert!(rows.len() > 20 && rows.last().unwrap()[2] > 0, "{rows:?}");
    }

    let near = lab.gateway(NEAR, "", &format!("--states {}", lab.path("near.states")));
    transfers(&lab, 5000, 1);
    near.kill();
    assert!(states(&lab, "near.states")[&(5000, 80)].len() > 20);
}

#[test]
fn states_end_where_they_may_and_connections_go_on() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "none", "congestion": "vegas", "loss": "congestion", "rtt_ms": 20"#;
    let _far = lab.gateway(FAR, "", "");
    let near = lab.gateway(NEAR, "", &format!("--states {} --states-max 200", lab.path("near.states")));
    transfers(&lab, 4000, 2);
    near.end();
    assert_eq!(std::fs::metadata(lab.path("near.states")).unwrap().len(), 180);
}
