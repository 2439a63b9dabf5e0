"""Fates and repairs from a record, against what a small TCP lost and sent again."""

import gc
import time

import numpy as np
import pytest

from scpslab.measure.losses import NOBODY, Fates, origins, resends
from scpslab.measure.record import Record
from tests.made_records import Line, tcp
from tests.unit.measure.test_record import record_of

ACK = 0x10


def test_each_loss_and_its_repair(synthetic):
    transfer = synthetic.simulate(60_000, 1400, {7, 20, 21})
    planned = synthetic.plan({}, 1)
    lost = list(Fates(Record(synthetic.recorded(planned, transfer), planned.network)).lost())

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
