"""What is measured from a record of packets, made by hand: against what was put in, and against a capture of the same.
What the slowest hop offers over a span of time: events change rates. Fates and repairs from a record, against what
a small TCP lost and sent again.
"""

import gc
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from scpslab.analysis.collect import measure
from scpslab.analysis.metrics.base import Subject, Unknown
from scpslab.analysis.metrics.data_flows import data_connection
from scpslab.analysis.run import View, bottleneck, bottleneck_bps, open_cell, steady_bps
from scpslab.measure.connections import RST, SYN, split_connections
from scpslab.measure.losses import NOBODY, Fates, origins, resends
from scpslab.measure.packets import read
from scpslab.measure.record import Record
from scpslab.measure.traces import flow_of, new_bytes, round_trips, time_average, transfer_times
from scpslab.plan.cell import Impairment
from scpslab.plan.disciplines import Queue
from scpslab.plan.events import LinkStep
from scpslab.plan.links import Direction, End, Link
from scpslab.plan.network import NetworkPlan
from scpslab.plan.profiles import Profile
from tests.made_records import Line, packets, tcp, written

from scpslab.kinds.workloads.iperf3 import metrics as iperf3

MS = 10**6
THERE, BACK = (("10.0.0.1", 40_000), ("10.0.0.2", 5001)), (("10.0.0.2", 5001), ("10.0.0.1", 40_000))
ACK = 0x10
# Known only from the record, and the word that captures lack it.
OF_RECORDS = {"queue_mean_bytes", "queue_estimate_r", "unmeasured"}


class TwoHosts:
    """As much of a plan's network as a record needs: h1 and h2, and a link between them."""

    def __init__(self, discipline: str = "drop-tail") -> None:
        queue = Queue(limit_bytes=10_000) if discipline == "drop-tail" else None
        ways = (("forward", "h1", "h2"), ("return", "h2", "h1"))
        directions = tuple(Direction(name, 8_000_000, 0, queue, from_=near, to=far) for name, near, far in ways)
        ends = tuple(
            End(node=f"h{number}", interface="eth0", mac=f"02:00:00:00:00:0{number}", ip=f"10.0.0.{number}/24")
            for number in (1, 2)
        )
        self.links = (
            Link(name="hop", via=None, mtu_bytes=1500, ends=ends, relay_interfaces=None, directions=directions),
        )


def record_of(forward: list[Line], back: list[Line] = ()) -> Record:
    """A record of the link's two directions."""
    network: NetworkPlan = TwoHosts()
    return Record([packets("hop", "forward", forward), packets("hop", "return", list(back))], network, {})


def data(offered_ms: float, number: int, **what) -> Line:
    """A segment of 1000 bytes; number 0 is the first."""
    offered = round(offered_ms * MS)
    given = {"wire": 1040, "payload": 1000, "sequence": 1 + 1000 * number, "flags": ACK}
    return Line(tcp(*THERE), offered, **{"arrived": offered + 100 * MS} | given | what)


def syn(offered_ms: float) -> Line:
    """The first packet."""
    return data(offered_ms, 0, payload=0, wire=40, sequence=0, flags=SYN)


def ack(offered_ms: float, number: int) -> Line:
    """The acknowledgement of so many segments."""
    offered = round(offered_ms * MS)
    return Line(
        tcp(*BACK), offered, offered + 100 * MS, wire=40, sequence=1, acknowledgement=1 + 1000 * number, flags=ACK
    )


def sent_by(record: Record, **how):
    """The one connection as the sender saw it."""
    (connection,) = split_connections(record.seen_at("h1", **how), 0)
    return flow_of(connection)


def test_a_written_record_is_read_back(tmp_path):
    there = [syn(0), data(1, 0, due=3 * MS, left=4 * MS, waited=7), data(1, 1, fate="queue", arrived=None), data(9, 1)]
    its = [packets("hop", "forward", there, duplicates=[5]), packets("hop", "return", [ack(2, 0), ack(2, 1)])]
    (tmp_path / "packets.rec").write_bytes(written(its))

    for one, again in zip(its, read(tmp_path / "packets.rec"), strict=True):
        for name, value in vars(one).items():
            assert np.array_equal(value, getattr(again, name)), name


