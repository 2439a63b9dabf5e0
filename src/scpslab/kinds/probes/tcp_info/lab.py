"""The view that a node's transport has of its connections: the kernel's (struct tcp_info of Linux 6.12) by inet_diag, SCPS programs' by their traces."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

from scpslab.core.names import file_name
from scpslab.lab.clock import SECOND_NS
from scpslab.lab.netlink import NLM_DUMP, Netlink, attributes, inside
from scpslab.lab.probes import Sampler
from scpslab.lab.records import Records, Trace

from scpslab.kinds.probes.tcp_info import plan as planned

MS_PER_S = 1000


def with_epoch(trace: Trace, offset_s: float) -> list[dict[str, Any]]:
    """The trace's lines with `t_s` since the epoch, which lies `offset_s` before its time zero; the file is rewritten likewise."""
    lines = [json.loads(line) for line in trace.path.read_text().splitlines()]
    for line in lines:
        line["t_s"] = round(line["t_s"] + offset_s, 9)
    trace.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def samples(trace: Trace, lines: list[dict[str, Any]], interval_s: float) -> Iterator[dict[str, Any]]:
    """One line per interval of the epoch's grid while the connection has events; keys as a kernel's sample has them, null where there is no such thing."""
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
            yield {"t_s": t_s, "local": trace.local, "remote": trace.remote, **_fields(lines[at - 1], trace.mss_bytes), "retrans_total": resent}
        tick += 1


def _fields(line: dict[str, Any], mss_bytes: int) -> dict[str, Any]:
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


SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO = 2
# ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING: the states in which data can be under way.
STATES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11
STATE_NAMES = {1: "established", 4: "fin-wait-1", 5: "fin-wait-2", 8: "close-wait", 9: "last-ack", 11: "closing"}
CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")


class TcpInfo(Sampler[planned.TcpInfo]):
    """One line per connection and sample: cwnd, ssthresh, srtt and the rest."""

    def prepare(self) -> None:
        """Opens a sock_diag socket in the node."""
        with inside(self.network.pid(self.spec.node)):
            self.netlink = Netlink(socket.NETLINK_INET_DIAG if hasattr(socket, "NETLINK_INET_DIAG") else 4)
        self.records = Records(self.context.folders.records / file_name(self.name, suffix=".jsonl"))

    def sample(self) -> None:
        """Asks for all connections and their tcp_info."""
        request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), STATES) + bytes(48)
        t_s = self.context.epoch.now_s()
        for _, body in self.netlink.ask(SOCK_DIAG_BY_FAMILY, NLM_DUMP, request):
            info = attributes(body[72:]).get(INET_DIAG_INFO, b"").ljust(256, b"\0")
            source_port, destination_port = struct.unpack_from(">HH", body, 4)
            source, destination = socket.inet_ntoa(body[8:12]), socket.inet_ntoa(body[24:28])
            self.records.write(t_s=t_s, local=f"{source}:{source_port}", remote=f"{destination}:{destination_port}", **fields(body[1], info))

    def stop(self) -> None:
        """Adds what SCPS programs on the node traced; closes socket and file."""
        super().stop()
        self.netlink.close()
        for trace in self.context.traces(self.spec.node):
            lines = with_epoch(trace, self.context.epoch.t_s(trace.origin_ns))
            for sample in samples(trace, lines, self.spec.interval_ns / SECOND_NS):
                self.records.write(**sample)
        self.records.close()


def fields(state: int, info: bytes) -> dict[str, object]:
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


KIND = TcpInfo
