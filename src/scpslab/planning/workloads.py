"""Workloads of the plan; one function a kind, one line in PLANNERS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from scpslab import units
from scpslab.plan import workloads as planned
from scpslab.plan.links import Direction
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.stacks import ScpsEnd
from scpslab.plan.values import AxisValue
from scpslab.plan.ways import Way, slowest, way
from scpslab.plan.workloads.endpoint import EndOptions
from scpslab.planning.scps import ScpsAddresses
from scpslab.scenario import Cell
from scpslab.scenario.model import Bulk, CongestionTraffic, Endpoint, Fp, Ftp, Iperf3, Ping, Workload
from scpslab.seeds import stream, uniform
from scpslab.stacks import NodePlan
from scpslab.topology.layout import Layout

# 48 bits: whole numbers that every language and JSON reader keeps exactly.
SEED_DIGITS = 12
IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES = 40, 12
# Shares of a file between which a transfer is stopped: in its middle, with enough left to go on with.
STOP_FROM, STOP_TO = 0.05, 0.75
# What PPP adds to an IP packet: protocol field (compressed), frame check, flag; flag and escape are always escaped, one byte each.
PPP_BYTES, PPP_ALWAYS_ESCAPED, OCTETS = 4, 2, 256


@dataclass(frozen=True)
class Setting:
    """What workloads are planned in: the cell, its network, what is planned for its hosts, the addresses of hosts and of SCPS programs."""

    cell: Cell
    network: Layout
    hosts: Mapping[str, NodePlan]
    addresses: Mapping[str, str]
    scps: ScpsAddresses

    def way(self, source: str, destination: str) -> Way:
        """The way from one node to another."""
        return way(self.network.all_links, source, destination)

    def seed(self, purpose: str, *names: str) -> int:
        """A seed of the cell's repeat."""
        return int(stream(self.cell.scenario.seed, purpose, *names, self.cell.repeat)[:SEED_DIGITS], 16)

    def draws(self, purpose: str, name: str, number: int) -> list[float]:
        """Numbers from 0 to 1, of the cell's repeat."""
        return uniform(stream(self.cell.scenario.seed, purpose, name, self.cell.repeat), number)


class Common(TypedDict):
    """What every workload of a plan says."""

    name: str
    from_: str
    to: str
    start_ns: int


def _common(workload: Workload) -> Common:
    return {"name": workload.name, "from_": workload.from_, "to": workload.to, "start_ns": units.parse("duration", workload.start)}


def _bulk(workload: Bulk, setting: Setting) -> planned.Bulk:
    from_scps, to_scps = (_scps_end(workload, host, setting) for host in (workload.from_, workload.to))
    return planned.Bulk(
        **_common(workload),
        required=workload.required,
        to_ip=to_scps.ip if to_scps else setting.addresses[workload.to],
        bytes_=units.parse("size", workload.size),
        segment_bytes=units.parse("size", workload.segment),
        port=workload.port,
        send_window_bytes=setting.hosts[workload.from_].send_window_bytes,
        receive_window_bytes=setting.hosts[workload.to].receive_window_bytes,
        congestion=workload.congestion,
        delayed_ack=setting.hosts[workload.to].delayed_ack,
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=units.parse("duration", workload.patience),
        from_scps=from_scps,
        to_scps=to_scps,
    )


def _endpoint(workload: Endpoint, setting: Setting) -> planned.Endpoint:
    from_image, to_image = (setting.hosts[host].image for host in (workload.from_, workload.to))
    return planned.Endpoint(
        **_common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        bytes_=units.parse("size", workload.size),
        port=workload.port,
        options=EndOptions(from_=from_image.options if from_image else "", to=to_image.options if to_image else ""),
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=units.parse("duration", workload.patience),
        from_ip=setting.addresses[workload.from_],
    )


def _iperf3(workload: Iperf3, setting: Setting) -> planned.Iperf3:
    return planned.Iperf3(
        **_common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        duration_ns=units.parse("duration", workload.duration) if workload.duration else None,
        bytes_=units.parse("size", workload.size) if workload.size else None,
        port=workload.port,
        congestion=workload.congestion,
        segment_bytes=units.parse("size", workload.segment) if workload.segment else None,
        reverse=workload.reverse,
        udp_rate_bps=units.parse("rate", workload.udp_rate) if workload.udp_rate else None,
        parallel=workload.parallel,
        patience_ns=units.parse("duration", workload.patience),
    )


def _ftp(workload: Ftp, setting: Setting) -> planned.Ftp:
    return planned.Ftp(
        **_common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        bytes_=units.parse("size", workload.size),
        command=workload.command,
        mode=workload.mode,
        port=workload.port,
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=units.parse("duration", workload.patience),
        server_ip=setting.addresses[workload.to if workload.command == "put" else workload.from_],
    )


