//! Vegas on a hop that others use as well, with a rate that changes every five seconds (FY97 report, A.2.2): it gives way before the queue is full.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use scps_sim::{LinkConfig, Way};
use scps_tp::{
    Config, Congestion, Endpoint, EndpointConfig, Event, LossMeaning, RouteConfig, Trust, VegasConfig, VegasDecrease,
    VegasSlowStart,
};
use scps_wire::{Bitrate, Duration, Instant, Seed};
use std::net::Ipv4Addr;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OCTETS: usize = 4_000_000;
const HOP: u64 = 2_000_000;

/// Packets of a transfer that a full queue dropped, and how long the transfer took, beside others that offer up to so much.
fn transfer(seed: u64, others_max: u64, vegas: VegasConfig, loss: LossMeaning) -> (u64, Duration) {
    let own = Seed::from_u64(seed);
    let mut rng = own.stream("others");
    let hop = LinkConfig {
        rate: Some(Bitrate::from_bps(HOP)),
        // A bandwidth-delay product.
        queue_bytes: 132_500,
        delay: Duration::from_millis(265),
        ..LinkConfig::default()
    };
    let mut ways = [Way::new(hop.clone(), own, "there"), Way::new(hop, own, "back")];
    let route = RouteConfig::default().rate(Some(Bitrate::from_bps(HOP))).loss(loss);
    let [mut client, mut server] =
        [1, 2].map(|n| Endpoint::new(EndpointConfig::default(), route, Seed::from_u64(n), Instant::ZERO));
    let config = Config::fy97_vegas().mss(Some(1412)).congestion(Congestion::Vegas(vegas));
    server.listen((SERVER, 80), config.clone()).unwrap();
    let id = client.connect(Instant::ZERO, (CLIENT, 4000), (SERVER, 80), config).unwrap();
    let (mut left, mut lost, mut buffer, mut out) = (OCTETS, 0, vec![0; 65_536], Vec::new());
    let (mut next_other, mut rate, mut redraw_at) = (Instant::ZERO, 0, Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut received = 0;
    while received < OCTETS {
        if now >= redraw_at {
            rate = rng.below(others_max);
            redraw_at = now + Duration::from_secs(5);
        }
        while next_other <= now {
            ways[0].send(now, &[0; 1000]);
            next_other = now + Bitrate::from_bps(rate.max(1000)).time_for(1000).min(Duration::from_secs(1));
        }
        left -= client.send(now, id, &vec![1; left.min(65_536)]).unwrap_or(0);
        for (endpoint, way) in [(&mut client, 0), (&mut server, 1)] {
            endpoint.handle_timeout(now);
            while endpoint.poll_transmit(now, &mut out).is_some() {
                let before = ways[way].stats().queue;
                ways[way].send(now, &out);
                lost += ways[way].stats().queue - before;
                out.clear();
            }
        }
        while let Some(packet) = ways[0].receive(now) {
            if packet[0] == 0x45 {
                server.handle_input(now, &packet, Trust::Check);
            }
        }
        while let Some(packet) = ways[1].receive(now) {
            client.handle_input(now, &packet, Trust::Check);
        }
        while client.poll_event().is_some() {}
        while let Some(event) = server.poll_event() {
            if let Event::Readable(id) = event {
                while let Ok((n @ 1.., _)) = server.recv(now, id, &mut buffer) {
                    received += n;
                }
            }
        }
        now += Duration::from_millis(1);
        assert!(now < Instant::from_secs(600), "{received} octets in ten minutes");
    }
    (lost, now.since(Instant::ZERO))
}

/// Packets lost in each of eight transfers.
fn losses(others_max: u64, vegas: VegasConfig, loss: LossMeaning) -> [u64; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|seed| transfer(seed, others_max, vegas, loss).0)
}

/// The reference's thresholds; slow start as FY97 ran it.
fn vegas(decrease: VegasDecrease) -> VegasConfig {
    VegasConfig::default().slow_start(VegasSlowStart::EveryOtherRtt).decrease(decrease)
}

#[test]
fn beside_others_that_leave_three_quarters_of_the_hop_vegas_loses_nothing() {
    for decrease in [VegasDecrease::Segment, VegasDecrease::HalfExcess] {
        assert_eq!(losses(500_000, vegas(decrease), LossMeaning::Corruption), [0; 8], "{decrease:?}");
    }
}

#[test]
fn beside_others_that_take_half_of_the_hop_it_loses_by_how_fast_it_shrinks_and_what_losses_mean() {
    let of = |config, loss| losses(1_000_000, config, loss);
    // FY97 report, A.2.2 finds a segment per round trip too little for windows ten times as large as Brakmo's.
    let slow = of(vegas(VegasDecrease::Segment), LossMeaning::Corruption);
    let fast = of(vegas(VegasDecrease::HalfExcess), LossMeaning::Corruption);
    let careful = of(vegas(VegasDecrease::HalfExcess), LossMeaning::Congestion);
    // Linux's thresholds, and what losses mean to it.
    let linux = of(vegas(VegasDecrease::Segment).alpha_segs(2).beta_segs(4).gamma_segs(1), LossMeaning::Congestion);
    let sum = |losses: [u64; 8]| losses.iter().sum::<u64>();
    println!(
        "a segment {slow:?}, half of the excess {fast:?}, with losses as congestion {careful:?}, Linux's {linux:?}"
    );
    assert!(sum(fast) * 5 < sum(slow), "{fast:?}, {slow:?}");
    assert!(sum(careful) * 2 < sum(fast), "{careful:?}, {fast:?}");
    assert!(sum(linux) < 40 && linux.iter().filter(|lost| **lost > 0).count() == 1, "{linux:?}");
}
