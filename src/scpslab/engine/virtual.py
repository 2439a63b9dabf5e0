"""Engine `virtual`: the lab kernel with virtual time. Deterministic: the same plan gives the same bytes.

A cell gets its guest in one of three ways, which give the same bytes: forked from a template of its network
(lab/template.py), booted for it, or in the appliance. What ran before, and beside it, is not in its results.
"""

import os
import secrets
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from scpslab.core.scratch import private_folder, remove_dead, scratch
from scpslab.engine import appliance, findings
from scpslab.engine.appliance.machine import QEMU, SLOWER, Job, MachineCell, Machines, Parts, find_qemu, in_a_machine
from scpslab.engine.base import Finding, LabProcess
from scpslab.engine.cell_folder import CellFolder
from scpslab.engine.confinement import launcher, sweep
from scpslab.engine.console import SessionConsole
from scpslab.engine.memory import can_hold_forks, choose, free_bytes
from scpslab.engine.template import Fork, Held, TemplateError, TemplateGuest, TemplatePool
from scpslab.engine.uml import COMPILE_LIMITS, Guest, UmlEngine, standstill
from scpslab.lab.template import FILE, Template
from scpslab.plan import Plan
from scpslab.setup import Say, cache_dir, ensure_appliance

# Of the cache: the folders of templates.
TEMPLATES = "templates"
# Within a template's folder: where it boots, and its cells.
HOME, CELLS = "home", "cells"


@dataclass(frozen=True)
class Over:
    """A template that ended before it could be forked: its first cell ends as it did. `lost`: something ended it."""

    returncode: int
    lost: bool
    pid: int = 0

    def poll(self) -> int:
        """It has ended."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """It has ended."""
        return self.returncode

    def kill(self) -> None:
        """It has ended."""


class Forked:
    """Each cell's guest is forked from a template of its network, which is booted where there is none yet.

    `place`: the folder for templates; where it cannot be written to, or is None, they are beside their cells.
    """

    def __init__(self, place: Path | None = None) -> None:
        self.place = place
        self.pool = TemplatePool(lambda: free_bytes(choose()))

    @contextmanager
    def lab(self, guest: Guest, text: str, folder: CellFolder, core: int | None) -> Iterator[LabProcess]:
        """A fork for the cell of a folder, which is in its template's folder meanwhile: more than that the template
        cannot reach.

        `text`: of lab/template.FILE.
        """
        limit_s = min(folder.plan.cell.limits.wall_s, threading.TIMEOUT_MAX)
        place = self._parent() or folder.path.parent
        # Its own memory, and that of a fork.
        needed_bytes = 2 * guest.memory_mib << 20
        key = (guest, place, core is None)
        with self.pool.use(key, lambda: _booting(guest, text, folder.plan, place, core), limit_s, needed_bytes) as held:
            template = held.template
            if template.memory_bytes is None:
                # At the limit it is still alive, and would be the next time.
                returncode = template.returncode or 0
                _leave_what_it_says(held, folder)
                yield Over(returncode, lost=returncode < 0)
                return
            # Cells of several runs have the same names.
            folder.move(held.folder / CELLS / secrets.token_hex(8))
            folder.console.touch()
            try:
                lab: Fork | Over = template.fork(folder.path.resolve(), core)
            except TemplateError as error:
                folder.console.write_text(f"{error}\n")
                lab = Over(1, lost=not template.is_alive)
            yield lab

    def _parent(self) -> Path | None:
        with suppress(OSError):
            if self.place and os.access(private_folder(self.place), os.W_OK | os.X_OK):
                return self.place
        return None


def _booting(guest: Guest, text: str, plan: Plan, parent: Path, core: int | None) -> Held:
    """A template that is not booted yet, in folders of its own.

    One is in `parent`, and holds the template's cells too; one is for its memory.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch(parent)).resolve()
        memory = stack.enter_context(scratch(choose()))
        home = CellFolder(folder / HOME, plan)
        home.out.path.mkdir(parents=True)
        (folder / CELLS).mkdir()
        (home.inside / FILE).write_text(text)
        guest.furnish(home)
        words = launcher(guest.tools, guest.kernel, home.path, memory, cells=folder)
        words += guest.command("null,fd:1")
        booted = TemplateGuest(words, home.path, {"TMPDIR": str(memory), "HOME": str(memory)}, core)
        return Held(booted, folder, stack.pop_all().close)


def _leave_what_it_says(held: Held, folder: CellFolder) -> None:
    """Gives a cell what its template has left instead of a network.

    That is status and logs, or what it was busy with at the limit.
    """
    home = CellFolder(held.folder / HOME, folder.plan)
    if held.template.is_alive:
        limit_s, busy = folder.plan.cell.limits.wall_s, standstill(held.template.pid)
        home.fail(f"the wall limit of {limit_s} s came before the network was up{busy}")
    held.template.close()
    sweep(home.out.path)
    shutil.copytree(home.out.path, folder.out.path, dirs_exist_ok=True)
    shutil.copyfile(home.console, folder.console)


