//! What congestion control knew of each connection, whenever that changed: rows of one length, for programs that read many.

use crate::IoError;
use scps_tp::{ConnectionId, Endpoint, State, TraceEvent, TraceRecord};
use scps_wire::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;

/// Octets of a row, numbers in the order of little-endian machines: when it began to hold (i64, ns since 1970 by the system's clock), our
/// address and the peer's (4 octets each, as in a packet), our port and the peer's (u16), octets of a full segment, the congestion window,
/// the slow-start threshold in octets (`u32::MAX`: there is none) and the smoothed round trip in µs (0: there is none yet).
pub const STATE_OCTETS: usize = 36;

const NONE: u32 = u32::MAX;

type Row = [u8; STATE_OCTETS];

/// Rows on their way to a file. Each turn's are handed to the system at once, so that a killed program's are there.
#[derive(Debug)]
pub(crate) struct StateLog {
    file: File,
    origin_unix_ns: i64,
    last: BTreeMap<ConnectionId, Row>,
    /// When there are as many connections, those that are gone are forgotten: not every end is told.
    forget_at: usize,
    rows: Vec<u8>,
    /// Octets that the file may still grow by.
    left: u64,
    /// Records that somebody else wants, too.
    waiting: Option<VecDeque<TraceRecord>>,
}

const CONNECTIONS_LEAST: usize = 64;

impl StateLog {
    pub(crate) fn new(file: File, octets_max: u64, origin_unix_ns: i64, is_shared: bool) -> std::io::Result<Self> {
        let there = file.metadata()?.len();
        // A killed program may have begun a row. What is no ordinary file has no length.
        let begun = there % STATE_OCTETS as u64;
        if begun > 0 {
            file.set_len(there - begun)?;
        }
        let (left, waiting) = (octets_max.saturating_sub(there - begun), is_shared.then(VecDeque::new));
        let (last, rows, forget_at) = (BTreeMap::new(), Vec::new(), CONNECTIONS_LEAST);
        Ok(StateLog { file, origin_unix_ns, last, forget_at, rows, left, waiting })
    }

    pub(crate) fn poll_trace(&mut self) -> Option<TraceRecord> {
        self.waiting.as_mut()?.pop_front()
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.waiting.is_some()
    }

    /// Nobody else wants records any more.
    pub(crate) fn share_no_more(&mut self) {
        self.waiting = None;
    }

    /// True if another row would make the file too long.
    pub(crate) fn is_full(&self) -> bool {
        self.left < STATE_OCTETS as u64
    }

    /// Takes what the engine has told since, and writes what changed.
    pub(crate) fn drain(&mut self, endpoint: &mut Endpoint) -> Result<(), IoError> {
        let mut over = Vec::new();
        while let Some(record) = endpoint.poll_trace() {
            if !self.is_full() {
                self.take(endpoint, &record);
            }
            if record.event == TraceEvent::State(State::Closed) {
                over.push(record.connection);
            }
            if let Some(waiting) = &mut self.waiting {
                waiting.push_back(record);
            }
        }
        // What ended it may be told after its end.
        for id in over {
            self.last.remove(&id);
        }
        if self.last.len() >= self.forget_at {
            self.last.retain(|id, _| endpoint.addresses(*id).is_some());
            self.forget_at = 2 * self.last.len().max(CONNECTIONS_LEAST);
        }
        let written = self.file.write_all(&self.rows).map_err(IoError::system("write states"));
        self.rows.clear();
        written
    }

