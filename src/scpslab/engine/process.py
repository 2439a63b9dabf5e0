"""The skeleton of engines whose lab is a process: fill a folder, run a process in it up to its wall limit, move the
process's files into place.
"""

import signal
import subprocess
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from scpslab.core.strict_json import JsonError, count, loads
from scpslab.core.units import LARGEST
from scpslab.engine.base import CellRun, Engine, Interrupted, LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.console import LabConsole, SessionConsole, at_terminal, wait_for_user
from scpslab.lab.records import INSTANTS, Status
from scpslab.plan import Plan
from scpslab.plan.events import Step
from scpslab.runs import CellFiles

# A cell has failed to keep real time if more than this share of its clock ticks come later than this.
TICK_NS, LATE_NS, LATE_SHARE = 10_000_000, 5_000_000, 0.01


def on_the_wall_clock(plan: Plan) -> Plan:
    """The plan with a limit for the lab's lateness, which only engines with real time have."""
    limits = plan.cell.limits
    late_ns = LATE_NS if limits.late_ns is None else limits.late_ns
    return replace(
        plan, cell=replace(plan.cell, limits=replace(limits, tick_ns=TICK_NS, late_ns=late_ns, late_share=LATE_SHARE))
    )


@dataclass(frozen=True)
class Ending:
    """How a lab ended: why the engine ended or refused it ("" where all is well), and its exit code.

    `is_lost`: it ended because something ended that it depends on and that can be had anew; it is worth another try.
    """

    why: str
    returncode: int
    is_lost: bool = False


def instants(folder: Path, unknown: Mapping[int, Step]) -> dict[int, int | None]:
    """When a lab says that events come of which nobody knew when."""
    try:
        lines = [loads(line) for line in (folder / INSTANTS).read_bytes().splitlines()]
    except (OSError, JsonError):
        return {}
    said = {count(line, "step"): count(line, "t_ns") for line in lines if isinstance(line, dict)}
    return {n: t_ns for n in unknown if (t_ns := said.get(n)) is not None and 0 <= t_ns <= LARGEST}


class ProcessEngine(Engine):
    """Runs cells and sessions.

    An engine defines how its process starts and ends, and what the process needs. `lab_name`: the lab's name in
    messages.
    """

    lab_name: ClassVar[str]

    def __init__(self, *, snapshots: bool = True) -> None:
        super().__init__(snapshots=snapshots)
        self._running: set[LabProcess] = set()
        self._lock = threading.Lock()
        self._stopped = False

    @abstractmethod
    def lab(
        self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None
    ) -> AbstractContextManager[LabProcess]:
        """The started process of a lab in a folder; at the end everything that it held of the machine is released.

        Its output goes to the folder's console log, or to a console at which somebody types.
        """

    def as_carried_out(self, plan: Plan) -> Plan:
        """The plan with the additions of this engine: on the wall clock a limit for the lab's lateness."""
        return plan if self.deterministic else on_the_wall_clock(plan)

    def furnish(self, folder: CellFolder) -> None:
        """Puts further files that the process needs into the filled folder."""

    def look_over(self, folder: CellFolder) -> str:
        """Checks the lab's output before anything else reads it. Returns "", or the reason why the cell failed."""
        return ""

    def hanging(self, process: LabProcess) -> str:
        """What a lab is busy with at its wall limit, as the end of a sentence; "" if this cannot be found out."""
        return ""

    def is_lost(self, process: LabProcess) -> bool:
        """Whether an ended lab is worth another try; see Ending."""
        return False

    def nudge(self, process: LabProcess) -> None:
        """Makes a lab look at its input again."""

    def run(self, cell: CellRun) -> Status:
        """Runs a cell, once more where its lab was lost meanwhile; where events follow lines of its files, until their
        instants are known, and then to its end.
        """
        cell = replace(cell, plan=cell.plan.as_planned)
        while True:
            status, is_lost = self._run_once(cell)
            if is_lost and not self._stopped:
                status, _ = self._run_once(cell)
            unknown = {n: step for n, step in enumerate(cell.plan.cell.events, start=1) if step.t_ns is None}
            if not unknown:
                return status
            found = instants(cell.folder, unknown)
            if not found:
                number, after = next((number, step.after) for number, step in unknown.items() if step.after)
                reason = f'event {number}: found no line in {after.log} that matches "{after.matches}"; expected one'
                failed = replace(status, status="failed", reason=f"{reason} ({status.reason or 'the cell has ended'})")
                CellFiles(cell.folder).write_status(failed)
                return failed
            cell = replace(cell, plan=cell.plan.at_instants(found))

    def _run_once(self, cell: CellRun) -> tuple[Status, bool]:
        """Runs a cell in a folder of its own next to its target, and moves it into place when the cell has ended.

        Returns its status, and whether its lab was lost.
        """
        with CellFolder.beside(cell.folder, self.as_carried_out(cell.plan)) as folder:
            folder.fill()
            self.furnish(folder)
            with self.ended(folder, cell) as ending:
                by = f", killed by {signal.Signals(-ending.returncode).name}," if ending.returncode < 0 else ""
                lab = f"{self.lab_name}{by}"
                return folder.finish(cell.folder, ending.why, lab, is_exact=self.deterministic), ending.is_lost

    @contextmanager
    def ended(self, folder: CellFolder, cell: CellRun | None = None) -> Iterator[Ending]:
        """Runs the lab of a filled folder to its end. What it wrote is there in the block, looked over."""
        with self.lab(folder, cell.core if cell else None) as process:
            console = LabConsole(folder, cell.hear if cell else None)
            with console.watched(process):
                why = self._wait(process, folder.plan.cell.limits.wall_s)
            why = console.cut() or why
            refused = self.look_over(folder)
            yield Ending(why or refused, process.returncode or 0, self.is_lost(process))

    def interact(
        self,
        plan: Plan,
        folder: Path,
        meanwhile: Callable[[Path], None],
        at: Callable[[], AbstractContextManager[SessionConsole]] | None = None,
    ) -> int:
        """Runs a plan at the user's terminal until the user leaves; see Engine.interact."""
        if not self.interactive:
            return super().interact(plan, folder, meanwhile)
        place = CellFolder(folder, plan)
        place.fill()
        self.furnish(place)
        with (at or at_terminal)() as console, self.lab(place, console=console) as process:
            try:
                code = wait_for_user(process, console, lambda: meanwhile(place.out.path), lambda: self.nudge(process))
            finally:
                process.kill()
                process.wait()
        self.look_over(place)
        return code

    def stop(self) -> None:
        """Ends every lab of this engine."""
        self._stopped = True
        with self._lock:
            running = list(self._running)
        for process in running:
            process.kill()

    def _wait(self, process: LabProcess, wall_s: float) -> str:
        """Waits for a lab's end, and ends the lab at its limit. Returns "", or why the lab was ended."""
        with self._lock:
            self._running.add(process)
        if self._stopped:
            # The lab started after `stop` had looked for running labs.
            process.kill()
        try:
            process.wait(timeout=min(wall_s, threading.TIMEOUT_MAX))
        except subprocess.TimeoutExpired:
            return f"the cell did not end within its wall limit of {wall_s} s{self.hanging(process)}"
        finally:
            with self._lock:
                self._running.discard(process)
            process.kill()
            process.wait()
        if self._stopped:
            raise Interrupted
        return ""
