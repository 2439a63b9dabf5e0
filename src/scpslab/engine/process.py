"""The skeleton of engines whose lab is a process: a folder is filled, a process runs in it up to its wall limit, what it left is moved into place."""

from __future__ import annotations

import signal
import subprocess
import threading
from abc import abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

from scpslab.engine.base import CellRun, Engine, Interrupted
from scpslab.engine.cell_folder import CellFolder
from scpslab.plan import Plan


class ProcessEngine(Engine):
    """Runs cells and sessions; an engine says how its process is started, ended, and what it needs around it. `lab_name`: what messages call it."""

    lab_name: ClassVar[str]

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    @abstractmethod
    def lab(self, folder: CellFolder, core: int | None = None, *, at_terminal: bool = False) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """The process of a lab in a folder, started; at the end all that it held of the machine is given back.

        What it says goes to the folder's console, or it has the user's terminal.
        """

    def as_carried_out(self, plan: Plan) -> Plan:
        """The plan with what this engine adds to it."""
        return plan

    def furnish(self, folder: CellFolder) -> None:
        """Puts what the process needs besides into a folder that is filled."""

    def look_over(self, folder: CellFolder) -> str:
        """Looks at what the lab has left before anybody else does: "", or why the cell failed."""
        return ""

    def hanging(self, process: subprocess.Popen[bytes]) -> str:
        """What a lab that runs at its wall limit is busy with, as the end of a sentence; "" where nobody can tell."""
        return ""

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a lab's process at once; one that has ended already is no error."""
        process.kill()

    def run(self, cell: CellRun) -> dict[str, Any]:
        """Runs a cell in a folder of its own beside its target and moves it into place when it is over."""
        with CellFolder.beside(cell.folder, self.as_carried_out(cell.plan)) as folder:
            folder.fill()
            self.furnish(folder)
            with self.lab(folder, cell.core) as process:
                ended = self._wait(process, folder.plan.limits.wall_s)
                left = self.look_over(folder)
                return folder.finish(cell.folder, ended or left, f"{self.lab_name}{_by_signal(process.returncode)}")

    def interact(self, plan: Plan, folder: Path) -> int:
        """Runs a plan at the user's terminal until the user leaves; what is left is in `folder`/cell/out. Returns the lab's exit code."""
        if not self.interactive:
            return super().interact(plan, folder)
        place = CellFolder(folder, plan)
        place.fill()
        self.furnish(place)
        with self.lab(place, at_terminal=True) as process:
            try:
                code = process.wait()
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
            self.end(process)

    def _wait(self, process: subprocess.Popen[bytes], wall_s: float) -> str:
        """Waits for a lab's end, and ends it at its limit: "" or why it was ended."""
        with self._lock:
            self._running.add(process)
        if self._stopped:
            # It began when `stop` had looked around already.
            self.end(process)
        try:
            process.wait(timeout=wall_s)
        except subprocess.TimeoutExpired:
            return f"the wall limit of {wall_s} s came before the cell was over{self.hanging(process)}"
        finally:
            with self._lock:
                self._running.discard(process)
            self.end(process)
            process.wait()
        if self._stopped:
            raise Interrupted
        return ""


def _by_signal(returncode: int) -> str:
    """What messages add to the name of a lab that a signal ended."""
    return f", killed by {signal.Signals(-returncode).name}," if returncode < 0 else ""
