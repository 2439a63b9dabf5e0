"""Where packets went: one recorded cause for each that did not arrive, per direction of the space links."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Value, count
from scpslab.analysis.run import RunCell
from scpslab.plan import Plan
from scpslab.plan.links import LOSS_CAUSES

OTHER = Column(
    "other_lost_packets",
    None,
    (
        "Packets lost on all other links, whatever the cause; not 0 means that something besides the hop shaped the "
        "result."
    ),
)


def columns(plan: Plan) -> tuple[Column, ...]:
    """Offered, delivered and lost packets by cause for both directions of every link with a delay stage, then all other
    links together.
    """
    found: list[Column] = []
    for link in plan.network.links:
        if link.via is None:
            continue
        for direction in link.directions:
            stem, where = f"{link.name}_{direction.name}", f"{link.name}, {direction.name} direction"
            found.append(Column(f"{stem}_offered_packets", None, f"Packets that reached {where}."))
            found += [
                Column(f"{stem}_lost_{cause}_packets", None, f"{where}: {meaning}.")
                for cause, meaning in LOSS_CAUSES.items()
            ]
            found.append(Column(f"{stem}_flipped_packets", None, f"{where}: delivered with bits changed."))
            if direction.queue is not None and direction.queue.ecn:
                found.append(Column(f"{stem}_marked_packets", None, f"{where}: marked by the queue (ECN)."))
    return (*found, OTHER) if plan.network.links else ()


def measure(cell: RunCell) -> dict[str, Value]:
    """Values by column name from records/accounting.jsonl."""
    space_links = {link.name for link in cell.plan.network.links if link.via is not None}
    values: dict[str, Value] = {}
    other, is_known = 0, False
    for line in cell.records("accounting"):
        is_known = True
        lost = {cause: count(line, f"{cause}_packets") for cause in LOSS_CAUSES}
        if line.get("link") not in space_links:
            other += sum(packets or 0 for packets in lost.values())
            continue
        stem = f"{line.get('link')}_{line.get('direction')}"
        values[f"{stem}_offered_packets"] = count(line, "offered_packets")
        values |= {f"{stem}_lost_{cause}_packets": packets for cause, packets in lost.items()}
        values |= {
            f"{stem}_{what}_packets": count(line, f"{what}_packets")
            for what in ("flipped", "marked")
            if f"{what}_packets" in line
        }
    return {**values, OTHER.name: other} if is_known else {}
