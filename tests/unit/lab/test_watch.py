"""Samples of a network as lines of text: rates are those between two looks, losses have their causes."""

from scpslab.lab.watch import KEPT, Connection, DirectionSample, Sample, View, sparkline
from scpslab.plan.links import LOSS_CAUSES
from tests import golden


def sample(t_s: float, delivered_bytes: int, lost: dict[str, int] | None = None, acked: int = 1) -> Sample:
    """A look at one direction of 1 Mbit/s and one connection."""
    counters = {f"{cause}_packets": (lost or {}).get(cause, 0) for cause in LOSS_CAUSES}
    direction = DirectionSample("hop", "forward", 10**6, 3000, counters | {"delivered_bytes": delivered_bytes})
    info = {"bytes_acked": acked, "cwnd_segments": 10, "srtt_ms": 560.5, "retrans_total": 2}
    return Sample(t_s, (direction,), (("ws1", Connection("10.0.0.1:5001", "10.0.0.2:80", info)),))


def test_rates_are_those_between_two_looks_and_losses_have_their_causes():
    """A connection that has sent nothing is left out."""
    view, (first, second, *_) = View(), LOSS_CAUSES
    looks = sample(1.0, 0), sample(3.0, 125_000, {first: 2, second: 1}), sample(4.0, 125_000, acked=0)
    lines = [f"{look.t_s} s: {line}" for look in looks for line in view.lines(look)]
    golden.Case("samples of a network", "three looks").hold("\n".join(lines))


def test_only_the_recent_history_is_shown():
    view = View()
    for t_s in range(2 * KEPT):
        (line, _) = view.lines(sample(float(t_s), 125_000 * t_s))
    assert line.count("█") == KEPT
    assert sparkline([1.0, 2.0], 0) == "  "
