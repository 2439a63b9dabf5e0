//! `scps fpd`: the file server.

use crate::error::CliError;
use crate::fp::counters::line;
use crate::fp::{append_to, keyboard::read_secret, write_whole, FpOptions, World};
use crate::operator::{check_fixed, Level, Operator, OperatorArgs};
use crate::say;
use crate::world::seed_of;
use clap::Args;
use scps_fp::server::{LogLine, Server, ServerConfig};
use scps_fp::users::{hash_password, User, Users};
use serde_json::{json, Value};
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
    operator: OperatorArgs,
    #[command(flatten)]
    options: FpOptions,
}

impl FpdArgs {
    /// Serves until it is ended.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        if self.hash_password {
            return print_hash();
        }
        let config = self.config()?;
        let port = self.port.unwrap_or(config.mib.control_port);
        let mut log = self.open_log()?;
        let mut counters = self.options.counters();
        let mut world = self.options.open(self.listen)?;
        let address = SocketAddr::new(self.listen, port);
        let at_address = |source| CliError::File { path: address.to_string(), source };
        let mut operator = Operator::begin("fpd", &self.operator)?;
        for wakeup in operator.wakeups() {
            world.watch(wakeup);
        }
        let mut server = Server::start(world.net(), address, config).map_err(at_address)?;
        if let Some(path) = &self.ready_file {
            write_whole(path, &format!("{}\n", server.address()))?;
        }
        let start = world.net().now();
        loop {
            let until = server.run_once(world.net()).map_err(at_address)?;
            for LogLine { is_warning, text } in server.take_log() {
                let t_s = world.net().now().since(start).as_secs_f64();
                if operator.hears(if is_warning { Level::Warn } else { Level::Info }) {
                    // A full disk must not end the service.
                    let _ = writeln!(log, "{t_s:.6} {text}");
                }
            }
            counters.update(&world)?;
            if server.is_finished() {
                world.linger();
                counters.update(&world)?;
                return Ok(ExitCode::SUCCESS);
            }
            world.net().wait(until).map_err(at_address)?;
            world.tell_notices();
            operator.answer(|| counts(&server, &world));
            operator.reload(&[self.users.as_deref(), self.options.mib.as_deref()], || {
                log = self.open_log()?;
                let config = self.config()?;
                let users = config.users.users.len();
                let control = |port| vec![("CTLPORT".to_owned(), self.port.unwrap_or(port).to_string())];
                check_fixed(&control(port), &control(config.mib.control_port))?;
                server.reconfigure(config);
                Ok(format!("{users} users; who is logged in keeps the rights of the login"))
            });
            if let Some(cause) = operator.cause() {
                world.abort_all();
                counters.update(&world)?;
                return Ok(cause.exit_code());
            }
        }
    }

    /// What files and command line say now.
    fn config(&self) -> Result<ServerConfig, CliError> {
        let config = ServerConfig {
            mib: self.options.mib()?,
            users: self.read_users()?,
            open_as: self.open.as_ref().map(|root| writer(root.clone())),
            allow_terminate: self.allow_terminate,
        };
        if config.users.users.is_empty() && config.open_as.is_none() {
            return Err(CliError::Usage("found nobody to serve; expected --users, --anonymous or --open.".to_owned()));
        }
        Ok(config)
    }

    /// What was written stays: after SIGHUP the file may be the same.
    fn open_log(&self) -> Result<Box<dyn Write>, CliError> {
        Ok(match &self.log {
            Some(path) => Box::new(append_to(path)?),
            None => Box::new(std::io::stderr()),
        })
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
            let before = users.users.insert("anonymous".to_owned(), User { read_only: true, ..writer(root.clone()) });
            if before.is_some() {
                let said = "--anonymous: found a user \"anonymous\" in the file of --users too; expected one of them. Leave one out.";
                return Err(CliError::Usage(said.to_owned()));
            }
        }
        Ok(users)
    }
}

/// For a monitoring system; `tp` is over SCPS-TP.
fn counts(server: &Server, world: &World) -> Value {
    let counters = server.counters();
    json!({
        "open": server.session_count(),
        "sessions": counters.sessions,
        "refused": counters.refused,
        "logins_refused": counters.logins_refused,
        "commands": counters.commands,
        "from_clients": {"ended": counters.transfers_in, "octets": counters.octets_in},
        "to_clients": {"ended": counters.transfers_out, "octets": counters.octets_out},
        "tp": world.totals().map(line),
    })
}

fn writer(root: PathBuf) -> User {
    User { password: None, root, read_only: false, quota: None, admin: false }
}

fn print_hash() -> Result<ExitCode, CliError> {
    let password = read_secret().map_err(|source| CliError::File { path: "standard input".to_owned(), source })?;
    let seed = seed_of(None)?;
    let mut salt = [0u8; 16];
    seed.stream("salt").fill(&mut salt);
    say::result(hash_password(&password, salt).map_err(CliError::Usage)?)?;
    Ok(ExitCode::SUCCESS)
}
