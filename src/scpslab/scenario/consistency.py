"""What must hold between the parts of a scenario and its topology: names that exist, quantities that can be.

Form is the model's business. What one kind asks for is in its own file; a rule of what a plan can say is the plan's
(plan/consistency.py): here are the keys by which a scenario says it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scpslab.core import units
from scpslab.core.choices import choice, renamed
from scpslab.core.errors import ScenarioError
from scpslab.core.names import node_and_link
from scpslab.core.problems import KeyPath, Problem
from scpslab.documents.document import Places
from scpslab.documents.quantities import Products, Quantity
from scpslab.plan.cell import Impairment
from scpslab.plan.consistency import RECORDS, same_files
from scpslab.plan.error_models import MODELS as PLANNED
from scpslab.plan.network import IPV4_ALONE, REMOVE_IPV6, NetworkPlan
from scpslab.plan.nodes import Host, ScpsRouter
from scpslab.plan.np import LAN
from scpslab.plan.paths import NoPathError, slowest
from scpslab.plan.services import SERVICES, Asked, misplaced
from scpslab.plan.topology import Network
from scpslab.plan.topology.routes import WordError
from scpslab.plan.workloads import WORKLOADS
from scpslab.scenario import packs, services
from scpslab.scenario.disciplines import DISCIPLINES
from scpslab.scenario.errors import MODELS
from scpslab.scenario.events import LinkStep, ServiceStep
from scpslab.scenario.kinds import at_keys, key_of
from scpslab.scenario.model import Direction, ScenarioFile, axis_values
from scpslab.scenario.services import MOST_HOSTS, MOST_PROGRAMS
from scpslab.scenario.survey import Surveyed, ends_of, there_and_back
from scpslab.scenario.topologies import Topologies, Topology, TopologyError
from scpslab.scenario.workloads import Surroundings, Workload

# What links have that topologies had as parameters in 0.3.0.
FORMER_PARAMETER = re.compile(r"(?:(?:data|ack|sat|phone|trunk|hop|lan)_|(?=framing))(rate|delay|buffer|framing)")
NOW_OF_LINKS = {"rate": "rate", "delay": "delay", "buffer": "queue.limit", "framing": "overhead"}
SMALLEST_MTU, LARGEST_MTU = 68, 65_535  # RFC 791, and what IPv4's length field holds
SMALLEST_MEMORY_BYTES, LARGEST_MEMORY_BYTES = 128 << 20, 1 << 40
# Whose packets may be that are of no workload or service.
OTHER_OWNERS = ("unknown", "kernel", "lab")


def describe(model: ScenarioFile, places: Places, topologies: Topologies) -> Network:
    """The scenario's topology with its parameters.

    Raises:
        ScenarioError: unknown topology, unknown parameters, or values that do not fit.
    """
    try:
        topology = topologies.find(model.topology, places.path.parent)
        if wrong := list(_parameters(model, topology)):
            raise places.error(wrong)
        return topology.described(model.parameters)
    except TopologyError as error:
        raise ScenarioError(f"{places.of(('topology',))}: {error}") from error


def _parameters(model: ScenarioFile, topology: Topology) -> Iterator[Problem]:
    """Parameters that the topology has not, or of values that do not fit."""
    declared = topology.parameters.declared
    for name, value in model.parameters.items():
        if name not in declared:
            former = FORMER_PARAMETER.fullmatch(name)
            now = renamed(f"links.LINK.DIRECTION.{NOW_OF_LINKS[former[1]]}") if former else choice(name, declared)
            yield Problem(("parameters", name), f'the unknown parameter "{name}"', *now)
            continue
        try:
            declared[name].read(value)
        except units.UnitError as error:
            yield error.at(("parameters", name), "Correct the value.")


def mtu_problems(network: Network) -> Iterator[Problem]:
    """An MTU that IPv4 has not."""
    for mtu in sorted({link.mtu_bytes for link in network.all_links}):
        if not SMALLEST_MTU <= mtu <= LARGEST_MTU:
            expected = f"{SMALLEST_MTU} B to {LARGEST_MTU} B"
            yield Problem(("parameters", "mtu"), f"an MTU of {mtu} B", expected, "Correct the value.")
            return


def problems(model: ScenarioFile, surveyed: Surveyed, folder: Path) -> list[Problem]:
    """Everything that does not fit but the errors of links; `folder` is where data files are looked for."""
    network = surveyed.network
    wrong = [
        *_parts(model, network),
        *_routing(model, network),
        *_links(model, network),
        *_scps_in_ipv6(model, network),
        *_names_twice(model, network),
        *_names_of_others(model),
        *packs.problems(model.programs, folder),
        *_workloads(model, surveyed, folder),
        *_scps_addresses(model, surveyed),
        *_too_late(model),
        *_of_each("events", model.events or (), network),
        *_services(model, surveyed),
        *_of_each("probes", model.probes, network),
        *_sweep(model),
    ]
    return wrong or list(_memory(model))


def _scps_addresses(model: ScenarioFile, surveyed: Surveyed) -> Iterator[Problem]:
    """More SCPS programs than have addresses."""
    hosts = [name for name, host in surveyed.hosts.items() if host.scps is not None]
    nodes = len(hosts) + sum(isinstance(node, ScpsRouter) for node in surveyed.network.nodes)
    if nodes > MOST_HOSTS:
        yield Problem(("hosts",), f"{nodes} nodes with SCPS programs", f"at most {MOST_HOSTS}", "Use fewer.")
    ends = programs_of(model)
    for name in hosts:
        if ends[name] > MOST_PROGRAMS:
            found = f"{ends[name]} transfers at {name}, each with a SCPS program there"
            yield Problem(("workloads",), found, f"at most {MOST_PROGRAMS}", "Use further hosts.")


def programs_of(model: ScenarioFile) -> Counter[str]:
    """How many transfers each host has at most, each of which may need a program there."""
    ends = ((end, one.most) for one in model.workloads for end in (one.sender, one.receiver))
    return Counter(end for end, most in ends for _ in range(most))


def _unknown(at: KeyPath, word: object, known: Iterable[str]) -> Iterator[Problem]:
    """A word that none of the known ones is."""
    names = list(known)
    if word not in names:
        yield Problem(at, f'"{word}"', *choice(word, names))


def _routing(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    """Routes that follow contacts, where there are none, or no such routes."""
    if model.routing is None:
        return
    if all(one.profile is None for directions in model.links.values() for one in directions.values()):
        expected = "profiles that take links up and down"
        yield Problem(("routing",), "contacts without a profile", expected, "Add one, or leave routing out.")
    if any(isinstance(node, ScpsRouter) for node in network.nodes):
        expected = "routers of IP: those of SCPS-NP have tables of their own"
        yield Problem(("routing",), "contacts with such routers", expected, "Leave routing out.")


def _parts(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    """Traffic at all, hosts and routers that are there, stacks that fit their nodes, workloads of checks."""
    if not model.workloads and not model.events:
        expected = "something that generates traffic"
        yield Problem(("workloads",), "neither workloads nor events", expected, "Add one of them.")
    elif not any(
        getattr(one, "required", isinstance(one, LinkStep | ServiceStep))
        for one in (*model.workloads, *(model.events or ()))
    ):
        found = "nothing that the cell waits for: it would end before it begins"
        yield Problem(("workloads",), found, "a required one, or an event", "Add one, or leave required out.")
    for name in model.hosts:
        yield from _unknown(("hosts", name), name, network.hosts)
    routers = [node.name for node in network.nodes if isinstance(node, ScpsRouter)]
    for name in model.routers:
        yield from _unknown(("routers", name), name, routers)
    for name in routers:
        lans = [LAN] if any(name in (end.node for end in link.ends) for link in network.links) else []
        lines = [link.name for link in network.serial_links if name in (end.node for end in link.ends)]
        for at in model.router(name).sp:
            yield from _unknown(("routers", name, "sp", at), at, [*lans, *lines])
    for name, host in sorted(model.hosts.items()):
        yield from (problem.within("hosts", name) for problem in host.problems())
    names = [workload.name for workload in model.workloads]
    for index, check in enumerate(model.checks):
        if check.of is not None:
            yield from _unknown(("checks", index, "of"), check.of, names)


def _links(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    """Links and directions that are not there, and what does not fit of the others."""
    known = {link.name: link for link in network.all_links}
    for name, directions in model.links.items():
        yield from _unknown(("links", name), name, list(known))
        if name not in known:
            continue
        names = [direction.name for direction in known[name].directions]
        for direction, given in directions.items():
            yield from _unknown(("links", name, direction), direction, names)
            limit = given.queue.limit if given.queue is not None else None
            if isinstance(limit, Products) and not getattr(known[name], "rtt_ns", 1):
                at = ("links", name, direction, "queue", "limit")
                yield Problem(at, f'"{limit.text}" on a link without delay', "bytes or packets", "Say one of them.")
    yield from _planned_links(model, network)


def _planned_links(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    """What the plan's rules say of its directions, at the scenario's keys."""
    for link in network.links:
        for problem in link.problems():
            way = link.directions[int(problem.at[1])]
            own = DISCIPLINES[way.queue.discipline].planned_as if way.queue else {}
            yield _placed(model, (link.name, way.name), problem, own)
    for serial in network.serial_links:
        # The rest of a line is its topology's.
        for problem in serial.problems():
            yield _placed(model, (serial.name, serial.directions[int(problem.at[1])].name), problem, {})
    for key, others in (("containers", network.not_containable()), ("addresses", network.not_ipv6())):
        for problem in others:
            node = network.nodes[int(problem.at[1])] if problem.at[0] == "nodes" else None
            yield replace(problem, at=("hosts", node.name, "stack") if isinstance(node, Host) else (key,))


def _scps_in_ipv6(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    """Programs of SCPS in a network of IPv6, and one that has serial links alone."""
    if model.addresses == "ipv6" and not network.is_ipv6:
        found = "serial links alone with addresses of IPv6"
        yield Problem(("addresses",), found, IPV4_ALONE, REMOVE_IPV6)
    asked = [
        *((("workloads", index), one.kind, WORKLOADS[one.kind].runs_scps) for index, one in enumerate(model.workloads)),
        *((("services", index), one.kind, SERVICES[one.kind].runs_scps) for index, one in enumerate(model.services)),
    ]
    for at, kind, runs_scps in asked:
        if network.is_ipv6 and runs_scps:
            yield Problem((*at, "kind"), f"{kind} with addresses of IPv6", IPV4_ALONE, REMOVE_IPV6)


def _placed(model: ScenarioFile, place: tuple[str, str], problem: Problem, words: Mapping[str, str]) -> Problem:
    """A problem of a direction at the scenario's own key, or where it has none, at the parameters of the topology."""
    keys = [key for part in problem.at[2:] if (key := key_of(str(part))) != "settings"]
    given = model.links.get(place[0], {}).get(place[1]) or Direction()
    if getattr(given, keys[0]):
        return replace(problem, at=("links", *place, *(words.get(key, key) for key in keys)))
    return replace(problem, at=("parameters",), subject=".".join(place))


