"""The lab program's entry: runs the cell, or gives a shell on its network, and always leaves a status."""

from __future__ import annotations

import sys
import traceback

from scpslab import plan as plans
from scpslab.lab.cell import LabCell, finish
from scpslab.lab.place import CELL, WORK
from scpslab.lab.shell import interact


def main() -> int:
    """Runs /cell/plan.json; exit code 0 when a status was written."""
    WORK.mkdir(parents=True, exist_ok=True)
    cell: LabCell | None = None
    try:
        plan = plans.parse((CELL / "plan.json").read_bytes())
        cell = LabCell(plan)
        status = interact(cell) if plan.cell.shell else cell.run()
    except Exception as error:  # the last line of defence: whatever broke, the user gets its text and the logs
        (WORK / "logs").mkdir(exist_ok=True)
        (WORK / "logs" / "lab-error.log").write_text(traceback.format_exc())
        status = {"status": "failed", "reason": f"{type(error).__name__}: {error}", "epoch_realtime_ns": None, "virtual_s": None}
        if sys.stdout.isatty():
            traceback.print_exc()
    finish(status)
    return 0
