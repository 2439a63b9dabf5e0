"""Where the packets of a plan's workloads go; and where the nodes of its network stand in pictures: columns from the
first sender to its receiver, rows around that path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from scpslab.plan.cell import Plan
from scpslab.plan.events import RouteStep
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import NoPathError, Paths, Way, way
from scpslab.plan.routes import Route
from scpslab.plan.workloads import Traffic


@dataclass(frozen=True)
class Flow:
    """The addresses of a workload's two hosts, and the hops of its packets: from the sending host to the receiving one,
    and back (None: nobody answers).
    """

    workload: Traffic
    from_ip: str
    to_ip: str
    there: Way
    back: Way | None


def flow(paths: Paths, workload: Traffic) -> Flow:
    """Where a workload's packets go.

    Raises:
        NoPathError: they do not arrive.
    """
    contacted = workload.from_ if workload.opener == workload.to else workload.to
    program = workload.sending_program if workload.opener == workload.from_ else workload.receiving_program
    opener_ip = program.ip if program else paths.source(workload.opener, workload.contacted_ip)
    ips = {workload.opener: opener_ip, contacted: workload.contacted_ip}
    from_ip, to_ip = ips[workload.from_], ips[workload.to]
    there = paths.path(workload.from_, workload.to, to_ip)
    back = paths.path(workload.to, workload.from_, from_ip) if workload.is_answered else None
    return Flow(workload, from_ip, to_ip, there, back)


def networks(plan: Plan) -> Iterator[tuple[int, NetworkPlan]]:
    """The network at the epoch and whenever routes change, with the routes of then."""
    now: dict[tuple[str, str], Route] = {}
    changes = (step for step in plan.cell.events if isinstance(step, RouteStep))
    yield 0, plan.network
    for t_ns, steps in groupby(changes, key=lambda step: step.t_ns):
        for step in steps:
            now.pop((step.node, step.route.to), None)
            now |= {(step.node, step.route.to): step.route} if step.holds else {}
        own = {node: [route for (name, _), route in now.items() if name == node] for node, _ in now}
        nodes = (
            node if isinstance(node, Switch) else replace(node, routes=(*node.routes, *own.get(node.name, ())))
            for node in plan.network.nodes
        )
        yield t_ns, replace(plan.network, nodes=tuple(nodes))


def is_rerouted(plan: Plan) -> bool:
    """Whether routes change while the cell runs: no hop is on a workload's way all the time."""
    return any(isinstance(step, RouteStep) for step in plan.cell.events)


def ways(plan: Plan, workload: Traffic) -> tuple[Way, Way]:
    """The hops from a workload's sending host to its receiving one, and those back, whether or not anything is sent
    there; none where nothing arrives.
    """
    paths = plan.network.paths
    try:
        found = flow(paths, workload)
    except NoPathError:
        return [], []
    if found.back is not None:
        return found.there, found.back
    try:
        return found.there, paths.path(workload.to, workload.from_, found.from_ip)
    except NoPathError:
        return found.there, []


MOST_IN_A_COLUMN = 7


def places(plan: Plan) -> dict[str, tuple[float, float]]:
    """Column and row of every node but those that are inside of a link: columns from 0, rows around 0, half a row apart
    in columns that were one. Two nodes are at least a column or a row from each other.
    """
    columns = columns_of(plan, {workload.from_ for workload in plan.cell.workloads})
    path = set(path_of(plan))
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


def columns_of(plan: Plan, sending: set[str]) -> dict[str, int]:
    """The column of each node: on the path its place there, beside it one farther out than its neighbour; a node that
    is `sending` to the left.
    """
    path = path_of(plan)
    columns = {name: number for number, name in enumerate(path)}
    relays = {link.via for link in plan.network.links}
    near: dict[str, list[str]] = {node.name: [] for node in plan.network.nodes if node.name not in relays}
    for link in plan.network.all_links:
        a, b = (end.node for end in link.ends)
        near[a].append(b)
        near[b].append(a)
    while rest := [name for name in near if name not in columns]:
        level = [name for name in rest if any(other in columns for other in near[name])] or rest[:1]
        reached = dict(columns)
        for name in level:
            anchors = {reached[other] for other in near[name] if other in reached} or {0}
            middle = sum(anchors) / len(anchors)
            outward = -1 if name in sending or middle < len(path) / 2 - 0.5 else 1
            columns[name] = round(middle) if len(anchors) > 1 else int(middle) + outward
    return columns


def path_of(plan: Plan) -> list[str]:
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