def _serial_keys(given: Direction) -> Iterator[Problem]:
    """A serial line has no packets before PPP finds them: only its rate, delay, bit errors and outages can be said."""
    for key in ("overhead", "queue", "jitter", "duplicate", "policer", "aggregate", "late"):
        if getattr(given, key) is not None:
            expected = "rate, delay and errors only"
            yield Problem((key,), f"{key} on a serial link", expected, "Use the topology's parameters.")
    if given.delay_table:
        yield Problem(("delay_table",), "delays in steps on a serial link", "one delay", "Use delay.")


def _profile(
    given: Direction, model: ScenarioFile, network: NetworkPlan, name: str, direction: str, folder: Path
) -> Iterator[Problem]:
    """What does not fit of a direction's profile."""
    link = next((one for one in network.links if one.name == name), None)
    way = next((one for one in link.directions if one.name == direction), None) if link else None
    if link is None or way is None or given.profile is None:
        if any(one.name == name for one in network.serial_links):
            yield Problem((), "a profile of a serial link", "one of a link of packets", "Choose another link.")
        return
    if wrong := list(given.profile.misfits(folder, way, link.mtu_bytes + way.overhead_bytes, model.limits.lab_time)):
        yield from wrong
        return
    planned, profile = given.profile.plan(folder, model.limits.lab_time)
    changes = _changes(model, name, direction)
    errors = given.errors.plan(folder, "0" * 64) if given.errors is not None else None
    yield from planned.misfits(link, way, errors, changes)
    if profile.ber and given.errors is not None and given.errors.settings.said().get("ber"):
        yield Problem((), "bit error rates beside errors.ber", "one of them", "Remove errors.ber.")


