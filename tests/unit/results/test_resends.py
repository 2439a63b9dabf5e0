"""The cause of a retransmission is the fate of the copies before it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from scpslab.analysis.lost_packets import resend_causes

SIZE = 100


def causes(segments: list[int], lost: dict[int, str]) -> list[str]:
    """The causes for a sender that sends these segments in this order, frame 1 first; `lost`: frames that did not
    arrive.
    """
    n = len(segments)
    connection = SimpleNamespace(
        from_client=np.ones(n, dtype=np.bool_),
        payload_bytes=np.full(n, SIZE),
        seq=np.array(segments) * SIZE,
        packet=np.arange(n),
        t_s=np.arange(n, dtype=np.float64),
    )
    return resend_causes(connection, np.arange(1, n + 1), lost)  # type: ignore[arg-type]


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
    ],
)
def test_the_latest_copy_decides_unless_one_was_not_lost(segments, lost, expected):
    assert causes(segments, lost) == expected
