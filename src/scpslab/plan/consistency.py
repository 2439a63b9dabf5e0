"""What must hold between the parts of a plan: names that exist and are unique, values that fit each other.

Form is the classes' business.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from scpslab.core import names
from scpslab.core.problems import KeyPath, Problem
from scpslab.plan.cell import CellPlan, Impairment, Plan, stretches_of
from scpslab.plan.disciplines import LONGEST_HELD_S
from scpslab.plan.events import LinkStep, ServiceStep
from scpslab.plan.links import Direction, Link
from scpslab.plan.network import IPV4_ALONE, NetworkPlan
from scpslab.plan.nodes import Host, ScpsRouter, Switch
from scpslab.plan.paths import parsed
from scpslab.plan.places import twice, unknown
from scpslab.plan.probes import Observer
from scpslab.plan.schema import shown
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.services import Daemon, misplaced
from scpslab.plan.workloads import Traffic

T = TypeVar("T")
# Records of the lab's own.
RECORDS = ("lab", "accounting", "events")


def problems(plan: Plan) -> Iterator[Problem]:
    """Every place of a plan that does not fit, with what was found and expected."""
    network, cell = plan.network, plan.cell
    yield from _within(("network",), network_problems(network))
    yield from _within(("cell",), _cell(cell, network))
    yield from _records(plan)


def network_problems(network: NetworkPlan) -> Iterator[Problem]:
    """Every place of a network that does not fit."""
    yield from _nodes(network)
    yield from _links(network)
    yield from _serial_links(network)
    yield from network.not_containable()
    yield from network.not_ipv6()
    yield from _own_names(network)


def _within(at: KeyPath, problems: Iterable[Problem]) -> Iterator[Problem]:
    return (problem.within(*at) for problem in problems)


def _each(items: Iterable[T], *at: str | int) -> Iterator[tuple[KeyPath, T]]:
    """The items of a list with their places; `at` is that of the list."""
    return (((*at, index), item) for index, item in enumerate(items))


def _nodes(network: NetworkPlan) -> Iterator[Problem]:
    hosts = [node.name for node in network.nodes if isinstance(node, Host)]
    owned = [(node, ip.split("/")[0]) for node, ip in network.addresses()]
    for at, node in _each(network.nodes, "nodes"):
        if isinstance(node, Switch):
            if node.mirror_to is not None and node.mirror_to not in hosts:
                yield unknown((*at, "mirror_to"), node.mirror_to, hosts)
            continue
        if (node.container is not None) != (network.containers == "docker"):
            found = f"{'no' if node.container is None else 'a'} container"
            expected = f"one exactly where containers is docker, and not {network.containers}"
            yield Problem((*at, "container"), found, expected)
        # A node sends from its own addresses.
        for place, route in _each(node.routes, *at, "routes"):
            if route.src is not None and (node.name, route.src) not in owned:
                yield unknown((*place, "src"), route.src, [ip for owner, ip in owned if owner == node.name])


def _links(network: NetworkPlan) -> Iterator[Problem]:
    nodes = {node.name: node for node in network.nodes}
    for at, link in _each(network.links, "links"):
        yield from _ends(link, at, list(nodes))
        if (link.via is None) != (link.relay_interfaces is None):
            yield Problem((*at, "relay_interfaces"), "one of via and relay_interfaces", "both or none of them")
        if link.via is not None and not isinstance(nodes.get(link.via), Switch):
            switches = [node.name for node in network.nodes if isinstance(node, Switch)]
            yield unknown((*at, "via"), link.via, switches)
        yield from _within(at, link.problems())


def _ends(link: Link | SerialLink, at: KeyPath, nodes: list[str]) -> Iterator[Problem]:
    first, second = (end.node for end in link.ends)
    for place, node in _each((first, second), *at, "ends"):
        if node not in nodes:
            yield unknown((*place, "node"), node, nodes)
    ways = [(direction.from_, direction.to) for direction in link.directions]
    for (place, way), (start, stop) in zip(
        _each(ways, *at, "directions"), ((first, second), (second, first)), strict=True
    ):
        if way != (start, stop):
            expected = f"{shown(start)} to {shown(stop)}, as the ends are"
            yield Problem((*place, "from"), f"{shown(way[0])} to {shown(way[1])}", expected)
    if link.directions[0].name == link.directions[1].name:
        found = f"{shown(link.directions[1].name)} twice"
        yield Problem((*at, "directions", 1, "name"), found, "a name of its own")


def _serial_links(network: NetworkPlan) -> Iterator[Problem]:
    hosts = [node.name for node in network.nodes if isinstance(node, Host)]
    np_routers = [node.name for node in network.nodes if isinstance(node, ScpsRouter)]
    seen: set[str] = set()
    for at, link in _each(network.serial_links, "serial_links"):
        yield from _ends(link, at, np_routers if link.ppp is None else hosts)
        yield from _within(at, link.problems())
        for place, end in _each(link.ends, *at, "ends"):
            if end.node in seen:
                yield Problem((*place, "node"), f"{shown(end.node)} at a second serial link", "one at most")
            seen.add(end.node)


def _own_names(network: NetworkPlan) -> Iterator[Problem]:
    """No two nodes, links, interfaces or addresses may have one name, and no two directions one file of bit errors."""
    links: list[tuple[KeyPath, Link | SerialLink]] = [
        *_each(network.links, "links"),
        *_each(network.serial_links, "serial_links"),
    ]
    yield from _twice((((*at, "name"), node.name) for at, node in _each(network.nodes, "nodes")), "a name of its own")
    yield from _twice((((*at, "name"), link.name) for at, link in links), "a name of its own")
    ends = [found for at, link in _each(network.links, "links") for found in _each(link.ends, *at, "ends")]
    interfaces = [((*at, "interface"), end.interface) for at, end in ends]
    relays = [((*at, "relay_interfaces"), link.relay_interfaces or ()) for at, link in _each(network.links, "links")]
    interfaces += [named for at, names_there in relays for named in _each(names_there, *at)]
    yield from _twice(interfaces, "a name of its own")
    yield from _twice((((*at, "mac"), end.mac) for at, end in ends), "an address of its own")
    addresses = (((*at, "ip"), str(parsed(end.ip).ip)) for at, end in ends if end.ip is not None)
    yield from _twice(addresses, "an address of its own")
    files = (
        ((*place, "name"), names.file_name(link.name, direction))
        for at, link in links
        for place, direction in _each([direction.name for direction in link.directions], *at, "directions")
    )
    yield from _twice(files, "names of link and direction that no other direction has together")


def _cell(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    if cell.limits.tick_ns is not None:
        for key in ("late_ns", "late_share"):
            if getattr(cell.limits, key) is None:
                yield Problem(("limits", key), "no such key beside tick_ns", "one")
    yield from _impairments(cell, network)
    for at, workload in _each(cell.workloads, "workloads"):
        yield from _within(at, _workload(workload, network))
    for at, probe in _each(cell.probes, "probes"):
        yield from _within(at, probe.problems(network))
    for at, step in _each(cell.events, "events"):
        yield from _within(at, step.problems(network))
        if isinstance(step, ServiceStep) and step.service not in (services := [one.name for one in cell.services]):
            yield unknown((*at, "service"), step.service, services)
    yield from _rates(cell, network)
    yield from _services(cell, network)
    # Every node has the same table.
    ends = [
        ((*at, key), end)
        for at, one in _each(cell.workloads, "workloads")
        for key, end in (("from_scps", one.sending_program), ("to_scps", one.receiving_program))
        if end is not None
    ]
    yield from _twice((((*at, "ip"), end.ip) for at, end in ends), "an address of its own")
    # The table is the same everywhere, and one program may be in the tables of many.
    for table in {end.np.hosts: (*at, "np", "hosts") for at, end in ends if end.np is not None}.items():
        for key in ("ip", "np"):
            hosts = ((at, getattr(host, key)) for at, host in _each(table[0], *table[1]))
            yield from _twice(hosts, "an address of its own")


def _rates(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    for link in network.links:
        for direction in link.directions:
            yield from _changing_rate(cell, link, direction)


def _changing_rate(cell: CellPlan, link: Link, direction: Direction) -> Iterator[Problem]:
    """Rates at which packets wait for longer than a queue holds them."""
    stretches, queue = stretches_of(cell, link.name, direction), direction.queue
    if not stretches or queue is None:
        return
    packet_bits = 8 * (link.mtu_bytes + direction.overhead_bytes)
    where = f"rates of {link.name}.{direction.name}"
    room = queue.limit_bytes * 8 if queue.limit_bytes is not None else (queue.limit_packets or 0) * packet_bits
    slowest = min(rate_bps for _, rate_bps in stretches)
    impairment = cell.impairment(link.name, direction.name)
    held_s = (room + packet_bits) // slowest
    if held_s + ((impairment and impairment.aggregate_ns) or 0) // 10**9 > LONGEST_HELD_S:
        found = f"{where} of {slowest} bit/s, at which a queue of {room // 8} B lasts for {held_s} s"
        yield Problem(("events",), found, f"at most {LONGEST_HELD_S} s", "Lower the queue's limit, or raise the rate.")


def _workload(workload: Traffic, network: NetworkPlan) -> Iterator[Problem]:
    wrong = list(workload.between(workload.kind, workload.from_, workload.to, network))
    yield from wrong or workload.problems(network)
    if network.is_ipv6 and workload.runs_scps:
        yield Problem(("kind",), f"{workload.kind} with addresses of IPv6", IPV4_ALONE)


def _services(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    """Each on a node that has its programs, with a log of its own, and no two behind one port."""
    services = list(_each(cell.services, "services"))
    asked = ((at, (one.kind, one.name, one.node, one.listens_at)) for at, one in services)
    wrong = list(misplaced(asked, [workload.name for workload in cell.workloads], network))
    yield from wrong
    for at, service in services:
        if network.is_ipv6 and service.runs_scps:
            yield Problem((*at, "kind"), f"{service.kind} with addresses of IPv6", IPV4_ALONE)
    for at, service in services if not wrong else ():
        yield from _within(at, service.problems(network))


OF_PACKETS = ("profile", "duplicate", "policer", "aggregate_ns", "late")


def _impairments(cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    """Each of a direction that there is, and of one only; what is drawn has a seed."""
    places = [(link.name, direction) for link in network.all_links for direction in link.directions]
    directions = {f"{link}.{direction.name}": direction for link, direction in places}
    impaired = [
        (at, f"{impairment.link}.{impairment.direction}", impairment)
        for at, impairment in _each(cell.impairments, "impairments")
    ]
    yield from _twice(
        (((*at, "direction"), name) for at, name, _ in impaired), "what goes wrong in a direction in one place"
    )
    for at, name, impairment in impaired:
        if (direction := directions.get(name)) is None:
            yield unknown((*at, "direction"), name, directions)
            continue
        jitters = isinstance(direction, Direction) and direction.jitter_ns > 0
        if (impairment.seed is None) == (jitters or impairment.duplicate is not None):
            found = "a seed without jitter and duplicate, or one of them without a seed"
            yield Problem((*at, "seed"), found, "both or none")
        if impairment.errors and impairment.errors.settings.in_time and not isinstance(direction, Direction):
            yield Problem((*at, "errors"), "errors whose clock is time on a serial link", "the clock bits")
        yield from _within(at, _fitting(impairment, cell, network))
    seeded = {name for _, name, _ in impaired}
    for name, direction in directions.items():
        if isinstance(direction, Direction) and direction.jitter_ns and name not in seeded:
            yield Problem(("impairments",), f"no seed for the jitter of {name}", "one")
            return


def _fitting(impairment: Impairment, cell: CellPlan, network: NetworkPlan) -> Iterator[Problem]:
    """What does not fit of what goes wrong in a direction."""
    ways = ((link, way) for link in network.links for way in link.directions)
    place = impairment.link, impairment.direction
    for link, direction in ((link, way) for link, way in ways if (link.name, way.name) == place):
        changes = changes_of(cell, *place)
        if impairment.profile is not None:
            found_there = impairment.profile.misfits(link, direction, impairment.errors, changes)
            yield from (problem.within("profile") for problem in found_there)
        yield from impairment.misfits(link, direction, changes)
        return
    for key in (key for key in OF_PACKETS if getattr(impairment, key) is not None):
        yield Problem((key,), f"{key} on a serial link", "it on a link of packets")


def changes_of(cell: CellPlan, link: str, name: str) -> set[str]:
    """What the events of a cell change of a direction."""
    steps = (step for step in cell.events if isinstance(step, LinkStep) and step.link == link)
    return {step.change for step in steps if name in step.directions}


def _records(plan: Plan) -> Iterator[Problem]:
    """No two parts may write the same file."""
    cell = plan.cell
    probes = list(_each(cell.probes, "cell", "probes"))
    records: list[tuple[KeyPath, SerialLink | Daemon | Traffic | Observer]] = [
        *_each(plan.network.serial_links, "network", "serial_links"),
        *((at, service) for at, service in _each(cell.services, "cell", "services") if service.writes_record),
        *_each(cell.workloads, "cell", "workloads"),
        *((at, probe) for at, probe in probes if probe.folder == "records"),
    ]
    own: list[tuple[KeyPath, str]] = [((), name) for name in RECORDS]
    captures = (((*at, "name"), probe.name) for at, probe in probes if probe.folder == "captures")
    yield from same_files([*own, *(((*at, "name"), part.name) for at, part in records)], captures)


def same_files(records: Iterable[tuple[KeyPath, str]], captures: Iterable[tuple[KeyPath, str]]) -> Iterator[Problem]:
    """Names, with their places, whose files would be the same as those of earlier ones."""
    for at, name in twice(records):
        found = f"the name {shown(name)}, which another record has"
        yield Problem(at, found, "a name of its own", "Give it another name.")
    for at, name in twice(captures):
        yield Problem(at, f"a second capture {shown(name)}", "a name of its own", "Give it another name.")


def _twice(named: Iterable[tuple[KeyPath, str]], expected: str) -> Iterator[Problem]:
    return (Problem(place, f"{shown(name)} twice", expected) for place, name in twice(named))
