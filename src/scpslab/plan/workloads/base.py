"""The keys of every workload."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from scpslab.plan.places import Places, Problem
from scpslab.plan.stacks import ScpsEnd
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
    # Whether the receiving host sends packets back.
    is_answered: ClassVar[bool] = True

    @property
    def congestion_control(self) -> str | None:
        """The kernel's congestion control that it asks for; None where it takes that of its host."""
        return None

    @property
    def sending_program(self) -> ScpsEnd | None:
        """The `scps` program that sends; None where the kernel does."""
        return None

    @property
    def drawn(self) -> tuple[float, ...]:
        """The random numbers that shape its traffic, drawn when the plan was made."""
        return ()

    @property
    def receiving_program(self) -> ScpsEnd | None:
        """The `scps` program that receives; None where the kernel does."""
        return None

    @property
    def opener(self) -> str:
        """The host that contacts the other one."""
        return self.from_

    @property
    def contacted_ip(self) -> str:
        """The address that it contacts."""
        return self.to_ip

    def problems(self, places: Places) -> Iterable[Problem]:
        """Keys whose values do not fit each other or the plan, once both hosts are known."""
        return ()
