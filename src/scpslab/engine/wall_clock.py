"""What a plan says besides where time is real."""

from __future__ import annotations

from dataclasses import replace

from scpslab.plan import Plan

# Real time has failed where more than this share of the lab's clock's ticks comes later than this.
TICK_NS, LATE_NS, LATE_SHARE = 10_000_000, 5_000_000, 0.01


def on_the_wall_clock(plan: Plan) -> Plan:
    """The plan with what holds only where time is real: how late the lab may be."""
    limits = plan.limits
    late_ns = LATE_NS if limits.late_ns is None else limits.late_ns
    return replace(plan, limits=replace(limits, tick_ns=TICK_NS, late_ns=late_ns, late_share=LATE_SHARE))
