//! `scps gateway`: connections of a LAN's programs, split between their TCP and SCPS-TP over the space link.

mod counters;
mod describe;
mod lines;

use crate::capture_file::Captures;
use crate::commands::probe::probe;
use crate::error::CliError;
use crate::far_side::FarSide;
use crate::fp::write_whole;
use crate::gateway_settings::{GatewaySettings, Overrides, Prefix};
use crate::link::Link;
use crate::machine;
use crate::operator::{check_fixed, Fixed, Level, Operator, OperatorArgs};
use crate::say;
use crate::sp_settings;
use crate::stop::{warn_of_resets, StopSignals, RESETS_MAX};
use crate::trace::{GatewayTrace, GatewayTraceArgs};
use crate::world::seed_of;
use clap::Args;
use counters::Counters;
use describe::{carrier_words, describe, transport_words};
use lines::{side_name, totals};
use scps_gateway::{ConfigError, Gateway, PerSide, Side, SideConfig};
use scps_io::{CaptureKind, Clock, Device, GatewayLoop};
use serde_json::json;
use signal_hook::consts::SIGUSR1;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `scps gateway`.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// Settings (JSON; docs/gateway-reference.md has every key); without them --peer, --rate, --rtt-ms and --far say what is needed
    config: Option<PathBuf>,
    /// Check the settings, print what the gateway would do and which commands make the kernel send it packets, and end
    #[arg(long)]
    check: bool,
    /// Ask the other gateway whether it answers, how soon, and how long packets may be, and end; no gateway may run here meanwhile
    #[arg(long, conflicts_with = "check")]
    probe: bool,
    /// Rate of the space link, such as "2 Mbit/s"; "none" for one that others share
    #[arg(long)]
    rate: Option<String>,
    /// Round-trip time of the space link; buffers follow from it and the rate
    #[arg(long, value_name = "MS")]
    rtt_ms: Option<u64>,
    /// The other gateway, for packets in UDP (port 7168 unless it is given)
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = peer)]
    peer: Option<SocketAddrV4>,
    /// A network behind the other gateway, such as 10.2.0.0/24: routed to the gateway; may be repeated
    #[arg(long, value_name = "PREFIX")]
    far: Vec<Prefix>,
    /// Settings of SCPS-SP (JSON): everything between the gateways is encrypted and authenticated, and nothing else is heard
    #[arg(long, value_name = "FILE")]
    sp: Option<PathBuf>,
    /// Append a line of JSON for each connection that ends, and for each of --counters-every seconds, SIGUSR1 and the end one for
    /// each connection and one for all
    #[arg(long, value_name = "FILE")]
    counters: Option<PathBuf>,
    /// Write counters so often; 0 for at SIGUSR1 and at the end only
    #[arg(long, value_name = "S", default_value_t = 0.0, requires = "counters")]
    counters_every: f64,
    /// Seed of initial sequence numbers and ports; real entropy without it
    #[arg(long)]
    seed: Option<u64>,
    /// Write every packet of both sides, before SCPS-SP seals it and UDP wraps it, to this pcap file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write "ready" to this file once the gateway takes connections
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    trace: GatewayTraceArgs,
    #[command(flatten)]
    operator: OperatorArgs,
}

fn peer(text: &str) -> Result<SocketAddrV4, String> {
    let with_port = || text.parse::<Ipv4Addr>().map(|address| SocketAddrV4::new(address, 7168));
    let wrong = |_| format!("found {text:?}; expected an address such as 203.0.113.2, or with a port 203.0.113.2:7168");
    text.parse().or_else(|_| with_port()).map_err(wrong)
}

