//! What `scps fp` and `scps fpd` share: the transport, the tunables.

pub mod console;
pub mod counters;
pub mod editor;
pub mod keyboard;

use crate::error::CliError;
use crate::fp::counters::Counters;
use crate::resume_file::ResumeFile;
use crate::settings::Tunables;
use crate::sp_settings::{tell_notices, tell_silence};
use crate::stop::{warn_of_resets, RESETS_MAX};
use crate::world::DriverArgs;
use clap::{ArgMatches, Args, Id, ValueEnum};
use scps_fp::config::Mib;
use scps_fp::net::Net;
use scps_fp_io::{KernelNet, TpNet};
use scps_io::IoError;
use scps_tp::Totals;
use scps_wire::Duration;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// What carries the file protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TransportName {
    /// SCPS-TP, by the driver's options.
    Tp,
    /// The kernel's TCP.
    Tcp,
}

/// Which peers to expect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Dialect {
    /// Ordinary FTP behaviour where the older implementation differs.
    Modern,
    /// The older implementation's: port 2121, PORT only, replies suppressed at the start.
    Historic,
}

/// Options of both ends.
#[derive(Debug, Args)]
#[command(next_help_heading = "File protocol")]
pub struct FpOptions {
    /// What carries the protocol
    #[arg(long, value_enum, default_value = "tp")]
    pub transport: TransportName,
    /// Which peers to expect
    #[arg(long, value_enum, default_value = "modern")]
    pub dialect: Dialect,
    /// Read tunables (NAME=value, one a line) from this file
    #[arg(long, value_name = "FILE")]
    pub mib: Option<PathBuf>,
    /// Set one tunable, such as DATATIMEOUT=10; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Keep counts of the transport's timeouts and resends in this file (--transport tp only)
    #[arg(long, value_name = "FILE")]
    counters: Option<PathBuf>,
    #[command(flatten)]
    tunables: Tunables,
    #[command(flatten)]
    pub driver: DriverArgs,
}

impl FpOptions {
    /// The tunables: dialect, then file, then options.
    pub fn mib(&self) -> Result<Mib, CliError> {
        let mib = if self.dialect == Dialect::Historic { Mib::historic() } else { Mib::default() };
        let mut mib = match self.round_trip()? {
            Some(rtt) => mib.over(rtt),
            None => mib,
        };
        if let Some(path) = &self.mib {
            let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
            for warning in mib.read(&text) {
                crate::say::remark(format_args!("scps: {}: {warning}", path.display()));
            }
        }
        for pair in &self.set {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| CliError::Usage(format!("--set: found {pair:?}; expected NAME=VALUE.")))?;
            mib.set(name, value)
                .map_err(|e| CliError::Usage(format!("--set {name}: found {value:?}; expected {e}.")))?;
        }
        Ok(mib)
    }

    /// The round trip of the transport's route, if it is known.
    fn round_trip(&self) -> Result<Option<Duration>, CliError> {
        match self.transport {
            TransportName::Tp => Ok(self.tunables.resolve()?.route.rtt),
            TransportName::Tcp => Ok(None),
        }
    }

    /// Where the transport's counts go.
    pub fn counters(&self) -> Counters {
        Counters::new(self.counters.clone())
    }

    /// Opens the transport. SCPS-TP needs to know which address is its own.
    pub fn open(&self, address: IpAddr) -> Result<World, CliError> {
        match self.transport {
            TransportName::Tcp => {
                let net = KernelNet::new().map_err(|source| IoError::System { what: "poll", source })?;
                Ok(World::Kernel(net))
            }
            TransportName::Tp => {
                let IpAddr::V4(address) = address else {
                    let problem = crate::place::no_ipv6(&address.to_string());
                    return Err(CliError::Usage(format!("local address: {problem} but with --transport tcp.")));
                };
                let mut resolved = self.tunables.resolve()?;
                let stack = self.driver.open(address, &mut resolved)?;
                Ok(World::Tp(Box::new(TpNet::new(stack, address, resolved.config)), resolved.resume))
            }
        }
    }
}

