"""A student's folder: what `start` puts there, what other commands find and add, what was handed out, and its log.

The log is JSON lines, each with the SHA-256 of the line before (decision 0703). What it proves and what not:
docs/teaching.md.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from scpslab.core import strict_json
from scpslab.core.contents import content_of, json_fields
from scpslab.core.errors import ScenarioError, ScpslabError, UsageError
from scpslab.core.scratch import replace_bytes
from scpslab.plan import schema
from scpslab.plan.schema import Items, Part, PlanError, Range, Text
from scpslab.plan.values import KernelSeed, Label, PlainText, Seed
from scpslab_course.course import answers, handout
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import INSTRUCTOR, STARTER, Assignment, find, load_assignment
from scpslab_course.course.runs import VariantRun, run_of
from scpslab_course.course.variant import Variant, VariantError

LARGEST_FILE, MOST_FILES = 4 << 20, 200
ASIDE = "set-aside"
NOTES = ".md"
VARIANT, LOG, RUNS, TRIALS, WRITE_UP = "variant.json", "log.jsonl", "runs", "trials", "write-up.md"
RESTORE = 'Bring them back: "scpslab assignment restore"; experiment with copies under other names'
BLANK_WRITE_UP = """# Write-up

## What I found, with numbers and figures

## What surprised me

## Hours that I worked on it, and with whom
"""
T = TypeVar("T")
LARGEST_LOG, MOST_LINES = 4 << 20, 10_000
TIME = re.compile(r"[ -~]{4}-[ -~]{2}-[ -~]{2}T[ -~]{2}:[ -~]{2}:[ -~]{2}Z")
# A `begin` without the `run` that follows it is a run that was interrupted; without `begin` a `run` is of an older
# version.
Event = Literal["start", "predict", "begin", "run"]


class LogError(ValueError):
    """A log that is none, or whose chain is broken; `line`: where, counted from 1, if it is broken at a line."""

    def __init__(self, said: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {said}" if line else said)
        self.line = line


Time = Annotated[str, Text("a time such as 2026-11-22T21:00:00Z", lambda text: TIME.fullmatch(text) is not None)]


class RunState(Part):
    """How far the run of a scenario is: finished cells, and the digest of their results.csv ("" without one)."""

    scenario: Label
    finished: Annotated[int, Range(0, 1_000_000)]
    results: KernelSeed


class Line(Part):
    """One line: what happened, when by the clock of the student's machine, and the state of the runs."""

    number: Annotated[int, Range(1, MOST_LINES)]
    at: Time
    event: Event
    name: Annotated[str, Text("a text of one line", lambda text: len(text) <= 300 and text.isprintable())]
    value: PlainText
    runs: Annotated[tuple[RunState, ...], Items(0, 100)]
    before: Seed


def first_link(variant_digest: str) -> str:
    """What the first line has for the line before: the log belongs to one variant."""
    return _digest(f"scpslab log 1\n{variant_digest}\n".encode())


def appended(
    log: bytes, variant_digest: str, at: str, event: Event, name: str, value: str, runs: Sequence[RunState]
) -> bytes:
    """The log with one more line.

    Raises:
        LogError: the log as it is has been changed: nothing can be added to it.
    """
    number = len(read_log(log, variant_digest)) + 1
    before = _digest(log.split(b"\n")[-2]) if log else first_link(variant_digest)
    line = Line(number=number, at=at, event=event, name=name, value=value, runs=tuple(runs), before=before)
    return log + json.dumps(schema.write(line), ensure_ascii=False).encode() + b"\n"


