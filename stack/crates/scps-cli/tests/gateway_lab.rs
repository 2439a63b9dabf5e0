//! Unmodified programs through two gateways between network namespaces: client – gateway – gateway – server, kernel TCP at both ends
//! and SCPS-TP in UDP between. Needs root, /dev/net/tun and `ip netns`; skips with the reason where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{ip, Gateway, Lab, CLIENT, FAR, NEAR, SERVER};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const POLICIES: [&str; 3] = ["connect-first", "accept-first", "early"];

#[test]
fn octets_are_equal_both_ways_after_a_half_close() {
    let Some(lab) = Lab::new() else { return };
    for policy in POLICIES {
        let (near, far) = lab.pair(&format!(r#", "set_up": "{policy}""#));
        let server = lab.server(
            "s, who = listening(80).accept(); n, h = every(s); d = os.urandom(3_000_000); s.sendall(d); s.close()\n\
             say(who[0], n, h, hashlib.sha256(d).hexdigest())",
        );
        let client = lab.python(
            CLIENT,
            "s = socket.create_connection(('10.2.0.1', 80)); d = os.urandom(5_000_000); s.sendall(d)\n\
             s.shutdown(socket.SHUT_WR); n, h = every(s); say(n, hashlib.sha256(d).hexdigest(), h)",
        );
        let (client, server) = (client.finish(), server.finish());
        let [n, sent, received] = client.split(' ').collect::<Vec<_>>()[..] else { panic!("{client}") };
        // The server sees the client, not a gateway.
        assert_eq!(server, format!("10.1.0.1 5000000 {sent} {received}"), "{policy}");
        assert_eq!(n, "3000000");
        for counters in [near.end(), far.end()] {
            assert_eq!((&counters["finished"], &counters["broken"]), (&1.into(), &0.into()), "{counters}");
            let amounts: Vec<u64> = ["from_lan", "from_wan"].map(|d| counters[d]["delivered"].as_u64().unwrap()).into();
            assert_eq!(amounts.iter().sum::<u64>(), 8_000_000, "{counters}");
            assert_eq!(counters["from_lan"]["lost"], 0);
        }
        assert_eq!(
            lab.lines(NEAR, "connection").last().unwrap()["client"].as_str().unwrap().split(':').next(),
            Some("10.1.0.1")
        );
    }
}

#[test]
fn a_page_comes_through_curl() {
    let Some(lab) = Lab::new() else { return };
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let _gateways = lab.pair("");
    std::fs::write(lab.path("page"), vec![b'x'; 300_000]).unwrap();
    let folder = lab.folder.display();
    let _server = lab.server(&format!(
        "import http.server, threading\nos.chdir('{folder}')\n\
         class H(http.server.SimpleHTTPRequestHandler):\n  def log_message(self, *a): pass\n\
         h = http.server.ThreadingHTTPServer(('10.2.0.1', 8080), H); say('listening'); h.serve_forever()"
    ));
    let page = "http://10.2.0.1:8080/page";
    let mut curl = lab.inside(CLIENT, "curl");
    curl.args(["-sS", "--parallel", "-m", "60"]).args([page; 6]).args(["-o", "/dev/null"].repeat(6));
    let output = curl.args(["-w", "%{http_code} %{size_download}\n"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().filter(|line| *line == "200 300000").count(), 6, "{output:?}");
}

#[test]
fn iperf3_measures_through_gateways_in_both_directions() {
    let Some(lab) = Lab::new() else { return };
    if Command::new("iperf3").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: iperf3 is not installed");
        return;
    }
    let (near, far) = lab.pair("");
    for direction in [&[][..], &["--reverse"], &["--bidir"]] {
        let mut server = lab.inside(SERVER, "iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let mut client = lab.inside(CLIENT, "iperf3");
        let output = client.args(["-c", "10.2.0.1", "-t", "2", "-P", "2", "-J"]).args(direction).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rate = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
        // The gateways' rate is 200 Mbit/s; a machine with other work to do may be slower.
        assert!((20e6..200e6).contains(&rate), "{direction:?}: {rate}");
        assert!(server.wait().unwrap().success());
    }
    for counters in [near.end(), far.end()] {
        // A control connection and two for each direction, in three measurements.
        assert_eq!(counters["begun"], 3 * 3 + 2, "{counters}");
    }
}

#[test]
fn who_is_refused_is_told_and_so_is_who_is_reset() {
    let Some(lab) = Lab::new() else { return };
    for policy in POLICIES {
        let (near, far) = lab.pair(&format!(r#", "set_up": "{policy}""#));
        let refused = lab.python(
            CLIENT,
            "try:\n  s = socket.create_connection(('10.2.0.1', 81), timeout=20); say('connected'); s.recv(1); say('end')\n\
             except OSError as e: say(type(e).__name__)",
        );
        // Without delay, the reset may come before the program has asked whether it is connected.
        let (said, is_refused) = (refused.finish(), policy == "connect-first");
        assert!(
            said.ends_with(if is_refused { "ConnectionRefusedError" } else { "ConnectionResetError" }),
            "{policy}: {said}"
        );
        // A reset of the client's after data reaches the server as one.
        let server = lab.server(
            "s, _ = listening(80).accept(); s.settimeout(20)\n\
             try:\n  n, _ = every(s); say('end', n)\nexcept OSError as e: say(type(e).__name__)",
        );
        let client = lab.python(
            CLIENT,
            "s = socket.create_connection(('10.2.0.1', 80)); s.sendall(bytes(1000)); time.sleep(.3); lingering(s); s.close()",
        );
        client.finish();
        assert_eq!(server.finish(), "ConnectionResetError", "{policy}");
        for counters in [near.end(), far.end()] {
            assert_eq!(counters["broken"], 2, "{policy}: {counters}");
        }
    }
}

/// A client sends until it fails, a server without keep-alives reads until it does; a gateway is killed and started again, as systemd
/// does.
fn kill_and_restart(lab: &Lab, which: usize) {
    let (near, far) = lab.pair("");
    let server = lab.server(
        "s, _ = listening(80).accept(); s.settimeout(60); say('open')\n\
         try:\n  n, _ = every(s); say('end', n)\nexcept OSError as e: say(type(e).__name__)",
    );
    let client = lab.python(
        CLIENT,
        "s = socket.create_connection(('10.2.0.1', 80)); s.settimeout(60)\n\
         try:\n  while True: s.sendall(bytes(65536))\nexcept OSError as e: say(type(e).__name__)",
    );
    let mut server = server;
    assert_eq!(server.line(), "open");
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    let (killed, other) = if which == NEAR { (near, far) } else { (far, near) };
    killed.kill();
    let again = lab.gateway(which, "", "");
    assert_eq!(
        (client.finish(), server.finish()),
        ("ConnectionResetError".to_owned(), "ConnectionResetError".to_owned())
    );
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    let counters = other.end();
    assert_eq!((&counters["broken"], &counters["open"]), (&1.into(), &0.into()), "{counters}");
    assert_eq!(again.end()["begun"], 0);
}

#[test]
fn programs_are_told_when_the_gateway_at_the_client_is_killed() {
    if let Some(lab) = Lab::new() {
        kill_and_restart(&lab, NEAR);
    }
}

#[test]
fn programs_are_told_when_the_gateway_at_the_server_is_killed() {
    if let Some(lab) = Lab::new() {
        kill_and_restart(&lab, FAR);
    }
}

#[test]
fn programs_are_told_of_a_kill_with_compressed_headers() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "200 Mbit/s", "rtt_ms": 20, "compression": true"#;
    for which in [NEAR, FAR] {
        kill_and_restart(&lab, which);
    }
}

/// Both programs send and read; whoever does not have all was told by an error.
#[test]
fn a_kill_at_any_moment_loses_nothing_without_an_error() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "20 Mbit/s", "rtt_ms": 20"#;
    // Of two threads that use a socket, one gets its error.
    let both = "d = (b'0123456789' * 400_001)[:4_000_003]; s.settimeout(60); got = bytearray(); told = []\n\
        def give():\n  try: s.sendall(d); s.shutdown(1)\n  except OSError: told.append(True)\n\
        import threading; t = threading.Thread(target=give); t.start()\n\
        try:\n  while (x := s.recv(65536)): got += x\nexcept TimeoutError: say('HANGS')\nexcept OSError: told.append(True)\n\
        t.join(); is_prefix = d.startswith(bytes(got))\n\
        say('WRONG' if not is_prefix else 'all' if got == d else 'error' if told else 'SHORT %d' % len(got))";
    let mut outcomes = Vec::new();
    let mut seed = 40_u64;
    let moments = std::env::var("SCPS_KILLS").map_or(12, |number| number.parse().expect("a number"));
    for moment in 0..moments {
        let (near, far) = lab.pair("");
        let server = lab.server(&format!("s, _ = listening(80).accept()\n{both}"));
        let mut client =
            lab.python(CLIENT, &format!("s = socket.create_connection(('10.2.0.1', 80)); say('open')\n{both}"));
        assert_eq!(client.line(), "open");
        // Knuth's generator; the transfer takes 1.7 s, and what is at the end is in doubt longest.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((seed >> 33) % 2000));
        let place = [NEAR, FAR][moment % 2];
        let (killed, other) = if place == NEAR { (near, far) } else { (far, near) };
        killed.kill();
        let again = lab.gateway(place, "", "");
        let (client, server) = (client.finish(), server.finish());
        for said in [&client, &server] {
            assert!(["all", "error"].contains(&said.as_str()), "moment {moment}: client {client}, server {server}");
        }
        outcomes.push((client, server));
        drop((again, other));
    }
    assert!(outcomes.iter().any(|both| both.0 == "error"), "killed too late to matter: {outcomes:?}");
}

#[test]
fn a_cut_link_is_waited_for() {
    let Some(lab) = Lab::new() else { return };
    let (near, far) = lab.pair("");
    let server = lab.server("s, _ = listening(80).accept(); s.settimeout(90); say(*every(s))");
    let client = lab.python(
        CLIENT,
        "s = socket.create_connection(('10.2.0.1', 80)); d = os.urandom(30_000_000); say('go'); s.sendall(d); s.close()\n\
         say(len(d), hashlib.sha256(d).hexdigest())",
    );
    let mut client = client;
    assert_eq!(client.line(), "go");
    for pause in [1, 5] {
        std::thread::sleep(Duration::from_millis(300));
        assert!(ip(&format!("-n {} link set wan down", lab.namespaces[NEAR])));
        std::thread::sleep(Duration::from_secs(pause));
        assert!(ip(&format!("-n {} link set wan up", lab.namespaces[NEAR])));
    }
    assert_eq!(client.finish(), server.finish());
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((&near.end()["finished"], &far.end()["finished"]), (&1.into(), &1.into()));
}

#[test]
fn links_that_lose_repeat_and_reorder_are_no_matter() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "20 Mbit/s", "rtt_ms": 20"#;
    lab.near_wan = r#""local": "127.0.0.1:7168", "remote": "127.0.0.1:7169""#;
    let _link = lab.python(
        NEAR,
        "import heapq, itertools, random, select; random.seed(7); count = itertools.count(); waiting = []\n\
         near = socket.socket(type=socket.SOCK_DGRAM); near.bind(('127.0.0.1', 7169))\n\
         far = socket.socket(type=socket.SOCK_DGRAM); far.bind(('10.9.0.1', 7168))\n\
         onward = {near: (far, ('10.9.0.2', 7168)), far: (near, ('127.0.0.1', 7168))}\n\
         while True:\n\
         \x20 ready, _, _ = select.select([near, far], [], [], .001)\n\
         \x20 now = time.monotonic()\n\
         \x20 for s in ready:\n\
         \x20   try: d = s.recv(2000)\n\
         \x20   except OSError: continue\n\
         \x20   for _ in range(random.choices([0, 1, 2], [2, 93, 5])[0]):\n\
         \x20     late = random.random() * .02 if random.random() < .1 else 0\n\
         \x20     heapq.heappush(waiting, (now + late, next(count), s, d))\n\
         \x20 while waiting and waiting[0][0] <= now:\n\
         \x20   _, _, s, d = heapq.heappop(waiting); to, at = onward[s]\n\
         \x20   try: to.sendto(d, at)\n\
         \x20   except OSError: pass",
    );
    let (near, far) = lab.pair("");
    let server = lab.server(
        "s, _ = listening(80).accept(); s.settimeout(60); n, h = every(s); d = os.urandom(700_000); s.sendall(d); s.close()\n\
         say(n, h, hashlib.sha256(d).hexdigest())",
    );
    let client = lab.python(
        CLIENT,
        "s = socket.create_connection(('10.2.0.1', 80)); s.settimeout(60); d = os.urandom(3_000_000); s.sendall(d)\n\
         s.shutdown(1); n, h = every(s); say(len(d), hashlib.sha256(d).hexdigest(), h)",
    );
    assert_eq!(client.finish(), server.finish());
    std::thread::sleep(Duration::from_millis(500));
    let counters = near.end();
    assert!(counters["wan"]["resends"].as_u64().unwrap() > 10, "{counters}");
    assert_eq!((&counters["finished"], &far.end()["finished"]), (&1.into(), &1.into()));
}

#[test]
fn nobody_at_the_far_side_is_an_error_of_the_right_kind() {
    let Some(lab) = Lab::new() else { return };
    let asks = |address: &str| {
        format!(
            "t = time.time()\ntry: s = socket.create_connection(('{address}', 80), timeout=30); s.recv(1); say('end')\n\
             except OSError as e: say(type(e).__name__, e.errno, int(time.time() - t) < 15)"
        )
    };
    // A host that is not there: the router at the far side says so, and the client hears it as if it had asked itself.
    let (near, far) = lab.pair("");
    let client = lab.python(CLIENT, &asks("10.2.0.77"));
    assert_eq!(client.finish(), "OSError 113 True", "EHOSTUNREACH");
    assert_eq!(lab.lines(NEAR, "connection")[0]["end"], "unreachable on the side Wan");
    for counters in [near.end(), far.end()] {
        assert_eq!((&counters["broken"], &counters["open"]), (&1.into(), &0.into()), "{counters}");
    }
    // No gateway at the far side: who was answered early is reset when the time for set-up is over.
    for policy in ["accept-first", "early"] {
        let near = lab.gateway(NEAR, &format!(r#", "set_up": "{policy}", "limits": {{"set_up_s": 2}}"#), "");
        let client = lab.python(CLIENT, &asks("10.2.0.1"));
        assert_eq!(client.finish(), "ConnectionResetError 104 True", "{policy}");
        assert_eq!(near.end()["broken"], 1);
    }
}

#[test]
fn connections_beyond_the_memory_are_refused_and_the_others_served() {
    let Some(lab) = Lab::new() else { return };
    // Buffers of a connection: four of a million octets.
    let (near, _far) = lab.pair(r#", "limits": {"buffered_bytes": 12000000}"#);
    let _server = lab.server(
        "import threading\ndef serve(c):\n  while (d := c.recv(65536)): c.sendall(d)\n  c.close()\n\
         l = listening(80)\nwhile True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()",
    );
    let client = lab.python(
        CLIENT,
        "kept, refused = [], 0\nfor i in range(6):\n  try: kept.append(socket.create_connection(('10.2.0.1', 80), timeout=20))\n\
         \x20 except ConnectionRefusedError: refused += 1\n\
         for s in kept: s.sendall(b'x' * 9000); s.settimeout(20); n = 0\n\
         for s in kept:\n  n = 0\n  while n < 9000: n += len(s.recv(9000))\n\
         [s.close() for s in kept]; time.sleep(.5); socket.create_connection(('10.2.0.1', 80), timeout=20)\n\
         say(len(kept), refused)",
    );
    assert_eq!(client.finish(), "3 3");
    let counters = near.end();
    assert_eq!((&counters["begun"], &counters["full"]), (&4.into(), &3.into()), "{counters}");
}

#[test]
fn a_flood_of_syns_keeps_nobody_out() {
    let Some(lab) = Lab::new() else { return };
    let keys = r#", "set_up": "accept-first", "limits": {"connections": 100}"#;
    let (near, far) = lab.pair(keys);
    let server = lab.server("s, _ = listening(80).accept(); s.settimeout(60); say(*every(s))");
    let flood = lab.python(
        CLIENT,
        "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW); say('go')\n\
         def total(d):\n  n = sum(struct.unpack('!%dH' % (len(d) // 2), d))\n  while n >> 16: n = (n & 65535) + (n >> 16)\n  return ~n & 65535\n\
         to = socket.inet_aton('10.2.0.1')\n\
         for i in range(20_000):\n\
         \x20 src = bytes([10, 1, 100 + i % 100, 1 + i // 100 % 250])\n\
         \x20 head = lambda c: struct.pack('!HHIIBBHHH', 1024 + i, 80, i * 7919, 0, 0x50, 2, 8192, c, 0)\n\
         \x20 tcp = head(total(src + to + struct.pack('!HH', 6, 20) + head(0)))\n\
         \x20 s.sendto(struct.pack('!BBHHHBBH4s4s', 0x45, 0, 40, i & 65535, 0, 64, 6, 0, src, to) + tcp, ('10.2.0.1', 0))\n\
         say('done')",
    );
    let mut flood = flood;
    assert_eq!(flood.line(), "go");
    std::thread::sleep(Duration::from_millis(100));
    let client = lab.python(
        CLIENT,
        "s = socket.create_connection(('10.2.0.1', 80), timeout=30); d = os.urandom(2_000_000); s.sendall(d); s.close()\n\
         say(len(d), hashlib.sha256(d).hexdigest())",
    );
    assert_eq!(client.finish(), server.finish());
    assert_eq!(flood.finish(), "done");
    let (counters, far) = (near.end(), far.end());
    assert_eq!((&counters["begun"], &counters["full"], &far["begun"]), (&1.into(), &0.into(), &1.into()), "{counters}");
    // Many times the connections that it may keep; the kernel drops what a busy machine has no time for.
    assert!(counters["lan"]["received"].as_u64().unwrap() > 2_000, "{counters}");
}

#[test]
fn a_way_around_the_gateways_is_told_or_taken() {
    let Some(lab) = Lab::new() else { return };
    let (c, s) = (&lab.namespaces[CLIENT], &lab.namespaces[SERVER]);
    assert!(ip(&format!("-n {c} link add v1 type veth peer name v1 netns {s}")));
    for (ns, address) in [(c, "10.5.0.1"), (s, "10.5.0.2")] {
        assert!(ip(&format!("-n {ns} addr add {address}/24 dev v1")) && ip(&format!("-n {ns} link set v1 up")));
    }
    let asks = "t = time.time()\ntry:\n  s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 2); s.settimeout(30)\n\
        \x20 s.connect(('10.2.0.1', 80)); s.sendall(b'x'); say(s.recv(1))\n\
        except OSError as e: say(type(e).__name__, int(time.time() - t) < 15)";
    let answers =
        "l = listening(80)\nwhile True:\n  s, _ = l.accept()\n  try: s.sendall(s.recv(1))\n  except OSError: pass";
    // Only the server's answers go through the gateways: they were not asked for, so both ends are told.
    assert!(ip(&format!("-n {c} route add 10.2.0.0/24 via 10.5.0.2 src 10.1.0.1")));
    for (keys, expected) in [("", "ConnectionRefusedError True"), (r#", "unknown": "pass""#, "b'x'")] {
        let _gateways = lab.pair(keys);
        let _server = lab.server(answers);
        assert_eq!(lab.python(CLIENT, asks).finish(), expected, "{keys}");
    }
    // Only the client's packets go through them: nobody can answer in the gateways' name, and the client gives up as without one.
    assert!(ip(&format!("-n {c} route del 10.2.0.0/24")));
    assert!(ip(&format!("-n {s} route add 10.1.0.0/24 via 10.5.0.1")));
    let (near, far) = lab.pair(r#", "limits": {"set_up_s": 3}"#);
    let _server = lab.server(answers);
    assert_eq!(lab.python(CLIENT, asks).finish(), "TimeoutError True");
    std::thread::sleep(Duration::from_secs(4));
    for counters in [near.end(), far.end()] {
        assert_eq!(counters["begun"], counters["broken"], "{counters}");
    }
}

#[test]
fn a_route_that_leads_elsewhere_is_not_taken_over_in_silence() {
    let Some(lab) = Lab::new() else { return };
    let near = &lab.namespaces[NEAR];
    assert!(ip(&format!("-n {near} route add 10.2.0.0/24 via 10.9.0.2")));
    let mut gateway = lab.inside(NEAR, env!("CARGO_BIN_EXE_scps"));
    gateway.args("gateway --peer 10.9.0.2 --rtt-ms 20 --far 10.2.0.0/24 --rate".split_whitespace()).arg("10 Mbit/s");
    let output = gateway.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("10.2.0.0/24 is routed to wan already") && text.contains("ip route del"), "{text}");
    // One with a metric is left as it is, and not taken while the gateway runs.
    assert!(ip(&format!("-n {near} route del 10.2.0.0/24")));
    assert!(ip(&format!("-n {near} route add 10.2.0.0/24 via 10.9.0.2 metric 100")));
    let gateway = lab.gateway(NEAR, "", "");
    let taken = lab.inside(NEAR, "ip").args(["route", "get", "10.2.0.1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&taken.stdout).contains("dev scpsgw0"), "{taken:?}");
    gateway.end();
}

#[test]
fn a_thousand_connections_at_once_are_served_and_leave_nothing() {
    let Some(lab) = Lab::new() else { return };
    let keys = r#", "limits": {"connections": 1500, "buffered_bytes": 100000000000}"#;
    let (near, far) = lab.pair(keys);
    let limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n";
    let server = lab.server(&format!(
        "{limit}s = listening(80); s.setblocking(False)\n\
         async def serve(r, w):\n  d = await r.read(); w.write(d[::-1]); await w.drain(); w.close()\n\
         async def main():\n  async with await asyncio.start_server(serve, sock=s, limit=1 << 20): await asyncio.sleep(600)\n\
         asyncio.run(main())"
    ));
    let client = lab.python(
        CLIENT,
        &format!(
            "{limit}async def one(i):\n  d = bytes([i % 251]) * 9_000 + i.to_bytes(4, 'big')\n\
             \x20 r, w = await asyncio.open_connection('10.2.0.1', 80, limit=1 << 20)\n\
             \x20 w.write(d[:5000]); await asyncio.gather(*[asyncio.sleep((i * 7919 % 1000) / 1000)]); w.write(d[5000:]); w.write_eof()\n\
             \x20 ok = await r.read() == d[::-1]; w.close(); return ok\n\
             async def main(): say(sum(await asyncio.gather(*[one(i) for i in range(1000)])))\n\
             asyncio.run(asyncio.wait_for(main(), 240))"
        ),
    );
    assert_eq!(client.finish(), "1000");
    drop(server);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        near.signal("-USR1");
        std::thread::sleep(Duration::from_millis(200));
        let last = lab.lines(NEAR, "counters").pop();
        if last.is_some_and(|line| line["open"] == 0 && line["allocated_bytes"] == 0) {
            break;
        }
        assert!(Instant::now() < deadline, "{:?}", lab.lines(NEAR, "counters").pop());
    }
    for counters in [near.end(), far.end()] {
        assert_eq!((&counters["finished"], &counters["broken"]), (&1000.into(), &0.into()), "{counters}");
        assert_eq!(counters["from_lan"]["lost"], 0);
    }
    assert_eq!(lab.lines(NEAR, "connection").len(), 1000);
}

#[test]
fn a_port_leads_to_a_server_without_a_route_to_it() {
    let Some(lab) = Lab::new() else { return };
    // The client's host routes 10.3.0.9 by default; the server's network and the client's do not know each other.
    let forward =
        r#", "forwards": [{"side": "lan", "listen": "10.3.0.9:8080", "from": "10.1.99.9", "to": "10.2.0.1:80"}]"#;
    let file = lab.path("forward.json");
    let text = format!(
        r#"{{"lan": {{"carrier": {{"kind": "tun", "routes": ["10.3.0.9"]}}}},
            "wan": {{"carrier": {{"kind": "udp", "remote": "10.9.0.2:7168"}}, "transport": {{"rate": "200 Mbit/s"}}}}{forward}}}"#
    );
    std::fs::write(&file, text).unwrap();
    let mut near = lab.inside(NEAR, env!("CARGO_BIN_EXE_scps"));
    let mut near = near.args(["gateway", &file]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(near.stdout.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let near = Gateway { child: near, said };
    let far = lab.gateway(FAR, "", "");
    let server = lab.server("s, who = listening(80).accept(); n, _ = every(s); s.sendall(b'good'); say(who[0], n)");
    let client = lab.python(
        CLIENT,
        "s = socket.create_connection(('10.3.0.9', 8080)); s.sendall(bytes(70000)); s.shutdown(1); say(s.recv(9))",
    );
    assert_eq!((client.finish(), server.finish()), ("b'good'".to_owned(), "10.1.99.9 70000".to_owned()));
    assert_eq!((&near.end()["finished"], &far.end()["finished"]), (&1.into(), &1.into()));
}

#[test]
fn datagrams_pass_and_a_gateway_without_work_sleeps() {
    let Some(lab) = Lab::new() else { return };
    let (near, far) = lab.pair("");
    let server = lab.server(
        "u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('10.2.0.1', 53)); u.settimeout(20); kept = listening(80)\n\
         d, a = u.recvfrom(9000); u.sendto(d[::-1], a); say(a[0], len(d)); time.sleep(30)",
    );
    let client = lab.python(
        CLIENT,
        "u = socket.socket(type=socket.SOCK_DGRAM); u.settimeout(1); d = os.urandom(1000)\n\
         for _ in range(10):\n  u.sendto(d, ('10.2.0.1', 53))\n  try: say(u.recv(9000) == d[::-1]); break\n  except TimeoutError: pass",
    );
    assert_eq!(client.finish(), "True");
    let mut server = server;
    assert_eq!(server.line(), "10.1.0.1 1000");
    // A connection is open, and nobody says anything.
    let before = [near.cpu_s(), far.cpu_s()];
    let idle = lab.python(CLIENT, "s = socket.create_connection(('10.2.0.1', 80)); say('open'); time.sleep(3)");
    idle.finish();
    for (gateway, before) in [&near, &far].into_iter().zip(before) {
        let used = gateway.cpu_s() - before;
        assert!(used <= 0.1, "{used} s of processor time in 3 s");
    }
    assert!(near.end()["lan"]["passed"]["packets"].as_u64().unwrap() >= 1);
    assert!(far.end()["wan"]["passed"]["packets"].as_u64().unwrap() >= 1);
}

#[test]
fn check_says_what_would_be_done_and_mistakes_name_their_line() {
    let program = || Command::new(env!("CARGO_BIN_EXE_scps"));
    let arguments = "gateway --check --peer 203.0.113.2 --rtt-ms 600 --far 10.2.0.0/24 --rate";
    let output = program().args(arguments.split_whitespace()).arg("10 Mbit/s").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for words in ["UDP from 0.0.0.0:7168 to 203.0.113.2:7168", "10.2.0.0/24 dev scpsgw0", "1500000", "connect-first"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let file = std::env::temp_dir().join(format!("scps-gateway-{}.json", std::process::id()));
    std::fs::write(&file, "{\"wan\": {},\n\"wam\": {}}").unwrap();
    let output = program().args(["gateway", "--check"]).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains(".json:2: unknown field `wam`, expected one of"), "{text}");
    let output = program().args(["gateway", "--check"]).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("expected a settings file, or --peer"));
}

#[test]
fn the_examples_are_settings_that_the_program_takes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in files {
        let output = Command::new(env!("CARGO_BIN_EXE_scps")).args(["gateway", "--check"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    }
}
