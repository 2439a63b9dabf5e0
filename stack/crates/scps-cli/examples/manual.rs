//! Writes the manual pages of `scps` and of each subcommand: names, synopsis and options from the program's own command line, examples
//! from `man/sections/`. `make man` writes them to `man/`; tests/manual.rs compares.

use clap::Command;
use clap_mangen::roff::{roman, Roff};
use clap_mangen::Man;
use std::io;
use std::path::Path;

/// Sections written by hand, in roff, one file a page.
const SECTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../man/sections");

/// Every page: the name of its file, and its text.
pub fn pages() -> io::Result<Vec<(String, String)>> {
    let mut program = scps_cli::command().disable_help_subcommand(true);
    program.build();
    let mut pages = vec![(program.clone(), "scps".to_owned())];
    pages.extend(program.get_subcommands().map(|command| {
        let name = format!("scps-{}", command.get_name());
        (command.clone(), name)
    }));
    pages.into_iter().map(|(command, name)| Ok((format!("{name}.1"), page(command, &name)?))).collect()
}

fn page(mut command: Command, name: &str) -> io::Result<String> {
    let mut text = Vec::new();
    heading(&mut text, &["NAME"], "")?;
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    heading(&mut text, &[], &format!("{name} - {about}"))?;
    // Sixty options in brackets would say nothing.
    let usage = command.render_usage().to_string();
    heading(&mut text, &["SYNOPSIS"], usage.trim_start_matches("Usage: "))?;
    let man = Man::new(command.clone());
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        heading(&mut text, &["COMMANDS"], "Each has a page of its own.")?;
        for sub in command.get_subcommands() {
            let mut roff = Roff::new();
            roff.control("TP", []);
            roff.control("BR", [&format!("scps\\-{}", sub.get_name()) as &str, "(1)"]);
            roff.text([roman(sub.get_about().map(ToString::to_string).unwrap_or_default())]);
            text.extend(roff.render().into_bytes());
        }
    }
    if let Some(more) = command.get_after_help() {
        heading(&mut text, &["NOTES"], "")?;
        for (number, paragraph) in more.to_string().split("\n\n").enumerate() {
            text.extend(notes(number == 0, paragraph).into_bytes());
        }
    }
    text.extend(std::fs::read(Path::new(SECTIONS).join(format!("{name}.roff")))?);
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    // Each part of clap_mangen's begins with the same two definitions, and its lists have more breaks than lines.
    let body: String = text.lines().filter(|l| !l.starts_with(".ie ") && !l.starts_with(".el ")).fold(
        String::new(),
        |mut body, line| {
            body.push_str(line.trim_end());
            body.push('\n');
            body
        },
    );
    let body = body.replace(".br\n\n.br\n", ".sp\n").replace("\n\n", "\n.sp\n");
    let version = env!("CARGO_PKG_VERSION");
    let quotes = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '";
    let title = name.to_uppercase().replace('-', "\\-");
    Ok(format!("{quotes}\n.TH {title} 1 {} \"scps {version}\" \"SCPS stack\"\n{body}", release_date()?))
}

/// When the version was released, so that the same sources make the same page on every day.
fn release_date() -> io::Result<String> {
    let log = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../CHANGELOG.md"))?;
    let start = concat!("## [", env!("CARGO_PKG_VERSION"), "] - ");
    let date = log.lines().find_map(|line| line.strip_prefix(start));
    date.map(str::to_owned).ok_or_else(|| io::Error::other(format!("CHANGELOG.md has no line {start:?}")))
}

fn heading(text: &mut Vec<u8>, title: &[&str], line: &str) -> io::Result<()> {
    let mut roff = Roff::new();
    if !title.is_empty() {
        roff.control("SH", title.iter().copied());
    }
    if !line.is_empty() {
        roff.text([roman(line)]);
    }
    roff.to_writer(text)
}

/// A paragraph as `--help` shows it; what is laid out by hand stays so.
fn notes(is_first: bool, paragraph: &str) -> String {
    let mut roff = Roff::new();
    if !is_first {
        roff.control("PP", []);
    }
    let is_table = paragraph.lines().any(|line| line.starts_with("  "));
    if is_table {
        roff.control("nf", []);
    }
    for line in paragraph.lines() {
        roff.text([roman(line)]);
    }
    if is_table {
        roff.control("fi", []);
    }
    roff.render()
}

#[allow(dead_code, reason = "tests/manual.rs takes the pages only")]
fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../man").into());
    for (file, text) in pages()? {
        std::fs::write(Path::new(&folder).join(file), text)?;
    }
    Ok(())
}
