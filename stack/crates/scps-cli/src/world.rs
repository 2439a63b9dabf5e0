//! Where a command meets the network: the driver and its options, the seed.

use crate::capture_file::Captures;
use crate::error::CliError;
use crate::np_settings::NpHost;
use crate::settings::Resolved;
use crate::settings_file::Wrong;
use crate::sp_settings::SpHost;
use crate::trace::appended;
use clap::{Args, ValueEnum};
use scps_io::{
    entropy_seed, CaptureKind, Device, EndAddress, IoError, IpEncapsulation, NextHops, SerialDevice, Stack, TunConfig,
    TunDevice, UdpAddressing, UdpConfig, UdpDevice,
};
use scps_tp::net::NetworkConfig;
use scps_tp::EndpointConfig;
use scps_wire::Seed;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// What carries packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DriverName {
    /// IP through a TUN device.
    Tun,
    /// IP inside UDP.
    Udp,
    /// Frames on a serial line; --network np only.
    Serial,
}

/// The layer beneath the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum NetworkName {
    /// IPv4.
    Ip,
    /// SCPS-NP: in IP with --driver tun, in UDP, or bare on a serial line.
    Np,
}

/// Options of the driver.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Driver")]
pub struct DriverArgs {
    /// What carries packets
    #[arg(long, value_enum, default_value = "tun")]
    driver: DriverName,
    /// The layer beneath the transport
    #[arg(long, value_enum, default_value = "ip")]
    network: NetworkName,
    /// NP: addresses, next hops and the rest, a JSON file (stack/README.md); without it hosts have their IPv4 addresses
    #[arg(long, value_name = "FILE")]
    np: Option<PathBuf>,
    /// Serial: the line, such as /dev/ttyS0, pty:PATH or unix:PATH
    #[arg(long, value_name = "STREAM")]
    serial: Option<EndAddress>,
    /// TUN device; created if it does not exist, then brought up and given a route to our address
    #[arg(long, value_name = "NAME", default_value = "scps0")]
    tun: String,
    /// Leave MTU, state and routes of the TUN device to whoever made it
    #[arg(long)]
    tun_unconfigured: bool,
    /// UDP: outer address to receive on
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:7168")]
    udp_local: SocketAddrV4,
    /// UDP: outer address of the peer; without it, answers go where the peer's last packet came from that was not made up
    #[arg(long, value_name = "ADDR:PORT")]
    udp_remote: Option<SocketAddrV4>,
    /// Let the kernel join and cut batches of segments (fast; not for links that judge packets one by one)
    #[arg(long)]
    offload: bool,
    /// Protect segments by SCPS-SP: policy, associations and the names of key files, a JSON file (stack/README.md)
    #[arg(long, value_name = "FILE")]
    sp: Option<PathBuf>,
    /// Write every packet that leaves or comes, before the driver wraps it, to this pcap file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Add windows and round trip of each connection, whenever they change, to this file (stack/README.md)
    #[arg(long, value_name = "FILE")]
    states: Option<PathBuf>,
    /// Seed of initial sequence numbers and ports; real entropy without it
    #[arg(long)]
    seed: Option<u64>,
}

impl DriverArgs {
    /// Opens the device and joins it to an engine for `address`.
    pub fn open(&self, address: Ipv4Addr, resolved: &mut Resolved) -> Result<Stack, CliError> {
        if address.is_unspecified() {
            return Err(CliError::Usage(format!("local address: found {address}; expected an address of this stack.")));
        }
        let sp = self.sp.as_deref().map(|path| SpHost::read(path, address)).transpose()?;
        let np = match self.network {
            NetworkName::Ip => None,
            NetworkName::Np => Some(NpHost::read(self.np.as_deref(), address, resolved.route.protocol)?),
        };
        self.check(np.is_some(), resolved)?;
        let device = self.captured(self.device(address, np.as_ref(), resolved.route.mtu)?)?;
        resolved.route.overhead = resolved.route.overhead.saturating_add(device.overhead());
        let seed = seed_of(self.seed)?;
        let network = np.map_or(NetworkConfig::Ipv4, |np| NetworkConfig::Np(Box::new(np.config)));
        let endpoint = EndpointConfig::default().addresses(vec![address.into()]).network(network);
        let mut stack = Stack::new(device, endpoint, resolved.route, seed)?;
        if let Some(path) = &self.states {
            let is_shared = std::mem::replace(&mut resolved.config.trace, true);
            stack.keep_states(appended(path)?, is_shared).map_err(CliError::file(path))?;
        }
        let now = stack.now();
        resolved.resume.teach(stack.endpoint_mut(), now)?;
        if let Some(sp) = sp {
            sp.protect(&mut stack, resolved.route.protocol)?;
        }
        Ok(stack)
    }

