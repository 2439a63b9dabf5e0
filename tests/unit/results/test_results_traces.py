"""Series from connections: against the model that made the packets, and against numbers worked out by hand."""

import numpy as np
import pytest

from scpslab.analysis.capture import decode, read_packets, read_records
from scpslab.measure.connections import split_connections
from scpslab.measure.traces import (
    binned_rate,
    flight_bytes,
    flow_of,
    queue_estimate,
    round_trips,
    transfer_times,
)


@pytest.fixture
def captured(tmp_path, synthetic):
    """A function: a simulated transfer, captured at one of its ends and read again."""

    def read(where, **settings):
        transfer = synthetic.simulate(**{"total_bytes": 60_000, "mss": 1400, "losses": set(), **settings})
        path = tmp_path / f"{where}.pcap"
        synthetic.write_capture(path, getattr(transfer, where))
        (connection,) = split_connections(read_packets(path), synthetic.EPOCH_NS)
        return transfer, flow_of(connection)

    return read


@pytest.mark.parametrize("losses", [set(), {5}, {5, 6, 7}, {0}, {42}, {3, 9, 15, 21, 27}])
def test_every_retransmission_and_the_transfer_time_are_found_again(captured, losses):
    transfer, source = captured("source", losses=losses)
    assert int(source.is_repeated.sum()) == transfer.retransmissions
    assert source.total_bytes == 60_000
    _, sink = captured("sink", losses=losses)
    assert transfer_times(sink) == pytest.approx((transfer.first_data_s, transfer.last_ack_s), abs=1e-9)


def test_a_retransmission_that_arrives_in_order_again_is_no_second_one(captured):
    # Packet 10 is overtaken by packet 11: at the sink its bytes lie below the highest seen, at the source they do not.
    _, source = captured("source", swapped=frozenset({10}))
    _, sink = captured("sink", swapped=frozenset({10}))
    assert int(source.is_repeated.sum()) == 0
    assert int(sink.is_repeated.sum()) == 1


def test_flight_is_limited_by_the_window(captured):
    _, flow = captured("source", window_segments=8)
    _, flight = flight_bytes(flow)
    # Eight segments of 1400 bytes; the acknowledgement that makes room is processed before the new segment leaves.
    assert int(flight.max()) == 8 * 1400
    assert int(flight[-1]) == 0


def test_round_trips_are_delay_plus_serialisation_and_none_are_taken_around_losses(captured):
    _, clean = captured("source", window_segments=1)
    _, rtt_s = round_trips(clean)
    # 1400 + 56 bytes at 2 Mbit/s take 5.824 ms; one way is 265 ms; the last segment has 1200 bytes: 5.024 ms.
    assert rtt_s[:-1] == pytest.approx(0.535824, abs=1e-8)
    assert rtt_s[-1] == pytest.approx(0.535024, abs=1e-8)
    _, lossy = captured("source", losses={10})
    lossy_t_s, lossy_rtt_s = round_trips(lossy)
    assert lossy_rtt_s.max() < 2 * 0.53
    repaired_s = float(lossy.ack_t_s[np.flatnonzero(lossy.ack >= lossy.end[lossy.is_repeated][0])[0]])
    assert not np.any(lossy_t_s == repaired_s)


def test_the_queue_estimate_is_the_report_s(captured):
    _, flow = captured("source", window_segments=8)
    t_s, queue_bytes = queue_estimate(flow, 2_000_000)
    _, rtt_s = round_trips(flow)
    assert queue_bytes.max() == pytest.approx((rtt_s.max() - rtt_s.min()) * 250_000)
    # From four segments to eight every acknowledgement lets go of two: the last waits for four of 1456 bytes. The
    # smallest round trip is that of the last segment, 200 bytes shorter than the others.
    assert queue_bytes.max() == pytest.approx(4 * 1456 + 200, rel=1e-6)
    assert len(t_s) == len(queue_bytes)


def test_bins_hold_every_byte_once():
    t_s = np.array([0.0, 0.49999, 0.5, 1.2])
    edges, rate_bps = binned_rate(t_s, np.array([100, 100, 200, 300]), 0.5, 0.0, 1.2)
    assert edges.tolist() == [0.0, 0.5, 1.0]
    assert rate_bps.tolist() == [3200.0, 3200.0, 4800.0]


def test_a_capture_without_data_gives_empty_series():
    assert (
        split_connections(
            decode(read_records(b"\x4d\x3c\xb2\xa1\x02\0\x04\0" + bytes(8) + b"\xff\xff\0\0\x01\0\0\0", "x"))
        )
        == []
    )