def read_log(log: bytes, variant_digest: str) -> list[Line]:
    """The lines of a log, the chain checked from the variant to the last line.

    Raises:
        LogError: the first place where it is broken.
    """
    if len(log) > LARGEST_LOG:
        raise LogError(f"found {len(log)} bytes; expected at most {LARGEST_LOG}")
    if log and not log.endswith(b"\n"):
        raise LogError("found a last line that is cut short; expected a whole one")
    texts = log.split(b"\n")[:-1]
    if len(texts) > MOST_LINES:
        raise LogError(f"found {len(texts)} lines; expected at most {MOST_LINES}")
    before, lines = first_link(variant_digest), []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(_line(text, number, before))
        except (strict_json.JsonError, PlanError, LogError) as error:
            raise LogError(str(error), number) from error
        before = _digest(text)
    return lines


def _line(text: bytes, number: int, before: str) -> Line:
    line = schema.read(Line, json_fields(text))
    if line.number != number:
        raise LogError(f"found number {line.number}; expected {number}: a line was added or removed")
    if line.before != before:
        what = "this variant's" if number == 1 else f"line {number - 1}'s"
        said = "expected an unbroken chain: something was changed"
        raise LogError(f"found another digest of what came before than {what}; {said}")
    return line


def recorded_results(lines: Sequence[Line], scenario: str) -> str | None:
    """The digest of a scenario's results at its last recorded run; None if no run is recorded."""
    runs = (line.runs for line in lines if line.event == "run" and line.name == scenario)
    results = [state.results for states in runs for state in states if state.scenario == scenario]
    return results[-1] if results else None


def was_interrupted(lines: Sequence[Line], scenario: str) -> bool:
    """Whether the last run of a scenario began and did not end."""
    events = [line.event for line in lines if line.name == scenario and line.event in ("begin", "run")]
    return events[-1:] == ["begin"]


def given_predictions(lines: Sequence[Line], assignment: Assignment) -> dict[str, Line]:
    """The prediction of each name that counts: the last one before a run that it is about begins, because nothing was
    seen yet; the first one if all came later.
    """
    given: dict[str, Line] = {}
    begun: set[str] = set()
    for line in lines:
        begun |= begun_by(line)
        is_asked = line.event == "predict" and line.name in assignment.file.predictions
        if is_asked and (line.name not in given or begun.isdisjoint(assignment.before(line.name))):
            given[line.name] = line
    return given


