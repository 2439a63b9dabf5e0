"""Points of a sweep that are planned alike: whatever tells them apart does not reach the lab."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from scpslab import plan as plans
from scpslab.plan import Plan

MOST_NAMED = 3


def warnings(planned: Mapping[str, Plan], where: str) -> list[str]:
    """A sentence for each of the first groups of points with one plan; `where` is the place of the sweep."""
    groups = list(_alike(plan for plan in planned.values() if plan.cell.repeat == 1))
    found = [
        f"warning: {where}: found one plan for {_listed([plan.cell.id for plan in group])}; "
        "expected plans that differ. "
        "What distinguishes these cells changes nothing that they use: correct the axis, or leave it out."
        for group in groups[:MOST_NAMED]
    ]
    if len(groups) > MOST_NAMED:
        found.append(f"warning: {where}: found {len(groups) - MOST_NAMED} more groups of cells with one plan each")
    return found


def _alike(planned: Iterable[Plan]) -> Iterable[list[Plan]]:
    """Plans that are the same but for the cell's own name and the kernel's seed, which follows from it."""
    groups: dict[bytes, list[Plan]] = {}
    for plan in planned:
        groups.setdefault(
            hashlib.sha256(
                plans.text(replace(plan, cell=replace(plan.cell, id="", axes={}, kernel_seed=""))).encode()
            ).digest(),
            [],
        ).append(plan)
    return (group for group in groups.values() if len(group) > 1)


def _listed(ids: list[str]) -> str:
    named = [f'"{one}"' for one in ids[:MOST_NAMED]]
    if more := len(ids) - len(named):
        return f"{', '.join(named)} and {more} more"
    return " and ".join((", ".join(named[:-1]), named[-1]))
