"""The program that runs in the appliance: engine `virtual` itself, told which cells to run by the host. It ends when the host closes the port."""

from __future__ import annotations

import json
import os
import queue
import shutil
import threading
from pathlib import Path
from typing import BinaryIO

from scpslab import plan as plans
from scpslab.engine.appliance.job import BOOT, CELL, CONSOLE, EXCHANGE, KERNEL, LAB, MACHINE, OUT, PORT, READY, TOOLS, Answer, Job, line
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.process import console_bounded, cut_console
from scpslab.engine.uml import no_network
from scpslab.engine.virtual import VirtualEngine
from scpslab.plan import Plan
from scpslab.runs import CellFiles

PORTS = Path("/sys/class/virtio-ports")
# In memory: a cell's files, and the templates that it is forked from.
CELLS = Path("/dev/shm/cells")


class Inside(VirtualEngine):
    """Engine `virtual` with its parts where the host shares them. It runs one job at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._kernel, self._tools = MACHINE / KERNEL / "linux", MACHINE / TOOLS
        self._job: Job

    def hash(self, plan: Plan) -> str:
        """What cells with the same template share besides their network."""
        return f"{self._job.boot} {self._job.lab}"

    def boot_limit_s(self, plan: Plan) -> float:
        """The job's, because time passes here more slowly for what a machine does."""
        return self._job.wall_s

    def furnish(self, folder: CellFolder) -> None:
        """Puts boot folder and lab program where the kernel finds them."""
        exchanged = MACHINE / EXCHANGE / str(self._job.id) / LAB
        for name, target in ((BOOT, MACHINE / BOOT / self._job.boot), (LAB, MACHINE / LAB / self._job.lab if self._job.lab else exchanged)):
            (folder.path / name).symlink_to(target)

    def carry_out(self, job: Job) -> Answer:
        """Runs a job to its end; its files are then in its folder of the exchange."""
        self._job, self.snapshots = job, job.snapshots
        given = MACHINE / EXCHANGE / str(job.id)
        plan = plans.parse(CellFiles(given / CELL).plan.read_bytes()) if job.is_cell else no_network({"wall_s": 1, "memory_mib": job.memory_mib})
        with CellFolder.beside(CELLS / str(job.id), plan) as folder:
            shutil.copytree(given / CELL, folder.inside)
            folder.out.path.mkdir(exist_ok=True)
            self.furnish(folder)
            with self.lab(folder) if job.is_cell else self.kernel(folder) as process:
                with console_bounded(folder, process):
                    ended = self._wait(process, job.wall_s)
                ended = cut_console(folder) or ended or self.look_over(folder)
                shutil.copytree(folder.out.path, given / OUT, copy_function=shutil.copyfile)
                shutil.copyfile(folder.console, given / CONSOLE)
                return Answer(id=job.id, ended=ended, returncode=process.returncode or 0)


def port() -> BinaryIO:
    """The port to the host."""
    (name,) = (found.parent.name for found in PORTS.glob("*/name") if found.read_text().strip() == PORT)
    return Path("/dev", name).open("r+b", buffering=0)


def main() -> None:
    """Runs jobs one after the other until the host closes the port: what runs then is of use to nobody."""
    CELLS.mkdir()
    engine = Inside()
    jobs = queue.SimpleQueue[bytes]()
    with port() as talk:

        def hear() -> None:
            while asked := talk.readline():
                jobs.put(asked)
            os._exit(0)

        threading.Thread(target=hear, name="port", daemon=True).start()
        talk.write(f"{READY}\n".encode())
        while True:
            talk.write(line(engine.carry_out(Job(**json.loads(jobs.get())))))
