"""Kind `ftp`: a file by FTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic, common
from scpslab.scenario.workloads.in_time import fits_in_time, ns_to_send, packets_to_send
from scpslab.scenario.workloads.unmodified import gateways_fit

from scpslab.kinds.workloads.ftp import plan as planned


class Ftp(Traffic):
    """A file by FTP, with vsftpd and curl; the client reports the time (as in the NMSU papers)."""

    kind: Literal["ftp"] = key(says="The kind of workload.", example="ftp")
    size: Size = key(says="Bytes of the file.", example="100 kB")
    command: Literal["get", "put"] = key(
        "get", says="get: the client runs on the receiving host; put: it runs on the sending host.", example="put"
    )
    mode: Literal["active", "passive"] = key(
        "active",
        says="Which end opens the data connection: active: the server (PORT, as with clients of the period); "
        "passive: the client.",
        example="passive",
    )
    port: Port = key(21, says="TCP port of the control connection.", example=21)
    patience: PositiveDuration = key(
        "900 s", says="Time after which the transfer is given up; the cell then counts as incomplete.", example="900 s"
    )
    required: bool = key(
        True,
        says="Whether the cell waits for the workload, and is incomplete if the workload does not complete.",
        example=True,
    )


def problems(workload: Ftp, around: Surroundings) -> Iterator[Problem]:
    """What does not fit."""
    yield from gateways_fit(workload, "ftp", around)
    yield from fits_in_time(workload, around)


def serves(workload: Ftp) -> tuple[str, int]:
    """The server is where the client is not."""
    return workload.receiver if workload.command == "put" else workload.sender, workload.port


def plan(workload: Ftp, setting: Setting) -> planned.Ftp:
    """Its part of a plan."""
    return planned.Ftp(
        **common(workload),
        required=workload.required,
        to_ip=setting.addresses[workload.to],
        bytes_=workload.size,
        command=workload.command,
        mode=workload.mode,
        port=workload.port,
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=workload.patience,
        server_ip=setting.addresses[workload.to if workload.command == "put" else workload.from_],
    )


KIND = Kind(
    model=Ftp,
    plan=plan,
    problems=problems,
    serves=serves,
    busy_ns=ns_to_send,
    least_packets=packets_to_send,
    is_unmodified=lambda _workload: True,
)
