//! The trace: one JSON line per event of the engine, or qlog.
//!
//! `{"t_s": 1.5, "connection": 0, "event": "resent", "cause": "snack", "position": 1401, "len": 1400, "cwnd": 8400,
//! "ssthresh": 4200, "srtt_s": 0.53, "rto_s": 1.03, "flight_size": 7000, "rate_credit": 624}`. Sizes are bytes; `position`
//! counts from the initial sequence number; windows are null without congestion control, `rate_credit` without a rate.

use crate::error::CliError;
use crate::gateway_settings::{port_range, Prefix};
use clap::Args;
use scps_gateway::Bypass;
use scps_io::{GatewayLoop, Stack};
use scps_tp::{Qlog, TraceEvent, TraceRecord};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct Line {
    t_s: f64,
    connection: u64,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    position: u64,
    len: u32,
    cwnd: Option<u64>,
    ssthresh: Option<u64>,
    srtt_s: Option<f64>,
    rto_s: f64,
    flight_size: u64,
    rate_credit: Option<u64>,
}

/// Where the traces of a program go.
#[derive(Clone, Debug, Args)]
pub struct TraceArgs {
    /// Write a trace of every event here
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the same as qlog 0.3 (JSON-SEQ) here, for qvis and other readers
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,
}

/// Where the trace of a gateway goes.
#[derive(Clone, Debug, Args)]
pub struct GatewayTraceArgs {
    /// Write what happens to connections over the link as qlog 0.3 (JSON-SEQ) here
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,
    /// Only of those with an end in a network or at ports, such as 10.2.0.0/24, 10.2.0.9:80 or :5060-5061; may be repeated
    #[arg(long, value_name = "WHICH", value_parser = which, requires = "qlog")]
    qlog_of: Vec<Bypass>,
    /// End the qlog when it has so many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 100_000_000, requires = "qlog")]
    qlog_max: u64,
    /// Add windows and round trip of each connection over the link, whenever they change, to this file (stack/README.md)
    #[arg(long, value_name = "FILE", conflicts_with = "qlog_of")]
    states: Option<PathBuf>,
    /// End the states when their file has so many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000_000, requires = "states")]
    states_max: u64,
}

fn which(text: &str) -> Result<Bypass, String> {
    let (net, ports) = text.split_once(':').unwrap_or((text, ""));
    let net = if net.is_empty() {
        Ok(Bypass::ANY_NET)
    } else {
        net.parse().map(|Prefix { address, length }| (address, length))
    };
    let ports = if ports.is_empty() { Some(Bypass::ANY_PORTS) } else { port_range(ports) };
    let expected = "expected a network, ports or both, such as 10.2.0.0/24, :5060-5061 or 10.2.0.9:80";
    Ok(Bypass { net: net?, ports: ports.ok_or_else(|| format!("found {text:?}; {expected}"))? })
}

/// The trace of a gateway being written, as long as there is room.
#[derive(Debug)]
pub struct GatewayTrace {
    file: Option<(TextFile, Qlog)>,
    left: u64,
    has_states: bool,
}

impl GatewayTrace {
    /// Creates the files, if any is named.
    pub fn begin(args: &GatewayTraceArgs, gateway: &mut GatewayLoop) -> Result<Self, CliError> {
        if let Some(path) = &args.states {
            let file = appended(path)?;
            gateway.keep_states(file, args.states_max, args.qlog.is_some()).map_err(CliError::file(path))?;
        }
        let mut file = args.qlog.as_deref().map(TextFile::create).transpose()?;
        if let Some(file) = &mut file {
            file.write(&Qlog::header("network", gateway.origin_unix_ns()))?;
            let every = Bypass { net: Bypass::ANY_NET, ports: Bypass::ANY_PORTS };
            let which = if args.qlog_of.is_empty() { vec![every] } else { args.qlog_of.clone() };
            gateway.gateway_mut().trace(which);
        }
        let file = file.map(|file| (file, Qlog::default()));
        Ok(GatewayTrace { file, left: args.qlog_max, has_states: args.states.is_some() })
    }

