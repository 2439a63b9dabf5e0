"""What of a scenario can hardly be meant: points that are planned alike, and words that a lab would take in silence.

Warnings, for a sweep or an override may have its reasons.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from scpslab.core import units
from scpslab.core.errors import some_of
from scpslab.core.problems import KeyPath, Problem
from scpslab.documents.quantities import Quantity
from scpslab.plan import Plan, schema
from scpslab.plan.disciplines import LARGEST_MANAGED_BYTES, Queue
from scpslab.plan.flows import ways
from scpslab.plan.links import Direction, Link
from scpslab.plan.nodes import Host
from scpslab.plan.paths import slowest
from scpslab.plan.stacks import KERNEL, STACKS
from scpslab.plan.workloads import SECOND_NS, Traffic
from scpslab.scenario import Cell, model
from scpslab.scenario.disciplines import DISCIPLINES
from scpslab.scenario.errors import MODELS
from scpslab.scenario.events import Happening
from scpslab.scenario.planning.estimate import least_lines, least_sent_ns
from scpslab.scenario.planning.flows import open_choices

# IPv4 and TCP without options or data: an acknowledgement; and one in a thousand of them.
SHORTEST_PACKET_BYTES, LEAST_PASSING = 40, 1e-3
# Rate control of a program of SCPS-TP that is told no rate (stack/crates/scps-cli/src/settings.rs).
SCPS_RATE_BPS = 2_000_000
# A key, and why nothing uses it in a cell; "" if it is used there.
Use = tuple[KeyPath, str]
MOST_NAMED = 3


def warnings(planned: Mapping[str, Plan], where: str) -> list[str]:
    """A sentence for each of the first groups of points with one plan; `where` is the place of the sweep."""
    groups = [ids for ids in _alike(plan for plan in planned.values() if plan.cell.repeat == 1) if len(ids) > 1]
    said = [
        f"warning: {where}: found one plan for {some_of(ids)}; expected plans that differ. "
        "What distinguishes these cells changes nothing that they use: correct the axis, or leave it out."
        for ids in groups[:MOST_NAMED]
    ]
    if len(groups) > MOST_NAMED:
        said.append(f"warning: {where}: found {len(groups) - MOST_NAMED} more groups of cells with one plan each")
    return said


def _alike(planned: Iterable[Plan]) -> Iterable[list[str]]:
    """The ids, in quotes, of cells with the same plans but for their names and the seeds that follow from these."""
    networks: dict[int, str] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    for plan in planned:
        # Cells of one shape have one network.
        network = networks.get(id(plan.network)) or json.dumps(schema.write(plan.network))
        networks[id(plan.network)] = network
        cell = json.dumps(schema.write(replace(plan.cell, id="", axes={}, kernel_seed="")))
        groups.setdefault((network, cell), []).append(f'"{plan.cell.id}"')
    return groups.values()


def doubts(cells: Sequence[Cell], planned: Mapping[str, Plan]) -> list[str]:
    """A warning for each key that no cell uses, for each that does harm in one, and for each path left open."""
    unused: dict[KeyPath, str] = {}
    used: set[KeyPath] = set()
    found: dict[str, None] = {}
    for cell in cells:
        if cell.repeat > 1:
            continue
        plan = planned[cell.id]
        for at, text in _uses(cell, plan):
            if text:
                unused.setdefault(at, f"warning: {cell.places.of(at)}: {text}")
            else:
                used.add(at)
        judged = (_too_late(cell.model), _traffic(plan), _queues(plan), _closed(plan), _services(cell.model, plan))
        found |= {f"warning: {cell.places.of(one.at)}: {one}": None for one in chain.from_iterable(judged)}
    return [*(text for at, text in unused.items() if at not in used), *found, *open_choices(cells)]


def _uses(cell: Cell, plan: Plan) -> Iterator[Use]:
    for link, direction in _directions(plan):
        at: KeyPath = ("links", link.name, direction.name)
        given = cell.model.links.get(link.name, {}).get(direction.name, model.Direction())
        if given.delay is not None:
            is_replaced = bool(given.delay_table) and given.delay_table[0].at == 0
            found = "found a delay beside a delay_table from 0 s on, which replaces it"
            yield (*at, "delay"), f"{found}; expected one of them. Remove one." if is_replaced else ""
        yield from ((((*at, *key)), text) for key, text in _errors(given))
        yield from ((((*at, *key)), text) for key, text in _after_the_end(given, cell.model.limits.lab_time))
        if given.queue is not None and direction.queue is not None:
            yield from ((((*at, "queue", name)), text) for name, text in _settings(given.queue, direction.queue))
        if direction.queue is not None and direction.queue.ecn:
            found = "found a queue that marks (ecn), and no workload with ECN on both hosts, so that it drops instead"
            text = f'{found}; expected hosts with "ecn: true". Set it for both, such as hosts.*.ecn.'
            yield (*at, "queue", "ecn"), "" if _asks_for_marks(plan) else text


def _settings(given: model.Queue, queue: Queue) -> Iterator[tuple[str, str]]:
    """The keys of disciplines that a scenario gives a queue, and why this one has no use for them."""
    for owner, discipline in DISCIPLINES.items():
        for name in discipline.model_fields:
            if getattr(given.of(owner), name) is not None:
                found = f"found {name} on a queue of discipline {queue.discipline}"
                is_used = name in DISCIPLINES[queue.discipline].model_fields
                yield name, _of_another(found, "discipline", owner, is_used=is_used)


def _errors(given: model.Direction) -> Iterator[Use]:
    """The keys of error models that a scenario gives a direction, and why its own model has no use for them."""
    if (errors := given.errors) is None:
        return
    for owner in MODELS:
        for name in sorted(errors.of(owner).model_fields_set):
            found = f"found {name} with the error model {errors.model}"
            uses = name in MODELS[errors.model].model_fields
            yield ("errors", name), _of_another(found, "model", owner, is_used=uses)


def _of_another(found: str, kind: str, owner: str, *, is_used: bool) -> str:
    if is_used:
        return ""
    return f"{found}, which does not use it; expected {kind} {owner}. Remove the key, or choose {owner}."


def _after_the_end(given: model.Direction, limit: Quantity) -> Iterator[Use]:
    """The changes of a direction, and why no cell sees them."""
    outages = given.errors.outages if given.errors is not None else ()
    times: list[tuple[KeyPath, Quantity]] = [
        (("errors", "outages", index, "from"), outage.from_) for index, outage in enumerate(outages)
    ]
    times += [(("delay_table", index, "at"), step.at) for index, step in enumerate(given.delay_table)]
    for key, time in times:
        text = (
            f'found "{time.text}", after limits.lab_time ("{limit.text}"), at which the cell ends; expected less. '
            "Remove it, or raise the limit."
        )
        yield key, text if time >= limit else ""


def _asks_for_marks(plan: Plan) -> bool:
    """Whether a connection with ECN is possible; whoever runs commands or images of their own may have one."""
    hosts = {node.name: node for node in plan.network.nodes if isinstance(node, Host)}
    return bool(plan.cell.events) or any(
        _knows_ecn(hosts[one.from_]) and _knows_ecn(hosts[one.to]) for one in plan.cell.workloads
    )


def _knows_ecn(host: Host) -> bool:
    # DCTCP asks for ECN whatever the setting says.
    asks = host.sysctls.get("net.ipv4.tcp_ecn") == "1" or host.sysctls.get("net.ipv4.tcp_congestion_control") == "dctcp"
    return asks or STACKS[host.stack].is_own_image


def _too_late(scenario: model.ScenarioFile) -> Iterator[Problem]:
    """Patience that a scenario states and that the limit of the cell cuts short."""
    limit = scenario.limits.lab_time
    for section, parts in (("workloads", scenario.workloads), ("events", scenario.events or ())):
        for index, part in enumerate(parts):
            timeout = getattr(part, "timeout", None)
            if timeout is None or "timeout" not in part.model_fields_set or not getattr(part, "required", True):
                continue
            begins = part.at if isinstance(part, Happening) else part.start
            if begins is not None and begins + timeout > limit:
                found = f'"{timeout.text}" from {begins.text} on, beyond limits.lab_time ("{limit.text}"), at which the'
                at = (section, index, "timeout")
                yield Problem(at, f"{found} cell fails", "less", "Lower it, or raise the limit.")


def _traffic(plan: Plan) -> Iterator[Problem]:
    """Workloads that the cell waits for, and that cannot be over before their own time or the cell's ends; transfers of
    a SCPS host at the same time, each of which sends at the whole rate; more packets than their record has room for,
    with which the cell fails at its end.
    """
    lines, room = least_lines(plan), plan.network.packet_lines
    if plan.cell.packets and lines > room:
        found = f"packets for some {lines} lines of the record, each at every link that it passes"
        expected, do = f"at most {room}, for which there is memory", "Raise limits.memory, or set packets: off."
        yield Problem(("limits", "memory"), found, expected, do)
    lab_time_ns = plan.cell.limits.virtual_s * SECOND_NS
    names = [one.part_of for one in plan.cell.heads]
    before: dict[str, Traffic] = {}
    for workload in sorted(plan.cell.workloads, key=lambda one: one.start_ns):
        timeout_ns = workload.start_ns + getattr(workload, "timeout_ns", lab_time_ns)
        limit_ns, limit = min((lab_time_ns, "limits.lab_time"), (timeout_ns, "its timeout"))
        if workload.required and (least_ns := least_sent_ns(workload, ways(plan, workload)[0])) >= limit_ns:
            found = f"a workload that sends until {least_ns / SECOND_NS:.6g} s at least, counted from the epoch"
            expected = f"less than {limit_ns / SECOND_NS:.6g} s ({limit})"
            at = ("workloads", names.index(workload.part_of))
            yield Problem(at, found, expected, "Shorten it, or raise the limit.")
        settings = workload.sending_program.settings if workload.sending_program else {}
        hop = slowest(ways(plan, workload)[0]) if settings else None
        if "rate" not in settings and hop is not None and (hop_bps := hop.direction.rate_bps or 0) > SCPS_RATE_BPS:
            own, its = (units.text("rate", rate_bps) for rate_bps in (SCPS_RATE_BPS, hop_bps))
            found = f"SCPS-TP at no more than {own}, its program's own rate, over a hop of {its}"
            do = "Say rate (none: no rate control), or congestion_control: none, with which it fits the hop."
            yield Problem(("hosts", workload.from_, "rate"), found, "a rate that you chose", do)
        if settings.get("rate", "none") != "none":
            other = before.get(workload.from_)
            if other is not None and workload.start_ns < least_sent_ns(other, ways(plan, other)[0]):
                found = f"transfers of {workload.from_} at once, each at the whole rate of the host"
                do = "Lower that rate, use congestion control, or start them one after the other."
                yield Problem(("workloads", names.index(workload.part_of)), found, "rates that fit together", do)
            before[workload.from_] = workload


def _queues(plan: Plan) -> Iterator[Problem]:
    """Queues that do something else than their names let expect."""
    hosts = {node.name for node in plan.network.nodes if isinstance(node, Host) and STACKS[node.stack] is KERNEL}
    for link, direction in _directions(plan):
        queue, rate_bps = direction.queue, direction.rate_bps
        if queue is None or rate_bps is None:
            continue
        at: KeyPath = ("links", link.name, direction.name, "queue")
        packet_bytes = link.mtu_bytes + direction.overhead_bytes
        packet_ns = packet_bytes * 8 * SECOND_NS // rate_bps
        room = queue.limit_bytes if queue.serialises else LARGEST_MANAGED_BYTES if queue.settings.MARKS else None
        if room is not None and room < packet_bytes:
            found = f"a queue that takes packets of {room} B, where full ones have {packet_bytes} B and are always"
            do = "Raise the limit." if queue.serialises else "Use drop-tail, or a smaller MTU."
            yield Problem((*at, "limit"), f"{found} dropped", "room for one", do)
        doubts = DISCIPLINES[queue.discipline].doubts(queue.settings, packet_ns)
        yield from (doubt.within(*at) for doubt in doubts)
        if queue.settings.MARKS and direction.from_ in hosts:
            found = f"{queue.discipline} at {direction.from_}, a host, whose kernel keeps but a few packets of a"
            do = "Use a topology with a router before this link, such as fy97."
            found, expected = f"{found} connection in its own queue", "a queue that others send into"
            yield Problem((*at, "discipline"), found, expected, do)


def _closed(plan: Plan) -> Iterator[Problem]:
    """Errors that nearly no packet survives, however short."""
    for link, direction in _directions(plan):
        errors = plan.cell.errors(link.name, direction.name)
        if errors is None or errors.action == "flip":
            continue
        hit = errors.settings.hit(8 * (SHORTEST_PACKET_BYTES + direction.overhead_bytes))
        if hit is not None and 1 - hit < LEAST_PASSING:
            found = f"errors by which a packet of {SHORTEST_PACKET_BYTES} B passes with probability {1 - hit:.1g}"
            at = ("links", link.name, direction.name, "errors")
            yield Problem(at, found, "a link that something passes", "Lower the rate, or say outages.")


def _services(scenario: model.ScenarioFile, plan: Plan) -> Iterator[Problem]:
    """What services state of the network, and the network says otherwise."""
    for index, service in enumerate(scenario.services):
        yield from (doubt.within("services", index) for doubt in service.doubts(plan.network))


def _directions(plan: Plan) -> Iterator[tuple[Link, Direction]]:
    return ((link, direction) for link in plan.network.links for direction in link.directions)
