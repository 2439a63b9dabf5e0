//! What reports, resends and acknowledgements make of the segments.

use super::*;
use proptest::prelude::*;

const T: fn(u64) -> Instant = Instant::from_millis;
const MS: fn(u64) -> Duration = Duration::from_millis;

fn board(n: u64) -> Scoreboard {
    let mut b = Scoreboard::new(usize::MAX);
    for i in 0..n {
        b.push(1 + i * 100, 101 + i * 100, T(i), false);
    }
    b
}

#[test]
fn acknowledgement_releases_and_reports_the_newest() {
    let mut b = board(3);
    let o = b.ack_to(201, T(50), None, |_| false);
    assert_eq!((o.octets, o.newest.map(|d| d.order), b.flight_size()), (200, Some(1), 100));
}

#[test]
fn a_partial_acknowledgement_keeps_the_rest() {
    let mut b = board(1);
    assert_eq!(b.ack_to(31, T(50), None, |_| false).octets, 30);
    assert_eq!((b.flight_size(), b.front().map(|s| s.start)), (70, Some(31)));
}

#[test]
fn a_snack_marks_only_its_hole_and_respects_the_embargo() {
    let mut b = board(5);
    assert_eq!(b.snack(101, 301, T(50), MS(40), false), Some(301));
    assert_eq!(b.next_lost().map(|s| s.start), Some(101));
    b.on_resent(101, T(51), Some(MS(40)), 4);
    b.on_resent(201, T(51), Some(MS(40)), 4);
    assert_eq!(b.snack(101, 301, T(60), MS(40), false), None);
    assert_eq!(b.next_embargo(), Some(T(91)));
    assert_eq!(b.snack(101, 301, T(91), MS(40), false), Some(301));
}

#[test]
fn later_transmissions_that_arrive_reveal_losses() {
    let mut b = board(5);
    let mut o = Outcome::default();
    b.sack(401, 501, T(50), None, &mut o);
    assert_eq!(b.detect(3, Cause::Dupack), Some(201));
    assert_eq!(b.detect(1, Cause::Dupack), Some(401));
    // A resend that arrives reveals nothing about the segments sent after it.
    b.on_resent(1, T(51), None, 4);
    b.push(501, 601, T(52), false);
    b.sack(1, 101, T(90), None, &mut o);
    assert_eq!(b.detect(1, Cause::Dupack), None);
}

#[test]
fn the_cost_of_an_acknowledgement_does_not_grow_with_the_window() {
    const SEGMENTS: u64 = 20_000;
    let mut b = board(SEGMENTS);
    let mut o = Outcome::default();
    // The first is lost, and each that arrives is reported in a block that grows.
    for i in 1..SEGMENTS {
        b.sack(101, 101 + i * 100, T(SEGMENTS + i), None, &mut o);
        b.detect(3, Cause::Dupack);
    }
    assert!(b.visits < 5 * SEGMENTS as usize, "{} visits", b.visits);
    // A peer repeats four blocks over all of it.
    let before = b.visits;
    for _ in 0..1000 {
        for quarter in 0..4 {
            let left = 101 + quarter * SEGMENTS / 4 * 100;
            b.sack(left, (left + SEGMENTS / 4 * 100).min(1 + SEGMENTS * 100), T(90_000), None, &mut o);
        }
        b.detect(3, Cause::Dupack);
    }
    assert!(b.visits - before < 10_000, "{} visits", b.visits - before);
    assert_eq!((b.next_lost().map(|s| s.start), o.octets), (Some(1), (SEGMENTS - 1) * 100));
}

#[test]
fn what_is_sacked_is_kept_as_runs() {
    let mut b = board(10);
    let mut o = Outcome::default();
    for i in [2, 4, 3, 7, 0] {
        b.sack(1 + i * 100, 101 + i * 100, T(50), None, &mut o);
    }
    let runs = |b: &Scoreboard| b.sacked.iter().map(|run| (*run.0, *run.1)).collect::<Vec<_>>();
    assert_eq!(runs(&b), [(1, 101), (201, 501), (701, 801)]);
    b.ack_to(351, T(60), None, |_| false);
    assert_eq!(runs(&b), [(351, 501), (701, 801)]);
    b.forget_sacks();
    assert_eq!((runs(&b), b.flight_size()), (Vec::new(), 650));
    b.sack(901, 1001, T(70), None, &mut o);
    assert_eq!(b.detect(1, Cause::Dupack), Some(901), "what was sacked may be found lost");
}

