"""Lost packets: as often as a binomial law says, from the first packet on, and the same for ever."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from scpslab.core.seeds import stream
from scpslab.plan.error_models import Errors
from scpslab.scenario.vectors import gap_vector, lost_packets

from scpslab.kinds.errors.packet_loss.plan import PacketLoss

SEEDS, PACKETS = 4_000, 100


def errors(loss, seed, n=512):
    common = {"action": "drop", "drop_packets": (), "drop_min_bytes": 0, "outages": ()}
    return Errors(model="packet-loss", settings=PacketLoss(loss=loss), seed=seed, vector_errors=n, **common)


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.3, 1.0])
def test_every_packet_is_lost_as_often_as_any(loss):
    lost = np.zeros(PACKETS, dtype=int)
    counts = []
    for number in range(SEEDS):
        packets = lost_packets(errors(loss, stream(1, "packet-loss", number)))
        assert packets[0] >= 1
        assert (np.diff(packets.astype(np.int64)) > 0).all()
        packets = packets[packets <= PACKETS].astype(int)
        lost[packets - 1] += 1
        counts.append(len(packets))

    assert min(stats.binomtest(int(count), SEEDS, loss).pvalue for count in lost) > 1e-6
    assert stats.binomtest(sum(counts), SEEDS * PACKETS, loss).pvalue > 1e-3
    # Independent packets: the counts of a hundred have the spread of a binomial law.
    if loss < 1:
        assert np.var(counts) == pytest.approx(PACKETS * loss * (1 - loss), rel=0.15)


def test_no_bit_is_wrong_and_nothing_overflows():
    assert len(gap_vector(errors(0.01, "2a" * 32))) == 0
    assert len(lost_packets(None)) == len(lost_packets(errors(0.0, "2a" * 32))) == 0
    rare = lost_packets(errors(1e-300, "2a" * 32, 1 << 16))
    assert (np.diff(rare) == 1 << 40).all()


def test_whole_lists_are_pinned():
    """They are part of every recorded result."""
    data = lost_packets(errors(0.01, "2a" * 32, 65_536)).astype("<u8").tobytes()
    assert hashlib.sha256(data).hexdigest()[:16] == "e47b9d09be5bac82"
