"""The view that a node's transport has of its connections: the kernel's (struct tcp_info of Linux 6.12) by inet_diag,
SCPS programs' by their traces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypedDict

from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.netlink import Netlink, inside
from scpslab.lab.probes import Sampler
from scpslab.lab.records import Trace
from scpslab.lab.watch import INET_DIAG, connections

from scpslab.kinds.probes.tcp_info import plan as planned

MS_PER_S = 1000


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
        for connection in connections(self.netlink):
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
