"""A cell's record against the model: direction by direction, and hop by hop from what each was offered."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scpslab.audit.direction import SECOND_NS, Audit, Channel, Numbers
from scpslab.core.errors import ResultError
from scpslab.core.names import file_name
from scpslab.measure.packets import Packets, read
from scpslab.plan import Plan
from scpslab.plan.error_models import Errors


def unexplained(plan: Plan, vectors: Path, record: Path, *, is_exact: bool) -> str:
    """The first packet of a cell that the model cannot explain, in a sentence; "" if it explains all.

    `vectors`: the folder of the bit errors and lost packets that were drawn for the cell.
    """
    try:
        directions = {(one.link, one.direction): one for one in read(record)}
    except ResultError as error:
        return f"the audit of packets: {error}"
    is_steady = not (plan.cell.events or plan.cell.shell or plan.cell.mininet)
    for link in plan.network.links:
        for direction in link.directions:
            packets = directions.get((link.name, direction.name))
            if packets is None:
                return f"the audit of packets: found no record of {link.name}.{direction.name}; expected one"
            impairment = plan.cell.impairment(link.name, direction.name)
            channel = _channel(vectors, link.name, direction.name, impairment.errors if impairment else None)
            doubt = Audit(direction, impairment, channel, packets, is_exact, is_steady).doubt()
            if doubt is not None:
                where = f"{link.name}.{direction.name}, packet {doubt.row + 1}{_offered(packets, doubt.row)}"
                return f"the audit of packets: {where}: found {doubt.found}; expected {doubt.expected}"
    return ""


def _offered(packets: Packets, row: int) -> str:
    return f" (offered at {packets.offered_ns[row] / SECOND_NS:.9f} s)" if 0 <= row < len(packets) else ""


def _channel(vectors: Path, link: str, name: str, errors: Errors | None) -> Channel:
    drawn = vectors / file_name(link, name, suffix=".drops")
    listed = np.array(errors.drop_packets if errors else (), np.int64)
    if drawn.exists():
        lost = _numbers(drawn)
        # Beyond the last one drawn the list is over, and so is the cell.
        listed = np.union1d(lost, listed[listed < lost.max(initial=0)])
    return Channel(_numbers(vectors / file_name(link, name, suffix=".u64")), listed)


def _numbers(path: Path) -> Numbers:
    return np.fromfile(path, "<u8").astype(np.int64) if path.exists() else np.zeros(0, np.int64)
