"""Probes: one class a kind, one line in PROBES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from scpslab.plan.schema import Kinds
from scpslab.plan.values import Amount, Filter, Interface, Name, Period


@dataclass(frozen=True, kw_only=True)
class Capture:
    """tcpdump on an interface: captures/<name>.pcap."""

    name: Name
    kind: Literal["capture"] = "capture"
    node: Name
    interface: Interface
    snaplen_bytes: Amount
    filter_: Filter


@dataclass(frozen=True, kw_only=True)
class TcpInfo:
    """Samples of a node's TCP connections: records/<name>.jsonl."""

    name: Name
    kind: Literal["tcp_info"] = "tcp_info"
    node: Name
    interval_ns: Period


@dataclass(frozen=True, kw_only=True)
class QueueDepth:
    """Samples of what waits in a stage of a direction: records/<name>.jsonl."""

    name: Name
    kind: Literal["queue"] = "queue"
    link: Name
    direction: Name
    stage: Literal["queue", "delay"]
    interval_ns: Period


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Every packet of a direction that did not pass unharmed: records/<name>.jsonl."""

    name: Name
    kind: Literal["verdicts"] = "verdicts"
    link: Name
    direction: Name


PROBES: dict[str, type] = {"capture": Capture, "tcp_info": TcpInfo, "queue": QueueDepth, "verdicts": Verdicts}
Probe = Annotated[Capture | TcpInfo | QueueDepth | Verdicts, Kinds("kind", PROBES)]
