//! The result of a transfer as one JSON object. Field names end in their unit; `null` means "not known".

use crate::error::CliError;
use crate::say;
use crate::settings::Resolved;
use crate::sp_settings::SpCounts;
use scps_io::Stack;
use scps_tp::{Agreed, Cause, CloseReason, ConnectionId, Stats};
use scps_types::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;
use std::path::Path;

/// The options in force.
#[derive(Debug, Serialize)]
pub struct Negotiated {
    scps: bool,
    snack: bool,
    snack_long: bool,
    sack: bool,
    bets: bool,
    compression: bool,
    timestamps: bool,
    window_scale_peer: Option<u8>,
    window_scale_own: Option<u8>,
    segment_bytes: u64,
}

/// A result. `format` changes when a field changes its meaning.
#[derive(Debug, Serialize)]
pub struct Report {
    format: u32,
    role: &'static str,
    status: &'static str,
    reason: Option<String>,
    local: String,
    remote: String,
    preset: crate::settings::Preset,
    congestion: &'static str,
    rate_bps: Option<u64>,
    bytes: u64,
    sha256: Option<String>,
    wrong_bytes: Option<u64>,
    origin_ns: i64,
    opened_s: Option<f64>,
    established_s: Option<f64>,
    first_data_s: Option<f64>,
    last_data_s: Option<f64>,
    last_data_ack_s: Option<f64>,
    flushed_s: Option<f64>,
    connect_s: Option<f64>,
    transfer_s: Option<f64>,
    goodput_bps: Option<f64>,
    segments_sent: u64,
    segments_received: u64,
    data_segments_sent: u64,
    pure_acks_sent: u64,
    retransmissions: u64,
    retransmissions_by_cause: BTreeMap<&'static str, u64>,
    superfluous_resends: u64,
    duplicate_segments: u64,
    out_of_order_segments: u64,
    rtos: u64,
    probes_sent: u64,
    snacks_sent: u64,
    snacks_received: u64,
    compressed_sent: u64,
    srtt_s: Option<f64>,
    rtt_min_s: Option<f64>,
    rto_s: Option<f64>,
    cwnd_bytes: Option<u64>,
    signals: SignalCounts,
    holes: Vec<(u64, u64)>,
    negotiated: Negotiated,
    cpu_s: f64,
    device_send_calls: u64,
    device_receive_calls: u64,
    device_refused: u64,
    /// Only with --sp.
    #[serde(skip_serializing_if = "Option::is_none")]
    sp: Option<SpCounts>,
}

/// What routers told, and the transport heeded (--network np).
#[derive(Debug, Serialize)]
struct SignalCounts {
    congestion: u64,
    corruption: u64,
    outage: u64,
}

/// What the command itself knows of a transfer.
#[derive(Debug)]
pub struct Facts {
    /// "send" or "recv".
    pub role: &'static str,
    /// All data and the end of the stream got through.
    pub is_complete: bool,
    /// Why the connection ended, if it did.
    pub reason: Option<CloseReason>,
    /// What else ended the transfer.
    pub note: Option<String>,
    /// Octets of data sent or received.
    pub bytes: u64,
    /// Hash of them.
    pub sha256: Option<String>,
    /// Octets that differ from what was expected, where something was.
    pub wrong_bytes: Option<u64>,
    /// Holes: offset and length in the stream.
    pub holes: Vec<(u64, u64)>,
}

impl Report {
    /// Puts the facts and the engine's counters together. Without a connection nobody came to `listening`.
    pub fn new(
        facts: Facts,
        stack: &Stack,
        id: Option<ConnectionId>,
        listening: Option<SocketAddr>,
        resolved: &Resolved,
    ) -> Self {
        let endpoint = stack.endpoint();
        let stats = id.and_then(|id| endpoint.stats(id)).unwrap_or_default();
        let agreed = id.and_then(|id| endpoint.agreed(id)).unwrap_or_default();
        let snapshot = id.and_then(|id| endpoint.snapshot(id));
        let seconds = |d: Duration| d.as_secs_f64();
        let addresses = id.and_then(|id| endpoint.addresses(id));
        let local = addresses.map(|(local, _)| local).or(listening).map_or(String::new(), |at| at.to_string());
        let remote = addresses.map_or(String::new(), |(_, remote)| remote.to_string());
        let transfer = transfer_time(facts.role, &stats);
        let goodput = transfer.filter(|t| *t > 0.0).map(|t| facts.bytes as f64 * 8.0 / t);
        let device = stack.device().stats();
        let signals = endpoint.signals();
        let reason = facts.note.or_else(|| if facts.is_complete { None } else { facts.reason.map(|r| r.to_string()) });
        Report {
            format: 1,
            role: facts.role,
            status: if facts.is_complete { "complete" } else { "failed" },
            reason,
            local,
            remote,
            preset: resolved.preset,
            congestion: resolved.congestion(),
            rate_bps: resolved.route.rate.map(scps_types::Bitrate::as_bps),
            bytes: facts.bytes,
            sha256: facts.sha256,
            wrong_bytes: facts.wrong_bytes,
            origin_ns: stack.origin_unix_ns(),
            opened_s: stats.opened_at.map(Instant::as_secs_f64),
            established_s: stats.established_at.map(Instant::as_secs_f64),
            first_data_s: stats.first_data_at.map(Instant::as_secs_f64),
            last_data_s: stats.last_data_at.map(Instant::as_secs_f64),
            last_data_ack_s: stats.last_data_ack_at.map(Instant::as_secs_f64),
            flushed_s: stats.flushed_at.map(Instant::as_secs_f64),
            connect_s: connection_time(facts.role, &stats),
            transfer_s: transfer,
            goodput_bps: goodput,
            segments_sent: stats.segments_sent,
            segments_received: stats.segments_received,
            data_segments_sent: stats.data_segments_sent,
            pure_acks_sent: stats.pure_acks_sent,
            retransmissions: stats.resends_total(),
            retransmissions_by_cause: Cause::ALL.iter().map(|c| (c.name(), stats.resends_by(*c))).collect(),
            superfluous_resends: stats.superfluous_resends,
            duplicate_segments: stats.duplicate_segments,
            out_of_order_segments: stats.out_of_order_segments,
            rtos: stats.rtos,
            probes_sent: stats.probes_sent,
            snacks_sent: stats.snacks_sent,
            snacks_received: stats.snacks_received,
            compressed_sent: stats.compressed_sent,
            srtt_s: snapshot.and_then(|s| s.srtt).map(seconds),
            rtt_min_s: snapshot.and_then(|s| s.rtt_min).map(seconds),
            rto_s: snapshot.map(|s| seconds(s.rto)),
            cwnd_bytes: snapshot.map(|s| s.cwnd).filter(|c| *c < u64::MAX),
            signals: SignalCounts {
                congestion: signals.congestion,
                corruption: signals.corruption,
                outage: signals.outage,
            },
            holes: facts.holes,
            negotiated: negotiated(&agreed, id.and_then(|id| endpoint.segment_size(id)).unwrap_or(0)),
            cpu_s: seconds(scps_io::cpu_time()),
            device_send_calls: device.send_calls,
            device_receive_calls: device.receive_calls,
            device_refused: device.refused,
            sp: SpCounts::of(stack),
        }
    }

