"""Where the nodes of a network stand in its picture: columns from the first sender to its receiver, rows around that
path. No two nodes have the same place.
"""

from __future__ import annotations

from scpslab.plan import Plan
from scpslab.plan.flows import ways
from scpslab.plan.paths import way

MOST_IN_A_COLUMN = 7


def places(plan: Plan) -> dict[str, tuple[float, float]]:
    """Column and row of every node but those that are inside of a link: columns from 0, rows around 0, half a row apart
    in columns that were one. Two nodes are at least a column or a row from each other.
    """
    columns = _columns(plan)
    path = set(_path(plan))
    stacks: dict[int, list[str]] = {}
    for name, column in sorted(columns.items(), key=lambda item: (item[1], item[0] not in path)):
        stacks.setdefault(column, []).append(name)
    found: dict[str, tuple[float, float]] = {}
    left = 0
    for column in sorted(stacks):
        names = stacks[column]
        parts = -(-len(names) // MOST_IN_A_COLUMN)
        for number, name in enumerate(names):
            part, place = number % parts, number // parts
            shift = 0.5 if part % 2 else 0.0
            found[name] = left + part, _row(place) + shift
        left += parts
    return found


def _row(place: int) -> int:
    """The rows from the middle outward: 0, 1, -1, 2, -2."""
    return (place + 1) // 2 * (1 if place % 2 else -1)


def _columns(plan: Plan) -> dict[str, int]:
    """The column of each node: on the path its place there, beside it one farther out than its neighbour."""
    path = _path(plan)
    columns = {name: number for number, name in enumerate(path)}
    relays = {link.via for link in plan.network.links}
    near: dict[str, list[str]] = {node.name: [] for node in plan.network.nodes if node.name not in relays}
    for link in plan.network.all_links:
        a, b = (end.node for end in link.ends)
        near[a].append(b)
        near[b].append(a)
    sending = {workload.from_ for workload in plan.cell.workloads}
    while rest := [name for name in near if name not in columns]:
        level = [name for name in rest if any(other in columns for other in near[name])] or rest[:1]
        reached = dict(columns)
        for name in level:
            anchors = {reached[other] for other in near[name] if other in reached} or {0}
            middle = sum(anchors) / len(anchors)
            outward = -1 if name in sending or middle < len(path) / 2 - 0.5 else 1
            columns[name] = round(middle) if len(anchors) > 1 else int(middle) + outward
    return columns


def _path(plan: Plan) -> list[str]:
    """The nodes from the first workload's sender to its receiver; without a workload, from the first node to the last
    one that is reached.
    """
    network = plan.network
    for workload in plan.cell.workloads[:1]:
        there, _ = ways(plan, workload)
        if there:
            return [workload.from_, *(hop.direction.to for hop in there)]
    names = [*network.hosts] or [node.name for node in network.speaking] or [network.nodes[0].name]
    found = (way(network.all_links, names[0], last) for last in reversed(names[1:]))
    return [names[0], *(hop.direction.to for hop in next(filter(None, found), []))]
