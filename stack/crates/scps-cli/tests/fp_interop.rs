//! Other people's programs over plain TCP: vsftpd for our client, curl and lftp for our server; and our own command line.
//! Each skips with its reason where the program is not installed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod fp_common;

use fp_common::{client, folders, length, noise, results, run, wait_until, Folders, Server};
use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SIZE: usize = 3 << 20;

fn has(program: &str) -> bool {
    let found =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn();
    if let Ok(mut child) = found {
        let _ = child.kill();
        let _ = child.wait();
        return true;
    }
    eprintln!("skipped: {program} is not installed");
    false
}

fn shell(program: &str, folder: &std::path::Path, args: &[&str]) {
    let output = Command::new(program).args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn with<'a>(mode: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&["-sS", "--max-time", "30"][..], mode, more].concat()
}

#[test]
fn curl_gets_puts_lists_and_resumes() {
    if !has("curl") {
        return;
    }
    let folders = folders();
    let server = Server::open(&folders, 0);
    let data = noise(SIZE, 1);
    fs::write(folders.client.join("f"), &data).unwrap();
    let base = format!("ftp://{}", server.address);
    for mode in [&["--ftp-pasv"][..], &["--disable-epsv"], &["--ftp-port", "-"], &["--ftp-port", "-", "--disable-eprt"]]
    {
        shell("curl", &folders.client, &with(mode, &["-T", "f", &format!("{base}/dir/up"), "--ftp-create-dirs"]));
        assert!(fs::read(folders.server.join("dir/up")).unwrap() == data, "{mode:?}");
        shell("curl", &folders.client, &with(mode, &["-o", "back", &format!("{base}/dir/up")]));
        assert!(fs::read(folders.client.join("back")).unwrap() == data, "{mode:?}");
        fs::write(folders.client.join("part"), &data[..1_000_001]).unwrap();
        shell("curl", &folders.client, &with(mode, &["-C", "-", "-o", "part", &format!("{base}/dir/up")]));
        assert!(fs::read(folders.client.join("part")).unwrap() == data, "{mode:?}");
        fs::write(folders.server.join("half"), &data[..777_777]).unwrap();
        shell("curl", &folders.client, &with(mode, &["-C", "-", "-T", "f", &format!("{base}/half")]));
        assert!(fs::read(folders.server.join("half")).unwrap() == data, "{mode:?}");
        shell("curl", &folders.client, &with(mode, &["-l", &format!("{base}/")]));
        shell("curl", &folders.client, &with(mode, &["-I", &format!("{base}/dir/up")]));
    }
}

#[test]
fn lftp_gets_puts_mirrors_and_resumes() {
    if !has("lftp") {
        return;
    }
    let folders = folders();
    let server = Server::open(&folders, 0);
    let data = noise(SIZE, 2);
    fs::write(folders.client.join("f"), &data).unwrap();
    fs::write(folders.client.join("part"), &data[..1_234_567]).unwrap();
    fs::write(folders.server.join("half"), &data[..777_777]).unwrap();
    for passive in ["on", "off"] {
        let _ = fs::remove_dir_all(folders.server.join("d"));
        let _ = fs::remove_dir_all(folders.client.join("copy"));
        fs::write(folders.client.join("part"), &data[..1_234_567]).unwrap();
        fs::write(folders.server.join("half"), &data[..777_777]).unwrap();
        let script = format!(
            "set net:timeout 10; set net:max-retries 1; set ftp:passive-mode {passive}; set xfer:clobber on; \
             open ftp://{}; mkdir d; put f -o d/up; get d/up -o back; get -c d/up -o part; put -c f -o half; \
             mirror d copy; mv d/up d/moved; ls d; rm d/moved; bye",
            server.address
        );
        shell("lftp", &folders.client, &["--norc", "-c", &script]);
        for name in ["back", "part", "copy/up"] {
            assert!(fs::read(folders.client.join(name)).unwrap() == data, "{name}, passive {passive}");
        }
        assert!(fs::read(folders.server.join("half")).unwrap() == data, "passive {passive}");
        assert_eq!(fs::read_dir(folders.server.join("d")).unwrap().count(), 0);
    }
}

struct Vsftpd {
    child: Child,
    address: SocketAddr,
}

