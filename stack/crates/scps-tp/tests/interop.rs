//! Conversations of another implementation, replayed: one side's recorded packets against ours as the other side.
//!
//! Sequence numbers of our side are translated (our ISN differs from the recorded one), acknowledgements and echoes with
//! them. A recorded packet is delivered at its recorded time, or as soon as what it acknowledges has been sent. Data that
//! the recorded receiver dropped is dropped again: only the last recorded copy of a segment is delivered.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_tp::{
    Config, Congestion, ConnectionId, Endpoint, EndpointConfig, Event, LossMeaning, RouteConfig, State, Stats, Trust,
};
use scps_wire::compressed::Compressed;
use scps_wire::ipv4::Ipv4;
use scps_wire::options::Options;
use scps_wire::pcap::{ipv4_of, Reader};
use scps_wire::protocol::SCPS_COMPRESSED;
use scps_wire::scps::Capabilities;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::udp::Udp;
use scps_wire::{Duration, Instant, Seed, SeqNum};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

type Side = (Ipv4Addr, u16);

/// A recorded segment, decompressed as far as the replay needs it.
#[derive(Clone, Debug)]
struct Recorded {
    at: Instant,
    ip: Ipv4,
    tcp: Tcp,
    data: Vec<u8>,
    /// The packet as recorded if it was compressed.
    compressed: Option<Vec<u8>>,
}

/// A conversation: who opened it, and its segments in order.
#[derive(Clone, Debug, Default)]
struct Conversation {
    segments: Vec<Recorded>,
}

fn captures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captures")
}

/// Splits a capture into conversations, keyed by opener and answerer.
fn conversations(name: &str) -> Vec<((Side, Side), Conversation)> {
    let file = std::fs::read(captures().join(name)).unwrap();
    let reader = Reader::new(&file).unwrap();
    let link = reader.link_type();
    let mut found: BTreeMap<(Side, Side), Conversation> = BTreeMap::new();
    let mut order = Vec::new();
    let mut ids: BTreeMap<(Ipv4Addr, u8), (Side, Side)> = BTreeMap::new();
    let mut start = None;
    for record in reader {
        let record = record.unwrap();
        let start = *start.get_or_insert(record.at);
        let at = Instant::from_secs(1) + record.at.since(start);
        let Some(mut packet) = ipv4_of(link, record.data) else { continue };
        let (outer, payload) = Ipv4::parse(packet).unwrap();
        if outer.protocol == 17 {
            let (udp, inner) = Udp::parse(payload).unwrap();
            if !udp.is_scps() || inner[0] >> 4 != 4 {
                continue;
            }
            packet = inner;
        }
        let (ip, payload) = Ipv4::parse(packet).unwrap();
        if ip.protocol == SCPS_COMPRESSED {
            let (header, data) = Compressed::parse(payload, ip.src, ip.dst).unwrap();
            let Some((from, to)) = ids.get(&(ip.src, header.connection_id)).copied() else { continue };
            let (window, ack) = header.window_ack.unwrap_or((0, SeqNum(0)));
            let mut flags = Flags::ACK;
            for (on, flag) in [(header.fin, Flags::FIN), (header.rst, Flags::RST)] {
                if on {
                    flags = flags.with(flag);
                }
            }
            let tcp = Tcp {
                src_port: from.1,
                dst_port: to.1,
                seq: header.seq.unwrap_or(SeqNum(0)),
                ack,
                flags,
                window,
                urgent: 0,
                options: Options::default(),
            };
            let key = if found.contains_key(&(from, to)) { (from, to) } else { (to, from) };
            let recorded = Recorded { at, ip, tcp, data: data.to_vec(), compressed: Some(payload.to_vec()) };
            found.get_mut(&key).unwrap().segments.push(recorded);
        } else if ip.protocol == 6 || ip.protocol == 106 {
            let (tcp, data) = Tcp::parse(payload, ip.src, ip.dst, Verify::Trusted).unwrap();
            let (from, to) = ((ip.src, tcp.src_port), (ip.dst, tcp.dst_port));
            if tcp.flags.has(Flags::SYN) {
                if let Some(c) = tcp.options.capabilities.filter(|c| c.connection_id != 0) {
                    ids.insert((ip.src, c.connection_id), (from, to));
                }
                if !tcp.flags.has(Flags::ACK) && !found.contains_key(&(from, to)) {
                    found.insert((from, to), Conversation::default());
                    order.push((from, to));
                }
            }
            let key = if found.contains_key(&(from, to)) { (from, to) } else { (to, from) };
            if let Some(c) = found.get_mut(&key) {
                c.segments.push(Recorded { at, ip, tcp, data: data.to_vec(), compressed: None });
            }
        }
    }
    order.into_iter().map(|k| (k, found.remove(&k).unwrap())).collect()
}

