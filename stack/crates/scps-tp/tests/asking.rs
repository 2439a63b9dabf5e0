//! Listeners that ask their user before they answer a SYN, and listeners for any port.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

mod common;
use common::{no_rate, packet, plain, PEER, PEER_ISS, US};
use scps_tp::{
    CloseReason, ConnectError, ConnectionId, DropReason, Endpoint, EndpointConfig, Event, ListenError, ListenerId,
    Trust,
};
use scps_wire::options::Options;
use scps_wire::tcp::{Flags, Tcp, Verify};
use scps_wire::{Instant, Seed, SeqNum};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::UNSPECIFIED, 0);
const T: fn(u64) -> Instant = Instant::from_millis;

fn endpoint(half_open_max: usize) -> (Endpoint, ListenerId) {
    let config = EndpointConfig::default().half_open_max(half_open_max);
    let mut endpoint = Endpoint::new(config, no_rate(), Seed::from_u64(1), Instant::ZERO);
    let listener = endpoint.listen_asking(ANY, plain()).unwrap();
    (endpoint, listener)
}

fn segment(port: u16, flags: Flags, seq: SeqNum, ack: SeqNum) -> Vec<u8> {
    let options = Options::default();
    packet(&Tcp { src_port: port, dst_port: US.1, seq, ack, flags, window: 9000, urgent: 0, options }, &[])
}

fn deliver(e: &mut Endpoint, at: Instant, packet: &[u8]) {
    e.handle_timeout(at);
    e.handle_input(at, packet, Trust::Check);
}

fn syn(port: u16) -> Vec<u8> {
    segment(port, Flags::SYN, PEER_ISS, SeqNum(0))
}

fn sent(e: &mut Endpoint, at: Instant) -> Vec<Tcp> {
    let mut all = Vec::new();
    loop {
        let mut out = Vec::new();
        if e.poll_transmit(at, &mut out).is_none() {
            return all;
        }
        all.push(Tcp::parse(&out[20..], US.0, PEER.0, Verify::Trusted).unwrap().0);
    }
}

fn events(e: &mut Endpoint) -> Vec<Event> {
    std::iter::from_fn(|| e.poll_event()).collect()
}

/// A SYN is there, and was repeated; nothing was said.
fn asked() -> (Endpoint, ListenerId, ConnectionId) {
    let (mut e, listener) = endpoint(4);
    for at in [0, 1000, 3000] {
        deliver(&mut e, T(at), &syn(PEER.1));
        assert_eq!(sent(&mut e, T(at)), []);
    }
    let [Event::Asked(asker, id)] = events(&mut e)[..] else { panic!("not asked once") };
    assert_eq!((asker, e.addresses(id)), (listener, Some((US.into(), PEER.into()))));
    assert_eq!(e.poll_timeout(), None, "nothing is repeated");
    (e, listener, id)
}

#[test]
fn a_syn_is_answered_when_the_user_says_so() {
    let (mut e, listener, id) = asked();
    e.answer(T(4000), id);
    let answers = sent(&mut e, T(4000));
    assert_eq!(answers.len(), 1);
    let answer = answers[0];
    assert_eq!((answer.flags, answer.ack), (Flags::SYN.with(Flags::ACK), PEER_ISS + 1));
    deliver(&mut e, T(4001), &segment(PEER.1, Flags::ACK, PEER_ISS + 1, answer.seq + 1));
    assert_eq!(events(&mut e), [Event::Accepted(listener, id)]);
}

#[test]
fn an_answer_that_nobody_acknowledges_ends_and_the_user_hears_of_it() {
    let (mut e, _, id) = asked();
    e.answer(T(4000), id);
    let mut answers = sent(&mut e, T(4000)).len();
    while let Some(at) = e.poll_timeout() {
        e.handle_timeout(at);
        answers += sent(&mut e, at).len();
    }
    assert_eq!((answers, events(&mut e)), (6, vec![Event::Closed(id, CloseReason::TimedOut)]));
    assert_eq!(e.connection_count(), 1, "it is the user's");
    e.release(T(4_000_000), id);
    assert_eq!(e.connection_count(), 0);
}

#[test]
fn a_refusal_is_a_reset_of_the_syn() {
    let (mut e, _, id) = asked();
    e.abort(T(4000), id);
    e.release(T(4000), id);
    let resets = sent(&mut e, T(4000));
    assert_eq!(resets.len(), 1);
    assert_eq!((resets[0].flags, resets[0].ack), (Flags::RST.with(Flags::ACK), PEER_ISS + 1));
    assert_eq!(e.connection_count(), 0);
}

#[test]
fn a_syn_that_is_ignored_may_come_again() {
    let (mut e, listener, id) = asked();
    e.ignore(T(4000), id);
    assert_eq!((sent(&mut e, T(4000)).len(), e.connection_count()), (0, 0));
    events(&mut e);
    deliver(&mut e, T(7000), &syn(PEER.1));
    let [Event::Asked(asker, again)] = events(&mut e)[..] else { panic!("not asked") };
    assert!(asker == listener && again != id);
}

#[test]
fn a_reset_of_the_peer_reaches_the_user() {
    let (mut e, _, id) = asked();
    deliver(&mut e, T(4000), &segment(PEER.1, Flags::RST, PEER_ISS + 1, SeqNum(0)));
    assert_eq!(events(&mut e), [Event::Closed(id, CloseReason::Refused)]);
    e.answer(T(4001), id);
    assert_eq!(sent(&mut e, T(4001)), []);
}

#[test]
fn syns_beyond_the_limit_are_dropped_until_there_is_room() {
    let (mut e, _) = endpoint(4);
    for port in 2000..2010 {
        deliver(&mut e, T(0), &syn(port));
    }
    assert_eq!((sent(&mut e, T(0)).len(), e.connection_count(), e.drops(DropReason::BacklogFull)), (0, 4, 6));
    let Event::Asked(_, id) = events(&mut e)[0] else { panic!("not asked") };
    e.ignore(T(1), id);
    deliver(&mut e, T(2), &syn(3000));
    assert_eq!(e.connection_count(), 4);
}

#[test]
fn a_listener_for_any_port_leaves_others_theirs() {
    let mut e = Endpoint::new(EndpointConfig::default(), no_rate(), Seed::from_u64(1), Instant::ZERO);
    let any = e.listen_asking(ANY, plain()).unwrap();
    e.listen(US, plain()).unwrap();
    deliver(&mut e, T(0), &syn(PEER.1));
    assert_eq!((sent(&mut e, T(0)).len(), events(&mut e).len()), (1, 0), "answered at once");
    e.unlisten(any);
    let mut other = syn(PEER.1);
    // Port US.1 + 1; the checksum is not tested here.
    other[22..24].copy_from_slice(&(US.1 + 1).to_be_bytes());
    e.handle_input(T(1), &other, Trust::Verified);
    assert!(sent(&mut e, T(1))[0].flags.has(Flags::RST));
}

#[test]
fn addresses_of_ipv6_are_refused_with_the_reason() {
    let (mut e, _) = endpoint(8);
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 80));
    assert_eq!(e.listen(six, plain()), Err(ListenError::Ipv6(six)));
    assert_eq!(e.listen_asking(six, plain()), Err(ListenError::Ipv6(six)));
    assert_eq!(e.connect(T(0), six, PEER, plain()), Err(ConnectError::Ipv6(six)));
    let refused = e.connect(T(0), US, six, plain()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot connect with [::1]:80: expected an IPv4 address, for IPv6 is not carried yet"
    );
    assert_eq!(e.connection_count(), 0);
}