def test_columns_from_the_record_are_those_of_whole_captures(synthetic, tmp_path):
    """Where no queue of the sender's own makes a difference."""
    transfer = synthetic.simulate(60_000, 1400, {7, 20, 21})
    of_record, of_captures = (
        measure(open_cell(synthetic.write_cell(tmp_path / name, {"stack": "reno"}, 1, transfer, is_recorded=is_there)))
        for name, is_there in (("record", True), ("captures", False))
    )
    assert of_record["capture_retransmissions"] == transfer.retransmissions == 3
    differ = {name for name in of_captures if of_captures[name] != of_record[name]}
    assert differ <= OF_RECORDS


def test_a_filtered_capture_changes_nothing(synthetic, tmp_path):
    """And without a record it is not looked at: it does not say what it has not seen."""
    transfer = synthetic.simulate(60_000, 1400, {7})
    found = {}
    for is_there in (True, False):
        cell = synthetic.write_cell(tmp_path / str(is_there), {"stack": "reno"}, 1, transfer, is_recorded=is_there)
        plan = (cell / "plan.json").read_text()
        assert plan.count('"filter": ""') >= 2
        (cell / "plan.json").write_text(plan.replace('"filter": ""', '"filter": "tcp"'))
        found[is_there] = measure(open_cell(cell))
    assert found[True]["capture_retransmissions"] == transfer.retransmissions
    assert found[False].get("capture_retransmissions") is None
    assert found[False]["transfer_source"] == "record"


def test_round_trips_begin_at_the_socket_and_a_second_count_at_the_wire():
    """The third segment waits 30 ms in the sender's own queue."""
    there = [syn(0), data(300, 0, due=301 * MS), data(600, 1, due=601 * MS), data(900, 2, due=930 * MS)]
    back = [ack(200, 0), ack(401, 1), ack(701, 2), ack(1030, 3)]
    record = record_of(there, back)

    assert round_trips(sent_by(record))[1] * 1000 == pytest.approx([201, 201, 230])
    assert round_trips(sent_by(record, behind_queue=True))[1] * 1000 == pytest.approx([200, 200, 200])


def test_what_the_own_queue_dropped_is_a_retransmission_and_spoils_no_round_trip():
    """Segment 1 is dropped before the wire, and its acknowledgement waits for it: behind the queue nobody sees why."""
    dropped = data(301, 1, fate="queue", arrived=None)
    passed = [data(at_ms, number, due=at_ms * MS) for at_ms, number in ((300, 0), (302, 2), (900, 1))]
    record = record_of([syn(0), passed[0], dropped, *passed[1:]], [ack(200, 0), ack(400, 1), ack(402, 1), ack(1000, 3)])

    assert sent_by(record).is_repeated.tolist() == [False, False, False, True]
    for behind_queue in (False, True):
        assert round_trips(sent_by(record, behind_queue=behind_queue))[1] * 1000 == pytest.approx([200])


def test_a_corrupted_packet_has_not_arrived():
    there = [syn(0), data(300, 0, fate="corrupt"), data(301, 1), data(302, 2, fate="flipped"), data(900, 0)]
    (connection,) = split_connections(record_of(there).seen_at("h2"), 0)
    arrived = flow_of(connection)
    assert arrived.seq.tolist() == [1000, 0]
    assert new_bytes(arrived).tolist() == [1000, 1000]


def test_what_comes_behind_a_reset_is_another_connections():
    """A gateway that has stopped lets pass what its own connection had for an end: other numbers, the same ports."""
    reset = data(500, 2, payload=0, flags=RST)
    strays = [data(600, 10**6), data(700, 1)]
    answers = [ack(200, 0), ack(400, 1), replace(ack(600, 0), acknowledgement=(1 << 30)), ack(701, 2)]
    found = sent_by(record_of([syn(0), data(300, 0), data(301, 1), reset, *strays], answers))
    assert (found.total_bytes, found.ack.tolist(), transfer_times(found)) == (2000, [0, 1000], None)
    # A host that refuses at first, and is asked again with the same ports, has one connection.
    again = [syn(0), syn(250), data(300, 0)]
    refused = replace(ack(101, 0), flags=ACK | RST)
    assert sent_by(record_of(again, [refused])).total_bytes == 1000


