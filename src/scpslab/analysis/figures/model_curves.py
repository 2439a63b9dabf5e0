"""What formulas say of a transfer: the floor that the line rate sets, and two models of TCP over losses that strike at
random.

Mathis: rate = MSS / RTT * sqrt(3 / (2 b p)) (Mathis, Semke, Mahdavi and Ott 1997, with C = sqrt(3/2) for b = 1). PFTK:
the formula with timeouts of Padhye, Firoiu, Towsley and Kurose 1998, as RFC 5348 §3.1 has it. b = 1: Linux counts
acknowledged bytes and not acknowledgements. Both hold for long transfers, know no slow start, no limit of a window and
no recovery with SACK, and are bounded here by the floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from scpslab.analysis.figures.source import NothingToDrawError, transfer_of
from scpslab.analysis.metrics.data_flows import DATA_FLOWS
from scpslab.analysis.run import RunCell, steady_bps
from scpslab.plan import Plan
from scpslab.plan.error_models import NO_MODEL
from scpslab.plan.flows import flow
from scpslab.plan.links import Direction
from scpslab.plan.nodes import Switch
from scpslab.plan.paths import Hop, NoPathError, slowest

if TYPE_CHECKING:
    from scpslab.analysis.run import Transfer

    class Bulk(Transfer):
        """A transfer of a known size in segments of a known one."""

        bytes_: int
        segment_bytes: int


HEADER_BYTES, TIMESTAMP_BYTES = 40, 12  # IPv4 and TCP without options; RFC 7323 §3.2 with its padding
SEGMENTS_PER_ACK = 1
# Linux adds at least this to the smoothed round-trip time (TCP_RTO_MIN).
RTO_ABOVE_RTT_S = 0.2


@dataclass(frozen=True)
class Path:
    """What the formulas ask of a cell: the transfer's size, and a path with `loss` as the probability that a full
    segment is hit by bit errors.
    """

    total_bytes: int
    segment_bytes: int
    header_bytes: int
    overhead_bytes: int
    rate_bps: int
    rtt_s: float
    loss: float

    @property
    def packet_bytes(self) -> int:
        """A full segment on the slowest hop."""
        return self.segment_bytes + self.header_bytes + self.overhead_bytes


def speaks_tcp(cell: RunCell) -> bool:
    """Whether a transfer of the cell is of the kernel's TCP, which the formulas are about."""
    return any(DATA_FLOWS[one.kind].has_formulas and not one.runs_scps for one in cell.plan.cell.workloads)


def path_of(cell: RunCell) -> Path:
    """The path of a cell's transfer.

    Raises:
        NothingToDrawError: no bulk transfer, a path without a rate, or an error model that has no formula here.
    """
    workload = transfer_of(cell)
    if not DATA_FLOWS[workload.kind].has_formulas:
        raise _error(cell, f"found a workload of kind {workload.kind}; expected a bulk transfer")
    bulk = cast("Bulk", workload)
    try:
        hops = flow(cell.plan.network.paths, workload)
    except NoPathError as error:
        raise _error(cell, f"found no path: {error}; expected one") from error
    there, back = hops.there, hops.back or []
    narrow = slowest(there)
    rate_bps = steady_bps(cell.plan, narrow)
    if narrow is None or not isinstance(narrow.direction, Direction) or rate_bps is None:
        raise _error(cell, "found no link of packets with a rate that stays on the path; expected one")
    header = HEADER_BYTES + (TIMESTAMP_BYTES if _has_timestamps(cell.plan, workload) else 0)
    full = bulk.segment_bytes + header
    return Path(
        total_bytes=bulk.bytes_,
        segment_bytes=bulk.segment_bytes,
        header_bytes=header,
        overhead_bytes=narrow.direction.overhead_bytes,
        rate_bps=rate_bps,
        rtt_s=sum(_seconds(hop, full) for hop in there) + sum(_seconds(hop, header) for hop in back),
        loss=1 - math.prod(1 - _loss(cell, hop, full) for hop in there),
    )


def floor_s(path: Path) -> float:
    """The time in which the line carries every byte once, headers included."""
    segments = math.ceil(path.total_bytes / path.segment_bytes)
    return (path.total_bytes + segments * (path.header_bytes + path.overhead_bytes)) * 8 / path.rate_bps


def mathis_s(path: Path) -> float:
    """The transfer's time at the rate of Mathis' formula."""
    if not path.loss:
        return floor_s(path)
    segments_per_s = math.sqrt(3 / (2 * SEGMENTS_PER_ACK * path.loss)) / path.rtt_s
    return max(floor_s(path), path.total_bytes / path.segment_bytes / segments_per_s)


def pftk_s(path: Path) -> float:
    """The transfer's time at the rate of PFTK's formula."""
    rto_s, loss, b = path.rtt_s + RTO_ABOVE_RTT_S, path.loss, SEGMENTS_PER_ACK
    s_per_segment = path.rtt_s * math.sqrt(2 * b * loss / 3) + rto_s * min(
        1.0, 3 * math.sqrt(3 * b * loss / 8)
    ) * loss * (1 + 32 * loss**2)
    return max(floor_s(path), path.total_bytes / path.segment_bytes * s_per_segment)


MODELS: Mapping[str, Callable[[Path], float]] = MappingProxyType({"floor": floor_s, "mathis": mathis_s, "pftk": pftk_s})
OF_LOSSES = ("mathis", "pftk")
TITLES: Mapping[str, str] = MappingProxyType({"floor": "line rate", "mathis": "Mathis", "pftk": "PFTK"})
# A metric of results.csv from the time of the transfer.
METRICS: Mapping[str, Callable[[float, Path], float]] = MappingProxyType(
    {
        "transfer_s": lambda time_s, _path: time_s,
        "goodput_bps": lambda time_s, path: path.total_bytes * 8 / time_s,
        "utilization": lambda time_s, path: path.total_bytes * 8 / (time_s * path.rate_bps),
        "throughput_report_pct": lambda time_s, path: (
            100 * path.total_bytes * 8 / 1024 / (time_s * path.rate_bps / 1000)
        ),
    }
)


def _seconds(hop: Hop, ip_bytes: int) -> float:
    """The time that a packet needs over a hop without a queue."""
    if not isinstance(hop.direction, Direction):
        return 0.0
    bits, rate_bps = (ip_bytes + hop.direction.overhead_bytes) * 8, hop.direction.rate_bps
    return hop.delay_ns / 1e9 + (bits / rate_bps if rate_bps else 0.0)


def _loss(cell: RunCell, hop: Hop, ip_bytes: int) -> float:
    """The probability that bit errors hit a packet on a hop."""
    errors = cell.plan.cell.errors(*hop.place)
    if not isinstance(hop.direction, Direction) or errors is None or errors.model == NO_MODEL:
        return 0.0
    bits = 8 * (ip_bytes + hop.direction.overhead_bytes)
    hit = errors.settings.hit(bits) if not errors.settings.NAMES_PACKETS else None
    if hit is not None:
        return hit
    raise _error(cell, f"found the error model {errors.model}; expected independent, clustered or none")


def _error(cell: RunCell, problem: str) -> NothingToDrawError:
    return NothingToDrawError(f"{cell.folder}: models: {problem}. Leave out the models.")


def _has_timestamps(plan: Plan, workload: Transfer) -> bool:
    node = next(node for node in plan.network.nodes if node.name == workload.from_)
    return not isinstance(node, Switch) and node.sysctls.get("net.ipv4.tcp_timestamps", "1") != "0"
