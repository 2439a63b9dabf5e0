//! Unmodified programs on two hosts with routers between them, each host with a gateway of its own: SCPS-TP in IP, and the kernel set up as
//! `scps gateway --check` says. Needs root, /dev/net/tun and `ip netns`; skips with the reason where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{Lab, Program, OTHER, OWN, ROUTER};
use std::io::BufReader;
use std::process::{Command, Stdio};

/// Both ways, each as long as the other half is closed.
const SERVES: &str =
    "s, who = listening(80).accept(); n, h = every(s); d = os.urandom(3_000_000); s.sendall(d); s.close()\n\
    say(who[0], n, h, hashlib.sha256(d).hexdigest())";
const ASKS: &str = "s = socket.create_connection(('10.2.0.1', 80)); d = os.urandom(5_000_000); s.sendall(d)\n\
    s.shutdown(socket.SHUT_WR); n, h = every(s); say(n, hashlib.sha256(d).hexdigest(), h)";

impl Lab {
    fn exchange(&self) {
        let server = self.server_at(OTHER, SERVES);
        let (client, server) = (self.python(OWN, ASKS).finish(), server.finish());
        let [n, sent, received] = client.split(' ').collect::<Vec<_>>()[..] else { panic!("{client}") };
        assert_eq!((n, server), ("3000000", format!("10.1.0.1 5000000 {sent} {received}")));
    }

    /// What crosses the router until a packet of UDP to port 9: "SYN" or "SYN-ACK" of each opening, with + if it offers SCPS.
    fn openings(&self) -> Program {
        let mut program = self.python(
            ROUTER,
            "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(('near', 0)); say('listening')\n\
             while True:\n\
             \x20 p = s.recv(65536)[14:]\n\
             \x20 if p[0] != 0x45 or p[9] not in (6, 17): continue\n\
             \x20 if p[9] == 17 and p[22:24] == b'\\0\\x09': break\n\
             \x20 if p[9] == 6 and p[33] & 2:\n\
             \x20   o, kinds = p[40:20 + (p[32] >> 4) * 4], []\n\
             \x20   while o and o[0]: kinds.append(o[0]); o = o[1 if o[0] == 1 else o[1]:]\n\
             \x20   say(('SYN-ACK' if p[33] & 16 else 'SYN') + ('+' if 20 in kinds else ''))",
        );
        assert_eq!(program.line(), "listening");
        program
    }

    fn end_of_openings(&self, program: Program) -> Vec<String> {
        self.python(OWN, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'end', ('10.2.0.1', 9))").finish();
        program.finish().lines().map(str::to_owned).collect()
    }
}

#[test]
fn programs_of_two_hosts_speak_scps_through_their_own_gateways() {
    let Some(lab) = Lab::hosts(1500) else { return };
    let (near, far) = (lab.own_gateway(OWN), lab.own_gateway(OTHER));
    let seen = lab.openings();
    lab.exchange();
    assert_eq!(lab.end_of_openings(seen), ["SYN+", "SYN-ACK+"]);
    let refused = "try: socket.create_connection(('10.2.0.1', 81))\nexcept ConnectionRefusedError: say('refused')";
    assert_eq!(lab.python(OWN, refused).finish(), "refused");
    // Inside a host nothing changes.
    let own = "l = socket.create_server(('10.1.0.1', 80)); c = socket.create_connection(('10.1.0.1', 80)); say(c.getpeername()[0])";
    assert_eq!(lab.python(OWN, own).finish(), "10.1.0.1");
    let datagram = "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.2.0.1', 53)); say('listening')\n\
        d, who = s.recvfrom(9); s.sendto(d, who)";
    let server = lab.server_at(OTHER, datagram);
    let asks = "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'abc', ('10.2.0.1', 53)); say(s.recv(9).decode())";
    assert_eq!(lab.python(OWN, asks).finish(), "abc");
    server.finish();
    for (counters, broken) in [(near.end(), 1), (far.end(), 1)] {
        assert_eq!((&counters["finished"], &counters["broken"]), (&1.into(), &broken.into()), "{counters}");
    }
}

