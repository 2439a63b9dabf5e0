"""iperf3 in virtual time: it ends when its size is sent, whichever way it goes, and also where the answers of the other
end take longer than its timers.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.conftest import capture

pytestmark = pytest.mark.lab
SIZE_BYTES = 600_000
RATE_BPS = 2_000_000
# The default way: 250 ms each way.
ROUND_TRIP_S = 0.5
START_S = 1
# What a packet of the transfer has, and none of the control connection.
DATA_BYTES = 1000
# Two connections, the slow start, and what is lost in it.
SLACK_S = 10 * ROUND_TRIP_S


def iperf3(**changes: Any) -> dict[str, Any]:
    """A workload over TCP, from h1 to h2, that ends with a size unless `changes` say otherwise."""
    common = {
        "name": "flow",
        "kind": "iperf3",
        "from": "h1",
        "to": "h2",
        "to_ip": "10.0.0.2",
        "start_ns": START_S * 10**9,
        "required": True,
        "port": 5201,
    }
    end = {"duration_ns": None, "bytes": SIZE_BYTES, "patience_ns": 300 * 10**9}
    how = {"congestion": None, "segment_bytes": None, "reverse": False, "udp_rate_bps": None, "parallel": 1}
    return common | end | how | changes


def result(outcome: Any) -> dict[str, Any]:
    """iperf3's own result."""
    (line,) = outcome.records("flow")
    found: dict[str, Any] = line["result"]
    return found


@pytest.mark.parametrize(
    ("reverse", "parallel", "congestion"),
    [
        (False, 1, "cubic"),
        (True, 1, "cubic"),
        (False, 4, "cubic"),
        (True, 4, "cubic"),
        (False, 1, "bbr"),
        (True, 1, "bbr"),
    ],
)
def test_a_size_ends_when_it_is_sent(run_link, reverse, parallel, congestion):
    """The sender hands over the size, parallel ones at most a sixteenth more, in the time that the link needs for
    it.
    """
    receiver = "h1" if reverse else "h2"
    outcome = run_link([iperf3(reverse=reverse, parallel=parallel, congestion=congestion)], (capture(receiver),))

    assert outcome.status["status"] == "completed"
    end = result(outcome)["end"]
    most_bytes = SIZE_BYTES + (10 if parallel == 1 else SIZE_BYTES / 16 + 100)
    assert SIZE_BYTES <= end["sum_sent"]["bytes"] <= most_bytes
    times = outcome.arrival_s(receiver)[outcome.packets(receiver).payload_bytes > DATA_BYTES]
    least_s = SIZE_BYTES * 8 / RATE_BPS
    assert least_s <= times[-1] - START_S <= least_s + SLACK_S


@pytest.mark.parametrize("size", [1, 1000, 131_073])
def test_a_small_size_is_sent_exactly(run_link, size):
    """No block of 128 KiB goes out in place of the size asked for."""
    outcome = run_link([iperf3(bytes=size)])

    assert outcome.status["status"] == "completed"
    assert size <= result(outcome)["end"]["sum_sent"]["bytes"] <= size + 1


def test_the_same_size_twice_gives_the_same_bytes(run_link):
    """Capture and record."""
    first, second = (run_link([iperf3(parallel=2)], (capture("h2"),)) for _ in range(2))

    for name in ("captures/h2.pcap", "records/flow.jsonl", "records/accounting.jsonl"):
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes(), name


def test_round_trips_longer_than_the_timers_of_iperf3(run_link):
    """Three seconds for every answer, where its timers are due each second."""
    outcome = run_link([iperf3(bytes=None, duration_ns=10 * 10**9)], data_delay="1500 ms", ack_delay="1500 ms")

    assert outcome.status["status"] == "completed"
    assert result(outcome)["end"]["sum_sent"]["seconds"] == pytest.approx(10, abs=0.1)
