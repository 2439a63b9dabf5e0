"""`scpslab run` with an engine that starts no lab: `run_with_fake_engine.py MEMORY HOLD run …`.

At cell number HOLD (0: never) it says "holding" and waits for a line. Its scratch folders are in MEMORY, as those of
the lab kernel are in /dev/shm.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from scpslab import plan as plans
from scpslab.cli import app
from scpslab.core.scratch import scratch
from scpslab.engine import CellRun, Engine
from scpslab.running import runner


class Fake(Engine):
    """Writes plan and status of each cell."""

    name = "virtual"
    deterministic = True
    memory, hold, started = Path(), 0, 0

    def prepare(self, say, plans):
        """Nothing is needed."""

    def hash(self, plan):
        """Always the same."""
        return "fake"

    def run(self, cell: CellRun):
        """Makes the cell's folder, in the steps in which engines do."""
        Fake.started += 1
        part = cell.folder.with_name(cell.folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        with scratch(self.memory) as home:
            (home / "socket").write_text("")
            part.mkdir()
            (part / "plan.json").write_text(plans.text(cell.plan))
            if Fake.started == Fake.hold:
                print("holding", flush=True)
                sys.stdin.readline()
            status = {"status": "incomplete", "reason": "fake", "epoch_realtime_ns": None, "virtual_s": 1.0}
            (part / "status.json").write_text(json.dumps(status))
            shutil.rmtree(cell.folder, ignore_errors=True)
            part.rename(cell.folder)
        return status

    def stop(self):
        """Nothing runs."""


if __name__ == "__main__":
    Fake.memory, Fake.hold = Path(sys.argv[1]), int(sys.argv[2])
    runner.ENGINES["virtual"] = Fake
    runner.places = lambda: (Fake.memory,)
    sys.argv = ["scpslab", *sys.argv[3:]]
    app.main()