def _changes(model: ScenarioFile, name: str, direction: str) -> set[str]:
    """What events change of a direction."""
    steps = [step for step in model.events or () if isinstance(step, LinkStep) and step.link == name]
    return {change for step in steps if step.direction in (None, direction) for change in step.changes}


def _shaping(model: ScenarioFile, network: NetworkPlan, name: str, direction: str, folder: Path) -> Iterator[Problem]:
    """What does not fit of a direction's policer, aggregate and late packets."""
    given = model.links[name][direction]
    ways = ((link, way) for link in network.links for way in link.directions)
    for link, way in ((link, way) for link, way in ways if (link.name, way.name) == (name, direction)):
        profile = given.profile.plan(folder, model.limits.lab_time)[0] if given.profile is not None else None
        planned = Impairment(link=name, direction=direction, profile=profile, **given.shaping())
        for problem in at_keys(planned.misfits(link, way, _changes(model, name, direction))):
            yield problem.within("links", name, direction)


def error_problems(model: ScenarioFile, network: NetworkPlan, folder: Path) -> Iterator[Problem]:
    """Everything that does not fit of the errors of links, and on serial links; `folder` has their data files."""
    serial = [link.name for link in network.serial_links]
    for link, directions in model.links.items():
        for direction, given in directions.items():
            if link in serial:
                yield from (problem.within("links", link, direction) for problem in _serial_keys(given))
            if given.profile is not None:
                found_there = list(_profile(given, model, network, link, direction, folder))
                yield from (one.within("links", link, direction, "profile") for one in found_there)
                if found_there:
                    continue
            yield from _shaping(model, network, link, direction, folder)
            if (errors := given.errors) is None:
                continue
            at: KeyPath = ("links", link, direction, "errors")
            if link in serial and PLANNED[errors.model].NAMES_PACKETS:
                found = f"{errors.model} on a serial link, which knows bytes only"
                yield Problem((*at, "model"), found, "bit errors", "Choose another model.")
            if link in serial and errors.drop_packets:
                found = "a drop list on a serial link, which knows bytes only"
                yield Problem((*at, "drop_packets"), found, "bit errors or outages", "Use a vector file.")
            yield from (misfit.within(*at) for name in MODELS if (misfit := errors.of(name).misfit(folder)))