/// Our settings for the part a recorded side played, from its SYN.
fn config_of(syn: &Tcp) -> Config {
    let caps = syn.options.capabilities;
    let has = |mask| caps.is_some_and(|c: Capabilities| c.has(mask));
    let mut config = Config::default()
        .scps(caps.is_some())
        .snack(has(Capabilities::SNACK1))
        .bets(has(Capabilities::BETS))
        .compression(has(Capabilities::COMPRESSION))
        .sack(syn.options.sack_permitted)
        .timestamps(syn.options.timestamps.is_some())
        .window_scaling(syn.options.window_scale.is_some())
        .mss(syn.options.mss)
        .congestion(Congestion::None)
        .send_buffer(1 << 20)
        .receive_buffer(1 << 20)
        .nodelay(true)
        .keepalive(None);
    config.rto.retransmissions_max = 1000;
    config
}

struct Replay {
    endpoint: Endpoint,
    id: Option<ConnectionId>,
    now: Instant,
    iss: Option<SeqNum>,
    last_ts: u32,
    sent: u64,
    resets: u32,
    received: u64,
    peer_ended: bool,
    compression_id: u8,
}

impl Replay {
    fn drain(&mut self) {
        let mut packet = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut packet).is_some() {
            let (ip, payload) = Ipv4::parse(&packet).unwrap();
            if ip.protocol == SCPS_COMPRESSED {
                let (header, data) = Compressed::parse(payload, ip.src, ip.dst).unwrap();
                self.last_ts = header.ts_val.unwrap_or(self.last_ts);
                self.resets += u32::from(header.rst);
                if let (Some(seq), Some(iss)) = (header.seq, self.iss) {
                    let end = seq.0.wrapping_sub(iss.0) + data.len() as u32 + u32::from(header.fin);
                    self.sent = self.sent.max(u64::from(end));
                }
            } else {
                let (tcp, data) = Tcp::parse(payload, ip.src, ip.dst, Verify::Checksum(&[6, 106])).unwrap();
                if tcp.flags.has(Flags::SYN) {
                    self.iss = Some(tcp.seq);
                    self.compression_id = tcp.options.capabilities.map_or(0, |c| c.connection_id);
                }
                self.last_ts = tcp.options.timestamps.map_or(self.last_ts, |t| t.val);
                self.resets += u32::from(tcp.flags.has(Flags::RST));
                let occupied =
                    data.len() as u32 + u32::from(tcp.flags.has(Flags::SYN)) + u32::from(tcp.flags.has(Flags::FIN));
                let end = tcp.seq.0.wrapping_sub(self.iss.unwrap().0) + occupied;
                self.sent = self.sent.max(u64::from(end));
            }
            packet.clear();
        }
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Accepted(_, id) = event {
                self.id = Some(id);
            }
        }
        if let Some(id) = self.id {
            let mut buffer = [0u8; 8192];
            while let Ok((n, _)) = self.endpoint.recv(self.now, id, &mut buffer) {
                self.received += n as u64;
                if n == 0 {
                    self.peer_ended = true;
                    break;
                }
            }
        }
    }

    /// Lets time pass until `until`, or until `done`.
    fn wait(&mut self, until: Instant, done: impl Fn(&Replay) -> bool) {
        self.drain();
        while !done(self) {
            let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        if !done(self) {
            self.now = self.now.max(until);
        }
    }
}

/// Octets a side sent, by its recorded segments.
fn octets(segments: &[Recorded], from: Side) -> u64 {
    let syn = segments.iter().find(|s| (s.ip.src, s.tcp.src_port) == from && s.tcp.flags.has(Flags::SYN)).unwrap();
    let ends = segments.iter().filter(|s| (s.ip.src, s.tcp.src_port) == from && !s.data.is_empty());
    ends.map(|s| u64::from(s.tcp.seq.0.wrapping_sub(syn.tcp.seq.0)) + s.data.len() as u64 - 1).max().unwrap_or(0)
}

/// Plays `us` against the recording of `peer`.
fn replay(conversation: &Conversation, us: Side, peer: Side, we_open: bool) -> (Stats, Replay, u64, u64) {
    let segments = &conversation.segments;
    let own_syn = segments.iter().find(|s| s.ip.src == us.0 && s.tcp.flags.has(Flags::SYN)).unwrap();
    let peer_syn = segments.iter().find(|s| s.ip.src == peer.0 && s.tcp.flags.has(Flags::SYN)).unwrap();
    let (ours, theirs) = (octets(segments, us), octets(segments, peer));
    let route = RouteConfig::default().rate(None).protocol(own_syn.ip.protocol).loss(LossMeaning::Corruption);
    let start = Instant::from_millis(500);
    let endpoint = Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(3), start);
    let mut replay = Replay {
        endpoint,
        id: None,
        now: start,
        iss: None,
        last_ts: 0,
        sent: 0,
        resets: 0,
        received: 0,
        peer_ended: false,
        compression_id: 0,
    };
    let config = config_of(&own_syn.tcp);
    if we_open {
        replay.id = replay.endpoint.connect(replay.now, us, peer, config).ok();
    } else {
        replay.endpoint.listen(us, config).unwrap();
    }
    let mut is_given = false;
    let recorded: Vec<&Recorded> = segments.iter().filter(|s| s.ip.src == peer.0).collect();
    for (i, segment) in recorded.iter().enumerate() {
        let has_later_copy = !segment.data.is_empty()
            && recorded[i + 1..].iter().any(|s| !s.data.is_empty() && s.tcp.seq == segment.tcp.seq);
        if has_later_copy {
            continue;
        }
        let own_iss = own_syn.tcp.seq;
        let acked = u64::from(segment.tcp.ack.0.wrapping_sub(own_iss.0));
        let has_ack = segment.tcp.flags.has(Flags::ACK) && segment.tcp.ack != SeqNum(0);
        replay.wait(segment.at, |_| false);
        if has_ack {
            let limit = replay.now + Duration::from_secs(600);
            replay.wait(limit, |r| r.sent >= acked);
        }
        deliver(&mut replay, segment, own_iss, has_ack);
        if !is_given {
            if let Some(id) = replay.id {
                is_given = true;
                let data = vec![0x33; ours as usize];
                assert_eq!(replay.endpoint.send(replay.now, id, &data), Ok(data.len()));
                replay.endpoint.close(replay.now, id);
            }
        }
        replay.drain();
    }
    let _ = peer_syn;
    let id = replay.id.expect("the conversation opened");
    (replay.endpoint.stats(id).unwrap(), replay, ours, theirs)
}