impl Drop for Vsftpd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An anonymous server over `folders.server`, which it wants to own; `None` with the reason where it cannot be had.
fn vsftpd(folders: &Folders) -> Option<Vsftpd> {
    if !std::path::Path::new("/usr/sbin/vsftpd").exists() {
        eprintln!("skipped: vsftpd is not installed");
        return None;
    }
    let upload = folders.server.join("up");
    fs::create_dir(&upload).unwrap();
    let empty = folders.root.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let open_up = Command::new("chmod").arg("755").arg(folders.root.path()).status().unwrap();
    let owned = Command::new("chown").arg("ftp").arg(&upload).stderr(Stdio::null()).status().unwrap();
    if !owned.success() || !open_up.success() {
        eprintln!("skipped: vsftpd needs root and a user named ftp");
        return None;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = folders.root.path().join("vsftpd.conf");
    fs::write(
        &config,
        format!(
            "listen=YES\nlisten_address=127.0.0.1\nlisten_port={port}\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\n\
             no_anon_password=YES\nwrite_enable=YES\nanon_upload_enable=YES\nanon_mkdir_write_enable=YES\n\
             anon_other_write_enable=YES\nanon_umask=022\nanon_root={}\nsecure_chroot_dir={}\nseccomp_sandbox=NO\n\
             async_abor_enable=YES\nconnect_from_port_20=NO\nxferlog_enable=NO\nanon_max_rate=20000000\n",
            folders.server.display(),
            empty.display()
        ),
    )
    .unwrap();
    let child = Command::new("/usr/sbin/vsftpd").arg(&config).spawn().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let server = Vsftpd { child, address };
    wait_until("vsftpd listens", || TcpStream::connect(address).is_ok());
    Some(server)
}

#[test]
fn our_client_works_with_vsftpd() {
    let folders = folders();
    let Some(server) = vsftpd(&folders) else { return };
    let data = noise(SIZE, 3);
    fs::write(folders.client.join("f"), &data).unwrap();
    for switch in ["passive", "noop"] {
        let lines = format!(
            "user anonymous me; {switch}; autorestart; cd up; put f f; size f; get f back; ls; nlist; mkdir d; rmdir d; \
             rename f g; get g again; interrupt 1000000; noautorestart"
        );
        let values = run(&folders, server.address, &lines);
        assert!(fs::read(folders.client.join("back")).unwrap() == data);
        assert_eq!(values[6]["size"], SIZE, "{values:?}");
        for (what, name) in [("put f h", "h"), ("get g part", "part")] {
            let stop = format!("user anonymous; {switch}; cd up; interrupt 1000000; {what}");
            let (_, values, text) = results(client(&folders, server.address, &stop).spawn().unwrap());
            assert_eq!(values[5]["status"], "interrupted", "{text}");
            let verb = what.split_once(' ').unwrap();
            let again = format!("user anonymous; {switch}; cd up; resume {} {}", verb.0, verb.1);
            let values = run(&folders, server.address, &again);
            assert!(values[4]["markers"][0].as_u64().unwrap() >= 1_000_000 || verb.0 == "put", "{values:?}");
            let folder = if verb.0 == "put" { folders.server.join("up") } else { folders.client.clone() };
            assert!(fs::read(folder.join(name)).unwrap() == data, "{what}");
        }
        let abort = format!("user anonymous; {switch}; cd up; abort 1000000; get g part2; noop");
        let (_, values, text) = results(client(&folders, server.address, &abort).arg("--keep-going").spawn().unwrap());
        assert_eq!(values[5]["status"], "aborted", "{text}");
        assert_eq!(values[6]["status"], "complete", "{text}");
        assert!(!folders.client.join("part2").exists());
        run(&folders, server.address, &format!("user anonymous; {switch}; cd up; delete g; delete h"));
    }
}

/// Ends the processes a process started, and theirs, by their ids.
fn kill_children(of: u32) {
    let listed = Command::new("pgrep").args(["-P", &of.to_string()]).output().unwrap();
    for id in String::from_utf8(listed.stdout).unwrap().split_whitespace() {
        kill_children(id.parse().unwrap());
        Command::new("kill").args(["-9", id]).stderr(Stdio::null()).status().unwrap();
    }
}

#[test]
fn our_client_restarts_by_itself_with_vsftpd() {
    let folders = folders();
    let Some(server) = vsftpd(&folders) else { return };
    let data = noise(24 << 20, 4);
    fs::write(folders.server.join("f"), &data).unwrap();
    let child = client(&folders, server.address, "user anonymous; autorestart; get f").spawn().unwrap();
    wait_until("octets come", || length(&folders.client.join(".fppart~f")) > 4 << 20);
    kill_children(server.child.id());
    let (well, values, text) = results(child);
    assert!(well, "{text}");
    assert!(values[3]["restarts"].as_u64().unwrap() > 0, "{text}");
    assert!(fs::read(folders.client.join("f")).unwrap() == data);
}

#[test]
fn users_have_passwords_roots_and_rights() {
    let folders = folders();
    let hash = |password: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_scps"))
            .args(["fpd", "--hash-password"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let users = folders.root.path().join("users.json");
    let text = serde_json::json!({"users": {"ann": {"password": hash("secret"), "root": "server"}}});
    fs::write(&users, text.to_string()).unwrap();
    fs::write(folders.server.join("f"), b"hers").unwrap();
    let more = ["--users", users.to_str().unwrap(), "--anonymous", folders.server.to_str().unwrap()];
    let server = Server::start(&folders, 0, &more);
    fs::write(folders.root.path().join("pw"), "secret\n").unwrap();
    fs::write(folders.client.join("g"), b"new").unwrap();
    let mut command = client(&folders, server.address, "get f; put g");
    command.args(["--user", "ann", "--password-file", folders.root.path().join("pw").to_str().unwrap()]);
    let (well, _, text) = results(command.spawn().unwrap());
    assert!(well, "{text}");
    assert!(
        !text.contains("secret") && !fs::read_to_string(folders.root.path().join("log")).unwrap().contains("secret")
    );
    run(&folders, server.address, "user anonymous; get f");
    for wrong in ["user anonymous; put g", "user ann wrong", "get f"] {
        let (well, _, text) = results(client(&folders, server.address, wrong).spawn().unwrap());
        assert!(!well, "{wrong}: {text}");
    }
}

#[test]
fn names_in_quotes_may_have_semicolons() {
    let folders = folders();
    let server = Server::open(&folders, 0);
    fs::write(folders.client.join("semi;colon.bin"), b"one").unwrap();
    let commands = r#"put "semi;colon.bin"; append "semi;colon.bin"; get "semi;colon.bin" "a ""b;c""#;
    let values = run(&folders, server.address, commands);
    assert_eq!(values.len(), 4, "{values:?}");
    assert_eq!(values[2]["integrity"], "ok");
    assert_eq!(fs::read(folders.client.join("a \"b;c")).unwrap(), b"oneone");
}

#[test]
fn words_on_standard_input_interrupt_a_running_transfer() {
    let folders = folders();
    let server = Server::open(&folders, 0);
    // Larger than what is under way at any time, so that the word is in time.
    fs::write(folders.server.join("f"), noise(64 << 20, 6)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["fp", "--transport", "tcp", "--quiet", "--keep-going", "--folder", folders.client.to_str().unwrap()])
        .args([&server.address.ip().to_string(), &server.address.port().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "get f").unwrap();
    wait_until("octets come", || length(&folders.client.join(".fppart~f")) > 0);
    writeln!(input, "interrupt").unwrap();
    wait_until("it ends", || folders.client.join("f").exists());
    writeln!(input, "resume get f\nquit").unwrap();
    drop(input);
    let (_, values, text) = results(child);
    assert_eq!(values[1]["status"], "interrupted", "{text}");
    assert_eq!(values[2]["status"], "complete", "{text}");
    assert!(fs::read(folders.client.join("f")).unwrap() == noise(64 << 20, 6));
}

#[test]
fn a_wish_to_interrupt_while_nothing_runs_is_not_one_for_the_next_transfer() {
    let folders = folders();
    let server = Server::open(&folders, 0);
    fs::write(folders.server.join("f"), noise(SIZE, 7)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scps"));
    command
        .args(["fp", "--transport", "tcp", "--quiet", "--folder", folders.client.to_str().unwrap()])
        .args([&server.address.ip().to_string(), &server.address.port().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "lcd .\nget f before").unwrap();
    wait_until("it waits for commands", || length(&folders.client.join("before")) == SIZE as u64);
    Command::new("kill").args(["-TSTP", &child.id().to_string()]).status().unwrap();
    writeln!(input, "get f\nquit").unwrap();
    drop(input);
    let (well, values, text) = results(child);
    assert!(well, "{text}");
    assert_eq!(values[3]["status"], "complete", "{text}");
    assert!(fs::read(folders.client.join("f")).unwrap() == noise(SIZE, 7));
}

#[test]
fn a_server_of_both_families_connects_to_clients_of_ipv4() {
    if TcpListener::bind("[::]:0").is_err() {
        eprintln!("skipped: no IPv6");
        return;
    }
    let folders = folders();
    let server = Server::start(&folders, 0, &["--listen", "::", "--open", folders.server.to_str().unwrap()]);
    fs::write(folders.client.join("f"), noise(1000, 8)).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    run(&folders, address, "put f; get f back; passive; get f again");
    assert_eq!(fs::read(folders.client.join("again")).unwrap(), noise(1000, 8));
}

#[test]
fn commands_of_a_pipe_that_does_not_wait_are_carried_out() {
    let folders = folders();
    let server = Server::open(&folders, 0);
    let (reading, writing) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK | rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_scps"))
        .args(["fp", "--transport", "tcp", "--quiet", "--mib"])
        .arg(folders.root.path().join("mib"))
        .args([server.address.ip().to_string(), server.address.port().to_string()])
        .stdin(reading)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // By then it has asked for a command, and there was none.
    std::thread::sleep(Duration::from_millis(500));
    File::from(writing).write_all(b"pwd\n").unwrap();

    let (well, values, text) = results(child);

    assert!(well, "{text}");
    assert!(values.iter().any(|value| value["command"] == "pwd"), "{text}");
}
