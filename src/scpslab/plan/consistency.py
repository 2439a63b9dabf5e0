"""What must hold between the parts of a plan: names that exist and are unique, values that fit each other.

Form is the classes' business.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from itertools import pairwise

from scpslab.core import names, units
from scpslab.plan.cell import CellPlan, Limits, Plan
from scpslab.plan.disciplines import DISCIPLINES, Queue
from scpslab.plan.links import Direction, Link
from scpslab.plan.network import NetworkPlan
from scpslab.plan.nodes import Host, ScpsRouter, Switch
from scpslab.plan.places import Places, Problem, one_of, twice
from scpslab.plan.schema import shown
from scpslab.plan.script import LinkStep, RunStep
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.stacks import STACKS
from scpslab.plan.workloads import Traffic

LONGEST_DELAY_NS = 2**31 * 1000  # netem keeps it in 64 bits; half an hour is beyond Mars
LARGEST_OVERHEAD_BYTES = 65_535  # RFC 791 §3.1, Total Length
SMALLEST_PACKET_BYTES = 28  # IP and UDP (RFC 791 §3.1, RFC 768)
# Records of the lab's own.
RECORDS = ("lab", "accounting", "script")


def problems(plan: Plan) -> Iterator[Problem]:
    """Every place of a plan that does not fit, with what was found and expected."""
    network, cell = plan.network, plan.cell
    yield from _within("network", network_problems(network))
    places = _places(network)
    yield from _within(
        "cell", (*_limits(cell.limits), *_impairments(cell, network), *_workloads(cell, places), *_probes(cell, places))
    )
    yield from _within("cell", (*_script(cell, places), *_services(cell, network)))
    yield from _records(plan)


def network_problems(network: NetworkPlan) -> Iterator[Problem]:
    """Every place of a network that does not fit."""
    yield from _nodes(network)
    yield from _sources(network)
    yield from _links(network)
    yield from _serial_links(network)
    yield from _interfaces(network)
    yield from _vectors(network)


def _within(part: str, found: Iterable[Problem]) -> Iterator[Problem]:
    return ((f"{part}.{place}", text) for place, text in found)


def _limits(limits: Limits) -> Iterator[Problem]:
    if limits.tick_ns is not None:
        for key, value in (("late_ns", limits.late_ns), ("late_share", limits.late_share)):
            if value is None:
                yield f"limits.{key}", "found no such key beside tick_ns; expected one"


def _sources(network: NetworkPlan) -> Iterator[Problem]:
    """A node sends from its own addresses."""
    owned = [(end.node, end.ip.split("/")[0]) for link in network.all_links for end in link.ends if end.ip]
    for index, node in enumerate(network.nodes):
        for number, route in enumerate(() if isinstance(node, Switch) else node.routes):
            if route.src is not None and (node.name, route.src) not in owned:
                yield (
                    f"nodes[{index}].routes[{number}].src",
                    one_of(route.src, [ip for owner, ip in owned if owner == node.name]),
                )


def _nodes(network: NetworkPlan) -> Iterator[Problem]:
    yield from _twice(
        ((f"nodes[{index}].name", node.name) for index, node in enumerate(network.nodes)), "a name of its own"
    )
    hosts = [node.name for node in network.nodes if isinstance(node, Host)]
    for index, node in enumerate(network.nodes):
        at = f"nodes[{index}]"
        if isinstance(node, Switch):
            if node.mirror_to is not None and node.mirror_to not in hosts:
                yield f"{at}.mirror_to", one_of(node.mirror_to, hosts)
        elif (node.container is not None) != (network.containers == "docker"):
            found = "no container" if node.container is None else "a container"
            yield (
                f"{at}.container",
                f"found {found}; expected one exactly where containers is docker, and not {network.containers}",
            )
        elif STACKS[node.stack].is_own_image and node.container is None:
            yield f"{at}.stack", f"found {shown(node.stack)} without a container; expected containers to be docker"


def _links(network: NetworkPlan) -> Iterator[Problem]:
    nodes = {node.name: node for node in network.nodes}
    everywhere = [*((f"links[{index}].name", link.name) for index, link in enumerate(network.links))]
    everywhere += [(f"serial_links[{index}].name", link.name) for index, link in enumerate(network.serial_links)]
    yield from _twice(everywhere, "a name of its own")
    for index, link in enumerate(network.links):
        at = f"links[{index}]"
        yield from _ends(link, at, list(nodes))
        if (link.via is None) != (link.relay_interfaces is None):
            yield f"{at}.relay_interfaces", "found one of via and relay_interfaces; expected both or none of them"
        if link.via is not None and not isinstance(nodes.get(link.via), Switch):
            yield f"{at}.via", one_of(link.via, [node.name for node in network.nodes if isinstance(node, Switch)])
        for number, direction in enumerate(link.directions):
            for key, text in direction_problems(direction, has_relay=link.via is not None):
                yield f"{at}.directions[{number}].{key}", text


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
    for number, node in enumerate(_nodes_of(link)):
        if node not in nodes:
            yield f"{at}.ends[{number}].node", one_of(node, nodes)
    first, second = _nodes_of(link)
    for number, (start, stop) in enumerate(((first, second), (second, first))):
        direction = link.directions[number]
        if (direction.from_, direction.to) != (start, stop):
            found = f"found {shown(direction.from_)} to {shown(direction.to)}"
            yield (
                f"{at}.directions[{number}].from",
                f"{found}; expected {shown(start)} to {shown(stop)}, as the ends are",
            )
    if link.directions[0].name == link.directions[1].name:
        yield f"{at}.directions[1].name", f"found {shown(link.directions[1].name)} twice; expected a name of its own"


def _nodes_of(link: Link | SerialLink) -> tuple[str, str]:
    return link.ends[0].node, link.ends[1].node


def _serial_links(network: NetworkPlan) -> Iterator[Problem]:
    hosts = [node.name for node in network.nodes if isinstance(node, Host)]
    np_routers = [node.name for node in network.nodes if isinstance(node, ScpsRouter)]
    seen: set[str] = set()
    for index, link in enumerate(network.serial_links):
        at = f"serial_links[{index}]"
        if link.ppp is not None and network.containers == "docker":
            yield f"{at}.ppp", "found PPP with containers; expected nodes that are processes"
        yield from _ends(link, at, np_routers if link.ppp is None else hosts)
        if (link.ppp is None) != (link.np_mtu_bytes is not None):
            yield f"{at}.ppp", "found both or none of ppp and np_mtu_bytes; expected one of them"
        for number, direction in enumerate(link.directions):
            for key, text in delay_problems("delay_ns", direction.delay_ns):
                yield f"{at}.directions[{number}].{key}", text
        for number, end in enumerate(link.ends):
            if (end.ip is None or end.interface is None) != (link.ppp is None):
                yield (
                    f"{at}.ends[{number}].ip",
                    "found an address and interface without PPP, or PPP without them; expected both with PPP only",
                )
            if end.node in seen:
                yield (
                    f"{at}.ends[{number}].node",
                    f"found {shown(end.node)} at a second serial link; expected one at most",
                )
            seen.add(end.node)


def _interfaces(network: NetworkPlan) -> Iterator[Problem]:
    places: list[Problem] = []
    for index, link in enumerate(network.links):
        places += [(f"links[{index}].ends[{number}].interface", end.interface) for number, end in enumerate(link.ends)]
        places += [
            (f"links[{index}].relay_interfaces[{number}]", name)
            for number, name in enumerate(link.relay_interfaces or ())
        ]
    yield from _twice(places, "a name of its own")
    macs = (
        (f"links[{index}].ends[{number}].mac", end.mac)
        for index, link in enumerate(network.links)
        for number, end in enumerate(link.ends)
    )
    yield from _twice(macs, "an address of its own")
    addresses = (
        (f"links[{index}].ends[{number}].ip", str(ipaddress.IPv4Interface(end.ip).ip))
        for index, link in enumerate(network.links)
        for number, end in enumerate(link.ends)
        if end.ip is not None
    )
    yield from _twice(addresses, "an address of its own")


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


def _workloads(cell: CellPlan, places: Places) -> Iterator[Problem]:
    for index, workload in enumerate(cell.workloads):
        for key, text in _workload(workload, places):
            yield f"workloads[{index}].{key}", text


def _workload(workload: Traffic, places: Places) -> Iterator[Problem]:
    ends = (("from", workload.from_), ("to", workload.to))
    if missing := [(key, one_of(name, places.stacks)) for key, name in ends if name not in places.stacks]:
        yield from missing
        return
    if workload.from_ == workload.to:
        yield "to", f"found {shown(workload.to)} at both ends; expected two hosts"
    yield from workload.problems(places)


def _probes(cell: CellPlan, places: Places) -> Iterator[Problem]:
    for index, probe in enumerate(cell.probes):
        for key, text in probe.problems(places):
            yield f"probes[{index}].{key}", text


def _script(cell: CellPlan, places: Places) -> Iterator[Problem]:
    for index, step in enumerate(cell.script):
        at = f"script[{index}]"
        if isinstance(step, RunStep) and step.node not in places.speaking:
            yield f"{at}.node", one_of(step.node, places.speaking)
        if isinstance(step, LinkStep):
            for key, text in places.not_directions(step.link, step.directions):
                yield f"{at}.{key}", text
            seeds = len(step.seeds or ())
            if seeds != (len(step.directions) if step.change == "ber" else 0):
                yield (
                    f"{at}.seeds",
                    f"found {seeds} seeds; expected one for each direction where bit errors change, and none elsewhere",
                )


def _services(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    """Each on a node that has its programs, with a log of its own, and no two behind one port."""
    found = list(enumerate(cell.services))
    for index, service in found:
        nodes = {node.name: node for node in network.speaking if service.can_run_on(node)}
        if service.node not in nodes:
            yield f"services[{index}].node", one_of(service.node, nodes)
            continue
        yield from ((f"services[{index}].{key}", text) for key, text in service.problems(network))
    users = [(f"workloads[{index}].name", workload.name) for index, workload in enumerate(cell.workloads)]
    yield from _twice(
        [*users, *((f"services[{index}].name", service.name) for index, service in found)],
        "a name that no workload and no other service has",
    )
    ports = (
        (f"services[{index}].ready_port", f"{one.node}:{one.listens_at}")
        for index, one in found
        if one.listens_at is not None
    )
    yield from _twice(ports, "a port that no other service of the node has")


def _impairments(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    """Each of a direction that there is, and of one only; what is drawn has a seed."""
    directions = {(link.name, direction.name): direction for link in network.all_links for direction in link.directions}
    names = [
        (f"impairments[{index}].direction", f"{one.link}.{one.direction}") for index, one in enumerate(cell.impairments)
    ]
    yield from _twice(names, "what goes wrong in a direction in one place")
    for index, one in enumerate(cell.impairments):
        at = f"impairments[{index}]"
        if (direction := directions.get((one.link, one.direction))) is None:
            yield f"{at}.direction", one_of(f"{one.link}.{one.direction}", [".".join(names) for names in directions])
            continue
        jitters = isinstance(direction, Direction) and direction.jitter_ns > 0
        if (one.seed is None) == (jitters or one.duplicate is not None):
            yield (
                f"{at}.seed",
                "found a seed without jitter and duplicate, or one of them without a seed; expected both or none",
            )
        if one.duplicate is not None and not isinstance(direction, Direction):
            yield (
                f"{at}.duplicate",
                "found packets that arrive twice on a serial link; expected them on a link of packets",
            )
    jittered = [
        name for name, direction in directions.items() if isinstance(direction, Direction) and direction.jitter_ns
    ]
    if missing := [name for name in jittered if cell.impairment(*name) is None]:
        yield "impairments", f"found no seed for the jitter of {'.'.join(missing[0])}; expected one"


def _vectors(network: NetworkPlan) -> Iterator[Problem]:
    """No two directions may have one file of bit errors."""
    at = {link.name: f"links[{index}]" for index, link in enumerate(network.links)}
    at |= {link.name: f"serial_links[{index}]" for index, link in enumerate(network.serial_links)}
    files = (
        (link.name, number, name)
        for link in network.all_links
        for number, name in enumerate(direction.name for direction in link.directions)
    )
    places = ((f"{at[link]}.directions[{number}].name", names.file_name(link, name)) for link, number, name in files)
    yield from _twice(places, "names of link and direction that no other direction has together")


def _records(plan: Plan) -> Iterator[Problem]:
    """No two parts may write the same file."""
    cell = plan.cell
    records = [("the lab", name) for name in RECORDS]
    records += [
        (f"network.serial_links[{index}].name", link.name) for index, link in enumerate(plan.network.serial_links)
    ]
    records += [
        (f"cell.services[{index}].name", one.name) for index, one in enumerate(cell.services) if one.writes_record
    ]
    records += [(f"cell.workloads[{index}].name", workload.name) for index, workload in enumerate(cell.workloads)]
    records += [
        (f"cell.probes[{index}].name", probe.name)
        for index, probe in enumerate(cell.probes)
        if probe.folder == "records"
    ]
    yield from _twice(records, "a name that no other record has")
    captures = [
        (f"cell.probes[{index}].name", probe.name)
        for index, probe in enumerate(cell.probes)
        if probe.folder == "captures"
    ]
    yield from _twice(captures, "a name that no other capture has")


def _twice(named: Iterable[Problem], expected: str) -> Iterator[Problem]:
    return ((place, f"found {shown(name)} twice; expected {expected}") for place, name in twice(named))
