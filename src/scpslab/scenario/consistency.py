"""What must hold between the parts of a scenario and its topology: names that exist, quantities that can be. Form is the model's business."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scpslab import units
from scpslab.documents.places import Places, one_of
from scpslab.documents.yaml_lines import KeyPath
from scpslab.plan.stacks import KERNEL, SCPS
from scpslab.scenario import link_rules
from scpslab.scenario.model import (
    Bulk,
    Capture,
    CongestionTraffic,
    Endpoint,
    Fp,
    Ftp,
    Iperf3,
    Ping,
    QueueDepth,
    RunStep,
    ScenarioFile,
    TcpInfo,
    Verdicts,
)
from scpslab.scenario.model.probes import name_of
from scpslab.scenario.model.sweep import axis_values
from scpslab.scenario.rates import Way, mtu_bytes, slowest_bps, way
from scpslab.stacks import STACKS, plan_node
from scpslab.topology import catalogue
from scpslab.topology import description as topology

Problem = tuple[KeyPath, str]

IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES, IP_UDP_HEADERS_BYTES = 40, 12, 28
SMALLEST_TCP_MAXSEG = 88  # TCP_MIN_MSS of Linux: a smaller TCP_MAXSEG is refused
SMALLEST_MTU, LARGEST_MTU = 68, 65_535  # RFC 791, and what IPv4's length field holds
SMALLEST_MEMORY_BYTES = 128 << 20
PCAP_RECORD_BYTES = 16
LARGEST_MEMORY_BYTES = 1 << 40
MOST_DRAWS = 1_000_000


def describe(model: ScenarioFile, places: Places) -> topology.Network:
    """The scenario's topology with its parameters.

    Raises:
        ScenarioError: unknown topology, unknown parameters, or values that do not fit.
    """
    try:
        module = catalogue.module(model.topology)
    except KeyError as error:
        raise places.error([(("topology",), f'found "{model.topology}"; {one_of(model.topology, catalogue.names())}')]) from error
    declared = module.PARAMETERS.declared
    found: list[Problem] = []
    for name, value in model.parameters.items():
        if name not in declared:
            found.append((("parameters", name), f'found the unknown parameter "{name}"; {one_of(name, declared)}'))
            continue
        try:
            declared[name].read(value)
        except units.UnitError as error:
            found.append((("parameters", name), f"{error}. Correct the value."))
    if found:
        raise places.error(found)
    network: topology.Network = module.describe(module.PARAMETERS.read(model.parameters))
    for mtu in sorted({link.mtu_bytes for link in network.links if not SMALLEST_MTU <= link.mtu_bytes <= LARGEST_MTU}):
        raise places.error([(("parameters", "mtu"), f"found an MTU of {mtu} B; expected {SMALLEST_MTU} B to {LARGEST_MTU} B. Correct the value.")])
    return network


def problems(model: ScenarioFile, network: topology.Network, folder: Path) -> list[Problem]:
    """Everything that does not fit; `folder` is where data files are looked for."""
    hosts = [node.name for node in network.nodes if node.kind == "host"]
    found: list[Problem] = []
    if not model.workloads and not model.script:
        found.append((("workloads",), "found neither workloads nor a script; expected something that generates traffic. Add one of them."))
    found += [(("hosts", name), f'found "{name}"; {one_of(name, hosts)}') for name in model.hosts if name not in hosts]
    found += _containers(model, network)
    found += _hosts(model)
    found += _images(model)
    found += link_rules.problems(model, network, folder)
    found += _names_twice(model, network)
    for index, workload in enumerate(model.workloads):
        found += [((("workloads", index, *at)), text) for at, text in _workload(workload, model, network, hosts)]
    found += _ports_twice(model)
    found += _script(model, network)
    for index, probe in enumerate(model.probes):
        found += [((("probes", index, *at)), text) for at, text in _probe(probe, network)]
    found += _sweep(model)
    known = [workload.name for workload in model.workloads]
    found += [
        (("checks", index, "of"), f'found "{check.of}"; {one_of(check.of, known)}')
        for index, check in enumerate(model.checks)
        if check.of is not None and check.of not in known
    ]
    if not found:
        found += _room(model)
    return found


def _containers(model: ScenarioFile, network: topology.Network) -> Iterator[Problem]:
    if model.containers == "docker" and any(link.serial is not None for link in network.links):
        yield ("containers",), "found docker with a serial link, whose PPP needs rights that no container has; expected process. Leave containers out."


def _hosts(model: ScenarioFile) -> Iterator[Problem]:
    for name, host in sorted(model.hosts.items()):
        for at, text in STACKS[host.stack].problems(host, model.containers):
            yield ("hosts", name, *at), text


def _images(model: ScenarioFile) -> Iterator[Problem]:
    """Hosts that are images of somebody else's, and the one kind of workload that knows them."""
    own = {name for name, host in model.hosts.items() if host.carrier.is_own_image}
    in_docker = model.containers == "docker"
    for index, workload in enumerate(model.workloads):
        if isinstance(workload, Endpoint):
            if not in_docker:
                yield (
                    ("workloads", index, "kind"),
                    "found endpoint with nodes that are processes; expected containers. Add containers: docker, or use kind bulk.",
                )
            for end in (workload.from_, workload.to):
                if model.host(end).carrier is SCPS:
                    found = f"found endpoint with the stack {model.host(end).stack} on {end}"
                    yield ("workloads", index, "kind"), f"{found}; expected image or kernel. Use kind bulk."
        elif taken := own & {workload.from_, workload.to}:
            found = f"found {workload.kind} with the stack {model.host(min(taken)).stack} on {min(taken)}"
            yield ("workloads", index, "kind"), f"{found}; expected endpoint. Use kind endpoint."


