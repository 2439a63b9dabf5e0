//! Network namespaces with gateways between their programs.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static LABS: AtomicU32 = AtomicU32::new(0);

pub const CLIENT: usize = 0;
pub const NEAR: usize = 1;
pub const FAR: usize = 2;
pub const SERVER: usize = 3;
/// Of host, router, router and host in a row.
pub const OWN: usize = 0;
pub const ROUTER: usize = 1;
pub const OTHER: usize = 2;
pub const MIDDLE: usize = 3;

pub fn ip(args: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(args.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Four namespaces in a row: client 10.1.0.1, gateway (10.1.0.9, 10.9.0.1), gateway (10.9.0.2, 10.2.0.9), server 10.2.0.1.
pub struct Lab {
    pub namespaces: Vec<String>,
    pub folder: PathBuf,
    /// Settings of the WAN side's transport.
    pub transport: &'static str,
    /// Where the near gateway's WAN side is, and who its peer is.
    pub near_wan: &'static str,
}

impl Lab {
    pub fn new() -> Option<Lab> {
        let lab = Lab::of(&["c", "n", "f", "s"])?;
        lab.wire([(CLIENT, "v0", "10.1.0.1"), (NEAR, "lan", "10.1.0.9")]);
        lab.wire([(NEAR, "wan", "10.9.0.1"), (FAR, "wan", "10.9.0.2")]);
        lab.wire([(FAR, "lan", "10.2.0.9"), (SERVER, "v0", "10.2.0.1")]);
        lab.forward(&[CLIENT, NEAR, FAR, SERVER]);
        lab.ip(CLIENT, "route add default via 10.1.0.9");
        lab.ip(SERVER, "route add default via 10.2.0.9");
        Some(lab)
    }

    /// Host 10.1.0.1, router 10.1.0.9, router 10.2.0.9, host 10.2.0.1; packets of `mtu` octets fit between the routers.
    pub fn hosts(mtu: u16) -> Option<Lab> {
        let lab = Lab::of(&["o", "r", "t", "m"])?;
        lab.wire([(OWN, "v0", "10.1.0.1"), (ROUTER, "near", "10.1.0.9")]);
        lab.wire([(ROUTER, "mid", "10.5.0.1"), (MIDDLE, "mid", "10.5.0.2")]);
        lab.wire([(MIDDLE, "far", "10.2.0.9"), (OTHER, "v0", "10.2.0.1")]);
        lab.forward(&[ROUTER, MIDDLE]);
        lab.ip(ROUTER, "route add 10.2.0.0/24 via 10.5.0.2");
        lab.ip(MIDDLE, "route add 10.1.0.0/24 via 10.5.0.1");
        lab.ip(OWN, "route add default via 10.1.0.9");
        lab.ip(OTHER, "route add default via 10.2.0.9");
        for place in [ROUTER, MIDDLE] {
            lab.ip(place, &format!("link set mid mtu {mtu}"));
        }
        Some(lab)
    }

    pub fn of(parts: &[&str]) -> Option<Lab> {
        if !Path::new("/dev/net/tun").exists() {
            eprintln!("skipped: /dev/net/tun does not exist");
            return None;
        }
        let name = format!("gwt{}-{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut lab = Lab {
            namespaces: Vec::new(),
            folder,
            transport: r#""rate": "200 Mbit/s", "rtt_ms": 20"#,
            near_wan: r#""remote": "10.9.0.2:7168""#,
        };
        for part in parts {
            let name = format!("{name}{part}");
            if !ip(&format!("netns add {name}")) {
                eprintln!("skipped: `ip netns add` needs root and network namespaces");
                return None;
            }
            assert!(ip(&format!("-n {name} link set lo up")));
            lab.namespaces.push(name);
        }
        Some(lab)
    }

    pub fn ip(&self, place: usize, args: &str) {
        assert!(ip(&format!("-n {} {args}", self.namespaces[place])), "{args}");
    }

    pub fn wire(&self, ends: [(usize, &str, &str); 2]) {
        let [(a, dev_a, _), (b, dev_b, _)] = ends;
        self.ip(a, &format!("link add {dev_a} type veth peer name {dev_b} netns {}", self.namespaces[b]));
        for (place, dev, address) in ends {
            self.ip(place, &format!("addr add {address}/24 dev {dev}"));
            self.ip(place, &format!("link set {dev} up"));
        }
    }

    pub fn forward(&self, places: &[usize]) {
        for place in places {
            assert!(self.inside(*place, "sysctl").args(["-qw", "net.ipv4.ip_forward=1"]).status().unwrap().success());
        }
    }

    pub fn inside(&self, place: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespaces[place], program]);
        command
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A gateway of the pair, with more keys for its file and more options.
    pub fn gateway(&self, place: usize, keys: &str, options: &str) -> Gateway {
        let to_near = r#""remote": "10.9.0.1:7168""#;
        let (wan, far) = if place == NEAR { (self.near_wan, "10.2.0.0/24") } else { (to_near, "10.1.0.0/16") };
        let transport = self.transport;
        let file = self.path(&format!("{place}.json"));
        let text = format!(
            r#"{{"lan": {{"carrier": {{"kind": "tun", "routes": ["{far}"]}}}},
                "wan": {{"carrier": {{"kind": "udp", {wan}}}, "transport": {{{transport}}}}}{keys}}}"#
        );
        std::fs::write(&file, text).unwrap();
        self.start(place, &file, options)
    }

    /// A gateway at the client that takes connections to one port only.
    pub fn forwards_only(&self) -> Gateway {
        let forward = r#"{"side": "lan", "listen": "10.3.0.9:8080", "from": "10.1.99.9", "to": "10.2.0.1:80"}"#;
        let file = self.path("forward.json");
        let text = format!(
            r#"{{"lan": {{"carrier": {{"kind": "tun", "routes": ["10.3.0.9"]}}}}, "forwards": [{forward}],
                "wan": {{"carrier": {{"kind": "udp", "remote": "10.9.0.2:7168"}}, "transport": {{"rate": "200 Mbit/s"}}}}}}"#
        );
        std::fs::write(&file, text).unwrap();
        self.start(NEAR, &file, "")
    }

    /// The gateway of a host for its own programs, with the kernel set up as `--check` says.
    pub fn own_gateway(&self, place: usize) -> Gateway {
        let address = if place == OWN { "10.1.0.1" } else { "10.2.0.1" };
        let file = self.path(&format!("{place}.json"));
        let text = format!(
            r#"{{"host": {{"interface": "v0", "address": "{address}"}},
                "wan": {{"carrier": {{"kind": "tun"}}, "transport": {{"rate": "200 Mbit/s", "rtt_ms": 20}}}}}}"#
        );
        std::fs::write(&file, text).unwrap();
        let check = Command::new(env!("CARGO_BIN_EXE_scps")).args(["gateway", "--check", &file]).output().unwrap();
        let said = String::from_utf8(check.stdout).unwrap();
        let words = said.split_once("the kernel's part, as root:").expect(&said).1;
        let (before, after) = words.split_once("once the gateway runs:").expect(&said);
        // Rules outlive a gateway, routes to its devices do not.
        if !self.has_rules(place) {
            self.shell(place, before);
        }
        let gateway = self.start(place, &file, "");
        self.shell(place, after);
        gateway
    }

    pub fn has_rules(&self, place: usize) -> bool {
        let output = self.inside(place, "ip").args(["rule", "show", "pref", "100"]).output().unwrap();
        !output.stdout.is_empty()
    }

    pub fn shell(&self, place: usize, lines: &str) {
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let status = self.inside(place, "sh").args(["-c", line]).stdout(Stdio::null()).status().unwrap();
            assert!(status.success(), "{line}");
        }
    }

    pub fn start(&self, place: usize, file: &str, options: &str) -> Gateway {
        let mut command = self.inside(place, env!("CARGO_BIN_EXE_scps"));
        command.args(["gateway", file, "--seed", "1", "--counters", &self.path(&format!("{place}.jsonl"))]);
        let child = command.args(options.split_whitespace()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("\"ready\""), "{line}");
        Gateway { child, said }
    }

    /// A new key for the pair; the option that names its settings.
    pub fn sp(&self) -> String {
        let made = Command::new(env!("CARGO_BIN_EXE_scps")).args(["sp-key", &self.path("link.key")]).status();
        assert!(made.unwrap().success());
        let direction = |src: &str, dst: &str| {
            format!(
                r#"{{"src": "{src}", "dst": "{dst}", "key_id": 1, "key_file": "link.key", "suite": "chacha20-poly1305"}}"#
            )
        };
        let (there, back) = (direction("10.9.0.1", "10.9.0.2"), direction("10.9.0.2", "10.9.0.1"));
        let file = self.path("sp.json");
        std::fs::write(&file, format!(r#"{{"associations": [{there}, {back}]}}"#)).unwrap();
        format!("--sp {file}")
    }

    pub fn pair(&self, keys: &str) -> (Gateway, Gateway) {
        (self.gateway(NEAR, keys, ""), self.gateway(FAR, keys, ""))
    }

    /// A Python program that has `socket`, `hashlib` and `time`, and where `say` prints a line at once.
    pub fn python(&self, place: usize, script: &str) -> Program {
        let start = "import asyncio, hashlib, os, socket, struct, sys, time\ndef say(*w): print(*w, flush=True)\n\
            def lingering(s): s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n\
            def every(s):\n  h, n = hashlib.sha256(), 0\n  while (d := s.recv(65536)): h.update(d); n += len(d)\n  return n, h.hexdigest()\n\
            def listening(port):\n  s = socket.create_server(('10.2.0.1', port), backlog=2000); say('listening'); return s\n";
        let mut child = self
            .inside(place, "python3")
            .args(["-c", &format!("{start}{script}")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Program { child, said }
    }

    /// Puts a program on the way between the gateways that passes a datagram not at all, once or twice, with these weights, and every
    /// tenth late.
    pub fn bad_link(&mut self, weights: [u32; 3]) -> Program {
        self.relay(weights, 2000)
    }

    /// The same with one that passes what is not longer than so many octets, and says nothing of the rest.
    pub fn narrow_link(&mut self, longest: usize) -> Program {
        self.relay([0, 1, 0], longest)
    }

    fn relay(&mut self, weights: [u32; 3], longest: usize) -> Program {
        self.near_wan = r#""local": "127.0.0.1:7168", "remote": "127.0.0.1:7169""#;
        let script =
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
             \x20   if len(d) > LONGEST: continue\n\
             \x20   for _ in range(random.choices([0, 1, 2], WEIGHTS)[0]):\n\
             \x20     late = random.random() * .02 if random.random() < .1 else 0\n\
             \x20     heapq.heappush(waiting, (now + late, next(count), s, d))\n\
             \x20 while waiting and waiting[0][0] <= now:\n\
             \x20   _, _, s, d = heapq.heappop(waiting); to, at = onward[s]\n\
             \x20   try: to.sendto(d, at)\n\
             \x20   except OSError: pass";
        self.python(NEAR, &script.replace("WEIGHTS", &format!("{weights:?}")).replace("LONGEST", &longest.to_string()))
    }

    pub fn server(&self, script: &str) -> Program {
        self.server_at(SERVER, script)
    }

    pub fn server_at(&self, place: usize, script: &str) -> Program {
        let mut program = self.python(place, script);
        assert_eq!(program.line(), "listening");
        program
    }

    pub fn lines(&self, place: usize, event: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.path(&format!("{place}.jsonl"))).unwrap();
        let all = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect(line));
        all.filter(|line| line["event"] == event).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.namespaces {
            ip(&format!("netns del {name}"));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub struct Program {
    pub child: Child,
    pub said: BufReader<ChildStdout>,
}

impl Program {
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// All that it still says; it must end well, and in time.
    pub fn finish(mut self) -> String {
        let mut text = String::new();
        self.said.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success(), "{text}");
        let _ = std::io::stderr().flush();
        text.trim().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Gateway {
    pub child: Child,
    pub said: BufReader<ChildStdout>,
}

impl Gateway {
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Ends it as an operator does; its counters, which close.
    pub fn end(mut self) -> serde_json::Value {
        self.signal("-TERM");
        let mut text = String::new();
        self.said.read_to_string(&mut text).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(143));
        let counters: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).expect(&text);
        assert_eq!(counters["closes"], true, "{counters}");
        assert_eq!(counters["from_lan"]["buffered"], 0, "{counters}");
        counters
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Seconds of processor time until now.
    pub fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<f64> =
            stat.rsplit(')').next().unwrap().split_whitespace().filter_map(|f| f.parse().ok()).collect();
        // Fields 14 and 15 are utime and stime, in hundredths; the state, field 3, is a letter.
        (fields[10] + fields[11]) / 100.0
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
