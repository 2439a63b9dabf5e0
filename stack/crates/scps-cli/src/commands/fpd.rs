//! `scps fpd`: the file server.

use crate::error::CliError;
use crate::fp::{keyboard::read_secret, write_whole, FpOptions};
use crate::say;
use crate::stop::StopSignals;
use clap::Args;
use scps_fp::server::{Server, ServerConfig};
use scps_fp::users::{hash_password, User, Users};
use scps_io::{entropy_seed, IoError};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `scps fpd`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct FpdArgs {
    /// Address to serve at; over SCPS-TP one the kernel does not own
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Control port [default: the tunable CTLPORT, 2121]; 0 lets the system choose
    #[arg(long)]
    port: Option<u16>,
    /// Users: {"users": {"name": {"password": "$argon2id$...", "root": "folder", "read_only": false, "quota": 1000000}}}.
    /// Roots are relative to the file's folder
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// Anybody may read files below this folder as the user "anonymous"
    #[arg(long, value_name = "DIR")]
    anonymous: Option<PathBuf>,
    /// No login: whoever connects may read and write below this folder
    #[arg(long, value_name = "DIR")]
    open: Option<PathBuf>,
    /// Administrators may end the server by SITE TERMINATE
    #[arg(long)]
    allow_terminate: bool,
    /// Write the log here instead of to standard error
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the address in use to this file once it is served
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Read a password from standard input, print its hash for the users file, and leave
    #[arg(long)]
    hash_password: bool,
    #[command(flatten)]
    options: FpOptions,
}

impl FpdArgs {
    /// Serves until it is ended.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        if self.hash_password {
            return print_hash();
        }
        let mib = self.options.mib()?;
        let port = self.port.unwrap_or(mib.control_port);
        let config = ServerConfig {
            mib,
            users: self.read_users()?,
            open_as: self.open.as_ref().map(|root| writer(root.clone())),
            allow_terminate: self.allow_terminate,
        };
        if config.users.users.is_empty() && config.open_as.is_none() {
            return Err(CliError::Usage("found nobody to serve; expected --users, --anonymous or --open.".to_owned()));
        }
        let mut log: Box<dyn Write> = match &self.log {
            Some(path) => Box::new(File::create(path).map_err(CliError::file(path))?),
            None => Box::new(std::io::stderr()),
        };
        let mut counters = self.options.counters()?;
        let mut world = self.options.open(self.listen)?;
        let address = SocketAddr::new(self.listen, port);
        let at_address = |source| CliError::File { path: address.to_string(), source };
        let signals = StopSignals::install()?;
        world.watch(signals.wakeup());
        let mut server = Server::start(world.net(), address, config).map_err(at_address)?;
        if let Some(path) = &self.ready_file {
            write_whole(path, &format!("{}\n", server.address()))?;
        }
        let start = world.net().now();
        loop {
            let until = server.run_once(world.net()).map_err(at_address)?;
            for line in server.take_log() {
                let t_s = world.net().now().since(start).as_secs_f64();
                // A full disk must not end the service.
                let _ = writeln!(log, "{t_s:.6} {line}");
            }
            counters.update(&world)?;
            if server.is_finished() {
                world.linger();
                counters.update(&world)?;
                return Ok(ExitCode::SUCCESS);
            }
            world.net().wait(until).map_err(at_address)?;
            world.tell_notices();
            if let Some(cause) = signals.came() {
                world.abort_all();
                counters.update(&world)?;
                return Ok(cause.exit_code());
            }
        }
    }

    fn read_users(&self) -> Result<Users, CliError> {
        let mut users = match &self.users {
            None => Users::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
                let base = path.parent().unwrap_or(std::path::Path::new("."));
                Users::parse(&text, base).map_err(|e| CliError::Usage(format!("{}: {e}.", path.display())))?
            }
        };
        if let Some(root) = &self.anonymous {
            users.users.insert("anonymous".to_owned(), User { read_only: true, ..writer(root.clone()) });
        }
        Ok(users)
    }
}

fn writer(root: PathBuf) -> User {
    User { password: None, root, read_only: false, quota: None, admin: false }
}

fn print_hash() -> Result<ExitCode, CliError> {
    let password = read_secret().map_err(|source| CliError::File { path: "standard input".to_owned(), source })?;
    let seed = entropy_seed().map_err(|source| IoError::System { what: "entropy", source })?;
    let mut salt = [0u8; 16];
    seed.stream("salt").fill(&mut salt);
    say::result(hash_password(&password, salt).map_err(CliError::Usage)?)?;
    Ok(ExitCode::SUCCESS)
}
