"""Probes of the plan; one function a kind, one line in PLANNERS."""

from __future__ import annotations

from typing import Any

from scpslab import units
from scpslab.scenario.model import Capture, QueueDepth, TcpInfo, Verdicts
from scpslab.scenario.model.probes import name_of


def _capture(probe: Capture, links: list[dict[str, Any]]) -> dict[str, Any]:
    interfaces = [(link["name"], end["interface"]) for link in links for end in link["ends"] if end["node"] == probe.node]
    interfaces += [(link["name"], name) for link in links if link.get("via") == probe.node for name in link["relay_interfaces"]]
    return {
        "node": probe.node,
        "interface": next(name for link, name in interfaces if probe.link in (None, link)),
        "snaplen_bytes": units.parse("size", probe.snaplen),
        "filter": probe.filter,
    }


def _tcp_info(probe: TcpInfo, _links: list[dict[str, Any]]) -> dict[str, Any]:
    return {"node": probe.node, "interval_ns": units.parse("duration", probe.interval)}


def _queue(probe: QueueDepth, _links: list[dict[str, Any]]) -> dict[str, Any]:
    return {"link": probe.link, "direction": probe.direction, "stage": probe.stage, "interval_ns": units.parse("duration", probe.interval)}


def _verdicts(probe: Verdicts, _links: list[dict[str, Any]]) -> dict[str, Any]:
    return {"link": probe.link, "direction": probe.direction}


PLANNERS: dict[str, Any] = {"capture": _capture, "tcp_info": _tcp_info, "queue": _queue, "verdicts": _verdicts}


def plan_probe(probe: Any, links: list[dict[str, Any]]) -> dict[str, Any]:
    """One probe of the plan."""
    return {"name": name_of(probe), "kind": probe.kind, **PLANNERS[probe.kind](probe, links)}
