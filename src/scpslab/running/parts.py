"""Cuts the cells of a run: into parts for machines that know nothing of each other, and into batches for workers. Cells of one network stay together.

Everything depends on the plans alone, so that every machine cuts alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from scpslab.lab.template import Template
from scpslab.plan import Plan
from scpslab.scenario.planning import expected

# No vectors of bit errors are drawn to compare networks; where they need more room, a part has a second template of the same network.
NO_VECTORS = Path("/nonexistent")


def by_network(plans: Mapping[str, Plan]) -> list[list[str]]:
    """The cells of each network; networks and their cells are in the order of the plans."""
    networks: dict[str, list[str]] = {}
    for cell_id, plan in plans.items():
        networks.setdefault(Template.of(plan, NO_VECTORS).id, []).append(cell_id)
    return list(networks.values())


def batches(plans: Mapping[str, Plan], most_s: float) -> Iterator[tuple[str, ...]]:
    """The cells in batches of one network each, of at most so many expected seconds, or of one cell."""
    for cells in by_network(plans):
        batch: list[str] = []
        busy_s = 0.0
        for cell_id in cells:
            cost_s = expected(plans[cell_id]).wall_s
            if batch and busy_s + cost_s > most_s:
                yield tuple(batch)
                batch, busy_s = [], 0.0
            batch.append(cell_id)
            busy_s += cost_s
        yield tuple(batch)


def cut(plans: Mapping[str, Plan], parts: int) -> list[list[str]]:
    """The cells in `parts` parts, some of which may be empty. The parts are expected to take the same time."""
    cells = [cell_id for network in by_network(plans) for cell_id in network]
    costs = {cell_id: expected(plans[cell_id]).wall_s for cell_id in cells}
    total, before = sum(costs.values()), 0.0
    found: list[list[str]] = [[] for _ in range(parts)]
    # Small runs of one campaign would all be in the same few parts.
    first = int(hashlib.sha256("\n".join(sorted(plans)).encode()).hexdigest(), 16)
    for cell_id in cells:
        middle = before + costs[cell_id] / 2
        found[(first + int(middle / total * parts)) % parts].append(cell_id)
        before += costs[cell_id]
    return found
