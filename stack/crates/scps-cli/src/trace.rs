//! The trace: one JSON line per event of the engine.
//!
//! `{"t_s": 1.5, "connection": 0, "event": "resent", "cause": "snack", "position": 1401, "len": 1400, "cwnd": 8400,
//! "ssthresh": 4200, "srtt_s": 0.53, "rto_s": 1.03, "flight_size": 7000, "rate_credit": 624}`. Sizes are bytes; `position`
//! counts from the initial sequence number; windows are null without congestion control, `rate_credit` without a rate.

use crate::error::CliError;
use scps_io::Stack;
use scps_tp::{TraceEvent, TraceRecord};
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

/// A trace being written; without a file it takes nothing.
#[derive(Debug)]
pub struct TraceWriter {
    file: Option<(PathBuf, BufWriter<File>)>,
}

impl TraceWriter {
    /// Creates the file, if one is named.
    pub fn create(path: Option<&Path>) -> Result<Self, CliError> {
        let open = |p: &Path| {
            let file = File::create(p).map_err(CliError::file(p))?;
            Ok::<_, CliError>((p.to_owned(), BufWriter::new(file)))
        };
        Ok(TraceWriter { file: path.map(open).transpose()? })
    }

    /// True if records are wanted.
    pub fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Writes what the engine has recorded since.
    pub fn drain(&mut self, stack: &mut Stack) -> Result<(), CliError> {
        while let Some(record) = stack.poll_trace() {
            if let Some((path, file)) = &mut self.file {
                let line = serde_json::to_string(&line(&record)).map_err(|e| CliError::Usage(e.to_string()))?;
                writeln!(file, "{line}").map_err(CliError::file(path))?;
            }
        }
        Ok(())
    }

    /// Writes what is buffered.
    pub fn finish(mut self) -> Result<(), CliError> {
        match &mut self.file {
            Some((path, file)) => file.flush().map_err(CliError::file(path)),
            None => Ok(()),
        }
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
