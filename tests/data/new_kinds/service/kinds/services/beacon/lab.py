"""A beacon: a shell that counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scpslab.lab.loop import SECOND_NS, Loop
from scpslab.lab.records import Records
from scpslab.lab.services import Service

from scpslab.kinds.services.beacon.plan import Beacon as Planned

if TYPE_CHECKING:
    from scpslab.lab.network import LabNetwork


class Beacon(Service, kind="beacon"):
    """It is ready after its first flash."""

    what = "the beacon"
    look_again_ns: ClassVar[int | None] = None

    def __init__(self, plan: Planned, network: LabNetwork, loop: Loop) -> None:
        super().__init__(plan.name, plan.node, network, loop)
        self.plan = plan
        self.flashes: list[int] = []

    def argv(self) -> list[str]:
        """A shell."""
        return ["sh", "-c", f"i=0; while i=$((i + 1)); do echo $i; sleep {self.plan.interval_ns / SECOND_NS}; done"]

    def hear(self, line: str) -> None:
        """Takes a flash."""
        self.flashes.append(int(line))

    def is_ready(self) -> bool:
        """Whether it has flashed."""
        return bool(self.flashes)

    def write_records(self, folder: Path) -> None:
        """Writes them."""
        records = Records(folder / f"{self.name}.jsonl")
        for flash in self.flashes:
            records.write(flash=flash)
        records.close()
