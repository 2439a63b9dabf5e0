"""Kind `ping`: round trips without a transport."""

from __future__ import annotations

from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import PositiveDuration, SizeOrZero
from scpslab.scenario.workloads.base import Kind, Setting, Traffic, common

from scpslab.kinds.workloads.ping import plan as planned


class Ping(Traffic):
    """ping: round-trip times without a transport."""

    kind: Literal["ping"] = key(says="The kind of workload.", example="ping")
    count: int = key(10, says="Number of echo requests.", least=1, most=1_000_000, example=10)
    interval: PositiveDuration = key("1 s", says="Time between two requests.", example="1 s")
    payload: SizeOrZero = key("56 B", says="Payload bytes of a request.", example="56 B")
    required: bool = key(True, says="Whether the cell waits for the workload.", example=True)


def plan(workload: Ping, setting: Setting) -> planned.Ping:
    """Its part of a plan."""
    return planned.Ping(
        **common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        count=workload.count,
        interval_ns=workload.interval,
        payload_bytes=workload.payload,
    )


def busy_ns(workload: planned.Ping, _rate_bps: int | None) -> int:
    """From the first request to the last."""
    return (workload.count - 1) * workload.interval_ns


KIND = Kind(model=Ping, plan=plan, busy_ns=busy_ns)
