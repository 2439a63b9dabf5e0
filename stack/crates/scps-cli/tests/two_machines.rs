//! Every command of docs/two-machines.md, as the page has it, on two machines that are network namespaces. Needs root, /dev/net/tun and
//! `ip netns`; skips with the reason where that is not to be had.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A command of the page: where, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Typed {
    machine: String,
    command: String,
}

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/two-machines.md")).unwrap()
}

/// The commands of each block that shows a prompt.
fn blocks(page: &str) -> Vec<Vec<Typed>> {
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| block.lines().map(typed).collect()).collect()
}

fn typed(line: &str) -> Typed {
    let (machine, command) = line.split_once(['$', '#']).unwrap();
    assert!(["near", "far"].contains(&machine), "{line}");
    Typed { machine: machine.to_owned(), command: command.trim().to_owned() }
}

/// Two namespaces with the page's addresses, each with a folder of its own.
struct Machines {
    prefix: String,
    scratch: tempfile::TempDir,
    /// What waits for packets, until the next command that does not send any.
    waiting: Vec<(Typed, Child)>,
    /// What serves until the end of a block.
    serving: Vec<Child>,
}

fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Machines {
    /// `None`, with the reason printed, if this machine cannot.
    fn up() -> Option<Machines> {
        if !Path::new("/dev/net/tun").exists() {
            eprintln!("skipped: /dev/net/tun does not exist");
            return None;
        }
        let prefix = format!("scpsm{}", std::process::id());
        let machines =
            Machines { prefix, scratch: tempfile::tempdir().unwrap(), waiting: Vec::new(), serving: Vec::new() };
        let [near, far] = ["near", "far"].map(|name| machines.namespace(name));
        if !ip(&format!("netns add {near}")) || !ip(&format!("netns add {far}")) {
            eprintln!("skipped: `ip netns add` needs root and network namespaces");
            return None;
        }
        assert!(ip(&format!("-n {near} link add eth0 type veth peer name eth0 netns {far}")));
        for (name, namespace, address) in [("near", &near, "192.0.2.1"), ("far", &far, "192.0.2.2")] {
            assert!(ip(&format!("-n {namespace} addr add {address}/24 dev eth0")));
            assert!(ip(&format!("-n {namespace} link set eth0 up")));
            assert!(ip(&format!("-n {namespace} link set lo up")));
            let place = machines.scratch.path().join(name);
            std::fs::create_dir_all(place.join("bin")).unwrap();
            // A copy: a command of the page gives it a capability.
            std::fs::copy(env!("CARGO_BIN_EXE_scps"), place.join("bin/scps")).unwrap();
        }
        Some(machines)
    }

    fn namespace(&self, machine: &str) -> String {
        format!("{}{machine}", self.prefix)
    }

    fn file(&self, machine: &str, name: &str) -> PathBuf {
        self.scratch.path().join(machine).join(name)
    }

    fn start(&self, typed: &Typed) -> Child {
        self.start_with(typed, Stdio::null())
    }

    /// Starts a receiver and waits until it listens, as a person sees at the terminal before typing at the other machine.
    fn start_receiver(&self, typed: &Typed) -> Child {
        let announcing = Typed { command: format!("{} --announce", typed.command), ..typed.clone() };
        let mut child = self.start_with(&announcing, Stdio::piped());
        let mut line = String::new();
        let output = child.stdout.as_mut().unwrap();
        std::io::BufReader::new(output).read_line(&mut line).unwrap();
        assert!(line.contains("listening"), "{line:?}: {typed:?}");
        child
    }

    fn start_with(&self, typed: &Typed, output: Stdio) -> Child {
        let place = self.file(&typed.machine, "");
        let path = format!("{}:{}", place.join("bin").display(), std::env::var("PATH").unwrap());
        Command::new("ip")
            .args(["netns", "exec", &self.namespace(&typed.machine), "sh", "-ec", &typed.command])
            .current_dir(place)
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(output)
            .spawn()
            .unwrap()
    }

    /// Types a command, as a person would: what waits for packets gets a terminal of its own.
    fn enter(&mut self, typed: &Typed) {
        let begins = |words: &[&str]| words.iter().any(|w| typed.command.starts_with(w));
        if begins(&["scps fpd"]) {
            let server = self.start(&Typed { command: format!("exec {}", typed.command), ..typed.clone() });
            self.serving.push(server);
        } else if begins(&["scps recv"]) {
            let child = self.start_receiver(typed);
            self.waiting.push((typed.clone(), child));
        } else if begins(&["tcpdump"]) {
            let child = self.start(typed);
            self.waiting.push((typed.clone(), child));
        } else {
            if !begins(&["scps send", "scps fp", "head", "ss "]) {
                self.wait_for_all();
            }
            let status = self.start(typed).wait().unwrap();
            assert!(status.success(), "{status}: {typed:?}");
        }
    }

    fn wait_for_all(&mut self) {
        for (typed, mut child) in self.waiting.drain(..) {
            let status = child.wait().unwrap();
            assert!(status.success(), "{status}: {typed:?}");
        }
    }

    fn end_block(&mut self) {
        self.wait_for_all();
        for mut child in self.serving.drain(..) {
            // `sh` and `ip netns exec` have become the server, so this is its process.
            assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
            assert_eq!(child.wait().unwrap().code(), Some(143));
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for child in self.waiting.iter_mut().map(|(_, child)| child).chain(&mut self.serving) {
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in ["near", "far"] {
            ip(&format!("netns del {}", self.namespace(name)));
        }
    }
}

fn is_installed(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status().unwrap().success()
}

#[test]
fn every_command_of_the_page_works_as_it_stands() {
    let Some(mut machines) = Machines::up() else { return };
    let blocks = blocks(&page());
    assert!(blocks.len() >= 8, "found {} blocks", blocks.len());
    let mut transfers = 0;
    for block in blocks {
        let missing = ["tcpdump", "nft", "setcap"]
            .into_iter()
            .find(|program| block.iter().any(|typed| typed.command.starts_with(program)) && !is_installed(program));
        if let Some(program) = missing {
            eprintln!("skipped: {program} is not installed: {block:?}");
            continue;
        }
        for typed in &block {
            machines.enter(typed);
        }
        machines.end_block();
        if block.iter().any(|typed| typed.command.starts_with("scps send")) {
            let [sent, received] = [("near", "data.dat"), ("far", "copy.dat")]
                .map(|(machine, name)| std::fs::read(machines.file(machine, name)).unwrap());
            assert!(sent.len() == 1_000_000 && sent == received, "{block:?}");
            std::fs::remove_file(machines.file("far", "copy.dat")).unwrap();
            std::fs::write(machines.file("far", "copy.dat"), received).unwrap();
            transfers += 1;
        }
    }
    assert!(transfers >= 3, "{transfers} transfers");
}

#[test]
fn the_other_commands_of_the_page_are_targets_and_options_that_exist() {
    let page = page();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
    for target in ["install-stack", "uninstall-stack"] {
        assert!(page.contains(&format!("make {target}")) && makefile.contains(&format!("\n{target}: ##")), "{target}");
    }
    // Each option that the text names is one of the program's.
    let mut program = scps_cli::command();
    program.build();
    let known: Vec<String> = std::iter::once(&program)
        .chain(program.get_subcommands())
        .flat_map(|c| c.get_arguments().filter_map(|a| a.get_long().map(str::to_owned)).collect::<Vec<_>>())
        .chain(["to", "locked", "path", "target", "add-port"].map(str::to_owned))
        .collect();
    for word in page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).filter(|word| word.starts_with("--")) {
        let name = word.trim_start_matches("--");
        assert!(name.is_empty() || name.starts_with('-') || known.iter().any(|k| k == name), "{word}");
    }
}
