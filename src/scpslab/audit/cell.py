"""A cell's record against the model: direction by direction, and hop by hop from what each was offered."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scpslab.audit.direction import SECOND_NS, Audit, Changes, Channel, Numbers
from scpslab.audit.profile import Course
from scpslab.core.errors import ResultError
from scpslab.core.names import file_name
from scpslab.measure.packets import Packets, read
from scpslab.plan import Plan
from scpslab.plan.cell import CellPlan, Impairment
from scpslab.plan.error_models import Errors
from scpslab.plan.events import LinkStep, RunStep
from scpslab.plan.links import FOR_EVER_NS, Direction


def unexplained(plan: Plan, vectors: Path, record: Path, *, is_exact: bool) -> str:
    """The first packet of a cell that the model cannot explain, in a sentence; "" if it explains all.

    `vectors`: the folder of the bit errors and lost packets that were drawn for the cell.
    """
    try:
        directions = {(one.link, one.direction): one for one in read(record)}
    except ResultError as error:
        return f"the audit of packets: {error}"
    for link in plan.network.links:
        for direction in link.directions:
            packets = directions.get((link.name, direction.name))
            if packets is None:
                return f"the audit of packets: found no record of {link.name}.{direction.name}; expected one"
            impairment = plan.cell.impairment(link.name, direction.name)
            channel = _channel(vectors, link.name, direction.name, impairment.errors if impairment else None)
            changes = _changes(plan.cell, link.name, direction)
            doubt = Audit(
                direction, impairment, channel, packets, is_exact, changes, _table(vectors, link.name, impairment)
            ).doubt()
            if doubt is not None:
                where = f"{link.name}.{direction.name}, packet {doubt.row + 1}{_offered(packets, doubt.row)}"
                return f"the audit of packets: {where}: found {doubt.found}; expected {doubt.expected}"
    return ""


def _table(vectors: Path, link: str, impairment: Impairment | None) -> Course | None:
    if impairment is None or impairment.profile is None:
        return None
    text = (vectors / file_name(link, impairment.direction, suffix=".csv")).read_text()
    return Course.of(text, impairment.profile)


def _offered(packets: Packets, row: int) -> str:
    return f" (offered at {packets.offered_ns[row] / SECOND_NS:.9f} s)" if 0 <= row < len(packets) else ""


def _channel(vectors: Path, link: str, name: str, errors: Errors | None) -> Channel:
    drawn = vectors / file_name(link, name, suffix=".drops")
    listed = np.array(errors.drop_packets if errors else (), np.int64)
    if drawn.exists():
        lost = _numbers(drawn)
        # Beyond the last one drawn the list is over, and so is the cell.
        listed = np.union1d(lost, listed[listed < lost.max(initial=0)])
    gaps, bad_gaps, spells = (
        _numbers(vectors / file_name(link, name, suffix=ending)) for ending in (".u64", ".bad.u64", ".spells")
    )
    return Channel(gaps, listed, bad_gaps, spells)


def _changes(cell: CellPlan, link: str, direction: Direction) -> Changes:
    """What a plan says of the changes of a direction: bit errors and outages of an event are not known beforehand."""
    steps = [step for step in cell.events if isinstance(step, LinkStep)]
    own = [step for step in steps if step.link == link and direction.name in step.directions]
    rates = [(step.t_ns, int(step.value)) for step in own if step.change == "rate"]
    ends = [*(t_ns for t_ns, _ in rates), FOR_EVER_NS]
    impairment = cell.impairment(link, direction.name)
    varies = rates or (impairment is not None and impairment.aggregate_ns is not None)
    return Changes(
        unknown=bool(cell.shell or cell.mininet or any(isinstance(step, RunStep) for step in cell.events)),
        rates=tuple(zip(ends, [direction.rate_bps or 0, *(bps for _, bps in rates)], strict=True)) if varies else (),
        delays_ns=tuple(int(step.value) for step in own if step.change == "delay"),
        errors=any(step.change in ("ber", "state") for step in own),
    )


def _numbers(path: Path) -> Numbers:
    return np.fromfile(path, "<u8").astype(np.int64) if path.exists() else np.zeros(0, np.int64)
