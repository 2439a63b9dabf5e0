//! Careful Resume (RFC 9959): what it gains on a path that is as it was, what it costs on one that is not, and its rules on any path.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a test stops where its expectation fails")]

use proptest::prelude::*;
use scps_sim::{Host, Impairment, LinkConfig, Network, Outcome, Transfer, ENDS};
use scps_tp::ResumePhase::{OtherPath, Reconnaissance, Retreated, SafeRetreat, Unvalidated, Validated, Validating};
use scps_tp::{
    Cause, Config, Congestion, KnownPath, LossMeaning, ResumeConfig, ResumePhase, RouteConfig, Snapshot, VegasConfig,
};
use scps_wire::{Bitrate, Duration, Instant};

const MBIT: u64 = 1_000_000;

/// A link of `mbit`/s whose queue holds a bandwidth-delay product.
fn link(mbit: u64, rtt_ms: u64) -> LinkConfig {
    LinkConfig {
        rate: Some(Bitrate::from_bps(mbit * MBIT)),
        queue_bytes: (mbit * MBIT / 8 * rtt_ms / 1000).max(15_000) as usize,
        delay: Duration::from_millis(rtt_ms / 2),
        ..LinkConfig::default()
    }
}

fn transfer(bytes: usize, congestion: Congestion, link: LinkConfig, loss: LossMeaning) -> Transfer {
    let config = Config::modern().congestion(congestion).careful_resume(Some(ResumeConfig::default()));
    Transfer {
        bytes,
        sender: config.clone(),
        receiver: config,
        routes: [RouteConfig::default().rate(None).loss(loss); 2],
        networks: Default::default(),
        links: [link.clone(), link],
        seed: 1,
        limit: Duration::from_secs(3600),
    }
}

/// What was saved of a path: `window` octets in `rtt_ms`.
fn known(window: u64, rtt_ms: u64) -> KnownPath {
    KnownPath::new(Network::address(0), Network::address(1), window, Duration::from_millis(rtt_ms))
}

fn snapshot(host: &Host) -> Option<Snapshot> {
    host.connection().and_then(|id| host.endpoint.snapshot(id))
}

/// A transfer whose sender knows a path, and the phases that it went through.
fn run(transfer: &Transfer, path: Option<KnownPath>) -> (Outcome, Vec<ResumePhase>, Network) {
    let mut network = transfer.begin_with(|host| {
        if let Some(path) = &path {
            host.endpoint.learn_path(Instant::ZERO, path);
        }
    });
    let mut phases: Vec<ResumePhase> = Vec::new();
    let mut unvalidated: Option<(Instant, u64)> = None;
    let until = network.now + transfer.limit;
    network.run(until, |network| {
        let sender = &network[ENDS[0]];
        let Some(now) = snapshot(sender) else { return false };
        let phase = now.resume.expect("the settings ask for it");
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
        if let (ResumePhase::Unvalidated, Some(path)) = (phase, path) {
            // Never more than half of what was saved, and no burst: what left since the jump had its time.
            let half = path.window / 2;
            assert!(now.flight_size <= half, "{} octets of {half} are unvalidated", now.flight_size);
            let (began, flight) = *unvalidated.get_or_insert((network.now, now.flight_size));
            let pace = now.pace.expect("it is paced");
            let room = pace.bytes_in(network.now.since(began)) + 2 * 1448;
            assert!(now.flight_size <= flight + room, "{} octets left at once", now.flight_size - flight);
        }
        now.unacknowledged == 0 && network[ENDS[1]].first().is_some_and(|(_, program)| program.has_read_all())
    });
    (transfer.finish(&mut network), phases, network)
}

/// The window that a connection which is over has left for the next one.
fn saved(network: &Network) -> Option<KnownPath> {
    network[ENDS[0]].endpoint.known_paths(network.now).next()
}

#[test]
fn a_known_path_of_600_ms_is_filled_three_round_trips_earlier() {
    let transfer = transfer(2_000_000, Congestion::Vj, link(10, 600), LossMeaning::Congestion);
    let (first, phases, network) = run(&transfer, None);
    assert_eq!(phases, [ResumePhase::UnknownPath]);
    // What it saw: 10 Mbit/s for 600 ms are 750,000 octets on the wire.
    let path = saved(&network).expect("it was observed");
    assert!((500_000..760_000).contains(&path.window), "{path:?}");
    assert!((600..640).contains(&path.rtt.as_millis()), "{path:?}");
    let (second, phases, _) = run(&transfer, Some(path));
    assert_eq!(phases, [Reconnaissance, Unvalidated, Validating, Validated]);
    println!("unknown {:?}, known {:?}", first.transfer, second.transfer);
    assert!(first.is_complete && second.is_complete);
    assert!(first.transfer > second.transfer + Duration::from_millis(3 * 600), "{first:?} {second:?}");
    assert_eq!(second.links[0].queue, 0, "the queue never overflowed");
}

