"""The paths of a plan's workloads in words, and warnings where a scenario leaves one open."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from scpslab.core import units
from scpslab.core.errors import some_of
from scpslab.core.names import node_and_link
from scpslab.plan import Plan
from scpslab.plan.error_models import NO_MODEL, Errors
from scpslab.plan.flows import Flow, flow, is_rerouted, networks
from scpslab.plan.links import Direction
from scpslab.plan.network import NetworkPlan
from scpslab.plan.paths import Hop, Way, slowest
from scpslab.plan.workloads import Traffic
from scpslab.scenario import Cell
from scpslab.scenario.survey import ends_of

MOST_LINES, MOST_CHANGES = 8, 40
ROUTED = "; later as contacts say, see scpslab plan SCENARIO --paths"
NOTHING = "–"
INDENT = "  "
COLUMNS = ("link", "from", "to", "rate", "delay", "bit errors")


def paths_text(planned: Mapping[str, Plan]) -> str:
    """The path of every workload's packets in each direction, hop by hop; cells with the same paths stand together."""
    groups: dict[str, list[str]] = {}
    for name, plan in planned.items():
        groups.setdefault(_described(plan), []).append(name)
    return "\n".join(f"{_cells(names)}\n{text}" for text, names in groups.items())


def short_paths(planned: Mapping[str, Plan]) -> list[str]:
    """A line for each workload and each different path of it: nodes, and links where they have names of their own."""
    found: dict[tuple[str, str], int] = {}
    for plan in planned.values():
        paths = plan.network.paths
        for workload in plan.cell.heads:
            line = workload.part_of, _short(flow(paths, workload)) + (ROUTED if is_rerouted(plan) else "")
            found[line] = found.get(line, 0) + 1
    lines = [
        f"{name}: {text}" + ("" if number == len(planned) else f" ({number} of {len(planned)} cells)")
        for (name, text), number in found.items()
    ]
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"… and {more} more: scpslab plan SCENARIO --paths"]


def open_choices(cells: Iterable[Cell]) -> list[str]:
    """A warning for each end of a workload whose host can be reached by several paths, where the scenario does not say
    which it means.
    """
    return list(dict.fromkeys(warning for cell in cells for warning in _open(cell)))


def _open(cell: Cell) -> Iterable[str]:
    surveyed = cell.surveyed
    attached = Counter(one.node for one in surveyed.addresses)
    several = {name for name in surveyed.hosts if attached[name] > 1}
    for index, workload in enumerate(cell.model.workloads):
        ends = ends_of(workload)
        if ends.contacted not in several:
            continue
        own = [one for one in surveyed.addresses if one.node == ends.contacted]
        opener, _ = node_and_link(ends.opener)
        ways = [surveyed.paths.path(opener, ends.contacted, str(one.ip.ip)) for one in own]
        if any(way != ways[0] for way in ways):
            names = " or ".join(one.name for one in own)
            yield (
                f"warning: {cell.places.of(('workloads', index, ends.contacted_key))}: "
                f'found "{ends.contacted}", which has {len(own)} addresses on different '
                f"paths; expected {names}. Packets go to {own[0].name} ({own[0].ip.ip}): write the one that you mean."
            )


def _described(plan: Plan) -> str:
    paths = plan.network.paths
    changed = list(networks(plan))[1:]
    blocks = ["\n".join([_block(plan, flow(paths, one)), *_rerouted(changed, one)]) for one in plan.cell.heads]
    return "\n".join(blocks) if blocks else f"{INDENT}no workload: which hosts the commands contact is not known\n"


def _rerouted(changed: Iterable[tuple[int, NetworkPlan]], workload: Traffic) -> Iterator[str]:
    """The paths from each instant on at which they change, and an empty line behind them."""
    said, lines = "", list[str]()
    for t_ns, network in changed:
        if (now := _short(flow(network.paths, workload))) != said:
            said = now
            lines.append(f"{INDENT * 2}from {units.text('duration', t_ns)} on: {said}")
    if lines:
        more = len(lines) - MOST_CHANGES
        told = f"{INDENT * 2}… and {more} more changes: scpslab plan SCENARIO CELL\n" if more > 0 else ""
        yield from (*lines[:MOST_CHANGES], told)


