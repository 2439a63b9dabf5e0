//! Traces as qlog 0.3 in its streaming form, JSON-SEQ (draft-ietf-quic-qlog-main-schema-07 and -quic-events-07), which
//! tools such as qvis read.
//!
//! qlog's events are QUIC's. A segment is told as a packet of type `1RTT`, with a number of its own for each sending and
//! a stream frame with its place in the stream, counted from the initial sequence number (so data begin at 1, and a FIN
//! takes an octet). An acknowledgement names the packets that it is the first to cover. A resend is a `packet_lost`, then
//! a `packet_sent`; `cause` is this engine's reason ([`Cause::name`](crate::Cause::name)). Times are milliseconds of the
//! engine's clock, sizes octets. Each connection is a `group_id`.

use crate::names::ConnectionId;
use crate::state::State;
use crate::trace::{Cause, TraceEvent, TraceRecord};
use std::collections::BTreeMap;
use std::fmt::Write;

/// RFC 7464: what stands before each record.
const RECORD_SEPARATOR: char = '\u{1e}';

/// Writes the records of an endpoint's trace as qlog.
#[derive(Debug, Default)]
pub struct Qlog {
    connections: BTreeMap<ConnectionId, ConnectionLog>,
}

/// What the log of a connection has said.
#[derive(Debug, Default)]
struct ConnectionLog {
    sent: u64,
    received: u64,
    /// The number of the packet that last carried what begins here; nothing that is acknowledged.
    numbers: BTreeMap<u64, u64>,
    metrics: Option<Metrics>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Metrics {
    cwnd: u64,
    ssthresh: u64,
    srtt_us: Option<u64>,
    flight_size: u64,
}

impl Qlog {
    /// The file's first record. `role` is `client`, `server` or `network`; `origin_unix_ns` the engine's time zero.
    pub fn header(role: &str, origin_unix_ns: i64) -> String {
        let (ms, rest) = (origin_unix_ns / 1_000_000, origin_unix_ns % 1_000_000);
        format!(
            "{RECORD_SEPARATOR}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"scps-tp\",\
             \"trace\":{{\"vantage_point\":{{\"type\":\"{role}\"}},\
             \"common_fields\":{{\"protocol_type\":[\"SCPS-TP\"],\"time_format\":\"relative\",\"reference_time\":{ms}.{rest:06}}}}}}}\n"
        )
    }

    /// The records of an event: none, or several.
    pub fn records(&mut self, record: &TraceRecord) -> String {
        let mut log = Log { at_ns: record.at.as_nanos(), group: record.connection.as_u64(), text: String::new() };
        let told = self.connections.entry(record.connection).or_default();
        match record.event {
            TraceEvent::Sent => told.sent(&mut log, record, ""),
            TraceEvent::Probe => told.sent(&mut log, record, ",\"trigger\":\"pto_probe\""),
            TraceEvent::Resent(cause) => told.resent(&mut log, record, cause),
            TraceEvent::AckReceived => told.acknowledged(&mut log, record),
            TraceEvent::AckSent => told.sent_packet(&mut log, "", ""),
            TraceEvent::DataReceived => told.received_packet(&mut log, &stream(record.position, record.len)),
            TraceEvent::RtoExpired => {
                log.event("recovery:loss_timer_updated", "\"timer_type\":\"pto\",\"event_type\":\"expired\"");
            }
            TraceEvent::Recovery => log.event("recovery:congestion_state_updated", "\"new\":\"recovery\""),
            TraceEvent::State(state) => {
                log.event("connectivity:connection_state_updated", &format!("\"new\":\"{}\"", state_name(state)));
            }
        }
        told.metrics(&mut log, record);
        if record.event == TraceEvent::State(State::Closed) {
            self.connections.remove(&record.connection);
        }
        log.text
    }
}

impl ConnectionLog {
    fn sent_packet(&mut self, log: &mut Log, frame: &str, more: &str) {
        log.event("transport:packet_sent", &format!("\"header\":{}{more},\"frames\":[{frame}]", header(self.sent)));
        self.sent += 1;
    }

