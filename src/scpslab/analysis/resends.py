"""Why each data packet of a transfer was sent again: what became of the copies before it, from a capture on the sending
side and the verdict logs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from scpslab.analysis.capture import Connection, Ints, decode, read_records, split_connections
from scpslab.analysis.lost_packets import Losses, capture_file, find_losses
from scpslab.analysis.run import RunCell

from scpslab.kinds.probes.capture.plan import Capture
from scpslab.kinds.probes.verdicts.plan import Verdicts
from scpslab.kinds.workloads.bulk.plan import Bulk

SUPERFLUOUS = "superfluous"
CAUSES = ("queue", "corrupt", "outage", "policy", SUPERFLUOUS)


@dataclass(frozen=True)
class Resend:
    """A data packet whose first byte was sent before.

    `t_s` since the epoch; `frame` counts as Wireshark does; `seq` from the first payload byte. `cause`: why the latest
    earlier copy was lost, or `superfluous` if an earlier copy was not lost.
    """

    t_s: float
    frame: int
    seq: int
    cause: str


def find_resends(cell: RunCell, losses: Losses, capture: str) -> tuple[Resend, ...]:
    """The resends of the connection with the most data in a capture on the sending side, by time.

    Raises:
        ResultError: the capture is damaged.
    """
    path = capture_file(cell, capture)
    packets = decode(read_records(path.read_bytes(), str(path)))
    connections = split_connections(packets, cell.epoch_realtime_ns)
    if not connections:
        return ()
    causes = {lost.frame: lost.cause for lost in losses.lost if lost.capture == capture and lost.frame is not None}
    return tuple(_resends(max(connections, key=lambda one: int(one.payload_bytes.sum())), packets.frame, causes))


def _resends(connection: Connection, frames: Ints, causes: dict[int, str]) -> list[Resend]:
    sent = [int(connection.payload_bytes[connection.from_client == side].sum()) for side in (False, True)]
    is_data = (connection.from_client == (sent[1] >= sent[0])) & (connection.payload_bytes > 0)
    found: list[Resend] = []
    # What became of each copy: its first byte, the byte behind it, and why it was lost (None: it was not).
    copies: list[tuple[int, int, str | None]] = []
    for index in np.flatnonzero(is_data).tolist():
        left, frame = int(connection.seq[index]), int(frames[connection.packet[index]])
        fates = [cause for low, high, cause in copies if low <= left < high]
        if fates:
            found.append(
                Resend(
                    round(float(connection.t_s[index]), 9),
                    frame,
                    left,
                    SUPERFLUOUS if None in fates else str(fates[-1]),
                )
            )
        copies.append((left, left + int(connection.payload_bytes[index]), causes.get(frame)))
    return found


def resend_columns(cell: RunCell, run: str) -> dict[str, str]:
    """For formulas: `resends`, `resends_CAUSE`, and `resend_causes`, all causes in order of time.

    Nothing for a cell that has no log or not one transfer.
    """
    transfers = [workload for workload in cell.plan.cell.workloads if isinstance(workload, Bulk)]
    captures = [
        probe.name
        for probe in cell.plan.cell.probes
        if isinstance(probe, Capture) and [workload.from_ for workload in transfers] == [probe.node]
    ]
    if (
        not captures
        or not any(isinstance(probe, Verdicts) for probe in cell.plan.cell.probes)
        or cell.status != "completed"
    ):
        return {}
    causes = [resend.cause for resend in find_resends(cell, find_losses(cell, run), captures[0])]
    counts = Counter(causes)
    return {
        "resends": str(len(causes)),
        **{f"resends_{cause}": str(counts[cause]) for cause in CAUSES},
        "resend_causes": " ".join(causes),
    }
