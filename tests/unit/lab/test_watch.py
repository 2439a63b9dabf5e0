"""Samples of a network as lines of text: rates are those between two looks, losses have their causes."""

from scpslab.lab.watch import KEPT, Connection, DirectionSample, Sample, View, sparkline
from scpslab.plan.links import LOSS_CAUSES


def sample(t_s: float, delivered_bytes: int, lost: dict[str, int] | None = None, acked: int = 1) -> Sample:
    """A look at one direction of 1 Mbit/s and one connection."""
    counters = {f"{cause}_packets": (lost or {}).get(cause, 0) for cause in LOSS_CAUSES}
    direction = DirectionSample("hop", "forward", 10**6, 3000, counters | {"delivered_bytes": delivered_bytes})
    info = {"bytes_acked": acked, "cwnd_segments": 10, "srtt_ms": 560.5, "retrans_total": 2}
    return Sample(t_s, (direction,), (("ws1", Connection("10.0.0.1:5001", "10.0.0.2:80", info)),))


def test_a_rate_is_that_between_two_looks():
    view = View()
    (first, _), (second, _) = view.lines(sample(1.0, 0)), view.lines(sample(3.0, 125_000))
    assert " 0.0 kbit/s   queue     3000 B   lost 0" in first
    assert second.startswith("hop forward ")
    assert " 500.0 kbit/s " in second
    assert "▄ " in second


def test_losses_have_their_causes():
    first, second, *_ = LOSS_CAUSES
    (line, _) = View().lines(sample(1.0, 0, {first: 2, second: 1}))
    assert line.endswith(f"lost 3 ({first} 2, {second} 1)")


def test_a_connection_that_has_sent_nothing_is_left_out():
    view = View()
    (_, line) = view.lines(sample(1.0, 0))
    assert line.startswith("ws1:5001 10.0.0.2:80 ")
    assert line.endswith("cwnd    10   rtt 560.5 ms   retransmitted 2")
    assert len(view.lines(sample(2.0, 0, acked=0))) == 1


def test_only_the_recent_history_is_shown():
    view = View()
    for t_s in range(2 * KEPT):
        (line, _) = view.lines(sample(float(t_s), 125_000 * t_s))
    assert line.count("█") == KEPT
    assert sparkline([1.0, 2.0], 0) == "  "
