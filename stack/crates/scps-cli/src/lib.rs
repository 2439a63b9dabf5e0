//! The `scps` program: it parses, runs one command, and is the only place that prints an error and chooses an exit code. (A library, so
//! that the manual pages and their tests have its command line.)
//!
//! Exit codes: 0 done; 1 the transfer failed or a capture holds malformed packets; 2 the command line or a settings file
//! is wrong; 3 a file or device does not work; 127 this machine or build does not support what was asked; 128 and the number
//! of SIGINT (130) or SIGTERM (143), which end a command early.

// A result has some sixty keys.
#![recursion_limit = "512"]
#![warn(clippy::print_stdout, clippy::print_stderr)] // They panic where the reader has gone; see `say`.

mod capture_file;
mod commands;
mod error;
mod far_side;
mod fp;
mod gateway_settings;
mod link;
mod machine;
mod metrics;
mod np_settings;
mod operator;
mod pace;
mod payload;
mod place;
mod progress;
mod report;
mod resume_file;
mod say;
mod settings;
mod settings_file;
mod sp_settings;
mod stop;
mod trace;
mod world;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};
use std::process::ExitCode;

/// SCPS transport and file protocol for satellite links, and a serial space link to test them over
#[derive(Debug, Parser)]
#[command(name = "scps", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

const EXIT_CODES: &str =
    "Exit codes: 0 done; 1 transfer failed, or malformed packets in a capture; 2 wrong command line \
or settings file; 3 a file or device does not work; 127 not supported here; 130 ended by SIGINT, 143 by SIGTERM (channel: 0).

SIGINT and SIGTERM end a command early: its connections are reset, it waits up to 5 s until the resets have left, and it
reports. A second signal ends it at once.";

/// Runs the program.
pub fn run() -> ExitCode {
    let matches = Cli::command().try_get_matches();
    let (cli, matches) = match matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
        Ok(parsed) => parsed,
        Err(error) => match ipv6_in(&error) {
            Some(complaint) => {
                say::remark(format_args!("scps: {complaint}."));
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    match fp::check_transport(&matches).and_then(|()| cli.command.run()) {
        Ok(code) => code,
        Err(error) => {
            say::remark(format_args!("scps: {error}"));
            error.exit_code()
        }
    }
}

/// What to say of an option with an address of IPv6, if that is what is wrong.
fn ipv6_in(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let value = text(ContextKind::InvalidValue).filter(|value| place::is_ipv6(value))?;
    let option = text(ContextKind::InvalidArg).unwrap_or("command line");
    (error.kind() == ErrorKind::ValueValidation).then(|| format!("{option}: {}", place::no_ipv6(value)))
}

/// The command line: every subcommand, option and help text.
pub fn command() -> clap::Command {
    Cli::command()
}