/// Gives a recorded packet to our side, its acknowledgement and echo translated.
fn deliver(replay: &mut Replay, segment: &Recorded, own_iss: SeqNum, has_ack: bool) {
    let iss = replay.iss.unwrap_or(own_iss);
    let translate = |ack: SeqNum| iss + ack.0.wrapping_sub(own_iss.0);
    let ip = segment.ip;
    let mut packet = vec![0; 20];
    if let Some(payload) = &segment.compressed {
        let (mut header, data) = Compressed::parse(payload, ip.src, ip.dst).unwrap();
        header.window_ack = header.window_ack.map(|(w, a)| (w, translate(a)));
        header.ts_ecr = header.ts_ecr.map(|_| replay.last_ts);
        packet.resize(20 + header.emit_len(), 0);
        packet.extend_from_slice(data);
        header.emit(&mut packet[20..], ip.src, ip.dst, 106);
    } else {
        let mut tcp = segment.tcp;
        if has_ack {
            tcp.ack = translate(tcp.ack);
            if let Some(t) = &mut tcp.options.timestamps {
                t.ecr = replay.last_ts;
            }
        }
        // Kind 16 is read but never written.
        tcp.options.legacy_bets = false;
        packet.resize(20 + tcp.emit_len(), 0);
        packet.extend_from_slice(&segment.data);
        tcp.emit(&mut packet[20..], ip.src, ip.dst, ip.protocol);
    }
    let header = Ipv4 { payload_len: (packet.len() - 20) as u16, ..ip };
    header.emit(&mut packet[..20]);
    replay.endpoint.handle_input(replay.now, &packet, Trust::Check);
    replay.drain();
}

/// Captures whose conversations are complete from SYN to FIN on both sides.
fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(captures())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.contains(".pcap") && n != "np_udp_default.pcap")
        .collect();
    names.sort();
    names
}

fn check(we_open: bool) {
    let mut replayed = 0;
    for name in names() {
        for ((opener, answerer), conversation) in conversations(&name) {
            let (us, peer) = if we_open { (opener, answerer) } else { (answerer, opener) };
            let what = format!("{name} {us:?} against the recorded {peer:?}");
            let ended =
                |side: Side| conversation.segments.iter().any(|s| s.ip.src == side.0 && s.tcp.flags.has(Flags::FIN));
            let is_answered = conversation.segments.iter().any(|s| s.ip.src == answerer.0);
            if !is_answered {
                continue;
            }
            let (stats, replay, ours, theirs) = replay(&conversation, us, peer, we_open);
            assert_eq!(replay.resets, 0, "{what}: we reset it");
            assert_eq!(replay.received, theirs, "{what}: data from the recorded side");
            assert!(replay.sent > ours, "{what}: {} of {ours} octets sent", replay.sent);
            if ended(us) && ended(peer) {
                assert!(replay.peer_ended, "{what}: the recorded side's end");
                assert!(stats.flushed_at.is_some(), "{what}: our FIN was acknowledged");
                let state = replay.endpoint.state(replay.id.unwrap());
                assert!(
                    matches!(state, None | Some(State::TimeWait | State::Closed | State::FinWait2)),
                    "{what}: ended in {state:?}"
                );
            }
            let is_lossy_sender = name.contains("loss") && we_open && !name.starts_with("gw");
            if is_lossy_sender {
                assert!(stats.resends_total() > 0, "{what}: its losses were repaired");
                assert!(stats.snacks_received > 0, "{what}: its SNACKs were read");
            }
            replayed += 1;
        }
    }
    assert!(replayed >= 30, "{replayed} conversations");
}

#[test]
fn our_initiator_completes_against_every_recorded_responder() {
    check(true);
}

#[test]
fn our_responder_completes_against_every_recorded_initiator() {
    check(false);
}
