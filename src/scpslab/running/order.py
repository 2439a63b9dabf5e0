"""The order in which cells are carried out: the longest first, so that all cores are busy to the end; and the batches
of cells that workers get.

Cells of one network stay together, so that few templates are needed at a time.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from scpslab.plan import Plan, schema
from scpslab.scenario.planning import expected


def in_order(plans: Mapping[str, Plan], costs_s: Mapping[str, float], jobs: int) -> list[str]:
    """The cells of plans, by the seconds that each is expected to take.

    Networks come in the order of their longest cells, so many at a time as there are `jobs`: while the template of one
    boots, cells of others run.
    """
    longest_first = sorted(plans, key=costs_s.__getitem__, reverse=True)
    waiting = deque(map(deque, _by_network(plans, longest_first)))
    lanes: deque[deque[str]] = deque()
    found = []
    while waiting or lanes:
        while waiting and len(lanes) < jobs:
            lanes.append(waiting.popleft())
        lane = lanes.popleft()
        found.append(lane.popleft())
        if lane:
            lanes.append(lane)
    return found


def batches(plans: Mapping[str, Plan], most_s: float) -> Iterator[tuple[str, ...]]:
    """The cells in batches of one network each, of at most so many expected seconds, or of one cell."""
    for cells in _by_network(plans, plans):
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


def _by_network(plans: Mapping[str, Plan], cells: Iterable[str]) -> list[list[str]]:
    """The cells of each network; networks and their cells are in the order of `cells`."""
    # Cells of one scenario share the objects of their networks.
    names: dict[int, str] = {}
    networks: dict[str, list[str]] = {}
    for cell in cells:
        network = plans[cell].network
        if id(network) not in names:
            names[id(network)] = json.dumps(schema.write(network), sort_keys=True)
        networks.setdefault(names[id(network)], []).append(cell)
    return list(networks.values())
