"""What figures and metrics ask of a workload, whatever its kind: which of the packets are its, and which columns
it has.

A kind registers its own answer in its metrics.py. At the end: all families of metrics in the order of their columns,
those of workloads first, then those of a plan's other parts, of which links and the SCPS programs at the ends of
transfers are here.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import numpy as np

from scpslab.analysis.metrics import base
from scpslab.analysis.metrics.base import Family, Subject, Values, unknown, unrecorded
from scpslab.analysis.run import RunCell, Transfer, View
from scpslab.core.kinds import Registry
from scpslab.measure.connections import ACK, FIN, RST, SYN, UDP, Connection, Floats, Ints
from scpslab.measure.traces import flow_of, round_trips, transfer_times
from scpslab.plan import Plan
from scpslab.plan.links import ALL_CAUSES, LOSS_CAUSES, POLICED
from scpslab.plan.stacks import ScpsEnd
from scpslab.plan.workloads import Traffic


class DataFlow:
    """The base: a workload whose data no figure follows.

    `families`: its metrics, in the order of their columns. `carries`: its data can be followed. `is_load`: it is there
    to disturb what is measured. `has_own_port`: its plan's port tells its packets from all others. `tells_ends`: its
    record has what the SCPS programs at its ends report. `has_formulas`: it is one transfer over TCP of a known size in
    segments of a known one.
    """

    carries: ClassVar[bool] = False
    is_load: ClassVar[bool] = False
    has_own_port: ClassVar[bool] = True

    def __init__(self, *families: Family[Any], tells_ends: bool = False, has_formulas: bool = False) -> None:
        self.families, self.tells_ends, self.has_formulas = families, tells_ends, has_formulas

    def connection(self, cell: RunCell, workload: Any, view: View) -> Connection | None:
        """Its connection in a view of the cell; None where it is not in there."""
        return None

    def from_client(self, workload: Any, connection: Connection) -> bool:
        """Whether the side that opened the connection sends the data."""
        return True


class Load(DataFlow):
    """Traffic that competes with what is measured."""

    is_load = True


class OwnConnection(DataFlow):
    """A connection to the workload's own port."""

    carries = True

    def connection(self, cell: RunCell, workload: Transfer, view: View) -> Connection | None:
        """The one with the most payload."""
        return view.connection(workload)


class FileConnection(DataFlow):
    """The data connection of a file protocol, which has a port that nobody knows before."""

    carries = True
    has_own_port = False

    def connection(self, cell: RunCell, workload: Transfer, view: View) -> Connection | None:
        """The one with the most payload that may be it."""
        return data_connection(cell, workload, view)

    def from_client(self, workload: Transfer, connection: Connection) -> bool:
        """As its packets say: in active mode the server opens it."""
        return client_sends(connection)


DATA_FLOWS: Registry[DataFlow] = Registry("workloads", "metrics")


def load_packets(cell: RunCell) -> tuple[Floats, Ints]:
    """Times since the epoch and IP bytes of those packets that compete with what is measured, as they are sent."""
    times, sizes = [np.zeros(0)], [np.zeros(0, np.int64)]
    loads = {(workload.from_, cast("Transfer", workload).port) for workload in loads_of(cell.plan)}
    for node, port in sorted(loads):
        if view := cell.view(node):
            is_load = (view.packets.protocol == UDP) & (view.packets.destination_port == port)
            times.append(view.t_s[is_load])
            sizes.append(view.packets.ip_bytes[is_load])
    return np.concatenate(times), np.concatenate(sizes)


def loads_of(plan: Plan) -> list[Traffic]:
    """Traffic that competes with what is measured."""
    return [workload for workload in plan.cell.workloads if DATA_FLOWS[workload.kind].is_load]


def told_by(plan: Plan) -> Iterator[tuple[str, ScpsEnd]]:
    """The names of the transfers whose records have reports of their SCPS programs, each with its sending program."""
    for workload in plan.cell.workloads:
        if DATA_FLOWS[workload.kind].tells_ends and workload.sending_program:
            yield workload.name, workload.sending_program


# Columns that transfers by programs of the user's have.
OF_PROGRAMS = "bytes transfer_s:9 goodput_bps:3 utilization:9"
# Columns that a file protocol's transfers have: what its client tells, and its data connection.
OF_A_FILE = (
    "bytes transfer_s:6 user_s:9 client_total_s:6 capture_transfer_s:9 goodput_bps:3 utilization:9 "
    "data_retransmissions rtos ack_bytes rtt_min_s:9 wire_rtt_min_s:9 handshake_rtt_s:9"
)


# Columns of a file's packets, by the host that they need to be seen at; both for the last.
AT_RECEIVER = ("capture_transfer_s", "ack_bytes", "handshake_rtt_s")
AT_SENDER = ("data_retransmissions", "rtt_min_s", "wire_rtt_min_s", "handshake_rtt_s")
# Why columns of a file's packets are empty.
NO_TRIP = "no acknowledgement of the data connection could be timed against one packet"
EMPTY_OF_A_FILE = {
    "user_s": "the last client failed, or was ended",
    "capture_transfer_s": "no data connection that surely carried the whole file was seen at the receiving host",
    "data_retransmissions": "no connection that is surely the file's was seen at the sending host",
    "ack_bytes": "the receiving host sent nothing that only acknowledges, on a connection that is surely the file's",
    **dict.fromkeys(("rtt_min_s", "wire_rtt_min_s"), NO_TRIP),
    "handshake_rtt_s": "the opening of the data connection was not seen at both hosts, or a SYN was sent again",
}


