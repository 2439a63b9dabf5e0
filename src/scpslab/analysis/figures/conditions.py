"""The conditions of a paper's figure or of a mark in it, as a recipe states them, compared with what the plan of a cell
says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from scpslab.analysis.figures.facts import (
    NOTHING_ELSE,
    Facts,
    ber_text,
    both,
    facts_of,
    rate_text,
    size_text,
    transfer_in,
)
from scpslab.core import units
from scpslab.documents import Part, key
from scpslab.documents.quantities import Duration, Probability, Rate, Size, SizeOrZero, as_several
from scpslab.plan import Plan
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import ways
from scpslab.plan.routes import RouteOptions
from scpslab.plan.stacks import ScpsEnd
from scpslab.plan.ways import slowest
from scpslab.plan.workloads import Traffic
from scpslab.scenario.stacks import Host, HostPart, NodePlan, plan_node
from scpslab.scenario.workloads.scps_end import header_bytes, rate_that_fits

# What planning adds to an SCPS program's settings.
PLANNED = ("mtu", "segment", "precedence")

Names = Annotated[tuple[str, ...], BeforeValidator(as_several), Field(min_length=1)]
Sizes = Annotated[tuple[Size, ...], BeforeValidator(as_several), Field(min_length=1)]
Rates = Annotated[tuple[Rate, ...], BeforeValidator(as_several), Field(min_length=1)]
Durations = Annotated[tuple[Duration, ...], BeforeValidator(as_several), Field(min_length=1)]
Ratios = Annotated[tuple[Probability, ...], BeforeValidator(as_several), Field(min_length=1)]
Hosts = Annotated[tuple[Host, ...], BeforeValidator(as_several), Field(min_length=1)]


class Conditions(Part):
    """Where a key has several values, one of them must hold.

    A missing key says nothing, except `ber` and `level`, which are then 0 and 100.
    """

    topology: Names | None = key(None, says="The topology.", example="fy97")
    workload: Names | None = key(None, says="The kind of the workload that is measured.", example="bulk")
    size: Sizes | None = key(None, says="Bytes of the transfer.", example="4000000 B")
    segment: Sizes | None = key(None, says="Data bytes per segment.", example="1400 B")
    data_rate: Rates | None = key(None, says="Rate of the slowest link towards the receiver.", example="2 Mbit/s")
    ack_rate: Rates | None = key(None, says="Rate of the slowest link of the way back.", example="2 Mbit/s")
    round_trip: Durations | None = key(None, says="Propagation there and back.", example="530 ms")
    framing: SizeOrZero | None = key(None, says="Framing bytes per packet on the slowest link.", example="4 B")
    ber: Ratios = key((0.0,), says="Bit error ratio in both directions. Over the axis `ber`: its value.", example=1e-5)
    errors: Names | None = key(
        None, says="The error model, where there are bit errors.", example=["independent", "clustered"]
    )
    level: float = key(
        NOTHING_ELSE, says="Congestion level in percent, 100 for none. Over the axis `level`: its value.", example=150
    )
    drops: bool = key(False, says="Whether packets are dropped by order.")
    hosts: Hosts | None = key(None, says="Both hosts, as in a scenario.", example={"preset": "fy97-reno"})

    def at(self, axis: str, number: float) -> Conditions:
        """The conditions at a point of an axis of a figure."""
        values: dict[str, object] = {"ber": (number,), "level": number}
        return self.model_copy(update={axis: values[axis]}) if axis in values else self

    def over(self, base: Conditions) -> Conditions:
        """These conditions, and those of `base` where these say nothing."""
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


@dataclass(frozen=True)
class Difference:
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
    "round_trip": ("round trip", lambda facts: facts.round_trip_ns, lambda ns: units.text("duration", ns)),
    "framing": ("framing", lambda facts: facts.framing_bytes, size_text),
}


def differences(conditions: Conditions, plan: Plan) -> tuple[Difference, ...]:
    """Which conditions the plan of a cell does not meet."""
    facts = facts_of(plan)
    found = [
        Difference(called, "none" if fact is None else show(fact), _or(map(show, as_several(wanted))))
        for name, (called, fact_of, show) in COMPARED.items()
        if (wanted := getattr(conditions, name)) is not None and (fact := fact_of(facts)) not in as_several(wanted)
    ]
    there, back = facts.ber
    if (
        there != back
        or there is None
        or not any(math.isclose(there, wanted, rel_tol=1e-9) for wanted in conditions.ber)
    ):
        found.append(Difference("bit error ratio", both(*map(ber_text, facts.ber)), _or(map(ber_text, conditions.ber))))
    if any(facts.ber) and conditions.errors is not None and not set(facts.models) <= set(conditions.errors):
        found.append(Difference("error model", " and ".join(facts.models), _or(conditions.errors)))
    if not math.isclose(facts.level, conditions.level, rel_tol=1e-6):
        found.append(Difference("congestion level", f"{facts.level:g} %", f"{conditions.level:g} %"))
    disturbances = [text for text in facts.disturbances if not (conditions.drops and "by order" in text)]
    if others := [*disturbances, *facts.others]:
        found.append(Difference("other influences", ", ".join(others), "none"))
    if conditions.hosts is not None and (transfer := transfer_in(plan)) is not None:
        problems = [_host(host, plan, transfer) for host in conditions.hosts]
        if all(problems):
            found.append(Difference("hosts", problems[0], _or(map(_called, conditions.hosts))))
    return tuple(found)


def _or(texts: Iterable[str]) -> str:
    return " or ".join(texts)


def _called(host: HostPart) -> str:
    preset = getattr(host, "preset", "")
    return f"{preset} ({host.stack})" if preset else host.stack


def _host(host: HostPart, plan: Plan, transfer: Traffic) -> str:
    """Where the ends of the transfer are not what the host would be planned as; "" if they are."""
    expected = plan_node(host)
    for name, end_key in ((transfer.from_, "from_scps"), (transfer.to, "to_scps")):
        node = next(node for node in plan.network.nodes if node.name == name)
        if isinstance(node, Switch) or node.stack != expected.stack:
            return f"with stack {getattr(node, 'stack', 'none')}"
        if said := _first(node.sysctls, expected.sysctls):
            return said
        # The routes to the prefixes of SCPS programs have no options.
        routes: list[RouteOptions | None] = [
            RouteOptions(**{option: getattr(route, option) for option in asdict(expected.route_options())})
            for route in node.routes
        ]
        routes += [
            end.route
            for link in plan.network.all_links
            for end in link.ends
            if end.node == name and end.route is not None
        ]
        if expected.scps is None and any(route != expected.route_options() for route in routes):
            return "with other values of TCP on routes"
        if said := _program(getattr(transfer, end_key, None), expected, plan, transfer, name):
            return said
    return _windows(expected, transfer)


def _program(end: ScpsEnd | None, expected: NodePlan, plan: Plan, transfer: Traffic, name: str) -> str:
    """Where the settings of the SCPS program at an end are others."""
    if end is None or expected.scps is None:
        return "" if end is None and expected.scps is None else "with another program for TCP"
    if (end.np is None, end.sp is None) != (expected.np_precedence is None, expected.sp is None):
        return "with another network layer or protection"
    found = {setting: value for setting, value in end.settings.items() if setting not in PLANNED}
    wanted = dict(expected.scps)
    if expected.paced_by_slowest_hop:
        there, back = ways(plan, transfer)
        hops = there if name == transfer.from_ else back
        rate = (
            rate_that_fits(end.settings, hops, header_bytes(expected), timestamps=expected.timestamps)
            if slowest(hops)
            else None
        )
        wanted |= {"rate": str(rate)} if rate else {}
    return _first(found, wanted)


def _windows(expected: NodePlan, transfer: Traffic) -> str:
    """Where the transfer's own settings are not those that the hosts give it."""
    if getattr(transfer, "congestion", None) is not None:
        return f"with congestion control {transfer.congestion_control} for the transfer"
    given = {
        "send_window_bytes": expected.send_window_bytes,
        "receive_window_bytes": expected.receive_window_bytes,
        "delayed_ack": expected.delayed_ack,
    }
    return _first({name: getattr(transfer, name) for name in given if hasattr(transfer, name)}, given, only_found=True)


def _first(found: Mapping[str, Any], wanted: Mapping[str, Any], *, only_found: bool = False) -> str:
    names = found if only_found else {**found, **wanted}
    for name in names:
        if found.get(name) != wanted.get(name):
            return f"with {name} {found.get(name, 'not set')}, not {wanted.get(name, 'set')},"
    return ""
