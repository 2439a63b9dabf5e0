"""The program that runs in the appliance: engine `virtual` itself, told which cells to run by the host.

It ends when the host closes the port.
"""

import json
import math
import os
import queue
import shutil
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from scpslab import plan as plans
from scpslab.engine.appliance import machine
from scpslab.engine.base import CellRun, CellSample, LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.console import SessionConsole, line_of
from scpslab.engine.uml import Guest, no_network
from scpslab.engine.virtual import Forked, VirtualEngine
from scpslab.plan import Plan
from scpslab.runs import CellFiles

PORTS = Path("/sys/class/virtio-ports")
# In memory: a cell's files, and the templates that it is forked from.
CELLS = Path("/dev/shm/cells")


class Inside(VirtualEngine):
    """Engine `virtual` with its parts where the host shares them. It runs one job at a time."""

    def __init__(self, job: machine.Job, forked: Forked) -> None:
        """`forked`: the templates of earlier jobs."""
        super().__init__(snapshots=job.snapshots)
        self._job, self._forked = job, forked
        self._given = machine.MACHINE / machine.EXCHANGE / str(job.id)

    def guest(self, plan: Plan) -> Guest:
        """See UmlEngine. What a cell needs of others' images has come with its files."""
        job = self._job
        return Guest(
            kernel=machine.MACHINE / machine.KERNEL / "linux",
            tools=machine.MACHINE / machine.TOOLS,
            boot=machine.MACHINE / machine.BOOT / job.boot,
            program=machine.MACHINE / machine.LAB / job.lab if job.lab else self._given / machine.LAB,
            memory_mib=plan.network.memory_mib,
            clock=self.clock,
            seed=plan.cell.kernel_seed,
        )

    def lab(
        self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None
    ) -> AbstractContextManager[LabProcess]:
        """A cell's guest as elsewhere, or one that runs a program."""
        if self._job.is_cell:
            return super().lab(folder, core, console)
        return self.program_in(self.guest(folder.plan), folder)

    def carry_out(self, hear: Callable[[CellSample], None]) -> machine.Answer:
        """Runs the job to its end; its files are then in its folder of the exchange. `hear`: gets its samples."""
        job, given = self._job, self._given
        nothing = no_network({"wall_s": 1, "memory_mib": job.memory_mib})
        plan = plans.parse(CellFiles(given / machine.CELL).plan.read_bytes()) if job.is_cell else nothing
        # Time passes here more slowly for what a machine does.
        limits = replace(plan.cell.limits, wall_s=math.ceil(job.wall_s))
        plan = replace(plan, cell=replace(plan.cell, limits=limits))
        with CellFolder.beside(CELLS / str(job.id), plan) as folder:
            shutil.copytree(given / machine.CELL, folder.inside)
            folder.out.path.mkdir(exist_ok=True)
            self.furnish(folder)
            with self.ended(folder, CellRun(plan, folder.path, hear=hear)) as ending:
                shutil.copytree(folder.out.path, given / machine.OUT, copy_function=shutil.copyfile)
                (given / machine.CONSOLE).write_bytes(folder.said())
                return machine.Answer(id=job.id, ended=ending.why, returncode=ending.returncode)


def port() -> BinaryIO:
    """The port to the host."""
    (name,) = (found.parent.name for found in PORTS.glob("*/name") if found.read_text().strip() == machine.PORT)
    return Path("/dev", name).open("r+b", buffering=0)


def main() -> None:
    """Runs jobs one after the other until the host closes the port: what runs then is of use to nobody."""
    CELLS.mkdir()
    forked = Forked()
    jobs = queue.SimpleQueue[bytes]()
    with port() as talk:

        def hear() -> None:
            while asked := talk.readline():
                jobs.put(asked)
            os._exit(0)

        def tell(sample: CellSample) -> None:
            talk.write(line_of(sample).encode())

        threading.Thread(target=hear, name="port", daemon=True).start()
        talk.write(f"{machine.READY}\n".encode())
        while True:
            talk.write(machine.line(Inside(machine.Job(**json.loads(jobs.get())), forked).carry_out(tell)))
