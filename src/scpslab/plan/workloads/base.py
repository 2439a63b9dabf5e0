"""The keys of every workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.values import Ip, Name, Nanoseconds, Word


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Who sends to whom, from when on, and whether the cell waits for it."""

    name: Name
    kind: Word
    from_: Name
    to: Name
    to_ip: Ip
    start_ns: Nanoseconds
    required: bool

    # Whether the `scps` program is at work in it whatever the stacks of its hosts are.
    runs_scps: ClassVar[bool] = False
