"""The conditions of a cell, from its plan alone: what titles, captions and the papers' marks go by.

No recipe and no label says them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scpslab.analysis.metrics.data_flows import DATA_FLOWS
from scpslab.core import units
from scpslab.plan import Plan
from scpslab.plan.disciplines import DEFAULT
from scpslab.plan.error_models import NO_MODEL, Errors
from scpslab.plan.links import Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import ways
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.stacks import KERNEL, STACKS, ScpsEnd
from scpslab.plan.ways import Hop, Way, slowest
from scpslab.plan.workloads import Traffic

from scpslab.kinds.stacks.scps.scenario import CONGESTION_OF

NOTHING_ELSE = 100.0  # the level of an idle link, in FY97's count


@dataclass(frozen=True)
class Facts:
    """One cell in words and numbers.

    A number is None where the cell has none: a transfer without a size, a link without a rate.

    `ber`, `models`: towards the receiver, and back. `level`: FY97's congestion level in percent. `disturbances`: what
    else changes packets or delays.
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

    @property
    def round_trip_ns(self) -> int:
        """Propagation there and back."""
        return sum(self.delays_ns)

    def words(self) -> dict[str, str]:
        """What a reader must know, part by part; what says nothing has no words."""
        delays = [units.text("duration", delay_ns) for delay_ns in self.delays_ns]
        others = ", ".join(f"{count} x {kind}" for kind, count in Counter(self.others).items())
        found = {
            "topology": self.topology,
            "transport": self.transport,
            "transfer": self._transfer(),
            "rate": both(*(rate_text(rate, is_serial=self.is_serial) for rate in self.rates_bps)),
            "delay": f"{delays[0]} each way" if delays[0] == delays[1] else both(*delays),
            "errors": self._errors(),
            "disturbances": ", ".join(self.disturbances),
            "level": f"congestion of up to {self.level - NOTHING_ELSE:g} % of the link"
            if self.level != NOTHING_ELSE
            else "",
            "others": others and f"also {others}",
        }
        return {name: text for name, text in found.items() if text}

    def _transfer(self) -> str:
        parts = [
            size_text(self.size_bytes) if self.size_bytes is not None else "",
            f"for {units.text('duration', self.duration_ns)}" if self.duration_ns is not None else "",
            f"in {self.segment_bytes}-byte segments" if self.segment_bytes is not None else "",
        ]
        return ": ".join(filter(None, (self.kind, " ".join(filter(None, parts)))))

    def _errors(self) -> str:
        if self.ber == (0, 0):
            return "no bit errors"
        models = f"{' and '.join(self.models)} errors"
        return models if self.ber == (None, None) else f"BER {both(*map(ber_text, self.ber))}, {models}"


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
    """A bit error ratio as figures say it; None: not a number of the error model."""
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
    workloads = [(workload, DATA_FLOWS[workload.kind].is_load) for workload in plan.cell.workloads]
    return Facts(
        topology=plan.network.topology,
        kind=transfer.kind if transfer else "",
        size_bytes=getattr(transfer, "bytes_", None),
        segment_bytes=getattr(transfer, "segment_bytes", None),
        duration_ns=getattr(transfer, "duration_ns", None),
        transport=_transport(plan, transfer),
        rates_bps=(rate_bps, narrow_back.direction.rate_bps if narrow_back else None),
        is_serial=bool(narrow and isinstance(narrow.link, SerialLink)),
        delays_ns=(_delay_ns(there), _delay_ns(back)),
        framing_bytes=narrow.direction.overhead_bytes if narrow and isinstance(narrow.direction, Direction) else None,
        ber=(_ber(errors[0]), _ber(errors[1])),
        models=tuple(dict.fromkeys(one.model for way in errors for one in way)),
        level=_level([getattr(workload, "max_rate_bps", 0) for workload, is_load in workloads if is_load], rate_bps),
        disturbances=tuple(dict.fromkeys(text for hop in (*there, *back) for text in _disturbances(plan, hop))),
        others=tuple(workload.kind for workload, is_load in workloads if workload is not transfer and not is_load),
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
        control = end.settings.get("congestion") or CONGESTION_OF.get(str(end.settings.get("preset")), "")
        return f"SCPS-TP, {'rate control alone' if control == 'none' else control}"
    if STACKS[node.stack] is not KERNEL:
        return f"stack {node.stack}"
    of_kernel = transfer.congestion_control or node.sysctls.get("net.ipv4.tcp_congestion_control")
    return (
        f"kernel TCP, {of_kernel}"
        if of_kernel and hasattr(transfer, "bytes_") and not getattr(transfer, "udp_rate_bps", None)
        else ""
    )


def _delay_ns(hops: Way) -> int:
    return sum(hop.direction.delay_ns for hop in hops)


def _errors(plan: Plan, hops: Way) -> list[Errors]:
    """The errors on a way."""
    errors = (plan.cell.errors(*hop.place) for hop in hops)
    return [one for one in errors if one is not None and one.model != NO_MODEL]


def _ber(errors: Sequence[Errors]) -> float | None:
    """The bit error ratio of a way with one link that has errors; None where the model has no such number, or several
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
    causes: dict[str, object] = {}
    if impairment and (errors := impairment.errors) is not None:
        dropped = len(errors.drop_packets)
        causes[f"{dropped} packet{'s' if dropped > 1 else ''} dropped by order"] = dropped
        causes["outages"] = errors.outages
        causes["bits flipped"] = errors.action == "flip" and errors.model != NO_MODEL
    if isinstance(direction, Direction):
        causes["changing delay"] = direction.delay_table
        causes["packets out of order or doubled"] = direction.jitter_ns or (impairment and impairment.duplicate)
        if direction.queue is not None:
            causes[f"queue {direction.queue.discipline}"] = direction.queue.discipline != DEFAULT
    return [text for text, is_there in causes.items() if is_there]