def test_the_queue_is_known_at_every_change():
    there = [
        data(0, 0, due=10 * MS),
        data(5, 1, due=20 * MS),
        data(6, 2, fate="queue", arrived=None),
        data(30, 3, due=40 * MS),
    ]
    t_s, depth = record_of(there).depth("hop", "forward")
    assert (t_s * 1000).tolist() == pytest.approx([0, 5, 10, 20, 30, 40])
    assert depth.tolist() == [1040, 2080, 1040, 0, 1040, 0]
    assert time_average(t_s, depth, 0.0, 0.04) == pytest.approx(1040 * (5 + 2 * 5 + 10 + 10) / 40)


def file_of(number: int, segments: int, port: int, to: str = "10.0.0.2", owner: str = "unknown") -> list[Line]:
    """A server sends a file from port 20, from ms `number` on."""
    flow = replace(tcp(("10.0.0.1", 20), (to, port)), owner=owner)
    lines = [data(number + segment, segment) for segment in range(segments)]
    return [replace(line, flow=flow) for line in lines]


def test_a_file_s_data_connection_is_no_other_workload_s():
    """A bulk transfer has a port, and other hosts have other addresses; of two files, that of the right size counts, and
    none where both could be it. A record that knows owners tells them apart.
    """
    bulk = SimpleNamespace(name="big", kind="bulk", port=5001, from_="h1", to="h2")
    small, large, same = (
        SimpleNamespace(name=name, kind="ftp", port=21, from_="h1", to="h2") for name in ("small", "large", "same")
    )
    control = replace(syn(0), flow=tcp(("10.0.0.2", 39_000), ("10.0.0.1", 21)))
    opened = replace(syn(1), flow=tcp(("10.0.0.1", 20), ("10.0.0.2", 40_009)))
    lines = [control, *(data(500 + number, number) for number in range(30)), *file_of(700, 20, 40_000, "10.0.0.3")]
    lines += [*file_of(1000, 5, 40_001, owner="small"), *file_of(2000, 9, 40_002, owner="large")]
    view = View(record_of(lines).seen_at("h1"), 0)

    def bytes_of(file, others, arrived_bytes, record=None):
        plan = SimpleNamespace(cell=SimpleNamespace(workloads=[file, *others]))
        found = data_connection(SimpleNamespace(plan=plan, record=record), file, view, arrived_bytes)
        return found and int(found.payload_bytes.sum())

    assert bytes_of(small, [bulk], 5000) == 9000
    assert [bytes_of(small, [bulk, large], size) for size in (5000, 9000, 7000)] == [5000, 9000, None]
    lines += file_of(3000, 5, 40_003, owner="same")
    view = View(record_of(lines).seen_at("h1"), 0)
    assert bytes_of(small, [bulk, same], 5000) is None
    assert bytes_of(small, [bulk, same], None, record_of(lines)) == 5000
    view = View(record_of([control, opened]).seen_at("h1"), 0)
    assert bytes_of(small, [], 0) is None


def test_what_a_cut_off_flow_moved_is_counted_from_its_packets():
    """Each byte once, from the first packet to the last that arrived; and never 0."""
    control = [replace(line, flow=tcp(("10.0.0.1", 39_999), THERE[1])) for line in (syn(0), data(1, 0, payload=37))]
    stream = [syn(10), *(data(1000 * number, number) for number in range(1, 5)), data(5000, 4)]
    workload = SimpleNamespace(
        name="load", from_="h1", to="h2", to_ip="10.0.0.2", port=5001, reverse=False, udp_rate_bps=None
    )

    def columns_of(result, *lines):
        record = record_of(list(lines))
        cell = SimpleNamespace(
            view=lambda node: View(record.seen_at(node), 0),
            records=lambda _: [{"event": "iperf3", "result": result}],
        )
        found = iperf3.measure(Subject(cell, workload))
        return {name: value for name, value in found.items() if not isinstance(value, Unknown)}

    cut_off = {"end": {"sum_received": {"bytes": 0, "seconds": 0, "bits_per_second": 0}}, "error": "interrupt"}
    expected = {"bytes": 4000, "transfer_s": pytest.approx(4.0), "goodput_bps": pytest.approx(8000.0)}
    assert columns_of(cut_off, *control, *stream) == expected
    assert columns_of({"error": "no JSON came"}, *control, *stream) == expected
    assert columns_of(cut_off, *control) == {}