    /// The device, with a capture around it if one is asked for.
    fn captured(&self, device: Box<dyn Device>) -> Result<Box<dyn Device>, CliError> {
        let kind = if self.is_np() { CaptureKind::Np } else { CaptureKind::Ip };
        Ok(Captures::begin(self.pcap.as_deref(), kind)?.around(device))
    }

    /// Options that make no sense together.
    fn check(&self, is_np: bool, resolved: &Resolved) -> Result<(), CliError> {
        let usage = |text: &str| Err(CliError::Usage(text.to_owned()));
        match (is_np, self.driver) {
            (false, DriverName::Serial) => usage("--driver: found serial with --network ip; expected --network np."),
            (false, _) if self.np.is_some() => usage("--np: found a file with --network ip; expected --network np."),
            (false, _) if resolved.config.precedence.is_some() => {
                let problem = "found a level with --network ip, which carries none; expected --network np";
                Err(resolved.complaint(Wrong("precedence", problem.to_owned())))
            }
            (true, _) if self.offload => usage("--offload: found it with --network np; expected --network ip."),
            _ if (self.driver == DriverName::Serial) != self.serial.is_some() => {
                usage("--serial: found one of --serial and --driver serial; expected both or neither.")
            }
            _ => Ok(()),
        }
    }

    fn device(&self, address: Ipv4Addr, np: Option<&NpHost>, mtu: u16) -> Result<Box<dyn Device>, CliError> {
        let tun = || {
            TunDevice::open(&TunConfig {
                name: self.tun.clone(),
                mtu,
                routes: vec![(address, 32)],
                configure: !self.tun_unconfigured,
                offload: self.offload,
            })
        };
        let udp = |addressing| {
            let (local, remote, offload) = (self.udp_local, self.udp_remote, self.offload);
            UdpDevice::open(&UdpConfig { local, remote, offload, addressing })
        };
        Ok(match (self.driver, np, &self.serial) {
            (DriverName::Tun, None, _) => Box::new(tun()?),
            (DriverName::Udp, None, _) => Box::new(udp(UdpAddressing::Learned)?),
            (DriverName::Tun, Some(np), _) => {
                let inner = IpEncapsulation::new(tun()?, address, np.ip_protocol);
                Box::new(NextHops::new(inner, np.config.tables.clone()))
            }
            (DriverName::Udp, Some(np), _) => {
                let inner = udp(UdpAddressing::Hops { port: np.udp_port, others: np.udp_hops.clone() })?;
                Box::new(NextHops::new(inner, np.config.tables.clone()))
            }
            (DriverName::Serial, _, line) => {
                let Some(line) = line else { return Err(CliError::Usage("--serial: expected a line.".to_owned())) };
                Box::new(SerialDevice::open(line, usize::from(mtu))?)
            }
        })
    }

    /// True if the layer beneath the transport is not the kernel's.
    fn is_np(&self) -> bool {
        self.network == NetworkName::Np
    }
}

/// The seed of a number, or real entropy.
pub fn seed_of(number: Option<u64>) -> Result<Seed, CliError> {
    let drawn = |source| IoError::System { what: "entropy", source };
    Ok(number.map_or_else(entropy_seed, |number| Ok(Seed::from_u64(number))).map_err(drawn)?)
}
