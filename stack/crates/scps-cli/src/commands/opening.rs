//! How a connection comes about: whichever end connects, either may be the one that sends.

use crate::error::CliError;
use crate::progress::Phase;
use crate::say;
use clap::Args;
use scps_io::Stack;
use scps_tp::{Config, ConnectionId};
use scps_wire::Duration;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Options of `scps send` and `scps recv`.
#[derive(Debug, Args)]
pub struct OpeningArgs {
    /// Connect to this address
    #[arg(
        long,
        visible_alias = "to",
        value_name = "ADDR:PORT",
        required_unless_present = "listen",
        requires = "local"
    )]
    connect: Option<SocketAddrV4>,
    /// Our address when we connect: with --driver tun one the kernel does not own, routed to the TUN device
    #[arg(long, value_name = "ADDR")]
    local: Option<Ipv4Addr>,
    /// Our port when we connect; 0 to choose one
    #[arg(long, default_value_t = 0)]
    local_port: u16,
    /// Accept here instead: with --driver tun an address the kernel does not own, routed to the TUN device
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["connect", "local", "local_port"])]
    listen: Option<SocketAddrV4>,
    /// Say `{"event": "listening"}` on standard output when connections are accepted
    #[arg(long)]
    announce: bool,
    /// Give up after this many seconds; 0 for never
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    timeout_s: f64,
}

/// What the opening began with.
#[derive(Clone, Copy, Debug)]
pub enum Opened {
    /// A connection that we asked for.
    Connecting(ConnectionId),
    /// A listener.
    Listening,
}

impl OpeningArgs {
    /// Our address.
    pub fn address(&self) -> Ipv4Addr {
        self.listen.map(|l| *l.ip()).or(self.local).unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    /// Where we accept, if we do.
    pub fn listening(&self) -> Option<SocketAddr> {
        self.listen.map(SocketAddr::V4)
    }

    /// True if we connect.
    pub fn connects(&self) -> bool {
        self.listen.is_none()
    }

    /// What there is to show before there is a connection.
    pub fn phase(&self) -> Phase {
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        match self.listen {
            Some(at) => Phase::Listening(at),
            None => Phase::Connecting(self.connect.unwrap_or(nowhere)),
        }
    }

    /// When to give up, counted from the start.
    pub fn limit(&self) -> Option<Duration> {
        (self.timeout_s > 0.0).then(|| Duration::from_secs_f64(self.timeout_s.min(1e9)))
    }

    /// Asks for the connection, or listens and says so.
    pub fn begin(&self, stack: &mut Stack, config: Config) -> Result<Opened, CliError> {
        match (self.listen, self.connect) {
            (None, Some(to)) => stack
                .connect((self.address(), self.local_port), to, config)
                .map(Opened::Connecting)
                .map_err(|e| CliError::Usage(format!("{to}: {e}."))),
            (listen, _) => {
                let port = listen.map_or(0, |l| l.port());
                let at = SocketAddrV4::new(self.address(), port);
                stack.listen(at, config).map_err(|e| CliError::Usage(format!("{at}: {e}.")))?;
                if self.announce {
                    say::result(r#"{"event": "listening"}"#)?;
                }
                Ok(Opened::Listening)
            }
        }
    }
}