def _block(plan: Plan, found: Flow) -> str:
    workload = found.workload
    lines = [
        f"{INDENT}{workload.part_of} ({workload.kind}): {workload.from_} {found.from_ip} → {workload.to} {found.to_ip}"
    ]
    directions = [(workload.from_, workload.to, found.there)] + (
        [(workload.to, workload.from_, found.back)] if found.back is not None else []
    )
    rows = [_row(plan, hop) for _, _, hops in directions for hop in hops]
    widths = [max(len(row[column]) for row in (*rows, COLUMNS)) for column in range(len(COLUMNS))]
    for start, end, hops in directions:
        moves = "; profiles change this" if any(plan.cell.moved(*hop.place) for hop in hops) else ""
        lines.append(f"{INDENT * 2}{start} → {end}: {_summary(hops)}{moves}")
        lines += [INDENT * 3 + _aligned(row, widths) for row in (COLUMNS, *(_row(plan, hop) for hop in hops))]
    if found.back is None:
        lines.append(f"{INDENT * 2}{workload.to} → {workload.from_}: nothing is sent back")
    return "\n".join([*lines, ""])


def _row(plan: Plan, hop: Hop) -> tuple[str, ...]:
    direction = hop.direction
    way = f"{hop.link.name}.{direction.name}", direction.from_, direction.to
    rate = NOTHING if direction.rate_bps is None else units.text("rate", direction.rate_bps)
    return *way, *link_texts(plan, hop, rate)


def link_texts(plan: Plan, hop: Hop, rate: str, *, is_short: bool = False) -> list[str]:
    """Rate, delay and errors of a hop, or that a profile says them."""
    errors = errors_text(plan.cell.errors(*hop.place), is_short=is_short)
    moved = plan.cell.moved(*hop.place)
    said = {"rate": rate, "delay": delay_text(hop), "ber": errors}
    return ["as profiled" if name in moved else text for name, text in said.items()]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def delay_text(hop: Hop) -> str:
    """The delay of a hop, or the least and the longest where it changes."""
    direction = hop.direction
    delays = [direction.delay_ns]
    if isinstance(direction, Direction) and direction.delay_table is not None:
        delays = sorted({delay_ns for _, delay_ns in direction.delay_table})
    if not any(delays):
        return NOTHING
    return " to ".join(units.text("duration", delay_ns) for delay_ns in dict.fromkeys((delays[0], delays[-1])))


def errors_text(errors: Errors | None, *, is_short: bool = False) -> str:
    """What goes wrong in a direction, in words; `is_short`: without what shapes bursts."""
    if errors is None:
        return NOTHING
    said = []
    if errors.model != NO_MODEL:
        settings = asdict(errors.settings)
        ber = [f"BER {settings.pop('ber'):g}"] if "ber" in settings else []
        others = [f"{name} {value}" for name, value in settings.items() if name == "loss" or not is_short]
        said.append(", ".join([*ber, errors.model, *others]))
    said += [f"drop list of {len(errors.drop_packets)}"] if errors.drop_packets else []
    if len(errors.outages) == 1:
        said.append("outage " + " to ".join(units.text("duration", t_ns) for t_ns in errors.outages[0]))
    elif errors.outages:
        said.append(f"outages: {len(errors.outages)}")
    return "; ".join(said) or NOTHING


def _summary(hops: Way) -> str:
    """The sum of the delays, and the lowest rate."""
    delay_ns = sum(hop.delay_ns for hop in hops)
    hop = slowest(hops)
    rate = f"at most {units.text('rate', hop.direction.rate_bps or 0)} ({hop.link.name})" if hop else "no limit of rate"
    return f"{rate}, delay {units.text('duration', delay_ns)}"


def _short(found: Flow) -> str:
    there = _line(found.workload.from_, found.there)
    if found.back is None:
        return there
    is_same = [hop.link.name for hop in found.there] == [hop.link.name for hop in reversed(found.back)]
    return f"{there}; back {'the same way' if is_same else _line(found.workload.to, found.back)}"


def _line(start: str, hops: Way) -> str:
    text = start
    for hop in hops:
        ends = {hop.direction.from_, hop.direction.to}
        is_named = hop.link.name not in (f"{a}-{b}" for a in ends for b in ends)
        text += f" ─{hop.link.name}→ {hop.direction.to}" if is_named else f" → {hop.direction.to}"
    return text


def _cells(names: Sequence[str]) -> str:
    shown = some_of([f'"{name}"' for name in names])
    return f"{'cell' if len(names) == 1 else f'{len(names)} cells:'} {shown}"