impl GatewayArgs {
    /// Joins connections until a signal ends it.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let settings = self.settings()?;
        if self.check {
            return describe(&settings).map(|()| ExitCode::SUCCESS);
        }
        if self.probe {
            return probe(&settings);
        }
        let seed = seed_of(self.seed)?;
        let mut operator = Operator::begin("gateway", &self.operator)?;
        let mut wish = StopSignals::other(SIGUSR1)?;
        scps_io::exact_timers()?;
        let captures = Captures::begin(self.pcap.as_deref(), CaptureKind::Ip)?;
        let clock = Clock::new();
        let open = |side: Side| -> Result<Box<dyn Device>, CliError> {
            let device = settings.carriers.of(side).open()?;
            let device = match settings.sp.of(side) {
                Some(sp) => sp.protect(device, clock)?,
                None => device,
            };
            Ok(captures.around(device))
        };
        let devices = PerSide { lan: open(Side::Lan)?, wan: open(Side::Wan)? };
        let mut gateway = Gateway::new(settings.config.clone(), seed, clock.now()).map_err(|error| wrong(&error))?;
        let mut resume = settings.resume.clone();
        for side in Side::BOTH {
            resume.of_mut(side).teach(gateway.endpoint_mut(side), clock.now())?;
        }
        let mut gateway = GatewayLoop::new(gateway, devices, settings.is_metered, clock)?;
        let mut counters = Counters::open(self.counters.as_deref(), self.counters_every, gateway.now())?;
        let mut trace = GatewayTrace::begin(&self.trace, &mut gateway)?;
        let round_trip = settings.config.wan.route.rtt;
        let mut far = FarSide::new(carrier_words(&settings.carriers.wan), round_trip, gateway.now());
        let mut link = Link::new(&gateway);
        let name = |side| carrier_words(settings.carriers.of(side));
        for found in machine::findings(&settings) {
            operator.tell(Level::Warn, format_args!("{found}."));
        }
        operator.tell(Level::Info, format_args!("ready; lan: {}; wan: {}.", name(Side::Lan), name(Side::Wan)));
        say::result(json!({"event": "ready", "lan": name(Side::Lan), "wan": name(Side::Wan)}))?;
        if let Some(path) = &self.ready_file {
            write_whole(path, "ready\n")?;
        }
        for wakeup in operator.wakeups().chain([wish.wakeup()]) {
            gateway.watch(wakeup)?;
        }
        let cause = loop {
            gateway.run_once(counters.next_at)?;
            operator.answer(|| {
                let mut shown = totals(&mut gateway);
                shown["link"] = link.gauges(&gateway, far.is_up());
                shown
            });
            far.follow(&gateway, &operator);
            link.follow(&gateway, &operator);
            tell_notices(&mut gateway);
            if let Some(full) = trace.drain(&mut gateway)? {
                let words = format_args!("{full}: the file is as long as --{full}-max allows, and has ended.");
                operator.tell(Level::Warn, words);
            }
            operator.reload(&[self.config.as_deref()], || {
                counters.reopen()?;
                let new = self.settings()?;
                check_fixed(&fixed(&settings), &fixed(&new))?;
                let words =
                    format!("lan: {}; wan: {}", transport_words(&new.config.lan), transport_words(&new.config.wan));
                gateway.reconfigure(new.config, new.is_metered).map_err(|error| wrong(&error))?;
                Ok(words)
            });
            counters.follow(&mut gateway, &mut wish, &operator);
            if let Some(cause) = operator.cause() {
                break cause;
            }
        };
        if !gateway.stop(RESETS_MAX)? {
            warn_of_resets();
        }
        trace.drain(&mut gateway)?;
        trace.finish()?;
        for side in Side::BOTH {
            resume.of(side).save(gateway.gateway().endpoint(side), gateway.now());
        }
        counters.note_ends(&mut gateway, &operator);
        counters.note_all(&mut gateway, &operator);
        say::result(totals(&mut gateway))?;
        Ok(cause.exit_code())
    }

    /// What file and command line say now.
    fn settings(&self) -> Result<GatewaySettings, CliError> {
        let overrides = Overrides {
            rate: self.rate.clone(),
            rtt_ms: self.rtt_ms,
            peer: self.peer,
            far: self.far.clone(),
            sp: self.sp.clone(),
        };
        GatewaySettings::read(self.config.as_deref(), &overrides)
    }
}

fn wrong(error: &ConfigError) -> CliError {
    CliError::Usage(format!("gateway: {error}."))
}

/// What devices and listeners are made with, once.
fn fixed(settings: &GatewaySettings) -> Fixed {
    let GatewaySettings { config, carriers, sp, host, .. } = settings;
    let mut fixed = vec![
        ("set_up".to_owned(), format!("{:?}", config.set_up)),
        ("unknown".to_owned(), format!("{:?}", config.passes_unknown)),
        ("forwards".to_owned(), format!("{:?}", config.forwards)),
        ("bypass".to_owned(), format!("{:?}", config.bypasses)),
        ("host".to_owned(), format!("{host:?}")),
    ];
    for side in Side::BOTH {
        let SideConfig { route, connection, takes_any, .. } = config.side(side);
        for (key, text) in [
            ("carrier", format!("{:?}", carriers.of(side))),
            ("sp", format!("{:?}", sp.of(side))),
            ("accepts", takes_any.to_string()),
            ("kind", connection.scps.to_string()),
            ("mtu", format!("{} {} {}", route.mtu, route.overhead, route.protocol)),
        ] {
            fixed.push((format!("{}: {key}", side_name(side)), text));
        }
    }
    fixed
}

fn tell_notices(gateway: &mut GatewayLoop) {
    let now = gateway.now();
    for side in Side::BOTH {
        while let Some(notice) = gateway.protection(side).and_then(|sp| sp.poll_notice(now)) {
            sp_settings::tell(&notice);
        }
    }
}
