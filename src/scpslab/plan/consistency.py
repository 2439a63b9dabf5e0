"""What must hold between the parts of a plan: names that exist and are unique, values that fit each other.

Form is the classes' business.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeVar

from scpslab.core import names, units
from scpslab.plan.cell import CellPlan, Plan
from scpslab.plan.disciplines import DISCIPLINES, Queue
from scpslab.plan.links import Direction, Link
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host, ScpsRouter, Switch
from scpslab.plan.places import Places, Problem, one_of, twice
from scpslab.plan.probes import Observer
from scpslab.plan.schema import shown
from scpslab.plan.script import RunStep, Step
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.services import Daemon
from scpslab.plan.stacks import STACKS
from scpslab.plan.workloads import Traffic

T = TypeVar("T")
LONGEST_DELAY_NS = 2**31 * 1000  # netem keeps it in 64 bits; half an hour is beyond Mars
LARGEST_OVERHEAD_BYTES = 65_535  # RFC 791 §3.1, Total Length
SMALLEST_PACKET_BYTES = 28  # IP and UDP (RFC 791 §3.1, RFC 768)
# Records of the lab's own.
RECORDS = ("lab", "accounting", "script")


def problems(plan: Plan) -> Iterator[Problem]:
    """Every place of a plan that does not fit, with what was found and expected."""
    network, cell = plan.network, plan.cell
    yield from _within("network", network_problems(network))
    yield from _within("cell", _cell(cell, network))
    yield from _records(plan)


def network_problems(network: NetworkPlan) -> Iterator[Problem]:
    """Every place of a network that does not fit."""
    yield from _nodes(network)
    yield from _links(network)
    yield from _serial_links(network)
    yield from _own_names(network)


def _within(part: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    return ((f"{part}.{place}", text) for place, text in problems)


def _each(part: str, items: Iterable[T]) -> Iterator[tuple[str, T]]:
    """The items of a list with their places."""
    return ((f"{part}[{index}]", item) for index, item in enumerate(items))


def _nodes(network: NetworkPlan) -> Iterator[Problem]:
    hosts = [node.name for node in network.nodes if isinstance(node, Host)]
    owned = [(node, ip.split("/")[0]) for node, ip in network.addresses()]
    for at, node in _each("nodes", network.nodes):
        if isinstance(node, Switch):
            if node.mirror_to is not None and node.mirror_to not in hosts:
                yield f"{at}.mirror_to", one_of(node.mirror_to, hosts)
            continue
        if (node.container is not None) != (network.containers == "docker"):
            found = f"found {'no' if node.container is None else 'a'} container"
            expected = f"expected one exactly where containers is docker, and not {network.containers}"
            yield f"{at}.container", f"{found}; {expected}"
        elif STACKS[node.stack].is_own_image and node.container is None:
            yield f"{at}.stack", f"found {shown(node.stack)} without a container; expected containers to be docker"
        # A node sends from its own addresses.
        for place, route in _each(f"{at}.routes", node.routes):
            if route.src is not None and (node.name, route.src) not in owned:
                yield f"{place}.src", one_of(route.src, [ip for owner, ip in owned if owner == node.name])


def _links(network: NetworkPlan) -> Iterator[Problem]:
    nodes = {node.name: node for node in network.nodes}
    for at, link in _each("links", network.links):
        yield from _ends(link, at, list(nodes))
        if (link.via is None) != (link.relay_interfaces is None):
            yield f"{at}.relay_interfaces", "found one of via and relay_interfaces; expected both or none of them"
        if link.via is not None and not isinstance(nodes.get(link.via), Switch):
            yield f"{at}.via", one_of(link.via, [node.name for node in network.nodes if isinstance(node, Switch)])
        for place, direction in _each(f"{at}.directions", link.directions):
            yield from _within(place, direction_problems(direction, has_relay=link.via is not None))


def direction_problems(direction: Direction, *, has_relay: bool) -> Iterator[Problem]:
    """What does not fit of a direction of a link of packets, with its key in the plan, and what to do."""
    rate_bps, queue, table = direction.rate_bps, direction.queue, direction.delay_table
    if queue is not None and rate_bps is None:
        yield "queue", "found a queue on a direction without a rate; expected a rate too. Add the rate."
    if rate_bps is not None and queue is None:
        yield "rate_bps", "found a rate on a direction without a queue; expected a queue too. Add queue: {limit: …}."
    yield from rate_problems("rate_bps", rate_bps or 0)
    if direction.overhead_bytes > LARGEST_OVERHEAD_BYTES:
        found = f'found "{units.text("size", direction.overhead_bytes)}"; expected at most {LARGEST_OVERHEAD_BYTES} B'
        yield "overhead_bytes", f"{found}, the length of the largest packet. Correct the value."
    for key, word, said in (
        ("delay_ns", "a delay", direction.delay_ns),
        ("delay_table", "delays in steps", table is not None),
        ("jitter_ns", "jitter", direction.jitter_ns),
    ):
        if said and not has_relay:
            found = f"found {word} on a link without a relay"
            yield key, f"{found}; expected a link that goes through a switch (via). Choose such a link."
    yield from delay_problems("delay_ns", direction.delay_ns)
    if table is not None:
        times = [t_ns for t_ns, _ in table]
        if times[:1] != [0] or any(later <= earlier for earlier, later in pairwise(times)):
            yield "delay_table", "found steps out of order; expected times that ascend from 0. Sort them."
        yield from delay_problems("delay_table", max((delay_ns for _, delay_ns in table), default=0))
    least_ns = min((delay_ns for _, delay_ns in table or ()), default=direction.delay_ns)
    if has_relay and direction.jitter_ns > least_ns:
        jitter, least = (units.text("duration", time_ns) for time_ns in (direction.jitter_ns, least_ns))
        yield "jitter_ns", f"found jitter of {jitter}; expected at most the delay of {least}. Correct the value."
    if queue is not None:
        yield from _queue(queue, direction)


def rate_problems(key: str, rate_bps: int) -> Iterator[Problem]:
    """A rate that no serialiser has: it counts whole bytes."""
    if rate_bps % 8:
        yield key, f'found "{rate_bps} bit/s"; expected a multiple of 8 bit/s. Change it by a few bit/s.'


def delay_problems(key: str, delay_ns: int) -> Iterator[Problem]:
    """A delay that no queue of the kernel holds."""
    if delay_ns > LONGEST_DELAY_NS:
        delay, longest = (units.text("duration", time_ns) for time_ns in (delay_ns, LONGEST_DELAY_NS))
        yield key, f"found a delay of {delay}; expected at most {longest}. Correct the value."


def _queue(queue: Queue, direction: Direction) -> Iterator[Problem]:
    if direction.jitter_ns and not queue.serialises:
        found = "found jitter behind a managed queue, whose packets stage 2 keeps in order"
        yield "jitter_ns", f"{found}; expected a drop-tail queue. Remove one of them."
    if queue.ecn and not queue.settings.MARKS:
        marking = " or ".join(name for name, settings in DISCIPLINES.items() if settings.MARKS)
        found = f"found ECN marking on a queue of discipline {queue.discipline}"
        yield "queue.ecn", f"{found}; expected discipline {marking}. Choose one of these."
    if (queue.limit_bytes is None) == (queue.limit_packets is None):
        yield "queue", "found a queue with no limit, or two; expected one, in bytes or packets. Add limit."
    elif queue.limit_bytes is not None and queue.limit_bytes < SMALLEST_PACKET_BYTES:
        found = f"found a queue of {queue.limit_bytes} B, which drops every packet"
        yield "queue.limit_bytes", f"{found}; expected at least {SMALLEST_PACKET_BYTES} B. Raise the limit."
    else:
        yield from ((f"queue.{key}", text) for key, text in queue.settings.problems(queue.room_bytes))


def _ends(link: Link | SerialLink, at: str, nodes: list[str]) -> Iterator[Problem]:
    first, second = (end.node for end in link.ends)
    for place, node in _each(f"{at}.ends", (first, second)):
        if node not in nodes:
            yield f"{place}.node", one_of(node, nodes)
    ways = [(direction.from_, direction.to) for direction in link.directions]
    for (place, way), (start, stop) in zip(
        _each(f"{at}.directions", ways), ((first, second), (second, first)), strict=True
    ):
        if way != (start, stop):
            found = f"found {shown(way[0])} to {shown(way[1])}"
            yield f"{place}.from", f"{found}; expected {shown(start)} to {shown(stop)}, as the ends are"
    if link.directions[0].name == link.directions[1].name:
        yield f"{at}.directions[1].name", f"found {shown(link.directions[1].name)} twice; expected a name of its own"


def _serial_links(network: NetworkPlan) -> Iterator[Problem]:
    hosts = [node.name for node in network.nodes if isinstance(node, Host)]
    np_routers = [node.name for node in network.nodes if isinstance(node, ScpsRouter)]
    seen: set[str] = set()
    for at, link in _each("serial_links", network.serial_links):
        if link.ppp is not None and network.containers == "docker":
            yield f"{at}.ppp", "found PPP with containers; expected nodes that are processes"
        yield from _ends(link, at, np_routers if link.ppp is None else hosts)
        if (link.ppp is None) != (link.np_mtu_bytes is not None):
            yield f"{at}.ppp", "found both or none of ppp and np_mtu_bytes; expected one of them"
        for place, direction in _each(f"{at}.directions", link.directions):
            yield from _within(place, delay_problems("delay_ns", direction.delay_ns))
        for place, end in _each(f"{at}.ends", link.ends):
            if (end.ip is None or end.interface is None) != (link.ppp is None):
                found = "found an address and interface without PPP, or PPP without them"
                yield f"{place}.ip", f"{found}; expected both with PPP only"
            if end.node in seen:
                yield f"{place}.node", f"found {shown(end.node)} at a second serial link; expected one at most"
            seen.add(end.node)


def _own_names(network: NetworkPlan) -> Iterator[Problem]:
    """No two nodes, links, interfaces or addresses may have one name, and no two directions one file of bit errors."""
    links: list[tuple[str, Link | SerialLink]] = [
        *_each("links", network.links),
        *_each("serial_links", network.serial_links),
    ]
    yield from _twice(((f"{at}.name", node.name) for at, node in _each("nodes", network.nodes)), "a name of its own")
    yield from _twice(((f"{at}.name", link.name) for at, link in links), "a name of its own")
    ends = [found for at, link in _each("links", network.links) for found in _each(f"{at}.ends", link.ends)]
    interfaces = [(f"{at}.interface", end.interface) for at, end in ends]
    relays = [(f"{at}.relay_interfaces", link.relay_interfaces or ()) for at, link in _each("links", network.links)]
    interfaces += [named for at, names_there in relays for named in _each(at, names_there)]
    yield from _twice(interfaces, "a name of its own")
    yield from _twice(((f"{at}.mac", end.mac) for at, end in ends), "an address of its own")
    addresses = ((f"{at}.ip", str(ipaddress.IPv4Interface(end.ip).ip)) for at, end in ends if end.ip is not None)
    yield from _twice(addresses, "an address of its own")
    files = (
        (f"{place}.name", names.file_name(link.name, direction))
        for at, link in links
        for place, direction in _each(f"{at}.directions", [direction.name for direction in link.directions])
    )
    yield from _twice(files, "names of link and direction that no other direction has together")


def _cell(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    places = _places(network)
    if cell.limits.tick_ns is not None:
        for key in ("late_ns", "late_share"):
            if getattr(cell.limits, key) is None:
                yield f"limits.{key}", "found no such key beside tick_ns; expected one"
    yield from _impairments(cell, network)
    for at, workload in _each("workloads", cell.workloads):
        yield from _within(at, _workload(workload, places))
    for at, probe in _each("probes", cell.probes):
        yield from _within(at, probe.problems(places))
    for at, step in _each("script", cell.script):
        yield from _within(at, _step(step, places))
    yield from _services(cell, network)


def _places(network: NetworkPlan) -> Places:
    interfaces = {
        (end.node, end.interface) for link in network.all_links for end in link.ends if end.interface is not None
    }
    interfaces |= {(link.via, name) for link in network.links if link.via for name in link.relay_interfaces or ()}
    return Places(
        stacks={node.name: node.stack for node in network.nodes if isinstance(node, Host)},
        in_containers=network.containers == "docker",
        speaking=tuple(node.name for node in network.speaking),
        interfaces=frozenset(interfaces),
        directions={link.name: tuple(direction.name for direction in link.directions) for link in network.links},
    )


def _workload(workload: Traffic, places: Places) -> Iterator[Problem]:
    ends = (("from", workload.from_), ("to", workload.to))
    if missing := [(key, one_of(name, places.stacks)) for key, name in ends if name not in places.stacks]:
        yield from missing
        return
    if workload.from_ == workload.to:
        yield "to", f"found {shown(workload.to)} at both ends; expected two hosts"
    yield from workload.problems(places)


def _step(step: Step, places: Places) -> Iterator[Problem]:
    if isinstance(step, RunStep):
        if step.node not in places.speaking:
            yield "node", one_of(step.node, places.speaking)
        return
    yield from places.not_directions(step.link, step.directions)
    seeds = len(step.seeds or ())
    if seeds != (len(step.directions) if step.change == "ber" else 0):
        expected = "expected one for each direction where bit errors change, and none elsewhere"
        yield "seeds", f"found {seeds} seeds; {expected}"


def _services(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    """Each on a node that has its programs, with a log of its own, and no two behind one port."""
    for at, service in _each("services", cell.services):
        nodes = {node.name: node for node in network.speaking if service.can_run_on(node)}
        if service.node not in nodes:
            yield f"{at}.node", one_of(service.node, nodes)
        else:
            yield from _within(at, service.problems(network))
    named: list[tuple[str, Traffic | Daemon]] = [*_each("workloads", cell.workloads), *_each("services", cell.services)]
    yield from _twice(
        ((f"{at}.name", part.name) for at, part in named), "a name that no workload and no other service has"
    )
    ports = (
        (f"{at}.ready_port", f"{service.node}:{service.listens_at}")
        for at, service in _each("services", cell.services)
        if service.listens_at is not None
    )
    yield from _twice(ports, "a port that no other service of the node has")


def _impairments(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    """Each of a direction that there is, and of one only; what is drawn has a seed."""
    places = [(link.name, direction) for link in network.all_links for direction in link.directions]
    directions = {f"{link}.{direction.name}": direction for link, direction in places}
    impaired = [
        (at, f"{impairment.link}.{impairment.direction}", impairment)
        for at, impairment in _each("impairments", cell.impairments)
    ]
    yield from _twice(
        ((f"{at}.direction", name) for at, name, _ in impaired), "what goes wrong in a direction in one place"
    )
    for at, name, impairment in impaired:
        if (direction := directions.get(name)) is None:
            yield f"{at}.direction", one_of(name, directions)
            continue
        jitters = isinstance(direction, Direction) and direction.jitter_ns > 0
        if (impairment.seed is None) == (jitters or impairment.duplicate is not None):
            found = "found a seed without jitter and duplicate, or one of them without a seed"
            yield f"{at}.seed", f"{found}; expected both or none"
        if impairment.duplicate is not None and not isinstance(direction, Direction):
            found = "found packets that arrive twice on a serial link"
            yield f"{at}.duplicate", f"{found}; expected them on a link of packets"
    seeded = {name for _, name, _ in impaired}
    for name, direction in directions.items():
        if isinstance(direction, Direction) and direction.jitter_ns and name not in seeded:
            yield "impairments", f"found no seed for the jitter of {name}; expected one"
            return


def _records(plan: Plan) -> Iterator[Problem]:
    """No two parts may write the same file."""
    cell = plan.cell
    probes = list(_each("cell.probes", cell.probes))
    records: list[tuple[str, SerialLink | Daemon | Traffic | Observer]] = [
        *_each("network.serial_links", plan.network.serial_links),
        *((at, service) for at, service in _each("cell.services", cell.services) if service.writes_record),
        *_each("cell.workloads", cell.workloads),
        *((at, probe) for at, probe in probes if probe.folder == "records"),
    ]
    own = [("the lab", name) for name in RECORDS]
    yield from _twice([*own, *((f"{at}.name", part.name) for at, part in records)], "a name that no other record has")
    captures = ((f"{at}.name", probe.name) for at, probe in probes if probe.folder == "captures")
    yield from _twice(captures, "a name that no other capture has")


def _twice(named: Iterable[Problem], expected: str) -> Iterator[Problem]:
    return ((place, f"found {shown(name)} twice; expected {expected}") for place, name in twice(named))
