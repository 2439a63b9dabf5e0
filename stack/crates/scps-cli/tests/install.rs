//! What `make install` puts somewhere, and that `make uninstall` takes it away; the program as `cargo install` makes it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn stack() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder, by their names there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn make_installs_program_and_pages_and_takes_them_away() {
    let scratch = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_scps");
    let make = |goal: &str| {
        // This build's program; -o: as it is, whatever is newer.
        let variables = [
            format!("BINARY={program}"),
            "PREFIX=/opt/scps".to_owned(),
            format!("DESTDIR={}", scratch.path().display()),
        ];
        let output =
            Command::new("make").args(["-o", program, goal]).args(variables).current_dir(stack()).output().unwrap();
        assert!(output.status.success(), "{goal}: {}", String::from_utf8_lossy(&output.stderr));
    };
    make("install");
    let place = scratch.path().join("opt/scps");
    let pages = ["", "-channel", "-decode", "-fp", "-fpd", "-gateway", "-recv", "-router", "-send", "-sp-key"];
    let mut expected: Vec<String> = pages.iter().map(|name| format!("share/man/man1/scps{name}.1")).collect();
    expected.push("bin/scps".to_owned());
    expected.sort();
    assert_eq!(files(&place), expected);

    let version = Command::new(place.join("bin/scps")).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8(version.stdout).unwrap(), concat!("scps ", env!("CARGO_PKG_VERSION"), "\n"));
    let pages = place.join("share/man");
    match Command::new("man").args(["-M", pages.to_str().unwrap(), "-w", "scps-send"]).output() {
        Ok(output) => assert!(String::from_utf8_lossy(&output.stdout).ends_with("man1/scps-send.1\n")),
        Err(_) => eprintln!("skipped: man is not installed"),
    }
    make("uninstall");
    assert_eq!(files(scratch.path()), [""; 0]);
}

#[test]
#[ignore = "builds the program in release mode: minutes; `make -C stack test-install` runs it"]
fn cargo_installs_the_program() {
    let scratch = tempfile::tempdir().unwrap();
    // As docs/two-machines.md has it; cargo 1.85 takes no other.
    let target = format!("--target={}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["install", "--locked", &target, "--path", "stack/crates/scps-cli", "--root"])
        .arg(scratch.path())
        .current_dir(stack().join(".."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let version = Command::new(scratch.path().join("bin/scps")).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8(version.stdout).unwrap(), concat!("scps ", env!("CARGO_PKG_VERSION"), "\n"));
}
