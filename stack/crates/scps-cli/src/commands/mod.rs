//! The subcommands: one file each, one line in [`Command`] and one in its `run`.

mod channel;
mod decode;
mod feed;
mod fp;
mod fpd;
mod gateway;
mod line_spec;
mod opening;
mod probe;
mod recv;
mod router;
mod send;
mod sp_key;

use crate::error::CliError;
use clap::Subcommand;
use std::process::ExitCode;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send a file or generated data to `scps recv`, or to any TCP sink
    Send(Box<send::SendArgs>),
    /// Receive from `scps send`, or from any TCP source; either end may be the one that connects
    Recv(Box<recv::RecvArgs>),
    /// Join two ptys, devices or sockets by a serial space link with rate, delay, errors and outages
    Channel(Box<channel::ChannelArgs>),
    /// Move files to and from `scps fpd`, or an FTP server: interactive or by script
    Fp(Box<fp::FpArgs>),
    /// Serve files to `scps fp`, or to FTP clients
    Fpd(Box<fpd::FpdArgs>),
    /// Forward NP datagrams between TUN devices, UDP sockets and serial lines
    Router(router::RouterArgs),
    /// Let programs on a LAN use SCPS-TP over a satellite link without knowing it: a performance-enhancing proxy
    Gateway(Box<gateway::GatewayArgs>),
    /// Make a key for --sp
    SpKey(sp_key::SpKeyArgs),
    /// Print the packets of a capture, one line each
    Decode(decode::DecodeArgs),
}

impl Command {
    /// Does it.
    pub fn run(self) -> Result<ExitCode, CliError> {
        match self {
            Command::Send(args) => args.run(),
            Command::Recv(args) => args.run(),
            Command::Channel(args) => args.run(),
            Command::Fp(args) => args.run(),
            Command::Fpd(args) => args.run(),
            Command::Router(args) => args.run(),
            Command::Gateway(args) => args.run(),
            Command::SpKey(args) => args.run(),
            Command::Decode(args) => args.run(),
        }
    }
}
