//! `scps router`: an NP router whose interfaces are TUN devices, UDP sockets and serial lines.

use crate::capture_file::Captures;
use crate::error::CliError;
use crate::fp::write_whole;
use crate::np_settings::{Carrier, Interface, RouterSettings};
use crate::operator::{check_fixed, Fixed, Level, Operator, OperatorArgs};
use crate::say::{self, Told};
use crate::world::seed_of;
use clap::Args;
use scps_io::{
    CaptureKind, Device, Forwarder, IpEncapsulation, Port, SerialDevice, TunConfig, TunDevice, UdpAddressing,
    UdpConfig, UdpDevice,
};
use scps_np::{Counter, Router, ScmpCounter, DATAGRAM_MAX};
use scps_wire::{Instant, Precedence};
use serde_json::{json, Map, Value};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `scps router`.
#[derive(Debug, Args)]
pub struct RouterArgs {
    /// Settings: address, tables, interfaces (JSON; stack/README.md has an example)
    config: PathBuf,
    /// Seed of what tells flooded datagrams apart; real entropy without it
    #[arg(long)]
    seed: Option<u64>,
    /// Write every datagram that comes or leaves to this pcap file: one that is forwarded is there twice
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write "ready" to this file once the router forwards
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    operator: OperatorArgs,
}

impl RouterArgs {
    /// Forwards until a signal ends it.
    pub fn run(&self) -> Result<ExitCode, CliError> {
        let settings = RouterSettings::read(&self.config)?;
        let seed = seed_of(self.seed)?;
        let mut operator = Operator::begin("router", &self.operator)?;
        scps_io::exact_timers()?;
        let captures = Captures::begin(self.pcap.as_deref(), CaptureKind::Np)?;
        let (mut ports, mut links) = (Vec::new(), Vec::new());
        for interface in &settings.interfaces {
            let device = open(interface, settings.address)?;
            let mut link = interface.link.clone();
            // What the carrier adds has to fit as well.
            link.mtu = link.mtu.saturating_sub(device.overhead()).min(DATAGRAM_MAX as u16);
            links.push(link);
            ports.push(Port { device: captures.around(device), rate: interface.rate, framing: interface.framing });
        }
        let router = Router::new(settings.config, settings.tables, links, seed, Instant::ZERO);
        let mut forwarder = Forwarder::new(router, ports)?;
        let fixed_at_start = fixed(settings.address, &settings.interfaces);
        let names: Vec<&str> = settings.interfaces.iter().map(|interface| interface.name.as_str()).collect();
        say::result(json!({"event": "ready", "interfaces": names}))?;
        if let Some(path) = &self.ready_file {
            write_whole(path, "ready\n")?;
        }
        for wakeup in operator.wakeups() {
            forwarder.watch(wakeup)?;
        }
        let mut told = Told::default();
        let cause = loop {
            forwarder.run_once()?;
            operator.answer(|| counts(&forwarder, &names));
            while let Some(notice) = forwarder.poll_notice() {
                let interface = names[notice.port];
                operator.tell(Level::Warn, format_args!("interface {interface} is down: {}.", notice.error));
                let reason = notice.error.to_string();
                let said = say::result(json!({"event": "interface_down", "interface": interface, "reason": reason}));
                if let Some(error) = told.news(said) {
                    operator.tell(Level::Warn, format_args!("{error}; lines are lost until it can be written."));
                }
            }
            operator.reload(&[Some(&self.config)], || {
                let new = RouterSettings::read(&self.config)?;
                check_fixed(&fixed_at_start, &fixed(new.address, &new.interfaces))?;
                forwarder.router_mut().reconfigure(new.config, new.tables);
                for (port, Interface { rate, framing, .. }) in new.interfaces.iter().enumerate() {
                    forwarder.set_rate(port, *rate, *framing);
                }
                Ok(self.config.display().to_string())
            });
            if let Some(cause) = operator.cause() {
                break cause;
            }
        };
        say::result(counts(&forwarder, &names))?;
        Ok(cause.exit_code())
    }
}

/// What the interfaces are made with, once.
fn fixed(address: Ipv4Addr, interfaces: &[Interface]) -> Fixed {
    let mut fixed = vec![("address".to_owned(), address.to_string())];
    fixed.extend(interfaces.iter().enumerate().map(|(index, Interface { name, carrier, link, .. })| {
        (format!("interface {name}"), format!("{index} {carrier:?} {link:?}"))
    }));
    fixed
}

fn open(interface: &Interface, own: Ipv4Addr) -> Result<Box<dyn Device>, CliError> {
    Ok(match interface.carrier.clone() {
        Carrier::Ip { device, unconfigured, protocol } => {
            let config = TunConfig {
                name: device,
                mtu: interface.link.mtu,
                routes: vec![(own, 32)],
                configure: !unconfigured,
                offload: false,
            };
            Box::new(IpEncapsulation::new(TunDevice::open(&config)?, own, protocol))
        }
        Carrier::Udp { local, port, others } => {
            let addressing = UdpAddressing::Hops { port, others };
            Box::new(UdpDevice::open(&UdpConfig { local, remote: None, offload: false, addressing })?)
        }
        Carrier::Serial { line, .. } => Box::new(SerialDevice::open(&line, usize::from(interface.link.mtu))?),
    })
}

fn counts(forwarder: &Forwarder, names: &[&str]) -> Value {
    let router = forwarder.router();
    let counters = router.counters();
    let interface = |(index, name): (usize, &&str)| {
        let stats = forwarder.device_stats(index);
        let level = |precedence: Precedence| {
            let counters = router.queue(index).counters(precedence);
            (counters.queued > 0).then(|| {
                json!({
                    "precedence": precedence.level(),
                    "queued": counters.queued,
                    "sent": counters.sent,
                    "discarded": counters.discarded,
                    "waiting": counters.waiting,
                    "waiting_max": counters.waiting_max,
                })
            })
        };
        json!({
            "name": name,
            "received": stats.received,
            "sent": stats.sent,
            "refused": stats.refused,
            "damaged": stats.damaged,
            "levels": Precedence::all().filter_map(level).collect::<Vec<_>>(),
        })
    };
    let scmp = |count: &dyn Fn(ScmpCounter) -> u32| -> Map<_, _> {
        ScmpCounter::ALL.iter().map(|counter| (counter.name().to_owned(), count(*counter).into())).collect()
    };
    let np = Counter::ALL.iter().map(|counter| (counter.name().to_owned(), counters.get(*counter).into()));
    json!({
        "event": "counters",
        "np": np.collect::<Map<_, _>>(),
        "scmp_in": scmp(&|counter| counters.scmp_in(counter)),
        "scmp_out": scmp(&|counter| counters.scmp_out(counter)),
        "interfaces": names.iter().enumerate().map(interface).collect::<Vec<_>>(),
    })
}