/// Refuses an option of SCPS-TP where the kernel's TCP would ignore it.
pub fn check_transport(matches: &ArgMatches) -> Result<(), CliError> {
    let Some((_, given)) = matches.subcommand() else { return Ok(()) };
    if given.try_get_one("transport").ok().flatten() != Some(&TransportName::Tcp) {
        return Ok(());
    }
    // clap has a group for the options of each struct.
    let groups = ["Tunables", "DriverArgs"].map(|group| given.get_many::<Id>(group));
    let mut unused = groups.into_iter().flatten().flatten().map(Id::as_str);
    match unused.next().or(given.contains_id("counters").then_some("counters")) {
        None => Ok(()),
        Some(id) => Err(CliError::Usage(format!(
            "--{}: found it with --transport tcp, the kernel's TCP; expected --transport tp. Leave one of them out.",
            id.replace('_', "-")
        ))),
    }
}

/// The transport in operation.
pub enum World {
    /// Kernel TCP.
    Kernel(KernelNet),
    /// SCPS-TP, and what paths took.
    Tp(Box<TpNet>, ResumeFile),
}

/// How long the end of the program waits for what is still on its way.
const LINGER: Duration = Duration::from_secs(5);

impl World {
    /// As the protocol sees it.
    pub fn net(&mut self) -> &mut dyn Net {
        match self {
            World::Kernel(net) => net,
            World::Tp(net, _) => net.as_mut(),
        }
    }

    /// Ends waits when `fd` becomes readable; what cannot be waited for, such as a file, is always readable.
    pub fn watch(&mut self, fd: BorrowedFd<'_>) {
        let _ = match self {
            World::Kernel(net) => net.watch(fd),
            World::Tp(net, _) => net.watch(fd),
        };
    }

    /// Counts of all connections, where they are ours to count.
    pub fn totals(&self) -> Option<Totals> {
        match self {
            World::Kernel(_) => None,
            World::Tp(net, _) => Some(net.totals()),
        }
    }

    /// Lets every wait fail once `ended` is true.
    pub fn fail_waits_when(&mut self, ended: Arc<AtomicBool>) {
        match self {
            World::Kernel(net) => net.fail_waits_when(ended),
            World::Tp(net, _) => net.fail_waits_when(ended),
        }
    }

    /// Prints what SP has to tell.
    pub fn tell_notices(&mut self) {
        if let World::Tp(net, _) = self {
            tell_notices(net.stack_mut());
        }
    }

    /// Resets every connection and waits until the resets have left.
    pub fn abort_all(&mut self) {
        match self {
            World::Kernel(net) => net.abort_all(),
            // Whoever is ended by a signal ends, whatever the device says.
            World::Tp(net, _) => {
                if !net.abort_all(RESETS_MAX).unwrap_or(true) {
                    warn_of_resets();
                }
            }
        }
    }

    /// Lets the last octets leave.
    pub fn linger(&mut self) {
        if let World::Tp(net, resume) = self {
            tell_silence(net.stack_mut());
            // Whoever is gone does not need them.
            let _ = net.linger(LINGER);
            let stack = net.stack_mut();
            resume.save(stack.endpoint(), stack.now());
        }
    }
}

/// Writes a file whole or not at all: others wait for it and read it.
pub fn write_whole(path: &Path, text: &str) -> Result<(), CliError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    std::fs::write(&unfinished, text).map_err(CliError::file(&unfinished))?;
    std::fs::rename(&unfinished, path).map_err(CliError::file(path))
}

/// Opens a file to which lines are added.
pub fn append_to(path: &Path) -> Result<File, CliError> {
    File::options().create(true).append(true).open(path).map_err(CliError::file(path))
}

/// No particular address.
pub const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