def measure_capture(subject: Subject[Any], arrived_bytes: int | None) -> Values:
    """Values by column name from the data connection as both hosts saw it; `arrived_bytes` of the file, which one
    connection must have carried for its time to be that of the transfer.
    """
    values: Values = {}
    cell, workload = subject.cell, subject.workload
    views = [cell.view(node) for node in (workload.to, workload.from_)]
    for node, view, names in zip((workload.to, workload.from_), views, (AT_RECEIVER, AT_SENDER), strict=True):
        values |= unknown(() if view else names, unrecorded(node))
    received, sent = (data_connection(cell, workload, view, arrived_bytes) if view else None for view in views)
    if received is not None:
        flow = flow_of(received, from_client=client_sends(received))
        times = transfer_times(flow)
        if times is not None and flow.total_bytes == arrived_bytes:
            first_s = float(flow.t_s[0])
            values["capture_transfer_s"] = times[1] - min(first_s, first_s if flow.syn_t_s is None else flow.syn_t_s)
        values["ack_bytes"] = ack_bytes(received, from_client=not client_sends(received), without=SYN | FIN | RST)
    if sent is not None:
        flow = flow_of(sent, from_client=client_sends(sent))
        _, rtt_s = round_trips(flow)
        values["data_retransmissions"] = int(flow.is_repeated.sum())
        values["rtt_min_s"] = float(rtt_s.min()) if len(rtt_s) else None
        wire = cell.view(workload.from_, behind_queue=True)
        on_wire = data_connection(cell, workload, wire, arrived_bytes) if wire else None
        values |= wire_round_trips(on_wire, from_client=client_sends(sent), names=("wire_rtt_min_s",))
    if received is not None and sent is not None:
        values["handshake_rtt_s"] = _handshake_rtt_s(sent if client_sends(sent) else received)
    return values


def _handshake_rtt_s(at_client: Connection) -> float | None:
    """From the only SYN to its answer; None when the SYN had to be repeated, for then it is not known which one was
    answered.
    """
    opening = at_client.flags & SYN != 0
    asked, answered = at_client.t_s[opening & at_client.from_client], at_client.t_s[opening & ~at_client.from_client]
    return float(answered[0] - asked[0]) if len(asked) == 1 and len(answered) else None


def own_connections(cell: RunCell, workload: Any, view: View) -> tuple[list[Connection], bool]:
    """A workload's connections in a view, and whether they surely are: by their owner in the record of packets, else
    those between the ends of the one to its port that go to no other's port, where no other's go anywhere.
    """
    owned = cell.record.connections_of(workload.name) if cell.record else frozenset()
    if owned:
        return [one for one in view.connections if one.ends in owned], True
    others = [other for other in cell.plan.cell.workloads if other.name != workload.name]
    hosts = (workload.from_, workload.to)
    anywhere = [other for other in others if not DATA_FLOWS[other.kind].has_own_port]
    may_be_another = any(other.from_ in hosts and other.to in hosts for other in anywhere)
    ports = {getattr(other, "port", None) for other in others}
    ends = next(({*dict(one.ends)} for one in view.connections if one.server_port == workload.port), None)
    found = [one for one in view.connections if not ports & {one.server_port, one.client_port}]
    return [one for one in found if {*dict(one.ends)} == ends], not may_be_another


def data_connection(
    cell: RunCell, workload: Transfer, view: View, arrived_bytes: int | None = None
) -> Connection | None:
    """Of a file protocol's connections the one with the most payload, the one for control aside; where these are not
    sure, it must have carried just the bytes of the file, and be the only one. None without it.
    """
    found, is_sure = own_connections(cell, workload, view)
    ports = ((one, (one.server_port, one.client_port)) for one in found)
    # Without data nobody knows which side would have sent them.
    found = [one for one, both in ports if workload.port not in both and one.payload_bytes.any()]
    if not is_sure:
        found = [one for one in found if flow_of(one, from_client=client_sends(one)).total_bytes == arrived_bytes]
        return found[0] if len(found) == 1 else None
    return max(found, key=lambda connection: int(connection.payload_bytes.sum()), default=None)


def wire_round_trips(on_wire: Connection | None, *, from_client: bool, names: tuple[str, ...]) -> Values:
    """The smallest and the largest round trip as they are behind the sender's own queue, as far as there are names."""
    rtt_s = round_trips(flow_of(on_wire, from_client=from_client))[1] if on_wire else np.zeros(0)
    return {name: float(least(rtt_s)) for name, least in zip(names, (np.min, np.max), strict=False) if len(rtt_s)}