    /// Writes what was recorded since; tells what has no more room.
    pub fn drain(&mut self, gateway: &mut GatewayLoop) -> Result<Option<&'static str>, CliError> {
        if gateway.has_all_states() && std::mem::take(&mut self.has_states) {
            return Ok(Some("states"));
        }
        let Some((file, qlog)) = &mut self.file else { return Ok(None) };
        while let Some(record) = gateway.poll_trace() {
            let text = qlog.records(&record);
            let Some(left) = self.left.checked_sub(text.len() as u64) else {
                gateway.end_trace();
                self.finish()?;
                return Ok(Some("qlog"));
            };
            self.left = left;
            file.write(&text)?;
        }
        Ok(None)
    }

    /// Writes what is buffered, and nothing more.
    pub fn finish(&mut self) -> Result<(), CliError> {
        self.file.take().map_or(Ok(()), |(file, _)| file.finish())
    }
}

/// A file of states, which keeps the rows that are there.
pub fn appended(path: &Path) -> Result<File, CliError> {
    OpenOptions::new().append(true).create(true).open(path).map_err(CliError::file(path))
}

/// Traces being written; without files it takes nothing.
#[derive(Debug)]
pub struct TraceWriter {
    lines: Option<TextFile>,
    qlog: Option<(TextFile, Qlog)>,
}

impl TraceWriter {
    /// Creates the files, if any is named.
    pub fn create(args: &TraceArgs) -> Result<Self, CliError> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(TextFile::create).transpose();
        Ok(TraceWriter { lines: open(&args.trace)?, qlog: open(&args.qlog)?.map(|file| (file, Qlog::default())) })
    }

    /// True if records are wanted.
    pub fn is_on(&self) -> bool {
        self.lines.is_some() || self.qlog.is_some()
    }

    /// Begins the files: who writes (qlog's `client` or `server`), and when the engine's clock began.
    pub fn begin(&mut self, role: &str, stack: &Stack) -> Result<(), CliError> {
        match &mut self.qlog {
            Some((file, _)) => file.write(&Qlog::header(role, stack.origin_unix_ns())),
            None => Ok(()),
        }
    }

    /// Writes what the engine has recorded since.
    pub fn drain(&mut self, stack: &mut Stack) -> Result<(), CliError> {
        while let Some(record) = stack.poll_trace() {
            if let Some(file) = &mut self.lines {
                let line = crate::say::json(&line(&record))?;
                file.write(&format!("{line}\n"))?;
            }
            if let Some((file, qlog)) = &mut self.qlog {
                file.write(&qlog.records(&record))?;
            }
        }
        Ok(())
    }

    /// Writes what is buffered.
    pub fn finish(self) -> Result<(), CliError> {
        self.lines.into_iter().chain(self.qlog.map(|(file, _)| file)).try_for_each(TextFile::finish)
    }
}

#[derive(Debug)]
struct TextFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl TextFile {
    fn create(path: &Path) -> Result<Self, CliError> {
        let file = File::create(path).map_err(CliError::file(path))?;
        Ok(TextFile { path: path.to_owned(), file: BufWriter::new(file) })
    }

    fn write(&mut self, text: &str) -> Result<(), CliError> {
        self.file.write_all(text.as_bytes()).map_err(CliError::file(&self.path))
    }

    fn finish(mut self) -> Result<(), CliError> {
        self.file.flush().map_err(CliError::file(&self.path))
    }
}

fn line(r: &TraceRecord) -> Line {
    let window = |w: u64| (w < u64::MAX).then_some(w);
    let cause = if let TraceEvent::Resent(cause) = r.event { Some(cause.name()) } else { None };
    let state = if let TraceEvent::State(state) = r.event { Some(format!("{state:?}")) } else { None };
    Line {
        t_s: r.at.as_secs_f64(),
        connection: r.connection.as_u64(),
        event: r.event.name(),
        cause,
        state,
        position: r.position,
        len: r.len,
        cwnd: window(r.cwnd),
        ssthresh: window(r.ssthresh),
        srtt_s: r.srtt.map(|d| d.as_secs_f64()),
        rto_s: r.rto.as_secs_f64(),
        flight_size: r.flight_size,
        rate_credit: r.rate_credit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_picked_by_network_ports_or_both() {
        let words = |text| which(text).map(|which| which.to_string());
        assert_eq!(words("10.2.0.0/24").unwrap(), "10.2.0.0/24, any port");
        assert_eq!(words(":5060-5061").unwrap(), "any address, ports 5060 to 5061");
        assert_eq!(words("10.2.0.9:80").unwrap(), "10.2.0.9/32, port 80");
        for (text, found) in [("10.2.0.1/33", "prefix"), (":0", "found \":0\"; expected a network"), ("host", "prefix")]
        {
            assert!(words(text).unwrap_err().contains(found), "{text}: {:?}", words(text));
        }
    }
}
