"""iperf3 in virtual time: it ends when its size is sent, either way, and where answers take longer than its timers."""

from typing import Any

import pytest

from tests.lab.conftest import HOP, START, capture

SIZE_BYTES = 600_000
RATE_BPS = 2_000_000
# The default way: 250 ms each way.
ROUND_TRIP_S = 0.5
# What a packet of the transfer has, and none of the control connection.
DATA_BYTES = 1000
# Two connections, the slow start, and what is lost in it.
SLACK_S = 10 * ROUND_TRIP_S


def iperf3(**changes: Any) -> dict[str, Any]:
    """A workload over TCP, from h1 to h2, that ends with a size unless `changes` say otherwise."""
    common = {"name": "flow", "kind": "iperf3", "port": 5201} | HOP | START
    end = {"duration_ns": None, "bytes": SIZE_BYTES, "timeout_ns": 300 * 10**9}
    how = {"congestion_control": None, "segment_bytes": None, "reverse": False, "udp_rate_bps": None, "parallel": 1}
    return common | end | how | changes


def ended(cell: Any, name: str = "flow") -> dict[str, Any]:
    """The end of iperf3's own result."""
    assert cell.status == "completed"
    return dict(cell.line(name)["result"]["end"])


@pytest.mark.parametrize(("parallel", "congestion"), [(1, "cubic"), (4, "cubic"), (1, "bbr")])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_size_ends_when_it_is_sent(run_link, reverse, parallel, congestion):
    """The sender hands over the size, parallel ones at most a sixteenth more, in the time that the link needs for it."""
    receiver = "h1" if reverse else "h2"
    cell = run_link([iperf3(reverse=reverse, parallel=parallel, congestion_control=congestion)], capture(receiver))

    most_bytes = SIZE_BYTES + (10 if parallel == 1 else SIZE_BYTES / 16 + 100)
    assert SIZE_BYTES <= ended(cell)["sum_sent"]["bytes"] <= most_bytes
    times = cell.arrival_s(receiver)[cell.packets(receiver).payload_bytes > DATA_BYTES]
    least_s = SIZE_BYTES * 8 / RATE_BPS
    assert least_s <= times[-1] - 1 <= least_s + SLACK_S


def test_small_sizes_are_sent_exactly(run_link):
    """No block of 128 KiB goes out in place of the size asked for."""
    sizes = {f"flow-{port}": (port, size) for port, size in enumerate((1, 1000, 131_073), 5201)}
    cell = run_link([iperf3(name=name, port=port, bytes=size) for name, (port, size) in sizes.items()])
    for name, (_, size) in sizes.items():
        assert size <= ended(cell, name)["sum_sent"]["bytes"] <= size + 1


def test_round_trips_longer_than_the_timers_of_iperf3(run_link):
    """Three seconds for every answer, where its timers are due each second."""
    cell = run_link([iperf3(bytes=None, duration_ns=10 * 10**9)], forward_delay="1500 ms", return_delay="1500 ms")

    assert ended(cell)["sum_sent"]["seconds"] == pytest.approx(10, abs=0.1)


@pytest.mark.parametrize("parallel", [1, 4])
def test_the_rate_of_datagrams_is_that_of_all_streams_together(run_link, parallel):
    asked = {"bytes": None, "duration_ns": 10 * 10**9, "udp_rate_bps": RATE_BPS // 2, "segment_bytes": 1000}
    cell = run_link([iperf3(parallel=parallel, **asked)])
    assert ended(cell)["sum_sent"]["bits_per_second"] == pytest.approx(RATE_BPS // 2, rel=0.02)
