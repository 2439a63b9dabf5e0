"""A file or record by SCPS-FP: its time as the client reports it and as the packets show it, what restarts cost, and
what became of every byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scpslab.analysis.capture import SYN
from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count
from scpslab.analysis.metrics.data_connection import (
    ACK_LENGTH,
    CAPTURE_TRANSFER,
    GOODPUT,
    HANDSHAKE_RTT,
    RTOS,
    RTT_MIN,
    SENT_AGAIN,
    UTILIZATION,
    measure_capture,
    rates,
)
from scpslab.analysis.metrics.data_flows import FileConnection
from scpslab.analysis.viewpoints import capture_at

from scpslab.kinds.workloads.fp.plan import Fp

TRANSFERS = ("get", "put", "resume", "raread", "raupdt")
COLUMNS = (
    Column("bytes", None, "Bytes of the file that arrived; of the record, where one was read."),
    Column(
        "transfer_s",
        6,
        (
            "The client's time for its transfer commands, restarts and their pauses included; "
            "without a value where a client was killed."
        ),
    ),
    Column(
        "client_total_s",
        6,
        "From the client's start to the end of the last transfer command, connecting and set-up included.",
    ),
    CAPTURE_TRANSFER,
    GOODPUT,
    UTILIZATION,
    SENT_AGAIN,
    RTOS,
    ACK_LENGTH,
    RTT_MIN,
    HANDSHAKE_RTT,
    Column("restarts", None, "Automatic restarts, and continuations or repetitions by the user or by another client."),
    Column(
        "moved_bytes", None, "File bytes over all data connections, as the clients that lived to tell it count them."
    ),
    Column("resumed_at_bytes", None, "Bytes safely stored at which the transfer last went on."),
    Column(
        "integrity_ok", None, "`true` when the protocol's own comparison of checksum and length succeeded at the end."
    ),
    Column("payload_match", None, "`true` when the file arrived as it was sent (SHA-256)."),
    Column("lost_bytes", None, "Bytes sent that are nowhere in what arrived."),
    Column("duplicated_bytes", None, "Bytes sent that are in it more than once."),
    Column("damaged_bytes", None, "Bytes in it that were not sent there."),
    Column("filled_bytes", None, "Gaps that best effort filled."),
    Column(
        "wire_data_bytes",
        None,
        "IP bytes that the sending host sent, control connection and resent packets included, at its own capture.",
    ),
    Column("wire_ack_bytes", None, "IP bytes that arrived there."),
)


def measure(subject: Subject[Fp]) -> dict[str, Value]:
    """Values by column name from the clients' records and the captures on both hosts."""
    cell, workload = subject.cell, subject.workload
    lines = cell.records(workload.name)
    file: dict[str, Any] = next((line for line in lines if line.get("event") == "file"), {})
    clients = [line for line in lines if line.get("event") == "client"]
    arrived = count(file, "bytes")
    values: dict[str, Value] = {
        name: count(file, name) for name in ("bytes", "lost_bytes", "duplicated_bytes", "damaged_bytes")
    }
    values["payload_match"] = file.get("sha256") == file.get("sent_sha256") if file else None
    values["rtos"] = count(next((line for line in lines if line.get("event") == "sender"), {}), "rtos")
    values |= _said(clients)
    return (
        values | rates(subject, arrived, values.get("transfer_s")) | measure_capture(subject, arrived) | _wire(subject)
    )


def _said(clients: list[dict[str, Any]]) -> dict[str, Value]:
    """What the clients report. A killed one reports nothing of what it was doing."""
    if not clients:
        return {}
    reports = [report for client in clients for report in client["reports"]]
    transfers = [report for report in reports if report["command"].split()[0] in TRANSFERS]
    if not transfers:
        return {}
    last = transfers[-1]
    before_s = sum(report["seconds"] for report in clients[-1]["reports"][: clients[-1]["reports"].index(last) + 1])
    continued = len(clients) - 1 if len(clients) > 1 else len(transfers) - 1
    markers = [marker for report in transfers for marker in report.get("markers", []) if marker]
    return {
        "transfer_s": sum(report["seconds"] for report in transfers) if len(clients) == 1 else None,
        "client_total_s": clients[-1]["start_t_s"] + before_s - clients[0]["start_t_s"],
        "restarts": continued + sum(report.get("restarts", 0) for report in transfers),
        "moved_bytes": sum(report.get("octets", 0) for report in transfers),
        "resumed_at_bytes": markers[-1] if markers else None,
        "integrity_ok": last.get("integrity") == "ok",
        "filled_bytes": sum(report.get("filled", 0) for report in transfers),
    }


def _wire(subject: Subject[Fp]) -> dict[str, Value]:
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
    from_source, to_source = (from_client, from_server) if _source_has_client(subject) else (from_server, from_client)
    return {
        "wire_data_bytes": int(packets.ip_bytes[from_source].sum()),
        "wire_ack_bytes": int(packets.ip_bytes[to_source].sum()),
    }


def _source_has_client(subject: Subject[Fp]) -> bool:
    return subject.workload.command not in ("get", "read")


FAMILY = Family(Fp, COLUMNS, measure)
KIND = FileConnection()
