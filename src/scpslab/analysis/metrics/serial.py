"""Serial links: frames that PPP sent and got, and what the channel did to the bytes, per direction."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Value, count
from scpslab.analysis.run import RunCell
from scpslab.plan import Plan

MEANINGS = {
    "sent_frames": "frames that PPP sent",
    "lost_frames": "frames that did not come through PPP's frame check at the other end",
    "bit_errors": "wrong bits of the bytes handed on",
    "most_waiting_bytes": "most bytes that waited for the line",
}


def columns(plan: Plan) -> tuple[Column, ...]:
    """The same four columns for both directions of every serial link."""
    return tuple(
        Column(f"{link.name}_{direction.name}_{what}", None, f"{link.name}, {direction.name} direction: {meaning}.")
        for link in plan.network.serial_links
        for direction in link.directions
        for what, meaning in MEANINGS.items()
    )


def measure(cell: RunCell) -> dict[str, Value]:
    """Values by column name from the links' records."""
    return {
        f"{link.name}_{line.get('direction')}_{what}": count(line, what)
        for link in cell.plan.network.serial_links
        for line in cell.records(link.name)
        if line.get("event") == "direction"
        for what in MEANINGS
    }
