"""A file or record by SCPS-FP: its time as the client reports it and as the packets show it, what restarts cost, and
what became of every byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from scpslab.analysis.capture import SYN
from scpslab.analysis.metrics.base import Family, Subject, Values, columns
from scpslab.analysis.metrics.data_flows import OF_A_FILE, FileConnection, measure_capture
from scpslab.analysis.viewpoints import capture_at
from scpslab.core.strict_json import JsonObject, count, number, sections, text

from scpslab.kinds.workloads.fp.plan import Fp

TRANSFERS = ("get", "put", "resume", "raread", "raupdt")
WRONG = ("lost_bytes", "duplicated_bytes", "damaged_bytes")
COLUMNS = columns(
    {
        **OF_A_FILE,
        "restarts": None,
        "moved_bytes": None,
        "resumed_at_bytes": None,
        "integrity_ok": None,
        "payload_match": None,
        **dict.fromkeys(WRONG),
        "filled_bytes": None,
        "wire_data_bytes": None,
        "wire_ack_bytes": None,
    }
)


def measure(subject: Subject[Fp]) -> Values:
    """Values by column name from the clients' records and the captures on both hosts."""
    file = subject.line("file")
    arrived = count(file, "bytes")
    values: Values = {
        **{name: count(file, name) for name in ("bytes", *WRONG)},
        "payload_match": file.get("sha256") == file.get("sent_sha256") if file else None,
        "rtos": count(subject.line("sender"), "rtos"),
        **_told([line for line in subject.lines if line.get("event") == "client"]),
    }
    return (
        values | subject.rates(arrived, values.get("transfer_s")) | measure_capture(subject, arrived) | _wire(subject)
    )


@dataclass(frozen=True)
class _Report:
    """What a client reports of a command: `verb` is its first word."""

    verb: str
    seconds: float
    octets: int
    restarts: int
    markers: tuple[int, ...]
    is_whole: bool
    filled: int

    @classmethod
    def of(cls, fields: JsonObject) -> Self:
        """The report in a record; what it lacks counts as none."""
        markers = fields.get("markers")
        return cls(
            (text(fields, "command") or "").partition(" ")[0],
            number(fields, "seconds") or 0.0,
            count(fields, "octets") or 0,
            count(fields, "restarts") or 0,
            tuple(marker for marker in markers if isinstance(marker, int)) if isinstance(markers, list) else (),
            fields.get("integrity") == "ok",
            count(fields, "filled") or 0,
        )


def _told(clients: list[JsonObject]) -> Values:
    """What the clients report. A killed one reports nothing of what it was doing."""
    if not clients:
        return {}
    reports = [_Report.of(fields) for client in clients for fields in sections(client, "reports")]
    transfers = [report for report in reports if report.verb in TRANSFERS]
    if not transfers:
        return {}
    own = [_Report.of(fields) for fields in sections(clients[-1], "reports")]
    before_s = sum(report.seconds for report in own[: own.index(transfers[-1]) + 1])
    began_s, again_s = number(clients[0], "start_t_s"), number(clients[-1], "start_t_s")
    continued = len(clients) - 1 if len(clients) > 1 else len(transfers) - 1
    markers = [marker for report in transfers for marker in report.markers if marker]
    return {
        "transfer_s": sum(report.seconds for report in transfers) if len(clients) == 1 else None,
        "client_total_s": None if began_s is None or again_s is None else again_s + before_s - began_s,
        "restarts": continued + sum(report.restarts for report in transfers),
        "moved_bytes": sum(report.octets for report in transfers),
        "resumed_at_bytes": markers[-1] if markers else None,
        "integrity_ok": transfers[-1].is_whole,
        "filled_bytes": sum(report.filled for report in transfers),
    }


def _wire(subject: Subject[Fp]) -> Values:
    """IP bytes each way at the sending host, of the connections between the hosts.

    The first packet of all is the client's request for one.
    """
    probe = capture_at(subject.cell.plan, subject.workload.from_)
    packets = subject.cell.packets(probe.name) if probe else None
    if packets is None:
        return {}
    requests = np.flatnonzero((packets.destination_port == subject.workload.port) & (packets.flags & SYN != 0))
    if not len(requests):
        return {}
    client, server = packets.source[requests[0]], packets.destination[requests[0]]
    from_client = (packets.source == client) & (packets.destination == server)
    from_server = (packets.source == server) & (packets.destination == client)
    client_has_source = subject.workload.opener == subject.workload.from_
    from_source, to_source = (from_client, from_server) if client_has_source else (from_server, from_client)
    return {
        "wire_data_bytes": int(packets.ip_bytes[from_source].sum()),
        "wire_ack_bytes": int(packets.ip_bytes[to_source].sum()),
    }


KIND = FileConnection(Family(COLUMNS, measure))
