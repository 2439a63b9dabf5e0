"""A file's data connection among those of a file protocol, as captures on both hosts saw it: what FTP and SCPS-FP have
in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scpslab.analysis.capture import ACK, FIN, RST, SYN, Connection, split_connections
from scpslab.analysis.metrics.base import Column, Subject, Value
from scpslab.analysis.traces import flow_of, round_trips, transfer_times
from scpslab.analysis.viewpoints import bottleneck_bps, capture_at

if TYPE_CHECKING:
    from scpslab.analysis.metrics.data_flows import Transfer
    from scpslab.analysis.run import RunCell

CAPTURE_TRANSFER = Column(
    "capture_transfer_s",
    9,
    (
        "At the receiving host: arrival of the data connection's first packet to sending of the acknowledgement of "
        "the last byte."
    ),
)
SENT_AGAIN = Column(
    "data_retransmissions",
    None,
    "Data packets of the data connection seen at the sending host with bytes already sent.",
)
ACK_LENGTH = Column(
    "ack_bytes", None, "IP length of most acknowledgements without data on the data connection, at the receiving host."
)
RTT_MIN = Column(
    "rtt_min_s",
    9,
    (
        "Smallest round trip of an acknowledgement of the data connection, at the sending host; "
        "none are taken around losses."
    ),
)
HANDSHAKE_RTT = Column(
    "handshake_rtt_s", 9, "Round trip of the data connection's opening, SYN to its answer, at the host that opened it."
)

GOODPUT = Column("goodput_bps", 3, "bytes * 8 / transfer_s.")
UTILIZATION = Column(
    "utilization",
    9,
    (
        "bytes * 8 / (transfer_s * rate of the slowest hop on the data path), start and stop bits of a serial line "
        "counted in that rate."
    ),
)
RTOS = Column(
    "rtos",
    None,
    (
        "Retransmission timeouts of the sending host's transport during the transfer, those of the control "
        "connection included."
    ),
)


def rates(subject: Subject[Any], arrived_bytes: int | None, transfer_s: Value) -> dict[str, Value]:
    """Goodput and utilization, of a transfer that took time."""
    if not arrived_bytes or not isinstance(transfer_s, float) or transfer_s <= 0:
        return {}
    values: dict[str, Value] = {GOODPUT.name: arrived_bytes * 8 / transfer_s}
    if rate_bps := bottleneck_bps(subject.cell.plan, subject.workload):
        values[UTILIZATION.name] = arrived_bytes * 8 / (transfer_s * rate_bps)
    return values


def measure_capture(subject: Subject[Any], arrived_bytes: int | None) -> dict[str, Value]:
    """Values by column name; `arrived_bytes` of the file, which one connection must have carried for its time to be
    that of the transfer.
    """
    values: dict[str, Value] = {}
    received, sent = (_data_connection(subject, node) for node in (subject.workload.to, subject.workload.from_))
    if received is not None:
        flow = flow_of(received, from_client=client_sends(received))
        times = transfer_times(flow)
        if times is not None and flow.total_bytes == arrived_bytes:
            values[CAPTURE_TRANSFER.name] = times[1] - (
                flow.t_s[0] if flow.syn_t_s is None else min(flow.syn_t_s, float(flow.t_s[0]))
            )
        values[ACK_LENGTH.name] = _ack_bytes(received)
    if sent is not None:
        flow = flow_of(sent, from_client=client_sends(sent))
        _, rtt_s = round_trips(flow)
        values[SENT_AGAIN.name] = int(flow.is_repeated.sum())
        values[RTT_MIN.name] = float(rtt_s.min()) if len(rtt_s) else None
    if received is not None and sent is not None:
        values[HANDSHAKE_RTT.name] = _handshake_rtt_s(sent if client_sends(sent) else received)
    return values


def _handshake_rtt_s(at_client: Connection) -> float | None:
    """From the only SYN to its answer; None when the SYN had to be repeated, for then it is not known which one was
    answered.
    """
    opening = at_client.flags & SYN != 0
    asked, answered = at_client.t_s[opening & at_client.from_client], at_client.t_s[opening & ~at_client.from_client]
    return float(answered[0] - asked[0]) if len(asked) == 1 and len(answered) else None


def _data_connection(subject: Subject[Any], node: str) -> Connection | None:
    """The data connection in the capture on `node`."""
    probe = capture_at(subject.cell.plan, node)
    return data_connection(subject.cell, subject.workload, probe.name) if probe else None


def data_connection(cell: RunCell, workload: Transfer, probe: str) -> Connection | None:
    """The connection with the most payload that is not the control connection, in a capture."""
    packets = cell.packets(probe)
    if packets is None:
        return None
    found = split_connections(packets, cell.epoch_realtime_ns)
    data = [connection for connection in found if workload.port not in (connection.server_port, connection.client_port)]
    return max(data, key=lambda connection: int(connection.payload_bytes.sum()), default=None)


def client_sends(connection: Connection) -> bool:
    """Whether the side that opened the connection sends the file (in active mode the server opens it)."""
    from_client = int(connection.payload_bytes[connection.from_client].sum())
    return from_client * 2 > int(connection.payload_bytes.sum())


def _ack_bytes(connection: Connection) -> int | None:
    is_bare = (
        (connection.payload_bytes == 0) & (connection.flags & ACK != 0) & (connection.flags & (SYN | FIN | RST) == 0)
    )
    lengths = connection.ip_bytes[is_bare & (connection.from_client != client_sends(connection))]
    return int(np.bincount(lengths).argmax()) if len(lengths) else None
