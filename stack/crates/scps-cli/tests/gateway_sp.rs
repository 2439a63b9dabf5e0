//! A pair of gateways with SCPS-SP between them, in network namespaces.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod gateway_common;

use gateway_common::{Lab, CLIENT, FAR, NEAR};

/// Everything between the gateways is sealed, whatever protocol it is of; what is not sealed is not heard, and a gateway that starts
/// again goes on with other numbers.
#[test]
fn between_gateways_with_sp_nothing_else_is_heard() {
    let Some(lab) = Lab::new() else { return };
    let sp = lab.sp();
    let (near, far) = (lab.gateway(NEAR, "", &sp), lab.gateway(FAR, "", &sp));
    let mut server = lab.server(
        "u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('10.2.0.1', 5353)); u.settimeout(1); l = listening(80); heard = []\n\
         for _ in range(2):\n  s, _ = l.accept(); say(*every(s)); s.close()\n\
         try:\n  while True: heard.append(u.recv(99).decode())\nexcept OSError: say(*heard)",
    );
    let client = |word: &str| {
        let script = format!(
            "u = socket.socket(type=socket.SOCK_DGRAM); u.sendto(b'{word}', ('10.2.0.1', 5353))\n\
             s = socket.create_connection(('10.2.0.1', 80), timeout=20); d = os.urandom(300_000)\n\
             s.sendall(d); s.close(); say(len(d), hashlib.sha256(d).hexdigest())"
        );
        lab.python(CLIENT, &script).finish()
    };
    let sent = client("first");
    assert_eq!(server.line(), sent);
    let record = || std::fs::read_to_string(lab.path("link.key.sequence")).unwrap();
    let before = record();
    near.kill();
    // Somebody else with the gateway's address and port.
    let forger = lab.python(
        NEAR,
        "def total(d):\n  n = sum(struct.unpack('!%dH' % (len(d) // 2), d))\n  return ~(n + (n >> 16)) & 65535\n\
             u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('10.9.0.1', 7168))\n\
             head = lambda c: struct.pack('!BBHHHBBH4s4s', 0x45, 0, 34, 1, 0, 64, 17, c, bytes([10, 1, 0, 1]), bytes([10, 2, 0, 1]))\n\
             u.sendto(head(total(head(0))) + struct.pack('!HHHH', 99, 5353, 14, 0) + b'forged', ('10.9.0.2', 7168)); say('sent')",
    );
    assert_eq!(forger.finish(), "sent");
    let near = lab.gateway(NEAR, "", &sp);
    let sent = client("second");
    assert_eq!(server.line(), sent);
    assert_eq!(server.finish(), "first second");
    assert_ne!(record(), before, "other numbers");
    for (gateway, is_far) in [(near, false), (far, true)] {
        let counters = gateway.end();
        let sp = &counters["wan"]["sp"];
        // The data are 200 packets and more; what acknowledges them is a few, for packets that were read together share one.
        let (data, acknowledgements) = if is_far { ("opened", "sealed") } else { ("sealed", "opened") };
        assert!(sp[data].as_u64().unwrap() > 200 && sp[acknowledgements].as_u64().unwrap() > 2, "{counters}");
        assert_eq!(sp["dropped"].as_object().unwrap().is_empty(), !is_far, "{counters}");
    }
}