#[test]
fn a_host_without_a_gateway_speaks_tcp_with_one_that_has_one() {
    for (place, openings) in [(OWN, ["SYN+", "SYN-ACK"]), (OTHER, ["SYN", "SYN-ACK"])] {
        let Some(lab) = Lab::hosts(1500) else { return };
        let gateway = lab.own_gateway(place);
        let seen = lab.openings();
        lab.exchange();
        assert_eq!(lab.end_of_openings(seen), openings);
        assert_eq!(gateway.end()["finished"], 1);
    }
}

#[test]
fn a_hosts_gateway_finds_the_mtu_of_the_path() {
    let Some(lab) = Lab::hosts(1200) else { return };
    let _gateways = (lab.own_gateway(OWN), lab.own_gateway(OTHER));
    lab.exchange();
}

#[test]
fn a_host_whose_gateway_was_killed_goes_on_with_tcp_until_it_is_back() {
    let Some(lab) = Lab::hosts(1500) else { return };
    let (near, far) = (lab.own_gateway(OWN), lab.own_gateway(OTHER));
    let server = lab.server_at(OTHER, "l = listening(81); s, _ = l.accept(); say('open'); time.sleep(60)");
    let mut client = lab.python(
        OWN,
        "s = socket.create_connection(('10.2.0.1', 81)); say('open')\n\
         try:\n  while True: s.sendall(b'x'); time.sleep(0.1)\n\
         except ConnectionResetError: say('reset')",
    );
    assert_eq!(client.line(), "open");
    near.kill();
    let seen = lab.openings();
    lab.exchange();
    assert_eq!(lab.end_of_openings(seen), ["SYN", "SYN-ACK"]);
    // The next one knows nothing of the connection, and says so.
    let again = lab.own_gateway(OWN);
    assert_eq!(client.finish(), "reset");
    lab.exchange();
    assert_eq!(again.end()["finished"], 1);
    drop((server, far));
}

#[test]
fn files_come_by_ssh_and_git() {
    let has = |program: &str| {
        Command::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    };
    if let Some(missing) = ["/usr/sbin/sshd", "ssh", "ssh-keygen", "git", "curl"].iter().find(|program| !has(program)) {
        eprintln!("skipped: {missing} is not installed");
        return;
    }
    let Some(lab) = Lab::hosts(1500) else { return };
    let gateways = (lab.own_gateway(OWN), lab.own_gateway(OTHER));
    let folder = lab.folder.display().to_string();
    let set_up = format!(
        "cd {folder} && chmod 755 . && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f user && head -c 2000000 /dev/urandom > big \
         && git init -q r && cp big r && git -C r add big && git -C r -c user.name=a -c user.email=a@b commit -q -m one && mkdir -p /run/sshd"
    );
    lab.shell(OTHER, &set_up);
    let options = format!(
        "-D -q -f /dev/null -h {folder}/host -o Port=22 -o AuthorizedKeysFile={folder}/user.pub -o StrictModes=no -o PermitRootLogin=yes -o PidFile=none"
    );
    let sshd = lab.inside(OTHER, "/usr/sbin/sshd").args(options.split_whitespace()).spawn().unwrap();
    let said = BufReader::new(Command::new("true").stdout(Stdio::piped()).spawn().unwrap().stdout.take().unwrap());
    let _sshd = Program { child: sshd, said };
    let ssh = format!(
        "ssh -q -F none -i {folder}/user -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectionAttempts=20"
    );
    lab.shell(
        OWN,
        &format!("{ssh} root@10.2.0.1 cat {folder}/big > {folder}/by-ssh && cmp {folder}/big {folder}/by-ssh"),
    );
    lab.shell(
        OWN,
        &format!("{ssh} root@10.2.0.1 'cat > {folder}/back' < {folder}/big && cmp {folder}/big {folder}/back"),
    );
    lab.shell(OWN, &format!("GIT_SSH_COMMAND='{ssh}' git clone -q ssh://root@10.2.0.1{folder}/r {folder}/clone && cmp {folder}/big {folder}/clone/big"));
    let counters = gateways.0.end();
    assert!(counters["from_wan"]["delivered"].as_u64().unwrap() > 4_000_000, "{counters}");
    assert!(counters["from_lan"]["delivered"].as_u64().unwrap() > 2_000_000, "{counters}");
}
