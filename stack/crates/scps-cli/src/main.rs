//! The `scps` program. It parses, runs one command, and is the only place that prints an error and chooses an exit code.
//!
//! Exit codes: 0 done; 1 the transfer failed or a capture holds malformed packets; 2 the command line or a settings file
//! is wrong; 3 a file or device does not work; 127 this machine or build does not support what was asked; 128 and the number
//! of SIGINT (130) or SIGTERM (143), which end a command early.

mod commands;
mod error;
mod fp;
mod pace;
mod payload;
mod report;
mod settings;
mod stop;
mod trace;
mod world;

use clap::Parser;
use std::process::ExitCode;

/// SCPS: transport and file protocol; and the serial space link they were tested over.
#[derive(Debug, Parser)]
#[command(name = "scps", version, about, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

const EXIT_CODES: &str =
    "Exit codes: 0 done; 1 transfer failed, or malformed packets in a capture; 2 wrong command line \
or settings file; 3 a file or device does not work; 127 not supported here; 130 ended by SIGINT, 143 by SIGTERM.

SIGINT and SIGTERM end a command early: its connections are reset, it waits up to 5 s until the resets have left, and it
reports. A second signal ends it at once.";

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("scps: {error}");
            error.exit_code()
        }
    }
}
