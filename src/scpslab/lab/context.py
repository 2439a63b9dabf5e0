"""The shared context of a running cell's parts: the loop, clock and epoch, the network, and the folders.

It knows no workload and no probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scpslab.lab.loop import Epoch, Loop, now_ns
from scpslab.lab.records import Live, Records, Trace

if TYPE_CHECKING:
    # Mininet exists only where a lab runs; tests of traces and command lines run without it.
    from scpslab.lab.network import LabNetwork
    from scpslab.lab.services import Services
    from scpslab.lab.stages import Settled


@dataclass(frozen=True)
class Folders:
    """The folders for a cell's files while it runs."""

    records: Path
    logs: Path
    captures: Path

    @classmethod
    def made_in(cls, folder: Path) -> Folders:
        """The folders, below another one."""
        made = cls(folder / "records", folder / "logs", folder / "captures")
        for path in (made.records, made.logs, made.captures):
            path.mkdir(parents=True, exist_ok=True)
        return made


@dataclass
class Context:
    """One cell's. `traces` gives the traces of the SCPS programs that have ended on a node."""

    loop: Loop
    network: LabNetwork
    settled: Settled
    folders: Folders
    log: Records
    traces: Callable[[str], Iterable[Trace]]
    services: Services
    epoch: Epoch = field(default_factory=Epoch)

    def __post_init__(self) -> None:
        """Opens the live stream."""
        self.live = Live(self.loop, self.epoch)

    def begin(self) -> Epoch:
        """Lets the epoch begin: the real one, with the next whole second."""
        self.epoch = Epoch()
        self.live = Live(self.loop, self.epoch)
        return self.epoch

    now_ns = staticmethod(now_ns)

    def rest(self, duration_ns: int) -> None:
        """Lets the network go on by itself for a while."""
        until = self.now_ns() + duration_ns
        self.loop.run_until(lambda: self.now_ns() >= until, until)