def _names_twice(model: ScenarioFile, network: NetworkPlan) -> Iterator[Problem]:
    """Parts whose files would be the same: records, the lab's own among them, and captures."""
    nodes = {node.name: node.kind for node in network.nodes}
    own = [*RECORDS, *(link.name for link in network.serial_links)]
    own += [name for kind in services.KINDS.values() for name in kind.own(model, nodes)]
    records: list[tuple[KeyPath, str]] = [((), name) for name in own]
    records += [(("workloads", index, "name"), workload.name) for index, workload in enumerate(model.workloads)]
    files = [(("probes", index, "name"), probe.folder, probe.file_name) for index, probe in enumerate(model.probes)]
    records += [(at, name) for at, folder, name in files if folder == "records"]
    records += [
        (("workloads", index, "name"), f"{workload.name}-{number}")
        for index, workload in enumerate(model.workloads)
        for number in range(1, workload.most + 1 if workload.most > 1 else 1)
    ]
    # That a workload or another service has a service's name is said where services are judged.
    judged = {workload.name for workload in model.workloads}
    accounts = {
        service.name: ("services", index, "name")
        for index, service in enumerate(model.services)
        if SERVICES[service.kind].writes_record and service.name not in judged
    }
    records += [(at, name) for name, at in accounts.items()]
    yield from same_files(records, [(at, name) for at, folder, name in files if folder == "captures"])