    fn received_packet(&mut self, log: &mut Log, frame: &str) {
        log.event("transport:packet_received", &format!("\"header\":{},\"frames\":[{frame}]", header(self.received)));
        self.received += 1;
    }

    fn sent(&mut self, log: &mut Log, record: &TraceRecord, more: &str) {
        self.numbers.insert(record.position, self.sent);
        let raw = format!(",\"raw\":{{\"payload_length\":{}}}{more}", record.len);
        self.sent_packet(log, &stream(record.position, record.len), &raw);
    }

    fn resent(&mut self, log: &mut Log, record: &TraceRecord, cause: Cause) {
        let (lost, sent) = match cause {
            Cause::Rto => ("pto_expired", ",\"trigger\":\"retransmit_timeout\""),
            Cause::Snack | Cause::Dupack => ("reordering_threshold", ",\"trigger\":\"retransmit_reordered\""),
            Cause::Embargo => ("time_threshold", ",\"trigger\":\"retransmit_reordered\""),
            Cause::TailProbe => ("", ",\"trigger\":\"pto_probe\""),
            Cause::Double | Cause::PathMtu => ("", ""),
        };
        let cause = format!(",\"cause\":\"{}\"", cause.name());
        if let (false, Some(number)) = (lost.is_empty(), self.numbers.get(&record.position)) {
            let data = format!("\"header\":{},\"trigger\":\"{lost}\"{cause}", header(*number));
            log.event("recovery:packet_lost", &data);
        }
        self.sent(log, record, &format!("{sent}{cause}"));
    }

    fn acknowledged(&mut self, log: &mut Log, record: &TraceRecord) {
        let waiting = self.numbers.split_off(&record.position);
        let mut covered: Vec<u64> = std::mem::replace(&mut self.numbers, waiting).into_values().collect();
        covered.sort_unstable();
        let ranges: Vec<String> = covered
            .chunk_by(|a, b| a + 1 == *b)
            .filter_map(|c| Some(format!("[{},{}]", c.first()?, c.last()?)))
            .collect();
        let frame = format!("{{\"frame_type\":\"ack\",\"acked_ranges\":[{}]}}", ranges.join(","));
        self.received_packet(log, &frame);
    }

    /// What of the windows and times has changed.
    fn metrics(&mut self, log: &mut Log, record: &TraceRecord) {
        let metrics = Metrics {
            cwnd: record.cwnd,
            ssthresh: record.ssthresh,
            srtt_us: record.srtt.map(|d| (d.as_nanos() / 1000) as u64),
            flight_size: record.flight_size,
        };
        if self.metrics.replace(metrics) == Some(metrics) {
            return;
        }
        let mut data = format!("\"bytes_in_flight\":{}", metrics.flight_size);
        for (name, window) in [("congestion_window", metrics.cwnd), ("ssthresh", metrics.ssthresh)] {
            if window < u64::MAX {
                let _ = write!(data, ",\"{name}\":{window}");
            }
        }
        if let Some(us) = metrics.srtt_us {
            let _ = write!(data, ",\"smoothed_rtt\":{}.{:03}", us / 1000, us % 1000);
        }
        log.event("recovery:metrics_updated", &data);
    }
}

/// The text of an instant.
struct Log {
    at_ns: u64,
    group: u64,
    text: String,
}

impl Log {
    fn event(&mut self, name: &str, data: &str) {
        let (ms, rest) = (self.at_ns / 1_000_000, self.at_ns % 1_000_000);
        let _ = writeln!(
            self.text,
            "{RECORD_SEPARATOR}{{\"time\":{ms}.{rest:06},\"name\":\"{name}\",\"data\":{{{data}}},\"group_id\":\"{}\"}}",
            self.group
        );
    }
}

fn header(number: u64) -> String {
    format!("{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}}")
}

fn stream(offset: u64, length: u32) -> String {
    format!("{{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":{offset},\"length\":{length}}}")
}

fn state_name(state: State) -> &'static str {
    match state {
        State::SynSent => "attempted",
        State::SynReceived => "handshake_started",
        State::Established | State::CloseWait => "handshake_completed",
        State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck => "closing",
        State::TimeWait => "draining",
        State::Closed => "closed",
    }
}
