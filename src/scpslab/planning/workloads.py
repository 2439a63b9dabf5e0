"""Workloads of the plan; one function a kind, one line in PLANNERS."""

from __future__ import annotations

from typing import Any

from scpslab import units
from scpslab.planning.scps import ScpsAddresses
from scpslab.scenario import Cell
from scpslab.scenario.model import Bulk, CongestionTraffic, Ftp, Iperf3, Ping
from scpslab.scenario.rates import Way, mtu_bytes, rate_bps, slowest_bps, way
from scpslab.seeds import stream, uniform
from scpslab.stacks import NodePlan

# 48 bits: whole numbers that every language and JSON reader keeps exactly.
PAYLOAD_SEED_DIGITS = 12
IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES = 40, 12


def _bulk(workload: Bulk, cell: Cell, hosts: dict[str, NodePlan]) -> dict[str, Any]:
    return {
        "bytes": units.parse("size", workload.size),
        "segment_bytes": units.parse("size", workload.segment),
        "port": workload.port,
        "send_window_bytes": hosts[workload.from_].send_window_bytes,
        "receive_window_bytes": hosts[workload.to].receive_window_bytes,
        "congestion": workload.congestion,
        "delayed_ack": hosts[workload.to].delayed_ack,
        "payload_seed": int(stream(cell.scenario.seed, "payload", workload.name, cell.repeat)[:PAYLOAD_SEED_DIGITS], 16),
        "patience_ns": units.parse("duration", workload.patience),
    }


def _iperf3(workload: Iperf3, _cell: Cell, _hosts: dict[str, NodePlan]) -> dict[str, Any]:
    return {
        "duration_ns": units.parse("duration", workload.duration) if workload.duration else None,
        "bytes": units.parse("size", workload.size) if workload.size else None,
        "port": workload.port,
        "congestion": workload.congestion,
        "segment_bytes": units.parse("size", workload.segment) if workload.segment else None,
        "reverse": workload.reverse,
        "udp_rate_bps": units.parse("rate", workload.udp_rate) if workload.udp_rate else None,
        "parallel": workload.parallel,
        "patience_ns": units.parse("duration", workload.patience),
    }


def _ftp(workload: Ftp, cell: Cell, _hosts: dict[str, NodePlan]) -> dict[str, Any]:
    return {
        "bytes": units.parse("size", workload.size),
        "command": workload.command,
        "mode": workload.mode,
        "port": workload.port,
        "payload_seed": int(stream(cell.scenario.seed, "payload", workload.name, cell.repeat)[:PAYLOAD_SEED_DIGITS], 16),
        "patience_ns": units.parse("duration", workload.patience),
    }


def _ping(workload: Ping, _cell: Cell, _hosts: dict[str, NodePlan]) -> dict[str, Any]:
    return {
        "count": workload.count,
        "interval_ns": units.parse("duration", workload.interval),
        "payload_bytes": units.parse("size", workload.payload),
    }


def _congestion(workload: CongestionTraffic, cell: Cell, _hosts: dict[str, NodePlan]) -> dict[str, Any]:
    """The draws depend on repeat and name only: every stack meets the same traffic, and a higher level is the same pattern, scaled."""
    slowest = slowest_bps(cell.model, way(cell.network, workload.from_, workload.to)) or 0
    most_bps = units.parse("rate", workload.max_rate) if workload.max_rate is not None else round(slowest * ((workload.level or 100) - 100) / 100)
    redraw_ns = units.parse("duration", workload.redraw)
    draws = -(-units.parse("duration", cell.model.limits.virtual) // redraw_ns)
    return {
        "max_rate_bps": most_bps,
        "redraw_ns": redraw_ns,
        "packet_bytes": units.parse("size", workload.packet),
        "rates_bps": [int(value * most_bps) for value in uniform(stream(cell.scenario.seed, "congestion", workload.name, cell.repeat), draws)],
        "port": workload.port,
    }


PLANNERS: dict[str, Any] = {"bulk": _bulk, "ftp": _ftp, "iperf3": _iperf3, "ping": _ping, "congestion": _congestion}


def _scps_end(workload: Bulk, host: str, cell: Cell, hosts: dict[str, NodePlan], scps: ScpsAddresses) -> dict[str, Any] | None:
    """The `scps` program at an end of a transfer: its address, device, settings and seed; None where the kernel carries it."""
    planned = hosts[host]
    if planned.scps is None:
        return None
    other = workload.to if host == workload.from_ else workload.from_
    found = way(cell.network, host, other)
    settings = {**planned.scps, "segment": units.parse("size", workload.segment), "mtu": mtu_bytes(found)}
    if planned.paced_by_slowest_hop and (rate := _rate_that_fits(workload, found, cell, planned)):
        settings["rate"] = str(rate)
    seed = int(stream(cell.scenario.seed, "scps", workload.name, host, cell.repeat)[:PAYLOAD_SEED_DIGITS], 16)
    return {**scps.take(host), "settings": settings, "seed": seed}


def _rate_that_fits(workload: Bulk, found: Way, cell: Cell, planned: NodePlan) -> int | None:
    """IP bits per second with which full segments just fill the slowest hop of a way; its framing is no part of their length."""
    slowest = slowest_bps(cell.model, found)
    if slowest is None:
        return None
    link, direction = min(found, key=lambda hop: rate_bps(cell.model, *hop) or slowest + 1)
    given = cell.model.links.get(link.name, {}).get(direction.name)
    framing = units.parse("size", given.overhead) if given and given.overhead is not None else direction.overhead_bytes
    packet = units.parse("size", workload.segment) + IP_TCP_HEADERS_BYTES + (TIMESTAMP_BYTES if planned.timestamps else 0)
    return slowest * packet // (packet + framing)


def plan_workload(workload: Any, cell: Cell, addresses: dict[str, str], hosts: dict[str, NodePlan], scps: ScpsAddresses) -> dict[str, Any]:
    """One workload of the plan; `addresses` by host, `scps` those of SCPS programs."""
    own = PLANNERS[workload.kind](workload, cell, hosts)
    to_ip = addresses[workload.to]
    if isinstance(workload, Ftp):
        own["server_ip"] = addresses[workload.to if workload.command == "put" else workload.from_]
    if isinstance(workload, Bulk):
        own["from_scps"], own["to_scps"] = (_scps_end(workload, host, cell, hosts, scps) for host in (workload.from_, workload.to))
        to_ip = own["to_scps"]["ip"] if own["to_scps"] else to_ip
    return {
        "name": workload.name,
        "kind": workload.kind,
        "from": workload.from_,
        "to": workload.to,
        "to_ip": to_ip,
        "start_ns": units.parse("duration", workload.start),
        # The congestion generator is never waited for: it ends with the last required workload.
        "required": getattr(workload, "required", False),
        **own,
    }
