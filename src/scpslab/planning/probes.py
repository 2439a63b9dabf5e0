"""Probes of the plan; one function a kind, one line in PLANNERS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scpslab import units
from scpslab.plan import probes as planned
from scpslab.scenario.model import Capture, QueueDepth, TcpInfo, Verdicts
from scpslab.scenario.model.probes import name_of
from scpslab.topology.layout import Layout


def _capture(name: str, probe: Capture, network: Layout) -> planned.Capture:
    interfaces = [(link.name, end.interface) for link in network.all_links for end in link.ends if end.node == probe.node]
    interfaces += [(link.name, interface) for link in network.links if link.via == probe.node for interface in link.relay_interfaces or ()]
    return planned.Capture(
        name=name,
        node=probe.node,
        interface=next(interface for link, interface in interfaces if probe.link in (None, link)),
        snaplen_bytes=units.parse("size", probe.snaplen),
        filter_=probe.filter,
    )


def _tcp_info(name: str, probe: TcpInfo, _network: Layout) -> planned.TcpInfo:
    return planned.TcpInfo(name=name, node=probe.node, interval_ns=units.parse("duration", probe.interval))


def _queue(name: str, probe: QueueDepth, _network: Layout) -> planned.QueueDepth:
    interval_ns = units.parse("duration", probe.interval)
    return planned.QueueDepth(name=name, link=probe.link, direction=probe.direction, stage=probe.stage, interval_ns=interval_ns)


def _verdicts(name: str, probe: Verdicts, _network: Layout) -> planned.Verdicts:
    return planned.Verdicts(name=name, link=probe.link, direction=probe.direction)


PLANNERS: dict[str, Callable[[str, Any, Layout], planned.Probe]] = {"capture": _capture, "tcp_info": _tcp_info, "queue": _queue, "verdicts": _verdicts}


def plan_probe(probe: Any, network: Layout) -> planned.Probe:
    """One probe of the plan."""
    return PLANNERS[probe.kind](name_of(probe), probe, network)
