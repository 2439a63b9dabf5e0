//! Prints what a thousand connections cost one endpoint at once: memory of idle and of busy ones, and the time of their
//! transfers. Run with `cargo run --release -p scps-sim --example connections`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock, and stops where it cannot be taken"
)]

use scps_sim::{LinkConfig, Network, ENDS};
use scps_tp::{Config, ConnectionId, RouteConfig};
use scps_wire::{Bitrate, Duration, Seed};

const CONNECTIONS: u16 = 1000;
/// Below the default of half-open connections that a host keeps.
const AT_ONCE: u16 = 200;
const OCTETS: usize = 100_000;

/// Pages that the process holds, in octets (proc(5), statm; 4 KiB pages).
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc is there");
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

struct Ends {
    near: Vec<ConnectionId>,
    network: Network,
}

impl Ends {
    fn connected() -> Self {
        let route = RouteConfig::default().rate(Some(Bitrate::from_bps(1_000_000_000)));
        let link = LinkConfig { delay: Duration::from_millis(250), ..LinkConfig::default() };
        let mut network = Network::new([route, route], [link.clone(), link], Seed::from_u64(1997));
        network[ENDS[1]].listen(5001, Config::modern());
        network[ENDS[1]].service = None;
        let remote = (network[ENDS[1]].address, 5001);
        let mut near = Vec::new();
        for number in 0..CONNECTIONS {
            let local = (network[ENDS[0]].address, 10_000 + number);
            let now = network.now;
            near.push(network[ENDS[0]].endpoint.connect(now, local, remote, Config::modern()).unwrap());
            if number % AT_ONCE == AT_ONCE - 1 {
                let until = network.now + Duration::from_secs(2);
                network.run(until, |_| false);
            }
        }
        Ends { near, network }
    }

    fn report(&self, what: &str, resident_before: usize) {
        let allocated: usize = self.near.iter().map(|id| self.network[ENDS[0]].endpoint.allocated(*id).unwrap()).sum();
        let per_end = (resident() - resident_before) / usize::from(CONNECTIONS) / 2;
        println!(
            "{what:5} {CONNECTIONS} connections: {} octets of buffers each at the sender, {per_end} octets of memory an end",
            allocated / usize::from(CONNECTIONS)
        );
    }
}

fn main() {
    let before = resident();
    let mut ends = Ends::connected();
    ends.report("idle,", before);
    let (data, start) = (vec![1; OCTETS], ends.network.now);
    for id in ends.near.clone() {
        ends.network[ENDS[0]].endpoint.send(start, id, &data).unwrap();
    }
    let wall = std::time::Instant::now();
    ends.network.run(start + Duration::from_millis(200), |_| false);
    ends.report("busy,", before);
    let now = ends.network.now;
    for id in &ends.near {
        ends.network[ENDS[0]].endpoint.close(now, *id);
    }
    let near = ends.near.clone();
    let flushed =
        |n: &Network| near.iter().filter(|id| n[ENDS[0]].endpoint.stats(**id).unwrap().flushed_at.is_some()).count();
    ends.network.run(start + Duration::from_secs(3600), |n| flushed(n) == near.len());
    println!(
        "{} of {CONNECTIONS} transfers of {OCTETS} octets done after {:.2} s of the network's time, {:.2} s of ours",
        flushed(&ends.network),
        ends.network.now.since(start).as_secs_f64(),
        wall.elapsed().as_secs_f64()
    );
}
