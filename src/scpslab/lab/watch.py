"""Present traffic as lines of text: rate and queue of every direction with a rate, window of every TCP connection, each with its recent history."""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from typing import Any

from scpslab.lab.netlink import NLM_DUMP, Netlink, attributes, inside
from scpslab.lab.network import ROOT, LabNetwork
from scpslab.plan.links import LOSS_CAUSES

from scpslab.kinds.probes.tcp_info.lab import INET_DIAG_INFO, SOCK_DIAG_BY_FAMILY, STATES, fields

BARS = " ▁▂▃▄▅▆▇█"
KEPT = 40


def sparkline(values: list[float], most: float) -> str:
    """Values as bars; `most` is a full one."""
    return "".join(BARS[min(len(BARS) - 1, round(value / most * (len(BARS) - 1)))] if most else BARS[0] for value in values)


def losses(counts: dict[str, int]) -> str:
    """The number of lost packets, and the number of each cause."""
    causes = ", ".join(f"{cause} {count}" for cause, count in counts.items() if count)
    return f"{sum(counts.values())}{f' ({causes})' if causes else ''}"


class Watch:
    """Looks at a network now and then; `lines` tells what it saw."""

    def __init__(self, network: LabNetwork) -> None:
        self.network = network
        self.last: dict[str, tuple[float, int]] = {}
        self.courses: dict[str, deque[float]] = {}

    def lines(self) -> list[str]:
        """Takes one look, and returns a line for each direction that can fill and each connection."""
        found = [self._direction(direction) for direction in self.network.directions if direction.plan.rate_bps]
        for name in sorted(node.name for node in self.network.mininet.hosts):
            found += self._connections(name)
        return found

    def _course(self, name: str, value: float, most: float) -> str:
        course = self.courses.setdefault(name, deque(maxlen=KEPT))
        course.append(value)
        return sparkline(list(course), most or max(course)).rjust(KEPT)

    def _direction(self, direction: Any) -> str:
        name = f"{direction.link} {direction.name}"
        now, counters = time.monotonic(), self.network.account(direction)
        before, delivered = self.last.get(name, (now, counters["delivered_bytes"]))
        self.last[name] = (now, counters["delivered_bytes"])
        rate_bps = 8 * (counters["delivered_bytes"] - delivered) / (now - before) if now > before else 0.0
        with self.network.where(direction.entering):
            here = Netlink()
            queued = sum(q["backlog_bytes"] for q in here.qdiscs() if q["index"] == direction.entering and q["parent"] == ROOT)
            here.close()
        lost = losses({cause: counters[f"{cause}_packets"] for cause in LOSS_CAUSES})
        course = self._course(name, rate_bps, direction.plan.rate_bps)
        return f"{name:<16} {course} {rate_bps / 1e3:9.1f} kbit/s   queue {queued:>8} B   lost {lost}"

    def _connections(self, node: str) -> list[str]:
        request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), STATES) + bytes(48)
        found = []
        with inside(self.network.pid(node)):
            here = Netlink(4)
            answers = here.ask(SOCK_DIAG_BY_FAMILY, NLM_DUMP, request)
            here.close()
        for _, body in answers:
            seen = fields(body[1], attributes(body[72:]).get(INET_DIAG_INFO, b"").ljust(256, b"\0"))
            port, far_port = struct.unpack_from(">HH", body, 4)
            if not seen["bytes_acked"]:
                # The connection has sent nothing, so its window means nothing.
                continue
            name = f"{node}:{port} {socket.inet_ntoa(body[24:28])}:{far_port}"
            cwnd = float(str(seen["cwnd_segments"]))
            found.append(f"{name:<32} {self._course(name, cwnd, 0)} cwnd {cwnd:5.0f}   rtt {seen['srtt_ms']} ms   retransmitted {seen['retrans_total']}")
        return found