def _names_twice(model: ScenarioFile, network: topology.Network) -> Iterator[Problem]:
    named: list[tuple[KeyPath, str]] = [(("workloads", index), workload.name) for index, workload in enumerate(model.workloads)]
    named += [(("probes", index), name_of(probe)) for index, probe in enumerate(model.probes) if not isinstance(probe, Capture)]
    own = ["lab", "accounting", "script", *(link.name for link in network.links if link.serial)]
    seen: dict[str, KeyPath] = {}
    for at, name in [*named, *(((name,), name) for name in own)]:
        if name in seen:
            # The lab's own records have these names.
            where = seen[name] if at == (name,) else at
            yield where, f'found the name "{name}", which another record has; expected a name of its own. Give it another name.'
        seen.setdefault(name, at)
    captures: set[str] = set()
    for index, probe in enumerate(model.probes):
        if isinstance(probe, Capture):
            if name_of(probe) in captures:
                yield ("probes", index), f'found a second capture "{name_of(probe)}"; expected a name of its own. Add name.'
            captures.add(name_of(probe))


def _script(model: ScenarioFile, network: topology.Network) -> Iterator[Problem]:
    links = {link.name: link for link in network.links if link.serial is None}
    nodes = [node.name for node in network.nodes if node.kind != "switch"]
    for index, step in enumerate(model.script or ()):
        at: KeyPath = ("script", index)
        if isinstance(step, RunStep):
            if step.node not in nodes:
                yield (*at, "node"), f'found "{step.node}"; {one_of(step.node, nodes)}'
            continue
        if step.link not in links:
            yield (*at, "link"), f'found "{step.link}"; {one_of(step.link, links)}'
            continue
        link = links[step.link]
        chosen = [direction for direction in (link.forward, link.reverse) if step.direction in (None, direction.name)]
        if not chosen:
            yield (*at, "direction"), f'found "{step.direction}"; {one_of(str(step.direction), [link.forward.name, link.reverse.name])}'
        if step.delay is not None and link.via is None:
            yield (*at, "delay"), f"found a delay of {step.link}, which has no relay; expected a link that goes through a switch. Choose another link."
        if step.rate is not None and any(not link_rules.serialises(model, link, direction) for direction in chosen):
            yield (*at, "rate"), f"found a rate of {step.link}, which has no serialiser with a drop-tail queue; expected one. Choose another link."
        if step.rate is not None and units.parse("rate", step.rate) % 8:
            yield (*at, "rate"), f'found "{step.rate}"; expected a multiple of 8 bit/s. Change it by a few bit/s.'


def _ports_twice(model: ScenarioFile) -> Iterator[Problem]:
    seen: dict[tuple[str, int], str] = {}
    for index, workload in enumerate(model.workloads):
        if isinstance(workload, Ping):
            continue
        from_serves = (isinstance(workload, Ftp) and workload.command == "get") or (isinstance(workload, Fp) and not workload.from_client)
        serves = workload.from_ if from_serves else workload.to
        place = (serves, workload.port)
        if place in seen:
            yield (
                ("workloads", index, "port"),
                f"found port {workload.port} of {serves}, where {seen[place]} listens; expected a port of its own. Add port.",
            )
        seen.setdefault(place, workload.name)


