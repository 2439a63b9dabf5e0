"""Shards: `2/8` is the second of eight parts of a run, for a machine of its own; a run without one takes what all kept.

Cells of one network stay together, in shards and in the batches of workers. Everything depends on the plans alone, so
that every machine cuts alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from scpslab.core.errors import UsageError
from scpslab.lab.template import Template
from scpslab.plan import Plan
from scpslab.scenario.planning import expected

MOST = 100_000
# Shards are no runs, so they are not where commands look for runs.
FOLDER = "shards"
# A shard's own status when all of its cells have a result: no other command takes it for a whole run.
DONE = "shard"
# No vectors of bit errors are drawn to compare networks; where they need more room, a part has a second template of
# the same network.
NO_VECTORS = Path("/nonexistent")


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `of`."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard that a person writes as `k/n`.

        Raises:
            UsageError: it is none.
        """
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text, re.ASCII)
        shard = cls(int(found[1]), int(found[2])) if found else None
        if shard is None or not 1 <= shard.number <= shard.of <= MOST:
            raise UsageError(
                f'--shard: found "{text[:40]}"; expected k/n with 1 ≤ k ≤ n ≤ {MOST}, such as 2/8. '
                "Number the shards from 1."
            )
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def suffix(self) -> str:
        """What the name of a run's folder ends with."""
        return f"-{self.number}-of-{self.of}"

    def cells(self, plans: Mapping[str, Plan]) -> tuple[str, ...]:
        """The cells of this shard."""
        return tuple(cut(plans, self.of)[self.number - 1])


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