#[test]
fn a_path_that_became_ten_times_slower_is_left_within_the_jump() {
    for congestion in [Congestion::Vj, Congestion::Vegas(VegasConfig::default())] {
        for loss in [LossMeaning::Congestion, LossMeaning::Corruption] {
            let transfer = transfer(2_000_000, congestion, link(1, 600), loss);
            let (plain, _, _) = run(&transfer, None);
            let (resumed, phases, network) = run(&transfer, Some(known(750_000, 600)));
            println!("{congestion:?} {loss:?}: {:?} {:?} {phases:?}", plain.transfer, resumed.transfer);
            println!("  lost {} and {}", plain.links[0].queue, resumed.links[0].queue);
            assert!(phases.contains(&ResumePhase::SafeRetreat) && phases.last() == Some(&ResumePhase::Retreated));
            // The jump was of 375,000 octets: 259 packets.
            assert!(resumed.is_complete && resumed.links[0].queue <= plain.links[0].queue + 259, "{resumed:?}");
            assert!(resumed.transfer < plain.transfer * 3 / 2, "{:?} {:?}", plain.transfer, resumed.transfer);
            // What failed is not tried again: the next begins with what this one saw.
            assert!(saved(&network).is_none_or(|path| path.window < 200_000), "{:?}", saved(&network));
        }
    }
}

#[test]
fn what_is_too_old_or_of_another_path_is_not_used() {
    let transfer = transfer(1_000_000, Congestion::Vj, link(10, 600), LossMeaning::Congestion);
    let plain = run(&transfer, None).0.transfer;
    let of = |path: KnownPath| {
        let (outcome, phases, _) = run(&transfer, Some(path));
        (outcome.transfer, *phases.last().unwrap())
    };
    let elsewhere = KnownPath::new(Network::address(0), Network::address(7), 750_000, Duration::from_millis(600));
    assert_eq!(of(elsewhere), (plain, ResumePhase::UnknownPath));
    assert_eq!(of(known(750_000, 600).lifetime(Duration::ZERO)), (plain, ResumePhase::UnknownPath));
    // It was there when the connection began, and not when it would have jumped.
    assert_eq!(of(known(750_000, 600).lifetime(Duration::from_millis(900))), (plain, ResumePhase::OtherPath));
    // The round trip is half of what it was, or more than ten of them.
    assert_eq!(of(known(750_000, 1300)), (plain, ResumePhase::OtherPath));
    assert_eq!(of(known(750_000, 50)), (plain, ResumePhase::OtherPath));
    assert_eq!(of(known(20_000, 600)), (plain, ResumePhase::NotNeeded));
}

#[test]
fn one_connection_at_a_time_uses_what_is_known() {
    let transfer = transfer(500_000, Congestion::Vj, link(10, 600), LossMeaning::Congestion);
    let mut network = transfer.begin_with(|host| host.endpoint.learn_path(Instant::ZERO, &known(750_000, 600)));
    let remote = network[ENDS[1]].address;
    let (config, now) = (transfer.sender.clone(), network.now);
    let second = network[ENDS[0]].endpoint.connect(now, (Network::address(0), 0), (remote, 80), config).unwrap();
    let resume = |network: &Network, id| network[ENDS[0]].endpoint.snapshot(id).unwrap().resume.unwrap();
    assert_eq!(resume(&network, second), ResumePhase::UnknownPath);
    let first = network[ENDS[0]].connection().unwrap();
    assert_eq!(resume(&network, first), ResumePhase::Reconnaissance);
    // One that ends untried leaves it for the next.
    network[ENDS[0]].endpoint.abort(now, first);
    assert_eq!(saved(&network).map(|path| path.window), Some(750_000));
}

#[test]
fn little_data_sends_no_more_than_there_is_and_keeps_what_was_saved() {
    let transfer = transfer(60_000, Congestion::Vj, link(10, 600), LossMeaning::Congestion);
    let (outcome, phases, network) = run(&transfer, Some(known(750_000, 600)));
    assert!(outcome.is_complete && !phases.contains(&ResumePhase::SafeRetreat), "{phases:?}");
    assert_eq!(saved(&network).map(|path| path.window), Some(750_000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The checks of each step are in `run`.
    #[test]
    fn on_any_path_the_jump_is_bounded_paced_and_left_after_a_loss(
        (mbit, rtt_ms, loss) in (1_u64..20, 40_u64..1500, prop_oneof![Just(0.0), 0.0..0.03]),
        (saved_kb, saved_rtt_ms) in (30_u64..3000, 20_u64..3000),
        is_vegas in any::<bool>(),
        is_corruption in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let congestion = if is_vegas { Congestion::Vegas(VegasConfig::default()) } else { Congestion::Vj };
        let meaning = if is_corruption { LossMeaning::Corruption } else { LossMeaning::Congestion };
        let link = LinkConfig { impairment: Impairment { loss, ..Impairment::default() }, ..link(mbit, rtt_ms) };
        let transfer = Transfer { seed, ..transfer(400_000, congestion, link, meaning) };
        let (outcome, phases, network) = run(&transfer, Some(known(saved_kb * 1000, saved_rtt_ms)));
        prop_assert!(outcome.is_complete);
        if rtt_ms * 2 + 200 < saved_rtt_ms {
            prop_assert!(!phases.contains(&Unvalidated), "{phases:?}");
        }
        let resends = outcome.sent.resends_by(Cause::Dupack) + outcome.sent.resends_by(Cause::Snack) + outcome.sent.rtos;
        if phases.contains(&SafeRetreat) {
            prop_assert!(resends > 0 && !phases.contains(&Validated), "{phases:?}");
            prop_assert!(saved(&network).is_none_or(|path| path.window != saved_kb * 1000));
        }
        if phases.contains(&OtherPath) {
            prop_assert!(!phases.contains(&Unvalidated) || phases.contains(&Retreated), "{phases:?}");
        }
    }
}