def _workload(workload: Any, model: ScenarioFile, network: topology.Network, hosts: list[str]) -> Iterator[Problem]:
    ends = list(_ends(workload, network, hosts))
    yield from ends
    if ends:
        return
    found = way(network, workload.from_, workload.to)
    match workload:
        case Bulk():
            yield from _bulk(workload, mtu_bytes(found) or LARGEST_MTU, model)
        case CongestionTraffic():
            yield from _congestion(workload, found, model)
        case Ftp():
            yield from _kernel_only(workload, model)
        case Fp():
            yield from _fp(workload, mtu_bytes(found) or LARGEST_MTU, model)
        case Iperf3():
            yield from _iperf3(workload, model)
    if isinstance(workload, Bulk | Endpoint | Ftp | Fp):
        yield from _fits_in_time(workload, found, model)


def _congestion(workload: CongestionTraffic, found: Way, model: ScenarioFile) -> Iterator[Problem]:
    packet, mtu = units.parse("size", workload.packet), mtu_bytes(found) or LARGEST_MTU
    if not IP_UDP_HEADERS_BYTES < packet <= mtu:
        yield ("packet",), f'found "{workload.packet}"; expected {IP_UDP_HEADERS_BYTES + 1} B to the MTU of {mtu} B. Correct the value.'
    draws = units.parse("duration", model.limits.virtual) // units.parse("duration", workload.redraw)
    if draws > MOST_DRAWS:
        yield ("redraw",), f'found "{workload.redraw}", {draws} rates in limits.virtual; expected at most {MOST_DRAWS}. Redraw less often.'
    if workload.level is not None and slowest_bps(model, found) is None:
        yield ("level",), f"found a level on a way without a rate; expected a slowest hop between {workload.from_} and {workload.to}. Use max_rate."


def _bulk(workload: Bulk, mtu: int, model: ScenarioFile) -> Iterator[Problem]:
    if workload.congestion is not None and model.host(workload.from_).carrier is not KERNEL:
        yield (
            ("congestion",),
            f'found "{workload.congestion}" for a transfer from {workload.from_}, which has another stack; expected none. Set it on the host.',
        )
    yield from _segment(workload, mtu, model)


def _fp(workload: Fp, mtu: int, model: ScenarioFile) -> Iterator[Problem]:
    hosts = {end: model.host(end) for end in (workload.from_, workload.to)}
    if workload.bets and (others := [end for end, host in hosts.items() if host.carrier is not SCPS]):
        yield ("bets",), f"found best effort with the stack {hosts[others[0]].stack} on {others[0]}; expected scps at both ends. Use stack scps, or no bets."
    if workload.segment is not None and any(host.carrier is SCPS for host in hosts.values()):
        yield from _segment(workload, mtu, model)


def _iperf3(workload: Iperf3, model: ScenarioFile) -> Iterator[Problem]:
    if workload.udp_rate is None:
        yield from _kernel_only(workload, model)
    if workload.duration is not None and units.parse("duration", workload.duration) % 10**9:
        yield ("duration",), f'found "{workload.duration}"; expected whole seconds. Correct the value.'


def _kernel_only(workload: Ftp | Iperf3, model: ScenarioFile) -> Iterator[Problem]:
    """These programs know the kernel's TCP only."""
    if other := [end for end in (workload.from_, workload.to) if model.host(end).carrier is not KERNEL]:
        what = "ftp" if isinstance(workload, Ftp) else "iperf3 over TCP"
        yield ("kind",), f"found {what} with the stack {model.host(other[0]).stack} on {other[0]}; expected kernel. Use kind bulk or fp, or stack kernel."


def _ends(workload: Any, network: topology.Network, hosts: list[str]) -> Iterator[Problem]:
    addressed = [name for name in hosts if any(ip for link in network.links for node, ip in ((link.a, link.a_ip), (link.b, link.b_ip)) if node == name)]
    for key, name in (("from", workload.from_), ("to", workload.to)):
        if name not in hosts:
            yield (key,), f'found "{name}"; {one_of(name, hosts)}'
        elif name not in addressed:
            yield (key,), f'found "{name}", which has no address; {one_of(name, addressed)}'
    if workload.from_ == workload.to:
        yield ("to",), f'found "{workload.to}" at both ends; expected two hosts. Choose another.'


def _fits_in_time(workload: Bulk | Endpoint | Ftp | Fp, found: Way, model: ScenarioFile) -> Iterator[Problem]:
    rate = slowest_bps(model, found)
    need_ns = units.parse("size", workload.size) * 8 * 10**9 // rate if rate else 0
    for limit, text in (("patience", workload.patience), ("limits.virtual", model.limits.virtual)):
        if need_ns > units.parse("duration", text):
            shown = f"{need_ns / 10**9:.6g} s at the slowest hop"
            yield ("size",), f'found "{workload.size}", {shown}; expected it to fit in {limit}, "{text}". Send less or raise {limit}.'
            return


