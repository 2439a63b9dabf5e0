//! Unmodified programs through two gateways between network namespaces: client – gateway – gateway – server, kernel TCP at both ends
//! and SCPS-TP in UDP between. Needs root, /dev/net/tun and `ip netns`; skips with the reason where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{ip, Lab, CLIENT, FAR, NEAR, SERVER};
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

/// Clients that wait for an answer, and others where nobody says anything, over a link that loses a fifth of all packets.
#[test]
fn programs_are_told_of_a_kill_over_a_link_that_loses_a_fifth() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "20 Mbit/s", "rtt_ms": 20"#;
    let _link = lab.bad_link([20, 80, 0]);
    let (_near, far) = lab.pair("");
    let mut server = lab.server(
        "import threading; l = listening(80); told = []\n\
         def serve(s):\n  try:\n    if s.recv(9) == b'w': time.sleep(3); s.sendall(b'answer'); s.recv(9)\n  except OSError: pass\n  told.append(s)\n\
         kept = [l.accept()[0] for _ in range(24)]; t = [threading.Thread(target=serve, args=(s,)) for s in kept]\n\
         [x.start() for x in t]; say('open'); [x.join() for x in t]; say(len(told))",
    );
    let mut client = lab.python(
        CLIENT,
        "import threading; told = []; kept = [socket.create_connection(('10.2.0.1', 80), timeout=60) for _ in range(24)]\n\
         def ask(i, s):\n\
         \x20 s.settimeout(150)\n\
         \x20 try:\n    if i % 4: s.sendall(b'w')\n    told.append((type(s.recv(9)).__name__, 0))\n\
         \x20 except OSError as e: told.append((type(e).__name__, (i % 4 > 0) * (time.time() - t)))\n\
         t = time.time(); every = [threading.Thread(target=ask, args=e) for e in enumerate(kept)]\n\
         [x.start() for x in every]; time.sleep(1.5); say('asked'); [x.join() for x in every]\n\
         say(*sorted({name for name, _ in told}), len(told), max(at for _, at in told) < 60)",
    );
    assert_eq!((server.line(), client.line()), ("open".to_owned(), "asked".to_owned()));
    far.kill();
    let _again = lab.gateway(FAR, "", "");
    assert_eq!((client.finish(), server.finish()), ("ConnectionResetError 24 True".to_owned(), "24".to_owned()));
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

/// Answers 200 octets with as many, and ends every other connection first.
const ECHO: &str = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n\
    s = listening(80); s.setblocking(False)\n\
    async def serve(r, w):\n  try:\n    d = await r.readexactly(200); w.write(d[::-1]); await w.drain()\n    if d[0] % 2: await r.read()\n\
    \x20 except (OSError, asyncio.IncompleteReadError): pass\n  w.close()\n\
    async def main():\n  async with await asyncio.start_server(serve, sock=s): await asyncio.sleep(36000)\n\
    asyncio.run(main())";

/// Asks `number` times, `at_once` at a time, each after `pause` seconds. Says when each question began that got neither an answer nor an error for 30 s, and then
/// how many were answered, and how many got an error.
fn askers(number: usize, at_once: usize, pause: f64) -> String {
    format!(
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n\
         count = dict(answer=0, error=0, silence=0); left = iter(range({number}))\n\
         async def ask(i):\n  d = bytes([i % 251]) * 200\n  r, w = await asyncio.open_connection('10.2.0.1', 80)\n\
         \x20 try:\n    w.write(d); assert await r.readexactly(200) == d[::-1]\n  finally: w.close()\n\
         async def many():\n\
         \x20 for i in left:\n    begin = time.time()\n    try: await asyncio.wait_for(ask(i), 30); what = 'answer'\n\
         \x20   except TimeoutError: what = 'silence'; say('silence', begin)\n\
         \x20   except (OSError, asyncio.IncompleteReadError): what = 'error'; await asyncio.sleep(.2)\n    count[what] += 1; await asyncio.sleep({pause})\n\
         async def main(): await asyncio.gather(*[many() for _ in range({at_once})])\n\
         say('go'); asyncio.run(main()); say('done', *count.values())"
    )
}

