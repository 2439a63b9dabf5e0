"""An SCPS program's trace as samples: what a tcp_info probe shows of a host whose transport is not the kernel's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from scpslab.lab.records import Trace

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
