"""Kind `fp`: a file or a record of it by SCPS-FP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import model_validator

from scpslab.documents.parts import key
from scpslab.documents.quantities import Port, PositiveDuration, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.stacks import SCPS
from scpslab.scenario.workloads.base import Kind, Setting, Surroundings, Traffic, common
from scpslab.scenario.workloads.in_time import fits_in_time, ns_to_send, packets_to_send
from scpslab.scenario.workloads.scps_end import same_network, scps_ends
from scpslab.scenario.workloads.segments import fits_mtu

from scpslab.kinds.workloads.fp import plan as planned

# Shares of a file between which a transfer is stopped: in its middle, with enough left to go on with.
STOP_FROM, STOP_TO = 0.05, 0.75


class Fp(Traffic):
    """A file, or a record of it, by SCPS-FP (`scps fp` and `scps fpd`), over the stack of each host; the client reports
    the time.
    """

    kind: Literal["fp"] = key(says="The kind of workload.", example="fp")
    size: Size = key(says="Bytes of the file; for a record, of the existing file.", example="100 kB")
    command: Literal["get", "put", "read", "insert", "replace", "delete"] = key(
        "get",
        says="get, read: the client runs on the receiving host; put, insert, replace, delete: "
        "it runs on the sending host. "
        "read, insert, replace and delete concern one record of an existing file.",
        example="put",
    )
    record: Size = key("512 B", says="Bytes of the record to read, insert, replace or delete.", example="2 kB")
    mode: Literal["active", "passive"] = key(
        "active",
        says="Which end opens the data connection: active: the server (PORT, as with programs of the period); "
        "passive: the client.",
        example="passive",
    )
    port: Port = key(2121, says="Port of the control connection.", example=2121)
    auto_restart: bool = key(
        False, says="Automatic restart: a broken transfer resumes automatically from the stored bytes.", example=True
    )
    bets: bool = key(
        False,
        says="Best effort on data connections (SCPS-TP): fill gaps instead of waiting for their data.",
        example=True,
    )
    stop: Literal["none", "interrupt", "abort", "kill-client", "kill-server"] = key(
        "none",
        says="Event in the middle of a get or put: the user interrupts and resumes it, or aborts and repeats it, or "
        "a program is killed; "
        "another client then resumes the transfer, or another server takes over.",
        example="interrupt",
    )
    stop_at: Size | None = key(
        None,
        says="Number of bytes moved when the stop happens. Default: drawn for each repeat, between a twentieth and "
        "three quarters of the file.",
        example="50 kB",
    )
    data_timeout: PositiveDuration = key(
        "60 s", says="Longest time without data on a data connection, in whole seconds (DATATIMEOUT).", example="20 s"
    )
    reply_timeout: PositiveDuration = key(
        "60 s", says="Longest time that the client waits for a reply, in whole seconds (REPLYTIMEOUT).", example="20 s"
    )
    restart_delay: PositiveDuration = key(
        "5 s",
        says="First pause before an automatic restart, in whole seconds; each further pause is twice as long "
        "(RESTARTDELAY).",
        example="2 s",
    )
    segment: Size | None = key(
        None,
        says="Data bytes per segment of SCPS-TP. Default: as many as the smallest MTU on the path allows.",
        example="512 B",
    )
    patience: PositiveDuration = key(
        "900 s", says="Time after which the transfer is given up; the cell then counts as incomplete.", example="900 s"
    )
    required: bool = key(
        True,
        says="Whether the cell waits for the workload, and is incomplete if the workload does not complete.",
        example=True,
    )

    @property
    def from_client(self) -> bool:
        """Whether the client runs on the sending host."""
        return self.command not in ("get", "read")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.command in ("read", "replace", "delete") and self.record > self.size:
            raise ValueError(
                f'found a record of "{self.record.text}" in a file of "{self.size.text}"; '
                "expected one that fits into it"
            )
        if self.stop != "none" and self.command not in ("get", "put"):
            raise ValueError(f"found stop {self.stop} with {self.command}; expected it with get or put")
        if self.stop_at is not None and self.stop_at >= self.size:
            raise ValueError(
                f'found stop_at "{self.stop_at.text}" in a file of "{self.size.text}"; expected less than the file'
            )
        for name in ("data_timeout", "reply_timeout", "restart_delay"):
            if getattr(self, name) % 10**9:
                raise ValueError(f'found {name} "{getattr(self, name).text}"; expected whole seconds')
        return self


def problems(workload: Fp, around: Surroundings) -> Iterator[Problem]:
    """What does not fit."""
    hosts = {end: around.host(end) for end in (workload.sender, workload.receiver)}
    if workload.bets and (others := [end for end, host in hosts.items() if host.carrier is not SCPS]):
        yield (
            ("bets",),
            (
                f"found best effort with the stack {hosts[others[0]].stack} on {others[0]}; "
                "expected scps at both ends. Use stack scps, or no bets."
            ),
        )
    if workload.segment is not None and any(host.carrier is SCPS for host in hosts.values()):
        yield from fits_mtu(workload, workload.segment, around)
    yield from same_network(workload, around)
    yield from fits_in_time(workload, around)


def serves(workload: Fp) -> tuple[str, int]:
    """The server is where the client is not."""
    return workload.receiver if workload.from_client else workload.sender, workload.port


def plan(workload: Fp, setting: Setting) -> planned.Fp:
    """Where it is stopped and where the record lies are drawn by repeat and name only: every stack and command meets
    the same.
    """
    size, record = workload.size, workload.record
    (stop,), (record_at,) = setting.draws("stop", workload.name, 1), setting.draws("record", workload.name, 1)
    stop_at = (
        workload.stop_at if workload.stop_at is not None else int(size * (STOP_FROM + (STOP_TO - STOP_FROM) * stop))
    )
    from_scps, to_scps = scps_ends(workload, workload.segment, setting)
    server, server_scps = (workload.to, to_scps) if workload.from_client else (workload.from_, from_scps)
    return planned.Fp(
        **common(workload),
        required=workload.required,
        to_ip=to_scps.ip if to_scps else setting.addresses[workload.to],
        bytes_=size,
        command=workload.command,
        record_bytes=record,
        record_at=int(record_at * max(0, size - (record if workload.command != "insert" else 0))),
        mode=workload.mode,
        port=workload.port,
        auto_restart=workload.auto_restart,
        bets=workload.bets,
        stop=workload.stop,
        stop_at=stop_at if workload.stop != "none" else None,
        tunables={
            "DATATIMEOUT": workload.data_timeout // 10**9,
            "REPLYTIMEOUT": workload.reply_timeout // 10**9,
            "RESTARTDELAY": workload.restart_delay // 10**9,
        },
        payload_seed=setting.seed("payload", workload.name),
        patience_ns=workload.patience,
        from_scps=from_scps,
        to_scps=to_scps,
        server_ip=server_scps.ip if server_scps else setting.addresses[server],
    )


KIND = Kind(
    model=Fp,
    plan=plan,
    problems=problems,
    serves=serves,
    busy_ns=ns_to_send,
    least_packets=packets_to_send,
)
