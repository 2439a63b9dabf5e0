"""What appendix A reads off its figures, from transfers whose course is known."""

import csv

import numpy as np
import pytest

from scpslab.analysis import collect
from tests.runs import write_record

from scpslab.kinds.workloads.bulk.metrics import flights

AXES = {"stack": "reno", "ber": "0"}


@pytest.fixture
def row(tmp_path, synthetic):
    """The row of one simulated transfer, of 200,000 bytes unless said otherwise."""

    def measure(losses=(), *, queue=None, total_bytes=200_000, **settings):
        run = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        run.mkdir()
        (run / "manifest.json").write_text('{"format": 1}')
        transfer = synthetic.simulate(total_bytes, 1400, set(losses), **settings)
        cell = synthetic.write_cell(run, AXES, 1, transfer, total_bytes=total_bytes)
        if queue is not None:
            lines = [{"t_s": t / 100, "packets": 0, "bytes": queue(t / 100)} for t in range(2000)]
            write_record(cell, "hop-queue", lines)
        with collect(run).open(newline="") as file:
            return next(csv.DictReader(file))

    return measure


def test_a_pause_ends_a_flight():
    assert flights(np.array([0.0, 0.1, 0.2, 1.0, 1.1, 5.0]), 0.5) == [3, 2, 1]
    assert flights(np.array([1.0]), 0.5) == [1]


def test_a_transfer_without_loss(row):
    """The model adds a segment for every acknowledgement, of 20 bytes of IP, 20 of TCP and 12 of options; the sink
    answers at once.
    """
    found = row()
    assert [found[f"flight_{index}_segments"] for index in range(1, 5)] == ["1", "2", "4", "8"]
    assert float(found["first_ack_delay_s"]) == pytest.approx(0, abs=1e-6)
    assert found["ack_bytes"] == "52"
    unsaid = ("repair_s", "longest_silence_s", "burst_segments", "window_growth_segments_per_s")
    unsaid += ("flight_share_after_recovery", "rate_congestion_r")
    assert {name: found[name] for name in unsaid} == dict.fromkeys(unsaid, "")


def test_a_window_limits_the_final_rate_and_slow_start_its_beginning(row):
    """Sixteen segments of 11,200 bit in a round trip of 2 * 0.265 s and one packet's 5.824 ms; the window is open after
    four round trips.
    """
    found = row(window_segments=16, total_bytes=1_000_000)
    round_trip_s = 0.53 + 1456 * 8 / 2e6

    # The half in time need not fall between two of its 45 windows.
    assert float(found["final_rate_bps"]) == pytest.approx(16 * 1400 * 8 / round_trip_s, rel=0.5 / 22)
    assert 4 * round_trip_s <= float(found["linear_from_s"]) <= 7 * round_trip_s
    assert float(found["peak_rate_bps"]) >= float(found["final_rate_bps"])


def test_one_segment_is_acknowledged_in_the_second_half_of_its_time(row):
    """Nothing is in the first: all of it in half a round trip of 0.53 s and one packet's time."""
    found = row(total_bytes=1000)
    round_trip_s = 0.53 + 1056 * 8 / 2e6
    assert float(found["final_rate_bps"]) == pytest.approx(2 * 8000 / round_trip_s, rel=0.01)


def test_a_loss_is_repaired_after_a_round_trip(row):
    """Three duplicates come with the three packets behind the lost one: a round trip and three packet times at most."""
    found = row(losses=[40])

    assert 0.53 <= float(found["repair_s"]) <= 0.53 + 5 * 1456 * 8 / 2e6
    assert int(found["burst_segments"]) >= 1
    assert float(found["longest_silence_s"]) > 0


def test_the_true_queue_is_averaged_over_the_transfer(row):
    """5000 bytes during the transfer, nothing before and after: the average is of the transfer alone."""
    found = row(queue=lambda t_s: 5000 if t_s > 1.5 else 0)

    assert float(found["queue_mean_bytes"]) == pytest.approx(5000, rel=0.01)
    assert row(queue=lambda t_s: 0)["queue_estimate_r"] == ""


def test_an_estimate_that_follows_the_queue_correlates(row):
    """Slow start without a limit passes what the path holds, and the queue grows from then on: a depth that grows goes
    with it, one that falls against.
    """
    grown, fallen = (
        row(window_segments=1000, total_bytes=1_000_000, queue=lambda t_s, sign=sign: sign * t_s * 1e4)
        for sign in (1, -1)
    )

    assert float(grown["queue_estimate_r"]) > 0.8
    assert float(fallen["queue_estimate_r"]) < -0.8
    assert float(grown["queue_end_packets"]) > float(row(window_segments=8)["queue_end_packets"])


def test_half_of_the_flight_is_left_after_a_loss(row):
    """The model halves its window of 64 segments, in which growth of a second adds little, and fills it again at
    once.
    """
    found = row(losses=[300], window_segments=64, total_bytes=2_000_000)

    assert 0.4 <= float(found["flight_share_after_recovery"]) <= 1