def _fp(workload: Fp, setting: Setting) -> planned.Fp:
    """Where it is stopped and where the record lies are drawn by repeat and name only: every stack and command meets the same."""
    size, record = units.parse("size", workload.size), units.parse("size", workload.record)
    (stop,), (record_at,) = setting.draws("stop", workload.name, 1), setting.draws("record", workload.name, 1)
    stop_at = units.parse("size", workload.stop_at) if workload.stop_at is not None else int(size * (STOP_FROM + (STOP_TO - STOP_FROM) * stop))
    from_scps, to_scps = (_scps_end(workload, host, setting) for host in (workload.from_, workload.to))
    server, server_scps = (workload.to, to_scps) if workload.from_client else (workload.from_, from_scps)
    return planned.Fp(
        **_common(workload),
        required=workload.required,
        to_ip=to_scps.ip if to_scps else setting.addresses[workload.to],
        bytes_=size,
        command=workload.command,
        record_bytes=record,
        record_at=int(record_at * max(0, size - (record if workload.command != "insert" else 0))),
        mode=workload.mode,
        port=workload.port,
        auto_restart=workload.auto_restart,
        bets=workload.bets,
        stop=workload.stop,
        stop_at=stop_at if workload.stop != "none" else None,
        tunables={
            "DATATIMEOUT": units.parse("duration", workload.data_timeout) // 10**9,
            "REPLYTIMEOUT": units.parse("duration", workload.reply_timeout) // 10**9,
            "RESTARTDELAY": units.parse("duration", workload.restart_delay) // 10**9,
        },
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=units.parse("duration", workload.patience),
        from_scps=from_scps,
        to_scps=to_scps,
        server_ip=server_scps.ip if server_scps else setting.addresses[server],
    )


def _ping(workload: Ping, setting: Setting) -> planned.Ping:
    return planned.Ping(
        **_common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        count=workload.count,
        interval_ns=units.parse("duration", workload.interval),
        payload_bytes=units.parse("size", workload.payload),
    )


def _congestion(workload: CongestionTraffic, setting: Setting) -> planned.Congestion:
    """The draws depend on repeat and name only: every stack meets the same traffic, and a higher level is the same pattern, scaled."""
    hop = slowest(setting.way(workload.from_, workload.to))
    rate_bps = hop.direction.rate_bps or 0 if hop else 0
    most_bps = units.parse("rate", workload.max_rate) if workload.max_rate is not None else round(rate_bps * ((workload.level or 100) - 100) / 100)
    redraw_ns = units.parse("duration", workload.redraw)
    draws = -(-units.parse("duration", setting.cell.model.limits.virtual) // redraw_ns)
    return planned.Congestion(
        **_common(workload),
        # It is never waited for: it ends with the last required workload.
        required=False,
        to_ip=setting.addresses[workload.to],
        max_rate_bps=most_bps,
        redraw_ns=redraw_ns,
        packet_bytes=units.parse("size", workload.packet),
        rates_bps=tuple(int(value * most_bps) for value in setting.draws("congestion", workload.name, draws)),
        port=workload.port,
    )


PLANNERS: dict[str, Callable[[Any, Setting], planned.Traffic]] = {
    "bulk": _bulk,
    "endpoint": _endpoint,
    "ftp": _ftp,
    "fp": _fp,
    "iperf3": _iperf3,
    "ping": _ping,
    "congestion": _congestion,
}


def _scps_end(workload: Bulk | Fp, host: str, setting: Setting) -> ScpsEnd | None:
    """The `scps` program at an end of a transfer: its address, device, settings and seed; None where the kernel carries it."""
    node = setting.hosts[host]
    if node.scps is None:
        return None
    found = setting.way(host, workload.to if host == workload.from_ else workload.from_)
    settings = {**node.scps, "mtu": min(hop.mtu_bytes for hop in found)}
    if workload.segment is not None:
        settings["segment"] = units.parse("size", workload.segment)
    if node.paced_by_slowest_hop and (rate := _rate_that_fits(settings, found, timestamps=node.timestamps)):
        settings["rate"] = str(rate)
    ip, device = setting.scps.take(host)
    return ScpsEnd(ip=ip, device=device, settings=settings, seed=setting.seed("scps", workload.name, host))


def _rate_that_fits(settings: Mapping[str, AxisValue], found: Way, *, timestamps: bool) -> int | None:
    """IP bits per second with which full segments just fill the slowest hop of a way; its framing is no part of their length."""
    hop = slowest(found)
    if hop is None or hop.direction.rate_bps is None:
        return None
    headers = IP_TCP_HEADERS_BYTES + (TIMESTAMP_BYTES if timestamps else 0)
    packet = int(settings["segment"]) + headers if "segment" in settings else int(settings["mtu"])
    if isinstance(hop.link, SerialLink):
        escaped = PPP_ALWAYS_ESCAPED + hop.link.ppp.asyncmap.bit_count()
        on_the_line = packet + PPP_BYTES + -(-packet * escaped // OCTETS)
        return hop.direction.rate_bps * 8 * packet // (hop.link.bits_per_byte * on_the_line)
    framing = hop.direction.overhead_bytes if isinstance(hop.direction, Direction) else 0
    return hop.direction.rate_bps * packet // (packet + framing)


def plan_workload(workload: Workload, setting: Setting) -> planned.Traffic:
    """One workload of the plan."""
    return PLANNERS[workload.kind](workload, setting)