class InAppliance:
    """Each cell's guest is in a machine of QEMU's, where the other two ways are."""

    def __init__(self, kernel: Path, guest_mib: int, say: Say, *, snapshots: bool) -> None:
        """`kernel`: the machines' own. `guest_mib`: the memory of the largest guest."""
        self.machines = Machines(guest_mib, say)
        self._kernel, self._snapshots = kernel, snapshots

    @contextmanager
    def lab(self, guest: Guest, folder: CellFolder, core: int | None, *, is_cell: bool = True) -> Iterator[LabProcess]:
        """The guest of a folder: for a cell of a plan, or for the program of the guest alone."""
        boot, lab, shared = guest.boot.resolve(), guest.program.resolve(), (cache_dir() / "lab").resolve()
        shared.mkdir(exist_ok=True)
        parts = Parts(self._kernel, guest.kernel, guest.tools, boot.parent, boot.name, shared)

        def job(number: int) -> Job:
            return Job(
                id=number,
                boot=boot.name,
                lab=lab.name if lab.parent == shared else "",
                is_cell=is_cell,
                memory_mib=guest.memory_mib,
                wall_s=folder.plan.cell.limits.wall_s * (1 if self.machines.accelerated else SLOWER),
                snapshots=self._snapshots,
            )

        with self.machines.use(parts, core) as machine:
            yield machine.start(folder, job)


class VirtualEngine(UmlEngine):
    """Time jumps to the next timer when every task sleeps; computing takes no time."""

    name: ClassVar[str] = "virtual"
    summary: ClassVar[str] = "fast, reproducible"
    deterministic: ClassVar[bool] = True
    clock: ClassVar[tuple[str, ...]] = ("time-travel=inf-cpu", "time-travel-start=1700000000000000000", "lab_snapshot")

    def __init__(self, *, snapshots: bool = True) -> None:
        super().__init__(snapshots=snapshots)
        self._forked = Forked(cache_dir() / TEMPLATES)
        self.appliance: InAppliance | None = None

    def prepare(self, say: Say, plans: Iterable[Plan]) -> None:
        """See UmlEngine.prepare. Where the lab kernel cannot run, cells run in machines that can run it."""
        plans = list(plans)
        remove_dead(cache_dir() / TEMPLATES)
        if (why := appliance.trouble()) and not (self.appliance and self.appliance.machines.processes):
            guest_mib = max((plan.network.memory_mib for plan in plans), default=0)
            self.appliance = self._new_appliance(why, say, guest_mib)
        super().prepare(say, plans)

    def _new_appliance(self, why: str, say: Say, guest_mib: int) -> InAppliance:
        """A way to run guests of up to so much memory in machines of QEMU's.

        Raises:
            CapabilityError: there is no QEMU, or no kernel for its machines.
        """
        find_qemu()
        kernel = ensure_appliance(say)
        guest_mib = max(guest_mib, COMPILE_LIMITS["memory_mib"])
        appliance = InAppliance(kernel, guest_mib, say, snapshots=self.snapshots)
        say(f"engine virtual: {why}; {in_a_machine(is_accelerated=appliance.machines.accelerated)}")
        return appliance

    def findings(self) -> list[Finding]:
        """See Engine.findings. Where cells run in the appliance, the lab kernel's own needs do not matter."""
        is_inside = appliance.trouble() and shutil.which(QEMU)
        return findings.of_appliance() if is_inside else super().findings()

    def check(self) -> None:
        """See UmlEngine.check. In the appliance, the machine's own limits count."""
        if self.appliance is None:
            super().check()

    def lab(
        self, folder: CellFolder, core: int | None = None, console: SessionConsole | None = None
    ) -> AbstractContextManager[LabProcess]:
        """The guest of the folder's plan: in the appliance, or from the network's template, of which it is a fork or
        all that there is.
        """
        guest = self.guest(folder.plan)
        if self.appliance:
            return self.appliance.lab(guest, folder, core)
        template = Template.of(folder.plan, folder.inside / "vectors")
        # Until a cell's own seed comes, random numbers come from what is set up.
        guest, text = replace(guest, seed=template.id), template.text()
        if self.snapshots and can_hold_forks(choose()):
            return self._forked.lab(guest, text, folder, core)
        (folder.inside / FILE).write_text(text)
        return guest.boot_in(folder, core)

    def program_in(self, guest: Guest, folder: CellFolder) -> AbstractContextManager[LabProcess]:
        """See UmlEngine."""
        if self.appliance:
            return self.appliance.lab(guest, folder, None, is_cell=False)
        return super().program_in(guest, folder)

    def templates(self) -> list[TemplateGuest]:
        """Those that there are now."""
        return self._forked.pool.templates()

    def stop(self) -> None:
        """Ends every lab of this engine."""
        super().stop()
        self._forked.pool.stop()
        if self.appliance:
            self.appliance.machines.stop()

    def close(self) -> None:
        """Ends templates and machines, which wait for cells."""
        self._forked.pool.close()
        if self.appliance:
            self.appliance.machines.close()

    def is_lost(self, process: LabProcess) -> bool:
        """Whether its template, or its machine, has ended."""
        return isinstance(process, Fork | Over | MachineCell) and process.lost

    def _wait(self, process: LabProcess, wall_s: float) -> str:
        """See ProcessEngine. What a machine says of its cell's end comes with the cell."""
        ended = super()._wait(process, wall_s)
        return ended or (process.said if isinstance(process, MachineCell) else "")

    def hanging(self, process: LabProcess) -> str:
        """See UmlEngine. A machine that does not answer cannot be looked into."""
        return "" if isinstance(process, MachineCell) else super().hanging(process)


KIND = VirtualEngine
