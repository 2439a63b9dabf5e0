"""Workloads of the plan; one function a kind, one line in PLANNERS."""

from __future__ import annotations

from typing import Any

from scpslab import units
from scpslab.planning.scps import ScpsAddresses
from scpslab.scenario import Cell
from scpslab.scenario.model import Bulk, CongestionTraffic, Endpoint, Fp, Ftp, Iperf3, Ping
from scpslab.scenario.rates import Way, mtu_bytes, rate_bps, slowest_bps, way
from scpslab.seeds import stream, uniform
from scpslab.stacks import NodePlan

# 48 bits: whole numbers that every language and JSON reader keeps exactly.
PAYLOAD_SEED_DIGITS = 12
IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES = 40, 12
# Shares of a file between which a transfer is stopped: in its middle, with enough left to go on with.
STOP_FROM, STOP_TO = 0.05, 0.75
# What PPP adds to an IP packet: protocol field (compressed), frame check, flag; flag and escape are always escaped, one byte each.
PPP_BYTES, PPP_ALWAYS_ESCAPED, OCTETS = 4, 2, 256


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


def _endpoint(workload: Endpoint, cell: Cell, hosts: dict[str, NodePlan]) -> dict[str, Any]:
    return {
        "bytes": units.parse("size", workload.size),
        "port": workload.port,
        "options": {end: (hosts[host].image or {}).get("options", "") for end, host in (("from", workload.from_), ("to", workload.to))},
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


def _fp(workload: Fp, cell: Cell, _hosts: dict[str, NodePlan]) -> dict[str, Any]:
    """Where it is stopped and where the record lies are drawn by repeat and name only: every stack and command meets the same."""
    size, record = units.parse("size", workload.size), units.parse("size", workload.record)
    (stop,) = uniform(stream(cell.scenario.seed, "stop", workload.name, cell.repeat), 1)
    (record_at,) = uniform(stream(cell.scenario.seed, "record", workload.name, cell.repeat), 1)
    stop_at = units.parse("size", workload.stop_at) if workload.stop_at is not None else int(size * (STOP_FROM + (STOP_TO - STOP_FROM) * stop))
    return {
        "bytes": size,
        "command": workload.command,
        "record_bytes": record,
        "record_at": int(record_at * max(0, size - (record if workload.command != "insert" else 0))),
        "mode": workload.mode,
        "port": workload.port,
        "auto_restart": workload.auto_restart,
        "bets": workload.bets,
        "stop": workload.stop,
        "stop_at": stop_at if workload.stop != "none" else None,
        "tunables": {
            "DATATIMEOUT": units.parse("duration", workload.data_timeout) // 10**9,
            "REPLYTIMEOUT": units.parse("duration", workload.reply_timeout) // 10**9,
            "RESTARTDELAY": units.parse("duration", workload.restart_delay) // 10**9,
        },
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


PLANNERS: dict[str, Any] = {"bulk": _bulk, "endpoint": _endpoint, "ftp": _ftp, "fp": _fp, "iperf3": _iperf3, "ping": _ping, "congestion": _congestion}


def _scps_end(workload: Bulk | Fp, host: str, cell: Cell, hosts: dict[str, NodePlan], scps: ScpsAddresses) -> dict[str, Any] | None:
    """The `scps` program at an end of a transfer: its address, device, settings and seed; None where the kernel carries it."""
    planned = hosts[host]
    if planned.scps is None:
        return None
    other = workload.to if host == workload.from_ else workload.from_
    found = way(cell.network, host, other)
    settings = {**planned.scps, "mtu": mtu_bytes(found)}
    if workload.segment is not None:
        settings["segment"] = units.parse("size", workload.segment)
    if planned.paced_by_slowest_hop and (rate := _rate_that_fits(settings, found, cell, planned)):
        settings["rate"] = str(rate)
    seed = int(stream(cell.scenario.seed, "scps", workload.name, host, cell.repeat)[:PAYLOAD_SEED_DIGITS], 16)
    return {**scps.take(host), "settings": settings, "seed": seed}


def _rate_that_fits(settings: dict[str, Any], found: Way, cell: Cell, planned: NodePlan) -> int | None:
    """IP bits per second with which full segments just fill the slowest hop of a way; its framing is no part of their length."""
    slowest = slowest_bps(cell.model, found)
    if slowest is None:
        return None
    link, direction = min(found, key=lambda hop: rate_bps(cell.model, *hop) or slowest + 1)
    headers = IP_TCP_HEADERS_BYTES + (TIMESTAMP_BYTES if planned.timestamps else 0)
    packet: int = settings["segment"] + headers if "segment" in settings else settings["mtu"]
    if link.serial is not None:
        escaped = PPP_ALWAYS_ESCAPED + link.serial.asyncmap.bit_count()
        on_the_line = packet + PPP_BYTES + -(-packet * escaped // OCTETS)
        return slowest * 8 * packet // (link.serial.bits_per_byte * on_the_line)
    given = cell.model.links.get(link.name, {}).get(direction.name)
    framing = units.parse("size", given.overhead) if given and given.overhead is not None else direction.overhead_bytes
    return slowest * packet // (packet + framing)


def plan_workload(workload: Any, cell: Cell, addresses: dict[str, str], hosts: dict[str, NodePlan], scps: ScpsAddresses) -> dict[str, Any]:
    """One workload of the plan; `addresses` by host, `scps` those of SCPS programs."""
    own = PLANNERS[workload.kind](workload, cell, hosts)
    to_ip = addresses[workload.to]
    if isinstance(workload, Endpoint):
        own["from_ip"] = addresses[workload.from_]
    if isinstance(workload, Ftp):
        own["server_ip"] = addresses[workload.to if workload.command == "put" else workload.from_]
    if isinstance(workload, Bulk | Fp):
        own["from_scps"], own["to_scps"] = (_scps_end(workload, host, cell, hosts, scps) for host in (workload.from_, workload.to))
        to_ip = own["to_scps"]["ip"] if own["to_scps"] else to_ip
    if isinstance(workload, Fp):
        end, host = (own["to_scps"], workload.to) if workload.from_client else (own["from_scps"], workload.from_)
        own["server_ip"] = end["ip"] if end else addresses[host]
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
