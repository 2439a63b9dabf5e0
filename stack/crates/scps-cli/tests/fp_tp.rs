//! The same commands over SCPS-TP, its packets in UDP on the loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod fp_common;

use fp_common::{folders, noise, results, wait_until};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};

fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn the_commands_work_over_scps_tp() {
    let folders = folders();
    let data = noise(400_000, 8);
    fs::write(folders.client.join("f"), &data).unwrap();
    let (near, far) = (free_address().to_string(), free_address().to_string());
    let ready = folders.root.path().join("ready");
    let counts = ["near", "far"].map(|end| folders.root.path().join(end));
    let common = ["--driver", "udp", "--rate", "20 Mbit/s", "--mib", folders.root.path().join("mib").to_str().unwrap()]
        .map(str::to_owned);
    let mut server = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["fpd", "--listen", "10.8.0.2", "--udp-local", &far, "--open", folders.server.to_str().unwrap()])
        .args(["--ready-file", ready.to_str().unwrap(), "--counters", counts[1].to_str().unwrap()])
        .args(&common)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the server serves", || ready.exists());
    let commands = "autorestart; put f; get f g; check f g; passive; get f h; bets; put f k; get k l; check k l; bets; \
                    raread f part 10-19,399990-eof; raupdt f n f mine diff:g; suppress; size f; unsuppress; ls; cp f o; \
                    rename o p; delete p";
    let client = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["fp", "--local", "10.8.0.1", "--udp-local", &near, "--udp-remote", &far, "--quiet"])
        .args(["--folder", folders.client.to_str().unwrap(), "-e", commands, "10.8.0.2"])
        .args(["--counters", counts[0].to_str().unwrap()])
        .args(&common)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (well, values, text) = results(client);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(well, "{text}");
    assert_eq!(values.len(), 21, "{text}");
    for path in counts {
        let counted: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert!(
            ["rtos", "retransmissions", "superfluous_resends"].iter().all(|key| counted[key].is_u64()),
            "{counted}"
        );
    }
    for name in ["g", "h", "l", "mine"] {
        assert!(fs::read(folders.client.join(name)).unwrap() == data, "{name}");
    }
    for name in ["f", "k", "n"] {
        assert!(fs::read(folders.server.join(name)).unwrap() == data, "{name}");
    }
    assert_eq!(fs::read(folders.client.join("part")).unwrap(), [&data[10..20], &data[399_990..]].concat());
}
