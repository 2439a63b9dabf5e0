//! A trace that nobody takes.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_tp::{Config, Endpoint, EndpointConfig, Event, RouteConfig, Trust};
use scps_wire::{Duration, Instant, Seed};
use std::net::Ipv4Addr;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OCTETS: usize = 4_000_000;

#[test]
fn of_a_trace_that_nobody_takes_the_latest_records_are_kept() {
    let endpoint = |seed| {
        let route = RouteConfig::default().rate(None);
        Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(seed), Instant::ZERO)
    };
    let (mut client, mut server) = (endpoint(1), endpoint(2));
    let config = Config::modern().mss(Some(60)).trace(true);
    server.listen((SERVER, 80), config.clone().trace(false)).unwrap();
    let mut now = Instant::ZERO;
    let id = client.connect(now, (CLIENT, 4000), (SERVER, 80), config).unwrap();
    let (mut left, mut received, mut out, mut buffer) = (OCTETS, 0, Vec::new(), vec![0; 65_536]);
    while received < OCTETS {
        left -= client.send(now, id, &vec![1; left.min(65_536)]).unwrap_or(0);
        while client.poll_transmit(now, &mut out).is_some() {
            server.handle_input(now, &std::mem::take(&mut out), Trust::Check);
        }
        while server.poll_transmit(now, &mut out).is_some() {
            client.handle_input(now, &std::mem::take(&mut out), Trust::Check);
        }
        while let Some(event) = server.poll_event() {
            if let Event::Readable(id) = event {
                while let Ok((n @ 1.., _)) = server.recv(now, id, &mut buffer) {
                    received += n;
                }
            }
        }
        while client.poll_event().is_some() {}
        now += Duration::from_millis(10);
        client.handle_timeout(now);
        server.handle_timeout(now);
        assert!(now < Instant::from_secs(600), "{received} octets");
    }
    let records: Vec<_> = std::iter::from_fn(|| client.poll_trace()).collect();
    assert_eq!(records.len(), 65_536);
    assert!(client.traces_forgotten() > 10_000, "{} forgotten", client.traces_forgotten());
    assert!(
        records.windows(2).all(|pair| pair[0].at <= pair[1].at) && records[65_535].at >= now - Duration::from_secs(1)
    );
}
