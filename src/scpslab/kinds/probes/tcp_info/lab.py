"""The view that a node's transport has of its connections: the kernel's (struct tcp_info of Linux 6.12) by inet_diag,
SCPS programs' by their traces.
"""

import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict

from scpslab.core.addresses import end
from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.netlink import NLM_DUMP, Netlink, attributes, inside
from scpslab.lab.probes import Sampler
from scpslab.lab.records import Trace

from scpslab.kinds.probes.tcp_info import plan as planned

MS_PER_S = 1000
INET_DIAG = 4  # NETLINK_SOCK_DIAG, linux/netlink.h
SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO = 2
# ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING: the states in which data can be under way.
STATES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11
STATE_NAMES = {1: "established", 4: "fin-wait-1", 5: "fin-wait-2", 8: "close-wait", 9: "last-ack", 11: "closing"}
CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")


@dataclass(frozen=True)
class Connection:
    """A connection of a node's kernel: its ends as ADDRESS:PORT, and its struct tcp_info, with units in the names."""

    local: str
    remote: str
    info: dict[str, str | float | None]


class Event(TypedDict):
    """A line of an SCPS program's trace: what happened, and the sender's state then, in s and bytes."""

    t_s: float
    event: str
    cwnd: int | None
    ssthresh: int | None
    srtt_s: float | None
    rto_s: float
    flight_size: int
    rate_credit: int | None


def with_epoch(trace: Trace, offset_s: float) -> list[Event]:
    """The trace's lines with `t_s` since the epoch, which lies `offset_s` before its time zero; the file is rewritten
    likewise.
    """
    lines: list[Event] = [json.loads(line) for line in trace.path.read_text().splitlines()]
    for line in lines:
        line["t_s"] = round(line["t_s"] + offset_s, 9)
    trace.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def samples(trace: Trace, lines: list[Event], interval_s: float) -> Iterator[JsonObject]:
    """One line per interval of the epoch's grid while the connection has events; keys as a kernel's sample has them,
    null where there is no such thing.
    """
    if not lines:
        return
    resent, at = 0, 0
    tick = -int(-lines[0]["t_s"] // interval_s)
    while at < len(lines):
        t_s = round(tick * interval_s, 9)
        while at < len(lines) and lines[at]["t_s"] <= t_s:
            resent += lines[at]["event"] == "resent"
            at += 1
        if at:
            yield {
                "t_s": t_s,
                "local": trace.local,
                "remote": trace.remote,
                **_fields(lines[at - 1], trace.mss_bytes),
                "retrans_total": resent,
            }
        tick += 1


def _fields(line: Event, mss_bytes: int) -> JsonObject:
    def segments(value: int | None) -> int | None:
        return None if value is None or not mss_bytes else value // mss_bytes

    return {
        "cwnd_segments": segments(line["cwnd"]),
        "ssthresh_segments": segments(line["ssthresh"]),
        "srtt_ms": None if line["srtt_s"] is None else round(line["srtt_s"] * MS_PER_S, 6),
        "rto_ms": round(line["rto_s"] * MS_PER_S, 6),
        "unacked": segments(line["flight_size"]),
        "mss_bytes": mss_bytes,
        "rate_credit_bytes": line["rate_credit"],
    }


class TcpInfo(Sampler[planned.TcpInfo], kind="tcp_info"):
    """One line per connection and sample: cwnd, ssthresh, srtt and the rest."""

    def prepare(self) -> None:
        """Opens a sock_diag socket in the node."""
        with inside(self.network.pid(self.spec.node)):
            self.netlink = Netlink(INET_DIAG)
        super().prepare()

    def sample(self) -> None:
        """Asks for all connections and their tcp_info."""
        t_s = self.context.epoch.now_s()
        for connection in connections(self.netlink, is_ipv6=self.network.plan.is_ipv6):
            self.record(t_s=t_s, local=connection.local, remote=connection.remote, **connection.info)

    def stop(self) -> None:
        """Adds what SCPS programs on the node traced; closes socket and file."""
        super().stop()
        self.netlink.close()
        for trace in self.context.traces(self.spec.node):
            lines = with_epoch(trace, self.context.epoch.t_s(trace.origin_ns))
            for sample in samples(trace, lines, self.spec.interval_ns / SECOND_NS):
                self.records.write(**sample)
        self.records.close()


def connections(diag: Netlink, *, is_ipv6: bool) -> Iterator[Connection]:
    """The TCP connections of the namespace where a socket of family INET_DIAG was opened."""
    wanted, family = 1 << (INET_DIAG_INFO - 1), socket.AF_INET6 if is_ipv6 else socket.AF_INET
    request = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, wanted, STATES) + bytes(48)
    size = 16 if is_ipv6 else 4
    for _, body in diag.ask(SOCK_DIAG_BY_FAMILY, NLM_DUMP, request):
        info = attributes(body[72:]).get(INET_DIAG_INFO, b"").ljust(256, b"\0")
        ports = struct.unpack_from(">HH", body, 4)
        addresses = (socket.inet_ntop(family, body[at : at + size]) for at in (8, 24))
        local, remote = (end(address, port) for address, port in zip(addresses, ports, strict=True))
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
