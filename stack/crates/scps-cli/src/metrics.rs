//! Counters for a monitoring system: text in the exposition format of Prometheus (version 0.0.4), over HTTP/1.0, at a
//! local address or a socket file. Off by default.
//!
//! The loop that owns the counters makes the text when somebody connects; a thread answers, so that a slow reader keeps
//! no packet waiting.

use crate::error::CliError;
use scps_io::{listen_unix, Clock};
use scps_wire::{Duration, Instant};
use serde::Serialize;
use serde_json::Value;
use socket2::Socket;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Readers at a time; further ones are closed unanswered.
const READERS_MAX: usize = 8;
/// Octets of a request's header.
const REQUEST_MAX: usize = 8192;
/// How long a reader may take to ask and to take the answer, together: its place is free then, however it dawdles.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where readers ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// An address of this machine.
    Address(SocketAddr),
    /// A socket file.
    File(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Place::File(path.into()));
        }
        text.parse().map(Place::Address).map_err(|_| {
            format!(
                "found {text:?}; expected an address and port such as 127.0.0.1:9717, or unix:PATH for a socket file"
            )
        })
    }
}

/// The endpoint.
pub struct Metrics {
    program: &'static str,
    listener: Socket,
    /// The socket file, which goes with it.
    file: Option<PathBuf>,
    readers: Arc<AtomicUsize>,
}