def begun_by(line: Line) -> set[str]:
    """The scenarios whose run has begun, as far as one line says."""
    own = {line.name} if line.event in ("begin", "run") else set()
    return own | {state.scenario for state in line.runs if state.finished}


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def handed_out(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an assignment that students get: all but the instructor's folder, hidden files and links.

    Raises:
        UsageError: a link, or too much of them.
    """
    found = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        parts = name.split("/")
        is_hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if parts[0] == INSTRUCTOR or is_hidden or not path.is_file():
            continue
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            expected = "expected a file, because links could lead anywhere. Put the file itself there."
            raise UsageError(f"{path}: found a symbolic link; {expected}")
        found += 1
        if found > MOST_FILES or path.stat().st_size > LARGEST_FILE:
            expected = f"expected at most {MOST_FILES} of {LARGEST_FILE} bytes. Make it smaller."
            raise UsageError(f"{path}: found file {found} of {path.stat().st_size} bytes; {expected}")
        yield name, path.read_bytes()


def changed_files(folder: Path, original: Assignment) -> dict[str, bytes]:
    """The handed out files that a student's folder lacks or has otherwise, with their original content.

    What a student may write in does not count.
    """
    own = {deliverable.file for deliverable in original.file.deliverables}
    changed = {}
    for name, content in handed_out(original.folder):
        path = folder / name
        is_writable = name.startswith(f"{STARTER}/") or name in own or (path.suffix == NOTES and path.is_file())
        if not is_writable and (not path.is_file() or path.read_bytes() != content):
            changed[name] = content
    return changed


def put_back(folder: Path, name: str, content: bytes) -> Path | None:
    """Writes a file of a student's folder as it was handed out; returns where the student's own is now, if there was
    one.
    """
    path = folder / name
    aside = set_aside(folder, path) if path.exists() or path.is_symlink() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, content)
    return aside


def set_aside(folder: Path, path: Path) -> Path:
    """Moves a file or folder of a student's folder below its `set-aside`; returns its new path."""
    place = folder / ASIDE / path.relative_to(folder)
    free = next(one for number in count(1) if not (one := place.with_name(f"{place.name}-{number}")).exists())
    free.parent.mkdir(parents=True, exist_ok=True)
    return path.rename(free)


@dataclass(frozen=True)
class Workspace:
    """A student's folder, its assignment and its variant, both checked."""

    folder: Path
    assignment: Assignment
    variant: Variant

    @property
    def runs(self) -> Path:
        """The folder of its runs."""
        return self.folder / RUNS

    @cached_property
    def planned(self) -> dict[str, VariantRun]:
        """The runs of its scenarios, by scenario: whoever asks again gets those that were planned first."""
        parameters = self.variant.parameters
        return {name: run_of(self.assignment, parameters, name, self.runs) for name in self.assignment.file.scenarios}

    def log(self) -> list[Line]:
        """The lines of the log.

        Raises:
            ScenarioError: there is none, or it was changed.
        """
        return self._of_log(lambda content: read_log(content, self.variant.digest))

    def _of_log(self, read: Callable[[bytes], T]) -> T:
        path = self.folder / LOG
        try:
            return read(content_of(path))
        except OSError as error:
            expected = "expected the log of this folder, which cannot be made again. Copy it back, or start elsewhere."
            raise ScenarioError(f"{path}: found {error.strerror}; {expected}") from error
        except LogError as error:
            advice = "Restore the file as it was: commands write it, nobody else."
            raise ScenarioError(f"{path}: {error}. {advice}") from error

    def states(self) -> list[RunState]:
        """How far each run is."""
        return [
            RunState(
                scenario=name,
                finished=len(run.finished),
                results=_digest(run.folder.results.read_bytes()) if run.folder.results.is_file() else "",
            )
            for name, run in self.planned.items()
        ]

    def unpredicted(self, lines: Sequence[Line], states: Sequence[RunState]) -> dict[str, set[str]]:
        """The predictions that are missing and still in time, with the scenarios before which they have to be made."""
        given = given_predictions(lines, self.assignment)
        asked = {name: self.assignment.before(name) for name in self.assignment.file.predictions if name not in given}
        return {name: set(before) for name, before in asked.items() if not _has_results(lines, states, before)}

    def add(self, at: str, event: Event, name: str = "", value: str = "") -> None:
        """Adds a line to the log.

        Raises:
            ScenarioError: see `log`.
        """
        # Two commands at once would each add their line to the same log. The lock is that of a file that no command
        # replaces; NFS has none of folders.
        with (self.folder / VARIANT).open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            states = self.states()
            digest = self.variant.digest
            content = self._of_log(lambda log: appended(log, digest, at, event, name, value, states))
            replace_bytes(self.folder / LOG, content)


def plan_start(assignment: Assignment, variant: Variant) -> dict[str, bytes]:
    """The files that a student's folder begins with, by their paths in it. The instructor's folder is not looked at.

    Raises:
        UsageError: the variant belongs to something else, or the assignment has files that cannot be copied.
    """
    if said := variants.unfit(variant, assignment):
        raise UsageError(f"{variant.assignment}: {said}. Take the assignment and the variant from the same place.")
    kept = {name.removeprefix(f"{STARTER}/"): content for name, content in handed_out(assignment.folder)}
    own = {answers.FILE: answers.blank(assignment.file, variant.parameters).encode(), VARIANT: variants.write(variant)}
    if assignment.file.write_up and WRITE_UP not in kept:
        own[WRITE_UP] = BLANK_WRITE_UP.encode()
    return kept | own | handout.page(assignment, variant.parameters)


def write_new(files: Mapping[str, bytes], target: Path, advice: str) -> None:
    """Makes a folder with these files.

    Raises:
        UsageError: there is something already; the message ends in the advice.
    """
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise UsageError(f"{target}: found something already; expected a new folder. {advice}")
    for name, content in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_start(files: dict[str, bytes], assignment: Assignment, variant: Variant, target: Path, at: str) -> Workspace:
    """Makes the folder. An existing one is never touched.

    Raises:
        UsageError: there is something already.
    """
    write_new(files, target, "Go on with it, or choose another one with --out.")
    (target / LOG).write_bytes(b"")
    workspace = open_workspace(target)
    workspace.add(at, "start", assignment.name)
    return workspace


def open_workspace(folder: Path) -> Workspace:
    """The student's folder.

    Raises:
        ScenarioError: it is none, or a file of it was changed that must not be.
    """
    variant = variant_of(folder)
    try:
        # The folder may have any name: the variant knows the assignment's.
        assignment = load_assignment(folder, variant.assignment)
        said = variants.unfit(variant, assignment)
    except ScenarioError as error:
        said = str(error)
    if said:
        raise ScenarioError(f"{_changed(folder, variant) or f'{folder}: {said}'}. {RESTORE}")
    return Workspace(folder, assignment, variant)


def variant_of(folder: Path) -> Variant:
    """The variant of a student's folder.

    Raises:
        ScenarioError: there is none, or it was changed.
    """
    expected = "expected the folder of an assignment that you have started"
    advice = 'Go there, or name it with --in; to begin: "scpslab assignment start"'
    if (folder / answers.FILE).is_file():
        expected, advice = "expected your variant in this folder", "Copy the file back that you began with"
    return read_variant(folder / VARIANT, f"{expected}. {advice}")


def read_variant(path: Path, expected: str, option: str = "") -> Variant:
    """The variant in a file. Messages name the option that names the file, and say what is expected of it.

    Raises:
        ScenarioError: there is none, or it was changed.
    """
    try:
        return variants.read(content_of(path))
    except (OSError, VariantError) as error:
        said = f"found {error.strerror}; {expected}" if isinstance(error, OSError) else f"{error}"
        raise ScenarioError(f"{option}{path}: {said}.") from error


def original(variant: Variant, folder: Path | None) -> Assignment:
    """The assignment of a variant as it was handed out: in the named folder, or the project's.

    Raises:
        ScenarioError: there is none.
        UsageError: it is another edition than the variant's.
    """
    loaded = load_assignment(find(str(folder or variant.assignment)), variant.assignment)
    if said := variants.unfit(variant, loaded):
        advice = "Name the folder of the assignment that you were given: --from FOLDER."
        raise UsageError(f"{loaded.folder}: {said}. {advice}")
    return loaded


def _changed(folder: Path, variant: Variant) -> str:
    """Which files are not as they were handed out; "" if that is not known."""
    try:
        names = ", ".join(changed_files(folder, original(variant, None)))
    except ScpslabError:
        return ""
    expected = "expected the files as they were handed out: your variant belongs to them"
    return names and f"{folder}: found {names} missing or changed; {expected}"


def find_workspace(named: Path | None) -> Path:
    """The folder that a command works in: the named one, this one, or the only one below this one.

    Raises:
        UsageError: several are below this one.
    """
    if named is not None:
        return named
    if Path(VARIANT).is_file():
        return Path()
    below = sorted(path.parent for path in Path().glob(f"*/{VARIANT}"))
    if len(below) > 1:
        found = f"found {len(below)} assignments: {', '.join(map(str, below[:6]))}"
        raise UsageError(f".: {found}; expected one. Go into one, or name it with --in.")
    return below[0] if below else Path()


def late(lines: Sequence[Line], number: int, before: Sequence[str]) -> bool:
    """Whether a line of the log comes after the first finished cell, or after a run, of one of these scenarios."""
    return _has_results(lines[: number - 1], lines[number - 1].runs, before)


def _has_results(lines: Sequence[Line], states: Sequence[RunState], before: Sequence[str]) -> bool:
    ran = {line.name for line in lines if line.event == "run"}
    return any(state.finished > 0 for state in states if state.scenario in before) or bool(ran & set(before))
