"""A file by FTP: its time as the client reports it, which is what the NMSU papers plot, and as the packets show it."""

from __future__ import annotations

from scpslab.analysis.metrics.base import Column, Family, Subject, Value, count, number
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

from scpslab.kinds.services.gateway.metrics import gateway_of
from scpslab.kinds.workloads.ftp.plan import Ftp

COLUMNS = (
    Column("bytes", None, "Bytes of the file that arrived."),
    Column(
        "transfer_s",
        6,
        (
            "The client's time for the transfer alone: from the end of log-in and set-up commands to the server's "
            "word that all is done."
        ),
    ),
    Column("client_total_s", 6, "The client's time for everything, connecting and logging in included."),
    CAPTURE_TRANSFER,
    GOODPUT,
    UTILIZATION,
    SENT_AGAIN,
    RTOS,
    ACK_LENGTH,
    RTT_MIN,
    HANDSHAKE_RTT,
    Column("payload_match", None, "`true` when the file arrived as it was sent (SHA-256)."),
)


def measure(subject: Subject[Ftp]) -> dict[str, Value]:
    """Values by column name from the client's record and the captures on both hosts."""
    cell, workload = subject.cell, subject.workload
    lines = {str(line.get("event")): line for line in cell.records(workload.name)}
    client, file = lines.get("client", {}), lines.get("file", {})
    arrived, total_s, before_s = count(file, "bytes"), number(client, "total_s"), number(client, "before_transfer_s")
    values: dict[str, Value] = {
        "bytes": arrived,
        "client_total_s": total_s,
        "payload_match": file.get("sha256") == file.get("sent_sha256") if file else None,
    }
    if not gateway_of(cell.plan, workload.from_):
        # The kernel's connection ends at the host's own gateway.
        values["rtos"] = count(lines.get("sender", {}), "rtos")
    if total_s is not None and before_s is not None:
        values["transfer_s"] = total_s - before_s
    return values | rates(subject, arrived, values.get("transfer_s")) | measure_capture(subject, arrived)


FAMILY = Family(Ftp, COLUMNS, measure)
KIND = FileConnection()