def client_sends(connection: Connection) -> bool:
    """Whether the side that opened the connection sends the file (in active mode the server opens it)."""
    from_client = int(connection.payload_bytes[connection.from_client].sum())
    return from_client * 2 > int(connection.payload_bytes.sum())


def ack_bytes(connection: Connection, *, from_client: bool, without: int) -> int | None:
    """The most common length of one side's packets that only acknowledge, as IP packets; those with one of the flags
    `without` do not count.
    """
    is_bare = (connection.payload_bytes == 0) & (connection.flags & ACK != 0) & (connection.flags & without == 0)
    lengths = connection.ip_bytes[is_bare & connection.before_reset & (connection.from_client == from_client)]
    return int(np.bincount(lengths).argmax()) if len(lengths) else None


# What PPP and the channel count of a serial link's direction.
SERIAL = ("sent_frames", "lost_frames", "bit_errors", "most_waiting_bytes")
# Columns have the words that directions had when the first results were written, so that results stay comparable.
COLUMN_WORDS = {"forward": "data", "return": "ack"}
# Reports of routers that the sender heeded: SCMP 4, 19 and 3/16.
SIGNALS = ("congestion", "corruption", "outage")


def _stem(link: str, direction: str) -> str:
    return f"{link}_{COLUMN_WORDS.get(direction, direction)}"


def _losses(plan: Plan, records: base.Records) -> base.Values:
    """Offered packets of every link with a delay stage, one recorded cause for each that did not arrive, then those
    lost on all other links together.
    """
    lines = records("accounting")
    accounts = {(line.get("link"), line.get("direction")): line for line in lines}
    measured = [link for link in plan.network.links if link.via is not None]
    values: base.Values = {}
    directions = ((link.name, direction) for link in measured for direction in link.directions)
    for name, direction in directions:
        account, stem = accounts.get((name, direction.name), {}), _stem(name, direction.name)
        values[f"{stem}_offered_packets"] = base.count(account, "offered_packets")
        values |= {f"{stem}_lost_{cause}_packets": base.count(account, f"{cause}_packets") for cause in LOSS_CAUSES}
        if (impairment := plan.cell.impairment(name, direction.name)) and impairment.policer:
            values[f"{stem}_lost_{POLICED}_packets"] = base.count(account, f"{POLICED}_packets")
        values[f"{stem}_flipped_packets"] = base.count(account, "flipped_packets")
        if direction.queue is not None and direction.queue.ecn:
            values[f"{stem}_marked_packets"] = base.count(account, "marked_packets")
    if plan.network.links:
        names = {link.name for link in measured}
        others = [line for line in lines if line.get("link") not in names]
        lost = sum(base.count(line, f"{cause}_packets") or 0 for line in others for cause in ALL_CAUSES)
        values["other_lost_packets"] = lost if lines else None
    return values


def _serial_links(plan: Plan, records: base.Records) -> base.Values:
    """What was counted of both directions of every serial link."""
    values: base.Values = {}
    for link in plan.network.serial_links:
        counted = {line.get("direction"): line for line in records(link.name) if line.get("event") == "direction"}
        for direction in link.directions:
            fields = counted.get(direction.name, {})
            values |= {f"{_stem(link.name, direction.name)}_{what}": base.count(fields, what) for what in SERIAL}
    return values


def _signals(plan: Plan, records: base.Records) -> base.Values:
    """The smoothed round-trip time at the end of each transfer over SCPS-NP, and what routers signalled to it."""
    values: base.Values = {}
    for name in (name for name, program in told_by(plan) if program.np):
        report = base.section(base.event(records, name, "sender"), "scps")
        srtt_s = base.number(report, "srtt_s")
        values[f"{name}_srtt_ms"] = None if srtt_s is None else 1000 * srtt_s
        values |= {f"{name}_{kind}_signals": base.count(base.section(report, "signals"), kind) for kind in SIGNALS}
    return values


def _protection(plan: Plan, records: base.Records) -> base.Values:
    """Packets that each end of each transfer over SCPS-SP sealed, opened and dropped, whatever the reason."""
    values: base.Values = {}
    for name in (name for name, program in told_by(plan) if program.sp):
        for end in ("sender", "receiver"):
            counted = base.section(base.section(base.event(records, name, end), "scps"), "sp")
            values |= {f"{name}_{end}_sp_{what}": base.count(counted, what) for what in ("sealed", "opened")}
            reasons = counted.get("dropped")
            values[f"{name}_{end}_sp_dropped"] = (
                sum(base.count(reasons, reason) or 0 for reason in reasons) if isinstance(reasons, dict) else None
            )
    return values


def families() -> tuple[base.Family[Any], ...]:
    """Those of workloads, once the kinds have registered themselves."""
    return tuple(family for flow in DATA_FLOWS.values() for family in flow.families)


def of_plans() -> tuple[base.PlanFamily, ...]:
    """Those of a plan's other parts. Routers stand where they stood in the first results."""
    services = dict(base.OF_SERVICES)
    routers = services.pop("np-router")
    of_links = (base.PlanFamily(_losses), base.PlanFamily(_serial_links), base.PlanFamily(_signals, decimals=3))
    return (*of_links, routers, base.PlanFamily(_protection), *services.values())
