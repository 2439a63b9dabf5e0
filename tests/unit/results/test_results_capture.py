"""The capture reader against packets that dpkt built, and against garbage. Series from connections: against the model
that made the packets, and against numbers worked out by hand.
"""

import contextlib
import struct

import dpkt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scpslab.analysis.capture import decode, read_packets, read_records
from scpslab.core.errors import ResultError
from scpslab.measure.connections import SYN, split_connections
from scpslab.measure.traces import (
    binned_rate,
    flight_bytes,
    flow_of,
    queue_estimate,
    round_trips,
    transfer_times,
)


def pcap(frames, *, link_type=1, magic=0xA1B23C4D, order="<", t_ns=None):
    """A pcap file of whole frames, one nanosecond apart."""
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link_type)]
    for index, frame in enumerate(frames):
        fraction = index if t_ns is None else t_ns[index]
        parts.append(struct.pack(order + "IIII", 1_700_000_000, fraction, len(frame), len(frame)) + frame)
    return b"".join(parts)


def packet(seq, payload=b"", *, ack=0, flags=dpkt.tcp.TH_ACK, opts=b"", reverse=False, window=1000):
    """An IPv4 packet with TCP."""
    ports = (5001, 40001) if reverse else (40001, 5001)
    numbers = {"seq": seq % 2**32, "ack": ack % 2**32, "flags": flags, "win": window}
    tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], **numbers, opts=opts, data=payload)
    tcp.off = 5 + len(opts) // 4
    ends = (b"\x0a\x02\0\x02", b"\x0a\x01\0\x01") if reverse else (b"\x0a\x01\0\x01", b"\x0a\x02\0\x02")
    ip = dpkt.ip.IP(src=ends[0], dst=ends[1], p=6, data=tcp)
    ip.len = len(bytes(ip))
    return bytes(ip)


def ethernet(ip, tags=b""):
    return bytes(12) + tags + b"\x08\x00" + ip


def frame(seq, payload=b"", **fields):
    """Such a packet over Ethernet."""
    return ethernet(packet(seq, payload, **fields))


def packets_of(*frames):
    return decode(read_records(pcap(frames), "x"))


def connection_of(*frames):
    (connection,) = split_connections(packets_of(*frames))
    return connection


@pytest.mark.parametrize(
    ("link_type", "header"),
    [
        (1, bytes(12) + b"\x08\x00"),
        (1, bytes(12) + b"\x81\x00\x00\x05\x08\x00"),
        (101, b""),
        (12, b""),
        (228, b""),
        (113, bytes(14) + b"\x08\x00"),
        (276, b"\x08\x00" + bytes(18)),
    ],
)
def test_every_link_type_gives_the_same_packets(link_type, header):
    packets = decode(read_records(pcap([header + packet(7, b"abc", ack=9)], link_type=link_type), "x"))
    found = (packets.seq, packets.ack, packets.payload_bytes, packets.ip_bytes)
    assert [int(value[0]) for value in found if len(value) == 1] == [7, 9, 3, 43]


@pytest.mark.parametrize(
    ("order", "magic", "unit_ns"),
    [("<", 0xA1B23C4D, 1), (">", 0xA1B23C4D, 1), ("<", 0xA1B2C3D4, 1000), (">", 0xA1B2C3D4, 1000)],
)
def test_both_byte_orders_and_resolutions_give_nanoseconds(order, magic, unit_ns):
    packets = decode(read_records(pcap([frame(1)], order=order, magic=magic, t_ns=[123_456]), "x"))
    assert packets.t_ns.tolist() == [1_700_000_000 * 10**9 + 123_456 * unit_ns]


def test_a_record_cut_short_is_left_out_and_said_so():
    whole = pcap([frame(1, b"a"), frame(2, b"b")])
    packets = decode(read_records(whole[:-5], "x"))
    assert packets.seq.tolist() == [1]
    assert packets.is_truncated
    assert not decode(read_records(whole, "x")).is_truncated


def test_a_short_snap_length_keeps_the_true_payload_size():
    whole = frame(1, bytes(1400))
    header = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
    packets = decode(read_records(header + struct.pack("<IIII", 0, 0, 60, len(whole)) + whole[:60], "x"))
    assert packets.payload_bytes.tolist() == [1400]


def test_the_window_scale_of_a_syn_is_read_wherever_it_stands():
    mss, scale = b"\x02\x04\x05\x78", b"\x03\x03\x07\x01"
    stamps, sack = b"\x08\x0a" + struct.pack(">II", 11, 22) + b"\x01\x01", b"\x04\x02\x01\x01"
    packets = packets_of(
        frame(1, flags=SYN, opts=mss + scale),
        frame(1, flags=SYN, opts=stamps + sack + scale),
        frame(1, flags=SYN, opts=mss + sack),
        # RFC 7323 section 2.2: it means something in a SYN alone.
        frame(1, opts=scale),
    )
    assert packets.window_scale.tolist() == [7, 7, -1, -1]