impl Metrics {
    /// Opens it, if it is wanted. `program` begins the names.
    pub fn open(program: &'static str, place: Option<&Place>) -> Result<Option<Metrics>, CliError> {
        let Some(place) = place else { return Ok(None) };
        let (listener, file, name) = match place {
            Place::Address(address) => {
                (TcpListener::bind(address).map(Socket::from), None, format!("--metrics {address}"))
            }
            Place::File(path) => (listen_unix(path).map(Socket::from), Some(path.clone()), path.display().to_string()),
        };
        let listener = listener
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|source| CliError::File { path: name, source })?;
        Ok(Some(Metrics { program, listener, file, readers: Arc::default() }))
    }

    /// Readable while a reader waits.
    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers whoever waits. A reader that cannot be answered does no harm.
    pub fn answer<C: Serialize>(&self, counters: impl FnOnce() -> C) {
        let mut counters = Some(counters);
        let mut text = String::new();
        while let Ok((socket, _)) = self.listener.accept() {
            if let Some(counters) = counters.take() {
                text = exposition(self.program, &serde_json::to_value(counters()).unwrap_or_default());
            }
            if self.readers.fetch_add(1, Ordering::Relaxed) >= READERS_MAX {
                self.readers.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (body, readers) = (text.clone(), Arc::clone(&self.readers));
            let serve = move || {
                let clock = Clock::new();
                let _ = reply(&mut Reader { socket, until: clock.now() + PATIENCE, clock }, &body);
                readers.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new().name("metrics".into()).spawn(serve).is_err() {
                self.readers.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Some(path) = &self.file {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A reader whose time runs out.
struct Reader {
    socket: Socket,
    clock: Clock,
    until: Instant,
}

impl Reader {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.since(self.clock.now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }
}

impl Read for Reader {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(octets)
    }
}

impl Write for Reader {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a request, and answers it.
fn reply(stream: &mut (impl Read + Write), body: &str) -> io::Result<()> {
    let (mut request, mut octets) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = stream.read(&mut octets)?;
        request.extend_from_slice(&octets[..n]);
        if n == 0 || request.len() > REQUEST_MAX {
            return Ok(());
        }
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", body)
    } else {
        ("404 Not Found", "Found another request; expected GET /metrics.\n")
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.0 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Keys of numbers that also fall; all others count.
const GAUGES: [&str; 15] = [
    "open",
    "buffered",
    "allocated_bytes",
    "closes",
    "t_s",
    "up",
    "round_trip_s",
    "resent_share",
    "rate_bps",
    "waiting",
    "waiting_max",
    "precedence",
    "sessions",
    "commands",
    "streams",
];

/// What the gauges of a link say.
const HELP: [(&str, &str); 4] = [
    ("link_up", "1 if the far side was heard, and leaves no question unanswered"),
    ("link_round_trip_s", "longest smoothed round trip of the connections over the link, seconds; absent without one"),
    ("link_resent_share", "segments sent again for each packet sent, since a look of at least ten seconds ago"),
    ("link_rate_bps", "bits a second that were sent, lower layers included, since the same look"),
];

/// Every number of the counters, named by the keys that lead to it; an element of a list has its `name`, else its place,
/// as a label. Lines of one name stand together, below its type.
fn exposition(program: &str, counters: &Value) -> String {
    let (mut samples, start) = (Samples::default(), format!("scps_{program}"));
    samples.tell(&start, &[], counters);
    let mut text = String::new();
    for (name, lines) in samples.0 {
        if let Some((_, help)) = HELP.iter().find(|(key, _)| name.strip_prefix(&start) == Some(&format!("_{key}"))) {
            let _ = writeln!(text, "# HELP {name} {help}");
        }
        let is_gauge = GAUGES.iter().any(|key| name.strip_suffix(key).is_some_and(|rest| rest.ends_with('_')));
        let _ = writeln!(text, "# TYPE {name} {}", if is_gauge { "gauge" } else { "counter" });
        text.push_str(&lines);
    }
    text
}

/// Lines by name.
#[derive(Default)]
struct Samples(BTreeMap<String, String>);

impl Samples {
    fn tell(&mut self, name: &str, labels: &[String], value: &Value) {
        match value {
            Value::Object(parts) => {
                for (key, part) in parts {
                    self.tell(&format!("{name}_{}", snake(key)), labels, part);
                }
            }
            Value::Array(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    let own = part.get("name").and_then(Value::as_str).map_or(index.to_string(), str::to_owned);
                    let last = name.rsplit('_').next().unwrap_or(name).trim_end_matches('s');
                    let label =
                        format!("{last}=\"{}\"", own.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
                    self.tell(name, &[labels, &[label]].concat(), part);
                }
            }
            Value::Number(number) => self.line(name, labels, &number.to_string()),
            Value::Bool(flag) => self.line(name, labels, if *flag { "1" } else { "0" }),
            Value::String(_) | Value::Null => {}
        }
    }

    fn line(&mut self, name: &str, labels: &[String], number: &str) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0.entry(name.to_owned()).or_default(), "{name}{labels} {number}");
    }
}

/// Names of a MIB are written in one word (`npForwDatagrams`).
fn snake(key: &str) -> String {
    let mut name = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::net::UnixStream;

    #[test]
    fn every_number_has_a_line_and_lists_have_labels() {
        let counters = json!({
            "event": "counters", "open": 3, "closes": true, "cpu_s": 0.5, "lan": {"sp": null, "sent": 7},
            "np": {"npForwDatagrams": 9},
            "interfaces": [{"name": "sp\"ace", "sent": 1, "levels": [{"precedence": 4, "waiting": 2}]}, {"name": "two", "sent": 8}],
            "link": {"up": true, "round_trip_s": null},
        });
        let expected = r#"# TYPE scps_gateway_closes gauge
scps_gateway_closes 1
# TYPE scps_gateway_cpu_s counter
scps_gateway_cpu_s 0.5
# TYPE scps_gateway_interfaces_levels_precedence gauge
scps_gateway_interfaces_levels_precedence{interface="sp\"ace",level="0"} 4
# TYPE scps_gateway_interfaces_levels_waiting gauge
scps_gateway_interfaces_levels_waiting{interface="sp\"ace",level="0"} 2
# TYPE scps_gateway_interfaces_sent counter
scps_gateway_interfaces_sent{interface="sp\"ace"} 1
scps_gateway_interfaces_sent{interface="two"} 8
# TYPE scps_gateway_lan_sent counter
scps_gateway_lan_sent 7
# HELP scps_gateway_link_up 1 if the far side was heard, and leaves no question unanswered
# TYPE scps_gateway_link_up gauge
scps_gateway_link_up 1
# TYPE scps_gateway_np_np_forw_datagrams counter
scps_gateway_np_np_forw_datagrams 9
# TYPE scps_gateway_open gauge
scps_gateway_open 3
"#;
        assert_eq!(exposition("gateway", &counters), expected);
    }

    #[test]
    fn a_place_is_an_address_or_a_socket_file() {
        assert_eq!("127.0.0.1:9717".parse(), Ok(Place::Address(([127, 0, 0, 1], 9717).into())));
        assert_eq!("unix:/run/scps".parse(), Ok(Place::File("/run/scps".into())));
        for wrong in ["", "9717", "localhost:1", "unix:", "127.0.0.1:70000"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }

    /// What a reader gets for its octets, with nobody else at the endpoint.
    fn asked(request: &[u8]) -> String {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.write_all(request).unwrap();
        near.shutdown(std::net::Shutdown::Write).unwrap();
        reply(&mut far, "scps_x 1\n").unwrap();
        drop(far);
        let mut answer = String::new();
        // What was not read is answered by a reset.
        let _ = near.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn a_request_is_answered_once_whole_and_never_beyond_its_limit() {
        let good = asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(good.starts_with("HTTP/1.0 200 OK\r\n") && good.ends_with("\r\n\r\nscps_x 1\n"), "{good}");
        assert!(good.contains("Content-Length: 9\r\n"), "{good}");
        for other in [&b"POST /metrics HTTP/1.1\r\n\r\n"[..], b"GET /metricsx HTTP/1.0\r\n\r\n", b"\0\r\n\r\n"] {
            assert!(asked(other).starts_with("HTTP/1.0 404 "));
        }
        assert_eq!(asked(b"GET /metrics HTTP/1.1\r\n"), "");
        assert_eq!(asked(&vec![b'x'; REQUEST_MAX + 2000]), "");
    }
}
