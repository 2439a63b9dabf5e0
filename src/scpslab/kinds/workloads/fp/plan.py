"""Workload `fp`: a file or a record of it by SCPS-FP."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import shown
from scpslab.plan.stacks import ScpsEnd
from scpslab.plan.values import Amount, Ip, Period, Port, Size, WholeSeed, Word
from scpslab.plan.workloads import FileTransfer, ScpsTransfer


class Fp(FileTransfer, ScpsTransfer, kind="fp"):
    """A file by SCPS-FP. `get`, `read`: the receiving host has the client; the others: the sending one.

    `bytes_` of the file, before an edit.

    The record of `record_bytes` lies at `record_at`. A stop happens when `stop_at` bytes have moved. `tunables`: name
    to whole number, as `scps fp --set`. `from_scps`, `to_scps` as for bulk.
    """

    kind: Literal["fp"] = "fp"
    command: Literal["get", "put", "read", "insert", "replace", "delete"]
    record_bytes: Amount
    record_at: Size
    mode: Literal["active", "passive"]
    port: Port
    auto_restart: bool
    bets: bool
    stop: Literal["none", "interrupt", "abort", "kill-client", "kill-server"]
    stop_at: Size | None
    tunables: dict[Word, Size]
    payload_seed: WholeSeed
    timeout_ns: Period
    from_scps: ScpsEnd | None
    to_scps: ScpsEnd | None
    server_ip: Ip

    # The file protocol is the program's, over any stack.
    runs_scps: ClassVar[bool] = True

    @property
    def drawn(self) -> tuple[float, ...]:
        """Where it stops, and where its record lies."""
        has_record = self.command not in ("get", "put")
        return (*(() if self.stop_at is None else (self.stop_at,)), *((self.record_at,) if has_record else ()))

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """A stop has its place, and programs are where their stack is."""
        if (self.stop_at is None) != (self.stop == "none"):
            found = f"{shown(self.stop_at)} with stop {shown(self.stop)}"
            yield Problem(("stop_at",), found, "null exactly for a stop of none", "Correct them.")
        yield from super().problems(network)
