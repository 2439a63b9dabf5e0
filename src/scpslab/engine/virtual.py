"""Engine `virtual`: the lab kernel with virtual time. Deterministic: the same plan gives the same bytes.

Every cell is forked from a template of its network (lab/template.py), also the only one of its kind: what ran before, and beside it, is not in its results.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from scpslab.core.scratch import scratch
from scpslab.engine.appliance import native
from scpslab.engine.appliance.job import Job
from scpslab.engine.appliance.machine import SLOWER, MachineCell, Parts, find_qemu, is_accelerated
from scpslab.engine.appliance.machines import Machines
from scpslab.engine.base import CellRun, LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.confinement import sweep, template_launcher
from scpslab.engine.memory import can_hold_forks, choose
from scpslab.engine.standstill import standstill
from scpslab.engine.template import Fork, Held, Template, TemplateError
from scpslab.engine.template_pool import TemplatePool, free_bytes
from scpslab.engine.terminal import SessionConsole
from scpslab.engine.uml import COMPILE_LIMITS, UmlEngine
from scpslab.lab import template as networks
from scpslab.plan import Plan
from scpslab.setup import cache_dir, ensure_appliance

# Within a template's folder: where it boots, and its cells.
HOME, CELLS = "home", "cells"


class Over:
    """A template that ended before it could be forked: its first cell ends as it did."""

    pid = 0

    def __init__(self, returncode: int) -> None:
        self.returncode = returncode

    def poll(self) -> int:
        """It has ended."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """It has ended."""
        return self.returncode

    def kill(self) -> None:
        """It has ended."""


class VirtualEngine(UmlEngine):
    """Time jumps to the next timer when every task sleeps; computing takes no time."""

    name: ClassVar[str] = "virtual"
    deterministic: ClassVar[bool] = True
    clock_arguments: ClassVar[list[str]] = ["time-travel=inf-cpu", "time-travel-start=1700000000000000000", "lab_snapshot"]

    def __init__(self) -> None:
        super().__init__()
        self._pool = TemplatePool(lambda: free_bytes(choose()))
        self._thread = threading.local()
        self.machines: Machines | None = None
        self._uses_appliance = False
        self._say: Callable[[str], None] = lambda _: None

    def prepare(self, say: Callable[[str], None], plans: Iterable[Plan]) -> None:
        """See UmlEngine.prepare. Where the lab kernel cannot run, cells run in machines that can run it."""
        plans = list(plans)
        if why := native.trouble():
            self.use_appliance(why, say, max((plan.network.memory_mib for plan in plans), default=0))
        super().prepare(say, plans)

    def use_appliance(self, why: str, say: Callable[[str], None], guest_mib: int) -> None:
        """From here on, guests of up to so much memory run in machines of QEMU's.

        Raises:
            CapabilityError: there is no QEMU, or no kernel for its machines.
        """
        find_qemu()
        self._appliance = ensure_appliance(say)
        self._guest_mib = max(guest_mib, COMPILE_LIMITS["memory_mib"])
        pace = "at nearly the usual pace" if is_accelerated() else f"10 to {SLOWER} times slower, with the same bytes"
        say(f"engine virtual: {why}; cells run in a machine of qemu-system-x86_64, {pace}")
        self._uses_appliance, self._say = True, say

    def check(self) -> None:
        """See UmlEngine.check. In the appliance, the machine's own limits count."""
        if not self._uses_appliance:
            super().check()

    def run(self, cell: CellRun) -> dict[str, Any]:
        """Runs a cell; where its template was lost meanwhile, once more from a new one."""
        self._thread.lost = False
        status = super().run(cell)
        return super().run(cell) if self._thread.lost and not self._stopped else status

    def stop(self) -> None:
        """Ends every lab of this engine."""
        super().stop()
        self._pool.stop()
        if self.machines:
            self.machines.stop()

    def templates(self) -> list[Template]:
        """Those that there are now."""
        return self._pool.templates()

    def close(self) -> None:
        """Ends templates and machines, which wait for cells."""
        self._pool.close()
        if self.machines:
            self.machines.close()

    def boot_limit_s(self, plan: Plan) -> float:
        """How long the network of a plan may take to come up."""
        return plan.cell.limits.wall_s

    @contextmanager
    def kernel(self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None) -> Iterator[LabProcess]:
        """A kernel in the folder, or in a machine."""
        with self._in_machine(folder, core, is_cell=False) if self._uses_appliance else super().kernel(folder, core, console) as process:
            yield process

    @contextmanager
    def lab(self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None) -> Iterator[LabProcess]:
        """A fork of the template of the folder's plan, which is booted where there is none yet.

        Without snapshots, and where no fork could keep its memory, it is a guest that sets up its network itself, and gives the same bytes.
        """
        if self._uses_appliance:
            with self._in_machine(folder, core, is_cell=True) as cell:
                yield cell
            return
        template = networks.Template.of(folder.plan, folder.inside / "vectors")
        if not self.snapshots or not can_hold_forks(choose()):
            (folder.inside / networks.FILE).write_text(template.text())
            with self.kernel(CellFolder(folder.path, _seeded(folder.plan, template)), core) as process:
                yield process
            return
        # A template works beside the cells that it is forked for, so that what they leave is moved into place and not copied.
        place = folder.path.parent
        key = f"{template.id} {self.hash(folder.plan)} {place} {core is None}"
        # Its own memory, and that of a fork.
        needed_bytes = 2 * folder.plan.network.memory_mib << 20
        with self._pool.use(key, lambda: self._template(template, folder, core), self.boot_limit_s(folder.plan), needed_bytes) as held:
            if held.template.memory_bytes is None:
                # At the limit it is still alive, and would be the next time.
                was_killed = (held.template.returncode or 0) < 0
                self._fail(held, folder)
                yield Over(held.template.returncode or 0)
                self._thread.lost = was_killed
                return
            folder.move(held.folder / CELLS / folder.path.name)
            folder.console.touch()
            try:
                lab: Fork | Over = held.template.fork(folder.path.resolve(), core)
            except TemplateError as error:
                folder.console.write_text(f"{error}\n")
                lab = Over(1)
            yield lab
            self._thread.lost = (isinstance(lab, Fork) and lab.lost) or (isinstance(lab, Over) and not held.template.is_alive)

    @contextmanager
    def _in_machine(self, folder: CellFolder, core: int | None, *, is_cell: bool) -> Iterator[LabProcess]:
        """The guest of a folder, in a machine: a cell of a plan, or a guest that runs the program of the folder `lab`."""
        boot, lab, shared = (folder.path / "boot").resolve(), (folder.path / "lab").resolve(), (cache_dir() / "lab").resolve()
        if self.machines is None:
            parts = Parts(self._appliance, self._kernel, self._tools, boot.parent, boot.name, shared)
            shared.mkdir(exist_ok=True)
            self.machines = Machines(parts, self._guest_mib, self._say)
        plan, machines = folder.plan, self.machines

        def job(number: int) -> Job:
            wall_s = plan.cell.limits.wall_s * (1 if machines.accelerated else SLOWER)
            name = lab.name if lab.parent == shared else ""
            return Job(id=number, boot=boot.name, lab=name, is_cell=is_cell, memory_mib=plan.network.memory_mib, wall_s=wall_s, snapshots=self.snapshots)

        with machines.use(core) as machine:
            cell = machine.start(folder, job)
            yield cell
            self._thread.lost = cell.lost

    def _wait(self, process: LabProcess, wall_s: float) -> str:
        """See ProcessEngine. What a machine says of its cell's end comes with the cell."""
        ended = super()._wait(process, wall_s)
        return ended or (process.said if isinstance(process, MachineCell) else "")

    def hanging(self, process: LabProcess) -> str:
        """See UmlEngine. A machine that does not answer cannot be looked into."""
        return "" if isinstance(process, MachineCell) else super().hanging(process)

    def _template(self, template: networks.Template, cell: CellFolder, core: int | None) -> Held:
        """A template that is not booted yet, in folders of its own: one beside the cell, which holds its cells too, and one for its memory."""
        with ExitStack() as stack:
            folder = stack.enter_context(scratch(cell.path.parent)).resolve()
            memory = stack.enter_context(scratch(choose()))
            home = CellFolder(folder / HOME, cell.plan)
            home.out.path.mkdir(parents=True)
            (folder / CELLS).mkdir()
            (home.inside / networks.FILE).write_text(template.text())
            self.furnish(home)
            words = [*template_launcher(self._tools, self._kernel, home.path, folder, memory), *self.command(_seeded(cell.plan, template), "null,fd:1")]
            booted = Template(words, home.path, {"TMPDIR": str(memory), "HOME": str(memory)}, core)
            return Held(booted, folder, stack.pop_all().close)

    def _fail(self, held: Held, folder: CellFolder) -> None:
        """Gives a cell what its template has left instead of a network: status and logs, or what it was busy with at the limit."""
        home = CellFolder(held.folder / HOME, folder.plan)
        if held.template.is_alive:
            what = f"the wall limit of {folder.plan.cell.limits.wall_s} s came before the network was up{standstill(held.template.pid)}"
            home.out.write_status({"status": "failed", "reason": what, "epoch_realtime_ns": None, "virtual_s": None})
        held.template.close()
        sweep(home.out.path)
        shutil.copytree(home.out.path, folder.out.path, dirs_exist_ok=True)
        shutil.copyfile(home.console, folder.console)


def _seeded(plan: Plan, template: networks.Template) -> Plan:
    """The plan of a guest that sets up a template: random numbers come from that until a cell's own seed comes."""
    return replace(plan, cell=replace(plan.cell, kernel_seed=template.id))
