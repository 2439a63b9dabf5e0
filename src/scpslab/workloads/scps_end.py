"""The `scps` program at an end of a transfer, as the plan has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scpslab import units
from scpslab.plan.headers import IP_TCP_HEADERS_BYTES, TIMESTAMP_BYTES
from scpslab.plan.links import Direction
from scpslab.plan.serial_links import SerialLink
from scpslab.plan.stacks import ScpsEnd
from scpslab.plan.ways import Way, slowest

if TYPE_CHECKING:
    from scpslab.plan.values import AxisValue
    from scpslab.workloads.base import Setting, Traffic

# What PPP adds to an IP packet: protocol field (compressed), frame check, flag; flag and escape are always escaped, one byte each.
PPP_BYTES, PPP_ALWAYS_ESCAPED, OCTETS = 4, 2, 256


def scps_ends(workload: Traffic, segment: str | None, setting: Setting) -> tuple[ScpsEnd | None, ScpsEnd | None]:
    """The programs at the sending and the receiving end."""
    return _end(workload, workload.from_, segment, setting), _end(workload, workload.to, segment, setting)


def _end(workload: Traffic, host: str, segment: str | None, setting: Setting) -> ScpsEnd | None:
    """The program at one end: its address, device, settings and seed; None where the kernel carries it."""
    node = setting.hosts[host]
    if node.scps is None:
        return None
    found = setting.way(host, workload.to if host == workload.from_ else workload.from_)
    settings = {**node.scps, "mtu": min(hop.mtu_bytes for hop in found)}
    if segment is not None:
        settings["segment"] = units.parse("size", segment)
    if node.paced_by_slowest_hop and (rate := rate_that_fits(settings, found, timestamps=node.timestamps)):
        settings["rate"] = str(rate)
    ip, device = setting.take_scps(host)
    return ScpsEnd(ip=ip, device=device, settings=settings, seed=setting.seed("scps", workload.name, host))


def rate_that_fits(settings: Mapping[str, AxisValue], found: Way, *, timestamps: bool) -> int | None:
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
