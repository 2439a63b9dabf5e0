"""The folder in which a cell runs: its content before the cell starts, and what is read from it afterwards.

For engines whose lab is a process.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scpslab import plan as plans
from scpslab.core.errors import ResultError, ScenarioError
from scpslab.core.names import UNFINISHED, file_name
from scpslab.lab.place import OUT
from scpslab.lab.records import LIVE, Status
from scpslab.plan import Plan
from scpslab.plan.links import Direction
from scpslab.runs import CellFiles

CONSOLE_LINES_KEPT = 12
LIVE_LINE = re.compile(rf"^{LIVE}.*\n?".encode(), re.MULTILINE)
# What the lab kernel says when this machine lacks something, and what to do then.
MEMORY_IS_FULL = (
    "Run fewer cells at a time (--jobs), or set SCPSLAB_MEMORY to a larger folder; scpslab doctor shows how"
)
ADVICE = {
    "mount likely just ran out of space": MEMORY_IS_FULL,
    "snapshot: the machine's memory: No space left": MEMORY_IS_FULL,
    "check_ptrace": "ptrace is forbidden here; scpslab doctor shows what to do",
}


class CellFolder:
    """`path` is the engine's folder; `inside` is the part that the lab reads; `out`, within it, holds what the lab
    writes.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan

    @property
    def console(self) -> Path:
        """What the lab says."""
        return self.path / "console.log"

    @property
    def inside(self) -> Path:
        """What the lab reads."""
        return self.path / "cell"

    @property
    def out(self) -> CellFiles:
        """What the lab writes."""
        return CellFiles(self.inside / OUT)

    @classmethod
    @contextmanager
    def beside(cls, target: Path, plan: Plan) -> Iterator[CellFolder]:
        """A new folder next to the cell's place in the run folder, removed at the end, also where it was moved: an
        unfinished cell never looks finished.
        """
        path = target.with_name(target.name + UNFINISHED)
        shutil.rmtree(path, ignore_errors=True)
        folder = cls(path, plan)
        try:
            yield folder
        finally:
            for left in {path, folder.path}:
                shutil.rmtree(left, ignore_errors=True)

    def move(self, path: Path) -> None:
        """Moves it to another place; on another file system it is copied there."""
        before, self.path = self.path, path
        shutil.move(before, path)

    def fill(self) -> None:
        """Makes the lab's input: its plan, the vectors of bit errors, and an empty folder for its output."""
        vectors = self.inside / "vectors"
        vectors.mkdir(parents=True)
        self.out.path.mkdir()
        CellFiles(self.inside).plan.write_text(plans.text(self.plan))
        write_vectors(self.plan, vectors)

    def finish(self, target: Path, ended: str, lab: str, *, is_exact: bool | None = None) -> Status:
        """Completes the files that the lab left, moves them to their place, and returns the status.

        `ended` says why the engine ended the lab, "" if the lab ended by itself; `lab` is the name of the lab in
        messages. `is_exact`: what the lab did is known to the nanosecond; None: it records no packets.
        """
        misplaced = ", ".join(self._misplaced())
        found = f"{lab} left files where folders belong, or folders where files do: {misplaced}" if misplaced else ""
        status = self._status(ended or found, lab)
        if status.status != "failed" and self.plan.cell.packets and is_exact is not None:
            # The appliance, which audits nothing itself, has no numpy.
            from scpslab.audit import unexplained  # noqa: PLC0415

            vectors = self.inside / "vectors"
            if doubt := unexplained(self.plan, vectors, self.out.packets, is_exact=is_exact):
                status = self.fail(doubt)
        self.out.make_folders()
        shutil.copyfile(CellFiles(self.inside).plan, self.out.plan)
        if status.status == "failed" or self.plan.cell.mininet:
            self.out.log("console").write_bytes(self.said())
        # On another file system it is copied, and is there whole or not at all.
        aside = target.with_name(f"{target.name}-whole{UNFINISHED}")
        for old in (target, aside):
            shutil.rmtree(old, ignore_errors=True)
        shutil.move(self.out.path, aside)
        aside.rename(target)
        return status

    def _misplaced(self) -> Iterator[str]:
        """Removes files in the places of folders, and folders in those of files."""
        out = self.out
        for path in (out.logs, out.records, out.captures, out.plan, out.status_file, out.log("console")):
            if path.exists() and path.is_dir() == bool(path.suffix):
                (shutil.rmtree if path.suffix else Path.unlink)(path)
                yield path.name

    def console_tail(self) -> str:
        """The last lines of the console."""
        lines = self.said().decode(errors="replace").strip().splitlines()
        return " | ".join(lines[-CONSOLE_LINES_KEPT:])

    def said(self) -> bytes:
        """What the lab has said besides its live stream."""
        return re.sub(LIVE_LINE, b"", self.console.read_bytes())

    def _status(self, ended: str, lab: str) -> Status:
        if self.out.has_ended and not ended:
            try:
                return self.out.status()
            except ResultError as error:
                ended = str(error)
        reason = ended or f"{lab} ended without a result: {self.console_tail() or 'nothing on its console'}"
        reason += "".join(f". {advice}" for words, advice in ADVICE.items() if words in reason)
        return self.fail(reason)

    def fail(self, reason: str) -> Status:
        """Writes the status of a cell without a result, and returns it."""
        status = Status("failed", reason)
        self.out.write_status(status)
        return status


def _write_profile(plan: Plan, link: str, direction: Direction, folder: Path) -> None:
    """Writes what a direction does over time, where the plan says so."""
    impairment = plan.cell.impairment(link, direction.name)
    if impairment is None or impairment.profile is None:
        return
    from scpslab.scenario.profiles.planning import tables  # noqa: PLC0415  # few cells have one

    for ending, content in tables(impairment.profile, direction).items():
        (folder / file_name(link, direction.name, suffix=ending)).write_bytes(content)


def write_vectors(plan: Plan, folder: Path) -> None:
    """Writes what is drawn for each direction (scenario/errors.py) to <link>-<direction> and its ending, in
    little-endian order.

    Serial links draw the errors of the models that their channel knows; for the others they get bit maps,
    <link>-<direction>.bits.

    Raises:
        ScenarioError: what was drawn does not lose packets as its model does.
    """
    # The appliance, which only reads vectors, has no numpy.
    from scpslab.scenario.errors import bit_map, drawn, misfit  # noqa: PLC0415

    for serial in plan.network.serial_links:
        for line in serial.directions:
            errors = plan.cell.errors(serial.name, line.name)
            bits = bit_map(errors, serial.vector_bits) if errors else None
            if bits is not None:
                (folder / file_name(serial.name, line.name, suffix=".bits")).write_bytes(bits)
    for link in plan.network.links:
        for direction in link.directions:
            _write_profile(plan, link.name, direction, folder)
            if (errors := plan.cell.errors(link.name, direction.name)) is None:
                continue
            found = drawn(errors)
            wrong = misfit(errors, found, 8 * (link.mtu_bytes + direction.overhead_bytes))
            if wrong:
                place = f"links.{link.name}.{direction.name}.errors"
                advice = "Choose settings with more and shorter bursts, or gilbert-elliott, whose states may last long."
                raise ScenarioError(f"{place}: found {wrong[0]}; expected {wrong[1]}. {advice}")
            for ending, numbers in found.items():
                (folder / file_name(link.name, direction.name, suffix=ending)).write_bytes(
                    numbers.astype("<u8").tobytes()
                )
