//! The result of a transfer as one JSON object. Field names end in their unit; `null` means "not known".

use crate::error::CliError;
use crate::say;
use crate::settings::Resolved;
use crate::sp_settings::sp_counts;
use scps_io::Stack;
use scps_tp::{Cause, CloseReason, ConnectionId, Stats};
use scps_wire::{Duration, Instant};
use serde_json::{json, Map, Value};
use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;
use std::path::Path;

/// A result, one object. `format` changes when a field changes its meaning.
#[derive(Debug)]
pub struct Report(Value);

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
        let at = |at: Option<Instant>| at.map(Instant::as_secs_f64);
        let addresses = id.and_then(|id| endpoint.addresses(id));
        let local = addresses.map(|(local, _)| local).or(listening).map_or(String::new(), |at| at.to_string());
        let remote = addresses.map_or(String::new(), |(_, remote)| remote.to_string());
        let transfer = transfer_time(facts.role, &stats);
        let goodput = transfer.filter(|t| *t > 0.0).map(|t| facts.bytes as f64 * 8.0 / t);
        let device = stack.device().stats();
        let signals = endpoint.signals();
        let reason = facts.note.or_else(|| if facts.is_complete { None } else { facts.reason.map(|r| r.to_string()) });
        let by_cause: Map<_, _> =
            Cause::ALL.iter().map(|c| (c.name().to_owned(), stats.resends_by(*c).into())).collect();
        let mut line = json!({
            "format": 1,
            "role": facts.role,
            "status": if facts.is_complete { "complete" } else { "failed" },
            "reason": reason,
            "local": local,
            "remote": remote,
            "preset": resolved.preset,
            "congestion": resolved.congestion(),
            "rate_bps": resolved.route.rate.map(scps_wire::Bitrate::as_bps),
            "bytes": facts.bytes,
            "sha256": facts.sha256,
            "wrong_bytes": facts.wrong_bytes,
            "origin_ns": stack.origin_unix_ns(),
            "opened_s": at(stats.opened_at),
            "established_s": at(stats.established_at),
            "first_data_s": at(stats.first_data_at),
            "last_data_s": at(stats.last_data_at),
            "last_data_ack_s": at(stats.last_data_ack_at),
            "flushed_s": at(stats.flushed_at),
            "connect_s": connection_time(facts.role, &stats),
            "transfer_s": transfer,
            "goodput_bps": goodput,
            "segments_sent": stats.segments_sent,
            "segments_received": stats.segments_received,
            "data_segments_sent": stats.data_segments_sent,
            "pure_acks_sent": stats.pure_acks_sent,
            "retransmissions": stats.resends_total(),
            "retransmissions_by_cause": by_cause,
            "superfluous_resends": stats.superfluous_resends,
            "duplicate_segments": stats.duplicate_segments,
            "out_of_order_segments": stats.out_of_order_segments,
            "rtos": stats.rtos,
            "probes_sent": stats.probes_sent,
            "snacks_sent": stats.snacks_sent,
            "snacks_received": stats.snacks_received,
            "compressed_sent": stats.compressed_sent,
            "srtt_s": snapshot.and_then(|s| s.srtt).map(seconds),
            "rtt_min_s": snapshot.and_then(|s| s.rtt_min).map(seconds),
            "rto_s": snapshot.map(|s| seconds(s.rto)),
            "cwnd_bytes": snapshot.map(|s| s.cwnd).filter(|c| *c < u64::MAX),
            "signals": {"congestion": signals.congestion, "corruption": signals.corruption, "outage": signals.outage},
            "holes": facts.holes,
            "negotiated": {
                "scps": agreed.scps,
                "snack": agreed.snack,
                "snack_long": agreed.snack_long,
                "sack": agreed.sack,
                "bets": agreed.bets,
                "compression": agreed.compression.is_some(),
                "timestamps": agreed.timestamps,
                "window_scale_peer": agreed.window_scale.map(|w| w.0),
                "window_scale_own": agreed.window_scale.map(|w| w.1),
                "segment_bytes": id.and_then(|id| endpoint.segment_size(id)).unwrap_or(0),
            },
            "cpu_s": seconds(scps_io::cpu_time()),
            "device_send_calls": device.send_calls,
            "device_receive_calls": device.receive_calls,
            "device_refused": device.refused,
        });
        if let Some(phase) = snapshot.and_then(|s| s.resume) {
            line["careful_resume"] = phase.name().into();
        }
        if let Some(counts) = sp_counts(stack) {
            line["sp"] = counts;
        }
        Report(line)
    }

    /// Writes one line to the file; to standard output without one, or when the file is called "-".
    pub fn write(&self, path: Option<&Path>, append: bool) -> Result<(), CliError> {
        let line = &self.0;
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
        let of = |key: &str| self.0[key].as_str();
        let reason = of("reason").map_or(String::new(), |reason| format!(" ({reason})"));
        let pace = match (self.0["transfer_s"].as_f64(), self.0["goodput_bps"].as_f64()) {
            (Some(seconds), Some(bps)) => format!(" in {seconds:.3} s, {}", Mbps(bps)),
            _ => String::new(),
        };
        let rate = resolved.route.rate.map_or("no rate control".to_owned(), |rate| {
            format!("rate control at {}, which --rate sets", Mbps(rate.as_bps() as f64))
        });
        let (role, status) = (of("role").unwrap_or_default(), of("status").unwrap_or_default());
        let (bytes, resent) = (&self.0["bytes"], &self.0["retransmissions"]);
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

#[cfg(test)]
mod tests {
    use super::Mbps;

    #[test]
    fn rates_are_said_as_people_say_them() {
        let said = [9600.0, 99_999.0, 250_000.0, 2e6, 1_949_900.0, 1e9].map(|bps| Mbps(bps).to_string());
        assert_eq!(said, ["9600 bit/s", "99999 bit/s", "0.25 Mbit/s", "2 Mbit/s", "1.95 Mbit/s", "1000 Mbit/s"]);
    }
}