    /// Writes one line to the file; to standard output without one, or when the file is called "-".
    pub fn write(&self, path: Option<&Path>, append: bool) -> Result<(), CliError> {
        let line = say::json(self)?;
        match path.filter(|path| !is_standard_output(path)) {
            None => say::result(line),
            Some(path) => {
                let mut options = std::fs::OpenOptions::new();
                options.create(true).write(true).append(append).truncate(!append);
                let mut file = options.open(path).map_err(CliError::file(path))?;
                writeln!(file, "{line}").map_err(CliError::file(path))
            }
        }
    }
}

impl Report {
    /// Tells a person at a terminal in one sentence what came out, and which rate was in force.
    pub fn tell(&self, resolved: &Resolved, quiet: bool) {
        if !quiet && std::io::stderr().is_terminal() {
            say::remark(self.sentence(resolved));
        }
    }

    fn sentence(&self, resolved: &Resolved) -> String {
        let reason = self.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        let pace = match (self.transfer_s, self.goodput_bps) {
            (Some(seconds), Some(bps)) => format!(" in {seconds:.3} s, {}", Mbps(bps)),
            _ => String::new(),
        };
        let rate = resolved.route.rate.map_or("no rate control".to_owned(), |rate| {
            format!("rate control at {}, which --rate sets", Mbps(rate.as_bps() as f64))
        });
        let (role, status, bytes, resent) = (self.role, self.status, self.bytes, self.retransmissions);
        format!("scps: {role}: {status}{reason}: {bytes} bytes{pace}, {resent} segments sent again; {rate}.")
    }
}

/// A rate as people say it.
pub struct Mbps(pub f64);

impl std::fmt::Display for Mbps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 < 1e5 {
            write!(f, "{:.0} bit/s", self.0)
        } else {
            let digits = format!("{:.3}", self.0 / 1e6);
            write!(f, "{} Mbit/s", digits.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// Whether a result's file is standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

fn between(from: Option<Instant>, to: Option<Instant>) -> Option<f64> {
    Some(to?.since(from?).as_secs_f64())
}

/// Sender: open to FIN acknowledged. Receiver: first data to the acknowledgement of the last (apparatus M-01).
fn transfer_time(role: &str, stats: &Stats) -> Option<f64> {
    if role == "send" {
        between(stats.established_at, stats.flushed_at)
    } else {
        between(stats.first_data_at, stats.last_data_ack_at)
    }
}

/// As the user feels it: connection request to our FIN acknowledged; at the receiver, SYN to the last acknowledgement.
fn connection_time(role: &str, stats: &Stats) -> Option<f64> {
    if role == "send" {
        between(stats.opened_at, stats.flushed_at)
    } else {
        between(stats.opened_at, stats.last_data_ack_at)
    }
}

fn negotiated(agreed: &Agreed, segment_bytes: u64) -> Negotiated {
    Negotiated {
        scps: agreed.scps,
        snack: agreed.snack,
        snack_long: agreed.snack_long,
        sack: agreed.sack,
        bets: agreed.bets,
        compression: agreed.compression.is_some(),
        timestamps: agreed.timestamps,
        window_scale_peer: agreed.window_scale.map(|w| w.0),
        window_scale_own: agreed.window_scale.map(|w| w.1),
        segment_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::Mbps;

    #[test]
    fn rates_are_said_as_people_say_them() {
        let said = [9600.0, 99_999.0, 250_000.0, 2e6, 1_949_900.0, 1e9].map(|bps| Mbps(bps).to_string());
        assert_eq!(said, ["9600 bit/s", "99999 bit/s", "0.25 Mbit/s", "2 Mbit/s", "1.95 Mbit/s", "1000 Mbit/s"]);
    }
}
