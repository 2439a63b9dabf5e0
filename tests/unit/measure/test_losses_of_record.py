"""Fates and repairs from a record, against what a small TCP lost and sent again."""

import numpy as np
import pytest

from scpslab.measure.losses import Fates, resends
from scpslab.measure.record import Record


def test_each_loss_and_its_repair(synthetic):
    transfer = synthetic.simulate(60_000, 1400, {7, 20, 21})
    planned = synthetic.plan({}, 1)
    fates = Fates(Record(synthetic.recorded(planned, transfer), planned.network))
    lost = [one for _, _, one in fates.lost()]

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
    ],
)
def test_the_latest_copy_decides_unless_one_was_not_lost(segments, lost, expected):
    left = np.array(segments) * 1400
    causes = [lost.get(number, "") for number in range(1, len(segments) + 1)]
    assert [cause for _, cause in resends(left, left + 1400, causes)] == expected
