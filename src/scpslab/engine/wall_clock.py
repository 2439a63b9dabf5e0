"""What a plan says besides where time is real."""

from __future__ import annotations

from typing import Any

# Real time has failed where more than this share of the lab's clock's ticks comes later than this.
LATENESS = {"tick_ns": 10_000_000, "late_ns": 5_000_000, "late_share": 0.01}


def on_the_wall_clock(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with what holds only where time is real: how late the lab may be."""
    return {**plan, "limits": {**LATENESS, **plan["limits"]}}