def _names_of_others(model: ScenarioFile) -> Iterator[Problem]:
    """Workloads and services that the record of packets would not tell from packets that are nobody's."""
    of_parts = {
        "workloads": [workload.name for workload in model.workloads],
        "services": [service.name for service in model.services],
    }
    for part, names in of_parts.items():
        for index, name in enumerate(names):
            # `lab` is refused as a record of its own.
            if name in OTHER_OWNERS and name not in RECORDS:
                expected = "another name: in the record of packets it stands for those of no workload or service"
                yield Problem((part, index, "name"), f'"{name}"', expected, "Rename it.")


def _workloads(model: ScenarioFile, surveyed: Surveyed, folder: Path) -> Iterator[Problem]:
    """Workloads that do not fit their network, or each other."""
    all_arrive = True
    for index, workload in enumerate(model.workloads):
        wrong = list(_ends(workload, surveyed))
        has_ends = not any(problem.at in (("from",), ("to",)) for problem in wrong)
        all_arrive = all_arrive and has_ends
        if has_ends:
            wrong += workload.problems(_surroundings(workload, model, surveyed, folder))
        yield from (problem.within("workloads", index) for problem in wrong)
    if all_arrive:
        yield from _sources_twice(model, surveyed)
    first: dict[tuple[str, int], int] = {}
    for index, workload in enumerate(model.workloads):
        host, port = workload.serves() or ("", 0)
        for place in ((host, port + number) for number in range(workload.most if host else 0)):
            if (other := first.setdefault(place, index)) != index:
                found = f"port {place[1]} of {host}, where {model.workloads[other].name} listens"
                yield Problem(("workloads", index, "port"), found, "a port of its own", "Add port.")
                break


def _too_late(model: ScenarioFile) -> Iterator[Problem]:
    """What begins in a cell that has so much time when that is over."""
    limit = model.limits.lab_time
    begins: list[tuple[KeyPath, Quantity]] = [
        *((("workloads", index, "start"), workload.start) for index, workload in enumerate(model.workloads)),
        *((("events", index, "at"), step.at) for index, step in enumerate(model.events or ()) if step.at is not None),
    ]
    for key, at in begins:
        if at >= limit:
            expected = f'a time before limits.lab_time, "{limit.text}", at which the cell ends'
            yield Problem(key, f'"{at.text}"', expected, "Let it begin earlier, or raise the limit.")


def _ends(workload: Workload, surveyed: Surveyed) -> Iterator[Problem]:
    """Ends that a workload cannot have, that have no address, or none on the link that they name; and no path between
    them.
    """
    kind, sender, receiver = workload.kind, workload.sender, workload.receiver
    yield from at_keys(WORKLOADS[kind].between(kind, sender, receiver, surveyed.network))
    is_reachable = sender != receiver
    for key, end in (("from", workload.from_), ("to", workload.to)):
        if node_and_link(end)[0] in surveyed.hosts:
            if problem := _without_address((key,), end, surveyed):
                is_reachable = False
                yield problem
        else:
            is_reachable = False
    if is_reachable:
        try:
            there_and_back(workload, surveyed)
        except NoPathError as error:
            found = f"no path between {sender} and {receiver}: {error}"
            do = f"State the route of {error.node} under routes, or in the topology."
            yield Problem(("to",), found, "routes both ways", do)


def _without_address(at: KeyPath, end: str, surveyed: Surveyed) -> Problem | None:
    host, link = node_and_link(end)
    addressed = list(dict.fromkeys(one.node for one in surveyed.addresses if one.node in surveyed.hosts))
    if host not in addressed:
        return Problem(at, f'"{host}", which has no address', *choice(host, addressed))
    try:
        surveyed.ip(end)
    except WordError as error:
        found = f'"{end}", and {host} has no address on a link "{link}"'
        return Problem(at, found, *choice(end, error.choices))
    return None


