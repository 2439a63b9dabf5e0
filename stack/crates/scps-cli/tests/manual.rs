//! The manual pages in `man/` are those of this command line, say all that `--help` says, and lint clean; their examples are commands
//! that the program takes.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

#[path = "../examples/manual.rs"]
mod manual;

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../man")
}

#[test]
fn pages_are_as_the_command_line_makes_them() {
    let pages = manual::pages().unwrap();
    for (file, text) in &pages {
        let kept = std::fs::read_to_string(folder().join(file)).unwrap_or_default();
        assert!(kept == *text, "man/{file} differs from the command line. Run: make -C stack man");
    }
    let kept = std::fs::read_dir(folder()).unwrap().filter(|e| e.as_ref().unwrap().file_name() != "sections").count();
    assert_eq!(kept, pages.len(), "man/ has a page of no command");
}

/// The words that begin with `--` in the first column of what `--help` prints, and on other pages in bold.
fn options_of_help(command: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_scps")).args(command).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with('-') && !line.starts_with("- "));
    lines.filter_map(|line| line.split([' ', ',']).find(|word| word.starts_with("--"))).map(str::to_owned).collect()
}

#[test]
fn every_option_of_help_is_in_the_page() {
    let mut seen = 0;
    for (file, text) in manual::pages().unwrap() {
        let words: Vec<&str> = file.trim_end_matches(".1").split('-').skip(1).collect();
        let plain = text.replace("\\-", "-");
        for option in options_of_help(&words) {
            assert!(plain.contains(&format!("\\fB{option}\\fR")), "{file} lacks {option}");
            seen += 1;
        }
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH EXAMPLES", ".SH \"SEE ALSO\""] {
            assert!(text.contains(section), "{file} lacks {section}");
        }
    }
    assert!(seen > 250, "found {seen} options only");
}

/// The commands of a page's examples, with lines that go on joined.
fn examples(text: &str) -> Vec<String> {
    let examples = text.split(".SH EXAMPLES").nth(1).unwrap().split(".SH ").next().unwrap();
    let joined = examples.replace("\\e\n", "").replace("\\-", "-").replace("\\(aq", "'");
    let block = |part: &str| part.split(".RE").next().unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    joined.split(".RS 4\n").skip(1).flat_map(block).collect()
}

/// Words as a shell cuts them, as far as the examples need it.
fn words(line: &str) -> Vec<String> {
    line.split('\'')
        .enumerate()
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn the_examples_are_commands_that_the_program_takes() {
    for (file, text) in manual::pages().unwrap() {
        let mut tried = 0;
        for line in examples(&text) {
            for part in line.split(" | ").filter(|part| part.starts_with("scps ")) {
                let parsed = scps_cli::command().try_get_matches_from(words(part));
                assert!(parsed.is_ok(), "{file}: {part}: {}", parsed.unwrap_err());
                tried += 1;
            }
        }
        assert!(tried >= 2, "{file} has {tried} examples");
    }
}

#[test]
fn mandoc_and_man_find_nothing_to_say() {
    for (file, _) in manual::pages().unwrap() {
        let path = folder().join(file);
        let path = path.to_str().unwrap();
        for linter in [&["mandoc", "-T", "lint", "-W", "warning"][..], &["man", "--warnings", "-E", "UTF-8", "-l"]] {
            let Ok(output) = Command::new(linter[0]).args(&linter[1..]).arg(path).env("MANROFFOPT", "-ww").output()
            else {
                eprintln!("skipped: {} is not installed", linter[0]);
                continue;
            };
            let said = if linter[0] == "mandoc" { [output.stdout, output.stderr].concat() } else { output.stderr };
            assert_eq!(String::from_utf8_lossy(&said), "", "{path}");
        }
    }
}
