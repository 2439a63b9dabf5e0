"""What every workload says."""

from __future__ import annotations

from dataclasses import dataclass

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