def _surroundings(workload: Workload, model: ScenarioFile, surveyed: Surveyed, folder: Path) -> Surroundings:
    there, _ = there_and_back(workload, surveyed)
    np_routers = {node.name for node in surveyed.network.nodes if isinstance(node, ScpsRouter)}
    return Surroundings(
        hosts=surveyed.hosts,
        mtu_bytes=min((hop.mtu_bytes for hop in there), default=LARGEST_MTU),
        slowest_bps=hop.direction.rate_bps if (hop := slowest(there)) else None,
        lab_time=model.limits.lab_time,
        has_np_router=any(end.node in np_routers for hop in there for end in hop.link.ends),
        folder=folder,
        further_bytes=20 if surveyed.network.is_ipv6 else 0,
    )


def _sources_twice(model: ScenarioFile, surveyed: Surveyed) -> Iterator[Problem]:
    """Workloads that contact one address from different ones of a host: its kernel chooses the source by the
    destination.
    """
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for index, workload in enumerate(model.workloads):
        ends = ends_of(workload)
        place = node_and_link(ends.opener)[0], surveyed.ip(ends.contacted)
        other, name = seen.setdefault(place, (ends.opener, workload.name))
        if other != ends.opener:
            found = f'"{ends.opener}" where workload {name} has "{other}", and both contact {place[1]}'
            expected = "one source for each destination of a host"
            yield Problem(("workloads", index, ends.opener_key), found, expected, "Write both alike.")


def _of_each(section: str, parts: Iterable[Any], network: NetworkPlan) -> Iterator[Problem]:
    """What does not fit of the parts of a section."""
    for index, part in enumerate(parts):
        yield from (problem.within(section, index) for problem in part.problems(network))


def _services(model: ScenarioFile, surveyed: Surveyed) -> Iterator[Problem]:
    """What the plan's rules and the kinds say of services."""
    yield from _of_each("services", model.services, surveyed.network)
    workloads = [workload.name for workload in model.workloads]
    asked: list[tuple[KeyPath, Asked]] = [
        (("services", index), (one.kind, one.name, one.node, one.listens_at))
        for index, one in enumerate(model.services)
    ]
    yield from misplaced(asked, workloads, surveyed.network)
    for index, step in enumerate(model.events or ()):
        if isinstance(step, ServiceStep):
            yield from _unknown(("events", index, "service"), step.service, [one.name for one in model.services])


def idle_skips(whole: ScenarioFile) -> Iterator[Problem]:
    """Entries of skip with a value that its axis has neither in the file nor in a variant.

    An override may leave values out, so only the file is asked.
    """
    for index, skip in enumerate(whole.skip):
        for axis, value in skip.items():
            kept = [other for variant in whole.variants.values() for other in variant.sweep.get(axis, ())]
            known = [*axis_values(whole.sweep[axis]), *kept]
            if value not in known:
                yield Problem(("skip", index, axis), f'"{value}", which matches nothing', *choice(value, known))


def _sweep(model: ScenarioFile) -> Iterator[Problem]:
    for axis, spec in model.sweep.items():
        values = [str(value) for value in axis_values(spec)]
        if len(set(values)) < len(values):
            advice = "Remove one; more of the same is what repeats are for."
            yield Problem(("sweep", axis), "a value twice", "each once", advice)
    for index, skip in enumerate(model.skip):
        for axis in skip:
            if axis not in model.sweep:
                yield Problem(("skip", index, axis), f'the axis "{axis}"', *choice(axis, model.sweep))


def _memory(model: ScenarioFile) -> Iterator[Problem]:
    """Captures are kept in the guest's memory while a cell runs."""
    memory, at = model.limits.memory, ("limits", "memory")
    if memory < SMALLEST_MEMORY_BYTES:
        yield Problem(at, f'"{memory.text}"', f"at least {SMALLEST_MEMORY_BYTES >> 20} MiB", "Raise it.")
        return
    if memory > LARGEST_MEMORY_BYTES:
        yield Problem(at, f'"{memory.text}"', f"at most {LARGEST_MEMORY_BYTES >> 30} GiB", "Lower it.")
    packets = sum(workload.packets() for workload in model.workloads)
    captures = sum(probe.memory_bytes(packets) for probe in model.probes)
    if captures > memory // 2:
        found = f'captures of about {captures >> 20} MiB in a guest of "{memory.text}"'
        do = f"Raise limits.memory to {-(-2 * captures // (1 << 20))} MiB, or capture less."
        yield Problem(("probes",), found, "at most half of it", do)
