"""A file by FTP: its time as the client reports it, which is what the NMSU papers plot, and as the packets show it."""

from __future__ import annotations

from scpslab.results.capture import SYN, Connection, split_connections
from scpslab.results.metrics.base import Column, Family, Subject, Value, count, number
from scpslab.results.traces import flow_of, transfer_times

COLUMNS = (
    Column("bytes", None, "Bytes of the file that arrived."),
    Column("transfer_s", 6, "The client's time for the transfer alone: from the end of log-in and set-up commands to the server's word that all is done."),
    Column("client_total_s", 6, "The client's time for everything, connecting and logging in included."),
    Column("capture_transfer_s", 9, "At the receiving host: arrival of the data connection's first packet to sending of the acknowledgement of the last byte."),
    Column("goodput_bps", 3, "bytes * 8 / transfer_s."),
    Column("utilization", 9, "bytes * 8 / (transfer_s * rate of the slowest hop on the data path), start and stop bits of a serial line counted in that rate."),
    Column("data_retransmissions", None, "Data packets of the data connection seen at the sending host with bytes already sent."),
    Column("handshake_rtt_s", 9, "Round trip of the data connection's opening, SYN to its answer, at the host that opened it."),
    Column("payload_match", None, "`true` when the file arrived as it was sent (SHA-256)."),
)


def measure(subject: Subject) -> dict[str, Value]:
    """Values by column name from the client's record and the captures on both hosts."""
    cell, workload = subject.cell, subject.workload
    lines = {str(line.get("event")): line for line in cell.records(workload.name)}
    client, file = lines.get("client", {}), lines.get("file", {})
    arrived, total_s, before_s = count(file, "bytes"), number(client, "total_s"), number(client, "before_transfer_s")
    values: dict[str, Value] = {"bytes": arrived, "client_total_s": total_s, "payload_match": file.get("sha256") == file.get("sent_sha256") if file else None}
    if total_s is not None and before_s is not None:
        transfer_s = total_s - before_s
        values["transfer_s"] = transfer_s
        if arrived and transfer_s > 0:
            values["goodput_bps"] = arrived * 8 / transfer_s
            hop = cell.plan.bottleneck(workload.source, workload.destination)
            if hop and hop[1].rate_bps:
                values["utilization"] = arrived * 8 / (transfer_s * hop[1].rate_bps)
    received, sent = (_data_connection(subject, node) for node in (workload.destination, workload.source))
    if received is not None:
        flow = flow_of(received, from_client=_client_sends(received))
        times = transfer_times(flow)
        if times is not None and flow.total_bytes == arrived:
            values["capture_transfer_s"] = times[1] - (flow.t_s[0] if flow.syn_t_s is None else min(flow.syn_t_s, float(flow.t_s[0])))
    if sent is not None:
        values["data_retransmissions"] = int(flow_of(sent, from_client=_client_sends(sent)).is_repeated.sum())
    if received is not None and sent is not None:
        values["handshake_rtt_s"] = _handshake_rtt_s(sent if _client_sends(sent) else received)
    return values


def _handshake_rtt_s(at_client: Connection) -> float | None:
    """From the only SYN to its answer; None when the SYN had to be repeated, for then it is not known which one was answered."""
    opening = at_client.flags & SYN != 0
    asked, answered = at_client.t_s[opening & at_client.from_client], at_client.t_s[opening & ~at_client.from_client]
    return float(answered[0] - asked[0]) if len(asked) == 1 and len(answered) else None


def _data_connection(subject: Subject, node: str) -> Connection | None:
    """The connection with the most payload that is not the control connection, in the capture on `node`."""
    probe = subject.cell.plan.capture_at(node)
    packets = subject.cell.packets(probe.name) if probe else None
    if packets is None:
        return None
    found = split_connections(packets, subject.cell.epoch_realtime_ns)
    data = [connection for connection in found if subject.workload.port not in (connection.server_port, connection.client_port)]
    return max(data, key=lambda connection: int(connection.payload_bytes.sum()), default=None)


def _client_sends(connection: Connection) -> bool:
    """Whether the side that opened the connection sends the file (in active mode the server opens it)."""
    from_client = int(connection.payload_bytes[connection.from_client].sum())
    return from_client * 2 > int(connection.payload_bytes.sum())


FAMILY = Family("ftp", COLUMNS, measure)
