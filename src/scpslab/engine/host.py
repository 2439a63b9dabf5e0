"""Engine `host`: this machine's own kernel, as root, on the wall clock; nodes are processes or this machine's Docker containers."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from scpslab.engine.base import CellRun, Engine, Interrupted
from scpslab.engine.bundle import copy_programs, sources
from scpslab.engine.needs import Needs, on_the_wall_clock, own_images, plan_text, write_vectors
from scpslab.errors import CapabilityError, LabError
from scpslab.hostlab import HostLab, dead_labs, remove
from scpslab.hostlab.capabilities import missing
from scpslab.lab import docker
from scpslab.setup import ensure_stack, ensure_tools, trust
from scpslab.setup.folders import whole_folder
from scpslab.setup.own_images import find_image

# Under none of the folders that are a node's own (/run, /tmp, /mnt).
PROGRAMS = Path("/var/lib/scpslab")
PROGRAM = "run_lab.py"


class HostEngine(Engine):
    """Runs a cell as a lab of this machine (scpslab.hostlab). Results are measurements, not reproductions."""

    name: ClassVar[str] = "host"
    deterministic: ClassVar[bool] = False

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False
        self._programs: dict[bool, Path] = {}

    def prepare(self, say: Callable[[str], None], plans: Iterable[dict[str, Any]]) -> None:
        """Checks the machine, removes what killed labs have left, builds the lab's programs."""
        plans = list(plans)
        lacking = missing(with_docker=any(Needs.of(plan).docker for plan in plans))
        if lacking:
            raise CapabilityError("\n".join(f"engine host: {finding}" for finding in lacking))
        own = {name for plan in plans for name in own_images(plan)}
        for name in own:
            find_image(name)
        _check_images({node["container"]["image"] for plan in plans for node in plan["nodes"] if "container" in node} - own)
        for lab in dead_labs():
            say(f"engine host: {lab} was left by a process that was killed; removed {', '.join(remove(lab)) or 'its folder'}")
        for with_stack in {Needs.of(plan).stack for plan in plans}:
            self._programs[with_stack] = _install(say, with_stack)

    def hash(self, plan: dict[str, Any]) -> str:
        """Hash of the lab program and the programs beside it."""
        return self._programs[Needs.of(plan).stack].name

    def run(self, cell: CellRun) -> dict[str, Any]:
        """Runs a cell in a folder of its own beside its target and moves it into place when it is over."""
        part = cell.folder.with_name(cell.folder.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        plan = on_the_wall_clock(cell.plan)
        inside = _cell_folder(part, plan)
        lab = HostLab(plan, self._programs[Needs.of(plan).stack], inside)
        try:
            ended = self._run(lab, part / "console.log")
            out = inside / "out"
            status = _status(out, ended, part / "console.log")
            for name in ("logs", "records", "captures"):
                (out / name).mkdir(exist_ok=True)
            shutil.copyfile(inside / "plan.json", out / "plan.json")
            if status["status"] == "failed":
                shutil.copyfile(part / "console.log", out / "logs" / "console.log")
            shutil.rmtree(cell.folder, ignore_errors=True)
            out.rename(cell.folder)
            return status
        finally:
            lab.remove()
            shutil.rmtree(part, ignore_errors=True)

    def _run(self, lab: HostLab, console: Path) -> str:
        """Runs a lab to its end: "" or the reason why it was ended."""
        wall_s = lab.plan["limits"]["wall_s"]
        with console.open("wb") as output:
            process = lab.start(stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        with self._lock:
            self._running.add(process)
        try:
            process.wait(timeout=wall_s)
        except subprocess.TimeoutExpired:
            return f"the wall limit of {wall_s} s came before the cell was over"
        finally:
            with self._lock:
                self._running.discard(process)
            process.kill()
            process.wait()
        if self._stopped:
            raise Interrupted
        return ""

    def interact(self, plan: dict[str, Any], folder: Path) -> int:
        """Runs a plan at the user's terminal until the user leaves; the lab program's exit code."""
        lab = HostLab(plan, self._programs[Needs.of(plan).stack], _cell_folder(folder, plan))
        try:
            return lab.start().wait()
        finally:
            lab.remove()

    def stop(self) -> None:
        """Ends every lab of this engine."""
        self._stopped = True
        with self._lock:
            for process in self._running:
                process.kill()


def _cell_folder(folder: Path, plan: dict[str, Any]) -> Path:
    inside = folder / "cell"
    (inside / "vectors").mkdir(parents=True)
    (inside / "out").mkdir()
    (inside / "plan.json").write_text(plan_text(plan))
    write_vectors(plan, inside / "vectors")
    return inside


def _status(out: Path, ended: str, console: Path) -> dict[str, Any]:
    path = out / "status.json"
    if path.exists() and not ended:
        status: dict[str, Any] = json.loads(path.read_text())
        return status
    tail = " | ".join(console.read_text(errors="replace").strip().splitlines()[-12:])
    status = {"status": "failed", "reason": ended or f"the lab program ended without a result: {tail}", "epoch_realtime_ns": None, "virtual_s": None}
    path.write_text(json.dumps(status, indent=1) + "\n")
    return status


def _check_images(images: set[str]) -> None:
    """Makes sure that the machine's Docker has the images of nodes."""
    known = {name for image in docker.ask("GET", "/images/json") for name in image["RepoTags"] or []} if images else set()
    if lacking := sorted(images - known):
        raise CapabilityError(f"engine host: found no image {', '.join(lacking)} in this machine's Docker; expected it. Run: make docker-images.")


def _install(say: Callable[[str], None], with_stack: bool) -> Path:
    """The lab program's folder for this machine, made where it is missing."""
    tools = ensure_tools(say)
    programs = [*sorted(tools.iterdir()), *([ensure_stack(say).path] if with_stack else [])]
    digest = hashlib.sha256()
    for file, name in [*sources(), *((file, file.name) for file in programs)]:
        digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    target = PROGRAMS / digest.hexdigest()[:24]
    try:
        return trust.check(whole_folder(target, lambda folder: copy_programs(folder, programs)) / PROGRAM).parent
    except OSError as error:
        raise LabError(f"{target}: found {error.strerror}; expected to put the lab program there. See to the folder.") from error