#[test]
fn a_hole_that_is_reported_again_and_again_is_looked_at_once() {
    const SEGMENTS: u64 = 10_000;
    let mut b = board(SEGMENTS);
    for i in 0..100 {
        b.snack(1, 1 + (SEGMENTS + i) * 100, T(SEGMENTS + i), MS(500), false);
        b.on_resent(1 + i * 100, T(SEGMENTS + i), Some(MS(500)), 4);
        b.push(1 + (SEGMENTS + i) * 100, 101 + (SEGMENTS + i) * 100, T(SEGMENTS + i), false);
    }
    assert!(b.visits < SEGMENTS as usize + 200, "{} visits", b.visits);
}

proptest! {
    #[test]
    fn a_report_of_a_hole_leaves_nothing_there_that_may_be_resent(
        steps in proptest::collection::vec((0u8..12, 0u64..90, 1u64..90, 1u64..300), 1..200),
    ) {
        let (mut b, mut end, mut now) = (board(40), 4001, 100);
        for (what, at, len, ms) in steps {
            let (left, right, patience) = (1 + at * 50, 1 + (at + len) * 50, MS(100 + ms % 3 * 100));
            match what {
                0 => {
                    b.push(end, end + 100, T(now), false);
                    end += 100;
                }
                1 => {
                    b.ack_to(left.min(end) / 4, T(now), None, |_| false);
                }
                2 => b.sack(left, right, T(now), None, &mut Outcome::default()),
                3 => b.forget_sacks(),
                4 => b.presume(left, right, T(now), patience),
                5 => {
                    b.expire_embargoes(T(now));
                    b.mark_tail(Cause::TailProbe);
                }
                6 => {
                    if let Some(lost) = b.next_lost() {
                        b.split(lost.start, len);
                    }
                }
                7 => now += ms,
                _ => {
                    for _ in 0..len {
                        let Some(lost) = b.next_lost() else { break };
                        b.on_resent(lost.start, T(now), Some(MS(ms)), 4);
                    }
                    now += ms / 8;
                }
            }
            b.snack(left, right, T(now), patience, false);
            for s in b.segments.iter().filter(|s| s.start < right && s.end > left) {
                let is_out = matches!(s.fate, Fate::InFlight | Fate::Presumed);
                let may_be_resent = is_out && (s.transmissions == 1 || T(now).since(s.sent_at) >= patience);
                prop_assert!(!may_be_resent, "{s:?} after a report of {left}:{right} at {now}");
            }
        }
    }
}

#[test]
fn a_resend_acknowledged_too_soon_is_superfluous() {
    let mut b = board(2);
    b.snack(1, 101, T(10), MS(0), false);
    b.on_resent(1, T(10), None, 4);
    let o = b.ack_to(101, T(15), Some(MS(20)), |_| false);
    assert_eq!((o.superfluous, o.newest), (1, None));
}

#[test]
fn the_double_retransmission_defect_sends_two_copies() {
    let mut b = board(1);
    b.snack(1, 101, T(10), MS(0), true);
    b.on_resent(1, T(10), Some(MS(50)), 4);
    assert_eq!(b.next_lost().map(|s| s.cause), Some(Cause::Double));
    b.on_resent(1, T(10), Some(MS(50)), 4);
    assert!(b.next_lost().is_none());
}

#[test]
fn splitting_keeps_the_sums() {
    let mut b = board(1);
    b.mark_front(Cause::Rto, false);
    b.split(1, 40);
    assert_eq!((b.len(), b.flight_size()), (2, 0));
    b.on_resent(1, T(5), None, 4);
    assert_eq!((b.flight_size(), b.next_lost().map(|s| (s.start, s.end))), (40, Some((41, 101))));
}
