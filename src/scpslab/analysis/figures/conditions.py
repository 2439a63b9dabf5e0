"""The conditions of a cell, from its plan alone, which titles, captions and the papers' marks go by (no recipe and no
label says them); and those of a paper's figure or of a mark in it, as a recipe states them, compared with the cell's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from scpslab.analysis.metrics.data_flows import DATA_FLOWS
from scpslab.core import units
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Duration, Probability, Rate, Size, SizeOrZero, as_several
from scpslab.plan import Plan
from scpslab.plan.disciplines import DEFAULT
from scpslab.plan.error_models import NO_MODEL, Errors
from scpslab.plan.events import LinkStep
from scpslab.plan.flows import ways
from scpslab.plan.links import Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import Hop, Way, slowest
from scpslab.plan.routes import RouteOptions
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.stacks import KERNEL, STACKS, ScpsEnd
from scpslab.plan.workloads import Traffic
from scpslab.scenario.scps_ends import header_bytes, rate_that_fits
from scpslab.scenario.stacks import STACKS as STACK_PARTS
from scpslab.scenario.stacks import Host, HostPart, NodePlan

NOTHING_ELSE = 100.0  # the level of an idle link, in FY97's count
# What planning adds to an SCPS program's settings.
PLANNED = ("mtu", "segment", "precedence")

Names = Annotated[tuple[str, ...], BeforeValidator(as_several), Field(min_length=1)]
Sizes = Annotated[tuple[Size, ...], BeforeValidator(as_several), Field(min_length=1)]
Rates = Annotated[tuple[Rate, ...], BeforeValidator(as_several), Field(min_length=1)]
Durations = Annotated[tuple[Duration, ...], BeforeValidator(as_several), Field(min_length=1)]
Ratios = Annotated[tuple[Probability, ...], BeforeValidator(as_several), Field(min_length=1)]
Hosts = Annotated[tuple[Host, ...], BeforeValidator(as_several), Field(min_length=1)]


@dataclass(frozen=True)
class Facts:
    """One cell in words and numbers.

    A number is None where the cell has none: a transfer without a size, a link without a rate.

    `ber`, `models`: towards the receiver, and back, as is `moved`: what profiles say there. `level`: FY97's congestion
    level in percent. `disturbances`: what else changes packets or delays.
    """

    topology: str
    kind: str
    size_bytes: int | None
    segment_bytes: int | None
    duration_ns: int | None
    transport: str
    rates_bps: tuple[int | None, int | None]
    is_serial: bool
    delays_ns: tuple[int, int]
    framing_bytes: int | None
    ber: tuple[float | None, float | None]
    models: tuple[str, ...]
    level: float
    disturbances: tuple[str, ...]
    others: tuple[str, ...]
    moved: tuple[Collection[str], ...] = ((), ())

    def words(self) -> dict[str, str]:
        """What a reader must know, part by part; what says nothing has no words."""
        delays = self._moved("delay", [units.text("duration", delay_ns) for delay_ns in self.delays_ns])
        rates = self._moved("rate", [rate_text(rate, is_serial=self.is_serial) for rate in self.rates_bps])
        others = ", ".join(f"{count} x {kind}" for kind, count in Counter(self.others).items())
        parts = {
            "topology": self.topology,
            "transport": self.transport,
            "transfer": self._transfer(),
            "rate": both(*rates),
            "delay": f"{delays[0]} each way" if delays[0] == delays[1] else both(*delays),
            "errors": self._errors(),
            "disturbances": ", ".join(self.disturbances),
            "level": f"congestion of up to {self.level - NOTHING_ELSE:g} % of the link"
            if self.level != NOTHING_ELSE
            else "",
            "others": others and f"also {others}",
        }
        return {name: text for name, text in parts.items() if text}

    def _transfer(self) -> str:
        parts = [
            size_text(self.size_bytes) if self.size_bytes is not None else "",
            f"for {units.text('duration', self.duration_ns)}" if self.duration_ns is not None else "",
            f"in {self.segment_bytes}-byte segments" if self.segment_bytes is not None else "",
        ]
        return ": ".join(filter(None, (self.kind, " ".join(filter(None, parts)))))

    def _moved(self, name: str, texts: Iterable[str]) -> list[str]:
        told = "as profiled" if name == "ber" else f"{name} as profiled"
        return [told if name in way else text for text, way in zip(texts, self.moved, strict=True)]

    def _errors(self) -> str:
        if self.ber == (0, 0):
            return "no bit errors"
        models = f"{' and '.join(self.models)} errors"
        ratios = self._moved("ber", map(ber_text, self.ber))
        return models if self.ber == (None, None) else f"BER {both(*ratios)}, {models}"


def both(there: str, back: str) -> str:
    """A text for both directions."""
    return there if there == back else f"{there} there, {back} back"


def size_text(size_bytes: int) -> str:
    """A size as figures say it."""
    return f"{size_bytes:,} bytes"


def rate_text(rate_bps: int | None, *, is_serial: bool = False) -> str:
    """A rate as figures say it."""
    return "no rate limit" if rate_bps is None else f"{rate_bps} baud" if is_serial else units.text("rate", rate_bps)


def ber_text(ber: float | None) -> str:
    """A bit error rate as figures say it; None: not a number of the error model."""
    return "as the model draws them" if ber is None else f"{ber:g}"


def transfer_in(plan: Plan) -> Traffic | None:
    """The workload that an experiment is about: the first required one that carries data, else the first; None if there
    is none.
    """
    measured = [workload for workload in plan.cell.workloads if not DATA_FLOWS[workload.kind].is_load]
    carrying = [workload for workload in measured if hasattr(workload, "bytes_")]
    return next(
        (workload for workload in (*carrying, *measured) if workload.required), next(iter(plan.cell.workloads), None)
    )


def facts_of(plan: Plan) -> Facts:
    """The conditions of a cell."""
    transfer = transfer_in(plan)
    there, back = ways(plan, transfer) if transfer else ([], [])
    narrow, narrow_back = slowest(there), slowest(back)
    rate_bps = narrow.direction.rate_bps if narrow else None
    errors = (_errors(plan, there), _errors(plan, back))
    workloads = [(workload, DATA_FLOWS[workload.kind].is_load) for workload in plan.cell.heads]
    return Facts(
        topology=plan.network.topology,
        kind=transfer.kind if transfer else "",
        # Files of a mix have sizes of their own.
        size_bytes=getattr(transfer, "bytes_", None) if transfer and transfer.part_of == transfer.name else None,
        segment_bytes=getattr(transfer, "segment_bytes", None),
        duration_ns=getattr(transfer, "duration_ns", None),
        transport=_transport(plan, transfer),
        rates_bps=(rate_bps, narrow_back.direction.rate_bps if narrow_back else None),
        is_serial=bool(narrow and isinstance(narrow.link, SerialLink)),
        delays_ns=(sum(hop.delay_ns for hop in there), sum(hop.delay_ns for hop in back)),
        framing_bytes=narrow.direction.overhead_bytes if narrow and isinstance(narrow.direction, Direction) else None,
        ber=(_ber(errors[0]), _ber(errors[1])),
        models=tuple(dict.fromkeys(one.model for way in errors for one in way)),
        level=_level([getattr(workload, "max_rate_bps", 0) for workload, is_load in workloads if is_load], rate_bps),
        disturbances=tuple(dict.fromkeys(text for hop in (*there, *back) for text in _disturbances(plan, hop))),
        others=tuple(workload.kind for workload, is_load in workloads if workload is not transfer and not is_load),
        moved=tuple({what for hop in way for what in plan.cell.moved(*hop.place)} for way in (there, back)),
    )


def said(cells: Sequence[Facts]) -> str:
    """What all these cells have in common, in one line. What differs between them is on axes, panels and in legends."""
    words = [facts.words() for facts in cells]
    names = list(dict.fromkeys(name for found in words for name in found))
    shared = [words[0][name] for name in names if len({found.get(name) for found in words}) == 1]
    return " · ".join(shared)


def _transport(plan: Plan, transfer: Traffic | None) -> str:
    if transfer is None:
        return ""
    sender, receiver = (_transport_at(plan, transfer, node) for node in (transfer.from_, transfer.to))
    return sender if sender == receiver else f"{sender} to {receiver}"


def _transport_at(plan: Plan, transfer: Traffic, name: str) -> str:
    node = next(node for node in plan.network.nodes if node.name == name)
    if isinstance(node, Switch):
        return ""
    end: ScpsEnd | None = getattr(transfer, "from_scps" if name == transfer.from_ else "to_scps", None)
    if end is not None:
        of_presets = STACK_PARTS[node.stack].control_of
        control = end.settings.get("congestion") or of_presets.get(str(end.settings.get("preset")), "")
        return f"SCPS-TP, {'rate control alone' if control == 'none' else control}"
    if STACKS[node.stack] is not KERNEL:
        return f"stack {node.stack}"
    of_kernel = transfer.own_control or node.sysctls.get("net.ipv4.tcp_congestion_control")
    # Whatever else moves a file may do so by datagrams.
    is_tcp = DATA_FLOWS[transfer.kind].carries and not getattr(transfer, "udp_rate_bps", None)
    return f"kernel TCP, {of_kernel}" if of_kernel and is_tcp else ""


def _errors(plan: Plan, hops: Way) -> list[Errors]:
    """The errors on a way."""
    errors = (plan.cell.errors(*hop.place) for hop in hops)
    return [one for one in errors if one is not None and one.model != NO_MODEL]


def _ber(errors: Sequence[Errors]) -> float | None:
    """The bit error rate of a way with one link that has errors; None where the model has no such number, or several
    links have one.
    """
    ratios = [getattr(one.settings, "ber", None) for one in errors]
    above = [float(ratio) for ratio in ratios if ratio]
    return None if None in ratios or len(above) > 1 else sum(above)


def _level(loads_bps: Sequence[int], rate_bps: int | None) -> float:
    if not sum(loads_bps):
        return NOTHING_ELSE
    return NOTHING_ELSE + 100 * sum(loads_bps) / rate_bps if rate_bps else float("inf")


def _disturbances(plan: Plan, hop: Hop) -> list[str]:
    direction, impairment = hop.direction, plan.cell.impairment(*hop.place)
    steps = (step for step in plan.cell.events if isinstance(step, LinkStep) and step.link == hop.link.name)
    causes: dict[str, object] = {"link changes while it runs": any(direction.name in step.directions for step in steps)}
    if impairment and (errors := impairment.errors) is not None:
        dropped = len(errors.drop_packets)
        causes[f"{dropped} packet{'s' if dropped > 1 else ''} dropped by order"] = dropped
        causes["outages"] = errors.outages
        causes["bits flipped"] = errors.action == "flip" and errors.model != NO_MODEL
    if isinstance(direction, Direction):
        causes["changing delay"] = direction.delay_table
        by_impairment = impairment and (impairment.duplicate or impairment.late)
        causes["packets out of order or doubled"] = direction.jitter_ns or by_impairment
        causes["a policer, or packets held back"] = impairment and (impairment.policer or impairment.aggregate_ns)
        if direction.queue is not None:
            causes[f"queue {direction.queue.discipline}"] = direction.queue.discipline != DEFAULT
    return [text for text, is_there in causes.items() if is_there]


class Conditions(Part):
    """Where a key has several values, one of them must hold.

    A missing key says nothing, except `ber` and `level`, which are then 0 and 100.

    Attributes:
        topology: The topology.
        workload: The kind of the workload that is measured.
        size: Bytes of the transfer.
        segment: Data bytes per segment.
        data_rate: Rate of the slowest link towards the receiver.
        ack_rate: Rate of the slowest link of the way back.
        round_trip: Propagation there and back.
        framing: Framing bytes per packet on the slowest link.
        ber: Bit error rate in both directions. Over the axis `ber`: its value.
        errors: The error model, where there are bit errors.
        level: Congestion level in percent, 100 for none. Over the axis `level`: its value.
        drops: Whether packets are dropped by order.
        hosts: Both hosts, as in a scenario.
    """

    topology: Names | None = key(None, example="fy97")
    workload: Names | None = key(None, example="bulk")
    size: Sizes | None = key(None, example="4000000 B")
    segment: Sizes | None = key(None, example="1400 B")
    data_rate: Rates | None = key(None, example="2 Mbit/s")
    ack_rate: Rates | None = key(None, example="2 Mbit/s")
    round_trip: Durations | None = key(None, example="530 ms")
    framing: SizeOrZero | None = key(None, example="4 B")
    ber: Ratios = key((0.0,), example=1e-5)
    errors: Names | None = key(None, example=["independent", "clustered"])
    level: float = key(NOTHING_ELSE, example=150)
    drops: bool = key(False)
    hosts: Hosts | None = key(None, example={"preset": "fy97-reno"})

    def at(self, axis: str, number: float) -> Conditions:
        """The conditions at a point of an axis of a figure."""
        values: dict[str, object] = {"ber": (number,), "level": number}
        return self.model_copy(update={axis: values[axis]}) if axis in values else self

    def over(self, base: Conditions) -> Conditions:
        """These conditions, and those of `base` where these say nothing."""
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


@dataclass(frozen=True)
class Mismatch:
    """One condition that a cell does not meet, with both values in words."""

    name: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.name} {self.found} instead of {self.wanted}"


# From a key to what a plan says of it, and how to say it.
COMPARED: Mapping[str, tuple[str, Callable[[Facts], Any], Callable[[Any], str]]] = {
    "topology": ("topology", lambda facts: facts.topology, str),
    "workload": ("workload", lambda facts: facts.kind, str),
    "size": ("size", lambda facts: facts.size_bytes, size_text),
    "segment": ("segment", lambda facts: facts.segment_bytes, size_text),
    "data_rate": ("rate", lambda facts: facts.rates_bps[0], rate_text),
    "ack_rate": ("rate of the way back", lambda facts: facts.rates_bps[1], rate_text),
    "round_trip": ("round trip", lambda facts: sum(facts.delays_ns), lambda ns: units.text("duration", ns)),
    "framing": ("framing", lambda facts: facts.framing_bytes, size_text),
}


def differences(conditions: Conditions, plan: Plan) -> tuple[Mismatch, ...]:
    """Which conditions the plan of a cell does not meet."""
    facts = facts_of(plan)
    misfits = [
        Mismatch(called, "none" if fact is None else show(fact), _or(map(show, as_several(wanted))))
        for name, (called, fact_of, show) in COMPARED.items()
        if (wanted := getattr(conditions, name)) is not None and (fact := fact_of(facts)) not in as_several(wanted)
    ]
    there, back = facts.ber
    has_one = there is not None and there == back
    if not has_one or not any(math.isclose(there or 0.0, wanted, rel_tol=1e-9) for wanted in conditions.ber):
        misfits.append(Mismatch("bit error rate", both(*map(ber_text, facts.ber)), _or(map(ber_text, conditions.ber))))
    if any(facts.ber) and conditions.errors is not None and not set(facts.models) <= set(conditions.errors):
        misfits.append(Mismatch("error model", " and ".join(facts.models), _or(conditions.errors)))
    if not math.isclose(facts.level, conditions.level, rel_tol=1e-6):
        misfits.append(Mismatch("congestion level", f"{facts.level:g} %", f"{conditions.level:g} %"))
    disturbances = [text for text in facts.disturbances if not (conditions.drops and "by order" in text)]
    if others := [*disturbances, *facts.others]:
        misfits.append(Mismatch("other influences", ", ".join(others), "none"))
    if conditions.hosts is not None and (transfer := transfer_in(plan)) is not None:
        problems = [_host(host, plan, transfer) for host in conditions.hosts]
        if all(problems):
            misfits.append(Mismatch("hosts", problems[0], _or(map(_called, conditions.hosts))))
    return tuple(misfits)


def _or(texts: Iterable[str]) -> str:
    return " or ".join(texts)


def _called(host: HostPart) -> str:
    preset = getattr(host, "preset", "")
    return f"{preset} ({host.stack})" if preset else host.stack


def _host(host: HostPart, plan: Plan, transfer: Traffic) -> str:
    """Where the ends of the transfer are not what the host would be planned as; "" if they are."""
    expected = host.plan()
    for name, end_key in ((transfer.from_, "from_scps"), (transfer.to, "to_scps")):
        node = next(node for node in plan.network.nodes if node.name == name)
        if isinstance(node, Switch) or node.stack != expected.stack:
            return f"with stack {getattr(node, 'stack', 'none')}"
        if other := _first(node.sysctls, expected.sysctls):
            return other
        # The routes to the prefixes of SCPS programs have no options.
        routes: list[RouteOptions | None] = [
            RouteOptions(**{option: getattr(route, option) for option in asdict(expected.route)})
            for route in node.routes
        ]
        ends = (end for link in plan.network.all_links for end in link.ends if end.node == name)
        routes += [end.route for end in ends if end.route is not None]
        if expected.scps is None and any(route != expected.route for route in routes):
            return "with other values of TCP on routes"
        if other := _program(getattr(transfer, end_key, None), expected, plan, transfer, name):
            return other
    return _windows(expected, transfer)


def _program(end: ScpsEnd | None, expected: NodePlan, plan: Plan, transfer: Traffic, name: str) -> str:
    """Where the settings of the SCPS program at an end are others."""
    if end is None or expected.scps is None:
        return "" if end is None and expected.scps is None else "with another program for TCP"
    if (end.np is None, end.sp is None) != (expected.np_precedence is None, expected.sp is None):
        return "with another network layer or protection"
    settings = {setting: value for setting, value in end.settings.items() if setting not in PLANNED}
    wanted = dict(expected.scps)
    if expected.paced_by_slowest_hop:
        there, back = ways(plan, transfer)
        hops = there if name == transfer.from_ else back
        header = header_bytes(expected)
        if slowest(hops) and (rate := rate_that_fits(end.settings, hops, header, timestamps=expected.timestamps)):
            wanted["rate"] = str(rate)
    return _first(settings, wanted)


def _windows(expected: NodePlan, transfer: Traffic) -> str:
    """Where the transfer's own settings are not those that the hosts give it."""
    if transfer.own_control is not None:
        return f"with congestion control {transfer.own_control} for the transfer"
    planned = {
        "send_window_bytes": expected.send_window_bytes,
        "receive_window_bytes": expected.receive_window_bytes,
        "delayed_ack": expected.delayed_ack,
    }
    own = {name: getattr(transfer, name) for name in planned if hasattr(transfer, name)}
    return _first(own, {name: planned[name] for name in own})


def _first(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first setting that is another one, in words; "" if none is."""
    others = (name for name in {**found, **wanted} if found.get(name) != wanted.get(name))
    name = next(others, None)
    return "" if name is None else f"with {name} {found.get(name, 'not set')}, not {wanted.get(name, 'set')},"