#[test]
fn short_connections_with_compressed_headers_never_hang() {
    let Some(mut lab) = Lab::new() else { return };
    let number = std::env::var("SCPS_CONNECTIONS").map_or(600, |number| number.parse().expect("a number"));
    lab.transport = r#""rate": "20 Mbit/s", "rtt_ms": 20, "compression": true"#;
    let _link = lab.bad_link([2, 93, 5]);
    let (near, far) = lab.pair("");
    let _server = lab.server(ECHO);
    let mut client = lab.python(CLIENT, &askers(number, 16, 0.1));
    assert_eq!(client.line(), "go");
    // A gateway that is killed and started again draws the same identifiers as before (the seed is the same).
    let mut gateways = [Some(near), Some(far)];
    let mut kills = Vec::new();
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    for place in (0..number / 250).map(|i| i % 2) {
        std::thread::sleep(Duration::from_millis(1800));
        kills.push(now());
        gateways[place].take().unwrap().kill();
        gateways[place] = Some(lab.gateway([NEAR, FAR][place], "", ""));
    }
    let said = client.finish();
    let (silent, last): (Vec<&str>, Vec<&str>) = said.lines().partition(|line| line.starts_with("silence"));
    // What was under way when a gateway was killed is another test's matter.
    let was_killed = |begin: f64| kills.iter().any(|at| (begin - 1.0..begin + 3.0).contains(at));
    let hanging = silent.iter().filter(|line| !was_killed(line["silence ".len()..].parse().unwrap())).count();
    let words: Vec<usize> = last[0].split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
    println!("{number} connections, {} kills: {words:?} answered, told, silent; {hanging} hang", kills.len());
    assert_eq!((hanging, words.iter().sum::<usize>()), (0, number), "{said}");
    assert!(words[0] > number * 9 / 10, "{said}");
}

