"""The lab kernel as a process: what engines `virtual` and `live` share.

The kernel finds what it needs by three names in its working folder (images/guest/tools/init.c), so that its command line, which it
mixes into its random numbers, is the same for the same cell on every machine and for every user.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from scpslab.engine.base import CellRun, Engine, Interrupted
from scpslab.engine.bundle import bundle_hash, ensure_bundle
from scpslab.engine.confinement import launcher, sweep
from scpslab.engine.needs import Needs, own_images, plan_text, write_vectors
from scpslab.engine.standstill import standstill
from scpslab.errors import CapabilityError, LabError
from scpslab.lab.place import OUT
from scpslab.scratch import scratch
from scpslab.setup import Images, cache_dir, ensure, ensure_stack
from scpslab.setup.own_images import OwnImage, archive, find_image, lend

MEMORY_FOLDER = "/dev/shm"  # each kernel has a folder of its own in it
ROOT_ARGUMENTS = ["hostfs=/proc/self/cwd", "root=lab", "rootfstype=hostfs", "rootflags=boot", "ro", "init=/init"]
CONSOLE_LINES_KEPT = 12
COMPILE_LIMITS = {"memory_mib": 512, "wall_s": 120}
# The FY97 network with Open vSwitch needs about 50.
PROCESSES_PER_CELL = 64
OWN_IMAGES_SHARE = 4


class UmlEngine(Engine):
    """Runs cells as User-Mode Linux processes, each pinned to one core.

    A guest's system calls switch between two host processes, and on one core that costs a third of what it costs across two.
    """

    clock_arguments: ClassVar[list[str]]

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._stopped = False
        # What a plan needs besides the kernel's TCP on nodes that are processes: results of plans that do not need it do not depend on it.
        self._images: dict[bool, Images] = {}
        self._bundles: dict[Needs, tuple[Path, str]] = {}
        self._own_images: dict[str, tuple[OwnImage, Path]] = {}

    def prepare(self, say: Callable[[str], None], plans: Iterable[dict[str, Any]]) -> None:
        """Builds kernel, guest image, lab program and, where a plan needs it, the SCPS stack, unless they are in the cache."""
        _check_processes()
        plans = list(plans)
        for needs in {Needs.of(plan) for plan in plans} - set(self._bundles):
            images = self._images[needs.docker] = self._images.get(needs.docker) or ensure(say, needs.docker)
            self._kernel, self._tools = images.kernel, images.tools_dir
            scps = ensure_stack(say) if needs.stack else None
            self._bundles[needs] = (ensure_bundle(images, scps, cache_dir(), partial(self._compile, images)), bundle_hash(images, scps))
        for plan in plans:
            if names := own_images(plan):
                self._bring_images(names, plan["limits"]["memory_mib"], say)

    def _bring_images(self, names: list[str], memory_mib: int, say: Callable[[str], None]) -> None:
        for name in set(names) - set(self._own_images):
            image = find_image(name)
            self._own_images[name] = (image, archive(image, cache_dir(), say))
        size_mib = sum(self._own_images[name][0].size_bytes for name in names) >> 20
        # A guest keeps the file and what is unpacked of it in memory, beside the project's own images.
        if size_mib > memory_mib // OWN_IMAGES_SHARE:
            raise CapabilityError(
                f"image {', '.join(names)}: found {size_mib} MiB; expected at most a quarter of the guest's memory, {memory_mib} MiB. "
                f"Raise limits.memory by {OWN_IMAGES_SHARE * size_mib - memory_mib} MiB, or make the image smaller."
            )

    def hash(self, plan: dict[str, Any]) -> str:
        """Hash of kernel, guest image, lab program and, where the plan needs them, the SCPS stack and images of others."""
        bundle = self._bundles[Needs.of(plan)][1]
        ids = [self._own_images[name][0].id for name in own_images(plan)]
        return hashlib.sha256("\n".join([bundle, *ids]).encode()).hexdigest()[:24] if ids else bundle

    def _compile(self, images: Images, lab: Path, cell: Path) -> None:
        tail = self.boot(images, lab, cell, COMPILE_LIMITS)
        if not (cell / "out" / "status.json").exists():
            raise LabError(f"lab program: the guest did not compile it; {tail}")

    def boot(self, images: Images, program: Path, cell: Path, limits: dict[str, int]) -> str:
        """Runs run_lab.py of another folder than the lab's in a guest to its end; its results are in `cell`/out. Returns the last lines of the console."""
        with scratch() as work:
            for name, target in (("boot", images.boot_dir), ("lab", program), ("cell", cell)):
                (work / name).symlink_to(target.resolve())
            self._kernel, self._tools = images.kernel, images.tools_dir
            (cell / OUT).mkdir(exist_ok=True)
            ended = self._boot(work, {"limits": limits, "cell": {"kernel_seed": "0" * 64}}, None)
            return ended or self._console_tail(work)

    def command(self, plan: dict[str, Any], console: str) -> list[str]:
        """The kernel's command line for a plan."""
        limits = plan["limits"]
        words = [str(self._kernel), f"mem={limits['memory_mib']}M", *ROOT_ARGUMENTS, "con=null", f"con0={console}", "quiet", "norandmaps"]
        return [*words, *self.clock_arguments, *self.seed_arguments(plan)]

    def confine(self, work: Path, memory: Path) -> list[str]:
        """What stands before the kernel's command line: it confines the kernel to the folders it needs, and ends it when this program ends."""
        return launcher(self._tools, self._kernel, work, memory)

    def seed_arguments(self, plan: dict[str, Any]) -> list[str]:
        """What seeds the guest's random numbers."""
        return [f"lab_seed={plan['cell']['kernel_seed']}"]

    def run(self, cell: CellRun) -> dict[str, Any]:
        """Runs a cell in a folder of its own beside its target and moves it into place when it is over."""
        part = cell.folder.with_name(cell.folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        inside = part / "cell"
        (inside / "vectors").mkdir(parents=True)
        out = inside / OUT
        out.mkdir()
        try:
            (inside / "plan.json").write_text(plan_text(cell.plan))
            write_vectors(cell.plan, inside / "vectors")
            self._lend_images(cell.plan, inside)
            work = self._work_folder_in(part, cell.plan)
            ended = self._boot(work, cell.plan, cell.core)
            if left := sweep(out):
                ended = ended or f"the guest left something that is no file in the cell's folder: {', '.join(left)}"
            status = self._status(out, ended, work)
            shutil.copyfile(inside / "plan.json", out / "plan.json")
            for name in ("logs", "records", "captures"):
                (out / name).mkdir(exist_ok=True)
            if status["status"] == "failed":
                shutil.copyfile(work / "console.log", out / "logs" / "console.log")
            shutil.rmtree(cell.folder, ignore_errors=True)
            out.rename(cell.folder)
            return status
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _lend_images(self, plan: dict[str, Any], cell: Path) -> None:
        lend([self._own_images[name][1] for name in own_images(plan)], cell / "images")

    def _work_folder_in(self, part: Path, plan: dict[str, Any]) -> Path:
        needs = Needs.of(plan)
        for name, target in (("boot", self._images[needs.docker].boot_dir), ("lab", self._bundles[needs][0])):
            (part / name).symlink_to(target.resolve())
        return part

    def _boot(self, work: Path, plan: dict[str, Any], core: int | None) -> str:
        """Runs the kernel in `work` until it powers off: "" or the reason why it was ended."""
        wall_s = plan["limits"]["wall_s"]
        # The kernel keeps its memory file there, and a note of its process id.
        with scratch(MEMORY_FOLDER) as home:
            return self._wait(self._start(work, home, plan, core), wall_s)

    def _start(self, work: Path, home: Path, plan: dict[str, Any], core: int | None) -> subprocess.Popen[bytes]:
        with (work / "console.log").open("wb") as console:
            process = subprocess.Popen(
                [*self.confine(work, home), *self.command(plan, "null,fd:1")],
                cwd=work,
                env={"TMPDIR": str(home), "HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        with self._lock:
            self._running[process.pid] = process
        return process

    def _wait(self, process: subprocess.Popen[bytes], wall_s: float) -> str:
        try:
            process.wait(timeout=wall_s)
        except subprocess.TimeoutExpired:
            return f"the wall limit of {wall_s} s came before the cell was over{standstill(process.pid) if self.deterministic else ''}"
        finally:
            self._end(process)
        if self._stopped:
            raise Interrupted
        return ""

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a kernel and the processes it holds: they are one session of their own."""
        with self._lock:
            self._running.pop(process.pid, None)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def interact(self, plan: dict[str, Any], folder: Path) -> int:
        """Runs a plan at the user's terminal until the user leaves; the kernel's exit code."""
        inside = folder / "cell"
        (inside / "vectors").mkdir(parents=True)
        (inside / "plan.json").write_text(plan_text(plan))
        (inside / OUT).mkdir()
        self._lend_images(plan, inside)
        work = self._work_folder_in(folder, plan)
        with scratch(MEMORY_FOLDER) as home:
            environment = {"TMPDIR": str(home), "HOME": str(home)}
            command = [*self.confine(work, home), *self.command(plan, "fd:0,fd:1"), f"lab_term={os.environ.get('TERM', 'dumb')}"]
            code = subprocess.run(command, cwd=work, env=environment, check=False).returncode
        sweep(inside / OUT)
        return code

    def _status(self, out: Path, ended: str, work: Path) -> dict[str, Any]:
        path = out / "status.json"
        if path.exists() and not ended:
            status: dict[str, Any] = json.loads(path.read_text())
            return status
        reason = ended or f"the lab kernel ended without a result: {self._console_tail(work)}"
        status = {"status": "failed", "reason": reason, "epoch_realtime_ns": None, "virtual_s": None}
        path.write_text(json.dumps(status, indent=1) + "\n")
        return status

    @staticmethod
    def _console_tail(work: Path) -> str:
        lines = (work / "console.log").read_text(errors="replace").strip().splitlines()
        return " | ".join(lines[-CONSOLE_LINES_KEPT:])

    def stop(self) -> None:
        """Ends every kernel of this engine."""
        self._stopped = True
        with self._lock:
            running = list(self._running.values())
        for process in running:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _check_processes() -> None:
    """A guest's processes are the host's too; without room for them a cell fails half-way."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.geteuid() != 0 and allowed != resource.RLIM_INFINITY and allowed < PROCESSES_PER_CELL:
        raise CapabilityError(f"ulimit -u: found {allowed} processes allowed; expected at least {PROCESSES_PER_CELL} for each cell that runs. Raise the limit.")
