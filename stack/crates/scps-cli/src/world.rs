//! Where a command meets the network: the driver and its options, the seed.

use crate::error::CliError;
use crate::settings::Resolved;
use clap::{Args, ValueEnum};
use scps_io::{entropy_seed, Device, IoError, Stack, TunConfig, TunDevice, UdpConfig, UdpDevice};
use scps_tp::EndpointConfig;
use scps_types::{Duration, Seed};
use std::net::{Ipv4Addr, SocketAddrV4};

/// What carries packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DriverName {
    /// IP through a TUN device.
    Tun,
    /// IP inside UDP.
    Udp,
}

/// Options of the driver.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Driver")]
pub struct DriverArgs {
    /// What carries packets
    #[arg(long, value_enum, default_value = "tun")]
    driver: DriverName,
    /// TUN device; created if it does not exist, then brought up and given a route to our address
    #[arg(long, value_name = "NAME", default_value = "scps0")]
    tun: String,
    /// Leave MTU, state and routes of the TUN device to whoever made it
    #[arg(long)]
    tun_unconfigured: bool,
    /// UDP: outer address to receive on
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:7168")]
    udp_local: SocketAddrV4,
    /// UDP: outer address of the peer; without it, answers go where the peer's first packet came from
    #[arg(long, value_name = "ADDR:PORT")]
    udp_remote: Option<SocketAddrV4>,
    /// Let the kernel join and cut rows of segments (fast; not for links that judge packets one by one)
    #[arg(long)]
    offload: bool,
    /// Seed of initial sequence numbers and ports; real entropy without it
    #[arg(long)]
    seed: Option<u64>,
    /// Give up after this many seconds; 0 for never
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    pub timeout_s: f64,
}

impl DriverArgs {
    /// Opens the device and joins it to an engine for `address`.
    pub fn open(&self, address: Ipv4Addr, resolved: &mut Resolved) -> Result<Stack, CliError> {
        if address.is_unspecified() {
            return Err(CliError::Usage(format!("local address: found {address}; expected an address of this stack.")));
        }
        let device = match self.driver {
            DriverName::Tun => Device::Tun(TunDevice::open(&TunConfig {
                name: self.tun.clone(),
                mtu: resolved.route.mtu,
                address,
                configure: !self.tun_unconfigured,
                offload: self.offload,
            })?),
            DriverName::Udp => Device::Udp(UdpDevice::open(&UdpConfig {
                local: self.udp_local,
                remote: self.udp_remote,
                offload: self.offload,
            })?),
        };
        resolved.route.overhead = resolved.route.overhead.saturating_add(device.overhead());
        let seed = match self.seed {
            Some(number) => Seed::from_u64(number),
            None => entropy_seed().map_err(|source| IoError::System { what: "entropy", source })?,
        };
        let endpoint = EndpointConfig { addresses: vec![address], ..EndpointConfig::default() };
        Ok(Stack::new(device, endpoint, resolved.route, seed)?)
    }

    /// When to give up, counted from the start.
    pub fn limit(&self) -> Option<Duration> {
        (self.timeout_s > 0.0).then(|| Duration::from_secs_f64(self.timeout_s.min(1e9)))
    }
}