def _segment(workload: Bulk | Fp, mtu: int, model: ScenarioFile) -> Iterator[Problem]:
    segment = units.parse("size", workload.segment or "0 B")
    ends = [plan_node(model.host(host)) for host in (workload.from_, workload.to)]
    options = TIMESTAMP_BYTES if all(end.timestamps for end in ends) else 0
    room = mtu - IP_TCP_HEADERS_BYTES - options
    if segment > room:
        yield ("segment",), f'found "{workload.segment}"; expected at most the {room} B that an MTU of {mtu} B leaves. Correct segment or the parameter mtu.'
    elif segment + options < SMALLEST_TCP_MAXSEG and segment != room and model.host(workload.from_).carrier is KERNEL:
        exact = segment + IP_TCP_HEADERS_BYTES + options
        yield (
            ("segment",),
            f'found "{workload.segment}", smaller than the kernel allows by itself; expected an MTU that forces it. Set the parameter mtu to {exact} B.',
        )


def _probe(probe: Any, network: topology.Network) -> Iterator[Problem]:
    links = {link.name: link for link in network.links}
    match probe:
        case Capture() | TcpInfo():
            # Switches have no connections; every node has interfaces.
            nodes = [node.name for node in network.nodes if isinstance(probe, Capture) or node.kind != "switch"]
            if probe.node not in nodes:
                yield ("node",), f'found "{probe.node}"; {one_of(probe.node, nodes)}'
            elif isinstance(probe, Capture) and probe.filter.lstrip().startswith("-"):
                yield ("filter",), f'found "{probe.filter}", which tcpdump would take for an option; expected a filter. Write "not" for a minus.'
            elif isinstance(probe, Capture) and probe.link is not None:
                near = [name for name, link in links.items() if probe.node in (link.a, link.b, link.via)]
                if probe.link not in near:
                    yield ("link",), f'found "{probe.link}"; {one_of(probe.link, near)}'
        case QueueDepth() | Verdicts():
            with_stages = [name for name, link in links.items() if link.serial is None]
            if probe.link not in with_stages:
                yield ("link",), f'found "{probe.link}"; {one_of(probe.link, with_stages)}'
                return
            link = links[probe.link]
            known = [link.forward.name, link.reverse.name]
            if probe.direction not in known:
                yield ("direction",), f'found "{probe.direction}"; {one_of(probe.direction, known)}'
            if isinstance(probe, QueueDepth) and probe.stage == "delay" and link.via is None:
                yield ("stage",), f"found the delay stage of {probe.link}, which has none; expected a link that goes through a switch. Use stage queue."


def _sweep(model: ScenarioFile) -> Iterator[Problem]:
    for axis, spec in model.sweep.items():
        values = [str(value) for value in axis_values(spec)]
        if len(set(values)) < len(values):
            yield ("sweep", axis), "found a value twice; expected each once. Remove one; more of the same is what repeats are for."
    for index, skip in enumerate(model.skip):
        for axis in skip:
            if axis not in model.sweep:
                yield ("skip", index, axis), f'found the axis "{axis}"; {one_of(axis, model.sweep)}'


def _room(model: ScenarioFile) -> Iterator[Problem]:
    """Captures are kept in the guest's memory while a cell runs."""
    memory = units.parse("size", model.limits.memory)
    if memory < SMALLEST_MEMORY_BYTES:
        yield ("limits", "memory"), f'found "{model.limits.memory}"; expected at least {SMALLEST_MEMORY_BYTES >> 20} MiB. Raise it.'
        return
    if memory > LARGEST_MEMORY_BYTES:
        yield ("limits", "memory"), f'found "{model.limits.memory}"; expected at most {LARGEST_MEMORY_BYTES >> 30} GiB. Lower it.'
    packets = sum(2 * units.parse("size", workload.size) // units.parse("size", workload.segment) for workload in model.workloads if isinstance(workload, Bulk))
    captures = sum(packets * (units.parse("size", probe.snaplen) + PCAP_RECORD_BYTES) for probe in model.probes if isinstance(probe, Capture))
    if captures > memory // 2:
        found = f'found captures of about {captures >> 20} MiB in a guest of "{model.limits.memory}"; expected at most half of it'
        yield ("probes",), f"{found}. Raise limits.memory to {-(-2 * captures // (1 << 20))} MiB, or capture less."