#[test]
fn three_hundred_echoes_at_once_are_answered_by_a_fresh_pair_with_compressed_headers() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "200 Mbit/s", "rtt_ms": 20, "compression": true"#;
    let keys = r#", "limits": {"connections": 700, "buffered_bytes": 100000000000}"#;
    let _gateways = lab.pair(keys);
    let _server = lab.server(ECHO);
    for _ in 0..2 {
        let said = lab.python(CLIENT, &askers(300, 300, 0.0)).finish();
        assert_eq!(said, "go\ndone 300 0 0");
    }
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
    let _link = lab.bad_link([2, 93, 5]);
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
    // A connection has four buffers of a million octets, and remembers what is under way of it: 4.9 MB.
    let (near, _far) = lab.pair(r#", "limits": {"buffered_bytes": 15000000}"#);
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

/// `syn(FROM, PORT, TO)` sends one to port 80, or a segment with other flags, whoever the sender claims to be.
const RAW_SYN: &str = "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
def total(d):
  n = sum(struct.unpack('!%dH' % (len(d) // 2), d))
  while n >> 16: n = (n & 65535) + (n >> 16)
  return ~n & 65535
def syn(src, port, to, flags=2):
  src, to = bytes(src), bytes(to); head = lambda c: struct.pack('!HHIIBBHHH', port, 80, port * 7919, 0, 0x50, flags, 8192, c, 0)
  tcp = head(total(src + to + struct.pack('!HH', 6, 20) + head(0)))
  s.sendto(struct.pack('!BBHHHBBH4s4s', 0x45, 0, 40, port, 0, 64, 6, 0, src, to) + tcp, (socket.inet_ntoa(to), 0))
";

#[test]
fn a_flood_of_syns_keeps_nobody_out() {
    let Some(lab) = Lab::new() else { return };
    let keys = r#", "set_up": "accept-first", "limits": {"connections": 100}"#;
    let (near, far) = lab.pair(keys);
    let server = lab.server("s, _ = listening(80).accept(); s.settimeout(60); say(*every(s))");
    let flood = lab.python(
        CLIENT,
        &format!(
            "{RAW_SYN}say('go')\n\
             for i in range(20_000): syn([10, 1, 100 + i % 100, 1 + i // 100 % 250], 1024 + i, [10, 2, 0, 1])\nsay('done')"
        ),
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
fn other_traffic_leaves_connections_half_of_the_link() {
    let Some(mut lab) = Lab::new() else { return };
    lab.transport = r#""rate": "10 Mbit/s", "rtt_ms": 20"#;
    let (near, _far) = lab.pair("");
    let server =
        lab.server("l = listening(80)\nwhile True:\n  s, _ = l.accept(); say(every(s)[0]); s.sendall(b'x'); s.close()");
    // 3 MB take 2.5 s alone.
    let transfer =
        "t = time.time(); s = socket.create_connection(('10.2.0.1', 80), timeout=60); s.sendall(bytes(3_000_000))\n\
        s.shutdown(1); s.recv(1); say(time.time() - t)";
    let others = [
        // 14 Mbit/s of datagrams; segments of no connection.
        "u = socket.socket(type=socket.SOCK_DGRAM)\ndef send(i): u.sendto(bytes(1400), ('10.2.0.1', 5353))\nrate = 1250\n".to_owned(),
        format!("{RAW_SYN}def send(i): syn([10, 1, 0, 1], 1024 + i % 60_000, [10, 2, 0, 1], 16)\nrate = 5000\n"),
    ];
    for other in others {
        let pace = "say('go'); begin = time.time(); i = 0\n\
            while True:\n  send(i); i += 1; late = begin + i / rate - time.time()\n  if late > 0: time.sleep(late)";
        let mut flood = lab.python(CLIENT, &format!("{other}{pace}"));
        assert_eq!(flood.line(), "go");
        std::thread::sleep(Duration::from_millis(500));
        let seconds: f64 = lab.python(CLIENT, transfer).finish().parse().unwrap();
        assert!(seconds < 8.0, "{seconds} s beside {other}");
    }
    drop(server);
    let counters = near.end();
    assert!(counters["lan"]["passed"]["packets"].as_u64().unwrap() > 1000, "{counters}");
}

#[test]
fn a_host_that_asks_for_nobody_keeps_no_other_out() {
    let Some(lab) = Lab::new() else { return };
    lab.ip(CLIENT, "addr add 10.1.0.66/24 dev v0");
    lab.ip(FAR, "route add blackhole 10.2.0.128/25");
    let (near, far) = lab.pair(r#", "limits": {"connections": 1024, "buffered_bytes": 100000000000}"#);
    let server = lab.server("s, _ = listening(80).accept(); s.settimeout(60); say(*every(s))");
    let mut scan = lab.python(
        CLIENT,
        &format!(
            "{RAW_SYN}for i in range(1100): syn([10, 1, 0, 66], 1024 + i, [10, 2, 0, 128 + i % 127]); time.sleep(.001)\nsay('done')"
        ),
    );
    assert_eq!(scan.line(), "done");
    let client = lab.python(
        CLIENT,
        "s = socket.create_connection(('10.2.0.1', 80), timeout=10, source_address=('10.1.0.1', 0)); d = os.urandom(200_000)\n\
         s.sendall(d); s.close(); say(len(d), hashlib.sha256(d).hexdigest())",
    );
    assert_eq!(client.finish(), server.finish());
    let counters = near.end();
    // Three quarters of the connections may be those that are not set up; whoever waited longest lost its place.
    assert!(counters["begun"].as_u64().unwrap() > 768 && counters["full"] == 0, "{counters}");
    drop(far);
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

/// Packets for an address that is no forward's pass as they are, whatever their headers claim.
#[test]
fn segments_with_forged_headers_pass_and_the_gateway_goes_on() {
    let Some(lab) = Lab::new() else { return };
    let near = lab.forwards_only();
    // In one batch, as what waits while a program sleeps is: a header longer than its packet, and one shorter than any.
    near.signal("-STOP");
    let peer = lab.python(
        FAR,
        "s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('10.9.0.2', 7168))\n\
         def packet(n, offset): return bytes([0x45, 0, 0, n]) + bytes(4) + bytes([64, 6, 0, 0]) + socket.inet_aton('10.2.0.1') \\\n\
         \x20 + socket.inet_aton('10.1.0.77') + bytes(12) + bytes([offset << 4, 16]) + bytes(n - 34)\n\
         for n, offset in (40, 15), (100, 15), (140, 0), (140, 0): s.sendto(packet(n, offset), ('10.9.0.1', 7168))\n\
         say('sent')",
    );
    assert_eq!(peer.finish(), "sent");
    near.signal("-CONT");
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        near.signal("-USR1");
        std::thread::sleep(Duration::from_millis(100));
        if lab.lines(NEAR, "counters").last().is_some_and(|line| line["wan"]["passed"]["packets"] == 4) {
            break;
        }
        assert!(Instant::now() < deadline, "{:?}", lab.lines(NEAR, "counters").last());
    }
    near.end();
}

#[test]
fn a_port_leads_to_a_server_without_a_route_to_it() {
    let Some(lab) = Lab::new() else { return };
    // The client's host routes 10.3.0.9 by default; the server's network and the client's do not know each other.
    let near = lab.forwards_only();
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
fn a_ping_in_pieces_passes() {
    let Some(lab) = Lab::new() else { return };
    let _gateways = lab.pair("");
    // The socket does not ask for its packets to stay whole (IP_MTU_DISCOVER).
    let ping = lab.python(
        CLIENT,
        &format!(
            "{RAW_SYN}s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); s.setsockopt(socket.IPPROTO_IP, 10, 0)\n\
             s.settimeout(20); d = os.urandom(3000); echo = lambda kind, c: struct.pack('!BBHHH', kind, 0, c, 7, 7) + d\n\
             s.sendto(echo(8, total(echo(8, 0))), ('10.2.0.1', 0)); say(s.recv(9000)[20:] == echo(0, total(echo(0, 0))))"
        ),
    );
    assert_eq!(ping.finish(), "True");
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
fn a_gateway_that_is_its_own_peer_does_not_start() {
    let Some(lab) = Lab::new() else { return };
    for options in ["--check", ""] {
        let mut gateway = lab.inside(NEAR, env!("CARGO_BIN_EXE_scps"));
        gateway.args("gateway --peer 10.9.0.1 --rtt-ms 20 --far 10.2.0.0/24 --rate none".split(' '));
        let output = gateway.args(options.split_whitespace()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("found 10.9.0.1:7168 as peer, which is this machine's own address"), "{text}");
    }
}

/// The far network of each is behind the other: whatever goes there comes back, until its time to live ends.
#[test]
fn routes_that_lead_in_a_circle_end() {
    let Some(lab) = Lab::new() else { return };
    lab.ip(FAR, "route del 10.2.0.0/24");
    let near = lab.gateway(NEAR, "", "");
    let file = lab.path("circle.json");
    let text = r#"{"lan": {"carrier": {"kind": "tun", "routes": ["10.2.0.0/24"]}},
        "wan": {"carrier": {"kind": "udp", "remote": "10.9.0.1:7168"}, "transport": {"rate": "200 Mbit/s", "rtt_ms": 20}}}"#;
    std::fs::write(&file, text).unwrap();
    let far = lab.start(FAR, &file, "");
    let client = lab.python(
        CLIENT,
        "u = socket.socket(type=socket.SOCK_DGRAM); [u.sendto(bytes(100), ('10.2.0.7', 53)) for _ in range(20)]\n\
         for _ in range(5):\n  s = socket.socket(); s.settimeout(.2)\n  try: s.connect(('10.2.0.7', 80)); say('connected')\n  except OSError: pass\n\
         say('end')",
    );
    assert_eq!(client.finish(), "end");
    let passed = || {
        near.signal("-USR1");
        std::thread::sleep(Duration::from_millis(500));
        lab.lines(NEAR, "counters").pop().unwrap()["lan"]["passed"]["packets"].as_u64().unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut before = passed();
    loop {
        let now = passed();
        if now == before {
            break;
        }
        assert!(Instant::now() < deadline, "{before} packets, then {now}");
        before = now;
    }
    // 64 hops of 20 datagrams, of which each round takes two.
    assert!((20..=20 * 64).contains(&before), "{before}");
    drop((near, far));
}

#[test]
fn the_examples_are_settings_that_the_program_takes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    // Keys are where the service has them.
    let keys = tempfile::tempdir().unwrap();
    let scps = || Command::new(env!("CARGO_BIN_EXE_scps"));
    assert!(scps().arg("sp-key").arg(keys.path().join("link.key")).status().unwrap().success());
    std::fs::copy(folder.join("sp/sp.json"), keys.path().join("sp.json")).unwrap();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.contains("/var/lib/scps-gateway/sp.json"), !file.ends_with("host.json"), "{}", file.display());
        let copy = keys.path().join(file.file_name().unwrap());
        std::fs::write(&copy, text.replace("/var/lib/scps-gateway", &keys.path().display().to_string())).unwrap();
        let output = scps().args(["gateway", "--check"]).arg(&copy).output().unwrap();
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    }
}
