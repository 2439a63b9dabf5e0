"""Kind `tcp_info`: a node's transport connections over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, ProbeInterval
from scpslab.documents.yaml_lines import Problem
from scpslab.scenario.probes.base import Kind, Observer
from scpslab.scenario.probes.watched import not_a_node, speaking

from scpslab.kinds.probes.tcp_info import plan as planned

if TYPE_CHECKING:
    from scpslab.plan.network import NetworkPlan


class TcpInfo(Observer):
    """Samples of the kernel's own view of a node's TCP connections: records/NAME.jsonl."""

    kind: Literal["tcp_info"] = key(says="The kind of probe.", example="tcp_info")
    name: Name | None = key(None, says="Name of the record. Default: tcp-NODE.", example="sender")
    node: Name = key(says="Where.", example="ws1")
    interval: ProbeInterval = key("100 ms", says="Time between two samples.", example="100 ms")


def problems(probe: TcpInfo, network: NetworkPlan) -> Iterator[Problem]:
    """What does not fit: switches have no connections."""
    yield from not_a_node(probe.node, speaking(network))


def plan(name: str, probe: TcpInfo, _network: NetworkPlan) -> planned.TcpInfo:
    """Its part of a plan."""
    return planned.TcpInfo(name=name, node=probe.node, interval_ns=probe.interval)


KIND = Kind(model=TcpInfo, default_name=lambda probe: f"tcp-{probe.node}", plan=plan, problems=problems)
