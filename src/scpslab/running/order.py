"""The order in which cells are carried out: the longest first, so that all cores are busy to the end."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping

from scpslab.plan import Plan, schema


def in_order(plans: Mapping[str, Plan], costs_s: Mapping[str, float], jobs: int) -> list[str]:
    """The cells of plans, by the seconds that each is expected to take.

    Cells of one network follow each other, so that few templates are needed at a time; networks come in the order of
    their longest cells, so many at a time as there are `jobs`: while the template of one boots, cells of others run.
    """
    # Cells of one scenario share the objects of their networks.
    names: dict[int, str] = {}
    networks: dict[str, list[str]] = {}
    for cell in sorted(plans, key=costs_s.__getitem__, reverse=True):
        network = plans[cell].network
        if id(network) not in names:
            names[id(network)] = json.dumps(schema.write(network), sort_keys=True)
        networks.setdefault(names[id(network)], []).append(cell)
    waiting = deque(map(deque, networks.values()))
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
