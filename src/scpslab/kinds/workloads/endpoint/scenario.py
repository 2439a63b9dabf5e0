"""Kind `endpoint`: a transfer by the programs of the hosts' images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.stacks import SCPS
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic, at_receiver, common
from scpslab.scenario.workloads.in_time import fits_in_time, ns_to_send, packets_to_send

from scpslab.kinds.workloads.endpoint import plan as planned


class Endpoint(Traffic):
    """A transfer by the programs of the hosts' images, with any protocol ([images/CONTRACT.md](../images/CONTRACT.md)).

    Needs `containers: docker`.
    """

    kind: Literal["endpoint"] = key(says="The kind of workload.", example="endpoint")
    size: Size = key(says="Bytes to send.", example="4000000 B")
    port: Port = key(5001, says="Port of the receiver.", example=5001)
    patience: PositiveDuration = key(
        "3000 s", says="Time after which the sender gives up; the cell then counts as incomplete.", example="3000 s"
    )
    required: bool = key(
        True,
        says="Whether the cell waits for the workload, and is incomplete if the workload does not complete.",
        example=True,
    )


def problems(workload: Endpoint, around: Surroundings) -> Iterator[Problem]:
    """What does not fit."""
    if not around.in_containers:
        yield (
            ("kind",),
            (
                "found endpoint with nodes that are processes; expected containers. Add containers: "
                "docker, or use kind bulk."
            ),
        )
    for end in (workload.sender, workload.receiver):
        if around.host(end).carrier is SCPS:
            yield (
                ("kind",),
                (
                    f"found endpoint with the stack {around.host(end).stack} on {end}; expected image or kernel. "
                    "Use kind bulk."
                ),
            )
    yield from fits_in_time(workload, around)


def plan(workload: Endpoint, setting: Setting) -> planned.Endpoint:
    """Its part of a plan."""
    from_image, to_image = (setting.hosts[host].image for host in (workload.sender, workload.receiver))
    return planned.Endpoint(
        **common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        bytes_=workload.size,
        port=workload.port,
        options=planned.EndOptions(
            from_=from_image.options if from_image else "", to=to_image.options if to_image else ""
        ),
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=workload.patience,
        from_ip=setting.source(workload.from_, workload.to),
    )


KIND = Kind(
    model=Endpoint,
    plan=plan,
    problems=problems,
    serves=at_receiver,
    busy_ns=ns_to_send,
    least_packets=packets_to_send,
    knows_images=True,
)
