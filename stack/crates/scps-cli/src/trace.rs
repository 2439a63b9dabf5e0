//! The trace: one JSON line per event of the engine, or qlog.
//!
//! `{"t_s": 1.5, "connection": 0, "event": "resent", "cause": "snack", "position": 1401, "len": 1400, "cwnd": 8400,
//! "ssthresh": 4200, "srtt_s": 0.53, "rto_s": 1.03, "flight_size": 7000, "rate_credit": 624}`. Sizes are bytes; `position`
//! counts from the initial sequence number; windows are null without congestion control, `rate_credit` without a rate.

use crate::error::CliError;
use clap::Args;
use scps_io::Stack;
use scps_tp::{Qlog, TraceEvent, TraceRecord};
use serde::Serialize;
use std::fs::File;
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
