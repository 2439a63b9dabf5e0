"""Kind `bulk`: a transfer over TCP or SCPS-TP, measured at both ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.stacks import KERNEL
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic, at_receiver, common
from scpslab.scenario.workloads.in_time import fits_in_time, ns_to_send
from scpslab.scenario.workloads.scps_end import same_network, scps_ends
from scpslab.scenario.workloads.segments import fits_mtu

from scpslab.kinds.stacks.kernel.scenario import Congestion
from scpslab.kinds.workloads.bulk import plan as planned


class Bulk(Traffic):
    """A bulk transfer over TCP, measured at both ends as the FY97 report did: first data packet at the sink to the
    acknowledgement of the last.
    """

    kind: Literal["bulk"] = key(says="The kind of workload.", example="bulk")
    size: Size = key(says="Bytes to send.", example="4000000 B")
    segment: Size = key(
        "1400 B",
        says="Data bytes per segment, without headers and options. Below 76 bytes the topology's MTU must force the "
        "size.",
        example="512 B",
    )
    congestion: Congestion | None = key(
        None, says="Congestion control of this transfer. Default: the sending host's.", example="vegas"
    )
    precedence: int | None = key(
        None,
        says="SCPS-NP: precedence of all packets of the connection. Default: the sending host's.",
        least=0,
        most=15,
        example=9,
    )
    port: Port = key(5001, says="TCP port.", example=5001)
    patience: PositiveDuration = key(
        "3000 s", says="Time after which the sender gives up; the cell then counts as incomplete.", example="3000 s"
    )
    required: bool = key(
        True,
        says="Whether the cell waits for the workload, and is incomplete if the workload does not complete.",
        example=True,
    )


def problems(workload: Bulk, around: Surroundings) -> Iterator[Problem]:
    """What does not fit."""
    if workload.congestion is not None and around.host(workload.sender).carrier is not KERNEL:
        yield (
            ("congestion",),
            (
                f'found "{workload.congestion}" for a transfer from {workload.from_}, which has another stack; '
                "expected none. Set it on the host."
            ),
        )
    if workload.precedence is not None and around.node(workload.sender).np_precedence is None:
        found = (
            f"found precedence {workload.precedence} for a transfer from {workload.from_}, which does not speak SCPS-NP"
        )
        yield ("precedence",), f"{found}; expected none. Add network: np to both hosts."
    yield from same_network(workload, around)
    yield from fits_mtu(workload, workload.segment, around)
    yield from fits_in_time(workload, around)


def plan(workload: Bulk, setting: Setting) -> planned.Bulk:
    """Its part of a plan."""
    from_scps, to_scps = scps_ends(workload, workload.segment, setting, workload.precedence)
    return planned.Bulk(
        **common(workload),
        required=workload.required,
        to_ip=to_scps.ip if to_scps else setting.addresses[workload.to],
        bytes_=workload.size,
        segment_bytes=workload.segment,
        port=workload.port,
        send_window_bytes=setting.hosts[workload.sender].send_window_bytes,
        receive_window_bytes=setting.hosts[workload.receiver].receive_window_bytes,
        congestion=workload.congestion,
        delayed_ack=setting.hosts[workload.receiver].delayed_ack,
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=workload.patience,
        from_scps=from_scps,
        to_scps=to_scps,
    )


def packets(workload: Bulk) -> int:
    """Each segment, and an acknowledgement of it."""
    return 2 * workload.size // workload.segment


def least_packets(workload: planned.Bulk, _rate_bps: int | None, _mtu_bytes: int) -> int:
    """Full segments."""
    return -(-workload.bytes_ // workload.segment_bytes)


KIND = Kind(
    model=Bulk,
    plan=plan,
    problems=problems,
    serves=at_receiver,
    busy_ns=ns_to_send,
    least_packets=least_packets,
    packets=packets,
)
