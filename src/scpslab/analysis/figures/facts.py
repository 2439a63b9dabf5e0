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
from scpslab.plan.serial_links import SerialDirection, SerialLink
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
        found = {
            "topology": self.topology,
            "transport": self.transport,
            "transfer": self._transfer(),
            "rate": both(*(rate_text(rate, is_serial=self.is_serial) for rate in self.rates_bps)),
            "delay": self._delay(),
            "errors": self._errors(),
            "disturbances": ", ".join(self.disturbances),
            "level": ""
            if self.level == NOTHING_ELSE
            else f"congestion of up to {self.level - NOTHING_ELSE:g} % of the link",
            "others": f"also {', '.join(f'{count} x {kind}' for kind, count in Counter(self.others).items())}"
            if self.others
            else "",
        }
        return {name: text for name, text in found.items() if text}

    def _transfer(self) -> str:
        parts = [self.kind]
        if self.size_bytes is not None:
            parts.append(size_text(self.size_bytes))
        if self.duration_ns is not None:
            parts.append(f"for {units.text('duration', self.duration_ns)}")
        if self.segment_bytes is not None:
            parts.append(f"in {self.segment_bytes}-byte segments")
        return f"{parts[0]}: {' '.join(parts[1:])}" if len(parts) > 1 else parts[0]

    def _delay(self) -> str:
        there, back = (units.text("duration", delay_ns) for delay_ns in self.delays_ns)
        return f"{there} each way" if there == back else f"{there} there, {back} back"

    def _errors(self) -> str:
        if self.ber == (0, 0):
            return "no bit errors"
        models = " and ".join(self.models)
        return (
            f"{models} errors"
            if self.ber == (None, None)
            else f"BER {both(*(ber_text(ber) for ber in self.ber))}, {models} errors"
        )


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
    rates = tuple(hop.direction.rate_bps if hop else None for hop in (narrow, narrow_back))
    framing = narrow.direction.overhead_bytes if narrow and isinstance(narrow.direction, Direction) else None
    return Facts(
        topology=plan.network.topology,
        kind=transfer.kind if transfer else "",
        size_bytes=getattr(transfer, "bytes_", None),
        segment_bytes=getattr(transfer, "segment_bytes", None),
        duration_ns=getattr(transfer, "duration_ns", None),
        transport=_transport(plan, transfer),
        rates_bps=(rates[0], rates[1]),
        is_serial=bool(narrow and isinstance(narrow.link, SerialLink)),
        delays_ns=(_delay_ns(there), _delay_ns(back)),
        framing_bytes=framing,
        ber=(_ber(plan, there), _ber(plan, back)),
        models=tuple(
            dict.fromkeys(
                errors.model
                for hop in (*there, *back)
                if (errors := plan.cell.errors(*hop.place)) is not None and _is_at_work(errors)
            )
        ),
        level=_level(plan, rates[0]),
        disturbances=tuple(dict.fromkeys(said for hop in (*there, *back) for said in _disturbances(plan, hop))),
        others=tuple(
            workload.kind
            for workload in plan.cell.workloads
            if workload is not transfer and not DATA_FLOWS[workload.kind].is_load
        ),
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


def _is_at_work(errors: Errors) -> bool:
    return errors.model != NO_MODEL


def _ber(plan: Plan, hops: Way) -> float | None:
    """The bit error ratio of a way with one link that has errors; None where the model has no such number, or several
    links have one.
    """
    found = [errors for hop in hops if (errors := plan.cell.errors(*hop.place)) is not None and _is_at_work(errors)]
    ratios = [getattr(errors.settings, "ber", None) for errors in found]
    if None in ratios:
        return None
    above = [float(ratio) for ratio in ratios if ratio]
    return None if len(above) > 1 else sum(above)


def _level(plan: Plan, rate_bps: int | None) -> float:
    asked = sum(
        getattr(workload, "max_rate_bps", 0) for workload in plan.cell.workloads if DATA_FLOWS[workload.kind].is_load
    )
    return NOTHING_ELSE if not asked else NOTHING_ELSE + 100 * asked / rate_bps if rate_bps else float("inf")


def _disturbances(plan: Plan, hop: Hop) -> list[str]:
    direction, impairment = hop.direction, plan.cell.impairment(*hop.place)
    found = []
    if impairment and (errors := impairment.errors) is not None:
        found += (
            [f"{len(errors.drop_packets)} packet{'s' if len(errors.drop_packets) > 1 else ''} dropped by order"]
            if errors.drop_packets
            else []
        )
        found += ["outages"] if errors.outages else []
        found += ["bits flipped"] if errors.action == "flip" and _is_at_work(errors) else []
    if isinstance(direction, SerialDirection):
        return found
    found += ["changing delay"] if direction.delay_table else []
    found += ["packets out of order or doubled"] if direction.jitter_ns or (impairment and impairment.duplicate) else []
    if direction.queue is not None and direction.queue.discipline != DEFAULT:
        found.append(f"queue {direction.queue.discipline}")
    return found
