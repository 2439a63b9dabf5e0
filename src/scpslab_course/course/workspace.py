"""A student's folder: what `start` puts there, what other commands find and add, what was handed out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from scpslab.core.errors import ScenarioError, ScpslabError, UsageError
from scpslab.core.scratch import replace_bytes, replace_text
from scpslab.documents.yaml_lines import content_of
from scpslab_course.course import answers, log
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import INSTRUCTOR, STARTER, Assignment, find, load_assignment
from scpslab_course.course.log import Event, Line, LogError, RunState
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


def handed_out(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an assignment that students get: all but the instructor's folder, hidden files and links.

    Raises:
        UsageError: a link, or too much of them.
    """
    found = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        parts = name.split("/")
        if (
            parts[0] == INSTRUCTOR
            or any(part.startswith(".") or part == "__pycache__" for part in parts)
            or not path.is_file()
        ):
            continue
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                f"{path}: found a symbolic link; expected a file, because links could lead anywhere. "
                "Put the file itself there."
            )
        found += 1
        if found > MOST_FILES or path.stat().st_size > LARGEST_FILE:
            raise UsageError(
                f"{path}: found file {found} of {path.stat().st_size} bytes; expected at most {MOST_FILES} of "
                f"{LARGEST_FILE} bytes. Make it smaller."
            )
        yield name, path.read_bytes()


def changed_files(folder: Path, original: Assignment) -> dict[str, bytes]:
    """The handed out files that a student's folder lacks or has otherwise, with their original content.

    What a student may write in does not count.
    """
    own = {deliverable.file for deliverable in original.file.deliverables}
    found = {}
    for name, content in handed_out(original.folder):
        path = folder / name
        is_writable = name.startswith(f"{STARTER}/") or name in own or (path.suffix == NOTES and path.is_file())
        if not is_writable and (not path.is_file() or path.read_bytes() != content):
            found[name] = content
    return found


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

    def run_of(self, scenario: str) -> VariantRun:
        """The run of one of its scenarios."""
        return run_of(self.assignment, self.variant.parameters, scenario, self.runs)

    def log(self) -> list[Line]:
        """The lines of the log.

        Raises:
            ScenarioError: there is none, or it was changed.
        """
        return _lines(self.folder / LOG, self.variant)

    def states(self) -> list[RunState]:
        """How far each run is."""
        return [_state(self.run_of(name)) for name in self.assignment.scenario_names]

    def unpredicted(self) -> dict[str, set[str]]:
        """The predictions that are missing and still in time, with the scenarios before which they have to be made."""
        lines, states = self.log(), self.states()
        given = {line.name for line in lines if line.event == "predict"}
        asked = {
            name: set(one.before or self.assignment.scenario_names)
            for name, one in self.assignment.file.predictions.items()
        }
        return {
            name: before
            for name, before in asked.items()
            if name not in given and not _has_results(lines, states, tuple(before))
        }

    def add(self, at: str, event: Event, name: str = "", value: str = "") -> None:
        """Adds a line to the log.

        Raises:
            ScenarioError: see `log`.
        """
        path = self.folder / LOG
        _lines(path, self.variant)
        replace_text(
            path, log.appended(path.read_bytes(), self.variant.digest, at, event, name, value, self.states()).decode()
        )


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
    return kept | own


def write_start(files: dict[str, bytes], assignment: Assignment, variant: Variant, target: Path, at: str) -> Workspace:
    """Makes the folder. An existing one is never touched.

    Raises:
        UsageError: there is something already.
    """
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise UsageError(
            f"{target}: found something already; expected a new folder. Go on with it, or choose another one with "
            "--into."
        )
    for name, content in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (target / LOG).write_bytes(b"")
    workspace = open_workspace(target)
    workspace.add(at, "start", assignment.name)
    return workspace


def open_workspace(folder: Path) -> Workspace:
    """The student's folder.

    Raises:
        ScenarioError: it is none, or a file of it was changed that must not be.
    """
    variant = read_variant(folder)
    try:
        # The folder may have any name: the variant knows the assignment's.
        assignment = load_assignment(folder, variant.assignment)
        said = variants.unfit(variant, assignment)
    except ScenarioError as error:
        said = str(error)
    if said:
        raise ScenarioError(f"{_changed(folder, variant) or f'{folder}: {said}'}. {RESTORE}")
    return Workspace(folder, assignment, variant)


def read_variant(folder: Path) -> Variant:
    """The variant of a student's folder.

    Raises:
        ScenarioError: there is none, or it was changed.
    """
    path = folder / VARIANT
    try:
        return variants.read(content_of(path))
    except OSError as error:
        raise ScenarioError(
            f"{path}: found {error.strerror}; expected the folder of an assignment that you have started. "
            "Go there, or name it with --in; to begin: "
            '"scpslab assignment start".'
        ) from error
    except VariantError as error:
        raise ScenarioError(f"{path}: {error}.") from error


def original(variant: Variant, folder: Path | None) -> Assignment:
    """The assignment of a variant as it was handed out: in the named folder, or the project's.

    Raises:
        ScenarioError: there is none.
        UsageError: it is another edition than the variant's.
    """
    found = load_assignment(find(str(folder or variant.assignment)), variant.assignment)
    if said := variants.unfit(variant, found):
        raise UsageError(
            f"{found.folder}: {said}. Name the folder of the assignment that you were given: --from FOLDER."
        )
    return found


def _changed(folder: Path, variant: Variant) -> str:
    """Which files are not as they were handed out; "" if that is not known."""
    try:
        names = ", ".join(changed_files(folder, original(variant, None)))
    except ScpslabError:
        return ""
    return names and (
        f"{folder}: found {names} missing or changed; expected the files as they were handed out: "
        "your variant belongs to them"
    )


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
        raise UsageError(
            f".: found {len(below)} assignments: {', '.join(map(str, below[:6]))}; expected one. "
            "Go into one, or name it with --in."
        )
    return below[0] if below else Path()


def late(lines: Sequence[Line], number: int, before: Sequence[str]) -> bool:
    """Whether a line of the log comes after the first finished cell, or after a run, of one of these scenarios."""
    return _has_results(lines[: number - 1], lines[number - 1].runs, before)


def _has_results(lines: Sequence[Line], states: Sequence[RunState], before: Sequence[str]) -> bool:
    ran = {line.name for line in lines if line.event == "run"}
    return any(state.finished > 0 for state in states if state.scenario in before) or bool(ran & set(before))


def _lines(path: Path, variant: Variant) -> list[Line]:
    try:
        return log.read(content_of(path), variant.digest)
    except OSError as error:
        raise ScenarioError(
            f"{path}: found {error.strerror}; expected the log of this folder. "
            "Restore it, or start the assignment again elsewhere."
        ) from error
    except LogError as error:
        raise ScenarioError(f"{path}: {error}. Restore the file as it was: commands write it, nobody else.") from error


def _state(run: VariantRun) -> RunState:
    file = run.folder.results
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    return RunState(scenario=run.scenario, finished=len(run.finished), results=digest)
