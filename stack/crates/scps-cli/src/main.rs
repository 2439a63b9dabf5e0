//! The `scps` program.

fn main() -> std::process::ExitCode {
    scps_cli::run()
}
