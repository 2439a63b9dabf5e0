"""An engine that starts no lab, so that only the program's own work is left: for bench/scale.py, and for tests of runs.

In NO_LAB_MEMORY, if it is set, its scratch folders are, and a process that loads this module has it in the place of
engine `virtual`: workers of Dask load it before they begin.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from scpslab import plan as plans
from scpslab.core.scratch import scratch
from scpslab.engine import ENGINES, CellRun, Engine
from scpslab.lab.records import Status

MEMORY = os.environ.get("NO_LAB_MEMORY")


class NoLab(Engine):
    """Writes plan and status of each cell."""

    name = "virtual"
    deterministic = True
    memory = Path(MEMORY or "/dev/shm")

    def prepare(self, say: Any, plans: Any) -> None:
        """Nothing is needed."""

    def hash(self, plan: Any) -> str:
        """Always the same."""
        return "no lab"

    def run(self, cell: CellRun) -> Status:
        """Makes the cell's folder, in the steps in which engines do."""
        part = cell.folder.with_name(cell.folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        with scratch(self.memory) as home:
            (home / "socket").write_text("")
            part.mkdir()
            (part / "plan.json").write_text(plans.text(cell.plan))
            self.half_done()
            status = Status("incomplete", "fake", virtual_s=1.0)
            (part / "status.json").write_text(status.text())
            shutil.rmtree(cell.folder, ignore_errors=True)
            part.rename(cell.folder)
        return status

    def half_done(self) -> None:
        """What happens in the middle of a cell."""

    def stop(self) -> None:
        """Nothing runs."""


if MEMORY:
    ENGINES["virtual"] = NoLab