    fn take(&mut self, endpoint: &Endpoint, record: &TraceRecord) {
        let id = record.connection;
        // Of one that is gone by now the last row has the ends.
        let Some(mut row) = ends(endpoint, id).or_else(|| self.last.get(&id).copied()) else { return };
        let srtt_us = record.srtt.map_or(0, |srtt| clamped(srtt.as_micros().try_into().unwrap_or(u64::MAX)));
        let numbers = [window(record.cwnd), window(record.ssthresh), srtt_us];
        for (place, number) in row[24..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        if self.last.insert(id, row) != Some(row) {
            row[..8].copy_from_slice(&self.unix_ns(record.at).to_le_bytes());
            self.rows.extend_from_slice(&row);
            self.left -= STATE_OCTETS as u64;
        }
    }

    fn unix_ns(&self, at: Instant) -> i64 {
        self.origin_unix_ns.saturating_add_unsigned(at.as_nanos())
    }
}

/// The begin of a row: a connection's ends, and how long its segments are.
fn ends(endpoint: &Endpoint, id: ConnectionId) -> Option<Row> {
    let Some((SocketAddr::V4(near), SocketAddr::V4(far))) = endpoint.addresses(id) else { return None };
    let mut row = [0; STATE_OCTETS];
    row[8..12].copy_from_slice(&near.ip().octets());
    row[12..16].copy_from_slice(&far.ip().octets());
    row[16..18].copy_from_slice(&near.port().to_le_bytes());
    row[18..20].copy_from_slice(&far.port().to_le_bytes());
    row[20..24].copy_from_slice(&endpoint.segment_size(id).map_or(0, clamped).to_le_bytes());
    Some(row)
}

fn window(octets: u64) -> u32 {
    if octets == u64::MAX {
        NONE
    } else {
        clamped(octets)
    }
}

fn clamped(number: u64) -> u32 {
    number.min(u64::from(NONE - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use scps_tp::{Config, Congestion, EndpointConfig, Event, RouteConfig, Trust};
    use scps_wire::{Duration, Seed};
    use std::net::Ipv4Addr;

    const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// Two engines, and how long a packet takes from one to the other.
    struct Pair {
        ends: [Endpoint; 2],
        now: Instant,
        config: Config,
    }

    impl Pair {
        fn new() -> Pair {
            let end = |seed| {
                let route = RouteConfig::default().rate(None);
                Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(seed), Instant::ZERO)
            };
            let config = Config::default().congestion(Congestion::Vj).trace(true);
            let mut ends = [end(1), end(2)];
            ends[1].listen((FAR, 80), config.clone()).unwrap();
            Pair { ends, now: Instant::ZERO, config }
        }

        fn connect(&mut self) -> ConnectionId {
            self.ends[0].connect(self.now, (NEAR, 0), (FAR, 80), self.config.clone()).unwrap()
        }

        /// A round trip, and what the far end accepted by then.
        fn turn(&mut self) -> Option<ConnectionId> {
            for from in [0, 1] {
                self.now += Duration::from_millis(20);
                let mut packets = Vec::new();
                loop {
                    let mut packet = Vec::new();
                    if self.ends[from].poll_transmit(self.now, &mut packet).is_none() {
                        break;
                    }
                    packets.push(packet);
                }
                for packet in packets {
                    self.ends[1 - from].handle_input(self.now, &packet, Trust::Check);
                }
                self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
            }
            self.ends[1].find_event(|event| if let Event::Accepted(_, id) = event { Some(*id) } else { None })
        }

        /// A transfer from begin to end; `told` sees the near engine after each round trip but those in which the connection ends.
        fn transfer(&mut self, mut told: impl FnMut(&mut Endpoint)) {
            let id = self.connect();
            let far = std::iter::from_fn(|| Some(self.turn())).take(10).flatten().next().unwrap();
            self.ends[0].send(self.now, id, &vec![7; 30_000]).unwrap();
            for _ in 0..20 {
                self.turn();
                told(&mut self.ends[0]);
            }
            self.ends[1].close(self.now, far);
            self.turn();
            self.ends[0].close(self.now, id);
            self.ends[0].release(self.now, id);
            for _ in 0..5 {
                self.turn();
            }
            assert!(self.ends[0].addresses(id).is_none(), "it is gone");
        }
    }

    fn log(octets_max: u64, is_shared: bool) -> (StateLog, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        (StateLog::new(file.reopen().unwrap(), octets_max, 0, is_shared).unwrap(), file)
    }

    #[test]
    fn a_connection_that_is_gone_has_told_its_last_states() {
        let (mut log, file) = log(u64::MAX, true);
        let mut pair = Pair::new();
        pair.transfer(|end| log.drain(end).unwrap());
        log.drain(&mut pair.ends[0]).unwrap();
        let mut told: Vec<[u32; 3]> = std::iter::from_fn(|| log.poll_trace())
            .map(|record| {
                let srtt_us = record.srtt.map_or(0, |srtt| srtt.as_micros() as u32);
                [window(record.cwnd), window(record.ssthresh), srtt_us]
            })
            .collect();
        told.dedup();
        let number = |row: &[u8], at: usize| u32::from_le_bytes(row[at..at + 4].try_into().unwrap());
        let rows = std::fs::read(file.path()).unwrap();
        let mut rows: Vec<_> = rows.chunks(STATE_OCTETS).map(|row| [24, 28, 32].map(|at| number(row, at))).collect();
        rows.dedup();
        assert_eq!(rows, told);
        assert!(told.len() > 5, "{told:?}");
        assert!(log.last.is_empty());
    }

    #[test]
    fn a_file_ends_where_it_may_with_whole_rows_behind_those_that_were_there() {
        let (mut log, file) = log(5 * STATE_OCTETS as u64 - 1, false);
        let mut pair = Pair::new();
        pair.transfer(|end| log.drain(end).unwrap());
        assert!(log.is_full());
        let whole = std::fs::read(file.path()).unwrap();
        assert_eq!(whole.len(), 4 * STATE_OCTETS);
        // Somebody was killed within a row.
        std::fs::write(file.path(), &whole[..whole.len() - 3]).unwrap();
        let again = std::fs::OpenOptions::new().append(true).open(file.path()).unwrap();
        let mut log = StateLog::new(again, 4 * STATE_OCTETS as u64, 0, false).unwrap();
        Pair::new().transfer(|end| log.drain(end).unwrap());
        let after = std::fs::read(file.path()).unwrap();
        assert!(log.is_full() && after.len() == whole.len(), "{}", after.len());
        assert_eq!(after[..3 * STATE_OCTETS], whole[..3 * STATE_OCTETS]);
    }

    #[test]
    fn connections_that_end_without_a_word_are_forgotten() {
        let (mut log, _file) = log(u64::MAX, false);
        let mut pair = Pair::new();
        for _ in 0..1000 {
            let id = pair.connect();
            pair.turn();
            log.drain(&mut pair.ends[0]).unwrap();
            pair.ends[0].abort(pair.now, id);
            pair.ends[0].release(pair.now, id);
            pair.turn();
            assert!(log.last.len() <= 2 * CONNECTIONS_LEAST, "{}", log.last.len());
        }
    }
}
