//! Servers and clients of the file protocol as processes on the loopback interface.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Tunables that keep tests short.
pub const QUICK: &str =
    "DATATIMEOUT=5\nREPLYTIMEOUT=5\nCONNTIMEOUT=5\nRESTARTDELAY=1\nRESTARTDELAYMAX=1\nSTALLTAKEOVER=1\n";

pub struct Folders {
    pub root: tempfile::TempDir,
    pub server: PathBuf,
    pub client: PathBuf,
}

pub fn folders() -> Folders {
    let root = tempfile::tempdir().unwrap();
    let (server, client) = (root.path().join("server"), root.path().join("client"));
    fs::create_dir(&server).unwrap();
    fs::create_dir(&client).unwrap();
    fs::write(root.path().join("mib"), QUICK).unwrap();
    Folders { root, server, client }
}

pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut octets = vec![0; length];
    scps_wire::Seed::from_u64(seed).stream("noise").fill(&mut octets);
    octets
}

/// Waits for something, at most half a minute.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: did not come to pass");
        std::thread::yield_now();
    }
}

/// `scps fpd` over kernel TCP; ended when dropped.
pub struct Server {
    pub child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(folders: &Folders, port: u16, more: &[&str]) -> Server {
        let ready = folders.root.path().join("ready");
        let _ = fs::remove_file(&ready);
        let child = Command::new(env!("CARGO_BIN_EXE_scps"))
            .args(["fpd", "--transport", "tcp", "--port", &port.to_string()])
            .args(["--mib".as_ref(), folders.root.path().join("mib").as_os_str()])
            .args(["--ready-file".as_ref(), ready.as_os_str()])
            .args(["--log".as_ref(), folders.root.path().join("log").as_os_str()])
            .args(more)
            .spawn()
            .unwrap();
        wait_until("the server serves", || ready.exists());
        let address = fs::read_to_string(&ready).unwrap().trim().parse().unwrap();
        Server { child, address }
    }

    pub fn open(folders: &Folders, port: u16) -> Server {
        Server::start(folders, port, &["--open", folders.server.to_str().unwrap()])
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn client(folders: &Folders, address: SocketAddr, commands: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
    command
        .args(["fp", "--transport", "tcp", "--quiet"])
        .args(["--mib".as_ref(), folders.root.path().join("mib").as_os_str()])
        .args(["--folder".as_ref(), folders.client.as_os_str()])
        .args(["-e", commands, &address.ip().to_string(), &address.port().to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Results of a finished client, one per command.
pub fn results(child: Child) -> (bool, Vec<serde_json::Value>, String) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let values = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    (output.status.success(), values, format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

pub fn run(folders: &Folders, address: SocketAddr, commands: &str) -> Vec<serde_json::Value> {
    let (well, values, text) = results(client(folders, address, commands).spawn().unwrap());
    assert!(well, "{commands}: {text}");
    values
}

pub fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}