def many(connections: int, each: int = 8) -> list[Line]:
    """Connections whose packets come in turns."""
    return [
        Line(tcp(("10.0.0.1", 1024 + number % 60_000), ("10.0.0.2", 1 + number // 60_000)), turn, turn + 1, flags=ACK)
        for turn in range(each)
        for number in range(connections)
    ]


def test_many_connections_take_no_longer_each_than_few():
    def takes(connections: int) -> float:
        seen = record_of(many(connections)).seen_at("h1")
        times = []
        for _ in range(4):
            gc.collect()
            begin = time.process_time()
            assert len(split_connections(seen, 0)) == connections
            times.append(time.process_time() - begin)
        return min(times)

    # With a look at all packets for each it would be more than thirty times.
    assert takes(2400) / takes(300) < 16


PLANNED = 2_000_000


def with_profile(plan, columns, **of):
    """The plan with a profile of the hop."""
    profile = Profile(columns=columns, delay="steps", when_down="lose", reorder=False, until_ns=10**10, **of)
    impairment = Impairment(link="hop", direction="forward", errors=None, profile=profile)
    return replace(plan, cell=replace(plan.cell, impairments=(impairment,)))


@pytest.fixture
def at_rates(synthetic):
    """The mean rate over a span, after the steps (seconds, bit/s) of the slowest hop, which is 265 ms from the sink."""

    def mean(steps, span_s):
        plan = synthetic.plan({}, 1)
        events = tuple(
            LinkStep(t_ns=round(t_s * 1e9), link="hop", directions=("forward",), change="rate", value=rate)
            for t_s, rate in steps
        )
        plan = replace(plan, cell=replace(plan.cell, events=events))
        return bottleneck_bps(plan, plan.cell.workloads[0], span_s)

    return mean


def test_without_events_the_rate_is_that_of_the_plan(at_rates):
    assert at_rates([], None) == at_rates([], (1, 2)) == PLANNED


def test_capacity_is_the_integral_of_the_rate(at_rates):
    delay_s = 0.265
    span = (1 + delay_s, 5 + delay_s)
    assert at_rates([(2.0, 500_000)], span) == pytest.approx((PLANNED + 3 * 500_000) / 4)
    assert at_rates([(0.5, 1_000_000), (9.0, 1)], span) == pytest.approx(1_000_000)
    assert at_rates([(3.0, 1_000_000), (2.0, 500_000)], span) == pytest.approx((PLANNED + 500_000 + 2_000_000) / 4)


@pytest.mark.parametrize(("columns", "known"), [(("rate",), False), (("packets",), False), (("delay",), True)])
def test_without_the_table_of_a_profile_that_says_when_packets_leave_it_is_not_known(synthetic, columns, known):
    """A static rate would give a utilization above 1."""
    plan = with_profile(synthetic.plan({}, 1), columns, table=None, file="/pass.csv", sha256="0" * 64)
    hop = bottleneck(plan, plan.cell.workloads[0])
    rates = bottleneck_bps(plan, plan.cell.workloads[0], (1.0, 2.0)), steady_bps(plan, hop)
    assert rates == ((PLANNED, PLANNED) if known else (None, None))


@pytest.mark.parametrize(
    ("columns", "table", "capacity"),
    [
        (("rate",), "t_s,rate_bit_s\n0,1000000\n2,500000\n4,1\n", (1_000_000 + 2 * 500_000) / 3),
        (("rate",), "# repeat_s: 2\nt_s,rate_bit_s\n0,1000000\n1,0\n", 1_000_000 / 3),
        (("packets",), "t_s,packets\n0,5\n2,7\n", None),
    ],
)
def test_capacity_is_the_integral_of_a_profile(synthetic, columns, table, capacity):
    plan = with_profile(synthetic.plan({}, 1), columns, table=table)
    span = (1.265, 4.265)
    assert bottleneck_bps(plan, plan.cell.workloads[0], span) == (capacity and pytest.approx(capacity))
    # The same where the run has the table.
    plan = with_profile(synthetic.plan({}, 1), columns, table=None, file="/pass.csv", sha256="0" * 64)
    found = bottleneck_bps(plan, plan.cell.workloads[0], span, lambda profile: table)
    assert found == (capacity and pytest.approx(capacity))


def test_over_an_unknown_time_it_is_not_known(at_rates):
    assert at_rates([(2.0, 500_000)], None) is None


def test_each_loss_and_its_repair(synthetic):
    transfer = synthetic.simulate(60_000, 1400, {7, 20, 21})
    planned = synthetic.plan({}, 1)
    lost = list(Fates(Record(synthetic.recorded(planned, transfer), planned.network, {})).lost())

    arrived = {id(packet) for _, packet, mine in transfer.sink if mine}
    isn = next(packet.seq for _, packet, mine in transfer.source if mine and packet.flags & 2)
    sent = [(t_s, packet) for t_s, packet, mine in transfer.source if mine]
    gone = [(t_s, (packet.seq - isn - 1) % 2**32) for t_s, packet in sent if id(packet) not in arrived]
    assert [(one.sent_s, one.seq) for one in lost] == [(pytest.approx(t_s), seq) for t_s, seq in gone]
    assert {(one.cause, one.place, one.repair) for one in lost} == {("corrupt", "arrival", "repaired")}
    for one in lost:
        again = [t_s for t_s, packet in sent if (packet.seq - isn - 1) % 2**32 == one.seq and id(packet) in arrived]
        assert one.repaired_s == pytest.approx(again[0])


@pytest.mark.parametrize(
    ("segments", "lost", "expected"),
    [
        ([0, 1, 2, 3], {2: "queue"}, []),
        ([0, 1, 2, 1], {2: "queue"}, ["queue"]),
        ([0, 1, 1, 1], {2: "queue", 3: "corrupt"}, ["queue", "corrupt"]),
        ([0, 1, 1, 1], {2: "queue"}, ["queue", "superfluous"]),
        ([0, 1, 1, 1], {3: "corrupt"}, ["superfluous", "superfluous"]),
        # A packet that was lost before the capture, and whose number is below the highest, is no retransmission.
        ([0, 2, 1], {}, []),
        ([], {}, []),
    ],
)
def test_the_latest_copy_decides_unless_one_was_not_lost(segments, lost, expected):
    left = np.array(segments, np.int64) * 1400
    causes = [lost.get(number, "") for number in range(1, len(segments) + 1)]
    assert [cause for _, cause in resends(left, left + 1400, causes)] == expected


@pytest.mark.parametrize(
    ("before", "later", "is_whole", "expected"),
    [
        # Identities with their times. As many of each: by rank, whatever the clocks say.
        ([(1, 0), (2, 1), (1, 5)], [(1, 9), (1, 9), (2, 9)], False, [0, 2, 1]),
        # Fewer later: the last one by then.
        ([(1, 0), (1, 5), (1, 8)], [(1, 6)], False, [1]),
        ([(1, 5)], [(1, 4), (1, 6), (2, 6)], False, [NOBODY, 0, NOBODY]),
        # A place that sees all packets, and saw fewer of these, cannot tell which.
        ([(1, 5)], [(1, 6), (1, 7)], True, [NOBODY, NOBODY]),
        ([], [(1, 6)], True, [NOBODY]),
        ([(1, 5)], [], True, []),
    ],
)
def test_a_packet_is_found_again_by_what_it_is_and_by_order(before, later, is_whole, expected):
    columns = [np.array(side, np.int64).reshape(-1, 2) for side in (before, later)]
    names = [side[:, :1] for side in columns]
    found = origins(names[0], columns[0][:, 1], names[1], columns[1][:, 1], is_whole=is_whole)
    assert found.tolist() == expected


def lossy(segments: int) -> Record:
    """Segments of which every tenth is lost, and sent again a while later."""
    flow = tcp(("10.0.0.1", 40_000), ("10.0.0.2", 5001))
    first = [(1000 * number, number, number % 10 == 3) for number in range(segments)]
    again = [(1000 * (number + 25) + 1, number, False) for _, number, is_lost in first if is_lost]
    lines = [
        Line(
            flow,
            t_ns,
            t_ns + 100,
            fate="corrupt" if is_lost else "delivered",
            id_=number % 60_000 + (25 if is_lost else 0),
            wire=1040,
            payload=1000,
            sequence=1000 * number,
            flags=ACK,
        )
        for t_ns, number, is_lost in sorted(first + again)
    ]
    return record_of(lines)


def test_twice_the_packets_take_twice_the_time():
    def takes(segments: int) -> float:
        record = lossy(segments)
        times = []
        for _ in range(4):
            gc.collect()
            begin = time.process_time()
            lost = list(Fates(record).lost())
            times.append(time.process_time() - begin)
            assert len(lost) == segments // 10
            assert all(one.repair == "repaired" for one in lost)
        return min(times)

    # With a look at all segments for each lost one it would be sixteen times.
    assert takes(40_000) / takes(10_000) < 2.3**2
