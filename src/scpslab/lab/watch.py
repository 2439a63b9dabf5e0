"""What a network does now: samples of its directions and of its TCP connections, and their lines of text."""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scpslab.core.strict_json import count
from scpslab.lab.netlink import NLM_DUMP, ROOT, Netlink, attributes, inside
from scpslab.plan.links import ALL_CAUSES

if TYPE_CHECKING:
    # Mininet exists only where a lab runs; tests of samples run without it.
    from scpslab.lab.network import LabNetwork
    from scpslab.lab.stages import DirectionStages

INET_DIAG = 4  # NETLINK_SOCK_DIAG, linux/netlink.h
SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO = 2
# ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING: the states in which data can be under way.
STATES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11
STATE_NAMES = {1: "established", 4: "fin-wait-1", 5: "fin-wait-2", 8: "close-wait", 9: "last-ack", 11: "closing"}
CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")
BARS = " ▁▂▃▄▅▆▇█"
KEPT = 40


@dataclass(frozen=True)
class Connection:
    """A connection of a node's kernel: its ends as ADDRESS:PORT, and its struct tcp_info, with units in the names."""

    local: str
    remote: str
    info: dict[str, str | float | None]


@dataclass(frozen=True)
class DirectionSample:
    """A direction of a link: its rate, what waits at its entrance, and its counters since the network came up."""

    link: str
    name: str
    rate_bps: int
    backlog_bytes: int
    counters: dict[str, int]


@dataclass(frozen=True)
class Sample:
    """One look at a network, at an instant of the monotonic clock: directions with a rate, connections by node."""

    t_s: float
    directions: tuple[DirectionSample, ...]
    connections: tuple[tuple[str, Connection], ...]


class Watch:
    """Looks at a network now and then."""

    def __init__(self, network: LabNetwork) -> None:
        self.network = network

    def look(self) -> Sample:
        """Takes one look. It visits network namespaces: nothing may interrupt it."""
        directions = tuple(self._direction(one) for one in self.network.directions if one.plan.rate_bps)
        nodes = sorted(node.name for node in self.network.mininet.hosts)
        of_nodes = tuple((node, connection) for node in nodes for connection in self._connections(node))
        return Sample(time.monotonic(), directions, of_nodes)

    def _direction(self, direction: DirectionStages) -> DirectionSample:
        counters = self.network.stages.account(direction)
        with self.network.where(direction.entering), Netlink() as here:
            queues = [qdisc for qdisc in here.qdiscs() if (qdisc.interface, qdisc.parent) == (direction.entering, ROOT)]
        backlog_bytes = sum(queue.backlog_bytes for queue in queues)
        return DirectionSample(direction.link, direction.name, direction.plan.rate_bps or 0, backlog_bytes, counters)

    def _connections(self, node: str) -> list[Connection]:
        with inside(self.network.pid(node)), Netlink(INET_DIAG) as here:
            return list(connections(here))


class View:
    """Samples as lines of text, each with its recent history."""

    def __init__(self) -> None:
        self._courses: dict[str, deque[float]] = {}
        self._last: Sample | None = None

    def lines(self, sample: Sample) -> list[str]:
        """A line for each direction, and for each connection that has sent something."""
        before = {(one.link, one.name): one for one in self._last.directions} if self._last else {}
        past_s = sample.t_s - self._last.t_s if self._last else 0.0
        self._last = sample
        lines = []
        for direction in sample.directions:
            earlier = before.get((direction.link, direction.name), direction)
            delivered = direction.counters["delivered_bytes"] - earlier.counters["delivered_bytes"]
            lines.append(self._direction(direction, 8 * delivered / past_s if past_s > 0 else 0.0))
        # The window of a connection that has sent nothing means nothing.
        return lines + [self._connection(*one) for one in sample.connections if one[1].info["bytes_acked"]]

    def _course(self, name: str, value: float, most: float) -> str:
        course = self._courses.setdefault(name, deque(maxlen=KEPT))
        course.append(value)
        return sparkline(list(course), most or max(course)).rjust(KEPT)

    def _direction(self, sample: DirectionSample, rate_bps: float) -> str:
        name = f"{sample.link} {sample.name}"
        lost = losses({cause: sample.counters.get(f"{cause}_packets", 0) for cause in ALL_CAUSES})
        course = self._course(name, rate_bps, sample.rate_bps)
        queue = f"queue {sample.backlog_bytes:>8} B"
        return f"{name:<16} {course} {rate_bps / 1e3:9.1f} kbit/s   {queue}   lost {lost}"

    def _connection(self, node: str, connection: Connection) -> str:
        name = f"{node}:{connection.local.rpartition(':')[2]} {connection.remote}"
        info = connection.info
        segments = count(info, "cwnd_segments") or 0
        window = f"{self._course(name, segments, 0)} cwnd {segments:5}"
        return f"{name:<32} {window}   rtt {info['srtt_ms']} ms   retransmitted {info['retrans_total']}"


def sparkline(values: list[float], most: float) -> str:
    """Values as bars; `most` is a full one."""
    top = len(BARS) - 1
    return "".join(BARS[min(top, round(value / most * top)) if most else 0] for value in values)


def losses(counts: dict[str, int]) -> str:
    """The number of lost packets, and the number of each cause."""
    causes = ", ".join(f"{cause} {count}" for cause, count in counts.items() if count)
    return f"{sum(counts.values())}{f' ({causes})' if causes else ''}"


def connections(diag: Netlink) -> Iterator[Connection]:
    """The TCP connections of the namespace where a socket of family INET_DIAG was opened."""
    wanted = 1 << (INET_DIAG_INFO - 1)
    request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, wanted, STATES) + bytes(48)
    for _, body in diag.ask(SOCK_DIAG_BY_FAMILY, NLM_DUMP, request):
        info = attributes(body[72:]).get(INET_DIAG_INFO, b"").ljust(256, b"\0")
        ports = struct.unpack_from(">HH", body, 4)
        addresses = socket.inet_ntoa(body[8:12]), socket.inet_ntoa(body[24:28])
        local, remote = (f"{address}:{port}" for address, port in zip(addresses, ports, strict=True))
        yield Connection(local, remote, fields(body[1], info))


def fields(state: int, info: bytes) -> dict[str, str | float | None]:
    """The members of struct tcp_info that an analysis asks for, with units in their names."""

    def u32(offset: int) -> int:
        return int(struct.unpack_from("=I", info, offset)[0])

    def u64(offset: int) -> int:
        return int(struct.unpack_from("=Q", info, offset)[0])

    return {
        "state": STATE_NAMES.get(state, str(state)),
        "cwnd_segments": u32(80),
        "ssthresh_segments": u32(76),
        "srtt_ms": u32(68) / 1000,
        "rttvar_ms": u32(72) / 1000,
        "rto_ms": u32(8) / 1000,
        "unacked": u32(24),
        "sacked": u32(28),
        "lost": u32(32),
        "retrans_total": u32(100),
        "mss_bytes": u32(16),
        "pacing_bps": u64(104) * 8 if u64(104) < 1 << 60 else None,
        "delivery_bps": u64(160) * 8,
        "min_rtt_ms": u32(148) / 1000,
        "bytes_acked": u64(120),
        "snd_wnd_bytes": u32(228),
        "ca_state": CA_STATES[info[1]] if info[1] < len(CA_STATES) else str(info[1]),
    }
