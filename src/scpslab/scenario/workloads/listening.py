"""Which host of a workload listens, and at which port."""

from __future__ import annotations

from typing import Protocol


class HasPort(Protocol):
    """A workload with two hosts and a port."""

    @property
    def receiver(self) -> str:
        """Host that receives."""

    @property
    def port(self) -> int:
        """Port of whoever listens."""


def at_receiver(workload: HasPort) -> tuple[str, int]:
    """The receiving host listens."""
    return workload.receiver, workload.port
