"""Additions to a plan for engines where time is real."""

from __future__ import annotations

from dataclasses import replace

from scpslab.plan import Plan

# A cell has failed to keep real time if more than this share of its clock ticks come later than this.
TICK_NS, LATE_NS, LATE_SHARE = 10_000_000, 5_000_000, 0.01


def on_the_wall_clock(plan: Plan) -> Plan:
    """The plan with a limit for the lab's lateness, which only engines with real time have."""
    limits = plan.cell.limits
    late_ns = LATE_NS if limits.late_ns is None else limits.late_ns
    return replace(plan, cell=replace(plan.cell, limits=replace(limits, tick_ns=TICK_NS, late_ns=late_ns, late_share=LATE_SHARE)))
