"""Probes: one class a kind, one line in PROBES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.schema import Kinds
from scpslab.plan.values import Amount, Filter, Interface, Name, Period, Word


@dataclass(frozen=True, kw_only=True)
class Observer:
    """What every probe says: its name, which is its file's too."""

    name: Name
    kind: Word


@dataclass(frozen=True, kw_only=True)
class Capture(Observer):
    """tcpdump on an interface: `captures/<name>.pcap`, with nanosecond time stamps."""

    kind: Literal["capture"] = "capture"
    node: Name
    interface: Interface
    snaplen_bytes: Amount
    filter_: Filter


@dataclass(frozen=True, kw_only=True)
class TcpInfo(Observer):
    """Samples of a node's TCP connections: `records/<name>.jsonl`; of SCPS programs on it also their traces: `records/<workload>-<node>-trace.jsonl`."""

    kind: Literal["tcp_info"] = "tcp_info"
    node: Name
    interval_ns: Period


@dataclass(frozen=True, kw_only=True)
class QueueDepth(Observer):
    """Samples of what waits in a stage of a direction: `records/<name>.jsonl`."""

    kind: Literal["queue"] = "queue"
    link: Name
    direction: Name
    stage: Literal["queue", "delay"]
    interval_ns: Period


@dataclass(frozen=True, kw_only=True)
class Verdicts(Observer):
    """Every packet of a direction that did not pass unharmed: `records/<name>.jsonl`."""

    kind: Literal["verdicts"] = "verdicts"
    link: Name
    direction: Name


PROBES: dict[str, type] = {"capture": Capture, "tcp_info": TcpInfo, "queue": QueueDepth, "verdicts": Verdicts}
Probe = Annotated[Capture | TcpInfo | QueueDepth | Verdicts, Kinds("kind", PROBES)]