def test_scps_tp_is_read_like_tcp():
    ip = bytearray(packet(7, b"abc", ack=9))
    ip[9] = 106
    assert connection_of(ethernet(bytes(ip))).payload_bytes.tolist() == [3]


def test_ipv6_arp_and_later_fragments_are_not_read():
    fragment = bytearray(packet(1, b"a"))
    fragment[7] = 5
    ipv6, arp = bytes(12) + b"\x86\xdd" + bytes(60), bytes(12) + b"\x08\x06" + bytes(40)
    packets = packets_of(ethernet(bytes(fragment)), ipv6, arp, frame(2))
    assert packets.seq.tolist() == [2]


def test_sequence_numbers_are_relative_across_the_wrap():
    isn = 2**32 - 3
    connection = connection_of(
        frame(isn, flags=SYN),
        frame(77, ack=isn + 1, flags=SYN | dpkt.tcp.TH_ACK, reverse=True),
        frame(isn + 1, b"ab", ack=78),
        frame(isn + 3, b"cdef", ack=78),
        frame(78, ack=isn + 7, reverse=True),
        frame(isn + 3, b"cdef", ack=78),
    )
    assert connection.seq.tolist() == [-1, -1, 0, 2, 0, 2]
    assert connection.ack.tolist() == [-1, 0, 0, 0, 6, 0]
    assert (connection.client_ip, connection.client_port) == ("10.1.0.1", 40001)
    assert (connection.server_ip, connection.server_port) == ("10.2.0.2", 5001)
    assert flow_of(connection).is_repeated.tolist() == [False, False, True]


def test_without_a_syn_the_lowest_byte_is_the_first():
    connection = connection_of(frame(5010, b"b" * 10), frame(5000, b"a" * 10), frame(1, ack=5020, reverse=True))
    assert connection.seq.tolist() == [10, 0, 0]
    assert connection.ack.tolist()[2] == 20
    assert connection.client_port == 40001


def test_windows_are_scaled_only_when_both_ends_offered_it_and_never_on_a_syn():
    scale = b"\x03\x03\x02\x01"
    for answer, windows in ((scale, [1000, 1000, 4000]), (b"", [1000, 1000, 1000])):
        connection = connection_of(
            frame(0, flags=SYN, opts=scale),
            frame(0, ack=1, flags=SYN | dpkt.tcp.TH_ACK, opts=answer, reverse=True),
            frame(1, ack=1, reverse=True),
        )
        assert connection.window_bytes.tolist() == windows


def test_connections_are_kept_apart_in_the_order_of_their_first_packet():
    other = dpkt.ip.IP(
        src=b"\x0a\x01\0\x03", dst=b"\x0a\x02\0\x02", p=6, data=dpkt.tcp.TCP(sport=1, dport=5001, seq=4, flags=SYN)
    )
    other.len = len(bytes(other))
    frames = [frame(1, b"x"), ethernet(bytes(other)), frame(2, b"x")]
    assert [connection.client_port for connection in split_connections(decode(read_records(pcap(frames), "x")))] == [
        40001,
        1,
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "found 0 bytes"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "pcapng"),
        (b"PK\x03\x04" + bytes(40), "magic number"),
        (pcap([], link_type=147), "link type 147"),
        (pcap([]) + struct.pack("<IIII", 0, 0, 2**31, 4), "record 1"),
    ],
)
def test_what_is_no_capture_is_named(content, said):
    with pytest.raises(ResultError, match=said):
        decode(read_records(content, "x.pcap"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ResultError, match=r"nowhere\.pcap"):
        read_packets(tmp_path / "nowhere.pcap")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([None, 1, 101, 113, 276]))
def test_garbage_gives_packets_or_a_result_error(garbage, link_type):
    content = garbage if link_type is None else pcap([], link_type=link_type) + garbage
    with contextlib.suppress(ResultError):
        split_connections(decode(read_records(content, "x")))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 120), st.binary(min_size=1, max_size=8)), max_size=6), st.integers(0, 250))
def test_damaged_packets_never_raise(damages, cut):
    frames = [bytearray(frame(1, bytes(20), opts=b"\x01\x01\x05\x0a" + bytes(8))) for _ in range(3)]
    for index, (at, octets) in enumerate(damages):
        frames[index % 3][at : at + len(octets)] = octets
    content = pcap([bytes(frame) for frame in frames])
    try:
        for connection in split_connections(decode(read_records(content[: len(content) - cut], "x")), 0):
            flow = flow_of(connection)
            assert len(flow.order) == len(flow.t_s) + len(flow.ack_t_s)
    except ResultError:
        pass


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
